"""sum_j weight_j (log sum_k exp(v_jk) - v_j,c_j): the loss of a choice among K classes.

v holds one row of K scores for each observation j with class c_j, flattened row by row. The
Hessian of a row is diag(p) - pp' with p the softmax, so L = max weight / 2 and mu = 0 (scores that
all grow alike change nothing). One gradient is one softmax.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from ccmac.errors import InputError
from ccmac.inputs import Array, real_vector
from ccmac.objectives.base import Function
from ccmac.objectives.loss import row_weights
from ccmac.texts import shown


class Multinomial(Function):
    """Cross entropy of rows of ``classes`` scores; ``y`` holds the classes 0, 1, ..., K - 1.

    Parameters
    ----------
    y : array_like of int
        Classes 0, 1, ..., one a row.
    classes : int
        How many there are.
    weight : float or array_like
        Of the whole sum, or of each row.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Multinomial([0, 1], 2)
    >>> round(f.value(np.zeros(4), np.zeros(0)), 6)
    1.386294
    """

    capabilities = frozenset({"gradient"})
    extended = True
    arguments = ("y", "classes", "weight")

    def __init__(self, y: Any, classes: int, weight: Any = 1.0) -> None:
        given = real_vector("Multinomial, y", y)
        if type(classes) is not int or classes < 2:
            raise InputError(f"Multinomial, classes: is {shown(classes)}; give a whole number >= 2")
        if ((given < 0) | (given >= classes) | (given != np.floor(given))).any():
            raise InputError(
                f"Multinomial, y: has entries that are no class 0..{classes - 1}; "
                "number the classes from 0"
            )
        self.y = given
        self.classes = classes
        self.size = len(given) * classes
        self.weight: Any = row_weights("Multinomial, weight", weight, len(given))
        self._row_weights: Array = np.broadcast_to(self.weight, given.shape)
        self._labels: NDArray[np.int64] = given.astype(np.int64)
        self._rows = np.arange(len(given))

    def _scores(self, v: Any) -> Any:
        return v.reshape(len(self.y), self.classes)

    def constants(self, size: int) -> tuple[float, float]:
        """(max weight / 2, 0)."""
        return 0.5 * float(np.max(self._row_weights, initial=0.0)), 0.0

    def value_at(self, v: Array) -> float:
        scores = self._scores(v)
        terms = logsumexp(scores, axis=1) - scores[self._rows, self._labels]
        return float(self._row_weights @ terms)

    def slopes(self, p: Any) -> Any:
        """weight_j (p - indicator of the class) by rows; at the class less what others have, which
        keeps its digits where the class is all but certain.
        """
        slopes = np.array(p)
        slopes[self._rows, self._labels] = 0.0
        slopes[self._rows, self._labels] = -slopes.sum(axis=1)
        slopes *= self._row_weights[:, None]
        return slopes

    def gradient_at(self, v: Array) -> Array:
        """weight_j (softmax - indicator of the class)."""
        return np.asarray(self.slopes(softmax(self._scores(v), axis=1)).ravel())

    has_gram = True

    def gram(self, v: Array, E: Array) -> Array:
        """E g''(v) E' for rows E."""
        p, mean = self._means(v, E)
        weighted = E * (self._row_weights[:, None] * p).ravel()
        return np.asarray(weighted @ E.T - (mean * self._row_weights) @ mean.T)

    def offset_curvature(self, v: Array, E: Array) -> tuple[Array, Array]:
        """(E g'' J, J'g''J) for J that adds one number to every class."""
        p, mean = self._means(v, E)
        weighted = self._row_weights[:, None] * p
        rows = E.reshape(len(E), *p.shape)
        cross = np.einsum("kjc,jc->kc", rows, weighted) - mean @ weighted
        return cross, self.class_curvature(p)

    def class_curvature(self, p: Array) -> Array:
        """sum_j weight_j (diag(p_j) - p_j p_j'): entries to the last digit, since every row sums to
        zero.
        """
        mixed = p.T @ (self._row_weights[:, None] * p)
        np.fill_diagonal(mixed, 0.0)
        return np.asarray(np.diag(mixed.sum(axis=0)) - mixed)

    def _means(self, v: Array, E: Array) -> tuple[Array, Array]:
        """Probabilities, and the mean of every row of scores of E under them."""
        p = softmax(self._scores(v), axis=1)
        return p, np.einsum("kjc,jc->kj", E.reshape(len(E), *p.shape), p)

    def lipschitz_at(self, size: int) -> float:
        """sqrt(2) ||weight||: a row's slope has norm at most sqrt(2)."""
        return float(np.sqrt(2.0) * np.linalg.norm(self._row_weights))
