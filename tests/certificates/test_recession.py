"""Problems that fall without end are seen by a direction; others are left alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ccmac
from adversarial.exact import Exact
from adversarial.families import base
from ccmac import Agent, Problem
from ccmac.objectives import L1, Box, Hinge, Quadratic

METHODS = ("auto", "cross-ipm")
INF = np.inf


def falls(problem: Problem, result: ccmac.Result) -> None:
    """K d = 0 and H d = 0 up to rounding, and the fall that is said, in plain arithmetic."""
    told = result.certificates["direction"]
    z = np.array(told["z"])
    coupled = np.zeros(problem.m)
    fall = 0.0
    for k, (i, agent) in enumerate(problem.agents.items()):
        x = np.array(told["x"][k])
        u = np.append(x, z)
        form = agent.objective.polyhedral(problem.d[i], problem.q)
        H = form.H.toarray() if hasattr(form.H, "toarray") else np.asarray(form.H)
        assert H @ u == pytest.approx(0.0, abs=1e-8)
        assert np.all(u[np.isfinite(form.lower)] >= 0)
        assert np.all(u[np.isfinite(form.upper)] <= 0)
        fall += float(form.g @ u) - sum(t.value(t.R @ u) for t in form.terms)
        if agent.A is not None:
            coupled += agent.A @ x
        if agent.B is not None and len(z):
            coupled += agent.B @ z
    assert coupled == pytest.approx(0.0, abs=1e-8)
    assert fall == pytest.approx(result.certificates["fall"], rel=1e-6)
    assert fall > 0
    assert result.objective == -math.inf


@pytest.mark.parametrize("method", METHODS)
def test_a_linear_objective_falls_along_its_slope(method: str) -> None:
    f = Quadratic(np.zeros((2, 2)), [1.0, 2.0])
    problem = Problem([Agent(f, A=[[1.0, 1.0]], b=[1.0])] * 2, q=0)
    result = ccmac.solve(problem, "path", method)
    assert result.status == "unbounded"
    assert "keeps all equations" in result.warnings[0]
    falls(problem, result)
    same = Quadratic(np.zeros((2, 2)), [1.0, 1.0])  # constant on the equations
    bounded = Problem([Agent(same, A=[[1.0, 1.0]], b=[1.0])] * 2, q=0)
    assert ccmac.solve(bounded, "path", method, max_iterations=300).status != "unbounded"


@given(st.integers(0, 10**6))
@settings(max_examples=8)
def test_verdicts_on_flat_quadratics_are_true(seed: int) -> None:
    random = np.random.default_rng(seed)
    draft = base(random, int(random.integers(1, 4)))
    for i, d in enumerate(draft.d):
        draft.H[i] = np.diag((random.random(d + draft.q) < 0.6).astype(float))
        draft.g[i] = random.integers(-3, 4, d + draft.q).astype(float)
    exact = Exact(draft.plant())
    problem = draft.problem()
    for method in METHODS:
        result = ccmac.solve(problem, None, method, 1e-4, max_iterations=30)
        if exact.solution is None:
            assert result.status == "unbounded"
            falls(problem, result)
        else:
            assert result.status != "unbounded"


@pytest.mark.parametrize("exponent", [4, 10, 16])
def test_the_least_curvature_ends_a_fall(exponent: int) -> None:
    f = Quadratic(np.diag([1.0, 10.0**-exponent]), [0.0, 1.0])
    result = ccmac.solve(Problem([Agent(f)] * 2, q=2), "path")
    assert result.status == "optimal"
    assert result.z[1] == pytest.approx(10.0**exponent)


def test_bounds_end_a_fall() -> None:
    """An l1 norm and a hinge too, where they are steep enough."""
    slope = Quadratic(np.zeros((2, 2)), [1.0, 0.0])
    for more, status in (
        (Box([0.0, 0.0], [INF, 1.0]), "unbounded"),
        (Box([-INF, 0.0], [5.0, INF]), "optimal"),
        (L1(0.5), "unbounded"),
        (L1(2.0), "optimal"),
        (Hinge(np.array([[-1.0, 0.0]]), np.array([1.0]), 2.0), "optimal"),
    ):
        problem = Problem([Agent(slope + more, A=[[0.0, 1.0]], b=[0.5])] * 2, q=0)
        result = ccmac.solve(problem, "path", "cross-ipm")
        assert result.status == status, more
        if status == "unbounded":
            falls(problem, result)


def test_what_has_no_point_at_all_is_infeasible_however_it_slopes() -> None:
    slope = Quadratic(np.zeros((2, 2)), [1.0, 0.0]) + Box([-INF, 0.0], [INF, 1.0])
    problem = Problem([Agent(slope, A=[[0.0, 1.0]], b=[2.0])] * 2, q=0)
    assert ccmac.solve(problem, "path", "cross-ipm").status == "infeasible"
