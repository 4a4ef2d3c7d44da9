"""Canonical channels of a CC-MAC problem, matrix-free (Equation eq:channels).

    K_1 = [E_m A  E_m B]   v_1 = (E_m b, c)      K_2 = [0  D        ]   v_2 = (e, 0)
          [C      0    ]                               [0  W (x) I_q]

on u = (x_1, ..., x_n, z_1, ..., z_n), with E_m r = n^{-1/2} sum_i r_i. A tuple (x, z) is feasible
iff its copy vector solves K_1 u = v_1, K_2 u = v_2 (Theorem thm:equivalence).

E_m is the theorem's exact oracle: these channels live in one process and charge products and
modelled rounds only. What is executed on a network lies in ``ccmac.realizations``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.ledger import Cost, Ledger
from ccmac.linalg.families import LocalFamily
from ccmac.linalg.operator import to_dense
from ccmac.network import Network
from ccmac.problem import Problem
from ccmac.runtime.inprocess import InProcess
from ccmac.runtime.space import Space
from ccmac.workspace.coupling import block_families, right_hand_sides


@dataclass(frozen=True)
class CoupledLocalRows:
    """K_1. One action: 1 A, 1 B, 1 C."""

    space: Space
    A: LocalFamily
    B: LocalFamily
    C: LocalFamily

    @property
    def m(self) -> int:
        """Coupled rows."""
        return self.A.rows[0]

    @property
    def shape(self) -> tuple[int, int]:
        """(m + rows of C, execution variables)."""
        return self.m + self.C.shape[0], self.space.size

    @property
    def cost(self) -> Cost:
        """Of those present; the sum over agents is the theorem's oracle."""
        return self.A.cost + self.B.cost + self.C.cost

    def forward(self, u: Array) -> Array:
        """(E_m (A x + B z), C x)."""
        x = self.space.x(u)
        z = self.space.z(u)
        coupled = (self.A.forward(x) + self.B.forward(z)).reshape(self.space.count, self.m)
        total = coupled.sum(axis=0) / np.sqrt(self.space.count)
        return np.concatenate([total, self.C.forward(x)])

    def adjoint(self, v: Array) -> Array:
        """(A' E_m' r + C' s, B' E_m' r) for v = (r, s)."""
        spread = np.tile(v[: self.m] / np.sqrt(self.space.count), self.space.count)
        x = self.A.adjoint(spread) + self.C.adjoint(v[self.m :])
        return np.concatenate([x, self.B.adjoint(spread)])


@dataclass(frozen=True)
class SharedConsensusRows:
    """K_2. One action: 1 D and, where there is more than one agent, 1 modelled round."""

    space: Space
    D: LocalFamily
    W: Any
    ledger: Ledger

    @property
    def shape(self) -> tuple[int, int]:
        """(rows of D + n q, execution variables); one agent has no consensus rows."""
        return self.D.shape[0] + self._links, self.space.size

    @property
    def cost(self) -> Cost:
        """A product with W is modelled, not executed."""
        return self.D.cost + Cost(modelled_rounds=1) if self._links else self.D.cost

    @property
    def _links(self) -> int:
        return self.space.count * self.space.q if self.space.count > 1 else 0

    def forward(self, u: Array) -> Array:
        """(D z, (W (x) I) z)."""
        z = self.space.z(u)
        return np.concatenate([self.D.forward(z), self._mixed(z)])

    def adjoint(self, v: Array) -> Array:
        """(0, D' r + (W (x) I) s) for v = (r, s): W is symmetric."""
        split = self.D.shape[0]
        z = self.D.adjoint(v[:split])
        if self._links:
            z = z + self._mixed(v[split:].reshape(self.space.count, self.space.q))
        return np.concatenate([np.zeros(self.space.x_size), z])

    def _mixed(self, z: Array) -> Array:
        if not self._links:
            return np.zeros(0)
        self.ledger.charge(modelled_rounds=1)
        return np.asarray(self.W @ z).ravel()


@dataclass(frozen=True)
class Channels:
    """K_1 u = v_1 and K_2 u = v_2 on ``space``."""

    space: Space
    K_1: CoupledLocalRows
    v_1: Array
    K_2: SharedConsensusRows
    v_2: Array

    def embed(self, x: Sequence[Array], z: Array) -> Array:
        """u with every copy z_i equal to z."""
        return np.concatenate([*x, np.tile(z, self.space.count)])

    def recover(self, u: Array) -> tuple[list[Array], Array]:
        """(x_1, ..., x_n) and the mean of the copies: the inverse of :meth:`embed`."""
        x = [self.space.x_of(u, k).copy() for k in range(self.space.count)]
        return x, np.asarray(self.space.z(u).mean(axis=0))

    def to_dense(self) -> tuple[Array, Array]:
        """(K_1, K_2) as matrices; for small problems. Charges one product per column."""
        return to_dense(self.K_1), to_dense(self.K_2)


def canonical_channels(
    problem: Problem, network: Network, *, ledger: Ledger | None = None
) -> Channels:
    """The channels of Theorem thm:equivalence; all agents in one process."""
    if not problem.complete:
        raise InputError(
            f"problem: holds {len(problem.agents)} of {problem.n} agents; "
            "the canonical channels need all of them in one process"
        )
    if network.n != problem.n:
        raise InputError(
            f"network: has {network.n} agents but the problem has {problem.n}; they must be equal"
        )
    runtime = InProcess(network, ledger=ledger)
    space = Space(runtime, list(problem.d.values()), problem.q)
    leaf = block_families(problem, runtime.ledger)
    sides = right_hand_sides(problem)
    K_1 = CoupledLocalRows(space, leaf["A"], leaf["B"], leaf["C"])
    K_2 = SharedConsensusRows(space, leaf["D"], network.weights, runtime.ledger)
    v_1 = np.concatenate([sides.b.sum(axis=0) / np.sqrt(problem.n), sides.c])
    v_2 = np.concatenate([sides.e, np.zeros(K_2.shape[0] - len(sides.e))])
    return Channels(space, K_1, v_1, K_2, v_2)
