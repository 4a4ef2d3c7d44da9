"""What an objective f(x, z), or a function g(v) of one vector, declares and what it can compute.

Curvature is declared per block (L_x, mu_x, L_z, mu_z: best constants of f in one block with the
other fixed) and jointly (L, mu). ``capabilities`` says which oracles exist: ``gradient``,
``subgradient``, ``prox``, ``quadratic`` (an explicit Hessian and linear term), ``polyhedral`` (a
quadratic with bounds and piecewise linear terms; quadratic functions are such without saying so).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.linalg.blocks import dense
from ccmac.linalg.extended import Long
from ccmac.linalg.symmetric import diagonal_matrix, weighted_gram
from ccmac.objectives.polyhedral import Polyhedral

if TYPE_CHECKING:
    from ccmac.objectives.sum import Sum


Step = float | Array
"""A proximal step: one number, or one per entry."""


@dataclass(frozen=True)
class Curvature:
    """Smoothness (inf: not smooth) and strong convexity, per block and jointly.

    ``separable`` means f(x, z) = g(x) + h(z); the joint constants then follow from the blocks for
    every block scaling.

    Parameters
    ----------
    L_x, mu_x : float
        Smoothness and strong convexity in x.
    L_z, mu_z : float
        The same in z.
    L, mu : float
        The same jointly.
    separable : bool
        Whether f is a sum of a function of x and one of z.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> curvature = ccmac.objectives.Quadratic(np.diag([4.0, 1.0])).curvature(1, 1)
    >>> float(curvature.L), float(curvature.mu)
    (4.0, 1.0)
    """

    L_x: float
    mu_x: float
    L_z: float
    mu_z: float
    L: float
    mu: float
    separable: bool = False

    def scaled(self, t: float, s: float) -> tuple[float, float]:
        """(mu, L) of f(t x, s z): exact when separable, else the safe envelope."""
        if self.separable:
            return min(t * t * self.mu_x, s * s * self.mu_z), max(
                t * t * self.L_x, s * s * self.L_z
            )
        low = min(t, s)
        high = max(t, s)
        return low * low * self.mu, high * high * self.L


def joint(L: float, mu: float) -> Curvature:
    """Curvature of a function known only through its joint constants."""
    return Curvature(L, mu, L, mu, L, mu)


@lru_cache(maxsize=64)  # of many agents most have the same
def separated(x: tuple[float, float], z: tuple[float, float], d: int, q: int) -> Curvature:
    """Curvature of g(x) + h(z) from (L, mu) of each part; a block of size 0 does not count."""
    L_x, mu_x = x if d else (0.0, math.inf)
    L_z, mu_z = z if q else (0.0, math.inf)
    return Curvature(L_x, mu_x, L_z, mu_z, max(L_x, L_z), min(mu_x, mu_z), separable=True)


class Objective(ABC):
    """A convex function f(x, z) of one agent.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.SquaredDistance()
    >>> isinstance(f, ccmac.objectives.Objective), sorted(f.capabilities)[:2]
    (True, ['gradient', 'prox'])
    """

    capabilities: frozenset[str] = frozenset()
    extended: bool = False
    """Whether the gradient at a point in the long format is evaluated in it."""

    x_size: int | None = None
    """Length of x if the data fix it."""

    z_size: int | None = None
    """Length of z if the data fix it."""

    def __repr__(self) -> str:
        sizes = {"x": self.x_size, "z": self.z_size, "(x, z)": self.dim}
        known = ", ".join(f"{name} of {size}" for name, size in sizes.items() if size is not None)
        return f"{type(self).__name__}({known})"

    @property
    def dim(self) -> int | None:
        """Size of (x, z) together if the data fix it, else None."""
        return None

    def check(self, d: int, q: int) -> None:  # noqa: B027 (a hook, empty on purpose)
        """Raise InputError unless the objective fits x in R^d, z in R^q."""

    @abstractmethod
    def curvature(self, d: int, q: int) -> Curvature:
        """Smoothness and strong convexity for x in R^d, z in R^q."""

    def scaled_curvature(self, d: int, q: int, t: float, s: float) -> tuple[float, float]:
        """(mu, L) of (x, z) -> f(t x, s z); override where the joint form is known better."""
        return self.curvature(d, q).scaled(t, s)

    @abstractmethod
    def value(self, x: Array, z: Array) -> float:
        """f(x, z); +inf outside the domain."""

    def gradient(self, x: Array, z: Array) -> tuple[Array, Array]:
        """(grad_x f, grad_z f), or one subgradient when f is not smooth."""
        raise TypeError(f"{type(self).__name__} has no gradient")

    def precise_gradient(self, x: Array | Long, z: Array | Long) -> Array | Long:
        """grad f of (x, z), in the long format where f is :attr:`extended`, else in doubles."""
        kind: Any = np.longdouble if self.extended else np.float64
        return np.concatenate(self.gradient(x.astype(kind), z.astype(kind)))

    def prox(self, x: Array, z: Array, step_x: float, step_z: float) -> tuple[Array, Array]:
        """argmin f(u, v) + ||u - x||^2/(2 step_x) + ||v - z||^2/(2 step_z)."""
        raise TypeError(f"{type(self).__name__} has no prox")

    def quadratic(self, d: int, q: int) -> tuple[Array | sp.csr_array, Array, float]:
        """(H, g, c) with f(u) = u'Hu/2 - g'u + c on u = (x, z), for capability ``quadratic``."""
        raise TypeError(f"{type(self).__name__} is not quadratic")

    @property
    def has_hessian(self) -> bool:
        """Whether :meth:`hessian` exists."""
        return False

    def hessian(self, x: Array, z: Array) -> Array:
        """f''(x, z), dense."""
        raise TypeError(f"{type(self).__name__} has no Hessian")

    @property
    def is_polyhedral(self) -> bool:
        """Whether :meth:`polyhedral` exists: a quadratic or a smooth convex function with a
        Hessian, with or without a polyhedral part.
        """
        return bool(self.capabilities & {"quadratic", "polyhedral"})

    def polyhedral(self, d: int, q: int) -> Polyhedral:
        """A quadratic with bounds and epigraphs on u = (x, z), for capability ``polyhedral``."""
        return Polyhedral.quadratic(*self.quadratic(d, q))

    def lipschitz(self, d: int, q: int) -> float:
        """A bound on the norms of the subgradients (inf when there is none)."""
        return math.inf

    # -- saving without code ----------------------------------------------------------------
    arguments: tuple[str, ...] = ()
    """The constructor's arguments, if each is an attribute of the same name."""

    def state(self) -> Mapping[str, Any]:
        """Constructor arguments: numbers, strings, arrays, sparse arrays, objectives, lists."""
        if not self.arguments:
            raise TypeError(f"{type(self).__name__} cannot be saved")
        return {name: getattr(self, name) for name in self.arguments}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Objective:
        """The objective whose :meth:`state` was ``state``."""
        return cls(**state)


class Function(Objective):
    """g(v) for one vector v; as an objective it acts on v = (x, z).

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> both = ccmac.objectives.L1(2.0) + ccmac.objectives.SquaredDistance()
    >>> both.value(np.array([1.0, -1.0]), np.zeros(0))
    5.0
    """

    size: int | None = None
    """Length of v if the data fix it."""

    coordinatewise: bool = False
    """g(v) is a sum of functions of single entries."""
    public_name: float | None = None
    """A number by which all agents that know this function know that it is the same."""

    convex: bool = True
    """What is no convex function may be minimised, but nothing is proved of its minima."""
    concordance: float | None = None
    """k with |third derivative| <= k (second) of all terms of a smooth sum over single entries."""

    def constants(self, size: int) -> tuple[float, float]:
        """(L, mu) on R^size; L = inf when g is not smooth."""
        return math.inf, 0.0

    @abstractmethod
    def value_at(self, v: Array) -> float:
        """g(v)."""

    def gradient_at(self, v: Array) -> Array:
        """grad g(v), or one subgradient; of the empty vector any function has one."""
        if not len(v):
            return np.zeros(0)
        raise TypeError(f"{type(self).__name__} has no gradient")

    def precise_at(self, v: Array | Long) -> Array | Long:
        """grad g(v), in the long format where g is :attr:`extended`, else in doubles."""
        kind: Any = np.longdouble if self.extended else np.float64
        return self.gradient_at(v.astype(kind))

    def prox_at(self, v: Array, step: Step) -> Array:
        """argmin_u g(u) + ||u - v||^2/(2 step); of the empty vector any function has one."""
        if not len(v):
            return np.zeros(0)
        raise TypeError(f"{type(self).__name__} has no prox")

    def quadratic_at(self, size: int) -> tuple[Array | sp.csr_array, Array, float]:
        """(H, g, c) with g(v) = v'Hv/2 - g'v + c, for capability ``quadratic``."""
        raise TypeError(f"{type(self).__name__} is not quadratic")

    @property
    def is_polyhedral(self) -> bool:
        """Also where it is smooth and convex, with a Hessian."""
        smooth = "gradient" in self.capabilities and self.convex and self.has_hessian
        return smooth or super().is_polyhedral

    @property
    def has_hessian(self) -> bool:
        """Whether :meth:`hessian_at` exists: of quadratics, and of what acts entry by entry."""
        return "quadratic" in self.capabilities or self.coordinatewise

    def hessian_at(self, v: Array) -> Any:
        """g''(v), dense or sparse. Of what acts entry by entry by central differences of the slope:
        two gradients, accurate enough for the speed of Newton's method.
        """
        if "quadratic" in self.capabilities:
            return self.quadratic_at(len(v))[0]
        return diagonal_matrix(rise(self.gradient_at, v))

    @property
    def has_gram(self) -> bool:
        """Whether :meth:`gram` exists."""
        return self.coordinatewise

    def gram(self, v: Array, E: Array) -> Array:
        """E g''(v) E' for rows E, g'' never formed."""
        return weighted_gram(E, rise(self.gradient_at, v))

    def mean_weights(self, v: Array) -> tuple[Array, float]:
        """(weights by which a fitted intercept follows v, its second derivative); zeros: none."""
        return np.zeros(len(v)), 0.0

    def polyhedral_at(self, size: int) -> Polyhedral:
        """The quadratic itself, or with bounds and epigraphs, or the smooth function as it is."""
        if "quadratic" in self.capabilities:
            return Polyhedral.quadratic(*self.quadratic_at(size))
        return replace(Polyhedral.zero(size), smooth=((self, np.arange(size)),))

    def lipschitz_at(self, size: int) -> float:
        """A bound on subgradient norms."""
        return math.inf

    def isotropic(self) -> tuple[float, Array | None] | None:
        """(a, s) when the gradient is a v - s (s None: zero), else None."""
        return None

    def __add__(self, other: object) -> Sum:
        """The sum of two functions of the same vector."""
        from ccmac.objectives.sum import Sum

        if not isinstance(other, Function):
            return NotImplemented
        return Sum(self, other)

    # -- jointly on (x, z) --------------------------------------------------------------------
    @property
    def dim(self) -> int | None:
        """Size of (x, z) together."""
        return self.size

    def check(self, d: int, q: int) -> None:
        """Raise InputError unless the size that the data fix is d + q."""
        check_size(self, d + q, "(x, z)")

    def curvature(self, d: int, q: int) -> Curvature:
        """Smoothness and strong convexity; joint constants stand for the blocks as well."""
        constants = self.constants(d + q)
        if self.coordinatewise:
            return separated(constants, constants, d, q)
        return joint(*constants)

    def value(self, x: Array, z: Array) -> float:
        """g((x, z))."""
        return self.value_at(np.concatenate([x, z]))

    def gradient(self, x: Array, z: Array) -> tuple[Array, Array]:
        """Gradient split into its blocks."""
        full = self.gradient_at(np.concatenate([x, z]))
        return full[: len(x)], full[len(x) :]

    def prox(self, x: Array, z: Array, step_x: float, step_z: float) -> tuple[Array, Array]:
        """The proximal map on (x, z), each entry with the step of its block."""
        step: Step = step_x
        if step_x != step_z:
            step = np.repeat([step_x, step_z], [len(x), len(z)])
        full = self.prox_at(np.concatenate([x, z]), step)
        return full[: len(x)], full[len(x) :]

    def quadratic(self, d: int, q: int) -> tuple[Array | sp.csr_array, Array, float]:
        """The quadratic form on (x, z)."""
        return self.quadratic_at(d + q)

    def hessian(self, x: Array, z: Array) -> Array:
        """The Hessian on (x, z)."""
        return dense(self.hessian_at(np.concatenate([x, z])))

    def polyhedral(self, d: int, q: int) -> Polyhedral:
        """The form on (x, z)."""
        return self.polyhedral_at(d + q)

    def lipschitz(self, d: int, q: int) -> float:
        """Bound on the joint subgradient norm."""
        return self.lipschitz_at(d + q)


def check_size(function: Function, expected: int, what: str) -> None:
    """Raise InputError unless ``function`` fits vectors of length ``expected``."""
    if function.size is not None and function.size != expected:
        raise InputError(
            f"{type(function).__name__} acts on {function.size} entries but {what} has {expected}; "
            "make them agree"
        )


def rise(slope: Callable[[Array], Array], v: Array, least: Array | float = 0.0) -> Array:
    """Second derivatives of what acts entry by entry: central differences of its slope."""
    h = 1e-5 * (1.0 + np.abs(v))
    return np.maximum((slope(v + h) - slope(v - h)) / (2 * h), least)
