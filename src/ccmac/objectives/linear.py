"""Curvature of losses of a linear image Mv, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmac.inputs import is_sparse
from ccmac.linalg.extremes import diagonal_matrix, gram_extremes
from ccmac.objectives.base import Curvature


def gram_curvature(
    M: Any, d: int, joint: tuple[float, float], *, high: float, low: float, ridge: float
) -> Curvature:
    """Of l(Mv) + (ridge/2)||v||^2, v = (x, z), low I <= l'' <= high I; ``joint`` is (L, mu)."""
    blocks = (M[:, :d], M[:, d:])
    (L_x, mu_x), (L_z, mu_z) = (_block(block, high, low, ridge) for block in blocks)
    return Curvature(L_x, mu_x, L_z, mu_z, *joint, separable=0 in (d, M.shape[1] - d))


def _block(M: Any, high: float, low: float, ridge: float) -> tuple[float, float]:
    """(L, mu) in one block; a block without columns does not count."""
    L, mu = gram_extremes(M, both=low > 0).bounds()
    if M.shape[1] == 0:
        return L, mu
    return high * L + ridge, low * mu + ridge


def scaled_gram_bounds(
    M: Any, d: int, t: float, s: float, *, both: bool = True
) -> tuple[float, float]:
    """(largest, smallest) squared singular value of [t M_x, s M_z]; 0 for the latter if unasked."""
    scale = np.repeat([t, s], [d, M.shape[1] - d])
    scaled = M @ diagonal_matrix(scale) if is_sparse(M) else M * scale
    return gram_extremes(scaled, both=both).bounds()
