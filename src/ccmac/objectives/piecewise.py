"""Where a sum of ramps is zero."""

from __future__ import annotations

import numpy as np

from ccmac.inputs import Array


def crossing(start: Array, end: Array, height: Array, level: float) -> float:
    """Where a sum of ramps, from ``level`` upwards, is zero; a ramp may be a jump."""
    places = np.concatenate([start, end])
    order = np.argsort(places, kind="stable")
    sloped = end > start
    steep = np.where(sloped, height / np.where(sloped, end - start, 1.0), 0.0)
    slopes = np.cumsum(np.concatenate([steep, -steep])[order])
    jumps = np.concatenate([np.where(sloped, 0.0, height), np.zeros_like(height)])[order]
    places = places[order]
    rises = np.concatenate([[0.0], slopes[:-1] * np.diff(places)])
    after = level + np.cumsum(rises + jumps)
    k = int(np.argmax(after >= 0)) if (after >= 0).any() else len(after) - 1
    before = after[k] - jumps[k]
    if before <= 0 or k == 0 or slopes[k - 1] <= 0:
        return float(places[k])
    return float(places[k] - before / slopes[k - 1])
