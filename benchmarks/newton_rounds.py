"""The table of docs/methods-why.md: rounds of cross-newton on plain logistic regression.

    python benchmarks/newton_rounds.py [--sketch R] [--cases a9a,mushrooms,cancer]

Vertical L2-logistic regression without a ridge on the predictions, C = 1 (lambda = 1/N) and
lambda = 1e-2, on a ring of 8 (the breast-cancer set, standardized, on 3 parties): rounds of setup
and solve to RelErr 1e-6 against a reference found here by Newton's method on the weights, and
rounds of all phases of a run certified to 1e-6. Needs the LIBSVM files (``ccmac data list``) and
scikit-learn.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer

import ccmac
from ccmac import vfl
from ccmac.methods import CrossNewton
from ccmac.paper import data

CASES = (
    ("a9a", "C = 1"),
    ("mushrooms", "C = 1"),
    ("cancer", "C = 1"),
    ("a9a", "1e-2"),
    ("mushrooms", "1e-2"),
)


def loaded(name: str) -> tuple[Any, np.ndarray, int]:
    """(X, y, agents)."""
    if name == "cancer":
        X, y = load_breast_cancer(return_X_y=True)
        return sp.csr_array((X - X.mean(axis=0)) / X.std(axis=0)), np.where(y > 0, 1.0, -1.0), 3
    found = data.load(name)
    return sp.csr_array(found.X), found.y, 8


def weights(X: Any, y: np.ndarray, lam: float) -> np.ndarray:
    """Newton's method on the weights: an independent reference."""
    rows, columns = X.shape
    w = np.zeros(columns)
    for _ in range(100):
        s = 1 / (1 + np.exp(y * (X @ w)))
        gradient = X.T @ (-y * s) / rows + lam * w
        hessian = (X.T @ X.multiply((s * (1 - s) / rows)[:, None])).toarray()
        step = np.linalg.solve(hessian + lam * np.eye(columns), gradient)
        w -= step
        if np.linalg.norm(step) < 1e-12:
            break
    return w


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sketch", type=int)
    parser.add_argument("--cases", default="a9a,mushrooms,cancer")
    asked = parser.parse_args(arguments)
    print("| data | lambda | to RelErr 1e-6 (setup + solve) | certified to 1e-6, all phases | MB |")
    print("|---|---|---|---|---|")
    for name, strength in CASES:
        if name not in asked.cases.split(","):
            continue
        X, y, n = loaded(name)
        lam = 1 / len(y) if strength == "C = 1" else float(strength)
        problem = vfl.problem(X, y, n, loss="logistic", regularization=lam)
        network = ccmac.Network.ring(n)
        method = CrossNewton(sketch=asked.sketch)
        known = ccmac.solve(problem, network, method, 1e-6, reference=weights(X, y, lam))
        proved = ccmac.solve(problem, network, method, 1e-6)
        assert (known.status, proved.status) == ("optimal", "optimal")
        setup, solve = (known.ledger.of(phase)["rounds"] for phase in ("setup", "solve"))
        total = proved.ledger.total("rounds")
        sent = proved.ledger.total("bytes") / 1e6
        print(
            f"| {name} | {strength} | {setup + solve} ({setup} + {solve}) | {total} | {sent:.1f} |"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
