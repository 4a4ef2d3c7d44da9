"""A realized problem: execution space, objective, normalized constraints, and the way back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ccmac.inputs import Array

from ccmac.realizations.objective import ExecutionObjective
from ccmac.realizations.system import AffineSystem
from ccmac.runtime.space import Space



@dataclass(frozen=True)
class Realized:
    """What every realization hands to a method.

    ``s`` is the scale of the shared block (z = s z~); ``degree`` and ``steps`` are the outer degree
    and the step rule a method should use; ``details`` goes into the plan and the record,
    ``predicted`` is the planned number of iterations, ``notes`` tell what was found and mended.
    """

    realization: str
    space: Space
    objective: ExecutionObjective
    system: AffineSystem
    s: float = 1.0
    degree: int = 1
    steps: str = "interval"
    details: dict[str, Any] = field(default_factory=dict)
    candidates: tuple[Any, ...] = ()
    predicted: float | None = None
    notes: tuple[str, ...] = ()

    def embed(self, x: Array, z: Array) -> Array:
        """Execution vector of user variables: flat x and one common z (or rows of copies)."""
        w = self.space.zeros()
        self.space.x(w)[...] = x
        self.space.z(w)[...] = z / self.s
        return w

    def local_variables(self, w: Array) -> list[Array]:
        """The x_i of the agents owned here."""
        return [self.space.x_of(w, k).copy() for k in range(self.space.count)]

    def copies(self, w: Array) -> Array:
        """The agents' copies of z in the user's units, one row an agent."""
        return self.s * self.space.z(w)

    @property
    def error_scale(self) -> float:
        """||(x, z) - (x*, z*)|| <= error_scale ||w - w*|| with z the mean of the copies."""
        return max(1.0, self.s / float(np.sqrt(self.space.runtime.n)))
