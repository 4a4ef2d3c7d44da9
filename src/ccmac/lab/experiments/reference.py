"""High-accuracy centralized weights, the reference of RelErr.

Squared loss: the normal equations, by a d x d Cholesky factorization or, for many features, by
conjugate gradients to relative residual 1e-13. Logistic loss: Newton's method on the primal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from ccmac.errors import InputError
from ccmac.inputs import Array

DENSE = 3000
RIDGE = 1e-2
_CACHE: dict[tuple[str, tuple[tuple[str, Any], ...]], Array] = {}


def reference_weights(name: str, X: Any, y: Array, problem: dict[str, Any]) -> Array:
    """w* of  min (1/N) sum loss(Xw, y) + (rho/2N)||Xw||^2 + (lambda/2)||w||^2  (kept per set)."""
    key = (name, tuple(sorted(problem.items())))
    if key not in _CACHE:
        lam = float(problem.get("regularization", RIDGE))
        rho = float(problem.get("shared_regularization", 0.0))
        loss = problem.get("loss", "squared")
        if problem.get("l1") or loss not in ("squared", "logistic") or lam <= 0:
            raise InputError(
                f"suite: no reference for loss {loss} with regularization {lam} and "
                f"l1 {problem.get('l1', 0)}; use stop: certificate"
            )
        _CACHE[key] = ridge(X, y, lam, rho) if loss == "squared" else logistic(X, y, lam, rho)
    return _CACHE[key]


def ridge(X: Any, y: Array, lam: float, rho: float = 0.0) -> Array:
    """((1 + rho) X'X/N + lam I)^-1 X'y/N."""
    rows, columns = X.shape
    right = np.asarray(X.T @ y) / rows
    if columns <= DENSE:
        gram = (1.0 + rho) * _dense(X.T @ X) / rows + lam * np.eye(columns)
        return np.asarray(sla.solve(gram, right, assume_a="pos"), dtype=np.float64)
    transposed = X.T.tocsr()

    def apply(w: Array) -> Array:
        return np.asarray((1.0 + rho) * (transposed @ (X @ w)) / rows + lam * w)

    operator = spla.LinearOperator((columns, columns), matvec=apply, dtype=np.float64)
    weights, info = spla.cg(operator, right, rtol=1e-13, maxiter=20_000)
    if info != 0:
        raise InputError("reference: conjugate gradients did not reach 1e-13; raise lambda")
    return np.asarray(weights, dtype=np.float64)


def logistic(X: Any, y: Array, lam: float, rho: float = 0.0, steps: int = 100) -> Array:
    """Damped Newton for (1/N) sum log(1 + exp(-y Xw)) + (rho/2N)||Xw||^2 + (lam/2)||w||^2."""
    rows, columns = X.shape
    if columns > DENSE:
        raise InputError(f"reference: logistic with {columns} features; use at most {DENSE}")
    w = np.zeros(columns)

    def value(v: Array) -> float:
        p = np.asarray(X @ v)
        loss = np.logaddexp(0.0, -y * p).sum() + 0.5 * rho * (p @ p)
        return float(loss / rows + 0.5 * lam * (v @ v))

    for _ in range(steps):
        p = np.asarray(X @ w)
        s = np.exp(-np.logaddexp(0.0, y * p))
        gradient = np.asarray(X.T @ (rho * p - y * s)) / rows + lam * w
        if float(np.linalg.norm(gradient)) <= 1e-15 * max(1.0, float(np.linalg.norm(w))):
            break
        weight = sp.diags_array(s * (1.0 - s) + rho)
        hessian = _dense(X.T @ (weight @ X)) / rows + lam * np.eye(columns)
        step = sla.solve(hessian, gradient, assume_a="pos")
        length, start = 1.0, value(w)
        while value(w - length * step) > start and length > 1e-10:
            length /= 2
        if length <= 1e-10:
            break
        w = w - length * step
    return w


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64)
