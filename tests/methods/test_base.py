"""What states, requests and options are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.inputs import Array
from ccmac.ledger import Cost, Costs
from ccmac.methods.base import Prepared, Request, State, known, rows, vector
from ccmac.methods.options import Option, option
from ccmac.methods.realized import RealizedIteration


@dataclass(frozen=True)
class Sample(State):
    """One field of each kind."""

    w: Array = vector()
    told: Array = rows()
    common: Array = known()
    count: int = 0
    size: float = 1.5
    over: bool = False


def sample() -> Sample:
    return Sample(np.arange(3.0), np.ones((2, 2)), np.full((1, 4), 7.0), 2)


def test_kinds_of_fields() -> None:
    assert vector().metadata == {"kind": "vector"}
    assert rows().metadata == {"kind": "rows"}
    assert known().metadata == {"kind": "rows", "common": True}
    made = option(3, int, "how many", choices=["a"], only=["b"], below=9.0)
    assert made.default == 3
    assert made.metadata == {"option": Option("how many", int, ("a",), ("b",), 9.0)}
    assert option(3, int, "how many").metadata["option"].below == math.inf


def test_a_state_by_kinds() -> None:
    state = sample()
    assert list(state.of_kind("vector")) == ["w"]
    assert list(state.of_kind("rows")) == ["told", "common"]
    assert state.numbers() == {"count": 2, "size": 1.5, "over": False}
    copy = state.copied()
    copy.w[0] = copy.told[0, 0] = copy.common[0, 0] = 99.0
    assert (state.w[0], state.told[0, 0], state.common[0, 0]) == (0.0, 1.0, 7.0)
    assert copy.numbers() == state.numbers()


@pytest.mark.parametrize("led", [True, False])
def test_agent_0_is_followed_where_processes_differ(led: bool) -> None:
    """Else the numbers enter the digest."""
    digested = list[Array]()
    sent = list[Array]()

    def common(mine: Array) -> Array:
        sent.append(mine)
        return mine + 1.0

    runtime: Any = Fake(notes=Fake(led=led, remember=digested.append), common=common)
    state = sample()
    found = state.agreed(runtime)
    if not led:
        assert found is state
        assert [v.tolist() for v in digested] == [[2.0, 1.5, 0.0]]
        return
    assert [v.tolist() for v in sent] == [[7.0, 7.0, 7.0, 7.0, 2.0, 1.5, 0.0]]
    assert (found.count, found.size, found.over) == (3, 2.5, True)
    assert type(found.count) is int
    assert found.common.tolist() == [[8.0] * 4]
    assert found.w is state.w
    assert found.told is state.told


def test_plans_are_made_for_the_tolerance_or_what_was_planned() -> None:
    request = Request(1e-3, np.zeros(0), np.zeros(0))
    assert (request.plan_tol, request.target, request.seed) == (1e-3, 1e-6, 0)
    assert (request.reference, request.measure, request.costs) == (False, (1.0, 1.0), Costs())
    assert Request(1e-3, np.zeros(0), np.zeros(0), planned=1e-5).plan_tol == 1e-5
    assert Prepared(Fake(), None, "averaged", "why").proves is False  # type: ignore[arg-type]


class Plain(RealizedIteration[Any]):
    """Keeps what it begins with."""

    def begin(self, w: Array, p: Array, price: Array) -> Any:
        return Fake(w=w, p=p, price=price)

    def step(self, state: Any) -> Any:
        return state

    @property
    def cost(self) -> Cost:
        return Cost()


def test_a_start_in_the_units_of_a_realization() -> None:
    """Three entries of x and one of z, in units of s = 2: gradients along z double."""
    space = Fake(
        zeros=lambda: np.zeros(6), z_end=4, z=lambda w: w[3:4], x=lambda w: w[:3]
    )  # two more entries are auxiliary
    system = Fake(zero_price=lambda: np.zeros((1, 2)), empty=False, cost=Cost(A=2))
    realized: Any = Fake(
        space=space,
        system=system,
        objective=None,
        s=2.0,
        copies=lambda w: w[3:4] * 0.5,
        embed=lambda x, z: np.concatenate([x, 2.0 * z, [0.0, 0.0]]),
    )
    iteration = Plain(realized)
    cold = iteration.start(np.ones(3), np.array([5.0]))
    assert cold.w.tolist() == [1.0, 1.0, 1.0, 10.0, 0.0, 0.0]
    assert not cold.p.any()
    assert not cold.price.any()
    warm = iteration.start(
        np.ones(3), np.array([5.0]), np.arange(1.0, 7.0), np.array([8.0, 9.0, 7.0])
    )
    assert warm.p.tolist() == [1.0, 2.0, 3.0, 8.0, 0.0, 0.0]
    assert warm.price.tolist() == [[8.0, 9.0]]
    x, z = iteration.point(warm)
    assert (x.tolist(), z.tolist()) == ([1.0, 1.0, 1.0], [5.0])
    assert iteration.embedded(warm, realized) is warm.w
    other: Any = Fake(embed=np.append)
    assert iteration.embedded(warm, other).tolist() == [1.0, 1.0, 1.0, 5.0]
    assert dict(iteration.residual_cost) == {"A": 2}
    system.empty = True
    assert dict(iteration.residual_cost) == {}
    assert iteration.finished(warm) is False
    assert iteration.dual(warm, realized) is None
