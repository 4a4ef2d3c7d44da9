"""The balance of primal and dual steps, learned from how far each has moved.

With w+ = prox or gradient step of length 1/S and p+ = p + (S/lambda_+) (...), the best S is the
ratio ||p* - p0|| / ||w* - w0|| up to a constant: in normalized channels p and the multiplier have
nearly the same norm. The ratio is looked at after 4, 6, 9, ... steps; two reductions that ride.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ccmac.runtime.space import Space

Array = NDArray[np.float64]
GROWTH = 1.5
FACTOR = 3.0
SPREAD = 30.0


def next_adaptation(count: float) -> float:
    """When to look again."""
    return float(math.ceil(GROWTH * count))


def adapted_weight(
    space: Space, weight: float, first: float, moved_p: Array, moved_w: Array
) -> float:
    """Geometric mean of the weight and 3 ||moved_p|| / ||moved_w||, within 30 times the first.

    The bounds matter where the multiplier vanishes: the ratio would send the weight to zero.
    """
    dual, primal = space.norm(moved_p, riding=True), space.norm(moved_w, riding=True)
    if not (0 < dual < math.inf and 0 < primal < math.inf):
        return weight
    wanted = math.sqrt(weight * FACTOR * dual / primal)
    return min(max(wanted, first / SPREAD), first * SPREAD)
