"""The canonical channels in one process, where a sum over agents is one product.

    K_1 = [E_m A  E_m B]      K_2 = [0  D               ]
          [C      0    ]            [0  g (I - Pi) (x) I]

K_2 uses the projector I - Pi in the place of W: the row space, hence the geometry, is the same
(Proposition lift-invariance), and its cost in rounds is modelled anyway.
"""

from __future__ import annotations

import numpy as np
from ccmac.inputs import Array

from ccmac.ledger import Cost
from ccmac.linalg.families import LocalFamily, identity_multiple
from ccmac.problem import Problem
from ccmac.realizations.normalized import Channel, NormalizedChannel
from ccmac.runtime.space import Space
from ccmac.workspace.blocks import right_hand_sides
from ccmac.workspace.coupling import Coupling



class CoupledLocal(Channel):
    """K_1 and v_1 = (E_m b, c); without ``coupled`` or ``local`` those rows are dropped."""

    def __init__(
        self, problem: Problem, space: Space, *, coupled: bool = True, local: bool = True
    ) -> None:
        self.space, self.runtime = space, space.runtime
        self.coupling = Coupling(problem, self.runtime)
        self.m = problem.m if coupled else 0
        sizes = (list(problem.p.values()), list(problem.d.values()))
        self.C = LocalFamily("C", problem.blocks("C"), *sizes, self.runtime.ledger)
        self.local = local and not self.C.empty
        self.root = float(np.sqrt(problem.n))
        sides = right_hand_sides(problem)
        right = [sides.b.sum(axis=0) / self.root] if coupled else []
        self.right = np.concatenate([*right, *([sides.c] if self.local else []), np.zeros(0)])
        multiples = [0.0 if b is None else identity_multiple(b) for b in problem.blocks("B")]
        self._weight: float | None = None
        if coupled and not self.local and all(c is not None for c in multiples):
            self._weight = sum(c * c for c in multiples if c is not None) / problem.n

    @property
    def cost(self) -> Cost:
        """1 A, 1 B, 1 C (of those present)."""
        products = self.coupling.product_cost() if self.m else Cost()
        return products + (self.C.cost if self.local else Cost())

    def forward(self, w: Array) -> Array:
        """(E_m (A x + B z), C x)."""
        x = self.space.x(w)
        parts = []
        if self.m:
            parts.append(self.coupling.sum_forward(x, self.space.z(w)) / self.root)
        if self.local:
            parts.append(self.C.forward(x))
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def adjoint(self, rows: Array) -> Array:
        """(A' E_m' r + C' s, B' E_m' r)."""
        out = self.space.zeros()
        if self.m:
            gx, gz = self.coupling.adjoint(rows[None, : self.m] / self.root)
            self.space.x(out)[...], self.space.z(out)[...] = gx, gz
        if self.local:
            self.space.x(out)[...] += self.C.adjoint(rows[self.m :])
        return out

    def gram(self, rows: Array) -> Array:
        """K_1 K_1' rows; B_i = c_i I needs no pass over the copies (same charge)."""
        if self._weight is None:
            return super().gram(rows)
        self.runtime.ledger.charge_cost(2 * self.coupling.B.cost)
        gx, _ = self.coupling.adjoint(rows[None] / self.root, z=False)
        image = self.coupling.sum_forward(gx, None) / self.root
        image += self._weight * rows
        return image

    def price(self, rows: Array) -> Array | None:
        """n^{-1/2} times the coupled rows, the same for every agent."""
        if not self.m:
            return None
        return rows[None, : self.m] / self.root


class SharedConsensus(Channel):
    """K_2 and v_2 = (e, 0): D rows and, for n > 1, g (I - Pi)."""

    def __init__(self, problem: Problem, space: Space, weight: float) -> None:
        self.space, self.n, self.q = space, problem.n, problem.q
        self.weight = weight if problem.n > 1 else 0.0
        sizes = (list(problem.r.values()), [problem.q] * problem.n)
        self.D = LocalFamily("D", problem.blocks("D"), *sizes, space.runtime.ledger)
        extra = np.zeros(problem.n * problem.q if self.weight else 0)
        self.right = np.concatenate([right_hand_sides(problem).e, extra])
        self.rows_D = len(self.right) - len(extra)

    @property
    def cost(self) -> Cost:
        """1 D; the consensus rows are the oracle's."""
        return self.D.cost

    def forward(self, w: Array) -> Array:
        """(D z, g (I - Pi) z)."""
        z = self.space.z(w)
        rows = np.empty(len(self.right))
        rows[: self.rows_D] = self.D.forward(z)
        if self.weight:
            rows[self.rows_D :] = (self.weight * (z - z.mean(axis=0))).ravel()
        return rows

    def adjoint(self, rows: Array) -> Array:
        """D' r + g (I - Pi) s."""
        out = self.space.zeros()
        z = self.space.z(out)
        z[...] = self.D.adjoint(rows[: self.rows_D]).reshape(self.n, self.q)
        if self.weight:
            s = rows[self.rows_D :].reshape(self.n, self.q)
            z += self.weight * (s - s.mean(axis=0))
        return out


class Consensus(NormalizedChannel):
    """K_2 without D: already a projector, I - Pi on the copies; no products."""

    spread = (1.0, 1.0)
    cost = Cost()

    def __init__(self, space: Space) -> None:
        self.space = space
        self.mean = np.full(space.count, 1.0 / space.count)

    def residual(self, w: Array) -> tuple[Array, Array | None]:
        """(0, z - mean z)."""
        out, z = np.empty_like(w), self.space.z(w)
        self.space.x(out)[...] = 0.0
        np.subtract(z, self.mean @ z, out=self.space.z(out))
        return out, None

    def homogeneous(self) -> Consensus:
        """It has no right-hand side."""
        return self
