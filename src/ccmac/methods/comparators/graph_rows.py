"""The coupled equation with a vector that the graph cancels: B(u, y) = A'u + g W'y = b'.

Every agent keeps its own row; W' is a Chebyshev filter of W with nu rounds, so that sum_i W'y_i = 0
and B(u, y) = b' for some y says sum_i A'_i u_i = sum_i b'_i. A fused simulation multiplies by W'
(or W'W') as one n x n matrix and charges the rounds of the execution along the edges.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ccmac.ledger import Cost
from ccmac.linalg.chebyshev import graph_filter
from ccmac.methods.comparators.reductions import CoupledForm
from ccmac.runtime.base import Runtime

Array = NDArray[np.float64]
DENSE = 64  # agents up to which the filter is one matrix in a fused simulation


class GraphFilter:
    """W' = I - T_nu(..)/T_nu(..) on [lambda_min^+, lambda_max] of W; zero for one agent."""

    def __init__(self, runtime: Runtime, degree: int) -> None:
        self.runtime, self.degree = runtime, degree

    def __call__(self, rows: Array, times: int = 1) -> Array:
        """W'^times rows, ``times`` 1 or 2. Cost: times nu rounds of the width of the rows."""
        runtime, width = self.runtime, rows.shape[1]
        if runtime.n == 1 or width == 0:
            return np.zeros_like(rows)
        if runtime.fused and runtime.n <= DENSE:
            runtime.ledger.charge_cost(times * self.cost(width))
            return np.asarray(self._powers[times - 1] @ rows)
        for _ in range(times):
            rows = graph_filter(runtime.mix, rows, *runtime.network.extremes, self.degree)
        return rows

    @cached_property
    def _powers(self) -> tuple[Array, Array]:
        W = self.runtime.network.weights
        low, high = self.runtime.network.extremes
        matrix = graph_filter(lambda v: W @ v, np.eye(self.runtime.n), low, high, self.degree)
        return matrix, matrix @ matrix

    def cost(self, width: int) -> Cost:
        """Static cost of one application."""
        if self.runtime.n == 1 or width == 0:
            return Cost()
        return self.degree * self.runtime.mix_cost(width)


class GraphRows:
    """B of the module text with ``weight`` g; vectors (u, y) are flat, u first."""

    def __init__(self, form: CoupledForm, weight: float, degree: int) -> None:
        self.form, self.weight = form, weight
        self.filter = GraphFilter(form.runtime, degree)

    def parts(self, v: Array) -> tuple[Array, Array]:
        """(u, y), y with a row an agent."""
        size = self.form.space.size
        return v[:size], v[size:].reshape(self.form.right.shape)

    def misfit(self, v: Array) -> Array:
        """B v - b'. Cost: 1 product with A', nu rounds."""
        u, y = self.parts(v)
        rows = self.filter(y)
        rows *= self.weight
        rows += self.form.forward(u)
        rows -= self.form.right
        return rows

    def adjoint(self, rows: Array) -> Array:
        """B'rows. Cost: as the misfit."""
        y = self.filter(rows)
        y *= self.weight
        return np.concatenate([self.form.adjoint(rows), y.ravel()])

    def gram(self, rows: Array) -> Array:
        """B B'rows, which never leaves the rows. Cost: twice that of the misfit."""
        image = self.filter(rows, times=2)
        image *= self.weight**2
        image += self.form.gram(rows)
        return image

    @property
    def cost(self) -> Cost:
        """One misfit or adjoint."""
        return self.form.product_cost + self.filter.cost(self.form.width)
