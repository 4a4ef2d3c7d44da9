"""What an agent of an interior-point method has to itself: its equations and its unknowns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.inputs import Array, is_sparse
from ccmac.workspace.local import Kernel

DENSE = 300  # unknowns up to which a block is factorized as a dense matrix
HELD = 1e5  # condition of unit rows up to which they need no orthonormal form


class OwnRows:
    """C_i x = c_i as it enters the block: ``rows`` x = ``right``.

    They are an orthonormal basis of the row space, or (``scale``) the rows themselves in unit
    length where those are sparse, many and independent.
    """

    def __init__(self, kernel: Kernel, C: Any, d: int) -> None:
        self.kernel = kernel
        space = kernel.space
        self.scale: Array | None = None
        self.rows = sp.csr_array(space.basis.T)
        self.right = space.basis.T @ kernel.point
        many = is_sparse(C) and C.shape[0] + d > DENSE
        if many and space.rank == C.shape[0] and space.condition <= HELD:
            self.scale = space.inverse_lengths
            self.rows = sp.csr_array(sp.diags_array(self.scale) @ C)
            self.right = np.asarray(self.rows @ kernel.point)

    def held(self, inside: Array) -> Array:
        """nu with rows' nu = basis ``inside``."""
        if self.scale is None:
            return inside
        return np.asarray(self.kernel.space.multipliers(inside) / self.scale)

    def prices(self, nu: Array, inside: Array) -> Array:
        """Multipliers of C_i's own rows with C'kappa = rows' nu - basis ``inside``."""
        space = self.kernel.space
        if self.scale is None:
            return space.multipliers(nu - inside)
        return np.asarray(self.scale * nu - space.multipliers(inside))


@dataclass(frozen=True)
class OwnPoint:
    """An agent's unknowns: y, nu, and the slacks and prices of its bounds."""

    y: Array
    nu: Array
    s: Array
    v: Array

    @property
    def finite(self) -> bool:
        """Whether all of it is."""
        return all(bool(np.isfinite(part).all()) for part in (self.y, self.nu, self.s, self.v))

    def moved(self, step: OwnPoint, alpha: float) -> OwnPoint:
        """A step of length alpha."""
        return OwnPoint(
            self.y + alpha * step.y,
            self.nu + alpha * step.nu,
            self.s + alpha * step.s,
            self.v + alpha * step.v,
        )
