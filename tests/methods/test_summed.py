"""Decisions and single parts of summed Newton steps, in small numbers."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.methods.newton import summed
from ccmac.methods.newton.summed import LENGTHS, TRIALS, SummedNewton, SummedState


def state(value: float = 10.0, **more: Any) -> SummedState:
    known: dict[str, Any] = {
        "u": np.array([1.0, 2.0]),
        "ahead": np.array([3.0, 6.0]),
        "mu": np.array([[5.0]]),
        "value": value,
        "count": 4,
    }
    return SummedState(**{**known, **more})


@pytest.mark.parametrize(
    ("value", "first", "taken"),
    [
        (10.0, 9.0, True),
        (10.0, 10.0, True),
        (10.0, 10.0 + 0.9e-12, True),
        (10.0, 10.0 + 1.1e-12, False),
        (math.inf, 99.0, True),
        (math.inf, math.inf, False),
    ],
)
def test_when_a_whole_step_is_taken(value: float, first: float, taken: bool) -> None:
    """Unless the value rises by more than rounding."""
    made = object.__new__(SummedNewton)
    assert made._enough(state(value), first) == taken


def test_the_end_of_a_step_is_the_next_point() -> None:
    made = object.__new__(SummedNewton)
    ahead = np.array([7.0, 8.0])
    mu = np.array([9.0])
    found = made._moved(state(cut=3), ahead, mu, 9.0)
    assert (found.u.tolist(), found.ahead.tolist()) == ([3.0, 6.0], [7.0, 8.0])
    assert (found.mu.tolist(), found.value, found.count) == ([[9.0]], 9.0, 5)
    assert (found.cut, found.over) == (0, False)
    idle = made._moved(state(cut=TRIALS - 2), ahead, mu, 10.0 - 0.9e-12)
    assert (idle.cut, idle.over) == (TRIALS - 1, False)
    assert made._moved(state(cut=TRIALS - 1), ahead, mu, 10.0 - 0.9e-12).over
    assert made._moved(state(cut=TRIALS - 1), ahead, mu, 10.0 - 1.1e-12).cut == 0
    assert made._moved(state(math.inf, cut=3), ahead, mu, 10.0).cut == 0
    assert TRIALS == 12


def looked(
    values: list[float], before: SummedState, monkeypatch: pytest.MonkeyPatch
) -> SummedState:
    """One step whose values along it are told."""
    monkeypatch.setattr(summed, "residuals", lambda models, z, mu: np.zeros((1, 1)))
    made = object.__new__(SummedNewton)
    made._models = lambda u: [Fake(triangle=lambda: np.zeros(1))]  # type: ignore[method-assign,list-item,return-value]
    made._values = lambda u, move: np.array([values]) / 3  # type: ignore[method-assign]
    vars(made).update(
        space=Fake(z=lambda u: u[1:][None]),
        whitened=Fake(),
        problem=Fake(n=3),
        runtime=Fake(combine=lambda parts: parts),
    )
    return made.step(before)


def test_a_step_is_cut_to_the_best_length(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [11.0, 10.5, 9.0, 9.5, 9.6, 9.7, 9.8, 9.9]
    found = looked(values, state(), monkeypatch)
    assert found.ahead == pytest.approx([1.0 + 2.0 / 4, 2.0 + 4.0 / 4])
    assert found.u == pytest.approx(found.ahead)  # lower: it is the point, its slope unknown
    assert (found.value, found.cut, found.count, found.over) == (math.inf, 1, 5, False)
    higher = looked([12.0, 11.0, 10.5, 11.0, 12.0, 12.0, 12.0, 12.0], state(), monkeypatch)
    assert higher.u.tolist() == [1.0, 2.0]
    assert higher.ahead == pytest.approx([1.5, 3.0])
    assert higher.value == 10.0
    assert looked(values, state(cut=TRIALS), monkeypatch).over
    assert not looked(values, state(cut=TRIALS - 1), monkeypatch).over
    assert LENGTHS.tolist() == [0.5**j for j in range(8)]


def test_the_nearest_point_on_all_equations() -> None:
    """Two agents, C_1 x = 1 at the first; whitened rows W (y, z) = v with W W' = 1."""
    random = np.random.default_rng(1)
    rows = np.linalg.qr(random.standard_normal((4, 2)))[0].T  # over (y_1, y_2, z_1, z_2)
    kernels = [
        Fake(basis=np.array([[0.8], [-0.6]]), point=np.array([0.6, 0.8])),
        Fake(basis=np.eye(1), point=np.zeros(1)),
    ]
    v = np.array([1.0, -2.0])
    made = object.__new__(SummedNewton)
    whitened = Fake(kernels=kernels, rank=2, v=v, Z=rows[:, 2:], A=[rows[:, :1], rows[:, 1:2]])
    ends = [0, 2, 3]
    space = Fake(
        zeros=lambda: np.zeros(7),
        z=lambda u: u[3:].reshape(2, 2),
        x_of=lambda u, k: u[ends[k] : ends[k + 1]],
    )
    vars(made).update(
        whitened=whitened,
        space=space,
        problem=Fake(n=2),
        runtime=Fake(average=lambda rows: rows.mean(axis=0, keepdims=True)),
    )
    u = np.array([2.0, 1.0, 3.0, 4.0, 5.0, 4.0, 5.0])
    found = made._feasible(u)
    inside = np.array([0.8 * (2.0 - 0.6) - 0.6 * (1.0 - 0.8), 3.0, 4.0, 5.0])
    moved = inside + rows.T @ (v - rows @ inside)
    assert found[:2] == pytest.approx(np.array([0.6, 0.8]) + moved[0] * np.array([0.8, -0.6]))
    assert found[2:3] == pytest.approx(moved[1:2])
    assert space.z(found) == pytest.approx(np.array([moved[2:], moved[2:]]))


def test_values_along_a_step() -> None:
    made = object.__new__(SummedNewton)
    f = Fake(value=lambda x, z: float(x @ x + 3 * z @ z))
    space = Fake(x_of=lambda u, k: u[k : k + 1], z=lambda u: u[2:].reshape(2, 1))
    vars(made).update(objectives=[f, f], space=space)
    u = np.array([1.0, 2.0, 3.0, 3.0])
    move = np.array([0.5, -1.0, 2.0, 2.0])
    found = made._values(u, move)
    assert found.shape == (2, 8)
    for k, (x, d) in enumerate(((1.0, 0.5), (2.0, -1.0))):
        for j, t in enumerate(LENGTHS):
            assert found[k, j] == pytest.approx((x + t * d) ** 2 + 3 * (3 + 2 * t) ** 2)
