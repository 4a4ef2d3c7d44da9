"""Choose scaling, normalizer and degrees of the averaged realization by the Ritz twin.

Everything that needs the agents (curvature, one Lanczos run, intervals) is executed and charged to
``setup``; ranking the candidates is local arithmetic that every agent repeats alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ccmac.angles.principal import cross_factor, weighted_extremes
from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.ledger import Cost, Costs
from ccmac.linalg.tolerances import KERNEL
from ccmac.realizations.averaged.profile import (
    TOP_MARGIN,
    Profile,
    build_deflation,
    deflation_response,
    deflation_top,
    semi_response,
    spectrum_at,
)
from ccmac.realizations.averaged.system import AveragedSystem, Normalizer, SemiIteration
from ccmac.realizations.averaged.twin import Modes, Setting, predict
from ccmac.realizations.base import Interval
from ccmac.workspace.curvature import CurvatureTable, ScaledCurvature

SCALES = tuple(2.0 ** (0.5 * k) for k in range(-8, 9))
INNER = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24)
DEFLATED = (3, 4, 6, 8, 10, 12, 14, 16, 20, 24)
TWIN_UNCERTAINTY = 1.15


@dataclass(frozen=True)
class Fixed:
    """What of a plan is decided in advance; None leaves it to the planner.

    ``floor`` takes the scale at which B's part of S has that share of A's, for objectives whose
    curvature says nothing.
    """

    scale: float | None = None
    normalizer: str | None = None
    inner: int | None = None
    outer: int | None = None
    lanczos: int | None = None
    floor: float | None = None


@dataclass(frozen=True)
class Aim:
    """What a plan aims at: squared relative error, the blocks (x, z) that count, the prices."""

    target: float = 1e-6
    measure: tuple[float, float] = (1.0, 1.0)
    costs: Costs = field(default_factory=Costs)


@dataclass(frozen=True)
class Candidate:
    """One row of the plan: settings, and what the twin expects of them."""

    scale: float  # s^2 in units of the balanced scale
    s: float
    normalizer: str  # "semi-iteration" or "deflation"
    inner: int
    outer: int
    kappa_f: float
    cross_factor: float
    iterations: float = math.inf
    rounds: float = math.inf
    gradients: float = math.inf
    products: float = math.inf
    bill: float = math.inf

    def scored(self, iterations: float, cost: Cost, costs: Costs) -> Candidate:
        """With the bill of so many iterations."""
        return replace(
            self, iterations=iterations, rounds=iterations * cost["rounds"], gradients=iterations,
            products=iterations * sum(cost[u] for u in "ABCD"),
            bill=iterations * costs.bill(cost),
        )  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """The planner's answer: the chosen candidate, its ingredients, and everything considered."""

    candidate: Candidate
    constants: ScaledCurvature
    normalizer: Normalizer | None
    spectrum: Interval
    cosine: float | None
    table: tuple[Candidate, ...] = field(repr=False, default=())


class _Normalizing(NamedTuple):
    """A normalizer to try: its response on the modes and the spread of spec(q(S) S)."""

    kind: str
    inner: int
    response: Array
    spread: tuple[float, float]


@dataclass(frozen=True)
class _Row:
    """A candidate with what the twin needs to run it."""

    candidate: Candidate
    setting: Setting
    spectrum: Interval

    @property
    def constants(self) -> ScaledCurvature:
        return self.setting.modes.constants


class Planner:
    """Enumerates candidates for one profile and ranks them.

    ``supplied`` is a certified interval of S, ``cosine`` a known bound on the Friedrichs cosine,
    ``probed`` the curvature (x, z) seen at the start.
    """

    def __init__(
        self, system: AveragedSystem, profile: Profile, table: CurvatureTable, goal: Aim,
        fixed: Fixed, *, supplied: Interval | None, cosine: float | None,
        probed: tuple[float, float] | None = None,
    ) -> None:  # fmt: skip
        self.system, self.profile, self.table = system, profile, table
        self.goal, self.fixed = goal, fixed
        self.supplied, self.cosine = supplied, cosine
        self.balance = table.balance()
        self._costs: dict[tuple[int, int, bool], Cost] = {}
        L_x = float(table.L_x.max())
        self.blocks = np.array(
            [
                min(float(table.mu_x.min()), L_x), L_x,
                max(float(table.mu_z.mean()), 0.0), float(table.L_z.max()),
            ]
        )  # fmt: skip
        if probed is not None:
            # A block the start does not excite keeps its declared constants.
            for first, seen in ((0, probed[0]), (2, probed[1])):
                low, high = self.blocks[first : first + 2]
                if seen > 0:
                    top = min(max(seen, low), high)
                    self.blocks[first : first + 2] = math.sqrt(max(low, 1e-3 * top) * top), top

    def choose(self) -> Choice:
        """The candidate of least predicted bill; all candidates, best first."""
        rows = [row for scale in self._scales() for row in self._at_scale(scale)]
        if not rows:
            raise InputError(
                "constraints: their scales, or those of the objectives, differ by more than double "
                "precision can tell; rescale them"
            )
        settings = [row.setting for row in rows]
        iterations = predict(
            settings, self.goal.target, self.goal.measure, self.system.runtime.mind_the_time
        )
        scored = []
        for row, count in zip(rows, iterations, strict=True):
            cost = self._iteration_cost(row.candidate, row.constants)
            candidate = row.candidate.scored(float(count), cost, self.goal.costs)
            scored.append(replace(row, candidate=candidate))
        scored.sort(
            key=lambda row: (row.candidate.bill, row.candidate.iterations, row.candidate.inner)
        )
        # Within the twin's uncertainty, the best conditioned normalizer is the safest bet.
        first = scored[0].candidate
        close = [
            row
            for row in scored
            if row.candidate.bill <= TWIN_UNCERTAINTY * first.bill
            and (row.candidate.scale, row.candidate.outer) == (first.scale, first.outer)
        ]
        best = min(close, key=lambda row: row.setting.high / row.setting.low)
        table = tuple(row.candidate for row in scored)
        return Choice(
            best.candidate, best.constants, self._normalizer(best), best.spectrum, self.cosine,
            table,
        )  # fmt: skip

    def _normalizer(self, row: _Row) -> Normalizer:
        c, spectrum = row.candidate, row.spectrum
        if c.normalizer == "deflation":
            return build_deflation(self.system, self.profile, c.s, c.inner, spectrum)
        return SemiIteration(spectrum.low, spectrum.high, c.inner)

    def _scales(self) -> tuple[float, ...]:
        if self.fixed.scale is not None:
            return (self.fixed.scale,)
        return SCALES if self.table.separable else (0.5, 1.0, 2.0)

    def _cosine(self, s: float) -> float:
        """Known bound, else the largest generalized Ritz cosine of the disagreement part."""
        if self.cosine is not None:
            return self.cosine
        M = self.profile.matrix(s)
        deviation = s * s * (self.profile.M_B - self.profile.M_mean)
        values, vectors = np.linalg.eigh(M)
        keep = values > KERNEL * values[-1]
        half = vectors[:, keep] / np.sqrt(values[keep])
        top = float(np.linalg.eigvalsh(half.T @ deviation @ half)[-1]) if keep.any() else 0.0
        return math.sqrt(min(max(top, 0.0), 0.9999))

    def _at_scale(self, scale: float) -> list[_Row]:
        s = self.balance * math.sqrt(scale)
        constants = self.table.at(s)
        if not math.isfinite(constants.condition):
            return []
        modes = Modes(self.profile, s, constants, self.blocks, self.system.runtime.n)
        spectrum, cosine = self.supplied or spectrum_at(self.profile, s), self._cosine(s)
        rows = []
        for kind, inner, response, spread in self._normalizers(s, modes, spectrum):
            low, _ = weighted_extremes(spread[0], 1.0, cosine)
            _, high = weighted_extremes(spread[1], 1.0, cosine)
            if not low > 0:  # below what double precision can tell from zero
                continue
            for outer in self._outers(low, high):
                candidate = Candidate(
                    scale, s, kind, inner, outer, constants.condition, cross_factor(cosine)
                )
                cost = self._iteration_cost(candidate, constants)
                bill = max(self.goal.costs.bill(cost), 1e-9)
                setting = Setting(modes, response, low, high, outer, bill)
                rows.append(_Row(candidate, setting, spectrum))
        return rows

    def _normalizers(self, s: float, modes: Modes, spectrum: Interval) -> list[_Normalizing]:
        found: list[_Normalizing] = []
        wanted, fixed = self.fixed.normalizer, self.fixed.inner
        if wanted in (None, "semi-iteration"):
            for inner in INNER if fixed is None else (fixed,):
                response = semi_response(modes.theta, spectrum.low, spectrum.high, inner)
                spread = SemiIteration(spectrum.low, spectrum.high, inner).spread
                found.append(_Normalizing("semi-iteration", inner, response, spread))
                if spread[1] - spread[0] < 1e-3:
                    break
        k = self.profile.krylov.steps
        if wanted in (None, "deflation") and k and self.supplied is None:
            _, vectors = self.profile.ritz(s)
            if self.profile.krylov.exhausted:
                positive = modes.theta > KERNEL * modes.theta.max(initial=0.0)
                response = np.where(positive, 1.0 / np.where(positive, modes.theta, 1.0), 0.0)
                weight = 2.0 / (spectrum.low + spectrum.high)
                left = (weight * spectrum.low, weight * spectrum.high)
                spread = (1.0, 1.0) if self.profile.krylov.complete else left
                return [*found, _Normalizing("deflation", k, response, spread)]
            # Six steps beyond the deflated vectors show what is left of the top (within 1.02 on
            # every data set tried; with four the margin of 1.1 was not always enough).
            ranks = [r for r in DEFLATED if r <= k - 6]
            for r in ranks if fixed is None else [min(fixed, k)]:
                top = max(deflation_top(self.profile, s, r) * TOP_MARGIN, spectrum.low)
                response = deflation_response(self.profile, s, r, spectrum.low, top, vectors)
                weight = 2.0 / (spectrum.low + top)
                spread = (weight * spectrum.low, weight * top)
                found.append(_Normalizing("deflation", r, response, spread))
        return found

    def _outers(self, low: float, high: float) -> list[int]:
        if self.fixed.outer is not None:
            return [self.fixed.outer]
        root = math.sqrt(high / low)
        return sorted({1, 2, 3, *(max(1, math.ceil(f * root)) for f in (0.25, 0.5, 0.75, 1.0))})

    def _iteration_cost(self, candidate: Candidate, constants: ScaledCurvature) -> Cost:
        averagings = candidate.inner - 1 if candidate.normalizer == "semi-iteration" else 0
        key = averagings, candidate.outer, bool(constants.augment)
        if key not in self._costs:  # hundreds of candidates, a few dozen costs
            extra = self.system.runtime.average_cost(self.system.coupling.q) if key[2] else Cost()
            residuals = candidate.outer * self.system.cost_with(averagings)
            self._costs[key] = Cost(gradients=1) + extra + residuals
        return self._costs[key]
