"""Choose scaling, normalizer and degrees of the averaged realization by the Ritz twin.

Everything that needs the agents (curvature, one Lanczos run, intervals) is executed and charged to
``setup``; ranking the candidates is local arithmetic that every agent repeats alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ccmac.angles.principal import cross_factor, weighted_extremes
from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.ledger import PRICED, Cost
from ccmac.linalg.tolerances import KERNEL
from ccmac.realizations.averaged.choices import (
    Aim,
    Candidate,
    Choice,
    Fixed,
    Normalizer,
    SemiIteration,
    StepPrice,
)
from ccmac.realizations.averaged.profile import Profile, spectrum_at
from ccmac.realizations.averaged.system import AveragedSystem
from ccmac.realizations.averaged.twin import Modes, Setting, predict, semi_response
from ccmac.realizations.base import Interval
from ccmac.workspace.curvature import CurvatureTable, ScaledCurvature

SCALES = tuple(2.0 ** (0.5 * k) for k in range(-8, 9))
INNER = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24)
TWIN_UNCERTAINTY = 1.15


class _Normalizing(NamedTuple):
    """A normalizer to try: its response on the modes and the spread of spec(q(S) S)."""

    kind: str
    inner: int
    response: Array
    spread: tuple[float, float]


class _Model(NamedTuple):
    """One scale: its constants, the twin's modes, the spectrum of S, the cosine."""

    s: float
    constants: ScaledCurvature
    modes: Modes
    spectrum: Interval
    cosine: float


class _Row(NamedTuple):
    """A candidate with what the twin needs to run it."""

    candidate: Candidate
    setting: Setting
    spectrum: Interval

    @property
    def constants(self) -> ScaledCurvature:
        return self.setting.modes.constants


def _rank(row: _Row) -> tuple[float, float, int]:
    """By bill, then iterations, then size of the normalizer."""
    return row.candidate.bill, row.candidate.iterations, row.candidate.inner


def _unbeaten(rows: list[_Row]) -> list[_Row]:
    """Those with no other of the same outer degree, a narrower interval and no higher price."""
    widths = [row.setting.high / row.setting.low for row in rows]
    narrowest = dict[int, float]()
    kept = set[int]()
    for k in sorted(range(len(rows)), key=lambda k: (rows[k].setting.weight, widths[k])):
        outer = rows[k].setting.outer
        if not narrowest.get(outer, math.inf) < widths[k]:
            narrowest[outer] = widths[k]
            kept.add(k)
    return [row for k, row in enumerate(rows) if k in kept]


def _thinned(sizes: Sequence[int], around: int | None) -> list[int]:
    """Every third size, and the last; or those next to the one ``around``."""
    if around is None:
        return [v for k, v in enumerate(sizes) if k % 3 == 0 or k == len(sizes) - 1]
    place = min(range(len(sizes)), key=lambda k: abs(sizes[k] - around))
    return list(sizes[max(place - 1, 0) : place + 2])


class Planner:
    """Enumerates candidates for one profile and ranks them.

    ``supplied`` is a certified interval of S, ``cosine`` a known bound on the Friedrichs cosine,
    ``probed`` the curvature (x, z) seen at the start.
    """

    def __init__(
        self,
        system: AveragedSystem,
        profile: Profile,
        table: CurvatureTable,
        goal: Aim,
        fixed: Fixed,
        *,
        supplied: Interval | None,
        cosine: float | None,
        probed: tuple[float, float] | None = None,
    ) -> None:
        self.system = system
        self.profile = profile
        self.table = table
        self.goal = goal
        self.fixed = fixed
        self.supplied = supplied
        self.cosine = cosine
        self.balance = table.balance()
        self._steps: dict[tuple[int, int, bool], StepPrice] = {}
        self._residuals: dict[int, Cost] = {}
        self._models: dict[float, _Model | None] = {}
        L_x = float(table.L_x.max())
        self.blocks = np.array(
            [
                min(float(table.mu_x.min()), L_x),
                L_x,
                max(float(table.mu_z.mean()), 0.0),
                float(table.L_z.max()),
            ]
        )
        if probed is not None:
            # A block the start does not excite keeps its declared constants.
            for first, seen in ((0, probed[0]), (2, probed[1])):
                low, high = self.blocks[first : first + 2]
                if seen > 0:
                    top = min(max(seen, low), high)
                    self.blocks[first : first + 2] = math.sqrt(max(low, 1e-3 * top) * top), top

    def choose(self) -> Choice:
        """The candidate of least predicted bill; all candidates, best first.

        A coarse grid is tried first, then what lies around the best: scales at half the distance,
        the next normalizers and degrees, until the scales are those of the fine grid.
        """
        scales = self._scales()
        step = 4 if len(scales) > 4 else 1
        scored = self._scored([row for s in scales[::step] for row in self._at_scale(s)])
        if not scored:
            raise InputError(
                "constraints: their scales, or those of the objectives, differ by more than double "
                "precision can tell; rescale them"
            )
        while step:
            step //= 2
            best = min(scored, key=_rank).candidate
            tried = {row.candidate.settings for row in scored}
            place = scales.index(best.scale)
            near = scales[max(place - step, 0) : place + step + 1 : step or 1]
            around = [row for s in near for row in self._at_scale(s, best)]
            around = [row for row in around if row.candidate.settings not in tried]
            scored += self._scored(around, best.bill)
        scored.sort(key=_rank)
        # Within the twin's uncertainty, the best conditioned normalizer is the safest bet.
        first = scored[0].candidate
        close = [
            row
            for row in scored
            if row.candidate.bill <= TWIN_UNCERTAINTY * first.bill
            and (row.candidate.scale, row.candidate.outer) == (first.scale, first.outer)
        ]
        safest = min(close, key=lambda row: row.setting.high / row.setting.low)
        table = tuple(row.candidate for row in scored)
        return Choice(
            safest.candidate,
            safest.constants,
            safest.spectrum,
            self.cosine,
            table,
            self.profile.block,
        )

    def _scored(self, rows: list[_Row], known: float = math.inf) -> list[_Row]:
        """With what the twin expects of them, where they may beat a bill that is known."""
        if not rows:
            return []
        iterations = predict(
            [row.setting for row in rows],
            self.goal.target,
            self.goal.measure,
            self.system.runtime.mind_the_time,
            by_price=self.goal.by_price,
            known=known,
        )
        scored = list(rows)
        for k in np.flatnonzero(np.isfinite(iterations)):  # the others have no bill
            row = rows[k]
            step = self._step(row.candidate, row.constants)
            scored[k] = row._replace(candidate=row.candidate.scored(float(iterations[k]), step))
        return scored

    def normalizer(self, choice: Choice) -> Normalizer:
        """The one chosen; its images may cost an averaging."""
        c = choice.candidate
        spectrum = choice.spectrum
        if c.normalizer == "deflation":
            return self.profile.deflation(self.system, c.s, c.inner, spectrum)
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

    def _model(self, scale: float) -> _Model | None:
        """What the candidates of one scale share, made once; None if the scale is of no use."""
        if scale not in self._models:
            s = self.balance * math.sqrt(scale)
            constants = self.table.at(s)
            self._models[scale] = None
            if math.isfinite(constants.condition):
                modes = Modes(self.profile, s, constants, self.blocks, self.system.runtime.n)
                spectrum = self.supplied or spectrum_at(self.profile, s)
                self._models[scale] = _Model(s, constants, modes, spectrum, self._cosine(s))
        return self._models[scale]

    def _at_scale(self, scale: float, around: Candidate | None = None) -> list[_Row]:
        model = self._model(scale)
        if model is None:
            return []
        (s, constants, modes, spectrum, cosine), rows = model, []
        condition = constants.condition
        crossed = cross_factor(cosine)
        for kind, inner, response, spread in self._normalizers(s, modes, spectrum, around):
            low, _ = weighted_extremes(spread[0], 1.0, cosine)
            _, high = weighted_extremes(spread[1], 1.0, cosine)
            if not low > 0:  # below what double precision can tell from zero
                continue
            for outer in self._outers(low, high, around):
                candidate = Candidate(scale, s, kind, inner, outer, condition, crossed)
                bill = max(self._step(candidate, constants).bill, 1e-9)
                setting = Setting(modes, response, low, high, outer, bill)
                rows.append(_Row(candidate, setting, spectrum))
        if self.profile.block is None:  # intervals with margins do not tell
            return rows
        return _unbeaten(rows)

    def _normalizers(
        self, s: float, modes: Modes, spectrum: Interval, around: Candidate | None
    ) -> list[_Normalizing]:
        found: list[_Normalizing] = []
        wanted = self.fixed.normalizer
        fixed = self.fixed.inner
        near = None if around is None else around.inner
        if around is not None:
            wanted = around.normalizer
        if wanted in (None, "semi-iteration"):
            sizes = _thinned(INNER, near) if fixed is None else [fixed]
            responses = semi_response(modes.theta, spectrum.low, spectrum.high, np.array(sizes))
            for inner, response in zip(sizes, responses, strict=True):
                spread = SemiIteration(spectrum.low, spectrum.high, inner).spread
                found.append(_Normalizing("semi-iteration", inner, response, spread))
                if spread[1] - spread[0] < 1e-3:
                    break
        ranks = self.profile.ranks(fixed)
        if wanted in (None, "deflation") and ranks and self.supplied is None:
            exhausted, complete = self.profile.known
            if exhausted:
                positive = modes.theta > KERNEL * modes.theta.max(initial=0.0)
                response = np.where(positive, 1.0 / np.where(positive, modes.theta, 1.0), 0.0)
                weight = 2.0 / (spectrum.low + spectrum.high)
                left = (weight * spectrum.low, weight * spectrum.high)
                spread = (1.0, 1.0) if complete else left
                return [*found, _Normalizing("deflation", ranks[-1], response, spread)]
            _, vectors = self.profile.ritz(s)
            for r in _thinned(ranks, near):
                top = max(self.profile.top(s, r), spectrum.low)
                response = self.profile.response(s, r, spectrum.low, top, vectors)
                weight = 2.0 / (spectrum.low + top)
                spread = (weight * spectrum.low, weight * top)
                found.append(_Normalizing("deflation", r, response, spread))
        return found

    def _outers(self, low: float, high: float, around: Candidate | None) -> list[int]:
        if self.fixed.outer is not None:
            return [self.fixed.outer]
        if around is not None:
            return [v for v in (around.outer - 1, around.outer, around.outer + 1) if v]
        root = math.sqrt(high / low)
        return sorted({1, 2, *(max(1, math.ceil(f * root)) for f in (0.25, 0.5, 1.0))})

    def _step(self, candidate: Candidate, constants: ScaledCurvature) -> StepPrice:
        averagings = candidate.inner - 1 if candidate.normalizer == "semi-iteration" else 0
        key = averagings, candidate.outer, bool(constants.augment)
        if key not in self._steps:  # many candidates, a few dozen costs
            if averagings not in self._residuals:
                self._residuals[averagings] = self.system.cost_with(averagings)
            extra = self.system.runtime.average_cost(self.system.coupling.q) if key[2] else Cost()
            residual = self._residuals[averagings]
            cost = {unit: extra[unit] + candidate.outer * residual[unit] for unit in PRICED}
            cost["gradients"] += 1
            products = sum(cost[u] for u in "ABCD")
            self._steps[key] = StepPrice(cost["rounds"], products, self.goal.costs.bill(cost))
        return self._steps[key]
