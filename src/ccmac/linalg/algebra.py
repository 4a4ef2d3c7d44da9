"""Lazy algebra: sums, products, multiples, vertical stacks and selections of operators.

Nothing is multiplied out. An expression charges what its leaves charge, and its static cost is the
sum of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ccmac.ledger import Cost
from ccmac.linalg.operator import LinearOperator

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Composed:
    """u -> outer(inner(u))."""

    outer: LinearOperator
    inner: LinearOperator

    def __post_init__(self) -> None:
        _require(self.outer.shape[1], self.inner.shape[0], "compose")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows of the outer, columns of the inner."""
        return self.outer.shape[0], self.inner.shape[1]

    @property
    def cost(self) -> Cost:
        """Both."""
        return self.outer.cost + self.inner.cost

    def forward(self, u: Array) -> Array:
        """outer (inner u)."""
        return self.outer.forward(self.inner.forward(u))

    def adjoint(self, v: Array) -> Array:
        """inner' (outer' v)."""
        return self.inner.adjoint(self.outer.adjoint(v))


@dataclass(frozen=True)
class Sum:
    """u -> sum of the terms at u."""

    terms: tuple[LinearOperator, ...]

    def __post_init__(self) -> None:
        for term in self.terms[1:]:
            _require(self.terms[0].shape[0], term.shape[0], "add rows")
            _require(self.terms[0].shape[1], term.shape[1], "add columns")

    @property
    def shape(self) -> tuple[int, int]:
        """That of every term."""
        return self.terms[0].shape

    @property
    def cost(self) -> Cost:
        """All terms."""
        return _total(self.terms)

    def forward(self, u: Array) -> Array:
        """Terms added from left to right."""
        result = self.terms[0].forward(u)
        for term in self.terms[1:]:
            result = result + term.forward(u)
        return result

    def adjoint(self, v: Array) -> Array:
        """Adjoint terms added from left to right."""
        result = self.terms[0].adjoint(v)
        for term in self.terms[1:]:
            result = result + term.adjoint(v)
        return result


@dataclass(frozen=True)
class Scaled:
    """u -> factor * operator(u)."""

    factor: float
    operator: LinearOperator

    @property
    def shape(self) -> tuple[int, int]:
        """That of the operator."""
        return self.operator.shape

    @property
    def cost(self) -> Cost:
        """That of the operator: a multiplication by a number is local."""
        return self.operator.cost

    def forward(self, u: Array) -> Array:
        """factor K u."""
        return self.factor * self.operator.forward(u)

    def adjoint(self, v: Array) -> Array:
        """factor K' v."""
        return self.factor * self.operator.adjoint(v)


@dataclass(frozen=True)
class Stacked:
    """u -> the parts' results one under the other."""

    parts: tuple[LinearOperator, ...]

    def __post_init__(self) -> None:
        for part in self.parts[1:]:
            _require(self.parts[0].shape[1], part.shape[1], "stack")

    @cached_property
    def row_ends(self) -> NDArray[np.int64]:
        """Where each part's rows begin and end."""
        return np.concatenate([[0], np.cumsum([p.shape[0] for p in self.parts])]).astype(np.int64)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows add up."""
        return int(self.row_ends[-1]), self.parts[0].shape[1]

    @property
    def cost(self) -> Cost:
        """All parts."""
        return _total(self.parts)

    def forward(self, u: Array) -> Array:
        """Concatenation of the parts' products."""
        return np.concatenate([part.forward(u) for part in self.parts])

    def adjoint(self, v: Array) -> Array:
        """Sum of the parts' adjoints, each on its rows."""
        ends = self.row_ends
        pieces = [v[ends[k] : ends[k + 1]] for k in range(len(self.parts))]
        result = self.parts[0].adjoint(pieces[0])
        for part, piece in zip(self.parts[1:], pieces[1:], strict=True):
            result = result + part.adjoint(piece)
        return result


@dataclass(frozen=True)
class Selected:
    """u -> u[start:stop], of a vector of ``size`` entries. Free."""

    size: int
    start: int
    stop: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.stop <= self.size:
            raise ValueError(f"select: {self.start}:{self.stop} is no range of 0:{self.size}")

    @property
    def shape(self) -> tuple[int, int]:
        """Entries kept, entries there are."""
        return self.stop - self.start, self.size

    @property
    def cost(self) -> Cost:
        """Nothing."""
        return Cost()

    def forward(self, u: Array) -> Array:
        """The selected entries (a view)."""
        return u[self.start : self.stop]

    def adjoint(self, v: Array) -> Array:
        """The entries put back among zeros."""
        result = np.zeros(self.size)
        result[self.start : self.stop] = v
        return result


def compose(*factors: LinearOperator) -> LinearOperator:
    """Product of the factors, the rightmost applied first."""
    result = factors[-1]
    for factor in reversed(factors[:-1]):
        result = Composed(factor, result)
    return result


def add(*terms: LinearOperator) -> LinearOperator:
    """Sum of operators of one shape."""
    return terms[0] if len(terms) == 1 else Sum(terms)


def scale(factor: float, operator: LinearOperator) -> LinearOperator:
    """A multiple."""
    return Scaled(float(factor), operator)


def stack(*parts: LinearOperator) -> LinearOperator:
    """The parts one under the other."""
    return parts[0] if len(parts) == 1 else Stacked(parts)


def select(size: int, start: int, stop: int) -> LinearOperator:
    """The entries start..stop-1 of vectors with ``size`` entries."""
    return Selected(size, start, stop)


def _total(operators: tuple[LinearOperator, ...]) -> Cost:
    cost = Cost()
    for operator in operators:
        cost = cost + operator.cost
    return cost


def _require(left: int, right: int, action: str) -> None:
    if left != right:
        raise ValueError(f"{action}: sizes {left} and {right} differ")
