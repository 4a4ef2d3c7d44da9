"""A stored run continues to the same bits, and refuses everything else in one line."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from filelock import FileLock
from scipy.sparse.linalg import aslinearoperator

import ccmac
from ccmac.errors import InputError
from ccmac.ledger import Ledger, Trace
from ccmac.methods import CrossApapc, CrossCg, CrossLbfgs
from ccmac.methods import run as runs
from ccmac.methods.cg import DualConjugateGradients
from ccmac.objectives import Custom, Logistic, Quadratic, Separable, SquaredDistance
from ccmac.paper.instances import random_quadratic
from ccmac.storage.checkpoint import LOCK, Store
from pins.problems import posed

NETWORK = "ring"
METHOD = CrossApapc()


def columns(result: ccmac.Result) -> list[Any]:
    names = ("iteration", "rounds", "gradients", "bytes")
    return [result.trace[name].tolist() for name in names]


def assert_same(found: ccmac.Result, whole: ccmac.Result) -> None:
    """Bits, bill, history, verdict."""
    assert [x.tobytes() for x in found.x] == [x.tobytes() for x in whole.x]
    assert found.z.tobytes() == whole.z.tobytes()
    assert (found.status, found.iterations) == (whole.status, whole.iterations)
    assert repr(found.error_bound) == repr(whole.error_bound)
    assert found.ledger.as_dict() == whole.ledger.as_dict()
    assert columns(found) == columns(whole)


# -- the same bits ---------------------------------------------------------------------------------
def regression(loss: str) -> ccmac.Problem:
    X = np.random.default_rng(1).standard_normal((60, 12))
    return ccmac.vfl.problem(X, np.resize([1.0, -1.0, -1.0], 60), 3, loss=loss, regularization=1e-5)


@pytest.mark.parametrize(
    "method",
    [CrossApapc(), "joint-apapc", CrossLbfgs(), "cross-newton", CrossCg(), "dpmm", "cross-sliding"],
)
@pytest.mark.parametrize(("stop", "last"), [(1, 9), (12, 25)])
def test_a_run_in_pieces_is_the_same_run(tmp_path: Path, method: Any, stop: int, last: int) -> None:
    """Also one that has ended already, and one whose setup asked for sums that travel later."""
    problem = regression("logistic" if method == "cross-newton" else "squared")
    whole = ccmac.solve(problem, NETWORK, method, 1e-15, max_iterations=last)
    kept = {"path": tmp_path / "state", "every": 1}
    for limit in (stop, stop, last, last):
        found = ccmac.solve(problem, NETWORK, method, 1e-15, max_iterations=limit, checkpoint=kept)
    assert_same(found, whole)
    names = sorted(file.name for file in (tmp_path / "state").iterdir() if file.name != LOCK)
    assert len(names) == 1  # earlier saves are gone


@pytest.mark.parametrize("method", [CrossApapc(), CrossCg(), CrossLbfgs(), "cross-direct"])
def test_a_certified_run_in_pieces_ends_where_it_would(tmp_path: Path, method: Any) -> None:
    made = posed("quadratic")
    tol = 1e-30 if method == "cross-direct" else 1e-8
    whole = ccmac.solve(made.problem, made.network, method, tol)
    kept = {"path": tmp_path, "every": 1}
    for limit in (1, 3, None):
        found = ccmac.solve(
            made.problem, made.network, method, tol, checkpoint=kept, max_iterations=limit
        )
    assert_same(found, whole)


def test_masked_sums_go_on_with_the_scales_agreed_upon(tmp_path: Path) -> None:
    problem = random_quadratic(0, 4)
    asked: dict[str, Any] = {"method": "pdhg", "tol": 1e-15, "averaging": "masked"}
    whole = ccmac.solve(problem, NETWORK, max_iterations=23, **asked)
    asked["checkpoint"] = {"path": tmp_path / "state", "every": 2}
    for limit in (7, 7, 23, 23):
        found = ccmac.solve(problem, NETWORK, max_iterations=limit, **asked)
    assert_same(found, whole)


def test_a_run_that_went_on_with_another_method_resumes_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranked = [(CrossCg(), "first"), (CrossApapc(), "second")]
    monkeypatch.setattr(runs.Auto, "ranked", lambda *_: list(ranked))
    monkeypatch.setattr(DualConjugateGradients, "finished", lambda *_: True)
    problem = random_quadratic(7, n=4)
    whole = ccmac.solve(problem, NETWORK, "auto", 1e-8)
    assert whole.plan is not None
    assert whole.plan.method == "cross-apapc"
    kept = {"path": tmp_path, "every": 3}
    ccmac.solve(problem, NETWORK, "auto", 1e-8, checkpoint=kept, max_iterations=8)
    assert_same(ccmac.solve(problem, NETWORK, "auto", 1e-8, checkpoint=kept), whole)


@pytest.mark.parametrize("limit", [6, 20_000])
def test_a_history_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(runs, "Trace", lambda: Trace(limit))
    problem = random_quadratic(7, n=4)
    whole = ccmac.solve(problem, NETWORK, METHOD, 1e-8)
    for stop in (4, 11, 29, None):
        found = ccmac.solve(
            problem, NETWORK, METHOD, 1e-8, checkpoint=tmp_path, max_iterations=stop
        )
    assert columns(found) == columns(whole)


@pytest.mark.parametrize("limit", [2, 6, 8])
@pytest.mark.parametrize("count", [1, 2, 5, 6, 9, 17, 100])
def test_a_history_is_thinned_and_keeps_its_ends(limit: int, count: int) -> None:
    trace = Trace(limit)
    for k in range(1, count + 1):
        trace.record(k, 0.1 * k, Ledger(), float("nan"), 1.0 / k)
    kept = trace["iteration"]
    assert len(kept) <= limit + 1
    assert (kept[0], kept[-1]) == (1, count)
    assert len(set(np.diff(kept)[:-1])) <= 1
    assert count > limit or list(kept) == list(range(1, count + 1))


# -- what a run depends on -------------------------------------------------------------------------
def logistic(flip: int | None = None, weight: float = 0.1) -> ccmac.Problem:
    """Four agents with labels; those of agent ``flip`` are turned round."""
    rng = np.random.default_rng(3)
    agents = []
    for i in range(4):
        data = rng.standard_normal((12, 3))
        labels = rng.choice([-1.0, 1.0], 12)
        z = Logistic(data, -labels if i == flip else labels, ridge=weight)
        objective = Separable(SquaredDistance(1.0, rng.standard_normal(4)), z)
        A = sp.random_array((3, 4), density=0.6, rng=rng, format="csr")
        agents.append(ccmac.Agent(objective, A=A, B=rng.standard_normal((3, 3)), b=np.ones(3)))
    return ccmac.Problem(agents)


def with_agent(problem: ccmac.Problem, i: int, **blocks: Any) -> ccmac.Problem:
    agents = list(problem.agents.values())
    agents[i] = replace(agents[i], **blocks)
    return ccmac.Problem(agents)


def permuted(problem: ccmac.Problem) -> ccmac.Problem:
    """The same stored numbers of A_2 at other places."""
    A = problem.agents[2].A
    moved = sp.csr_array((A.data, (A.indices + 1) % A.shape[1], A.indptr), shape=A.shape)
    return with_agent(problem, 2, A=moved)


def operators(curved: float = 1.0) -> ccmac.Problem:
    rng = np.random.default_rng(5)
    agents = []
    for i in range(3):
        A = aslinearoperator(rng.standard_normal((2, 3)))
        f = Custom(
            lambda x, z: 0.5 * float(x @ x + z @ z),
            lambda x, z: (x, z),
            1.0,
            curved if i == 2 else 1.0,
        )
        agents.append(ccmac.Agent(f, A=A, B=rng.standard_normal((2, 2)), b=np.ones(2)))
    return ccmac.Problem(agents)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("state")
    ended = ccmac.solve(logistic(), NETWORK, METHOD, 1e-9, checkpoint=place, max_iterations=9)
    assert ended.status == "max_iterations"
    return place


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"problem": lambda: logistic(flip=3)}, "the data of agent 3 differs"),
        ({"problem": lambda: logistic(weight=1.0)}, "the data of agent 0, 1, 2, ... differs"),
        ({"problem": lambda: permuted(logistic())}, "the data of agent 2 differs"),
        ({"problem": lambda: with_agent(logistic(), 1, b=np.zeros(3))}, "the data of agent 1"),
        ({"network": "path"}, "the network"),
        ({"averaging": "tree"}, "the averaging scheme"),
        ({"method": CrossApapc(inner=2)}, "an option of the method differs"),
        ({"method": "dpmm"}, "the method, "),
        ({"seed": 5}, "the seed"),
        ({"costs": ccmac.Costs(round=7.0)}, "the costs"),
        ({"reference": np.ones(16)}, "a reference"),
        ({"warm_start": ccmac.Solution([np.ones(4)] * 4, np.zeros(3))}, "the data of agent 0"),
        ({"warm_start": ccmac.Solution([np.zeros(4)] * 4, np.ones(3))}, "the starting point"),
    ],
)
def test_another_run_is_refused(stored: Path, change: dict[str, Any], words: str) -> None:
    before = {f.name: f.read_bytes() for f in stored.iterdir()}
    asked: dict[str, Any] = {"problem": logistic, "network": NETWORK, "method": METHOD, **change}
    problem = asked.pop("problem")()
    with pytest.raises(InputError) as caught:
        ccmac.solve(problem, tol=1e-9, checkpoint=stored, **asked)
    assert words in str(caught.value)
    assert "from the stored run's" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert {f.name: f.read_bytes() for f in stored.iterdir()} == before


def test_code_is_known_by_its_kind_and_constants(tmp_path: Path) -> None:
    ccmac.solve(operators(), NETWORK, tol=1e-9, checkpoint=tmp_path, max_iterations=2)
    ccmac.solve(operators(), NETWORK, tol=1e-9, checkpoint=tmp_path, max_iterations=3)
    with pytest.raises(InputError, match="the data of agent 2 differs"):
        ccmac.solve(operators(curved=0.5), NETWORK, tol=1e-9, checkpoint=tmp_path)


@pytest.mark.parametrize("tol", [1e-3, 1e-9, 1e-11])
@pytest.mark.parametrize("method", [METHOD, "auto"])
def test_another_tolerance_is_accepted(tmp_path: Path, method: Any, tol: float) -> None:
    problem = logistic()
    asked = {"checkpoint": {"path": tmp_path, "every": 4}}
    ccmac.solve(problem, NETWORK, method, 1e-6, max_iterations=9, **asked)
    fresh = ccmac.solve(problem, NETWORK, method, tol)
    resumed = ccmac.solve(problem, NETWORK, method, tol, max_seconds=300.0, **asked)
    assert resumed.status == fresh.status == "optimal"
    gap = np.concatenate([*resumed.x, resumed.z]) - np.concatenate([*fresh.x, fresh.z])
    assert np.linalg.norm(gap) <= fresh.error_bound + resumed.error_bound


def test_a_certified_schedule_belongs_to_its_tolerance(tmp_path: Path) -> None:
    flat = Quadratic(np.diag([1.0, 0.0]), np.ones(2) * [1.0, 0.0])
    problem = ccmac.Problem([ccmac.Agent(flat, A=[[1.0]], B=[[1.0]], b=[1.0]) for _ in range(3)])
    method = ccmac.methods.CrossContinuation(schedule="certified", radius=3.0)
    ccmac.solve(problem, NETWORK, method, 1e-2, checkpoint=tmp_path, max_iterations=3)
    with pytest.raises(InputError, match="the tolerance of a certified schedule"):
        ccmac.solve(problem, NETWORK, method, 1e-3, checkpoint=tmp_path)


# -- the folder ------------------------------------------------------------------------------------
def only_file(folder: Path) -> Path:
    [file] = folder.glob("state-*.npz")
    return file


def test_a_save_that_not_all_have_written_does_not_count(tmp_path: Path) -> None:
    """As two processes leave it, of which one is killed before its file has its name."""
    problem = random_quadratic(7, n=4)
    whole = ccmac.solve(problem, NETWORK, METHOD, 1e-8)
    ccmac.solve(problem, NETWORK, METHOD, 1e-8, checkpoint=tmp_path, max_iterations=11)
    half = ["state-000099-00000-00001.npz", ".state-000099-00002-00003.1a2b3c4d.npz"]
    theirs = ["state-of-mind.npz", ".hidden", "notes.txt"]
    for name in (*half, *theirs):
        (tmp_path / name).write_bytes(b"half")
    found = ccmac.solve(problem, NETWORK, METHOD, 1e-8, checkpoint={"path": tmp_path, "every": 3})
    assert_same(found, whole)
    left = {file.name for file in tmp_path.iterdir()}
    assert left >= set(theirs)
    assert not left & set(half)


def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path) -> None:
    problem = random_quadratic(7, n=4)
    ccmac.solve(problem, NETWORK, METHOD, 1e-8, checkpoint=tmp_path / "s", max_iterations=11)
    sound = only_file(tmp_path / "s")
    content = sound.read_bytes()
    with np.load(sound) as archive:
        arrays = dict(archive)
    spot = content.index(arrays["agents/vector:w"].tobytes()) + 5
    flipped = content[:spot] + bytes([content[spot] ^ 1]) + content[spot + 1 :]
    for damaged in (flipped, content[:-100], b"", b"x" * 999):
        sound.write_bytes(damaged)
        with pytest.raises(InputError, match="is damaged") as caught:
            ccmac.solve(problem, NETWORK, METHOD, 1e-8, checkpoint=tmp_path / "s")
        assert "\n" not in str(caught.value)
        assert sound.read_bytes() == damaged


def test_files_of_some_agents_are_not_all(tmp_path: Path) -> None:
    problem = random_quadratic(7, n=4)
    ccmac.solve(problem, NETWORK, METHOD, 1e-8, checkpoint=tmp_path, max_iterations=11)
    first = only_file(tmp_path)
    shutil.move(first, tmp_path / "state-000003-00000-00002.npz")
    with pytest.raises(InputError, match="no save is there of all agents"):
        ccmac.solve(problem, NETWORK, METHOD, 1e-8, checkpoint=tmp_path)


def test_a_run_that_was_killed_while_it_was_first_saved_begins_again(tmp_path: Path) -> None:
    problem = random_quadratic(7, n=4)
    whole = ccmac.solve(problem, NETWORK, METHOD, 1e-8)
    (tmp_path / "state-000000-00000-00001.npz").write_bytes(b"of another process")
    kept = {"path": tmp_path, "every": 3}
    assert_same(ccmac.solve(problem, NETWORK, METHOD, 1e-8, checkpoint=kept), whole)
    assert only_file(tmp_path).name.endswith("-00000-00003.npz")


def test_one_run_at_a_time_has_the_folder(tmp_path: Path) -> None:
    with FileLock(tmp_path / LOCK), pytest.raises(InputError, match="another run is writing"):
        ccmac.solve(random_quadratic(7, n=4), NETWORK, METHOD, checkpoint=tmp_path)


def test_a_full_disk_does_not_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Store, "save", full)
    kept = {"path": tmp_path, "every": 2}
    ended = ccmac.solve(
        random_quadratic(0, 3), "path", METHOD, 1e-12, checkpoint=kept, max_iterations=6
    )
    assert ended.status == "max_iterations"
    words = "could not be written, the last at iteration 6 (No space left on device)"
    assert any(words in text for text in ended.warnings)


def test_saved_by_the_clock(tmp_path: Path) -> None:
    kept = {"path": tmp_path, "seconds": 1e-9}
    problem = random_quadratic(0, 3)
    ccmac.solve(problem, "path", METHOD, 1e-12, checkpoint=kept, callback=lambda k, _: k == 5)
    number = int(only_file(tmp_path).name.split("-")[1])
    assert number == 5  # saves 0 to 4, and one at the end


def test_a_place_that_cannot_be_written_is_refused_before_the_solve(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "state", Path("/proc/new")):
        with pytest.raises(InputError, match="cannot"):
            ccmac.solve(random_quadratic(7, n=4), NETWORK, METHOD, checkpoint=place)


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
def test_what_is_no_checkpoint_is_refused(wanted: Any) -> None:
    with pytest.raises(InputError, match=r"^checkpoint: "):
        ccmac.solve(random_quadratic(7, n=4), NETWORK, checkpoint=wanted)
