"""The bar that a run shows, and what the steps of others are measured by."""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest
from rich.progress import Progress

from ccmac.ledger import Ledger
from ccmac.methods.driver import Outcome, _Health
from ccmac.methods.history import GRADIENT, MEMORY, SIZE, places, replaced
from ccmac.methods.start import reporter
from ccmac.network import Network
from ccmac.runtime import InProcess
from ccmac.runtime.space import Space


def test_a_bar_says_how_far_and_at_what_price(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[dict[str, Any]] = []
    totals: list[Any] = []
    add = Progress.add_task

    def added(self: Progress, name: str, **fields: Any) -> Any:
        totals.append((name, fields["total"]))
        assert len(self.columns) == 4  # the name, a bar, counts, the time
        return add(self, name, **fields)

    monkeypatch.setattr(Progress, "add_task", added)
    monkeypatch.setattr(Progress, "update", lambda self, task, **fields: said.append(fields))
    ledger = Ledger()
    ledger.charge(rounds=1234)
    for predicted, bound, relative in (
        (50.0, 0.01, 0.5),
        (math.inf, math.inf, 0.5),
        (None, math.nan, math.nan),
    ):
        with reporter(True, True, "cross-cg", predicted) as report:
            assert report is not None
            report(7, bound, relative, ledger)
    assert totals == [("cross-cg", 50.0), ("cross-cg", None), ("cross-cg", None)]
    common = {"completed": 7, "rounds": "1,234"}
    assert said == [
        {**common, "error": "bound 1.0e-02"},
        {**common, "error": "error 5.0e-01"},
        common,
    ]


@pytest.mark.parametrize(
    ("wanted", "root", "terminal", "shown"),
    [
        (True, False, True, False),
        (False, True, True, False),
        (None, True, True, True),
        (None, True, False, False),
    ],
)
def test_who_shows_a_bar(
    wanted: bool | None, root: bool, terminal: bool, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    with reporter(wanted, root, "any", None) as report:
        assert (report is not None) == shown


def test_the_bound_at_the_end_of_a_run() -> None:
    state: Any = None
    assert Outcome("optimal", state, 3).proved == math.inf
    check: Any = Fake(bound=math.nan)
    assert Outcome("optimal", state, 3, check).proved == math.inf
    check.bound = 0.25
    assert Outcome("optimal", state, 3, check).proved == 0.25


# -- health ----------------------------------------------------------------------------------------
def health(rounds: int, averagings: int, n: int = 30, *, timed: bool = False) -> _Health:
    """Of an iteration on a path of n agents with one entry of x and of z each."""
    runtime = InProcess(Network.path(n))
    space = Space(runtime, [1] * n, 1)
    iteration: Any = Fake(
        space=space,
        cost={"rounds": rounds, "averagings": averagings},
        far=False,
        point=lambda state: (np.full(n, state), np.full((n, 1), state)),
    )
    iteration.finished = lambda state: False
    return _Health(iteration, timed=timed)


def test_methods_that_only_mix_look_seldom_and_often_where_time_is_limited() -> None:
    """A relay on a path of 30 has 29 rounds: a tenth of them where a step has one or two."""

    def asked(found: _Health) -> list[int]:
        return [count for count in range(1, 1000) if found._due(count)]

    assert asked(health(1, 0)) == [1, 10, 20, 40, 80, 160, 320, 640]
    assert asked(health(1, 0, timed=True)) == [1, 10, 290, 580, 870]
    assert asked(health(2, 0, timed=True))[:4] == [1, 10, 150, 300]
    for plain in (health(0, 0), health(2, 1)):
        assert asked(plain) == [1, *range(10, 1000, 10)]


def test_iterates_that_stay_at_zero_for_a_while_do_not_blow_up() -> None:
    """Kinks hold them there; what they are when they leave is what they are measured by."""
    found = health(2, 1)
    for count, size, failed in (
        (1, 0.0, False),
        (10, 0.0, False),
        (20, 1e-9, False),
        (30, 1.0, False),
        (40, 1.01e4, True),
    ):
        found.ask(size, count)
        assert found.failed() == failed
    assert found.reference == pytest.approx(60.0)


def test_a_blow_up_is_measured_by_the_first_iterates() -> None:
    """60 entries: squares of 60 t^2; the largest of the first ten counts, 1e-12 at least."""
    found = health(2, 1)
    for count, size, failed in (
        (1, 1.0, False),
        (10, 2.0, False),
        (20, 1.99e4, False),
        (30, 2.01e4, True),
    ):
        found.ask(size, count)
        assert found.failed() == failed
        assert not found.failed()  # it is asked once
        assert found.reference == pytest.approx(60.0 if count == 1 else 240.0)
    found.iteration.far = True  # points that may lie anywhere tell of no failure
    found.ask(2.01e4, 40)
    assert not found.failed()
    found.ask(5.0, 21)
    assert found._asked is None
    zero = health(2, 1)
    zero.ask(0.0, 1)
    assert not zero.failed()
    assert zero.reference == 1e-12
    zero.ask(math.inf, 2)
    assert zero._asked is None
    zero.ask(math.inf, 10)
    assert zero.failed()


# -- histories ------------------------------------------------------------------------------------
def test_pairs_in_a_ring() -> None:
    assert places(2) == [(0, MEMORY), (1, MEMORY + 1)]
    assert places(MEMORY + 1)[0] == (1, MEMORY + 1)
    assert places(MEMORY + 1)[-1] == (0, MEMORY)
    assert len(places(3 * MEMORY)) == MEMORY == 20
    space = Space(InProcess(Network.path(2)), [1, 2], 2)
    w = space.joined(np.array([1.0, 2.0, 3.0]), np.array([[4.0, 5.0], [6.0, 7.0]]))
    assert space.x(w).tolist() == [1.0, 2.0, 3.0]
    assert space.z(w).tolist() == [[4.0, 5.0], [6.0, 7.0]]


@pytest.mark.parametrize("pair", [None, 1, MEMORY + 1])
@pytest.mark.parametrize("gradient", [False, True])
def test_a_gram_matrix_with_new_vectors(pair: int | None, gradient: bool) -> None:
    random = np.random.default_rng(0)
    kept = random.standard_normal((SIZE, 50))
    new = random.standard_normal((3, 50))
    found = replaced(kept @ kept.T, kept @ new.T, new @ new.T, pair=pair, gradient=gradient)
    after = kept.copy()
    if pair is not None:
        after[1], after[MEMORY + 1] = new[0], new[1]
    if gradient:
        after[GRADIENT] = new[2]
    assert found == pytest.approx(after @ after.T)
