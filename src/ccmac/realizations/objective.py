"""The objective on execution variables: F(t x~, s z~), plus an augmentation where z needs it.

When only the sum of the f_i is strongly convex in z (one agent owns the labels, say), adding
(rho/2) ||(I - Pi) z~||^2, which vanishes on the feasible set, recovers it: with per-agent bounds
h_i the z block of the Hessian is at least diag(h_i) + rho (I - 11'/n), whose smallest eigenvalue
tends to the mean of the h_i. The extra gradient term costs one averaging of q floats.
"""

from __future__ import annotations

import math

import numpy as np

from ccmac.errors import GradientError
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.extended import gradient_rounding, norm
from ccmac.linalg.tolerances import DENSE_MARGIN, EPS
from ccmac.objectives.separable import fused_gradient
from ccmac.problem import Problem
from ccmac.runtime.base import Runtime
from ccmac.runtime.space import Space, row_dots


class ExecutionObjective:
    """Phi(w) = sum_i f_i(t x~_i, s z~_i) + (rho/2) ||(I - Pi) z~||^2 with its constants."""

    def __init__(
        self,
        problem: Problem,
        space: Space,
        *,
        t: float = 1.0,
        s: float = 1.0,
        augment: float = 0.0,
        mu: float = 0.0,
        L: float = np.inf,
    ) -> None:
        self.problem = problem
        self.space = space
        self.t = t
        self.s = s
        self.augment = augment
        self.mu = mu
        self.L = L
        self.ledger = space.runtime.ledger
        self._members = [agent.objective for agent in problem.agents.values()]
        self._fused = fused_gradient(self._members, space.d, space.q)

    def gradient(self, w: Array, out: Array | None = None) -> Array:
        """grad Phi(w). Cost: 1 gradient (and one averaging of q floats when augmented)."""
        self.ledger.charge(gradients=1)
        out = np.empty_like(w) if out is None else out
        space = self.space
        t = self.t
        s = self.s
        x = space.x(w)
        z = space.z(w)
        if t != 1.0:
            x = t * x
        if s != 1.0:
            z = s * z
        out_x = space.x(out)
        out_z = space.z(out)
        if self._fused is not None:
            self._fused(x, z, out_x, out_z)
        else:
            for k, member in enumerate(self._members):
                piece = slice(space.offsets[k], space.offsets[k + 1])
                out_x[piece], out_z[k] = member.gradient(x[piece], z[k])
        if not np.isfinite(np.add.reduce(out[: space.z_end])):
            self._report(x, z, out_x, out_z)
        if t != 1.0:
            out_x *= t
        if s != 1.0:
            out_z *= s
        self._add(w, out)
        return out

    def _add(self, w: Array, out: Array) -> None:
        """The gradient of what Phi has in addition to F, added to ``out``."""
        if self.augment:
            z = self.space.z(w)
            self.space.z(out)[...] += self.augment * (z - self.space.runtime.average(z))

    def precise_gradient(self, w: Array) -> tuple[Array, Array]:
        """(grad Phi(w) as doubles hold it, (agents, 1) numbers the root of whose squares' sum is
        at least its distance from grad Phi(w)). Cost: as that of :meth:`gradient`.

        From the agents' own :meth:`Objective.precise_gradient` at (t x~, s z~) in the long format.
        """
        self.ledger.charge(gradients=1)
        space = self.space
        out = np.zeros_like(w)
        off = np.zeros(self.space.count)
        out_x = space.x(out)
        out_z = space.z(out)
        L = self.L if math.isfinite(self.L) else 0.0
        for k, (member, (x, z)) in enumerate(zip(self._members, space.split(w), strict=True)):
            unit = np.repeat(np.array([self.t, self.s], dtype=np.longdouble), [len(x), len(z)])
            own = np.concatenate([x, z])
            point = unit * own
            slope = member.precise_gradient(point[: len(x)], point[len(x) :])
            slope *= unit.astype(slope.dtype)
            double = slope.astype(np.float64)
            out_x[space.offsets[k] : space.offsets[k + 1]], out_z[k] = np.split(double, [len(x)])
            off[k] = gradient_rounding(slope, own, L) + norm(slope - double)
        if not np.isfinite(np.add.reduce(out[: space.z_end])):
            self._report(self.t * space.x(w), self.s * space.z(w), out_x, out_z)
        self._add(w, out)
        return out, (off + self._rounding_added(w))[:, None]

    def _rounding_added(self, w: Array) -> Array:
        """The same numbers for what :meth:`_add` adds.

        The mean of n rows is wrong by n eps times the root mean square of their entries.
        """
        if not self.augment:
            return np.zeros(self.space.count)
        runtime = self.space.runtime
        z = self.space.z(w)
        sizes = np.sqrt(row_dots(z, z))
        grain = math.sqrt(runtime.unseen(self.space.q))
        return np.asarray(self.augment * ((runtime.n + 6) * EPS * sizes + grain))

    def _report(self, x: Array, z: Array, out_x: Array, out_z: Array) -> None:
        """Iterates that blew up are the driver's to notice; of others the objective is to blame."""
        for k, agent in enumerate(self.problem.agents):
            piece = slice(self.space.offsets[k], self.space.offsets[k + 1])
            size = max(np.abs(x[piece]).max(initial=0.0), np.abs(z[k]).max(initial=0.0))
            bad = not (np.isfinite(out_x[piece]).all() and np.isfinite(out_z[k]).all())
            # entries beyond this: the iterates blew up
            if bad and size < 1e100:
                raise GradientError(
                    f"agent {agent}, objective: the gradient is not finite (NaN or inf); "
                    "check the objective's data and domain"
                )

    @property
    def cost(self) -> Cost:
        """Static cost of one gradient."""
        extra = self.space.runtime.average_cost(self.space.q) if self.augment else Cost()
        return Cost(gradients=1) + extra

    def values(self, w: Array) -> Array:
        """f_i at each agent's own (x_i, z_i), shape (agents, 1)."""
        pairs = self.space.split(w)
        rows = [
            [f.value(self.t * x, self.s * z)]
            for f, (x, z) in zip(self._members, pairs, strict=True)
        ]
        return np.array(rows, dtype=np.float64).reshape(len(rows), 1)


class OracleObjective(ExecutionObjective):
    """F with its consensus augmentation (if any) at modelled instead of executed rounds."""

    def gradient(self, w: Array, out: Array | None = None) -> Array:
        """grad Phi(w). Cost: 1 gradient, modelled rounds when augmented."""
        self.ledger.charge_cost(self.cost)
        with self.ledger.observing():
            return super().gradient(w, out)

    def precise_gradient(self, w: Array) -> tuple[Array, Array]:
        """As charged by :meth:`gradient`."""
        self.ledger.charge_cost(self.cost)
        with self.ledger.observing():
            return super().precise_gradient(w)

    @property
    def cost(self) -> Cost:
        rounds = modelled_rounds(self.space.runtime) if self.augment else 0
        return Cost(gradients=1, modelled_rounds=rounds)


def modelled_rounds(runtime: Runtime) -> int:
    """ceil sqrt(kappa_W): rounds of one consensus step in the theorem's ledger."""
    return 0 if runtime.n == 1 else math.ceil(math.sqrt(runtime.network.condition) - DENSE_MARGIN)


def proximal(
    objective: ExecutionObjective, w: Array, weight: float, weight_z: float | None = None
) -> Array:
    """argmin_u F(u) + (weight/2) ||u - w||^2, agent by agent. Cost: 1 prox, no communication.

    With x = t x~ and z = s z~ the steps are t^2/weight and s^2/weight (``weight_z`` where it
    differs from that of x); alike but for rounding, they are equal: some maps take no others. A
    lift's y is free of F.
    """
    objective.ledger.charge(proxes=1)
    space = objective.space
    t = objective.t
    s = objective.s
    out = w.copy()
    step_x = t * t / weight
    step_z = s * s / (weight_z or weight)
    if abs(step_x - step_z) <= 8 * EPS * step_x:
        step_z = step_x
    for k, agent in enumerate(objective.problem.agents.values()):
        x, z = agent.objective.prox(t * space.x_of(w, k), s * space.z(w)[k], step_x, step_z)
        space.x_of(out, k)[...] = x / t
        space.z(out)[k] = z / s
    return out
