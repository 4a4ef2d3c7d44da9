"""Functions of one vector: usable as the x-part or z-part of a sum, or jointly on u = (x, z)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.linalg.blocks import dense
from ccmac.linalg.extended import Long
from ccmac.linalg.symmetric import diagonal_matrix, weighted_gram
from ccmac.objectives.base import Curvature, Objective, joint, separated
from ccmac.objectives.entrywise import rise
from ccmac.objectives.polyhedral import Polyhedral

if TYPE_CHECKING:
    from ccmac.objectives.sum import Sum

Step = float | Array
"""A proximal step: one number, or one per entry."""


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

    coordinatewise: bool = False
    """g(v) is a sum of functions of single entries."""
    public_name: float | None = None
    """A number by which all agents that know this function know that it is the same."""

    convex: bool = True
    """What is no convex function may be minimised, but nothing is proved of its minima."""
    concordance: float | None = None
    """k with |third derivative| <= k (second) of all terms of a smooth sum over single entries."""

    @property
    def size(self) -> int | None:
        """Length of v if the data fix it, else None."""
        return None

    @abstractmethod
    def constants(self, size: int) -> tuple[float, float]:
        """(L, mu) on R^size; L = inf when g is not smooth."""

    @abstractmethod
    def value_at(self, v: Array) -> float:
        """g(v)."""

    def gradient_at(self, v: Array) -> Array:
        """grad g(v), or one subgradient; of the empty vector any function has one."""
        if not len(v):
            return np.zeros(0)
        raise TypeError(f"{type(self).__name__} has no gradient")

    def precise_at(self, v: Array | Long) -> Array | Long:
        """grad g(v), in the long format where g can be evaluated in it, else in doubles."""
        return self.gradient_at(v.astype(np.float64))

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
        return float("inf")

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
        """The declared size must be d + q."""
        check_size(self, d + q, "(x, z)")

    def curvature(self, d: int, q: int) -> Curvature:
        """Joint constants stand for the blocks as well."""
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

    def precise_gradient(self, x: Array | Long, z: Array | Long) -> Array | Long:
        """:meth:`precise_at` (x, z)."""
        return self.precise_at(np.concatenate([x, z]))

    def prox(self, x: Array, z: Array, step_x: float, step_z: float) -> tuple[Array, Array]:
        """Each entry with the step of its block."""
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
