"""Zero rows, spaces that are spanned, sizes and signs: small cases with known answers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg import extended, ritz_blocks, symmetric
from ccmac.linalg.blocks import dense, identity_multiple, stored_rows
from ccmac.linalg.chebyshev import semi_iteration_chain
from ccmac.linalg.lanczos import extreme_ritz, lanczos
from ccmac.linalg.nystrom import Nystrom
from ccmac.linalg.operator import LinearOperator, dot_test
from ccmac.linalg.ranks import rank_cut, row_space, squared_range
from ccmac.linalg.ritz_blocks import RitzBlocks
from ccmac.linalg.symmetric import eigenvalue_extremes, gram_extremes
from ccmac.network import Network
from ccmac.runtime import InProcess
from ccmac.runtime.space import Space


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


@pytest.mark.parametrize("at_once", [1, 5, 6, 14, 100])
def test_products_by_parts_are_exact(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows are taken at a time: integers beyond a double, within the long format."""
    monkeypatch.setattr(extended, "AT_ONCE", at_once)
    rng = np.random.default_rng(1)
    M = rng.integers(-99, 99, (7, 3)).astype(float)
    v = rng.integers(-(2**50), 2**50, 3)
    said = extended.product(M, v.astype(float))
    assert [int(s) for s in said] == [
        sum(int(a) * int(b) for a, b in zip(row, v, strict=True)) for row in M
    ]


@pytest.mark.parametrize("size", [1e-14, 1e14])
def test_what_counts_as_a_kernel_is_relative(size: float) -> None:
    space = Space(InProcess(Network.complete(2)), [1, 1], 1)
    S = size * np.diag([0.0, 3.0, 7.0, 4.0])
    low, high, _ = extreme_ritz(space, lambda u: S @ u, S @ np.arange(1.0, 5.0) / size, 4, 4)
    assert (low / size, high / size) == pytest.approx((3.0, 7.0))


class Skewed(LinearOperator):
    """K u = u + ``more`` u, with the adjoint of the first term alone."""

    def __init__(self, more: float) -> None:
        self.more = more

    shape = (2, 2)
    cost = Cost()

    def forward(self, u: Array) -> Array:
        return u + self.more * u

    def adjoint(self, v: Array) -> Array:
        return v


@pytest.mark.parametrize("more", [0.5, -0.5])
def test_an_adjoint_is_wrong_in_either_direction(more: float) -> None:
    for seed in range(4):
        with pytest.raises(AssertionError, match="adjoint is wrong"):
            dot_test(Skewed(more), np.random.default_rng(seed), samples=1)
    assert dot_test(Skewed(0.0), np.random.default_rng(0)) == 0.0


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_right_hand_sides_agree_up_to_rounding_of_their_size(size: float) -> None:
    """x + y = size, and the same row with a misfit: beside the size, or one where that is less."""
    rows = row_space(np.array([[1.0, 1.0], [1.0, 1.0]]))
    length = np.linalg.norm([size, size]) / math.sqrt(2)
    for misfit, seen in ((0.5e-9, False), (4e-9, True)):
        gap = misfit * length
        found = rows.conflict(np.array([size, size + gap]))
        assert found == pytest.approx(gap / math.sqrt(2) if seen else 0.0, rel=1e-4)


def test_a_single_entry_is_a_multiple_of_the_identity() -> None:
    assert identity_multiple(sp.csr_array([[3.0]])) == 3.0
    assert identity_multiple(sp.csr_array(np.diag([3.0, 3.0]))) == 3.0
    assert identity_multiple(sp.csr_array(np.diag([3.0, 4.0]))) is None
    assert identity_multiple(sp.csr_array(np.diag([4.0, 3.0, 3.0]))) is None


@pytest.mark.parametrize("size", [1e-14, 1.0, 1e14])
def test_eigenvalues_of_dependent_rows_in_any_unit(size: float) -> None:
    """Rows of lengths 1 to 100, the last the sum of the others."""
    M = np.random.default_rng(2).standard_normal((3, 5)) * [[1.0], [10.0], [100.0]]
    M = np.vstack([M, M.sum(axis=0)])
    values = np.linalg.svd(M, compute_uv=False)[:3] ** 2
    rank, low, high = squared_range(size * M)
    assert (rank, low / size**2, high / size**2) == pytest.approx((3, values[2], values[0]))


def test_rows_with_entries_that_are_stored_and_zero() -> None:
    block = sp.csr_array(([1.0, 0.0, -2.0], ([0, 1, 3], [0, 0, 1])), shape=(4, 2))
    said = stored_rows(block)
    assert said.dtype == bool
    assert said.tolist() == [True, False, False, True]


@pytest.mark.parametrize("size", [1, 5])
def test_extreme_eigenvalues_of_a_sparse_matrix(size: int) -> None:
    H = np.diag(np.arange(1.0, size + 1)) + 0.25 * (np.eye(size, k=1) + np.eye(size, k=-1))
    values = np.linalg.eigvalsh(H)
    for given in (H, sp.csr_array(H), sp.csc_array(H)):
        said = eigenvalue_extremes(given)
        assert (said.low, said.high) == pytest.approx((values[0], values[-1]), rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_sketch_knows_the_length_of_its_factor(seed: int) -> None:
    """||L||^2 = trace W'S W of all test vectors W, whether they came at once or in parts."""
    draw = np.random.default_rng(seed).standard_normal
    S = draw((8, 8))
    W = draw((8, 5))
    S = S @ S.T
    whole = Nystrom.of(W, S @ W, noise=0.0)
    parts = Nystrom.of(W[:, :2], S @ W[:, :2], noise=0.0).grown(W[:, 2:], S @ W[:, 2:])
    expected = math.sqrt(np.trace(W.T @ S @ W))
    assert (whole.length, parts.length) == pytest.approx((expected, expected), rel=1e-6)


def test_a_run_that_does_not_settle_knows_a_ceiling_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symmetric, "_largest", lambda operator, start: None)
    said = symmetric._lanczos(np.zeros((3, 3)), 7.0)
    assert (said.low, said.high, said.exact) == (0.0, 7.0, False)
    assert said.bounds()[0] > 7.0
    monkeypatch.setattr(symmetric, "DENSE_LIMIT", 2)
    H = np.array([[2.0, -1.0, 0.0], [-1.0, 3.0, 1.5], [0.0, 1.5, 1.0]])
    assert eigenvalue_extremes(sp.csr_array(H)).high == 5.5  # the largest sum of a row's sizes


def test_without_a_trace_nothing_bounds_what_is_left() -> None:
    """Of the trace, |S w|^2 / theta of every Ritz vector w is known."""
    values = np.array([3.0, 1.0])
    V = np.eye(4, 2)
    E = np.diag([0.75, 0.5])
    images = np.vstack([np.diag(values), E])
    found = RitzBlocks(values, np.eye(2), [V], [images], E.T @ E, exhausted=False)
    assert found.left_trace(2) == math.inf
    known = [float(w @ w) / theta for w, theta in zip(images.T, values, strict=True)]
    for r in range(3):
        assert replace(found, trace=5.0).left_trace(r) == pytest.approx(5.0 - sum(known[:r]))


def test_the_margin_of_what_is_kept() -> None:
    """Two rows of unit length at an angle, and both once more: singular values of the two."""
    pair = np.array([[2.0, 2.0, 1.0], [2.0, -1.0, 2.0]]) / 3  # with the product 4 / 9
    found = row_space(np.vstack([pair, pair]))
    values = np.sqrt(np.array([2 * 13 / 9, 2 * 5 / 9]))
    assert found.singular == pytest.approx(values)
    assert found.kept == pytest.approx(values[1] / values[0] / rank_cut((4, 3)), rel=1e-9)
    assert found.dropped < 1e-3


def test_images_of_a_run_are_computed() -> None:
    """S w by the three-term relation, into memory that holds other numbers."""
    runtime = InProcess(Network.complete(2))
    S = np.diag([1.0, 2.0, 5.0, 7.0])
    found = lanczos(runtime, lambda v: np.vstack([v @ S, v @ S]), np.ones((1, 4)), 3)
    expected = found.basis @ S
    for value in (3.0, -4.0):
        other = np.full((3, 4), value)
        del other
        assert found.images(3) == pytest.approx(expected)
    S = np.diag([2.0, 2.0, 5.0, 5.0])
    ended = lanczos(runtime, lambda v: np.vstack([v @ S, v @ S]), np.ones((1, 4)), 4)
    assert ended.exhausted
    assert ended.vectors.shape == (3, 4)


def test_a_chain_asks_for_contributions() -> None:
    """q(S) right, S the mean of two agents' parts: parts are told, means are sent."""
    parts = np.array([[1.0, 6.0], [3.0, 2.0]])  # diagonals, of mean 2 and 4
    right = np.array([[1.0, 1.0]])
    chain = semi_iteration_chain(lambda v: parts * v, right, 1.0, 5.0, 30)
    told = next(chain)
    assert told == pytest.approx(parts / 3.0)  # of right / centre
    with pytest.raises(StopIteration) as ended:
        while True:
            told = chain.send(told.mean(axis=0, keepdims=True))
    assert ended.value.value == pytest.approx(np.array([[0.5, 0.25]]))


def test_what_lies_outside_a_basis_is_orthogonal_to_rounding_of_itself() -> None:
    """An image that is 1e-12 outside: a single pass would leave rounding of the image in it."""
    draw = np.random.default_rng(5).standard_normal
    V, _ = np.linalg.qr(draw((9, 4)))
    outside = draw((9, 2))
    outside -= V @ (V.T @ outside)
    inside = draw((4, 2))
    along, rest = ritz_blocks._outside([V[:, :1], V[:, 1:]], V @ inside + 1e-12 * outside)
    assert along == pytest.approx(inside)
    assert rest == pytest.approx(1e-12 * outside, rel=1e-2, abs=1e-15)
    assert np.abs(V.T @ rest).max() <= 1e-26


def test_blocks_of_any_kind_as_arrays() -> None:
    M = np.array([[1.0, 0.0, -2.0], [0.0, 3.0, 0.0]])
    for given in (M, sp.csr_array(M), sp.csc_array(M), sp.coo_array(M), aslinearoperator(M)):
        assert dense(given).tolist() == M.tolist()


def test_gram_matrices_without_rows_or_columns() -> None:
    for made in (np.asarray, sp.csr_array):
        assert gram_extremes(made(np.zeros((3, 0)))) == symmetric.EMPTY
        said = gram_extremes(made(np.zeros((0, 3))))
        assert (said.low, said.high) == (0.0, 0.0)
