"""Zero rows, spaces that are spanned, and other cases without anything to do."""

from __future__ import annotations

import numpy as np
import pytest

from ccmac.inputs import Array
from ccmac.linalg.lanczos import DRIFT, extend
from ccmac.linalg.ranks import squared_range


def test_an_image_inside_the_basis_adds_nothing() -> None:
    """However far it may have drifted: there is nothing to project."""
    V = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 3)))[0]

    def project(w: Array) -> Array:
        raise AssertionError("there is no vector")

    found, drift = extend(V, V @ np.diag([3.0, 2.0, 1.0]), project, 2 * DRIFT)
    assert found.shape == (6, 0)
    assert drift >= 2 * DRIFT


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_zeros_change_no_eigenvalue(seed: int) -> None:
    M = np.random.default_rng(seed).standard_normal((3, 5)) * [[1.0], [100.0], [0.01]]
    with_zeros = np.insert(M, [0, 2, 3], 0.0, axis=0)
    values = np.linalg.eigvalsh(M @ M.T)
    rank, low, high = squared_range(with_zeros)
    assert rank == 3
    assert low == pytest.approx(values[0], rel=1e-9)
    assert high == pytest.approx(values[-1], rel=1e-12)
    assert squared_range(np.zeros((2, 3))) == (0, 0.0, 0.0)
