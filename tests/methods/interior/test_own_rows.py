"""An agent's own equations in the form that enters its block, and their prices on the way back."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from ccmac.linalg.ranks import row_space
from ccmac.methods.interior import own
from ccmac.methods.interior.own import OwnRows
from ccmac.workspace.local import Kernel

C = np.array([[3.0, 0.0, 4.0, 0.0], [0.0, 2.0, 0.0, 1.0]])


@pytest.mark.parametrize("sparse", [True, False])
def test_rows_and_prices_in_both_forms(sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "DENSE", 0)
    point = np.linalg.pinv(C) @ np.array([5.0, -1.0])
    kernel = Kernel.of(row_space(C), point)
    rows = OwnRows(kernel, sp.csr_array(C) if sparse else C, 4)
    assert (rows.scale is not None) is sparse
    if rows.scale is not None:
        assert rows.rows.toarray() == pytest.approx(C / np.linalg.norm(C, axis=1)[:, None])
    assert rows.rows @ point == pytest.approx(rows.right)
    nu = np.array([1.5, -0.5])
    inside = np.array([2.0, 3.0])
    basis = kernel.space.basis
    kappa = rows.prices(nu, inside)
    assert C.T @ kappa == pytest.approx(rows.rows.T @ nu - basis @ inside)
    assert rows.rows.T @ rows.held(inside) == pytest.approx(basis @ inside)


def test_dependent_rows_have_an_orthonormal_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "DENSE", 0)
    twice = np.vstack([C, C[:1]])
    rows = OwnRows(Kernel.of(row_space(twice), np.zeros(4)), sp.csr_array(twice), 4)
    assert rows.scale is None
    assert (rows.rows @ rows.rows.T).toarray() == pytest.approx(np.eye(2))
