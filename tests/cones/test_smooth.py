"""Smooth losses with bounds, kinks, cones and budgets, held against CVXPY with Clarabel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import ccmac
from ccmac.cones import SecondOrder
from ccmac.objectives import L1, Huber, Logistic, Quadratic, Separable, SquaredDistance, Tweedie

N = 3
D = 4
ROWS = 15
BALL = np.vstack([np.zeros(D), -np.eye(D)])


def table(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and classes of agent k."""
    rng = np.random.default_rng(k)
    X = rng.standard_normal((ROWS, D))
    return X, np.sign(X @ np.ones(D) + rng.standard_normal(ROWS))


def logistic(X: Any, y: Any, x: Any) -> Any:
    return cp.sum(cp.logistic(-cp.multiply(y, X @ x)))


def huber(X: Any, y: Any, x: Any) -> Any:
    return 0.5 * cp.sum(cp.huber(X @ x - y, 0.5))


def poisson(X: Any, y: Any, x: Any) -> Any:
    return cp.sum(cp.exp(X @ x) - cp.multiply(1 + y, X @ x))


LOSSES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "logistic": (Logistic, logistic),
    "huber": (lambda X, y: Huber(X, y, 0.5), huber),
    "poisson": (lambda X, y: Tweedie(X, 1 + y), poisson),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("limit", ["bounds", "cones", "kinks"])
def test_a_loss_with_a_budget_is_an_ordinary_problem(loss: str, limit: str) -> None:
    ours, theirs = LOSSES[loss]
    A = np.random.default_rng(7).uniform(0.5, 1.5, (N, 1, D))
    agents = []
    x = [cp.Variable(D) for _ in range(N)]
    cost: Any = 0
    rows: list[Any] = [sum(A[k] @ x[k] for k in range(N)) <= -0.6]
    for k in range(N):
        f = ours(*table(k))
        cost += theirs(*table(k), x[k])
        more: dict[str, Any] = {}
        if limit == "bounds":
            more = {"lower": -0.5, "upper": 0.4}
            rows += [x[k] >= -0.5, x[k] <= 0.4]
        if limit == "cones":
            more = {"G": BALL, "h": np.eye(D + 1)[0] * 0.6, "cones": [SecondOrder(D + 1)]}
            rows.append(cp.norm(x[k]) <= 0.6)
        if limit == "kinks":
            f = f + L1(2.0)
            cost += 2.0 * cp.norm1(x[k])
        agents.append(ccmac.Agent(Separable(x=f), A=A[k], b=[-0.2], **more))
    result = ccmac.solve(ccmac.Problem(agents, q=0, sense="<="), "path", tol=1e-8)
    model = cp.Problem(cp.Minimize(cost), rows)
    model.solve(solver=cp.CLARABEL)
    offset = sum(f.value(np.zeros(D), np.zeros(0)) for f in (a.objective for a in agents))
    offset -= sum(theirs(*table(k), np.zeros(D)).value for k in range(N))  # constants of a loss
    assert result.status == "optimal"
    assert result.plan.method == "cross-ipm"  # type: ignore[union-attr]
    assert result.objective - offset == pytest.approx(model.value, rel=1e-6)
    assert result.multipliers.coupled == pytest.approx(rows[0].dual_value, abs=1e-4)


def test_columns_of_an_l1_logistic_regression_are_split() -> None:
    X, _ = table(0)
    X = np.hstack([X, np.random.default_rng(9).standard_normal((ROWS, 20))])
    y = np.sign(X[:, 0] + X[:, 1])
    parts = np.split(np.arange(24), 3)
    agents = [
        ccmac.Agent(
            Separable(x=L1(0.3), z=Logistic(y=y) if k == 0 else None),
            A=X[:, part],
            B=-np.eye(ROWS) / 3,
        )
        for k, part in enumerate(parts)
    ]
    result = ccmac.solve(ccmac.Problem(agents), "path", "cross-ipm", tol=1e-8)
    w = cp.Variable(24)
    model = cp.Problem(cp.Minimize(logistic(X, y, w) + 0.3 * cp.norm1(w)))
    model.solve(solver=cp.CLARABEL)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(model.value, rel=1e-7)
    assert result.ledger.of("solve")["averagings"] <= 60


def test_a_function_of_ones_own_with_a_hessian_may_have_cones() -> None:
    def softplus(x: Any, z: Any) -> float:
        return float(np.logaddexp(0.0, x + z).sum())

    def slope(x: Any, z: Any) -> Any:
        s = 1.0 / (1.0 + np.exp(-x - z))
        return s, s

    def hessian(x: Any, z: Any, u: Any, v: Any) -> Any:
        s = 1.0 / (1.0 + np.exp(-x - z))
        bend = s * (1.0 - s) * (u + v)
        return bend, bend

    own = ccmac.objectives.Custom(softplus, slope, 0.5, 0.0, hessian=hessian)
    ball = {"G": np.vstack([np.zeros(2), -np.eye(2)]), "h": [1.0, 0, 0], "cones": [SecondOrder(3)]}
    agents = [
        ccmac.Agent(own, A=[[1.0, 1.0]], b=[0.5], **ball),
        ccmac.Agent(Quadratic(np.eye(4), [0, 0, 1.0, -1.0]), A=[[1.0, 0.0]]),
    ]
    result = ccmac.solve(ccmac.Problem(agents, q=2), "path", tol=1e-8)
    x, u, z = cp.Variable(2), cp.Variable(2), cp.Variable(2)
    cost = cp.sum(cp.logistic(x + z)) + 0.5 * cp.sum_squares(cp.hstack([u, z])) - z[0] + z[1]
    model = cp.Problem(cp.Minimize(cost), [cp.sum(x) + u[0] == 0.5, cp.norm(x) <= 1.0])
    model.solve(solver=cp.CLARABEL)
    assert result.status in ("optimal", "converged")  # its constants are vouched for
    assert result.objective == pytest.approx(model.value, rel=1e-6)


def test_a_loss_on_rows_that_exclude_each_other_is_infeasible() -> None:
    agents = [
        ccmac.Agent(Separable(x=Logistic(*table(k))), A=np.ones((1, D)), b=[3.0], upper=0.5)
        for k in range(2)
    ]
    result = ccmac.solve(ccmac.Problem(agents, q=0), "path")
    assert result.status == "infeasible"


def test_a_warm_start_takes_the_curvature_at_its_point() -> None:
    f = Separable(x=Logistic(*table(1)) + SquaredDistance(0.1))
    agents = [ccmac.Agent(f, A=np.ones((1, D)), b=[-0.3], lower=-0.1)] * 2
    first = ccmac.solve(ccmac.Problem(agents, q=0), "path", "cross-ipm", tol=1e-9)
    again = ccmac.solve(ccmac.Problem(agents, q=0), "path", "cross-ipm", warm_start=first)
    assert again.status == "optimal"
    assert again.iterations <= first.iterations


@pytest.mark.parametrize("seed", [2, 5, 8])
def test_a_loss_without_curvature_at_the_start_is_not_left_behind(seed: int) -> None:
    """Far targets: at zero all residuals are on the straight parts of Huber's loss."""
    rng = np.random.default_rng(seed)
    tables = [(3.0 * rng.standard_normal((12, 2)), 10 * rng.standard_normal(12)) for _ in range(N)]
    A = rng.standard_normal((N, 1, 2))
    agents = [
        ccmac.Agent(Separable(x=Huber(X, y, 0.1)), A=A[k], b=[0.1], upper=2.0)
        for k, (X, y) in enumerate(tables)
    ]
    result = ccmac.solve(ccmac.Problem(agents, q=0), "path", "cross-ipm")
    x = [cp.Variable(2) for _ in range(N)]
    cost = sum(0.5 * cp.sum(cp.huber(X @ v - y, 0.1)) for (X, y), v in zip(tables, x, strict=True))
    rows = [sum(A[k] @ x[k] for k in range(N)) == 0.3, *(v <= 2.0 for v in x)]
    model = cp.Problem(cp.Minimize(cost), rows)
    model.solve(solver=cp.CLARABEL)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(model.value, rel=2e-6)
