"""What vertical fits cost, over scikit-learn on the joined table: docs/vertical-cost.md.

    python benchmarks/vertical_cost.py [--data a9a,w8a,...] [--models ridge,...] [--write PAGE]

Eight parties, all to all, default options; the wide table has two parties. CPU is process time of
the fit with everything included, all parties in one process; work that all repeat is done once.
MB are sent by the busiest party. ``apart`` is the relative difference of the coefficients, for
kinks that of the objective.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import ElasticNet, HuberRegressor, Lasso, LogisticRegression, Ridge
from sklearn.svm import SVC

from ccmac.paper.data import load
from ccmac.vfl import (
    VerticalElasticNet,
    VerticalHuber,
    VerticalLasso,
    VerticalLogisticRegression,
    VerticalRidge,
    VerticalSVC,
)

SETS = ("mushrooms", "a9a", "w8a", "forest", "wide")
MODELS = (
    "ridge",
    "logistic C=0.01",
    "logistic C=1",
    "logistic C=100",
    "lasso",
    "elastic net",
    "huber",
    "svc",
)
ONLY = {"svc": ("mushrooms",), "huber": ("mushrooms", "a9a", "forest", "wide")}
HEAD = """# What vertical fits cost

`python benchmarks/vertical_cost.py --write docs/vertical-cost.md` writes this page. It compares
vertical fits with scikit-learn on the joined table.

- Eight parties talk all to all, with default options. `wide` has two, of 30 and 300 columns,
  and 100,000 rows. `forest` has 100,000 rows: 10 numbers and two one-hot categories, 54 columns.
- CPU is that of one process, which plays all parties and does common work once.
- MB are sent by the busiest party.
- `apart` is the relative difference of coefficients; with kinks and of Huber that of the objective.
- Labels are -1 and 1, also for regressions. `huber` on mushrooms and a9a is an exact
  fit of most rows, whose scale is the least that counts: averagings and MB are those of its second
  and last solve.

"""
COLUMNS = "| data | model | status | averagings | MB | CPU s | scikit-learn | ratio | apart |\n"


def wide() -> tuple[Any, Any]:
    """100,000 rows of 30 and 300 normal columns."""
    random = np.random.default_rng(0)
    bank = random.standard_normal((100_000, 30))
    shop = random.standard_normal((100_000, 300))
    weights = random.standard_normal(330) / 10
    scores = np.hstack([bank, shop]) @ weights
    return [bank, shop], np.where(random.random(100_000) < 1 / (1 + np.exp(-scores)), 1.0, -1.0)


def forest() -> tuple[Any, Any]:
    """100,000 rows: 10 numbers of different sizes, one of 4 areas, one of 40 soils."""
    random = np.random.default_rng(0)
    numbers = random.standard_normal((100_000, 10)) * [1, 1, 1, 2, 2, 5, 0.3, 0.3, 0.3, 5]
    area = np.eye(4)[random.integers(0, 4, 100_000)]
    soil = np.eye(40)[np.minimum(random.geometric(0.1, 100_000) - 1, 39)]
    X = np.hstack([numbers, area, soil])
    scores = X @ (random.standard_normal(54) * 0.7)
    return X, np.where(random.random(100_000) < 1 / (1 + np.exp(-scores)), 1.0, -1.0)


def table(name: str) -> tuple[Any, Any, Any, dict[str, Any]]:
    """(what the parties fit, the joined table, labels, parties=)."""
    if name == "wide":
        X, y = wide()
        return X, np.hstack(X), y, {}
    if name == "forest":
        X, y = forest()
        return X, X, y, {"parties": 8}
    found = load(name)
    X = sp.csr_matrix(found.X)
    return X, X, found.y, {"parties": 8}


def pair(model: str, more: dict[str, Any]) -> tuple[Any, Any]:
    """The estimators, ours and scikit-learn's."""
    if model.startswith("logistic"):
        C = float(model.partition("=")[2])
        return VerticalLogisticRegression(C, **more), LogisticRegression(
            C=C, tol=1e-8, max_iter=2000, solver="newton-cholesky"
        )
    return {
        "ridge": (VerticalRidge(**more), Ridge(solver="lsqr", tol=1e-8)),
        "lasso": (VerticalLasso(0.01, **more), Lasso(0.01, tol=1e-8)),
        "elastic net": (VerticalElasticNet(0.01, **more), ElasticNet(0.01, tol=1e-8)),
        "huber": (VerticalHuber(**more), HuberRegressor(max_iter=10_000, tol=1e-6)),
        "svc": (VerticalSVC(**more), SVC(kernel="linear")),
    }[model]


def value(estimator: Any, X: Any, y: Any) -> float:
    """The objective that scikit-learn minimises, of hinges, absolute values and Huber's loss."""
    coef = estimator.coef_
    w = np.ravel(coef.toarray() if sp.issparse(coef) else coef)
    b = float(np.ravel(estimator.intercept_)[0])
    scores = np.asarray(X @ w).ravel() + b
    if hasattr(estimator, "scale_"):
        ratio = np.abs(y - scores) / estimator.scale_
        loss = np.where(ratio <= 1.35, ratio**2, 2 * 1.35 * ratio - 1.35**2)
        return float(estimator.scale_ * (1 + loss).sum() + 1e-4 * w @ w)
    if hasattr(estimator, "classes_"):
        return float(0.5 * w @ w + np.maximum(0, 1 - y * scores).sum())
    ratio = getattr(estimator, "l1_ratio", 1.0)
    penalty = 0.01 * (ratio * np.abs(w).sum() + 0.5 * (1 - ratio) * float(w @ w))
    return float(np.mean((scores - y) ** 2) / 2 + penalty)


def timed(estimator: Any, X: Any, y: Any) -> float:
    begun = time.process_time()
    estimator.fit(X, y)
    return time.process_time() - begun


def line(name: str, model: str) -> str:
    """One row of the table."""
    X, joined, y, more = table(name)
    ours, theirs = pair(model, more)
    here = timed(ours, X, y)
    there = timed(theirs, joined, y)
    if model in ("lasso", "elastic net", "svc", "huber"):
        known = value(theirs, joined, y)
        apart = (value(ours, joined, y) - known) / known
    else:
        known = np.ravel(theirs.coef_)
        apart = float(np.linalg.norm(np.ravel(ours.coef_) - known) / np.linalg.norm(known))
    ledger = ours.result_.ledger
    return (
        f"| {name} | {model} | {ours.result_.status} | {ledger.total('averagings')} "
        f"| {ledger.total('bytes') / 1e6:.0f} | {here:.2f} | {there:.2f} | {here / there:.1f} "
        f"| {apart:.0e} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=",".join(SETS))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    for name in asked.data.split(","):
        for model in asked.models.split(","):
            if name not in ONLY.get(model, SETS):
                continue
            lines.append(line(name, model))
            print(lines[-1], flush=True)
    if asked.write:
        text = HEAD + COLUMNS + "|" + "---|" * 9 + "\n" + "\n".join(lines) + "\n"
        asked.write.write_text(text)


if __name__ == "__main__":
    main()
