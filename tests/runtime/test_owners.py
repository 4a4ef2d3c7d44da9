"""Whole solves between owners: the bits, counts and ledgers of one process, for every method."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ccmac.methods.registry import REGISTRY

pytest.importorskip("cryptography")
PROGRAM = Path(__file__).parent / "programs" / "owners_bits.py"


@pytest.mark.parametrize("averaging", ["relay", "tree", "masked"])
def test_every_method_has_the_bits_and_ledgers_of_one_process(
    tmp_path: Path, averaging: str
) -> None:
    command = [sys.executable, str(PROGRAM), str(tmp_path / "keys"), averaging]
    job = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    runs = 3 + (averaging != "masked") + (len(REGISTRY) if averaging == "relay" else 0)
    assert job.stdout.strip() == f"{runs} runs, 0 owners failed", job.stderr
