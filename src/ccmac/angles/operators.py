"""Canonical channels of a CC-MAC problem, matrix-free, and the graph-local lift beside them.

    K_1 = [E_m A  E_m B]   v_1 = (E_m b, c)      K_2 = [0  D        ]   v_2 = (e, 0)
          [C      0    ]                               [0  W (x) I_q]

on u = (x_1, ..., x_n, z_1, ..., z_n), with E_m r = n^{-1/2} sum_i r_i. A tuple (x, z) is feasible
iff its copy vector solves K_1 u = v_1, K_2 u = v_2 (Theorem equivalence). The lift

    A x + B z + alpha (W (x) I_m) y = b,   C x = c,   D z = e,   gamma (W (x) I_q) z = 0

has the same feasible (x, z) for every alpha, gamma > 0 (eq. Ksplit) and needs no global sum.

E_m is the theorem's exact oracle: these channels live in one process and charge products and
modelled rounds only. The lift charges the rounds it executes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.ledger import Cost, Ledger
from ccmac.linalg.algebra import add, compose, scale, select, stack
from ccmac.linalg.families import LocalFamily
from ccmac.linalg.gossip import Gossip
from ccmac.linalg.operator import LinearOperator, to_dense
from ccmac.network import Network
from ccmac.problem import Problem
from ccmac.runtime.base import Runtime
from ccmac.runtime.inprocess import InProcess
from ccmac.runtime.space import Space

Array = NDArray[np.float64]


class GlobalSum:
    """E_m = n^{-1/2} (1' (x) I_m): an exact sum over the agents. Free in the theorem's ledger."""

    def __init__(self, n: int, m: int) -> None:
        self.n = n
        self.m = m

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n m)."""
        return self.m, self.n * self.m

    @property
    def cost(self) -> Cost:
        """Nothing: an oracle that is modelled, not executed."""
        return Cost()

    def forward(self, r: Array) -> Array:
        """n^{-1/2} sum_i r_i."""
        return np.asarray(r.reshape(self.n, self.m).sum(axis=0) / np.sqrt(self.n))

    def adjoint(self, v: Array) -> Array:
        """n^{-1/2} v for every agent."""
        return np.tile(v / np.sqrt(self.n), self.n)


@dataclass(frozen=True)
class Channels:
    """K_1 u = v_1 and K_2 u = v_2 on ``space``."""

    space: Space
    K_1: LinearOperator
    v_1: Array
    K_2: LinearOperator
    v_2: Array

    def embed(self, x: Sequence[Array], z: Array) -> Array:
        """u with every copy z_i equal to z."""
        return np.concatenate([*x, np.tile(z, self.space.count)])

    def recover(self, u: Array) -> tuple[list[Array], Array]:
        """(x_1, ..., x_n) and the mean of the copies: the inverse of :meth:`embed`."""
        x = [self.space.x_of(u, k).copy() for k in range(self.space.count)]
        return x, np.asarray(self.space.z(u).mean(axis=0))

    def to_dense(self) -> tuple[Array, Array]:
        """(K_1, K_2) as matrices; for small problems. Charges one product a column."""
        return to_dense(self.K_1), to_dense(self.K_2)


@dataclass(frozen=True)
class Lift:
    """K u = v on the space of (x, z, y): eq. Ksplit."""

    space: Space
    K: LinearOperator
    v: Array

    def recover(self, u: Array) -> tuple[list[Array], Array]:
        """(x_1, ..., x_n) and the mean of the copies; y is dropped."""
        x = [self.space.x_of(u, k).copy() for k in range(self.space.count)]
        return x, np.asarray(self.space.z(u).mean(axis=0))


def families(problem: Problem, ledger: Ledger) -> dict[str, LocalFamily]:
    """The leaves A, B, C, D over the agents that ``problem`` holds."""
    d, p, r = (list(sizes.values()) for sizes in (problem.d, problem.p, problem.r))
    m, q = [problem.m] * len(d), [problem.q] * len(d)
    shapes = {"A": (m, d), "B": (m, q), "C": (p, d), "D": (r, q)}
    return {
        name: LocalFamily(
            name, problem.blocks(name), rows, columns, ledger, present=name in problem.present
        )
        for name, (rows, columns) in shapes.items()
    }


def right_hand_sides(problem: Problem) -> dict[str, Array]:
    """b (one row an agent), c and e (flat, ragged); absent ones are zero."""
    agents = problem.agents.items()
    return {
        "b": np.stack([_filled(a.b, problem.m) for _, a in agents]),
        "c": np.concatenate([_filled(a.c, problem.p[i]) for i, a in agents]),
        "e": np.concatenate([_filled(a.e, problem.r[i]) for i, a in agents]),
    }


def canonical_channels(
    problem: Problem, network: Network, *, ledger: Ledger | None = None
) -> Channels:
    """The channels of Theorem equivalence. One K_1 action: 1 A, 1 B, 1 C; one K_2 action: 1 D and
    1 modelled round. One agent has no consensus rows."""
    _require_whole(problem, network)
    runtime = InProcess(network, ledger=ledger)
    space = Space(runtime, list(problem.d.values()), problem.q)
    leaf = families(problem, runtime.ledger)
    sides = right_hand_sides(problem)
    x, z = select(space.size, 0, space.x_size), select(space.size, space.x_size, space.z_end)
    coupled = add(compose(leaf["A"], x), compose(leaf["B"], z))
    total = GlobalSum(problem.n, problem.m)
    K_1 = stack(compose(total, coupled), compose(leaf["C"], x))
    v_1 = np.concatenate([total.forward(sides["b"].ravel()), sides["c"]])
    K_2 = compose(leaf["D"], z)
    v_2 = sides["e"]
    if problem.n > 1:
        K_2 = stack(K_2, compose(Gossip(runtime, problem.q, modelled=True), z))
        v_2 = np.concatenate([v_2, np.zeros(problem.n * problem.q)])
    return Channels(space, K_1, v_1, K_2, v_2)


def local_lift(problem: Problem, runtime: Runtime, *, alpha: float, gamma: float) -> Lift:
    """The lifted stack of eq. Ksplit on the agents of ``runtime``.

    One action: 1 A, 1 B, 1 C, 1 D and 2 rounds. One agent has neither y nor consensus rows.
    """
    if not (alpha > 0 and gamma > 0):
        raise InputError(f"lift: alpha = {alpha} and gamma = {gamma} must be positive")
    alone = runtime.n == 1
    d = [problem.d[i] for i in runtime.owned]
    space = Space(runtime, d, problem.q, lift=0 if alone else problem.m)
    held = problem.restricted(runtime.owned)
    leaf = families(held, runtime.ledger)
    sides = right_hand_sides(held)
    x, z = select(space.size, 0, space.x_size), select(space.size, space.x_size, space.z_end)
    y = select(space.size, space.z_end, space.size)
    coupled = [compose(leaf["A"], x), compose(leaf["B"], z)]
    rows = [compose(leaf["C"], x), compose(leaf["D"], z)]
    v = [sides["b"].ravel(), sides["c"], sides["e"]]
    if not alone:
        coupled.append(scale(alpha, compose(Gossip(runtime, problem.m), y)))
        rows.append(scale(gamma, compose(Gossip(runtime, problem.q), z)))
        v.append(np.zeros(space.count * problem.q))
    return Lift(space, stack(add(*coupled), *rows), np.concatenate(v))


def _filled(vector: Any, size: int) -> Array:
    return np.zeros(size) if vector is None else np.asarray(vector, dtype=np.float64)


def _require_whole(problem: Problem, network: Network) -> None:
    if not problem.complete:
        raise InputError(
            f"problem: holds {len(problem.agents)} of {problem.n} agents; "
            "the canonical channels need all of them in one process"
        )
    if network.n != problem.n:
        raise InputError(
            f"network: has {network.n} agents but the problem has {problem.n}; they must be equal"
        )
