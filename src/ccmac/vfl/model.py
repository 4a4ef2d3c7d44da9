"""What all parties of a vertical model agree on, and the agent that one party becomes.

    min (1/W) sum_j s_j loss(p_j + b, y_j) + (rho/2N) ||p||^2 + (lambda/2) ||w||^2 + l1 ||w||_1

(Equation eq:main-vfl-objective, more generally)
with p = sum_i X_i w_i, weights s_j of sum W, and the intercept b unpenalized. The coupled row is
scaled by 1/sqrt(N), and the shared variable is z = p / sqrt(N) for losses of a residual, z = p for
the others. A loss with an intercept fits it where it is evaluated (``objectives.Intercept``);
squared losses of dense tables have centred columns instead, which keeps them strongly convex.
Where a table is wide and the loss has kinks, the intercept is the weight of a column of ones of one
agent: the loss then acts row by row, and everybody eliminates z from the system of interior points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array, is_sparse, nonnegative, positive
from ccmac.methods.interior.compressed import WIDE
from ccmac.objectives import (
    L1,
    ConcomitantHuber,
    ElasticNet,
    Function,
    Hinge,
    Huber,
    Intercept,
    Logistic,
    Multinomial,
    Pinball,
    Quadratic,
    Separable,
    SquaredDistance,
    Tweedie,
)
from ccmac.objectives.sum import Sum
from ccmac.problem import Agent
from ccmac.vfl.labels import CLASSES, DEVIANCES, MARGINS, POWERS, known


@dataclass(frozen=True)
class VerticalModel:
    """Loss, penalties and sizes; ``fits_intercept``: the loss does, no column is centred;
    ``column``: the intercept is the weight of a column of ones.

    ``delta`` is Huber's threshold; with ``least`` > 0 it counts in multiples of a scale, at least
    that large, that is fitted as well (:mod:`ccmac.objectives.concomitant`).
    ``power`` is that of the variance, of loss "tweedie"; ``quantile`` is of that loss.
    """

    loss: str
    rows: int
    ridge: float
    l1: float = 0.0
    rho: float = 0.0
    delta: float = 1.0
    outputs: int = 1
    fits_intercept: bool = False
    least: float = 0.0
    power: float = 1.5
    quantile: float = 0.5
    column: bool = False

    def __post_init__(self) -> None:
        known(self.loss)
        nonnegative("vfl, regularization", self.ridge)
        nonnegative("vfl, l1", self.l1)
        nonnegative("vfl, shared_regularization", self.rho)
        positive("vfl, delta", self.delta)
        if self.fits_intercept and self.rho:
            raise InputError(
                "vfl: shared_regularization would penalize the intercept as well; drop one of them"
            )

    @property
    def prediction_scale(self) -> float:
        """Scores over z."""
        return 1.0 if self.loss in (*CLASSES, *DEVIANCES) else math.sqrt(self.rows)

    def with_column(self, columns: int) -> VerticalModel:
        """With the intercept as a column, if it has one and that makes a wide table cheaper."""
        plain = self.loss in ("hinge", "quantile") and not (self.l1 or self.rho)
        wide = self.rows <= WIDE * (columns + 1)
        return replace(self, column=self.fits_intercept and plain and wide)

    def in_units(self, columns: float, labels: float) -> VerticalModel:
        """The same model over labels^2, of columns and labels divided by these units (a loss that
        grows in proportion to the labels: over labels).
        """
        if self.loss == "quantile":
            return replace(self, ridge=self.ridge * labels / columns**2, l1=self.l1 / columns)
        if self.least:
            ridge = self.ridge * labels / columns**2
            least = self.least / labels
            return replace(self, ridge=ridge, least=least)
        return replace(
            self,
            ridge=self.ridge / columns**2,
            l1=self.l1 / (columns * labels),
            delta=self.delta / labels,
        )

    def agent(self, X: Any, share: float, loss: Function | None, *, ones: bool = False) -> Agent:
        """The party with columns X and its share of the coupling and of the loss; ``ones``: and
        the intercept, in units of z, behind its weights.
        """
        root = math.sqrt(self.rows)
        k = self.outputs
        if is_sparse(X):
            A: Any = sp.csr_array(X) / root
        else:
            A = X / root
        if k > 1:
            A = sp.csr_array(sp.kron(sp.csr_array(A), sp.eye_array(k), format="csr"))
        unit = self.prediction_scale / root
        penalty = self._penalty()
        if ones:
            column = np.full((self.rows, 1), unit)
            A = (
                sp.csr_array(sp.hstack([A, sp.csr_array(column)]))
                if is_sparse(X)
                else np.hstack([A, column])
            )
            penalty = Quadratic(np.append(np.full(X.shape[1], self.ridge), 0.0))
        identity = sp.eye_array(self.rows * k, format="csr") * unit
        return Agent(Separable(x=penalty, z=loss), A=A, B=-share * identity)

    def _penalty(self) -> Function:
        if self.l1:
            return ElasticNet(self.l1, self.ridge) if self.ridge else L1(self.l1)
        return SquaredDistance(self.ridge)

    def shared_loss(
        self, y: Array, share: float, weights: Array | None = None, offset: Array | None = None
    ) -> Function:
        """A share of (1/W) sum s loss + (rho/2N) ||p||^2 in the variable z; ``offset`` is added to
        the scores that a deviance takes.
        """
        rho = self.rho
        root = math.sqrt(self.rows)
        if weights is None:
            each: Any = share / self.rows
        else:
            each = share * weights / float(weights.sum())
        part = self._residual_loss(y, share, each, root) if self.prediction_scale == root else None
        if self.loss in MARGINS:
            kind = Logistic if self.loss == "logistic" else Hinge
            part = kind(y=y, weight=each, ridge=share * rho / self.rows)
        elif self.loss in DEVIANCES:
            ridge = share * rho / self.rows
            power = POWERS.get(self.loss, self.power)
            part = Tweedie(y=y, weight=each, ridge=ridge, power=power, offset=offset)
        elif self.loss == "multinomial":
            part = Multinomial(y, self.outputs, each)
            if rho:
                part = Sum(part, SquaredDistance(share * rho / self.rows))
        assert part is not None
        fitted = self.fits_intercept and not (self.least or self.column)
        return Intercept(part) if fitted else part

    def _residual_loss(self, y: Array, share: float, each: Any, root: float) -> Function:
        """Losses of p - y in z = p / root: weights of rows are times N."""
        rho = self.rho
        weight = share if np.ndim(each) == 0 else each * self.rows
        if self.loss == "squared":
            if np.ndim(weight):
                return Quadratic(weight + share * rho, weight * y / root)
            if rho:
                # (1/2)(z - yb)^2 + (rho/2) z^2 up to a constant.
                return SquaredDistance(share * (1 + rho), y / root / (1 + rho))
            return SquaredDistance(share, y / root)
        if self.least:
            scaled = (y / root, self.delta, self.least / root, weight / root)
            return ConcomitantHuber(*scaled, intercept=self.fits_intercept)
        if self.loss == "huber":
            return Huber(y=y / root, delta=self.delta / root, weight=weight, ridge=share * rho)
        if self.loss == "quantile":
            return Pinball(None, y / root, self.quantile, weight / root, share * rho)
        if np.ndim(weight):
            raise InputError("vfl: loss 'absolute' takes no sample_weight; use loss 'huber'")
        part: Function = L1(share / root, centre=y / root)
        return Sum(part, SquaredDistance(share * rho)) if rho else part
