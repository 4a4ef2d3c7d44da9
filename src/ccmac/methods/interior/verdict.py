"""Certificates that there is no solution, from an interior point that runs off to infinity.

Where kappa outgrows tau, (lambda, v) tends to a Farkas certificate or (y, z) to a recession
direction. A direction is first projected onto its active rows and the kernel of P, by

    minimize ||d - d_0||^2 / 2 + (w/2) d'P d   s.t.   A d = 0,  G_A d = 0,     w large,

in two sums; both are judged in the agents' own blocks.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from ccmac.certificates.farkas import Farkas, Infeasibility, Lambda, crossing
from ccmac.certificates.recession import Recession, Recessions
from ccmac.inputs import Array
from ccmac.methods.interior.active import settled
from ccmac.methods.interior.iteration import Interior, InteriorState
from ccmac.methods.interior.local import LocalSystem
from ccmac.methods.interior.system import CommonSystem
from ccmac.objectives.polyhedral import Polyhedral
from ccmac.workspace import Workspace
from ccmac.workspace.conic import StandardForm

HEAVY = 1e9  # w over the largest entry of P
PARTS = ("C", "D", "epigraphs", "cones")  # whose multipliers a Farkas certificate has


class Verdicts:
    """Looks at rays of one problem; bounds on z are gathered when the first one is looked at."""

    def __init__(
        self, work: Workspace, forms: list[Polyhedral], models: list[StandardForm]
    ) -> None:
        self.work = work
        self.forms = forms
        self.models = models
        self._ends: Array | None = None

    def __call__(
        self, iteration: Interior, state: InteriorState
    ) -> Infeasibility | Recession | None:
        """What the state proves, if anything."""
        ends = self.ends()
        conflict = crossing(ends, self.work.problem.m)
        if conflict is not None:
            return conflict
        both = self.both()
        conflict = Farkas(self.work, self.forms, both).test(self.given(iteration, state))
        reduced = self.work.gather_constraints()
        if conflict is not None or reduced is None:
            return conflict
        recessions = Recessions(self.work, reduced, self.forms, both)
        ray = state
        # the second from what the first one left
        for _ in range(2):
            ray = straightened(iteration, ray)
            found = recessions.test(*iteration.direction(ray))
            if found is not None:
                return found
        return None

    def both(self) -> tuple[Array, Array]:
        """The bounds on z that hold for all."""
        ends = self.ends()
        q = self.work.problem.q
        return ends[:, :q].max(axis=0), ends[:, q:].min(axis=0)

    def given(self, iteration: Interior, state: InteriorState) -> Lambda:
        """The multipliers that may prove a contradiction."""
        dual, rows = iteration.multipliers(state)
        none = slice(0, 0)
        parts = (
            [-v[p.parts.get(name, none)] for v, p in zip(rows, self.models, strict=True)]
            for name in PARTS
        )
        return Lambda(-dual, *parts)

    def ends(self) -> Array:
        """Every agent's lower and upper bounds on z."""
        if self._ends is None:
            q = self.work.problem.q
            rows = np.zeros((len(self.forms), 2 * q))
            for row, form in zip(rows, self.forms, strict=True):
                row[:] = np.append(
                    form.lower[form.lower.size - q :], form.upper[form.upper.size - q :]
                )
            self._ends = self.work.runtime.gather(rows)
        return self._ends


def straightened(run: Interior, state: InteriorState) -> InteriorState:
    """The state with its direction projected; tau = kappa = 1."""
    size = max(state.kappa, 1e-300)
    models = []
    shared = run.shared(state)
    for model, point in zip(run.models, run.points(state), strict=True):
        p = model.near(point.y / shared.tau, shared.z / shared.tau).patterned()
        largest = max(float(np.abs(M.data).max(initial=0.0)) for M in (p.P, p.P_z, p.P_zz))
        w = HEAVY / largest if largest > 0 else 0.0
        models.append(
            replace(
                p,
                P=sp.csr_array(sp.eye_array(p.size) + w * p.P),
                P_z=sp.csr_array(w * p.P_z),
                P_zz=sp.csr_array(w * p.P_zz),
                c=-point.y / size,
                c_z=np.zeros_like(p.c_z),
                h=np.zeros_like(p.h),
                b=np.zeros_like(p.b),
                smooth=(),
            )
        )
    ray = copy(run)
    ray.models = models
    ray.agents = [LocalSystem(p) for p in models]
    table = run.work.agreed[run.name]
    ray.system = CommonSystem(ray.agents, table, run.q, run.m)
    return replace(settled(ray, replace(state, tau=size)), kappa=1.0)
