"""One run of a method on a workspace: what a caller brings, preparation, plan, loop, result.

The second half leads from the last state to a Result: point, multipliers, violations, verdict.
"""

from __future__ import annotations

import logging
import math
import platform
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from ccmac.certificates.bound import Proof, ProofJudge, Proved
from ccmac.certificates.farkas import (
    Farkas,
    Infeasibility,
    early_contradiction,
    gathered_contradiction,
)
from ccmac.certificates.multipliers import Multipliers, Recovery
from ccmac.certificates.realized import Certifier, RealizedJudge
from ccmac.certificates.recession import Recession
from ccmac.certificates.stopping import Check, Stop, status_of
from ccmac.certificates.users_rows import in_users_rows
from ccmac.errors import AssumptionWarning, InputError, OutOfTime
from ccmac.inputs import Array, real_vector
from ccmac.ledger import Trace
from ccmac.linalg.blocks import blas_threads
from ccmac.linalg.ranks import redundant
from ccmac.linalg.tolerances import PROMISED
from ccmac.methods.base import Iteration, Method, Prepared, Request, State
from ccmac.methods.checkpoints import Asked, Checkpoints
from ccmac.methods.driver import Outcome, Settings, drive, observer_of, positions, reporter, watched
from ccmac.methods.registry import Auto, refuse_unless_fit
from ccmac.objectives.checks import check_problem
from ccmac.objectives.custom import Custom
from ccmac.plans import Alternative, Plan
from ccmac.problem import Problem
from ccmac.realizations.base import Realized
from ccmac.results import Names, Result, Solution
from ccmac.runtime import Runtime
from ccmac.runtime.base import Piggyback
from ccmac.version import __version__
from ccmac.workspace import Workspace
from ccmac.workspace.equations import SummedConstraints

LOG = logging.getLogger("ccmac")  # what is done and how it ended, for who listens
LOG.addHandler(logging.NullHandler())
DEPENDENT = (
    "some equations count as dependent on the others, by convention ({}): what is said of the "
    "error is about the problem without them; certificates['rows']['dropped'] lists them"
)
UNMET = (
    "the equations stay violated by {:.2g} at the closest point that was found: they may "
    "contradict each other, which is not proved; what is said of the error is an estimate, for the "
    "nearest right-hand sides that agree"
)


@dataclass(frozen=True)
class Limits:
    """How long a run may last, where its state is kept, and who looks on."""

    max_iterations: int | None = None
    max_seconds: float | None = None
    checkpoint: str | Path | Mapping[str, Any] | None = None
    callback: Callable[[int, State], object] | None = None
    progress: bool | None = None
    threads: int | None = None
    begun: float = field(default_factory=time.perf_counter)  # of the call


class Run:
    """``method`` on ``work`` for one ``request``.

    ``reference`` is an array or a Solution that an observer compares with, ``warm`` the Solution
    that the request starts from.
    """

    def __init__(
        self,
        work: Workspace,
        method: Method,
        request: Request,
        reference: Any = None,
        warm: Solution | None = None,
    ) -> None:
        self.work = work
        self.method = method
        self.request = request
        self.reference = reference
        self.warm = warm
        self.why = "asked for"
        self.others: list[tuple[Method, str]] = []
        self.ranked: list[tuple[Method, str]] = []  # by auto; filled in by who has asked before
        self.alternatives: tuple[Alternative, ...] = ()  # so are these
        self.begun = 0.0
        self.warnings: list[str] = []
        self.saver: Checkpoints | None = None
        self.found: Result | None = None  # before it is stated in the user's rows
        self._probe: Piggyback | None = None

    # -- preparation -------------------------------------------------------------------------------
    def prepare(self) -> Prepared:
        """The method chosen, fit for the problem, ready to start; charged to setup."""
        with self.work.ledger.phase("setup"):
            self.method.announce(self.work, self.request)
            probe = probed(self.work, self.request.seed)
            if isinstance(self.method, Auto):
                self.ranked = self.ranked or self.method.ranked(self.work, self.request)
                auto = self.method
                [(self.method, self.why), *self.others] = self.ranked
                if not self.alternatives:
                    self.alternatives = auto.alternatives(self.work, self.request, self.method)
            refuse_unless_fit(self.method, self.work)
            prepared = self._proving(self.method.prepare(self.work, self.request))
            self._probe = probe
            if probe.found is not None:
                self._apply_probe()
            return prepared

    def _proving(self, prepared: Prepared, *, refuted: bool = False) -> Prepared:
        """With a rule that proves the tolerance; none with a reference, which an observer knows.

        In the user's own equations where these may be gathered, unless the user vouches for
        constants that no run has refuted; else as the method says, or on a realization.
        """
        if prepared.proves or self.request.reference:
            return prepared
        supplied = getattr(self.method, "certificates", None) is not None and not refuted
        judge = prepared.judge if self.work.hides else None  # sums prove less than structure does
        supplied = supplied or (judge is not None and judge.system.interval.source != "estimated")
        proof = None if supplied else Proof.of(self.work)
        if proof is not None:
            judged = ProofJudge(proof, self.request.tol)
            return replace(prepared, stopping=Stop(judged, first=prepared.first_check))
        if prepared.stopping is not None:
            return prepared
        judge = prepared.judge or self.method.judge(self.work, self.request)
        if judge is None:
            return prepared
        rule = Stop(RealizedJudge(Certifier(judge), self.request.tol))
        return replace(prepared, judge=judge, stopping=rule)

    def _apply_probe(self) -> None:
        """The cost of the probes, and doubts that other agents have."""
        probe = self._probe
        self._probe = None
        if probe is None:
            return
        everybody = probe.value
        with self.work.ledger.phase("setup"):
            self.work.ledger.charge(gradients=int(everybody[:, 0].max()))
        self.work.declared = bool(everybody[:, 0].any())
        if everybody[:, 1].any() and not self.work.doubts:
            self.work.doubts.append("constants that another agent declared did not hold when tried")

    def plan(self, prepared: Prepared) -> Plan:
        """What the run is going to do."""
        runtime = self.work.runtime
        setup = self.work.ledger.of("setup")
        name = self.method.name
        step = prepared.iteration.cost
        scheme = runtime.averaging
        return Plan(
            name,
            prepared.realization,
            f"{self.why}: {prepared.why}",
            scheme.name,
            scheme.rounds,
            step,
            setup,
            prepared.predicted,
            prepared.settings,
            self.alternatives,
            self.method.reveals,
        )

    # -- running -----------------------------------------------------------------------------------
    def solve(self, limits: Limits) -> Result:
        """Until the goal, a limit, an interruption or a proof that there is no solution."""
        self.begun = limits.begun
        if limits.max_seconds is not None:
            left = limits.max_seconds - (time.perf_counter() - self.begun)
            self.work.runtime.limit(time.monotonic() + left)
        try:
            with blas_threads(self.work.block, limits.threads):
                found = self._solve(limits)
        except OutOfTime:
            found = late_result(self.work, self.request, time.perf_counter() - self.begun)
        finally:
            self.work.runtime.limit(math.inf)
            if self.saver is not None:
                self.saver.close()
        LOG.info("%s after %d iterations, %.3g s", found.status, found.iterations, found.seconds)
        for text in found.warnings:
            LOG.warning("%s", text)
        self.found = found
        if self.work.reduction is not None:
            found = in_users_rows(self.work, found)
        if self.work.stack is not None:
            found = replace(found, _problem=self.work.stack)
        found.provenance["tol"] = self.request.tol
        found = replace(found, names=names_of(self.work), start=self._start())
        for k, i in enumerate(found.agents):
            if (model := self.work.whole.agents[i].model) is not None:
                model.receive(found, k)
        return found

    def _start(self) -> Solution | None:
        """The point of the user's variables that a warm start gave."""
        if self.warm is None:
            return None
        x = _blocks(self.work.problem, self.request.x0)
        way = self.work.reduction
        return Solution(x if way is None else way.x(x), self.request.z0)

    def _solve(self, limits: Limits) -> Result:
        work = self.work
        seed = self.request.seed
        saver = self._saver(limits)
        with work.ledger.phase("setup"):
            self.method.announce(work, self.request)
            verdict: Infeasibility | Recession | None = early_contradiction(work)
            before = work.constraints
        if verdict is not None:
            return without_solution(work, verdict, seed)
        prepared = self._again(self.prepare(), saver)
        trace = Trace()
        stalled: list[tuple[Prepared, Outcome, Plan]] = []
        while True:
            plan = self.plan(prepared)
            LOG.info("%s (%s)", plan.method, plan.why)
            outcome = self._drive(prepared, limits, trace, saver)
            following, step = self._next(prepared, outcome)
            if following is None:
                break
            if step == "next":
                stalled.append((prepared, outcome, plan))
            prepared = following
            if saver is not None:
                saver.begin_again(step)
        with work.ledger.phase("monitor"):
            if before is None and (sums := work.constraints) is not None:  # asked for since
                conflict = gathered_contradiction(sums, Farkas(work))
                if conflict is not None:
                    outcome.check = Check(math.nan, verdict=conflict)
        unproved = self._unproved(prepared, outcome)
        if outcome.check is not None and outcome.check.verdict is not None:
            found = without_solution(work, outcome.check.verdict, seed, plan=plan, trace=trace)
            return replace(found, iterations=outcome.iterations, seconds=outcome.seconds)
        if stalled and unproved:
            ended = [*stalled, (prepared, outcome, plan)]
            prepared, outcome, plan = min(ended, key=lambda end: end[1].proved)
        self._apply_probe()
        warnings = [*work.doubts, *self.warnings, *([] if saver is None else saver.notes)]
        return finish(work, prepared, outcome, plan, trace, warnings, seed)

    def _next(self, prepared: Prepared, outcome: Outcome) -> tuple[Prepared | None, str]:
        """What goes on after a run that diverged or stalled, and the word for it in checkpoints."""
        if outcome.status == "diverged" and prepared.widen is not None:
            self.warnings.append(
                f"the iterates grew at iteration {outcome.iterations}: the spectral interval was "
                "too narrow; widened, started again"
            )
            return self._widened(prepared), "wider"
        stuck = outcome.status == "diverged"
        stuck = stuck or (outcome.status == "finished" and self._unproved(prepared, outcome))
        return (self._following() if stuck else None), "next"

    def _saver(self, limits: Limits) -> Checkpoints | None:
        """Where the state is kept; a stored run of something else is refused before any work.

        A stored run that fits fixes the tolerance that plans are made for.
        """
        if limits.checkpoint is None:
            return None
        asked = Asked(self.work, self.method, self.request)
        saver = self.saver = Checkpoints.of(limits.checkpoint, asked)
        self.request = replace(self.request, planned=saver.planned, target=saver.target)
        return saver

    def _again(self, prepared: Prepared, saver: Checkpoints | None) -> Prepared:
        """Prepared as the stored run was when it was last saved."""
        for step in () if saver is None else saver.steps:
            if step == "wider" and prepared.widen is not None:
                prepared = self._widened(prepared)
            elif step == "next" and self.others:
                prepared = self._following() or prepared
            elif saver is not None:
                saver.refuse("its history does not fit the method")
        return prepared

    def _widened(self, prepared: Prepared) -> Prepared:
        assert prepared.widen is not None
        with self.work.ledger.phase("setup"):
            return self._proving(prepared.widen(), refuted=True)

    def _unproved(self, prepared: Prepared, outcome: Outcome) -> bool:
        """Whether the tolerance is unproved, after one last look at a state that is worth it."""
        if prepared.stopping is None:
            return False
        known = outcome.check is not None and outcome.check.done
        if not (known or outcome.looked or outcome.status == "diverged"):
            with self.work.ledger.phase("monitor"):
                found = prepared.stopping.final(prepared.iteration, outcome.state)
                outcome.check = found.agreed(self.work.runtime)
            outcome.looked = True
            known = outcome.check.done
        return not known

    def _following(self) -> Prepared | None:
        """The next method that ``auto`` would take, ready; None when there is none."""
        if not self.others:
            return None
        method, why = self.others.pop(0)
        with self.work.ledger.phase("setup"):
            try:
                prepared = self._proving(method.prepare(self.work, self.request))
            except InputError as refusal:  # all processes know what it rests on
                self.warnings.append(f"{self.method.name} stalled; {refusal}")
                return None
        self.warnings.append(f"{self.method.name} stalled; went on with {method.name}")
        self.method, self.why = method, why
        return prepared

    def _drive(
        self, prepared: Prepared, limits: Limits, trace: Trace, saver: Checkpoints | None
    ) -> Outcome:
        """From the start, or from a checkpoint, to an end."""
        iteration = prepared.iteration
        observer = observer_of(self.work, iteration, self.reference, self.request.tol)
        state = first_state(self.work, iteration, self.request, self.warm)
        if observer is not None:
            observer.begin(*iteration.point(state))
        first = 0
        if saver is not None:
            saver.bind(self.method, iteration, prepared.stopping, trace)
            first, state = saver.resume(state)
        root = self.work.runtime.is_root
        name = self.method.name
        predicted = prepared.predicted
        with reporter(limits.progress, root, name, predicted) as report:
            outcome = drive(
                iteration,
                state,
                Settings(
                    limits.max_iterations or prepared.horizon or 200_000,
                    limits.max_seconds,
                    prepared.stopping,
                    observer,
                    callback=limits.callback,
                    report=watched(self.work.runtime, report, name, predicted, first),
                    saver=saver,
                    first=first,
                    begun=self.begun,
                    trace=trace,
                ),
            )
        if saver is not None and outcome.status in ("interrupted", "max_iterations"):
            saver.save(outcome.iterations, outcome.state)
        return outcome


def starting_point(work: Workspace, warm: Solution | None) -> tuple[Array, Array]:
    """(flat x, z) of a warm start, or zeros."""
    d = list(work.problem.d.values())
    q = work.problem.q
    if warm is None:
        return np.zeros(sum(d)), np.zeros(q)
    places = zip(positions(work, warm), work.problem.d, strict=True)
    x = [real_vector(f"warm_start, x of agent {i}", warm.x[k]) for k, i in places]
    z = real_vector("warm_start, z", warm.z)
    if [len(v) for v in x] != d or len(z) != q:
        raise InputError("warm_start: its x or z has other sizes than the problem")
    return np.concatenate(x) if x else np.zeros(0), z


def first_state(
    work: Workspace, iteration: Iteration[Any], request: Request, warm: Solution | None
) -> State:
    """The request's point, with the multipliers of a warm start."""
    copies = np.broadcast_to(request.z0, (len(work.problem.agents), work.problem.q))
    multipliers = None if warm is None else warm.multipliers
    known = multipliers and (Recovery(work).dual_vector(multipliers), multipliers.coupled)
    return iteration.start(request.x0, copies, *(known or ()))  # type: ignore[no-any-return]


def names_of(work: Workspace) -> Names | None:
    """Names of the owned agents (else their nodes in the network), rows and entries of z."""
    whole = work.whole
    nodes = work.runtime.network.nodes
    given = [whole.agents[i].name for i in work.runtime.owned]
    agents = None
    if any(name is not None for name in given):
        agents = tuple(name or str(i) for i, name in zip(work.runtime.owned, given, strict=True))
    elif tuple(nodes) != tuple(range(len(nodes))):
        agents = tuple(str(nodes[i]) for i in work.runtime.owned)
    if agents is None and whole.row_names is None and whole.z_names is None:
        return None
    return Names(agents, whole.row_names, whole.z_names)


def probed(work: Workspace, seed: int) -> Piggyback:
    """Try the declared constants of users' own objectives; warns where they do not hold.

    All agents hear of it with the next message: (gradients spent, whether in doubt), a row each.
    """
    spent = 0
    if any(isinstance(agent.objective, Custom) for agent in work.problem.agents.values()):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            spent = check_problem(work.problem, seed)
        for warning in seen:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
            work.doubts.append(str(warning.message))
    rows = np.tile([float(spent), float(bool(work.doubts))], (len(work.problem.agents), 1))
    return work.runtime.piggyback(rows, whole=True)


# -- from the last state to a Result ---------------------------------------------------------------
def finish(
    work: Workspace,
    prepared: Prepared,
    outcome: Outcome,
    plan: Plan,
    trace: Trace,
    notes: list[str],
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
            seen = Seen(z[:1], dict(report.residuals), report.multipliers, report.objective)
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
    if check is not None and evidence is not None and rests == "estimated":
        check = replace(check, evidence=evidence.resting_on(rests))
    error = math.nan if bound is None else bound.error
    checked = [] if prepared.stopping is None else prepared.stopping.notes
    late = [text for text in work.doubts if text not in notes]
    facts = _facts(work, bound, rests)
    rows = facts.get("rows", {}).get("dropped", {})
    near = isinstance(work.constraints, SummedConstraints) or "rank_cut" in facts
    if near and {"coupled", "shared"} & rows.keys():
        checked = [*checked, DEPENDENT.format(facts["rows"]["convention"])]
    notes = [*late, *notes, *prepared.notes, *checked, *runtime.notes.warnings]
    return Result(
        _blocks(problem, x),
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
        warnings=notes,
        **_about(work, seed),
    )


@dataclass
class Seen:
    """What is known of the point returned: mean z, violations, multipliers, F."""

    mean: Array
    residuals: dict[str, float] = field(default_factory=dict)
    multipliers: Multipliers | None = None
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

    A point that was ``repaired`` and still violates the equations is a doubt about them.
    """
    recovery = Recovery(work)
    x, z = point
    residuals, mean = recovery.violations(x, z)
    values = _values(work.problem, work.runtime, x, mean)
    seen = Seen(mean, residuals)
    if bound is not None and bound.w is not None and judge is not None and repaired:
        doubt_violations(work, recovery, judge, bound.w, residuals)
    if bound is not None:
        multiplier = bound.multiplier[None]
        if bound.w is not None and judge is not None:
            multiplier = bound.multiplier
            if multiplier.shape[1]:
                common = judge.system.common_multiplier(multiplier)
                multiplier = common[:, : recovery.coupling.width]
        seen.multipliers = recovery.multipliers(
            bound.gradient_x.copy(), bound.gradient_z.copy(), multiplier
        )
    seen.objective = float(values.value[0])
    return seen


def doubt_violations(
    work: Workspace, recovery: Recovery, realized: Realized, w: Array, norms: dict[str, float]
) -> None:
    """A doubt where w, with these violations, stays violated however far it is repaired."""
    allowed = PROMISED * max(1.0, recovery.scale())
    if max(norms["coupled"], norms["shared"]) > allowed:
        w, _ = Certifier(realized).repaired(w)
        norms, _ = recovery.violations(realized.space.x(w), realized.copies(w))
        violation = max(norms["coupled"], norms["shared"])
        if violation > allowed:
            work.doubts.append(UNMET.format(violation))


def late_result(work: Workspace, request: Request, seconds: float) -> Result:
    """The start, about which nothing is known: time was over in the setup."""
    return Result(
        _blocks(work.problem, request.x0),
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
    z = np.zeros(problem.q)
    if isinstance(verdict, Infeasibility):
        return Result(x, z, None, "infeasible", infeasibility=verdict, **more)
    direction = {"x": [v.tolist() for v in verdict.x], "z": verdict.z.tolist()}
    more["certificates"] = {"direction": direction, "fall": verdict.fall, "defect": verdict.defect}
    more["warnings"] = [verdict.message]
    return Result(x, z, None, "unbounded", objective=-math.inf, **more)


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
            warnings.warn(AssumptionWarning(text), stacklevel=2)
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
    return Certifier(judge).plain(iteration.embedded(state, judge), dual)


def _values(problem: Problem, runtime: Runtime, x: Array, mean: Array) -> Piggyback:
    """The objectives at the point returned; they travel with the multipliers, if any."""
    pairs = zip(problem.agents.values(), _blocks(problem, x), strict=True)
    rows = [[agent.objective.value(block, mean[0])] for agent, block in pairs]
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


def _blocks(problem: Problem, x: Array) -> list[Array]:
    """x by agents, in arrays of their own."""
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
