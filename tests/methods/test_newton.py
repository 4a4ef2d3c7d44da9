"""cross-newton against scipy and scikit-learn: points, bounds, counts, resuming, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import HuberRegressor, LogisticRegression

import ccmac
from ccmac import vfl
from ccmac.errors import MethodRefused
from ccmac.methods import CrossNewton
from ccmac.objectives import Huber, Logistic, Quadratic, Separable, SquaredDistance

Array = np.ndarray
SEEDS = st.integers(0, 10**4)


def table(seed: int, rows: int = 40, columns: int = 9) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    X = random.standard_normal((rows, columns)) * 10.0 ** random.uniform(-1, 1, columns)
    return X, np.sign(X @ random.standard_normal(columns) + random.standard_normal(rows))


def vertical(seed: int, loss: str) -> ccmac.Problem:
    """Four agents with dense and diagonal quadratics, own equations at one, unequal B_i, b_i."""
    random = np.random.default_rng(seed)
    d = (3, 2, 4, 1)
    rows = 12
    beta = np.array([0.7, -0.2, 1.1, 0.4])
    agents = []
    for i, size in enumerate(d):
        root = random.standard_normal((size, size))
        H = root @ root.T + 0.1 * np.eye(size) if i % 2 else random.uniform(0.1, 2.0, size)
        y = random.choice([-1.0, 1.0], rows)
        parts = {
            "logistic": Logistic(y=y, weight=0.3 + i, ridge=0.1 * (i == 1)),
            "huber": Huber(y=3 * y, delta=0.2, weight=0.5),
            "mixed": Huber(y=y) + SquaredDistance(0.2, 2 * y) if i else Logistic(y=y),
            "owner": Logistic(y=y) if i == 2 else None,
        }
        C = random.standard_normal((1, size)) if i == 2 else None
        agents.append(
            ccmac.Agent(
                Separable(x=Quadratic(H, random.standard_normal(size)), z=parts[loss]),
                A=random.standard_normal((rows, size)),
                B=beta[i] * sp.eye_array(rows),
                b=random.standard_normal(rows),
                C=C,
                c=None if C is None else np.ones(1),
            )
        )
    return ccmac.Problem(agents)


def eliminated_minimum(problem: ccmac.Problem) -> tuple[Array, Array]:
    """(x, z) by scipy's trust region on x, z and the local equations eliminated by hand."""
    agents = list(problem.agents.values())
    A = np.hstack([a.A for a in agents])
    beta = sum(a.B.diagonal()[0] for a in agents)
    b = sum(a.b for a in agents)
    ends = np.cumsum([a.A.shape[1] for a in agents])[:-1]
    C = agents[2].C
    row = np.zeros((1, A.shape[1]))
    row[:, ends[1] : ends[2]] = C
    null = scipy.linalg.null_space(row)
    base = np.linalg.pinv(row) @ np.ones(1)

    def both(t: Array) -> tuple[float, Array]:
        x = base + null @ t
        z = (b - A @ x) / beta
        pieces = np.split(x, ends)
        found = [a.objective.gradient(p, z) for a, p in zip(agents, pieces, strict=True)]
        total = np.concatenate([g for g, _ in found]) - A.T @ sum(h for _, h in found) / beta
        value = sum(a.objective.value(p, z) for a, p in zip(agents, pieces, strict=True))
        return float(value), null.T @ total

    t = scipy.optimize.minimize(both, np.zeros(null.shape[1]), jac=True, method="L-BFGS-B").x
    for _ in range(10):  # Newton with a numerical Hessian, to the last digits
        shifts = 1e-6 * np.eye(len(t))
        H = np.stack([(both(t + s)[1] - both(t - s)[1]) / 2e-6 for s in shifts])
        t = t - np.linalg.solve(H, both(t)[1])
        if np.linalg.norm(both(t)[1]) < 1e-12:
            break
    assert np.linalg.norm(both(t)[1]) < 1e-11
    x = base + null @ t
    return x, (b - A @ x) / beta


@given(SEEDS, st.sampled_from(["logistic", "huber", "mixed", "owner"]), st.integers(1, 12))
@settings(max_examples=16)
def test_random_problems_with_true_bounds(seed: int, loss: str, sketch: int) -> None:
    problem = vertical(seed, loss)
    x, z = eliminated_minimum(problem)
    result = ccmac.solve(problem, "ring", CrossNewton(sketch=sketch), 1e-7)
    off = np.linalg.norm(np.concatenate([*result.x, result.z]) - np.concatenate([x, z]))
    assert result.status == "optimal", result.message
    assert result.certificates["rests_on"] == "proved"
    assert off <= result.error_bound + 1e-9
    assert result.error_bound <= 1e-7 * max(1.0, np.linalg.norm(np.concatenate([x, z]))) * 1.01
    assert max(result.residuals[name] for name in ("coupled", "local", "consensus")) <= 1e-10


@pytest.mark.parametrize("owner", [None, 1])
def test_agrees_with_scikit_learn(owner: int | None) -> None:
    """Plain logistic regression: no ridge on z, so that no other smooth method proves anything."""
    X, y = table(3)
    model = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, y)
    problem = vfl.problem(X, y, 3, loss="logistic", regularization=1 / len(y), label_owner=owner)
    result = ccmac.solve(problem, "ring", "cross-newton", 1e-9)
    assert result.status == "optimal"
    np.testing.assert_allclose(problem.weights(result), model.coef_[0], atol=2e-6)
    slope = -y / (1 + np.exp(y * result.z)) / len(y)
    beta = 3 * problem.agents[0].B.diagonal()[0]
    np.testing.assert_allclose(result.multipliers.coupled, -slope / beta, atol=1e-9)


def test_breast_cancer_in_few_rounds() -> None:
    """3 parties, C = 1, standardized: RelErr 1e-6, and certified to 1e-6."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = np.where(y > 0, 1.0, -1.0)
    model = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-13, max_iter=10_000).fit(X, y)
    problem = vfl.problem(X, y, 3, loss="logistic", regularization=1 / len(y))
    spent = {}
    for sketch in (1, 10, None):
        method = CrossNewton(sketch=sketch, reveal="sketch")
        common: dict[str, Any] = {"method": method, "tol": 1e-6}
        known = ccmac.solve(problem, "ring", reference=model.coef_[0], **common)
        proved = ccmac.solve(problem, "ring", **common)
        assert (known.status, proved.status) == ("optimal", "optimal")
        rounds = [known.ledger.of(phase)["rounds"] for phase in ("setup", "solve")]
        spent[sketch] = (*rounds, proved.ledger.total("rounds"))
    assert spent == {1: (3, 13, 27), 10: (3, 7, 20), None: (3, 1, 10)}


@pytest.mark.parametrize("owner", [None, 0])
def test_every_step_costs_what_it_declares(owner: int | None) -> None:
    X, y = table(1)
    problem = vfl.problem(X, y, 4, loss="logistic", regularization=0.01, label_owner=owner)
    runs = [
        ccmac.solve(problem, "ring", CrossNewton(sketch=2), 1e-13, max_iterations=k) for k in (2, 5)
    ]
    spent = runs[1].ledger.of("solve") - runs[0].ledger.of("solve")
    assert runs[1].plan is not None
    assert dict(spent) == dict(3 * runs[1].plan.iteration)
    # A ring of four averages in two rounds; one averaging a step, one for the setup.
    assert runs[1].ledger["rounds"] == 5 * 2
    assert runs[1].ledger["argmins"] == 5 * (3 if owner is None else 2)
    assert runs[1].ledger["gradients"] == 5 * (0 if owner is None else 3)
    assert runs[1].ledger["A"] == 15
    floats = 40 if owner is None else 3 * 40 + 8
    assert runs[1].plan.iteration["bytes"] >= 8 * floats
    assert runs[1].ledger.of("setup")["A"] == 2 * 3


def test_a_full_span_ends_and_auto_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table(7, 60, 30)
    problem = vfl.problem(X, y, 3, loss="logistic", regularization=1e-3)
    monkeypatch.setattr("ccmac.methods.newton.eliminated.LEAST", 6)
    monkeypatch.setattr("ccmac.methods.newton.eliminated.FLOATS", 0)
    result = ccmac.solve(problem, "ring", CrossNewton(sketch=2), 1e-7)
    assert result.plan.settings["span"] == 6
    assert result.status == "stalled"


def test_warm_start_with_prices() -> None:
    X, y = table(2)
    problem = vfl.problem(X, y, 3, loss="logistic", regularization=0.01)
    first = ccmac.solve(problem, "ring", CrossNewton(sketch=1), 1e-8)
    again = ccmac.solve(problem, "ring", CrossNewton(sketch=1), 1e-8, warm_start=first)
    assert again.status == "optimal"
    assert again.iterations < first.iterations


def test_refuses_what_it_cannot_do() -> None:
    X, y = table(0)
    with pytest.raises(MethodRefused, match="cross-newton needs"):
        flat = vfl.problem(X, y, 3, loss="logistic", regularization=0.0)
        ccmac.solve(flat, "ring", "cross-newton")
    with pytest.raises(MethodRefused, match="smooth"):
        ccmac.solve(vfl.problem(X, y, 3, loss="hinge"), "ring", "cross-newton")


def test_the_page_has_the_counts_of_the_small_set() -> None:
    page = (Path(__file__).parents[2] / "docs" / "methods-why.md").read_text(encoding="utf-8")
    assert "| cancer | C = 1 | 4 (4 + 0) | 10 |" in page  # as in the test above


@pytest.mark.parametrize("owner", [False, True], ids=["all know the loss", "one does"])
def test_columns_of_all_sizes_and_little_regularization_are_proved(owner: bool) -> None:
    """Where x has the rounding of its price, it is refined: a few averagings, no stall."""
    random = np.random.default_rng(11)
    sizes = np.geomspace(0.1, 100.0, 8)
    X = random.standard_normal((120, 8)) * sizes
    y = np.sign(X @ (random.standard_normal(8) / sizes) + 0.3 * random.standard_normal(120))
    lam = 1e-2
    parts = np.array_split(np.arange(8), 3)
    agents = [
        ccmac.Agent(
            Separable(
                x=SquaredDistance(lam),
                z=(Logistic(y=y, weight=1 / 120) if i == 0 else None)
                if owner
                else Logistic(y=y, weight=1 / 360),
            ),
            A=X[:, own],
            B=-sp.eye_array(120) / 3,
        )
        for i, own in enumerate(parts)
    ]
    result = ccmac.solve(ccmac.Problem(agents), "ring", "cross-newton", 1e-7)
    assert result.status == "optimal"
    assert result.ledger.total("averagings") <= 40

    def slope(w: Array) -> Array:
        return np.asarray(lam * w - X.T @ (y / (1 + np.exp(y * (X @ w)))) / 120)

    w = np.concatenate(result.x)
    for _ in range(5):
        s = 1 / (1 + np.exp(y * (X @ w)))
        w = w - np.linalg.solve(lam * np.eye(8) + (X.T * (s * (1 - s) / 120)) @ X, slope(w))
    off = np.hypot(np.linalg.norm(np.concatenate(result.x) - w), np.linalg.norm(result.z - X @ w))
    assert off <= result.error_bound <= 1e-7 * max(1.0, np.hypot(*map(np.linalg.norm, (w, X @ w))))


def test_a_tiny_ridge_on_columns_of_all_sizes_is_proved() -> None:
    """Huber's loss with its scale on raw measurements, against the objective in plain words."""
    X, y = load_breast_cancer(return_X_y=True)
    parties = {"a": X[:, :10], "b": X[:, 10:]}
    model = ccmac.vfl.VerticalHuber().fit(parties, y)

    def value(coef: np.ndarray, intercept: float, scale: float) -> float:
        r = np.abs(y - X @ coef - intercept) / scale
        loss = np.where(r < 1.35, r**2, 2 * 1.35 * r - 1.35**2)
        return float(np.sum(scale * (1 + loss)) + 1e-4 * coef @ coef)

    assert model.result_.status == "optimal"
    with pytest.warns(ConvergenceWarning):
        other = HuberRegressor(max_iter=2000).fit(X, y)
    found = value(model.coef_, model.intercept_, model.scale_)
    assert found <= value(other.coef_, other.intercept_, other.scale_)
    for step in (1e-3, -1e-3):  # no coordinate can be moved to gain anything
        for k in range(X.shape[1]):
            moved = model.coef_ * (1 + step * (np.arange(X.shape[1]) == k))
            assert value(moved, model.intercept_, model.scale_) >= found - 1e-9 * found
