"""Row spaces, principal angles, and the cross factor they imply.

An angle is kept as the pair (sine, cosine), each computed where it is accurate: cosines close to
one carry no digits of a small angle, sines close to one none of a small cosine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
RANK_TOLERANCE = 1e-12
"""Singular values below this, relative to the largest after row equilibration, count as zero."""
OVERLAP_TOLERANCE = 1e-10
"""Principal angles (rad) below this count as exact common directions."""


@dataclass(frozen=True)
class RowSpace:
    """Orthonormal basis (columns) of Range(M') and the condition of the rows it came from."""

    basis: Array
    condition: float

    @property
    def rank(self) -> int:
        """Dimension of the row space."""
        return int(self.basis.shape[1])


def row_space(M: Array, tolerance: float = RANK_TOLERANCE) -> RowSpace:
    """Range(M') by a singular value decomposition of M with its rows brought to unit length.

    Row lengths do not change the row space, and without them a small equation is not mistaken for
    a missing one.
    """
    lengths = np.linalg.norm(M, axis=1)
    rows = M[lengths > 0] / lengths[lengths > 0, None]
    if rows.size == 0:
        return RowSpace(np.zeros((M.shape[1], 0)), 1.0)
    # Unknowns that no row touches stay exactly out of the row space: B = 0 gives chi = 1 exactly.
    touched = np.any(rows != 0, axis=0)
    _, singular, right = np.linalg.svd(rows[:, touched], full_matrices=False)
    rank = int(np.count_nonzero(singular > tolerance * singular[0]))
    basis = np.zeros((M.shape[1], rank))
    basis[touched] = right[:rank].T
    return RowSpace(basis, float(singular[0] / singular[rank - 1]))


def row_space_basis(M: Array, tolerance: float = RANK_TOLERANCE) -> Array:
    """Orthonormal columns spanning Range(M')."""
    return row_space(np.asarray(M, dtype=np.float64), tolerance).basis


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


def paired(sines: Array, cosines: Array) -> Angles:
    """Angles from their sines (any order) and cosines, each made consistent with the other."""
    s, c = np.sort(np.clip(sines, 0.0, 1.0)), np.sort(np.clip(cosines, 0.0, 1.0))[::-1]
    # What rounding leaves of a zero cosine is a zero.
    c = np.where(c < 8 * EPS, 0.0, c)
    steep = c <= s
    s_out = np.where(steep, np.sqrt((1 - c) * (1 + c)), s)
    c_out = np.where(steep, c, np.sqrt((1 - s) * (1 + s)))
    return Angles(s_out, c_out)


def principal_angles(P: Array, Q: Array) -> Angles:
    """Angles between the spans of orthonormal P and Q (Bjorck and Golub, sines and cosines)."""
    if P.shape[1] < Q.shape[1]:
        P, Q = Q, P
    if Q.shape[1] == 0:
        return Angles(np.zeros(0), np.zeros(0))
    inner = P.T @ Q
    return paired(sla.svdvals(Q - P @ inner), sla.svdvals(inner))


def overlap_tolerance(condition: float, tolerance: float | None) -> float:
    """The angle below which two directions cannot be told apart.

    A basis computed from rows of condition k carries an error of about k eps, so the default grows
    with k.
    """
    if tolerance is not None:
        return tolerance
    return max(OVERLAP_TOLERANCE, 100 * EPS * condition)


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
        """chi = sqrt((1+c)/(1-c)) = cot(theta/2) = (1+c)/s: no cancellation for small angles."""
        return (1.0 + self.cosine) / self.sine


def pair_geometry(angles: Angles, ranks: tuple[int, int], tolerance: float) -> PairGeometry:
    """Friedrichs cosine after removal of the common directions (eq. friedrichs), and chi_{x,2}.

    Common directions give eigenvalue 2 of P_U + P_V, exclusive ones 1, the rest 1 +- cos.
    """
    common = angles.common(tolerance)
    reduced = min(ranks) - common > 0 and len(angles.sines) > common
    c, s = (float(angles.cosines[common]), float(angles.sines[common])) if reduced else (0.0, 1.0)
    if not common:
        factor = (1.0 + c) / s
    elif max(ranks) > common:
        # 2 / (1 - c), with 1 - c written through the sine.
        factor = float(np.sqrt(2.0 * (1.0 + c)) / s)
    else:
        factor = 1.0
    return PairGeometry(c, s, common, factor)


def projector_sum_factor(bases: Sequence[Array], tolerance: float) -> float:
    """chi_{x,J} = sqrt(kappa_+(sum_j P_{U_j})) from orthonormal bases (eq. multi-channel-factor).

    The positive spectrum is that of the Gram matrix of all basis vectors, so the singular values
    of the stacked bases give the square root directly.
    """
    if sum(Q.shape[1] for Q in bases) == 0:
        return 1.0
    singular = sla.svdvals(np.hstack(list(bases)))
    positive = singular[singular > tolerance / np.sqrt(2.0)]
    return float(positive[0] / positive[-1])
