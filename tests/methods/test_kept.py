"""What keeping a run costs: the trace is bounded, appended to, and a full disk ends nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.errors import InputError
from ccmac.ledger import Ledger
from ccmac.methods import CrossApapc, CrossCg
from ccmac.methods import run as runs
from ccmac.methods.cg import DualConjugateGradients
from ccmac.paper.instances import random_quadratic
from ccmac.storage import checkpoint as store
from ccmac.storage import rows
from ccmac.trace import Trace

NETWORK = "ring"


def filled(count: int, limit: int, trace: Trace | None = None, first: int = 1) -> Trace:
    trace = trace or Trace(limit)
    for k in range(first, count + 1):
        trace.record(k, 0.1 * k, Ledger(), float("nan"), 1.0 / k)
    return trace


@pytest.mark.parametrize("limit", [2, 5, 8])
@pytest.mark.parametrize("count", [1, 2, 5, 6, 9, 17, 100])
def test_a_trace_is_thinned_and_keeps_its_ends(limit: int, count: int) -> None:
    kept = filled(count, limit)["iteration"]
    assert len(kept) <= limit + 1
    assert kept[0] == 1
    assert kept[-1] == count
    steps = np.diff(kept)[:-1]
    assert len(set(steps)) <= 1
    if count <= limit:
        assert list(kept) == list(range(1, count + 1))


@pytest.mark.parametrize("split", [1, 4, 7, 33, 64])
def test_a_thinned_trace_continues(split: int) -> None:
    before = filled(split, 6)
    after = Trace()
    after.restore(before.since(0), before.memory())
    assert filled(80, 6, after, split + 1).to_csv() == filled(80, 6).to_csv()


@pytest.fixture
def problem() -> ccmac.Problem:
    return random_quadratic(7, n=4)


def asked(place: Path, **more: Any) -> dict[str, Any]:
    kept = {"path": place, "every": 3}
    return {"method": "cross-apapc", "tol": 1e-8, "checkpoint": kept, **more}


def columns(trace: Trace) -> list[Any]:
    return [trace[name].tolist() for name in ("iteration", "rounds", "gradients", "bytes")]


@pytest.fixture
def in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short runs write their trace to its file as well."""
    monkeypatch.setattr(rows, "CHUNK", 2)


@pytest.mark.parametrize("chunk", [1, 2, 7, 512])
@pytest.mark.parametrize("limit", [6, 20_000])
def test_a_resumed_trace_is_the_same(
    problem: ccmac.Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, chunk: int
) -> None:
    monkeypatch.setattr(runs, "Trace", lambda: Trace(limit))
    monkeypatch.setattr(rows, "CHUNK", chunk)
    whole = ccmac.solve(problem, NETWORK, "cross-apapc", 1e-8)
    for stop in (4, 11, 29):
        ccmac.solve(problem, NETWORK, **asked(tmp_path, max_iterations=stop))
    resumed = ccmac.solve(problem, NETWORK, **asked(tmp_path))
    assert columns(resumed.trace) == columns(whole.trace)
    names = {file.name.partition("-")[0] for file in tmp_path.iterdir()}
    grown = {"trace"} if chunk <= min(limit // 2, len(whole.trace)) else set()
    assert names == {"checkpoint.json", "state"} | grown


@pytest.mark.usefixtures("in_files")
def test_what_was_appended_before_a_crash_does_not_count(
    problem: ccmac.Problem, tmp_path: Path
) -> None:
    whole = ccmac.solve(problem, NETWORK, "cross-apapc", 1e-8)
    ccmac.solve(problem, NETWORK, **asked(tmp_path, max_iterations=11))
    with next(tmp_path.glob("trace-*.bin")).open("ab") as stream:
        stream.write(b"half a row")
    resumed = ccmac.solve(problem, NETWORK, **asked(tmp_path))
    assert columns(resumed.trace) == columns(whole.trace)


@pytest.mark.usefixtures("in_files")
def test_a_cut_trace_is_refused(problem: ccmac.Problem, tmp_path: Path) -> None:
    ccmac.solve(problem, NETWORK, **asked(tmp_path, max_iterations=11))
    file = next(tmp_path.glob("trace-*.bin"))
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    with pytest.raises(InputError, match="cut short"):
        ccmac.solve(problem, NETWORK, **asked(tmp_path))
    file.write_bytes(b"\x01" + content[1:])
    with pytest.raises(InputError, match="checksum"):
        ccmac.solve(problem, NETWORK, **asked(tmp_path))


def test_leftovers_of_a_killed_run_go_and_foreign_files_stay(
    problem: ccmac.Problem, tmp_path: Path
) -> None:
    ccmac.solve(problem, NETWORK, **asked(tmp_path, max_iterations=5))
    mine = ["state-1-00003.bin", ".checkpoint.k1234567.json", "trace-000009.bin"]
    theirs = ["state-of-mind.bin", "state-2.bin", ".hidden", "trace.bin"]
    for name in (*mine, *theirs):
        (tmp_path / name).write_bytes(b"")
    ccmac.solve(problem, NETWORK, **asked(tmp_path))
    left = {file.name for file in tmp_path.iterdir()}
    assert not left & set(mine)
    assert left >= set(theirs)


def test_a_full_disk_does_not_end_the_run(
    problem: ccmac.Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: str, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "flushed_write", full)
    ended = ccmac.solve(problem, NETWORK, **asked(tmp_path))
    assert ended.status == "optimal"
    assert any("No space left" in text and "went on" in text for text in ended.warnings)


def test_a_place_that_cannot_be_written_is_refused_before_the_solve(
    problem: ccmac.Problem, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "state", Path("/proc/new")):
        with pytest.raises(InputError, match="cannot"):
            ccmac.solve(problem, NETWORK, **asked(place))


def test_a_run_that_went_on_with_another_method_resumes_there(
    problem: ccmac.Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranked = [(CrossCg(), "first"), (CrossApapc(), "second")]
    monkeypatch.setattr(runs.Auto, "ranked", lambda *_: list(ranked))
    monkeypatch.setattr(DualConjugateGradients, "finished", lambda *_: True)
    whole = ccmac.solve(problem, NETWORK, "auto", 1e-8)
    assert whole.plan is not None
    assert whole.plan.method == "cross-apapc"
    ccmac.solve(problem, NETWORK, **asked(tmp_path, method="auto", max_iterations=8))
    assert store.read_index(tmp_path).manifest["path"] == ["next"]
    resumed = ccmac.solve(problem, NETWORK, **asked(tmp_path, method="auto"))
    assert resumed.iterations == whole.iterations
    assert columns(resumed.trace) == columns(whole.trace)
    for a, b in zip(resumed.x, whole.x, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_widened_run_resumes_with_its_interval(
    problem: ccmac.Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt is declared diverged at its sixth step; the second is saved."""
    real = runs.drive

    def diverges(iteration: Any, state: Any, settings: Any) -> Any:
        outcome = real(iteration, state, settings)
        if outcome.iterations == 6 and iteration.system.interval.source != seen[-1]:
            seen.append(iteration.system.interval.source)
            outcome.status = "diverged"
        return outcome

    seen = [""]
    monkeypatch.setattr(runs, "drive", diverges)
    ccmac.solve(problem, NETWORK, **asked(tmp_path, max_iterations=6))
    stored = store.read_index(tmp_path).manifest["path"]
    assert set(stored) == {"wider"}
    monkeypatch.undo()
    ended = ccmac.solve(problem, NETWORK, **asked(tmp_path))
    assert ended.status == "optimal"


@pytest.mark.parametrize(
    "wanted",
    [
        False,
        3,
        b"state",
        {"path": None},
        {"path": "s", "every": 0},
        {"path": "s", "every": 2.5},
        {"path": "s", "seconds": float("nan")},
        {"path": "s", "seconds": "soon"},
        {"path": "s", "often": 1},
    ],
)
def test_what_is_no_checkpoint_is_refused(problem: ccmac.Problem, wanted: Any) -> None:
    with pytest.raises(InputError, match=r"^checkpoint: "):
        ccmac.solve(problem, NETWORK, checkpoint=wanted)


@pytest.mark.parametrize("agent", [0, 2, 3])
def test_a_start_that_differs_in_one_agent_is_another_run(
    problem: ccmac.Problem, tmp_path: Path, agent: int
) -> None:
    warm = ccmac.solve(problem, NETWORK, "cross-apapc", 1e-2)
    ccmac.solve(problem, NETWORK, **asked(tmp_path, warm_start=warm, max_iterations=5))
    x = [v.copy() for v in warm.x]
    x[agent][-1] += 1.0
    with pytest.raises(InputError, match=f"the starting point of agent {agent} differs"):
        ccmac.solve(problem, NETWORK, **asked(tmp_path, warm_start=replace(warm, x=x)))
