"""What owners see of a run: who is waited for, the log, the page, the metrics, who stopped."""

from __future__ import annotations

import json
import re
import signal
import time
import urllib.request
from pathlib import Path

import pytest

import ccmac
from ccmac.cli.main import main
from ccmac.errors import CcmacError
from ccmac.owners.session import Owner
from ccmac.paper.instances import random_quadratic
from ccmac.runtime import links
from owners import N, at_once, finish, free_ports, start, trial

pytest.importorskip("cryptography")


@pytest.fixture(scope="module")
def problem() -> ccmac.Problem:
    return random_quadratic(9, n=N, q=3, m=2, kappa_f=30.0)


def endless(folder: Path, problem: ccmac.Problem) -> Path:
    """A run that goes on until somebody stops it."""
    made = trial(folder, problem, 20.0, tol="1e-300", method='"cross-apapc"')
    for i in range(N):
        file = made / f"me-{i}.toml"
        file.write_text(file.read_text().replace(f'checkpoint = "state-{i}"\nevery = 5\n', ""))
    return made


def test_the_page_the_metrics_the_log_and_who_stopped(
    tmp_path: Path, problem: ccmac.Problem
) -> None:
    folder = endless(tmp_path / "trial", problem)
    [port] = free_ports(1)
    more = ["--log", str(tmp_path / "log"), "--status", f"127.0.0.1:{port}"]
    jobs = [start(folder, i, arguments=more if i == 0 else []) for i in range(N)]
    deadline = time.monotonic() + 60
    page = metrics = ""
    while not re.search(r"^ccmac_iteration [1-9]", metrics, re.MULTILINE):
        assert time.monotonic() < deadline, [job.poll() for job in jobs]
        time.sleep(0.2)
        try:
            page = _read(port, "/")
            metrics = _read(port, "/metrics")
        except OSError:
            continue
    assert 'ccmac_connected{agent="1",name="agent-1"} 1' in metrics
    assert "<td>agent-1</td><td>connected</td>" in page
    assert "<script" not in page
    assert "http://" not in page
    assert "https://" not in page
    time.sleep(1.5)
    metrics = _read(port, "/metrics")
    found = dict(re.findall(r"^ccmac_(\w+) (\S+)$", metrics, re.MULTILINE))
    assert float(found["iteration"]) > 0
    assert float(found["rounds"]) > 0
    jobs[1].send_signal(signal.SIGINT)
    ended = finish(jobs)
    assert [code for code, _, _ in ended] == [130] * N, ended
    for _, _, errors in ended:
        assert "stopped by agent 1" in errors
    events = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    kinds = [event["event"] for event in events]
    assert {"phase", "step"} <= set(kinds)
    assert [e["phase"] for e in events if "phase" in e] == ["setup", "solve", "done"]
    steps = [event for event in events if event["event"] == "step"]
    assert all({"iteration", "rounds", "bytes", "bound", "time"} <= set(step) for step in steps)


def _read(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        return str(answer.read().decode())


def test_whoever_does_not_come_is_named_while_it_is_waited_for(
    tmp_path: Path, problem: ccmac.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "WAITING_SECONDS", 1.0)
    folder = trial(tmp_path / "trial", problem)
    said: dict[int, list[str]] = {1: [], 2: []}

    def one(i: int) -> None:
        file = folder / f"me-{i}.toml"
        file.write_text(f"wait = 2.4\n{file.read_text()}")
        with Owner.read(file).links() as mine:
            mine.say = said[i].append
            mine.start()
            mine.receive(i - 1)

    ended = at_once(one, (1, 2))
    assert all(isinstance(error, CcmacError) for error in ended.values()), ended
    waited = r"waiting for agent 0 \(agent-0, 127.0.0.1:\d+\), 1 s of 2"
    assert any(re.search(waited, line) for line in said[1]), said
    assert "agent 0: did not come for 2 s" in str(ended[2])


def test_a_place_that_cannot_be_used_is_one_line(
    tmp_path: Path, problem: ccmac.Problem, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = trial(tmp_path / "trial", problem)
    me = str(folder / "me-0.toml")
    capsys.readouterr()
    for option, value, says in (
        ("--log", str(tmp_path / "no" / "log"), "log: No such file or directory"),
        ("--status", "nowhere", "is no address"),
        ("--status", "203.0.113.1:9", "cannot listen there"),
    ):
        assert main(["agent", me, option, value]) == 2
        said = capsys.readouterr().err
        assert says in said
        assert said.count("\n") == 1
