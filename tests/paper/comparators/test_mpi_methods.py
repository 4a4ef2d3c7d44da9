"""The baselines and cross-cg give the same bits on any number of processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "programs" / "methods.py"
SOURCE = Path(__file__).parents[3] / "src"


@pytest.mark.mpi
def test_bits_do_not_depend_on_the_processes(mpiexec: str) -> None:
    """Four agents on three ranks: some own one, one owns two."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    job = subprocess.run(
        [mpiexec, "-n", "3", sys.executable, str(PROGRAM)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert job.returncode == 0, job.stderr
    assert job.stdout.strip() == "identical"
