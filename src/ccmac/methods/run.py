"""One run of a method on a workspace: preparation, plan, loop, result."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np

from ccmac.certificates.farkas import Farkas, early_contradiction, gathered_contradiction
from ccmac.certificates.proof import Proof, ProofJudge
from ccmac.certificates.realized import Certifier, RealizedJudge
from ccmac.certificates.stopping import Check, Stop
from ccmac.certificates.users_rows import in_users_rows
from ccmac.errors import OutOfTime
from ccmac.methods import start
from ccmac.methods.auto import Auto
from ccmac.methods.base import Method, Prepared, Request
from ccmac.methods.checkpoints import Checkpoints
from ccmac.methods.driver import Outcome, Settings, drive
from ccmac.methods.energy import Energy
from ccmac.methods.falls import falling
from ccmac.methods.finish import (
    finish,
    infeasible_result,
    late_result,
    unbounded_result,
    without_solution,
)
from ccmac.methods.identity import Asked
from ccmac.methods.registry import refuse_unless_fit
from ccmac.methods.start import Limits, names_of, observer_of, positions, probed, reporter
from ccmac.plans import Alternative, Plan, charged
from ccmac.results import Result, Solution
from ccmac.runtime.base import Piggyback
from ccmac.trace import Trace
from ccmac.workspace import Workspace

DEFAULT_ITERATIONS = 200_000


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
            charged(self.alternatives, name, runtime, step),
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
            found = self._solve(limits)
        except OutOfTime:
            found = late_result(self.work, self.request, time.perf_counter() - self.begun)
        finally:
            self.work.runtime.limit(math.inf)
            if self.saver is not None:
                self.saver.close()
        self.found = found
        if self.work.reduction is not None:
            found = in_users_rows(self.work, found)
        if self.work.stack is not None:
            found = replace(found, _problem=self.work.stack)
        found.provenance["tol"] = self.request.tol
        return replace(found, names=names_of(self.work), start=self._start())

    def _start(self) -> Solution | None:
        """The point of the user's variables that a warm start gave."""
        if self.warm is None:
            return None
        ends = np.cumsum(list(self.work.problem.d.values()))[:-1]
        x = np.split(self.request.x0, ends)
        way = self.work.reduction
        return Solution(x if way is None else way.x(x), self.request.z0)

    def _solve(self, limits: Limits) -> Result:
        work = self.work
        saver = self._saver(limits)
        with work.ledger.phase("setup"):
            self.method.announce(work, self.request)
            conflict = early_contradiction(work)
            before = work.constraints
            known = conflict is not None or self.method.finds_falls(work)
            bends = "strongly convex" in work.capabilities
            direction = None if known or bends else falling(work, self.request)
        if conflict is not None:
            return infeasible_result(work, conflict, self.request.seed)
        if direction is not None:
            return unbounded_result(work, direction, self.request.seed)
        prepared = self._again(self.prepare(), saver)
        plan = self.plan(prepared)
        trace = Trace()
        stalled: list[tuple[Prepared, Outcome, Plan]] = []
        while True:
            outcome = self._drive(prepared, limits, trace, saver)
            stuck = outcome.status == "diverged" and prepared.widen is None
            if stuck or (outcome.status == "finished" and self._unproved(prepared, outcome)):
                following = self._following()
                if following is not None:
                    stalled.append((prepared, outcome, plan))
                    prepared = following
                    plan = self.plan(prepared)
                    if saver is not None:
                        saver.begin_again("next")
                    continue
            if outcome.status != "diverged" or prepared.widen is None:
                break
            self.warnings.append(
                f"the iterates grew at iteration {outcome.iterations}: the spectral interval was "
                "too narrow; widened, started again"
            )
            prepared = self._widened(prepared)
            plan = self.plan(prepared)
            if saver is not None:
                saver.begin_again("wider")
        with work.ledger.phase("monitor"):
            conflict = None
            if before is None and (sums := work.constraints) is not None:  # asked for since
                conflict = gathered_contradiction(sums, Farkas(work))
            if conflict is None and outcome.status == "max_iterations":
                conflict = start.excluded(work, self.method, self.request, limits)
        if conflict is not None:
            outcome.check = Check(math.nan, verdict=conflict)
        self._concluded(prepared, outcome)
        if outcome.check is not None and outcome.check.verdict is not None:
            return without_solution(work, outcome, plan, trace, self.request.seed)
        if stalled and self._unproved(prepared, outcome):
            ended = [*stalled, (prepared, outcome, plan)]
            prepared, outcome, plan = min(ended, key=lambda end: end[1].proved)
        self._apply_probe()
        notes = [*outcome.notes, *([] if saver is None else saver.notes)]
        warnings = [*work.doubts, *self.warnings, *notes]
        return finish(work, prepared, outcome, plan, trace, warnings, self.request.seed)

    def _saver(self, limits: Limits) -> Checkpoints | None:
        """Where the state is kept; a stored run of something else is refused before any work.

        A stored run that fits fixes the tolerance that plans are made for.
        """
        if limits.checkpoint is None:
            return None
        work = self.work
        of_agents = hasattr(self.reference, "x")
        places = (
            positions(work, self.reference) if of_agents else None,
            None if self.warm is None else positions(work, self.warm),
        )
        asked = Asked(work, self.method, self.request, self.reference, self.warm, places)
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
        """Whether a method that ended by itself leaves the tolerance unproved."""
        if prepared.stopping is None or (outcome.check is not None and outcome.check.done):
            return False
        with self.work.ledger.phase("monitor"):
            found = prepared.stopping.final(prepared.iteration, outcome.state)
            outcome.check = found.agreed(self.work.runtime)
        return not outcome.check.done

    def _concluded(self, prepared: Prepared, outcome: Outcome) -> None:
        """One last look at the state of a run that ended without."""
        check = outcome.check
        known = check is not None and (check.done or outcome.status == "finished")
        if outcome.status == "diverged" or prepared.stopping is None or known:
            return
        with self.work.ledger.phase("monitor"):
            check = prepared.stopping.final(prepared.iteration, outcome.state)
            outcome.check = check.agreed(self.work.runtime)

    def _following(self) -> Prepared | None:
        """The next method that ``auto`` would take, ready; None when there is none."""
        if not self.others:
            return None
        stalled, (self.method, self.why) = self.method.name, self.others.pop(0)
        self.warnings.append(f"{stalled} stalled; went on with {self.method.name}")
        with self.work.ledger.phase("setup"):
            return self._proving(self.method.prepare(self.work, self.request))

    def _drive(
        self, prepared: Prepared, limits: Limits, trace: Trace, saver: Checkpoints | None
    ) -> Outcome:
        """From the start, or from a checkpoint, to an end."""
        iteration = prepared.iteration
        observer = observer_of(self.work, iteration, self.reference, self.request.tol)
        state = start.first_state(self.work, iteration, self.request, self.warm)
        if observer is not None:
            observer.begin(*iteration.point(state))
        first = 0
        if saver is not None:
            saver.bind(self.method, iteration, prepared.stopping, trace)
            first, state = saver.resume(state)
        energy = None
        if observer is not None and observer.z is not None:
            energy = Energy.of(iteration, observer.x, observer.z)
        root = self.work.runtime.is_root
        name = self.method.name
        with reporter(limits.progress, root, name, prepared.predicted) as report:
            outcome = drive(
                iteration,
                state,
                Settings(
                    limits.max_iterations or prepared.horizon or DEFAULT_ITERATIONS,
                    start.driven(self.work, self.method, limits),
                    prepared.stopping,
                    observer,
                    energy=energy,
                    callback=limits.callback,
                    report=report,
                    saver=saver,
                    first=first,
                    begun=self.begun,
                    trace=trace,
                ),
            )
        if saver is not None and outcome.status in ("interrupted", "max_iterations"):
            saver.save(outcome.iterations, outcome.state)
        return outcome
