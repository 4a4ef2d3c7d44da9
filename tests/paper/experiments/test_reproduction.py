"""The tables of docs/reproduction.md are functions of records and of the paper's numbers."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path
from types import ModuleType

import pytest

from ccmac.paper.experiments import suite as suites
from ccmac.paper.experiments.records import read_record
from ccmac.paper.experiments.task import execute
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
        lambda chi, kappa, _: (round(1e4 * chi), round(1e5 * chi * math.sqrt(kappa))),
        chis=(1.5, 3.0, 8.0),
        kappas={"a": 4.0, "b": 9.0, "c": 25.0},
    )
    table = script.slopes(tmp_path)
    assert "| alpha_aff, chi >= 1.5 | 0.988 [0.966, 1.009] | not run | not run | 1.000 [" in table
    assert "| 18/18 |" in table
    assert "| scaling | 0/0 | 18/18 |" in script.counted(tmp_path)


def test_the_page_is_the_template_filled_in(script: ModuleType) -> None:
    """Nothing of it is typed by hand: its prose is the template's."""
    page = (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")
    template = script.TEMPLATE.read_text(encoding="utf-8")
    assert script.prose(page) == template
    names = re.findall(r"<!-- table: (\w+) -->", template)
    assert sorted(names) == sorted(script.TABLES)
    for image in re.findall(r"\]\((images/\S+)\)", page):
        assert (ROOT / "docs" / image).is_file()


def table_of(page: str, name: str) -> list[list[str]]:
    """The cells of a generated table, without its head."""
    found = re.search(rf"<!-- table: {name} -->(.*?)<!-- end -->", page, re.DOTALL)
    assert found is not None
    lines = found[1].strip().splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_page_counts_all_runs_and_the_papers_slopes() -> None:
    page = (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")
    assert table_of(page, "counted")[-1] == ["**all**", "302/302", "302/302"]
    rows = table_of(page, "slopes")
    slopes = {row[0]: row[2] for row in rows}
    for name, paper, ours, *_ in rows:
        if name.startswith("alpha"):
            low, high = map(float, re.findall(r"[\d.]+", paper)[1:])
            assert low <= float(ours.split()[0]) <= high  # the paper's interval
    assert slopes["runs that reach 1e-6"] == "182/182"
    assert float(slopes["alpha_aff, chi >= 1.5"].split()[0]) == pytest.approx(0.999, abs=0.02)
    assert float(slopes["alpha_comm"].split()[0]) == pytest.approx(0.991, abs=0.02)


@pytest.mark.parametrize("line", range(10))
def test_ten_records_are_as_the_page_says(script: ModuleType, line: int, tmp_path: Path) -> None:
    """Run again, every count is the one on the page; three long ones by ``make reproduce`` only."""
    entry = script.TEN[line]
    run = script.wanted(suites.load(*entry[:2]).runs, entry)
    if run.data.endswith("-like"):
        pytest.skip(f"{entry[2]} is not on this machine")
    execute([run], tmp_path)
    record = read_record(tmp_path, run)
    assert record is not None
    assert record.reached
    page = (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")
    assert script.ten_row(entry, record) == table_of(page, "ten")[line]


def test_the_counted_suites_are_the_papers(script: ModuleType) -> None:
    for profile in script.PROFILES:
        assert sum(len(suites.load(name, profile).runs) for name in script.COUNTED) == 302


def test_paper_rows_cover_the_suites(script: ModuleType) -> None:
    keys = {f"{r.data.removesuffix('-like')} {r.agents}" for r in suites.load("robustness").runs}
    assert keys == set(script.PAPER["robustness"])
