"""Ranks to the last digit, against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpq_mat

from ccmac.linalg import extended
from ccmac.linalg.extended import (
    PRIMES,
    eliminated,
    exact_rank,
    image_of_kernel,
    residues,
    side_on_kernel,
)


def rational(matrix: np.ndarray) -> fmpq_mat:
    entries = [fmpq(*Fraction(float(v)).as_integer_ratio()) for v in matrix.ravel()]
    return fmpq_mat(*matrix.shape, entries)


@pytest.mark.parametrize("prime", PRIMES)
def test_a_double_is_its_fraction_modulo_the_prime(prime: int) -> None:
    values = np.array([[0.0, 1.0, -1.0, 0.1, -3e300, 5e-324, 2.0**-1074, 1.7e308, -(2.0**60)]])
    for said, value in zip(residues(values, prime)[0], values[0], strict=True):
        exact = Fraction(float(value))
        assert said == exact.numerator * pow(exact.denominator, -1, prime) % prime


@pytest.mark.parametrize("terms", [3, 40, extended.TERMS + 5])
def test_products_are_exact(terms: int) -> None:
    prime = PRIMES[1]
    left = np.full((2, terms), prime - 1, dtype=np.int64)
    right = np.full((terms, 3), prime - 2, dtype=np.int64)
    assert np.all(extended.product_modulo(left, right, prime) == 2 * terms % prime)
    random = np.random.default_rng(0)
    left = random.integers(prime, size=(4, 50))
    right = random.integers(prime, size=(50, 3))
    exact = left.astype(object) @ right.astype(object) % prime
    assert np.array_equal(extended.product_modulo(left, right, prime), exact.astype(np.int64))


@pytest.mark.parametrize("rows", [2, 7, 40, 75])
def test_ranks_are_those_of_rational_arithmetic(rows: int) -> None:
    for seed in range(6):
        random = np.random.default_rng(seed)
        rank = int(random.integers(rows))
        M = random.integers(-9, 10, size=(rows, rank)) @ random.integers(-9, 10, size=(rank, 30))
        M = M * np.exp2(random.integers(-40, 40, size=(rows, 1)).astype(float))
        assert exact_rank(M) == rational(M).rank()
        M[0, 0] += np.spacing(M[0, 0])  # one more, unless all columns are used up
        assert exact_rank(M) == exact_rank(M.T) == rational(M).rank()
        computed = random.standard_normal((3, 2)) @ random.standard_normal((2, 4))
        assert exact_rank(computed) == rational(computed).rank()


def test_empty_and_zero_matrices_have_no_rank() -> None:
    assert [exact_rank(np.zeros(shape)) for shape in ((0, 0), (0, 3), (3, 0), (3, 3))] == [0] * 4


def test_what_is_left_is_zero_where_pivots_were_sought() -> None:
    prime = PRIMES[0]
    random = np.random.default_rng(1)
    M = random.integers(3, size=(90, 8))
    M[:, 2] = M[:, 0] + M[:, 1]
    found, left = eliminated(M, prime, 5)
    assert len(found) == np.linalg.matrix_rank(M[:, :5])
    assert len(found) + len(left) == 90
    assert not left[:, :5].any()
    assert extended.rank_modulo(np.vstack([found, left]), prime) == np.linalg.matrix_rank(M)


def test_the_image_of_a_kernel() -> None:
    random = np.random.default_rng(2)
    C = random.integers(-3, 4, size=(2, 5)) * 1.0
    A = random.integers(-3, 4, size=(4, 5)) * 1.0
    A[3] = A[0] + C[1]  # on the kernel the same as A[0]
    A[2] = C[0]  # on the kernel nothing
    for prime in PRIMES:
        image = image_of_kernel(A, C, prime)
        assert image.shape == (4, 2)
        assert not image[2].any()
        assert np.array_equal(image[3], image[0])
    assert image_of_kernel(A, np.zeros((0, 5)), PRIMES[0]).shape == (4, 4)
    assert image_of_kernel(A, np.eye(5), PRIMES[0]).shape == (4, 0)


@pytest.mark.parametrize("prime", PRIMES)
def test_the_right_hand_side_on_a_kernel(prime: int) -> None:
    """b - A x of an x with C x = c: the same for every such x where A vanishes on ker C."""
    random = np.random.default_rng(3)
    C = random.integers(-3, 4, size=(3, 5)) * 1.0
    x = random.integers(-3, 4, size=5) * 1.0
    C[2] = C[0] - 2 * C[1]
    A = np.array([C[0] + C[1], 3 * C[1]])
    b = np.array([5.0, -7.5])
    off, *left = side_on_kernel(A, C, (b, C @ x), prime)
    assert off == 0
    assert left == residues((b - A @ x)[None], prime)[0].tolist()
    assert side_on_kernel(A, C, (b, C @ x + [0.0, 0.0, 1.0]), prime)[0] == 1
    free = side_on_kernel(A, np.zeros((0, 5)), (b, np.zeros(0)), prime)
    assert free.tolist() == [0, *residues(b[None], prime)[0]]


def test_two_residues_travel_in_one_float() -> None:
    first = np.array([0, 1, PRIMES[0] - 1, 17])
    second = np.array([PRIMES[1] - 1, 0, PRIMES[1] - 1, 3])
    sent = extended.packed(first, second)
    assert sent.dtype == np.float64
    back = extended.unpacked(sent)
    assert np.array_equal(back[0], first)
    assert np.array_equal(back[1], second)
