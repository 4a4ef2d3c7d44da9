"""Vertical federated learning as a CC-MAC problem.

Agents own column blocks X_i of one N x d data matrix and their weights w_i; the shared variable
is the prediction. With the coupled row scaled by 1/sqrt(N),

    sum_i (X_i w_i - alpha_i p) / sqrt(N) = 0,   sum_i alpha_i = 1,

solves  min (1/N) sum_j loss(p_j, y_j) + (rho/2N) ||p||^2 + (lambda/2) ||w||^2.  The loss is split
evenly over the agents (or kept by one, ``label_owner``). The choice of alpha changes the geometry
(chi) and nothing else. For the losses of a residual the shared variable is z = p / sqrt(N), for the
losses of a margin it is z = p (``prediction_scale``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.angles.principal import friedrichs_cosine
from ccmac.errors import InputError
from ccmac.inputs import Array, is_sparse
from ccmac.objectives import L1, Function, Hinge, Huber, Logistic, Separable, SquaredDistance
from ccmac.objectives.sum import Sum
from ccmac.problem import Agent
from ccmac.vertical import VflProblem

__all__ = ["LOSSES", "VflProblem", "cross_factor_weights", "problem"]
LOSSES = ("squared", "huber", "absolute", "logistic", "hinge")
ZERO_SUM_SEED = 307


def problem(
    X: Any,
    y: Any,
    n_agents: int,
    loss: str = "squared",
    regularization: float = 1e-2,
    partition_seed: int = 0,
    alpha: Any = None,
    label_owner: int | None = None,
    *,
    shared_regularization: float = 0.0,
    l1: float = 0.0,
    delta: float = 1.0,
) -> VflProblem:
    """Split (X, y) by columns over ``n_agents``.

    ``alpha``: None (uniform), an array summing to one, ``("cross_factor", chi)`` (the zero-sum
    direction that realizes chi when N > d), or ``"feature-norm"`` (alpha_i ~ ||X_i||_F).
    ``shared_regularization`` is rho, ``l1`` adds l1 ||w||_1, ``delta`` is Huber's threshold.
    """
    X, y, n_agents = _checked(X, y, n_agents)
    if loss not in LOSSES:
        raise InputError(f"vfl: loss {loss!r} is unknown; take one of {', '.join(LOSSES)}")
    if label_owner is not None and not 0 <= label_owner < n_agents:
        raise InputError(f"vfl: label_owner {label_owner} is not an agent 0..{n_agents - 1}")
    rows, columns = X.shape
    partition = np.array_split(np.random.default_rng(partition_seed).permutation(columns), n_agents)
    root = np.sqrt(rows)
    blocks = [sp.csr_array(X[:, part]) / root for part in partition]
    weights = _alpha(alpha, blocks, n_agents)
    scale = 1.0 if loss in ("logistic", "hinge") else root
    identity = sp.eye_array(rows, format="csr") * (scale / root)
    holders = range(n_agents) if label_owner is None else (label_owner,)
    agents = []
    for i in range(n_agents):
        share = 1.0 / len(holders) if i in holders else 0.0
        z_part = _shared_part(loss, y, rows, share, shared_regularization, delta) if share else None
        x_part: Function = SquaredDistance(regularization)
        if l1:
            x_part = Sum(L1(l1), x_part) if regularization else L1(l1)
        agents.append(Agent(Separable(x=x_part, z=z_part), A=blocks[i], B=-weights[i] * identity))
    return VflProblem(agents).with_partition(tuple(partition), weights, float(scale))


def cross_factor_weights(n: int, chi: float, seed: int = ZERO_SUM_SEED) -> Array:
    """alpha = 1/n + c/sqrt(n(1-c^2)) v with a unit zero-sum v, c = (chi^2-1)/(chi^2+1)."""
    if chi < 1:
        raise InputError(f"vfl: cross factor {chi} is below 1, the smallest there is")
    if n == 1 or chi == 1:
        return np.full(n, 1.0 / n)
    c = friedrichs_cosine(chi)
    v = np.random.default_rng(seed).standard_normal(n)
    v -= v.mean()
    v /= np.linalg.norm(v)
    return np.asarray(1.0 / n + c / np.sqrt(n * (1 - c * c)) * v)


def _checked(X: Any, y: Any, n_agents: int) -> tuple[Any, Array, int]:
    X = X if is_sparse(X) else np.asarray(X, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64)
    if X.ndim != 2 or y.ndim != 1 or X.shape[0] != len(y):
        raise InputError(f"vfl: X has shape {X.shape} and y {y.shape}; give N x d and N")
    if not 1 <= n_agents <= X.shape[1]:
        raise InputError(f"vfl: {n_agents} agents for {X.shape[1]} columns; give each at least one")
    return sp.csr_array(X, dtype=np.float64), y, n_agents


def _alpha(alpha: Any, blocks: list[Any], n: int) -> Array:
    if alpha is None:
        return np.full(n, 1.0 / n)
    if isinstance(alpha, str):
        if alpha != "feature-norm":
            raise InputError(f"vfl: alpha {alpha!r} is unknown; take 'feature-norm' or an array")
        norms = np.array([np.sqrt(np.sum(block.data**2)) for block in blocks])
        return np.asarray(norms / norms.sum())
    if isinstance(alpha, tuple) and len(alpha) == 2 and alpha[0] == "cross_factor":
        return cross_factor_weights(n, float(alpha[1]))
    values = np.asarray(alpha, dtype=np.float64)
    if values.shape != (n,) or not np.isclose(values.sum(), 1.0):
        raise InputError(f"vfl: alpha needs {n} entries that sum to one")
    return values


def _shared_part(
    loss: str, y: Array, rows: int, share: float, rho: float, delta: float
) -> Function:
    """One agent's share of (1/N) sum loss + (rho/2N) ||p||^2 in the scaled variable z."""
    root = np.sqrt(rows)
    if loss == "squared":
        if rho:
            # (1/2)(z - yb)^2 + (rho/2) z^2 up to a constant.
            return SquaredDistance(share * (1 + rho), y / root / (1 + rho))
        return SquaredDistance(share, y / root)
    if loss == "huber":
        return Huber(y=y / root, delta=delta / root, weight=share, ridge=share * rho)
    if loss == "absolute":
        part: Function = L1(share / root, centre=y / root)
        return Sum(part, SquaredDistance(share * rho)) if rho else part
    if set(np.unique(y)) - {-1.0, 1.0}:
        raise InputError(f"vfl: loss {loss!r} needs labels -1 and +1; map them first")
    kind = Logistic if loss == "logistic" else Hinge
    return kind(y=y, weight=share / rows, ridge=share * rho / rows)
