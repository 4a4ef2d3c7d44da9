"""h(v) = min over sigma >= least, and b, of sum_j w_j sigma (1/2 + H((v_j + b - y_j) / sigma)).

H(t) = t^2/2 up to epsilon, then linear: Huber's loss together with its scale. Term by term this is
the perspective of a convex function, so jointly convex in (v, b, sigma), and h is convex. By the
envelope theorem grad h = w clip(r / sigma, -epsilon, epsilon) at the minimisers; L is at most
max w / least and mu = 0. Along (dv, db, dsigma) the second derivative is

    sum_j (w_j / sigma) (dv_j + db - (r_j / sigma) dsigma)^2     over |r_j| <= epsilon sigma,

so that h'' is what is left of dv next to the columns 1 and r/sigma in these weights (1 alone where
sigma = least). Whoever knows the scores fits b and sigma alone, without a message.

For one sigma the best b is where a sum of ramps crosses zero; in sigma the value then has the
slope (1/2) sum_j w_j (1 - min(r_j^2/sigma^2, epsilon^2)), which increases, with its root below the
standard deviation of v - y. Cost of h and of its gradient: some ten sorts of the residuals.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg

from ccmac.errors import InputError
from ccmac.inputs import FLAG, Array, of_kind, positive, real_vector
from ccmac.linalg.symmetric import weighted_gram
from ccmac.objectives.base import Function
from ccmac.objectives.loss import root, row_weights
from ccmac.objectives.polyhedral import crossing


class ConcomitantHuber(Function):
    """Huber's loss of v - y with its scale (at least ``least``), and an intercept if asked for.

    Parameters
    ----------
    y : array_like
        Targets, one a row.
    epsilon : float
        Residuals beyond epsilon times the scale count linearly.
    least : float
        Least value of the scale, in the units of y.
    weight : float or array_like
        Of the whole sum, or of each row.
    intercept : bool
        Whether a free constant is added to v.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.ConcomitantHuber([1.0, -2.0], intercept=False)
    >>> f.value(np.array([1.0, -2.0]), np.zeros(0))
    0.001
    """

    capabilities = frozenset({"gradient"})
    arguments = ("y", "epsilon", "least", "weight", "intercept")

    def __init__(
        self,
        y: Any,
        epsilon: float = 1.35,
        least: float = 1e-3,
        weight: Any = 1.0,
        intercept: bool = True,
    ) -> None:
        self.y = real_vector("ConcomitantHuber, y", y)
        self.size = len(self.y)
        self.epsilon = positive("ConcomitantHuber, epsilon", epsilon)
        if self.epsilon < 1:
            raise InputError(
                f"ConcomitantHuber, epsilon: is {epsilon}; below 1 the scale has no minimum"
            )
        self.least = positive("ConcomitantHuber, least", least)
        of_kind("ConcomitantHuber, intercept", intercept, FLAG, "True or False")
        self.intercept = bool(intercept)
        self.weight: Any = row_weights("ConcomitantHuber, weight", weight, len(self.y))
        self._last: tuple[Array, tuple[float, float]] = (np.zeros(0), (0.0, self.least))
        self._w: Array = np.broadcast_to(self.weight, self.y.shape).astype(np.float64)

    def constants(self, size: int) -> tuple[float, float]:
        """(max w / least, 0)."""
        return float(self._w.max(initial=0.0)) / self.least, 0.0

    def lipschitz_at(self, size: int) -> float:
        """epsilon |w|."""
        return self.epsilon * float(np.linalg.norm(self._w))

    def fitted(self, v: Array) -> tuple[float, float]:
        """(b, sigma) of the minimum; that of the last v is remembered."""
        if not np.array_equal(v, self._last[0]):
            self._last = v.copy(), self._minimum(v - self.y)
        return self._last[1]

    def _minimum(self, r: Array) -> tuple[float, float]:
        total = float(self._w.sum())
        if not total:
            return 0.0, self.least
        mean = float(self._w @ r) / total if self.intercept else 0.0
        high = math.sqrt(float(self._w @ (r - mean) ** 2) / total)
        if not high > self.least or self._rise(r, self.least) >= 0:
            return self._offset(r, self.least), self.least
        sigma = high * math.exp(root(lambda t: self._rise(r, high * math.exp(t))))
        return self._offset(r, sigma), sigma

    def _offset(self, r: Array, sigma: float) -> float:
        """The best b for one sigma."""
        if not self.intercept:
            return 0.0
        reach = self.epsilon * sigma
        height = 2.0 * self.epsilon * self._w
        return crossing(-r - reach, -r + reach, height, -0.5 * float(height.sum()))

    def _rise(self, r: Array, sigma: float) -> float:
        """Slope of the minimum over b in sigma."""
        t = (r + self._offset(r, sigma)) / sigma
        return 0.5 * float(self._w @ (1.0 - np.minimum(t**2, self.epsilon**2)))

    def offset(self, v: Array) -> Array:
        """b, one entry."""
        return np.array([self.fitted(v)[0]])

    def value_at(self, v: Array) -> float:
        b, sigma = self.fitted(v)
        r = v + b - self.y
        reach = self.epsilon * sigma
        clipped = np.clip(r, -reach, reach)
        return float(self._w @ (0.5 * sigma + clipped * (r - 0.5 * clipped) / sigma))

    def gradient_at(self, v: Array) -> Array:
        """w clip(r / sigma)."""
        b, sigma = self.fitted(v)
        return np.asarray(self._w * np.clip((v + b - self.y) / sigma, -self.epsilon, self.epsilon))

    has_gram = True

    def gram(self, v: Array, E: Array) -> Array:
        """E h''(v) E' for rows E."""
        b, sigma = self.fitted(v)
        t = (v + b - self.y) / sigma
        weights = np.where(np.abs(t) <= self.epsilon, self._w / sigma, 0.0)
        root = np.sqrt(weights)
        gram = weighted_gram(E, weights)
        free = [np.ones_like(t)] * self.intercept + [t] * (sigma > self.least)
        if free:
            follows = E @ (root[:, None] * scipy.linalg.orth(np.stack(free, 1) * root[:, None]))
            gram -= follows @ follows.T
        return gram
