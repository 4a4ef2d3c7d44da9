"""The first steps from a warm start: what is known at its point, and that full steps are linear."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ccmac.methods.interior.elimination import Lack
from ccmac.methods.interior.guided import STEPS, begun, guided
from ccmac.methods.interior.settling import Lacking
from ccmac.methods.interior.sides import unbalanced
from methods.interior.test_interior import prepared
from methods.interior.test_newton_step import PROBLEMS, residual


@pytest.mark.parametrize("name", ["kinked", "hinged"])
@pytest.mark.parametrize("size", [0.0, 3.0])
def test_the_state_at_a_point_with_prices(name: str, size: float) -> None:
    iteration, _ = prepared(PROBLEMS[name]())
    space, equations, reduced = iteration.space, iteration.equations, iteration.reduced
    random = np.random.default_rng(5)
    x, z = random.standard_normal(space.x_size), random.standard_normal(space.q)
    m = len(reduced.unit)
    dual, price = random.standard_normal(len(space.zeros())), size * np.linspace(-1.0, 0.5, m)
    state = begun(iteration, x, z, dual, price)
    unit = iteration.unit
    weight = 1.0 / (unit * size) if size else 1.0
    assert (state.warm, state.tau, state.kappa) == (1, 1.0, 0.0)
    assert state.weight == pytest.approx(weight)
    common, points = iteration.common(state), iteration.points(state)
    rows = np.zeros(len(reduced.U))
    rows[:m] = unit * price / reduced.unit
    assert common.z == pytest.approx(z)
    assert common.mu == pytest.approx(equations.mu_of(rows))
    assert common.s == pytest.approx(equations.sides.slack(z, 1.0))
    lam, square, own, count = equations.lam(common.mu), 0.0, 0.0, equations.sides.count
    for k, (block, p) in enumerate(zip(iteration.blocks, points, strict=True)):
        near = block.near(space.x_of(x, k), z, unit * space.x_of(space.x(dual), k))
        for part in ("y", "nu", "s", "v"):
            assert getattr(p, part) == pytest.approx(getattr(near, part))
        lack = Lack.at(block, p, z, lam, 1.0)
        own = own + lack.own
        square += lack.square + unbalanced(p.s, p.v, weight, 0.0)
        count += len(p.s)
    lacking = Lacking(iteration, np.asarray(own), 0.0)
    sides = equations.sides
    slope = lacking.slope(replace(common, v=np.zeros(sides.count)))
    assert common.v == pytest.approx(np.maximum(sides.sign * slope[sides.at], 0.0))
    square += unbalanced(common.s, common.v, weight, 0.0) + lacking.far(common)
    assert state.gap == pytest.approx(np.sqrt(square))
    assert state.mu_next == pytest.approx(0.1 * square / count)
    # A full step solves all linear equations; what it starts from is told by the next state.
    following = guided(iteration, state)
    assert following is not None
    left = residual(iteration, following)
    assert np.abs(left).max() <= 1e-6 * (1 + np.abs(following.own).max())
    linear = square - unbalanced(common.s, common.v, weight, 0.0)
    linear -= sum(unbalanced(p.s, p.v, weight, 0.0) for p in points)
    assert following.primal == pytest.approx(np.sqrt(linear))
    assert (following.warm, following.count) == (2, state.count + 1)
    assert following.gap == pytest.approx(state.gap)
    assert (following.mu, following.weight) == (pytest.approx(state.mu_next), state.weight)
    assert following.mu_next == pytest.approx(0.1 * square / count)
    ways, way = iteration.way(following)
    assert iteration.common(following).z - way.z == pytest.approx(z)
    for p, d, q in zip(points, ways, iteration.points(following), strict=True):
        assert q.y - d.y == pytest.approx(p.y)
        assert q.v - d.v == pytest.approx(p.v)
    assert guided(iteration, replace(state, warm=STEPS + 1)) is None
    assert guided(iteration, replace(following, warm=STEPS)) is not None
