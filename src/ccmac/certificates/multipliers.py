"""From execution back to the user's problem: violations and multipliers.

Works with the user's own blocks and any point (x, copies of z), whatever method produced it. Signs:
grad_x f_i + A_i'y + C_i'kappa_i = 0 and grad_z f_i + B_i'y + D_i'delta_i + nu_i = 0, sum nu_i = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import scipy.linalg

from ccmac.inputs import Array
from ccmac.linalg.lanczos import agreed_dots
from ccmac.linalg.tolerances import KERNEL
from ccmac.runtime.space import lengths, piece_sums
from ccmac.workspace import Workspace
from ccmac.workspace.equations import block_families, right_hand_sides, symmetric


@dataclass(frozen=True)
class Multipliers:
    """Multipliers: coupled y (m,), local kappa_i and shared delta_i of the agents owned here.

    Signs are those of the Lagrangian f + lambda'(A x - b): lambda >= 0 for <=, <= 0 for >=. Bounds
    have multipliers >= 0: ``lower`` and ``upper`` of x_i, ``z_lower`` and ``z_upper`` of z, with
    grad f + A'y + C'kappa - lower + upper = 0 (empty where nothing is bounded).

    Parameters
    ----------
    coupled : ndarray
        One for each coupled row.
    local, shared : list of ndarray
        Of the rows of C and D, by agent.
    consensus : ndarray
        Of the agreement on z, one row an agent.
    lower, upper : list of ndarray
        Of the bounds of x, by agent; empty where nothing is bounded.
    z_lower, z_upper : ndarray
        Of the bounds of z.
    cones : list of ndarray
        y of the rows G x + H z + s = h, by agent, in the dual cone: the Lagrangian has
        + y'(G x + H z - h). Empty where nobody has cones.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Quadratic(np.eye(2), [1.0, 2.0])
    >>> problem = ccmac.Problem([ccmac.Agent(f, A=[[1]], B=[[1]], b=[1]) for _ in range(3)])
    >>> ccmac.solve(problem).multipliers.coupled.shape
    (1,)
    """

    coupled: Array
    local: list[Array]
    shared: list[Array]
    consensus: Array  # nu, one row an owned agent
    lower: list[Array] = field(default_factory=list)
    upper: list[Array] = field(default_factory=list)
    z_lower: Array = field(default_factory=partial(np.zeros, 0))
    z_upper: Array = field(default_factory=partial(np.zeros, 0))
    cones: list[Array] = field(default_factory=list)


class Recovery:
    """The user's equations on the agents owned here."""

    def __init__(self, work: Workspace) -> None:
        problem = work.problem
        runtime = work.runtime
        self.problem = problem
        self.runtime = runtime
        self.space = work.space
        self.coupling = work.coupling
        self.local = work.local
        self.shared = work.shared
        families = block_families(problem, runtime.ledger)
        self.C, self.D = families["C"], families["D"]
        self.b, self.c, self.e = right_hand_sides(problem)
        self._scale: float | None = None

    # -- how far a point is from satisfying the equations ------------------------------------------
    def violations(self, x: Array, z: Array) -> tuple[dict[str, float], Array]:
        """(norms of the violations at x and the mean of z, that mean).

        Two averagings, one riding reduction (four where rows are masked).
        """
        runtime = self.runtime
        mean_z = runtime.average(z)
        rows = np.ascontiguousarray(np.broadcast_to(mean_z, z.shape))
        misfits, _ = self.coupling.contributions(x, rows)
        local = (self.C.forward(x) - self.c) ** 2
        shared = np.zeros(0) if self.D.empty else (self.D.forward(rows) - self.e) ** 2
        squares = np.stack(
            [
                piece_sums(local, self.C.rows),
                piece_sums(shared, self.D.rows),
                [float(np.sum((copy - mean) ** 2)) for copy, mean in zip(z, rows, strict=True)],
            ],
            axis=1,
        )
        riding = [np.hstack([squares, self._sizes()])]
        if runtime.averaging.hides:  # in fixed point small squares would vanish next to large ones
            riding = [*np.split(squares, 3, axis=1), self._sizes()]
        reductions = [runtime.piggyback(rows) for rows in riding]
        coupled = runtime.average(misfits - self.b[:, : self.coupling.width])
        own, common, consensus, *sizes = (v for reduction in reductions for v in lengths(reduction))
        self._scale = math.hypot(*sizes)
        coupled_sq = float(agreed_dots(runtime, coupled, coupled)[0]) if coupled.size else 0.0
        off = self.problem.n * math.sqrt(coupled_sq)
        return {"coupled": off, "local": own, "shared": common, "consensus": consensus}, mean_z

    def scale(self) -> float:
        """Size of the right-hand sides: what a violation is compared with; travels with it."""
        if self._scale is None:
            self._scale = float(np.sqrt(np.sum(self.runtime.total(self._sizes()))))
        return self._scale

    def _sizes(self) -> Array:
        """Squares of every agent's right-hand sides."""
        own = piece_sums(self.c**2, self.C.rows)
        shared = piece_sums(self.e**2, self.D.rows)
        return np.stack([np.sum(self.b**2, axis=1), own, shared], axis=1)

    # -- multipliers -------------------------------------------------------------------------------
    def multipliers(self, gradient_x: Array, gradient_z: Array, multiplier: Array) -> Multipliers:
        """kappa, delta and nu that go with a coupled multiplier (least squares where not unique).

        The gradients (user units) are used up.
        """
        gx = gradient_x
        gz = gradient_z
        if not self.coupling.empty:
            ax, bz = self.coupling.adjoint(multiplier)
            gx += ax
            gz += bz
        local = self.local.multipliers(gx)
        shared = [np.zeros(k) for k in self.problem.r.values()]
        if not self.shared.empty:
            direction = self.solve_shared(-self.runtime.average(gz))
            shared = self.shared.multipliers(direction)
            gz += self.D.adjoint(np.concatenate(shared)).reshape(gz.shape)
        mean = self.runtime.average(gz)
        coupled = np.zeros(self.problem.m)
        coupled[: multiplier.shape[1]] = multiplier[0]
        return Multipliers(coupled, local, shared, np.subtract(mean, gz, out=gz))

    def dual_vector(self, multipliers: Multipliers) -> Array:
        """K'lambda in the user's units (a warm start for p); local products only."""
        out = self.space.zeros()
        x = self.space.x(out)
        z = self.space.z(out)
        z += multipliers.consensus
        if not self.coupling.empty:
            ax, bz = self.coupling.adjoint(multipliers.coupled[None])
            x += ax
            z += bz
        if not self.C.empty:
            x += self.C.adjoint(np.concatenate(multipliers.local))
        if not self.D.empty:
            z += self.D.adjoint(np.concatenate(multipliers.shared)).reshape(z.shape)
        own = zip(self.problem.agents.values(), multipliers.cones, strict=False)
        for k, (agent, y) in enumerate(own):
            if agent.G is not None:
                self.space.x_of(x, k)[:] += agent.G.T @ y
            if agent.H is not None:
                z[k] += agent.H.T @ y
        return out

    def solve_shared(self, right: Array) -> Array:
        """S_D^+ right; S_D, summed in one averaging of q (q + 1) / 2 floats, has orthonormal rows.

        The part of ``right`` in its kernel (rounding, an inexact multiplier) is left alone.
        """
        half = np.triu_indices(self.problem.q)
        bases = [space.basis for space in self.shared.spaces]
        triangle = self.runtime.average(np.stack([(V @ V.T)[half] for V in bases]))[0]
        inverse = scipy.linalg.pinvh(symmetric(triangle, self.problem.q), rtol=KERNEL)
        return self.runtime.common(right @ inverse)
