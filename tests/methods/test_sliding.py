"""cross-sliding: schedule, ledger, modes, certificates, refusals."""

from __future__ import annotations

import itertools

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import ccmac
from ccmac.errors import InputError, MethodRefused
from ccmac.methods import CrossSliding
from ccmac.objectives import L1, MaxAffine, SquaredDistance, Sum
from ccmac.paper.schedules.sliding import balanced_phase, certified_phases
from methods.convex_problems import case

Array = NDArray[np.float64]


def equations(seed: int, d: int = 12, rows: int = 4) -> tuple[Array, Array, Array]:
    """K, v, a with K of full rank."""
    rng = np.random.default_rng(seed)
    K = rng.standard_normal((rows, d))
    return K, K @ rng.standard_normal(d), rng.standard_normal(d)


def absolute_stack(seed: int) -> tuple[ccmac.Stack, float, Array, Array]:
    """min ||x - a||_1 s.t. K x = v in two channels; value, solution and multiplier by Clarabel."""
    K, v, a = equations(seed)
    x = cvxpy.Variable(len(a))
    equality = K @ x == v
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm1(x - a)), [equality])
    problem.solve(solver=cvxpy.CLARABEL)
    stack = ccmac.Stack(L1(1.0, centre=a), [(K[:2], v[:2]), (K[2:], v[2:])])
    return stack, float(problem.value), np.asarray(x.value), np.asarray(equality.dual_value)


def test_halving_eps_doubles_calls_and_quadruples_subgradients() -> None:
    """Orders of Theorem thm:nonsmooth-upper, over the schedule."""
    phases = [balanced_phase(1.4, 0.5, 3.0, 2.0, 0.05 / 2**k) for k in range(5)]
    for before, after in itertools.pairwise(phases):
        assert after.affine / before.affine == pytest.approx(2.0, rel=0.05)
        assert after.subgradients / before.subgradients == pytest.approx(4.0, rel=0.08)


def test_restarts_save_a_square_root() -> None:
    """eps / 4 doubles the calls and quadruples the subgradients, asymptotically."""
    totals = []
    for k in range(4, 9):
        phases = certified_phases(1.4, 0.5, 3.0, 2.0, 0.1 / 4.0**k, 0.5)
        totals.append([sum(p.affine for p in phases), sum(p.subgradients for p in phases)])
    calls, subgradients = np.array(totals, dtype=float).T
    assert calls[-1] / calls[-2] == pytest.approx(2.0, rel=0.05)
    assert subgradients[-1] / subgradients[-2] == pytest.approx(4.0, rel=0.08)


def executed(stack: ccmac.Stack, radius: float, epsilon: float) -> ccmac.Result:
    """A whole run of the certified schedule; its ledger is the predicted one."""
    result = ccmac.solve(
        stack, method=CrossSliding(schedule="certified", radius=radius, accuracy=epsilon)
    )
    assert result.ledger["affine"] == result.certificates["affine"]
    assert result.ledger["gradients"] == result.certificates["subgradients"]
    return result


def counts_of(result: ccmac.Result) -> tuple[int, int]:
    """(affine calls, subgradients)."""
    return result.ledger["affine"], result.ledger["gradients"]


def test_executed_counts_follow_eps() -> None:
    """Halved twice: affine calls x 2, subgradients x 4."""
    stack, _, solution, _ = absolute_stack(1)
    radius = float(np.linalg.norm(solution))
    runs = [counts_of(executed(stack, radius, 4.0 / 2**k)) for k in range(3)]
    for before, after in itertools.pairwise(runs):
        assert after[0] / before[0] == pytest.approx(2.0, rel=0.05)
        assert after[1] / before[1] == pytest.approx(4.0, rel=0.08)


def test_executed_counts_follow_the_cross_factor() -> None:
    """Two channels at one angle: chi x 8, affine calls x 8, subgradients alike."""
    rng = np.random.default_rng(4)
    U, V = np.split(np.linalg.qr(rng.standard_normal((12, 4)))[0].T, 2)
    inside = rng.standard_normal(12)
    runs = []
    for chi in (1.0, 8.0):
        c = (chi**2 - 1) / (chi**2 + 1)
        tilted = c * U + np.sqrt(1 - c * c) * V
        channels = [(U, U @ inside), (tilted, tilted @ inside)]
        runs.append(counts_of(executed(ccmac.Stack(L1(1.0), channels), 4.0, 1.0)))
    assert runs[1][0] / runs[0][0] == pytest.approx(8.0, rel=0.1)
    assert runs[1][1] / runs[0][1] == pytest.approx(1.0, rel=0.15)


@settings(max_examples=8)
@given(st.integers(0, 10_000))
def test_minimum_norm_multiplier_is_bounded(seed: int) -> None:
    """||lambda*|| <= M / sigma (Lemma lem:ns-dual-radius)."""
    K, _, _ = equations(seed)
    _, _, _, multiplier = absolute_stack(seed)
    sigma = np.linalg.svd(K, compute_uv=False)[-1]
    assert np.linalg.norm(multiplier) <= np.sqrt(K.shape[1]) / sigma * (1 + 1e-6)


def test_certified_ledger_and_gap() -> None:
    """2N affine calls and N T subgradients as scheduled; the gap is below eps."""
    stack, value, solution, _ = absolute_stack(1)
    radius = float(np.linalg.norm(solution))
    for epsilon in (4.0, 2.0):
        result = executed(stack, radius, epsilon)
        assert result.status == "optimal"
        assert result.objective - value <= epsilon


@pytest.mark.slow
def test_certified_restarts_reach_the_solution() -> None:
    """A strongly convex F: more phases, each from the average of the last.

    Two of them where eps is just below mu R^2 / 8; they are shortest if F is steep by mu alone.
    """
    K, v, a = equations(5, d=6, rows=2)
    x = cvxpy.Variable(6)
    cost = 0.2 * cvxpy.norm1(x - a) + 0.5 * cvxpy.sum_squares(x)
    reference = cvxpy.Problem(cvxpy.Minimize(cost), [K @ x == v])
    reference.solve(solver=cvxpy.CLARABEL)
    stack = ccmac.Stack(Sum(L1(0.2, centre=a), SquaredDistance(1.0)), [(K, v)])
    radius = float(np.linalg.norm(x.value))
    epsilon = radius**2 / 8.2
    result = ccmac.solve(
        stack,
        method=CrossSliding(
            schedule="certified",
            radius=radius,
            accuracy=epsilon,
            lipschitz=0.2 * 6**0.5 + 4 * radius,
        ),
    )
    assert result.certificates["phases"] > 1
    assert result.objective - reference.value <= epsilon
    assert np.linalg.norm(result.x[0] - x.value) <= np.sqrt(2 * epsilon) * (1 + 1e-12)


def test_maxima_without_a_prox_are_refused_by_what_would_work() -> None:
    stack = ccmac.Stack(MaxAffine(np.eye(3)), [(np.ones((1, 3)), np.ones(1))])
    with pytest.raises(MethodRefused, match='schedule="certified", radius=R'):
        ccmac.solve(stack)


def test_sums_without_a_prox_take_gradients_of_their_smooth_part() -> None:
    """They are split."""
    sample = case("composite", 0)
    method = ccmac.methods.CrossSliding(radius=sample.radius)
    result = ccmac.solve(sample.problem, sample.network, tol=1e-2, method=method)
    assert result.status == "optimal"
    assert result.certificates["mode"] == "proximal gradient"
    assert result.objective - sample.value <= 1e-2 * max(1.0, sample.value)


def test_boxes_pass_through_proximal_steps_only() -> None:
    """Elsewhere they are refused by name."""
    sample = case("box", 0)
    certified = CrossSliding(schedule="certified", radius=9.0)
    for method in (certified, "cross-continuation", "cross-apapc"):
        with pytest.raises(MethodRefused, match=r"Box|cross-sliding|cross-ipm"):
            ccmac.solve(sample.problem, sample.network, method=method)
    result = ccmac.solve(sample.problem, sample.network, tol=1e-3)
    assert result.status == "optimal"
    for block in result.x:
        assert np.all(np.abs(block) <= 4.0 + 1e-9)


def test_certified_needs_constants() -> None:
    """In one line each."""
    stack, _, _, _ = absolute_stack(1)
    with pytest.raises(InputError, match=r'CrossSliding\(schedule="certified", radius=R\)'):
        CrossSliding(schedule="certified")
    ridge = ccmac.Stack(Sum(L1(1.0), SquaredDistance(1.0)), stack.channels)
    with pytest.raises(InputError, match="lipschitz=M"):
        ccmac.solve(ridge, method=CrossSliding(schedule="certified", radius=1.0))
    with pytest.raises(InputError, match="unknown"):
        CrossSliding(schedule="quick")
    with pytest.raises(InputError, match="lipschitz belongs to schedule 'certified'"):
        CrossSliding(lipschitz=1.0)


def test_a_warm_start_saves_iterations() -> None:
    """x, z and prices of an earlier run."""
    sample = case("hinge", 0)
    given = {"method": "cross-sliding", "tol": 1e-5}
    cold = ccmac.solve(sample.problem, sample.network, **given)
    warm = ccmac.solve(sample.problem, sample.network, warm_start=cold, **given)
    assert warm.iterations < cold.iterations


@pytest.mark.parametrize("kind", ["lasso", "composite"])
def test_static_cost_is_the_measured_one(kind: str) -> None:
    """One proximal step, with or without a smooth part."""
    sample = case(kind, 1)
    result = ccmac.solve(sample.problem, sample.network, max_iterations=2, tol=1e-9)
    assert result.plan is not None
    assert dict(result.ledger.of("solve")) == dict(2 * result.plan.iteration)


def test_auto_says_why() -> None:
    """The regime, from what the objectives declare."""
    expected = {
        "least-squares": ("cross-ipm", "flat directions"),
        "logistic": ("cross-ipm", "flat directions"),
        "absolute": ("cross-ipm", "kinks"),
        "hinge": ("cross-ipm", "kinks"),
    }
    for kind, (method, why) in expected.items():
        sample = case(kind, 0)
        plan = ccmac.plan(sample.problem, sample.network)
        assert plan.method == method
        assert why in plan.why


def test_rows_hold_to_tol_however_large_the_objective() -> None:
    """F = 3.6e6 and hardly any slope: at the start F - F* <= tol F, but no row holds."""
    random = np.random.default_rng(3)
    agents = [
        ccmac.Agent(
            L1(1e-3, centre=np.full(3, 3e8)), A=random.standard_normal((2, 3)), b=np.ones(2)
        )
        for _ in range(4)
    ]
    tol = 1e-6
    result = ccmac.solve(ccmac.Problem(agents), "ring", CrossSliding(), tol, max_iterations=2000)
    A = np.hstack([agent.A for agent in agents])
    x = np.concatenate(result.x)
    length = np.linalg.norm(A, axis=1)
    side = 4.0
    off = np.abs(A @ x - side) / length / np.maximum(1.0, side / length)
    assert result.status == "optimal"
    assert off.max() <= tol
