"""Running a suite: what is left to do, in parallel, with a live view; interruptible, resumable."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ccmac.errors import InputError
from ccmac.lab.experiments.live import Display
from ccmac.lab.experiments.pool import Pool
from ccmac.lab.experiments.records import clean, pending, read_suite, write_record, write_suite
from ccmac.lab.experiments.runs import SuiteRun
from ccmac.lab.experiments.suite import Suite
from ccmac.lab.experiments.task import machine


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
    suite: Suite, folder: Path, *, jobs: int = 1, resume: bool = False,
    only: str = "", plugins: Sequence[str] = (), display: Display | None = None,
) -> Tally:  # fmt: skip
    """Execute the runs of a suite that have no finished record in ``folder``.

    A failing run is recorded and does not stop the others. ``resume`` is needed to continue in a
    directory that already belongs to the suite. ``only`` takes the runs whose name contains it.
    """
    if jobs < 1:
        raise InputError(f"jobs = {jobs} must be at least 1")
    _check(suite, folder, resume)
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        clean(folder)
        write_suite(folder, suite)
        left = pending(folder, suite)
        todo = [run for run in left if only in run.id]
        tally = Tally(skipped=len(suite.runs) - len(left))
        show = display or Display(sys.stderr)
        tasks = grouped(todo)
        with show.running(suite, tally.skipped, tasks, jobs):
            for task, reported in Pool(jobs, folder, plugins).map(tasks, show.tick):
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


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One runner per directory; the system releases the lock of a killed one."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with (folder / ".lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"{folder} is in use by another runner; wait for it") from None
        yield
