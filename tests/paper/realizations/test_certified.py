"""The certified lift: KKT solutions, the round formula, every proved interval and every branch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ccmac.angles.measure import geometry
from ccmac.angles.principal import pair_geometry, principal_angles
from ccmac.errors import InputError
from ccmac.linalg.ranks import row_space
from ccmac.network import Network
from ccmac.objectives import Separable, SquaredDistance
from ccmac.paper.instances.random_quadratic import random_quadratic
from ccmac.paper.instances.reference import solve_kkt
from ccmac.paper.realizations.certified import PenaltyObjective, certified, channel_intervals
from ccmac.paper.realizations.lift_constants import LiftConstants
from ccmac.paper.realizations.normalized import NormalizedStack, PolynomialChannel, dense_matrix
from ccmac.problem import Agent, Problem
from ccmac.realizations.base import Certificates, Realized
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from paper.realizations.flavours import (
    FLAVOURS,
    error,
    instance,
    iterate,
    normal_matrix,
    positive_ends,
)

Array = NDArray[np.float64]
PROGRAM = Path(__file__).parent / "programs" / "lifted.py"


def rounds_per_iteration(realized: Realized) -> int:
    """The paper's formula; a channel without graph rows sends nothing."""
    d = realized.details
    lifted = bool(realized.space.lift)
    first = 2 * d["inner"] + 1 if lifted else 0
    second = 2 * d["degree_2"] + 1 if d["degree_2"] is not None and d["nu"] else 0
    return int(d["nu"] * 2 * realized.degree * (first + second) + 2 * d["nu"] * lifted)


@pytest.mark.parametrize("name", FLAVOURS)
def test_reaches_the_kkt_solution_at_the_papers_rounds(name: str) -> None:
    problem, network = instance(name)
    solution = solve_kkt(problem).vector
    runtime = InProcess(network)
    realized = certified(Workspace(problem, runtime))
    iterations, w = iterate(realized, solution)
    assert error(realized, w, solution) <= 1e-9
    assert runtime.ledger["rounds"] == iterations * rounds_per_iteration(realized)
    if realized.space.lift:
        # y stays where its copies sum to zero.
        assert np.abs(realized.space.y(w).sum(axis=0)).max() <= 1e-9


@pytest.mark.parametrize("name", FLAVOURS)
def test_materialised_equals_executed(name: str) -> None:
    problem, network = instance(name)
    ledgers = []
    points = []
    for materialise, fused in ((True, True), (False, True), (False, False)):
        runtime = InProcess(network, fused=fused)
        realized = certified(Workspace(problem, runtime), materialise=materialise)
        w = np.random.default_rng(5).standard_normal(realized.space.size)
        moved, price = realized.system.residual(w)
        gradient = realized.objective.gradient(w)
        assert runtime.ledger.of("solve") == realized.system.cost + realized.objective.cost
        points.append((moved, gradient, price.mean(axis=0)))
        ledgers.append(runtime.ledger.of("solve"))
    assert ledgers[0] == ledgers[1] == ledgers[2]
    for other in points[1:]:
        for one, two in zip(points[0], other, strict=True):
            assert np.allclose(one, two, rtol=1e-9, atol=1e-9)


# -- what the lemmas promise ---------------------------------------------------------------------
def dense_channels(realized: Realized) -> list[Array]:
    """L_1 and L_2 as matrices (None where absent)."""
    system = realized.system
    assert isinstance(system, NormalizedStack)
    found = []
    for c in system.channels:
        assert isinstance(c, PolynomialChannel)
        found.append(dense_matrix(c.channel, realized.space.runtime.ledger))
    return found


def bounds_of(realized: Realized) -> LiftConstants:
    return LiftConstants(**realized.details["certificates"])


def random_flavour(seed: int) -> tuple[Problem, Network]:
    """Any blocks, any graph; certificates vary by orders of magnitude."""
    random = np.random.default_rng(seed)
    names = list(FLAVOURS)
    options = dict(FLAVOURS[names[int(random.integers(len(names)))]])
    n = options.pop("n", int(random.integers(2, 6)))
    problem = random_quadratic(seed, n=n, d=3, **{"q": 3, "m": 2, **options})
    scale = dict(zip("ABCD", 10.0 ** random.uniform(-1, 1, 4), strict=True))
    agents = [_scaled(a, scale) for a in problem.agents.values()]
    graphs = [Network.complete, Network.path, Network.star]
    return Problem(agents, q=problem.q, m=problem.m), graphs[int(random.integers(3))](n)


def _scaled(agent: Agent, scale: dict[str, float]) -> Agent:
    blocks = {k: None if (b := getattr(agent, k)) is None else s * b for k, s in scale.items()}
    return Agent(agent.objective, **blocks)


@pytest.mark.parametrize("block", range(10))
def test_structured_normalization_and_bridge_on_200_random_problems(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
        problem, network = random_flavour(seed)
        realized = certified(Workspace(problem, InProcess(network)), materialise=False)
        matrices = dense_channels(realized)
        bounds = bounds_of(realized)
        first, second = channel_intervals(bounds)
        d = realized.details
        proved = [e for e, k in ((first, "inner"), (second, "degree_2")) if d[k] is not None]
        for matrix, (low, high) in zip(matrices, proved, strict=True):
            mu, top = positive_ends(matrix @ matrix.T)
            assert low <= mu * (1 + 1e-8)
            assert top <= high * (1 + 1e-8)
        if len(matrices) == 2:
            spaces = [row_space(M) for M in matrices]
            angles = principal_angles(*(s.basis for s in spaces))
            lifted = pair_geometry(angles, (spaces[0].rank, spaces[1].rank), 1e-9)
            chi2 = bounds.cross_factor**2
            cosine = (chi2 - 1) / (chi2 + 1)
            assert lifted.cosine**2 <= 0.25 + 0.75 * cosine**2 + 1e-9
            assert lifted.cross_factor <= np.sqrt(3) * bounds.cross_factor * (1 + 1e-9)


@pytest.mark.parametrize("name", FLAVOURS)
@pytest.mark.parametrize("delta", [0.5, 0.1])
def test_normalized_joint_certificate(name: str, delta: float) -> None:
    problem, network = instance(name, seed=6)
    realized = certified(Workspace(problem, InProcess(network)), delta=delta)
    if realized.system.empty:
        assert realized.degree == 1
        return
    low, high = positive_ends(normal_matrix(realized.system))
    chi = realized.details["cross_factor"]
    ends = realized.system.interval
    assert ends.low == (1 - delta) / (3 * chi * chi)
    assert ends.high == 2 * (1 + delta)
    assert ends.low <= low
    assert high <= ends.high


@pytest.mark.parametrize("name", ["all blocks", "rank deficient", "no C, no D", "two agents"])
def test_penalty_curvature(name: str) -> None:
    problem, network = instance(name)
    realized = certified(Workspace(problem, InProcess(network)))
    objective = realized.objective
    space = realized.space
    assert isinstance(objective, PenaltyObjective)
    origin = objective.gradient(space.zeros())
    hessian = np.stack([objective.gradient(e) - origin for e in np.eye(space.size)], axis=1)
    # Directions whose y-part sums to zero over the agents.
    sums = np.zeros((problem.m, space.size))
    for k in range(space.count):
        sums[:, space.z_end + k * problem.m : space.z_end + (k + 1) * problem.m] = np.eye(problem.m)
    kernel = np.linalg.svd(sums)[2][problem.m :].T
    values = np.linalg.eigvalsh(kernel.T @ hessian @ kernel)
    assert objective.mu <= values[0]
    assert values[-1] <= objective.L
    solution = solve_kkt(problem)
    _, w = iterate(realized, solution.vector, tol=1e-11)
    plain = space.zeros()
    super(PenaltyObjective, objective).gradient(w, plain)
    # The penalty's gradient vanishes at the solution.
    assert np.allclose(objective.gradient(w)[: space.z_end], plain[: space.z_end], atol=1e-8)


# -- branches -------------------------------------------------------------------------------------
def test_nothing_to_couple_drops_the_auxiliary_variable() -> None:
    problem, network = instance("no A, no B")
    realized = certified(Workspace(problem, InProcess(network)))
    assert realized.space.lift == 0
    assert not isinstance(realized.objective, PenaltyObjective)
    assert channel_intervals(bounds_of(realized))[0] == (0.5, 1.5)
    assert realized.system.zero_multiplier().shape == (4, 0)


def test_coupled_rows_within_the_local_ones_lift_the_lower_end() -> None:
    # A_i = C_i and B = 0: S_HC = 0.
    random = np.random.default_rng(0)
    objective = Separable(SquaredDistance(1.0, random.standard_normal(3)), SquaredDistance(1.0))
    C = random.standard_normal((2, 3))
    x = [random.standard_normal(3) for _ in range(3)]
    agents = [Agent(objective, A=C, b=C @ v, C=C, c=C @ v) for v in x]
    problem = Problem(agents, q=2)
    realized = certified(Workspace(problem, InProcess(Network.ring(3))), materialise=False)
    bounds = bounds_of(realized)
    assert bounds.mu_HC == 0
    assert channel_intervals(bounds)[0] == (bounds.h, 37 * bounds.h)
    low, _ = positive_ends((M := dense_channels(realized)[0]) @ M.T)
    assert bounds.h <= low
    iterate(
        certified(Workspace(problem, InProcess(Network.ring(3)))),
        solve_kkt(problem).vector,
        tol=1e-8,
    )


def test_without_D_gamma_is_one() -> None:
    problem, network = instance("no D")
    realized = certified(Workspace(problem, InProcess(network)), materialise=False)
    assert channel_intervals(bounds_of(realized))[1] == (0.25, 2.25)
    L_2 = dense_channels(realized)[1]
    low, high = positive_ends(L_2 @ L_2.T)
    assert 0.25 <= low <= high <= 2.25


# -- certificates ---------------------------------------------------------------------------------
def test_supplied_certificates_are_trusted_and_cost_no_geometry() -> None:
    problem, network = instance("all blocks")
    exact = bounds_of(certified(Workspace(problem, InProcess(network))))
    loose = Certificates(
        h=2 * exact.h,
        mu_HC=exact.mu_HC / 2,
        d_D=2 * exact.d_D,
        mu_D=exact.mu_D / 2,
        l_C=exact.l_C / 2,
        u_C=2 * exact.u_C,
        l_W=1.0,
        u_W=4.5,
        cross_factor=1.2 * exact.cross_factor,
    )
    realized = certified(Workspace(problem, InProcess(network)), certificates=loose)
    assert realized.details["source"] == "supplied"
    assert bounds_of(realized).h == 2 * exact.h
    iterate(realized, solve_kkt(problem).vector, tol=1e-7)


@pytest.mark.parametrize("name", [n for n in FLAVOURS if "nothing" not in n])
@pytest.mark.parametrize("fused", [True, False])
def test_constants_from_averaged_grams_agree_with_the_geometry(name: str, fused: bool) -> None:
    problem, network = instance(name)
    found = bounds_of(certified(Workspace(problem, InProcess(network, fused=fused))))
    exact = geometry(problem, network=network)
    assert found.cross_factor == pytest.approx(exact.cross_factor, rel=1e-5)
    for key in ("h", "mu_HC", "d_D", "mu_D", "l_C", "u_C"):
        known = getattr(exact.structural, key) or 0.0
        assert getattr(found, key) == pytest.approx(known, rel=1e-5, abs=1e-12), key


def test_refusals_say_what_to_do() -> None:
    problem, network = instance("all blocks")
    with pytest.raises(InputError, match="delta = 1"):
        certified(Workspace(problem, InProcess(network)), delta=1.0)
    with pytest.raises(InputError, match="has 3 agents but the problem has 4"):
        certified(Workspace(problem, InProcess(Network.ring(3))))
