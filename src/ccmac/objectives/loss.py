"""Losses of a linear image: sum_j weight_j phi_j((Mv)_j) + (ridge/2) ||v||^2.

``weight`` is one number for all terms or a vector with one for each. A loss supplies phi and its
slope as functions of arrays.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy
import scipy.sparse as sp
from scipy.special import expit

from ccmac.errors import InputError
from ccmac.inputs import (
    Array,
    as_array,
    is_sparse,
    labels,
    nonnegative,
    positive,
    real_matrix,
    real_vector,
)
from ccmac.linalg.blocks import plus
from ccmac.linalg.extended import times
from ccmac.linalg.symmetric import diagonal_matrix, gram_extremes
from ccmac.objectives.base import Curvature, Function, Step, rise
from ccmac.objectives.polyhedral import Epigraph, Polyhedral, ramps


class Linear(Function):
    """weight * l(Mv) + (ridge/2) ||v||^2 (``M`` None: l(v)); ``y`` has one entry per row of M."""

    extended = True
    bend: tuple[float, float]
    """Bounds (low, high) of weight * l''."""

    def __init__(self, M: Any, y: Array | None, weight: float, ridge: float) -> None:
        name = type(self).__name__
        self.weight = nonnegative(f"{name}, weight", weight)
        self.ridge = nonnegative(f"{name}, ridge", ridge)
        self.M: Any = None if M is None else real_matrix(f"{name}, M", M)
        self.y = y
        if self.M is not None and y is not None:
            check_rows(f"{name}, y", y, self.M)
        self.coordinatewise = self.M is None
        if self.M is not None:
            self.size = int(self.M.shape[1])
        elif y is not None:
            self.size = len(y)

    @abstractmethod
    def slopes(self, image: Any) -> Any:
        """weight * l' at an image, in its format."""

    def gradient_at(self, v: Array) -> Array:
        """weight M' l'(Mv) + ridge v."""
        gradient = self.slopes(v if self.M is None else times(self.M, v))
        if self.M is not None:
            gradient = times(self.M.T, gradient)
        if self.ridge:
            gradient += self.ridge * v
        return np.asarray(gradient)

    def curvature(self, d: int, q: int) -> Curvature:
        """From the columns of M that act on x and on z."""
        if self.M is None or math.isinf(self.bend[1]):
            return super().curvature(d, q)
        (L_x, mu_x), (L_z, mu_z) = (self._block(M) for M in (self.M[:, :d], self.M[:, d:]))
        separable = 0 in (d, self.M.shape[1] - d)
        return Curvature(L_x, mu_x, L_z, mu_z, *self.constants(d + q), separable=separable)

    def _block(self, M: Any) -> tuple[float, float]:
        """(L, mu) in the columns M; a block without columns does not count."""
        low, high = self.bend
        L, mu = gram_extremes(M, both=low > 0).bounds()
        if M.shape[1] == 0:
            return L, mu
        return high * L + self.ridge, low * mu + self.ridge

    def scaled_curvature(self, d: int, q: int, t: float, s: float) -> tuple[float, float]:
        """From the extreme singular values of [t M_x, s M_z]."""
        low, high = self.bend
        if self.M is None or math.isinf(high):
            return super().scaled_curvature(d, q, t, s)
        scale = np.repeat([t, s], [d, self.M.shape[1] - d])
        scaled = self.M @ diagonal_matrix(scale) if is_sparse(self.M) else self.M * scale
        L, mu = gram_extremes(scaled, both=low > 0).bounds()
        small = min(t, s) ** 2
        large = max(t, s) ** 2
        return (low * mu if low else 0.0) + small * self.ridge, high * L + large * self.ridge


class Loss(Linear):
    """An elementwise loss of Mv (``M`` None: of v itself) with an optional ridge.

    Smooth losses have L = max weight * slope_lipschitz * sigma_max(M)^2 + ridge and mu = ridge (a
    bound unless all weights are alike). The prox exists for M None. One gradient is one product
    with M and one with M'.
    """

    arguments: tuple[str, ...] = ("M", "y", "weight", "ridge")
    slope_lipschitz: ClassVar[float]
    """sup phi'' (inf: phi has kinks)."""

    weight: Any  # a number or a vector

    def __init__(self, M: Any, y: Array | None, weight: Any, ridge: float) -> None:
        super().__init__(M, y, 1.0, ridge)
        targets = None if y is None else len(y)
        rows = targets if self.M is None else self.M.shape[0]
        self.weight = row_weights(f"{type(self).__name__}, weight", weight, rows)
        if self.size is None and np.ndim(self.weight):
            self.size = len(self.weight)
        heaviest = float(np.max(self.weight, initial=0.0))
        # without the 0 * inf of a loss that is switched off
        self.bend = (0.0, heaviest * self.slope_lipschitz if heaviest else 0.0)
        smooth = math.isfinite(self.slope_lipschitz)
        oracle = {"gradient" if smooth else "subgradient"}
        self.capabilities = frozenset(oracle | ({"prox"} if self.M is None else set()))

    # -- what a loss supplies -----------------------------------------------------------------
    @abstractmethod
    def terms(self, u: Array) -> Array:
        """phi_j(u_j)."""

    @abstractmethod
    def slope(self, u: Array) -> Array:
        """phi_j'(u_j), one slope at a kink."""

    steepest: float = 1.0
    """sup |phi'|."""

    def prox_terms(self, v: Array, step: Step) -> Array:
        """argmin_u phi_j(u) + (u - v_j)^2/(2 step), entry by entry: a root, unless overridden."""
        inverse = np.broadcast_to(1.0 / np.maximum(step, 1e-300), v.shape)

        return increasing_root(lambda u: self.slope(u) + inverse * u, -inverse * v, inverse, v)

    # -- the function ---------------------------------------------------------------------------
    @cached_property
    def _norm_squared(self) -> float:
        return 1.0 if self.M is None else gram_extremes(self.M, both=False).bounds()[0]

    def constants(self, size: int) -> tuple[float, float]:
        """(weight sup phi'' ||M||^2 + ridge, ridge)."""
        high = self.bend[1]
        if math.isinf(high):
            return math.inf, self.ridge
        return high * self._norm_squared + self.ridge, self.ridge

    def value_at(self, v: Array) -> float:
        """weight * sum of the terms, plus the ridge."""
        terms = self.terms(v if self.M is None else self.M @ v)
        value = float(self.weight @ terms if np.ndim(self.weight) else self.weight * np.sum(terms))
        return value + (0.5 * self.ridge * float(v @ v) if self.ridge else 0.0)

    def slopes(self, image: Any) -> Any:
        """weight phi'."""
        return np.asarray(self.weight * self.slope(image), dtype=image.dtype)

    @property
    def has_hessian(self) -> bool:
        """Whether :meth:`hessian_at` exists: always."""
        return True

    def hessian_at(self, v: Array) -> Any:
        """M' diag(weight phi''(Mv)) M + ridge I."""
        if self.M is None:
            return super().hessian_at(v)

        bend = diagonal_matrix(rise(self.slopes, self.M @ v))
        ridge: Any = self.ridge * sp.eye_array(len(v))
        return plus(self.M.T @ (bend @ self.M), ridge if is_sparse(self.M) else ridge.toarray())

    def prox_at(self, v: Array, step: Step) -> Array:
        """The ridge shrinks point and step: prox of weight*step/(1+ridge*step) phi."""
        if self.M is not None:
            return super().prox_at(v, step)
        shrink = 1.0 + self.ridge * step
        return self.prox_terms(v / shrink, self.weight * step / shrink)

    def lipschitz_at(self, size: int) -> float:
        """sup|phi'| min(sum_j weight_j ||M_j||, ||weight|| ||M||); inf with a ridge."""
        if self.ridge:
            return math.inf
        terms = size if self.M is None else self.M.shape[0]
        weights = np.broadcast_to(self.weight, terms)
        norm = float(np.linalg.norm(weights))
        if self.M is None:
            return self.steepest * norm
        rows = float(weights @ np.sqrt(row_norms_squared(self.M)))
        return self.steepest * min(rows, norm * math.sqrt(self._norm_squared))


class Kinked(Loss):
    """A loss that is piecewise linear: an epigraph for methods that take one."""

    slope_lipschitz = math.inf

    def __init__(self, M: Any, y: Array | None, weight: Any, ridge: float) -> None:
        super().__init__(M, y, weight, ridge)
        self.capabilities |= {"polyhedral"}

    @abstractmethod
    def epigraph(self, M: Any, share: float = 1.0, *, intercept: bool = False) -> Epigraph:
        """``share`` times the loss of scores Mv, or Mv + b."""

    def polyhedral_at(self, size: int) -> Polyhedral:
        M = sp.eye_array(size, format="csr") if self.M is None else self.M
        ridge = diagonal_matrix(np.full(size, self.ridge))
        return Polyhedral.quadratic(ridge, np.zeros(size), 0.0).with_terms(self.epigraph(M))

    def over(self, M: Any, share: float = 1.0) -> Self:
        """``share`` times the same of scores Mv."""
        weights = {"weight": share * self.weight, "ridge": share * self.ridge}
        return type(self)(**{**self.state(), "M": M, **weights})


class Huber(Loss):
    """h((Mv)_j - y_j) with h(r) = r^2/2 for |r| <= delta, else delta (|r| - delta/2).

    ``y`` None means zero targets. L = weight ||M||^2 + ridge (attained when some v has all
    residuals within delta), mu = ridge.

    Parameters
    ----------
    M : matrix, optional
        Rows of data; None stands for the identity.
    y : array_like, optional
        Targets; None means zeros.
    delta : float
        Residuals beyond it count linearly.
    weight : float or array_like
        Of the whole sum, or of each row.
    ridge : float
        Adds (ridge/2) ||v||^2.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Huber(np.eye(2), [0.0, 0.0])
    >>> f.value(np.array([1.0, -2.0]), np.zeros(0))
    2.0
    """

    arguments = (*Loss.arguments, "delta")
    slope_lipschitz = 1.0

    def __init__(
        self,
        M: Any = None,
        y: Any = None,
        delta: float = 1.0,
        weight: Any = 1.0,
        ridge: float = 0.0,
    ) -> None:
        self.delta = self.steepest = positive("Huber, delta", delta)
        super().__init__(M, None if y is None else real_vector("Huber, y", y), weight, ridge)

    def terms(self, u: Array) -> Array:
        """With c = clip(r, -delta, delta): c (r - c/2)."""
        residual = u if self.y is None else u - self.y
        clipped = np.clip(residual, -self.delta, self.delta)
        return np.asarray(clipped * (residual - 0.5 * clipped))

    def slope(self, u: Array) -> Array:
        """clip(u - y, -delta, delta)."""
        return np.clip(u if self.y is None else u - self.y, -self.delta, self.delta)

    def prox_terms(self, v: Array, step: Step) -> Array:
        """v - clip(step r/(1 + step), -step delta, step delta) with r = v - y."""
        residual = v if self.y is None else v - self.y
        bound = step * self.delta
        return np.asarray(v - np.clip(step * residual / (1.0 + step), -bound, bound))


class MarginLoss(Loss):
    """A loss of the margins y_j (Mv)_j for labels y_j in {-1, +1}."""

    def __init__(self, M: Any = None, y: Any = None, weight: Any = 1.0, ridge: float = 0.0) -> None:
        self.minus_y = -labels(f"{type(self).__name__}, y", y)
        super().__init__(M, -self.minus_y, weight, ridge)


class Logistic(MarginLoss):
    """log(1 + exp(-y_j (Mv)_j)); L = (weight/4) ||M||^2 + ridge, attained at v = 0, mu = ridge.

    Parameters
    ----------
    M : matrix, optional
        Rows of data; None stands for the identity.
    y : array_like, optional
        Classes, -1 or 1.
    weight : float or array_like
        Of the whole sum, or of each row.
    ridge : float
        Adds (ridge/2) ||v||^2.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Logistic(np.zeros((1, 2)), [1])
    >>> f.value(np.array([1.0, -2.0]), np.zeros(0))
    0.6931471805599453
    """

    slope_lipschitz = 0.25
    concordance = 1.0

    def terms(self, u: Array) -> Array:
        """log(1 + exp(-y u)) without overflow."""
        return np.logaddexp(0.0, self.minus_y * u)

    def slope(self, u: Array) -> Array:
        """-y / (1 + exp(y u)), accurate in both tails."""
        return np.asarray(expit(u * self.minus_y) * self.minus_y)


class Hinge(MarginLoss, Kinked):
    """max(0, 1 - y_j (Mv)_j), the support vector machine's loss; not smooth, mu = ridge.

    Parameters
    ----------
    M : matrix, optional
        Rows of data; None stands for the identity.
    y : array_like, optional
        Classes, -1 or 1.
    weight : float or array_like
        Of the whole sum, or of each row.
    ridge : float
        Adds (ridge/2) ||v||^2.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Hinge(np.eye(2), [1, 1])
    >>> f.value(np.array([1.0, -2.0]), np.zeros(0))
    3.0
    """

    def terms(self, u: Array) -> Array:
        """max(0, 1 - y u)."""
        return np.maximum(0.0, 1.0 + self.minus_y * u)

    def slope(self, u: Array) -> Array:
        """-y where y u < 1, else 0."""
        return np.asarray((u * self.minus_y > -1.0) * self.minus_y)

    def prox_terms(self, v: Array, step: Step) -> Array:
        """The margin s = y v moves up by at most ``step``, never past 1."""
        margin = -self.minus_y * v
        return np.asarray(-self.minus_y * np.maximum(margin, np.minimum(margin + step, 1.0)))

    def epigraph(self, M: Any, share: float = 1.0, *, intercept: bool = False) -> Epigraph:
        """``share`` times the hinges of scores Mv, or Mv + b."""
        y = -self.minus_y
        R = sp.csr_array(sp.diags_array(y) @ M) if is_sparse(M) else y[:, None] * M
        return ramps(R, np.ones(len(y)), -share * self.weight, 0.0, y if intercept else None)


class Pinball(Kinked):
    """max(q r_j, (q - 1) r_j) of r = y - Mv: at the least of it Mv is the quantile q.

    Parameters
    ----------
    M : matrix, optional
        Rows of data; None stands for the identity.
    y : array_like, optional
        Targets.
    quantile : float
        q, between 0 and 1.
    weight : float or array_like
        Of the whole sum, or of each row.
    ridge : float
        Adds (ridge/2) ||v||^2.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Pinball(None, [1.0, -1.0], quantile=0.75)
    >>> f.value(np.zeros(2), np.zeros(0))
    1.0
    """

    arguments = ("M", "y", "quantile", "weight", "ridge")

    def __init__(
        self,
        M: Any = None,
        y: Any = None,
        quantile: float = 0.5,
        weight: Any = 1.0,
        ridge: float = 0.0,
    ) -> None:
        super().__init__(M, real_vector("Pinball, y", y), weight, ridge)
        self.quantile = positive("Pinball, quantile", quantile)
        if self.quantile >= 1:
            raise InputError(f"Pinball, quantile: is {quantile}; it must be between 0 and 1")

    @property
    def _targets(self) -> Array:
        assert self.y is not None
        return self.y

    def terms(self, u: Array) -> Array:
        """q r, or (q - 1) r where r = y - u is negative."""
        r = self._targets - u
        return np.maximum(self.quantile * r, (self.quantile - 1.0) * r)

    def slope(self, u: Array) -> Array:
        """-q where u < y, else 1 - q."""
        return np.asarray((u >= self._targets) - self.quantile)

    def prox_terms(self, v: Array, step: Step) -> Array:
        """Towards y by q step from below, by (1 - q) step from above."""
        y = self._targets
        low = np.minimum(v + self.quantile * step, y)
        return np.asarray(np.where(v < y, low, np.maximum(v - (1.0 - self.quantile) * step, y)))

    def epigraph(self, M: Any, share: float = 1.0, *, intercept: bool = False) -> Epigraph:
        """``share`` times the loss of scores Mv, or Mv + b."""
        y = self._targets
        every = np.broadcast_to(share * self.weight, len(y))
        ends = -self.quantile * every, (1.0 - self.quantile) * every
        return ramps(M, y, *ends, np.ones(len(y)) if intercept else None)


def increasing_root(
    slope: Callable[[Array], Array], linear: Array, mu: Array, start: Array
) -> Array:
    """v with slope(v) + linear = 0; the slope acts entry by entry and rises by mu > 0.

    The root lies within |slope(v) + linear|/mu of any v, which gives a bracket. Newton's method may
    fall into a 2-cycle even inside one, so an entry whose residual did not halve is bisected.
    Derivatives are central differences: 3 slopes a step.
    """
    v = start
    residual = slope(start) + linear
    reach = residual / mu
    low = v - np.maximum(reach, 0.0)
    high = v - np.minimum(reach, 0.0)
    before = np.full_like(residual, np.inf)
    for _ in range(100):
        bend = rise(slope, v, mu)
        # a residual below this share of its terms is rounding
        done = np.abs(residual) <= 1e-14 * np.maximum(np.abs(linear), bend * np.abs(v))
        if done.all():
            break
        newton = v - residual / bend
        good = (np.abs(residual) <= 0.5 * before) & (newton >= low) & (newton <= high)
        before = np.abs(residual)
        v = np.where(done, v, np.where(good, newton, 0.5 * (low + high)))
        residual = slope(v) + linear
        low = np.where(residual <= 0, v, low)
        high = np.where(residual >= 0, v, high)
    return v


def root(slope: Callable[[float], float], reach: float = 1.0) -> float:
    """A root of an increasing function of one number, first sought within ``reach`` of 0.

    Where the function does not change its sign: the end of the search.
    """
    at_zero = slope(0.0)
    if at_zero == 0.0:
        return 0.0
    sign = -1.0 if at_zero > 0 else 1.0
    near = 0.0
    # Signs, not products: slopes of 1e-300 have none.
    while sign * (far := slope(sign * reach)) < 0 and reach < 1e300:
        near = reach
        reach = 4.0 * reach
    if not sign * far > 0.0:
        return sign * reach
    return float(
        scipy.optimize.brentq(
            slope, sign * near, sign * reach, xtol=1e-300, rtol=1e-15, maxiter=500
        )
    )


def row_weights(where: str, weight: Any, rows: int | None) -> Any:
    """One number, or a vector with one entry for each of ``rows``; none of them negative."""
    if as_array(where, weight).ndim == 0:
        return nonnegative(where, weight)
    weights = real_vector(where, weight)
    if (weights < 0).any():
        raise InputError(f"{where}: has entries below zero; give weights that are not negative")
    if rows is not None and len(weights) != rows:
        raise InputError(
            f"{where}: has {len(weights)} entries but there are {rows} terms; "
            "give one number or one for each row"
        )
    return weights


def check_rows(where: str, vector: Array, M: Any) -> None:
    """Raise InputError unless ``vector`` has one entry per row of M."""
    if len(vector) != M.shape[0]:
        raise InputError(
            f"{where}: has {len(vector)} entries but M has {M.shape[0]} rows; they must be equal"
        )


def row_norms_squared(M: Any) -> Array:
    """||M_j||^2 of every row."""
    squares = M.multiply(M) if is_sparse(M) else M * M
    return np.asarray(squares.sum(axis=1))
