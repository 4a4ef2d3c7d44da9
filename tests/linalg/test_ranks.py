"""One notion of rank: row lengths change neither the rank nor what solutions and prices are."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmac import Agent, Network, Problem, Stack, geometry
from ccmac.linalg.ranks import rank_cut, redundant, row_lengths, row_space, squared_range
from ccmac.linalg.tolerances import EPS, RANK
from ccmac.objectives import Separable, SquaredDistance
from ccmac.paper.realizations.normalized import squared_singular_range
from ccmac.runtime import InProcess
from ccmac.workspace.equations import LocalEquations, SharedEquations

SMALL_ROW = np.array([[1.0, 0.0], [0.0, 1e-11]])
OBJECTIVE = Separable(SquaredDistance(1.0), SquaredDistance(1.0))

seeds = st.integers(0, 10**6)
powers = st.lists(st.integers(-20, 20), min_size=6, max_size=6)


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Six rows of rank r, some of them zero or dependent, and a point that they fix."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 6))
    columns = int(rng.integers(5, 9))
    M = rng.standard_normal((6, rank)) @ rng.standard_normal((rank, columns))
    if rng.random() < 0.5:
        M[int(rng.integers(6))] = 0.0
    return M, rng.standard_normal(columns), int(np.linalg.matrix_rank(M, tol=1e-9))


@settings(max_examples=60)
@given(seed=seeds, exponents=powers)
def test_row_lengths_change_nothing(seed: int, exponents: list[int]) -> None:
    M, x, rank = drawn(seed)
    scale = 2.0 ** np.array(exponents)
    plain = row_space(M)
    scaled = row_space(scale[:, None] * M)
    assert plain.rank == scaled.rank == rank
    # Powers of two are exact: the same unit rows, hence the same bits.
    np.testing.assert_array_equal(plain.basis, scaled.basis)
    P = np.linalg.pinv(M, rcond=1e-10) @ M
    np.testing.assert_allclose(scaled.basis @ scaled.basis.T, P, atol=1e-9)
    right = scale * (M @ x)
    np.testing.assert_allclose(scaled.basis @ scaled.coordinates(right), P @ x, atol=1e-8)
    assert scaled.conflict(right) == 0.0
    gradient = np.random.default_rng(seed + 1).standard_normal(M.shape[1])
    kappa = scaled.multipliers(scaled.basis.T @ gradient)
    np.testing.assert_allclose((scale[:, None] * M).T @ kappa, P @ gradient, atol=1e-8)
    np.testing.assert_allclose(scaled.basis, (scale[:, None] * M).T @ scaled.combination, atol=1e-8)


def test_everybody_sees_rank_two() -> None:
    """C = [[1, 0], [0, 1e-11]]: a small equation is an equation."""
    problem = Problem(
        [
            Agent(OBJECTIVE, A=np.eye(2), B=np.eye(2), C=SMALL_ROW, c=SMALL_ROW @ [1.0, 2.0]),
            Agent(OBJECTIVE, A=np.eye(2), B=np.eye(2), D=SMALL_ROW, e=SMALL_ROW @ [3.0, 4.0]),
        ]
    )
    found = geometry(problem)
    assert found.ranks == geometry(problem, method="dense").ranks == (4, 4)
    assert found.structural is not None
    assert (found.structural.rank_C, found.structural.rank_D) == (2, 2)
    assert found.structural.l_C == pytest.approx(1e-22, rel=1e-12)
    assert found.structural.mu_D == pytest.approx(1e-22 / 2, rel=1e-12)
    runtime = InProcess(Network.path(2))
    local = LocalEquations(problem, runtime)
    assert [len(V) for V in local.family.blocks] == [2, 0]
    np.testing.assert_allclose(local.point, [1.0, 2.0, 0.0, 0.0], rtol=1e-14)
    assert SharedEquations(problem, runtime).family.rows == (0, 2)
    assert squared_singular_range(SMALL_ROW) == pytest.approx((1e-22, 1.0), rel=1e-12)
    stack = Stack(SquaredDistance(1.0), channels=[(SMALL_ROW, np.zeros(2))])
    assert geometry(stack).ranks == (2,)


@pytest.mark.parametrize("size", [1.0, 1e-11, 1e-25])
def test_a_small_coupled_equation_counts(size: float) -> None:
    """mu_HC of rows (1, 1) and size (1, 1): n = 2 agents with A = B = diag(1, size)."""
    A = np.diag([1.0, size])
    problem = Problem([Agent(OBJECTIVE, A=A, B=k * A) for k in (1.0, 3.0)])
    found = geometry(problem)
    assert found.structural is not None
    assert (found.ranks, found.structural.rank_HC) == ((2, 2), 2)
    assert found.structural.mu_HC == pytest.approx(6 * size**2, rel=1e-12)
    assert found.cross_factor == pytest.approx(geometry(problem, method="dense").cross_factor)


def test_contradictions_are_measured_in_the_users_rows() -> None:
    M = np.array([[1.0, 1.0], [1e-6, 1e-6], [0.0, 1.0]])
    space = row_space(M)
    assert space.rank == 2
    assert space.conflict(np.array([2.0, 2e-6, 1.0])) == 0.0
    # One small equation that contradicts another by 1e-6 of its own size is seen.
    gap = space.conflict(np.array([2.0, 2e-6 * (1 + 1e-6), 1.0]))
    assert 0 < gap < 1e-5


def test_dependent_rows_keep_the_singular_values_of_the_matrix() -> None:
    rng = np.random.default_rng(0)
    M = rng.standard_normal((4, 2)) @ rng.standard_normal((2, 6))
    s = np.linalg.svd(M, compute_uv=False)
    assert squared_range(M) == pytest.approx((2, s[1] ** 2, s[0] ** 2), rel=1e-12)
    assert squared_range(M.T) == pytest.approx((2, s[1] ** 2, s[0] ** 2), rel=1e-12)
    graded = np.array([[1.0, 1.0], [0.0, 1e-20]])  # sigma_min = 1e-20 / sqrt 2, to all digits
    assert squared_range(graded) == pytest.approx((2, 0.5e-40, 2.0), rel=1e-12)


def test_the_condition_is_that_of_the_unit_rows() -> None:  # sqrt(1 -+ 0.6)
    found = row_space(np.array([[5.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 2.0]]))
    assert found.condition == pytest.approx(2.0)
    assert row_space(np.zeros((0, 3))).condition == 1.0


def test_lengths_of_rows_dense_and_sparse() -> None:
    M = np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 0.0], [3e-200, 0.0, 4e-200]])
    for store in (np.asarray, sp.csr_array):
        assert row_lengths(store(M)) == pytest.approx([5.0, 0.0, 5e-200], rel=1e-14, abs=0.0)
    assert row_lengths(np.zeros((2, 0))).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("exponent", "rank"), [(30, 2), (36, 2), (37, 1), (51, 1)])
def test_rows_closer_than_the_cut_are_dependent(exponent: int, rank: int) -> None:
    """[1 2; 1 2 + t]: the ratio of the singular values is t / 10, cut at 1e-12 (t = 2^-36.5)."""
    found = row_space(np.array([[1.0, 2.0], [1.0, 2.0 + 2.0**-exponent]]))
    assert found.rank == rank
    assert rank_cut((10, 20)) == RANK
    assert rank_cut((10, 10**5)) == EPS * 10**5


@pytest.mark.parametrize(("rows", "rank", "columns"), [(6, 3, 5), (60, 20, 50), (100, 45, 75)])
def test_redundant_rows_leave_the_row_space(rows: int, rank: int, columns: int) -> None:
    for seed in range(5):
        random = np.random.default_rng(seed)
        M = random.standard_normal((rows, rank)) @ random.standard_normal((rank, columns))
        dropped = redundant(row_space(M).left)
        assert len(dropped) == rows - rank
        kept = np.delete(M, dropped, axis=0)
        assert np.linalg.matrix_rank(kept, tol=1e-8) == rank
    assert redundant(row_space(np.zeros((2, 3))).left) == [0, 1]
    assert redundant(row_space(np.eye(3)).left) == []
