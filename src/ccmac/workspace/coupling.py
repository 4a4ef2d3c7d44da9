"""The coupled equation seen by every agent: means over agents of A_i x_i + B_i z_i.

Execution variables are scaled per block, x = t x~, z = s z~, which every agent does for itself; the
coupled row is then H u = t A x~ + s B z~.
"""

from __future__ import annotations

import copy

import numpy as np

from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.families import LocalFamily
from ccmac.problem import Problem
from ccmac.runtime.base import Runtime


class Coupling:
    """H = [t A, s B] of the agents owned here, with its mean over all agents."""

    def __init__(self, problem: Problem, runtime: Runtime, t: float = 1.0, s: float = 1.0) -> None:
        self.problem, self.runtime = problem, runtime
        self.t, self.s = t, s
        self.m, self.q = problem.m, problem.q
        count, d = len(problem.agents), list(problem.d.values())
        ledger = runtime.ledger
        rows, q, present = [self.m] * count, [self.q] * count, problem.present
        self.A = LocalFamily("A", problem.blocks("A"), rows, d, ledger, present="A" in present)
        self.B = LocalFamily("B", problem.blocks("B"), rows, q, ledger, present="B" in present)
        self.empty = self.A.empty and self.B.empty

    def rescaled(self, t: float, s: float) -> Coupling:
        """The same blocks under another scaling (nothing is copied)."""
        other = copy.copy(self)
        other.t, other.s = t, s
        return other

    # -- means over all agents ----------------------------------------------------------------
    def contributions(
        self, x: Array | None, z: Array | None, *, with_z: bool = False
    ) -> tuple[Array, Array]:
        """What the agents put into an averaging: (H u, z); ``None`` leaves a block out.

        :meth:`Runtime.combine` turns them into common means. Without ``with_z`` the second has no
        columns. Cost: one product with each family used.
        """
        count = len(self.problem.agents)
        if x is None or self.A.empty:
            coupled = np.zeros((count, self.width))
        else:
            coupled = self.A.forward(x).reshape(count, self.m)
            if self.t != 1.0:
                coupled *= self.t
        if z is not None and not self.B.empty:
            self.B.add_forward(z, self.s, coupled)
        return coupled, z if with_z and z is not None else np.zeros((count, 0))

    def sum_forward(self, x: Array, z: Array | None) -> Array:
        """sum_i H_i u_i at once: for a simulation that no distributed run has to match in bits."""
        total = self.t * self.A.forward_sum(x)
        return total if z is None else total + self.s * self.B.forward_sum(z)

    @property
    def width(self) -> int:
        """Floats of the coupled row in a message: m, or nothing when A = B = 0."""
        return 0 if self.empty else self.m

    def product_cost(self, *, x: bool = True, z: bool = True) -> Cost:
        """Static cost of the products with the families asked for, forward or adjoint."""
        return (self.A.cost if x else Cost()) + (self.B.cost if z else Cost())

    # -- local adjoints -------------------------------------------------------------------------
    def adjoint(
        self, price: Array, out: Array | None = None, *, z: bool = True
    ) -> tuple[Array, Array]:
        """(t A_i' price, s B_i' price) for a common price; flat x part, row-per-agent z part.

        ``out`` may take the z part; without ``z`` it is left out (no columns). Cost: one product
        with each family; no communication.
        """
        count = len(self.problem.agents)
        gx = self.A.adjoint_common(self.t * price[0])
        if not z:
            return gx, np.zeros((count, 0))
        gz = np.empty((count, self.q)) if out is None else out
        self.B.adjoint_common(self.s * price[0], gz.reshape(-1))
        return gx, gz
