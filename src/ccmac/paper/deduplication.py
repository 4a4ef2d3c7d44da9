"""Exact common equations kept in one channel only (Lemma lem:affine-dedup)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ccmac.angles.principal import overlap_tolerance
from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.linalg.ranks import row_space


@dataclass(frozen=True)
class Deduplicated:
    """M_1 x = v_1 unchanged, and the second channel reduced to its rows outside the overlap.

    ``R_2 M_2 = M_2_reduced`` and ``R_2 v_2 = v_2_reduced``: the reduction only combines rows of
    the second channel. ``common`` is an orthonormal basis (columns) of the removed directions.
    """

    M_1: Array
    v_1: Array
    M_2: Array
    v_2: Array
    R_2: Array
    common: Array


def deduplicated(
    M_1: Any, v_1: Any, M_2: Any, v_2: Any, *, tolerance: float | None = None
) -> Deduplicated:
    """The same feasible set with the common row directions left out of the second channel.

    The system must be consistent: without a common solution the two channels may demand different
    things of a common direction, and dropping one demand would hide it. Nearly common directions
    are kept. Cost: dense decompositions; a statement about matrices, not a distributed procedure.
    """
    M_1, M_2 = (np.asarray(M, dtype=np.float64) for M in (M_1, M_2))
    v_1, v_2 = (np.asarray(v, dtype=np.float64) for v in (v_1, v_2))
    _require_consistent(np.vstack([M_1, M_2]), np.concatenate([v_1, v_2]))
    first = row_space(M_1)
    second = row_space(M_2)
    limit = overlap_tolerance(max(first.condition, second.condition), tolerance)
    outside = second.basis - first.basis @ (first.basis.T @ second.basis)
    # Right vectors of the part outside Range(M_1'), in coordinates of the second basis.
    padded = np.vstack([outside, np.zeros((max(second.rank - len(outside), 0), second.rank))])
    _, sines, right = np.linalg.svd(padded, full_matrices=False)
    inside = sines < limit
    common = second.basis @ right[inside].T
    kept = second.basis @ right[~inside].T
    R_2 = second.multipliers(right[~inside].T).T
    return Deduplicated(M_1, v_1, kept.T, R_2 @ v_2, R_2, common)


def _require_consistent(M: Array, v: Array) -> None:
    if gap := row_space(M).conflict(v):
        raise InputError(
            f"deduplication: the two channels have no common solution (residual {gap:.3g}); "
            "check v_1 and v_2"
        )
