"""The page on extending suites says what works: its files are run as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.cli.main import main
from ccmac.errors import InputError
from ccmac.methods.registry import REGISTRY
from ccmac.paper.experiments.plugins import DATASETS, PROBLEMS, load_plugins
from ccmac.paper.experiments.records import read_records

OWN_PAGE = Path(__file__).parents[3] / "docs" / "your-own-method.md"
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


def test_the_study_of_a_method_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mixing, charging, certificate, suite, resume, tables and figure, as the page shows them."""
    text = OWN_PAGE.read_text(encoding="utf-8")
    for name, kind in (("gradient_tracking.py", "python"), ("tracking.yaml", "yaml")):
        block = re.search(rf"```{kind}\n# {name}\n(.*?)```", text, re.S)
        assert block is not None
        (tmp_path / name).write_text(block[1], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    certificate = re.findall(r"```python\n(import ccmac\n.*?)```", text, re.S)[-1]
    exec(compile(certificate, "certificate", "exec"), names := dict[str, Any]())
    result = names["result"]
    assert capsys.readouterr().out.split() == ["optimal", "proved", "True"]
    steps = result.plan.iteration
    assert result.ledger["rounds"] == result.iterations * steps["rounds"] == result.iterations
    assert result.ledger["bytes"] == result.iterations * steps["bytes"]
    assert result.ledger["gradients"] == result.iterations + 1
    exact = ccmac.solve(names["regression"](8, seed=0), "ring", tol=1e-10)
    assert np.linalg.norm(result.z - exact.z) <= result.error_bound

    run = ["suite", "run", "tracking.yaml", "--plugin", "gradient_tracking.py", "--out", "out"]
    try:
        assert main([*run, "--only", "complete"]) == 0
        capsys.readouterr()
        assert main(["suite", "status", "out"]) == 0
        command = shlex.split(capsys.readouterr().out.rpartition("continue with: ")[2])
        assert main(command[1:]) == 0
        for arguments, words in (
            (["verify", "out"], "ok   8 runs reached the target, 8 expected"),
            (["table", "out"], "| regression | – | 4 | 8 | gradient-tracking | 4/4 |"),
            (["table", "out", "--format", "latex"], r"\texttt{regression}"),
            (["figures", "out", "--formats", "png"], "convergence-regression-8.png"),
        ):
            capsys.readouterr()
            assert main(["suite", *arguments]) == 0
            assert words in capsys.readouterr().out
    finally:
        REGISTRY.pop("gradient-tracking", None)
        PROBLEMS.pop("regression", None)
    records = read_records(tmp_path / "out")
    own = [r for r in records if r.run.method == "gradient-tracking"]
    assert all(r.rounds == r.count("gradients") - 1 > 0 for r in own)


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
