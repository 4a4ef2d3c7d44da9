"""Closed forms, deduplication, structural parameters, rebalancing, and vertical learning."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmac import Agent, Network, Problem
from ccmac.angles.measure import geometry
from ccmac.angles.principal import cross_factor, friedrichs_cosine
from ccmac.angles.structural import lanczos_spectrum
from ccmac.errors import InputError
from ccmac.objectives import Separable, SquaredDistance
from ccmac.paper import data

OBJECTIVE = Separable(SquaredDistance(1.0), SquaredDistance(1.0))


def drawn(rng: np.random.Generator, n: int, p: int, r: int, *, q: int = 4, m: int = 5) -> Problem:
    def block(rows: int, columns: int) -> np.ndarray | None:
        return rng.standard_normal((rows, columns)) if rows else None

    agents = [
        Agent(OBJECTIVE, A=block(m, 3), B=block(m, q), C=block(p, 3), D=block(r, q))
        for _ in range(n)
    ]
    return Problem(agents)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 4), p=st.integers(0, 2), r=st.integers(0, 2))
def test_structural_parameters(seed: int, n: int, p: int, r: int) -> None:
    """Straight from Equation eq:normalization-structural."""
    problem = drawn(np.random.default_rng(seed), n, p, r)
    found = geometry(problem, network=Network.path(n)).structural
    assert found is not None
    S_HC = np.zeros((5, 5))
    S_D = np.zeros((4, 4))
    h = d_D = 0.0
    for a in problem.agents.values():
        P = np.eye(3) if a.C is None else np.eye(3) - np.linalg.pinv(a.C) @ a.C
        S_HC += (a.A @ P @ a.A.T + a.B @ a.B.T) / n
        h = max(h, float(np.linalg.eigvalsh(a.A @ a.A.T + a.B @ a.B.T)[-1]))
        if a.D is not None:
            S_D += a.D.T @ a.D / n
            d_D = max(d_D, float(np.linalg.norm(a.D, 2) ** 2))
    values = np.linalg.eigvalsh(S_HC)
    mu = values[values > 1e-10 * values[-1]][0]
    assert (found.h, found.mu_HC) == pytest.approx((h, mu), rel=1e-7)
    assert found.k_1 == pytest.approx(h / mu, rel=1e-7)
    if r:
        values = np.linalg.eigvalsh(S_D)
        assert found.k_2 == pytest.approx(d_D / values[values > 1e-10 * values[-1]][0], rel=1e-7)
    else:
        assert (found.k_2, found.d_D, found.rank_D) == (1.0, 0.0, 0)
    if p:
        s = [np.linalg.svd(a.C, compute_uv=False) ** 2 for a in problem.agents.values()]
        assert found.kappa_C == pytest.approx(
            max(v[0] for v in s) / min(v[-1] for v in s), rel=1e-7
        )
    else:
        assert found.kappa_C == 1.0
    assert found.kappa_W == Network.path(n).condition


def test_lanczos_ends() -> None:
    values = np.linspace(0.5, 40.0, 300)
    found = lanczos_spectrum(300, lambda v: values * v)
    assert (found.low, found.high) == pytest.approx((0.5, 40.0), rel=1e-6)
    values[:3] = 0.0
    assert lanczos_spectrum(300, lambda v: values * v).low is None


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 4), p=st.integers(0, 2), r=st.integers(0, 2))
def test_uniform_rebalancing_is_best(seed: int, n: int, p: int, r: int) -> None:
    """chi after equal weights is what was promised and is not beaten by other redistributions."""
    rng = np.random.default_rng(seed)
    problem = drawn(rng, n, p, r)
    before = geometry(problem)
    even = geometry(problem.rebalanced(), method="dense")
    assert even.cross_factor == pytest.approx(before.rebalanced_cross_factor, rel=1e-8)
    assert even.cross_factor <= before.cross_factor * (1 + 1e-9)
    if r == 0:
        assert even.cross_factor == pytest.approx(1.0, abs=1e-9)
    total = sum(a.B for a in problem.agents.values())
    for _ in range(3):
        w = rng.standard_normal(n)
        w += (1 - w.sum()) / n
        agents = {i: replace(a, B=w[i] * total) for i, a in problem.agents.items()}
        other = geometry(problem.holding(agents))
        assert other.cross_factor >= even.cross_factor * (1 - 1e-9)
    np.testing.assert_allclose(sum(a.B for a in problem.rebalanced().agents.values()), total)


def test_rebalancing_keeps_structure() -> None:
    eye = sp.csr_array(sp.eye_array(4))
    problem = Problem([Agent(OBJECTIVE, A=np.eye(4), B=k * eye) for k in (1.0, 3.0)])
    for agent in problem.rebalanced().agents.values():
        assert isinstance(agent.B, sp.csr_array)
        np.testing.assert_array_equal(agent.B.toarray(), 2.0 * np.eye(4))
    with pytest.raises(InputError, match="holds 1 of 2"):
        problem.restricted(range(1)).rebalanced()


# -- vertical learning ----------------------------------------------------------------------
def vertical(X: sp.csr_array, y: np.ndarray, n: int, chi: float) -> Problem:
    """Agents with column blocks of X and B_i = -alpha_i I, alpha chosen for the target chi."""
    N, d = X.shape
    c = (chi**2 - 1) / (chi**2 + 1)
    deviation = np.linspace(-1, 1, n)
    deviation *= c / np.sqrt(n * (1 - c * c)) / np.linalg.norm(deviation)
    objective = Separable(SquaredDistance(1e-2), SquaredDistance(1 / n, y / np.sqrt(N)))
    columns = np.array_split(np.random.default_rng(0).permutation(d), n)
    return Problem(
        [
            Agent(objective, A=sp.csr_array(X[:, k]) / np.sqrt(N), B=-a * sp.eye_array(N))
            for k, a in zip(columns, 1 / n + deviation, strict=True)
        ]
    )


@pytest.fixture(scope="module")
def a9a() -> data.Dataset:
    return data.load("a9a", fallback=True)


@pytest.mark.parametrize("chi", [1, 1.5, 8])
def test_a9a_has_the_designed_cross_factor(a9a: data.Dataset, chi: float) -> None:
    """N = 32,561 samples, 8 agents: never an N x N matrix."""
    problem = vertical(a9a.X, a9a.y, 8, chi)
    geo = geometry(problem)
    assert geo.cross_factor == pytest.approx(chi, rel=1e-6)
    assert geo.rebalanced_cross_factor == 1.0
    assert geo.structural is not None
    beta = np.array([B.diagonal()[0] for B in problem.blocks("B")])
    assert geo.structural.mu_HC == pytest.approx(float(beta @ beta) / 8, rel=1e-12)


@pytest.mark.parametrize(("N", "d"), [(12, 5), (9, 8), (20, 4)])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("local", [0, 1])
def test_equations_beyond_the_features_need_no_decomposition(
    N: int, d: int, centred: bool, local: int
) -> None:
    """More samples than features; alpha with and without a mean."""
    rng = np.random.default_rng(N)
    X = sp.csr_array(rng.standard_normal((N, d)))
    alpha = rng.standard_normal(4)
    alpha -= alpha.mean() if centred else 0.0
    columns = np.array_split(np.arange(d), 4)
    problem = Problem(
        [
            Agent(
                OBJECTIVE,
                A=X[:, k],
                B=a * sp.eye_array(N),
                C=rng.standard_normal((local, len(k))) if local else None,
            )
            for k, a in zip(columns, alpha, strict=True)
        ]
    )
    expected = geometry(problem, method="dense")
    found = geometry(problem, dense_limit=d + 1)
    assert found.method == "dense"
    assert found.cross_factor == pytest.approx(expected.cross_factor, rel=1e-8)
    assert found.common_dimension == expected.common_dimension
    assert found.ranks == expected.ranks
    assert found.multi_channel_factor == pytest.approx(expected.multi_channel_factor, rel=1e-8)
    np.testing.assert_allclose(found.agents, expected.agents, atol=1e-9)
    assert found.structural is not None
    assert expected.structural is not None
    for name in ("h", "mu_HC", "lambda_HC", "rank_HC", "k_1"):
        assert getattr(found.structural, name) == pytest.approx(
            getattr(expected.structural, name), rel=1e-8
        ), name


@settings(max_examples=60)
@given(theta=st.floats(1e-3, np.pi / 2))
def test_cross_factor_and_cosine_are_inverse(theta: float) -> None:
    """chi = cot(theta/2); with the sine given, also where the cosine has lost the angle."""
    c = float(np.cos(theta))
    s = float(np.sin(theta))
    assert cross_factor(c, s) == pytest.approx(1 / np.tan(theta / 2), rel=1e-14)
    assert cross_factor(c) == pytest.approx(cross_factor(c, s), rel=1e-9)
    assert friedrichs_cosine(cross_factor(c)) == pytest.approx(c, rel=1e-12, abs=1e-12)
    assert cross_factor(1.0, 1e-9) == pytest.approx(2e9, rel=1e-15)
    assert cross_factor(1.0) == cross_factor(1.0, 0.0) == np.inf
    assert (cross_factor(0.0), friedrichs_cosine(1.0)) == (1.0, 0.0)
