"""f(x, z) under bounds, with slack entries that f does not see.

    f(x, z) where lower <= (x, s, z) <= upper, +inf elsewhere;   the agent's x is (x, s)

This is what rows with <= and >= and bounds become (:mod:`ccmac.limits`). Everything that f is known
for and that bounds leave intact stays known: constants of convexity where there are no slacks, the
quadratic form, the prox where that of f with a box has a closed form.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array, real_vector, whole
from ccmac.objectives.base import Curvature, Function, Objective
from ccmac.objectives.basic import Box
from ccmac.objectives.polyhedral import Polyhedral
from ccmac.objectives.separable import Separable
from ccmac.objectives.sum import Sum


class Limited(Objective):
    """``objective`` on (x, z), bounds on (x, s, z); ``slacks`` and ``q`` are the sizes of s and z.

    Without a finite bound it offers all that the objective does.

    Parameters
    ----------
    objective : Objective
        The function without bounds.
    lower, upper : array_like
        Bounds of (x, s, z).
    slacks : int
        The length of s.
    q : int
        The length of z.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Limited(ccmac.objectives.SquaredDistance(), [0.0], [1.0])
    >>> f.value(np.array([2.0]), np.zeros(0))
    inf
    """

    arguments = ("objective", "lower", "upper", "slacks", "q")

    def __init__(
        self, objective: Objective, lower: Any, upper: Any, slacks: int = 0, q: int = 0
    ) -> None:
        if not isinstance(objective, Objective):
            raise InputError("Limited, objective: is no objective; use ccmac.objectives.*")
        self.objective = objective
        self.extended = objective.extended
        self.slacks, self.q = whole("Limited, slacks", slacks), whole("Limited, q", q)
        box = Box(
            real_vector("Limited, lower", lower, infinite=True),
            real_vector("Limited, upper", upper, infinite=True),
        )
        self.lower = box.low
        self.upper = box.high
        self.d = len(self.lower) - self.q - self.slacks
        if len(self.lower) != len(self.upper) or min(self.d, self.slacks, self.q) < 0:
            raise InputError("Limited: the bounds do not have the length of (x, s, z)")
        self.seen = np.r_[: self.d, self.d + self.slacks : len(self.lower)]
        self.free = bool(np.isinf(self.lower).all() and np.isinf(self.upper).all())
        self.inner = _boxed(objective, self.lower[self.seen], self.upper[self.seen], self.d)
        able = frozenset() if self.inner is None else self.inner.capabilities
        shape = frozenset({"polyhedral"} if objective.is_polyhedral else ())
        self.capabilities = able if self.free else (able & {"prox"}) | shape

    @property
    def dim(self) -> int:
        """Length of (x, s, z)."""
        return len(self.lower)

    @property
    def x_size(self) -> int:
        """Length of (x, s)."""
        return self.d + self.slacks

    @property
    def z_size(self) -> int:
        """Length of z."""
        return self.q

    def check(self, d: int, q: int) -> None:
        """The sizes are those of the bounds."""
        if (d, q) != (self.x_size, self.q):
            raise InputError(f"Limited acts on {self.x_size} and {self.q} entries, not {d} and {q}")
        self.objective.check(self.d, self.q)

    def curvature(self, d: int, q: int) -> Curvature:
        """Of f; bounds are not smooth, slacks have no curvature."""
        found = self.objective.curvature(self.d, self.q)
        bounded = np.isfinite(self.lower) | np.isfinite(self.upper)
        in_x = bool(bounded[:d].any())
        in_z = bool(bounded[d:].any())
        if in_x or self.slacks:
            L_x = math.inf if in_x else found.L_x
            mu_x = 0.0 if self.slacks else found.mu_x
            found = replace(found, L_x=L_x, mu_x=mu_x, mu=min(found.mu, mu_x))
        if in_z:
            found = replace(found, L_z=math.inf)
        return replace(found, L=max(found.L, found.L_x, found.L_z))

    def value(self, x: Array, z: Array) -> float:
        """f within the bounds (met to rounding), else +inf."""
        outside = Box(self.lower, self.upper).value_at(np.concatenate([x, z]))
        return outside + self.objective.value(x[: self.d], z)

    def gradient(self, x: Array, z: Array) -> tuple[Array, Array]:
        """Of f; 0 in the slacks."""
        if not self.free:
            return super().gradient(x, z)
        slope, other = self.objective.gradient(x[: self.d], z)
        return np.concatenate([slope, np.zeros(self.slacks)]), other

    def prox(self, x: Array, z: Array, step_x: float, step_z: float) -> tuple[Array, Array]:
        """That of f with its box; the slacks are clipped."""
        if self.inner is None or "prox" not in self.capabilities:
            return super().prox(x, z, step_x, step_z)
        u, v = self.inner.prox(x[: self.d], z, step_x, step_z)
        own = slice(self.d, self.x_size)
        return np.concatenate([u, np.clip(x[own], self.lower[own], self.upper[own])]), v

    def quadratic(self, d: int, q: int) -> tuple[Array | sp.csr_array, Array, float]:
        """The form of f, with empty rows for the slacks; none with bounds."""
        if not self.free:
            return super().quadratic(d, q)
        H, g, constant = self.objective.quadratic(self.d, self.q)
        if not self.slacks:
            return H, g, constant
        sparse = sp.coo_array(H)
        size = len(self.lower)
        places = self.seen[sparse.row], self.seen[sparse.col]
        wide = sp.csr_array(sp.coo_array((sparse.data, places), shape=(size, size)))
        slope = np.zeros(size)
        slope[self.seen] = g
        return wide, slope, constant

    def polyhedral(self, d: int, q: int) -> Polyhedral:
        """The form of f with the bounds, empty columns for the slacks."""
        form = self.objective.polyhedral(self.d, self.q)
        return form.spread(self.seen, len(self.lower)).within(self.lower, self.upper)

    def lipschitz(self, d: int, q: int) -> float:
        """Of f where nothing is bounded."""
        return self.objective.lipschitz(self.d, self.q) if self.free else math.inf

    def taken_apart(self, smooth: Objective, simple: Objective) -> tuple[Limited, Limited]:
        """(H, G with the bounds) on the same variables, where f = H + G."""
        free = np.full(len(self.lower), math.inf)
        return (
            Limited(smooth, -free, free, self.slacks, self.q),
            Limited(simple, self.lower, self.upper, self.slacks, self.q),
        )


def _boxed(objective: Objective, lower: Array, upper: Array, d: int) -> Objective | None:
    """f plus a box on (x, z), in a form that knows its prox; None where there is none."""
    if np.isinf(lower).all() and np.isinf(upper).all():
        return objective
    if isinstance(objective, Separable):
        return Separable(
            _sum(objective.x_part, lower[:d], upper[:d]),
            _sum(objective.z_part, lower[d:], upper[d:]),
        )
    return _sum(objective, lower, upper) if isinstance(objective, Function) else None


def _sum(part: Function | None, lower: Array, upper: Array) -> Function | None:
    if np.isinf(lower).all() and np.isinf(upper).all():
        return part
    box = Box(lower, upper)
    return box if part is None else Sum(part, box)
