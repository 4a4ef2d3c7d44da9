"""The duality gap of a conic program at any point, from any multipliers, in the agents' own blocks.

For w = (x, z) with every x_i within its bounds, multipliers lambda of the coupled rows, nu of
epigraphs' rows, kappa and delta of C_i and D_i, and mu in the dual cone of an agent's conic rows
G x + H z + s = h (bounds on z are such rows), let r be the gradient of the Lagrangian. Every
solution w* obeys, with bound_j the bound that r_j pushes x_j to and r_f the part of r without one,

    F(w) - F* <= sum_j |r_j| |x_j - bound_j| + phi(w) - nu'(R w - h) + mu'(h - G x - H z)
                 - lambda'(A x + B z - b) - kappa'(C x - c) - delta'(D z - e)
                 + <r_f, w - w_0> + R ||r_f||,      R >= ||w* - w_0||.

No multiplier is believed: whatever is brought, the bound holds. Residuals are taken in extended
precision; ROUNDING eps times the sizes of all terms is added.
Cost: one averaging of m + q floats and a dozen numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from ccmac.certificates.bound import Particulars, Proved
from ccmac.certificates.gap import Gap, Goal
from ccmac.certificates.multipliers import Multipliers
from ccmac.certificates.recession import Recessions
from ccmac.certificates.stopping import Check, Evidence, Judge, Judged
from ccmac.inputs import Array
from ccmac.linalg.extended import Long, norm, product, square
from ccmac.linalg.tolerances import EPS
from ccmac.objectives.polyhedral import Polyhedral
from ccmac.workspace import Workspace
from ccmac.workspace.conic import StandardForm

ROUNDING = 16.0


@dataclass(frozen=True)
class LocalGap:
    """What one agent adds: shares of the coupled rows and of r on z; numbers that are summed."""

    vector: Long
    base: float
    value: float
    free: float  # squares of r_f on x
    moved: float  # squares of x - x_0
    size: float  # of all terms
    noise: float  # sizes of what r was summed from
    violation: float  # of own unit rows, the largest
    local: float  # squares of C x - c
    shared: float  # squares of D z - e
    on_z: Array  # r on z but for what holds the copies together
    gradient: Array  # of F on x, with what bounds make up for
    x: Array
    kappa: Array
    delta: Array
    cones: Array
    outside: float  # squares of how far own slacks lie outside their cones


class Duality:
    """Gaps of one problem; ``start`` is (x0, z0)."""

    def __init__(
        self,
        work: Workspace,
        forms: list[Polyhedral],
        models: list[StandardForm],
        start: tuple[Array, Array],
    ) -> None:
        self.work = work
        self.runtime = work.runtime
        self.problem = work.problem
        self.forms = forms
        self.models = models
        self.conic = work.curvature.conic
        self.x0, self.z0 = start
        squares = [_row_squares(p.A) + _row_squares(p.B) for p in models]
        both = [np.append(v, p.b) for v, p in zip(squares, models, strict=True)]
        self._sizes = work.runtime.piggyback(np.stack(both))

    @cached_property
    def unit(self) -> Array:
        """1 over the lengths of the coupled rows, or over their right-hand sides if longer."""
        squares, side = np.split(self._sizes.value, 2)
        return 1.0 / np.maximum(np.sqrt(np.where(squares > 0, squares, 1.0)), np.abs(side))

    def gap(self, x: Array, z: Array, dual: Array, rows: list[Array]) -> tuple[Gap, Proved]:
        """At (flat x, z), with lambda and the agents' multipliers of all their rows."""
        m = self.problem.m
        n = self.problem.n
        self._charge(gradients=1, A=2, B=2, C=2, D=2)
        shares = [
            self._share(k, self.work.space.x_of(x, k), z, dual, rows[k])
            for k in range(len(self.models))
        ]
        rows_sent = [_numbers(s, conic=self.conic) for s in shares]
        numbers = self.runtime.piggyback(np.array(rows_sent), whole=True)
        vectors = np.stack([s.vector.astype(np.float64) for s in shares])
        total = self.runtime.average(vectors)[0] * n if vectors.shape[1] else vectors[0]
        misfit, r_z = np.split(total, [m])
        table = numbers.value
        sums = np.add.reduce(table[:, 1:])
        base, value, free, moved, size, noise, local, shared, *outside = sums
        away = z - self.z0
        slope = math.sqrt(free + float(r_z @ r_z)) + ROUNDING * EPS * (noise + n * norm(r_z))
        base += float(r_z @ away - dual @ misfit)
        size += float(np.abs(r_z) @ np.abs(away) + np.abs(dual) @ np.abs(misfit))
        base += ROUNDING * EPS * size
        violation = float(np.max(self.unit * np.abs(misfit), initial=table[:, 0].max()))
        moved = math.sqrt(moved + float(away @ away))
        found = Gap(
            value=float(value), base=float(base), slope=slope, violation=violation, travelled=moved
        )
        residuals = {
            "coupled": norm(misfit),
            "local": math.sqrt(local),
            "shared": math.sqrt(shared),
            "consensus": 0.0,
        }
        if self.conic:
            residuals["cones"] = math.sqrt(outside[0])
        consensus = r_z / n - np.stack([s.on_z for s in shares])
        multipliers = Multipliers(
            dual,
            [s.kappa for s in shares],
            [s.delta for s in shares],
            consensus,
            cones=[s.cones for s in shares] if self.conic else [],
        )
        flat = np.concatenate([np.zeros(0), *(s.x for s in shares)])
        gradient = np.concatenate([np.zeros(0), *(s.gradient for s in shares)])
        none = np.zeros(0)
        report = Particulars(residuals, multipliers, float(value))
        proved = Proved(flat, z, math.nan, slope, violation, moved, gradient, none, dual, report)
        return found, proved

    def _share(self, k: int, x: Array, z: Array, dual: Array, rows: Array) -> LocalGap:
        form = self.forms[k]
        p = self.models[k]
        d = p.d
        x = np.clip(x, form.lower[:d], form.upper[:d])
        u = np.append(x, z)
        curved = product(form.H, u)
        parts: list[Any] = [curved, -form.g]
        value = 0.5 * float(u @ curved) - float(form.g @ u) + form.c
        base = 0.0
        size = abs(value)

        def pay(multiplier: Array, left: Any) -> None:
            nonlocal base, size
            terms = multiplier * left
            base -= float(terms.sum())
            size += float(np.abs(terms).sum())

        kappa = rows[p.parts["C"]] if "C" in p.parts else np.zeros(0)
        delta = rows[p.parts["D"]] if "D" in p.parts else np.zeros(0)
        cones = np.zeros(0)
        local = shared = violation = outside = 0.0
        for function, at in form.smooth:
            slope = np.zeros(len(u), dtype=np.longdouble)
            slope[at] = function.precise_at(u[at])
            parts.append(slope)
            here = function.value_at(u[at])
            value += here
            size += abs(here)

        for name, part in p.parts.items():
            if name in ("epigraphs", "signs"):
                continue
            G = p.G[part][:, :d]
            H = p.H[part]
            v = rows[part]
            left = product(G, x) + product(H, z) - p.h[part]
            if name in ("lower", "upper"):
                at = np.diff(H.indptr) > 0  # bounds on z; those on x are held below
                v = np.where(at, np.maximum(v, 0.0), 0.0)
                left = np.where(at, left, 0.0)
            elif name == "fixed":
                v = np.where(np.diff(H.indptr) > 0, v, 0.0)
            elif name == "cones":
                v = cones = p.cone.inside_dual(rows)[part]
            pay(v, left)
            parts.append(np.append(product(G.T, v), product(H.T, v)))
            slack = np.zeros(p.rows)
            slack[part] = -left
            off = p.cone.outside(slack)[part]
            lengths = np.sqrt(_row_squares(p.G[part]) + _row_squares(H))
            lengths = np.where(lengths > 0, lengths, 1.0)
            sizes = np.maximum(lengths, np.abs(p.h[part]))
            violation = max(violation, float(np.max(off / sizes, initial=0.0)))
            local += square(left) if name == "C" else 0.0
            shared += square(left) if name == "D" else 0.0
            outside += p.cone.distance(slack) ** 2 if name == "cones" else 0.0
        start = p.parts["epigraphs"].start if "epigraphs" in p.parts else 0
        for term in form.terms:
            nu = term.steady(rows[start : start + len(term.h)])
            start += len(term.h)
            image = product(term.R, u) - term.h
            here = term.value(image.astype(np.float64))
            value += here
            base += here
            size += abs(here)
            pay(nu, image)
            parts.append(product(sp.csr_array(term.R).T, nu))
        of_rows = product(p.A.T[:d], dual)
        if kappa.size:
            of_rows = of_rows + product(p.G[p.parts["C"]].T[:d], kappa)
        parts.append(np.append(product(p.A.T[:d], dual), product(p.B.T, dual)))
        r = np.sum(parts, axis=0)
        on_x = r[:d].astype(np.float64)
        bound = np.where(on_x > 0, form.lower[:d], form.upper[:d])
        held = np.isfinite(bound) | (on_x == 0)
        room = np.abs(on_x) * np.abs(x - np.where(np.isfinite(bound), bound, x))
        far = np.where(held, 0.0, on_x)
        begun = self.work.space.x_of(self.x0, k)
        base += float(room.sum() + far @ (x - begun))
        size += float(room.sum() + np.abs(far) @ np.abs(x - begun))
        misfit = product(p.A[:, :d], x) + product(p.B, z) - p.b
        return LocalGap(
            np.concatenate([misfit, r[d:]]),
            base,
            value,
            square(far),
            square(x - begun),
            size,
            sum(norm(part) for part in parts),
            violation,
            local,
            shared,
            r[d:].astype(np.float64),
            (far - of_rows).astype(np.float64),
            x,
            kappa,
            delta,
            cones,
            outside,
        )

    def _charge(self, **units: int) -> None:
        there = {u: k for u, k in units.items() if len(u) > 1 or u in self.problem.present}
        self.work.ledger.charge(**there)


class Solved(Protocol):
    """What the judge asks of an iteration that solves directly."""

    def multipliers(self, state: Any) -> tuple[Array, list[Array]]:
        """lambda and the agents' multipliers of all their rows, at the point."""

    def steepest(self) -> list[tuple[Array, Array]]:
        """(flat x, z) of directions that promise to let F fall without end."""


class DualityJudge(Judge):
    """F - F* <= eps and violation <= tol, or a recession direction; by one averaging each.

    Without curvature on the kernel of all equations no distance to "the" solution can be bounded,
    but a :class:`Duality` bounds values.
    """

    def __init__(
        self, duality: Duality, recessions: Recessions, goal: Goal, record: dict[str, Any]
    ) -> None:
        self.duality = duality
        self.recessions = recessions
        self.goal = goal
        self.record = record
        self.notes = []
        self._tried = False

    def check(self, iteration: Judged, state: Any) -> Check:
        """A recession direction first."""
        method: Solved = iteration  # type: ignore[assignment]
        if not self._tried:
            self._tried = True
            for direction in method.steepest():
                verdict = self.recessions.test(*direction)
                if verdict is not None:
                    return Check(math.nan, verdict=verdict)
        x, z = iteration.point(state)
        found, proved = self.duality.gap(x, z[0], *method.multipliers(state))
        self.record.update(found.record(self.goal))
        bound = found.bound(found.required(self.goal))
        return Check(bound, Evidence("gap", found.ratio(self.goal)), proved)


def _numbers(s: LocalGap, *, conic: bool) -> list[float]:
    """The largest violation, then what is summed."""
    summed = [s.base, s.value, s.free, s.moved, s.size, s.noise, s.local, s.shared]
    return [s.violation, *summed, *([s.outside] if conic else [])]


def _row_squares(M: Any) -> Array:
    return np.asarray(M.multiply(M).sum(axis=1)).ravel()
