"""Processors that round differently: a run is led by agent 0, and its bounds hold."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.errors import CcmacError
from ccmac.methods.base import State
from ccmac.runtime.notes import Notes
from methods.conformance.cases import quadratic

PROGRAM = Path(__file__).parent / "programs" / "drifting.py"
LED = "led {0} of {0}, different: []"


@pytest.mark.mpi
def test_ranks_whose_blas_rounds_differently_end_alike(mpi_run: Callable[..., Any]) -> None:
    told = mpi_run(2, "drifting.py", "mpi", timeout=180.0).stdout.strip()
    if told == "led 0 of 8, different: []":
        pytest.skip("this BLAS cannot be told which kernels to take")
    assert told == LED.format(8)


@pytest.mark.parametrize(
    ("averaging", "when", "cases"),
    [
        ("relay", "start", ["sketched", "interior", "cross-apapc"]),
        ("tree", "late", ["sketched", "cross-lbfgs"]),
    ],
)
def test_owners_one_of_whom_is_off_by_an_ulp_end_alike(
    tmp_path: Path, averaging: str, when: str, cases: list[str]
) -> None:
    pytest.importorskip("cryptography")
    command = [sys.executable, str(PROGRAM), str(tmp_path / "keys"), averaging, when, *cases]
    job = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert job.stdout.strip() == LED.format(len(cases)), job.stderr


def test_digests_that_differ_have_all_led_and_a_parting_of_led_ones_ends_the_run() -> None:
    processes = [Notes(3) for _ in range(3)]

    def remember(*values: float) -> None:
        for notes, value in zip(processes, values, strict=True):
            notes.remember(np.array([value]))
        total = sum(notes.mine for notes in processes)
        for notes in processes:
            notes.read(total)

    remember(1.0, 1.0, 1.0)
    assert not any(notes.led for notes in processes)
    remember(2.0, 2.0, np.nextafter(2.0, 3.0))
    assert all(notes.led for notes in processes)
    remember(2.0, 2.0, 2.0)
    with pytest.raises(CcmacError, match="parted ways"):
        remember(4.0, 3.0, 4.0)


@pytest.mark.parametrize(
    "name", ["cross-apapc", "cross-cg", "cross-lbfgs", "cross-direct", "cross-ipm"]
)
def test_what_states_say_all_know_is_one_row(name: str) -> None:
    rows: set[int] = set()

    def look(_: int, state: State) -> None:
        for f in state.__dataclass_fields__.values():
            if f.metadata.get("common"):
                rows.add(len(getattr(state, f.name)))

    ccmac.solve(quadratic().problem, method=name, tol=1e-16, max_iterations=3, callback=look)
    assert rows == {1}
