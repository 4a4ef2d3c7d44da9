"""f(x, z) = g(x) + h(z), and the squared distance that most such sums start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.objectives.base import Curvature, FusedGradient, Objective
from ccmac.objectives.function import Function, check_size

Array = NDArray[np.float64]


class SquaredDistance(Function):
    """(weight/2) ||v - centre||^2; ``centre`` None means the origin, any length."""

    capabilities = frozenset({"gradient", "prox", "quadratic"})

    def __init__(self, weight: float = 1.0, centre: Any = None) -> None:
        if not (np.isfinite(weight) and weight >= 0):
            raise InputError(f"SquaredDistance: weight {weight} must be finite and not negative")
        self.weight = float(weight)
        self.centre = None if centre is None else np.asarray(centre, dtype=np.float64)
        if self.centre is not None and not np.isfinite(self.centre).all():
            raise InputError("SquaredDistance: centre has entries that are NaN or infinite")

    @property
    def size(self) -> int | None:
        """Length of the centre."""
        return None if self.centre is None else len(self.centre)

    def constants(self, size: int) -> tuple[float, float]:
        """L = mu = weight."""
        return self.weight, self.weight

    def _shifted(self, v: Array) -> Array:
        return v if self.centre is None else v - self.centre

    def value_at(self, v: Array) -> float:
        """(weight/2) ||v - centre||^2."""
        shifted = self._shifted(v)
        return 0.5 * self.weight * float(shifted @ shifted)

    def gradient_at(self, v: Array) -> Array:
        """weight (v - centre)."""
        return self.weight * self._shifted(v)

    def prox_at(self, v: Array, step: float) -> Array:
        """Closed form."""
        right = v if self.centre is None else v + step * self.weight * self.centre
        return right / (1.0 + step * self.weight)

    def quadratic_at(self, size: int) -> tuple[Array | sp.csr_array, Array, float]:
        """(weight I, weight centre, weight ||centre||^2 / 2)."""
        H = sp.csr_array(sp.diags_array(np.full(size, self.weight)))
        centre = np.zeros(size) if self.centre is None else self.centre
        return H, self.weight * centre, 0.5 * self.weight * float(centre @ centre)

    def state(self) -> Mapping[str, Any]:
        """weight and centre."""
        return {"weight": self.weight, "centre": self.centre}


class Separable(Objective):
    """g(x) + h(z); either part may be absent (zero)."""

    def __init__(self, x: Function | None = None, z: Function | None = None) -> None:
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
        L_x, mu_x = self.x_part.constants(d) if self.x_part is not None else (0.0, 0.0)
        L_z, mu_z = self.z_part.constants(q) if self.z_part is not None else (0.0, 0.0)
        if d == 0:
            L_x, mu_x = 0.0, float("inf")
        if q == 0:
            L_z, mu_z = 0.0, float("inf")
        return Curvature(L_x, mu_x, L_z, mu_z, max(L_x, L_z), min(mu_x, mu_z), separable=True)

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
        return float(np.hypot(*parts))

    def state(self) -> Mapping[str, Any]:
        """The two parts."""
        return {"x": self.x_part, "z": self.z_part}

    @classmethod
    def fuse(cls, members: Sequence[Objective], d: Sequence[int], q: int) -> FusedGradient | None:
        """Vectorised when every part is a squared distance (or absent)."""
        parts = [p for m in members if isinstance(m, Separable) for p in (m.x_part, m.z_part)]
        if any(p is not None and type(p) is not SquaredDistance for p in parts):
            return None
        return _SquaredDistances([m for m in members if isinstance(m, Separable)], d, q)


class _SquaredDistances(FusedGradient):
    """All agents at once: weights times (vector - centre)."""

    def __init__(self, members: Sequence[Separable], d: Sequence[int], q: int) -> None:
        x_parts = [m.x_part or SquaredDistance(0.0) for m in members]
        z_parts = [m.z_part or SquaredDistance(0.0) for m in members]
        self.x_weight = np.repeat([getattr(p, "weight") for p in x_parts], d)  # noqa: B009
        self.x_shift = self.x_weight * np.concatenate([_centre(p, k) for p, k in zip(x_parts, d)])
        self.z_weight = np.array([[getattr(p, "weight")] for p in z_parts])  # noqa: B009
        shifts = [w * _centre(p, q) for w, p in zip(self.z_weight[:, 0], z_parts)]
        same = all(np.array_equal(shifts[0], s) for s in shifts)
        self.z_shift = shifts[0][None, :] if same else np.stack(shifts)

    def gradient(self, x: Array, z: Array, out_x: Array, out_z: Array) -> None:
        np.multiply(self.x_weight, x, out=out_x)
        out_x -= self.x_shift
        np.multiply(self.z_weight, z, out=out_z)
        out_z -= self.z_shift


def _centre(part: Function, size: int) -> Array:
    centre = getattr(part, "centre", None)
    return np.zeros(size) if centre is None else centre
