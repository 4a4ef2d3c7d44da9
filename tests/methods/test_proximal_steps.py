"""Proximal primal-dual steps, their restarts and first weights against dense recurrences."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac import Agent, Network, Problem
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods.sliding import parts as module
from ccmac.methods.sliding import proximal
from ccmac.methods.sliding.parts import GRID, Parts, first_weight, split, unequal_steps
from ccmac.methods.sliding.proximal import ProximalPrimalDual, ProximalState
from ccmac.objectives import L1, Logistic, Quadratic, Separable, SquaredDistance
from ccmac.runtime import InProcess

K = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 1.0]])
V = np.array([1.0, -1.0])
H = np.diag([1.0, 2.0, 0.5])
G = np.diag([3.0, 1.0, 2.0])
BEND = np.array([2.0, 2.0, 0.75])
HIGH = 9.0


def backward(x: Array, slope: Array, weight: float, bend: Array) -> Array:
    """argmin <slope, u> + u'G u/2 + <u - x, (weight + bend) (u - x)>/2."""
    stiff = np.diag(weight + bend)
    return np.linalg.solve(G + stiff, stiff @ x - slope)


def made(smooth: bool, *, anchored: bool = True, empty: bool = False) -> Any:
    bend = BEND if smooth else np.zeros(3)
    riding = Fake(ride=lambda rows: Fake(value=rows.sum(axis=0)))
    space = Fake(
        partial_dots=lambda a, b: np.array([[a @ b]]),
        runtime=riding,
        count=1,
        ride=lambda *pairs: Fake(value=np.array([a @ b for a, b in pairs])),
        norms=lambda *vs: [float(np.linalg.norm(v)) for v in vs],
    )
    system = Fake(
        empty=empty, interval=Fake(high=HIGH), residual=lambda w: (K.T @ (K @ w - V), None)
    )
    found = object.__new__(ProximalPrimalDual)
    parts = Fake(
        smooth=Fake(cost=Cost(gradients=1)) if smooth else None,
        bend=lambda v: bend * v,
        slope=lambda x: H @ x if smooth else 0.0,
        backward=lambda x, slope, weight: backward(x, slope, weight, bend),
    )
    vars(found).update(space=space, system=system, parts=parts, weight=1.5, anchored=anchored)
    return found


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("anchored", [False, True])
@pytest.mark.parametrize("empty", [False, True])
def test_proximal_steps(
    smooth: bool, anchored: bool, empty: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    iteration = made(smooth, anchored=anchored, empty=empty)
    monkeypatch.setattr(ProximalPrimalDual, "_restarts", lambda *given: False)
    bend = BEND if smooth else np.zeros(3)
    w0 = np.array([1.0, -2.0, 3.0])
    p0 = np.array([0.5, 0.0, -0.5])
    state = iteration.begin(w0, p0, np.zeros((1, 2)))
    x = w0.copy()
    q = p0.copy()
    S = 1.5
    sums = np.zeros(3)
    slopes = np.zeros(3)
    products = 0.0
    energies = list[float]()
    for k in range(1, 6):
        state = iteration.step(state)
        w = backward(x, q + (H @ x if smooth else 0.0), S, bend)
        slope = S * (x - w) - q + bend * (x - w)
        p = q if empty else q + S / HIGH * K.T @ (K @ (2 * w - x) - V)
        slack = (x - w) @ (bend * (x - w))
        assert (state.w, state.p) == (pytest.approx(w), pytest.approx(p))
        assert (state.slope, state.slack) == (pytest.approx(slope), pytest.approx(slack))
        sums = sums + w
        slopes = slopes + slope
        products = products + slope @ w + slack
        assert state.w_sum == pytest.approx(sums)
        assert state.slope_sum == pytest.approx(slopes)
        assert state.products == pytest.approx(products)
        # S (S |x - w|^2 + slack) + lambda_+ |p - q|^2, known one step later.
        high = 1.0 if empty else HIGH
        energies.append(S * (S * np.sum((x - w) ** 2) + slack) + high * np.sum((p - q) ** 2))
        expected = math.inf if k == 1 else math.sqrt(energies[-2])
        assert state.length == pytest.approx(expected)
        assert state.first == pytest.approx(math.inf if k == 1 else math.sqrt(energies[0]))
        assert (state.count, state.inner, state.weight) == (k, k, S)
        ahead = 1.5 if smooth else 2.0
        if anchored:
            share = k / (k + 1)
            x = share * (x + ahead * (w - x)) + (1 - share) * w0
            q = share * (q + ahead * (p - q)) + (1 - share) * p0
        else:
            x = x + 0.9 * ahead * (w - x)
            q = q + 0.9 * ahead * (p - q)
        assert (state.x, state.q) == (pytest.approx(x), pytest.approx(q))
    told = iteration.candidates(state)
    assert told["last"][2]() == state.slack
    point, at, slack_of = told["average"]
    assert (point, at) == (pytest.approx(sums / 5), pytest.approx(slopes / 5))
    assert slack_of() == pytest.approx(max(products / 5 - slopes @ sums / 25, 0.0))
    assert list(iteration.candidates(replace(state, inner=1))) == ["last"]


def test_a_restart_moves_the_anchor_and_balances() -> None:
    iteration = made(False)
    state = iteration.begin(np.zeros(3), np.zeros(3), np.zeros((1, 2)))
    w = np.array([3.0, 0.0, 0.0])
    p = np.array([0.0, 4.0, 0.0])
    moved = replace(state, w=w, p=p, inner=7, count=9, products=3.0, first=2.0, length=1.0)
    found = iteration._anchored(moved)
    assert found.weight == pytest.approx(math.sqrt(1.5 * 3 * 4 / 3))
    for v in (found.x, found.w_anchor):
        assert v.tolist() == w.tolist()
    for v in (found.q, found.p_anchor):
        assert v.tolist() == p.tolist()
    assert (found.inner, found.count, found.products) == (0, 9, 0.0)
    assert (found.first, found.length) == (math.inf, math.inf)
    assert not found.w_sum.any()
    assert not found.slope_sum.any()
    assert made(False, empty=True)._anchored(moved).weight == 1.0 * moved.weight


@pytest.mark.parametrize(
    ("inner", "count", "first", "length", "before", "anchored", "restarts"),
    [
        (2, 90, 1.0, 0.0, 1.0, True, False),
        (3, 4, 1.0, 0.2, 0.2, True, True),
        (3, 4, 1.0, 0.21, 0.3, True, False),
        (3, 4, 1.0, 0.8, 0.7, True, True),
        (3, 4, 1.0, 0.81, 0.7, True, False),
        (3, 4, 1.0, 0.8, 0.8, True, False),
        (9, 21, 1.0, 1.0, 1.0, True, True),
        (8, 21, 1.0, 1.0, 1.0, True, False),
        (8, 20, 1.0, 1.0, 1.0, True, False),
        (9, 20, 1.0, 1.0, 1.0, True, False),
        (3, 9, 1.0, 1.0, 1.0, False, True),
        (3, 10, 1.0, 0.0, 1.0, False, False),
    ],
)
def test_when_the_anchor_moves(
    inner: int,
    count: int,
    first: float,
    length: float,
    before: float,
    anchored: bool,
    restarts: bool,
) -> None:
    """A fifth as long as the first, growing again below 0.8 of it, or 0.4 of all steps."""
    known: Any = Fake(inner=inner, count=count, first=first, length=length)
    assert made(False, anchored=anchored)._restarts(known, before) == restarts


def test_what_a_proximal_step_costs() -> None:
    for smooth, gradients in ((False, 0), (True, 1)):
        iteration = made(smooth)
        iteration.system.cost = Cost(A=2)
        iteration.space.runtime.with_riders = lambda cost, count: cost + Cost(bytes=count)
        assert iteration.cost == Cost(proxes=1, gradients=gradients, A=2, bytes=4)


@dataclass(frozen=True)
class TightGap:
    """What is asked of a tight bound."""

    share: float
    source: str = ""


def test_the_better_of_two_bounds() -> None:
    iteration = made(True)
    state: ProximalState = iteration.begin(np.zeros(3), np.zeros(3), np.zeros((1, 2)))
    state = replace(state, inner=3, p="p", weight=0.75)
    asked: list[Any] = []
    iteration.parts.curvature = (1.25, 0.5)
    stiffness = 2 * (0.75 + 1.25)  # of x and of w, which are rounded

    def gap(point: Any, slope: Any, p: Any, slack: Any, stiff: float) -> Any:
        assert stiff == stiffness
        asked.append(p)
        value = [2.0, 1.0][len(asked) - 1]
        return Fake(bound=lambda radius: value * radius, required=lambda goal: 3.0, value=value)

    def tight(point: Any, slope: Any, goal: Any, slack: Any, share: float, stiff: float) -> Any:
        assert stiff == stiffness
        return TightGap(share)

    iteration.certifier = Fake(gap=gap, tight_subgradient=tight)
    iteration.goal = None
    assert iteration.quick_gap(state).value == 1.0
    assert iteration.found == {"gap_last": 6.0, "gap_average": 3.0}
    assert asked == ["p", "p"]
    asked.clear()
    found = iteration.tight_gap(state)
    assert (found.share, found.source) == (0.5, "average")


# -- parts -----------------------------------------------------------------------------------------
def test_a_backward_step_in_units_of_its_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """argmin <s, u> + G(u) + |u - x|^2 (weight + L)/2 is the prox of G at x - s/(weight + L)."""
    told: list[Any] = []
    monkeypatch.setattr(module, "proximal", lambda simple, v, a, b: told.append((v, a, b)) or v)
    space = Fake(x=lambda v: v[:2], z=lambda v: v[2:])
    simple: Any = Fake(space=space)
    both = Parts(Fake(gradient=lambda x, out: 2 * x), simple, (3.0, 1.0))  # type: ignore[arg-type]
    x = np.array([1.0, 2.0, 3.0])
    s = np.array([4.0, 8.0, 12.0])
    both.backward(x, s, 1.0)
    v, a, b = told.pop()
    assert v == pytest.approx([0.0, 0.0, -3.0])
    assert (a, b) == (4.0, 2.0)
    assert both.bend(x).tolist() == [3.0, 6.0, 3.0]
    assert both.slope(x).tolist() == [2.0, 4.0, 6.0]  # type: ignore[union-attr]
    plain = Parts(None, simple)
    plain.backward(x, s, 4.0)
    v, a, b = told.pop()
    assert (v.tolist(), a, b) == ([0.0, 0.0, 0.0], 4.0, 4.0)
    assert plain.slope(x) == 0.0


def test_the_weight_of_a_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """F = |u|^2/2 from u = 2: a step with weight S ends at 2 S/(1 + S), halfway at sqrt(1/2)."""
    space = Fake(
        partial_dots=lambda a, b: np.array([[a @ b]]),
        runtime=Fake(total=lambda rows: rows.sum(axis=0)),
    )

    def guess(values: Any, prox: Any, start: Array) -> float:
        monkeypatch.setattr(module, "proximal", lambda objective, w, weight: prox(w, weight))
        objective: Any = Fake(space=space, values=lambda u: np.array([[values(u)]]))
        return first_weight(objective, start)

    start = np.array([2.0])
    found = guess(lambda u: u @ u / 2, lambda w, S: w * S / (1 + S), start)
    gains = (
        2.0 - (2 * GRID / (1 + GRID)) ** 2 / 2 - (2.0 - (2 * GRID[-1] / (1 + GRID[-1])) ** 2 / 2)
    )
    k = int(np.nonzero(gains >= gains[0] / 2)[0][-1])
    share = (gains[k] - gains[0] / 2) / (gains[k] - gains[k + 1])
    assert found == pytest.approx(GRID[k] * 10**share)
    # Linear: a step with weight S goes 3/S; as far as 1 + |w0| at S = 1 (log-linear).
    far = guess(lambda u: -3 * u[0], lambda w, S: w + 3 / S, start)
    moves = 3 / GRID
    k = int(np.nonzero(moves >= 3.0)[0][-1])
    share = (moves[k] - 3.0) / (moves[k] - moves[k + 1])
    assert far == pytest.approx(GRID[k] * 10**share)
    assert guess(lambda u: 5.0, lambda w, S: w, start) == 1.0
    # F falls by this factor from one weight to the next: no minimum where that is more than two.
    for factor, endless in ((2.5, True), (1.5, False)):
        power = math.log10(factor)
        slow = guess(lambda u, p=power: -((u[0] - 2.0) ** p), lambda w, S: w + 1 / S, start)
        falls = GRID**-power - GRID[-1] ** -power
        values, level = (1 / GRID, 3.0) if endless else (falls, falls[0] / 2)
        k = int(np.nonzero(values >= level)[0][-1])
        share = (values[k] - level) / (values[k] - values[k + 1])
        assert slow == pytest.approx(GRID[k] * 10**share)
    monkeypatch.setattr(module, "proximal", None)
    objective: Any = Fake(space=space, values=lambda u: np.array([[u @ u / 2]]))
    assert first_weight(objective, start, lambda S: start * S / (1 + S)) == pytest.approx(found)


def test_whether_a_prox_takes_two_steps() -> None:
    def equal(x: Array, z: Array, a: float) -> None:
        """One step for all."""

    agents = {
        0: Fake(objective=Fake(prox=lambda x, z, a, b: None)),
        1: Fake(objective=Fake(prox=equal)),
    }
    runtime: Any = Fake(gather=lambda rows: rows)
    problem: Any = Fake(agents=agents, d={0: 1, 1: 2}, q=1)
    assert not unequal_steps(problem, runtime)
    del agents[1]
    assert unequal_steps(problem, runtime)
    assert proximal.RELAXED == 0.9


def test_smooth_and_simple_parts() -> None:
    """Of objectives of x and z together, of functions, and of what offers neither oracle."""

    def kinds(pair: Any) -> Any:
        return None if pair is None else tuple(isinstance(part, Separable) for part in pair)

    simple: Any = Fake(capabilities={"prox"})
    smooth: Any = Fake(capabilities={"gradient"})
    found = split(simple)
    assert found is not None
    assert (kinds(found), found[1]) == ((True, False), simple)
    found = split(smooth)
    assert found is not None
    assert (kinds(found), found[0]) == ((False, True), smooth)
    assert split(Fake(capabilities=set())) is None  # type: ignore[arg-type]
    loss = Logistic(np.eye(2), np.ones(2))
    kink = L1(1.0)
    found = split(Separable(x=loss + kink, z=kink))
    assert found is not None
    (on_x, on_z), (left_x, left_z) = ((f.x_part, f.z_part) for f in found)
    assert on_z is None
    assert left_z is kink
    assert "prox" in left_x.capabilities
    assert "gradient" in on_x.capabilities
    found = split(kink)
    assert found is not None
    assert (kinds(found), found[1]) == ((True, False), kink)


def test_parts_that_offer_nothing_and_limits() -> None:
    odd: Any = type("Odd", (L1,), {"capabilities": frozenset()})(1.0)
    assert split(Separable(x=L1(1.0), z=odd)) is None
    assert split(Separable(x=odd, z=L1(1.0))) is None
    assert split(odd) is None
    loss = Logistic(np.ones((2, 3)), np.ones(2))
    found = split(loss)
    assert found is not None
    assert found[0] is loss
    assert isinstance(found[1], Separable)


@pytest.mark.parametrize("equal", [False, True])
def test_curvatures_of_the_smooth_parts(equal: bool) -> None:
    """At x = 3 x', z = 5 z': (9 L_x, 25 L_z) of separable parts, one number of joint ones."""
    apart = Separable(SquaredDistance(1.0), SquaredDistance(2.0))
    joint = Quadratic([[1.0, 0.5], [0.5, 2.5]], np.zeros(2))
    top = joint.scaled_curvature(1, 1, 3.0, 5.0)[1]
    assert top >= np.linalg.eigvalsh([[9.0, 7.5], [7.5, 62.5]])[1] - 1e-9
    for other, expected in (
        (Separable(SquaredDistance(3.0)), (50.0, 50.0) if equal else (27.0, 50.0)),
        (joint, (top, top)),
    ):
        agents = {i: Agent(f, A=np.ones((1, 1))) for i, f in enumerate((apart, other))}
        problem = Problem(agents, q=1)
        runtime = InProcess(Network.complete(2))
        realized: Any = Fake(
            objective=Fake(t=3.0, s=5.0), space=Fake(runtime=runtime, count=2, lift=False)
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "ExecutionObjective", lambda p, space, t, s: (p, t, s))
            found = Parts.of(realized, (problem, problem), equal=equal)
        assert found.curvature == pytest.approx(expected)
        assert found.smooth == (problem, 3.0, 5.0)
