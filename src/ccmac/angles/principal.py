"""Two row spaces: principal angles, the cross factor they imply, and what follows in closed form.

An angle is kept as the pair (sine, cosine), each computed where it is accurate: cosines close to
one carry no digits of a small angle, sines close to one none of a small cosine.
(``scipy.linalg.subspace_angles`` returns the angles alone.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla

from ccmac.inputs import Array
from ccmac.linalg.tolerances import OVERLAP, OVERLAP_NOISE, ZERO_COSINE


def cross_factor(cosine: float, sine: float | None = None) -> float:
    """chi = sqrt((1+c)/(1-c)) = cot(theta/2) = (1+c)/s; the sine keeps the digits of small angles.

    chi^2 is the condition of a stack of two separately whitened channels; infinite where double
    precision cannot tell the angle from zero.
    """
    if sine is not None:
        return (1.0 + cosine) / sine if sine > 0 else math.inf
    return math.sqrt((1.0 + cosine) / (1.0 - cosine)) if cosine < 1 else math.inf


def friedrichs_cosine(cross_factor: float) -> float:
    """c = (chi^2 - 1) / (chi^2 + 1), the inverse of :func:`cross_factor`."""
    square = cross_factor * cross_factor
    return (square - 1.0) / (square + 1.0)


@dataclass(frozen=True)
class Angles:
    """Principal angles of two subspaces, ascending, as sines and cosines."""

    sines: Array
    cosines: Array

    @property
    def radians(self) -> Array:
        """The angles themselves."""
        return np.arctan2(self.sines, self.cosines)

    def common(self, tolerance: float) -> int:
        """How many angles are below ``tolerance``: the dimension of the exact intersection."""
        return int(np.count_nonzero(self.radians < tolerance))

    def fitted(self, count: int) -> Angles:
        """Exactly ``count`` angles: what is missing, and what is in excess, is a right angle."""
        missing = max(count - len(self.sines), 0)
        sines = np.concatenate([self.sines, np.ones(missing)])[:count]
        return Angles(sines, np.concatenate([self.cosines, np.zeros(missing)])[:count])

    def after_common(self, count: int) -> Angles:
        """The same angles after ``count`` zeros."""
        sines = np.concatenate([np.zeros(count), self.sines])
        return Angles(sines, np.concatenate([np.ones(count), self.cosines]))


NO_ANGLES = Angles(np.zeros(0), np.zeros(0))


def paired(sines: Array, cosines: Array) -> Angles:
    """Angles from their sines (any order) and cosines, each made consistent with the other."""
    s = np.sort(np.clip(sines, 0.0, 1.0))
    c = np.sort(np.clip(cosines, 0.0, 1.0))[::-1]
    c = np.where(c < ZERO_COSINE, 0.0, c)
    steep = c <= s
    s_out = np.where(steep, np.sqrt((1 - c) * (1 + c)), s)
    c_out = np.where(steep, c, np.sqrt((1 - s) * (1 + s)))
    return Angles(s_out, c_out)


def principal_angles(P: Array, Q: Array) -> Angles:
    """Angles between the spans of orthonormal P and Q (Bjorck and Golub, sines and cosines)."""
    if P.shape[1] < Q.shape[1]:
        P, Q = Q, P
    if Q.shape[1] == 0:
        return NO_ANGLES
    inner = P.T @ Q
    return paired(sla.svdvals(Q - P @ inner), sla.svdvals(inner))


def overlap_tolerance(condition: float, tolerance: float | None) -> float:
    """The angle below which two directions cannot be distinguished.

    A basis computed from rows of condition k carries an error of about k eps, so the default grows
    with k.
    """
    return max(OVERLAP, OVERLAP_NOISE * condition) if tolerance is None else tolerance


@dataclass(frozen=True)
class PairGeometry:
    """What two row spaces of given ranks do to a separately whitened stack."""

    cosine: float
    sine: float
    common: int
    multi_channel_factor: float

    @property
    def angle(self) -> float:
        """Friedrichs angle in radians."""
        return float(np.arctan2(self.sine, self.cosine))

    @property
    def cross_factor(self) -> float:
        """chi of the Friedrichs angle."""
        return cross_factor(self.cosine, self.sine)


def pair_geometry(angles: Angles, ranks: tuple[int, int], tolerance: float) -> PairGeometry:
    """Friedrichs cosine after removal of the common directions, and chi_{x,2}.

    Equation eq:friedrichs, Corollary cor:angle-remove-overlap.

    Common directions give eigenvalue 2 of P_U + P_V, exclusive ones 1, the rest 1 +- cos.
    """
    common = angles.common(tolerance)
    reduced = min(ranks) - common > 0 and len(angles.sines) > common
    c, s = (float(angles.cosines[common]), float(angles.sines[common])) if reduced else (0.0, 1.0)
    if not common:
        factor = cross_factor(c, s)
    elif max(ranks) > common:
        # 2 / (1 - c), with 1 - c written through the sine.
        factor = math.sqrt(2.0 * (1.0 + c)) / s
    else:
        factor = 1.0
    return PairGeometry(c, s, common, factor)


def projector_sum_factor(bases: Sequence[Array], tolerance: float) -> float:
    """chi_{x,J} = sqrt(kappa_+(sum_j P_{U_j})) from orthonormal bases.

    Equation eq:multi-channel-factor; angles of pairs do not determine it
    (Lemma lem:pairwise-insufficient).

    The positive spectrum is that of the Gram matrix of all basis vectors, so the singular values
    of the stacked bases give the square root directly.
    """
    if sum(Q.shape[1] for Q in bases) == 0:
        return 1.0
    singular = sla.svdvals(np.hstack(list(bases)))
    positive = singular[singular > tolerance / np.sqrt(2.0)]
    return float(positive[0] / positive[-1])


def weighted_extremes(
    a: float, b: float, cosine: float, sine: float | None = None
) -> tuple[float, float]:
    """(lambda_-, lambda_+) of a P_U + b P_V on a principal plane (Lemma lem:weighted-projectors).

    lambda_+- = (a + b +- sqrt((a-b)^2 + 4ab c^2)) / 2; the lower one is written as ab s^2 /
    lambda_+, which does not cancel. At the Friedrichs cosine: the extremes over all planes.
    """
    upper = (a + b + math.sqrt((a - b) ** 2 + 4 * a * b * cosine * cosine)) / 2
    square = (1 - cosine) * (1 + cosine) if sine is None else sine * sine
    return a * b * square / upper, upper
