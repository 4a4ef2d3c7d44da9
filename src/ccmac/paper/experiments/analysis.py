"""Exponents and summaries, as pure functions of records.

Fits are least squares on logarithms with one intercept per data set. Intervals come from resampling
graph realizations as blocks: a graph is drawn with all its runs, over every cross factor and set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ccmac.inputs import Array
from ccmac.paper.experiments.records import Record
from ccmac.paper.experiments.runs import network_name

PLATEAU = 1.5
"""Smallest cross factor of the fits: below it the outer degree does not yet follow chi."""


@dataclass(frozen=True)
class Fit:
    """Exponents of a power law with 95 % intervals.

    ``interval`` resamples graphs; ``residual`` is the usual one of least squares, which also says
    something when all graphs agree and the resampled one is a point.
    """

    exponents: tuple[float, ...]
    interval: tuple[tuple[float, float], ...]
    residual: tuple[tuple[float, float], ...]
    runs: int
    graphs: int

    def text(self, index: int = 0) -> str:
        """``0.988 [0.966, 1.009]``."""
        low, high = self.interval[index]
        return f"{self.exponents[index]:.3f} [{low:.3f}, {high:.3f}]"


def power_law(
    records: Sequence[Record],
    count: Callable[[Record], float],
    factors: Sequence[Callable[[Record], float]],
    *,
    least: float = PLATEAU,
    draws: int = 2000,
    seed: int = 0,
) -> Fit | None:
    """Fit  count ~ prod_k factor_k^exponent_k  on runs that reached their target with chi >= least.

    None when fewer than three runs are left, or the factors do not vary.
    """
    wide = [r for r in records if r.reached and r.cross_factor >= least * (1 - 1e-9)]
    # A method without gradients has no law for them, a record without kappa_W none for rounds.
    used = [r for r in wide if count(r) > 0 and all(0 < f(r) < math.inf for f in factors)]
    names = sorted({r.run.data for r in used})
    columns = len(factors) + len(names)
    if len(used) < max(3, columns):
        return None
    design = np.zeros((len(used), columns))
    for k, record in enumerate(used):
        design[k, : len(factors)] = [math.log(f(record)) for f in factors]
        design[k, len(factors) + names.index(record.run.data)] = 1.0
    target = np.log([count(r) for r in used])
    if np.linalg.matrix_rank(design, tol=1e-8) < columns:
        return None
    best = np.asarray(np.linalg.lstsq(design, target, rcond=None)[0], dtype=np.float64)
    blocks: dict[str, list[int]] = {}
    for k, record in enumerate(used):
        blocks.setdefault(network_name(record.run.network), []).append(k)
    sampled = _bootstrap(design, target, list(blocks.values()), draws, seed)[:, : len(factors)]
    low, high = np.quantile(sampled, [0.025, 0.975], axis=0)
    spread = _residual(design, target, best)[: len(factors)]
    own = best[: len(factors)]
    return Fit(
        tuple(own.tolist()),
        tuple(zip(low.tolist(), high.tolist(), strict=True)),
        tuple(zip((own - spread).tolist(), (own + spread).tolist(), strict=True)),
        len(used),
        len(blocks),
    )


def _bootstrap(
    design: Array, target: Array, blocks: list[list[int]], draws: int, seed: int
) -> Array:
    """Coefficients over resampled blocks, from the blocks' normal equations."""
    gram = np.array([design[b].T @ design[b] for b in blocks])
    right = np.array([design[b].T @ target[b] for b in blocks])
    rng = np.random.default_rng(seed)
    picks = rng.multinomial(len(blocks), np.full(len(blocks), 1 / len(blocks)), size=draws)
    summed = np.tensordot(picks, gram, axes=1)
    # A draw of few graphs may not vary in a factor: the least-norm solution then.
    inverse = np.linalg.pinv(summed, hermitian=True)
    return np.asarray(np.einsum("kij,kj->ki", inverse, picks @ right))


def _residual(design: Array, target: Array, best: Array) -> Array:
    """Half-width of the 95 % interval of least squares."""
    from scipy.stats import t

    freedom = max(1, len(target) - design.shape[1])
    variance = float(np.sum((target - design @ best) ** 2)) / freedom
    errors = np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
    return np.asarray(errors * t.ppf(0.975, freedom))


def affine_fit(records: Sequence[Record]) -> Fit | None:
    """N_aff ~ chi^alpha_aff (Equation eq:experimental-slopes)."""
    return power_law(records, lambda r: r.count("affine"), [lambda r: r.cross_factor])


def communication_fit(records: Sequence[Record]) -> Fit | None:
    """N_comm ~ (chi sqrt(kappa_W))^alpha_comm (Equation eq:experimental-slopes)."""
    return power_law(records, lambda r: r.rounds, [lambda r: r.cross_factor * math.sqrt(r.kappa_W)])


EXPONENTS = {"alpha_aff": affine_fit, "alpha_comm": communication_fit}


def two_factor_fit(records: Sequence[Record]) -> Fit | None:
    """N_comm ~ chi^a sqrt(kappa_W)^b."""
    return power_law(
        records, lambda r: r.rounds, [lambda r: r.cross_factor, lambda r: math.sqrt(r.kappa_W)]
    )


def accuracy_fit(records: Sequence[Record]) -> Fit | None:
    """N_grad ~ (1/eps)^p over runs to different tolerances."""
    return power_law(records, lambda r: r.count("gradients"), [lambda r: 1 / r.run.tol], least=1.0)


@dataclass(frozen=True)
class Quartiles:
    """Median and quartiles of a count."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Quartiles:
        """Linear interpolation between order statistics."""
        low, median, high = np.quantile(np.asarray(values, dtype=np.float64), [0.25, 0.5, 0.75])
        return cls(float(low), float(median), float(high))


@dataclass(frozen=True)
class TableRow:
    """One line of a table: the runs of a set, a number of agents and a method."""

    data: str
    samples: int
    features: int
    agents: int
    label: str
    runs: int
    reached: int
    gradients: Quartiles
    argmins: Quartiles
    affine: Quartiles
    raw: Quartiles
    rounds: Quartiles
    setup_rounds: Quartiles
    modelled: bool
    worst_error: float


def rows(records: Sequence[Record]) -> list[TableRow]:
    """Records gathered by set, agents and method, in order of appearance."""
    groups: dict[tuple[str, int, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.run.data, record.run.agents, record.run.label), []).append(record)
    return [_row(*key, group) for key, group in groups.items()]


def _row(data: str, agents: int, label: str, group: Sequence[Record]) -> TableRow:
    done = [r for r in group if r.finished]

    def quartiles(read: Callable[[Record], float]) -> Quartiles:
        return Quartiles.of([read(r) for r in done] or [math.nan])

    facts: dict[str, Any] = next((r.summary["data"] for r in done if "data" in r.summary), {})
    errors = [r.summary.get("relative_error") for r in done]
    known = [float(e) for e in errors if e is not None]
    return TableRow(
        data,
        int(facts.get("rows", 0)),
        int(facts.get("features", 0)),
        agents,
        label,
        len(group),
        sum(r.reached for r in group),
        quartiles(lambda r: r.count("gradients")),
        quartiles(lambda r: r.count("argmins")),
        quartiles(lambda r: r.count("affine")),
        quartiles(lambda r: r.count("raw")),
        quartiles(lambda r: r.rounds),
        quartiles(lambda r: math.nan if r.modelled else r.count("rounds", "setup")),
        any(r.modelled for r in done),
        max(known, default=math.nan),
    )


@dataclass(frozen=True)
class Band:
    """Errors of several seeds on one axis: where all are known, their least, middle, largest."""

    x: Array
    low: Array
    median: Array
    high: Array


def band(curves: Sequence[tuple[Array, Array]], points: int = 300) -> Band:
    """Interpolate log-errors of (cost, error) curves and take the pointwise range and median.

    A curve that has ended keeps its last error: it needs nothing more.
    """
    end = max(float(x[-1]) for x, _ in curves)
    start = min(float(x[0]) for x, _ in curves)
    grid = np.geomspace(start, end, points)  # the figures' axes are logarithmic
    logs = np.array([np.interp(grid, x, np.log10(np.maximum(e, 1e-300))) for x, e in curves])
    return Band(grid, 10 ** logs.min(axis=0), 10 ** np.median(logs, axis=0), 10 ** logs.max(axis=0))
