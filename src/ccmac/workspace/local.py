"""The agents' own equations C_i x_i = c_i, handled without communication.

``access="factor"``: an orthonormal basis of Range(C_i') from one local factorization.
``access="matvec"``: only products with C_i, through a Chebyshev polynomial on the certified
interval [l_C, u_C] accurate to rounding. Either way the agent holds P_{C_i}, the projector onto
Range(C_i'), and the least-norm point C_i^+ c_i; :class:`Kernel` is what is left free.

What all equations are to the last digit is told on these kernels (:class:`Exactly`). That

    rank K = sum_i rank C_i + rank [A_1 N_1 .. A_n N_n  Bbar; 0  D],    N_i a basis of ker C_i

holds modulo a prime as well, where everything is exact (:mod:`ccmac.linalg.extended`). Every agent
tells a basis of A_i ker C_i and its B_i, both modulo two primes in one float, how many entries its
rows have and how many of them look rounded, and by how much the rank of C_i exceeds what a
decomposition found: l (min(l, d) + q + 2) + 1 floats with the next averaging, l as in
:mod:`ccmac.workspace.reduced`. With the agents' parts of the right-hand sides, 3 l + 1 floats more,
all know whether these agree.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg import extended
from ccmac.linalg.blocks import dense
from ccmac.linalg.chebyshev import semi_iteration, smallest_degree
from ccmac.linalg.families import LocalFamily
from ccmac.linalg.ranks import RowSpace, digits, mostly_rounded, row_space
from ccmac.linalg.tolerances import EPS, PROJECTOR
from ccmac.problem import Problem
from ccmac.runtime.base import Rider, Runtime
from ccmac.workspace.coupling import Packing


class LocalEquations:
    """P_C and C^+ c for the agents owned here."""

    def __init__(
        self,
        problem: Problem,
        runtime: Runtime,
        access: str,
        interval: tuple[float, float] | None = None,
    ) -> None:
        blocks = problem.blocks("C")
        d = list(problem.d.values())
        p = list(problem.p.values())
        self.ledger = runtime.ledger
        self.empty = "C" not in problem.present
        self.access = access
        self._family = LocalFamily("C", blocks, p, d, self.ledger, present=not self.empty)
        self._steps = 1
        right = [
            np.zeros(k) if agent.c is None else agent.c
            for agent, k in zip(problem.agents.values(), p, strict=True)
        ]
        self.right = np.concatenate(right) if right else np.zeros(0)
        self.spaces: list[RowSpace] = []
        self.bases: list[Array] = []
        if self.empty:
            self.point = np.zeros(sum(d))
            self._projector: LocalFamily | None = None
            return
        if access == "matvec" and interval is not None:
            self.interval = interval
            self._steps = smallest_degree(*interval, PROJECTOR)
            self.point = self._pseudo_inverse(self.right)
            self._projector = None
            return
        point = []
        for i, (block, c) in zip(problem.agents, zip(blocks, right, strict=True), strict=True):
            matrix = np.zeros((len(c), problem.d[i])) if block is None else dense(block)
            space = row_space(matrix)
            self.spaces.append(space)
            self.bases.append(np.ascontiguousarray(space.basis.T))
            point.append(space.basis @ space.coordinates(c))
        self.point = np.concatenate(point)
        ranks = [space.rank for space in self.spaces]
        self._projector = LocalFamily("C", self.bases, ranks, d, self.ledger, present=True)

    def again(self, problem: Problem) -> LocalEquations:
        """The same rows with the right-hand sides of ``problem``; of factorized ones."""
        other = copy.copy(self)
        right = [
            np.zeros(problem.p[i]) if agent.c is None else agent.c
            for i, agent in problem.agents.items()
        ]
        other.right = np.concatenate(right) if right else np.zeros(0)
        if not self.empty:
            pairs = zip(self.spaces, right, strict=True)
            other.point = np.concatenate([s.basis @ s.coordinates(c) for s, c in pairs])
        return other

    def _pseudo_inverse(self, right: Array) -> Array:
        """C' q(CC') right."""

        def gram(v: Array) -> Array:
            return self._family.forward(self._family.adjoint(v))

        return self._family.adjoint(semi_iteration(gram, right, *self.interval, self._steps))

    def project(self, x: Array) -> Array:
        """P_C x, onto Range(C'). Cost: 2 C (factor), 2 x steps C (matvec)."""
        if self.empty:
            return np.zeros_like(x)
        if self._projector is not None:
            return self._projector.adjoint(self._projector.forward(x))
        return self._pseudo_inverse(self._family.forward(x))

    @property
    def cost(self) -> Cost:
        """Static cost of :meth:`project`."""
        if self.empty:
            return Cost()
        return Cost(C=2) if self._projector is not None else Cost(C=2 * self._steps)

    def multipliers(self, gradient: Array) -> list[Array]:
        """kappa_i with C_i' kappa_i = -P_C gradient_i (least squares), one array per agent."""
        prices = []
        start = 0
        sizes = self._family.columns
        if self._projector is None and not self.empty:

            def gram(v: Array) -> Array:
                return self._family.forward(self._family.adjoint(v))

            flat = semi_iteration(
                gram, -self._family.forward(gradient), *self.interval, self._steps
            )
            ends = np.cumsum(self._family.rows)[:-1]
            return list(np.split(flat, ends))
        for k, size in enumerate(sizes):
            piece = gradient[start : start + size]
            start += size
            if self.empty:
                prices.append(np.zeros(self._family.rows[k]))
            else:
                prices.append(self.spaces[k].multipliers(-(self.bases[k] @ piece)))
        return prices


@dataclass(frozen=True)
class Kernel:
    """One agent's ker C_i: ``basis`` N_i, the ``point`` C_i^+ c_i, and the ``angle`` (rad) by which
    rounding may have turned both.
    """

    space: RowSpace
    basis: Array
    point: Array
    angle: float

    @classmethod
    def of(cls, space: RowSpace, point: Array) -> Kernel:
        """From the row space of C_i."""
        d = len(point)
        if not space.rank:
            return cls(space, np.eye(d), point, 0.0)
        whole, _ = np.linalg.qr(space.basis, mode="complete")
        angle = 4 * EPS * (d + len(space.left)) * space.condition
        return cls(space, whole[:, space.rank :], point, angle)


def kernels_of(problem: Problem, local: LocalEquations) -> list[Kernel]:
    """Of the agents owned here; no communication."""
    points = np.split(local.point, np.cumsum(list(problem.d.values()))[:-1])
    if local.empty:
        sizes = zip(problem.p.values(), problem.d.values(), strict=True)
        spaces = [row_space(np.zeros(shape)) for shape in sizes]
    else:
        spaces = local.spaces
    return [Kernel.of(space, point) for space, point in zip(spaces, points, strict=True)]


Blocks = tuple[int, int, Array, Array, Array]
Sides = tuple[int, Array, Array, Array, Array]


class Exactly:
    """The rows as they are, modulo the primes; ``wide`` is what an image has at most, ``D`` is
    known to all.
    """

    def __init__(self, runtime: Runtime, packing: Packing, wide: int, D: Array) -> None:
        self.runtime = runtime
        self.packing = packing
        self.wide = wide
        self.D = D

    def tell(self, blocks: Iterable[Blocks]) -> None:
        """What the agents of this process say; ``blocks`` are (agent, excess, A, B, C) of each."""
        rows = []
        for i, excess, A, B, C in blocks:
            images = []
            shared = []
            for prime in extended.PRIMES:
                images.append(extended.image_of_kernel(A, C, prime, self.wide))
                shared.append(extended.residues(B, prime))
            counts = np.stack(digits(np.hstack([A, B])), axis=1).astype(np.float64)
            parts = extended.packed(*images), extended.packed(*shared)
            own = [self.packing.packed(part, i) for part in (*parts, counts)]
            rows.append(np.concatenate([*own, [excess]]))
        self._rows: Rider = self.runtime.ride(np.stack(rows), whole=True)

    def tell_sides(self, sides: Iterable[Sides]) -> None:
        """What they say of (agent, A, C, b, c): b - A x with C x = c, :func:`digits` of b and c for
        every coupled row, and 1 where there is no such x, 2 more where some of b lies in rows of
        others.
        """
        rows = []
        packed = self.packing.packed
        for i, A, C, b, c in sides:
            both = [extended.side_on_kernel(A, C, (b, c), prime) for prime in extended.PRIMES]
            counts = np.stack(digits(b[:, None]), axis=1).astype(np.float64)
            counts += np.any(A, axis=1)[:, None] * [float(v.sum()) for v in digits(c[:, None])]
            unknown = float(any(v[0] for v in both)) + 2.0 * self.packing.outside(b, i)
            side = packed(extended.packed(both[0][1:], both[1][1:]), i)
            rows.append(np.concatenate([side, packed(counts, i), [unknown]]))
        self._sides: Rider = self.runtime.ride(np.stack(rows), whole=True)

    @cached_property
    def _heard(self) -> tuple[list[extended.Residues], int, tuple[Array, Array]]:
        """(coupled and shared rows on the kernels for each prime, excess, :func:`digits`)."""
        (n, m), (r, q), wide = self.packing.shape, self.D.shape, self.wide
        ends = self.packing.length * np.cumsum([wide, q, 2])
        unpacked = self.packing.unpacked
        images, shared, counts, excess = np.split(self._rows.value, ends, axis=1)
        parts = zip(
            extended.PRIMES,
            extended.unpacked(unpacked(images, wide)),
            extended.unpacked(unpacked(shared, q)),
            strict=True,
        )
        stacks = []
        for prime, image, B in parts:
            coupled = image.transpose(1, 0, 2).reshape(m, n * wide)
            upper = np.hstack([coupled, B.sum(axis=0) % prime])
            lower = np.hstack(
                [np.zeros((r, n * wide), dtype=np.int64), extended.residues(self.D, prime)]
            )
            stacks.append(np.vstack([upper, lower]))
        return stacks, int(excess.sum()), _joined(np.add.reduce(unpacked(counts, 2)), self.D)

    @cached_property
    def rank(self) -> int:
        """Of the coupled and shared rows on the kernels."""
        return _rank(self._heard[0])

    @property
    def excess(self) -> int:
        """By how much the ranks of the C_i exceed those decomposed."""
        return self._heard[1]

    @property
    def digits(self) -> tuple[Array, Array]:
        """Of the coupled and the shared rows."""
        return self._heard[2]

    def agree(self, e: Array, part: Array) -> bool | None:
        """Whether all equations have a solution.

        None where that is not known, or where they have none but for what may be rounding of the
        right-hand sides with a ``part`` in it.
        """
        sides, counts, unknown = np.split(
            self._sides.value, self.packing.length * np.cumsum([1, 2]), axis=1
        )
        if np.any(unknown % 2):
            return None
        if self.rank == self.packing.shape[1] + len(self.D):
            return True
        if unknown.any():
            return None
        both = extended.unpacked(self.packing.unpacked(sides))
        right = [
            np.append(side.sum(axis=0) % prime, extended.residues(e, prime))
            for prime, side in zip(extended.PRIMES, both, strict=True)
        ]
        whole = [np.column_stack(pair) for pair in zip(self._heard[0], right, strict=True)]
        if _rank(whole) == self.rank:
            return True
        numbers = _joined(np.add.reduce(self.packing.unpacked(counts, 2)), e[:, None])
        return None if mostly_rounded(numbers, part) else False


def _rank(stacks: list[extended.Residues]) -> int:
    pairs = zip(stacks, extended.PRIMES, strict=True)
    return max(extended.rank_modulo(stack, prime) for stack, prime in pairs)


def _joined(coupled: Array, shared: Array) -> tuple[Array, Array]:
    """:func:`digits` of coupled rows, summed, and of shared ones."""
    entries, rounded = digits(shared)
    return np.append(coupled[:, 0], entries), np.append(coupled[:, 1], rounded)
