"""The canonical realization against dense algebra, the KKT system, and its own price list."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ccmac import Agent, Problem, solve, vfl
from ccmac.errors import InputError, MethodRefused
from ccmac.ledger import Cost
from ccmac.methods import CrossSliding
from ccmac.methods.apapc import Apapc, CrossApapc
from ccmac.network import Network
from ccmac.objectives import Quadratic
from ccmac.paper import data
from ccmac.paper.canonical_channels import canonical_channels
from ccmac.paper.instances.random_quadratic import random_quadratic
from ccmac.paper.instances.reference import solve_kkt
from ccmac.paper.realizations.canonical import INTERVALS, canonical
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from paper.realizations.flavours import (
    FLAVOURS,
    error,
    fresh,
    instance,
    iterate,
    normal_matrix,
    positive_ends,
)


@pytest.mark.parametrize("name", FLAVOURS)
def test_reaches_the_kkt_solution(name: str) -> None:
    problem, network = instance(name)
    solution = solve_kkt(problem).vector
    for fused, rule, interval in ((True, "tight", "minimal"), (False, "exact", "certificate")):
        realized = canonical(
            Workspace(problem, InProcess(network, fused=fused)), rule=rule, interval=interval
        )
        _, w = iterate(realized, solution)
        assert error(realized, w, solution) <= 1e-9


@pytest.mark.parametrize("name", FLAVOURS)
def test_intervals_hold_the_spectrum(name: str) -> None:
    problem, network = instance(name, seed=8)
    for rule in ("paper", "tight", "exact"):
        for interval in INTERVALS:
            realized = canonical(
                Workspace(problem, InProcess(network)), rule=rule, interval=interval
            )
            if realized.system.empty:
                continue
            low, high = positive_ends(normal_matrix(realized.system))
            ends = realized.system.interval
            assert ends.low <= low * (1 + 1e-8)
            assert high <= ends.high * (1 + 1e-8)
            if rule == "exact" and interval == "tight" and realized.details["spread_2"] is not None:
                assert low <= ends.low * (1 + 1e-6)


def test_exact_whitening_gives_the_projectors_of_the_canonical_channels() -> None:
    problem, network = instance("all blocks")
    K_1, K_2 = canonical_channels(problem, network).to_dense()
    projectors = [np.linalg.pinv(K) @ K for K in (K_1, K_2)]
    realized = canonical(Workspace(problem, InProcess(network)), rule="exact")
    assert np.allclose(normal_matrix(realized.system), sum(projectors), atol=1e-12)
    linear = realized.system.homogeneous()
    w = np.random.default_rng(0).standard_normal(realized.space.size)
    for part, projector in zip(linear.channel_residuals(w), projectors, strict=True):
        assert np.allclose(part, projector @ w, atol=1e-12)


@pytest.mark.parametrize("rule", ["paper", "tight"])
def test_polynomials_normalize_within_their_spread(rule: str) -> None:
    problem, network = instance("all blocks")
    realized = canonical(Workspace(problem, InProcess(network)), rule=rule, delta=0.3)
    linear = realized.system.homogeneous()
    columns = [linear.channel_residuals(e) for e in np.eye(realized.space.size)]
    for j, key in enumerate(("spread_1", "spread_2")):
        a, b = realized.details[key]
        low, high = positive_ends(np.stack([c[j] for c in columns], axis=1))
        assert 0.7 <= a <= low * (1 + 1e-9)
        assert high <= b * (1 + 1e-9) <= 1.3 * (1 + 2e-9)


@pytest.mark.parametrize("name", FLAVOURS)
@pytest.mark.parametrize("model", ["channel-2", "paper-6"])
def test_measured_ledger_is_the_predicted_one(name: str, model: str) -> None:
    problem, network = instance(name)
    runtime = InProcess(network)
    realized = canonical(Workspace(problem, runtime), model=model, interval="tight")
    declared = runtime.averaging.rounds  # what all agents declare: one averaging
    assert runtime.ledger.of("setup")["rounds"] == declared
    iteration = Apapc(realized)
    state = fresh(iteration)
    for _ in range(3):
        state = iteration.step(state)
    assert runtime.ledger.of("solve") == 3 * iteration.cost
    assert runtime.ledger["rounds"] == 0
    if not realized.system.empty:
        assert runtime.ledger["affine"] == 3 * 2 * realized.degree


def test_the_price_list_in_numbers() -> None:
    problem = random_quadratic(1, n=8)
    network = Network.ring(8)
    rounds = math.ceil(math.sqrt(network.condition))
    realized = canonical(Workspace(problem, InProcess(network)), inner=24)
    D = 2 * (2 * realized.details["degree_2"] + 1)
    assert realized.system.cost == Cost(affine=2, A=98, B=98, C=98, D=D, modelled_rounds=2 * rounds)
    per_channel = canonical(Workspace(problem, InProcess(network)), inner=24, model="paper-6")
    assert per_channel.system.cost["modelled_rounds"] == 4 * rounds


def test_augmentation_is_modelled() -> None:
    X = np.random.default_rng(0).standard_normal((30, 8))
    problem = vfl.problem(X, X[:, 0], 4, label_owner=1)
    runtime = InProcess(Network.ring(4))
    realized = canonical(Workspace(problem, runtime), interval="minimal", rule="exact")
    assert realized.objective.augment > 0
    iterate(realized, solve_kkt(problem).vector, tol=1e-6)
    assert runtime.ledger["rounds"] == 0
    assert runtime.ledger["modelled_rounds"] > 0


def test_refusals_say_what_to_do() -> None:
    problem, network = instance("all blocks")
    runtime = InProcess(network)
    for keyword in ("rule", "interval", "model"):
        with pytest.raises(InputError, match=f"{keyword} 'odd' is unknown; take"):
            canonical(Workspace(problem, runtime), **{keyword: "odd"})
    with pytest.raises(InputError, match="accuracy = 2"):
        canonical(Workspace(problem, runtime), delta=2.0)
    with pytest.raises(InputError, match="has 5 agents but the problem has 4"):
        canonical(Workspace(problem, InProcess(Network.ring(5))))
    with pytest.raises(InputError, match=r"this process needs agents 0\.\.3"):
        canonical(Workspace(problem.restricted(range(2)), runtime))
    X = np.random.default_rng(0).standard_normal((2000, 6))
    with pytest.raises(InputError, match="K_1 is too large for a dense factorization"):
        canonical(Workspace(vfl.problem(X, X[:, 0], 3), InProcess(Network.ring(3))), rule="exact")


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "gradients", "calls"), [("a9a", 400, 800), ("mushrooms", 225, 450)]
)
def test_real_data_in_the_theorems_units(
    libsvm_data: object, name: str, gradients: int, calls: int
) -> None:
    table = data.load(name)
    problem = vfl.problem(table.X, table.y, 8)
    N, d = table.X.shape
    gram = (table.X.T @ table.X).toarray() / N + 1e-2 * np.eye(d)
    weights = np.linalg.solve(gram, table.X.T @ table.y / N)
    target = np.concatenate(problem.blocks_of(weights))
    runtime = InProcess(Network.ring(8))
    realized = canonical(Workspace(problem, runtime), rule="tight", interval="minimal")
    iteration = Apapc(realized)
    state = fresh(iteration)
    while np.sum((realized.space.x(state.w) - target) ** 2) > 1e-6 * target @ target:
        assert runtime.ledger["gradients"] < gradients
        state = iteration.step(state)
    assert runtime.ledger["affine"] <= calls


@pytest.mark.parametrize("rule", ["paper", "tight"])
def test_rows_too_uneven_for_a_polynomial_are_refused(rule: str) -> None:
    """Of coupled rows of size 2^-36 and 1 the degree would be 1e11: a terabyte of coefficients."""
    f = Quadratic(np.ones(3), np.ones(3))
    rows = np.array([[2.0**-36, 0.0], [0.0, 1.0]])
    agents = [Agent(f, A=rows, B=rows[:, :1], b=rows[:, 1]) for _ in range(2)]
    method = CrossApapc(realization="canonical", rule=rule)
    with pytest.raises(MethodRefused, match="more than 1e12 apart"):
        solve(Problem(agents), "path", method)


@pytest.mark.parametrize("n", [1, 2])
def test_shared_rows_that_are_all_inequalities(n: int) -> None:
    """They become coupled rows: nothing of D is left, and one agent has no second channel."""
    f = Quadratic(np.ones(2), np.zeros(2))
    agents = [Agent(f, A=[[1.0]], b=[1.0], D=[[1.0]], e=[-0.5], D_sense="<=") for _ in range(n)]
    result = solve(Problem(agents), None, CrossSliding(realization="canonical"), tol=1e-4)
    assert result.status == "optimal"
    assert result.z == pytest.approx([-0.5], abs=1e-3)
