"""The agents' own equations C_i x_i = c_i, handled without communication.

``access="factor"``: an orthonormal basis of Range(C_i') from one local factorization.
``access="matvec"``: only products with C_i, through a Chebyshev polynomial on the certified
interval [l_C, u_C] accurate to rounding. Either way the agent holds P_{C_i}, the projector onto
Range(C_i'), and the least-norm point C_i^+ c_i; :class:`Kernel` is what is left free.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np

from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.blocks import dense
from ccmac.linalg.chebyshev import semi_iteration, smallest_degree
from ccmac.linalg.families import LocalFamily
from ccmac.linalg.ranks import RowSpace, row_space
from ccmac.linalg.tolerances import EPS
from ccmac.problem import Problem
from ccmac.runtime.base import Runtime


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
        right = problem.sides("c")
        self.right = np.concatenate([*right, np.zeros(0)])
        self.spaces: list[RowSpace] = []
        self.bases: list[Array] = []
        if self.empty:
            self.point = np.zeros(sum(d))
            self._projector: LocalFamily | None = None
            return
        if access == "matvec" and interval is not None:
            self.interval = interval
            self._steps = smallest_degree(*interval, 1e-14)  # as good as rounding
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
        right = problem.sides("c")
        other.right = np.concatenate([*right, np.zeros(0)])
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
        multipliers = []
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
                multipliers.append(np.zeros(self._family.rows[k]))
            else:
                multipliers.append(self.spaces[k].multipliers(-(self.bases[k] @ piece)))
        return multipliers


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
