"""Three small problems with references that no solver of the package had a part in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.optimize

import ccmac
from ccmac import vfl
from ccmac.paper.instances import random_quadratic, solve_kkt

AGENTS = 6


@dataclass(frozen=True)
class Case:
    """A problem and its solution (weights for the vertical federated ones)."""

    problem: ccmac.Problem
    reference: Any


@cache
def quadratic(*, coupled_z: bool = True) -> Case:
    """A random quadratic with all four families; B = 0 for methods that need it."""
    problem = random_quadratic(
        5, AGENTS, d=3, q=2, m=2, kappa_f=4.0, B="generic" if coupled_z else "zero"
    )
    return Case(problem, solve_kkt(problem))


@cache
def ridge() -> Case:
    """Closed form (X'X/N + lambda I)^{-1} X'y/N."""
    X, y = _data()
    gram = X.T @ X / len(y) + 0.1 * np.eye(X.shape[1])
    weights = np.linalg.solve(gram, X.T @ y / len(y))
    return Case(vfl.problem(X, y, AGENTS, regularization=0.1), weights)


@cache
def logistic() -> Case:
    """Newton on the weights: sum log(1 + exp(-yXw))/N + rho ||Xw||^2/(2N) + lambda ||w||^2/2."""
    X, y = _data()
    y = np.sign(y)
    N = len(y)
    rho = 0.5
    lam = 0.1

    def gradient(w: np.ndarray) -> np.ndarray:
        p = X @ w
        return np.asarray(X.T @ (-y / (1 + np.exp(y * p)) + rho * p) / N + lam * w)

    def hessian(w: np.ndarray) -> np.ndarray:
        s = 1 / (1 + np.exp(y * (X @ w)))
        return np.asarray((X.T * (s * (1 - s) + rho)) @ X / N + lam * np.eye(X.shape[1]))

    found = scipy.optimize.root(gradient, np.zeros(X.shape[1]), jac=hessian, tol=1e-14)
    assert np.linalg.norm(gradient(found.x)) < 1e-13
    problem = vfl.problem(
        X, y, AGENTS, loss="logistic", regularization=lam, shared_regularization=rho
    )
    return Case(problem, found.x)


def _data() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    X = random.standard_normal((24, 12))
    return X, X @ random.standard_normal(12) + 0.3 * random.standard_normal(24)
