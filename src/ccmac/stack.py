"""The J-channel form:  min f(w)  s.t.  M_j w = v_j,  j = 1..J.

Any number of channel classes, each normalized by itself (Proposition prop:multi-channel). There are
no agents here: the geometry of CC-MAC's two channels, and any other grouping of equations, is
stated with the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array, matrix_or_operator, real_vector, several
from ccmac.linalg.blocks import dense
from ccmac.objectives.base import Objective
from ccmac.problem import Agent, Problem

DENSE = 4000  # unknowns up to which the rows of all channels are factorized together


class Stack:
    """An objective of one vector w in R^dim and its affine channels (M_j, v_j).

    The objective is asked with x = w and an empty z. ``v_j`` may be None for a zero right side.

    Parameters
    ----------
    objective : Objective
        A function of w alone.
    channels : sequence of (matrix, array_like or None)
        The matrices M_j with dim columns, and the right-hand sides v_j.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.SquaredDistance(centre=[1.0, 2.0])
    >>> stack = ccmac.Stack(f, [([[1.0, 1.0]], [0.0]), ([[1.0, 0.0]], [1.0])])
    >>> ccmac.solve(stack).x[0].round(6)
    array([ 1., -1.])
    """

    def __init__(self, objective: Objective, channels: Sequence[tuple[Any, Any]]) -> None:
        if not isinstance(objective, Objective):
            raise InputError(
                f"stack, objective: {type(objective).__name__} is not a ccmac objective; "
                "use ccmac.objectives.*"
            )
        pairs = several("stack, channels", channels, "a list of pairs (M, v)")
        clean = tuple(_channel(j, pair) for j, pair in enumerate(pairs))
        sizes = [matrix.shape[1] for matrix, _ in clean]
        for j, size in enumerate(sizes):
            if size != sizes[0]:
                raise InputError(
                    f"stack, channel {j}: M has {size} columns but channel 0 has {sizes[0]}; "
                    "all channels act on one vector"
                )
        dim = sizes[0] if sizes else objective.dim
        if dim is None:
            raise InputError("stack: the size of w is not known; give at least one channel")
        if objective.dim is not None and objective.dim != dim:
            raise InputError(
                f"stack, objective: acts on {objective.dim} entries but the channels have {dim} "
                "columns; they must be equal"
            )
        try:
            objective.check(dim, 0)
        except InputError as error:
            raise InputError(f"stack, objective: {error}") from None
        self.objective = objective
        self.channels: tuple[tuple[Any, Array], ...] = clean
        self.dim = dim

    def value_at(self, w: Array) -> float:
        """f(w)."""
        return self.objective.value(w, np.zeros(0))

    def gradient_at(self, w: Array) -> Array:
        """grad f(w)."""
        return self.objective.gradient(w, np.zeros(0))[0]

    def __repr__(self) -> str:
        rows = ", ".join(str(matrix.shape[0]) for matrix, _ in self.channels)
        return f"Stack(dim={self.dim}, channels={len(self.channels)}, rows=({rows}))"


def stack_problem(stack: Stack) -> Problem:
    """The stack as a one-agent problem with x = w, the rows of all channels its own C w = c.

    That is what results are judged by: contradictions, violations, multipliers, errors. Beyond
    :data:`DENSE` unknowns it has no rows, and nothing is proved of them.
    """
    seen = stack.channels if stack.dim <= DENSE else ()
    blocks = [np.zeros((0, stack.dim)), *(dense(matrix) for matrix, _ in seen)]
    right = [np.zeros(0), *(right for _, right in seen)]
    rows = Agent(stack.objective, C=np.vstack(blocks), c=np.concatenate(right))
    return Problem([rows], q=0, m=0)


def _channel(j: int, pair: Any) -> tuple[Any, Array]:
    where = f"stack, channel {j}"
    try:
        matrix, right = pair
    except Exception:  # an object of another library may raise anything here
        raise InputError(f"{where}: expected a pair (M, v), got {type(pair).__name__}") from None
    matrix = matrix_or_operator(f"{where}, M", matrix)
    if isinstance(matrix, np.ndarray):
        matrix = matrix.copy()
    if right is None:
        return matrix, np.zeros(matrix.shape[0])
    vector = real_vector(f"{where}, v", right).copy()
    if len(vector) != matrix.shape[0]:
        raise InputError(
            f"{where}: v has shape {vector.shape} but M has {matrix.shape[0]} rows; "
            "give one entry per row"
        )
    return matrix, vector
