"""The only loop: steps, checks, limits, observation, interruption, checkpoints, progress."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

from ccmac.certificates.stopping import Check, Evidence, Stopping, over
from ccmac.errors import GradientError, InputError
from ccmac.inputs import Array, as_array, real_vector
from ccmac.ledger import Ledger, Trace
from ccmac.methods.base import Iteration, State
from ccmac.results import Solution
from ccmac.runtime.base import Piggyback
from ccmac.runtime.notes import never
from ccmac.runtime.space import piece_sums, row_dots
from ccmac.workspace import Workspace

Report = Callable[[int, float, float, Ledger], None]  # iteration, bound, RelErr, bill
HEALTH_EVERY = 10
NOTHING = 1e-12


class Observer:
    """RelErr = ||u - u*||^2 / ||u0 - u*||^2 to a known reference; an observation, never charged.

    ``z`` None compares the local variables only (vertical federated weights).
    """

    def __init__(self, iteration: Iteration[Any], x: Array, z: Array | None, tol: float) -> None:
        self.space = iteration.space
        self.x = x
        self.z = z
        self.tol = tol
        self.start = 1.0

    def begin(self, x: Array, z: Array) -> None:
        """Fix the denominator at the starting point."""
        self.start = max(self._square(x, z), 1e-300)

    def error(self, x: Array, z: Array) -> float:
        """RelErr now."""
        return self._square(x, z) / self.start

    def _square(self, x: Array, z: Array) -> float:
        runtime = self.space.runtime
        space = self.space
        gap = x - self.x
        with runtime.ledger.observing():
            square, total = runtime.send([piece_sums(gap**2, space.d)[:, None], z])
            off = np.zeros(0) if self.z is None else total[0] / runtime.n - self.z
            return float(square[0, 0]) + float(runtime.common(off @ off))


def positions(work: Workspace, solution: Solution) -> list[int]:
    """Where the owned agents sit in a solution that may hold all or just these."""
    owned = work.runtime.owned
    if not isinstance(solution.x, Sized):
        raise InputError("solution: x is no list; give the local variables, one per agent")
    if len(solution.x) == work.problem.n:
        return list(owned)
    if len(solution.x) == len(owned):
        return list(range(len(owned)))
    raise InputError(
        f"solution: has {len(solution.x)} local variables; give {work.problem.n}, one per agent"
    )


def observer_of(
    work: Workspace, iteration: Iteration[Any], reference: Any, tol: float
) -> Observer | None:
    """Compares with the reference, whatever form it was given in."""
    if reference is None:
        return None
    d = sum(work.problem.d.values())
    q = work.problem.q
    if hasattr(reference, "x"):
        blocks = [real_vector("reference, x", reference.x[k]) for k in positions(work, reference)]
        z = real_vector("reference, z", reference.z)
        return Observer(iteration, np.concatenate(blocks), z, tol)
    mine = work.whole.reference_blocks(reference)
    if mine is not None:
        owned = [mine[i] for i in work.runtime.owned]
        return Observer(iteration, np.concatenate(owned), None, tol)
    array = real_vector("reference", np.ravel(as_array("reference", reference)))
    if len(array) == d and work.problem.complete:
        return Observer(iteration, array, None, tol)
    if len(array) == d + q and work.problem.complete:
        return Observer(iteration, array[:d], array[d:], tol)
    raise InputError(
        f"reference: has {len(array)} entries; give the {d} local variables, those and z "
        f"({d + q}), or a Solution"
    )


@dataclass
class Outcome:
    """How a run ended."""

    status: str
    state: State
    iterations: int
    check: Check | None = None
    looked: bool = False  # whether the check is a last look at the state
    relative_error: float = math.nan
    seconds: float = 0.0

    @property
    def proved(self) -> float:
        """The bound at the end; infinite where there is none."""
        bound = math.nan if self.check is None else self.check.bound
        return math.inf if math.isnan(bound) else bound


@dataclass
class Settings:
    """What the loop obeys."""

    max_iterations: int
    max_seconds: float | None = None
    stopping: Stopping | None = None
    observer: Observer | None = None
    callback: Callable[[int, Any], object] | None = None
    report: Report | None = None
    saver: Any = None  # writes checkpoints when they are due
    first: int = 0
    begun: float | None = None  # time.perf_counter() of the call; None: now
    trace: Trace = field(default_factory=Trace)


def drive(iteration: Iteration[Any], state: State, settings: Settings) -> Outcome:
    """Run until a goal, a limit, an interruption or a blow-up ends it."""
    runtime = iteration.space.runtime
    ledger = iteration.space.runtime.ledger
    runtime.notes.stop = False
    begun = time.perf_counter() if settings.begun is None else settings.begun
    health = _Health(iteration, timed=settings.max_seconds is not None)
    relative_error = math.nan
    check = None
    status = "max_iterations"
    count = settings.first
    if count and settings.saver is not None:  # as the run that saved this state had gone on
        health.ask(state, count)
        status = "finished" if iteration.finished(state) else status

    with _interruptible() as interrupted:
        runtime.notes.asked = interrupted.is_set
        while count < settings.max_iterations and status != "finished":
            count += 1
            try:
                state = iteration.step(state).agreed(runtime)
            except GradientError as error:
                raise GradientError(f"{error} (iteration {count})") from None
            if health.failed():
                status = "diverged"
                break
            bound = math.nan
            if settings.observer is not None:
                relative_error = settings.observer.error(*iteration.point(state))
            if settings.stopping is not None and settings.stopping.due(count):
                # Of iterates that blow up nothing is proved; _Health notices them.
                with ledger.phase("monitor"), np.errstate(over="ignore", invalid="ignore"):
                    check = settings.stopping.check(iteration, state, count).agreed(runtime)
                bound = check.bound
            seconds = time.perf_counter() - begun
            settings.trace.record(count, seconds, ledger, relative_error, bound)
            if settings.report is not None:
                settings.report(count, bound, relative_error, ledger)
            if settings.observer is not None:
                ratio = over(relative_error, settings.observer.tol)
                check = Check(math.nan, Evidence("reference", ratio, "reference"))
            if check is not None and check.done:
                status = "done"
                break
            health.ask(state, count)
            if settings.saver is not None and settings.saver.due(count):
                settings.saver.save(count, state)
            if settings.callback is not None and settings.callback(count, state.copied()) is True:
                status = "interrupted"
                break
            # All must leave together: what others want arrived with the last averaging.
            if interrupted.is_set() if runtime.alone else runtime.notes.stop:
                status = "interrupted"
                break
            elapsed = time.perf_counter() - begun
            late = settings.max_seconds is not None and elapsed > settings.max_seconds
            if late if runtime.alone else runtime.notes.late:
                break
            if iteration.finished(state):
                status = "finished"
                break
    runtime.notes.asked = never
    seconds = time.perf_counter() - begun
    return Outcome(status, state, count, check, False, relative_error, seconds)


class _Health:
    """Notices iterates that blow up: non-finite, or far beyond anything seen at first.

    Their size travels with the averagings of the step that follows. A method that only mixes rows
    with neighbors takes an averaging of its own for it, after 10, 20, 40, ... iterations; where a
    time limit has to be agreed on, every so many that these are a tenth of its rounds at most.
    """

    def __init__(self, iteration: Iteration[Any], *, timed: bool) -> None:
        self.iteration = iteration
        self.timed = timed
        self.reference = math.inf
        self._asked: tuple[int, Piggyback] | None = None
        self._turn = HEALTH_EVERY
        runtime = iteration.space.runtime
        step = iteration.cost
        self._mixes = step["rounds"] > 0 and not step["averagings"]
        if self._mixes:
            self._turn *= math.ceil(runtime.averaging.rounds / step["rounds"])

    def failed(self) -> bool:
        """Whether what was asked before the last step shows a blow-up."""
        asked = self._asked
        self._asked = None
        return asked is not None and self._judge(*asked)

    def ask(self, state: State, count: int) -> None:
        """Now and then: how large the iterate is, with the next message."""
        if not self._due(count):
            return
        x, z = self.iteration.point(state)
        space = self.iteration.space
        with space.runtime.ledger.phase("monitor"), np.errstate(all="ignore"):
            squares = piece_sums(x**2, space.d) + row_dots(z, z)
            self._asked = count, space.runtime.piggyback(squares[:, None])

    def _due(self, count: int) -> bool:
        if count in (1, HEALTH_EVERY):
            return True
        if self._mixes and not self.timed:
            turns, rest = divmod(count, HEALTH_EVERY)
            return not rest and turns.bit_count() == 1
        return count % self._turn == 0

    def _judge(self, count: int, squares: Piggyback) -> bool:
        size = float(squares.value[0])
        if not math.isfinite(size):
            return True
        if count == 1:
            self.reference = max(size, NOTHING)
            return False
        if count <= HEALTH_EVERY or self.reference <= NOTHING:
            self.reference = max(self.reference, size)  # a start at zero says nothing
            return False
        return size > 1e8 * self.reference and not self.iteration.far


@contextmanager
def reporter(
    wanted: bool | None, root: bool, name: str, predicted: float | None
) -> Iterator[Report | None]:
    """Yield a report function (None when silent). ``wanted`` None: only in a terminal."""
    show = sys.stderr.isatty() if wanted is None else wanted
    if not (show and root):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.completed:.0f} it  {task.fields[error]}  {task.fields[rounds]} rounds"),
        TimeElapsedColumn(),
    )
    total = predicted if predicted is not None and math.isfinite(predicted) else None
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=total, error="", rounds=0)

        def report(count: int, bound: float, relative: float, ledger: Ledger) -> None:
            fields: dict[str, object] = {"rounds": f"{ledger['rounds']:,}"}
            if math.isfinite(bound):
                fields["error"] = f"bound {bound:.1e}"
            elif math.isfinite(relative):
                fields["error"] = f"error {relative:.1e}"
            bar.update(task, completed=count, **fields)  # type: ignore[arg-type]

        yield report


def watched(
    runtime: Any, report: Report | None, method: str, predicted: float | None, first: int
) -> Report | None:
    """Tells whoever watches the runtime as well."""
    watch = runtime.watch
    if watch is None:
        return report
    watch({"phase": "solve", "method": method, "expected": predicted, "resumed": first})

    def both(count: int, bound: float, relative: float, ledger: Ledger) -> None:
        if report is not None:
            report(count, bound, relative, ledger)
        bill = {name: ledger[name] for name in ("rounds", "bytes")}
        watch({"iteration": count, "bound": bound, **bill})

    return both


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Ctrl-C asks the loop to stop after the current step; a second one stops at once.

    So does SIGTERM where its handler can be informed (``note``), as that of the command line.
    """
    flag = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return

    term = signal.getsignal(signal.SIGTERM)
    note = getattr(term, "note", None)

    def handler(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTERM and note is not None:
            note()
        if flag.is_set():
            raise KeyboardInterrupt
        flag.set()

    before = signal.signal(signal.SIGINT, handler)
    if note is not None:
        signal.signal(signal.SIGTERM, handler)
    try:
        yield flag
    finally:
        signal.signal(signal.SIGINT, before)
        if note is not None:
            signal.signal(signal.SIGTERM, term)
