"""The error bound is a bound, and conjugate residuals deliver what it needs at the stated price."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ccmac
from ccmac.certificates.bound import distance_bound
from ccmac.linalg.conjugate import conjugate_residuals
from ccmac.paper.instances import random_quadratic
from ccmac.realizations.averaged.rule import Wanted, averaged
from ccmac.realizations.base import AffineSystem
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace


@given(st.integers(0, 10**6), st.floats(-6, 2), st.floats(-6, 2))
def test_the_bound_holds_for_any_point_and_any_price(seed: int, off: float, push: float) -> None:
    """Quadratics under K w = v: the KKT solution against the bound at w* + noise."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 9))
    rows = int(rng.integers(1, 4))
    basis = np.linalg.qr(rng.standard_normal((size, size)))[0]
    values = np.exp(rng.uniform(0, 6, size))
    H = basis * values @ basis.T
    K = rng.standard_normal((min(rows, size - 1), size))
    g = rng.standard_normal(size)
    v = rng.standard_normal(len(K))
    kkt = np.block([[H, K.T], [K, np.zeros((len(K), len(K)))]])
    exact = np.linalg.solve(kkt, np.concatenate([g, v]))[:size]
    w = exact + 10**off * rng.standard_normal(size)
    price = np.linalg.lstsq(K.T, g - H @ w, rcond=None)[0]
    p = K.T @ (price + 10**push * rng.standard_normal(len(K)))
    delta = float(np.linalg.norm(np.linalg.pinv(K) @ (K @ w - v)))
    r = float(np.linalg.norm(H @ w - g + p))
    found = distance_bound(r, delta, float(values.min()), float(values.max()))
    assert np.linalg.norm(w - exact) <= found * (1 + 1e-9)


def realized_system(seed: int) -> AffineSystem:
    work = Workspace(random_quadratic(seed, n=4), InProcess(ccmac.Network.ring(4)))
    return averaged(work, Wanted()).system


@pytest.mark.parametrize("seed", range(6))
def test_conjugate_residuals_against_least_squares(seed: int) -> None:
    system = realized_system(seed).homogeneous()
    space = system.space
    G = np.stack([system.residual(e)[0] for e in np.eye(space.size)], axis=1)
    rng = np.random.default_rng(seed)
    v = rng.standard_normal(space.size)
    kernel = v - G @ np.linalg.lstsq(G, v, rcond=1e-10)[0]
    ledger = space.runtime.ledger
    before = ledger.of("solve")
    reduced = conjugate_residuals(system, v, lambda _, image: image <= 1e-9, 200)
    assert np.linalg.norm(reduced.remaining - kernel) <= 1e-6 * np.linalg.norm(v)
    assert np.linalg.norm(v - G @ reduced.y - reduced.remaining) <= 1e-9 * np.linalg.norm(v)
    assert (ledger.of("solve") - before)["affine"] == 2 * (reduced.steps + 2)


@pytest.mark.parametrize("seed", range(6))
def test_no_chebyshev_filter_does_better(seed: int) -> None:
    """After k steps the residual is at most 1/T_k on the true interval, and quotients lie in it."""
    system = realized_system(seed).homogeneous()
    G = np.stack([system.residual(e)[0] for e in np.eye(system.space.size)], axis=1)
    values = np.linalg.eigvalsh((G + G.T) / 2)
    positive = values[values > 1e-9 * values[-1]]
    low = positive[0]
    high = positive[-1]
    v = G @ np.random.default_rng(seed).standard_normal(len(G))
    for limit in (1, 2, 4, 8):
        reduced = conjugate_residuals(system, v, lambda *_: False, limit, trusted=1e-8)
        ratio = np.linalg.norm(reduced.remaining) / np.linalg.norm(v)
        degree = np.cosh(limit * np.arccosh((high + low) / (high - low))) if high > low else np.inf
        assert ratio <= 1 / degree + 1e-8
        assert low * (1 - 1e-9) <= reduced.lowest
        assert reduced.highest <= high * (1 + 1e-9)
