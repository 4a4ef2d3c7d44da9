"""From the last state of a run to a Result: point, multipliers, violations, verdict."""

from __future__ import annotations

import math
import platform
import warnings as standard
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy

from ccmac.certificates.bound import Proved
from ccmac.certificates.farkas import Infeasibility, closest_point_contradiction
from ccmac.certificates.multipliers import Multipliers, Recovery
from ccmac.certificates.realized import Certifier
from ccmac.certificates.recession import Recession
from ccmac.certificates.stopping import Check, status_of
from ccmac.errors import AssumptionWarning
from ccmac.inputs import Array
from ccmac.ledger import Trace
from ccmac.linalg.ranks import redundant
from ccmac.methods.base import Prepared, Request
from ccmac.methods.driver import Outcome
from ccmac.objectives import Custom
from ccmac.plans import Plan
from ccmac.problem import Problem
from ccmac.realizations.base import Realized
from ccmac.results import Result
from ccmac.runtime import Runtime
from ccmac.runtime.base import Piggyback
from ccmac.version import __version__
from ccmac.workspace import Workspace
from ccmac.workspace.constraints import SummedConstraints

DEPENDENT = (
    "some equations count as dependent on the others, by convention ({}): what is said of the "
    "error is about the problem without them; certificates['rows']['dropped'] lists them"
)


def finish(
    work: Workspace,
    prepared: Prepared,
    outcome: Outcome,
    plan: Plan,
    trace: Trace,
    warnings: list[str],
    seed: int,
) -> Result:
    """Build the Result; what it still has to compute is charged to ``monitor``."""
    problem = work.problem
    runtime = work.runtime
    judge = prepared.judge
    check = outcome.check
    with runtime.ledger.phase("monitor"):
        bound = _certificate(prepared, outcome)
        x, z = prepared.iteration.point(outcome.state)
        if bound is not None:
            x = bound.x
            z = np.broadcast_to(bound.z, z.shape)
        if bound is not None and bound.report is not None:
            report = bound.report
            seen = Seen(z[:1], dict(report.residuals), report.multipliers, None, report.objective)
        elif outcome.status == "diverged":
            seen = Seen(runtime.average(z))
        else:
            repaired = check is not None and check.certificate is bound
            seen = _looked(work, judge, bound, (x, z), repaired=repaired)
        if bound is not None:
            seen.residuals["stationarity"] = bound.stationarity
        _refute(work)
    source = _source(work, prepared, check, bound)
    evidence = None if check is None else check.evidence
    met = evidence is not None and evidence.met and evidence.kind == "reference"
    rests = "reference" if met else source
    if seen.infeasibility is not None:
        check = Check(math.nan, verdict=seen.infeasibility)
    elif check is not None and evidence is not None and rests == "estimated":
        check = replace(check, evidence=evidence.resting_on(rests))
    error = math.nan if bound is None or seen.infeasibility is not None else bound.error
    checked = [] if prepared.stopping is None else prepared.stopping.notes
    late = [text for text in work.doubts if text not in warnings]
    facts = _facts(work, bound, rests)
    rows = facts.get("rows", {}).get("dropped", {})
    near = isinstance(work.constraints, SummedConstraints) or "rank_cut" in facts
    if near and {"coupled", "shared"} & rows.keys():
        checked = [*checked, DEPENDENT.format(facts["rows"]["convention"])]
    warnings = [*late, *warnings, *prepared.notes, *checked, *runtime.notes.warnings]
    return Result(
        _split(problem, x),
        np.array(seen.mean[0]),
        seen.multipliers,
        status_of(outcome.status, check),
        objective=seen.objective,
        residuals={k: float(v) for k, v in seen.residuals.items()},
        error_bound=math.nan if source == "estimated" else error,
        error_estimate=error if rests == "estimated" else math.nan,
        iterations=outcome.iterations,
        seconds=outcome.seconds,
        relative_error=outcome.relative_error,
        trace=trace,
        plan=plan,
        certificates={**prepared.certificates, **facts},
        infeasibility=seen.infeasibility,
        warnings=warnings,
        **_about(work, seed),
    )


@dataclass
class Seen:
    """What is known of the point returned: mean z, violations, multipliers, a conflict, F."""

    mean: Array
    residuals: dict[str, float] = field(default_factory=dict)
    multipliers: Multipliers | None = None
    infeasibility: Infeasibility | None = None
    objective: float = math.nan


def _looked(
    work: Workspace,
    judge: Realized | None,
    bound: Proved | None,
    point: tuple[Array, Array],
    *,
    repaired: bool,
) -> Seen:
    """Violations, values and multipliers where no bound has brought them.

    A point that was not ``repaired`` proves nothing about the equations.
    """
    recovery = Recovery(work)
    x, z = point
    residuals, mean, _ = recovery.violations(x, z)
    values = _values(work.problem, work.runtime, x, mean)
    seen = Seen(mean, residuals)
    if bound is not None and bound.w is not None and judge is not None and repaired:
        seen.infeasibility = closest_point_contradiction(work, recovery, judge, bound.w, residuals)
    if bound is not None:
        multiplier = bound.multiplier[None]
        if bound.w is not None and judge is not None:
            width = recovery.coupling.width
            known = bound.multiplier.shape[1] > 0
            multiplier = (
                judge.system.common_multiplier(bound.multiplier)[:, :width]
                if known
                else bound.multiplier
            )
        seen.multipliers = recovery.multipliers(
            bound.gradient_x.copy(), bound.gradient_z.copy(), multiplier
        )
    seen.objective = float(values.value[0])
    return seen


def late_result(work: Workspace, request: Request, seconds: float) -> Result:
    """The start, about which nothing is known: time was over in the setup."""
    return Result(
        _split(work.problem, request.x0),
        request.z0,
        None,
        "max_iterations",
        seconds=seconds,
        warnings=["the time limit passed during the setup; raise max_seconds"],
        **_about(work, request.seed),
    )


def without_solution(
    work: Workspace, verdict: Infeasibility | Recession, seed: int, **more: Any
) -> Result:
    """The Result of a problem that is proved to have no solution; ``more`` of its fields."""
    problem = work.problem
    x = [np.zeros(k) for k in problem.d.values()]
    more |= _about(work, seed)
    if isinstance(verdict, Infeasibility):
        return Result(x, np.zeros(problem.q), None, "infeasible", infeasibility=verdict, **more)
    direction = {"x": [v.tolist() for v in verdict.x], "z": verdict.z.tolist()}
    found = {"direction": direction, "fall": verdict.fall, "defect": verdict.defect}
    return Result(
        x,
        np.zeros(problem.q),
        None,
        "unbounded",
        objective=-math.inf,
        certificates=found,
        warnings=[verdict.message],
        **more,
    )


def _about(work: Workspace, seed: int) -> dict[str, Any]:
    """The fields of every Result: whose it is, what it cost, how it came about."""
    runtime = work.runtime
    return {
        "ledger": runtime.ledger,
        "provenance": provenance(runtime, seed),
        "agents": runtime.owned,
        "_problem": work.problem if work.problem.complete else None,
    }


def _refute(work: Workspace) -> None:
    """Doubts about constants that gradients of this run have refuted; one reduction where some
    objective is its owner's own.
    """
    if not work.declared:
        return
    members = [agent.objective for agent in work.problem.agents.values()]
    found = [f.refuted() if isinstance(f, Custom) else "" for f in members]
    received = work.runtime.total(np.array([[float(bool(text))] for text in found]))
    if received[0]:
        texts = [
            f"agent {i}, objective: {text}"
            for i, text in zip(work.problem.agents, found, strict=True)
            if text
        ]
        for text in texts:
            standard.warn(AssumptionWarning(text), stacklevel=2)
        work.doubts += texts or ["constants that another agent declared are refuted by gradients"]


def _certificate(prepared: Prepared, outcome: Outcome) -> Proved | None:
    """The bound found by the stopping rule, else a quick one from the method's dual state."""
    if outcome.check is not None and outcome.check.certificate is not None:
        return outcome.check.certificate
    judge = prepared.judge
    if outcome.status == "diverged" or judge is None or not 0 < judge.objective.mu < math.inf:
        return None
    iteration = prepared.iteration
    state = outcome.state
    dual = iteration.dual(state, judge)
    if dual is None:
        return None
    return Certifier(judge).look(iteration.embedded(state, judge), dual).bound


def _values(problem: Problem, runtime: Runtime, x: Array, mean: Array) -> Piggyback:
    """The objectives at the point returned; they travel with the multipliers, if any."""
    rows = []
    start = 0
    for i, agent in problem.agents.items():
        d = problem.d[i]
        rows.append([agent.objective.value(x[start : start + d], mean[0])])
        start += d
    # The last message of a run: sums that were to travel in the next one travel here.
    return runtime.piggyback(np.array(rows, dtype=np.float64))


def _source(work: Workspace, prepared: Prepared, check: Check | None, bound: Proved | None) -> str:
    """On what the bound's spectral ends and constants rest."""
    evidence = None if check is None else check.evidence
    if evidence is not None and evidence.met and evidence.kind != "reference":
        rests = evidence.rests
    elif bound is None:
        return "nothing"
    elif bound.w is not None and prepared.judge is not None:
        rests = prepared.judge.system.interval.source
    else:
        rests = "proved"
    if work.doubts:
        return "estimated"
    return "supplied" if rests == "proved" and work.declared else rests


def _facts(work: Workspace, bound: Proved | None, rests: str) -> dict[str, Any]:
    """What is said of the bound in ``Result.certificates``."""
    facts: dict[str, Any] = {"rests_on": rests}
    known = work.constraints
    if bound is not None and bound.w is None and known is not None:
        facts["rows"] = {
            "rank": known.rank,
            "least_singular_value": known.least,
            "condition": known.condition,
        }
        dropped = {**known.redundant, "local": _redundant_own(work)}
        if any(dropped.values()):
            facts["rows"]["dropped"] = {kind: rows for kind, rows in dropped.items() if rows}
            facts["rows"]["convention"] = known.convention
        near = known.near_cut
        if near["kept"] < 100 or near["dropped"] > 0.01:
            facts["rank_cut"] = near
    return facts


def _redundant_own(work: Workspace) -> dict[str, list[int]]:
    """Rows of C_i, by the agents here, that were left out as dependent."""
    pairs = zip(work.problem.agents, work.local.spaces, strict=False)
    return {str(i): rows for i, space in pairs if (rows := redundant(space.left))}


def _split(problem: Problem, x: Array) -> list[Array]:
    ends = np.cumsum(list(problem.d.values()))[:-1]
    return [np.array(piece) for piece in np.split(x, ends)]


def provenance(runtime: Runtime, seed: int) -> dict[str, Any]:
    """Versions and settings for records; kappa_W of thousands of agents only if it was needed."""
    return {
        "ccmac": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "runtime": type(runtime).__name__.lower(),
        "fused": runtime.fused,
        "averaging": runtime.averaging.name,
        "network": runtime.network.name,
        "agents": runtime.n,
        **({} if (known := runtime.network.known_condition) is None else {"kappa_W": known}),
        "seed": seed,
    }
