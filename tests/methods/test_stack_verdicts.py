"""What is said of a Stack: contradictions, falls, residuals, bounds; against rational numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import ccmac
from ccmac import Stack
from ccmac.objectives import Quadratic
from ccmac.stack import DENSE

METHODS = ("auto", "cross-apapc", "cross-continuation", "cross-sliding")
BENT = Quadratic(np.eye(2), [1.0, 2.0])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "channels",
    [
        [([[1.0, 1.0], [1.0, 1.0]], [1.0, 2.0])],
        [([[1.0, 1.0]], [1.0]), ([[2.0, 2.0]], [4.0])],
        [([[1.0, 0.0]], [1.0]), ([[0.0, 0.0]], [1e-6])],
        [([[1.0, 1.0]], [1.0]), ([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0])],
    ],
    ids=["inside one", "between two", "0 = 1e-6", "three rows"],
)
def test_channels_that_contradict_each_other_have_no_solution(
    channels: list[tuple[object, object]], method: str
) -> None:
    result = ccmac.solve(Stack(BENT, channels), method=method)
    assert result.status == "infeasible"
    assert result.infeasibility is not None
    K = np.vstack([np.asarray(M) for M, _ in channels])
    v = np.concatenate([np.asarray(right) for _, right in channels])
    price = result.infeasibility.local[0]
    assert np.linalg.norm(K.T @ price) <= 1e-12 * np.linalg.norm(price)
    assert abs(price @ v) > 1e-7 * np.linalg.norm(price)


def test_a_fall_without_end_is_not_called_optimal() -> None:
    stack = Stack(Quadratic([1.0, 0.0], [0.0, 1.0]), [([[1.0, 0.0]], [1.0])])
    result = ccmac.solve(stack, max_iterations=500)
    assert result.status not in ("optimal", "infeasible")
    assert "falls without end is not known" in " ".join(result.warnings)


@pytest.mark.parametrize("level", [12, 18, 24])
def test_bounds_hold_where_rows_of_a_channel_are_nearly_dependent(level: int) -> None:
    """Rows (1, 1, 0), (1, 1 + t, 0) fix w_1 = w_2 = a; w_3 = 3 is the minimiser of the rest."""
    t = 2.0**-level
    a = 2.0**20 / 3
    a = math.ldexp(round(math.ldexp(a, -8)), 8) + 3.0
    rows = np.array([[1.0, 1.0, 0.0], [1.0, 1.0 + t, 0.0]])
    right = [2 * a, 2 * a + t * a]
    assert Fraction(right[1]) == (2 + Fraction(t)) * Fraction(a)
    stack = Stack(Quadratic([1.0, 1.0, 4.0], [2.0**30, -(2.0**30), 12.0]), [(rows, right)])
    exact = [Fraction(a), Fraction(a), Fraction(3)]
    for method in ("auto", "cross-continuation", "cross-sliding"):
        result = ccmac.solve(stack, method=method, tol=1e-12, max_iterations=200)
        error = sum((Fraction(float(u)) - v) ** 2 for u, v in zip(result.x[0], exact, strict=True))
        assert math.isfinite(result.error_bound)
        assert Fraction(result.error_bound) ** 2 >= error


def test_violations_prices_and_geometry_are_those_of_the_channels() -> None:
    channels = [([[1.0, 1.0, 0.0]], [1.0]), ([[0.0, 1.0, 1.0]], [2.0])]
    stack = Stack(Quadratic(np.diag([1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]), channels)
    result = ccmac.solve(stack, tol=1e-9)
    K = np.vstack([np.asarray(M) for M, _ in channels])
    v = np.array([1.0, 2.0])
    kkt = np.block([[np.diag([1.0, 2.0, 3.0]), K.T], [K, np.zeros((2, 2))]])
    known = np.linalg.solve(kkt, np.array([1.0, 2.0, 3.0, *v]))
    assert np.allclose(result.x[0], known[:3], atol=1e-8)
    assert np.allclose(result.multipliers.local[0], known[3:], atol=1e-7)
    assert result.residuals["local"] == pytest.approx(
        np.linalg.norm(K @ result.x[0] - v), abs=1e-15
    )
    assert result.geometry.ranks == (1, 1)
    again = ccmac.solve(stack, tol=1e-9, warm_start=result)
    assert again.status == "optimal"
    assert again.iterations < result.iterations


def test_nothing_is_proved_of_rows_too_many_to_be_looked_at() -> None:
    size = DENSE + 1
    row = np.zeros((1, size))
    row[0, 0] = 1.0
    stack = Stack(Quadratic(np.ones(size), np.zeros(size)), [(row, [1.0]), (row, [2.0])])
    vouched = ccmac.methods.CrossApapc(
        realization="stack",
        rule="paper",
        spectra=[(0.9, 1.1)] * 2,
        certificates=ccmac.Certificates(cross_factor=1.5),
    )
    result = ccmac.solve(stack, method=vouched, max_iterations=200)
    assert result.status != "optimal"
    assert math.isnan(result.error_bound)
    assert any("whether its channels agree" in text for text in result.warnings)
