"""Whether the records of a suite are complete and say what the suite expects of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ccmac.paper.experiments import analysis
from ccmac.paper.experiments.plugins import HARD
from ccmac.paper.experiments.records import Record, read_records, read_suite
from ccmac.paper.optimality import lower_bound

TRUE_ERROR_SLACK = 1 + 1e-12


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    text: str
    holds: bool


def findings(folder: Path) -> list[Finding]:
    """Completeness, integrity, targets, and the suite's own expectations."""
    suite = read_suite(folder)
    records = read_records(folder, suite)
    out = [
        Finding(
            f"{len(records)} of {len(suite.runs)} runs have an intact record",
            len(records) == len(suite.runs),
        ),
        _no_strays(folder, {run.id for run in suite.runs}),
        _targets(records),
    ]
    reached = sum(r.reached for r in records)
    wanted = suite.expect.get("reached")
    if wanted is not None:
        need = len(suite.runs) if wanted == "all" else int(wanted)
        out.append(Finding(f"{reached} runs reached the target, {need} expected", reached >= need))
    out += _slopes(records, suite.expect)
    out += _lower_bounds(records)
    sweep = analysis.accuracy_fit(records)
    if sweep is not None:
        out.append(Finding(f"gradients grow as (1/eps)^p, p = {_described(sweep)}", True))
    return out


def _no_strays(folder: Path, known: set[str]) -> Finding:
    runs = folder / "runs"
    names = {place.name for place in runs.iterdir()} if runs.is_dir() else set()
    strays = sorted(names - known)
    text = "no foreign or half-written directories"
    return Finding(f"{text}: {strays[0]}" if strays else text, not strays)


def _targets(records: list[Record]) -> Finding:
    """A run that says it reached its target did so by its own trace."""
    wrong = []
    for record in records:
        if record.reached and record.run.stop == "reference":
            error = float(record.trace["relative_error"][-1])
            if not error <= record.run.tol * TRUE_ERROR_SLACK:
                wrong.append(record.run.id)
    text = "last traced errors agree with the targets"
    return Finding(f"{text}: not in {wrong[0]}" if wrong else text, not wrong)


def _described(fit: analysis.Fit) -> str:
    low, high = fit.residual[0]
    return (
        f"{fit.text()} over {fit.graphs} graphs as blocks "
        f"(least squares [{low:.3f}, {high:.3f}], {fit.runs} runs)"
    )


def _slopes(records: list[Record], expect: Mapping[str, Any]) -> list[Finding]:
    out = []
    for key, fit in analysis.EXPONENTS.items():
        if key not in expect:
            continue
        found = fit(records)
        low, high = expect[key]
        text = "cannot be fitted" if found is None else _described(found)
        holds = found is not None and low <= found.exponents[0] <= high
        out.append(Finding(f"{key} = {text}, expected in [{low:g}, {high:g}]", holds))
    both = analysis.two_factor_fit(records) if out else None
    if both is not None:
        out.append(Finding(f"two factors: chi {both.text(0)}, sqrt(kappa_W) {both.text(1)}", True))
    return out


def _lower_bounds(records: list[Record]) -> list[Finding]:
    """Rounds of the runs on hard problems over the rounds that no method can do without."""
    factors = []
    for record in records:
        if record.run.data in HARD and record.reached:
            hard = HARD[record.run.data](record.run.agents)
            factors.append(record.rounds / max(lower_bound(hard, "rounds", record.run.tol), 1))
    if not factors:
        return []
    text = f"rounds are {min(factors):.3g} to {max(factors):.3g} times their lower bounds"
    return [Finding(text, min(factors) >= 1)]
