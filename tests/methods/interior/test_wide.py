"""Tables with more columns than rows by interior points, against scikit-learn and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression
from sklearn.svm import SVC, LinearSVC

import ccmac
from ccmac.inputs import Array
from ccmac.vfl import VerticalSVC

ROWS = 40
COLUMNS = 120


def table() -> tuple[Array, Array]:
    random = np.random.default_rng(0)
    X = random.standard_normal((ROWS, COLUMNS))
    return X, X[:, :5] @ random.standard_normal(5) + 0.3 * random.standard_normal(ROWS)


@pytest.mark.parametrize("kind", ["lasso", "elastic net", "logistic", "SVC"])
def test_wide_tables_have_the_objectives_of_scikit_learn(kind: str) -> None:
    X, y = table()
    signs = np.sign(y)
    ridge = {"lasso": 0.0, "logistic": 0.0}.get(kind, 0.1)
    l1 = {"SVC": 0.0, "logistic": 0.03}.get(kind, 0.2)
    loss = {"logistic": "logistic", "SVC": "hinge"}.get(kind, "squared")
    fit = {"fit_intercept": False, "tol": 1e-12, "max_iter": 10**6}
    model = {
        "lasso": lambda: Lasso(l1, **fit),
        "elastic net": lambda: ElasticNet(l1 + ridge, l1_ratio=l1 / (l1 + ridge), **fit),
        "logistic": lambda: LogisticRegression(
            C=1 / (ROWS * l1), l1_ratio=1.0, solver="liblinear", **fit
        ),
        "SVC": lambda: LinearSVC(C=1 / (ROWS * ridge), loss="hinge", **{**fit, "tol": 1e-8}),
    }[kind]()
    labels = y if loss == "squared" else signs

    def value(w: Array) -> float:
        p = X @ w
        each = {
            "squared": (p - y) ** 2 / 2,
            "logistic": np.logaddexp(0, -signs * p),
            "hinge": np.maximum(0, 1 - signs * p),
        }[loss]
        return float(each.mean() + ridge / 2 * w @ w + l1 * np.abs(w).sum())

    problem = ccmac.vfl.problem(X, labels, 8, loss=loss, regularization=ridge, l1=l1)
    result = ccmac.solve(problem, "ring", tol=1e-9)
    assert result.status == "optimal"
    assert result.plan.method == "cross-ipm"
    assert result.ledger.of("solve")["averagings"] <= 60
    right = value(np.ravel(model.fit(X, labels).coef_))
    assert value(problem.weights(result)) <= right * (1 + 1e-8)


def test_the_intercept_of_wide_support_vectors_is_a_column() -> None:
    """The loss then acts row by row: a matrix of rows is summed, without predictions."""
    X, y = table()
    ours = VerticalSVC(parties=4).fit(X, np.sign(y + 1.0))
    theirs = SVC(kernel="linear", tol=1e-10).fit(X, np.sign(y + 1.0))
    assert ours.result_.plan.settings["entries"] == ROWS * (ROWS + 1) // 2 + 2 * ROWS
    assert np.allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    assert np.allclose(ours.intercept_, theirs.intercept_, atol=1e-5)


def test_a_logistic_loss_with_bounds_and_a_budget_is_an_ordinary_problem() -> None:
    random = np.random.default_rng(1)
    X = random.standard_normal((60, 6))
    y = np.sign(X[:, 0] + 0.5 * random.standard_normal(60))
    loss = ccmac.objectives.Logistic
    agents = [
        ccmac.Agent(loss(X[:, part], y), A=np.ones((1, 3)), lower=np.zeros(3))
        for part in (slice(0, 3), slice(3, 6))
    ]
    agents[0] = ccmac.Agent(loss(X[:, :3], y), A=np.ones((1, 3)), b=[1.5], lower=np.zeros(3))
    problem = ccmac.Problem(agents, q=0, sense="<=")
    result = ccmac.solve(problem, "complete", tol=1e-8)
    assert result.status == "optimal"
    assert result.plan.method == "cross-ipm"

    def value(w: Array) -> float:
        return sum(
            agent.objective.value(v, np.zeros(0))
            for agent, v in zip(agents, w.reshape(2, 3), strict=True)
        )

    inside = {"type": "ineq", "fun": lambda w: 1.5 - w.sum()}
    found = scipy.optimize.minimize(
        value, np.full(6, 0.1), bounds=[(0, None)] * 6, constraints=[inside], tol=1e-12
    )
    assert result.objective <= found.fun + 1e-7 * abs(found.fun)
    assert sum(float(v.sum()) for v in result.x) <= 1.5 + 1e-7
