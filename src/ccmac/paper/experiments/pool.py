"""Worker processes for tasks: forked off a process that has imported everything once (spawned where
the system cannot), one thread each, ending with their parent.

A worker that dies (killed, out of memory) is replaced; its task is reported as lost. When the
parent is killed the workers notice and end, so that a resumed suite meets no stray writer.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from ccmac.errors import CcmacError
from ccmac.paper.experiments.runs import SuiteRun

Outcome = list[tuple[str, str, float]]
WAY = "forkserver" if "forkserver" in mp.get_all_start_methods() else "spawn"


@dataclass
class Worker:
    """A process, the way to it, and what it is doing."""

    process: BaseProcess
    pipe: Connection
    task: Sequence[SuiteRun] | None = None


class Pool:
    """``jobs`` workers that take lists of runs and write their records to ``folder``."""

    def __init__(self, jobs: int, folder: Path, plugins: Sequence[str] = ()) -> None:
        self.folder, self.plugins = folder, tuple(plugins)
        self.jobs = jobs
        self.workers: list[Worker] = []

    def map(
        self, tasks: Sequence[Sequence[SuiteRun]]
    ) -> Iterator[tuple[Sequence[SuiteRun], Outcome | None]]:
        """Yield (task, outcome) as tasks end; the outcome of a lost task is None."""
        waiting = list(reversed(tasks))
        try:
            while waiting or any(w.task is not None for w in self.workers):
                while len(self.workers) < min(self.jobs, self._busy() + len(waiting)):
                    self.workers.append(self._start())
                for worker in self.workers:
                    if worker.task is None and waiting:
                        worker.task = waiting.pop()
                        worker.pipe.send(worker.task)
                yield from self._collect()
        finally:
            self.close()

    def _busy(self) -> int:
        return sum(worker.task is not None for worker in self.workers)

    def _collect(self) -> Iterator[tuple[Sequence[SuiteRun], Outcome | None]]:
        ready = set(wait([w.pipe for w in self.workers if w.task is not None], timeout=0.5))
        for worker in [w for w in self.workers if w.pipe in ready]:
            task = worker.task
            assert task is not None
            try:
                outcome: Outcome | None = worker.pipe.recv()
            except (EOFError, OSError):
                outcome = None
                worker.process.join()
                self.workers.remove(worker)
            worker.task = None
            yield task, outcome

    def _start(self) -> Worker:
        context: Any = mp.get_context(WAY)
        context.set_forkserver_preload(["ccmac.paper.experiments.task"])
        here, there = context.Pipe()
        process = context.Process(
            target=_work, args=(there, str(self.folder), self.plugins), daemon=True
        )
        process.start()
        there.close()
        return Worker(process, here)

    def close(self) -> None:
        """End all workers, whatever they do."""
        for worker in self.workers:
            worker.process.terminate()
        for worker in self.workers:
            worker.process.join(5)
            if worker.process.is_alive():
                worker.process.kill()
            worker.pipe.close()
        self.workers.clear()


def _work(pipe: Connection, folder: str, plugins: tuple[str, ...]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    warnings.filterwarnings("ignore", category=RuntimeWarning)  # as the command itself does
    from threadpoolctl import threadpool_limits

    from ccmac.paper.experiments.plugins import load_plugins
    from ccmac.paper.experiments.task import execute

    load_plugins(plugins)
    with threadpool_limits(1):
        while True:
            try:
                task = pipe.recv()
                pipe.send(execute(task, Path(folder)))
            except (EOFError, OSError, CcmacError, KeyboardInterrupt):
                return


def _end_with_parent() -> None:
    parent = mp.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
