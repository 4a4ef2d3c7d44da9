"""Bounds on F(w) - F* that need no solution, only a radius.

For a point u, a subgradient g of F at u (or an average of both with a <= slack), any p in Range K'
and R >= ||w0 - w*||, with r = g + p:

    F(u) - F* <= slack + <r, u - w0> + R ||r|| + ||p|| dist(u),   dist(u) <= ||G u - g|| / lambda_-.

The distance <r, w0 - w*> is taken in the user's variables, where w0 and w* are in consensus. A
feasible (repaired) point v then has F(v) - F* <= F(v) - F(u) + the bound. Nothing here needs a
multiplier budget.

With bounds, inequalities and cones :class:`Duality` has the gap, in the agents' own blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from ccmac.certificates.bound import Particulars, Proved
from ccmac.certificates.multipliers import Multipliers
from ccmac.certificates.realized import Certifier
from ccmac.certificates.stopping import Check, Evidence, Judge, Judged, over
from ccmac.inputs import Array
from ccmac.linalg.extended import Long, norm, product, square
from ccmac.linalg.tolerances import EPS
from ccmac.objectives.polyhedral import Polyhedral
from ccmac.realizations.base import Realized
from ccmac.runtime.base import Piggyback
from ccmac.runtime.space import lengths, piece_sums
from ccmac.workspace import Workspace
from ccmac.workspace.conic import StandardForm

ROUNDING = 16.0  # eps times the sizes of all terms of a duality gap


@dataclass(frozen=True)
class Goal:
    """eps = ``accuracy``, else tol max(1, |F|); ``radius`` R in the user's variables, if known."""

    tol: float
    accuracy: float | None = None
    radius: float | None = None

    def epsilon(self, value: float) -> float:
        """The accuracy asked for when the objective is ``value``; 0 where that is none."""
        if self.accuracy is not None:
            return self.accuracy
        return self.tol * max(1.0, abs(value)) if math.isfinite(value) else 0.0

    @property
    def absolute(self) -> float:
        """The accuracy a schedule is made for, before any value of F is known."""
        return self.tol if self.accuracy is None else self.accuracy

    def required(self, travelled: float) -> float:
        """The radius a gap must hold for: given, else max(1, 2 ||w - w0||).

        A point that has hardly moved must not prove itself optimal.
        """
        return self.radius if self.radius is not None else max(1.0, 2.0 * travelled)

    @property
    def radius_source(self) -> str:
        """In words."""
        if self.radius is not None:
            return "supplied"
        return "estimated: twice the distance travelled, at least 1"


def execution_radius(realized: Realized, radius: float) -> float:
    """A bound on ||w0 - w*|| from one on ||(x0, z0) - (x*, z*)||: n copies of z / s, if any."""
    if not realized.space.q:
        return radius
    return radius * max(1.0, math.sqrt(realized.space.runtime.n) / realized.s)


@dataclass(frozen=True, kw_only=True)
class Gap:
    """F - F* <= base + R slope, for every R (user units) that bounds the distance.

    ``violation`` is of unit rows, ``travelled`` ||w - w0||.
    """

    value: float
    base: float
    slope: float
    violation: float
    travelled: float

    def bound(self, radius: float) -> float:
        """F(w) - F* at most, when ||(x0, z0) - (x*, z*)|| <= radius."""
        return self.base + radius * self.slope

    def required(self, goal: Goal) -> float:
        """The radius the criterion must hold for: given, else estimated."""
        return goal.required(self.travelled)

    def radius(self, epsilon: float) -> float:
        """The largest R for which the criterion is proved (0: none)."""
        allowed = max(epsilon - self.base, 0.0)
        return allowed / self.slope if self.slope > 0 else math.inf

    def ratio(self, goal: Goal) -> float:
        """Gap and violation over what is asked: the larger.

        A bound far below zero tells of violations that lower F by more than the accuracy.
        """
        most = abs(self.bound(self.required(goal)))
        return max(over(most, goal.epsilon(self.value)), over(self.violation, goal.tol))

    def record(self, goal: Goal) -> dict[str, Any]:
        """For Result.certificates."""
        epsilon = goal.epsilon(self.value)
        radius = self.required(goal)
        return {
            "epsilon": epsilon,
            "radius": radius,
            "radius_source": goal.radius_source,
            "radius_proved": self.radius(epsilon),
            "gap": self.bound(radius),
            "feasibility": self.violation,
            "value": self.value,
            "proved_by": "bound" if self.ratio(goal) <= 1.0 else "nothing",
        }

    def check(self, goal: Goal, proved: Proved, record: dict[str, Any]) -> Check:
        """What the gap proves, also noted in ``record``."""
        record.update(self.record(goal))
        bound = self.bound(self.required(goal))
        return Check(bound, Evidence("gap", self.ratio(goal)), proved)


# -- the duality gap of a conic program, in the agents' own blocks ---------------------------------
@dataclass(frozen=True)
class Share:
    """What one agent adds to a duality gap."""

    vector: Long  # its part of the coupled rows' misfit, then of r on z
    largest: float  # violation of an own unit row
    numbers: Array  # that are summed: as :meth:`Duality.gap` takes them apart
    multipliers: tuple[Array, Array, Array]  # of C_i, D_i and cones
    x: Array
    gradient: Array  # of F on x, with what bounds make up for


class Duality:
    """Duality gaps of one problem at any point, from any multipliers; ``start`` is (x0, z0).

    For w = (x, z) with every x_i within its bounds, multipliers lambda of the coupled rows, nu of
    epigraphs' rows, kappa and delta of C_i and D_i, and mu in the dual cone of an agent's conic
    rows G x + H z + s = h (bounds on z are such rows), let r be the gradient of the Lagrangian.
    Every solution w* obeys, with bound_j the bound that r_j pushes x_j to and r_f the part of r
    without one,

        F(w) - F* <= sum_j |r_j| |x_j - bound_j| + phi(w) - nu'(R w - h) + mu'(h - G x - H z)
                     - lambda'(A x + B z - b) - kappa'(C x - c) - delta'(D z - e)
                     + <r_f, w - w_0> + R ||r_f||,      R >= ||w* - w_0||.

    No multiplier is believed: whatever is brought, the bound holds. Residuals are taken in extended
    precision; ROUNDING eps times the sizes of all terms is added.
    Cost: one averaging of m + q floats and a dozen numbers.
    """

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
        squares = [np.append(row_squares(p.A) + row_squares(p.B), p.b) for p in models]
        self._sizes = work.runtime.piggyback(np.stack(squares))

    @cached_property
    def unit(self) -> Array:
        """1 over the lengths of the coupled rows, or over their right-hand sides if longer."""
        squares, side = np.split(self._sizes.value, 2)
        return 1.0 / np.maximum(np.sqrt(np.where(squares > 0, squares, 1.0)), np.abs(side))

    def gap(self, x: Array, z: Array, dual: Array, rows: list[Array]) -> tuple[Gap, Proved]:
        """At (flat x, z), with lambda and the agents' multipliers of all their rows."""
        n = self.problem.n
        here = self.problem.present
        self.work.ledger.charge(gradients=1, **{unit: 2 for unit in "ABCD" if unit in here})
        pieces = [self.work.space.x_of(x, k) for k in range(len(self.models))]
        shares = [self._share(k, v, z, dual, rows[k]) for k, v in enumerate(pieces)]
        sent = [np.append(s.largest, s.numbers) for s in shares]
        received = self.runtime.piggyback(np.array(sent), whole=True)
        vectors = np.stack([s.vector.astype(np.float64) for s in shares])
        total = self.runtime.average(vectors)[0] * n if vectors.shape[1] else vectors[0]
        misfit, r_z = np.split(total, [self.problem.m])
        table = received.value
        base, value, free, moved, size, noise, local, shared, *outside = np.add.reduce(table[:, 1:])
        away = z - self.z0
        slope = math.sqrt(free + float(r_z @ r_z)) + ROUNDING * EPS * (noise + n * norm(r_z))
        base += float(r_z @ away - dual @ misfit)
        size += float(np.abs(r_z) @ np.abs(away) + np.abs(dual) @ np.abs(misfit))
        found = Gap(
            value=float(value),
            base=float(base + ROUNDING * EPS * size),
            slope=slope,
            violation=float(np.max(self.unit * np.abs(misfit), initial=table[:, 0].max())),
            travelled=math.sqrt(moved + float(away @ away)),
        )
        residuals = {
            "coupled": norm(misfit),
            "local": math.sqrt(local),
            "shared": math.sqrt(shared),
            "consensus": 0.0,
        }
        if self.conic:
            residuals["cones"] = math.sqrt(outside[0])
        kappa, delta, cones = (
            list(part) for part in zip(*(s.multipliers for s in shares), strict=True)
        )
        consensus = r_z / n - vectors[:, self.problem.m :]
        multipliers = Multipliers(dual, kappa, delta, consensus, cones=cones if self.conic else [])
        flat = np.concatenate([np.zeros(0), *(s.x for s in shares)])
        gradient = np.concatenate([np.zeros(0), *(s.gradient for s in shares)])
        report = Particulars(residuals, multipliers, float(value))
        proved = Proved(
            flat,
            z,
            math.nan,
            slope,
            found.violation,
            found.travelled,
            gradient,
            np.zeros(0),
            dual,
            report,
        )
        return found, proved

    def _share(self, k: int, x: Array, z: Array, dual: Array, rows: Array) -> Share:
        """One agent's terms of the bound; pairs (multiplier, row's residual) are ``paid``."""
        form = self.forms[k]
        p = self.models[k]
        d = p.d
        x = np.clip(x, form.lower[:d], form.upper[:d])
        u = np.append(x, z)
        curved = product(form.H, u)
        slopes: list[Any] = [curved, -form.g]
        values = [0.5 * float(u @ curved) - float(form.g @ u) + form.c]
        for function, at in form.smooth:
            slope = np.zeros(len(u), dtype=np.longdouble)
            slope[at] = function.precise_at(u[at])
            slopes.append(slope)
            values.append(function.value_at(u[at]))
        paid: list[tuple[Array, Any]] = []
        of_parts = {"C": np.zeros(0), "D": np.zeros(0), "cones": np.zeros(0)}
        off = {"C": 0.0, "D": 0.0, "cones": 0.0}
        largest = 0.0
        for name, part in p.parts.items():
            if name in ("epigraphs", "signs"):
                continue
            G = p.G[part][:, :d]
            H = p.H[part]
            v = rows[part]
            left = product(G, x) + product(H, z) - p.h[part]
            if name in ("lower", "upper", "fixed"):  # of z: those of x are held below
                on_z = np.diff(H.indptr) > 0
                v = np.where(on_z, v if name == "fixed" else np.maximum(v, 0.0), 0.0)
                left = np.where(on_z | (name == "fixed"), left, 0.0)
            elif name == "cones":
                v = p.cone.inside_dual(rows)[part]
            slack = np.zeros(p.rows)
            slack[part] = -left
            lengths = np.sqrt(row_squares(G) + row_squares(H))
            sizes = np.maximum(np.where(lengths > 0, lengths, 1.0), np.abs(p.h[part]))
            largest = max(largest, float(np.max(p.cone.outside(slack)[part] / sizes, initial=0.0)))
            if name in off:
                of_parts[name] = v
                off[name] = p.cone.distance(slack) ** 2 if name == "cones" else square(left)
            paid.append((v, left))
            slopes.append(np.append(product(G.T, v), product(H.T, v)))
        start = p.parts["epigraphs"].start if "epigraphs" in p.parts else 0
        base = 0.0
        for term in form.terms:
            nu = term.steady(rows[start : start + len(term.h)])
            start += len(term.h)
            image = product(term.R, u) - term.h
            here = term.value(image.astype(np.float64))
            values.append(here)
            base += here
            paid.append((nu, image))
            slopes.append(product(sp.csr_array(term.R).T, nu))
        of_rows = product(p.A.T[:d], dual)
        slopes.append(np.append(of_rows, product(p.B.T, dual)))
        if of_parts["C"].size:
            of_rows = of_rows + product(p.G[p.parts["C"]].T[:d], of_parts["C"])
        r = np.sum(slopes, axis=0)
        on_x = r[:d].astype(np.float64)
        bound = np.where(on_x > 0, form.lower[:d], form.upper[:d])
        held = np.isfinite(bound) | (on_x == 0)
        room = np.abs(on_x) * np.abs(x - np.where(np.isfinite(bound), bound, x))
        far = np.where(held, 0.0, on_x)
        away = x - self.work.space.x_of(self.x0, k)
        terms = [multiplier * left for multiplier, left in paid]
        base += float(room.sum() + far @ away) - sum(float(term.sum()) for term in terms)
        size = float(room.sum() + np.abs(far) @ np.abs(away)) + float(np.abs(values).sum())
        size += sum(float(np.abs(term).sum()) for term in terms)
        numbers = [base, sum(values), square(far), square(away), size, sum(map(norm, slopes))]
        numbers += [off["C"], off["D"], *([off["cones"]] if self.conic else [])]
        misfit = product(p.A[:, :d], x) + product(p.B, z) - p.b
        gradient = (far - of_rows).astype(np.float64)
        multipliers = of_parts["C"], of_parts["D"], of_parts["cones"]
        vector = np.concatenate([misfit, r[d:]])
        return Share(vector, largest, np.array(numbers), multipliers, x, gradient)


def row_squares(M: Any) -> Array:
    """||row||^2 of a sparse matrix."""
    return np.asarray(M.multiply(M).sum(axis=1)).ravel()


# -- gaps at points of a realization ------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class PointGap(Gap):
    """A gap at a point ``w`` of a realization, with a subgradient there and p in Range K'."""

    w: Array
    gradient: Array
    p: Array
    distance: float  # of w to the feasible set, at most
    steepness: float  # L of a smooth F; norm of the subgradient elsewhere; 1 where that is 0
    smooth: bool
    scale: float  # execution radius per user radius
    multiplier: Array | None = None
    source: str = "last"  # last iterate or average

    def bound(self, radius: float) -> float:
        """Never below zero."""
        return max(super().bound(radius), 0.0)

    def feasibility(self, radius: float) -> float:
        """(L R / sigma) ||K w - v|| (smooth) or (M / sigma) ||K w - v||, at most.

        Equation eq:cvx-accuracy and Equation eq:ns-accuracy.
        """
        return self.steepness * self.distance * (self.scale * radius if self.smooth else 1.0)

    def radius(self, epsilon: float) -> float:
        """The largest R for which both parts of the criterion are proved (0: none)."""
        if not self.base <= epsilon or (not self.smooth and self.feasibility(1.0) > epsilon):
            return 0.0
        limits = [super().radius(epsilon)]
        if self.smooth and self.feasibility(1.0) > 0:
            limits.append(epsilon / self.feasibility(1.0))
        return min(limits)

    def ratio(self, goal: Goal) -> float:
        """Scaled feasibility counts as well."""
        scaled = self.feasibility(self.required(goal))
        return max(super().ratio(goal), over(scaled, goal.epsilon(self.value)))

    def record(self, goal: Goal) -> dict[str, Any]:
        """For Result.certificates."""
        scaled = self.feasibility(self.required(goal))
        return super().record(goal) | {"feasibility": scaled, "point": self.source}


class GapCertifier(Certifier):
    """Gaps for points of one realized problem, started at ``w0`` (a consensus point)."""

    def __init__(self, realized: Realized, w0: Array) -> None:
        super().__init__(realized)
        self.w0 = w0
        n = realized.space.runtime.n
        # ||(x, mean z)|| of an execution vector of length one at most: mean z = s sum_i z_i / n.
        self.unit = max(1.0, realized.s / math.sqrt(n)) if realized.space.q else 1.0

    def value(self, w: Array) -> float:
        """sum_i f_i at each agent's own copy; one averaging."""
        return float(self.space.runtime.total(self.realized.objective.values(w))[0])

    def way(self, w: Array) -> Array:
        """(x, mean z) - (x0, z0) in the user's variables, as the agents' shares of it."""
        step = w - self.w0
        self.space.z(step)[...] *= self.realized.s / math.sqrt(self.space.runtime.n)
        return step

    def _ask(self, *products: tuple[Array, Array], more: tuple[Array, ...] = ()) -> Piggyback:
        """Inner products and ``more`` columns: in the next message."""
        columns = [self.space.partial_dots(u, v) for u, v in products]
        return self.space.runtime.piggyback(np.concatenate([*columns, *more], axis=1))

    def gap(
        self,
        w: Array,
        gradient: Array,
        p: Array,
        *,
        distance: float | None = None,
        slack: float = 0.0,
        multiplier: Array | None = None,
    ) -> PointGap:
        """The bound at w itself with the dual vector p in Range K', and its ``multiplier``.

        Cost: one averaging, one residual where the distance to the feasible set is not known.
        Scalars are piggybacked; sup <r, w - w'> over consensus points with ||(x, z) - (x', z')|| <=
        1 is (sum_i ||r_xi||^2 + ||sum_i r_zi / s||^2)^{1/2}.
        """
        objective = self.realized.objective
        space = self.space
        n = space.runtime.n
        r = gradient + p
        way = self.way(w)
        smooth = math.isfinite(objective.L)
        L = objective.L if smooth else 0.0
        off = 4 * EPS * L * np.sqrt(space.partial_dots(w, w))
        more = (*self.rounding(w, gradient, r, off), objective.values(w))
        pairs = ((r, w - self.w0), (gradient, gradient), (p, p), (way, way), (w, w))
        received = self._ask(*pairs, more=more)
        off_rows = None
        if distance is None and not self._system.empty:
            residual = self._system.residual(w)[0]
            off_rows = space.piggyback((residual, residual))
        own = space.runtime.piggyback(piece_sums(space.x(r) ** 2, space.d)[:, None])
        mean = space.runtime.average(space.z(r))[0] * (n / self.realized.s)
        slope = math.sqrt(float(own.value[0]) + float(space.runtime.common(mean @ mean)))
        inner, *squares, value = (float(v) for v in received.value)
        steep, size, moved, length = (math.sqrt(v + self.unseen**2) for v in squares[:4])
        # All that rounding may take is added here.
        lacks, away = self._lost(length, np.array(squares[4:]))
        scale = execution_radius(self.realized, 1.0)
        if off_rows is not None:
            distance = lengths(off_rows)[0] / self._system.interval.low
        far = (distance or 0.0) + away
        excess = slack + (size + lacks) * far + 4 * EPS * n * (abs(value) + steep * length)
        return PointGap(
            value=value,
            base=excess + inner + moved * scale * lacks + self.unseen**2,
            slope=slope + scale * lacks,
            violation=self.unit * far,
            travelled=moved,
            w=w,
            gradient=gradient,
            p=p,
            distance=far,
            steepness=(L if smooth else steep) or 1.0,  # violations count where F is flat
            smooth=smooth,
            scale=scale,
            multiplier=multiplier,
        )

    def _accuracy(self, w: Array, gradient: Array, goal: Goal) -> tuple[float, float]:
        """(how near to the feasible set a point is to be repaired, how far a slope projected)."""
        way = self.way(w)
        objective = self.realized.objective
        received = self._ask((gradient, gradient), (way, way), more=(objective.values(w),))
        steep, moved, value = (float(v) for v in received.value)
        radius = max(goal.required(math.sqrt(moved)), 1e-300)
        size = max(math.sqrt(steep), 1e-300)
        if math.isfinite(objective.L):
            size = max(size, objective.L * execution_radius(self.realized, radius))
        # Share of the accuracy that a repair, or a projection, may leave.
        epsilon = 1e-2 * goal.epsilon(value)
        return min(epsilon / size, 0.5 * goal.tol / self.unit), epsilon / radius

    def tight_smooth(self, w: Array, goal: Goal) -> PointGap:
        """At the repaired point with p = -Pi_N grad F: affine calls and one gradient."""
        objective = self.realized.objective
        near, left = self._accuracy(w, objective.gradient(w), goal)
        repaired, distance = self.repaired(w, near)
        gradient, _ = objective.precise_gradient(repaired)
        p, multiplier = self.project(gradient, left)
        return self.gap(repaired, gradient, p, distance=distance, multiplier=multiplier)

    def tight_subgradient(
        self, w: Array, gradient: Array, goal: Goal, slack: float = 0.0
    ) -> PointGap:
        """At the repaired point v (w itself where F is infinite there), from a subgradient at w.

        F(v) - F* <= F(v) - F(w) + bound(w).
        """
        near, left = self._accuracy(w, gradient, goal)
        p, multiplier = self.project(gradient, left)
        found = self.gap(w, gradient, p, slack=slack, multiplier=multiplier)
        repaired, away = self.repaired(w, near)
        there = self.value(repaired)
        if not math.isfinite(there):
            return found
        rise = there - found.value + 4 * EPS * self.space.runtime.n * abs(there)
        return replace(
            found,
            w=repaired,
            value=there,
            base=found.base + rise,
            violation=self.unit * away,
            distance=away,
        )


class Prover(Protocol):
    """An iteration that can bound its own gap."""

    certifier: GapCertifier

    def quick_gap(self, state: Any) -> PointGap | None:
        """A cheap bound (None: there is none yet)."""

    def tight_gap(self, state: Any) -> PointGap:
        """The best bound that affine calls and one gradient give."""


@dataclass
class GapJudge(Judge):
    """F - F* <= eps and scaled feasibility <= eps for a radius, unit rows violated by tol at most.

    The tight bound is taken when the quick one is near the goal. ``record`` is Result.certificates:
    what is known last. With ``scheduled`` the schedule's own theorem proves the gap once it is
    over; the bound is computed for the rows and for the record.
    """

    prover: Prover
    goal: Goal
    record: dict[str, Any]
    scheduled: bool = False

    @property
    def notes(self) -> list[str]:  # type: ignore[override]
        """What was wrong with the certified interval."""
        return self.prover.certifier.notes

    def check(self, iteration: Judged, state: Any) -> Check:
        """Quick, then tight if near."""
        quick = self.prover.quick_gap(state)
        if quick is None:
            return Check(math.nan)
        bound = quick.bound(quick.required(self.goal))
        if bound > 4.0 * self.goal.epsilon(quick.value):
            self._note(quick)
            return Check(bound, Evidence("look", over(bound, self.goal.epsilon(quick.value))))
        return self._tight(state)

    def _tight(self, state: Any, *, finished: bool = False) -> Check:
        found = self.prover.tight_gap(state)
        self._note(found)
        rests = self.prover.certifier.realized.system.interval.source
        evidence = Evidence("gap", found.ratio(self.goal), rests)
        if finished:
            evidence = Evidence("schedule", over(found.violation, self.goal.tol), rests)
            self.record["proved_by"] = "schedule" if evidence.met else "nothing"
        certifier = self.prover.certifier
        multiplier = found.multiplier
        if multiplier is None:
            multiplier = certifier.realized.system.zero_multiplier()
        known = math.nan, found.slope, found.distance, math.nan
        proved = certifier.proved(found.w, found.gradient, multiplier, known)
        return Check(found.bound(found.required(self.goal)), evidence, proved)

    def _note(self, found: Gap) -> None:
        """Write what is known now."""
        self.record.update(found.record(self.goal))

    def final(self, iteration: Judged, state: Any) -> Check:
        """One tight bound."""
        return self._tight(state, finished=self.scheduled and iteration.finished(state))
