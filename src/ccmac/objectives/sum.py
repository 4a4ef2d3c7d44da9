"""Sums of functions of one vector, and functions under bounds.

    f(x, z) where lower <= (x, s, z) <= upper, +inf elsewhere;   the agent's x is (x, s)

is what rows with <= and >= and bounds become (:mod:`ccmac.limits`). Everything that f is known for
and that bounds leave intact stays known: constants of convexity where there are no slacks, the
quadratic form, the prox where that of f with a box has a closed form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array, nonnegative, real_vector, whole
from ccmac.linalg.blocks import plus
from ccmac.objectives.base import Curvature, Function, Objective, Step
from ccmac.objectives.basic import L1, Box, SquaredDistance
from ccmac.objectives.custom import Custom, Joint
from ccmac.objectives.polyhedral import Polyhedral
from ccmac.objectives.quadratic import Quadratic
from ccmac.objectives.separable import Separable
from ccmac.objectives.sets import OneRow


class Sum(Function):
    """g_1(v) + ... + g_k(v); also written ``g_1 + g_2``.

    L and mu are sums of the parts' constants: exact when at most one part is not a squared
    distance or when all are quadratic (then from the summed Hessian), else safe bounds.

    The prox is offered where it costs no more than that of a part. Squared distances merge with the
    proximal term itself and leave the prox of one other part at a shifted point with a shorter
    step; quadratics add up to one quadratic. On top of a coordinatewise part boxes clip, and the
    simplex is one root; a halfspace is one root on top of whatever has a prox.

    Parameters
    ----------
    *parts : Function or Custom
        The summands. A Custom is a function of the one vector here: it is called with an empty z.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Sum(ccmac.objectives.L1(), ccmac.objectives.SquaredDistance())
    >>> f.value(np.array([1.0, -2.0]), np.zeros(0))
    5.5
    """

    def __init__(self, *parts: Function | Custom) -> None:
        flat: list[Function] = []
        for given in parts:
            part = Joint(given) if isinstance(given, Custom) else given
            if not isinstance(part, Function):
                raise InputError(
                    f"Sum: {type(part).__name__} is not a function of one vector; "
                    "add such terms inside Separable or write them into Custom"
                )
            flat.extend(part.parts if isinstance(part, Sum) else [part])
        if not flat:
            raise InputError("Sum: has no parts; give at least one function")
        self.parts: tuple[Function, ...] = tuple(flat)
        sizes = {part.size for part in flat} - {None}
        if len(sizes) > 1:
            raise InputError(f"Sum: the parts act on different lengths {sorted(map(str, sizes))}")
        self.size = next(iter(sizes), None)
        self.coordinatewise = all(part.coordinatewise for part in flat)
        self.extended = all(part.extended for part in flat)
        self._plain = [known for part in flat if (known := part.isotropic()) is not None]
        self._boxes = [part for part in flat if isinstance(part, Box)]
        self._sets = [part for part in flat if isinstance(part, OneRow)]
        rest = [part for part in flat if not isinstance(part, OneRow)]
        self._rest = Sum(*rest) if self._sets and rest else None
        self._others = [p for p in rest if p.isotropic() is None and not isinstance(p, Box)]
        self.capabilities = self._find_capabilities()
        self._check_bounds()

    def _find_capabilities(self) -> frozenset[str]:
        offered = [part.capabilities for part in self.parts]
        found: set[str] = set()
        if all("gradient" in c for c in offered):
            found.add("gradient")
        elif all(c & {"gradient", "subgradient"} for c in offered):
            found.add("subgradient")
        if all("quadratic" in c for c in offered):
            found |= {"quadratic", "prox"}
        elif self._has_prox(offered):
            found.add("prox")
        if all(part.is_polyhedral for part in self.parts) and "quadratic" not in found:
            found.add("polyhedral")
        return frozenset(found)

    def _check_bounds(self) -> None:
        """Bounds that exclude each other are refused as soon as they are seen."""
        low: Any = -np.inf
        high: Any = np.inf
        for box in self._boxes:
            low = np.maximum(low, box.low)
            high = np.minimum(high, box.high)
        if np.any(low > high):
            raise InputError("Sum: the boxes have no common point; widen the bounds")

    def _has_prox(self, offered: list[frozenset[str]]) -> bool:
        if not all("prox" in c for c in offered) or len(self._sets) > 1:
            return False
        if self._rest is not None:
            fits = self._rest.coordinatewise or self._sets[0].least == -math.inf
            return fits and "prox" in self._rest.capabilities
        clipped = not self._boxes or all(part.coordinatewise for part in self._others)
        return len(self._others) < 2 and clipped

    @cached_property
    def _merged(self) -> Quadratic | None:
        """All parts as one quadratic, when they are quadratic and not all squared distances."""
        if "quadratic" not in self.capabilities or not self._others or self.size is None:
            return None
        H, g, _ = self.quadratic_at(self.size)
        return Quadratic(H, g)

    def constants(self, size: int) -> tuple[float, float]:
        """(L, mu): of the merged quadratic, else sums of the parts'."""
        if self._merged is not None:
            return self._merged.constants(size)
        pairs = [part.constants(size) for part in self.parts]
        return math.fsum(L for L, _ in pairs), math.fsum(mu for _, mu in pairs)

    def value_at(self, v: Array) -> float:
        return float(sum(part.value_at(v) for part in self.parts))

    def gradient_at(self, v: Array) -> Array:
        total = np.array(self.parts[0].gradient_at(v))
        for part in self.parts[1:]:
            total += part.gradient_at(v)
        return total

    def prox_at(self, v: Array, step: Step) -> Array:
        """See the class: merge squared distances, then one prox, then the box; or a row on top."""
        if "prox" not in self.capabilities:
            return super().prox_at(v, step)
        if self._merged is not None:
            return self._merged.prox_at(v, step)
        if self._sets:
            return self._sets[0].prox_with(self._rest, v, step)
        total, shift = self._isotropic_sum()
        shrink = 1.0 + step * total
        point = (v if shift is None else v + step * shift) / shrink
        for part in self._others:
            point = part.prox_at(point, step / shrink)
        for box in self._boxes:
            point = box.prox_at(point, step)
        return point

    def _isotropic_sum(self) -> tuple[float, Array | None]:
        total = 0.0
        shift = None
        for factor, moved in self._plain:
            total += factor
            if moved is not None:
                shift = moved if shift is None else shift + moved
        return total, shift

    def isotropic(self) -> tuple[float, Array | None] | None:
        """(a, s) of the gradient a v - s, where every part has one; else None."""
        return self._isotropic_sum() if len(self._plain) == len(self.parts) else None

    def quadratic_at(self, size: int) -> tuple[Array | sp.csr_array, Array, float]:
        """Sums of Hessians, linear terms and constants; sparse while every Hessian is."""
        forms = [part.quadratic_at(size) for part in self.parts]
        H = reduce(plus, [form[0] for form in forms])
        return H, np.sum([g for _, g, _ in forms], axis=0), math.fsum(c for _, _, c in forms)

    @property
    def has_hessian(self) -> bool:
        """Where all parts have theirs."""
        return self.coordinatewise or all(part.has_hessian for part in self.parts)

    def hessian_at(self, v: Array) -> Any:
        """Sums of Hessians."""
        if "quadratic" in self.capabilities or self.coordinatewise:
            return super().hessian_at(v)
        return reduce(plus, [part.hessian_at(v) for part in self.parts])

    def polyhedral_at(self, size: int) -> Polyhedral:
        """Sums of quadratics, all bounds, all terms."""
        forms = [part.polyhedral_at(size) for part in self.parts]
        return sum(forms[1:], forms[0])

    def lipschitz_at(self, size: int) -> float:
        return math.fsum(part.lipschitz_at(size) for part in self.parts)

    def state(self) -> Mapping[str, Any]:
        parts = [part.custom if isinstance(part, Joint) else part for part in self.parts]
        return {"parts": parts}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Sum:
        return cls(*state["parts"])


class ElasticNet(Sum):
    """l1 ||v||_1 + (l2/2) ||v||^2; smooth only for l1 = 0, mu = l2.

    Parameters
    ----------
    l1 : float
        Factor of the sum of absolute values.
    l2 : float
        Factor of half the squared norm.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.ElasticNet(1.0, 2.0)
    >>> f.value(np.array([1.0, -2.0]), np.zeros(0))
    8.0
    """

    def __init__(self, l1: float, l2: float) -> None:
        self.l1 = nonnegative("ElasticNet, l1", l1)
        self.l2 = nonnegative("ElasticNet, l2", l2)
        curved = SquaredDistance(self.l2)
        parts = [curved] if self.l2 or not self.l1 else []
        super().__init__(*([L1(self.l1)] if self.l1 else []), *parts)

    def state(self) -> Mapping[str, Any]:
        return {"l1": self.l1, "l2": self.l2}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> ElasticNet:
        return cls(**state)


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
        self.x_size = self.d + self.slacks
        self.z_size = self.q
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
        """The gradient of f, zero in the slacks."""
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
        form = self.objective.quadratic(self.d, self.q)
        if not self.slacks:
            return form
        wide = Polyhedral.quadratic(*form).spread(self.seen, len(self.lower))
        return wide.H, wide.g, wide.c

    def polyhedral(self, d: int, q: int) -> Polyhedral:
        """The form of f with the bounds, empty columns for the slacks."""
        form = self.objective.polyhedral(self.d, self.q)
        return form.spread(self.seen, len(self.lower)).within(self.lower, self.upper)

    def lipschitz(self, d: int, q: int) -> float:
        """A bound on subgradients of f; none where something is bounded."""
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
