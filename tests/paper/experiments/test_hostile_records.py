"""Records that somebody changed: read as damaged or used, never a traceback."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ccmac.errors import InputError
from ccmac.paper.experiments.figures import figures
from ccmac.paper.experiments.records import read_records, read_suite
from ccmac.paper.experiments.report import page
from ccmac.paper.experiments.tables import render
from ccmac.paper.experiments.verify import findings
from paper.experiments.toy import fabricate

STRANGE: list[Any] = [
    None,
    True,
    -1,
    0,
    2.5,
    1e308,
    -1e308,
    10**30,
    "",
    "x" * 500,
    "../../etc",
    [],
    {},
    [[]],
    {"a": 1},
    "nan",
    "<script>",
]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records")
    fabricate(
        folder,
        lambda chi, kappa, data: (20 * chi, 40 * chi * kappa**0.5),
        chis=(1.5, 2.0, 3.0),
        kappas={"a": 4.0, "b": 9.0},
    )
    return folder


def slots(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    if not isinstance(value, dict | list):
        return []
    keys = list(value) if isinstance(value, dict) else range(len(value))
    own = [(value, key) for key in keys]
    return own + [slot for key in keys for slot in slots(value[key])]


def change_json(path: Path, rng: random.Random) -> None:
    content = json.loads(path.read_text())
    container, key = rng.choice(slots(content))
    if rng.random() < 0.2:
        del container[key]
    else:
        container[key] = rng.choice(STRANGE)
    path.write_text(json.dumps(content))


def change_bytes(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(content))
        content[at : at + rng.randint(0, 5)] = rng.choice([b"", b"\x00", b"\xff", b",", b"9" * 400])
    path.write_bytes(content[: rng.randrange(len(content))] if rng.random() < 0.2 else content)


def look(folder: Path) -> None:
    records = read_records(folder)
    for form in ("markdown", "latex", "csv", "json"):
        render(records, form)
    findings(folder)
    page(folder, folder)


@pytest.mark.parametrize("change", [change_json, change_bytes])
@pytest.mark.parametrize("name", ["suite.json", "summary.json", "trace.csv"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_changed_records(
    original: Path, tmp_path: Path, name: str, change: Callable[[Path, random.Random], None]
) -> None:
    if name == "trace.csv" and change is change_json:
        pytest.skip("not JSON")
    rng = random.Random(7)
    folder = tmp_path / "records"
    shutil.copytree(original, folder)
    paths = sorted(folder.rglob(name))
    accepted = refused = 0
    for _ in range(25):
        path = rng.choice(paths)
        before = path.read_bytes()
        change(path, rng)
        try:
            look(folder)
            accepted += 1
        except InputError:
            refused += 1
        path.write_bytes(before)
    assert accepted
    assert not refused or name == "suite.json"  # a damaged record is absent, a damaged suite told


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, '{"suite": 1}', "9" * 5000, "NaN"])
def test_what_is_no_suite_is_damaged(tmp_path: Path, text: str) -> None:
    (tmp_path / "suite.json").write_text(text)
    with pytest.raises(InputError, match="is damaged"):
        read_suite(tmp_path)


def test_figures_of_a_changed_trace(original: Path, tmp_path: Path) -> None:
    folder = tmp_path / "records"
    shutil.copytree(original, folder)
    trace = next(folder.rglob("trace.csv"))
    trace.write_text(trace.read_text().replace("\n1,", "\ninf,", 1).replace("30,", "inf,"))
    records = read_records(folder)
    assert len(records) == 11
    import matplotlib.pyplot as plt

    assert figures(records)
    plt.close("all")
