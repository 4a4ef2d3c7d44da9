"""Choose scaling, normalizer and degrees of the averaged realization by the Ritz twin.

Everything that needs the agents (curvature, one Lanczos run, intervals) is executed and charged to
``setup``; ranking the candidates is local arithmetic that every agent repeats alike.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.angles.principal import cross_factor, friedrichs_cosine, weighted_extremes
from ccmac.costs import Costs
from ccmac.ledger import Cost
from ccmac.realizations.averaged.hidden import cosine_of, refuted, with_hidden_modes
from ccmac.realizations.averaged.normalizers import (
    KERNEL,
    TOP_MARGIN,
    Spectrum,
    build_deflation,
    deflation_response,
    deflation_top,
    semi_response,
    spectrum_at,
)
from ccmac.realizations.averaged.profile import Profile
from ccmac.realizations.averaged.system import AveragedSystem, Normalizer, SemiIteration
from ccmac.realizations.averaged.twin import Modes, Setting, predict
from ccmac.workspace.curvature import Constants, CurvatureTable

Array = NDArray[np.float64]
SCALES = tuple(2.0 ** (0.5 * k) for k in range(-8, 9))
INNER = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24)
DEFLATED = (3, 4, 6, 8, 10, 12, 14, 16, 20, 24)
TWIN_UNCERTAINTY = 1.15


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

    def label(self) -> str:
        """Short name."""
        return f"{self.normalizer} {self.inner}, outer {self.outer}"


@dataclass(frozen=True)
class Choice:
    """The planner's answer: the chosen candidate, its ingredients, and everything considered."""

    candidate: Candidate
    constants: Constants
    normalizer: Normalizer | None
    spectrum: Spectrum
    cosine: float | None
    table: tuple[Candidate, ...] = field(repr=False, default=())
    planner: Planner | None = field(repr=False, default=None)


class Planner:
    """Enumerates candidates for one profile and ranks them."""

    def __init__(
        self,
        system: AveragedSystem,
        profile: Profile,
        table: CurvatureTable,
        costs: Costs,
        *,
        target: float,
        measure: tuple[float, float],
        pinned: dict[str, Any],
        supplied: Spectrum | None,
        cosine: float | None,
        probed: tuple[float, float] | None = None,
    ) -> None:
        self.system, self.profile, self.table, self.costs = system, profile, table, costs
        self.target, self.measure, self.pinned = target, measure, pinned
        self.supplied, self.cosine = supplied, cosine
        self.balance = table.balance()
        self._costs: dict[tuple[int, int, bool], Cost] = {}
        self.blocks = np.array(
            [
                min(table.block(1, "min"), table.block(0, "max")),
                table.block(0, "max"),
                max(float(np.mean(table.rows[:, 3])), 0.0),
                table.block(2, "max"),
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
        """The candidate of least predicted bill; all candidates, best first."""
        rows: list[tuple[Candidate, Setting, Modes, Constants, Spectrum]] = []
        for scale in self._scales():
            s = self.balance * math.sqrt(scale)
            constants = self.table.at(s)
            if not math.isfinite(constants.condition):
                continue
            modes = Modes(self.profile, s, constants, self.blocks, self.system.runtime.n)
            spectrum = self.supplied or spectrum_at(self.profile, s)
            cosine = self._cosine(s)
            rows += self._at_scale(scale, s, constants, modes, spectrum, cosine)
        iterations = predict(
            [row[2] for row in rows], [row[1] for row in rows], self.target, self.measure
        )
        scored = []
        for (candidate, setting, _, constants, spectrum), count in zip(
            rows, iterations, strict=True
        ):
            cost = self._iteration_cost(candidate, constants)
            times = float(count)
            scored.append(
                (
                    _scored(candidate, times, cost, self.costs),
                    constants,
                    spectrum,
                    setting,
                )
            )
        scored.sort(key=lambda item: (item[0].bill, item[0].iterations, item[0].inner))
        # Within the twin's uncertainty, the best conditioned normalizer is the safest bet.
        first = scored[0][0]
        close = [
            row
            for row in scored
            if row[0].bill <= TWIN_UNCERTAINTY * first.bill
            and (row[0].scale, row[0].outer) == (first.scale, first.outer)
        ]
        best, constants, spectrum, _ = min(close, key=lambda row: row[3].high / row[3].low)
        normalizer: Normalizer
        if best.normalizer == "deflation":
            normalizer = build_deflation(self.system, self.profile, best.s, best.inner, spectrum)
        else:
            normalizer = SemiIteration(spectrum.low, spectrum.high, best.inner)
        table = tuple(row[0] for row in scored)
        return Choice(best, constants, normalizer, spectrum, self.cosine, table, self)

    def knowing(self, low: float, choice: Choice) -> Planner | None:
        """The planner that knows the lower end found for ``choice``; None if that is no news.

        None with D too: the model's second channel is disagreement alone.
        """
        spread = choice.normalizer.spread[0] if choice.normalizer is not None else 1.0
        cosine = cosine_of(low, spread)
        fixed = self.pinned.keys() >= {"scale", "outer"} or not self.system.shared.empty
        if fixed or not refuted(friedrichs_cosine(choice.candidate.cross_factor), cosine):
            return None
        other = copy.copy(self)
        other.profile = with_hidden_modes(self.profile, choice.candidate.s, cosine)
        # Deflation needs vectors, which hidden modes have not.
        other.pinned = {**self.pinned, "normalizer": "semi-iteration"}
        return other

    def _scales(self) -> tuple[float, ...]:
        if "scale" in self.pinned:
            return (float(self.pinned["scale"]),)
        if not self.table.separable:
            return (0.5, 1.0, 2.0)
        return SCALES

    def _cosine(self, s: float) -> float:
        """Known bound, else the largest generalized Ritz cosine of the disagreement part."""
        if self.cosine is not None:
            return self.cosine
        M = self.profile.M_A + s * s * self.profile.M_B
        deviation = s * s * (self.profile.M_B - self.profile.M_mean)
        values, vectors = np.linalg.eigh(M)
        keep = values > 1e-10 * values[-1]
        half = vectors[:, keep] / np.sqrt(values[keep])
        top = float(np.linalg.eigvalsh(half.T @ deviation @ half)[-1]) if keep.any() else 0.0
        return math.sqrt(min(max(top, 0.0), 0.9999))

    def _at_scale(
        self,
        scale: float,
        s: float,
        constants: Constants,
        modes: Modes,
        spectrum: Spectrum,
        cosine: float,
    ) -> list[tuple[Candidate, Setting, Modes, Constants, Spectrum]]:
        rows = []
        for kind, inner, response, spread in self._normalizers(s, modes, spectrum):
            low, _ = weighted_extremes(spread[0], 1.0, cosine)
            _, high = weighted_extremes(spread[1], 1.0, cosine)
            for outer in self._outers(low, high):
                candidate = Candidate(
                    scale, s, kind, inner, outer, constants.condition,
                    cross_factor(cosine),
                )  # fmt: skip
                cost = self._iteration_cost(candidate, constants)
                setting = Setting(
                    s, constants, response, low, high, outer, cost["rounds"],
                    max(self.costs.bill(cost), 1e-9),
                )  # fmt: skip
                rows.append((candidate, setting, modes, constants, spectrum))
        return rows

    def _normalizers(
        self, s: float, modes: Modes, spectrum: Spectrum
    ) -> list[tuple[str, int, Array, tuple[float, float]]]:
        found: list[tuple[str, int, Array, tuple[float, float]]] = []
        wanted = self.pinned.get("normalizer")
        if wanted in (None, "semi-iteration"):
            for inner in (self.pinned["inner"],) if "inner" in self.pinned else INNER:
                response = semi_response(modes.theta, spectrum.low, spectrum.high, inner)
                spread = SemiIteration(spectrum.low, spectrum.high, inner).spread
                found.append(("semi-iteration", inner, response, spread))
                if spread[1] - spread[0] < 1e-3:
                    break
        k = self.profile.krylov.steps
        if wanted in (None, "deflation") and k and self.supplied is None:
            _, vectors = self.profile.ritz(1.0, s)
            if self.profile.krylov.exhausted:
                positive = modes.theta > KERNEL * modes.theta.max(initial=0.0)
                response = np.where(positive, 1.0 / np.where(positive, modes.theta, 1.0), 0.0)
                weight = 2.0 / (spectrum.low + spectrum.high)
                left = (weight * spectrum.low, weight * spectrum.high)
                whole = self.profile.krylov.complete
                found.append(("deflation", k, response, (1.0, 1.0) if whole else left))
                return found
            # Six steps beyond the deflated vectors show what is left of the top (within 1.02 on
            # every data set tried; with four the margin of 1.1 was not always enough).
            ranks = [r for r in DEFLATED if r <= k - 6]
            for r in [self.pinned["inner"]] if "inner" in self.pinned else ranks:
                top = max(deflation_top(self.profile, s, r) * TOP_MARGIN, spectrum.low)
                response = deflation_response(self.profile, s, r, spectrum.low, top, vectors)
                weight = 2.0 / (spectrum.low + top)
                found.append(("deflation", r, response, (weight * spectrum.low, weight * top)))
        return found

    def _outers(self, low: float, high: float) -> list[int]:
        if "outer" in self.pinned:
            return [int(self.pinned["outer"])]
        root = math.sqrt(high / low)
        return sorted({1, 2, 3, *(max(1, math.ceil(f * root)) for f in (0.25, 0.5, 0.75, 1.0))})

    def _iteration_cost(self, candidate: Candidate, constants: Constants) -> Cost:
        averagings = candidate.inner - 1 if candidate.normalizer == "semi-iteration" else 0
        key = averagings, candidate.outer, bool(constants.augment)
        if key not in self._costs:  # hundreds of candidates, a few dozen costs
            extra = self.system.runtime.average_cost(self.system.coupling.q) if key[2] else Cost()
            residuals = candidate.outer * self.system.cost_with(averagings)
            self._costs[key] = Cost(gradients=1) + extra + residuals
        return self._costs[key]


def _scored(candidate: Candidate, iterations: float, cost: Cost, costs: Costs) -> Candidate:
    products = sum(cost[u] for u in "ABCD")
    return Candidate(
        candidate.scale, candidate.s, candidate.normalizer, candidate.inner, candidate.outer,
        candidate.kappa_f, candidate.cross_factor, iterations, iterations * cost["rounds"],
        iterations, iterations * products, iterations * costs.bill(cost),
    )  # fmt: skip
