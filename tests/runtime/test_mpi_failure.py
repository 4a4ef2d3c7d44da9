"""A failing rank ends the job: soon, with one line that names it, and never with a zero code."""

from __future__ import annotations

import os
import re
import signal
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from launcher import Launcher

LIMIT = 30.0  # seconds within which a job must end

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize(
    ("how", "ranks", "code", "line"),
    [
        ("nan", 2, 1, r"rank 1 \(agents 4-7\): agent 4: gradient is not finite at iteration 10"),
        ("everywhere", 2, 2, r"rank 0 \(agents 0-3\): method 'magic' is unknown; see .*"),
        ("silent", 2, 1, r"rank 0 \(agents 0-3\): no message from rank 1 beyond the time .*"),
        ("many", 3, 2, r"rank 0: runtime: 3 processes for 2 agents .* start at most 2 .*"),
        ("network", 3, 2, r"rank 0: rank 2: problem files, network, .* differ .* all 3 ranks .*"),
        ("token", 2, 2, r"rank 0 \(agents 0-3\): rank 1: problem files, .* differ .*"),
    ],
)
def test_an_error_ends_the_job(mpi: Launcher, how: str, ranks: int, code: int, line: str) -> None:
    job = mpi.run(ranks, "failing.py", how, timeout=LIMIT)
    said = [text for text in job.stderr.splitlines() if text.startswith("ccmac:")]
    assert len(said) == 1, job.stderr
    assert re.fullmatch("ccmac: " + line, said[0])
    assert job.returncode == code
    assert "Traceback" not in job.stderr


@pytest.mark.parametrize(("ranks", "victim"), [(2, 0), (3, 2)])
def test_a_killed_rank_ends_the_job(mpi: Launcher, ranks: int, victim: int) -> None:
    job = mpi.start(ranks, str(mpi.programs / "failing.py"), "never")
    assert job.stdout is not None
    pids = [int(pid) for pid in job.stdout.readline().split()]
    time.sleep(0.05 * victim)  # another moment of the iteration each time
    os.kill(pids[victim], signal.SIGKILL)
    begun = time.monotonic()
    ended = mpi.finish(job, LIMIT)
    assert ended.returncode != 0
    # Open MPI's launcher ends a moment before the last of its ranks.
    while any(map(alive, pids)) and time.monotonic() - begun < LIMIT:
        time.sleep(0.02)
    assert not any(map(alive, pids))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
