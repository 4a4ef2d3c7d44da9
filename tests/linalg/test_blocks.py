"""Facts about one block that are read off how it is stored."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from ccmac.linalg.blocks import common_multiples, identity_multiple, multiples_of, stored_rows

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
    assert common_multiples(multiples_of([2.0 * EYE, None])) == pytest.approx([2.0, 0.0])
    assert common_multiples(multiples_of([EYE, EYE[[1, 0, 2]]])) is None
    assert common_multiples(multiples_of([None, None])) is None


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_rows_with_entries_that_are_not_zero(form: str) -> None:
    block = sp.csr_array((np.array([1.0, 0.0, -1.0, 1.0]), [0, 1, 0, 1], [0, 1, 2, 4, 4]), (4, 2))
    assert stored_rows(block.asformat(form)).tolist() == [True, False, True, False]
    block.data[1] = 3.0
    assert stored_rows(block.asformat(form)).tolist() == [True, True, True, False]
