"""Line searches and plans of the Newton methods, decision by decision."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.inputs import Array
from ccmac.methods.history import GRADIENT, MEMORY, SIZE
from ccmac.methods.lbfgs import DualLbfgs, LbfgsState
from ccmac.methods.local.newton import Smooth
from ccmac.methods.newton.eliminated import LENGTHS, PATIENCE, EliminatedNewton, EliminatedState
from ccmac.methods.newton.subspace import OnSpan, Span


class Told(Smooth):
    """Values and slopes of one unknown as they are told."""

    E = np.zeros((0, 1))
    point = np.zeros(1)

    def __init__(self, value: Callable[[float], float], slope: Callable[[float], float]) -> None:
        self.tell = value
        self.slope = slope

    def value(self, u: Array, linear: Array) -> float:
        return self.tell(float(u[0]))

    def gradient(self, u: Array, linear: Array) -> Array:
        return np.array([self.slope(float(u[0]))])

    def inverse(self, u: Array) -> Callable[[Array], Array]:
        return lambda v: v


@pytest.mark.parametrize(
    ("falls", "slope", "taken"),
    [
        ({1.0: -1.01e-4}, -0.95, 1.0),  # a share of 1e-4 of what the slope promises
        ({1.0: -0.99e-4, 0.5: -0.51e-4}, -0.95, 0.5),
        ({1.0: -0.99e-4, 0.5: -0.49e-4, 0.25: -0.26e-4}, -0.95, 0.25),
        ({1.0: 0.5e-12}, 0.89, 1.0),  # values that tell nothing: the slope has to fall
        ({1.0: 0.5e-12, 0.5: -1.0}, -0.91, 0.5),
        ({1.0: 2e-12, 0.5: -1.0}, 0.1, 0.5),
        ({}, -0.95, 2.0**-20),
    ],
)
def test_a_step_is_halved_until_it_descends(
    falls: dict[float, float], slope: float, taken: float
) -> None:
    f = Told(lambda u: 1.0 + falls.get(u, 1.0) * (u > 0), lambda u: slope)
    zero = np.zeros(1)
    moved, ahead = f._descend(zero, np.array([-1.0]), np.array([1.0]), zero)
    assert moved[0] == taken
    assert ahead[0] == slope


@pytest.mark.parametrize(
    ("sizes", "steps"),
    [
        ([1.0, 1e-9, 0.4e-9, 0.1e-13], 3),  # down to 1e-13 of what there was
        ([1.0, 1e-9, 0.6e-9], 2),  # near the end a step that gains nothing is the last
        ([1.0, 1e-7, 0.6e-7, 1e-9, 0.6e-13], 4),
        ([1.0, 1.9e-13], 1),
        ([1.0], 60),  # at most
    ],
)
def test_newton_steps_end_at_rounding(sizes: list[float], steps: int) -> None:
    asked = [0]

    def slope(u: float) -> float:
        size = sizes[min(asked[0], len(sizes) - 1)]
        asked[0] += 1
        return size

    f = Told(lambda u: u, slope)
    _, spent = f.newton(np.ones(1), np.zeros(1))  # the linear term doubles the scale
    assert asked[0] == steps + 1
    assert spent == 1 + 3 * steps


def test_points_on_equations() -> None:
    f = Told(lambda u: 0.0, lambda u: 0.0)
    f.E, f.point = np.array([[0.6, 0.8]]), np.array([3.0, 4.0])
    assert f.feasible(np.zeros(2)) == pytest.approx([3.0, 4.0])
    assert f.tangent(np.array([0.6, 0.8])) == pytest.approx([0.0, 0.0])
    assert f.tangent(np.array([0.8, -0.6])) == pytest.approx([0.8, -0.6])


# -- steps in a span, where h has to be summed -----------------------------------------------------
E = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0]])


def state(value: float, step: list[float], **more: Any) -> EliminatedState:
    """k = 2 of 3 vectors; c = (1, -1), slope (1, 2, 3)."""
    known: dict[str, Any] = {
        "u": np.zeros(1),
        "P": np.eye(3)[None],
        "E": E[None].copy(),
        "bend": np.ones((1, 3)),
        "c": np.array([[1.0, -1.0, 0.0]]),
        "step": np.array([[*step, 0.0]]),
        "value": value,
        "slope": np.array([[1.0, 2.0, 3.0]]),
        "s": np.full((1, 3), 7.0),
        "before": np.full((1, 3), 5.0),
        "k": 2,
    }
    return EliminatedState(**{**known, **more})


def iteration(common: bool = False) -> Any:
    made = object.__new__(EliminatedNewton)
    explicit: Any = Fake(beta=2.0, common=common, rank=9)
    vars(made).update(explicit=explicit, reduced=OnSpan(explicit, np.ones(3)), capacity=3)
    return made


SLOPE = np.array([4.0, 6.0, 8.0])
BEND = np.array([1.0, 2.0, 3.0])


def heard(before: EliminatedState, values: list[float]) -> EliminatedState:
    """``values`` of F at the eight lengths."""
    ends = before.c[0] + LENGTHS[:, None] * before.step[0]
    h = np.array(values) - 0.5 * np.sum(ends**2, axis=1)
    found: EliminatedState = iteration()._heard(before, [SLOPE, BEND, h])
    assert found.s == pytest.approx(-SLOPE[None] / 2)  # the price that the end asks for
    return found


def test_a_step_that_falls_enough_is_taken() -> None:
    """Gradient c + E slope/2 = (4.5, 1.5), along the step -(4.5 + 1.5)/2 = -3."""
    for fall, taken in ((3.01e-4, True), (2.99e-4, False)):
        found = heard(state(10.0, [-0.5, -0.5]), [10.0 - fall, *[9.5] * 7])
        assert math.isfinite(found.value) == taken
        if taken:
            assert found.value == pytest.approx(10.0 - fall)
            assert found.c == pytest.approx(np.array([[0.5, -1.5, 0.0]]))
            assert (found.slope.tolist(), found.bend.tolist()) == (
                [SLOPE.tolist()],
                [BEND.tolist()],
            )
        else:
            assert found.slope.tolist() == [[1.0, 2.0, 3.0]]  # unknown there
            assert found.c == pytest.approx(np.array([[0.75, -1.25, 0.0]]))


def test_the_best_of_the_shorter_ones() -> None:
    values = [20.0, 11.0, 9.0, 8.0, 8.5, 9.0, 9.5, 9.9]
    found = heard(state(10.0, [-0.8, 0.8]), values)
    assert found.value == math.inf
    assert found.c == pytest.approx(np.array([[0.9, -0.9, 0.0]]))
    none = heard(state(10.0, [0.0, 0.0]), [30.0] * 8)  # where no slope was known: a look
    assert none.value == pytest.approx(30.0)
    assert none.slope.tolist() == [SLOPE.tolist()]


def test_values_that_tell_nothing() -> None:
    """A rise below 1e-13 and a promise below 1e-8 of the value: the step is taken."""
    small = [-1e-8, -1e-8]  # promises 6e-8 of 10
    assert math.isfinite(heard(state(10.0, small), [10.0 + 5e-13, *[9.0] * 7]).value)
    assert not math.isfinite(heard(state(10.0, small), [10.0 + 4e-12, *[9.0] * 7]).value)
    large = [-1e-7, -1e-7]
    assert not math.isfinite(heard(state(10.0, large), [10.0 + 5e-13, *[9.0] * 7]).value)


def test_what_is_asked_along_a_step() -> None:
    newton = iteration()
    asked = dict[str, Array]()
    charged: list[Any] = []
    newton.work = Fake(ledger=Fake(charge=lambda **units: charged.append(units)))
    for name in ("slopes", "bends", "values"):
        setattr(newton.explicit, name, lambda z, name=name: asked.setdefault(name, z))
    newton._looks(state(10.0, [-0.5, 0.5]))
    start = (np.array([1.0, -1.0]) @ E[:2] - 1) / 2
    end = (np.array([0.5, -0.5]) @ E[:2] - 1) / 2
    assert asked["slopes"] == pytest.approx(end)
    assert asked["bends"] == pytest.approx(end)
    assert asked["values"] == pytest.approx(start + np.outer(0.5 ** np.arange(8), end - start))
    assert charged == [{"gradients": 3}]


def test_the_gap_when_a_vector_joins() -> None:
    """|c - E s|^2 inside, and what s adds; without a value it is not known."""
    newton = iteration()
    v = np.array([0.0, 0.0, 3.0])
    one = state(10.0, [0.0, 0.0], P=np.eye(3)[None], E=np.eye(3)[None])
    found = newton._joined(one, v, v)
    assert found.gap == pytest.approx(math.sqrt(36 + 64 + 9))
    assert (found.k, found.least, found.waited, found.over) == (3, found.gap, 0, False)
    assert found.before.tolist() == [[7.0] * 3]
    unknown = newton._joined(state(math.inf, [0.0, 0.0], least=5.0), v, v)
    assert (unknown.gap, unknown.least, unknown.waited) == (math.inf, 5.0, 1)
    late = newton._joined(state(math.inf, [0.0, 0.0], least=5.0, waited=PATIENCE - 1), v, v)
    assert late.over
    assert PATIENCE == 40
    there = state(1.0, [0.0, 0.0], s=np.array([[1.0, -1.0, 0.0]]), E=np.eye(3)[None])
    assert newton._joined(there, np.zeros(3), np.zeros(3)).over


def test_a_plan_is_the_newton_step_of_the_span() -> None:
    newton = iteration()
    planned = newton._planned(state(10.0, [9.0, 9.0]))
    gradient = np.array([1.0, -1.0]) + E[:2] @ [1.0, 2.0, 3.0] / 2
    hessian = np.eye(2) + E[:2] @ E[:2].T / 4
    assert planned.step[0, :2] == pytest.approx(-np.linalg.solve(hessian, gradient))
    assert planned.step[0, 2] == 0.0
    assert not newton._planned(state(math.inf, [9.0, 9.0])).step.any()
    span = Span(np.eye(3), E, 2)
    assert span.price(np.array([2.0, 3.0, 9.0])).tolist() == [2.0, 3.0, 0.0]
    assert span.image(np.array([2.0, 3.0, 9.0])).tolist() == [2.0, 3.0, 7.0]


def searched(before: float, after: float, rise: float, **more: Any) -> tuple[Any, list[Any]]:
    """One search from phi = 5 with g'g = 4, where <g, d> is ``before`` and then ``after``."""
    taken: list[Any] = []
    made = object.__new__(DualLbfgs)
    gram = np.zeros((SIZE, SIZE))
    gram[GRADIENT, GRADIENT] = 4.0
    known: dict[str, Any] = {
        "u": np.zeros(1),
        "h": np.zeros(2),
        "price": np.zeros((1, 1)),
        "mean": np.zeros((1, 1)),
        "basis_l": np.zeros((1, SIZE, 1)),
        "basis_n": np.zeros((1, SIZE, 1)),
        "gram": gram[None],
        "inner": np.zeros((1, 1)),
        "value": 5.0,
        "first": 8.0,
        "least": 4.0,
        "count": 3,
    }
    state = LbfgsState(**{**known, **more})
    products = np.zeros((SIZE, 3))
    squares = np.zeros((3, 3))
    products[GRADIENT, 0], squares[2, 0] = before, after
    trial = Fake(products=products, squares=squares, value=5.0 + rise, size=10.0)

    def learn(state: Any, trial: Any, alpha: float, *, take: bool) -> Any:
        taken.append((alpha, take))
        return state, more.get("pairs", 0) >= 0

    vars(made).update(
        curvature=2.0,
        _root=1.0,
        _trial=lambda *given: trial,
        _learn=learn,
        coupling=Fake(empty=True),
        space=Fake(zeros=lambda: np.zeros(2), z=lambda h: h[1:, None]),
    )
    return made._search(state), taken


@pytest.mark.parametrize(
    ("before", "after", "rise", "taken"),
    [
        (-1.0, 1.0, -1.01e-4, True),
        (-1.0, 1.0, -0.99e-4, False),
        (-1.0, 0.79, 0.9e-9, True),  # values alike: 1e-10 of their size; the slope has to fall
        (-1.0, 0.81, 0.9e-9, False),
        (-1.0, 0.79, 1.1e-9, False),
        (-1.0, -9.0, 0.9e-9, True),
    ],
)
def test_which_trials_of_lbfgs_are_taken(
    before: float, after: float, rise: float, taken: bool
) -> None:
    found, told = searched(before, after, rise)
    assert told == [(1.0, taken)]
    assert (found.rejected, found.alpha) == ((0, 1.0) if taken else (1, 1.0))
    again, told = searched(before, after, rise * 0.25, rejected=2, alpha=0.25)
    assert told[0][0] == 0.25
    if after == 1.0:
        assert told[0][1] == taken  # Armijo's share goes with the length
        assert again.alpha == (1.0 if taken else 0.25)  # after the third refusal in a row


@pytest.mark.parametrize(
    ("more", "over"),
    [
        ({}, False),
        ({"first": 4.1e30}, True),
        ({"first": 3.9e30}, False),
        ({"least": 3.9e-8}, True),
        ({"least": 4.1e-8}, False),
        ({"rejected": 19}, True),
        ({"rejected": 18}, False),
        ({"pairs": -1}, True),
    ],
)
def test_when_lbfgs_ends(more: dict[str, Any], over: bool) -> None:
    found, _ = searched(-1.0, 1.0, 1.0, **more)
    assert found.over == over
    assert found.least == min(more.get("least", 4.0), 4.0)


@pytest.mark.parametrize("take", [False, True])
@pytest.mark.parametrize(("along", "curved"), [(1.01e-8, True), (0.99e-8, False)])
def test_what_a_trial_teaches(take: bool, along: float, curved: bool) -> None:
    """<s, y> against 1e-8 |s| |y|, for a step of length 1/2 along d."""
    made = object.__new__(DualLbfgs)
    state = LbfgsState(
        np.zeros(1),
        np.zeros(1),
        np.zeros((1, 1)),
        np.zeros((1, 1)),
        np.zeros((1, SIZE, 1)),
        np.zeros((2, SIZE, 1)),
        np.zeros((1, SIZE, SIZE)),
        np.zeros((2, 1)),
        pairs=MEMORY + 1,
    )
    squares = np.array([[4.0, 3.0 * along * 2, 5.0], [3.0 * along * 2, 9.0, 6.0], [5.0, 6.0, 7.0]])
    trial: Any = Fake(
        u="u",
        h="h",
        prices="prices",
        mean="mean",
        value=1.5,
        spent=np.ones((2, 1)),
        new_l=np.array([[[2.0], [3.0], [4.0]]]),
        new_n=np.full((2, 3, 1), 8.0),
        products=np.zeros((SIZE, 3)),
        squares=squares,
    )
    found, told = made._learn(state, trial, 0.5, take=take)
    assert told == curved
    assert found.pairs == MEMORY + 1 + curved
    assert found.inner.tolist() == [[1.0], [1.0]]
    assert found.basis_l[0, [1, MEMORY + 1, GRADIENT], 0].tolist() == [
        1.0 * curved,
        3.0 * curved,
        4.0 * take,
    ]
    assert found.basis_n[1, 1, 0] == 4.0 * curved
    assert found.gram[0, 1, 1] == curved * 1.0
    assert found.gram[0, GRADIENT, GRADIENT] == 7.0 * take
    assert found.gram[0, 1, GRADIENT] == curved * take * 2.5
    assert (found.u, found.value) == (("u", 1.5) if take else (pytest.approx(np.zeros(1)), 0.0))
