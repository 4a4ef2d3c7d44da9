"""Polynomials against closed forms: degrees, bounds, stability, and the filters built from them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.linalg.chebyshev import (
    chebyshev_correction,
    correction_interval,
    growth,
    minimal_degree,
    outer_degree,
    smallest_degree,
)
from ccmac.network import Network
from ccmac.paper.polynomials import (
    clenshaw,
    first_kind_filter,
    graph_filter,
    graph_filter_degree,
    inverse_root,
    inverse_root_interval,
    paper_degree,
    second_kind_filter,
    tight_degree,
)

Array = NDArray[np.float64]
RATIOS = (1.0, 1.0 + 1e-9, 1.5, 4.0, 30.0, 1e3, 1e4, 1e5)
ACCURACIES = (0.9, 0.5, 0.1, 1e-3, 1e-8)


def diagonal(values: Array) -> Callable[[Array], Array]:
    return lambda v: values * v


# -- x^{-1/2} --------------------------------------------------------------------------------------
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("accuracy", ACCURACIES)
def test_the_papers_degree_reaches_its_accuracy(ratio: float, accuracy: float) -> None:
    degree = paper_degree(ratio, accuracy)
    coefficients = inverse_root(1.0, ratio, degree)
    x = np.unique(np.concatenate([np.geomspace(1.0, ratio, 3001), np.linspace(1.0, ratio, 3001)]))
    p = clenshaw(coefficients, 1.0, ratio, diagonal(x), np.ones_like(x))
    error = np.abs(np.sqrt(x) * p - 1).max()
    assert error <= accuracy / 3
    values = x * p**2
    assert 1 - accuracy <= values.min() <= values.max() <= 1 + accuracy
    assert error <= 1.0 / growth(degree + 1, 1.0, ratio) + 1e-12


@pytest.mark.parametrize("ratio", RATIOS)
def test_the_computed_interval_encloses_the_polynomial(ratio: float) -> None:
    for degree in (0, 1, 2, 7, 24):
        coefficients = inverse_root(2.0, 2 * ratio, degree)
        low, high = inverse_root_interval(2.0, 2 * ratio, coefficients)
        x = np.linspace(2.0, 2 * ratio, 20001)
        values = x * clenshaw(coefficients, 2.0, 2 * ratio, diagonal(x), np.ones_like(x)) ** 2
        assert low <= values.min()
        assert values.max() <= high
        assert high - low <= (values.max() - values.min()) * 1.1 + 1e-9


@pytest.mark.parametrize("ratio", [1.5, 30.0, 1e3])
@pytest.mark.parametrize("accuracy", [0.5, 0.1])
def test_the_tight_degree_is_the_least(ratio: float, accuracy: float) -> None:
    degree = tight_degree(ratio, accuracy)
    assert degree <= paper_degree(ratio, accuracy)
    low, high = inverse_root_interval(1.0, ratio, inverse_root(1.0, ratio, degree))
    assert 1 - accuracy <= low <= high <= 1 + accuracy
    if degree:
        low, high = inverse_root_interval(1.0, ratio, inverse_root(1.0, ratio, degree - 1))
        assert low < 1 - accuracy or high > 1 + accuracy


def test_clenshaw_is_stable_at_degree_500() -> None:
    ratio = 1e4
    degree = 500
    coefficients = inverse_root(1.0, ratio, degree)
    random = np.random.default_rng(0)
    basis, _ = np.linalg.qr(random.standard_normal((40, 40)))
    values = np.geomspace(1.0, ratio, 40)
    Q = (basis * values) @ basis.T
    v = random.standard_normal(40)
    scaled = (2 * values - ratio - 1) / (ratio - 1)
    p = np.polynomial.chebyshev.chebval(scaled, coefficients)
    exact = basis @ (p * (basis.T @ v))
    image = clenshaw(coefficients, 1.0, ratio, lambda u: Q @ u, v)
    assert np.linalg.norm(image - exact) <= 1e-11 * np.linalg.norm(exact)
    assert np.abs(np.sqrt(values) * p - 1).max() <= 1 / growth(degree + 1, 1.0, ratio)


def test_clenshaw_costs_its_degree() -> None:
    calls = 0

    def apply(v: Array) -> Array:
        nonlocal calls
        calls += 1
        return v

    for degree in (0, 1, 9):
        calls = 0
        clenshaw(inverse_root(0.5, 3.0, degree), 0.5, 3.0, apply, np.ones(2))
        assert calls == degree


# -- degrees and the graph filter ------------------------------------------------------------------
def test_smallest_degree_is_the_least_that_reaches_the_error() -> None:
    for ratio in (1.1, 5.0, 400.0):
        for error in (0.5, 1e-3, 1e-10):
            m = smallest_degree(1.0, ratio, error)
            assert 1 / growth(m, 1.0, ratio) <= error * (1 + 1e-7)
            assert m == 1 or 1 / growth(m - 1, 1.0, ratio) > error * (1 - 1e-7)


@pytest.mark.parametrize(
    "network",
    [
        Network.ring(3),
        Network.ring(30),
        Network.path(40),
        Network.star(9),
        Network.complete(6),
        Network.grid(4, 5),
        Network.erdos_renyi(20, 0.3, seed=1),
    ],
    ids=lambda network: network.name,
)
def test_graph_filter_brings_the_spectrum_within_half_of_one(network: Network) -> None:
    low, high = network.extremes
    degree = graph_filter_degree(high / low)
    matrix = network.weights.toarray()
    filtered = graph_filter(lambda v: matrix @ v, np.eye(network.n), low, high, degree)
    assert np.abs(filtered @ np.ones(network.n)).max() <= 1e-10
    values = np.linalg.eigvalsh((filtered + filtered.T) / 2)[1:]
    assert 0.5 <= values.min() <= values.max() <= 1.5
    # Loose certificates keep the promise.
    degree = graph_filter_degree(4 * high / low)
    filtered = graph_filter(lambda v: matrix @ v, np.eye(network.n), low / 2, 2 * high, degree)
    values = np.linalg.eigvalsh((filtered + filtered.T) / 2)[1:]
    assert 0.5 <= values.min() <= values.max() <= 1.5


# -- corrections -----------------------------------------------------------------------------------


@given(st.floats(1.0, 1e6))
def test_the_minimal_degree_is_safe_and_the_least(ratio: float) -> None:
    degree = minimal_degree(1.0, ratio)
    a, b = correction_interval(1.0, ratio, degree)
    assert 11 / 15 - 1e-8 <= a <= b <= 19 / 15 + 1e-8
    assert degree <= outer_degree(1.0, ratio)
    if degree > 1:
        assert correction_interval(1.0, ratio, degree - 1)[0] < 11 / 15 + 1e-8


@given(st.floats(1.0, 1e4))
def test_first_kind_filter_contracts_below_one_half(ratio: float) -> None:
    low = 0.5
    high = 0.5 * ratio
    t = np.concatenate([[0.0], np.linspace(low, high, 201)])
    degree = outer_degree(low, high)

    def residual(w: Array) -> tuple[Array, Array]:
        return t * w, (t * w)[None]

    r, price = first_kind_filter(residual, np.ones_like(t), low, high, degree)
    assert r[0] == pytest.approx(1.0)
    assert np.abs(r[1:]).max() <= 1 / math.cosh(2) + 1e-9 < 0.5
    # The second array carries what was added: RF(x) = x + price here.
    assert np.allclose(1.0 + price[0], r, atol=1e-9)
    correction, _ = chebyshev_correction(residual, np.ones_like(t), low, high, degree)
    assert np.allclose(1.0 - correction, r, atol=1e-9)


@given(st.floats(1.0, 1e4))
def test_second_kind_filter_bounds(ratio: float) -> None:
    low = 0.5
    high = 0.5 * ratio
    t = np.concatenate([[0.0], np.linspace(0, high, 401)])
    degree = outer_degree(low, high)

    def residual(w: Array) -> tuple[Array, Array]:
        return t * w, (t * w)[None]

    s, price = second_kind_filter(residual, np.ones_like(t), high, degree)
    assert s[0] == pytest.approx(1.0)
    assert np.abs(s).max() <= 1 + 1e-9
    assert (np.sqrt(t) * np.abs(s)).max() <= math.sqrt(low) * (1 + 1e-9)
    assert np.allclose(1.0 + price[0], s, atol=1e-9)


def test_a_degree_that_no_step_could_execute_is_refused() -> None:
    assert outer_degree(1e-8, 1.0) == 10_000
    with pytest.raises(InputError, match="near to dependent"):
        outer_degree(1e-12, 1.0)
