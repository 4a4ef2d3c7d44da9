"""What checkpoints decide: when, which generation, and which numbers they believe."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.errors import InputError
from ccmac.methods import checkpoints
from ccmac.methods.checkpoints import EVERY, LARGEST, Checkpoints
from ccmac.methods.driver import Settings, drive
from ccmac.paper.instances import random_quadratic
from ccmac.runtime.masked import Masked
from ccmac.storage.states import counts, number, told


def made(**more: Any) -> Any:
    found = object.__new__(Checkpoints)
    vars(found).update(more)
    return found


@pytest.mark.parametrize(
    ("others", "common"),
    [
        ([5.0, 6.0], 6),
        ([4.0, 5.0], 5),
        ([5.0, -1.0], 5),
        ([-1.0, -1.0], "refused"),
        ([3.0, 4.0], "refused"),
    ],
)
def test_the_newest_generation_that_all_have(
    others: list[float], common: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here are 1, 5 and 6: the last two are told, a row for each agent here."""
    monkeypatch.setattr(
        checkpoints.apart, "generations", lambda path: {6: "six", 1: "one", 5: "five"}
    )
    told: list[Any] = []

    def gather(rows: Any) -> Any:
        told.append(rows)
        return [*rows, np.array(others)]

    found = made(directory="here", runtime=Fake(owned=[0, 1], _gather=gather))
    if common == "refused":
        with pytest.raises(InputError, match=r"agent 2 has generation (none|3, 4), others .*5, 6"):
            found._common_generation()
    else:
        assert found._common_generation() == {6: "six", 5: "five"}[common]
    assert told[0].tolist() == [[5.0, 6.0], [5.0, 6.0]]


def test_what_a_stored_run_is_known_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four differences are named; then problem, version, and what it was planned for."""
    found = made(directory="here", identity={}, _problem="abc")
    stored = {
        "identity": {},
        "problem": "abc",
        "version": checkpoints.__version__,
        "planned": [1e-3, "1e-6"],
        "path": ["next", 3],
    }
    monkeypatch.setattr(checkpoints, "differences", lambda stored, mine: [])
    found._recognise(stored)
    assert (found.planned, found.target, found.path) == (1e-3, 1e-6, ["next", "3"])
    assert found._stored is stored
    for change, why in (
        ({"problem": "abd"}, "problem and version"),
        ({"version": "0"}, "problem and version"),
        ({"planned": [1.0]}, "planned for;"),
        ({"path": None}, "planned for;"),
        ({"planned": [1.0, 0.0]}, "no positive"),
        ({"planned": ["inf", 1.0]}, "no positive"),
    ):
        with pytest.raises(InputError, match=f"checkpoint here: .*{why}"):
            found._recognise({**stored, **change})
    for count, words in (
        (1, ": d0 differs from"),
        (2, ": d0, d1 differ from"),
        (4, "d3 differ from"),
        (5, "d3 and 1 more differ from"),
        (7, "d3 and 3 more differ from"),
    ):
        named = [f"d{k}" for k in range(count)]
        monkeypatch.setattr(checkpoints, "differences", lambda stored, mine, named=named: named)
        with pytest.raises(InputError, match=words):
            found._recognise(stored)


def test_a_run_ended_while_it_was_first_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    for mine, other, refused in (
        ({0: "first"}, [-1.0, -1.0], False),
        ({0: "a", 1: "b"}, [-1.0, -1.0], True),
    ):
        monkeypatch.setattr(checkpoints.apart, "generations", lambda path, mine=mine: mine)
        found = made(
            directory="here",
            runtime=Fake(owned=[0], _gather=lambda rows, o=other: [*rows, np.array(o)]),
        )
        if refused:
            with pytest.raises(InputError, match="agent 1 has generation none, others 0, 1"):
                found._common_generation()
        else:
            assert found._common_generation() is None


def test_when_it_is_time_to_save(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: 110.0)
    counted = made(every=3)
    assert [k for k in range(1, 8) if counted.due(k)] == [3, 6]
    for seconds, root, late in (
        (10.0, True, True),
        (10.1, True, False),
        (10.0, False, False),
        (None, True, False),
    ):
        alone = made(
            every=None, seconds=seconds, _last=100.0, runtime=Fake(alone=True, is_root=root)
        )
        assert alone.due(1) == late
    notes = Fake(save=True)
    told = made(
        every=None, seconds=1.0, _last=0.0, runtime=Fake(alone=False, is_root=True, notes=notes)
    )
    assert told.due(1)
    assert not told.due(2)  # it was heard once
    assert EVERY == 50


def test_a_run_goes_on_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The warning says how often, and when last."""
    tried: list[int] = []

    def full(runtime: Any, directory: Path, count: int, *_: Any, **__: Any) -> None:
        tried.append(count)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints.store, "save", full)
    result = ccmac.solve(
        random_quadratic(0, 3),
        "path",
        "cross-apapc",
        1e-12,
        max_iterations=6,
        checkpoint={"path": tmp_path, "every": 2},
    )
    assert result.status == "max_iterations"
    assert tried[:3] == [2, 4, 6]
    words = f"{len(tried)} could not be written, the last at iteration 6 (No space left on device)"
    assert [text for text in result.warnings if f"checkpoint {tmp_path}: {words}" in text]


def test_numbers_of_a_stored_state() -> None:
    assert (told(math.inf), told(-math.inf), told(1.5), told(3), told(True)) == (
        "inf",
        "-inf",
        1.5,
        3,
        True,
    )
    assert math.isinf(number("gap", 0.0, "inf"))
    assert number("gap", 0.0, 2) == 2.0
    assert isinstance(number("gap", 0.0, 2), float)
    assert number("count", 0, 7) == 7
    assert number("over", False, True) is True
    for before, stored in ((0, 1.5), (0, True), (False, 1), (0.0, None), (0.0, [])):
        with pytest.raises(ValueError, match=f"n is no {type(before).__name__}"):
            number("n", before, stored)
    with pytest.raises(ValueError, match="far"):
        number("gap", 0.0, "far")
    ledger = {"setup": {"A": 0}, "solve": {"rounds": 3}}
    assert counts(ledger) == ledger
    for wrong in (
        {"setup": {"A": -1}},
        {"setup": {"A": 1.0}},
        {"other": {"A": 1}},
        {"setup": {"A": True}},
    ):
        with pytest.raises(ValueError, match="holds no counts"):
            counts(wrong)


def test_pieces_are_those_of_the_method() -> None:
    found = made(iteration=Fake(space=Fake(count=2)))
    like = np.zeros((2, 1))
    good = np.array([LARGEST])

    def stored(*pieces: Any) -> Any:
        return Fake(agents={"rows:r": list(pieces)})

    assert len(found._pieces(stored(good, -good), "rows:r", like)) == 2
    for pieces, why in (
        ((good,), "is there for 1 agents"),
        ((good, np.array([1])), "of kind int64"),
        ((good, 1.01 * good), "beyond"),
        ((good, good * math.nan), "holds NaN"),
    ):
        with pytest.raises(ValueError, match=why):
            found._pieces(stored(*pieces), "rows:r", like)
    free = np.full((2, 1), math.inf)
    assert len(found._pieces(stored(good, good * math.inf), "rows:r", free)) == 2


def test_a_resumed_run_asks_after_its_health_as_before() -> None:
    """Where it goes on from a checkpoint, and there alone."""
    asked: list[int] = []
    runtime = Fake(ledger=None, notes=Fake(stop=False, asked=None), network=Fake(diameter=1))

    def point(state: Any) -> Any:
        asked.append(1)
        raise KeyboardInterrupt

    iteration: Any = Fake(
        space=Fake(runtime=runtime), cost={"rounds": 0, "averagings": 0}, point=point, silent=False
    )
    saver: Any = object()
    for first, kept, resumed in ((10, saver, True), (0, saver, False), (10, None, False)):
        asked.clear()
        settings = Settings(first, first=first, saver=kept)  # no step is left to do
        if resumed:
            with pytest.raises(KeyboardInterrupt):
                drive(iteration, None, settings)  # type: ignore[arg-type]
        else:
            assert drive(iteration, None, settings).iterations == first  # type: ignore[arg-type]
        assert bool(asked) == resumed


def again(method: str, stop: int, last: int, folder: Path) -> tuple[Any, Any]:
    """A run of ``last`` iterations, and one that was begun for ``stop`` and continued."""
    X = np.random.default_rng(1).standard_normal((60, 12))
    y = np.resize([1.0, -1.0, -1.0], 60)
    loss = "logistic" if method == "cross-newton" else "squared"
    problem = ccmac.vfl.problem(X, y, 3, loss=loss, regularization=1e-5)
    whole = ccmac.solve(problem, "ring", method, 1e-15, max_iterations=last)
    for limit in (stop, stop, last, last):
        found = ccmac.solve(
            problem,
            "ring",
            method,
            1e-15,
            max_iterations=limit,
            checkpoint={"path": folder, "every": 1},
        )
    return whole, found


@pytest.mark.parametrize("method", ["cross-apapc", "joint-apapc", "cross-lbfgs", "cross-newton"])
@pytest.mark.parametrize(("stop", "last"), [(1, 9), (9, 9), (12, 25)])
def test_what_waited_for_a_message_is_on_the_bill_once(
    tmp_path: Path, method: str, stop: int, last: int
) -> None:
    """Numbers asked for in the setup that travel later were charged again by every run that went on
    from a checkpoint, and one that had ended by itself took a step more.
    """
    whole, found = again(method, stop, last, tmp_path / "state")
    assert found.ledger.as_dict() == whole.ledger.as_dict()
    assert (found.status, found.iterations) == (whole.status, whole.iterations)
    assert [x.tobytes() for x in found.x] == [x.tobytes() for x in whole.x]


def test_masked_sums_go_on_with_the_scales_agreed_upon(tmp_path: Path) -> None:
    """They were agreed upon again, and charged, by every run that went on from a checkpoint."""
    problem = random_quadratic(0, 4)
    asked = {"tol": 1e-15, "averaging": "masked"}
    whole = ccmac.solve(problem, "ring", "pdhg", max_iterations=23, **asked)
    for limit in (7, 7, 23, 23):
        found = ccmac.solve(
            problem,
            "ring",
            "pdhg",
            max_iterations=limit,
            **asked,
            checkpoint={"path": tmp_path / "state", "every": 2},
        )
    assert found.ledger.as_dict() == whole.ledger.as_dict()
    assert [x.tobytes() for x in found.x] == [x.tobytes() for x in whole.x]
    assert repr(found.error_bound) == repr(whole.error_bound)


@pytest.mark.parametrize(
    "stored", [3, [3], [[[1], [2, 3]]], [[[1.5], [2]]], [[[-1], [2]]], [["a", "b"]]]
)
def test_scales_that_are_none(stored: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Masked(ccmac.Network.ring(4)).recall(stored)
    masked = Masked(ccmac.Network.ring(4))
    masked.recall([[[3, 1], [-900, 7]]])
    assert masked.memory() == [[[3, 1], [-900, 7]]]


@pytest.mark.parametrize("steps", [7, 12])
def test_what_stalled_before_a_run_was_saved_still_counts(tmp_path: Path, steps: int) -> None:
    """Beyond double precision cross-direct stalls, and cross-cg after it; the better is told."""
    draw = np.random.default_rng(0).standard_normal
    H = np.diag(np.geomspace(1.0, 1e6, 6))
    agents = [
        ccmac.Agent(
            ccmac.objectives.Quadratic(H, draw(6)), A=draw((2, 4)), B=draw((2, 2)), b=draw(2)
        )
        for _ in range(4)
    ]
    kept = {"path": tmp_path / "kept", "every": 1}
    seen = list[int]()

    def solved(**more: Any) -> ccmac.Result:
        return ccmac.solve(ccmac.Problem(agents), "ring", tol=1e-16, **more)

    whole = solved(checkpoint={"path": tmp_path / "whole", "every": 1})
    assert whole.plan.method == "cross-direct"
    assert "cross-direct stalled; went on with cross-cg" in whole.warnings
    solved(checkpoint=kept, callback=lambda k, state: seen.append(k) or len(seen) == steps)
    assert max(seen) < steps  # in the second method
    again = solved(checkpoint=kept)
    assert (again.plan.method, again.status, again.error_bound, again.iterations) == (
        whole.plan.method,
        whole.status,
        whole.error_bound,
        whole.iterations,
    )
    for one, other in zip([*again.x, again.z], [*whole.x, whole.z], strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.ledger.as_dict() == whole.ledger.as_dict()
    assert again.warnings == whole.warnings
