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

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.ledger import Cost, Ledger
from ccmac.linalg.operator import to_dense
from ccmac.network import Network
from ccmac.paper.realizations.channels import (
    CoupledLocal,
    NormalizedLocal,
    SharedConsensus,
    SummedCoupling,
)
from ccmac.problem import Problem
from ccmac.runtime.base import Runtime
from ccmac.runtime.inprocess import InProcess
from ccmac.runtime.space import Space
from ccmac.workspace import Workspace
from ccmac.workspace.equations import block_families, right_hand_sides


class ModelledGraph:
    """W at once: 1 modelled round, none executed."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def __call__(self, block: Array) -> Array:
        """(W (x) I) block."""
        self.runtime.ledger.charge(modelled_rounds=1)
        return np.asarray(self.runtime.network.weights @ block)

    def cost(self, width: int) -> Cost:
        return Cost(modelled_rounds=1)


@dataclass(frozen=True)
class Channels:
    """K_1 u = v_1 and K_2 u = v_2 on ``space``."""

    space: Space
    K_1: CoupledLocal
    v_1: Array
    K_2: SharedConsensus
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
    work = Workspace(problem, InProcess(network, ledger=ledger))
    leaf = block_families(problem, work.ledger)
    sides = right_hand_sides(problem)
    graph = ModelledGraph(work.runtime) if problem.n > 1 else None
    K_1 = CoupledLocal(work.space, SummedCoupling(work), NormalizedLocal(leaf["C"]), 1.0, sides.c)
    K_2 = SharedConsensus(work.space, leaf["D"], sides.e, graph, 1.0)
    return Channels(work.space, K_1, K_1.right, K_2, K_2.right)
