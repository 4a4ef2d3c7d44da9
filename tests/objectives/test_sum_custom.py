"""A loss of the user's own with a kink: Sum(Custom, L1), against CVXPY."""

from __future__ import annotations

from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import ccmac
from ccmac.inputs import Array
from ccmac.objectives import L1, Custom, SquaredDistance, Sum, named

SHIFTS = np.random.default_rng(0).standard_normal((3, 4))
ROWS = np.random.default_rng(1).standard_normal((3, 2, 4))


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def loss(shift: Array, hessian: bool) -> Custom:
    """sum log(1 + exp(x - shift))."""
    bend = lambda x, z, u, w: (sigmoid(x - shift) * sigmoid(shift - x) * u, w)  # noqa: E731
    return Custom(
        lambda x, z: float(np.logaddexp(0, x - shift).sum()),
        lambda x, z: (sigmoid(x - shift), z),
        smoothness=0.25,
        hessian=bend if hessian else None,
    )


@pytest.mark.parametrize(("hessian", "method"), [(True, "cross-ipm"), (False, "cross-sliding")])
def test_a_custom_loss_with_a_kink(hessian: bool, method: str) -> None:
    agents = [
        ccmac.Agent(Sum(loss(t, hessian), L1(0.3), SquaredDistance(0.1)), A=A, b=[0.5, 0.2])
        for t, A in zip(SHIFTS, ROWS, strict=True)
    ]
    result = ccmac.solve(ccmac.Problem(agents, q=0), tol=1e-6)
    x = cp.Variable((3, 4))
    value = cp.sum(cp.logistic(x - SHIFTS)) + 0.3 * cp.norm1(x) + 0.05 * cp.sum_squares(x)
    met = sum(A @ x[i] for i, A in enumerate(ROWS)) == 3 * np.array([0.5, 0.2])
    cp.Problem(cp.Minimize(value), [met]).solve(solver=cp.CLARABEL)
    assert result.plan.method == method
    assert result.status == "optimal"
    assert result.objective == pytest.approx(value.value, rel=1e-6)


@named("half square")
def half_square(x: Array, z: Array) -> float:
    return float(x @ x) / 2


@named("half square: gradient")
def half_square_gradient(x: Array, z: Array) -> tuple[Array, Array]:
    return x, z


def test_it_is_saved_by_its_names(tmp_path: Path) -> None:
    f = Sum(Custom(half_square, half_square_gradient, smoothness=1.0, strong_convexity=1.0), L1())
    ccmac.Problem([ccmac.Agent(f, A=[[1.0, 2.0]], b=[1.0])], q=0).save(tmp_path / "p")
    [agent] = ccmac.Problem.load(tmp_path / "p").agents.values()
    point = np.array([1.0, -2.0])
    assert agent.objective.value(point, np.zeros(0)) == f.value(point, np.zeros(0)) == 5.5
