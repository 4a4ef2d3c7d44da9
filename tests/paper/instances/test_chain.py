"""The closed forms of both chains against dense solves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmac.errors import InputError
from ccmac.paper.instances.chain import (
    Chain,
    GroundedChain,
    ReflectedChain,
    matchings,
    sufficient_length,
)


def projectors(length: int, grounded: bool) -> tuple[np.ndarray, np.ndarray]:
    R1, R2 = (R.toarray() for R in matchings(length, grounded))
    np.testing.assert_allclose(R1 @ R1.T, np.eye(len(R1)), atol=1e-15)
    np.testing.assert_allclose(R2 @ R2.T, np.eye(len(R2)), atol=1e-15)
    return R1.T @ R1, R2.T @ R2


def minimiser(P: np.ndarray, delta: float, seed: float) -> np.ndarray:
    return np.linalg.solve(delta * np.eye(len(P)) + P, seed * np.eye(len(P))[0])


def half_path_laplacian(length: int) -> np.ndarray:
    L = 2.0 * np.eye(length) - np.eye(length, k=1) - np.eye(length, k=-1)
    L[0, 0] = L[-1, -1] = 1.0
    return L / 2


@settings(max_examples=40)
@given(delta=st.floats(1e-4, 2.0), length=st.integers(2, 60))
def test_reflected_chain_solves_its_equation_at_every_length(delta, length):
    chain = ReflectedChain(delta, length)
    u = chain.solution
    assert np.linalg.norm(u) == pytest.approx(1.0, abs=1e-13)
    expected = minimiser(half_path_laplacian(length), delta, chain.seed)
    np.testing.assert_allclose(u, expected, atol=1e-10)
    assert chain.energy == pytest.approx(u @ half_path_laplacian(length) @ u, rel=1e-9, abs=1e-15)
    for s in range(length + 1):
        assert chain.tail(s) == pytest.approx(float(np.sum(u[s:] ** 2)), rel=1e-11, abs=1e-15)


@settings(max_examples=40)
@given(kappa=st.floats(100.0, 1e5), t=st.floats(1.0, 10.0), linked=st.booleans())
def test_reflected_chain_inequalities_of_the_radius_uniform_family(kappa, t, linked):
    delta = 3.0 / (kappa * t * t) if linked else 3.0 / (kappa - 1.0)
    alpha = Chain(delta, 2).alpha
    chain = ReflectedChain(delta, 2 * math.ceil(10 / alpha))
    assert alpha == pytest.approx(math.acosh(1 + delta), rel=1e-9)
    assert alpha <= 0.25
    assert 20 <= alpha * chain.length < 20.5
    rho = chain.r ** (2 * chain.length)
    assert chain.energy <= chain.a**2 / (2 * (1 - rho)) * (1 + 1e-12)
    assert chain.tail(math.floor(1 / (2 * alpha))) >= 0.998 / math.e
    if linked:
        assert t * t * chain.energy <= 4 / kappa
        assert t * chain.a <= math.sqrt(6 / kappa)


@pytest.mark.parametrize(("kappa", "linked", "alpha"), [(100, True, 0.2443), (100, False, 0.2456)])
def test_largest_alpha_of_the_family(kappa, linked, alpha):
    delta = 3 / kappa if linked else 3 / (kappa - 1)
    assert Chain(delta, 2).alpha == pytest.approx(alpha, abs=5e-5)


@settings(max_examples=40)
@given(delta=st.floats(1e-4, 2.0), length=st.integers(2, 60))
def test_grounded_chain_solves_its_cut_equation(delta, length):
    chain = GroundedChain(delta, length)
    P = sum(projectors(length, grounded=True))
    u = minimiser(P, delta, chain.seed)
    np.testing.assert_allclose(chain.solution, u, atol=1e-10)
    assert chain.energy == pytest.approx(u @ P @ u, rel=1e-9)
    infinite = chain.amplitude * chain.r ** np.arange(length)
    missing = chain.r ** (2 * length)
    distance = math.sqrt(float(np.sum((chain.solution - infinite) ** 2)) + missing)
    # the difference of two vectors of norm one carries their rounding
    assert distance <= chain.truncation_error + 1e-15


@pytest.mark.parametrize("delta", [1e-3, 0.03, 0.7])
def test_grounded_chain_tends_to_the_stated_limits(delta):
    chain = GroundedChain(delta, sufficient_length(delta, 1e-12))
    assert np.linalg.norm(chain.solution) == pytest.approx(1.0, abs=1e-14)
    assert chain.energy == pytest.approx((1 - chain.r) * (3 + chain.r) / 2, rel=1e-12)


def test_refusals():
    with pytest.raises(InputError, match="delta > 0"):
        Chain(0.0, 5)
    with pytest.raises(InputError, match="between 0 and 1"):
        sufficient_length(0.1, 2.0)
    with pytest.raises(InputError, match="larger eps"):
        sufficient_length(1e-12, 1e-6)
