"""Modes that the joint spectrum shows and the data's Krylov space does not.

The Krylov space of S may be small (S a multiple of the identity) while the two channels meet at
small angles in other directions: a plan made on it takes the angle for the mean one. The Lanczos
run on the whole stack then finds a lower end that the plan did not expect. Its Friedrichs cosine c,

    low = smallest positive eigenvalue of a P_U + P_V at cosine c,

goes back into the model as a ladder of modes with tan^2 = c^2/(1 - c^2), a quarter of it, ... down
to those that are easy, each with an equal share of the data, and planning is done again.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ccmac.realizations.averaged.profile import Profile

Array = NDArray[np.float64]
REFUTED = 4.0  # a lower end this many times below the planned one
RUNGS = 5
STEP = 4.0


def cosine_of(low: float, spread: float) -> float:
    """c at which spread * P_U + P_V has ``low`` as its smallest positive eigenvalue."""
    square = 1.0 - low * (spread + 1.0 - low) / spread
    return math.sqrt(min(max(square, 0.0), 1.0 - 1e-12))


def refuted(planned: float, found: float) -> bool:
    """Whether the cosine found leaves far less angle than the planned one."""
    return REFUTED * (1.0 - found) < 1.0 - planned


def with_hidden_modes(profile: Profile, s: float, cosine: float) -> Profile:
    """The profile with the ladder of modes up to ``cosine`` at scale s (local arithmetic)."""
    theta = float(np.mean(np.diag(profile.M_A + s * s * profile.M_B)))
    tangents = cosine**2 / (1.0 - cosine**2) / STEP ** np.arange(RUNGS)
    squares = tangents / (1.0 + tangents)
    rest = theta * (1.0 - squares) / 2.0  # half of what is left in x, half in the mean of z
    share = 1.0 / math.sqrt(RUNGS + 1.0)

    def shared(data: Array) -> Array:
        return share * np.append(data, np.full(RUNGS, np.linalg.norm(data)))

    return replace(
        profile,
        M_A=_extended(profile.M_A, rest),
        M_B=_extended(profile.M_B, (theta * squares + rest) / s**2),
        M_mean=_extended(profile.M_mean, rest / s**2),
        misfit=shared(profile.misfit),
        gradient_x=shared(profile.gradient_x),
        gradient_z=shared(profile.gradient_z),
    )


def _extended(M: Array, diagonal: Array) -> Array:
    k = len(M)
    out = np.diag(np.append(np.zeros(k), diagonal))
    out[:k, :k] = M
    return out
