"""What multipliers prove of a quadratic problem with bounds: a gap.

For a point w within its bounds, multipliers y of all equations K w = v and nu of the epigraphs'
rows, with r = Hw - g + K'y + R'nu, every solution w* obeys (convexity, and phi(w*) >= nu'(R w* -
h))

    F(w) - F* <= sum_j |r_j| |w_j - bound_j|  +  phi(w) - nu'(R w - h)  -  y'(K w - v)
                 + <r_f, w - w0> + R ||r_f||,      R >= ||w* - w0||,

bound_j the one that r_j pushes to, r_f the entries of r that push where there is none. No
multiplier is believed: whatever is brought, the bound holds. Nearly dependent rows leave much room
for small violations, and F may lie far below F*: without bounds and epigraphs, w at most delta away
from the equations,

    F* - F(w) <= |y'(K w - v)| + ||r|| delta + L delta^2 / 2.

Products are computed in extended precision; what rounding may change is added.
Cost: one averaging each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ccmac.certificates.bound import Particulars, Proved
from ccmac.certificates.bounded import Bounded, Shares, pushed
from ccmac.certificates.gap import DualityGap, Goal
from ccmac.certificates.multipliers import Multipliers
from ccmac.certificates.recession import Recession, Recessions
from ccmac.certificates.stopping import Check, Evidence, Judge, Judged
from ccmac.inputs import Array
from ccmac.linalg.extended import EPS_LONG, norm, product
from ccmac.linalg.tolerances import EPS
from ccmac.objectives.polyhedral import Polyhedral
from ccmac.workspace import Workspace
from ccmac.workspace.constraints import Constraints


@dataclass(frozen=True)
class DualPoint:
    """Multipliers: coupled, scaled shared rows, and by agents of C_i and of the epigraphs."""

    coupled: Array
    shared: Array
    local: list[Array]
    terms: list[Array]


class Duality:
    """Gaps and verdicts for one problem.

    ``bounds`` are everybody's lower and upper ends of z, a row per agent; ``start`` is (x0, z0).
    ``units`` of all x_i and of z are those in which R is measured (else the user's).
    """

    def __init__(
        self,
        work: Workspace,
        reduced: Constraints,
        forms: list[Polyhedral],
        bounds: Array,
        start: tuple[Array, Array],
        units: tuple[list[Array], Array] | None = None,
    ) -> None:
        self.work = work
        self.reduced = reduced
        q = work.problem.q
        on_x, self.units = units or ([np.ones(d) for d in work.problem.d.values()], np.ones(q))
        self.space = work.space
        self.runtime = work.runtime
        self.problem = work.problem
        self.agents = [
            Bounded(work, reduced, k, form, np.append(S, self.units))
            for k, (form, S) in enumerate(zip(forms, on_x, strict=True))
        ]
        self.lower, self.upper = bounds[:, :q].max(axis=0), bounds[:, q:].min(axis=0)
        self.x0, self.z0 = start
        # Who sets the bounds that count, in equal shares.
        low = bounds[:, :q] == self.lower
        high = bounds[:, q:] == self.upper
        owned = list(work.problem.agents)
        self.sets = [(s / s.sum(axis=0))[owned] for s in (low, high)]
        self._least = None  # of all units
        if units is not None:
            smallest = [[float(np.append(S, self.units).min(initial=math.inf))] for S in on_x]
            self._least = self.runtime.piggyback(np.array(smallest), whole=True)
        self._room = 8 * EPS * (q + len(reduced.e) + self.problem.n)

    @classmethod
    def unbounded_below(
        cls, work: Workspace, reduced: Constraints, start: tuple[Array, Array]
    ) -> Duality:
        """Of quadratics, whose unknowns have no bounds."""
        problem = work.problem
        forms = [a.objective.polyhedral(problem.d[i], problem.q) for i, a in problem.agents.items()]
        ends = np.full((problem.n, 2 * problem.q), np.inf)
        ends[:, : problem.q] = -np.inf
        return cls(work, reduced, forms, ends, start)

    def _summed(self, vectors: list[Array], scalars: list[list[float]]) -> tuple[Array, Array]:
        """(sum of the vectors, all agents' scalars) in one message."""
        rows = self.runtime.piggyback(np.array(scalars), whole=True)
        total = vectors[0]
        if total.size:
            total = self.runtime.average(np.stack(vectors))[0] * self.problem.n
        return total, rows.value

    def _charge(self, **units: int) -> None:
        there = {u: k for u, k in units.items() if len(u) > 1 or u in self.problem.present}
        self.work.ledger.charge(**there)

    def _alike(self, z: Array, multipliers: DualPoint) -> tuple[Array, DualPoint]:
        """Replicated vectors, the same bits everywhere: shares are of one z, one multiplier."""
        received = self.runtime.common(np.concatenate([z, multipliers.coupled, multipliers.shared]))
        z, coupled, shared = np.split(received, np.cumsum([len(z), len(multipliers.coupled)]))
        return z, replace(multipliers, coupled=coupled, shared=shared)

    # -- a gap -------------------------------------------------------------------------------------
    def gap(self, x: Array, z: Array, multipliers: DualPoint) -> tuple[DualityGap, Proved]:
        """At (x, z), which lies within the bounds."""
        z, multipliers = self._alike(z, multipliers)
        m = self.problem.m
        n = self.problem.n
        reduced = self.reduced
        self._charge(gradients=1, A=2, B=2, C=2)
        shares: list[Shares] = []
        for k, agent in enumerate(self.agents):
            own = self.space.x_of(x, k)
            start = np.append(self.space.x_of(self.x0, k), self.z0)
            paid = multipliers.coupled, multipliers.local[k], multipliers.terms[k]
            shares.append(agent.gap(own, z, start, *paid))
        total, rows = self._summed([s.vector for s in shares], [s.scalars for s in shares])
        base, value, far2, noise, room, spread, moved2, local2, near2, due, *blur, _ = map(
            float, np.add.reduce(rows)
        )
        misfit, (r, rounded) = total[:m], self._on_z(total[m:], multipliers.shared)
        bound, held = pushed(r, self.lower, self.upper)
        off = (product(reduced.D, z) - reduced.e).astype(np.float64)
        away = r * (z - np.where(held, bound, self.z0))
        owed = float(multipliers.coupled @ misfit + multipliers.shared @ off)
        base += float(away.sum()) - owed
        sizes = np.abs(reduced.D) @ np.abs(z) + np.abs(reduced.e)
        room += self._room * float(np.abs(away).sum() + np.abs(multipliers.shared) @ sizes)
        far = (self.units * r)[~held]
        noise += n * EPS * spread + norm(self.units * rounded) + EPS * norm(far)
        slope = math.sqrt(far2 + float(far @ far)) + noise
        lost = 2 * (len(z) + 2) * EPS_LONG * sizes + EPS * np.abs(off)
        violation = self._violation(misfit, blur[1], np.abs(off) + lost)
        violation = max(float(rows[:, -1].max()), violation)
        travel = (z - self.z0) / self.units
        moved = math.sqrt(moved2 + float(travel @ travel))
        least = 1.0 if self._least is None else float(self._least.value.min())
        left = math.hypot(norm(reduced.unit * misfit) + blur[0], norm(off) + norm(lost))
        distance = self._distance(left, math.sqrt(near2))
        below = self._below(abs(owed + due) + room, slope / least, distance)
        lacks = math.hypot(norm(reduced.unit * misfit), norm(off), math.sqrt(near2))
        hidden = blur[0] + self._room * norm(sizes)
        found = DualityGap(value, base + room, slope, violation, moved, below, least, lacks, hidden)
        residuals = {
            "coupled": norm(misfit),
            "local": math.sqrt(local2),
            "shared": norm(off / reduced.unit_D),
            "consensus": 0.0,
        }
        particulars = Particulars(residuals, self._multipliers(shares, multipliers, r, held), value)
        gx = np.concatenate([s.slope_x for s in shares])
        gz = np.zeros(0)
        return found, Proved(
            x, z, math.nan, slope, violation, moved, gx, gz, multipliers.coupled, particulars
        )

    def _on_z(self, total: Array, shared: Array) -> tuple[Array, Array]:
        """(r on z from the agents' sum, what the sum over shared rows may be off by)."""
        D = self.reduced.D
        r = (total + product(D.T, shared)).astype(np.float64)
        sizes = np.abs(D).T @ np.abs(shared)
        return r, 2 * (len(shared) + 1) * EPS_LONG * (np.abs(total) + sizes)

    def _multipliers(
        self, shares: list[Shares], multipliers: DualPoint, r: Array, held: NDArray[np.bool_]
    ) -> Multipliers:
        """The multipliers with what is left of every agent's slope in z; bounds on z hold their
        part.
        """
        rest = np.where(held, r, 0.0)
        own = []
        gz = np.stack([s.slope_z for s in shares])
        gz -= np.maximum(rest, 0.0) * self.sets[0] + np.minimum(rest, 0.0) * self.sets[1]
        for k, B in enumerate(self.reduced.B):
            paid, image = self.reduced.own_shared(k, multipliers.shared)
            own.append(paid)
            gz[k] += B.T @ multipliers.coupled + image
        left = np.where(held, 0.0, r) / self.problem.n
        return Multipliers(multipliers.coupled, multipliers.local, own, left[None] - gz)

    def _distance(self, left: float, near: float) -> float:
        """From the equations at most: onto local ones (``near``), then along what is ``left``."""
        reduced = self.reduced
        if not reduced.least > 0:
            return math.inf
        return near + (left + math.sqrt(2 * self.problem.m) * near) / reduced.least

    def _below(self, owed: float, slope: float, distance: float) -> float:
        """F* - F(w) at most; 0, unknown, where bounds or epigraphs are in the way to the equations.

        ``slope`` and ``distance`` are in the user's units.
        """
        table = self.work.curvature
        if not table.quadratic:
            return 0.0
        return owed + distance * (slope + float(table.L.sum()) * distance / 2)

    def _violation(self, misfit: Array, blur: float, off: Array) -> float:
        """Of the coupled and shared unit rows, relative to max(1, right-hand side of the sum)."""
        reduced = self.reduced
        coupled = np.abs(reduced.unit * misfit) / reduced.scale
        shared = np.abs(off) / np.maximum(1.0, np.abs(reduced.e))
        return max(float(coupled.max(initial=0.0)) + blur, float(shared.max(initial=0.0)))


class Solved(Protocol):
    """What the judge asks of an iteration that solves directly."""

    def multipliers(self, state: Any) -> DualPoint:
        """Of all equations, at the point."""

    def steepest(self) -> list[tuple[Array, Array]]:
        """(flat x, z) of directions that promise to let F fall without end."""


class DualityJudge(Judge):
    """F - F* <= eps and violation <= tol, or a recession direction; by one averaging each.

    Without curvature on the kernel of all equations no distance to "the" solution can be bounded,
    but a :class:`Duality` bounds values; a slope along a direction that neither the equations nor
    any Hessian see is proved to let F fall without end.
    """

    def __init__(self, duality: Duality, goal: Goal, record: dict[str, Any]) -> None:
        self.duality = duality
        self.goal = goal
        self.record = record
        self.notes = []
        self.recessions = Recessions(
            duality.work, duality.reduced, [a.form for a in duality.agents]
        )
        self._tried = False

    def check(self, iteration: Judged, state: Any) -> Check:
        """A recession direction first."""
        method: Solved = iteration  # type: ignore[assignment]
        verdict = None if self._tried else self.fall(method)
        self._tried = True
        if verdict is not None:
            return Check(math.nan, verdict=verdict)
        x, z = iteration.point(state)
        found, proved = self.duality.gap(x, z[0], method.multipliers(state))
        self.record.update(found.record(self.goal))
        bound = found.bound(found.required(self.goal))
        return Check(bound, Evidence("gap", found.ratio(self.goal)), proved)

    def fall(self, method: Solved) -> Recession | None:
        """A recession direction among the free ones."""
        tried = (self.recessions.test(*direction) for direction in method.steepest())
        return next((found for found in tried if found is not None), None)
