"""MPI gives the bits of one process: mixing, every averaging scheme, sums, ledgers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from launcher import Launcher

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("ranks", [1, 4])
def test_rounds_averages_and_sums_are_bit_identical(
    mpi_run: Callable[..., Any], ranks: int
) -> None:
    job = mpi_run(ranks, "equality.py", timeout=180.0)
    assert job.stdout.strip() == f"checked {5 * 3 * 4}"


def test_ranks_make_their_own_agents(mpi: Launcher) -> None:
    """``Problem({3: agent}, n=8)``, as the page on clusters shows it."""
    example = Path(__file__).parents[2] / "examples" / "own_agents.py"
    job = mpi.finish(mpi.start(2, str(example)), timeout=60)
    assert job.returncode == 0, job.stderr
    assert job.stdout.startswith("optimal: z = 0.620747, error at most")


def test_masked_sums_have_the_bits_of_one_process_and_look_like_noise(
    mpi_run: Callable[..., Any],
) -> None:
    """Keys differ from run to run: of a million runs one may fail."""
    told = mpi_run(2, "masked_bits.py", timeout=180.0).stdout
    assert told.startswith("equal 2 of 2, least p-value ")
    assert float(told.split()[-1]) > 1e-7
