"""Smooth minimisation along linear equations, min f(u) + <h, u> s.t. E u = E u_0, by one agent.

Newton steps where a Hessian may be had, L-BFGS elsewhere, both down to rounding. Near the minimum
values no longer tell points apart; there a step counts as progress when the slope along it shrinks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import scipy

from ccmac.inputs import Array
from ccmac.methods.local.inverse import Solve

STEPS = 60
TOLERANCE = 1e-13
ARMIJO = 1e-4  # share of the fall that a slope promises which a step has to bring
ALIKE = 1e-12  # values closer than this (relative) do not decide


class Smooth(ABC):
    """f with its equations: ``E`` has orthonormal rows, ``point`` satisfies them."""

    E: Array
    point: Array

    @abstractmethod
    def value(self, u: Array, linear: Array) -> float:
        """f(u) + <linear, u>."""

    @abstractmethod
    def gradient(self, u: Array, linear: Array) -> Array:
        """grad f(u) + linear."""

    def inverse(self, u: Array) -> Solve:
        """v -> T v, T the inverse of f''(u) along the equations."""
        raise TypeError(f"{type(self).__name__} has no Hessian")

    def feasible(self, u: Array) -> Array:
        """The point of {E u = r} nearest to u."""
        return np.asarray(u + self.E.T @ (self.E @ (self.point - u)))

    def tangent(self, v: Array) -> Array:
        """v without its components along the equations."""
        return np.asarray(v - self.E.T @ (self.E @ v))

    def newton(self, linear: Array, start: Array) -> tuple[Array, int]:
        """(minimiser, gradients spent, 3 a step) by Newton steps, halved until they descend."""
        u = self.feasible(start)
        gradient = self.gradient(u, linear)
        scale = float(np.linalg.norm(linear)) + float(np.linalg.norm(gradient))
        count = 1
        least = np.inf
        for _ in range(STEPS):
            size = float(np.linalg.norm(self.tangent(gradient)))
            # Rounding may forbid the tolerance: near the end a step that gains nothing is last.
            if size <= TOLERANCE * scale or (size >= 0.5 * least and size < 1e-8 * scale):
                break
            least = min(least, size)
            step = -self.inverse(u)(gradient)
            u, gradient = self._descend(u, gradient, step, linear)
            count += 3
        return u, count

    def _descend(
        self, u: Array, gradient: Array, step: Array, linear: Array
    ) -> tuple[Array, Array]:
        slope = float(gradient @ step)
        now = self.value(u, linear)
        t = 1.0
        while True:
            moved = u + t * step
            ahead = self.gradient(moved, linear)
            rise = self.value(moved, linear) - now
            flatter = rise <= ALIKE * abs(now) and abs(float(ahead @ step)) <= 0.9 * abs(slope)
            if rise <= ARMIJO * t * slope or flatter or t < 1e-6:
                return moved, ahead
            t *= 0.5

    def quasi_newton(self, linear: Array, start: Array) -> tuple[Array, int]:
        """(minimiser, gradients spent) by L-BFGS along the equations."""
        base = self.feasible(start)

        def both(v: Array) -> tuple[float, Array]:
            u = base + self.tangent(v)
            return self.value(u, linear), self.tangent(self.gradient(u, linear))

        found = scipy.optimize.minimize(
            both,
            np.zeros_like(base),
            jac=True,
            method="L-BFGS-B",
            options={"maxcor": 30, "maxiter": 2000, "ftol": 1e-18, "gtol": 1e-12},
        )
        return np.asarray(base + self.tangent(found.x)), int(found.nfev)
