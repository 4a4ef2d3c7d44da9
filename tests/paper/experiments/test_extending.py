"""The page on extending suites says what works: its files are run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ccmac.cli.main import main
from ccmac.errors import InputError
from ccmac.methods.registry import REGISTRY
from ccmac.paper.experiments.plugins import DATASETS, load_plugins
from ccmac.paper.experiments.records import read_records

PAGE = Path(__file__).parents[3] / "docs" / "suites.md"
SUITE = """\
suite: mine
data: two-clusters
agents: 4
networks: ring
methods: [cross-cg, primal-dual]
expect: {reached: all}
"""


def test_the_files_of_the_page_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugins = []
    for name in ("two_clusters.py", "primal_dual.py"):
        text = PAGE.read_text(encoding="utf-8")
        block = re.search(rf"```python\n# {name}\n(.*?)```", text, re.S)
        assert block is not None
        (tmp_path / name).write_text(block[1], encoding="utf-8")
        plugins += ["--plugin", str(tmp_path / name)]
    file = tmp_path / "mine.yaml"
    out = tmp_path / "out"
    file.write_text(SUITE, encoding="utf-8")
    try:
        code = main(["suite", "run", str(file), "--out", str(out), *plugins])
    finally:
        REGISTRY.pop("primal-dual", None)
        DATASETS.pop("two-clusters", None)
    assert code == 0, capsys.readouterr()
    records = read_records(out)
    assert [r.run.method for r in records] == ["cross-cg", "primal-dual"]
    assert all(r.reached and r.rounds > 0 for r in records)
    for arguments, words in (
        (["status", str(out)], "2 of 2 runs recorded"),
        (["status", str(out), "--json"], '"optimal": 2'),
        (["verify", str(out)], "ok   2 runs reached the target"),
        (["verify", str(out), "--json"], '"holds": true'),
        (["table", str(out)], "| two-clusters | 200 | 12 | 4 | primal-dual |"),
        (["list"], "smoke"),
        (["list", "--json"], '"runs": 182'),
    ):
        capsys.readouterr()
        assert main(["suite", *arguments]) == 0
        assert words in capsys.readouterr().out


def test_files_that_define_nothing_are_refused(tmp_path: Path) -> None:
    empty, wrong, broken = (tmp_path / f"{name}.py" for name in ("empty", "wrong", "broken"))
    empty.write_text("x = 1\n", encoding="utf-8")
    wrong.write_text("METHODS = [3]\n", encoding="utf-8")
    broken.write_text("1 / 0\n", encoding="utf-8")
    for path, words in (
        (empty, "neither METHODS nor DATASETS"),
        (wrong, "classes derived from Method"),
        (broken, "ZeroDivisionError"),
        (tmp_path / "absent.py", "no such file"),
    ):
        with pytest.raises(InputError, match=words):
            load_plugins([str(path)])


def test_errors_of_the_command_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("suite: bad\nagents: none\n", encoding="utf-8")
    assert main(["suite", "run", str(file), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert f"{file}, line 1: the key 'data' is missing" in error
    assert len(error.splitlines()) == 1
    assert main(["suite", "run", "smoke", "--profile", "fast", "--out", "x"]) == 2
    assert "take one of paper, practical" in capsys.readouterr().err
