"""The execution space: plain flat arrays with named block views, and its only global operations.

Layout of a vector: the x_i one after the other (ragged), then the copies z_i as rows, then (for
the lift with an auxiliary variable) the y_i as rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ccmac.inputs import Array
from ccmac.runtime.base import Piggyback, Runtime

MANY = 64  # agents from which one pass over all entries is faster than a loop over agents
SHORT = 2048  # entries of rows many of which are multiplied at once
CACHED = 1 << 15  # entries at once


def row_dots(u: Array, v: Array) -> Array:
    """<u_k, v_k> row by row; the bits of one do not depend on how many rows there are."""
    if u.shape[1] <= SHORT:
        sums = np.empty(len(u))
        step = CACHED // max(u.shape[1], 1)
        for k in range(0, len(u), step):
            rows = slice(k, k + step)
            np.add.reduce(np.multiply(u[rows], v[rows], order="C"), axis=1, out=sums[rows])
        return sums
    # One einsum over all rows would cut long rows at places that depend on their number.
    return np.array([np.einsum("i,i->", a, b) for a, b in zip(u, v, strict=True)])


def piece_sums(values: Array, sizes: Sequence[int]) -> Array:
    """Sums over consecutive pieces; the bits of one do not depend on the others."""
    lengths = np.asarray(sizes, dtype=np.int64)
    sums = np.zeros(len(lengths))
    starts = np.cumsum(lengths) - lengths
    if values.size:
        sums[lengths > 0] = np.add.reduceat(values.ravel(), starts[lengths > 0])
    return sums


class Space:
    """Vectors (x, z[, y]) of the owned agents; ``d`` lists their local dimensions."""

    def __init__(self, runtime: Runtime, d: Sequence[int], q: int, lift: int = 0) -> None:
        self.runtime = runtime
        self.d = tuple(d)
        self.q = q
        self.lift = lift
        count = len(self.d)
        self.offsets = np.concatenate([[0], np.cumsum(self.d, dtype=np.int64)]).astype(int)
        self.x_size = int(self.offsets[-1])
        self.z_end = self.x_size + count * q
        self.size = self.z_end + count * lift
        self.count = count

    def zeros(self) -> Array:
        """The origin."""
        return np.zeros(self.size)

    def joined(self, x: Array, z: Array) -> Array:
        """(x, z) as one new vector, its lift zero."""
        w = self.zeros()
        self.x(w)[...] = x
        self.z(w)[...] = z
        return w

    def x(self, w: Array) -> Array:
        """View of the stacked local variables (flat, ragged)."""
        return w[: self.x_size]

    def z(self, w: Array) -> Array:
        """View of the copies of the shared variable, one row per agent."""
        return w[self.x_size : self.z_end].reshape(self.count, self.q)

    def y(self, w: Array) -> Array:
        """View of the lift's auxiliary variable, one row per agent."""
        return w[self.z_end :].reshape(self.count, self.lift)

    def x_of(self, w: Array, k: int) -> Array:
        """Local variable of the k-th owned agent (a view)."""
        return w[self.offsets[k] : self.offsets[k + 1]]

    def read(self, w: Array, k: int) -> Array:
        """(x_i, z_i) of the k-th owned agent in one new vector."""
        return np.concatenate([self.x_of(w, k), self.z(w)[k]])

    def write(self, w: Array, k: int, u: Array) -> None:
        """Put u = (x_i, z_i) in the k-th owned agent's place."""
        self.x_of(w, k)[...] = u[: self.d[k]]
        self.z(w)[k] = u[self.d[k] :]

    def split(self, w: Array) -> list[tuple[Array, Array]]:
        """(x_i, z_i) views for every owned agent."""
        z = self.z(w)
        return [(self.x_of(w, k), z[k]) for k in range(self.count)]

    def partial_dots(self, u: Array, v: Array) -> Array:
        """Per-agent contributions to <u, v>, shape (agents, 1), summed in a fixed order."""
        if self.runtime.n > MANY:
            rows = self.per_agent(u * v)
        else:
            rows = row_dots(self.z(u), self.z(v))
            for k in range(self.count):
                if self.lift:
                    rows[k] += np.einsum("i,i->", self.y(u)[k], self.y(v)[k])
                rows[k] += np.einsum("i,i->", self.x_of(u, k), self.x_of(v, k))
        return rows[:, None]

    def per_agent(self, w: Array) -> Array:
        """Sum of every agent's entries (x_i, z_i[, y_i])."""
        sums = piece_sums(self.z(w), [self.q] * self.count) + piece_sums(self.x(w), self.d)
        return sums + piece_sums(self.y(w), [self.lift] * self.count) if self.lift else sums

    def piggyback(self, *pairs: tuple[Array, Array]) -> Piggyback:
        """<u, v> over all agents for every pair, known with the next averaging: one reduction."""
        return self.runtime.piggyback(
            np.concatenate([self.partial_dots(u, v) for u, v in pairs], axis=1)
        )

    def dot(self, u: Array, v: Array) -> float:
        """<u, v> over all agents at once: one averaging."""
        return float(self.piggyback((u, v)).value[0])

    def norms(self, *vectors: Array) -> list[float]:
        """||u|| over all agents for every vector, at once: one averaging."""
        return lengths(self.piggyback(*((u, u) for u in vectors)))

    def norm(self, u: Array) -> float:
        """||u|| over all agents at once: one averaging."""
        return self.norms(u)[0]


def lengths(squares: Piggyback) -> list[float]:
    """The square roots of sums of squares, and of the grain of those that travelled in fixed point:
    never smaller than the lengths, apart from the rounding of doubles.
    """
    return [float(v) for v in np.sqrt(np.maximum(squares.value, 0.0) + squares.grain)]
