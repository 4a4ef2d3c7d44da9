"""Certificates of infeasibility: lambda with K'lambda ~ 0 and lambda'v != 0, block by block.

For every solution w of K w = v, |lambda'v| = |lambda'K w| <= ||K'lambda|| ||w||: the equations have
no solution of norm below R = |lambda'v| / ||K'lambda||. A contradiction is claimed when R, computed
in the user's own blocks with all rounding against it, exceeds REACH times max(1, the norm of the
least-squares point), or EXACT_REACH times one of PLAIN and more (:func:`proves`). Where R exceeds
it by less, though by DOUBTED or more, there is doubt: no contradiction is claimed and no bound
either. Words name the conflicting blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, Context
from typing import Any

import numpy as np

from ccmac.inputs import Array
from ccmac.linalg.tolerances import EPS

REACH = 1e5  # solutions this many times larger than the least-squares point are out of reach
EXACT_REACH = 200.0  # where the misfit is PLAIN
PLAIN = 0.7e-4  # 1e-4 in rows of unit length: those scaled by powers of two are so but for sqrt(2)
DOUBTED = 10.0  # a consistent system has R at most the norm of its least solution
VISIBLE = 1e-6  # share of lambda above which a block is named


@dataclass(frozen=True)
class Infeasibility:
    """lambda by blocks, what it says in words, ``defect`` = ||K'lambda||, ``value`` = lambda'v.

    Where bounds take part, ``bounds`` and ``z_bounds`` are K'lambda on x_i and on z: a positive
    entry uses the lower, a negative one the upper bound, and neither counts in the defect.
    """

    message: str
    coupled: Array
    local: dict[int, Array] = field(default_factory=dict)
    shared: dict[int, Array] = field(default_factory=dict)
    defect: float = 0.0
    value: float = 0.0
    bounds: dict[int, Array] = field(default_factory=dict)
    z_bounds: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def radius(self) -> float:
        """R: no solution has a smaller norm."""
        return abs(self.value) / self.defect if self.defect > 0 else math.inf

    @property
    def excluded(self) -> str:
        """What the proof excludes, in words; R is rounded down."""
        if math.isinf(self.radius):
            return "no solution, whatever its norm"
        shown = Context(prec=2, rounding=ROUND_DOWN).create_decimal_from_float(self.radius)
        return f"no solution has a norm below {float(shown):.2g}"

    def as_dict(self) -> dict[str, Any]:
        """For the record."""
        return {
            "message": self.message,
            "coupled": self.coupled.tolist(),
            "local": {str(i): v.tolist() for i, v in self.local.items()},
            "shared": {str(i): v.tolist() for i, v in self.shared.items()},
            "defect": self.defect,
            "value": self.value,
            "radius": self.radius if math.isfinite(self.radius) else None,
            "bounds": {str(i): v.tolist() for i, v in self.bounds.items()},
            "z_bounds": self.z_bounds.tolist(),
        }


def claimed(value: float, defect: float, size: float, reach: float = REACH) -> bool:
    """Whether a certificate excludes everything within reach of points of norm ``size``."""
    return value > 0 and value >= reach * max(1.0, size) * defect


def proves(sure: float, defect: float, size: float) -> bool:
    """Whether multipliers of unit length prove a contradiction.

    What multipliers are off by as doubles counts in any case: EXACT_REACH eps beside the closest
    point is the least misfit that is claimed, REACH eps where it is below PLAIN.
    """
    return claimed(sure, max(defect, EPS), size, EXACT_REACH if sure >= PLAIN else REACH)


def doubted(value: float, defect: float, size: float) -> bool:
    """Whether a certificate excludes the point of norm ``size`` that should be a solution."""
    return value > 0 and value >= DOUBTED * max(1.0, size) * defect


def described(weights: dict[str, list[int]], norms: dict[str, float]) -> str:
    parts = []
    if weights["coupled"]:
        parts.append("the coupled equation sum(A x + B z - b) = 0")
    for block, text in (("C", "local equations C"), ("D", "shared equations D")):
        if weights[block]:
            more = ", ..." if len(weights[block]) > 6 else ""
            parts.append(f"the {text} of agents {', '.join(map(str, weights[block][:6]))}{more}")
    worst = max(("coupled", "shared"), key=lambda k: norms[k])
    return (
        f"infeasible: {' and '.join(parts) or 'the equations'} cannot hold together "
        f"({worst} violation {norms[worst]:.3g} at the closest point); "
        "correct the right-hand sides or drop one of these blocks"
    )


def in_words(coupled: float, shared: float, on_z: float, weights: Array) -> str:
    """What cannot hold together; ``weights`` by agents of C and of bounds."""
    least = VISIBLE * max(coupled, shared, on_z, float(weights.max(initial=0.0)))
    parts = ["the coupled equation sum(A x + B z - b) = 0"] if coupled > least else []
    for column, text in enumerate(("local equations C", "bounds")):
        seen = [str(i) for i in np.flatnonzero(weights[:, column] > least)]
        if seen:
            more = ", ..." if len(seen) > 6 else ""
            parts.append(f"the {text} of agents {', '.join(seen[:6])}{more}")
    parts += ["the shared equations D"] if shared > least else []
    parts += ["the bounds on z"] if on_z > least else []
    return (
        f"infeasible: {' and '.join(parts)} cannot hold together; correct the right-hand sides, "
        "widen the bounds or drop one of these blocks"
    )
