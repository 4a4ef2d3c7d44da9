"""The APAPC energy along a run, seen by an observer who knows the solution; never charged.

    E = ||w - w*||^2 / eta + ||p - p*||^2 / (theta low) + 2 (1 - tau)/tau D_Phi(w_f, w*)

with p* = -grad Phi(w*) and low the lower end of the correction's spectrum. It bounds the energy of
the analysis from above (P^+ <= 1/low) and needs no pseudo-inverse.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmac.inputs import Array
from ccmac.linalg.chebyshev import correction_interval
from ccmac.methods.apapc import Apapc, ApapcState
from ccmac.methods.base import Iteration


class Energy:
    """E of a state of Cross- or Joint-APAPC relative to a known solution (x*, z*)."""

    def __init__(self, iteration: Apapc, x: Array, z: Array) -> None:
        self.iteration = iteration
        self.objective = iteration.objective
        self.space = iteration.space
        self.ledger = iteration.space.runtime.ledger
        with self.ledger.observing():
            self.solution = iteration.realized.embed(x, z)
            self.gradient = self.objective.gradient(self.solution)
            self.value = self._value(self.solution)

    @classmethod
    def of(cls, iteration: Iteration[Any], x: Array, z: Array) -> Energy | None:
        """For APAPC on (x, z); None for other methods and for the lift with its auxiliary y."""
        if not isinstance(iteration, Apapc) or iteration.space.lift:
            return None
        return cls(iteration, x, z)

    def __call__(self, state: ApapcState) -> float:
        """E now."""
        tau, eta, theta = self.iteration.parameters()
        with self.ledger.observing():
            energy = self.space.norm(state.w - self.solution) ** 2 / eta
            ahead = state.w_f
            bregman = self._value(ahead) - self.value
            bregman -= self.space.dot(self.gradient, ahead - self.solution)
            energy += 2 * (1 - tau) / tau * max(bregman, 0.0)
            if not self.iteration.system.empty:
                interval = self.iteration.system.interval
                low, _ = correction_interval(interval.low, interval.high, self.iteration.degree)
                dual = self.space.norm(state.p + self.gradient)
                energy += dual**2 / (theta * low)
        return float(energy)

    def _value(self, w: Array) -> float:
        """Phi(w), the consensus augmentation included."""
        objective = self.objective
        runtime = self.space.runtime
        value = float(runtime.total(objective.values(w))[0])
        if objective.augment:
            z = self.space.z(w)
            mean = runtime.average(z)
            squares = np.sum((z - mean) ** 2, axis=1)[:, None]
            value += 0.5 * objective.augment * float(runtime.total(squares)[0])
        return value
