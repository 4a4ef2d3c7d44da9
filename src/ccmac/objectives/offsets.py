"""The intercept b that minimises a loss of scores v + 1 b': a root, or Newton's method."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy
from scipy.special import softmax

from ccmac.inputs import Array
from ccmac.objectives.multinomial import Multinomial


def root(slope: Callable[[float], float]) -> float:
    """A root of an increasing function of one number that changes its sign."""
    at_zero = slope(0.0)
    if at_zero == 0.0:
        return 0.0
    sign = -1.0 if at_zero > 0 else 1.0
    reach = 1.0
    near = 0.0
    # Signs, not products: slopes of 1e-300 have none.
    while sign * (far := slope(sign * reach)) < 0 and reach < 1e300:
        near = reach
        reach = 4.0 * reach
    if not sign * far > 0.0:
        return sign * reach
    return float(
        scipy.optimize.brentq(
            slope, sign * near, sign * reach, xtol=1e-300, rtol=1e-15, maxiter=500
        )
    )


def class_offsets(loss: Multinomial, v: Array) -> Array:
    """Newton's method on the K offsets, at temperatures that fall to 1: scores far apart leave
    no curvature otherwise. Third derivatives are at most sqrt(2) times second ones, which says how
    far a step goes that lowers the loss.
    """
    scores = v.reshape(-1, loss.classes)
    b = np.zeros(loss.classes)
    weights = np.broadcast_to(loss.weight, len(loss.y))
    total = float(weights.sum())
    own = np.bincount(loss.y.astype(np.int64), weights, loss.classes)  # of each class
    # scores within a range of 16 need no other temperature
    heat = max(1.0, float(np.ptp(scores)) / 16.0)
    for _ in range(500):
        p = softmax((scores + b) / heat, axis=1)
        slope = loss.slopes(p).sum(axis=0)
        # in a tenth of every class's weight the slope is flat: time to cool
        if heat > 1.0 and np.all(np.abs(slope) <= 0.1 * own):
            heat = max(1.0, 0.5 * heat)
            continue
        if heat == 1.0 and np.abs(slope).max() <= 1e-14 * total:
            break
        # a little curvature that is always there
        H = loss.class_curvature(p) + 1e-30 * total * np.eye(loss.classes)
        H += float(np.trace(H)) / loss.classes**2  # the direction (1, ..., 1) is flat
        move = np.linalg.lstsq(H, slope, rcond=None)[0]
        far = math.sqrt(2.0) * float(np.linalg.norm(move))
        b = b - heat * (math.log1p(far) / far if far > 0 else 1.0) * move
    return np.asarray(b - b.mean())
