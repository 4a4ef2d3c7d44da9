"""An agent's share of what prices prove, number by number."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ccmac
from ccmac.certificates.bounded import Bounded, outward, pushed
from ccmac.linalg.tolerances import EPS
from ccmac.objectives import L1, Box, Quadratic
from methods.interior.test_interior import prepared

H = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 1.0]])
G = np.array([1.0, -2.0, 3.0])
A, B, C = np.array([[1.0, 2.0]]), np.array([[3.0]]), np.array([[3.0, -4.0]])
INF = math.inf


@pytest.fixture(scope="module")
def agent() -> Bounded:
    """f(u) = u'Hu/2 - G'u + |u|_1 / 2 with 2 <= x_1, x_2 <= 5; A x + B z = 7, C x = 10."""
    bounds = Box(np.array([2.0, -INF, -INF]), np.array([INF, 5.0, INF]))
    blocks = {"A": A, "B": B, "b": np.array([7.0]), "C": C, "c": np.array([10.0])}
    agents = [ccmac.Agent(Quadratic(H, G) + L1(0.5) + bounds, **blocks) for _ in range(2)]
    return prepared(ccmac.Problem(agents))[1].duality.agents[0]


def test_what_a_bound_holds() -> None:
    r, low, high = np.array([1.0, -1.0, 1.0, -1.0, 0.0]), np.full(5, -INF), np.full(5, INF)
    low[0], high[1] = 2.0, 3.0
    bound, held = pushed(r, low, high)
    assert bound.tolist() == [2.0, 3.0, 0.0, 0.0, 0.0]
    assert held.tolist() == [True, True, False, False, True]
    assert outward(-r, low, high).tolist() == [0.0, 0.0, -1.0, 1.0, 0.0]


def test_the_numbers_of_a_fall(agent: Bounded) -> None:
    x, z = np.array([1.0, -3.0]), np.array([2.0])
    u = np.append(x, z)
    vector, numbers = agent.fall(x, z)
    assert vector == pytest.approx(A @ x + B @ z)
    size = np.abs(G) @ np.abs(u) + 0.5 * np.abs(u).sum()
    expected = [
        G @ u - 0.5 * np.abs(u).sum(), np.sum((H @ u) ** 2), (C[0] @ x / 5) ** 2,
        agent.room * size, x @ x, math.sqrt(14.0), np.linalg.norm(H @ u) / np.linalg.norm(H),
    ]  # fmt: skip
    assert numbers == pytest.approx(expected, rel=1e-12, abs=0.0)
    assert 8 * EPS < agent.room < 64 * EPS


def test_the_numbers_of_a_contradiction(agent: Bounded) -> None:
    """K'y = (A'y + C'k, B'y): its first entry is pushed to 2, its second to nothing."""
    y, k = np.array([2.0]), np.array([1.0])
    found = agent.contradiction(y, k)
    r = A[0] * 2 + C[0]  # (5, 0)
    assert r.tolist() == [5.0, 0.0]
    assert found.vector == pytest.approx([6.0])
    assert found.slope_x == pytest.approx([-5.0, 0.0])
    value, far, noise, room, on_z, local, bounds = found.scalars
    assert value == pytest.approx(5 * 2 - 7 * 2 - 10 * 1)
    assert (far, on_z, local, bounds) == (0.0, 6.0, 1.0, 5.0)
    assert room == pytest.approx(agent.room * (10 + 14 + 10), abs=0.0)
    sizes = np.array([2.0 + 3.0, 4.0 + 4.0, 6.0])
    assert noise == pytest.approx(agent.room_long * np.linalg.norm(sizes), rel=1e-12, abs=0.0)
    # Nothing bounds the second entry from below: its rounding counts.
    found = agent.contradiction(np.array([4.0]), np.array([1.0]))
    assert found.scalars[:2] == pytest.approx([7 * 2 - 7 * 4 - 10, 4.0**2])
    sizes = np.array([4.0 + 3.0, 8.0 + 4.0, 12.0])
    expected = agent.room_long * np.linalg.norm(sizes) + EPS * 4.0
    assert found.scalars[2] == pytest.approx(expected, rel=1e-12, abs=0.0)


def test_the_numbers_of_a_gap(agent: Bounded) -> None:
    """F(w) - F(v) <= base + r_f (v - w0) of every v that meets bounds and equations."""
    x, z, start = np.array([3.5, 1.0]), np.array([-1.0]), np.array([2.5, 0.5, 0.0])
    y, k, nu = np.array([0.5]), np.array([-0.25]), np.array([0.5, 0.25, -0.5])
    u = np.append(x, z)
    found = agent.gap(x, z, start, y, k, nu)
    terms = agent.form.terms
    assert len(terms) == 1
    steady = terms[0].steady(nu)
    slope = H @ u - G + agent.R[0].T @ steady
    r = slope[:2] + A[0] * 0.5 + C[0] * -0.25
    on_z = slope[2:] + B[0] * 0.5
    base, value, far, noise, room, size_z, moved, off, near, paid, violation = found.scalars
    assert value == pytest.approx(u @ H @ u / 2 - G @ u + 0.5 * np.abs(u).sum())
    bound = np.array([2.0 if r[0] > 0 else math.nan, 5.0 if r[1] < 0 else math.nan])
    held = np.isfinite(bound)
    away = np.where(held, np.abs(r * (x - np.where(held, bound, 0.0))), r * (x - start[:2]))
    kink = 0.5 * np.abs(u).sum() - steady @ (agent.R[0] @ u - terms[0].h)
    misfit = float(C[0] @ x - 10)
    assert base == pytest.approx(away.sum() + kink + 0.25 * misfit)
    assert far == pytest.approx(np.sum(r[~held] ** 2))
    assert found.vector == pytest.approx(np.append(A @ x + B @ z - 7, on_z))
    assert (size_z, moved) == pytest.approx((abs(on_z[0]), 1.25))
    assert (off, violation) == pytest.approx((misfit**2, abs(misfit) / 5 / 2))
    assert (near, paid) == pytest.approx(((misfit / 5) ** 2, -0.25 * misfit))
    # What rounding may have changed: sizes of all terms of the slope, and of the base.
    sizes = np.abs(H) @ np.abs(u) + np.abs(G) + np.abs(agent.R[0]).T @ np.abs(steady)
    sizes[:2] += np.abs(A[0]) * 0.5 + np.abs(C[0]) * 0.25
    sizes[2:] += B[0] * 0.5
    expected = agent.room_long * np.linalg.norm(sizes) + EPS * np.linalg.norm(r[~held])
    assert noise == pytest.approx(expected, rel=1e-12, abs=0.0)
    bend = u @ H @ u / 2 - G @ u
    size = np.abs(steady) @ np.abs(agent.R[0] @ np.eye(3)) @ np.abs(u) + abs(value) + abs(bend)
    size += np.abs(G) @ np.abs(u) + np.abs(away).sum() + 0.25 * abs(misfit)
    size += 0.5 * (abs(float(A[0] @ x + B[0] @ z - 7)) + 7)
    assert room == pytest.approx(agent.room * size, rel=1e-12, abs=0.0)
    assert found.slope_x == pytest.approx(slope[:2] - np.where(held, r, 0.0))
    assert found.slope_z == pytest.approx(slope[2:])
