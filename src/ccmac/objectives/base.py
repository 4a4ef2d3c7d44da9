"""What an objective f(x, z) tells about itself, and what can be asked of it.

Curvature is declared per block (L_x, mu_x, L_z, mu_z: best constants of f in one block with the
other fixed) and jointly (L, mu). ``capabilities`` says which oracles exist: ``gradient``,
``subgradient``, ``prox``, ``quadratic`` (an explicit Hessian and linear term), ``polyhedral`` (a
quadratic with bounds and piecewise linear terms; quadratic functions are such without saying so).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.inputs import Array
from ccmac.linalg.extended import Long
from ccmac.objectives.polyhedral import Polyhedral


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

    def __repr__(self) -> str:
        sizes = {"x": self.x_size, "z": self.z_size, "(x, z)": self.dim}
        known = ", ".join(f"{name} of {size}" for name, size in sizes.items() if size is not None)
        return f"{type(self).__name__}({known})"

    @property
    def dim(self) -> int | None:
        """Size of (x, z) together if the data fix it, else None."""
        return None

    @property
    def x_size(self) -> int | None:
        """Length of x if the data fix it, else None."""
        return None

    @property
    def z_size(self) -> int | None:
        """Length of z if the data fix it, else None."""
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
        """grad f of (x, z), in the long format where the objective can be evaluated in it.

        Elsewhere in doubles: the format says with which eps rounding is counted.
        """
        return np.concatenate(self.gradient(x.astype(np.float64), z.astype(np.float64)))

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
