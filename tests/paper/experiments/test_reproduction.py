"""The tables of docs/reproduction.md are functions of records and of the paper's numbers."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path
from types import ModuleType

import pytest

from ccmac.paper.experiments import suite as suites
from paper.experiments.toy import fabricate

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "reproduction", ROOT / "benchmarks/reproduction.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_come_from_records(script: ModuleType, tmp_path: Path) -> None:
    fabricate(
        tmp_path / "scaling-practical",
        lambda chi, kappa, _: (1e4 * chi, 1e5 * chi * math.sqrt(kappa)),
        chis=(1.5, 3.0, 8.0),
        kappas={"a": 4.0, "b": 9.0, "c": 25.0},
    )
    page = "before\n<!-- table: slopes -->\nstale\n<!-- end -->\nafter\n"
    once = script.replaced(page, tmp_path)
    assert once.startswith("before\n")
    assert once.endswith("after\n")
    assert "stale" not in once
    assert "| alpha_aff, chi >= 1.5 | 0.988 [0.966, 1.009] | not run | not run | 1.000 [" in once
    assert "| 18/18 |" in once
    assert script.replaced(once, tmp_path) == once


def test_every_marker_of_the_page_has_its_table(script: ModuleType, tmp_path: Path) -> None:
    page = (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")
    names = re.findall(r"<!-- table: (\w+) -->", page)
    assert sorted(names) == sorted(script.TABLES)
    assert page.count("<!-- end -->") == len(names)
    assert "| **the 302 runs** |  |  |" in script.replaced(page, tmp_path)


def test_the_counted_suites_are_the_papers(script: ModuleType) -> None:
    for profile in script.PROFILES:
        assert sum(len(suites.load(name, profile).runs) for name in script.COUNTED) == 302


def test_paper_rows_cover_the_suites(script: ModuleType) -> None:
    keys = {f"{r.data.removesuffix('-like')} {r.agents}" for r in suites.load("robustness").runs}
    assert keys == set(script.PAPER["robustness"])
