"""What rounding may take from a gap, in closed form: its unit is so coarse that all is seen."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.certificates import certifier as certifier_module
from ccmac.certificates import gap_certifier
from ccmac.certificates.gap import Gap, Goal, strong_distance
from ccmac.certificates.gap_certifier import GapCertifier
from ccmac.certificates.outside import Outside
from ccmac.inputs import Array
from ccmac.methods import CrossContinuation, CrossSliding
from ccmac.objectives import Huber, Quadratic
from certificates.test_certifier import Case, L, case

UNIT = 2.0**-7
PRICE = np.array([[0.5, -3.0]])
OUTSIDE = 0.375
NOISE = 0.0625
MANY = 11


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (certifier_module, gap_certifier):
        monkeypatch.setattr(module, "EPS", UNIT)


def certifier(c: Case, w0: Array, *, told: list[Any] | None = None) -> GapCertifier:
    """With ``told``, a list of what is asked, somebody who knows how far p is outside Range K'."""
    if told is None:
        return GapCertifier(c.realized, w0)

    def tell(*parts: Any) -> Array:
        told.append(parts)
        return np.array([[1.0, 2.0], [4.0, 8.0]])

    def heard(sums: Array) -> tuple[float, float]:
        assert sums.tolist() == [5.0, 10.0]
        return OUTSIDE, NOISE

    outside: Any = Fake(many=MANY, tell=tell, heard=heard)
    return GapCertifier(c.realized, w0, (0.25, 3.0), outside)


def parts(c: Case, v: Array) -> list[Array]:
    """The agents' own parts of an execution vector."""
    space = c.realized.space
    return [np.concatenate([space.x_of(v, k), space.z(v)[k]]) for k in range(2)]


def norm(v: Array) -> float:
    return float(np.linalg.norm(v))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("way", ["measured", "modelled", "stiff", "given", "kinks"])
@pytest.mark.parametrize("s", [3.0, 0.5])
def test_a_gap_counts_its_rounding(seed: int, way: str, s: float) -> None:
    c = case(seed, s=s, loose=2.0)
    draw = np.random.default_rng(seed + 7).standard_normal
    c.realized.objective.L = math.inf if way == "kinks" else L
    w0, w, gradient, p = (draw(10) for _ in range(4))
    told: list[Any] | None = [] if way in ("measured", "given", "stiff") else None
    found = certifier(c, w0, told=told)
    more: dict[str, Any] = {} if told is None else {"price": PRICE}
    more |= {"stiff": 2.5} if way == "stiff" else {}
    more |= {"off": np.array([[0.25], [0.5]])} if way == "given" else {}
    said = found.gap(w, gradient, p, value=5.0, distance=lambda: 0.75, slack=lambda: 0.5, **more)
    many = 10 if told is None else MANY
    stiff = {"kinks": 0.0, "stiff": L + 2.5}.get(way, L)
    rows = zip(parts(c, w), parts(c, gradient), parts(c, p), strict=True)
    off = [
        many * UNIT * (stiff * norm(v) + norm(g) + (norm(own) if told is None else 0.0))
        for v, g, own in rows
    ]
    lacks = math.hypot(*([0.25, 0.5] if way == "given" else off))
    noise = 10 * UNIT * c.system.turn * norm(w)
    if told is not None:
        lacks = lacks + OUTSIDE
        noise = noise + NOISE
        [(at, left, slope, price)] = told
        assert (at is w, slope is gradient, price is PRICE) == (True, True, True)
        assert left == pytest.approx(gradient + p)
    r = gradient + p
    space = c.realized.space
    room = many * UNIT
    plain = math.hypot(norm(space.x(r)), norm(space.z(r).sum(axis=0) / s))
    scale = max(1.0, math.sqrt(2) / s)
    assert said.lacks == pytest.approx(lacks)
    assert said.slope == pytest.approx(plain * (1 + room) + scale * lacks)
    far = 0.75 * (1 + room) + noise / c.system.interval.low
    assert said.distance == pytest.approx(far)
    step = w - w0
    moved = math.hypot(norm(space.x(step)), s / math.sqrt(2) * norm(space.z(step)))
    assert said.travelled == pytest.approx(moved)
    base = 0.5 + r @ step + (norm(p) + lacks) * far
    base += scale * moved * (lacks + room * (norm(gradient) + norm(p)))
    base += room * norm(gradient) * norm(w)
    assert said.base == pytest.approx(base)


def test_without_equations_there_is_no_distance_to_be_wrong() -> None:
    c = case(0)
    w = np.ones(10)
    c.system.empty = True
    assert certifier(c, w, told=[]).gap(w, w, 0 * w, value=0.0, price=PRICE).distance == 0.0


@pytest.mark.parametrize("L", [8.0, math.inf])
def test_values_are_as_rounded_as_what_is_added_up(L: float) -> None:
    """||g|| ||w|| and, of a smooth F, L ||w||^2 of both points, and the values themselves."""
    c = case(0)
    c.realized.objective.L = L
    said = certifier(c, np.zeros(10))._value_rounding(9.0, 4.0, 5.0, -7.0)
    assert said == pytest.approx(10 * UNIT * (2 * (6.0 + (32.0 if L == 8.0 else 0.0)) + 12.0))


def test_the_error_of_a_repaired_point_counts_what_its_slope_lacks() -> None:
    c = case(1, s=2.0)
    draw = np.random.default_rng(0).standard_normal
    found = certifier(c, np.zeros(10), told=[])
    w, gradient, p, there = (draw(10) for _ in range(4))
    errors = []
    for lacks in (0.0, 0.5):
        start = Gap(w, gradient, p, 1.0, 5.0, 1.5, 0.125, 2.0, L, True, 1.0, lacks=lacks)
        errors.append(found._moved_to(there, lambda: 0.0, start, lambda: 0.25, 0.64).error)
    r = norm(found._in_strong_units(gradient + p, dual=True))
    moved = norm(found._in_strong_units(there - w)) * 0.8
    value = float(there @ c.H @ there / 2 - c.g @ there)
    lost = found._value_rounding(norm(gradient) ** 2, max(w @ w, there @ there), 1.0, value)
    mean = 4 * UNIT * norm(there)
    for lacks, error in zip((0.0, 0.5), errors, strict=True):
        rest = value - 1.0 + 0.25 + (norm(p) + lacks) * 0.125 + lost
        size = (r + lacks / math.sqrt(min(0.25, 3.0 * 4.0))) / 0.8
        expected = (strong_distance(size, moved, rest) * 2.0 / 0.8 + mean) * (1 + 16 * UNIT)
        assert error == pytest.approx(expected)


@pytest.mark.parametrize("smooth", [True, False])
def test_tight_gaps_know_their_price_and_gradient(smooth: bool) -> None:
    """Of a smooth F the gradient is a precise one, with what it lacks; else as stiff as said."""
    c = case(2)
    w = np.linspace(-1.0, 1.0, 10)
    found = certifier(c, np.zeros(10))
    asked = dict[str, Any]()
    found._moved_to = lambda *parts: parts[2]  # type: ignore[method-assign]

    def gap(*parts: Any, **more: Any) -> Gap:
        asked.update(more)
        return Gap(*parts[:3], 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, True, 1.0)

    found.gap = gap  # type: ignore[method-assign]
    if smooth:
        said = found.tight_smooth(w, Goal(1e-3))
        slope, off = c.realized.objective.precise_gradient(said.w)
        assert (asked["off"].tolist(), said.gradient.tolist()) == (off.tolist(), slope.tolist())
    else:
        said = found.tight_subgradient(w, w, Goal(1e-3), stiff=4.0)
        assert asked["stiff"] == 4.0
        found.tight_subgradient(w, w, Goal(1e-3))
        assert asked["stiff"] == 0.0
    image = c.K.T @ np.linalg.lstsq(c.K.T, -said.gradient, rcond=None)[0]
    assert said.p == pytest.approx(image, abs=1e-4)
    assert asked["price"].shape == c.system.zero_price().shape


@pytest.mark.parametrize("method", [CrossContinuation(), CrossSliding()])
def test_the_methods_measure_what_is_outside(method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every point that is proved optimal."""
    told = []
    tell = Outside.tell
    monkeypatch.setattr(Outside, "tell", lambda *a: told.append(a) or tell(*a))
    monkeypatch.setattr(certifier_module, "EPS", 2.0**-52)
    monkeypatch.setattr(gap_certifier, "EPS", 2.0**-52)
    loss = Quadratic(np.diag([1.0, 0.0, 1.0]), np.zeros(3))
    if method.name == "cross-sliding":
        loss = ccmac.objectives.Separable(
            Huber(np.eye(2), np.ones(2)), Huber(np.eye(1), np.ones(1))
        )
    agents = [ccmac.Agent(loss, A=np.eye(2), B=[[1.0], [2.0]], b=[1.0, 2.0]) for _ in range(3)]
    result = ccmac.solve(ccmac.Problem(agents), "ring", method, tol=1e-4)
    assert result.status in ("optimal", "converged")
    assert told
