"""Long rows on their range: the same solution, in few rounds, with a bound that holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cvxpy
import numpy as np
import pytest
import scipy.sparse as sp

import ccmac
from ccmac import Agent, Network, Problem, vfl
from ccmac.methods import CrossIpm
from ccmac.methods.interior.compressed import compressed, compressible
from ccmac.objectives import L1, Box, Separable, SquaredDistance, Sum
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from ccmac.workspace.dual import rotation

ROWS = 1_300
COLUMNS = 14
RING = Network.ring(4)


def _table(seed: int = 0) -> tuple[Any, Any]:
    """Columns of which two depend on others, one of them very nearly."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((ROWS, COLUMNS))
    X[:, 5] = X[:, 1] - 2 * X[:, 2]
    X[:, 7] = X[:, 3] + 1e-9 * random.standard_normal(ROWS)
    y = X[:, :3] @ [1.0, 2.0, -1.0] + 0.5 * random.standard_normal(ROWS)
    return X, y


def _problem(**terms: float) -> Any:
    return vfl.problem(*_table(), 4, loss="squared", **terms)


def _least(X: Any, y: Any, l1: float, ridge: float) -> float:
    w = cvxpy.Variable(X.shape[1])
    loss = cvxpy.sum_squares(X @ w - y) / (2 * len(y))
    whole = loss + l1 * cvxpy.norm1(w) + ridge / 2 * cvxpy.sum_squares(w)
    problem = cvxpy.Problem(cvxpy.Minimize(whole))
    problem.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12)
    return float(problem.value)


@pytest.mark.parametrize("averaging", ["relay", "tree"])
@pytest.mark.parametrize(("l1", "ridge"), [(0.02, 0.0), (0.02, 0.01)])
def test_lasso_and_elastic_net_are_those_of_clarabel(
    l1: float, ridge: float, averaging: str
) -> None:
    problem = _problem(l1=l1, regularization=ridge)
    result = ccmac.solve(problem, RING, tol=1e-8, averaging=averaging)
    assert (result.status, result.plan and result.plan.realization) == ("optimal", "compressed")
    best = _least(*_table(), l1, ridge)
    gap = result.objective - best
    assert -1e-10 <= gap <= result.certificates["gap"] <= 1e-8
    assert result.certificates["value"] == pytest.approx(result.objective, abs=1e-10)
    assert result.residuals["coupled"] <= 1e-9
    assert result.ledger.of("setup")["averagings"] + result.ledger["averagings"] <= 45
    assert result.multipliers is not None
    price = result.multipliers.coupled
    beta = sum(a.B.diagonal()[0] for a in problem.agents.values())
    slopes = sum(a.objective.z_part.gradient_at(result.z) for a in problem.agents.values())
    assert np.allclose(beta * price + slopes, 0.0, atol=1e-9)
    slope = np.concatenate([a.A.T @ result.multipliers.coupled for a in problem.agents.values()])
    assert np.abs(slope).max() <= l1 + ridge * np.abs(np.concatenate(result.x)).max() + 1e-6


def test_boxes_own_equations_and_right_hand_sides_stay() -> None:
    """Against CVXPY, on agents that the tables of vertical learning do not make."""
    random = np.random.default_rng(3)
    m = 1_250
    d = 4
    agents = []
    x = []
    cost = 0.0
    coupled = -np.zeros(m)
    z = cvxpy.Variable(m)
    for i in range(3):
        A = random.standard_normal((m, d)) / np.sqrt(m)
        b = random.standard_normal(m) / m
        target = random.standard_normal(m)
        C = random.standard_normal((1, d))
        own = Sum(L1(0.3), Box(-0.5, 0.4))
        part = None if i == 2 else SquaredDistance(1.0 + i, target)
        agents.append(
            Agent(
                Separable(own, part),
                A=A,
                B=(i - 2.5) * sp.eye_array(m, format="csr"),
                b=b,
                C=C,
                c=[0.1],
            )
        )
        x.append(cvxpy.Variable(d))
        cost = cost + 0.3 * cvxpy.norm1(x[i])
        if part is not None:
            cost = cost + (1.0 + i) / 2 * cvxpy.sum_squares(z - target)
        coupled = coupled + A @ x[i] + (i - 2.5) * z - b
    limits = [coupled == 0]
    for i, v in enumerate(x):
        limits += [v >= -0.5, v <= 0.4, agents[i].C @ v == 0.1]
    cvxpy.Problem(cvxpy.Minimize(cost), limits).solve(solver=cvxpy.CLARABEL)
    result = ccmac.solve(Problem(agents), Network.ring(3), tol=1e-8)
    assert (result.status, result.plan and result.plan.realization) == ("optimal", "compressed")
    assert result.objective == pytest.approx(cost.value, rel=1e-7)
    for found, expected in zip(result.x, x, strict=True):
        assert np.allclose(found, expected.value, atol=1e-4)


def test_the_small_problem_is_within_its_slack_of_the_whole_one() -> None:
    problem = _problem(l1=0.02, regularization=0.01)
    lift, inner = compressed(Workspace(problem, InProcess(RING)))
    assert lift.rank == COLUMNS - 1  # one column depends, one nearly does
    random = np.random.default_rng(1)
    for size in (1e-3, 1.0, 1e3):
        x = [size * random.standard_normal(d) for d in problem.d.values()]
        agents = problem.agents.values()
        small = inner.problem.agents.values()
        images = sum(a.A @ v for a, v in zip(agents, x, strict=True))
        t = -sum(a.A @ v for a, v in zip(small, x, strict=True)) / lift.beta
        z = -images / lift.beta
        whole = sum(a.objective.value(v, z) for a, v in zip(agents, x, strict=True))
        short = sum(a.objective.value(v, t) for a, v in zip(small, x, strict=True)) + lift.offset
        norm = float(np.sqrt(sum(v @ v for v in x) + z @ z))
        lost = lift.slack(norm, float(np.linalg.norm(t)))
        assert abs(whole - short) <= lost + 1e-13 * whole
        assert lost <= 1e-10 * max(1.0, norm**2)


def test_only_who_has_a_block_can_draw_its_rotation() -> None:
    """What is sent of A_i are products: another matrix of the same shape is turned otherwise."""
    A = np.arange(12.0).reshape(4, 3)
    turn = rotation(A, 3)
    assert np.array_equal(turn, rotation(A.copy(), 3))
    np.testing.assert_allclose(turn.T @ turn, np.eye(3), atol=1e-14)
    changed = A.copy()
    changed[0, 0] = 1e-9
    assert abs(turn - rotation(changed, 3)).max() > 0.1


def test_where_it_does_not_fit_others_go_on() -> None:
    """Masked rows, and losses that are not squared."""
    problem = _problem(l1=0.02, regularization=0.01)
    assert not compressible(Workspace(problem, InProcess(RING, averaging="masked")))
    X, y = _table()
    huber = vfl.problem(X, y, 4, loss="huber", regularization=0.1, l1=0.1)
    assert not compressible(Workspace(huber, InProcess(RING)))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("owner", [None, 2])
def test_hinges_are_those_of_clarabel(owner: int | None, intercept: bool) -> None:
    """Everybody alone where all know them, else with their owner; an intercept is a slack."""
    X, y = _table()
    labels = np.sign(y - 0.5)
    ridge = 0.05
    problem = vfl.problem(
        X, labels, 4, loss="hinge", regularization=ridge, label_owner=owner, intercept=intercept
    )
    result = ccmac.solve(problem, RING, tol=1e-7)
    way = "range" if owner is None else "compressed"
    assert (result.status, result.plan and result.plan.realization) == ("optimal", way)
    w = cvxpy.Variable(COLUMNS)
    b = cvxpy.Variable() if intercept else 0.0
    loss = cvxpy.sum(cvxpy.pos(1 - cvxpy.multiply(labels, X @ w + b))) / ROWS
    best = cvxpy.Problem(cvxpy.Minimize(loss + ridge / 2 * cvxpy.sum_squares(w)))
    best.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11)
    gap = result.objective - float(best.value)
    assert -1e-9 <= gap <= result.certificates["gap"] <= 1e-7
    assert result.multipliers is not None
    price = result.multipliers.coupled
    for agent, x in zip(problem.agents.values(), result.x, strict=True):
        assert np.allclose(agent.A.T @ price + ridge * x, 0.0, atol=1e-4)
    assert abs(price.sum()) <= 1e-9 or not intercept
    if intercept:
        assert problem.intercept(result)[0] == pytest.approx(float(b.value), abs=1e-4)


@pytest.mark.parametrize("C", [0.01, 100.0])
@pytest.mark.parametrize("separable", [False, True])
def test_kinks_that_all_know_are_those_of_clarabel(C: float, separable: bool) -> None:
    """Quantiles of rows with weights, and hinges of classes apart, some rows twice."""
    X, y = _table()
    X[700:1000] = X[:300]
    weights = np.random.default_rng(1).uniform(0.0, 2.0, ROWS) * (y < 3)
    ridge = 1.0 / (C * ROWS)
    more = {"regularization": ridge, "intercept": True}
    w, b = cvxpy.Variable(COLUMNS), cvxpy.Variable()
    if separable:
        labels = np.sign(X[:, 1] + X[:, 2])
        problem = vfl.problem(X, labels, 4, loss="hinge", **more)
        loss = cvxpy.sum(cvxpy.pos(1 - cvxpy.multiply(labels, X @ w + b))) / ROWS
    else:
        problem = vfl.problem(X, y, 4, loss="quantile", quantile=0.8, sample_weight=weights, **more)
        r = y - X @ w - b
        each = cvxpy.maximum(0.8 * r, -0.2 * r)
        loss = weights @ each / weights.sum()
    result = ccmac.solve(problem, RING, tol=1e-8)
    assert (result.status, result.plan and result.plan.realization) == ("optimal", "range")
    assert result.ledger.total("averagings") <= 10
    best = cvxpy.Problem(cvxpy.Minimize(loss + ridge / 2 * cvxpy.sum_squares(w)))
    best.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12)
    gap = result.objective - float(best.value)
    assert -1e-10 <= gap <= result.certificates["gap"] <= 1e-8
    assert gap <= 1e-11 * max(1.0, result.objective) + 1e-12


def test_a_start_nearby_settles_at_once() -> None:
    first = ccmac.solve(_problem(l1=0.02, regularization=0.0), RING, tol=1e-9)
    near = _problem(l1=0.019, regularization=0.0)
    cold, warm = (ccmac.solve(near, RING, tol=1e-9, warm_start=s) for s in (None, first))
    assert warm.status == cold.status == "optimal"
    assert warm.ledger["rounds"] < cold.ledger["rounds"] / 2
    assert warm.objective == pytest.approx(cold.objective, abs=2e-9)


def test_a_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    problem = _problem(l1=0.02, regularization=0.0)
    whole = ccmac.solve(problem, RING, CrossIpm(), tol=1e-8)
    kept = {"path": tmp_path / "c", "every": 1}
    ccmac.solve(problem, RING, CrossIpm(), tol=1e-8, checkpoint=kept, max_iterations=4)
    again = ccmac.solve(problem, RING, CrossIpm(), tol=1e-8, checkpoint=kept)
    assert again.iterations == whole.iterations
    assert all(np.array_equal(a, b) for a, b in zip(again.x, whole.x, strict=True))
    assert np.array_equal(again.z, whole.z)
