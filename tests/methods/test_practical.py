"""The practical schedule of continuation: opening, stages, their tests, and what is remembered."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.certificates.gap import Gap, Goal
from ccmac.ledger import Cost
from ccmac.linalg.chebyshev import correction_interval
from ccmac.methods import continuation as practical
from ccmac.methods.continuation import PracticalContinuation, PracticalState

H = np.diag([1.0, 2.0, 0.5])
g = np.array([1.0, -1.0, 2.0])
K = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 1.0]])
V = np.array([1.0, -1.0])
L = 2.0


@dataclass(frozen=True)
class Bound:
    """A gap whose bound is told, for every radius."""

    told: float
    value: float = 5.0
    base: float = 1.0
    slope: float = 0.5
    distance: float = 0.25
    travelled: float = 2.0
    steepness: float = 3.0

    def bound(self, radius: float) -> float:
        return self.told

    def required(self, goal: Any) -> float:
        return 4.0


def made(bounds: list[float], **more: Any) -> Any:
    """An iteration whose bounds are told one after the other."""
    left = list(bounds)
    space = Fake(
        count=1,
        partial_dots=lambda a, b: np.array([[a @ b]]),
        norms=lambda *vs: [float(np.linalg.norm(v)) for v in vs],
        ride=lambda *pairs: Fake(value=np.array([a @ b for a, b in pairs]), grain=0.0),
        runtime=Fake(ride=lambda rows: Fake(value=rows.sum(axis=0), grain=0.0)),
    )
    asked: list[Any] = []

    def gap(point: Any, gradient: Any, p: Any, distance: Any = None) -> Bound:
        asked.append((point, gradient, p, distance))
        return Bound(left.pop(0))

    system = Fake(
        interval=Fake(low=0.5, high=8.0),
        residual=lambda w: (K.T @ (K @ w - V), np.zeros((1, 0))),
        cost=Cost(A=1),
    )
    found = object.__new__(PracticalContinuation)
    vars(found).update(
        objective=Fake(L=L, gradient=lambda w: H @ w - g, cost=Cost(gradients=1)),
        system=system,
        space=space,
        certifier=Fake(gap=gap),
        goal=Goal(1e-6, None, None),
        opening=True,
        augmented=False,
        asked=asked,
        realized=None,
    )
    vars(found).update(more)
    return found


def test_the_start() -> None:
    iteration = made([7.0])
    w = np.array([1.0, 2.0, 3.0])
    p = np.array([0.1, 0.2, 0.3])
    state = iteration.begin(w, p, np.zeros((1, 2)))
    assert (state.nu, state.weight, state.stages) == (L / 4, 0.3 * L, False)
    assert state.history.tolist() == [[7.0, math.inf, math.inf, math.inf]]
    assert (state.value, state.base, state.slope) == (5.0, 1.0, 0.5)
    assert (state.distance, state.travelled, state.fresh) == (0.25, 2.0, True)
    assert (state.adapt, state.check, state.inner) == (4, 8, 0)
    for v, expected in ((state.x, w), (state.centre, w), (state.p_centre, p)):
        assert v.tolist() == expected.tolist()
    assert made([7.0], opening=False).begin(w, p, np.zeros((1, 2))).stages
    assert iteration.cost == Cost(gradients=1, A=1)


def opened(**more: Any) -> PracticalState:
    w = np.array([1.0, 2.0, 3.0])
    p = np.array([0.1, 0.2, 0.3])
    known = made([7.0]).begin(w, p, np.zeros((1, 2)))
    return replace(known, **{"weight": 0.9, **more})


def test_a_step_of_the_opening() -> None:
    state = opened()
    w = state.w
    p = state.p
    found = made([]).step(state)
    ahead = w - 0.99 / (0.5 * L + 0.9) * (H @ w - g + p)
    after = p + 0.9 / 8.0 * K.T @ (K @ (2 * ahead - w) - V)
    assert (found.w, found.p) == (pytest.approx(ahead), pytest.approx(after))
    assert (found.inner, found.weight, found.fresh) == (1, 0.9, False)
    late = made([]).step(opened(inner=3))  # the fourth
    ratio = np.linalg.norm(after - state.p_centre) / np.linalg.norm(ahead - state.centre)
    assert late.weight == pytest.approx(math.sqrt(0.9 * 3 * ratio))
    assert late.adapt == 6


def test_the_opening_ends_when_the_gap_falls_too_slowly() -> None:
    """Twice in a row less than fourfold while the iterations doubled (three checks back)."""
    history = np.array([[3.0, 2.0, 8.0, 9.0]])
    slow = made([2.01]).step(opened(inner=7, history=history, adapt=99))
    assert slow.late == 1  # 2.01 > 8/4
    assert slow.check == 10
    assert slow.fresh
    assert slow.history.tolist() == [[2.01, 3.0, 2.0, 8.0]]
    quick = made([1.99]).step(opened(inner=7, history=history, adapt=99, late=1))
    assert (quick.late, quick.stages) == (0, False)
    fresh = made([9.0]).step(opened(inner=7, adapt=99, late=1))
    assert fresh.late == 0  # nothing to compare with yet
    over = made([2.01]).step(opened(inner=7, history=history, adapt=99, late=1))
    assert (over.stages, over.inner, over.late) == (True, 0, 2)
    assert over.x.tolist() == over.centre.tolist() == over.w.tolist() == [1.0, 2.0, 3.0]
    early = made([]).step(opened(inner=6, history=history, adapt=99))
    assert early.check == 8


@pytest.mark.parametrize("augmented", [False, True])
def test_the_steps_of_a_stage(augmented: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    def stage_step(objective: Any, correct: Any, steps: Any, *given: Any) -> Any:
        told.append((correct.degree, steps, given))
        x, f, p, centre = given
        far = np.array([3.0, 4.0, 0.0])
        steep = np.array([0.0, 0.0, 2.0])
        return Fake(
            x=x + 1, f=f + 2, p=p + 3, g=centre + far, slope=steep - p - 3, violation=steep / 2
        )

    monkeypatch.setattr(practical, "stage_step", stage_step)
    state = opened(stages=True, nu=0.5, told=np.array([[1.0, 1e9, 1e9]]))
    found = made([], augmented=augmented).step(state)
    [(degree, steps, given)] = told
    assert degree == 4  # ceil sqrt(8 / 0.5)
    low, high = correction_interval(0.5, 8.0, 4)
    smooth = L + (L * high if augmented else 0.0) + 0.5
    tau = min(1.0, 0.5 * math.sqrt(high * 0.5 / (low * smooth)))
    eta = 1 / (4 * tau * smooth)
    assert (steps.nu, steps.tau, steps.eta) == pytest.approx((0.5, tau, eta))
    assert (steps.theta, steps.weight) == pytest.approx((1 / (eta * high), L if augmented else 0.0))
    assert [v.tolist() for v in given] == [
        v.tolist() for v in (state.x, state.w, state.p, state.centre)
    ]
    assert found.told == pytest.approx(np.array([[25.0, 4.0, 1.0]]))
    assert (found.inner, found.stages) == (1, True)


@pytest.mark.parametrize(
    ("away", "steep", "off", "inner", "ended"),
    [
        (1.0, 0.40, 0.40, 3, True),
        (1.0, 0.41, 0.40, 3, False),
        (1.0, 0.40, 0.41, 3, False),
        (1.0, 0.40, 0.40, 2, False),
        (2.0, 0.79, 0.79, 3, True),
    ],
)
def test_when_a_stage_ends(
    away: float, steep: float, off: float, inner: int, ended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.8 nu |g - c| and 0.8 (nu/L)^{1/2} |g - c| with nu = 1/2, L = 2; the third step on."""
    same = Fake(
        x=np.ones(3),
        f=np.ones(3),
        p=np.ones(3),
        g=np.ones(3),
        slope=np.ones(3),
        violation=np.ones(3),
    )
    monkeypatch.setattr(practical, "stage_step", lambda *given: same)
    shares = np.array([[away**2, steep**2 - 1e-12, off**2 - 1e-12]])
    iteration = made([])
    iteration._ended = lambda state, g: "ended"
    state = opened(stages=True, nu=0.5, told=shares, inner=inner - 1)
    assert (iteration.step(state) == "ended") == ended


@pytest.mark.parametrize(("bound", "nu"), [(3.5, 0.5), (3.6, 0.125)])
def test_the_next_stage(bound: float, nu: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """nu shrinks by 4 where the bound did not halve; the dual is corrected."""
    asked: dict[str, float] = {}
    iteration = made([bound])
    iteration._known = lambda state: Bound(7.0)
    monkeypatch.setattr(practical, "execution_radius", lambda realized, radius: 10 * radius)
    point = np.array([9.0, 9.0, 9.0])

    def repaired(at: Any, near: Any) -> Any:
        asked["near"] = near()
        return point, 0.125

    def project(v: Any, near: Any) -> Any:
        asked["dual"] = near()
        assert v.tolist() == (H @ point - g + [0.1, 0.2, 0.3]).tolist()
        return np.ones(3), None

    iteration.certifier.way = lambda at: np.array([0.0, 6.0, 0.0])
    iteration.certifier.repaired = repaired
    iteration.certifier.project = project
    found = iteration._ended(opened(stages=True, nu=0.5, inner=9), np.zeros(3))
    # target = max(eps, 0.05 7), radius = max(4, 6): it travelled farther than required.
    assert asked["near"] == pytest.approx(0.02 * 0.35 / max(L * 60, 3.0))
    assert asked["dual"] == pytest.approx(0.02 * 0.35 / 6.0)
    assert (found.nu, found.inner) == (nu, 0)
    for v in (found.w, found.x, found.centre):
        assert v.tolist() == point.tolist()
    assert found.p == pytest.approx([1.1, 1.2, 1.3])
    assert found.history[0, 0] == bound
    [(at, gradient, p, distance)] = iteration.asked
    assert p.tolist() == found.p.tolist()
    assert (at.tolist(), distance) == (point.tolist(), 0.125)
    assert gradient.tolist() == (H @ point - g).tolist()


def test_the_bound_of_this_iterate_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(practical, "execution_radius", lambda realized, radius: 3 * radius)
    iteration = made([])
    state = opened()
    found = iteration.quick_gap(state)
    assert isinstance(found, Gap)
    assert (found.value, found.base, found.slope) == (5.0, 1.0, 0.5)
    assert (found.distance, found.travelled) == (0.25, 2.0)
    assert iteration.quick_gap(replace(state, fresh=False)) is None
