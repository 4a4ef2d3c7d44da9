"""The view of a running suite: a table with an estimate on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ccmac.lab.experiments.pool import Outcome, Worker
from ccmac.lab.experiments.runs import SuiteRun
from ccmac.lab.experiments.suite import Suite

RECENT = 6


class Display:
    """Follows a suite; tells how long it will still take."""

    def __init__(self, stream: IO[str]) -> None:
        self.console = Console(file=stream, highlight=False)
        self.live: Live | None = None

    @contextmanager
    def running(
        self, suite: Suite, skipped: int, tasks: Sequence[Sequence[SuiteRun]], jobs: int
    ) -> Iterator[None]:
        """Show the suite while the block runs."""
        self.suite, self.skipped, self.jobs = suite, skipped, jobs
        self.waiting = list(tasks)
        self.statuses: Counter[str] = Counter()
        self.recent: deque[tuple[str, str, float]] = deque(maxlen=RECENT)
        self.spent: dict[str, list[float]] = defaultdict(list)
        self.begun = time.monotonic()
        if self.console.is_terminal:
            with Live(console=self.console, refresh_per_second=4) as self.live:
                yield
        else:
            self.console.print(
                f"{suite.name} ({suite.profile}): {sum(map(len, tasks))} runs to do, "
                f"{skipped} done before"
            )
            yield
        self.live = None

    def tick(self, workers: list[Worker]) -> None:
        """Called about twice a second."""
        if self.live is not None:
            self.live.update(self._view(workers))

    def done(self, task: Sequence[SuiteRun], outcome: Outcome) -> None:
        """A task ended."""
        self.waiting.remove(task)
        total = sum(seconds for _, _, seconds in outcome)
        self.spent[_kind(task[0])].append(total)
        for name, status, seconds in outcome:
            self.statuses[status] += 1
            self.recent.append((name, status, seconds))
            if self.live is None:
                done = self.skipped + sum(self.statuses.values())
                self.console.print(
                    f"[{done}/{len(self.suite.runs)}] {name} {status} {seconds:.1f} s"
                    f", {clock(self.remaining())} left",
                    markup=False, soft_wrap=True,
                )  # fmt: skip

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

    def _view(self, workers: list[Worker]) -> Group:
        total, done = len(self.suite.runs), self.skipped + sum(self.statuses.values())
        failed = sum(count for status, count in self.statuses.items() if status != "optimal")
        head = Text.assemble(
            (f"{self.suite.name} ", "bold"), f"({self.suite.profile})  {done}/{total} runs  ",
            (f"{failed} missed  " if failed else "", "red"),
            f"{clock(time.monotonic() - self.begun)} elapsed, {clock(self.remaining())} left",
        )  # fmt: skip
        table = Table(box=None, pad_edge=False, expand=True)
        table.add_column("run", overflow="ellipsis", no_wrap=True, ratio=1)
        table.add_column("status", no_wrap=True)
        table.add_column("time", justify="right", no_wrap=True)
        for name, status, seconds in self.recent:
            colour = "green" if status == "optimal" else "red"
            table.add_row(name, Text(status, colour), f"{seconds:.1f} s")
        now = time.monotonic()
        for worker in workers:
            if worker.task:
                extra = f" (+{len(worker.task) - 1} graphs)" if len(worker.task) > 1 else ""
                table.add_row(
                    worker.task[0].id + extra, Text("running", "cyan"), clock(now - worker.since)
                )
        return Group(head, ProgressBar(total=total, completed=done), table)


def clock(seconds: float) -> str:
    """``1:02:03`` or ``2:03``; ``?`` when unknown."""
    if math.isnan(seconds):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _kind(run: SuiteRun) -> str:
    return f"{run.data} {run.agents} {run.label}"
