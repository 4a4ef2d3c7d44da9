"""Quadratics that fall along ker K and ker H, by every method's name, against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import ccmac
from adversarial import flats
from adversarial.draft import Array
from adversarial.exact import Exact
from ccmac.methods import CrossSliding
from ccmac.objectives import LeastSquares, Quadratic

N = 3
D = 4
Q = 2
PROVING = ["auto", "cross-ipm"]
FIRST_ORDER = ["cross-continuation", "cross-sliding", CrossSliding(realization="canonical")]
METHODS = [*PROVING, *FIRST_ORDER]


def across(rows: Array, v: Array) -> Array:
    """Integer rows made orthogonal to an integer v."""
    return rows * (v @ v) - np.outer(rows @ v, v)


def small(rows: Array) -> Array:
    """The rows with entries of at most one, by a power of two."""
    return np.asarray(rows / 2.0 ** np.ceil(np.log2(np.abs(rows).max(initial=1.0))))


def sloping(seed: int, slope: float) -> tuple[ccmac.Problem, list[Array]]:
    """H_i = F_i'F_i, g_i = F_i'y_i and, of agent 0, ``slope`` (about) of that along v = (v_i, v_z).

    All equations and all F_i are orthogonal to v; every number is exact in binary.
    """
    random = np.random.default_rng([5, seed])

    def integers(*shape: int) -> Array:
        return random.integers(-3, 4, size=shape).astype(float)

    own = [integers(D) for _ in range(N)]
    v_z = integers(Q)
    z = integers(Q)
    own[0][0] = 1.0 + abs(own[0][0])
    whole = np.concatenate([*own, *[v_z] * N])
    K = small(across(integers(2, N * (D + Q)), whole))
    agents = []
    for i, v in enumerate(own):
        u = np.concatenate([v, v_z])
        x = integers(D)
        F = small(across(integers(3, D + Q), u))
        g = F.T @ integers(3)
        if i == 0:
            g += 2.0 ** np.round(np.log2(slope * max(1.0, np.abs(g).max()))) * u if slope else 0.0
        A = K[:, i * D : (i + 1) * D]
        B = K[:, N * D + i * Q :][:, :Q]
        C = across(integers(1, D), v)
        agents.append(ccmac.Agent(Quadratic(F.T @ F, g), A=A, B=B, b=A @ x + B @ z, C=C, c=C @ x))
    return ccmac.Problem(agents), [np.concatenate([v, v_z]) for v in own]


def exactly(matrix: Array, v: Array) -> list[Fraction]:
    """The product in rational arithmetic."""
    return [
        sum((Fraction(a) * Fraction(b) for a, b in zip(row, v, strict=True)), Fraction(0))
        for row in np.atleast_2d(matrix)
    ]


def fall_along(problem: ccmac.Problem, pieces: list[Array]) -> Fraction:
    """<g, v> of a v that is shown, exactly, to keep all equations and to see no curvature."""
    fall = Fraction(0)
    coupled = [Fraction(0)] * problem.m
    for agent, u in zip(problem.agents.values(), pieces, strict=True):
        H, g, _ = agent.objective.quadratic(D, Q)
        assert not any(exactly(H, u))
        assert not any(exactly(agent.C, u[:D]))
        seen = exactly(np.hstack([agent.A, agent.B]), u)
        coupled = [a + b for a, b in zip(coupled, seen, strict=True)]
        fall += exactly(g, u)[0]
    assert not any(coupled)
    return fall


def free(problem: ccmac.Problem) -> list[Array]:
    """A basis of ker K and ker H, in doubles."""
    rows = []
    size = N * D + Q
    K = np.zeros((problem.m, size))
    for i, agent in problem.agents.items():
        at = np.r_[i * D : (i + 1) * D, N * D : size]
        K[:, at] += np.hstack([agent.A, agent.B])
        for block, where in ((agent.objective.quadratic(D, Q)[0], at), (agent.C, at[:D])):
            row = np.zeros((len(block), size))
            row[:, where] = block
            rows.append(row)
    values, Vt = np.linalg.svd(np.vstack([K, *rows]))[1:]
    return list(Vt[int(np.count_nonzero(values > 1e-9)) :])


@pytest.mark.parametrize("method", PROVING)
@pytest.mark.parametrize("slope", [1.0, 1e-3, 1e-6])
def test_a_slope_that_no_curvature_and_no_equation_sees_is_a_fall(
    method: Any, slope: float
) -> None:
    for seed in range(2):
        problem, pieces = sloping(seed, slope)
        assert fall_along(problem, pieces) > 0
        result = ccmac.solve(problem, "ring", method, 1e-3, max_iterations=200)
        assert result.status == "unbounded", seed
        told = result.certificates["direction"]
        found = np.concatenate([*told["x"], told["z"]])
        true = np.concatenate([*(u[:D] for u in pieces), pieces[0][D:]])
        cosine = float(found @ true) / float(np.linalg.norm(true))
        if len(free(problem)) == 1:
            assert cosine == pytest.approx(1.0)
        assert cosine > 0


@pytest.mark.parametrize("method", FIRST_ORDER, ids=str)
@pytest.mark.parametrize("slope", [1.0, 1e-3, 1e-6])
def test_no_fall_is_called_optimal_however_gentle(method: Any, slope: float) -> None:
    """A gap of tol |F| within a radius is proved by gentle slopes too."""
    for seed in range(2):
        problem, pieces = sloping(seed, slope)
        assert fall_along(problem, pieces) > 0
        result = ccmac.solve(problem, "ring", method, 1e-2, max_iterations=200)
        assert result.status not in ("optimal", "infeasible"), seed
        assert "whether it falls without end is not known" in " ".join(result.warnings)


@pytest.mark.parametrize("method", FIRST_ORDER[:2], ids=str)
def test_slopes_that_another_agent_or_an_equation_ends_are_no_falls(method: str) -> None:
    """Single agents slope along directions that are flat to them; together they do not fall."""
    seen = 0
    for seed in range(30):
        _, draft = flats.make(seed)
        if Exact(draft).solution is None or not any(H.any() for H in draft.H):
            continue
        result = ccmac.solve(draft.problem(), None, method, max_iterations=2)
        assert result.status not in ("unbounded", "infeasible"), seed
        seen += 1
    assert seen > 15


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_least_squares_never_fall(method: Any) -> None:
    random = np.random.default_rng(3)
    for rows in (1, 2, 3):
        agents = []
        for scale in (1.0, 1e-5, 1e5):
            f = LeastSquares(scale * random.standard_normal((rows, D + Q)), random.random(rows))
            A = random.standard_normal((1, D))
            B = random.standard_normal((1, Q))
            agents.append(ccmac.Agent(f, A=A, B=B, b=[1.0]))
        result = ccmac.solve(ccmac.Problem(agents), "ring", method, 1e-2, max_iterations=40)
        assert result.status not in ("unbounded", "infeasible")
