"""cross-ipm against planted solutions and Clarabel: values, verdicts, multipliers, counts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ccmac
from ccmac.certificates.farkas import Farkas, Infeasibility, Lambda
from ccmac.certificates.gap import Goal
from ccmac.errors import MethodRefused
from ccmac.inputs import Array
from ccmac.methods.base import Request
from ccmac.methods.interior.iteration import Interior, InteriorState
from ccmac.methods.interior.method import CrossIpm
from ccmac.methods.interior.stopping import DualityStop
from ccmac.methods.run import starting_point
from ccmac.objectives import L1, Box, ElasticNet, Hinge, MaxAffine, Quadratic, Separable
from ccmac.results import Solution
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from methods.interior.problems import Made, make, reference, violation

SEEDS = st.integers(0, 10**6)
EXPECTED = {"solvable": "optimal", "infeasible": "infeasible", "unbounded": "unbounded"}


def solve(problem: ccmac.Problem, tol: float = 1e-6, **more: object) -> ccmac.Result:
    network = ccmac.Network.path(problem.n)
    return ccmac.solve(problem, network, "cross-ipm", tol, **more)  # type: ignore[arg-type]


@given(SEEDS)
@example(173)  # a free fall beside a direction of curvature 1e-8
@settings(max_examples=12)
def test_random_problems_are_what_they_were_made_to_be(seed: int) -> None:
    made = make(seed)
    kind = made.kind
    problem = made.problem
    value = made.value
    result = solve(problem)
    assert result.status == EXPECTED[kind], result.message
    assert result.iterations <= 40
    if kind == "solvable":
        assert abs(result.objective - value) <= 1e-6 * max(1.0, abs(value))
        assert violation(problem, result) <= 1e-6
        assert result.certificates["rests_on"] == "proved"
        assert result.objective - value <= result.certificates["gap"] + 1e-12 * abs(value)
    if kind == "infeasible":
        assert_farkas(problem, result)


@pytest.mark.parametrize("seed", [9001, 9006, 9010])
def test_a_warm_start_from_afar_ends_at_the_same_value(seed: int) -> None:
    made = make(seed)
    assert made.kind == "solvable"
    cold = solve(made.problem)
    random = np.random.default_rng(seed)
    x = [v + 0.3 * random.standard_normal(len(v)) for v in cold.x]
    z = cold.z + 0.3 * random.standard_normal(len(cold.z))
    warm = solve(made.problem, warm_start=Solution(x, z, cold.multipliers))
    assert warm.status == "optimal"
    assert abs(warm.objective - made.value) <= 1e-6 * max(1.0, abs(made.value))
    assert violation(made.problem, warm) <= 1e-6


@pytest.mark.parametrize("factor", [1.001, -1.0])
def test_a_warm_start_is_hardly_dearer_than_a_cold_one(factor: float) -> None:
    """Bounds on z, from the solution for other right-hand sides, near ones and far ones."""
    random = np.random.default_rng(2)
    agents = []
    for _ in range(4):
        M = random.standard_normal((14, 14))
        f = Quadratic(M.T @ M / 10, random.standard_normal(14))
        A = random.standard_normal((5, 8))
        B = random.standard_normal((5, 6))
        agents.append((f, A, B, random.standard_normal(5)))

    def posed(by: float) -> ccmac.Problem:
        made = [
            ccmac.Agent(f, A=A, B=B, b=by * b, lower=-np.full(8, 0.3), upper=np.full(8, 0.3))
            for f, A, B, b in agents
        ]
        return ccmac.Problem(made, z_lower=np.full(6, -0.2), z_upper=np.full(6, 0.2))

    cold = solve(posed(factor))
    warm = solve(posed(factor), warm_start=solve(posed(1.0)))
    assert warm.status == cold.status == "optimal"
    spent, limit = warm.ledger.total("averagings"), cold.ledger.total("averagings")
    assert spent <= limit / 2 if factor > 0 else spent <= limit + 3
    assert any("warm start was given up" in text for text in warm.warnings) == (factor < 0)


def assert_farkas(problem: ccmac.Problem, result: ccmac.Result) -> None:
    """In plain arithmetic: y'v exceeds what the bounds allow (K'y)'w."""
    found = result.infeasibility
    if not found.bounds:  # the equations alone contradict each other
        return
    reach = 0.0
    on_z = np.zeros(problem.q)
    ends = [np.full(problem.q, -np.inf), np.full(problem.q, np.inf)]
    for i, agent in problem.agents.items():
        kappa = found.local.get(i, np.zeros(problem.p[i]))
        delta = found.shared.get(i, np.zeros(problem.r[i]))
        r = agent.A.T @ found.coupled + agent.C.T @ kappa
        on_z += agent.B.T @ found.coupled + agent.D.T @ delta
        form = agent.objective.polyhedral(problem.d[i], problem.q)
        reach += bounded(r, form.lower[: len(r)], form.upper[: len(r)])
        reach -= agent.b @ found.coupled + agent.c @ kappa + agent.e @ delta
        ends = [
            np.maximum(ends[0], form.lower[len(r) :]),
            np.minimum(ends[1], form.upper[len(r) :]),
        ]
    assert -reach - bounded(on_z, *ends) == pytest.approx(found.value, rel=1e-6)
    assert found.value > 1e6 * found.defect


def bounded(r: Array, lower: Array, upper: Array) -> float:
    """The largest of r'w within bounds, entries that push nowhere left out."""
    bound = np.where(r > 0, upper, lower)
    there = np.isfinite(bound)
    return float(r[there] @ bound[there])


@pytest.mark.parametrize("seed", range(8))
def test_values_are_those_of_clarabel(seed: int) -> None:
    made = make(seed)
    status, found = reference(made.problem)
    assert status.startswith(EXPECTED[made.kind])
    if made.kind == "solvable":
        assert found == pytest.approx(made.value, rel=1e-7, abs=1e-7)


# -- kinks -----------------------------------------------------------------------------------------
def kinked(random: np.random.Generator, kind: str, n: int = 4, q: int = 6) -> ccmac.Problem:
    """n agents with a loss of a matrix each, coupled rows and a shared variable."""
    d = 5
    rows = 12
    agents = []
    for _ in range(n):
        M = random.standard_normal((rows, d + q))
        c = random.standard_normal(rows)
        objective = {
            "hinge": Hinge(M, np.sign(c), ridge=0.01),
            "maximum": MaxAffine(M, c) + Box(-3.0, 3.0),
            "absolute": Separable(L1(0.5, c[:d]), ElasticNet(0.3, 0.7)),
            "all": Quadratic(M.T @ M, c[: d + q]) + L1(2.0) + Box(-1.0, np.abs(c[: d + q])),
        }[kind]
        A = random.standard_normal((3, d))
        B = random.standard_normal((3, q))
        agents.append(ccmac.Agent(objective, A=A, B=B))
    return ccmac.Problem(agents)


@pytest.mark.parametrize("kind", ["hinge", "maximum", "absolute", "all"])
@pytest.mark.parametrize("seed", range(2))
def test_kinks_by_epigraphs(kind: str, seed: int) -> None:
    problem = kinked(np.random.default_rng(seed), kind)
    status, value = reference(problem)
    result = solve(problem)
    assert status == "optimal"
    assert result.status == "optimal", result.message
    assert abs(result.objective - value) <= 1e-6 * max(1.0, abs(value))
    assert violation(problem, result) <= 1e-7
    assert result.ledger.total("rounds") <= 120 * result.plan.averaging_rounds  # type: ignore[union-attr]


# -- the proof -------------------------------------------------------------------------------------
def prepared(problem: ccmac.Problem, tol: float = 1e-6) -> tuple[Interior, DualityStop]:
    work = Workspace(problem, InProcess(ccmac.Network.path(problem.n)))
    with work.ledger.phase("setup"):
        found = CrossIpm().prepare(work, Request(tol, *starting_point(work, None)))
    assert isinstance(found.iteration, Interior)
    assert isinstance(found.stopping, DualityStop)
    return found.iteration, found.stopping


def begun(problem: ccmac.Problem) -> tuple[Interior, InteriorState]:
    """The iteration and its state at zero."""
    iteration, _ = prepared(problem)
    space = iteration.work.space
    return iteration, iteration.start(np.zeros(space.x_size), np.zeros((space.count, problem.q)))


def solvable(seed: int) -> Made:
    """The first solvable problem of a few seeds."""
    return next(made for k in range(100) if (made := make(seed + 1000 * k)).kind == "solvable")


@given(SEEDS, st.floats(0, 3))
@settings(max_examples=10)
def test_the_gap_bounds_whatever_multipliers_are_brought(seed: int, noise: float) -> None:
    """At any point within the bounds F(w) - F* is below the bound for a true radius."""
    made = solvable(seed)
    iteration, stop = prepared(made.problem)
    random = np.random.default_rng(seed)
    state = iteration.start(np.zeros(0), np.zeros(0))
    for _ in range(int(random.integers(1, 8))):
        state = iteration.step(state)
    x, copies = iteration.point(state)
    coupled, own = (shaken(random, noise, v) for v in iteration.multipliers(state))
    found, _ = stop.duality.gap(x, copies[0], coupled, own)
    room = 1e-9 * max(1.0, abs(made.value))
    assert found.value - made.value <= found.bound(made.size) + room


def shaken(random: np.random.Generator, noise: float, multipliers: Any) -> Any:
    if isinstance(multipliers, list):
        return [shaken(random, noise, v) for v in multipliers]
    return multipliers + noise * random.standard_normal(multipliers.shape)


def test_a_wrong_value_would_be_refuted() -> None:
    """The bound is sharp: a planted value below the optimum by more than the gap is excluded."""
    made = solvable(1)
    problem = made.problem
    value = made.value
    result = solve(problem, 1e-8)
    assert result.certificates["gap"] <= 1e-8 * max(1.0, abs(value))
    assert result.objective - result.certificates["gap"] <= value + 1e-12
    assert result.objective - result.certificates["gap"] >= value - 2e-8 * max(1.0, abs(value))


def test_a_gap_asks_for_feasibility_too() -> None:
    problem = solvable(3).problem
    result = solve(problem)
    assert result.certificates["feasibility"] <= 1e-6
    iteration, stop = prepared(problem)
    state = iteration.start(np.zeros(0), np.zeros(0))
    x, copies = iteration.point(state)
    found, _ = stop.duality.gap(x, copies[0], *iteration.multipliers(state))
    assert found.violation > 1e-6
    assert found.ratio(Goal(1e-6, accuracy=1e9)) > 1.0


# -- prices ----------------------------------------------------------------------------------------
def test_prices_of_a_dispatch_with_a_limit() -> None:
    """Two generators, demand 3: the cheap one stops at its limit, the other sets the price."""
    cheap = Quadratic([1.0], [-1.0])
    dear = Quadratic([1.0], [-4.0])
    one = np.ones((1, 1))
    problem = ccmac.Problem(
        [ccmac.Agent(cheap + Box(0, 1), A=one, b=[3.0]), ccmac.Agent(dear + Box(0, 9), A=one)], q=0
    )
    result = solve(problem, 1e-9)
    assert result.x[0] == pytest.approx([1.0], abs=1e-6)
    assert result.x[1] == pytest.approx([2.0], abs=1e-6)
    assert result.multipliers.coupled == pytest.approx([-6.0], abs=1e-5)


def test_bounds_on_z_that_exclude_each_other_name_both_agents() -> None:
    agents = [
        ccmac.Agent(Separable(z=Box(1.0, 2.0)), B=np.zeros((0, 1))),
        ccmac.Agent(Separable(z=Box(-1.0, 0.5)), B=np.zeros((0, 1))),
    ]
    result = solve(ccmac.Problem(agents, q=1))
    assert result.status == "infeasible"
    assert "agent 0 wants entry 0 of z above 1" in result.message
    assert "agent 1 below 0.5" in result.message


def test_the_direction_of_a_free_fall_is_shown() -> None:
    objective = Quadratic(np.zeros((2, 2)), [1.0, 0.0]) + Box([0.0, 0.0], [np.inf, 1.0])
    problem = ccmac.Problem([ccmac.Agent(objective, A=[[0.0, 1.0]], b=[0.5])] * 2, q=0)
    result = solve(problem)
    assert result.status == "unbounded"
    assert result.objective == -math.inf
    along = np.concatenate(result.certificates["direction"]["x"])
    assert along == pytest.approx(np.array([1, 0, 1, 0]) / math.sqrt(2), abs=1e-6)


# -- counts ----------------------------------------------------------------------------------------
def test_a_step_costs_what_it_says_three_averagings() -> None:
    problem = solvable(4).problem
    iteration, _ = prepared(problem)
    ledger = iteration.runtime.ledger
    runtime = iteration.runtime
    state = iteration.start(np.zeros(0), np.zeros(0))
    for count in range(1, 4):
        state = iteration.step(state)
        assert ledger.of("solve") == count * iteration.cost
    assert ledger["rounds"] == 9 * runtime.averaging.rounds


def test_a_proof_costs_one_averaging_and_a_guess_of_active_rows_two_more() -> None:
    problem = solvable(5).problem
    result = solve(problem)
    iteration, stop = prepared(problem)
    ledger = iteration.runtime.ledger
    state = iteration.start(np.zeros(0), np.zeros(0))
    for count in range(1, result.iterations):
        state = iteration.step(state)
        with ledger.phase("monitor"):
            stop.check(iteration, state, count)
    assert ledger.of("monitor").get("rounds", 0) <= 2 * 3 * iteration.runtime.averaging.rounds


def test_too_many_equations_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = solvable(6).problem
    monkeypatch.setattr("ccmac.methods.interior.method.COMMON", 0)
    with pytest.raises(MethodRefused, match="cross-ipm needs one dense system for all"):
        solve(problem)


def test_a_resumed_run_has_the_same_bits(tmp_path: Path) -> None:
    problem = solvable(7).problem
    whole = solve(problem)
    solve(problem, max_iterations=3, checkpoint={"path": tmp_path, "every": 1})
    resumed = solve(problem, checkpoint={"path": tmp_path, "every": 1})
    assert resumed.iterations == whole.iterations
    assert np.array_equal(np.concatenate(resumed.x), np.concatenate(whole.x))
    assert resumed.ledger.as_dict() == whole.ledger.as_dict()


def test_a_fall_of_a_problem_without_feasible_point_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """x_0 may grow for ever, but x_1 >= 0 and x_1 = c < 0 exclude each other.

    The first look is kept from seeing that, as where a contradiction shows later than a fall.
    """
    f = Quadratic(np.zeros(2), [100.0, 0.0]) + Box([-np.inf, 0.0], [np.inf, np.inf])
    seen = []
    real = Farkas.test

    def late(self: Farkas, given: Lambda) -> Infeasibility | None:
        seen.append(given)
        return None if len(seen) == 1 else real(self, given)

    monkeypatch.setattr(Farkas, "test", late)
    for c, status in ((-1e-3, "infeasible"), (1e-3, "unbounded")):
        seen.clear()
        problem = ccmac.Problem([ccmac.Agent(f, A=[[0.0, 1.0]], b=[c])] * 2, q=0)
        assert solve(problem).status == status


def test_a_vehicle_that_breaks_its_own_limit_is_named_alone() -> None:
    T = 6
    step = np.eye(T) - np.eye(T, k=-1)
    agents = []
    for i in range(5):
        C = np.block([[step, -np.eye(T), np.zeros((T, T))], [np.zeros((T, T)), step, -np.eye(T)]])
        limit = np.where(np.arange(3 * T) < 2 * T, np.inf, 1e-3 if i == 2 else 1.0)
        lower = -limit
        if i == 2:
            lower[T - 1] = 12.0  # from 10, at rest
        agents.append(
            ccmac.Agent(
                Quadratic(np.diag(np.repeat([0.0, 0.0, 1.0], T))),
                C=C,
                c=5.0 * i * np.eye(2 * T)[0],
                lower=lower,
                upper=limit,
                A=np.eye(T, 3 * T),
                b=np.full(T, 60.0) if i == 0 else None,
            )
        )
    result = ccmac.solve(ccmac.Problem(agents, sense="<="), "ring")
    assert result.status == "infeasible"
    assert (
        "the local equations C of agent 2 and the bounds of agent 2 cannot hold" in result.message
    )
    assert list(result.infeasibility.local) == [2]
