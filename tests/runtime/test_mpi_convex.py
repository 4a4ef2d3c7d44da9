"""Continuation, sliding and Newton under MPI give the bits of one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.mpi


def test_convex_methods_are_bit_identical(mpi_run: Callable[..., Any]) -> None:
    job = mpi_run(2, "convex.py")
    assert job.stdout.strip() == "checked 3"


def test_newton_is_bit_identical(mpi_run: Callable[..., Any]) -> None:
    job = mpi_run(2, "newton.py")
    assert job.stdout.strip() == "checked 3"


def test_limits_are_bit_identical(mpi_run: Callable[..., Any]) -> None:
    job = mpi_run(2, "limited.py")
    assert job.stdout.strip() == "checked 6"
