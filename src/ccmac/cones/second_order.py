"""The second-order cone { s : s_0 >= ||s_1|| }.

a o b = (a'b, a_0 b_1 + b_0 a_1),   J = diag(1, -1, ..., -1),
W = eta [[w_0, w_1'], [w_1, I + w_1 w_1' / (1 + w_0)]],   W^2 = eta^2 (2 w w' - J),   w'Jw = 1
"""

from __future__ import annotations

import numpy as np

from ccmac.cones.base import WRONG, Cone, Face, Scaling
from ccmac.inputs import Array


def _dot(a: Array, b: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", a, b))


def _hyperbolic(a: Array, b: Array) -> Array:
    """a'Jb, row by row."""
    return np.asarray(a[:, 0] * b[:, 0] - _dot(a[:, 1:], b[:, 1:]))


def _length(s: Array) -> Array:
    """sqrt(s'Js) by a product that does not cancel."""
    tail = np.linalg.norm(s[:, 1:], axis=1)
    return np.asarray(np.sqrt(np.maximum((s[:, 0] - tail) * (s[:, 0] + tail), 1e-300)))


def _eigenvalues(s: Array) -> Array:
    """(s_0 - ||s_1||, s_0 + ||s_1||), never 0."""
    tail = np.linalg.norm(s[:, 1:], axis=1)
    return np.stack([s[:, 0] - tail, s[:, 0] + tail])


class LorentzScaling(Scaling):
    """W from the two points brought to the hyperboloid u'Ju = 1."""

    def __init__(self, s: Array, v: Array) -> None:
        length_s = _length(s)
        length_v = _length(v)
        unit_s = s / length_s[:, None]
        unit_v = v / length_v[:, None]
        gamma = np.sqrt(0.5 * (1.0 + _dot(unit_s, unit_v)))
        unit_v[:, 1:] *= -1.0
        self.w = (unit_s + unit_v) / (2.0 * gamma[:, None])
        self.eta = np.sqrt(length_s / length_v)
        self.point = self.apply(v)

    def _turned(self, a: Array, sign: float) -> Array:
        w0 = self.w[:, 0]
        w1 = self.w[:, 1:]
        across = _dot(w1, a[:, 1:])
        out = np.empty_like(a)
        out[:, 0] = w0 * a[:, 0] + sign * across
        out[:, 1:] = a[:, 1:] + (sign * a[:, 0] + across / (1.0 + w0))[:, None] * w1
        return out

    def apply(self, a: Array) -> Array:
        return np.asarray(self.eta[:, None] * self._turned(a, 1.0))

    def inverse(self, a: Array) -> Array:
        return np.asarray(self._turned(a, -1.0) / self.eta[:, None])

    def inverse_matrix(self) -> Array:
        w0 = self.w[:, 0]
        w1 = self.w[:, 1:]
        out = np.empty((*self.w.shape, self.w.shape[1]))
        out[:, 0, 0] = w0
        out[:, 0, 1:] = -w1
        out[:, 1:, 0] = -w1
        out[:, 1:, 1:] = (
            np.eye(w1.shape[1]) + w1[:, :, None] * w1[:, None, :] / (1.0 + w0)[:, None, None]
        )
        return np.asarray(out / self.eta[:, None, None])


class LorentzFace(Face):
    """The apex, an edge t (1, u) with ||u|| = 1, or the inside.

    Near an edge the slack stays on the boundary where (1, -u)'ds = 0, and its multiplier
    t (1, -u) turns by -t (I - uu') ds_1 / ||s_1||.
    """

    def __init__(self, s: Array, v: Array, s0: Array, v0: Array) -> None:
        tail_s = np.linalg.norm(s[:, 1:], axis=1)
        least_s, most_s = _eigenvalues(s) / _eigenvalues(s0)
        least_v, most_v = _eigenvalues(v) / _eigenvalues(v0)
        inside = most_v <= least_s + WRONG
        apex = least_v > most_s + WRONG
        self.apex = apex
        self.edge = ~inside & ~apex & (tail_s > 0) & (v[:, 0] > 0)
        dim = s.shape[1]
        self.matrix = np.eye(dim) * apex[:, None, None]
        self.held = np.broadcast_to(np.where(apex, 0.0, 1.0)[:, None], s.shape).copy()
        u = s[self.edge, 1:] / tail_s[self.edge, None]
        rows = np.zeros((len(u), dim, dim))
        rows[:, 0, 0] = 1.0
        rows[:, 0, 1:] = -u
        rows[:, 1:, 1:] = np.eye(dim - 1) - u[:, :, None] * u[:, None, :]
        self.matrix[self.edge] = rows
        self.held[self.edge] = (tail_s / v[:, 0].clip(1e-300))[self.edge, None]
        self.held[self.edge, 0] = 0.0

    def met(self, s: Array, v: Array) -> tuple[Array, Array]:
        lack = np.where(self.apex[:, None], s, 0.0)
        found = np.where(self.apex[:, None], v, 0.0)
        tail = np.linalg.norm(s[:, 1:], axis=1)
        turned = s[:, 1:] / np.where(tail > 0, tail, 1.0)[:, None]
        lack[self.edge, 0] = (s[:, 0] - tail)[self.edge]
        edge = v[:, :1] * np.hstack([np.ones((len(s), 1)), -turned])
        return lack, np.where(self.edge[:, None], edge, found)


class SecondOrder(Cone):
    """One cone of k entries, the first of them at least the length of the others.

    Parameters
    ----------
    size : int
        The number of entries.

    Examples
    --------
    >>> import ccmac
    >>> ccmac.cones.SecondOrder(3)
    SecondOrder(size=3)
    """

    kind = "second-order"

    @property
    def dim(self) -> int:
        return self.size

    def identity(self, count: int, dim: int) -> Array:
        e = np.zeros((count, dim))
        e[:, 0] = 1.0
        return e

    def margin(self, s: Array) -> Array:
        return np.asarray(s[:, 0] - np.linalg.norm(s[:, 1:], axis=1))

    def length(self, s: Array, step: Array) -> float:
        # The least positive root of a t^2 + 2 b t + c, by the formula that does not cancel.
        a = _hyperbolic(step, step)
        b = _hyperbolic(s, step)
        c = _length(s) ** 2
        inside = b * b - a * c
        some = inside >= 0
        q = -(b + np.where(b >= 0, 1.0, -1.0) * np.sqrt(np.where(some, inside, 0.0)))
        with np.errstate(divide="ignore", invalid="ignore"):
            roots = np.stack([q / a, c / q])
        roots = np.where(some & (roots > 0), roots, np.inf)
        return float(roots.min(initial=np.inf))

    def scaling(self, s: Array, v: Array) -> Scaling:
        return LorentzScaling(s, v)

    def face(self, s: Array, v: Array, s0: Array, v0: Array) -> Face:
        return LorentzFace(s, v, s0, v0)

    def product(self, a: Array, b: Array) -> Array:
        out = a[:, :1] * b + b[:, :1] * a
        out[:, 0] = _dot(a, b)
        return np.asarray(out)

    def division(self, a: Array, b: Array) -> Array:
        out = np.empty_like(b)
        out[:, 0] = _hyperbolic(a, b) / _length(a) ** 2
        out[:, 1:] = (b[:, 1:] - out[:, :1] * a[:, 1:]) / a[:, :1]
        return out
