"""Lanczos of all kinds against dense decompositions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ccmac.inputs import Array
from ccmac.linalg.lanczos import eigenpairs, extreme_ritz, lanczos, top_ritz
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
    assert (found.steps, found.exhausted) == (3, False)
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
    assert (found.steps, found.exhausted) == (2, True)
    assert np.linalg.eigvalsh(found.tridiagonal()) == pytest.approx([2.0, 3.0])
    assert found.beta[1] == 0.0
    assert not found.vectors[2].any()
    assert len(asked) == 2
    for start, steps in ((np.zeros((1, 2)), 3), (np.ones((1, 2)), 0)):
        none = lanczos(runtime, contribution, start, steps)
        assert (none.steps, none.exhausted, none.vectors.shape) == (0, True, (1, 2))
        assert none.alpha.shape == none.beta.shape == (0,)
        assert not none.vectors.any()


@pytest.mark.parametrize("size", [1.0, 2.0**-40, 2.0**40])
@pytest.mark.parametrize("rank", [4, 5, 6])
def test_a_block_of_vectors_shows_all_eigenpairs(size: float, rank: int) -> None:
    S = size * turned([2.0, 2.0, 2.0, 3.0, 0.0, 0.0])
    runtime, contribution, _ = shares(S)
    values, V = eigenpairs(runtime, contribution, 6, rank, np.random.default_rng(5))
    assert values == pytest.approx(size * np.array([2.0, 2.0, 2.0, 3.0]))
    assert V.T @ (values[:, None] * V) == pytest.approx(S, abs=1e-12 * size)
    assert runtime.ledger.of("solve")["averagings"] == (1 if rank == 6 else 2)
    none, vectors = eigenpairs(runtime, contribution, 6, 0, np.random.default_rng(5))
    assert none.shape == (0,)
    assert vectors.shape == (0, 6)


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


def test_top_values_by_blocks() -> None:
    """Repeated values are seen by a block; the residual and the number of products are true."""
    S = turned([9.0, 9.0, 8.5, *np.linspace(1.0, 8.0, 57)], seed=1)
    start = np.linalg.qr(np.random.default_rng(0).standard_normal((60, 3)))[0]
    count = 0

    def apply(v: Array) -> Array:
        nonlocal count
        count += 1
        return np.asarray(S @ v)

    found = top_ritz(apply, start, lambda value, residual, steps: residual <= 1e-9)
    assert found.values[:2] == pytest.approx([9.0, 9.0], abs=1e-9)
    assert found.vectors.T @ found.vectors == pytest.approx(np.eye(3), abs=1e-9)
    off = S @ found.vectors[:, 0] - found.vectors[:, 0] * found.values[0]
    assert np.linalg.norm(off) == pytest.approx(found.residual, abs=1e-10)
    assert (count, found.residual <= 1e-9) == (3 * found.steps, True)
    few = top_ritz(apply, start, lambda *_: False, columns=9)
    assert few.steps == 3
    assert few.values[0] <= 9.0
