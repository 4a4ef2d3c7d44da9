"""Whole solves under MPI: the bits, the iteration counts and the ledgers of one process."""

from __future__ import annotations

import json
import os
import random
import runpy
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from launcher import Launcher

pytestmark = pytest.mark.mpi
PROGRAM = Path(__file__).parent / "programs" / "solve_bits.py"
RANKS = [int(k) for k in os.environ.get("CCMAC_RANKS", "2").split(",")]
KILLS = int(os.environ.get("CCMAC_MPI_KILLS", "1"))


def merged(folder: Path) -> dict[str, Any]:
    """One record of all agents; the parts must agree on everything else."""
    parts = [json.loads(path.read_text()) for path in sorted(folder.glob("part-*.json"))]
    whole = dict(parts[0])
    whole["x"] = {}
    for part in parts:
        assert part["iterations"] == whole["iterations"]
        assert part["ledger"] == whole["ledger"]
        whole["x"] |= part["x"]
    return whole


def alone(case: str, network: str, folder: Path, how: str = "fused") -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(PROGRAM), case, network, how, str(folder)])
        runpy.run_path(str(PROGRAM), run_name="__main__")
    return merged(folder)


@pytest.mark.parametrize("ranks", RANKS)
def test_every_case_has_the_bits_and_ledgers_of_one_process(mpi: Launcher, ranks: int) -> None:
    """All methods and realizations on ring, grid or random graph, inequalities, bounds and cones.

    CCMAC_RANKS=1,2,3 for more.
    """
    job = mpi.run(ranks, "every_case.py", timeout=600)
    assert job.returncode == 0, job.stderr
    assert job.stdout.strip() == "equal 33, different []"


def test_certified_multiplied_out_is_the_same_up_to_rounding(tmp_path: Path) -> None:
    fused, executed = (
        alone("certified", "ring", tmp_path / how, how) for how in ("fused", "executed")
    )
    assert fused["ledger"] == executed["ledger"]
    x, y = (
        np.frombuffer(b"".join(bytes.fromhex(record["x"][str(i)]) for i in range(8)))
        for record in (fused, executed)
    )
    assert np.linalg.norm(x - y) <= 1e-12 * np.linalg.norm(y)


def test_a_killed_job_continues_to_the_same_bits(mpi: Launcher, tmp_path: Path) -> None:
    """kill -9 of a random rank at random moments, then a restart on another number of ranks.

    CCMAC_MPI_KILLS=20 asks for more of them.
    """
    expected = alone("long", "ring", tmp_path / "alone")
    rng = random.Random(5)
    for attempt in range(KILLS):
        ranks = 2 + attempt % 2
        place = tmp_path / f"state-{attempt}"
        parts = tmp_path / f"parts-{attempt}"
        parts.mkdir()
        arguments = ("long", "ring", "mpi", str(parts), str(place))
        job = mpi.start(ranks, str(PROGRAM), *arguments)
        while not list(place.glob("state-*.npz")) and job.poll() is None:
            time.sleep(0.02)
        time.sleep(rng.uniform(0.0, 0.5))
        victims = children(job.pid)
        if victims and job.poll() is None:
            os.kill(rng.choice(victims), signal.SIGKILL)
            ended = mpi.finish(job, timeout=30)
            assert ended.returncode != 0
        resumed = mpi.run(5 - ranks, "solve_bits.py", *arguments, timeout=120)
        assert resumed.returncode == 0, resumed.stderr
        assert merged(parts)["x"] == expected["x"]
        assert merged(parts)["iterations"] == expected["iterations"]
        assert merged(parts)["ledger"] == expected["ledger"]
        assert merged(parts)["trace"] == expected["trace"]


def children(pid: int) -> list[int]:
    """The ranks below the launcher: python processes of this job."""
    found = []
    queue = [pid]
    while queue:
        current = queue.pop()
        path = Path(f"/proc/{current}/task/{current}/children")
        below = [int(k) for k in path.read_text().split()] if path.exists() else []
        queue += below
        for child in below:
            command = Path(f"/proc/{child}/cmdline")
            if command.exists() and b"solve_bits" in command.read_bytes():
                name = Path(f"/proc/{child}/comm").read_text()
                if "python" in name:
                    found.append(child)
    return found
