"""Extreme eigenvalues: exact, estimated, and the fall-back when Lanczos does not settle."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from ccmac.errors import InputError
from ccmac.linalg import symmetric
from ccmac.linalg.symmetric import eigenvalue_extremes, gram_extremes
from ccmac.objectives import LeastSquares, Quadratic


def _sparse(rows: int, columns: int) -> sp.csr_array:
    matrix = sp.random_array((rows, columns), density=0.2, rng=np.random.default_rng(0))
    return sp.csr_array(matrix)


@pytest.mark.parametrize("shape", [(30, 12), (12, 30), (20, 20), (1, 5), (5, 1)])
@pytest.mark.parametrize("dense", [True, False])
def test_gram_extremes_are_squared_singular_values(shape: tuple[int, int], dense: bool) -> None:
    M = _sparse(*shape)
    values = np.linalg.svd(M.toarray(), compute_uv=False)
    found = gram_extremes(M.toarray() if dense else M)
    assert found.exact
    assert found.high == pytest.approx(values[0] ** 2, rel=1e-12)
    low = 0.0 if shape[0] < shape[1] else values[-1] ** 2
    assert found.low == pytest.approx(low, rel=1e-8, abs=1e-13)


def test_lanczos_bounds_enclose_the_spectrum(monkeypatch: pytest.MonkeyPatch) -> None:
    M = _sparse(120, 60)
    values = np.linalg.svd(M.toarray(), compute_uv=False) ** 2
    monkeypatch.setattr(symmetric, "DENSE_LIMIT", 10)
    found = gram_extremes(M)
    assert not found.exact
    L, mu = found.bounds()
    assert values[0] <= L <= values[0] * (1 + 3e-6)
    assert values[-1] - 3e-6 * values[0] <= mu <= values[-1]
    assert found == gram_extremes(M)  # the start vector is fixed
    for H in (sp.csr_array(M.T @ M), (M.T @ M).toarray()):
        L, mu = eigenvalue_extremes(H).bounds()
        assert values[0] <= L <= values[0] * (1 + 3e-6)
        assert values[-1] - 3e-6 * values[0] <= mu <= values[-1]


def test_failed_lanczos_falls_back_to_safe_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise spla.ArpackNoConvergence("no", np.zeros(0), np.zeros((0, 0)))

    monkeypatch.setattr(symmetric, "DENSE_LIMIT", 10)
    monkeypatch.setattr(symmetric.spla, "eigsh", fail)
    M = _sparse(120, 60)
    L, mu = gram_extremes(M).bounds()
    assert np.linalg.norm(M.toarray(), 2) ** 2 <= L
    assert mu == 0.0


def test_large_sparse_quadratic(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 60
    path = sp.diags_array([-np.ones(n - 1), np.full(n, 2.0), -np.ones(n - 1)], offsets=[-1, 0, 1])
    monkeypatch.setattr(symmetric, "DENSE_LIMIT", 10)
    L, mu = Quadratic(sp.csr_array(path), np.zeros(n)).constants(n)
    exact = 2 - 2 * np.cos(np.pi * np.array([1, n]) / (n + 1))
    assert exact[1] <= L <= exact[1] * (1 + 3e-6)
    assert 0 <= mu <= exact[0]
    with pytest.raises(InputError, match="Quadratic, H: is indefinite"):
        Quadratic(sp.csr_array(path - sp.eye_array(n)), np.zeros(n))


@pytest.mark.parametrize(
    ("H", "g", "message"),
    [
        ([[1.0, 2.0], [0.0, 1.0]], [0.0, 0.0], "H: is not symmetric .* pass"),
        ([[1.0, 0.0], [0.0, -1.0]], [0.0, 0.0], "H: is indefinite"),
        ([1.0, -1.0], [0.0, 0.0], "H: is indefinite"),
        (np.eye(3), [0.0, 0.0], "H: has shape \\(3, 3\\) but g has 2 entries"),
        (np.ones((2, 3)), [0.0, 0.0], "H: has shape"),
        ([[np.nan, 0.0], [0.0, 1.0]], [0.0, 0.0], "H: has entries that are NaN"),
        (np.eye(2), [np.inf, 0.0], "g: has entries that are NaN or infinite"),
        (np.eye(2) * 1j, [0.0, 0.0], "H: has complex"),
        (np.eye(2), ["a", "b"], "g: is not numeric"),
    ],
)
def test_bad_quadratics_are_named(H: object, g: object, message: str) -> None:
    with pytest.raises(InputError, match=f"^Quadratic, {message}"):
        Quadratic(H, g)


def test_rank_deficient_hessian_has_no_strong_convexity() -> None:
    root = np.random.default_rng(0).standard_normal((3, 8))
    assert Quadratic(root.T @ root, np.zeros(8)).constants(8)[1] == 0.0
    tall = np.random.default_rng(1).standard_normal((20, 3)) @ root
    assert LeastSquares(tall, np.zeros(20)).constants(8)[1] == 0.0


def test_without_rows_or_columns() -> None:
    assert gram_extremes(np.zeros((0, 3))) == (0.0, 0.0, True)
    assert gram_extremes(np.zeros((3, 0))) == (np.inf, 0.0, True)
    assert eigenvalue_extremes(np.zeros((0, 0))) == (np.inf, 0.0, True)
