"""``mpiexec -n P ccmac solve --runtime mpi``: the same numbers, files by owner or gathered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ccmac.cli.solution import read_solution
from cli.conftest import Run

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
    gathered = launch(mpiexec, 3, *mpi, tmp_path / "whole", "--gather")
    assert gathered.returncode == 0, gathered.stderr
    for told in (parted, gathered):
        assert json.loads(told.stdout)["ledger"] == alone["ledger"]
    assert "relay" in parted.stderr
    names = sorted(p.name for p in (tmp_path / "parts").glob("*.npz"))
    assert names == ["solution-0000-0002.npz", "solution-0003-0005.npz"]
    assert [p.name for p in (tmp_path / "whole").glob("*.npz")] == ["solution.npz"]
    expected = read_solution(tmp_path / "alone", range(6))
    for name in ("parts", "whole"):
        found = read_solution(tmp_path / name, range(6))
        assert np.array_equal(found.z, expected.z)
        assert all(np.array_equal(a, b) for a, b in zip(found.x, expected.x, strict=True))


def test_another_number_of_ranks_replaces_the_parts(
    run: Run, saved: Path, tmp_path: Path, mpiexec: str
) -> None:
    common = ("solve", saved / "calibration", "--method", "cross-apapc", "--network", "ring")
    run(*common, "--tol", "1e-9", "--no-fused", "--out", "alone")
    for ranks, tol in ((2, "1e-2"), (3, "1e-9")):
        told = launch(
            mpiexec, ranks, *common, "--tol", tol, "--runtime", "mpi", "--out", tmp_path / "out"
        )
        assert told.returncode == 0, told.stderr
    assert len(list((tmp_path / "out").glob("solution-*.npz"))) == 3
    found, alone = (read_solution(tmp_path / name, range(8)) for name in ("out", "alone"))
    assert all(np.array_equal(a, b) for a, b in zip(found.x, alone.x, strict=True))


def test_bad_input_on_ranks_is_one_line(saved: Path, mpiexec: str) -> None:
    told = launch(mpiexec, 2, "solve", saved / "nowhere", "--runtime", "mpi")
    assert told.returncode == 2
    assert "problem.yaml: not found" in told.stderr
    assert "Traceback" not in told.stderr


def test_processes_that_do_not_know_of_each_other_are_refused(saved: Path, mpiexec: str) -> None:
    """srun without --mpi, or another MPI's launcher: each would write all of the result."""
    command = [sys.executable, "-c", PROGRAM, "solve", str(saved / "dispatch"), "--runtime", "mpi"]
    told = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120,
        env=os.environ | {"SLURM_STEP_NUM_TASKS": "3"},
    )  # fmt: skip
    assert told.returncode == 2
    assert "3 processes were started, but each sees itself alone" in told.stderr
    assert "Traceback" not in told.stderr
