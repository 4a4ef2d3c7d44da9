"""The agents' equations on the shared variable, D_i z = e_i, as one channel with consensus.

Range([D; W (x) I]') is the disagreement space plus 1 (x) Range(S_D), S_D = (1/n) sum D_i' D_i. The
normalized channel is therefore (I - Pi) on disagreement and q(S_D) S_D on the mean, one averaging
per product with S_D. With ``access="factor"`` every agent first replaces D_i by orthonormal rows,
which changes neither the row space nor the solutions and leaves spec(S_D) in [0, 1].
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.blocks import dense
from ccmac.linalg.chebyshev import Chain, semi_iteration_chain, smallest_degree
from ccmac.linalg.families import LocalFamily
from ccmac.linalg.lanczos import Krylov
from ccmac.linalg.ranks import RowSpace, row_space
from ccmac.linalg.tolerances import KERNEL
from ccmac.problem import Problem
from ccmac.runtime.base import Piggyback, Runtime


class SharedEquations:
    """D_i (possibly with orthonormal rows) and e_i of the agents owned here."""

    def __init__(self, problem: Problem, runtime: Runtime, access: str) -> None:
        self.runtime = runtime
        self.problem = problem
        self.q = problem.q
        blocks = problem.blocks("D")
        count = len(problem.agents)
        rows = list(problem.r.values())
        self.empty = "D" not in problem.present
        right = problem.sides("e")
        self.spaces: list[RowSpace] = []
        if access == "factor" and not self.empty:
            blocks, right, rows = self._orthonormal(blocks, right)
        self.family = LocalFamily(
            "D", blocks, rows, [self.q] * count, runtime.ledger, present=not self.empty
        )
        self.right = np.concatenate(right) if right else np.zeros(0)
        self.interval = (1.0, 1.0)
        self.steps = 1
        self._target: Array | Piggyback = np.zeros((1, self.q))
        self.scale = 1.0
        # Orthonormal eigenvectors spanning Range(S_D), known to all; None: semi-iterate.
        self.span: Array | None = None
        self._values = np.zeros(0)

    def _orthonormal(
        self, blocks: list[Any], right: list[Array]
    ) -> tuple[list[Any], list[Array], list[int]]:
        new_blocks: list[Any] = []
        new_right: list[Array] = []
        for block, e in zip(blocks, right, strict=True):
            matrix = np.zeros((0, self.q)) if block is None else dense(block)
            space = row_space(matrix)
            self.spaces.append(space)
            new_blocks.append(np.ascontiguousarray(space.basis.T))
            new_right.append(space.coordinates(e))
        return new_blocks, new_right, [len(v) for v in new_right]

    # -- S_D -------------------------------------------------------------------------------------
    def gram_contribution(self, mean: Array) -> Array:
        """D_i' D_i mean: its average is S_D mean. Cost: 2 D."""
        count = len(self.problem.agents)
        rows = np.broadcast_to(mean, (count, self.q))
        return self.family.adjoint(self.family.forward(rows)).reshape(count, self.q)

    @property
    def target(self) -> Array:
        """mean_i D_i'e_i."""
        if isinstance(self._target, Piggyback):
            self._target = self._target.mean
        return self._target

    def _rows(self) -> Array:
        return self.family.adjoint(self.right).reshape(len(self.problem.agents), self.q)

    def prepare_target(self) -> None:
        """Average D'e once (setup)."""
        self._target = self.runtime.average(self._rows())

    def again(self, problem: Problem) -> SharedEquations:
        """The same rows with other right-hand sides; not yet sent to the others."""
        other = copy.copy(self)
        other.problem = problem
        right = problem.sides("e")
        if self.spaces:
            right = [s.coordinates(e) for s, e in zip(self.spaces, right, strict=True)]
        other.right = np.concatenate(right) if right else np.zeros(0)
        return other

    def announce(self) -> None:
        """Send D'e along with the next message."""
        self._target = self.runtime.piggyback(self._rows())

    def copied(self) -> SharedEquations:
        """The same equations, whose interval or span may be fixed apart (nothing is copied)."""
        return copy.copy(self)

    def at_scale(self, s: float) -> SharedEquations:
        """The same equations in z = s z~."""
        other = copy.copy(self)
        other.scale = s
        return other

    def homogeneous(self) -> SharedEquations:
        """The same equations with zero right-hand sides."""
        other = copy.copy(self)
        other._target = np.zeros((1, self.q))
        return other

    def fix(self, interval: tuple[float, float], error: float) -> None:
        """The interval of S_D and the least degree whose error is at most ``error``."""
        self.interval, self.steps = interval, smallest_degree(*interval, error)

    def fix_span(self, krylov: Krylov) -> None:
        """Range(S_D) is spanned completely: the channel becomes an exact projection of the mean.

        No products and no rounds remain, only work on what every agent holds.
        """
        values, vectors = np.linalg.eigh(krylov.tridiagonal())
        keep = values > KERNEL * values[-1]
        rotate = np.ascontiguousarray(vectors[:, keep].T)
        self.span = rotate @ krylov.basis
        self._values = values[keep]
        self.interval = (1.0, 1.0)
        self.steps = 0

    def chain(self, mean: Array) -> Chain:
        """q(S_D)(S_D mean - target). Cost: ``steps`` averagings of q floats, 2 D each."""
        if self.span is not None:
            inside = (self.span @ mean[0]) @ self.span
            point = ((self.span @ self.target[0]) / self._values) @ self.span
            return np.asarray(inside - point / self.scale)[None]
        image = yield self.gram_contribution(mean)
        right = image - self.target / self.scale
        result = yield from semi_iteration_chain(
            self.gram_contribution, right, *self.interval, self.steps
        )
        return result

    @property
    def product_cost(self) -> Cost:
        """Products of one :meth:`chain`."""
        return Cost() if self.empty else Cost(D=2 * self.steps)

    def multipliers(self, direction: Array) -> list[Array]:
        """delta_i = D_i direction in the user's rows: sum_i D_i' delta_i = n S_D direction."""
        images = self.family.forward(np.broadcast_to(direction, (len(self.problem.agents), self.q)))
        return self.in_user_rows(images)

    def in_user_rows(self, flat: Array) -> list[Array]:
        """Multipliers of the (possibly orthonormal) rows, as multipliers of the user's D_i."""
        pieces = np.split(flat, np.cumsum(self.family.rows)[:-1])
        if not self.spaces:
            return pieces
        return [space.multipliers(v) for space, v in zip(self.spaces, pieces, strict=True)]
