"""Running a suite: what is left to do, in parallel; interruptible, resumable.

While it runs: a line a run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from ccmac.errors import InputError
from ccmac.paper.experiments.pool import Pool
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
    stream: IO[str] | None = None,
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
            said = stream or sys.stderr
            head = f"{suite.name} ({suite.profile}): {len(todo)} runs to do"
            print(f"{head}, {tally.skipped} done before", file=said)
            for task, reported in Pool(jobs, folder, plugins).map(grouped(todo)):
                for name, status, seconds in reported or _lost(task, folder):
                    tally.statuses[name] = status
                    count = f"[{tally.skipped + len(tally.statuses)}/{len(suite.runs)}]"
                    print(f"{count} {name} {status} {seconds:.1f} s", file=said, flush=True)
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
