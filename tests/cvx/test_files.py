"""``ccmac import``: models in files, their columns dealt to owners, against HiGHS's own answers."""

from __future__ import annotations

from pathlib import Path

import highspy
import numpy as np
import pytest

import ccmac
from ccmac.cli.main import main

LP = """\\ a blend
Maximize
 profit: 3 x_1 + 2 x_2 - stock + 4
Subject To
 room: x_1 + x_2 + stock <= 10
 ratio: x_1 - 2 x_2 >= -2
 own: stock >= 1
Bounds
 x_1 <= 6
 -1 <= x_2 <= 5
End
"""
QPS = """NAME          QP
ROWS
 N  obj
 G  r1
 E  r2
COLUMNS
    c1        r1        2.0   obj       1.5
    c1        r2        1.0
    c2        r1        1.0   obj       -2.0
    c3        r2        1.0   r1        -1.0
RHS
    rhs       r1        2.0   r2        1.0
RANGES
    rng       r1        1.0
BOUNDS
 UP bnd       c1        20.0
 FR bnd       c3
QUADOBJ
    c1        c1        8.0
    c1        c2        2.0
    c2        c2        10.0
    c3        c3        1.0
ENDATA
"""


def value_by_highs(file: Path) -> float:
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel(str(file))
    solver.run()
    return float(solver.getObjectiveValue())


def test_a_linear_program_by_patterns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "blend.lp"
    file.write_text(LP)
    owners = tmp_path / "owners.toml"
    owners.write_text('mills = ["x_*"]\nstore = ["stock"]\n')
    out = tmp_path / "blend"
    assert main(["import", str(file), "--owners", str(owners), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "sign is turned" in said
    assert "constant 4" in said
    problem = ccmac.Problem.load(out)
    assert [problem.agents[i].name for i in range(2)] == ["mills", "store"]
    assert problem.row_names == ("room",)
    result = ccmac.solve(problem, tol=1e-8)
    assert 4 - result.objective == pytest.approx(value_by_highs(file), abs=1e-6)


def test_a_quadratic_program_by_count(tmp_path: Path) -> None:
    file = tmp_path / "small.qps"
    file.write_text(QPS)
    out = tmp_path / "small"
    assert main(["import", str(file), "--owners", "2", "--out", str(out)]) == 0
    problem = ccmac.Problem.load(out)
    assert problem.d == {0: 2, 1: 1}  # c1 and c2 have a quadratic term in common
    result = ccmac.solve(problem, tol=1e-9)
    (tmp_path / "small.mps").write_text(QPS)
    assert result.objective == pytest.approx(value_by_highs(tmp_path / "small.mps"), abs=1e-6)


def test_a_grid_by_areas(tmp_path: Path) -> None:
    from pypower.case9 import case9

    file = tmp_path / "nine.m"
    lines = ["function mpc = nine", "mpc.baseMVA = 100;"]
    for key in ("bus", "gen", "branch", "gencost"):
        rows = "\n".join(" ".join(f"{v:.12g}" for v in row) + ";" for row in case9()[key])
        lines.append(f"mpc.{key} = [\n{rows}\n];")
    file.write_text("\n".join(lines))
    assert main(["import", str(file), "--owners", "3", "--out", str(tmp_path / "nine")]) == 0
    result = ccmac.solve(ccmac.Problem.load(tmp_path / "nine"), tol=1e-8)
    same = ccmac.solve(ccmac.power.dc_opf("case9", areas=3).problem, tol=1e-8)
    assert np.isclose(result.objective, same.objective, rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "name", "owners", "words"),
    [
        (LP.replace("End", "General\n x_2\nEnd"), "a.lp", "2", "column x_2 is an integer"),
        ("nothing", "a.mps", "2", "no model that HiGHS reads"),
        (LP, "a.txt", "2", "of no kind that is read"),
        (LP, "a.lp", "9", "there are 3 columns"),
        (LP, "a.lp", "nobody.toml", "is no number and no file"),
        (LP, "a.lp", 'a = ["x_1"]', "column x_2 has no owner"),
        (LP, "a.lp", 'a = "x_1"', "give a list of columns"),
        (QPS, "a.qps", 'a = ["c1"]\nb = ["c*"]', "columns c1 and c2: have a quadratic term"),
    ],
)
def test_mistakes_are_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    name: str,
    owners: str,
    words: str,
) -> None:
    (tmp_path / name).write_text(text)
    if "=" in owners:
        (tmp_path / "owners.toml").write_text(owners)
        owners = str(tmp_path / "owners.toml")
    asked = ["import", str(tmp_path / name), "--owners", owners, "--out", str(tmp_path / "out")]
    assert main(asked) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
