"""Vertical estimators against scikit-learn on the joined table: the table of docs/vertical.md.

    python benchmarks/vertical.py [--data a9a,mushrooms,...] [--models ridge,...] [--tol 1e-8]

Columns: data, model, parties, method, status, rounds, seconds here and there, relative differences
of coefficients, intercepts, objective and scores of rows left out, and the test score of both.
scikit-learn is refitted with a tolerance of 1e-12.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import ElasticNet, HuberRegressor, Lasso, LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import ccmac
from ccmac.paper.data import load
from ccmac.vfl import (
    VerticalElasticNet,
    VerticalHuber,
    VerticalLasso,
    VerticalLogisticRegression,
    VerticalRidge,
    VerticalSVC,
)

SAMPLE = 5000  # rows of a9a
PARTIES = {"a9a": 8, "mushrooms": 8, "breast cancer": 3, "diabetes": 3, "wine": 3}
REGRESSION = ("ridge", "elastic net", "lasso", "huber")


def table(name: str) -> tuple[Any, Any]:
    """(X, y); small tables are standardized, the sparse ones are as they come."""
    if name in ("a9a", "mushrooms"):
        data = load(name)
        X = sp.csr_matrix(data.X)
        y = data.y
        chosen = np.random.default_rng(0).permutation(len(y))[:SAMPLE] if name == "a9a" else ...
        return (X, y) if chosen is ... else (X[np.sort(chosen)], y[np.sort(chosen)])
    loader = {"breast cancer": load_breast_cancer, "diabetes": load_diabetes, "wine": load_wine}
    X, y = loader[name](return_X_y=True)
    return StandardScaler().fit_transform(X), y


def pair(model: str, data: str, tol: float | None) -> tuple[Any, Any]:
    """The estimators, ours and scikit-learn's."""
    ours: dict[str, Any] = {"parties": PARTIES[data]} | ({} if tol is None else {"tol": tol})
    alpha = 1.0 if data == "diabetes" else 0.01
    fine: dict[str, Any] = {"tol": 1e-12, "max_iter": 1_000_000}
    newton = LogisticRegression(solver="newton-cholesky", tol=1e-12, max_iter=1000)
    ridge = Ridge(solver="lsqr" if data in ("a9a", "mushrooms") else "cholesky", tol=1e-13)
    huber = HuberRegressor(max_iter=100_000, tol=1e-9)
    return {
        "ridge": (VerticalRidge(**ours), ridge),
        "elastic net": (VerticalElasticNet(alpha, **ours), ElasticNet(alpha, **fine)),
        "lasso": (VerticalLasso(alpha, **ours), Lasso(alpha, **fine)),
        "huber": (VerticalHuber(**ours), huber),
        "logistic": (VerticalLogisticRegression(**ours), newton),
        "svc": (VerticalSVC(**ours), SVC(kernel="linear", tol=1e-6)),
    }[model]


def objective(model: str, estimator: Any, X: Any, y: Any, alpha: float) -> float:
    """The value that scikit-learn minimises (NaN where it is not told here)."""
    w = np.ravel(estimator.coef_)
    b = np.ravel(estimator.intercept_)
    if model not in ("elastic net", "lasso", "svc", "huber") or len(b) > 1:
        return float("nan")
    scores = np.asarray(X @ w).ravel() + b[0]
    if model == "huber":
        ratio = np.abs(y - scores) / estimator.scale_
        epsilon = estimator.epsilon
        loss = np.where(ratio <= epsilon, ratio**2, 2 * epsilon * ratio - epsilon**2)
        return float(estimator.scale_ * (1 + loss).sum() + alpha * w @ w)
    if model == "svc":
        signs = np.where(y == estimator.classes_[1], 1.0, -1.0)
        return float(0.5 * w @ w + np.maximum(0.0, 1.0 - signs * scores).sum())
    ratio = 1.0 if model == "lasso" else 0.5
    penalty = alpha * (ratio * np.abs(w).sum() + 0.5 * (1 - ratio) * float(w @ w))
    return float(np.mean((scores - y) ** 2) / 2 + penalty)


def apart(a: Any, b: Any) -> float:
    return float(
        np.linalg.norm(np.ravel(a) - np.ravel(b)) / max(np.linalg.norm(np.ravel(b)), 1e-300)
    )


def line(data: str, model: str, tol: float | None) -> str:
    """One row of the table."""
    X, y = table(data)
    rows = np.random.default_rng(1).permutation(X.shape[0])
    test = np.sort(rows[: len(rows) // 5])
    train = np.sort(rows[len(rows) // 5 :])
    ours, theirs = pair(model, data, tol)
    start = time.perf_counter()
    ours.fit(X[train], y[train])
    here = time.perf_counter() - start
    full = X.toarray() if model != "ridge" and sp.issparse(X) else X
    start = time.perf_counter()
    theirs.fit(full[train], y[train])
    there = time.perf_counter() - start
    alpha = getattr(ours, "alpha", 1.0)
    value, known = (objective(model, e, X[train], y[train], alpha) for e in (ours, theirs))
    both = ((ours, X[test]), (theirs, full[test]))
    scores = [(getattr(e, "decision_function", None) or e.predict)(rows) for e, rows in both]
    accuracy = [e.score(rows, y[test]) for e, rows in both]
    differences = [
        apart(ours.coef_, theirs.coef_),
        apart(ours.intercept_, theirs.intercept_),
        (value - known) / known,
        apart(*scores),
    ]
    done = ours.result_
    return (
        f"| {data} | {model} | {PARTIES[data]} | {done.plan.method} | {done.status} "
        f"| {done.ledger['rounds']:,} | {here:.2f} | {there:.2f} | "
        + " | ".join(f"{value:.0e}" for value in differences)
        + f" | {accuracy[0]:.4f} | {accuracy[1]:.4f} |"
    )


def ridge_time(runs: int = 5) -> str:
    """Wall time of VerticalRidge on mushrooms, 8 parties, over Ridge(solver="lsqr"): medians."""
    X, y = table("mushrooms")
    times: dict[str, list[float]] = {"ours": [], "lsqr": []}
    for _ in range(runs):
        for name, model in (("ours", VerticalRidge(parties=8)), ("lsqr", Ridge(solver="lsqr"))):
            start = time.perf_counter()
            model.fit(X, y)
            times[name].append(time.perf_counter() - start)
    ours, lsqr = (statistics.median(times[name]) for name in ("ours", "lsqr"))
    phases = VerticalRidge(parties=8).fit(X, y).result_.ledger.as_dict().values()
    sent = sum(phase.get("bytes", 0) for phase in phases)
    return (
        f"mushrooms, 8 parties: {ours:.3f} s, lsqr {lsqr:.3f} s, ratio {ours / lsqr:.1f}; the "
        f"busiest party sends {sent / 1e6:.1f} MB, all tables hold {12 * X.nnz / 1e6:.1f} MB"
    )


def sent(averaging: str) -> str:
    """What ridge regression on the whole a9a sends, against joining the tables (12 bytes an entry).

    Bytes do not depend on how many entries of a row are filled, so that they tell the break-even.
    """
    data = load("a9a")
    X = sp.csr_matrix(data.X)
    problem = ccmac.vfl.problem(X, data.y, 8, regularization=1e-2)
    result = ccmac.solve(problem, "ring", tol=1e-6, averaging=averaging, progress=False)
    most = sum(phase.get("bytes", 0) for phase in result.ledger.as_dict().values())
    return (
        f"a9a, ring of 8, {averaging}: the busiest sends {most / 1e6:.0f} MB, the tables hold "
        f"{12 * X.nnz / 1e6:.1f} MB; break-even at {most / 12 / X.shape[0]:.0f} entries a row"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=",".join(PARTIES))
    parser.add_argument("--models", default="ridge,elastic net,lasso,logistic,svc,huber")
    parser.add_argument("--tol", type=float, default=None)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| data | model | parties | method | status | rounds | s | s there | coef | intercept "
        "| objective | scores | test | test there |"
    )
    print("|" + "---|" * 14)
    for data in asked.data.split(","):
        for model in asked.models.split(","):
            if (data == "diabetes") > (model in REGRESSION) or (
                data == "wine" and model == "huber"
            ):
                continue
            print(line(data, model, asked.tol), flush=True)
    print(ridge_time())
    print(sent("relay"), sent("tree"), sep="\n")


if __name__ == "__main__":
    main()
