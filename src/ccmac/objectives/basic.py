"""Small functions of one vector: squared distance, absolute values, a box, a maximum of rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array, is_sparse, nonnegative, real_matrix, real_vector
from ccmac.linalg.symmetric import diagonal_matrix
from ccmac.objectives.base import Function, Step
from ccmac.objectives.loss import check_rows, row_norms_squared
from ccmac.objectives.polyhedral import Polyhedral, absolute, maximum


class Centred(Function):
    """weight * g(v - centre); ``centre`` None means the origin, any length."""

    coordinatewise = True
    arguments = ("weight", "centre")

    def __init__(self, weight: float = 1.0, centre: Any = None) -> None:
        name = type(self).__name__
        self.weight = nonnegative(f"{name}, weight", weight)
        self.centre = None if centre is None else real_vector(f"{name}, centre", centre)
        self.size = None if self.centre is None else len(self.centre)

    def _shifted(self, v: Array) -> Array:
        return v if self.centre is None else v - self.centre


class SquaredDistance(Centred):
    """(weight/2) ||v - centre||^2: ridge terms, squared losses, anchors; L = mu = weight.

    Parameters
    ----------
    weight : float
        Factor of half the squared distance.
    centre : array_like, optional
        Zero by default.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.SquaredDistance(2.0)
    >>> f.value(np.array([1.0, -2.0]), np.zeros(0))
    5.0
    """

    capabilities = frozenset({"gradient", "prox", "quadratic"})
    extended = True
    concordance = 0.0

    def __init__(self, weight: float = 1.0, centre: Any = None) -> None:
        super().__init__(weight, centre)
        self._shift = None if self.centre is None else self.weight * self.centre

    def constants(self, size: int) -> tuple[float, float]:
        return self.weight, self.weight

    def value_at(self, v: Array) -> float:
        shifted = self._shifted(v)
        return 0.5 * self.weight * float(shifted @ shifted)

    def gradient_at(self, v: Array) -> Array:
        """weight (v - centre); weight * centre is known as doubles hold it."""
        if self._shift is None or v.dtype == np.longdouble:
            return self.weight * self._shifted(v)
        return self.weight * v - self._shift

    def prox_at(self, v: Array, step: Step) -> Array:
        """(v + step weight centre) / (1 + step weight)."""
        right = v if self._shift is None else v + step * self._shift
        return right / (1.0 + step * self.weight)

    def quadratic_at(self, size: int) -> tuple[Array | sp.csr_array, Array, float]:
        """(weight I, weight centre, weight ||centre||^2 / 2)."""
        H = diagonal_matrix(np.full(size, self.weight))
        centre = np.zeros(size) if self.centre is None else self.centre
        return H, self.weight * centre, 0.5 * self.weight * float(centre @ centre)

    def isotropic(self) -> tuple[float, Array | None]:
        return self.weight, self._shift

    def lipschitz_at(self, size: int) -> float:
        return math.inf if self.weight else 0.0


class L1(Centred):
    """weight ||v - centre||_1: a lasso penalty, or the absolute loss with targets ``centre``.

    Parameters
    ----------
    weight : float
        Factor of the sum.
    centre : array_like, optional
        Targets; zero by default.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.L1(2.0)
    >>> f.value(np.array([1.0, -2.0]), np.zeros(0))
    6.0
    """

    capabilities = frozenset({"subgradient", "prox", "polyhedral"})

    def value_at(self, v: Array) -> float:
        return self.weight * float(np.abs(self._shifted(v)).sum())

    def gradient_at(self, v: Array) -> Array:
        """weight sign(v - centre): 0 at a kink."""
        return self.weight * np.sign(self._shifted(v))

    def prox_at(self, v: Array, step: Step) -> Array:
        """Soft threshold around the centre."""
        shifted = soft_threshold(self._shifted(v), step * self.weight)
        return shifted if self.centre is None else shifted + self.centre

    def polyhedral_at(self, size: int) -> Polyhedral:
        centre = np.zeros(size) if self.centre is None else self.centre
        return Polyhedral.zero(size).with_terms(absolute(self.weight, centre))

    def lipschitz_at(self, size: int) -> float:
        return self.weight * math.sqrt(size)


class Box(Function):
    """0 where low <= v <= high, +inf elsewhere; the prox clips.

    Bounds are numbers (any length of v) or vectors, and may be infinite. There is no gradient:
    methods that need one refuse, proximal ones accept.

    Parameters
    ----------
    low, high : float or array_like
        Bounds of every entry; may be infinite.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Box(-3, 3)
    >>> f.value(np.array([1.0, -2.0]), np.zeros(0))
    0.0
    """

    capabilities = frozenset({"prox", "polyhedral"})
    coordinatewise = True
    arguments = ("low", "high")

    def __init__(self, low: Any = -math.inf, high: Any = math.inf) -> None:
        self.low = _bound("Box, low", low)
        self.high = _bound("Box, high", high)
        if self.low.ndim and self.high.ndim and len(self.low) != len(self.high):
            raise InputError(
                f"Box, high: has {len(self.high)} entries but low has {len(self.low)}; "
                "they must be equal"
            )
        if (self.low > self.high).any() or (self.low == math.inf).any():
            raise InputError("Box, low: exceeds high somewhere; no point satisfies the bounds")
        if (self.high == -math.inf).any():
            raise InputError("Box, high: is -inf somewhere; no point satisfies the bounds")
        self.size = next((len(bound) for bound in (self.low, self.high) if bound.ndim), None)

    def value_at(self, v: Array) -> float:
        """0 inside, where a bound is met to rounding: averages of copies on it leave an ulp."""
        # share of an entry by which a bound may be missed
        room = 1e-14 * (1.0 + np.abs(v))
        inside = (self.low - room <= v) & (v <= self.high + room)
        return 0.0 if inside.all() else math.inf

    def prox_at(self, v: Array, step: Step) -> Array:
        return np.clip(v, self.low, self.high)

    def polyhedral_at(self, size: int) -> Polyhedral:
        low, high = (np.broadcast_to(bound, size) for bound in (self.low, self.high))
        return Polyhedral.zero(size).within(low, high)


class MaxAffine(Function):
    """max_j (Mv + c)_j; every row of M is a subgradient somewhere, the longest bounds them all.

    One subgradient is one product with M. There is no closed prox.

    Parameters
    ----------
    M : matrix
        One row an affine function.
    c : array_like, optional
        Their constants.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.MaxAffine(np.eye(2))
    >>> f.value(np.array([1.0, -2.0]), np.zeros(0))
    1.0
    """

    capabilities = frozenset({"subgradient", "polyhedral"})
    arguments = ("M", "c")

    def __init__(self, M: Any, c: Any = None) -> None:
        self.M = real_matrix("MaxAffine, M", M)
        if self.M.shape[0] == 0:
            raise InputError("MaxAffine, M: has no rows; a maximum needs at least one")
        self.c = np.zeros(self.M.shape[0]) if c is None else real_vector("MaxAffine, c", c)
        check_rows("MaxAffine, c", self.c, self.M)
        self.size = int(self.M.shape[1])

    def value_at(self, v: Array) -> float:
        return float(np.max(self.M @ v + self.c))

    def gradient_at(self, v: Array) -> Array:
        """The row that attains the maximum, the first of several."""
        row = self.M[[int(np.argmax(self.M @ v + self.c))]]
        return np.asarray(row.toarray() if is_sparse(row) else row).ravel()

    def polyhedral_at(self, size: int) -> Polyhedral:
        return Polyhedral.zero(size).with_terms(maximum(self.M, self.c))

    def lipschitz_at(self, size: int) -> float:
        return math.sqrt(float(np.max(row_norms_squared(self.M))))


def soft_threshold(v: Array, threshold: Step) -> Array:
    """sign(v) max(|v| - threshold, 0)."""
    return np.asarray(v - np.clip(v, -threshold, threshold))


def _bound(where: str, value: Any) -> Array:
    bound = real_vector(where, value, infinite=True)
    return bound[0] if np.ndim(value) == 0 else bound
