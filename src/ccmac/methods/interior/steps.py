"""Newton's equations at one iterate, for any weights of their right-hand sides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ccmac.inputs import Array
from ccmac.methods.interior.common import Common, Equations, Solver
from ccmac.methods.interior.elimination import Elimination
from ccmac.methods.interior.own import OwnPoint
from ccmac.methods.interior.sides import Newton


@dataclass(frozen=True)
class Second:
    """The predictor's second order: common right-hand side, a by agents and on z, t of tau."""

    right: Array
    own: list[Array]
    on_z: Array
    cross: float


@dataclass(frozen=True)
class Step:
    """A step of everything."""

    dc: Array
    own: list[OwnPoint]
    ds: Array
    dv: Array
    dkappa: float

    @property
    def dtau(self) -> float:
        """Of tau."""
        return float(self.dc[-1])

    def moved(self, c: Common, equations: Equations, alpha: float) -> Common:
        """The common unknowns after a step of length alpha."""
        d = self.dc
        return Common(
            c.z + alpha * d[equations.z],
            c.mu + alpha * d[equations.mu],
            c.phi + alpha * d[equations.phi],
            c.s + alpha * self.ds,
            c.v + alpha * self.dv,
            c.tau + alpha * self.dtau,
            c.kappa + alpha * self.dkappa,
        )


@dataclass(frozen=True)
class Iterate:
    """Newton's equations at one iterate, ready for right-hand sides."""

    equations: Equations
    parts: list[Elimination]
    newton: Newton
    common: Common
    solver: Solver
    rights: list[Array]
    flat_of: list[slice]

    @property
    def none(self) -> Second:
        """No second order."""
        own = [np.zeros(e.block.sides.count) for e in self.parts]
        zero = np.zeros(self.equations.sides.count)
        return Second(np.zeros(self.equations.size), own, zero, 0.0)

    def step(self, weights: Array, second: Second) -> Step:
        """For ``weights`` of residuals, t = 0 and t = 1, and a second order."""
        c = self.common
        newton = self.newton
        equations = self.equations
        right = sum((w * r for w, r in zip(weights, self.rights, strict=True)), second.right)
        dc = self.solver.solve(right)
        a = sum((w * p for w, p in zip(weights, newton.parts, strict=True)), second.on_z)
        dtau = float(dc[-1])
        ds, dv = newton.steps(a, dc[equations.z], dtau, float(weights[0]))
        dkappa = (weights[2] + second.cross) / c.tau - c.kappa * (1.0 + dtau / c.tau)
        told = equations.told(dc)
        xi = dc[equations.xi]
        own = [
            e.step(weights, extra, told, xi[at])
            for e, extra, at in zip(self.parts, second.own, self.flat_of, strict=True)
        ]
        return Step(dc, own, ds, dv, float(dkappa))
