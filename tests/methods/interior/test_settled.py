"""Settling solves the optimality conditions at once where the active bounds are guessed right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ccmac
from ccmac.methods.interior.settling import Lacking, settled
from ccmac.objectives import Quadratic
from methods.interior.test_interior import begun, prepared
from methods.interior.test_newton_step import PROBLEMS, residual


@pytest.mark.parametrize("name", ["kinked", "hinged"])
def test_one_step_from_a_disturbed_point(name: str) -> None:
    """Slacks and prices far apart stay so: all linear equations hold, s v = 0 but for 1/STIFF."""
    iteration, state = begun(PROBLEMS[name]())
    for _ in range(30):
        if state.gap <= 1e-9 or iteration.finished(state):
            break
        state = iteration.step(state)
    end = settled(iteration, settled(iteration, state))
    scale = 1 + float(np.abs(end.own).max()) + float(np.abs(end.common).max())
    assert np.abs(residual(iteration, end)).max() <= 1e-6 * scale
    for point, block in zip(iteration.points(end), iteration.blocks, strict=True):
        assert point.s == pytest.approx(block.sides.slack(point.y, 1.0), abs=1e-9 * scale)
        assert np.minimum(np.abs(point.s), np.abs(point.v)).max(initial=0.0) <= 1e-6 * scale
    assert (end.tau, end.kappa, end.count) == (1.0, 0.0, state.count)
    # Twice the homogeneous point is the same point; a small push changes no active bound.
    pushed = replace(end, own=2 * end.own, common=2 * end.common, tau=2.0)
    again = settled(iteration, pushed)
    assert again.own == pytest.approx(end.own, abs=1e-6 * scale)
    assert again.common == pytest.approx(end.common, abs=1e-6 * scale)
    x, z = iteration.point(again)
    x_end, z_end = iteration.point(end)
    assert x == pytest.approx(x_end, abs=1e-6 * scale)
    assert z == pytest.approx(z_end, abs=1e-6 * scale)


def test_what_all_equations_lack() -> None:
    """Squares of the agents' own, of the slope in z and of the rows."""
    iteration, _ = prepared(PROBLEMS["kinked"]())
    equations = iteration.equations
    common = iteration.common(iteration.inside())
    random = np.random.default_rng(0)
    own = random.standard_normal(iteration.k + 1)
    lacking = Lacking(iteration, own, 2.5)
    lack = equations.residual(common)
    slope = own[: equations.q] + lack[equations.z]
    rows = equations.top.T @ own[equations.q : -1] + lack[equations.mu]
    assert lacking.slope(common) == pytest.approx(slope)
    assert lacking.far(common) == pytest.approx(2.5 + slope @ slope + rows @ rows)


@pytest.mark.parametrize("seed", [7, 20, 25, 44])
def test_many_solutions_between_bounds_of_a_million(seed: int) -> None:
    """Interior points end amid them; a solution of moderate size is proved, here where g = H w."""
    random = np.random.default_rng(seed)
    factors, rows = random.integers(-3, 4, (2, 2, 2, 4)).astype(float)
    w = -np.ones(4)
    agents = []
    value = 0.0
    for F, A in zip(factors, rows, strict=True):
        H = F.T @ F
        value -= 0.5 * w @ H @ w
        bounds = {"lower": np.full(4, -1e6), "upper": np.repeat([-1.0, 1e6], 2)}
        agents.append(ccmac.Agent(Quadratic(H, H @ w), A=A, b=A @ w, **bounds))
    found = ccmac.solve(ccmac.Problem(agents), ccmac.Network.path(2), "cross-ipm", tol=1e-6)
    assert found.status == "optimal"
    assert found.objective == pytest.approx(value, rel=1e-6)
    assert max(float(np.abs(x).max()) for x in found.x) <= 1e3
