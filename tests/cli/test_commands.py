"""Commands as a user meets them: output, files, exit codes, one-line errors."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import ccmac
from ccmac.cli import solve as solving
from ccmac.cli.commands import PLACES
from ccmac.network import Network
from ccmac.paper.complexity import complexity
from ccmac.paper.instances import dispatch
from ccmac.problem import Problem
from ccmac.version import __version__
from cli.conftest import Run

FILES = ["proof.json", "solution.npz", "summary.json", "trace.csv"]


def test_help_names_every_command_and_teaches(run: Run) -> None:
    shown = run("--help")
    assert shown.code == 0
    for name, (_, _, epilog) in PLACES.items():
        assert f" {name} " in shown.out
        told = run(name, "--help")
        assert told.code == 0
        assert epilog is None or f"ccmac {name}" in told.out.split("Example:")[1]
        assert max(map(len, told.out.splitlines())) <= 80
    assert run("absent").code == 2


def test_version(run: Run) -> None:
    assert run("--version").out == f"ccmac {__version__}\n"


def test_no_command_shows_help(run: Run) -> None:
    for words in ((), ("suite",), ("data",), ("vfl",)):
        told = run(*words)
        assert (told.code, told.err) == (0, "")
        assert "Commands" in told.out


def test_geometry(run: Run, saved: Path) -> None:
    text = run("geometry", saved / "dispatch", "--network", "ring")
    assert text.code == 0
    assert "cross factor chi" in text.out
    assert max(map(len, text.out.splitlines())) <= 80
    found = json.loads(run("geometry", saved / "dispatch", "--json").out)
    assert found["n"] == 6
    assert found["cross_factor"] > 1


def test_plan_shows_the_alternatives_in_eighty_columns(run: Run, saved: Path) -> None:
    arguments = ("plan", saved / "dispatch", "--network", "ring")
    text = run(*arguments)
    assert text.code == 0
    assert max(map(len, text.out.splitlines())) <= 80
    found = json.loads(run(*arguments, "--json").out)["alternatives"]
    assert [a["method"] for a in found] == ["cross-direct", "cross-cg", "cross-apapc"]
    for alternative in found:
        assert alternative["method"] in text.out
        assert alternative["rounds"] == 3 * alternative["averagings"]


def test_solve_writes_what_it_prints(run: Run, saved: Path, tmp_path: Path) -> None:
    exact = dispatch(hours=2)
    told = run("solve", saved / "dispatch", "--network", "ring", "--tol", "1e-8", "--out", "out")
    assert told.code == 0
    assert "optimal" in told.out
    assert "written to out" in told.out
    assert max(map(len, told.out.splitlines())) <= 80
    out = tmp_path / "out"
    assert sorted(p.name for p in out.iterdir()) == FILES
    found = ccmac.Result.load(out)
    assert np.allclose(found.z, exact.z, atol=1e-7)
    assert all(np.allclose(a, b, atol=1e-7) for a, b in zip(found.x, exact.x, strict=True))
    record = json.loads((out / "summary.json").read_text())
    assert record["status"] == "optimal"
    assert record["asked"]["network"] == "ring"
    with (out / "trace.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == record["iterations"]
    assert int(rows[-1]["rounds"]) == record["ledger"]["solve"]["rounds"]


def test_a_checkpoint_is_continued(run: Run, saved: Path) -> None:
    common = (
        "solve",
        saved / "calibration",
        "--method",
        "cross-apapc",
        "--no-fused",
        "--json",
        "--checkpoint",
        "state",
        "--every",
        "5",
    )
    assert run(*common, "--max-iterations", "12").code == 1
    limit = ("--max-iterations", "40", "--out")
    resumed = json.loads(run(*common, *limit, "resumed").out)
    whole = json.loads(run(*common[:6], *limit, "whole").out)
    assert resumed["iterations"] == whole["iterations"] == 40
    assert resumed["ledger"]["solve"] == whole["ledger"]["solve"]
    first, second = (ccmac.Result.load(Path(name)) for name in ("resumed", "whole"))
    assert np.array_equal(first.z, second.z)


def test_too_few_iterations_exit_one(run: Run, saved: Path) -> None:
    told = run("solve", saved / "calibration", "--method", "cross-apapc", "--max-iterations", "3")
    assert told.code == 1
    assert "max_iterations" in told.out


def test_a_contradiction_exits_three(run: Run, saved: Path) -> None:
    told = run("solve", saved / "contradiction", "--out", "out")
    assert told.code == 3
    assert "cannot hold together" in " ".join(told.out.split())
    record = json.loads(Path("out/summary.json").read_text())
    assert record["infeasibility"]["shared"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("solve", "nowhere"), "problem.yaml: not found"),
        (("geometry", "nowhere"), "problem.yaml: not found"),
        (("solve", "{}", "--tol", "0"), "tol"),
        (("solve", "{}", "--tol", "tiny"), "--tol"),
        (("solve", "{}", "--network", "grid:2x2"), "4 agents but the problem has 6"),
        (("solve", "{}", "--method", "magic"), "unknown"),
        (("solve", "{}", "--averaging", "gossip"), "take one of auto, relay, tree"),
        (("solve", "{}", "--realization", "magic"), "realization"),
        (("solve", "{}", "--runtime", "magic"), "runtime"),
        (("solve", "{}", "--max-iterations", "0"), "max_iterations"),
        (("solve", "{}", "--every", "3"), "--checkpoint"),
        (("solve", "{}", "--audit"), "--runtime mpi"),
        (("solve", "{}", "--warm-start", "nowhere"), "proof.json: not found"),
        (("solve", "{}", "--out", "file/below"), "cannot be written"),
        (("solve", "{}", "--costs", "round"), "NAME=NUMBER"),
        (("solve", "{}", "--costs", "rounds=1"), "rounds"),
        (("solve",), "PROBLEM_DIR"),
        (("solve", "{}", "--frobnicate"), "--frobnicate"),
        (("complexity", "{}", "--radius", "-1"), "radius"),
        (("solv",), "solve"),
        (("data", "path", "a7a"), "a7a"),
    ],
)
def test_bad_input_is_one_line_and_exit_two(
    run: Run, saved: Path, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "file").write_text("in the way")
    told = run(*(a.format(saved / "dispatch") for a in arguments))
    assert told.code == 2
    assert told.err.startswith("error: ")
    assert told.err.count("\n") == 1
    assert words in told.err
    assert told.out == ""


def test_a_damaged_solution_is_no_start(run: Run, saved: Path, tmp_path: Path) -> None:
    run("solve", saved / "dispatch", "--out", "old")
    other = run("solve", saved / "calibration", "--warm-start", "old")
    assert (other.code, "instead of" in other.err) == (2, True)
    (tmp_path / "old" / "solution.npz").write_bytes(b"PK\x03\x04 but no archive")
    told = run("solve", saved / "dispatch", "--warm-start", "old")
    assert told.code == 2
    assert "does not match its checksum" in told.err


def test_copies_under_a_launcher_are_refused(
    run: Run, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PMI_SIZE", "4")
    told = run("solve", saved / "dispatch")
    assert told.code == 2
    assert "--runtime mpi" in told.err


def test_an_interruption_keeps_the_iterate(run: Run, saved: Path, tmp_path: Path) -> None:
    """Ctrl-C during the loop: exit 130, and the iterate starts the next run."""
    done = threading.Event()

    def press() -> None:
        while not list((tmp_path / "state").glob("state-*.npz")) and not done.is_set():
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    told = run(
        "solve",
        saved / "calibration",
        "--method",
        "cross-apapc",
        "--tol",
        "1e-10",
        "--checkpoint",
        "state",
        "--every",
        "1",
        "--out",
        "out",
    )
    done.set()
    presser.join()
    assert told.code == 130
    assert "interrupted; continue with --warm-start out" in told.err
    assert len(ccmac.Result.load(tmp_path / "out").x) == 8


def test_an_interruption_without_a_place_finds_one(
    run: Run, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = solving.solve
    monkeypatch.setattr(
        solving,
        "solve",
        lambda *given, **named: real(*given, callback=lambda count, _: count >= 3, **named),
    )
    told = run("solve", saved / "calibration", "--method", "cross-apapc")
    assert told.code == 130
    assert "--warm-start ccmac-interrupted" in told.err
    assert len(ccmac.Result.load(tmp_path / "ccmac-interrupted").x) == 8


def test_the_installed_command_ends_without_traceback(saved: Path) -> None:
    program = "from ccmac.cli.main import run; run()"
    told = subprocess.run(
        [sys.executable, "-c", program, "solve", str(saved / "dispatch"), "--tol", "-1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert told.returncode == 2
    assert told.stderr.startswith("error: tol")
    assert "Traceback" not in told.stderr


def test_a_reader_that_went_away_is_told_nothing() -> None:
    program = "from ccmac.cli.main import run; run()"
    gone = subprocess.Popen([sys.executable, "-c", program], stdout=-1, stderr=-1, text=True)
    assert gone.stdout is not None
    gone.stdout.close()
    assert gone.communicate(timeout=60)[1] == ""
    assert gone.returncode == 1


def test_complexity(run: Run, saved: Path) -> None:
    arguments = ("complexity", saved / "dispatch", "--network", "ring")
    text = run(*arguments, "--measure")
    assert text.code == 0
    assert "measured by" in text.out
    assert max(map(len, text.out.splitlines())) <= 80
    found = json.loads(run(*arguments, "--radius", "2", "--json").out)
    direct = complexity(Problem.load(saved / "dispatch"), Network.ring(6), radius=2.0)
    assert found["primitive"]["rounds"] == pytest.approx(direct.primitive["rounds"])
    assert found["measured"] is None


def test_the_methods_are_listed_as_the_library_lists_them(run: Run) -> None:
    text = run("methods").out
    listed = json.loads(run("methods", "--json").out)
    assert listed == json.loads(json.dumps(ccmac.available_methods()))
    assert all(f"{name} " in text for name in listed)
    assert max(map(len, text.splitlines())) <= 80


def test_a_solve_prints_its_answer_and_its_page_has_it(
    run: Run, saved: Path, tmp_path: Path
) -> None:
    shown = run("solve", saved / "dispatch", "--network", "ring", "--out", tmp_path / "out")
    result = ccmac.Result.load(tmp_path / "out")
    entry = f"{result.z[0]:.6g}"
    assert re.search(rf"^z +{re.escape(entry)}", shown.out, re.MULTILINE)
    assert run("report", tmp_path / "out", "-o", tmp_path / "page.html").code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"<td>{entry}</td>" in page
    assert f"{result.ledger.total('bytes'):,}" == f"{sum_of(page, 'bytes'):,}"


def sum_of(page: str, unit: str) -> int:
    """Of the row of the bill."""
    row = re.search(rf">{unit}</th>((?:<td>[\d,]+</td>)+)", page)
    assert row is not None
    return sum(int(text.replace(",", "")) for text in re.findall(r"<td>([\d,]+)", row[1]))


def test_the_package_is_a_command_and_completes() -> None:
    ask = [sys.executable, "-m", "ccmac"]
    shown = subprocess.run([*ask, "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout == f"ccmac {__version__}\n"
    words = {"_CCMAC_COMPLETE": "complete_bash", "COMP_WORDS": "ccmac geo", "COMP_CWORD": "1"}
    told = subprocess.run(
        ask, env={**os.environ, **words}, capture_output=True, text=True, check=False
    )
    assert told.stdout.split() == ["geometry"]
