"""One run of solve, from checked inputs to a Result: start, reference, preparation, loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.certificates.infeasibility import Conflicts
from ccmac.certificates.prices import Recovery
from ccmac.costs import Costs
from ccmac.errors import InputError
from ccmac.methods import registry
from ccmac.methods.base import State
from ccmac.methods.checkpoints import Checkpoints
from ccmac.methods.driver import Observer, Settings, drive
from ccmac.methods.energy import Energy
from ccmac.methods.finish import finish, infeasible_result
from ccmac.methods.method import Context, Prepared
from ccmac.methods.progress import reporter
from ccmac.network import Network
from ccmac.objectives.checks import check_problem
from ccmac.plans import Plan
from ccmac.problem import Problem
from ccmac.realizations.supplied import Certificates
from ccmac.results import Result, Solution
from ccmac.runtime import InProcess, Runtime
from ccmac.runtime.averaging import by_name
from ccmac.stack import Stack, stack_problem
from ccmac.trace import Trace
from ccmac.workspace.coupling import Coupling

Array = NDArray[np.float64]
DEFAULT_ITERATIONS = 200_000


@dataclass(frozen=True)
class Options:
    """The choices of a solve that do not depend on how long it runs."""

    method: str = "auto"
    tol: float = 1e-6
    reference: Any = None
    realization: str | None = None
    costs: Costs = field(default_factory=Costs)
    certificates: Certificates | None = None
    access: str = "factor"
    schedule: str | None = None
    tune: str | None = None
    reduction: str | None = None
    warm_start: Solution | None = None
    fused: bool = True
    runtime: Runtime | str | None = None
    seed: int = 0
    pinned: dict[str, Any] = field(default_factory=dict)
    averaging: str = "auto"

    def __post_init__(self) -> None:
        if not (isinstance(self.tol, int | float) and 0 < self.tol < math.inf):
            raise InputError(f"tol = {self.tol!r} must be a positive number, such as 1e-6")
        if self.access not in ("factor", "matvec"):
            raise InputError(f"access = {self.access!r}; take 'factor' or 'matvec'")


class Run:
    """One call of solve: inputs checked, a runtime, a context."""

    def __init__(self, problem: Problem | Stack, network: Network | None, options: Options) -> None:
        self.options = options
        self.stack = problem if isinstance(problem, Stack) else None
        self.problem = _as_problem(problem)
        self.network = network or Network.complete(self.problem.n)
        if self.network.n != self.problem.n:
            raise InputError(
                f"network: has {self.network.n} agents but the problem has {self.problem.n}; "
                "build the network for the problem's n"
            )
        self.runtime = make_runtime(options, self.network)
        self.whole = self.problem
        self.problem = _owned_part(self.problem, self.runtime)
        self.reference, self.warm = options.reference, options.warm_start
        self.tol, self.seed = float(options.tol), options.seed
        x0, z0 = self._start()
        observed = self.reference is not None
        self.context = Context(
            self.problem,
            self.runtime,
            self.tol,
            x0,
            z0,
            reference=observed,
            target=self.tol if observed else self.tol**2,
            measure=(1.0, 0.0) if self._weights_only() else (1.0, 1.0),
            realization=options.realization,
            costs=options.costs,
            certificates=options.certificates,
            access=options.access,
            schedule=options.schedule,
            tune=options.tune,
            reduction=options.reduction,
            pinned=options.pinned,
            seed=options.seed,
            stack=self.stack,
            coupling=Coupling(self.problem, self.runtime) if self.stack is None else None,
        )
        self.warnings: list[str] = []

    # -- start and reference -----------------------------------------------------------------------
    def _start(self) -> tuple[Array, Array]:
        d, q = list(self.problem.d.values()), self.problem.q
        if self.warm is None:
            return np.zeros(sum(d)), np.zeros(q)
        x = [np.asarray(self.warm.x[k], dtype=np.float64) for k in self._positions(self.warm)]
        if [len(v) for v in x] != d or len(np.asarray(self.warm.z)) != q:
            raise InputError("warm_start: its x or z has other sizes than the problem")
        return np.concatenate(x) if x else np.zeros(0), np.asarray(self.warm.z, dtype=np.float64)

    def _positions(self, solution: Solution) -> list[int]:
        """Where the owned agents sit in a solution that may hold all or just these."""
        owned = self.runtime.owned
        if len(solution.x) == self.problem.n:
            return list(owned)
        if len(solution.x) == len(owned):
            return list(range(len(owned)))
        raise InputError(
            f"solution: has {len(solution.x)} local variables; give {self.problem.n}, one an agent"
        )

    def _weights_only(self) -> bool:
        return self.reference is not None and not hasattr(self.reference, "x")

    def _observer(self, prepared: Prepared) -> Observer | None:
        if self.reference is None:
            return None
        d = sum(self.problem.d.values())
        if hasattr(self.reference, "x"):
            blocks = [np.asarray(self.reference.x[k]) for k in self._positions(self.reference)]
            z = np.asarray(self.reference.z, dtype=np.float64)
            return Observer(prepared.iteration, np.concatenate(blocks), z, self.tol)
        array = np.asarray(self.reference, dtype=np.float64).ravel()
        mine = self.whole.reference_blocks(array)
        if mine is not None:
            owned = [mine[i] for i in self.runtime.owned]
            return Observer(prepared.iteration, np.concatenate(owned), None, self.tol)
        if len(array) == d and self.problem.complete:
            return Observer(prepared.iteration, array, None, self.tol)
        if len(array) == d + self.problem.q and self.problem.complete:
            return Observer(prepared.iteration, array[:d], array[d:], self.tol)
        raise InputError(
            f"reference: has {len(array)} entries; give the {d} local variables, those and z "
            f"({d + self.problem.q}), or a Solution"
        )

    # -- preparation -------------------------------------------------------------------------------
    def prepare(self) -> Prepared:
        with self.runtime.ledger.phase("setup"):
            self._probe()
            facts = self.context.facts
            if self.options.method == "auto":
                chosen, why = registry.choose(self.context, facts)
                self.why = why
            else:
                chosen = registry.find(self.options.method)
                self.why = "asked for"
            registry.refuse_unless_fit(chosen, facts)
            self.method = chosen
            return chosen.prepare(self.context)

    def _probe(self) -> None:
        """Try the declared constants of users' own objectives; warns where they do not hold."""
        spent = check_problem(self.problem, self.seed)
        rows = np.full((len(self.problem.agents), 1), float(spent))
        everybody = self.runtime.gather(rows, riding=True)  # with the other declarations
        self.runtime.ledger.charge(gradients=int(everybody.max()))

    def plan(self, prepared: Prepared) -> Plan:
        averaging = self.runtime.averaging
        return Plan(
            self.method.name, prepared.realization, f"{self.why}: {prepared.why}",
            averaging.name, averaging.rounds, prepared.iteration.cost,
            self.runtime.ledger.of("setup"), prepared.predicted, prepared.settings,
            prepared.candidates,
        )  # fmt: skip

    # -- running -----------------------------------------------------------------------------------
    def solve(
        self, max_iterations: int | None, max_seconds: float | None,
        checkpoint: str | Path | Mapping[str, Any] | None,
        callback: Callable[[int, State], object] | None, progress: bool | None,
    ) -> Result:  # fmt: skip
        ledger = self.runtime.ledger
        with ledger.phase("setup"):
            recovery = (
                Recovery(self.problem, self.runtime, self.context.coupling)
                if self.stack is None
                else None
            )
            conflict = Conflicts(recovery).own() if recovery is not None else None
        if conflict is not None:
            return infeasible_result(self.problem, self.runtime, conflict, self.seed)
        prepared = self.prepare()
        plan = self.plan(prepared)
        limit = max_iterations or prepared.horizon or DEFAULT_ITERATIONS
        trace = Trace()
        while True:
            observer = self._observer(prepared)
            x0, z0 = (
                self.context.x0,
                np.broadcast_to(self.context.z0, (len(self.problem.agents), self.problem.q)),
            )
            prices = None if self.warm is None or recovery is None else self.warm.multipliers
            dual = None if prices is None or recovery is None else recovery.dual_vector(prices)
            state = prepared.iteration.start(x0, z0, dual)
            if prices is not None and "price" in state.rows:
                # The coupled multiplier that goes with the dual vector.
                known = state.rows["price"]
                known[...] = prices.coupled[: known.shape[1]]
            if observer is not None:
                observer.begin(*prepared.iteration.point(state))
            saver = Checkpoints.of(
                checkpoint, self.problem, self.runtime, prepared.iteration, prepared.stopping, trace
            )
            first = 0
            if saver is not None:
                first, state = saver.resume(state)
            with reporter(
                progress, self.runtime.is_root, self.method.name, prepared.predicted
            ) as report:
                outcome = drive(
                    prepared.iteration, state,
                    Settings(
                        limit, max_seconds, prepared.stopping, observer,
                        energy=_energy(prepared, observer), callback=callback, report=report,
                        saver=saver, first=first, trace=trace,
                    ),
                )  # fmt: skip
            if saver is not None and outcome.status in ("interrupted", "max_iterations"):
                saver.save(outcome.iterations, outcome.state)
            if outcome.status != "diverged" or prepared.widen is None:
                break
            self.warnings.append(
                f"the iterates grew at iteration {outcome.iterations}: the spectral interval was "
                "too narrow; widened, started again"
            )
            with ledger.phase("setup"):
                prepared = prepared.widen()
            plan = self.plan(prepared)
        return finish(
            self.problem, prepared, outcome, plan, trace, recovery, self.warnings, self.seed
        )


def _energy(prepared: Prepared, observer: Observer | None) -> Energy | None:
    """The energy along the run, when the whole solution is known."""
    if observer is None or observer.z is None:
        return None
    return Energy.of(prepared.iteration, observer.x, observer.z)


def make_runtime(options: Options, network: Network) -> Runtime:
    """An in-process runtime, an MPI runtime by name, or the one given."""
    runtime = options.runtime
    if isinstance(runtime, Runtime):
        if runtime.network.n != network.n:
            raise InputError("runtime: was built for another network")
        if options.averaging not in ("auto", runtime.averaging.name):
            raise InputError(
                f"averaging = {options.averaging!r}: the runtime given has {runtime.averaging.name}"
            )
        return runtime
    if runtime not in (None, "inprocess", "mpi"):
        raise InputError(f"runtime {runtime!r} is unknown; take 'inprocess' or 'mpi'")
    scheme = by_name(network, options.averaging)
    if runtime == "mpi":
        from ccmac.runtime.mpi import Mpi

        return Mpi(network, averaging=scheme)
    return InProcess(network, fused=options.fused, averaging=scheme)


def _owned_part(problem: Problem, runtime: Runtime) -> Problem:
    """The agents of this process; which block families exist anywhere is agreed upon."""
    owned = runtime.owned
    if not set(owned) <= set(problem.agents):
        raise InputError(
            f"problem: this process needs agents {owned.start}..{owned.stop - 1} but "
            f"holds {sorted(problem.agents)}"
        )
    rows = np.array([[float(k in problem.present) for k in "ABCD"]] * len(owned))
    with runtime.ledger.phase("setup"):
        # Travels with the agents' other declarations.
        seen = np.atleast_1d(runtime.gather(rows, riding=True).any(axis=0))
    if problem.complete:
        return problem if len(owned) == problem.n else problem.restricted(owned)
    held = {i: problem.agents[i] for i in owned}
    present = [k for k, there in zip("ABCD", seen, strict=True) if there]
    return Problem(held, n=problem.n, q=problem.q, m=problem.m, present=present)


def _as_problem(problem: Problem | Stack) -> Problem:
    """A Stack is one agent without blocks; its channels are realized apart."""
    if isinstance(problem, Stack):
        return stack_problem(problem)
    if not isinstance(problem, Problem):
        raise InputError(
            f"problem: expected a ccmac.Problem or Stack, got {type(problem).__name__}"
        )
    return problem
