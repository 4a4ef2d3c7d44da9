"""Standard errors, intervals and tests of a vertical model, as statsmodels has them of the joined.

With the scores u_j = x_j'w + b + offset_j, half the deviances l_j(u), weights s_j of the rows (of
variances) and the dispersion phi,

    H = sum_j s_j l_j''(u_j) (x_j, 1)(x_j, 1)' + penalty,    V = phi H^{-1},
    robust:  V = H^{-1} (sum_j s_j^2 l_j'(u_j)^2 (x_j, 1)(x_j, 1)') H^{-1}.

``expected`` takes the mean of l'' over y (they agree for squared losses, logistic regression and
counts). phi is 1 for classes and counts, else Pearson's statistic over rows less parameters. With a
penalty V is the inverse information of the penalized fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit, gammaln

from ccmac.errors import InputError
from ccmac.inputs import Array, is_sparse
from ccmac.vertical import VflProblem

INTERCEPT = "(intercept)"
SINGULAR = 1e-11  # least eigenvalue of an information of unit diagonal


@dataclass(frozen=True)
class Distribution:
    """A distribution of y given the score: its mean, half the deviance, its slopes, likelihood."""

    name: str
    power: float = 0.0  # of the variance, with a logarithmic link

    @property
    def known(self) -> bool:
        """Whether the dispersion is 1."""
        return self.name == "logistic" or self.power == 1.0

    def mean(self, u: Array) -> Array:
        """The mean of y."""
        if self.name == "squared":
            return u
        return np.asarray(expit(u) if self.name == "logistic" else np.exp(u))

    def variance(self, mu: Array) -> Array:
        """That of y, over the dispersion."""
        if self.name == "squared":
            return np.ones_like(mu)
        return mu * (1.0 - mu) if self.name == "logistic" else mu**self.power

    def slopes(self, y: Array, mu: Array, *, expected: bool) -> tuple[Array, Array]:
        """(l', l'')."""
        if self.name in ("squared", "logistic"):
            return mu - y, self.variance(mu)
        first = mu ** (2.0 - self.power)
        second = y * mu ** (1.0 - self.power)
        if expected:
            return first - second, first
        return first - second, (2.0 - self.power) * first + (self.power - 1.0) * second

    def deviance(self, y: Array, mu: Array) -> Array:
        """Of every row."""
        p = self.power
        if self.name == "squared":
            return np.asarray((y - mu) ** 2)
        if self.name == "logistic":
            return np.asarray(-2.0 * np.log(np.where(y > 0, mu, 1.0 - mu)))
        with np.errstate(divide="ignore", invalid="ignore"):
            if p == 1:
                return np.asarray(2.0 * (np.where(y > 0, y * np.log(y / mu), 0.0) - y + mu))
            if p == 2:
                return np.asarray(2.0 * (y / mu - 1.0 - np.log(y / mu)))
            top = np.where(y > 0, y ** (2 - p), 0.0) / ((1 - p) * (2 - p))
        return np.asarray(2.0 * (top - y * mu ** (1 - p) / (1 - p) + mu ** (2 - p) / (2 - p)))

    def likelihood(self, y: Array, mu: Array, s: Array, phi: float) -> float:
        """Its logarithm; NaN where it has no closed form."""
        k = s / phi
        if self.name == "logistic":
            return float(-0.5 * s @ self.deviance(y, mu))
        if self.name == "squared":
            return float(-0.5 * np.sum(k * (y - mu) ** 2 + np.log(2.0 * math.pi / k)))
        if self.power == 1:
            return float(s @ (np.where(y > 0, y * np.log(mu), 0.0) - mu - gammaln(y + 1)))
        if self.power == 2:
            terms = k * np.log(k * y / mu) - k * y / mu - gammaln(k) - np.log(y)
            return float(terms.sum())
        if self.power == 3:
            terms = k * (y - mu) ** 2 / (y * mu**2) + np.log(2.0 * math.pi * y**3 / k)
            return float(-0.5 * terms.sum())
        return math.nan


@dataclass(frozen=True)
class Fitted:
    """What an inference rests on: the problem with its tables, the rows' y, weights and offsets."""

    problem: VflProblem
    family: Distribution
    y: Array
    weights: Array | None
    offset: Array | None
    penalty: float  # next to half the deviances: penalty/2 |w|^2
    label_unit: float  # what labels were divided by
    intercepts: bool


class Inference:
    """Estimates with their standard errors, statistics, p-values and intervals of a ``level``.

    Entries are in the order of ``names``: the table's columns, then the intercept if there is one.
    """

    def __init__(
        self,
        fitted: Fitted,
        coef: Array,
        intercept: float,
        *,
        robust: bool = False,
        information: str = "observed",
        level: float = 0.95,
    ) -> None:
        if information not in ("observed", "expected"):
            raise InputError(f"summary: information = {information!r}; take 'observed', 'expected'")
        if not 0 < level < 1:
            raise InputError(f"summary: level = {level}; give a number between 0 and 1")
        self.robust = robust
        self.level = level
        vertical = fitted.problem.vertical
        family = fitted.family
        columns = len(coef)
        self.names = (*map(str, vertical.columns), *([INTERCEPT] * fitted.intercepts))
        parties: list[str] = [""] * columns
        for party, places in zip(vertical.parties, vertical.partition, strict=True):
            for j in places:
                parties[j] = party
        self.parties = (*parties, *([""] * fitted.intercepts))
        X = _entering(fitted.problem)
        scale = 1.0 / fitted.label_unit if vertical.scale is None else vertical.scale
        unit = np.broadcast_to(scale * fitted.label_unit, coef.shape)
        mean = np.zeros(columns) if vertical.mean is None else vertical.mean
        score = np.asarray(X @ (coef * unit)) + intercept + float(mean @ coef)
        if fitted.offset is not None:
            score = score + fitted.offset
        y = fitted.y
        s = np.ones(len(y)) if fitted.weights is None else fitted.weights
        mu = family.mean(score)
        slope, bend = family.slopes(y, mu, expected=information == "expected")
        H = _moments(X, s * bend, fitted.intercepts)
        H[np.diag_indices(columns)] += fitted.penalty / unit**2
        size = np.sqrt(np.diagonal(H))
        if not size.all() or np.linalg.eigvalsh(H / np.outer(size, size))[0] < SINGULAR:
            raise InputError(
                "summary: the information is singular: some column is a combination of others; "
                "drop it, or fit with a penalty"
            )
        self.rows = len(y)
        self.parameters = len(self.names)
        self.df = self.rows - self.parameters
        pearson = float(np.sum(s * (y - mu) ** 2 / family.variance(mu)))
        self.dispersion = 1.0 if family.known else pearson / max(self.df, 1)
        self.deviance = float(s @ family.deviance(y, mu))
        phi = pearson / self.rows if family.name == "squared" else self.dispersion
        self.log_likelihood = family.likelihood(y, mu, s, phi)
        self.aic = 2.0 * self.parameters - 2.0 * self.log_likelihood
        V = scipy.linalg.inv(H)
        if robust:
            V = V @ _moments(X, (s * slope) ** 2, fitted.intercepts) @ V
        else:
            V = V * self.dispersion
        turn = np.diag(np.append(1.0 / unit, [1.0] * fitted.intercepts))
        if fitted.intercepts:
            turn[-1, :-1] = -mean / unit
        self.covariance = turn @ V @ turn.T
        self.coef = np.append(coef, [intercept] * fitted.intercepts)
        self.std_errors = np.sqrt(np.diagonal(self.covariance))
        self.statistics = self.coef / self.std_errors
        student = family.name == "squared" and not robust
        self.letter = "t" if student else "z"
        self._distribution: Any = stats.t(max(self.df, 1)) if student else stats.norm()
        self.family = family.name if family.name != "tweedie" else f"power {family.power:g}"

    @cached_property
    def p_values(self) -> Array:
        """Two-sided."""
        return np.asarray(2.0 * self._distribution.sf(np.abs(self.statistics)))

    @property
    def intervals(self) -> NDArray[np.float64]:
        """Lower and upper ends, a row for each estimate."""
        reach = float(self._distribution.ppf(0.5 + self.level / 2)) * self.std_errors
        return np.column_stack([self.coef - reach, self.coef + reach])

    def of(self, party: str) -> dict[str, tuple[float, ...]]:
        """One party's columns: (estimate, standard error, statistic, p-value, lower, upper)."""
        rows = zip(self.parties, self.names, self._rows(), strict=True)
        return {name: row for owner, name, row in rows if owner == party}

    def _rows(self) -> list[tuple[float, ...]]:
        parts = (self.coef, self.std_errors, self.statistics, self.p_values, *self.intervals.T)
        return list(zip(*(part.tolist() for part in parts), strict=True))

    def __str__(self) -> str:
        percent = f"{100 * self.level:g}%"
        head = ("party", "column", "estimate", "std error", self.letter, "p", percent, "")
        body = [
            (party, name, *(f"{v:.4g}" for v in row))
            for party, name, row in zip(self.parties, self.names, self._rows(), strict=True)
        ]
        widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(w) if k < 2 else cell.rjust(w)
                for k, (cell, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in (head, *body)
        ]
        kind = "robust (sandwich)" if self.robust else "inverse information"
        lines.append(
            f"{self.family}: {self.rows} rows, {self.df} degrees of freedom, dispersion "
            f"{self.dispersion:.6g}; {kind}\nlog-likelihood {self.log_likelihood:.6g}, "
            f"AIC {self.aic:.6g}, deviance {self.deviance:.6g}"
        )
        return "\n".join(lines)


def _entering(problem: VflProblem) -> Any:
    """All columns as they entered, in the table's order."""
    root = math.sqrt(problem.m)
    blocks: list[Any] = [agent.A for agent in problem.agents.values()]
    place = np.argsort(np.concatenate(problem.partition))
    if all(map(is_sparse, blocks)):
        return sp.csc_array(sp.hstack(blocks, format="csc") * root)[:, place]
    return np.hstack([b.toarray() if is_sparse(b) else b for b in blocks])[:, place] * root


def _moments(X: Any, weights: Array, intercept: bool) -> Array:
    """(X, 1)' diag(weights) (X, 1)."""
    weighted = X.multiply(weights[:, None]).tocsc() if is_sparse(X) else X * weights[:, None]
    inner = X.T @ weighted
    inner = inner.toarray() if is_sparse(inner) else np.asarray(inner)
    if not intercept:
        return inner
    edge = np.asarray(weighted.sum(axis=0)).ravel()
    return np.block([[inner, edge[:, None]], [edge[None], np.array([[weights.sum()]])]])
