"""``mpiexec -n P ccmac solve --runtime mpi``: the same numbers, files by owner or gathered."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import ccmac
from cli.conftest import Run
from launcher import Launcher

pytestmark = pytest.mark.mpi
PROGRAM = "from ccmac.cli.main import run; run()"


def launch(mpiexec: str, ranks: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [mpiexec, "-n", str(ranks), sys.executable, "-c", PROGRAM, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_ranks_agree_with_one_process_bit_for_bit(
    run: Run, saved: Path, tmp_path: Path, mpiexec: str
) -> None:
    common = ("solve", saved / "dispatch", "--network", "ring", "--json")
    alone = json.loads(run(*common, "--out", "alone").out)
    mpi = (*common, "--runtime", "mpi", "--out")
    parted = launch(mpiexec, 2, *mpi, tmp_path / "parts", "--audit")
    assert parted.returncode == 0, parted.stderr
    assert "relay" in parted.stderr
    names = sorted(p.name for p in (tmp_path / "parts").glob("*.npz"))
    assert names == ["solution-0000-0002.npz", "solution-0003-0005.npz"]
    parts = ccmac.Result.load(tmp_path / "parts")
    # What another number of ranks gathers replaces the parts.
    gathered = launch(mpiexec, 3, *mpi, tmp_path / "parts", "--gather")
    assert gathered.returncode == 0, gathered.stderr
    assert [p.name for p in (tmp_path / "parts").glob("*.npz")] == ["solution.npz"]
    for told in (parted, gathered):
        assert json.loads(told.stdout)["ledger"] == alone["ledger"]
    expected = ccmac.Result.load(tmp_path / "alone")
    for each in (parts, ccmac.Result.load(tmp_path / "parts")):
        assert np.array_equal(each.z, expected.z)
        assert all(np.array_equal(a, b) for a, b in zip(each.x, expected.x, strict=True))


def test_bad_input_on_ranks_is_one_line(saved: Path, mpiexec: str) -> None:
    told = launch(mpiexec, 2, "solve", saved / "nowhere", "--runtime", "mpi")
    assert told.returncode == 2
    assert "problem.yaml: not found" in told.stderr
    assert "Traceback" not in told.stderr


def test_processes_that_do_not_know_of_each_other_are_refused(saved: Path, mpiexec: str) -> None:
    """srun without --mpi, or another MPI's launcher: each would write all of the result."""
    command = [sys.executable, "-c", PROGRAM, "solve", str(saved / "dispatch"), "--runtime", "mpi"]
    told = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | {"SLURM_STEP_NUM_TASKS": "3"},
    )
    assert told.returncode == 2
    assert "3 processes were started, but each sees itself alone" in told.stderr
    assert "Traceback" not in told.stderr


FULL = """\
import errno
import ccmac
from ccmac.cli import solution
from ccmac.cli.main import run

write = solution._write_part

def full(path, arrays):
    if path.name == "solution-0003-0005.npz":
        raise OSError(errno.ENOSPC, "No space left on device", str(path))
    return write(path, arrays)

solution._write_part = full
run()
"""


def test_a_full_disk_of_one_rank_ends_all(saved: Path, tmp_path: Path, mpiexec: str) -> None:
    words = ["solve", str(saved / "dispatch"), "--network", "ring", "--runtime", "mpi"]
    command = [mpiexec, "-n", "2", sys.executable, "-c", FULL, *words, "--out", "out"]
    told = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, cwd=tmp_path
    )
    assert told.returncode == 1, told.stderr
    assert "Traceback" not in told.stderr
    assert "No space left on device" in told.stderr
    assert not (tmp_path / "out" / "summary.json").exists()


def ranks_of(pid: int) -> list[int]:
    """Processes below the launcher that run the command."""
    found = []
    queue = [pid]
    while queue:
        path = Path(f"/proc/{(current := queue.pop())}/task/{current}/children")
        below = [int(k) for k in path.read_text().split()] if path.exists() else []
        queue += below
        commands = {child: Path(f"/proc/{child}/cmdline") for child in below}
        found += [
            k for k, c in commands.items() if c.exists() and c.read_bytes().startswith(PYTHON)
        ]
    return found


PYTHON = f"{sys.executable}\0-c\0{PROGRAM}".encode()


@pytest.mark.parametrize("all_of_them", [True, False])
def test_sigterm_on_ranks_keeps_state_and_result(
    saved: Path, tmp_path: Path, mpi: Launcher, all_of_them: bool
) -> None:
    state = tmp_path / "state"
    out = tmp_path / "out"
    words = ["solve", saved / "calibration", "--method", "cross-apapc", "--tol", "1e-13"]
    words += ["--network", "ring", "--runtime", "mpi", "--checkpoint", state, "--every", 1]
    job = mpi.start(2, "-c", PROGRAM, *map(str, words), "--out", str(out))
    until = time.monotonic() + 60
    while not list(state.glob("state-*.npz")) and time.monotonic() < until:
        time.sleep(0.002)
    victims = ranks_of(job.pid)
    assert len(victims) == 2
    for pid in victims if all_of_them else victims[1:]:
        os.kill(pid, signal.SIGTERM)
    told = mpi.finish(job, timeout=60)
    assert told.returncode in ((143,) if all_of_them else (130, 143)), told.stderr
    assert "Traceback" not in told.stderr
    assert told.stderr.count("interrupted; continue with") == 1
    assert len(ccmac.Result.load(out).x) == 8
