"""Products, sums and halves in the long format, against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ccmac.linalg.extended import EPS_LONG, halves, norm, product, summed

FINITE = st.floats(-1e6, 1e6, allow_nan=False).filter(lambda v: v == 0 or abs(v) > 1e-6)


def rational(value: np.longdouble | float) -> Fraction:
    """A long number as it is: its double part and what that leaves."""
    high = float(value)
    low = float(np.longdouble(value) - np.longdouble(high))
    return Fraction(high) + Fraction(low)


@st.composite
def _matrix_and_vector(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    rows = draw(st.integers(1, 4))
    columns = draw(st.integers(1, 5))
    values = draw(st.lists(FINITE, min_size=rows * columns, max_size=rows * columns))
    v = draw(st.lists(FINITE, min_size=columns, max_size=columns))
    return np.array(values).reshape(rows, columns), np.array(v)


@given(_matrix_and_vector())
def test_products_are_right_to_the_long_format(pair: tuple[np.ndarray, np.ndarray]) -> None:
    matrix, v = pair
    found = product(matrix, v)
    assert found.dtype == np.longdouble
    for row, value in zip(matrix, found, strict=True):
        terms = [Fraction(float(a)) * Fraction(float(b)) for a, b in zip(row, v, strict=True)]
        allowed = (len(v) + 1) * Fraction(EPS_LONG) * sum(abs(t) for t in terms)
        assert abs(rational(value) - sum(terms)) <= allowed


@given(st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=6))
def test_halves_are_two_doubles_that_add_up(parts: list[tuple[float, float]]) -> None:
    v = np.array([np.longdouble(a) + np.longdouble(b) * 2.0**-50 for a, b in parts])
    both = halves(v)
    assert both.dtype == np.float64
    assert both.shape == (2 * len(v),)
    high = both[: len(v)]
    low = both[len(v) :]
    assert np.array_equal(high, v.astype(np.float64))
    assert np.all(np.abs(low) <= np.spacing(np.abs(high)))
    again = high.astype(np.longdouble) + low.astype(np.longdouble)
    assert np.array_equal(again, v)  # nothing is lost on the way


@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 10**6))
def test_sums_of_halves_are_right_to_the_long_format(n: int, width: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = random.standard_normal((n, width)).astype(np.longdouble)
    rows += random.standard_normal((n, width)) * 2.0**-54
    rows *= 2.0 ** random.integers(-20, 20, size=(n, 1))
    found = summed(np.stack([halves(row) for row in rows]))
    assert found.shape == (width,)
    for column, value in zip(rows.T, found, strict=True):
        terms = [rational(v) for v in column]
        allowed = (n + 1) * Fraction(EPS_LONG) * sum(abs(t) for t in terms)
        assert abs(rational(value) - sum(terms)) <= allowed


@given(st.lists(FINITE, max_size=8))
def test_norms_are_those_of_rational_arithmetic(values: list[float]) -> None:
    square = sum((Fraction(v) ** 2 for v in values), Fraction(0))
    found = norm(np.array(values))
    assert isinstance(found, float)
    assert abs(Fraction(found) ** 2 - square) <= 5 * Fraction(2.0**-53) * square
