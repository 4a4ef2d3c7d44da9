"""The canonical channels and the lift: the same feasible points as the problem as stated."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmac import Agent, Network, Problem
from ccmac.ledger import Ledger
from ccmac.linalg.operator import to_dense
from ccmac.linalg.ranks import squared_range
from ccmac.objectives import Separable, SquaredDistance
from ccmac.paper.canonical_channels import canonical_channels
from ccmac.paper.realizations.channels import CoupledLocal as LiftedCoupledLocal
from ccmac.paper.realizations.channels import FilteredGraph, LocalizedCoupling, NormalizedLocal
from ccmac.paper.realizations.channels import SharedConsensus as LiftedSharedConsensus
from ccmac.paper.realizations.inverse_root import inverse_root_polynomial
from ccmac.paper.realizations.normalized import Channel
from ccmac.runtime import InProcess
from ccmac.runtime.space import Space
from ccmac.workspace.equations import block_families, right_hand_sides
from linalg.checks import cost_test, dot_test

OBJECTIVE = Separable(SquaredDistance(1.0), SquaredDistance(1.0))
BLOCKS = "ABCD"


def drawn(rng: np.random.Generator, n: int, present: str, *, q: int = 3, m: int = 4) -> Problem:
    """A feasible random problem with the blocks named in ``present``."""
    z = rng.standard_normal(q)
    agents = []
    for _ in range(n):
        d = rng.integers(1, 5)
        p = rng.integers(1, 3)
        r = rng.integers(1, 3)
        x = rng.standard_normal(d)
        A = rng.standard_normal((m, d)) if "A" in present else np.zeros((m, d))
        B = rng.standard_normal((m, q)) if "B" in present else None
        C = rng.standard_normal((p, d)) if "C" in present else None
        D = rng.standard_normal((r, q)) if "D" in present else None
        b = A @ x + (B @ z if B is not None else 0)
        c = None if C is None else C @ x
        e = None if D is None else D @ z
        agents.append(Agent(OBJECTIVE, A=A, B=B, b=b, C=C, c=c, D=D, e=e))
    # The sum is what counts: hand some of b around.
    return Problem(agents, q=q, m=m)


def violation(problem: Problem, x: list[np.ndarray], z: np.ndarray) -> float:
    """Distance from feasibility, straight from the definition."""
    coupled = np.zeros(problem.m)
    worst = 0.0
    for i, agent in problem.agents.items():
        for block, v in ((agent.A, x[i]), (agent.B, z)):
            coupled += 0 if block is None else block @ v
        coupled -= 0 if agent.b is None else agent.b
        if agent.C is not None:
            worst = max(worst, np.abs(agent.C @ x[i] - agent.c).max())
        if agent.D is not None:
            worst = max(worst, np.abs(agent.D @ z - agent.e).max())
    return float(max(worst, np.abs(coupled).max()))


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 4), present=st.sets(st.sampled_from(BLOCKS)))
def test_feasible_iff_the_channels_hold(seed: int, n: int, present: set[str]) -> None:
    """Theorem thm:equivalence, both ways, for every pattern of absent blocks and for one agent."""
    rng = np.random.default_rng(seed)
    problem = drawn(rng, n, "".join(sorted(present)))
    network = Network.path(n)
    channels = canonical_channels(problem, network)
    K_1, K_2 = channels.to_dense()
    K = np.vstack([K_1, K_2])
    v = np.concatenate([channels.v_1, channels.v_2])
    u = np.linalg.lstsq(K, v, rcond=None)[0]
    np.testing.assert_allclose(K @ u, v, atol=1e-9)
    # Any solution of K u = v has equal copies and is feasible as stated...
    kernel = np.eye(len(u)) - np.linalg.pinv(K, rcond=1e-10) @ K
    u = u + kernel @ rng.standard_normal(len(u))
    x, z = channels.recover(u)
    np.testing.assert_allclose(channels.space.z(u), np.tile(z, (n, 1)), atol=1e-9)
    assert violation(problem, x, z) < 1e-8
    # ... and a feasible tuple, embedded, solves K u = v; an infeasible one does not.
    np.testing.assert_allclose(K @ channels.embed(x, z), v, atol=1e-8)
    moved = [xi + rng.standard_normal(len(xi)) for xi in x], z + rng.standard_normal(problem.q)
    gap = float(np.abs(K @ channels.embed(*moved) - v).max())
    assert (violation(problem, *moved) < 1e-9) == (gap < 1e-9)


class Lift:
    """L_1 over L_2 of the executable lift, for any alpha and gamma.

    Equation eq:Ksplit with W~ for W.
    """

    def __init__(self, problem: Problem, runtime: InProcess, alpha: float, gamma: float) -> None:
        alone = runtime.n == 1
        d = list(problem.d.values())
        m = problem.m
        q = problem.q
        self.space = space = Space(runtime, d, q, lift=0 if alone else m)
        graph = None if alone else FilteredGraph(runtime, *runtime.network.extremes)
        leaf = block_families(problem, runtime.ledger)
        sides = right_hand_sides(problem)
        ends = [squared_range(agent.C)[1:] for agent in problem.agents.values()]
        low = min(e[0] for e in ends)
        high = max(e[1] for e in ends)
        polynomial = inverse_root_polynomial(low, high, accuracy=0.5)
        coupling = LocalizedCoupling(problem, space, graph, alpha)
        local = NormalizedLocal(leaf["C"], polynomial)
        self.channels: list[Channel] = [
            LiftedCoupledLocal(space, coupling, local, 1.0, sides.c),
            LiftedSharedConsensus(space, leaf["D"], sides.e, graph, gamma),
        ]
        self.v = np.concatenate([channel.right for channel in self.channels])
        self.shape = (len(self.v), space.size)
        self.cost = self.channels[0].cost + self.channels[1].cost

    def forward(self, u: np.ndarray) -> np.ndarray:
        return np.concatenate([channel.forward(u) for channel in self.channels])

    def adjoint(self, v: np.ndarray) -> np.ndarray:
        split = len(self.channels[0].right)
        return self.channels[0].adjoint(v[:split]) + self.channels[1].adjoint(v[split:])

    def recover(self, u: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        x = [self.space.x_of(u, k) for k in range(self.space.count)]
        return x, self.space.z(u).mean(axis=0)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 4),
    alpha=st.floats(0.1, 10),
    gamma=st.floats(0.1, 10),
)
def test_the_lift_has_the_same_feasible_points(
    seed: int, n: int, alpha: float, gamma: float
) -> None:
    """Equation eq:Ksplit: solutions of the lift are feasible, and every feasible tuple has a y."""
    rng = np.random.default_rng(seed)
    problem = drawn(rng, n, "ABCD")
    runtime = InProcess(Network.path(n))
    lift = Lift(problem, runtime, alpha, gamma)
    K = to_dense(lift)
    kernel = np.eye(K.shape[1]) - np.linalg.pinv(K, rcond=1e-10) @ K
    u = np.linalg.lstsq(K, lift.v, rcond=None)[0] + kernel @ rng.standard_normal(K.shape[1])
    assert violation(problem, *lift.recover(u)) < 1e-7
    channels = canonical_channels(problem, Network.path(n))
    K_1, K_2 = channels.to_dense()
    feasible = np.linalg.lstsq(
        np.vstack([K_1, K_2]), np.concatenate([channels.v_1, channels.v_2]), rcond=None
    )[0]
    given_xz = K[:, : len(feasible)] @ feasible
    y = np.linalg.lstsq(K[:, len(feasible) :], lift.v - given_xz, rcond=None)[0]
    np.testing.assert_allclose(given_xz + K[:, len(feasible) :] @ y, lift.v, atol=1e-7)


def test_costs_are_declared_and_adjoints_right() -> None:
    rng = np.random.default_rng(3)
    problem = drawn(rng, 4, "ABCD")
    ledger = Ledger()
    channels = canonical_channels(problem, Network.ring(4), ledger=ledger)
    dot_test(channels.K_1, rng)
    dot_test(channels.K_2, rng)
    assert dict(cost_test(channels.K_1, ledger)) == {"A": 1, "B": 1, "C": 1}
    assert dict(cost_test(channels.K_2, ledger)) == {"D": 1, "modelled_rounds": 1}
    runtime = InProcess(Network.ring(4))
    lift = Lift(problem, runtime, 2.0, 3.0)
    dot_test(lift, rng)
    cost = cost_test(lift, runtime.ledger)
    coupling = lift.channels[0].coupling
    local = lift.channels[0].local
    assert {u: cost[u] for u in ("A", "B", "C", "D", "rounds")} == {
        "A": 1,
        "B": 1,
        "C": 2 * local.polynomial.degree + 1,
        "D": 1,
        "rounds": 2 * coupling.graph.degree,
    }
