"""f(x, z) = g(x) + h(z)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.linalg.blocks import dense
from ccmac.objectives.base import Curvature, Function, Objective, check_size, separated
from ccmac.objectives.basic import SquaredDistance
from ccmac.objectives.polyhedral import Polyhedral


class Separable(Objective):
    """g(x) + h(z); either part may be absent (zero).

    Parameters
    ----------
    x, z : Function, optional
        The parts; an absent one is zero.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Separable(x=ccmac.objectives.L1())
    >>> f.value(np.array([1.0, -2.0]), np.zeros(0))
    3.0
    """

    def __init__(self, x: Function | None = None, z: Function | None = None) -> None:
        for name, part in (("x", x), ("z", z)):
            if part is not None and not isinstance(part, Function):
                raise InputError(
                    f"Separable, {name}: {type(part).__name__} is not a function of one vector; "
                    "use SquaredDistance, Logistic, ... (Custom stands alone, on x and z together)"
                )
        self.x_part = x
        self.z_part = z
        self._x = x or SquaredDistance(0.0)
        self._z = z or SquaredDistance(0.0)
        self.x_size = self._x.size
        self.z_size = self._z.size
        parts = (self._x, self._z)
        self.extended = all(part.extended for part in parts)
        common = self._x.capabilities & self._z.capabilities
        if not common & {"gradient", "subgradient"} and all(
            part.capabilities & {"gradient", "subgradient"} for part in parts
        ):
            common |= {"subgradient"}
        if all(part.is_polyhedral for part in parts) and "quadratic" not in common:
            common |= {"polyhedral"}
        self.capabilities = common

    @property
    def dim(self) -> int | None:
        """Length of (x, z) if both parts fix theirs, else None."""
        known = self.x_size is not None and self.z_size is not None
        return (self.x_size or 0) + (self.z_size or 0) if known else None

    def check(self, d: int, q: int) -> None:
        """Each part must fit its block."""
        check_size(self._x, d, "x")
        check_size(self._z, q, "z")

    def curvature(self, d: int, q: int) -> Curvature:
        """Blockwise constants; an empty block does not count."""
        return separated(self._x.constants(d), self._z.constants(q), d, q)

    def value(self, x: Array, z: Array) -> float:
        return self._x.value_at(x) + self._z.value_at(z)

    def gradient(self, x: Array, z: Array) -> tuple[Array, Array]:
        return self._x.gradient_at(x), self._z.gradient_at(z)

    def prox(self, x: Array, z: Array, step_x: float, step_z: float) -> tuple[Array, Array]:
        """Blockwise, each with its own step."""
        return self._x.prox_at(x, step_x), self._z.prox_at(z, step_z)

    def quadratic(self, d: int, q: int) -> tuple[Array | sp.csr_array, Array, float]:
        """The quadratic form, block-diagonal."""
        H_x, g_x, c_x = self._x.quadratic_at(d)
        H_z, g_z, c_z = self._z.quadratic_at(q)
        H = sp.csr_array(sp.block_diag([H_x, H_z], format="csr"))
        return H, np.concatenate([g_x, g_z]), c_x + c_z

    @property
    def has_hessian(self) -> bool:
        """Whether both parts have a Hessian."""
        return self._x.has_hessian and self._z.has_hessian

    def hessian(self, x: Array, z: Array) -> Array:
        """The Hessian, block-diagonal and dense."""
        blocks = dense(self._x.hessian_at(x)), dense(self._z.hessian_at(z))
        return np.asarray(la.block_diag(*blocks))

    def polyhedral(self, d: int, q: int) -> Polyhedral:
        """The forms of both parts, side by side."""
        x = self._x.polyhedral_at(d).spread(np.arange(d), d + q)
        return x + self._z.polyhedral_at(q).spread(np.arange(d, d + q), d + q)

    def lipschitz(self, d: int, q: int) -> float:
        """sqrt of the squared blockwise bounds."""
        return math.hypot(self._x.lipschitz_at(d), self._z.lipschitz_at(q))

    def state(self) -> Mapping[str, Any]:
        return {"x": self.x_part, "z": self.z_part}
