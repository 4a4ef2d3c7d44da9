"""Digests of what a run belongs to: they are kept in files, and say in words what differs."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from ccmac.methods import CrossCg
from ccmac.methods.identity import (
    COMMON,
    PARTS,
    SCALES,
    _agents,
    _answers,
    _common_reference,
    _digest,
    _hex,
    _Objective,
    _prices,
    _probe,
    _rounded,
    differences,
    options_told,
)
from ccmac.objectives import L1, Custom, SquaredDistance
from ccmac.results import Solution


def sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()[:6]


def test_what_goes_into_a_digest() -> None:
    """Types and shapes with the numbers."""
    assert _digest(None) == sha(b"None;")
    assert _digest([1, 2.5, "a", True]) == sha(b"4[", b"1;", b"2.5;", b"'a';", b"True;")
    v = np.array([[1.0, 2.0]])
    assert _digest(v) == sha(b"<f8(1, 2)", v.tobytes())
    assert _digest(np.asfortranarray(np.ones((2, 3)))) == _digest(np.ones((2, 3)))
    M = sp.csc_array(np.array([[0.0, 3.0], [4.0, 0.0]]))
    inside = [np.array([3.0, 4.0]), np.array([1, 0]), np.array([0, 1, 2])]
    fed = [part for a in inside for part in (f"{a.dtype.str}{a.shape}".encode(), a.tobytes())]
    assert _digest(M) == sha(b"sparse(2, 2)", *fed)
    operator = sp.linalg.aslinearoperator(np.array([[1.0, 2.0, 3.0]]))
    forward = _rounded(np.array([[1.0, 2.0, 3.0]]) @ _probe(3, 0))
    back = _rounded(np.array([[1.0], [2.0], [3.0]]) @ _probe(1, 1))
    assert _digest(operator) == sha(
        b"operator(1, 3)", f"{forward!r};".encode(), f"{back!r};".encode()
    )
    assert (len(_hex(3)), _hex(3)) == (12, sha(b"3;").hex())


def test_vectors_are_known_by_three_numbers() -> None:
    v = np.array([[3.0, 4.0]])
    along = np.random.default_rng([14, 99]).standard_normal(2) @ [3.0, 4.0]
    assert _rounded(v) == f"2,5.00000000e+00,{along:.6e}"


def test_code_is_known_by_constants_and_answers() -> None:
    def made(scale: float = 1.0, smoothness: float = 2.0, steep: float = 1.0) -> Custom:
        return Custom(
            lambda x, z: scale * float(x @ x + z @ z / 2),
            lambda x, z: np.concatenate([2 * steep * x, z]),
            smoothness,
            0.0,
        )

    def told(objective: Any, d: int = 2, q: int = 1) -> bytes:
        return _digest(_Objective(objective, d, q))

    assert told(made()) == told(made())
    others = [made(2.0), made(smoothness=3.0), made(steep=2.0), SquaredDistance(1.0)]
    assert len({told(f) for f in (made(), *others)}) == 5
    assert told(made(), q=2) != told(made())
    assert told(SquaredDistance(1.0)) == told(SquaredDistance(1.0), d=3)  # its state says it all
    assert told(SquaredDistance(1.0)) != told(SquaredDistance(2.0))
    x = _probe(2, 0)
    z = _probe(1, 1)
    answers = _answers(made(), x, z)
    assert answers == [_rounded(x @ x + z @ z / 2), _rounded(2 * x), _rounded(z)]
    shrunk = _answers(L1(0.5), x, z)
    on_x, on_z = L1(0.5).prox(x, z, 0.7, 0.7)
    assert shrunk[-2:] == [_rounded(on_x), _rounded(on_z)]

    def listed(*items: Any) -> bytes:
        return f"{len(items)}[".encode() + b"".join(f"{item!r};".encode() for item in items)

    f = made()
    constants = repr(f.curvature(2, 1)), float(f.lipschitz(2, 1))
    probes = [
        _answers(f, scale * _probe(2, 2 * k), scale * _probe(1, 2 * k + 1))
        for k, scale in enumerate(SCALES)
    ]
    assert told(f) == sha(
        listed("Custom", *sorted(f.capabilities)), listed(*constants), *(listed(*a) for a in probes)
    )

    def broken(x: Any, z: Any) -> float:
        raise ZeroDivisionError

    odd = Custom(broken, lambda x, z: np.concatenate([x, z]), 2.0, 0.0)
    assert _answers(odd, x, z)[0] == "ZeroDivisionError"


def test_options_as_text() -> None:
    told = options_told(CrossCg(sketch=3))
    assert told == {"certificates": "None", "sketch": "3"}


def table(**more: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "common": {name: name for name in COMMON},
        "options": {"sketch": "3", "rule": "None"},
        "parts": dict.fromkeys(PARTS, "aa"),
        "agents": "a" * 60,
        "first": 0,
    }
    return {**known, **more}


def test_differences_in_words() -> None:
    mine = table()
    assert differences(table(), mine) == []
    assert differences(None, mine) == ["what the stored run belongs to cannot be told; it"]
    assert len(differences(table(parts=3), mine)) == 1
    seed = table(common={**mine["common"], "seed": 4})
    assert differences(seed, mine) == ["the seed (4, here seed)"]
    costs = table(common={**mine["common"], "costs": "x"})
    assert differences(costs, mine) == ["the costs"]
    rule = table(options={"sketch": "3", "rule": "tight"})
    assert differences(rule, mine) == ["option rule (tight, here None)"]
    other = table(common={**mine["common"], "method": "x"}, options={})
    assert differences(other, mine) == ["the method (x, here method)"]  # options of another
    block = table(parts={**mine["parts"], "A": "bb"}, agents="a" * 12 + "b" + "a" * 47)
    assert differences(block, mine) == ["block A of agent 1"]
    assert differences(block, table(first=5)) == ["block A of agent 6"]


@pytest.mark.parametrize(
    ("which", "words"),
    [
        ([], ""),
        ([0], " of agent 0"),
        ([1, 3], " of agents 1, 3"),
        ([0, 1, 2], " of agents 0, 1, 2"),
        ([0, 1, 2, 4], " of agents 0, 1, 2, ..."),
    ],
)
def test_agents_whose_parts_differ(which: list[int], words: str) -> None:
    mine = "0" * 60
    stored = "".join(("1" if k in which else "0") * 12 for k in range(5))
    assert _agents(stored, mine, 0) == words
    assert _agents(stored[:-1], mine, 0) == ""
    assert _agents(None, mine, 0) == ""


def test_prices_of_an_agent() -> None:
    from types import SimpleNamespace as Fake

    prices = Fake(local=["l0", "l1"], shared=["s0"], consensus=None)
    warm: Any = Fake(multipliers=prices)
    assert _prices(warm, 0) == ["l0", "s0", None]
    assert _prices(warm, 1) == ["l1", None, None]
    assert _prices(None, 0) == [None, None, None]


def test_of_a_reference_all_know_z_alone() -> None:
    x = [np.ones(2)]
    z = np.array([3.0])
    assert _common_reference(Solution(x, z)) is z
    assert _common_reference(z) is z
    assert _common_reference(None) is None
