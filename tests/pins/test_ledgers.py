"""Every pinned run again: what it was charged, how it ended, and where it arrived."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pins.cases import CASES, PHASES, Case, record, run, told

HERE = Path(__file__).parent
PINNED: dict[str, Any] = json.loads((HERE / "ledgers.json").read_text(encoding="utf-8"))
WORDS: dict[str, Any] = {
    name: words
    for words, names in json.loads((HERE / "words.json").read_text(encoding="utf-8"))
    for name in names
}
RELATIVE = 1e-6
ROUNDING = 1e-12  # what processors differ by in data of size one: a bound below it is rounding


def differences(pinned: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """One line for each entry that is not as pinned."""
    lines = []
    for key in ("status", "iterations"):
        if pinned[key] != found[key]:
            lines.append(f"{key}: pinned {pinned[key]}, now {found[key]}")
    for phase in PHASES:
        for unit in sorted({*pinned[phase], *found[phase]}):
            before = pinned[phase].get(unit, 0)
            now = found[phase].get(unit, 0)
            if before != now:
                lines.append(f"{phase} {unit}: pinned {before}, now {now}")
    for key, text in pinned["floats"].items():
        before = float(text)
        now = float(found["floats"][key])
        if now != pytest.approx(before, rel=RELATIVE, abs=ROUNDING, nan_ok=True):
            lines.append(f"{key}: pinned {before!r}, now {now!r}")
    return lines


def test_the_file_lists_the_cases() -> None:
    assert list(PINNED) == [case.name for case in CASES], "run make pins and review the difference"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "/"))
def test_run_is_as_pinned(case: Case) -> None:
    result = run(case)
    wrong = differences(PINNED[case.name], record(result))
    assert not wrong, "\n  ".join([f"{case.name} differs:", *wrong])
    assert told(result) == WORDS[case.name]
