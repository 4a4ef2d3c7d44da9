"""Quadratic problems whose shared variable everybody can compute from the coupled multiplier.

Where f_i = phi_i(x_i) + (h_i/2) ||z||^2 - g_i'z and B_i = beta_i I, without own equations,

    x_i(l) = argmin phi_i + <A_i'l, x>,   z(l) = (g - beta l) / h,   r = sum_i A_i x_i + beta z - b

(g, b, h, beta: sums over agents) leave one dual equation in the multiplier l alone, without
multipliers of consensus:

    S = sum_i A_i H_i^{-1} A_i' + c I >= c I,   c = beta^2 / h,

however unequal the beta_i are. The energy of a multiplier is that of its minimisers:
r'S^{-1}r = sum_i ||x_i(l) - x_i*||^2_{H_i} + h ||z(l) - z*||^2.
Cost of knowing: one row of scalars, with the agents' declarations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.blocks import entries
from ccmac.linalg.nystrom import Nystrom, random_signs
from ccmac.linalg.symmetric import Solve, factorized
from ccmac.linalg.tolerances import EPS
from ccmac.problem import Problem
from ccmac.runtime.base import Piggyback, Runtime
from ccmac.runtime.space import Space, row_dots
from ccmac.workspace.blocks import block_mean, in_averagings
from ccmac.workspace.coupling import Coupling, right_hand_sides
from ccmac.workspace.curvature import CurvatureTable
from ccmac.workspace.declared import Own, OwnQuadratic, own_parts

TRAVELLING = 2  # vectors for the sketches of later solves that travel with a direction
ENOUGH = 4  # that join a sketch at a time
LOST = 1e-2  # of the share of a sketch, to rounding


class Whole(NamedTuple):
    """[A_1 ... A_n], and the diagonal of all H_i."""

    A: sp.csr_array | sp.csc_array
    H: Array


class DualForm:
    """The parts of the module text for the agents owned here.

    ``declared`` are all agents' :func:`form_rows`, ``own`` the parts of those here where they have
    been looked at. F is strongly convex if ``mu`` and ``c`` are positive.
    """

    def __init__(
        self,
        problem: Problem,
        runtime: Runtime,
        coupling: Coupling,
        table: CurvatureTable,
        declared: Array,
        own: Own | None = None,
    ) -> None:
        self.problem = problem
        self.runtime = runtime
        self.ledger = runtime.ledger
        self.A = coupling.A
        self.table = table
        self.m = problem.m
        self.own_L = table.own_L[list(problem.agents)]  # of the agents here
        self.beta, self.h = math.fsum(table.multiple), math.fsum(declared[:, 1])
        self.c = self.beta**2 / self.h * (1 - 8 * EPS)
        least = table.mu_x - 2 * EPS * table.d * table.L_x
        self.mu = min(float(least[table.d > 0].min(initial=math.inf)), self.h * (1 - 4 * EPS))
        self.rank = int(table.d.sum())  # of S - c I, at most
        self.noise = math.fsum(declared[:, 2])  # of images under S - c I
        self.space = Space(runtime, list(problem.d.values()), 0)
        self._sketches: dict[tuple[int, int], Nystrom] = {}
        self._kept: list[tuple[Array, Array]] = []  # vectors (m x k) and their images
        self._room = 0  # for vectors that join the sketch
        self.recycles = False
        hessians = [part.H for part in self.take(problem, own)]
        plain = all(H.ndim == 1 for H in hessians)
        self._diagonal = np.concatenate([np.zeros(0), *hessians]) if plain else None
        if self.whole is not None:  # sums run over all columns at once
            self.noise *= 1 + self.space.x_size / (self.m + problem.n)

    @cached_property
    def _solves(self) -> list[Solve]:
        """H_i^{-1} of the agents here."""
        hessians = [part.H for part in self.parts]
        return [
            _divided(H) if H.ndim == 1 else factorized(H, np.zeros(H.shape[0])) for H in hessians
        ]

    def take(self, problem: Problem, own: Own | None = None) -> list[OwnQuadratic]:
        """Take over right-hand sides and linear terms of a problem with the same matrices."""
        found = own_parts(problem) if own is None else own
        self.problem, self.b = problem, right_hand_sides(problem).b
        self.parts = [part for part in found if part is not None]
        assert len(self.parts) == len(problem.agents)
        self.g_x = np.concatenate([np.zeros(0), *(part.g_x for part in self.parts)])
        self.g_z = np.stack([part.g_z for part in self.parts])
        return self.parts

    # -- the agents' own work --------------------------------------------------------------------
    def inverse(self, v: Array) -> Array:
        """H_i^{-1} v_i, flat. Cost: 1 argmin."""
        self.ledger.charge(argmins=1)
        if self._diagonal is not None:
            return np.asarray(v / self._diagonal)
        out = np.empty_like(v)
        for k, solve in enumerate(self._solves):
            self.space.x_of(out, k)[...] = solve(self.space.x_of(v, k))
        return out

    def minimisers(self, multiplier: Array) -> Array:
        """x_i at a common multiplier. Cost: 1 argmin, 1 A."""
        return self.inverse(self.g_x - self.A.adjoint_common(multiplier))

    def shared(self, multiplier: Array, slope: Array) -> Array:
        """z at a common multiplier; ``slope`` is the sum of the g_i."""
        return np.asarray((slope - self.beta * multiplier) / self.h)

    def images(self, x: Array) -> Array:
        """A_i x_i, one row an agent. Cost: 1 A."""
        return self.A.forward(x).reshape(-1, self.m)

    # -- together --------------------------------------------------------------------------------
    @cached_property
    def whole(self) -> Whole | None:
        """Where sums over many agents may be multiplied out."""
        if not self.runtime.sums_here or self._diagonal is None or self.A.abreast is None:
            return None
        return Whole(self.A.abreast, self._diagonal)

    @cached_property
    def lengths_of_blocks(self) -> Array:
        """||A_i||_F of the agents here."""
        blocks = [np.zeros(0) if b is None else entries(b) for b in self.A.blocks]
        return np.asarray(np.sqrt([float(np.vdot(v, v)) for v in blocks]))

    def sums(self, x: Array, *rows: Array, minus: Array | None = None) -> list[Array]:
        """sum_i A_i x_i (- b_i), and the sums of further rows: one averaging, 1 A."""
        n = self.problem.n
        if self.whole is None:
            images = self.images(x)
            means = self.runtime.combine([images if minus is None else images - minus, *rows])
            return [mean[0] * n for mean in means]
        self.ledger.charge_cost(self.A.cost)
        total = self.whole.A @ x
        totals = [total if minus is None else total - minus.sum(axis=0)]
        totals += [np.sum(row, axis=0) for row in rows]
        self.runtime.summed(sum(map(len, totals)))
        return totals

    def apply(self, multiplier: Array) -> tuple[Array, Array]:
        """(S multiplier, the change of x that goes with it): one averaging, 1 argmin, 2 A."""
        change = self.inverse(self.A.adjoint_common(multiplier))
        [image] = self.sums(change)
        return np.asarray(image + self.c * multiplier), change

    def residual(self, x: Array) -> tuple[Array, Array, float]:
        """(sum A_i x_i - b_i, sum g_i, sum ||g_i||): one averaging, 1 A."""
        coupled, slope, sizes = self.sums(x, self.g_z, self._lengths(), minus=self.b)
        return coupled, slope, float(sizes[0])

    def slope(self) -> Piggyback:
        """Sum g_i, and last the sum of ||g_i||: travels in the next message."""
        return self.runtime.piggyback(np.hstack([self.g_z, self._lengths()]))

    def _lengths(self) -> Array:
        return np.sqrt(row_dots(self.g_z, self.g_z))[:, None]

    @property
    def cost(self) -> Cost:
        """Of :meth:`apply`."""
        return Cost(argmins=1) + 2 * self.A.cost + self.runtime.average_cost(self.m)

    def sketch(self, size: int, seed: int, most: int = 0) -> Nystrom:
        """Of S - c I, from ``size`` vectors in one averaging (of very long ones in several), and
        from those that :meth:`explored` met in earlier solves, where these come again: in all not
        more than ``most``, nor than the rank.

        The first time size argmins and 2 size A; then nothing.
        """
        found = self._sketches.get((size, seed))
        if found is None:
            found = Nystrom.nothing(self.m, self.noise + 8 * EPS * self.c)  # of S p - c p
            if size:
                W = random_signs(self.m, size, seed)
                found = found.grown(W, self._images_of(W))
        full = False
        if self._held() >= ENOUGH:
            vectors, images = (np.hstack(side) for side in zip(*self._kept, strict=True))
            more = found.grown(vectors, images)
            # Each growth adds rounding to what is known of the sketch: not more than it can bear.
            full = more.e > LOST * math.sqrt(self.c)
            found = found if full else more
            self._kept.clear()
        self._sketches = {(size, seed): found}
        self._room = 0 if full or not self.recycles else min(most, self.rank) - found.B.shape[1]
        return found

    def explored(self, p: Array) -> tuple[Array, Array]:
        """:meth:`apply`; where solves come again, p and a few random vectors that travel with it
        are kept for their sketches: in the same rounds, 1 + TRAVELLING more argmins and twice as
        many A.
        """
        room = self._room - self._held()
        if room <= 0:
            return self.apply(p)
        change = self.inverse(self.A.adjoint_common(p))
        [(_, seed)], drawn = self._sketches, min(TRAVELLING, room - 1)
        vectors = np.empty((self.m, 1 + drawn))
        size = float(np.linalg.norm(p))
        vectors[:, 0] = p / size
        vectors[:, 1:] = random_signs(self.m, drawn, seed + 1 + room)
        images = self._block(vectors)
        self._kept.append((vectors, images))
        return np.asarray(size * images[:, 0] + self.c * p), change

    def _held(self) -> int:
        """Vectors kept for the next sketch."""
        return sum(vectors.shape[1] for vectors, _ in self._kept)

    def _images_of(self, W: Array) -> Array:
        """(S - c I) W, in as many averagings as its length takes."""
        sizes = in_averagings(self.runtime, self.m, W.shape[1])
        if len(sizes) == 1:
            return self._block(W)
        return np.hstack([self._block(cut) for cut in np.split(W, np.cumsum(sizes)[:-1], axis=1)])

    def _block(self, W: Array) -> Array:
        """(S - c I) W."""
        size = W.shape[1]
        self.ledger.charge(argmins=size)
        self.ledger.charge_cost(2 * size * self.A.cost)
        if self.whole is not None:
            self.runtime.summed(W.size)
            A, H = self.whole
            return np.asarray(A @ ((A.T @ W).T / H).T)
        images, _ = block_mean(self.runtime, self._own_images, W)
        images *= self.problem.n
        return images

    def _own_images(self, W: Array) -> Iterator[Array]:
        """A_i H_i^{-1} A_i'W, agent by agent."""
        for block, solve in zip(self.A.blocks, self._solves, strict=True):
            yield np.zeros(W.shape) if block is None else block @ solve(block.T @ W)


def _divided(diagonal: Array) -> Solve:
    """v / diagonal, for one vector or several columns."""
    return lambda v: np.asarray((v.T / diagonal).T)
