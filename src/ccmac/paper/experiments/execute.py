"""Running a suite: what is left to do, in parallel; interruptible, resumable.

While it runs: a line a run, with an estimate of the time left.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from ccmac.errors import InputError
from ccmac.paper.experiments.pool import Outcome, Pool
from ccmac.paper.experiments.records import clean, pending, read_suite, write_record, write_suite
from ccmac.paper.experiments.runs import SuiteRun
from ccmac.paper.experiments.suite import Suite
from ccmac.paper.experiments.task import machine
from ccmac.storage.files import fresh, locked


@dataclass
class Tally:
    """What one call of :func:`run_suite` did."""

    skipped: int = 0
    statuses: dict[str, str] = field(default_factory=dict)

    @property
    def missed(self) -> list[str]:
        """Runs of this call that did not reach their target."""
        return [name for name, status in self.statuses.items() if status != "optimal"]


def run_suite(
    suite: Suite,
    folder: Path,
    *,
    jobs: int = 1,
    resume: bool = False,
    only: str = "",
    plugins: Sequence[str] = (),
    display: Display | None = None,
) -> Tally:
    """Execute the runs of a suite that have no finished record in ``folder``.

    A failing run is recorded and does not stop the others. ``resume`` is needed to continue in a
    directory that already belongs to the suite. ``only`` takes the runs whose name contains it.
    """
    if jobs < 1:
        raise InputError(f"jobs = {jobs} must be at least 1")
    _check(suite, folder, resume)
    busy = f"{folder} is in use by another runner; wait for it"
    with fresh(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / ".lock", busy):
            left = pending(folder, suite)
            todo = [run for run in left if only in run.id]
            clean(folder)
            write_suite(folder, suite, plugins)
            tally = Tally(skipped=len(suite.runs) - len(left))
            show = display or Display(sys.stderr)
            tasks = grouped(todo)
            show.begin(suite, tally.skipped, tasks, jobs)
            for task, reported in Pool(jobs, folder, plugins).map(tasks):
                outcome = _lost(task, folder) if reported is None else reported
                for name, status, _ in outcome:
                    tally.statuses[name] = status
                show.done(task, outcome)
            return tally


def grouped(runs: Sequence[SuiteRun]) -> list[list[SuiteRun]]:
    """Runs that share their iterates, together; in the order of first appearance."""
    groups: dict[str, list[SuiteRun]] = {}
    for run in runs:
        groups.setdefault(run.solve_key, []).append(run)
    return list(groups.values())


def _lost(task: Sequence[SuiteRun], folder: Path) -> list[tuple[str, str, float]]:
    """Record runs whose worker vanished."""
    message = "the worker process was killed (out of memory?); resume with fewer jobs"
    for run in task:
        write_record(
            folder, run, {"status": "failed", "message": message, "provenance": machine()}, ""
        )
    return [(run.id, "failed", 0.0) for run in task]


def _check(suite: Suite, folder: Path, resume: bool) -> None:
    if not (folder / "suite.json").exists():
        if (folder / "runs").exists() and not resume:
            raise InputError(f"{folder} already holds runs; choose another --out")
        return
    if not resume:
        raise InputError(f"{folder} already holds a suite; add --resume, or choose another --out")
    there = read_suite(folder)
    if (there.name, there.profile) != (suite.name, suite.profile):
        raise InputError(
            f"{folder} belongs to the suite {there.name} ({there.profile}); choose another --out"
        )


class Display:
    """Follows a suite, a line a run; tells how long it will still take."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def begin(
        self, suite: Suite, skipped: int, tasks: Sequence[Sequence[SuiteRun]], jobs: int
    ) -> None:
        """Before the first task."""
        self.total = len(suite.runs)
        self.count = skipped
        self.jobs = jobs
        self.waiting = list(tasks)
        self.spent: dict[str, list[float]] = defaultdict(list)
        print(
            f"{suite.name} ({suite.profile}): {sum(map(len, tasks))} runs to do, "
            f"{skipped} done before",
            file=self.stream,
        )

    def done(self, task: Sequence[SuiteRun], outcome: Outcome) -> None:
        """A task ended."""
        self.waiting.remove(task)
        self.spent[_kind(task[0])].append(sum(seconds for _, _, seconds in outcome))
        for name, status, seconds in outcome:
            self.count += 1
            left = clock(self.remaining())
            line = f"[{self.count}/{self.total}] {name} {status} {seconds:.1f} s, {left} left"
            print(line, file=self.stream, flush=True)

    def remaining(self) -> float:
        """Seconds left, from the mean time of tasks of the same kind (of all, if none ended)."""
        everything = [t for times in self.spent.values() for t in times]
        if not everything:
            return float("nan")
        mean = sum(everything) / len(everything)
        total = 0.0
        for task in self.waiting:
            times = self.spent.get(_kind(task[0]))
            total += sum(times) / len(times) if times else mean
        return total / self.jobs


def clock(seconds: float) -> str:
    """``1:02:03`` or ``2:03``; ``?`` when unknown."""
    if math.isnan(seconds):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _kind(run: SuiteRun) -> str:
    return f"{run.data} {run.agents} {run.label}"
