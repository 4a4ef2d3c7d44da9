"""Wrong calls of the public interface: one line that says what to do, no error from inside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ccmac
from ccmac.errors import InputError, short
from ccmac.storage.located import parse

F = ccmac.objectives.Quadratic(np.eye(2), np.ones(2))
SPAN = np.timedelta64(3, "s")
RING = ccmac.Network.ring(3)


def agents(**named: Any) -> list[ccmac.Agent]:
    return [ccmac.Agent(F, A=[[1.0]], B=[[1.0]], b=[1.0], **named)] * 1


class Operator:
    """An operator that says nothing of use about its shape."""

    def __init__(self, shape: Any) -> None:
        self.shape = shape

    def matvec(self, v: Any) -> Any:
        return v

    rmatvec = matvec


def custom(**given: Any) -> ccmac.objectives.Custom:
    f = {"value": lambda x, z: 0.0, "gradient": lambda x, z: (x, z), "smoothness": 1.0}
    return ccmac.objectives.Custom(**{**f, **given})


def huber(**given: Any) -> Any:
    return ccmac.objectives.ConcomitantHuber([0.0, 1.0], **given)


def table(column: Any) -> Any:
    return ccmac.vfl.problem({"a": pd.DataFrame({"u": column}), "b": np.ones((2, 1))}, [1.0, 2.0])


WRONG: list[Callable[[], Any]] = [
    *(
        lambda shape=s: ccmac.Problem([ccmac.Agent(F, A=Operator(shape))])
        for s in (5, None, ("a", None), (-1, 2), (1.0, 1.0), (1,))
    ),
    lambda: ccmac.Network.ring(SPAN),
    lambda: ccmac.Problem({True: agents()[0]}),
    lambda: ccmac.Problem({SPAN: agents()[0]}),
    *(lambda k=k: RING.neighbors(k) for k in (None, True, -1, 3, 10**400, "0", 0.5, SPAN)),
    *(lambda k=k: RING.hops(k) for k in (3, [3], [-1], "ab", [0.5], [10**30], np.eye(2))),
    *(lambda w=w: ccmac.InProcess(w) for w in (None, "ring", 3, ccmac.Network)),
    *(lambda f=f: ccmac.InProcess(RING, fused=f) for f in (None, np.eye(2), pd.NA)),
    lambda: ccmac.InProcess(RING, ledger=1),
    *(lambda a=a: ccmac.InProcess(RING, averaging=a) for a in (None, 3, Path("tree"))),
    *(lambda w=w: huber(weight=w) for w in ([[1.0, 2.0], [3.0]], "a", [-1.0, 1.0], SPAN)),
    lambda: huber(intercept=np.eye(2)),
    *(lambda k=k: custom(**{k: 1}) for k in ("gradient", "prox", "hessian")),
    *(
        lambda x=x: ccmac.solve(ccmac.Problem(agents()), warm_start=ccmac.Solution(x, [1.0]))
        for x in (None, 5)
    ),
    *(
        lambda v=v: ccmac.vfl.problem(np.eye(2), v, 2)
        for v in (
            np.array([1, 2], "m8[s]"),
            np.array([SPAN, 1.0], object),
            ["1", "2"],
            [10**400, 1],
            np.array([1j, 1.0]),
        )
    ),
    *(
        lambda v=v: table(v)
        for v in (
            pd.to_timedelta([1, 2], unit="s"),
            np.array([SPAN, SPAN], object),
            [b"1", b"2"],
            [pd.Timedelta(1, "s"), 1.0],
        )
    ),
]


@pytest.mark.parametrize("call", WRONG)
def test_wrong_calls_are_told_in_one_line(call: Callable[[], Any]) -> None:
    with pytest.raises(InputError) as told:
        call()
    assert str(told.value).isprintable()


NAMES = ("a\x1b[31m", "a\nb", "\x00", "a\u2028b", "\x85x", "x\ud800")


@pytest.mark.parametrize("name", NAMES)
def test_names_have_no_control_characters(name: str) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: ccmac.Problem(agents(name=name)),
        lambda: ccmac.Problem(agents(), row_names=[name]),
        lambda: ccmac.Problem(agents(), z_names=[name]),
    ]
    for call in calls:
        with pytest.raises(InputError, match="control characters") as told:
            call()
        assert str(told.value).isprintable()
    ccmac.Problem(agents(name="Zoë \u200d"))


@pytest.mark.parametrize("text", ['"a\\u001b"', '"a\\tb"', '"\\u2028"'])
def test_texts_of_suites_have_none(text: str) -> None:
    with pytest.raises(InputError, match="control characters"):
        parse(f"suite: {text}", "s.yaml").mapping(("suite",))["suite"].name()


def test_messages_write_control_characters_out() -> None:
    assert short("a\x1b[2Jb\x00\u202ec\td") == "a\\x1b[2Jb\\x00\\u202ec d"
    assert len(short("\x00" * 1000)) == 160


@pytest.mark.parametrize("name", ["\x00", "x" * 300, "a\x00b", "/proc/new", "\ud800"])
def test_places_that_cannot_be(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for thing in (ccmac.Problem(agents()), agents()[0]):
        with pytest.raises(InputError) as told:
            thing.save(name)
        assert str(told.value).isprintable()
    assert not list(tmp_path.iterdir())
