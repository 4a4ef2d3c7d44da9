"""What multipliers prove in the agents' own rows: sums, their rounding and grain, written out."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.certificates import weighing
from ccmac.certificates.weighing import Lambda, Weighing
from ccmac.inputs import Array
from ccmac.objectives import Quadratic
from ccmac.problem import Agent, Problem

UNIT = 2.0**-6
LONG = 2.0**-8
GRAIN = 2.0**-5
Q = 2
N = 3
SQUARES = [4.0, 0.25, 9.0]


def made(seed: int) -> tuple[Problem, Lambda]:
    """Three agents; the second one without local rows, the last one without shared ones."""
    draw = np.random.default_rng(seed).standard_normal
    agents = []
    for k in range(N):
        more: dict[str, Any] = {"C": draw((1, 2)), "c": draw(1)} if k != 1 else {}
        more |= {"D": draw((2, Q)), "e": draw(2)} if k != 2 else {}
        shape = Quadratic(np.eye(2 + Q), np.zeros(2 + Q))
        agents.append(Agent(shape, A=draw((2, 2)), B=draw((2, Q)), b=draw(2), **more))
    problem = Problem(agents)
    local = [draw(k) for k in problem.p.values()]
    return problem, Lambda(draw(2), local, [draw(k) for k in problem.r.values()])


def block(M: Any, columns: int) -> Array:
    return np.zeros((0, columns)) if M is None else np.asarray(M)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("seen_by_all", [True, False])
def test_all_numbers(seed: int, seen_by_all: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody sees the agents' rows their sum is one of doubles, in fixed point."""
    problem, prices = made(seed)
    heard = (lambda _, rows: rows) if seen_by_all else (lambda _, rows: rows.sum(axis=0)[None])
    monkeypatch.setattr(weighing, "heard_by_all", heard)
    monkeypatch.setattr(weighing, "EPS", UNIT)
    monkeypatch.setattr(weighing, "EPS_LONG", LONG)
    runtime = Fake(averaging=Fake(grain=GRAIN))
    recovery: Any = Fake(problem=problem, runtime=runtime, local=None)
    said = Weighing(recovery).weighed(prices, SQUARES)
    on_x = []
    on_z = []
    off_x = 0.0
    off_z = 0.0
    values = []
    own = 0.0
    for k, agent in enumerate(problem.agents.values()):
        pairs = [(agent.A, agent.b, prices.coupled, 2), (agent.C, agent.c, prices.local[k], 2)]
        pairs += [(agent.B, None, prices.coupled, Q), (agent.D, agent.e, prices.shared[k], Q)]
        images = [block(M, size).T @ price for M, _, price, size in pairs]
        spread = [np.abs(block(M, size)).T @ np.abs(price) for M, _, price, size in pairs]
        rows = [len(price) + 4 for _, _, price, _ in pairs]
        lost_x = (rows[0] + rows[1] - 4) * LONG * np.linalg.norm(spread[0] + spread[1])
        off_x += lost_x
        off_z += (rows[2] + rows[3] - 4) * LONG * np.linalg.norm(spread[2] + spread[3])
        on_x.append(float(np.linalg.norm(images[0] + images[1]) + lost_x))
        on_z.append(images[2] + images[3])
        values.append(sum(float(v @ price) for _, v, price, _ in pairs if v is not None))
        own += float(prices.local[k] @ prices.local[k] + prices.shared[k] @ prices.shared[k])
    many = 4 * N
    corner = 1 + math.sqrt(Q)
    whole = np.abs(on_z).sum(axis=0) if seen_by_all else np.abs(np.sum(on_z, axis=0))
    rest = off_z + many * (LONG if seen_by_all else UNIT) * float(np.linalg.norm(whole))
    rest += 2 * corner * GRAIN
    least = min(sum(on_x) + GRAIN, math.sqrt(sum(v * v for v in on_x) + GRAIN))
    defect = math.hypot(least, np.linalg.norm(np.sum(on_z, axis=0)) + rest)
    assert said.defect == pytest.approx(defect * (1 + many * UNIT))
    assert said.rounding == pytest.approx(UNIT / LONG * (off_x + off_z) + 4 * corner * GRAIN)
    value = sum(values)
    assert said.value == pytest.approx(value)
    off = 2 * GRAIN + (0.0 if seen_by_all else 4 * UNIT * abs(value))
    assert said.sure == pytest.approx((abs(value) - off) * (1 - 4 * UNIT))
    assert said.size == pytest.approx(math.sqrt(13.25))
    assert said.length == pytest.approx(math.sqrt(own + float(prices.coupled @ prices.coupled)))


@pytest.mark.parametrize("grain", [0.0, 8.0])
def test_one_agent_among_many_bends_x(grain: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of lengths or the root of squares, whichever the grain spoils less."""
    problem, _ = made(0)
    nothing = [np.zeros(k) for k in problem.p.values()], [np.zeros(k) for k in problem.r.values()]
    monkeypatch.setattr(weighing, "heard_by_all", lambda _, rows: rows)
    recovery: Any = Fake(problem=problem, runtime=Fake(averaging=Fake(grain=grain)), local=None)
    price = np.array([1.0, -0.5])
    said = Weighing(recovery).weighed(Lambda(price, *nothing), [0.0] * N)
    lengths = [float(np.linalg.norm(a.A.T @ price)) for a in problem.agents.values()]
    on_z = np.linalg.norm(sum(a.B.T @ price for a in problem.agents.values()))
    on_z += 2 * (1 + math.sqrt(Q)) * grain
    roots = sum(lengths) + grain, math.sqrt(sum(v * v for v in lengths) + grain)
    assert said.defect == pytest.approx(math.hypot(min(roots), on_z))
