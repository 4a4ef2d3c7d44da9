"""Losses against textbook formulas, root finders and CVXPY."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit

from ccmac.errors import InputError
from ccmac.objectives import (
    L1,
    Box,
    ElasticNet,
    Hinge,
    Huber,
    LeastSquares,
    Logistic,
    MaxAffine,
    Ridge,
    SquaredDistance,
    Sum,
)

Y = np.array([1.0, -1.0, 1.0, -1.0, -1.0])
T = np.array([0.3, -1.0, 2.0, 0.0, 0.7])
M = np.random.default_rng(0).standard_normal((5, 3))


@given(a=st.floats(-1e6, 1e6), label=st.sampled_from([-1.0, 1.0]), exponent=st.floats(-10, 10))
def test_logistic_prox_against_a_root_finder(a: float, label: float, exponent: float) -> None:
    """Each entry solves s = a + step/(1 + e^s); the bracket is [a, a + step]."""
    step = 10.0**exponent
    found = label * Logistic(y=[label]).prox_at(np.array([label * a]), step)[0]

    def residual(s: float) -> float:
        return s - a - step * float(expit(-s))

    exact = brentq(residual, a - 1e-9, a + step + 1e-9, xtol=1e-300, rtol=1e-15, maxiter=500)
    assert found == pytest.approx(exact, rel=1e-12, abs=1e-12 * max(1e-3, abs(a)))


def test_logistic_is_stable_in_both_tails() -> None:
    loss = Logistic(y=[1.0, -1.0])
    assert loss.value_at(np.array([-1e4, 1e4])) == 2e4
    assert loss.value_at(np.array([700.0, -700.0])) == pytest.approx(2 * math.exp(-700.0))
    np.testing.assert_allclose(
        loss.gradient_at(np.array([700.0, -700.0])), [-math.exp(-700.0), math.exp(-700.0)]
    )


def test_logistic_smoothness_is_attained_at_the_origin() -> None:
    loss = Logistic(M, Y, weight=0.4, ridge=0.1)
    hessian = 0.4 * 0.25 * M.T @ M + 0.1 * np.eye(3)
    h = 1e-5
    columns = [(loss.gradient_at(h * e) - loss.gradient_at(-h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(np.array(columns), hessian, atol=1e-9)
    assert loss.constants(3)[0] == pytest.approx(np.linalg.eigvalsh(hessian)[-1], rel=1e-12)
    assert loss.constants(3)[1] == 0.1


def test_ridge_is_least_squares_plus_a_squared_norm() -> None:
    target = np.arange(5.0)
    ridge = Ridge(M, target, regularization=0.3, weight=0.5)
    parts = LeastSquares(M, target, 0.5) + SquaredDistance(0.3)
    v = np.array([1.0, -2.0, 0.5])
    assert ridge.value_at(v) == pytest.approx(parts.value_at(v))
    np.testing.assert_allclose(ridge.gradient_at(v), parts.gradient_at(v))
    np.testing.assert_allclose(ridge.prox_at(v, 0.4), parts.prox_at(v, 0.4), rtol=1e-12)
    best = np.linalg.solve(0.5 * M.T @ M + 0.3 * np.eye(3), 0.5 * M.T @ target)
    np.testing.assert_allclose(ridge.gradient_at(best), 0.0, atol=1e-13)


def test_max_affine() -> None:
    function = MaxAffine(np.array([[1.0, 0.0], [0.0, 3.0]]), [0.0, -1.0])
    assert function.value_at(np.array([1.0, 0.0])) == 1.0
    np.testing.assert_array_equal(function.gradient_at(np.array([1.0, 5.0])), [0.0, 3.0])
    assert function.lipschitz_at(2) == 3.0
    assert MaxAffine(np.eye(3)).value_at(np.array([1.0, 4.0, 2.0])) == 4.0


def test_what_sums_offer() -> None:
    assert (Logistic(y=Y) + L1(1.0)).capabilities == {"subgradient", "polyhedral"}
    assert (Logistic(y=Y) + Box(0, 1)).capabilities == {"prox", "polyhedral"}
    assert (LeastSquares(M, T) + SquaredDistance(1.0)).capabilities >= {"gradient", "quadratic"}
    assert len((L1(1.0) + Box(0, 1) + SquaredDistance(1.0)).parts) == 3


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: LeastSquares(M, np.ones(4)), "LeastSquares, y: has 4 entries but M has 5 rows"),
        (lambda: LeastSquares(M, None), "LeastSquares, y: is missing"),
        (lambda: Ridge(M), "Ridge, y: is missing"),
        (lambda: Ridge(M, T, -1.0), "Ridge, regularization"),
        (lambda: Logistic(M), "Logistic, y: is missing"),
        (lambda: Logistic(y=[0.0, 1.0]), "Logistic, y: labels must be -1 or \\+1; map 0/1"),
        (lambda: Logistic(y=["a", "b"]), "Logistic, y: is not numeric"),
        (lambda: Logistic(M, [1.0]), "Logistic, y: has 1 entries"),
        (lambda: Hinge(y=[2.0]), "Hinge, y: labels"),
        (lambda: Huber(delta=0.0), "Huber, delta: is 0.0; it must be positive"),
        (lambda: Huber(y=[math.nan]), "Huber, y: has entries that are NaN"),
        (lambda: L1([1.0, 2.0]), "L1, weight: has shape"),
        (lambda: L1(math.inf), "L1, weight: is inf"),
        (lambda: ElasticNet(1.0, -1.0), "ElasticNet, l2"),
        (lambda: Box(1.0, 0.0), "Box, low: exceeds high"),
        (lambda: Box(math.nan, 0.0), "Box, low: has entries that are NaN"),
        (lambda: Box([0.0, 0.0], [1.0]), "Box, high: has 1 entries but low has 2"),
        (lambda: MaxAffine(M, [1.0]), "MaxAffine, c"),
        (lambda: MaxAffine(np.zeros((0, 2))), "MaxAffine, M: has no rows"),
        (lambda: SquaredDistance(1.0, [[1.0]]), "SquaredDistance, centre: has shape"),
        (lambda: LeastSquares(M * 1j, T), "LeastSquares, M: has complex entries"),
        (lambda: LeastSquares([[1.0], [1.0, 2.0]], T), "LeastSquares, M: is ragged"),
        (Sum, "Sum: has no parts"),
        (lambda: SquaredDistance(1.0, T) + LeastSquares(M, T), "Sum: the parts act on different"),
    ],
)
def test_bad_arguments_are_named(build: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        build()  # type: ignore[operator]
    assert "\n" not in str(caught.value)
