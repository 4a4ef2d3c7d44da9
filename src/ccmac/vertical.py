"""A problem whose parties own columns of one table: it knows which, in which units, also on disk.

A column enters as (column - mean) / scale and a row's score is sum_j entering_j v_j + b, so that in
the table's own units the weights are w = v / scale and the intercept is b - mean'w.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.objectives import ConcomitantHuber, Intercept
from ccmac.problem import Problem
from ccmac.texts import shown


@dataclass(frozen=True)
class Vertical:
    """Who has which columns, and how scores come from weights.

    ``partition`` holds the places of each party's columns in the whole table, ``columns`` the
    names in the table's order, ``prediction_scale`` scores over z. ``target`` is the intercept
    where the columns are centred (None: there is none, or the losses fit it). ``outputs`` counts
    the scores of a row. ``column`` is the agent whose last weight is
    the intercept (None: nobody's).
    """

    partition: tuple[NDArray[np.int64], ...]
    shares: Array
    prediction_scale: float
    parties: tuple[str, ...] = ()
    columns: tuple[Any, ...] = ()
    mean: Array | None = None
    scale: Array | None = None
    target: float | None = None
    outputs: int = 1
    classes: tuple[Any, ...] = ()
    column: int | None = None

    @property
    def features(self) -> int:
        """Columns of the whole table."""
        return sum(len(p) for p in self.partition)


class VflProblem(Problem):
    """A Problem that knows its partition.

    ``weights(result)`` is w in the order and the units of the table's columns (one column of
    weights for each class where there are several scores), ``intercept(result)`` what is added.

    Parameters
    ----------
    agents, n, q, m, present, sense, z_lower, z_upper, row_names, z_names : Any
        As in :class:`ccmac.Problem`; :func:`ccmac.vfl.problem` makes such problems.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, X[:, 0], 3)
    >>> problem.weights(ccmac.solve(problem)).shape
    (6,)
    """

    vertical: Vertical

    def with_vertical(self, vertical: Vertical) -> VflProblem:
        """This problem, with who has which columns. Who has a loss has the same as all others."""
        self.vertical = vertical
        self.partition = vertical.partition
        self.shares = vertical.shares
        self.prediction_scale = vertical.prediction_scale
        self.features = vertical.features
        for agent in self.agents.values():
            loss = getattr(agent.objective, "z_part", None)
            if loss is not None:
                loss.public_name = 1.0
        return self

    def weights(self, result: Any) -> Array:
        """w in the order of the columns of X, from a Result (or a list of x_i)."""
        blocks = result.x if hasattr(result, "x") else result
        k = self.vertical.outputs
        w = np.zeros((self.features, k))
        for columns, block in zip(self.partition, blocks, strict=True):
            w[columns] = np.reshape(block[: len(columns) * k], (-1, k))
        if self.vertical.scale is not None:
            w /= self.vertical.scale[:, None]
        return w[:, 0] if k == 1 else w

    def intercept(self, result: Any) -> Array:
        """What is added to X w: one number for each score of a row."""
        vertical = self.vertical
        offset = np.zeros(vertical.outputs)
        losses = [getattr(agent.objective, "z_part", None) for agent in self.agents.values()]
        fitted = [loss for loss in losses if isinstance(loss, Intercept | ConcomitantHuber)]
        if fitted:
            offset = self.prediction_scale * fitted[0].offset(np.asarray(result.z))
        elif vertical.column is not None:
            offset = offset + self.prediction_scale * result.x[vertical.column][-1]
        elif vertical.target is not None:
            offset = offset + vertical.target
        if vertical.mean is not None:
            offset = offset - vertical.mean @ self.weights(result)
        return offset

    def predictions(self, result: Any) -> Array:
        """The scores as the agents agreed on them, the intercept that losses fit left out."""
        return self.prediction_scale * np.asarray(result.z)

    def blocks_of(self, weights: Array) -> list[Array]:
        """The x_i of given weights."""
        w = np.asarray(weights, dtype=np.float64).reshape(self.features, -1)
        if self.vertical.scale is not None:
            w = w * self.vertical.scale[:, None]
        return [w[columns].ravel() for columns in self.partition]

    def reference_blocks(self, reference: Any) -> list[Array] | None:
        """Weights in the order of the columns of X; names, where given, must say the same."""
        size = self.features * self.vertical.outputs
        if np.size(reference) != size:
            return None
        names = list(reference.index) if hasattr(reference, "iloc") else None
        known = list(self.vertical.columns)
        if names is not None and known and names != known and len(names) == len(known):
            j = next(j for j, name in enumerate(names) if name != known[j])
            raise InputError(
                f"reference: its entry {j} is {shown(names[j])} but column {j} of the table is "
                f"{shown(known[j])}; put it into the order of the columns"
            )
        return self.blocks_of(np.asarray(reference, dtype=np.float64))
