"""Solves with a matrix plus a diagonal, against dense algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from ccmac.inputs import Array
from ccmac.linalg.symmetric import FactorCache, factorized, gram_factorized

RANDOM = np.random.default_rng(0)
DIAGONAL = np.array([1.0, 2.0, 0.5, 4.0])


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("plain", [True, False])
def test_a_matrix_plus_a_diagonal(store: Any, plain: bool) -> None:
    factor = RANDOM.standard_normal((4, 4))
    H = np.diag([3.0, 0.0, 1.0, 2.0]) if plain else factor.T @ factor
    given = store(H)
    v = RANDOM.standard_normal(4)
    assert factorized(given, DIAGONAL)(v) == pytest.approx(
        np.linalg.solve(H + np.diag(DIAGONAL), v)
    )
    dense = given.toarray() if sp.issparse(given) else given
    assert dense == pytest.approx(H)  # what was given is not used up


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("rows", [2, 4, 6])
def test_a_gram_matrix_plus_a_diagonal(store: Any, rows: int) -> None:
    M = RANDOM.standard_normal((rows, 4))
    v = RANDOM.standard_normal(4)
    expected = np.linalg.solve(2.5 * M.T @ M + np.diag(DIAGONAL), v)
    assert gram_factorized(store(M), 2.5, DIAGONAL)(v) == pytest.approx(expected)


def test_the_latest_factorization_is_kept() -> None:
    cache = FactorCache()
    built = list[float]()

    def build(size: float) -> Any:
        built.append(size)
        return lambda v: v / size

    def ask(diagonal: Array) -> float:
        return float(cache.get(diagonal, lambda: build(float(diagonal[0])))(1.0))

    for value, count in ((2.0, 1), (2.0, 1), (4.0, 2), (4.0, 2), (2.0, 3)):
        assert ask(np.array([value])) == 1 / value
        assert len(built) == count
