"""A product of cones, as the rows of one agent have it; alike ones are treated together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.cones.base import Cone, Scaling
from ccmac.cones.nonnegative import Nonnegative
from ccmac.cones.zero import Zero
from ccmac.inputs import Array
from ccmac.linalg.tolerances import EPS


class ProductCone:
    """The rows of ``cones`` one after the other; ``degree`` is e'e."""

    def __init__(self, cones: Sequence[Cone]) -> None:
        self.cones = tuple(cones)
        found: dict[tuple[type[Cone], int], tuple[Cone, list[NDArray[np.int64]]]] = {}
        start = 0
        self.degree = 0
        for cone in cones:
            rows = np.arange(start, start + cone.size).reshape(-1, cone.dim)
            kind = Nonnegative(1) if cone.dim == 1 and cone.degree else cone  # of one entry: s >= 0
            found.setdefault((type(kind), cone.dim), (kind, []))[1].append(rows)
            start += cone.size
            self.degree += cone.degree * len(rows)
        self.size = start
        self.groups = [(kind, np.vstack(rows)) for kind, rows in found.values()]
        self.identity = self._each(lambda kind, rows: kind.identity(*rows.shape))
        self.equations = np.zeros(start, dtype=bool)
        for kind, rows in self.groups:
            self.equations[rows] = isinstance(kind, Zero)

    @property
    def turned(self) -> bool:
        """Whether there are cones other than equations and orthants."""
        return any(rows.shape[1] > 1 for _, rows in self.groups)

    def _each(self, part: Callable[[Cone, NDArray[np.int64]], Array]) -> Array:
        out = np.zeros(self.size)
        for kind, rows in self.groups:
            out[rows] = part(kind, rows)
        return out

    def margins(self, s: Array) -> Array:
        """Of every cone the largest t with s - t e in it, for all of its rows."""
        return self._each(
            lambda kind, rows: np.broadcast_to(kind.margin(s[rows])[:, None], rows.shape)
        )

    def margin(self, s: Array) -> float:
        """The least of :meth:`margins` (equations aside)."""
        return float(self.margins(s)[~self.equations].min(initial=np.inf))

    def inside_dual(self, v: Array) -> Array:
        """v, moved along e into the dual cone, by so much that rounding cannot undo it."""
        out = v.copy()
        for kind, rows in self.groups:
            if not isinstance(kind, Zero):
                dim = rows.shape[1]
                room = 4 * EPS * (dim - 1) * np.abs(v[rows]).max(axis=1, initial=0.0)
                lack = np.maximum(0.0, room - kind.margin(v[rows]))
                out[rows] += lack[:, None] * kind.identity(*rows.shape)
        return out

    def distance(self, s: Array) -> float:
        """How far s lies outside: the norm of what :meth:`outside` says, once for each cone."""
        off = self.outside(s)
        return float(np.linalg.norm([v for _, rows in self.groups for v in off[rows[:, 0]]]))

    def outside(self, s: Array) -> Array:
        """How far s lies outside, along e: one number a row, the same for all rows of a cone."""
        return np.maximum(0.0, -self.margins(s))

    def sizes(self, lengths: Array) -> Array:
        """The largest of these in each cone, for all of its rows; 1 where all are 0."""
        out = lengths.copy()
        for _, rows in self.groups:
            out[rows] = lengths[rows].max(axis=1, keepdims=True)
        return np.where(out > 0, out, 1.0)

    def length(self, s: Array, step: Array) -> float:
        """The largest multiple of ``step`` that keeps s in K."""
        parts = (kind.length(s[rows], step[rows]) for kind, rows in self.groups)
        return min(parts, default=np.inf)

    def product(self, a: Array, b: Array) -> Array:
        """a o b."""
        return self._each(lambda kind, rows: kind.product(a[rows], b[rows]))

    def scaling(self, s: Array, v: Array) -> ProductScaling:
        """Of all rows at (s, v)."""
        return ProductScaling(self, s, v)

    def face(self, s: Array, v: Array, s0: Array, v0: Array) -> ProductFace:
        """That points (s, v) near a solution tell of, with (s0, v0) before."""
        return ProductFace(self, s, v, s0, v0)

    def blocks(self, matrices: list[Array]) -> sp.coo_array:
        """Batches of matrices (count, dim, dim), one for each group, as one on all rows."""
        values = []
        at = []
        to = []
        for batch, (_, rows) in zip(matrices, self.groups, strict=True):
            dim = rows.shape[1]
            values.append(batch.ravel())
            at.append(np.repeat(rows, dim, axis=1).ravel())
            to.append(np.tile(rows, (1, dim)).ravel())
        if not values:
            return sp.coo_array((self.size, self.size))
        index = (np.concatenate(at), np.concatenate(to))
        return sp.coo_array((np.concatenate(values), index), shape=(self.size, self.size))


class ProductFace:
    """The faces of all rows; see :class:`ccmac.cones.base.Face`."""

    def __init__(self, cone: ProductCone, s: Array, v: Array, s0: Array, v0: Array) -> None:
        self.cone = cone
        self.parts = [
            kind.face(*(point[rows] for point in (s, v, s0, v0))) for kind, rows in cone.groups
        ]
        self.matrix = cone.blocks([part.matrix for part in self.parts])
        self.held = np.zeros(cone.size)
        for part, (_, rows) in zip(self.parts, cone.groups, strict=True):
            self.held[rows] = part.held

    def met(self, s: Array, v: Array) -> tuple[Array, Array]:
        """(what lacks of s to the faces, v as a multiplier there)."""
        lack = np.zeros_like(s)
        found = np.zeros_like(v)
        for part, (_, rows) in zip(self.parts, self.cone.groups, strict=True):
            lack[rows], found[rows] = part.met(s[rows], v[rows])
        return lack, found


class ProductScaling:
    """The Nesterov-Todd scaling of a product; ``point`` = W v = W^{-1} s."""

    def __init__(self, cone: ProductCone, s: Array, v: Array) -> None:
        self.cone = cone
        self.parts = [kind.scaling(s[rows], v[rows]) for kind, rows in cone.groups]
        self.point = self._each(lambda part, rows: part.point)

    def _each(self, of: Callable[[Scaling, NDArray[np.int64]], Array]) -> Array:
        out = np.zeros(self.cone.size)
        for part, (_, rows) in zip(self.parts, self.cone.groups, strict=True):
            out[rows] = of(part, rows)
        return out

    def apply(self, a: Array) -> Array:
        """W a."""
        return self._each(lambda part, rows: part.apply(a[rows]))

    def inverse(self, a: Array) -> Array:
        """W^{-1} a."""
        return self._each(lambda part, rows: part.inverse(a[rows]))

    def divided(self, b: Array) -> Array:
        """x with point o x = b."""
        out = np.zeros(self.cone.size)
        for kind, rows in self.cone.groups:
            out[rows] = kind.division(self.point[rows], b[rows])
        return out

    def inverse_matrix(self) -> sp.coo_array:
        """W^{-1}, sparse; the identity on equations."""
        return self.cone.blocks([part.inverse_matrix() for part in self.parts])
