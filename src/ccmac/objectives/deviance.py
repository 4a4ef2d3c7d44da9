"""Half the unit deviance of Tweedie's distributions with a logarithmic link, means exp(v + o).

For the power p of the variance (1: Poisson, 2: gamma, between: compound Poisson, 3: inverse
Gaussian), up to a constant,

    phi(u) = exp((2-p) u)/(2-p) + y exp((1-p) u)/(p-1),    u = v + offset,

with u in the place of the first term for p = 2 and -y u in that of the second for p = 1. It is
convex for 1 <= p <= 2 (not for 3), and |phi'''| <= max(p-1, 2-p) phi'' there. Means more than
e^REACH times the largest y, or less than e^-REACH times their own, count with the parabola that
continues the exponential there: phi has a Lipschitz gradient, and its minimum is that of the
deviance wherever :meth:`Tweedie.within` holds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array, number, real_vector
from ccmac.objectives.loss import Loss

REACH = 5.0  # logarithm of how far means may be from what was observed


class Tweedie(Loss):
    """sum_j weight_j phi(v_j), v = M u, with y >= 0 (y > 0 from power 2 on); see the module.

    Parameters
    ----------
    M : array_like, optional
        Rows of the linear map; the identity by default.
    y : array_like
        Observations.
    weight : float or array_like
        Of every row.
    ridge : float
        Adds (ridge/2) |u|^2.
    power : float
        Of the variance: 1 (Poisson) to 2 (gamma), or 3 (inverse Gaussian).
    offset : array_like, optional
        Added to v.

    Examples
    --------
    >>> import numpy as np
    >>> from ccmac.objectives import Tweedie
    >>> f = Tweedie(np.ones((2, 1)), [1.0, 3.0])
    >>> slope, _ = f.gradient(np.log([2.0]), np.zeros(0))  # at the mean of y
    >>> bool(abs(slope[0]) < 1e-12)
    True
    """

    arguments = (*Loss.arguments, "power", "offset")
    steepest = math.inf

    def __init__(
        self,
        M: Any = None,
        y: Any = None,
        weight: Any = 1.0,
        ridge: float = 0.0,
        power: float = 1.0,
        offset: Any = None,
    ) -> None:
        self.power = number("Tweedie, power", power)
        if not (1 <= self.power <= 2 or self.power == 3):
            raise InputError(
                f"Tweedie, power: is {power}; take 1 (Poisson) to 2 (gamma), or 3 (inverse Gauss)"
            )
        values = real_vector("Tweedie, y", y)
        if (values < 0).any() or (self.power >= 2 and not values.all()):
            least = "positive" if self.power >= 2 else "not negative"
            raise InputError(f"Tweedie, y: some value is out of range; all must be {least}")
        if not values.any():
            raise InputError("Tweedie, y: all values are zero; the intercept would be infinite")
        self.offset = np.zeros(1) if offset is None else real_vector("Tweedie, offset", offset)
        a, b = 2.0 - self.power, self.power - 1.0
        self.concordance = max(a, b) if self.power <= 2 else None
        self._up = math.log(values.max()) + REACH
        with np.errstate(divide="ignore"):
            self._down = np.maximum(np.log(values), -500.0) - REACH
        self.convex = self.power <= 2
        self._first = a * (self._up if a > 0 else self._down)
        low = b * values * np.exp(-b * self._down) + np.abs(a) * np.exp(self._first)
        self.slope_lipschitz = float(low.max())  # type: ignore[misc]
        super().__init__(M, values, weight, ridge)

    def terms(self, u: Array) -> Array:
        assert self.y is not None
        u = u + self.offset
        a, b = 2.0 - self.power, self.power - 1.0
        first = u if a == 0 else _continued(a * u, self._first)[0] / a
        second = -u if b == 0 else _continued(-b * u, -b * self._down)[0] / b
        return np.asarray(first + self.y * second)

    def slope(self, u: Array) -> Array:
        """exp((2-p) u) - y exp((1-p) u), continued."""
        u = u + self.offset
        power = self.power
        first = _continued((2.0 - power) * u, self._first)[1]
        second = _continued((1.0 - power) * u, (1.0 - power) * self._down)[1]
        return np.asarray(first - self.y * second)

    def within(self, v: Array) -> bool:
        """Whether phi is the deviance at v and near it."""
        u = v + self.offset
        assert self.y is not None
        return bool((u < self._up - 1).all() and (u > self._down + 1)[self.y > 0].all())


def _continued(t: Any, end: Any) -> tuple[Any, Any]:
    """exp(t) and its slope; beyond ``end`` the parabola of the same value, slope and curvature."""
    inside = np.minimum(t, end)
    over = t - inside
    e = np.exp(inside)
    return e * (1.0 + over + 0.5 * over * over), e * (1.0 + over)
