"""Moving the shared coupling between agents: B_i -> w_i sum_j B_j with sum_i w_i = 1.

At consensus only sum_j B_j acts, so solutions and multipliers stay the same while the angle between
the channels changes. Equal weights are best: with B_i = Bm + E_i, sum_i E_i = 0, the part of
g(h) = (P_{Ker C_i} A_i' h, B_i' h)_i inside Range(K_2') has squared length

    sum_i ||E_i' h||^2 + n ||P_R Bm' h||^2,        R = Range(S_D),

and the part outside does not contain the E_i. Taking E = 0 therefore lowers every ratio of the
two; the positive angles can only widen, and exact common directions stay what they are. Without
D the first channel becomes orthogonal to the second: chi = 1, whatever C is.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array, is_sparse, real_vector
from ccmac.linalg.blocks import dense, has_entries
from ccmac.linalg.tolerances import WEIGHT_SUM
from ccmac.problem.base import Problem


def rebalanced(problem: Problem, weights: Any = None) -> Problem:
    """The problem with B_i = w_i sum_j B_j; ``weights`` default to 1/n each, which is optimal.

    Sparse blocks stay sparse and multiples of the identity stay such. Agents must be allowed to
    learn the sum of the B_j.
    """
    if not problem.complete:
        raise InputError(
            f"rebalancing: this process holds {len(problem.agents)} of {problem.n} agents; "
            "rebalance the whole problem, then restrict it"
        )
    w = _weights(weights, problem.n)
    total = _total(problem)
    if total is None:
        return problem
    agents = {
        i: replace(agent, B=w[i] * total if w[i] else None) for i, agent in problem.agents.items()
    }
    return problem.holding(agents, present=())


def block_sum(blocks: Iterable[Any]) -> Any:
    """The sum of the blocks that are not None, sparse when all are; None without any."""
    present = [b for b in blocks if b is not None]
    if not all(is_sparse(b) for b in present):
        present = [dense(b) for b in present]
    return reduce(operator.add, present) if present else None


def _total(problem: Problem) -> Any:
    """sum_j B_j; None when there are none."""
    for i, agent in problem.agents.items():
        if agent.B is not None and not has_entries(agent.B):
            raise InputError(
                f"agent {i}, block B: is an operator, whose sum with others has no entries; "
                "give a dense or sparse matrix to rebalance"
            )
    total = block_sum(problem.blocks("B"))
    if is_sparse(total):
        total = sp.csr_array(total)
        total.eliminate_zeros()
    return total


def _weights(weights: Any, n: int) -> Array:
    if weights is None:
        return np.full(n, 1.0 / n)
    w = real_vector("rebalancing, weights", weights)
    if w.shape != (n,):
        raise InputError(f"rebalancing: weights have shape {w.shape}; give {n} numbers")
    if abs(w.sum() - 1.0) > WEIGHT_SUM * max(1.0, float(np.abs(w).sum())):
        raise InputError(f"rebalancing: weights sum to {w.sum():.6g}; they must sum to 1")
    return w
