"""p ~ x^{-1/2}, the polynomial that normalizes a channel (Proposition prop:poly-normalization)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ccmac.errors import InputError, MethodRefused
from ccmac.inputs import Array
from ccmac.paper.polynomials import (
    clenshaw,
    inverse_root,
    inverse_root_interval,
    paper_degree,
    tight_degree,
)

# Below 1e-12 of the largest, eigenvalues are not distinguished from zero, and a degree is in the
# millions.


@dataclass(frozen=True)
class InverseRoot:
    """p ~ x^{-1/2} on [low, high] in the Chebyshev basis; spec(x p(x)^2) lies in ``spread``."""

    low: float
    high: float
    coefficients: Array

    @property
    def degree(self) -> int:
        return len(self.coefficients) - 1

    @property
    def spread(self) -> tuple[float, float]:
        """Extremes of x p(x)^2 over [low, high], computed.

        The row space is kept where the least is positive (Lemma lem:rowspace-invariance).
        """
        return inverse_root_interval(self.low, self.high, self.coefficients)

    def apply(self, gram: Callable[[Array], Array], rows: Array) -> Array:
        """p(Q) rows. Cost: deg p products with Q."""
        return clenshaw(self.coefficients, self.low, self.high, gram, rows)

    def __call__(self, x: Array) -> Array:
        """p at numbers (eigenvalues)."""
        if self.high <= self.low:
            return np.full_like(x, self.coefficients[0])
        scaled = (2 * x - self.high - self.low) / (self.high - self.low)
        return np.asarray(np.polynomial.chebyshev.chebval(scaled, self.coefficients))


def inverse_root_polynomial(
    low: float, high: float, *, accuracy: float, rule: str = "paper", degree: int | None = None
) -> InverseRoot:
    """Degree given, or by the paper's rule, or the least that is computed to reach ``accuracy``.

    Refused where the ends are more than 1e12 apart: it would be some millions.
    """
    if not 0 < accuracy < 1:
        raise InputError(f"normalizer: accuracy = {accuracy} must lie between 0 and 1")
    if high > 1e12 * low:
        raise MethodRefused(
            f"normalizer: the ends {low:g} and {high:g} of a spectrum are more than 1e12 "
            "apart; rescale the rows, give closer certificates, or take the averaged realization"
        )
    if degree is None:
        choose = tight_degree if rule == "tight" else paper_degree
        degree = choose(high / low, accuracy)
    return InverseRoot(low, high, inverse_root(low, high, degree))
