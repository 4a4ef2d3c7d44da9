"""Geometry against closed forms, explicit projectors and independent eigenvalue problems."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.linalg as sla
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmac import Agent, Network, Problem
from ccmac.angles.measure import geometry
from ccmac.errors import InputError
from ccmac.objectives import Separable, SquaredDistance
from ccmac.paper.canonical_channels import canonical_channels
from ccmac.stack import Stack

OBJECTIVE = Separable(SquaredDistance(1.0), SquaredDistance(1.0))
METHODS = ("dense", "sparse")


def stack_of(*matrices: np.ndarray) -> Stack:
    return Stack(SquaredDistance(1.0), [(M, None) for M in matrices])


def random_problem(
    rng: np.random.Generator, n: int, d: int, q: int, m: int, p: int = 0, r: int = 0
) -> Problem:
    def block(rows: int, columns: int) -> np.ndarray | None:
        return rng.standard_normal((rows, columns)) if rows else None

    return Problem(
        [
            Agent(OBJECTIVE, A=block(m, d), B=block(m, q), C=block(p, d), D=block(r, q))
            for _ in range(n)
        ]
    )


def projector_spectrum(problem: Problem) -> np.ndarray:
    """Eigenvalues of P_U + P_V from pseudo-inverses: independent of any angle code."""
    channels = canonical_channels(problem, Network.complete(problem.n))
    projectors = [np.linalg.pinv(K, rcond=1e-11) @ K for K in channels.to_dense()]
    return np.linalg.eigvalsh(projectors[0] + projectors[1])


def two_agents(t: float) -> Problem:
    return Problem(
        [
            Agent(OBJECTIVE, A=[[1.0]], B=[[1 + t]], b=[1.0]),
            Agent(OBJECTIVE, A=[[1.0]], B=[[1 - t]]),
        ]
    )


@pytest.mark.parametrize("t", [0, 1e-6, 1, 10, 1e4])
def test_two_agent_family(t: float) -> None:
    found = geometry(two_agents(t))
    c = abs(t) / np.sqrt(2 + t * t)
    assert found.friedrichs_cosine == pytest.approx(c, abs=1e-12, rel=1e-12)
    # chi in closed form without cancellation: 1 - c = (2 / (2 + t^2)) / (1 + c).
    chi = (1 + c) * np.sqrt((2 + t * t) / 2)
    assert found.cross_factor == pytest.approx(chi, rel=1e-9)
    assert found.rebalanced_cross_factor == 1.0


def test_alternating_matchings_of_a_path() -> None:
    """Lemma lem:path-matching: c_F = cos(pi/N), chi = cot(pi/2N)."""
    for N in range(3, 65):
        E = np.eye(N)[:-1] - np.eye(N)[1:]
        found = geometry(stack_of(E[::2], E[1::2]))
        assert found.cross_factor == pytest.approx(1 / np.tan(np.pi / (2 * N)), rel=1e-11)
        assert found.friedrichs_cosine == pytest.approx(np.cos(np.pi / N), rel=1e-12)


@pytest.mark.parametrize("theta", [np.pi / 2, 1.0, 0.1, 1e-3, 1e-6, 1e-8])
def test_two_dimensional_obstruction(theta: float) -> None:
    """Proposition prop:2d; a near-overlap of 1e-6 rad is hard, not common."""
    M_1 = np.array([[1.0, 0.0]])
    M_2 = np.array([[np.cos(theta), np.sin(theta)]])
    found = geometry(stack_of(M_1, M_2))
    assert found.common_dimension == 0
    assert found.cross_factor == pytest.approx(1 / np.tan(theta / 2), rel=1e-7)
    if theta >= 1e-3:
        kappa = np.linalg.cond(np.vstack([M_1, M_2])) ** 2
        assert found.cross_factor**2 == pytest.approx(kappa, rel=1e-6)


def test_exact_overlap_is_benign() -> None:
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((8, 8)))[0].T
    shared = Q[:2]
    own = Q[2:4]
    other = Q[4:6]
    found = geometry(stack_of(np.vstack([shared, own]), np.vstack([shared, other])))
    assert found.common_dimension == 2
    assert found.cross_factor == pytest.approx(1.0, abs=1e-12)
    assert found.multi_channel_factor == pytest.approx(np.sqrt(2.0), rel=1e-12)
    same = geometry(stack_of(shared, 3 * shared))
    assert (same.common_dimension, same.cross_factor, same.multi_channel_factor) == (2, 1.0, 1.0)


def test_no_cross_coupling_gives_exactly_one() -> None:
    rng = np.random.default_rng(1)
    A = rng.standard_normal((3, 4))
    C = rng.standard_normal((2, 4))
    D = rng.standard_normal((1, 2))
    problem = Problem([Agent(OBJECTIVE, A=A, C=C, D=D) for _ in range(3)], q=2)
    for method in METHODS:
        assert geometry(problem, method=method).cross_factor == 1.0


def test_pairwise_angles_do_not_decide_for_three() -> None:
    """Lemma lem:pairwise-insufficient: the same cosines, two different factors."""
    c = 0.3
    factors = []
    for sign in (1, -1):
        H = np.array([[1, c, c], [c, 1, sign * c], [c, sign * c, 1]])
        rows = np.linalg.cholesky(H)
        found = geometry(stack_of(*(row[None] for row in rows)))
        assert found.pairwise is not None
        np.testing.assert_allclose(
            np.abs(found.pairwise - np.eye(3)), c * (1 - np.eye(3)), atol=1e-13
        )
        values = np.linalg.eigvalsh(H)
        assert found.multi_channel_factor == pytest.approx(
            np.sqrt(values[-1] / values[0]), rel=1e-12
        )
        factors.append(found.cross_factor)
    assert factors[0] == pytest.approx(np.sqrt((1 + 2 * c) / (1 - c)))
    assert factors[1] == pytest.approx(np.sqrt((1 + c) / (1 - 2 * c)))


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 4),
    d=st.integers(1, 4),
    q=st.integers(1, 5),
    m=st.integers(1, 7),
    p=st.integers(0, 2),
    r=st.integers(0, 2),
)
def test_methods_agree_with_explicit_projectors(
    seed: int, n: int, d: int, q: int, m: int, p: int, r: int
) -> None:
    """Any pattern of blocks, ranks and overlaps: P_U + P_V has 2 (common), 1 +- cos, 1."""
    problem = random_problem(np.random.default_rng(seed), n, d, q, m, p, r)
    spectrum = projector_spectrum(problem)
    common = int(np.sum(spectrum > 2 - 1e-9))
    inner = spectrum[(spectrum > 1e-7) & (spectrum < 2 - 1e-9)]
    cosine = max(0.0, 1 - inner.min()) if len(inner) else 0.0
    positive = spectrum[spectrum > 1e-7]
    factor = np.sqrt(positive.max() / positive.min()) if len(positive) else 1.0
    for method in METHODS:
        found = geometry(problem, method=method, dense_limit=1 if method == "sparse" else 1000)
        assert found.friedrichs_cosine == pytest.approx(cosine, abs=1e-7), method
        assert found.common_dimension == common, method
        assert found.multi_channel_factor == pytest.approx(factor, rel=1e-5), method
        chi = found.cross_factor
        assert found.multi_channel_factor is not None
        assert chi * (1 - 1e-12) <= found.multi_channel_factor <= np.sqrt(2) * chi * (1 + 1e-12)
    channels = canonical_channels(problem, Network.complete(problem.n)).to_dense()
    stacked = geometry(stack_of(*channels))
    found = geometry(problem)
    assert stacked.ranks == found.ranks
    np.testing.assert_allclose(stacked.principal_angles, found.principal_angles, atol=1e-8)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 5))
def test_heterogeneity_is_the_generalized_eigenvalue(seed: int, n: int) -> None:
    """Proposition prop:heterogeneity: c_F^2 = lambda_max(H_0^{-1/2} H_het H_0^{-1/2})."""
    problem = random_problem(np.random.default_rng(seed), n, 3, 2, 4)
    agents = problem.agents.values()
    H_0 = sum(a.A @ a.A.T + a.B @ a.B.T for a in agents)
    mean = sum(a.B for a in agents) / n
    H_het = sum((a.B - mean) @ (a.B - mean).T for a in agents)
    top = sla.eigh(H_het, H_0, eigvals_only=True)[-1]
    assert geometry(problem).friedrichs_cosine ** 2 == pytest.approx(top, rel=1e-9)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), power=st.floats(0, 3))
def test_invariance_under_row_mixing_and_networks(seed: int, power: float) -> None:
    """Left mixing of condition up to 1e3 and any connected W leave the angle alone."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, 4, 3, 3, 4, 1, 1)
    expected = geometry(problem).friedrichs_cosine
    for network in (Network.path(4), Network.star(4), Network.complete(4)):
        K = canonical_channels(problem, network).to_dense()
        mixed = []
        for M in K:
            rows = len(M)
            U, V = (np.linalg.qr(rng.standard_normal((rows, rows)))[0] for _ in range(2))
            mixed.append(U @ np.diag(np.logspace(0, power, rows)) @ V @ M)
        found = geometry(stack_of(*mixed))
        assert found.friedrichs_cosine == pytest.approx(expected, rel=1e-8)


def test_lift_scalings_do_not_enter() -> None:
    """Proposition prop:lift-invariance: gamma rescales rows of K_2, alpha those of no channel."""
    problem = random_problem(np.random.default_rng(5), 3, 2, 3, 3, 1, 1)
    K_1, K_2 = canonical_channels(problem, Network.ring(3)).to_dense()
    expected = geometry(problem).cross_factor
    for gamma in (1e-6, 1.0, 1e6):
        scaled = np.vstack([K_2[:3], gamma * K_2[3:]])
        assert geometry(stack_of(K_1, scaled)).cross_factor == pytest.approx(expected, rel=1e-8)


def test_separate_preconditioning_cannot_beat_chi() -> None:
    """Theorem thm:blockwise-opt: 200 random pairs stay above chi^2; whitening attains it."""
    rng = np.random.default_rng(7)
    M_1 = rng.standard_normal((3, 9))
    M_2 = rng.standard_normal((4, 9))
    chi2 = geometry(stack_of(M_1, M_2)).cross_factor ** 2
    for _ in range(200):
        S_1 = rng.standard_normal((3, 3))
        S_2 = rng.standard_normal((4, 4))
        assert np.linalg.cond(np.vstack([S_1 @ M_1, S_2 @ M_2])) ** 2 >= chi2 * (1 - 1e-9)
    white = [sla.inv(sla.sqrtm(M @ M.T)).real @ M for M in (M_1, M_2)]
    assert np.linalg.cond(np.vstack(white)) ** 2 == pytest.approx(chi2, rel=1e-9)


def test_culprits_are_named() -> None:
    """One agent's B is far from the mean: it has the largest share, and the report says so."""
    agents = [
        Agent(OBJECTIVE, A=np.eye(3), B=np.eye(3) * (1.0 if i != 2 else 9.0)) for i in range(5)
    ]
    found = geometry(Problem(agents))
    # Deviations are -1.6 (four times) and 6.4: the shares follow without any eigenvector.
    np.testing.assert_allclose(found.agents, [0.05, 0.05, 0.8, 0.05, 0.05], atol=1e-12)
    text = str(found)
    assert "agent 2 (80%)" in " ".join(text.split())
    assert "rebalanced" in text
    assert max(len(line) for line in text.splitlines()) <= 80
    data = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert data["method"] == "dense"
    assert data["cross_factor"] == found.cross_factor


def test_near_overlap_in_a_problem_is_hard() -> None:
    """Almost all coupling is through the disagreement: theta ~ 1e-6, so chi ~ 2e6."""
    s = 1e-6
    agents = [Agent(OBJECTIVE, A=[[s]], B=[[1.0]]), Agent(OBJECTIVE, A=[[s]], B=[[-1.0]])]
    found = geometry(Problem(agents))
    assert found.common_dimension == 0
    assert found.cross_factor == pytest.approx(2 / s, rel=1e-6)
    agents = [Agent(OBJECTIVE, A=[[0.0]], B=[[1.0]]), Agent(OBJECTIVE, A=[[0.0]], B=[[-1.0]])]
    for method in METHODS:
        found = geometry(Problem(agents), method=method)
        assert (found.common_dimension, found.cross_factor) == (1, 1.0)


def test_a_stack_too_large_for_dense_bases() -> None:
    rng = np.random.default_rng(3)
    matrices = [sp.csr_array(rng.standard_normal((6, 60))) for _ in range(3)]
    exact = geometry(stack_of(*matrices[:2]))
    found = geometry(stack_of(*matrices[:2]), method="sparse")
    assert found.cross_factor == pytest.approx(exact.cross_factor, rel=1e-6)
    np.testing.assert_allclose(found.pairwise, exact.pairwise, atol=1e-8)
    with pytest.raises(InputError, match="3 channels is decomposed densely"):
        geometry(stack_of(*matrices), dense_limit=1)


def test_operator_blocks() -> None:
    rng = np.random.default_rng(4)
    dense = random_problem(rng, 3, 3, 2, 4, 1, 1)
    wrapped = Problem(
        [
            Agent(OBJECTIVE, **{k: sp.linalg.aslinearoperator(getattr(a, k)) for k in "ABCD"})
            for a in dense.agents.values()
        ]
    )
    expected = geometry(dense).cross_factor
    for method in METHODS:
        limit = 1 if method == "sparse" else 1000
        found = geometry(wrapped, method=method, dense_limit=limit)
        assert found.cross_factor == pytest.approx(expected, rel=1e-6)


def test_refusals() -> None:
    problem = two_agents(1.0)
    with pytest.raises(InputError, match="method 'fast' is unknown"):
        geometry(problem, method="fast")
    with pytest.raises(InputError, match="holds 1 of 2 agents"):
        geometry(problem.restricted(range(1)))
    with pytest.raises(InputError, match="network: has 3 agents"):
        geometry(problem, network=Network.ring(3))
    with pytest.raises(InputError, match="channel 1: M has 3 columns"):
        stack_of(np.eye(2), np.eye(3))
    with pytest.raises(InputError, match="v has shape"):
        Stack(SquaredDistance(1.0), [(np.eye(2), [1.0])])
    with pytest.raises(InputError, match="NaN or infinite"):
        stack_of(np.array([[np.nan, 1.0]]))
    with pytest.raises(InputError, match="acts on 3 entries"):
        Stack(SquaredDistance(1.0, np.zeros(3)), [(np.eye(2), None)])
