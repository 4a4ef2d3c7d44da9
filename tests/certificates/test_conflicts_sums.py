"""Contradictions from made-up parts: what is summed, told and said, with numbers of both signs."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac import Agent, Network, Problem
from ccmac.certificates import closest, conflicts, own_rows
from ccmac.certificates.closest import ClosestPoint
from ccmac.certificates.conflicts import Conflicts
from ccmac.certificates.infeasibility import VISIBLE, described
from ccmac.certificates.prices import CONFLICT, Recovery
from ccmac.certificates.weighing import Lambda, Weighed
from ccmac.inputs import Array
from ccmac.linalg.ranks import Doubt
from ccmac.linalg.tolerances import EPS
from ccmac.objectives import Quadratic
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from certificates.test_prices import N, Q, draw

SEEDS = range(5)
COARSE = 2.0**-10
LONG = 2.0**-6


class Claims:
    """Whether something is claimed, and the numbers it was asked for."""

    def __init__(self, claimed: bool, doubted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        self.numbers: list[tuple[float, ...]] = []

        def prove(*numbers: float) -> bool:
            self.numbers.append(numbers)
            return claimed

        for module in (conflicts, own_rows):
            monkeypatch.setattr(module, "proves", prove)
        monkeypatch.setattr(closest, "claimed", prove)
        monkeypatch.setattr(closest, "_dependent", lambda seen: True)
        for module in (conflicts, own_rows):
            monkeypatch.setattr(module, "doubted", lambda *numbers: doubted)


# -- among equations that all know -----------------------------------------------------------------
M = 2
P = (1, 0, 2)
D_X = 3


def along(seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Conflicts, Any, Any]:
    """Three agents with 1, 0 and 2 local rows, 2, 0 and 1 shared ones; shares are made up."""
    random = np.random.default_rng(seed).standard_normal
    monkeypatch.setattr(conflicts, "EPS", COARSE)
    monkeypatch.setattr(conflicts, "EPS_LONG", LONG)
    monkeypatch.setattr(own_rows, "EPS_LONG", LONG)
    kernels = [
        Fake(space=Fake(basis=np.eye(D_X, k), multipliers=lambda v: 2 * v)) for k in P
    ]  # the first entries, doubled
    unit = np.array([0.5, 4.0])
    unit_D = np.array([2.0, 0.25, 1.0])
    U = np.linalg.qr(random((5, 5)))[0]
    reduced: Any = Fake(
        A=list(random((3, M, D_X))),
        kernels=kernels,
        unit=unit,
        unit_D=unit_D,
        e=random(3),
        Bbar=random((M, 2)),
        D=random((3, 2)),
        size_B=3 + random((M, 2)),
        U=U[:, :4],
        U_null=U[:, 4:],
        sigma=np.array([2.0, 1.0, 0.5, 0.25]),
        beta=random(M),
        prices=lambda rows: (unit * rows[:M], rows[M:]),
        right=random(5),
        angle=0.0,
        shared=None,
        agree=None,
        doubt=Doubt.NONE,
        C=[np.zeros((k, D_X)) for k in P],
    )
    reduced.by_agent = lambda v: np.split(reduced.unit_D * v, [2, 2])
    found: Any = object.__new__(Conflicts)
    agents = {i: Fake(b=random(M), c=random(k)) for i, k in enumerate(P)}
    found.problem, found.runtime = Fake(n=3, agents=agents, m=M), Fake(gather=lambda rows: rows)
    known = Fake(r=np.array([2.0, 0.0, 1.0]))
    found.work = Fake(curvature=known, coupling=Fake(empty=False))
    found.doubt = ""
    return found, reduced, random


@pytest.mark.parametrize("seed", SEEDS)
def test_the_certificate_along_a_direction(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found, reduced, random = along(seed, monkeypatch)
    outside = 3 * random(5)
    shares = random((3, 6))
    shares[:, [2, 5]] = np.abs(shares[:, [2, 5]])  # squares
    shares[:, 4] = (2 * VISIBLE, VISIBLE, VISIBLE / 2)
    asked: list[Any] = []
    pairs: list[Any] = []

    def share(reduced: Any, k: int, price: Array, kappa: Array) -> Any:
        asked.append((price, kappa))
        return shares[k].tolist()

    def defect_of(given: Any) -> float:
        pairs.extend(given)
        return 0.3

    found._share = share  # type: ignore[method-assign]
    monkeypatch.setattr(conflicts, "defect_of", defect_of)
    claims = Claims(True, False, monkeypatch)
    said = found._along(reduced, outside)
    scaled = outside / np.linalg.norm(outside)
    price = reduced.unit * scaled[:M]
    shared = scaled[M:]
    local = [-2 * (A.T @ price)[:k] for A, k in zip(reduced.A, P, strict=True)]
    for (y, kappa), mine in zip(asked, local, strict=True):
        assert y == pytest.approx(price)
        assert kappa == pytest.approx(mine)
    assert (pairs[0][0] is reduced.Bbar, pairs[1][0] is reduced.D) == (True, True)
    assert pairs[0][1] == pytest.approx(price)
    assert pairs[1][1] == pytest.approx(shared)
    off_z = 0.3 + 3 * LONG * np.linalg.norm(reduced.size_B.T @ np.abs(price))
    sums = shares.sum(axis=0)
    value = (sums[0] + sums[1] + reduced.e @ shared) * (1 - 4 * COARSE)  # towards zero
    terms = sums[3] + np.abs(reduced.e) @ np.abs(shared)
    defect = math.sqrt(sums[2] + off_z**2)
    inside = (reduced.U.T @ reduced.right) / reduced.sigma
    size = math.sqrt(inside @ inside + sums[5])
    [(*numbers, agree)] = claims.numbers
    assert numbers == pytest.approx([abs(value) - 4 * COARSE * terms, defect, size])
    assert agree is None
    assert said is not None
    assert (said.value, said.defect) == pytest.approx((value, defect))
    assert said.coupled == pytest.approx(price)
    assert list(said.local) == [0, 2]
    assert said.local[2] == pytest.approx(local[2])
    own = reduced.unit_D * shared
    assert list(said.shared) == [0, 2]
    assert said.shared[0] == pytest.approx(own[:2])
    assert said.shared[2] == pytest.approx(own[2:])
    norms = {
        "coupled": float(np.linalg.norm(outside[:M] / reduced.unit)),
        "shared": float(np.linalg.norm(outside[M:] / reduced.unit_D)),
    }
    assert said.message == described({"coupled": [0], "C": [0], "D": [0, 2]}, norms)
    # Nobody has A or B: the b_i must add up.
    found.work.coupling.empty = True
    said = found._along(reduced, outside)
    assert said is not None
    assert f"add up to {np.linalg.norm(reduced.beta):.3g}, not" in said.message
    # Rows that agree to the last digit have solutions somewhere.
    reduced.agree = True
    reduced.doubt = Doubt.OPINION
    assert found._along(reduced, outside) is None
    assert found.doubt == ""
    Claims(False, True, monkeypatch)
    assert found._along(reduced, outside) is None
    assert f"contradict each other by {abs(value):.2g}" in found.doubt
    assert f"of norm {abs(value / defect):.2g} and" in found.doubt


def test_blocks_are_named_if_they_weigh_a_millionth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a direction of length one: the coupled rows, and every agent's shared ones."""
    found, reduced, _ = along(0, monkeypatch)
    reduced.unit_D, reduced.e = np.ones(3), np.zeros(3)
    found._share = lambda *given: [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]  # type: ignore[method-assign]
    Claims(True, False, monkeypatch)
    for coupled, second, named in (
        (
            2e-6,
            0.5e-6,
            "the coupled equation sum(A x + B z - b) = 0 and the shared equations D of "
            "agents 0 cannot",
        ),
        (0.5e-6, 2e-6, "infeasible: the shared equations D of agents 0, 2 cannot"),
        (0.0, 0.0, "infeasible: the shared equations D of agents 0 cannot"),
    ):
        said = found._along(reduced, 7 * np.array([coupled, 0.0, 1.0, 0.0, second]))
        assert said is not None
        assert named in said.message
    monkeypatch.setattr(conflicts, "VISIBLE", 0.0)  # but not nothing at all
    assert named in found._along(reduced, np.array([0.0, 0.0, 1.0, 0.0, 0.0])).message  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", SEEDS)
def test_one_agents_share(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found, reduced, random = along(seed, monkeypatch)
    price = random(M)
    kappa = random(2)
    point = random(D_X)
    C = random((2, D_X))
    reduced.C = [None, None, C]
    reduced.kernels[2].point = point
    A = reduced.A[2]
    agent = list(found.problem.agents.values())[2]
    high, low, off2, terms, size, point2 = found._share(reduced, 2, price, kappa)
    assert high + low == pytest.approx(agent.b @ price + agent.c @ kappa)
    left = np.linalg.norm(A.T @ price + C.T @ kappa)
    spread = np.linalg.norm(np.abs(A).T @ np.abs(price))
    spread += np.linalg.norm(np.abs(C).T @ np.abs(kappa))
    assert math.sqrt(off2) == pytest.approx(left + (M + 2 + 2) * LONG * spread)
    assert terms == pytest.approx(np.abs(agent.b) @ np.abs(price) + np.abs(agent.c) @ np.abs(kappa))
    assert (size, point2) == pytest.approx((np.linalg.norm(kappa), point @ point))
    agent.b = agent.c = None
    high, low, same, terms, *_ = found._share(reduced, 2, price, kappa)
    assert (high, low, same, terms) == (0.0, 0.0, off2, 0.0)


def test_what_lies_outside_of_the_range_then_what_D_alone_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, reduced, random = along(0, monkeypatch)
    seen = Fake(value=3.0, price=np.array([1.0, -2.0, 0.5]))
    given: list[Any] = []

    def contradiction(*blocks: Any) -> Any:
        given.append(blocks)
        return seen

    monkeypatch.setattr(conflicts, "contradiction", contradiction)
    first, second = conflicts._outside(reduced)
    assert first == pytest.approx(reduced.U_null @ reduced.U_null.T @ reduced.right)
    assert second.tolist() == [0.0, 0.0, 3.0, -6.0, 1.5]
    assert [v is w for v, w in zip(given[0], (reduced.D, reduced.e, reduced.shared), strict=True)]
    assert given[0][0] is reduced.D
    assert given[0][1] is reduced.e
    seen = None  # type: ignore[assignment]
    reduced.right = reduced.U @ random(4)
    assert list(conflicts._outside(reduced)) == []


# -- inside one agent ------------------------------------------------------------------------------
def space(**more: Any) -> Any:
    """Of dependent rows, in no doubt, with condition 3."""
    known = {"rank": 0, "doubt": Doubt.NONE, "condition": 3.0}
    asked = {"coordinates": lambda right: 2 * right, "agrees": lambda right: None}
    return Fake(**{**known, **asked, **more})


class Inside:
    """Agents' own rows; what is found in them and what the others say is made up.

    Agent 0 has C alone, agent 1 both with c not given, agent 2 D alone.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        one = np.ones((1, 1))
        agents = {
            0: Fake(C=one, c=np.array([3.0]), D=None, e=None),
            1: Fake(C=2 * one, c=None, D=3 * one, e=np.array([4.0])),
            2: Fake(C=None, c=None, D=4 * one, e=np.array([-5.0])),
        }
        self.local = [space(), space(condition=7.0), space()]
        self.shared = [space(), space(condition=5.0), space(condition=2.0)]
        self.seen: dict[float, Any] = {}  # by the entry of the block
        self.others = np.zeros((3, 5))
        self.rows: Any = None
        self.work: Any = Fake(
            agreed={}, local=Fake(spaces=self.local), shared=Fake(spaces=self.shared), reduced=None
        )
        found: Any = object.__new__(Conflicts)
        found.work = self.work
        found.doubt = ""
        found.problem = Fake(agents=agents, present={"C", "D"}, m=4)
        found.runtime = Fake(ride=self._ride)
        self.found: Conflicts = found
        self.asked: list[tuple[float, float]] = []
        monkeypatch.setattr(own_rows, "contradiction", self._contradiction)

    def _ride(self, rows: Array, whole: bool) -> Any:
        assert whole
        self.rows = rows
        return Fake(value=rows + self.others)

    def _contradiction(self, block: Array, right: Array, where: Any, *, exact: bool) -> Any:
        assert not exact
        self.asked.append((float(block[0, 0]), float(right[0])))
        return self.seen.get(float(block[0, 0]))


def test_without_a_contradiction_agents_tell_the_condition_of_their_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Inside(monkeypatch)
    assert made.found.own() is None
    assert made.asked == [(1.0, 3.0), (2.0, 0.0), (3.0, 4.0), (4.0, -5.0)]
    told = [[0.0, 3.0, 0.0, 0.0, 1.0], [0.0, 7.0, 0.0, 5.0, 1.0], [0.0, 0.0, 0.0, 2.0, 1.0]]
    assert made.rows.tolist() == told
    assert made.work.agreed == {"independent": False}
    assert (made.work.own_condition, made.found.doubt) == (7.0, "")
    # Independent rows contradict nothing.
    made.asked.clear()
    for rows in (*made.local, *made.shared):
        rows.rank = 1
    assert made.found.own() is None
    assert made.asked == []
    assert made.rows.tolist() == [[*row[:4], 0.0] for row in told]
    assert made.work.agreed == {"independent": True}
    assert (made.work.own_condition, made.found.doubt) == (7.0, "")
    # Once they are known to be independent nothing is asked.
    made.rows = None
    assert made.found.own() is None
    assert made.rows is None
    # Rows in doubt may be of any condition; dependent ones may contradict each other.
    made = Inside(monkeypatch)
    made.shared[2] = space(condition=2.0, doubt=Doubt.ROUNDING)
    made.local[0] = space(doubt=Doubt.CONVENTION)
    made.local[1].rank = made.shared[1].rank = made.shared[2].rank = 1
    made.shared[2] = space(condition=2.0, doubt=Doubt.ROUNDING)
    assert made.found.own() is None
    assert made.rows[:, 3].tolist() == [0.0, 5.0, 1 / EPS]
    assert made.rows[:, 1].tolist() == [3.0, 7.0, 0.0]
    assert made.rows[:, 4].tolist() == [1.0, 0.0, 1.0]
    assert made.work.agreed == {"independent": False}
    assert made.work.own_condition == 1 / EPS
    for present in ({"A", "B"}, {"A", "C"}, {"D"}):
        made = Inside(monkeypatch)
        made.found.problem.present = present  # type: ignore[misc]
        made.found.own()
        assert (made.rows is None) == (present == {"A", "B"})
    made = Inside(monkeypatch)
    made.local.clear()  # not factorized
    made.found.own()
    assert made.asked == [(3.0, 4.0), (4.0, -5.0)]


@pytest.mark.parametrize(
    ("entry", "k", "column"), [(1.0, 0, 0), (2.0, 1, 0), (3.0, 1, 1), (4.0, 2, 1)]
)
def test_the_agent_that_contradicts_itself(
    entry: float, k: int, column: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Inside(monkeypatch)
    price = np.array([0.5])
    made.seen[entry] = Fake(value=0.7, sure=0.6, defect=0.01, price=price)
    claims = Claims(True, False, monkeypatch)
    said = made.found.own()
    block, right = ("C", "c") if column == 0 else ("D", "e")
    side = {1.0: 3.0, 2.0: 0.0, 3.0: 4.0, 4.0: -5.0}[entry]
    sure = 0.6 - 4 * EPS * 0.5 * abs(side)
    assert claims.numbers == [(pytest.approx(sure, rel=1e-15, abs=0.0), 0.01, 2 * abs(side), None)]
    assert made.rows[k, 2 * column : 2 * column + 2].tolist() == [0.7, 0.01]
    assert said is not None
    assert f"agent {k}'s own equations {block} contradict" in said.message
    assert f"right-hand side {right} is 0.7 away" in said.message
    assert (said.value, said.defect, said.coupled.tolist()) == (0.7, 0.01, [0.0] * 4)
    mine, others = (said.local, said.shared) if column == 0 else (said.shared, said.local)
    assert (list(mine), mine[k] is price, others) == ([k], True, {})
    # What is told of a contradiction is no condition.
    assert made.work.own_condition == (7.0 if entry != 2.0 else 5.0)
    # Rows that agree to the last digit contradict nothing: at most there is doubt.
    for doubted in (False, True):
        made = Inside(monkeypatch)
        Claims(True, doubted, monkeypatch)
        (made.local, made.shared)[column][k] = space(doubt=Doubt.OPINION, agrees=lambda right: True)
        made.seen[entry] = Fake(value=0.7, sure=0.6, defect=0.01, price=price)
        assert made.found.own() is None
        told = made.rows[k, 2 * column : 2 * column + 2].tolist()
        assert told == ([-0.7, 0.01] if doubted else [0.0, 1 / EPS])
        text = f"equations of {block} of agent {k} contradict each other by 0.7"
        assert (text in made.found.doubt) is doubted
        assert ("of norm 70 and" in made.found.doubt) is doubted


def test_the_largest_of_several_is_named_and_others_prices_are_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Inside(monkeypatch)
    made.others[:, 2], made.others[:, 3] = (0.0, 0.3, 0.9), (0.0, 0.02, 0.04)
    said = made.found.own()
    assert said is not None
    assert "agent 2's own equations D" in said.message
    assert (said.value, said.shared, said.local) == (0.9, {}, {})
    assert said.defect == 2.0 + 0.04  # (the others' is added to what this process told)
    made = Inside(monkeypatch)
    made.others[:, 0], made.others[:, 1] = (-0.2, -0.9, 0.0), (0.0, -7.0, 0.0)
    assert made.found.own() is None
    assert "C of agent 1 contradict each other by 0.9" in made.found.doubt
    assert "points of norm inf" in made.found.doubt
    made = Inside(monkeypatch)
    for own in (*made.local, *made.shared):
        own.condition = 1.0
    made.others[0, :2] = -0.2, 0.5
    assert made.found.own() is None
    assert made.work.own_condition == 1.0


def test_all_ways_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    found, reduced, _ = along(0, monkeypatch)
    tried: list[Any] = []

    def one_way(reduced: Any, outside: Any) -> Any:
        tried.append(outside)
        return None if len(tried) == 1 else "found"

    found._along = one_way  # type: ignore[method-assign, assignment]
    monkeypatch.setattr(conflicts, "_outside", lambda reduced: iter(["one", "two", "three"]))
    assert found.together(reduced) == "found"
    assert tried == ["one", "two"]
    reduced.U_null = np.zeros((5, 0))
    assert found.together(reduced) is None
    assert tried == ["one", "two"]


# -- at a least-squares point ----------------------------------------------------------------------
@pytest.mark.parametrize("seed", SEEDS)
def test_the_certificate_at_a_point(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    recovery, agents = draw(seed)
    random = np.random.default_rng(seed).standard_normal
    z = random((N, Q))
    price = random((1, 2))
    x = random(recovery.space.x_size)
    found = ClosestPoint(recovery)
    claims = Claims(True, False, monkeypatch)
    realized: Any = Fake(space=recovery.space, copies=lambda w: z)
    said = found.at(realized, x, price, {"coupled": 1.0, "shared": 2.0})
    assert said is not None
    y = price[0]
    mean = z.mean(axis=0)
    kappas = [np.linalg.lstsq(a.C.T, -a.A.T @ y, rcond=None)[0] for a in agents]
    # delta in orthonormal rows of D: the misfit at the mean, and what balances B'y.
    bases = [np.linalg.qr(a.D.T)[0] for a in agents]
    backs = [
        V @ (V.T @ (mean - np.linalg.pinv(a.D) @ a.e)) for V, a in zip(bases, agents, strict=True)
    ]
    S = sum(V @ V.T for V in bases)
    direction = np.linalg.pinv(S, rcond=1e-10) @ -sum(
        a.B.T @ y + back for a, back in zip(agents, backs, strict=True)
    )
    images = [back + V @ (V.T @ direction) for V, back in zip(bases, backs, strict=True)]
    deltas = [np.linalg.pinv(a.D.T) @ v for a, v in zip(agents, images, strict=True)]
    for i in range(N):
        assert said.local[i] == pytest.approx(kappas[i])
        assert said.shared[i] == pytest.approx(deltas[i])
    assert said.coupled == pytest.approx(y)
    value = sum(a.b @ y + a.c @ k + a.e @ v for a, k, v in zip(agents, kappas, deltas, strict=True))
    on_x = [a.A.T @ y + a.C.T @ k for a, k in zip(agents, kappas, strict=True)]
    on_z = sum(a.B.T @ y + v for a, v in zip(agents, images, strict=True))
    defect = np.linalg.norm([*np.concatenate(on_x), *on_z])
    assert (said.value, said.defect) == pytest.approx((value, defect))
    assert abs(said.value) < abs(value) + 1e-12 * abs(value)
    size = math.sqrt(x @ x + np.sum(z * z) / N)
    assert claims.numbers == [pytest.approx((abs(value), defect, size))]
    whole = {"coupled": [0], "C": [0, 1, 2], "D": [0, 1, 2]}
    assert said.message == described(whole, {"coupled": 1.0, "shared": 2.0})
    # What is not enough is cancelled, PASSES times, and weighed again.
    claims = Claims(False, False, monkeypatch)
    passed = list[float]()

    def cancelled(realized: Any, prices: Lambda, seen: Weighed) -> Lambda:
        passed.append(seen.value)
        return Lambda(
            prices.coupled / 2, [v / 2 for v in prices.local], [v / 2 for v in prices.shared]
        )

    monkeypatch.setattr(found, "_cancelled", cancelled)
    assert found.at(realized, x, price, {"coupled": 1.0, "shared": 2.0}) is None
    assert passed == pytest.approx([value, value / 2])
    assert [v[0] for v in claims.numbers] == pytest.approx([abs(value) / k for k in (1, 2, 4)])


@pytest.mark.parametrize(
    ("empty", "before", "after", "agree", "proof", "asked"),
    [
        (False, 1.1, 1.1, None, True, "repaired"),
        (False, 1.1, 1.1, None, False, "repaired"),
        (False, 1.1, 0.9, None, True, None),
        (False, 0.9, 1.1, None, True, None),
        (True, 1.1, 0.0, None, True, "w"),
        (True, 1.1, 0.0, None, False, "w"),
        (True, 0.9, 0.0, None, True, None),
        (False, 1.1, 1.1, True, True, "doubt"),
        (False, 1.1, 1.1, False, True, "repaired"),
    ],
)
@pytest.mark.parametrize("name", ["coupled", "shared"])
def test_what_stays_violated_is_a_proof_or_a_doubt(
    empty: bool,
    before: float,
    after: float,
    agree: bool | None,
    proof: bool,
    asked: str | None,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Violations in units of CONFLICT max(1, scale), of a scale of 4."""
    unit = 4 * CONFLICT
    seen = list[Any]()
    none = {"coupled": 0.0, "shared": 0.0, "local": 9.0}
    norms = {**none, name: before * unit}
    repaired = {**none, name: after * unit}
    system = Fake(
        empty=empty,
        residual=lambda w: (None, "price of " + w),
        common_price=lambda price: "common " + price,
    )
    realized: Any = Fake(
        system=system, copies=lambda w: "z of " + w, space=Fake(x=lambda w: "x of " + w)
    )

    def violations(x: str, z: str) -> Any:
        assert (x, z) == ("x of repaired", "z of repaired")
        return repaired, None, None

    recovery: Any = Fake(scale=lambda: 4.0, violations=violations, coupling=Fake(width=2))
    point = Fake(at=lambda *given: seen.append(given) or ("conflict" if proof else None))
    monkeypatch.setattr(closest, "ClosestPoint", lambda recovery: point)
    monkeypatch.setattr(closest, "Certifier", lambda r: Fake(repair=lambda w: "repaired"))
    known = None if agree is None else Fake(agree=agree, doubt=Doubt.OPINION)
    work: Any = Fake(doubts=[], reduced=known)
    found = closest.diagnosed(work, recovery, realized, "w", norms)  # type: ignore[arg-type]
    assert found == ("conflict" if proof and asked in ("repaired", "w") else None)
    left = max(norms[name] if empty else repaired[name], 0.0)
    doubted = asked is not None and found is None
    assert work.doubts == ([closest.UNMET.format(left)] if doubted else [])
    if asked == "repaired":
        assert seen == [(realized, "repaired", "common price of repaired", repaired)]
    elif asked == "w":
        [(_, w, zero, told)] = seen
        assert (w, zero.tolist(), told) == ("w", [[0.0, 0.0]], norms)
    else:
        assert seen == []


@pytest.mark.parametrize("kind", ["coupled", "shared"])
def test_blocks_that_nobody_has(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """x + 2 z = 3 of two agents, or z = 1 and 2 z = 6: nothing else takes part."""
    f = Quadratic(np.eye(2), np.zeros(2))
    if kind == "coupled":
        agents = [Agent(f, A=[[1.0]], B=[[2.0]], b=[3.0]) for _ in range(2)]
    else:
        agents = [Agent(f, D=[[k]], e=[e]) for k, e in ((1.0, 1.0), (2.0, 6.0))]
    work = Workspace(Problem(agents, q=1), InProcess(Network.complete(2)))
    Claims(True, False, monkeypatch)
    found = ClosestPoint(Recovery(work))
    price = np.array([[0.5]]) if kind == "coupled" else np.zeros((1, 0))
    x = np.zeros(found.user.space.x_size)
    realized: Any = Fake(space=found.user.space, copies=lambda w: np.full((2, 1), 2.0))
    said = found.at(realized, x, price, {"coupled": 1.0, "shared": 1.0})
    assert said is not None
    assert (said.local, bool(said.shared)) == ({}, kind == "shared")
    if kind == "coupled":
        assert (said.value, said.coupled.tolist()) == (pytest.approx(3.0, rel=1e-14), [0.5])
        assert said.defect == pytest.approx(math.sqrt(0.25 + 0.25 + 4.0))
    else:  # unit rows leave 1 and -1 of z = 2
        assert said.shared[0] == pytest.approx([1.0])
        assert said.shared[1] == pytest.approx([-0.5])
        assert (said.value, said.defect) == pytest.approx((-2.0, 0.0), abs=1e-14)
