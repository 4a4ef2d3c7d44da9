"""Single steps of the convex methods against their recurrences, written out densely."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.certificates.gap import Gap
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods.continuation import AcceleratedGradient, StageSteps, stage_step
from ccmac.methods.sliding.subgradient import DoublingSliding, Phase, SubgradientIteration, Sums
from ccmac.paper.schedules.sliding import Sliding

RANDOM = np.random.default_rng(0)
H = np.diag([1.0, 2.0, 0.5])
g = np.array([1.0, -1.0, 2.0])
K = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 1.0]])
G = K.T @ K
POINT = np.array([0.5, -0.25, 1.0])  # feasible
UNIT = Cost(rounds=1)


def gradient(u: Array) -> Array:
    return H @ u - g


def made(kind: Any, **more: Any) -> Any:
    """An iteration of this kind without its constructor."""
    space = Fake(
        norm=np.linalg.norm,
        dot=lambda a, b: float(a @ b),
        zeros=lambda: np.zeros(3),
        count=1,
        partial_dots=lambda a, b: np.array([[a @ b]]),
        norms=lambda *vs: [float(np.linalg.norm(v)) for v in vs],
        runtime=Fake(
            total_cost=lambda: UNIT,
            ride=lambda rows: Fake(value=rows.sum(axis=0)),
            mind_the_time=lambda: None,
        ),
    )
    system = Fake(
        empty=False,
        homogeneous=lambda: Fake(residual=lambda v: (G @ v, None)),
        interval=Fake(low=0.25, high=9.0),
        cost=Cost(A=1),
    )
    iteration = object.__new__(kind)
    objective = Fake(gradient=gradient, L=2.0, cost=Cost(gradients=1))
    vars(iteration).update(space=space, system=system, objective=objective, feasible=POINT, **more)
    return iteration


def slid(phase: Phase, state: Any, *, balls: bool) -> tuple[Array, Array, Array, Array]:
    """(u, mean of u with weights t + 1, s, K'y) of one outer step, as the module writes it."""
    y = K @ state.dual + K @ (state.x + state.hat - state.x_before - POINT) / phase.tau
    s = state.dual + (state.x + state.hat - state.x_before - POINT) / phase.tau
    if balls and np.linalg.norm(y) > phase.dual_radius:
        s, y = (phase.dual_radius / np.linalg.norm(y) * v for v in (s, y))
    u = state.x
    points = []
    for t in range(1, phase.inner + 1):
        u = (state.x + t / 2 * u - (K.T @ y + gradient(u)) / phase.eta) / (1 + t / 2)
        away = np.linalg.norm(u - state.centre)
        if balls and away > 2 * phase.radius:
            u = state.centre + 2 * phase.radius / away * (u - state.centre)
        points.append(u)
    weights = np.arange(2.0, phase.inner + 2)
    return u, weights @ np.array(points) / weights.sum(), s, K.T @ y


@pytest.mark.parametrize("radius", [10.0, 0.3])
@pytest.mark.parametrize("dual_radius", [100.0, 0.7])
def test_an_outer_step_of_sliding(radius: float, dual_radius: float) -> None:
    phase = Phase(radius, dual_radius, 3.0, 0.5, 2, 3)
    sliding = made(Sliding, phases=(phase, phase))
    state = sliding.begin(np.array([1.0, 2.0, -1.0]), np.zeros(3), np.zeros((1, 2)))
    expected = state.copied()
    hats = []
    for count in (1, 2):
        u, hat, s, p = slid(phase, expected, balls=True)
        hats.append(hat)
        state = sliding.step(state)
        assert state.last == pytest.approx(u)
        assert state.w == pytest.approx(np.mean(hats, axis=0))
        expected = replace(expected, x_before=expected.x, x=u, hat=hat, dual=s, p=p)
        if count == 1:
            assert (state.outer, state.phase) == (1, 0)
            assert state.dual == pytest.approx(s)
            assert state.p == pytest.approx(p)
            assert state.x_before == pytest.approx([1.0, 2.0, -1.0])
    # The next phase begins at the average, without a dual.
    assert (state.outer, state.phase) == (0, 1)
    for array in (state.x, state.x_before, state.hat, state.centre):
        assert array == pytest.approx(state.w)
    assert not np.concatenate([state.dual, state.p, state.mean]).any()
    assert not sliding.finished(state)
    last = sliding.step(sliding.step(state))
    assert sliding.finished(last)
    assert (last.outer, last.phase, sliding.horizon) == (2, 2, 4)
    assert sliding.cost == 3 * (Cost(gradients=1) + UNIT) + Cost(A=1) + UNIT
    sliding.system.empty = True
    assert sliding.cost == 3 * (Cost(gradients=1) + UNIT)


@pytest.mark.parametrize(
    ("phase", "strong", "before", "error"),
    [(2, True, math.inf, 0.6), (2, True, 0.5, 0.5), (1, True, 0.9, 0.9), (2, False, 0.9, 0.9)],
)
def test_the_error_at_the_end_of_the_phases(
    monkeypatch: pytest.MonkeyPatch, phase: int, strong: bool, before: float, error: float
) -> None:
    """sqrt(2 eps) = 0.2 in execution variables, three times that in the user's."""
    known = Gap(POINT, POINT, POINT, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, False, 1.0, error=before)
    monkeypatch.setattr(SubgradientIteration, "tight_gap", lambda self, state: known)
    sliding = made(
        Sliding,
        phases=(None, None),
        goal=Fake(absolute=0.02),
        certifier=Fake(strong=strong, error_unit=3.0),
    )
    assert sliding.tight_gap(Fake(phase=phase)).error == pytest.approx(error)


def test_sums_of_an_outer_step() -> None:
    """Weights t + 1 for the points where subgradients were taken; no balls."""
    phase = Phase(1e-3, 1e-3, 3.0, 0.5, 2, 2)
    sliding = made(DoublingSliding, radius=2.0)
    state = sliding.begin(np.array([1.0, 2.0, -1.0]), np.zeros(3), np.zeros((1, 2)))
    steep = float(np.linalg.norm(gradient(state.w)))
    assert (state.lipschitz, state.radius, state.target) == pytest.approx((steep, 2.0, 2 * steep))
    expected = state.copied()
    sums = Sums(np.zeros(3), np.zeros(3), np.zeros((1, 1)))
    found = sliding.outer_step(state, phase, sums)
    u, hat, s, p = slid(phase, expected, balls=False)
    assert found.x == pytest.approx(u)
    assert found.hat == pytest.approx(hat)
    assert found.mean == pytest.approx(hat)
    assert (found.dual, found.p) == (pytest.approx(s), pytest.approx(p))
    first = expected.x
    second = (1.5 * first - (p + gradient(first)) / 3.0) / 1.5
    assert sums.terms == 5.0
    assert sums.points == pytest.approx(2 * first + 3 * second)
    assert sums.slopes == pytest.approx(2 * gradient(first) + 3 * gradient(second))
    products = 2 * first @ gradient(first) + 3 * second @ gradient(second)
    assert sums.products[0, 0] == pytest.approx(products)


def test_phases_double_their_radius_and_halve_their_target() -> None:
    sliding = made(DoublingSliding, radius=0.05)
    state = sliding.begin(np.array([1.0, 2.0, -1.0]), np.zeros(3), np.zeros((1, 2)))
    phase = sliding.phase(state)
    M = state.lipschitz
    # ||K|| = 3, sigma = 1/2: Rl = 4 M; eps = M R, eight times fewer steps.
    assert (phase.dual_radius, phase.radius) == pytest.approx((4 * M, 0.05))
    assert (phase.eta, phase.tau) == pytest.approx((12 * M / 0.05, 0.15 / (4 * M)))
    assert phase.inner == max(1, math.ceil(32 * M / (phase.eta * 0.05 * 8)) - 3) == 1
    assert phase.outer == math.ceil(2.5 * 3 * 0.05 * 4 * M / (M * 0.05 * 8))
    for _ in range(phase.outer):
        assert not state.fresh
        state = sliding.step(state)
    assert state.fresh
    assert (state.outer, state.phase) == (0, 1)
    moved = float(np.linalg.norm(state.w - [1.0, 2.0, -1.0]))
    assert state.radius == pytest.approx(max(0.05, min(2 * moved, 0.1)))
    assert state.target == pytest.approx(M * 0.025)
    assert state.lipschitz == max(M, float(np.linalg.norm(gradient(state.w))))
    assert state.dual.any()  # it is kept
    point, slope, slack = sliding.averaged(state)
    assert point == pytest.approx(state.w_sum / state.terms)
    assert slope == pytest.approx(state.slope_sum / state.terms)
    expected = state.products[0, 0] / state.terms - slope @ point
    assert slack() == pytest.approx(max(expected, 0.0))
    terms = state.terms
    again = sliding.step(state)
    assert again.terms == 2.0 < terms  # sums are those of one phase
    before = sliding.begin(np.ones(3), np.zeros(3), np.zeros((1, 2)))
    w, at, nothing = sliding.averaged(before)
    assert (w.tolist(), at.tolist(), nothing()) == ([1.0] * 3, gradient(np.ones(3)).tolist(), 0.0)
    assert sliding.phase(replace(state, lipschitz=M, target=1.0)).radius == state.radius
    assert sliding.cost == Cost(gradients=1, A=1)
    sliding.system.empty = True
    assert sliding.phase(before).dual_radius == pytest.approx(2 * before.lipschitz)


@pytest.mark.parametrize("steps", [4, None])
def test_accelerated_gradients(steps: int | None) -> None:
    """x+ = y - grad/L, momentum (t - 1)/t+; dropped where it points uphill, unless counted."""
    method = made(AcceleratedGradient, steps=steps)
    x = np.array([3.0, -2.0, 1.0])
    state = method.begin(x, np.zeros(3), np.zeros((1, 0)))
    y = x
    t = 1.0
    restarts = 0
    for count in range(1, 30):
        new = y - gradient(y) / 2.0
        if steps is None and gradient(y) @ (new - x) > 0:
            t = 1.0
            restarts = restarts + 1
        following = (1 + math.sqrt(1 + 4 * t * t)) / 2
        y = new + (t - 1) / following * (new - x)
        state = method.step(state)
        assert (state.w, state.ahead) == (pytest.approx(new), pytest.approx(y))
        assert (state.t, state.count) == (pytest.approx(following), count)
        assert method.finished(state) == (steps is not None and count >= 4)
        x = new
        t = following
    assert (restarts > 0) == (steps is None)
    assert method.cost == Cost(gradients=1) + (UNIT if steps is None else Cost())


@pytest.mark.parametrize("weight", [0.0, 2.0])
def test_a_step_of_a_stage(weight: float) -> None:
    """With P = G/9: phi' = grad + weight P (g - ref) + nu (g - centre)."""
    P = G / 9.0
    nu = 0.3
    tau = 0.4
    eta = 0.7
    theta = 1.1
    x, f, p, centre = RANDOM.standard_normal((4, 3))
    objective: Any = Fake(gradient=gradient)
    correct: Any = lambda w: P @ (w - POINT)  # noqa: E731
    found = stage_step(objective, correct, StageSteps(nu, tau, eta, theta, weight), x, f, p, centre)
    mid = tau * x + (1 - tau) * f
    slope = gradient(mid) + weight * P @ (mid - POINT) + nu * (mid - centre)
    half = (x - eta * (slope - nu * mid + p)) / (1 + eta * nu)
    change = theta * P @ (half - POINT)
    ahead = half - eta / (1 + eta * nu) * change
    assert found.g == pytest.approx(mid)
    assert found.slope == pytest.approx(slope)
    assert found.x == pytest.approx(ahead)
    assert found.p == pytest.approx(p + change)
    assert found.f == pytest.approx(mid + 2 * tau / (2 - tau) * (ahead - x))
    assert found.violation == pytest.approx(P @ ((mid if weight else half) - POINT))
