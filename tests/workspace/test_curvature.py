"""What an augmentation recovers of the curvature in z, against dense eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmac.workspace.declared import recovered_curvature


@given(h=st.lists(st.floats(0.0, 1e3), min_size=2, max_size=6), augment=st.floats(1e-3, 1e6))
def test_least_eigenvalue_of_the_augmented_curvature(h: list[float], augment: float) -> None:
    """lambda_min(diag(h) + augment (I - 11'/n))."""
    n = len(h)
    matrix = np.diag(h) + augment * (np.eye(n) - np.full((n, n), 1 / n))
    found = recovered_curvature(np.array(h), augment)
    size = max(*h, augment)
    assert found == pytest.approx(np.linalg.eigvalsh(matrix)[0], abs=1e-13 * size)


@pytest.mark.parametrize("augment", [5e-324, 1e-310, 1e-300])
def test_an_augmentation_that_is_hardly_a_number(augment: float) -> None:
    """augment / n is zero, and 1 / augment infinite; their product is neither."""
    found = recovered_curvature(np.array([0.0, 1.0, 2.0, 3.0]), augment)
    assert 0.0 <= found <= augment
