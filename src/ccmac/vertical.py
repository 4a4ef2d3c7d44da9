"""A problem whose agents own columns of one table: it knows which, also on disk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.inputs import Array
from ccmac.problem import Problem


class VflProblem(Problem):
    """A Problem that knows its partition.

    ``weights(result)`` is w in the original feature order.
    """

    partition: tuple[NDArray[np.int64], ...]
    alpha: Array
    prediction_scale: float

    def with_partition(
        self, partition: tuple[NDArray[np.int64], ...], alpha: Array, prediction_scale: float
    ) -> VflProblem:
        """This problem, told which columns each agent has, the shares of the coupling and p/z."""
        put = object.__setattr__
        put(self, "partition", partition)
        put(self, "alpha", alpha)
        put(self, "prediction_scale", prediction_scale)
        return self

    @property
    def features(self) -> int:
        """Columns of X."""
        return sum(len(p) for p in self.partition)

    def weights(self, result: Any) -> Array:
        """w in the order of the columns of X, from a Result (or a list of x_i)."""
        blocks = result.x if hasattr(result, "x") else result
        w = np.zeros(self.features)
        for columns, block in zip(self.partition, blocks, strict=True):
            w[columns] = block
        return w

    def predictions(self, result: Any) -> Array:
        """X w as the agents agreed on it."""
        return self.prediction_scale * np.asarray(result.z)

    def blocks_of(self, weights: Array) -> list[Array]:
        """The x_i of given weights."""
        return [np.asarray(weights)[columns] for columns in self.partition]

    def reference_blocks(self, reference: Array) -> list[Array] | None:
        """Weights in the order of the columns of X."""
        return self.blocks_of(reference) if len(reference) == self.features else None
