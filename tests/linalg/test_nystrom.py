"""Nystrom sketches stay below what they approximate, and their norms bound the true ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmac.linalg import nystrom
from ccmac.linalg.nystrom import SHIFT, Nystrom, Shifted, random_signs
from ccmac.linalg.tolerances import EPS


def spread(seed: int, m: int, rank: int, decades: float) -> np.ndarray:
    """Positive semidefinite with eigenvalues over so many decades."""
    random = np.random.default_rng(seed)
    Q = np.linalg.qr(random.standard_normal((m, rank)))[0]
    return (Q * np.logspace(0, -decades, rank)) @ Q.T


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(8, 40),
    size=st.integers(1, 12),
    decades=st.floats(0, 12),
    c=st.sampled_from([1e-6, 1e-3, 1.0]),
    repeated=st.booleans(),
    grown=st.booleans(),
)
def test_a_sketch_stays_below(
    seed: int, m: int, size: int, decades: float, c: float, repeated: bool, grown: bool
) -> None:
    S = spread(seed, m, max(1, m // 2), decades)
    W = random_signs(m, min(size, m), seed)
    if repeated:
        W = np.hstack([W, W[:, :1] * (1 + 1e-9)])
    found = Nystrom.of(W, S @ W, EPS * m * np.linalg.norm(S))
    if grown:
        P = np.linalg.qr(np.random.default_rng(seed).standard_normal((m, 3)))[0]
        P[:, 0] = W[:, 0] + 1e-7 * P[:, 0]  # nearly nothing new
        found = found.grown(P, S @ P)
    M = found.plus(c)
    assert M.share > 0.9
    B = M.B
    whole = B @ B.T + c * np.eye(m)
    least = np.linalg.eigvalsh(S + c * np.eye(m) - M.share * whole)[0]
    assert least >= -100 * m * EPS
    v = np.random.default_rng(seed).standard_normal(m)
    exact = math.sqrt(v @ np.linalg.solve(whole, v))
    assert exact * (1 - 1e-8) <= M.norm(v) <= exact * (1 + 1e-6)
    assert M.solve(v) == pytest.approx(np.linalg.solve(whole, v), rel=1e-6, abs=1e-8 / c)


def test_enough_vectors_give_the_matrix_itself() -> None:
    S = spread(0, 30, 6, 3.0)
    W = random_signs(30, 10, 0)
    found = Nystrom.of(W, S @ W, EPS)
    B = found.B
    assert pytest.approx(S, abs=1e-7) == B @ B.T


def test_images_that_are_off_are_accounted_for() -> None:
    """Y = (S + 1e-4 D) W with an antisymmetric D: the sketch may exceed S, the share says so."""
    S = spread(1, 30, 15, 4.0)
    W = random_signs(30, 10, 1)
    D = np.random.default_rng(1).standard_normal((30, 30))
    D = 1e-4 * (D - D.T) / np.linalg.norm(D - D.T)
    for noise, c in ((np.linalg.norm(D), 1e-1), (np.linalg.norm(D), 1.0)):
        M = Nystrom.of(W, (S + D) @ W, noise).plus(c)
        B = M.B
        rest = S + c * np.eye(30) - M.share * (B @ B.T + c * np.eye(30))
        assert np.linalg.eigvalsh(rest)[0] >= -1e-12
    assert Nystrom.of(W, S @ W).plus(1.0).share == 0.0  # nothing said of the noise


def test_no_vectors() -> None:
    M = Nystrom.nothing(4).plus(2.0)
    v = np.arange(4.0)
    assert M.solve(v) == pytest.approx(v / 2)
    assert M.norm(v) == pytest.approx(np.linalg.norm(v) / math.sqrt(2))
    assert M.share == 1.0


def test_what_rounding_and_noise_may_have_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """S = diag(3, 5), tested along 2 e_1, then 1.5 e_2: every term of ``off`` and ``floor``."""
    eps = 2.0**-14
    noise = 2.0**-10
    monkeypatch.setattr(nystrom, "EPS", eps)
    first = Nystrom.of(np.array([[2.0], [0.0]]), np.array([[6.0], [0.0]]), noise)
    rounding = 2 * eps * 3 * 2 * 6 + 2 * (noise * 2)
    nu = max(SHIFT * 12, 4 * rounding)
    L = math.sqrt(12 + nu)
    B = 6 / math.sqrt(12 + nu)
    off = noise * 2 + 2 * eps * B * L
    assert (first.off, first.floor, first.length) == pytest.approx((off, nu / 2, L))
    assert first.e == pytest.approx(off / math.sqrt(nu / 2))
    both = first.grown(np.array([[0.0], [1.5]]), np.array([[0.0], [7.5]]))
    rounding = 2 * eps * 4 * 1.5 * (7.5 + 1.5 * B**2) + 1.5 * (noise * 1.5)
    beside = 1.5 * (off + 2 * eps * 2 * B * L)
    nu = max(SHIFT * 11.25, 4 * (rounding + beside**2 / first.floor))
    L2 = math.sqrt(11.25 + nu)
    B2 = 7.5 / math.sqrt(11.25 + nu)
    more = noise * 1.5 + 2 * eps * 2 * math.hypot(B, B2) * L2
    assert both.off == pytest.approx(math.hypot(off, more))
    assert both.length == pytest.approx(math.hypot(L, L2))
    turn = 1 + beside / first.floor
    assert both.floor == pytest.approx(min(first.floor, nu / 2) / turn**2)
    assert first.grown(np.zeros((2, 0)), np.zeros((2, 0))) is first


def test_random_signs_are_drawn_for_every_entry() -> None:
    signs = random_signs(64, 7, 3)
    assert signs.shape == (64, 7)
    assert set(np.unique(signs)) == {-0.125, 0.125}
    assert set(np.unique(signs[-4:])) == {-0.125, 0.125}  # the last bytes too
    assert np.abs(signs.sum(axis=0)).max() < 4.0
    assert np.array_equal(signs, random_signs(64, 7, 3))
    assert not np.array_equal(signs, random_signs(64, 7, 4))


def test_the_core_is_shifted_by_a_share_of_its_mean_diagonal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S = diag(3, 5) on the whole space: nu = 0.25 (3 + 5) / 2, B = S L^{-T}."""
    monkeypatch.setattr(nystrom, "SHIFT", 0.25)
    none = Nystrom.nothing(2)
    assert (none.B.shape[1], none.inner.shape, none.noise) == (0, (0, 0), math.inf)
    found = none.grown(np.eye(2), np.diag([3.0, 5.0]))
    B = found.B
    assert pytest.approx(np.diag([1.5, 5 / math.sqrt(6)])) == B
    assert found.inner == pytest.approx(B.T @ B)
    assert (found.floor, found.length) == pytest.approx((0.5, math.sqrt(10)))
    assert np.linalg.norm(found.B) == pytest.approx(np.linalg.norm(B))


def test_a_norm_counts_rounding_and_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """v = (3, 4), B = (2, 0)', c = 4: y = 3/4, and v - B y = (3/2, 4)."""
    eps = 2.0**-14
    v = np.array([3.0, 4.0])
    monkeypatch.setattr(nystrom, "EPS", eps)
    B = np.array([[2.0], [0.0]])
    M = nystrom.Shifted(B, np.array([[4.0]]), 4.0, 0.5)
    assert M.share == 0.75
    assert M.solve(v) == pytest.approx([3 / 8, 1.0])
    rest = math.hypot(1.5, 4.0) + eps * 3 * (5 + 2 * 0.75)
    found = math.hypot(rest / 2, 0.75) * (1 + 2 * eps)
    assert M.norm(v) == pytest.approx(found, rel=1e-12)
    assert M.norm(v, 0.5) == pytest.approx(found + 0.25, rel=1e-12)
    # Where B does not help, the plain norm is the bound.
    plain = nystrom.Shifted(np.zeros((2, 0)), np.zeros((0, 0)), 4.0, 0.0)
    assert plain.norm(v, 0.5) == pytest.approx((5 * (1 + 2 * eps) + 0.5) / 2, rel=1e-12)
    across = np.array([0.0, 5.0])
    assert M.norm(across) == pytest.approx(2.5 * (1 + 2 * eps), rel=1e-12)


def test_a_shift_that_rounding_swallows() -> None:
    """B'B of dependent columns has an eigenvalue below zero; the norm stays an upper bound."""
    B = np.array([[1.0, 1.0 / 3.0], [3.0, 1.0], [1e8, 1e8 / 3.0]])
    inner = B.T @ B - 2.0 * np.array([[0.0, 0.0], [0.0, 1.0]])
    c = 1e-6
    assert np.linalg.eigvalsh(inner + c * np.eye(2))[0] < 0
    found = Shifted(B, inner, c, 0.0)
    v = np.array([1.0, -2.0, 0.5])
    exact = float(v @ np.linalg.solve(B @ B.T + c * np.eye(3), v)) ** 0.5
    assert np.isfinite(found.solve(v)).all()
    assert found.norm(v) >= exact * (1 - 1e-6)
