"""Facts about one block that are read off how it is stored."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from ccmac.linalg.blocks import (
    compressed,
    dense,
    filled_in,
    frobenius,
    has_entries,
    identity_multiple,
    identity_multiples,
    multiply,
    plus,
    powers,
    some_columns,
    stored_rows,
)

EYE = sp.eye_array(3, format="csr")


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dia"])
def test_a_multiple_of_the_identity_in_any_format(form: str) -> None:
    assert identity_multiple((-2.5 * EYE).asformat(form)) == -2.5


@pytest.mark.parametrize(
    "block",
    [
        np.eye(3),
        sp.csr_array((3, 3)),
        0.0 * EYE,
        sp.eye_array(3, 4, format="csr"),
        sp.diags_array([1.0, 1.0, 2.0], format="csr"),
        EYE[[1, 0, 2]],
        sp.csr_array((np.ones(3), [0, 1, 2], [0, 2, 2, 3]), (3, 3)),  # two in one row
    ],
    ids=["dense", "zero", "stored-zeros", "wide", "uneven", "permuted", "crowded"],
)
def test_what_is_none(block: object) -> None:
    assert identity_multiple(block) is None


def test_multiples_of_several_blocks() -> None:
    assert identity_multiples([2.0 * EYE, None]) == pytest.approx([2.0, 0.0])
    assert identity_multiples([EYE, EYE[[1, 0, 2]]]) is None
    assert identity_multiples([None, None]) is None


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_rows_with_entries_that_are_not_zero(form: str) -> None:
    block = sp.csr_array((np.array([1.0, 0.0, -1.0, 1.0]), [0, 1, 0, 1], [0, 1, 2, 4, 4]), (4, 2))
    assert stored_rows(block.asformat(form)).tolist() == [True, False, True, False]
    block.data[1] = 3.0
    assert stored_rows(block.asformat(form)).tolist() == [True, True, True, False]


def test_long_sides_are_compressed() -> None:
    tall = sp.csr_array(np.arange(6.0).reshape(3, 2))
    assert isinstance(compressed(tall), sp.csc_array)
    assert isinstance(compressed(sp.csc_array(tall.T)), sp.csr_array)
    assert isinstance(compressed(sp.csc_array(np.eye(2))), sp.csr_array)
    assert np.array_equal(compressed(tall).toarray(), tall.toarray())


def test_some_columns_are_a_view() -> None:
    whole = sp.csc_array(np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 3.0, 4.0, 5.0]]))
    part = some_columns(whole, 1, 3)
    assert np.array_equal(part.toarray(), [[0.0, 2.0], [3.0, 4.0]])
    assert np.shares_memory(part.data, whole.data)


def test_operators_are_probed_and_absent_blocks_filled() -> None:
    M = np.array([[1.0, 2.0, 3.0], [0.0, -1.0, 4.0]])
    operator = sp.linalg.aslinearoperator(M)
    assert np.array_equal(dense(operator), M)
    assert multiply(operator, np.ones(2), adjoint=True).tolist() == [1.0, 1.0, 7.0]
    assert dense(sp.linalg.aslinearoperator(np.zeros((2, 0)))).shape == (2, 0)
    assert not has_entries(operator)
    blocks = filled_in([None, M, sp.csr_array(M)], [2, 2, 2], [4, 3, 3])
    assert [b.shape for b in blocks] == [(2, 4), (2, 3), (2, 3)]
    assert [b.nnz for b in blocks] == [0, 5, 5]


def test_lengths_of_blocks_of_any_kind() -> None:
    M = np.array([[3.0, 0.0, -4.0], [0.0, 12.0, 0.0]])
    for block in (M, sp.csc_array(M), sp.linalg.aslinearoperator(M)):
        assert frobenius(block) == 13.0
    assert frobenius(None) == frobenius(sp.linalg.aslinearoperator(np.zeros((2, 0)))) == 0.0


def test_powers_of_two_near_the_inverse_length() -> None:
    assert powers(np.array([0.0, 1.0, 8.0, 0.3, 5.0])).tolist() == [1.0, 1.0, 0.125, 4.0, 0.25]


def test_sums_stay_sparse_while_both_are() -> None:
    both = plus(EYE, 2.0 * EYE)
    assert isinstance(both, sp.csr_array)
    assert np.array_equal(both.toarray(), 3 * np.eye(3))
    for mixed in (plus(EYE, np.ones((3, 3))), plus(np.ones((3, 3)), EYE)):
        assert isinstance(mixed, np.ndarray)
        assert np.array_equal(mixed, np.ones((3, 3)) + np.eye(3))
