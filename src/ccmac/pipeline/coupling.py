"""The coupled equation seen by every agent: means over agents of A_i x_i + B_i z_i.

Execution variables are scaled per block, x = t x~, z = s z~, which every agent does for itself; the
coupled row is then H u = t A x~ + s B z~. In the fused simulation a mean over agents is one product
with the stacked blocks; the charge is that of the distributed execution.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.inputs import is_sparse
from ccmac.ledger import Cost
from ccmac.operators.leaves import LocalFamily, identity_multiple
from ccmac.problem import Problem
from ccmac.runtime.base import Runtime

Array = NDArray[np.float64]


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
        self._fused = _Stacked(problem, self.A, self.B) if runtime.fused else None

    def rescaled(self, t: float, s: float) -> Coupling:
        """The same blocks under another scaling (nothing is copied)."""
        other = object.__new__(Coupling)
        other.__dict__.update(self.__dict__)
        other.t, other.s = t, s
        return other

    # -- means over all agents ----------------------------------------------------------------
    def contributions(
        self, x: Array | None, z: Array | None, *, with_z: bool = False
    ) -> tuple[Array, Array]:
        """What the agents put into an averaging: (H u, z); ``None`` leaves a block out.

        :meth:`Runtime.combine` turns contributions into replicated means. Without ``with_z`` the
        second has no columns. Cost: one product with each family used.
        """
        if self._fused is not None:
            return self._fused_contributions(x, z, with_z=with_z)
        count = len(self.problem.agents)
        coupled = np.zeros((count, self.width))
        if x is not None and not self.A.empty:
            coupled += self.t * self.A.forward(x).reshape(count, self.m)
        if z is not None and not self.B.empty:
            coupled += self.s * self.B.forward(z).reshape(count, self.m)
        copies = z if with_z and z is not None else np.zeros((count, 0))
        return coupled, copies

    def _fused_contributions(
        self, x: Array | None, z: Array | None, *, with_z: bool
    ) -> tuple[Array, Array]:
        assert self._fused is not None
        ledger, n = self.runtime.ledger, self.problem.n
        coupled = np.zeros((1, self.width))
        mean_z = np.zeros((1, self.q if with_z else 0))
        if x is not None and not self.A.empty:
            ledger.charge(A=1)
            coupled[0] += (self.t / n) * self._fused.sum_A(x)
        if z is not None:
            weights = self._fused.multiples
            if weights is not None and with_z:
                ledger.charge(B=1)
                both = np.stack([weights * (self.s / n), np.full(n, 1.0 / n)]) @ z
                coupled[0] += both[0]
                mean_z[0] = both[1]
            else:
                if not self.B.empty:
                    ledger.charge(B=1)
                    coupled[0] += (self.s / n) * self._fused.sum_B(z)
                if with_z:
                    mean_z[0] = np.full(n, 1.0 / n) @ z
        return coupled, mean_z

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
        """(t A_i' price, s B_i' price) for a replicated price; flat x part, row-per-agent z part.

        ``out`` may take the z part; without ``z`` it is left out (no columns). Cost: one product
        with each family; no communication.
        """
        count = len(self.problem.agents)
        if self._fused is not None:
            self.runtime.ledger.charge_cost(self.product_cost(z=z))
            gx = self._fused.adjoint_A(self.t * price[0])
            return gx, self._fused.adjoint_B(self.s * price[0], out) if z else np.zeros((count, 0))
        rows = np.broadcast_to(price, (count, self.m))
        if not z:
            return self.A.adjoint(self.t * rows), np.zeros((count, 0))
        gz = self.B.adjoint(self.s * rows).reshape(count, self.q)
        if out is not None:
            out[...] = gz
            gz = out
        return self.A.adjoint(self.t * rows), gz


def right_hand_sides(problem: Problem) -> Array:
    """The b_i of the agents held here, one row each (zeros where absent; no copies if all are)."""
    blocks = problem.blocks("b")
    if all(b is None for b in blocks):
        return np.broadcast_to(0.0, (len(blocks), problem.m))
    return np.stack([np.zeros(problem.m) if b is None else b for b in blocks])


class _Stacked:
    """The blocks side by side, so that a sum over agents is one product."""

    def __init__(self, problem: Problem, A: LocalFamily, B: LocalFamily) -> None:
        self.n, self.m, self.q = problem.n, problem.m, problem.q
        self.A, self.B = A, B
        self.d = list(problem.d.values())
        self.A_row = None if A.empty else _side_by_side(problem.blocks("A"), self.m, self.d)
        multiples = [0.0 if b is None else identity_multiple(b) for b in problem.blocks("B")]
        self.multiples: Array | None = None
        self.B_row: Any = None
        if not B.empty:
            if all(c is not None for c in multiples):
                self.multiples = np.array(multiples, dtype=np.float64)
            else:
                self.B_row = _side_by_side(problem.blocks("B"), self.m, [self.q] * self.n)

    def sum_A(self, x: Array) -> Array:
        if self.A_row is not None:
            return np.asarray(self.A_row @ x)
        with self.A.ledger.observing():
            return np.asarray(self.A.forward(x).reshape(self.n, self.m).sum(axis=0))

    def sum_B(self, z: Array) -> Array:
        if self.multiples is not None:
            return np.asarray(self.multiples @ z)
        if self.B_row is not None:
            return np.asarray(self.B_row @ z.ravel())
        with self.B.ledger.observing():
            return np.asarray(self.B.forward(z).reshape(self.n, self.m).sum(axis=0))

    def adjoint_A(self, price: Array) -> Array:
        if self.A.empty:
            return np.zeros(sum(self.d))
        if self.A_row is not None:
            return np.asarray(self.A_row.T @ price)
        with self.A.ledger.observing():
            return self.A.adjoint(np.broadcast_to(price, (self.n, self.m)))

    def adjoint_B(self, price: Array, out: Array | None = None) -> Array:
        out = np.empty((self.n, self.q)) if out is None else out
        if self.B.empty:
            out[...] = 0.0
        elif self.multiples is not None:
            np.multiply.outer(self.multiples, price, out=out)
        elif self.B_row is not None:
            out[...] = (self.B_row.T @ price).reshape(self.n, self.q)
        else:
            with self.B.ledger.observing():
                rows = np.broadcast_to(price, (self.n, self.m))
                out[...] = self.B.adjoint(rows).reshape(self.n, self.q)
        return out


def _side_by_side(blocks: list[Any], rows: int, columns: list[int]) -> Any:
    """[M_1 ... M_n] as one CSR or dense matrix; None when some block is an operator."""
    if all(b is None or is_sparse(b) for b in blocks):
        filled = [
            sp.csr_array((rows, c)) if b is None else b
            for b, c in zip(blocks, columns, strict=True)
        ]
        return sp.csr_array(sp.hstack(filled, format="csr"))
    if all(b is None or is_sparse(b) or isinstance(b, np.ndarray) for b in blocks):
        dense = [
            np.zeros((rows, c)) if b is None else (b.toarray() if is_sparse(b) else b)
            for b, c in zip(blocks, columns, strict=True)
        ]
        return np.hstack(dense)
    return None
