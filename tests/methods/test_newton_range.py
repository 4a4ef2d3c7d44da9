"""Columns sent once, turned: everybody minimises alone, whatever the penalty is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression, Ridge

import ccmac
from ccmac import Agent, Problem, vfl
from ccmac.methods import Auto, CrossNewton
from ccmac.methods.newton.compressed import Turned
from ccmac.objectives import Logistic, Quadratic, Separable, SquaredDistance
from ccmac.runtime import InProcess
from ccmac.vfl import VerticalHuber, VerticalLogisticRegression, VerticalRidge
from ccmac.workspace import Workspace
from ccmac.workspace.dual import gathered_rows

ROWS = 900
RING = ccmac.Network.ring(4)


def table(seed: int = 0) -> tuple[Any, Any]:
    """Columns of very different sizes, one of them nearly another."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((ROWS, 12)) * np.logspace(-1, 1, 12)
    X[:, 3] = X[:, 2] + 1e-4 * random.standard_normal(ROWS)
    chance = 1 / (1 + np.exp(-(X[:, :4].sum(axis=1) + 0.5)))
    return X, np.where(random.random(ROWS) < chance, "yes", "no")


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0, 1e4])
def test_logistic_regression_takes_few_averagings_whatever_the_penalty(C: float) -> None:
    X, y = table()
    ours = VerticalLogisticRegression(C, parties=4, network="ring").fit(X, y)
    theirs = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12, max_iter=500).fit(X, y)
    assert (ours.result_.status, ours.result_.plan.realization) == ("optimal", "range")
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6)
    ledger = ours.result_.ledger
    assert ledger["averagings"] == 0
    assert ledger.total("averagings") <= 14
    sent = 8 * RING_SENDS * ROWS * (12 + 8)  # the columns, and vectors of rows
    assert ledger.total("bytes") <= 1.2 * sent


RING_SENDS = 3  # rows that an agent of a ring of four relays


@pytest.mark.parametrize("averaging", ["relay", "tree", "masked"])
def test_where_rows_are_hidden_it_has_to_be_asked_for(averaging: str) -> None:
    X, y = table()
    problem = vfl.problem(X, y, 4, loss="logistic", regularization=1e-4, intercept=True)
    found = {
        reveal: ccmac.solve(problem, RING, Auto(reveal=reveal), 1e-7, averaging=averaging)
        for reveal in (None, "range", "sketch")
    }
    kinds = {reveal: r.plan and r.plan.realization for reveal, r in found.items()}
    default = "eliminated" if averaging == "masked" else "range"
    assert kinds == {None: default, "range": "range", "sketch": "eliminated"}
    for result in found.values():
        assert result.status == "optimal"
        off = np.linalg.norm(problem.weights(result) - problem.weights(found["range"]))
        assert off <= result.error_bound + found["range"].error_bound


def test_ridge_sends_columns_where_that_is_asked_for_and_cheaper() -> None:
    X, _ = table()
    X = np.tile(X, (40, 1)) + np.random.default_rng(1).standard_normal((40 * ROWS, 12))
    y = X[:, 0] - X[:, 7] + np.random.default_rng(2).standard_normal(len(X))
    ours = VerticalRidge(1e-3, parties=4, network="ring").fit(X, y)
    assert (ours.result_.status, ours.result_.plan.realization) == ("optimal", "range")
    theirs = Ridge(1e-3).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8, atol=1e-9)
    plain = ccmac.solve(vfl.problem(X, y, 4), RING)
    assert plain.plan is not None
    assert plain.plan.method == "cross-cg"


def test_quadratics_of_any_kind_and_agents_without_columns() -> None:
    random = np.random.default_rng(3)
    m = 60
    labels = np.where(random.random(m) < 0.5, -1.0, 1.0)
    root = random.standard_normal((3, 3))
    H = root @ root.T + 0.1 * np.eye(3)
    s = random.standard_normal(3)
    A = random.standard_normal((m, 3))
    b = random.standard_normal(m)
    loss = Logistic(y=labels, weight=0.5)
    B = -0.5 * sp.eye_array(m, format="csr")
    agents = [
        Agent(Separable(x=Quadratic(H, s), z=loss), A=A, B=B, b=b),
        Agent(Separable(x=SquaredDistance(1.0), z=loss), A=np.zeros((m, 1)), B=B),
    ]
    result = ccmac.solve(Problem(agents), None, CrossNewton(reveal="range"), 1e-9)

    def value(x: Any) -> float:
        return float(0.5 * x @ H @ x - s @ x + np.logaddexp(0, -labels * (A @ x - b)).sum())

    best = minimize(value, np.zeros(3), tol=1e-14)
    assert result.status == "optimal"
    np.testing.assert_allclose(result.x[0], best.x, atol=1e-6)
    np.testing.assert_allclose(result.z, A @ result.x[0] - b, atol=1e-9)


def test_what_is_sent_are_columns_that_were_turned() -> None:
    """Their inner products by rows are those of the columns; no column is among them."""
    X, y = table()
    problem = vfl.problem(X, y, 4, loss="logistic", regularization=0.1)
    work = Workspace(problem, InProcess(RING))
    explicit = work.gather_explicit()
    assert explicit is not None
    sent = Turned(work, explicit)
    start = 0
    for i, agent in problem.agents.items():
        rows = sent.E[start : start + problem.d[i]]
        start += problem.d[i]
        np.testing.assert_allclose(rows.T @ rows, agent.A @ agent.A.T / 0.1, atol=1e-10)
        alike = (
            rows @ agent.A / np.outer(np.linalg.norm(rows, axis=1), np.linalg.norm(agent.A, axis=0))
        )
        assert np.abs(alike).max() < 1 - 1e-6


@pytest.mark.parametrize("widths", [(30, 31, 33), (2, 1, 60)])
def test_of_equal_rows_one_is_sent(widths: tuple[int, ...]) -> None:
    """Few kinds of rows at all but one party, one kind alone at another; lengths alike and not."""
    random = np.random.default_rng(3)
    m = 5_000
    kinds = [random.standard_normal((k, w)) for k, w in zip((300, 1, 4_999), widths, strict=True)]
    blocks = [own[random.integers(0, len(own), m)] for own in kinds]
    runtime = InProcess(ccmac.Network.complete(3))
    found = gathered_rows(runtime, blocks, list(widths), m)
    np.testing.assert_allclose(found, np.hstack(blocks).T, rtol=1e-15)
    plain = runtime.vectors_cost([m * w for w in widths])["bytes"]
    assert runtime.ledger.total("bytes") <= plain + 100
    kinds = [np.eye(w) for w in widths]
    few = [own[random.integers(0, len(own), m)] for own in kinds]
    runtime = InProcess(ccmac.Network.complete(3))
    assert np.array_equal(gathered_rows(runtime, few, list(widths), m), np.hstack(few).T)
    assert runtime.ledger.total("bytes") <= plain / 8


def test_huber_of_an_exact_fit_with_dependent_columns() -> None:
    """Of all weights that fit the shortest, with the least scale there is."""
    random = np.random.default_rng(2)
    kinds = [random.integers(0, k, ROWS) for k in (3, 4, 6)]
    X = np.hstack([np.eye(k)[own] for k, own in zip((3, 4, 6), kinds, strict=True)])
    y = X @ random.standard_normal(13) + 1.0
    model = VerticalHuber(parties=3).fit(X, y)
    assert model.result_.status == "optimal"
    assert model.result_.ledger.total("averagings") <= 12
    assert model.scale_ == pytest.approx(1e-6 * y.std())
    np.testing.assert_allclose(model.coef_, np.linalg.pinv(X - X.mean(0)) @ y, atol=1e-5)


def test_huber_on_columns_as_they_come() -> None:
    """Deviations from 0.003 to 600 and hardly any penalty; the objective is the least known."""
    X, y = load_breast_cancer(return_X_y=True)
    ours = VerticalHuber(parties=3).fit(X, y)
    assert ours.result_.status == "optimal"

    def value(point: Any) -> float:
        w, b, sigma = point[:-2], point[-2], np.exp(point[-1])
        r = np.abs(y - X @ w - b) / sigma
        loss = np.where(r < 1.35, r**2, 2 * 1.35 * r - 1.35**2)
        return float(np.sum(sigma + loss * sigma) + 1e-4 * w @ w)

    at = np.array([*ours.coef_, ours.intercept_, np.log(ours.scale_)])
    best = value(at)
    random = np.random.default_rng(0)
    for size in (1e-2, 1e-4, 1e-6):
        for _ in range(200):
            move = size * random.standard_normal(len(at)) / np.append(X.std(axis=0) + 1e-3, [1, 1])
            assert value(at + move) >= best * (1 - 1e-12)
