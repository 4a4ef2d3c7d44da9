"""Doubts about dropped rows, right-hand sides to the last digit, and kernels with room to spare."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from ccmac.linalg.extended import PRIMES, image_of_kernel, thinned
from ccmac.linalg.ranks import Doubt, row_space

ROUNDED = np.array([[0.1, 1 / 3, 0.0], [0.1 * 3, 1.0, 0.0], [0.0, 0.0, 3.0]])


def test_signs_of_left_vectors_do_not_matter() -> None:
    found = row_space(ROUNDED)
    assert (found.rank, found.excess) == (2, 1)
    for left in (found.left, -found.left):
        turned = replace(found, left=left)
        assert turned.doubt == Doubt.CONVENTION
    near = row_space(np.array([[1.0, 2.0], [1.0, 2.0 + 2.0**-44]]))
    assert near.doubt == Doubt.OPINION


@pytest.mark.parametrize(
    ("right", "agrees"),
    [
        ([1.0, 2.0, 5.0], True),
        ([1.0, 2.5, 5.0], False),
        ([0.1, 0.2, 7.0], True),
        ([0.1, 0.1 * 2 + 2.0**-54, 0.3], None),
    ],
)
def test_right_hand_sides_to_the_last_digit(right: list[float], agrees: bool | None) -> None:
    """Rows 1 and 2 are (1, 2) and its double; the third is independent of both."""
    found = row_space(np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 1.0]]))
    for left in (found.left, -found.left):
        assert replace(found, left=left).agrees(np.array(right)) is agrees
    assert row_space(np.eye(3)).agrees(np.array(right)) is True


def test_images_of_kernels_with_zero_columns_beside_them() -> None:
    A = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]])
    C = np.array([[0.0, 1.0, 0.0]])
    plain = image_of_kernel(A, C, PRIMES[0])
    assert plain.shape == (2, 1)
    wide = image_of_kernel(A, C, PRIMES[0], 4)
    assert wide.shape == (2, 4)
    assert np.array_equal(wide[:, :1], plain)
    assert not wide[:, 1:].any()


def test_matrices_that_are_mostly_zero_become_sparse() -> None:
    quarter = np.zeros((4, 4))
    quarter[0] = 1.0
    assert sp.issparse(thinned(quarter))
    assert thinned(quarter).dtype == np.longdouble
    quarter[1, 0] = 1.0
    assert isinstance(thinned(quarter), np.ndarray)
    assert sp.issparse(thinned(sp.csr_array(np.ones((2, 2)))))
