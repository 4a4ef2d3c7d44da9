"""The runner: complete records, failures kept apart, resuming, surviving kill -9."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ccmac.errors import InputError
from ccmac.paper.experiments.execute import grouped, run_suite
from ccmac.paper.experiments.records import pending, read_records, read_suite, thinned, write_record
from ccmac.paper.experiments.suite import Suite
from ccmac.paper.experiments.verify import findings
from paper.experiments.toy import TEXT, toy_suite, write_plugin


def run(suite: Suite, folder: Path, plugin: str, *, jobs: int = 1, resume: bool = False) -> str:
    said = io.StringIO()
    run_suite(suite, folder, jobs=jobs, resume=resume, plugins=[plugin], stream=said)
    return said.getvalue()


def test_records_hold_what_a_reader_needs(tmp_path: Path) -> None:
    plugin = write_plugin(tmp_path)
    out = tmp_path / "out"
    suite = toy_suite()
    said = run(suite, out, plugin, jobs=2)
    assert said.count("optimal") == 12
    assert "[12/12]" in said
    records = read_records(out)
    assert [r.run for r in records] == list(suite.runs)
    assert all(finding.holds for finding in findings(out))
    for record in records:
        assert record.trace["relative_error"][-1] <= 1e-6
        assert record.trace["rounds"][-1] == record.rounds == record.count("rounds") > 0
        assert not record.modelled
        want = 2.0 if record.run.alpha else 1.0
        assert record.cross_factor == pytest.approx(want, rel=1e-6)
        for key in ("spec", "provenance", "ledger", "plan", "geometry", "status", "data"):
            assert key in record.summary
    again = run(suite, out, plugin, resume=True)
    assert "0 runs to do, 12 done before" in again


def test_one_oracle_solve_is_charged_to_every_graph_as_if_solved_there(tmp_path: Path) -> None:
    plugin = write_plugin(tmp_path)
    suite = toy_suite("paper")
    tasks = grouped(suite.runs)
    assert [len(task) for task in tasks] == [2] * 6
    run(suite, tmp_path / "together", plugin)
    # The path alone: solved on its own graph, nothing shared.
    paths = tuple(r for r in suite.runs if r.network["family"] == "path")
    run(Suite("toy", "toy", "paper", paths), tmp_path / "apart", plugin)
    shared = {r.run.id: r for r in read_records(tmp_path / "together")}
    for record in read_records(tmp_path / "apart"):
        twin = shared[record.run.id]
        assert twin.summary["solved_with"] != record.run.id
        assert twin.modelled
        assert twin.rounds == record.rounds
        assert twin.count("affine") == record.count("affine")
        assert twin.kappa_W == record.kappa_W
        for column in ("affine", "rounds", "relative_error"):
            assert twin.trace[column].tolist() == record.trace[column].tolist()


def test_failures_are_recorded_and_do_not_stop_the_rest(tmp_path: Path) -> None:
    plugin = write_plugin(tmp_path)
    out = tmp_path / "out"
    parts = [toy_suite(data=name) for name in ("broken", "killer", "toy")]
    runs = tuple(r for part in parts for r in part.runs[:2])
    suite = Suite("toy", "toy", "practical", runs, {"reached": "all"})
    run(suite, out, plugin, jobs=2)
    states = [(r.run.data, r.status) for r in read_records(out)]
    assert states == [
        ("broken", "failed"),
        ("broken", "failed"),
        ("killer", "failed"),
        ("killer", "failed"),
        ("toy", "optimal"),
        ("toy", "optimal"),
    ]
    messages = {r.run.data: r.summary["message"] for r in read_records(out)}
    assert "the disk is on <fire>" in messages["broken"]
    assert "killed" in messages["killer"]
    assert [r.data for r in pending(out, suite)] == ["broken"] * 2 + ["killer"] * 2
    assert not all(finding.holds for finding in findings(out))


def test_resume_redoes_what_is_broken_and_leaves_the_rest_alone(tmp_path: Path) -> None:
    plugin = write_plugin(tmp_path)
    out = tmp_path / "out"
    suite = toy_suite()
    run(suite, out, plugin)
    places = [out / "runs" / r.id for r in suite.runs]
    before = [p.stat().st_mtime_ns for p in places]
    (places[0] / "summary.json").write_text('{"id": "half', encoding="utf-8")
    (places[1] / "trace.csv").unlink()
    write_record(out, suite.runs[2], {"status": "interrupted", "message": "stopped"}, "")
    stray = out / "runs" / f".{suite.runs[3].id}.xyz_1234"
    mine = out / "runs" / ".mine"
    notes = places[1] / "notes.txt"
    notes.write_text("mine", encoding="utf-8")
    stray.mkdir()
    mine.mkdir()
    assert [r.id for r in pending(out, suite)] == [r.id for r in suite.runs[:3]]
    said = run(suite, out, plugin, resume=True)
    assert "3 runs to do, 9 done before" in said
    assert not stray.exists()
    mine.rmdir()  # it is still there
    assert notes.read_text(encoding="utf-8") == "mine"
    assert all(finding.holds for finding in findings(out))
    after = [p.stat().st_mtime_ns for p in places]
    assert after[3:] == before[3:]


def test_a_directory_in_use_or_of_another_suite_is_refused(tmp_path: Path) -> None:
    plugin = write_plugin(tmp_path)
    out = tmp_path / "out"
    suite = Suite("toy", "toy", "practical", toy_suite().runs[:1])
    run(suite, out, plugin)
    with pytest.raises(InputError, match="add --resume"):
        run(suite, out, plugin)
    with pytest.raises(InputError, match="belongs to the suite toy"):
        run(Suite("other", "", "practical", suite.runs), out, plugin, resume=True)
    with pytest.raises(InputError, match="at least 1"):
        run(suite, out, plugin, jobs=0)
    (out / "suite.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="damaged"):
        read_suite(out)
    with pytest.raises(InputError, match=r"no suite\.json"):
        read_suite(tmp_path)


def test_thin_traces_keep_their_ends() -> None:
    text = "a\n" + "".join(f"{k}\n" for k in range(5000))
    lines = thinned(text, 100).splitlines()
    assert lines[:2] == ["a", "0"]
    assert lines[-1] == "4999"
    assert len(lines) == 101
    assert thinned("a\n1\n") == "a\n1\n"


KILLS = int(os.environ.get("CCMAC_KILLS", "1"))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
def test_kill_and_resume_leaves_complete_records(tmp_path: Path) -> None:
    """kill -9 at random moments; CCMAC_KILLS=30 asks for more of them."""
    plugin = write_plugin(tmp_path)
    out = tmp_path / "out"
    file = tmp_path / "toy.yaml"
    seeds = ", ".join(str(k) for k in range(2 * KILLS))
    file.write_text(TEXT.replace("DATA", "toy").replace("0, 1, 2", seeds), encoding="utf-8")
    command = [
        sys.executable,
        "-c",
        "from ccmac.cli.main import run; run()",
        "suite",
        "run",
        str(file),
        "--out",
        str(out),
        "--plugin",
        plugin,
        "--jobs",
        "2",
        "--resume",
    ]
    rng = random.Random(0)
    for _ in range(KILLS):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        if not (out / "runs").exists():
            deadline = time.monotonic() + 60
            while not (out / "runs").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
        else:
            time.sleep(rng.uniform(0.5, 4.0))
        process.kill()
        process.wait()
        # Whatever is visible is complete.
        for place in (out / "runs").iterdir():
            if not place.name.startswith("."):
                assert json.loads((place / "summary.json").read_text())["status"] == "optimal"
                assert (place / "trace.csv").read_text().endswith("\n")
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert all(finding.holds for finding in findings(out))
    names = [p.name for p in (out / "runs").iterdir()]
    assert sorted(names) == sorted(r.id for r in read_suite(out).runs)
