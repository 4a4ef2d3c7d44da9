"""Lanczos of all kinds against dense decompositions."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ccmac.inputs import Array
from ccmac.linalg.lanczos import Ritz, below, extend, extreme_ritz, lanczos, orthonormal, top_ritz
from ccmac.linalg.tolerances import DEPENDENT, DRIFT, FRESH, RITZ, RITZ_FLOOR
from ccmac.network import Network
from ccmac.runtime import InProcess
from ccmac.runtime.space import Space


def turned(values: list[float], seed: int = 0) -> Array:
    """A symmetric matrix with these eigenvalues."""
    k = len(values)
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((k, k)))[0]
    return np.asarray(turn * values @ turn.T)


def shares(S: Array, n: int = 3) -> tuple[InProcess, Callable[[Array], Array], list[Array]]:
    """S as the mean of n agents' matrices; what was asked for is kept."""
    weights = np.arange(n) - 1.0
    asked = list[Array]()

    def contribution(v: Array) -> Array:
        assert v.shape[0] == 1
        asked.append(v.copy())
        noise = np.abs(S).max() * np.roll(v[0], 1)
        return np.stack([S @ v[0] + w * noise for w in weights])

    return InProcess(Network.complete(n)), contribution, asked


def test_a_run_on_common_vectors() -> None:
    """Orthonormal vectors, T = W'SW, the three-term relation, and one averaging a step."""
    S = turned([1.0, 2.0, 5.0, 7.0, 11.0])
    runtime, contribution, asked = shares(S)
    start = np.array([[3.0, -1.0, 2.0, 0.5, 1.0]])
    found = lanczos(runtime, contribution, start, 3)
    assert (found.steps, found.exhausted, found.complete) == (3, False, False)
    assert (found.vectors.shape, found.basis.shape) == ((4, 5), (3, 5))
    assert found.alpha.shape == found.beta.shape == (3,)
    assert len(asked) == 3
    assert runtime.ledger.of("solve")["averagings"] == 3
    assert found.vectors @ found.vectors.T == pytest.approx(np.eye(4), abs=1e-13)
    assert found.vectors[0] == pytest.approx(start[0] / np.linalg.norm(start))
    W = found.basis
    assert pytest.approx(found.tridiagonal(), abs=1e-12) == W @ S @ W.T
    assert found.images(3) == pytest.approx(W @ S, abs=1e-12)
    assert found.images(2).shape == (2, 5)
    assert found.beta[2] == pytest.approx(found.vectors[3] @ S @ found.vectors[2])


def test_an_invariant_space_ends_a_run() -> None:
    S = np.diag([2.0, 2.0, 3.0, 0.0])
    runtime, contribution, asked = shares(S)
    found = lanczos(runtime, contribution, np.array([[3.0, 4.0, 5.0, 0.0]]), 4)
    assert (found.steps, found.exhausted, found.complete) == (2, True, False)
    assert np.linalg.eigvalsh(found.tridiagonal()) == pytest.approx([2.0, 3.0])
    assert found.beta[1] == 0.0
    assert not found.vectors[2].any()
    assert len(asked) == 2
    whole = lanczos(runtime, contribution, np.array([[1.0, 0.0, 1.0, 1.0]]), 4)
    assert (whole.steps, whole.complete) == (3, False)  # of four dimensions: not all were seen
    runtime, contribution, _ = shares(np.diag([1.0, 2.0]))
    assert lanczos(runtime, contribution, np.array([[1.0, 1.0]]), 5).complete
    for start, steps in ((np.zeros((1, 2)), 3), (np.ones((1, 2)), 0)):
        none = lanczos(runtime, contribution, start, steps)
        assert (none.steps, none.exhausted, none.vectors.shape) == (0, True, (1, 2))
        assert none.alpha.shape == none.beta.shape == (0,)
        assert not none.vectors.any()


@pytest.mark.parametrize("size", [1.0, 2.0**-40, 2.0**40])
def test_new_starts_see_repeated_eigenvalues_until_the_range_is_spanned(size: float) -> None:
    S = size * turned([2.0, 2.0, 2.0, 3.0, 0.0, 0.0])
    runtime, contribution, asked = shares(S)
    start = (S @ np.arange(1.0, 7.0))[None]
    found = lanczos(runtime, contribution, start, 6, rng=np.random.default_rng(5))
    assert (found.steps, found.exhausted, found.complete) == (4, True, True)
    values = np.linalg.eigvalsh(found.tridiagonal()) / size
    assert values == pytest.approx([2.0, 2.0, 2.0, 3.0])
    assert found.basis.T @ found.basis @ S == pytest.approx(S, abs=1e-12 * size)
    assert len(asked) == 4 + 3  # a new start after 2, 3 and 4 vectors
    assert np.linalg.norm(asked[2]) == pytest.approx(1.0)
    full, contribution, asked = shares(np.diag([1.0, 1.0]))
    found = lanczos(full, contribution, np.array([[1.0, 0.0]]), 4, rng=np.random.default_rng(0))
    assert (found.steps, found.complete) == (2, True)
    assert len(asked) == 3  # nothing is asked once all dimensions are there


@pytest.mark.parametrize("keep", [12, 3])
def test_a_run_on_execution_vectors(keep: int) -> None:
    """The kernel is left out, values below zero are told; two reductions a step."""
    space = Space(InProcess(Network.complete(2)), [2, 2], 1)
    S = turned([0.0, -1.0, 2.0, 3.0, 3.0, 7.0], seed=3)
    start = S @ np.arange(1.0, 7.0)
    low, high, exhausted = extreme_ritz(space, lambda u: S @ u, start, 6, keep)
    assert (low, high) == pytest.approx((-1.0, 7.0))
    assert exhausted  # four different values in the range
    assert extreme_ritz(space, lambda u: S @ u, 1e-9 * start, 6, keep)[:2] == pytest.approx((-1, 7))
    low, high, exhausted = extreme_ritz(space, lambda u: S @ u, start, 2, keep)
    basis = np.linalg.qr(np.column_stack([start, S @ start]))[0]
    assert (low, high) == pytest.approx(tuple(np.linalg.eigvalsh(basis.T @ S @ basis)))
    assert not exhausted
    before = space.runtime.ledger.of("solve")["reductions"]
    extreme_ritz(space, lambda u: S @ u, start, 3, keep)
    assert space.runtime.ledger.of("solve")["reductions"] - before == 6
    assert extreme_ritz(space, lambda u: S @ u, np.zeros(6), 4, keep) == (1.0, 1.0, True)


@pytest.mark.parametrize("size", [1.0, 1e-6, 1e6])
def test_a_negative_map_has_a_kernel_too(size: float) -> None:
    space = Space(InProcess(Network.complete(2)), [1, 1], 1)
    S = size * turned([0.0, -3.0, -7.0, 0.0], seed=2)
    low, high, _ = extreme_ritz(space, lambda u: S @ u, S @ np.arange(1.0, 5.0), 4, 4)
    assert (low / size, high / size) == pytest.approx((-7.0, -3.0))


def test_the_second_pass_mends_what_the_first_one_left() -> None:
    """Products with earlier vectors are a tenth off in the first pass; the values are exact."""
    calls = [0]
    S = turned([1.0, 2.0, 5.0, 7.0], seed=4)

    def ride(*pairs: tuple[Array, Array]) -> Any:
        calls[0] += 1
        found = np.array([float(u @ v) for u, v in pairs])
        if calls[0] % 2 == 0:
            found[:-1] += 0.1
        return SimpleNamespace(value=found)

    space: Any = SimpleNamespace(ride=ride)
    low, high, _ = extreme_ritz(space, lambda u: S @ u, np.arange(1.0, 5.0), 4, 4)
    assert (low, high) == pytest.approx((1.0, 7.0))


def test_top_values_of_an_operator_on_a_subspace() -> None:
    """Repeated values are seen by a block; vectors stay in the subspace; restarts lose nothing."""
    values = [9.0, 9.0, 8.5, *np.linspace(1.0, 8.0, 57)]
    S = turned([*values, *[50.0] * 4], seed=1)
    subspace = np.linalg.eigh(S)[1][:, :60]
    project: Callable[[Array], Array] = lambda v: subspace @ (subspace.T @ v)  # noqa: E731
    inner = project(S)
    start = subspace @ np.random.default_rng(0).standard_normal((60, 3))
    count = 0

    def apply(v: Array) -> Array:
        nonlocal count
        count += 1
        return np.asarray(inner @ v)

    found = top_ritz(apply, start, project, enough=lambda v: 1e-9, columns=15)
    assert found.values[:2] == pytest.approx([9.0, 9.0], abs=1e-9)
    assert found.residuals[0] <= 1e-9
    assert found.vectors.T @ found.vectors == pytest.approx(np.eye(3), abs=1e-9)
    assert project(found.vectors) == pytest.approx(found.vectors, abs=1e-9)
    off = S @ found.vectors - found.vectors * found.values
    assert np.linalg.norm(off, axis=0) == pytest.approx(found.residuals, abs=1e-10)
    assert found.steps == 5  # blocks of 3 until 15 columns are full
    assert count > 15
    count = 0
    narrow = top_ritz(apply, start, project, enough=lambda v: 1e-9, columns=1)
    assert narrow.steps == 4  # four blocks at least
    count = 0
    few = top_ritz(apply, start, project, enough=lambda v: 0.0, products=9)
    assert count == 9
    count = 0
    few = top_ritz(apply, start, project, enough=lambda v: 0.0, products=7)
    assert count == 9  # whole blocks
    assert few.steps == 3
    assert few.values[0] <= 9.0


def test_a_space_that_is_spanned_ends_the_search() -> None:
    S = np.diag([4.0, 3.0, 0.0])
    found = top_ritz(lambda v: S @ v, np.ones((3, 1)), lambda v: v, enough=lambda v: -1.0)
    assert found.values == pytest.approx([4.0])
    assert found.steps == 3
    assert np.abs(found.vectors[:, 0]) == pytest.approx([1.0, 0.0, 0.0], abs=1e-7)
    long = np.arange(1.0, 61.0)
    one = top_ritz(lambda v: long * v, np.ones((60, 1)), lambda v: v, enough=lambda v: 1e-9)
    assert (one.steps, one.values) == (48, pytest.approx([60.0]))  # then the first restart


def test_what_a_random_start_may_have_missed() -> None:
    """1.648 sqrt(k) exp(-sqrt(eps) (2 s - 1)) = p."""
    ritz = Ritz(np.ones(1), np.ones((1, 1)), np.zeros(1), 50)
    for probability in (1e-6, 1e-3):
        eps = ritz.missed(400, probability)
        assert 1.648 * 20 * math.exp(-math.sqrt(eps) * 99) == pytest.approx(probability)
    assert ritz.missed(400) == ritz.missed(400, 1e-6)
    assert Ritz(np.ones(1), np.ones((1, 1)), np.zeros(1), 0).missed(400) == 1.0


def test_how_well_the_distance_to_a_ceiling_is_known() -> None:
    enough = below(2.0)
    assert enough(1.5) == pytest.approx(RITZ * 0.5)
    assert enough(2.0) == pytest.approx(RITZ * RITZ_FLOOR * 2.0)


def test_orthonormal_columns() -> None:
    X = np.array([[3.0, 3.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.5], [0.0, 0.0, 0.0]])
    Q, least = orthonormal(X)
    assert Q.shape == (4, 2)
    assert pytest.approx(np.eye(2)) == Q.T @ Q
    assert pytest.approx(X) == Q @ Q.T @ X
    assert least == pytest.approx(0.5)
    Q, least = orthonormal(X, floor=1.0)
    assert (Q.shape[1], least) == (1, pytest.approx(math.sqrt(18)))
    assert orthonormal(np.zeros((4, 2)))[0].shape == (4, 0)
    assert orthonormal(np.zeros((4, 2)))[1] == 1.0
    empty, least = orthonormal(np.zeros((4, 0)))
    assert (empty.shape, least) == ((4, 0), 1.0)
    near = np.array([[1.0, 1.0], [0.0, 0.5 * DEPENDENT]])
    for size in (1.0, 1e-3, 1e3):  # beside the largest
        assert orthonormal(size * near)[0].shape == (2, 1)
        assert orthonormal(size * np.diag([1.0, 2 * DEPENDENT]))[0].shape == (2, 2)


def test_a_basis_grows_by_what_is_new() -> None:
    V = np.eye(5)[:, :2]
    image = np.array([[3.0], [4.0], [0.0], [0.25], [0.0]])
    projected: list[Any] = []

    def project(w: Array) -> Array:
        projected.append(w)
        return np.asarray(w)

    W, drift = extend(V, image, project, FRESH)
    assert np.abs(W[:, 0]) == pytest.approx([0, 0, 0, 1, 0])
    size = math.sqrt(25 + 0.0625)
    assert drift / FRESH == pytest.approx(size / 0.25)
    assert not projected
    W, drift = extend(V, image, project, DRIFT)  # what is magnified once more could matter
    assert (drift, len(projected)) == (FRESH, 1)
    assert projected[0] == pytest.approx(W[:, 0])
    two = np.array([[0.0, 0.0], [0.0, 0.0], [3.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    assert extend(V, two, project, FRESH)[1] / FRESH == pytest.approx(1.5)
    assert extend(V, two[:, :1], project, FRESH)[1] == FRESH  # all of it is new
    # A projection may bring back a part along V.
    W, _ = extend(V, image, lambda w: w + 0.5 * V[:, 0], DRIFT)
    assert np.abs(W[:, 0]) == pytest.approx([0, 0, 0, 1, 0])
    for left, new in ((0.02, 1), (0.005, 0)):  # of a unit vector: less was not a new one
        assert extend(V, image, lambda w, t=left: t * w + V[:, 0], DRIFT)[0].shape == (5, new)
    W, drift = extend(V, V @ np.ones((2, 1)), project, FRESH)
    assert W.shape == (5, 0)
    assert drift / FRESH == pytest.approx(math.sqrt(2.0))
    four = 4.0 * V[:, :1]
    for size, new in ((2e-9, 0), (8e-9, 1)):  # of an image of length 4: rounding, or more
        W, _ = extend(V, four + size * np.eye(5)[:, 3:4], project, FRESH)
        assert W.shape == (5, new)
