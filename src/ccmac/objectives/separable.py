"""f(x, z) = g(x) + h(z)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.objectives.base import Curvature, FusedGradient, Objective, separated
from ccmac.objectives.function import Function, check_size
from ccmac.objectives.fused import fused_separable
from ccmac.objectives.squared_distance import SquaredDistance


class Separable(Objective):
    """g(x) + h(z); either part may be absent (zero)."""

    def __init__(self, x: Function | None = None, z: Function | None = None) -> None:
        for name, part in (("x", x), ("z", z)):
            if part is not None and not isinstance(part, Function):
                raise InputError(
                    f"Separable, {name}: {type(part).__name__} is not a function of one vector; "
                    "use SquaredDistance, Logistic, ... (Custom stands alone, on x and z together)"
                )
        self.x_part = x
        self.z_part = z
        parts = [part.capabilities for part in (x, z) if part is not None]
        common = frozenset.intersection(*parts) if parts else frozenset({"gradient", "quadratic"})
        if parts and "subgradient" not in common and any("subgradient" in p for p in parts):
            oracles = [p & {"gradient", "subgradient"} for p in parts]
            if all(oracles):
                common |= {"subgradient"}
        self.capabilities = common | ({"prox"} if all("prox" in p for p in parts) else set())

    @property
    def x_size(self) -> int | None:
        """Length of x if the x-part fixes it."""
        return None if self.x_part is None else self.x_part.size

    @property
    def z_size(self) -> int | None:
        """Length of z if the z-part fixes it."""
        return None if self.z_part is None else self.z_part.size

    @property
    def dim(self) -> int | None:
        """Known when both parts are."""
        sizes = (self.x_size, self.z_size)
        return None if None in sizes else sum(s for s in sizes if s is not None)

    def check(self, d: int, q: int) -> None:
        """Each part must fit its block."""
        if self.x_part is not None:
            check_size(self.x_part, d, "x")
        if self.z_part is not None:
            check_size(self.z_part, q, "z")

    def curvature(self, d: int, q: int) -> Curvature:
        """Blockwise constants; an empty block does not count."""
        x = self.x_part.constants(d) if self.x_part is not None else (0.0, 0.0)
        z = self.z_part.constants(q) if self.z_part is not None else (0.0, 0.0)
        return separated(x, z, d, q)

    def value(self, x: Array, z: Array) -> float:
        """g(x) + h(z)."""
        value = 0.0 if self.x_part is None else self.x_part.value_at(x)
        return value + (0.0 if self.z_part is None else self.z_part.value_at(z))

    def gradient(self, x: Array, z: Array) -> tuple[Array, Array]:
        """(grad g, grad h)."""
        return (
            np.zeros_like(x) if self.x_part is None else self.x_part.gradient_at(x),
            np.zeros_like(z) if self.z_part is None else self.z_part.gradient_at(z),
        )

    def prox(self, x: Array, z: Array, step_x: float, step_z: float) -> tuple[Array, Array]:
        """Blockwise, each with its own step."""
        return (
            x.copy() if self.x_part is None else self.x_part.prox_at(x, step_x),
            z.copy() if self.z_part is None else self.z_part.prox_at(z, step_z),
        )

    def quadratic(self, d: int, q: int) -> tuple[Array | sp.csr_array, Array, float]:
        """Block-diagonal form."""
        zero = SquaredDistance(0.0)
        H_x, g_x, c_x = (self.x_part or zero).quadratic_at(d)
        H_z, g_z, c_z = (self.z_part or zero).quadratic_at(q)
        H = sp.csr_array(sp.block_diag([H_x, H_z], format="csr"))
        return H, np.concatenate([g_x, g_z]), c_x + c_z

    def lipschitz(self, d: int, q: int) -> float:
        """sqrt of the squared blockwise bounds."""
        parts = [
            0.0 if part is None else part.lipschitz_at(size)
            for part, size in ((self.x_part, d), (self.z_part, q))
        ]
        return math.hypot(*parts)

    def state(self) -> Mapping[str, Any]:
        """The two parts."""
        return {"x": self.x_part, "z": self.z_part}

    @classmethod
    def fuse(cls, members: Sequence[Objective], d: Sequence[int], q: int) -> FusedGradient | None:
        """Vectorised when the x-parts are squared distances and the z-parts act entry by entry."""
        return fused_separable([m for m in members if isinstance(m, Separable)], d, q)
