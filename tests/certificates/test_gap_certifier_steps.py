"""What a gap asks of repairs and projections, and what it makes of the answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ccmac.certificates.gap import Gap, Goal, execution_radius, strong_distance
from ccmac.certificates.gap_certifier import GapCertifier
from ccmac.inputs import Array
from certificates.test_certifier import Case, L, case

LED = 1.75
UNSEEN = 0.0625
PRICE = np.array([[0.5, -3.0]])


class Made(GapCertifier):
    """Two agents with z = 3 z~; repairs and projections are made up, and what they are asked."""

    def __init__(self, seed: int = 0, convexity: tuple[float, float] = (0.0, 0.0)) -> None:
        self.case: Case = case(seed, s=3.0)
        draw = self.draw = np.random.default_rng(seed + 100).standard_normal
        super().__init__(self.case.realized, draw(10), convexity)
        self.asked: list[float] = []
        self.vectors: list[Array] = []
        self.there, self.p = draw(10), draw(10)

    def repaired(self, w: Array, wanted: Any) -> tuple[Array, Any]:
        self.asked.append(wanted if isinstance(wanted, float) else wanted())
        self.vectors.append(w)
        return self.there, lambda: 0.03125

    def project(self, gradient: Array, wanted: Any) -> tuple[Array, Array]:
        self.asked.append(wanted())
        self.vectors.append(gradient)
        return self.p, PRICE

    def split(self, v: Array) -> tuple[Array, Array]:
        """(flat x, rows of z~)."""
        return self.space.x(v), self.space.z(v)

    def F(self, w: Array) -> float:
        return float(w @ self.case.H @ w / 2 - self.case.g @ w)

    def slope(self, w: Array) -> Array:
        return self.case.H @ w - self.case.g

    def away(self, w: Array) -> float:
        """||(x, mean z) - (x0, z0)|| at most: copies of z by n of them."""
        x, z = self.split(w - self.w0)
        return math.hypot(np.linalg.norm(x), 3.0 / math.sqrt(2) * np.linalg.norm(z))


@pytest.mark.parametrize("seed", range(3))
def test_a_gap_of_two_agents(seed: int) -> None:
    """Nothing is known beforehand: neither the value nor the distance."""
    made = Made(seed)
    runtime = made.space.runtime
    runtime.common = lambda v: v + LED  # type: ignore[method-assign]
    w, gradient, p = (made.draw(10) for _ in range(3))
    found = made.gap(w, gradient, p)
    r = gradient + p
    on_x, on_z = made.split(r)
    slope = math.sqrt(on_x @ on_x + np.sum((on_z.sum(axis=0) / 3.0) ** 2) + LED)
    residual = made.case.K.T @ (made.case.K @ w - made.case.v)
    far = float(np.linalg.norm(residual)) / made.case.system.interval.low
    base = r @ (w - made.w0) + float(np.linalg.norm(p)) * far
    assert (found.slope, found.distance, found.base) == pytest.approx((slope, far, base))
    assert (found.value, found.travelled) == pytest.approx((made.F(w), made.away(w)))
    assert (found.steepness, found.smooth, found.source) == (L, True, "last")
    assert found.scale == pytest.approx(max(1.0, math.sqrt(2) / 3.0))
    assert (found.w is w, found.gradient is gradient, found.p is p) == (True, True, True)
    for steepness, said in ((0.5, 0.5), (0.0, 1.0)):
        made.realized.objective.L = steepness
        assert made.gap(w, gradient, p, value=1.0).steepness == said
    made.case.system.empty = True
    assert made.gap(w, gradient, p).distance == 0.0


def near(made: Made, goal: Goal) -> float:
    """Half of tol in the user's (x, mean z): two agents, z = s times the mean of copies."""
    return 0.5 * goal.tol / max(1.0, made.realized.s / math.sqrt(2))


@pytest.mark.parametrize(("s", "unit"), [(0.5, 1.0), (4.0, 4.0 / math.sqrt(2))])
def test_rows_are_violated_by_no_more_than_the_users_distance(s: float, unit: float) -> None:
    found = GapCertifier(case(0, s=s).realized, np.zeros(10))
    zero = np.zeros(10)
    said = found.gap(zero, zero, zero, value=0.0, distance=lambda: 0.25)
    assert said.violation == pytest.approx(unit * said.distance)
    assert said.distance >= 0.25


def test_a_radius_in_execution_units_is_beside_one() -> None:
    found = GapCertifier(case(0, s=0.5).realized, np.zeros(10))
    zero = np.zeros(10)
    said = found.gap(zero, zero, zero, value=0.0, distance=lambda: 0.0)
    assert said.scale == pytest.approx(math.sqrt(2) / 0.5)


@pytest.mark.parametrize("radius", [None, 0.25, 5.0, 0.0])
@pytest.mark.parametrize("seed", range(2))
def test_a_tight_gap_of_a_smooth_objective(seed: int, radius: float | None) -> None:
    made = Made(seed)
    goal = Goal(0.01, None, radius)
    w = 2 * made.draw(10)
    said = made.tight_smooth(w, goal)
    asked = radius if radius is not None else max(1.0, 2 * made.away(w))
    epsilon = 1e-2 * 0.01 * max(1.0, abs(made.F(w)))
    steep = float(np.linalg.norm(made.slope(w)))
    size = max(steep, L * execution_radius(made.realized, asked))
    expected = [min(epsilon / size, near(made, goal)), epsilon / max(asked, 1e-300)]
    assert made.asked == pytest.approx(expected, rel=1e-12, abs=0.0)
    assert made.vectors[0] is w
    assert made.vectors[1] == pytest.approx(made.slope(made.there))
    plain = made.gap(made.there, made.slope(made.there), made.p, distance=lambda: 0.03125)
    assert (said.base, said.slope) == pytest.approx((plain.base, plain.slope))
    assert said.distance == pytest.approx(0.03125)
    assert (said.price is PRICE, said.w is made.there) == (True, True)
    assert said.p is made.p
    assert said.value == pytest.approx(made.F(made.there))


@pytest.mark.parametrize("radius", [None, 0.25, 5.0, 0.0])
@pytest.mark.parametrize("kind", ["smooth", "rough", "strong"])
def test_a_tight_gap_from_a_subgradient(kind: str, radius: float | None) -> None:
    made = Made(1, (0.25, 3.0) if kind == "strong" else (0.0, 0.0))
    if kind != "smooth":
        made.realized.objective.L = math.inf
    w = 2 * made.draw(10)
    gradient = 3 * made.draw(10)
    goal = Goal(0.01, None, radius)
    given: list[Any] = []
    made._moved_to = lambda *parts: given.append(parts)  # type: ignore[method-assign, assignment]
    made.tight_subgradient(w, gradient, goal, lambda: 0.5, 0.25)
    asked = radius if radius is not None else max(1.0, 2 * made.away(w))
    epsilon = 1e-2 * 0.01 * max(1.0, abs(made.F(w)))
    steep = float(np.linalg.norm(gradient))
    if kind == "smooth":
        steep = max(steep, L * execution_radius(made.realized, asked))
    wanted = 0.0 if kind == "strong" else min(epsilon / steep, near(made, goal))
    expected = [epsilon / max(asked, 1e-300), wanted]
    assert made.asked == pytest.approx(expected, rel=1e-12, abs=0.0)
    assert (made.vectors[0] is gradient, made.vectors[1] is w) == (True, True)
    [(there, distance, found, slack, share)] = given
    assert (there is made.there, distance(), slack(), share) == (True, 0.03125, 0.5, 0.25)
    plain = made.gap(w, gradient, made.p, value=made.F(w), slack=lambda: 0.5)
    assert (found.base, found.slope) == pytest.approx((plain.base, plain.slope))
    assert (found.price is PRICE, found.value) == (True, pytest.approx(made.F(w)))


def test_a_flat_objective_asks_for_something_finite() -> None:
    """No slope, no curvature, no radius: by the smallest number, not by zero."""
    made = Made()
    zero = np.zeros(10)
    made.realized.objective.gradient = lambda w: zero  # type: ignore[method-assign]
    goal = Goal(0.01, 1.0, 0.0)
    made.tight_smooth(zero, goal)
    assert made.asked == pytest.approx([near(made, goal), 1e298])
    made.asked.clear()
    made.tight_smooth(zero, Goal(0.01, 1e-3, 0.0))
    assert made.asked[0] == pytest.approx(near(made, goal))
    made.asked.clear()
    made._moved_to = lambda *parts: None  # type: ignore[method-assign, assignment, return-value]
    made.tight_subgradient(zero, zero, goal)
    assert made.asked == pytest.approx([1e298, near(made, goal)])


@pytest.mark.parametrize("seed", range(3))
def test_what_sums_may_lack_is_carried_along(seed: int) -> None:
    made = Made(seed, (0.25, 3.0))
    made.space.runtime.unseen = lambda size: UNSEEN  # type: ignore[method-assign]
    w, gradient, p = (made.draw(10) for _ in range(3))
    value = made.F(made.there) + UNSEEN - 0.75
    start = Gap(w, gradient, p, value, 5.0, 1.5, 0.125, 2.0, L, True, 1.0)
    said = made._moved_to(made.there, lambda: 0.1, start, lambda: 0.3, 0.64)
    assert (said.value, said.base) == pytest.approx((made.F(made.there) + UNSEEN, 5.75))
    far = 0.1 + math.sqrt(UNSEEN) / made.case.system.interval.low
    assert said.distance == pytest.approx(far)
    r = made._in_strong_units(gradient + p, dual=True)
    step = made._in_strong_units(made.there - w)
    rest = 0.75 + 0.3 + math.sqrt(p @ p + UNSEEN) * 0.125 + UNSEEN
    way = math.sqrt((step @ step + UNSEEN) / min(0.25, 3.0 * made.realized.s**2))
    rest += (math.sqrt(gradient @ gradient + UNSEEN) + L * (way + far)) * far
    moved = math.sqrt(step @ step + UNSEEN) + far * math.sqrt(max(0.25, 3.0 * made.realized.s**2))
    error = strong_distance(math.sqrt(r @ r + UNSEEN) / 0.8, 0.8 * moved, rest) * 2.0 / 0.8
    error += far * max(1.0, made.realized.s / math.sqrt(2))
    assert said.error == pytest.approx(error)
    # Where F is infinite at the repaired point, what is known of w stays.
    made.realized.objective.values = lambda w: np.full((2, 1), math.inf)  # type: ignore[method-assign]
    assert made._moved_to(made.there, lambda: 0.1, start, lambda: 0.3, 0.64) is start


def test_without_equations_nothing_is_projected_or_repaired() -> None:
    c = case(0)
    c.system.empty = True
    found = GapCertifier(c.realized, np.zeros(10))
    gradient = np.ones(10)
    p, price = found.project(gradient, lambda: 0.0)
    assert (p.tolist(), price.tolist()) == ([0.0] * 10, c.system.zero_price().tolist())
    w, distance = found.repaired(gradient, 0.0)
    assert (w is gradient, distance()) == (True, 0.0)


def test_projections_and_repairs_are_the_certifiers() -> None:
    c = case(0)
    found = GapCertifier(c.realized, np.zeros(10))
    gradient = np.arange(10.0)
    p, _ = found.project(gradient, lambda: 1e-9)
    along = np.linalg.pinv(c.K) @ c.K @ gradient
    assert p == pytest.approx(-along, abs=1e-7)
    w, distance = found.repaired(gradient, 1e-6)
    assert w == pytest.approx(gradient - np.linalg.pinv(c.K) @ (c.K @ gradient - c.v), abs=1e-5)
    assert distance() <= 1e-6


def test_a_subgradient_of_f_itself_has_all_of_its_convexity() -> None:
    made = Made(1, (0.25, 3.0))
    given = list[Any]()
    made._moved_to = lambda *parts: given.append(parts)  # type: ignore[method-assign, assignment]
    made.tight_subgradient(made.draw(10), made.draw(10), Goal(0.01))
    [(_, _, _, slack, share)] = given
    assert (slack(), share) == (0.0, 1.0)
