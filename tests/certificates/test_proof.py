"""The proved error, its two parts and its rounding, each against exact arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adversarial import suite
from adversarial.draft import Array, Draft
from adversarial.exact import Exact
from adversarial.families import base
from ccmac import Agent, Network, Problem
from ccmac.certificates import bound as module
from ccmac.certificates.bound import Proof, Proved
from ccmac.certificates.multipliers import Multipliers
from ccmac.objectives import Logistic, Quadratic
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from certificates.points import distance, flat, pieces, stationarity, workspace

SEEDS = st.integers(0, 10**4)
CLOSE = 1 + 1e-12  # of comparing numbers that were rounded once


def proof_of(draft: Draft) -> Proof:
    """The proof, which must be possible here."""
    found = Proof.of(workspace(draft))
    assert found is not None
    return found


def noisy(draft: Draft, random: np.random.Generator, size: float) -> tuple[Array, Array]:
    """The planted point moved by ``size``; every agent's copy of z by a little of its own."""
    x, copies = flat(draft, draft.x, draft.z)
    x = x + size * random.standard_normal(x.shape)
    return x, copies + size * random.standard_normal(copies.shape)


def exact_parts(draft: Draft, said: Proved) -> tuple[float, float, float]:
    """(error, stationarity at the price given, distance to the equations) of the point."""
    exact = Exact(draft)
    u = exact.point(pieces(draft, said.x), said.z)
    return exact.error(u), stationarity(exact, u, said.multiplier), distance(exact, u)


@given(SEEDS, st.floats(-12, 4))
@settings(max_examples=60)
def test_error_stationarity_and_distance_are_bounded(seed: int, power: float) -> None:
    random = np.random.default_rng(seed)
    draft = base(random, p=int(random.integers(0, 3)), r=int(random.integers(0, 3))).plant()
    found = proof_of(draft)
    said = found.at(*noisy(draft, random, 10**power))
    error, r, delta = exact_parts(draft, said)
    assert error <= said.error * CLOSE
    assert r <= said.stationarity * CLOSE
    assert delta <= said.infeasibility * CLOSE
    # Neither is much larger than it must be.
    size = said.size
    assert said.stationarity <= r * (1 + 1e-9) + 1e-13 * (found.L * size + 50)
    assert said.infeasibility <= 1e-11 * (1 + size)
    assert said.size == pytest.approx(float(np.linalg.norm([*said.x, *said.z])), rel=1e-12)
    # The bound is taken at a point with more digits than the one returned.
    assert said.error <= CLOSE * module.distance_bound(
        said.stationarity, said.infeasibility, found.mu, found.L
    )


@pytest.mark.parametrize(
    "family",
    [
        "near-local",
        "near-shared",
        "near-across",
        "near-coupled",
        "near-mixed",
        "two-agents",
        "row-scales",
        "block-scales",
        "curvature",
    ],
)
def test_bounds_hold_where_equations_are_hard(family: str) -> None:
    for seed in range(8):
        draft = suite.make(family, seed).draft
        random = np.random.default_rng(seed)
        found = proof_of(draft)
        for size in (0.0, 1e-6, 1e3):
            said = found.at(*noisy(draft, random, size))
            error, _, delta = exact_parts(draft, said)
            assert error <= said.error * CLOSE, (seed, size)
            assert delta <= said.infeasibility * CLOSE, (seed, size)


@given(SEEDS)
@settings(max_examples=15)
def test_the_price_is_the_one_that_cancels_most(seed: int) -> None:
    """Least squares over all multipliers of the stacked equations, at the repaired point."""
    random = np.random.default_rng(seed)
    draft = base(random, p=1, r=1).plant()
    said = proof_of(draft).at(*noisy(draft, random, 1.0))
    exact = Exact(draft)
    u = np.concatenate([said.x, said.z])
    H = np.array(exact.H.tolist(), dtype=float)
    gradient = H @ u - np.array([float(v) for v in exact.g.entries()])
    best = gradient - exact.rows.T @ np.linalg.lstsq(exact.rows.T, gradient, rcond=1e-11)[0]
    assert said.stationarity == pytest.approx(float(np.linalg.norm(best)), rel=1e-9, abs=1e-11)


def _small(H: Array, g: Array, **blocks: object) -> Proof:
    work = Workspace(
        Problem([Agent(Quadratic(H, g), **blocks)], q=1), InProcess(Network.complete(1))
    )  # type: ignore[arg-type]
    found = Proof.of(work)
    assert found is not None
    return found


def test_by_hand() -> None:
    """min x^2/2 + z^2/2 - z with x + 2 z = 4: (x, z) = (0.4, 1.8), y = -0.4."""
    found = _small(np.eye(2), np.array([0.0, 1.0]), A=[[1.0]], B=[[2.0]], b=[4.0])
    said = found.at(np.array([0.4]), np.array([[1.8]]))
    assert said.multiplier == pytest.approx([-0.4])
    assert said.error < 1e-14
    # Along the equation by (2, -1): nothing to repair, and grad F + price K is what is left.
    said = found.at(np.array([2.4]), np.array([[0.8]]))
    assert said.x == pytest.approx([2.4])
    assert said.z == pytest.approx([0.8])
    assert said.stationarity == pytest.approx(math.sqrt(5))
    assert said.error == pytest.approx(math.sqrt(5))
    # Across it by (1, 2): repaired.
    said = found.at(np.array([1.4]), np.array([[3.8]]))
    assert said.x == pytest.approx([0.4])
    assert said.z == pytest.approx([1.8])
    assert said.error < 1e-14
    assert said.gradient_x == pytest.approx([0.4])
    assert said.gradient_z == pytest.approx(np.array([[0.8]]))


def test_curvature_is_that_of_the_sum() -> None:
    """Separable: the z parts add up, the x parts do not. Mixed: least and sum of the agents'."""
    x_only = [Quadratic(np.diag([a, b]), np.zeros(2)) for a, b in ((2.0, 1.0), (8.0, 4.0))]
    agents = [Agent(f, A=[[1.0]], b=[0.0]) for f in x_only]
    found = Proof.of(Workspace(Problem(agents, q=1), InProcess(Network.complete(2))))
    assert found is not None
    assert found.mu == 2.0 - 2 * 2.0**-52 * (1 + 1) * 8.0  # less what a decomposition may round
    assert found.L == 8.0
    mixed = np.array([[3.0, 1.0], [1.0, 3.0]])
    agents = [Agent(Quadratic(k * mixed, np.zeros(2)), A=[[1.0]], b=[0.0]) for k in (1.0, 2.0)]
    found = Proof.of(Workspace(Problem(agents, q=1), InProcess(Network.complete(2))))
    assert found is not None
    assert found.mu == pytest.approx(2.0, rel=1e-12)
    assert found.mu < 2.0
    assert pytest.approx(12.0) == found.L


@given(SEEDS, st.floats(-10, 2))
@settings(max_examples=25)
def test_logistic_losses_against_newton(seed: int, power: float) -> None:
    """Far and near the solution of a dense Newton method on the same equations."""
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 4))
    d = 3
    q = 2
    ridge = float(10 ** random.uniform(-3, 0))
    M = [random.standard_normal((4, d + q)) for _ in range(n)]
    y = [np.sign(random.standard_normal(4)) for _ in range(n)]
    A = [random.standard_normal((1, d)) for _ in range(n)]
    C = [random.standard_normal((1, d)) for _ in range(n)]
    D = random.standard_normal((1, q))
    B = random.standard_normal((1, q))
    agents = [
        Agent(
            Logistic(M[i], y[i], ridge=ridge),
            A=A[i],
            B=B,
            b=[1.0],
            C=C[i],
            c=[0.5],
            D=D if i == 0 else None,
            e=[0.25] if i == 0 else None,
        )
        for i in range(n)
    ]
    K = np.zeros((n + 2, n * d + q))
    for i in range(n):
        K[0, i * d : (i + 1) * d] = A[i]
        K[1 + i, i * d : (i + 1) * d] = C[i]
    K[0, n * d :], K[-1, n * d :] = n * B, D
    right = np.array([float(n), *[0.5] * n, 0.25])
    u = _newton(M, y, ridge, K, right, d)
    found = Proof.of(Workspace(Problem(agents), InProcess(Network.complete(n))))
    assert found is not None
    moved = u + 10**power * random.standard_normal(len(u))
    copies = np.ascontiguousarray(np.broadcast_to(moved[n * d :], (n, q)))
    said = found.at(moved[: n * d], copies)
    error = float(np.linalg.norm(np.concatenate([said.x, said.z]) - u))
    assert error <= said.error + 1e-11
    assert said.error <= 1e6 * error + 1e-8


def _newton(M: list[Array], y: list[Array], ridge: float, K: Array, right: Array, d: int) -> Array:
    """Damped Newton steps on K u = right."""
    n = len(M)
    size = K.shape[1]
    picks = [np.r_[i * d : (i + 1) * d, n * d : size] for i in range(n)]
    u = np.linalg.lstsq(K, right, rcond=None)[0]
    for _ in range(200):
        g = np.zeros(size)
        H = np.zeros((size, size))
        for m, labels, at in zip(M, y, picks, strict=True):
            tail = 1 / (1 + np.exp(labels * (m @ u[at])))
            g[at] += -m.T @ (labels * tail) + ridge * u[at]
            H[np.ix_(at, at)] += m.T * (tail * (1 - tail)) @ m + ridge * np.eye(len(at))
        rows = len(K)
        kkt = np.block([[H, K.T], [K, np.zeros((rows, rows))]])
        move = np.linalg.solve(kkt, np.concatenate([-g, right - K @ u]))[:size]
        u = u + move * min(1.0, 2 / (1e-300 + float(np.linalg.norm(move))))
        if np.linalg.norm(move) < 1e-14 * (1 + np.linalg.norm(u)):
            break
    return u


def test_no_proof_without_strong_convexity_or_affordable_equations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent = Agent(Quadratic(np.diag([1.0, 0.0]), np.zeros(2)), A=[[1.0]], B=[[1.0]], b=[1.0])
    assert Proof.of(Workspace(Problem([agent]), InProcess(Network.complete(1)))) is None
    # Below what the decomposition of the Hessian can tell from zero.
    agent = Agent(Quadratic(np.diag([1.0, 2.0**-53]), np.zeros(2)), A=[[1.0]], B=[[1.0]], b=[1.0])
    assert Proof.of(Workspace(Problem([agent]), InProcess(Network.complete(1)))) is None
    draft = base(np.random.default_rng(0)).plant()
    assert Proof.of(workspace(draft)) is not None
    monkeypatch.setattr("ccmac.workspace.equations.ROWS", 0)
    assert Proof.of(workspace(draft)) is None


def test_residuals_objective_and_prices_are_those_of_the_point() -> None:
    """All in the message that judges it, against exact arithmetic."""
    for seed in range(6):
        random = np.random.default_rng(seed)
        draft = base(random, p=1, r=1).plant()
        said = proof_of(draft).at(*noisy(draft, random, 1.0))
        exact = Exact(draft)
        report = said.report
        assert report is not None
        u = exact.point(pieces(draft, said.x), said.z)
        assert report.objective == pytest.approx(float(exact.value(u)), rel=1e-12)
        assert max(report.residuals.values()) <= 1e-12 * (1 + said.size)
        prices, H, g = report.multipliers, *draft.objective()
        gradient = H @ np.concatenate([said.x, said.z]) - g
        price = np.concatenate([prices.coupled, *prices.local, *prices.shared])
        left = gradient + exact.rows.T @ _in_order(exact, prices)
        assert len(price) == len(exact.kinds)
        assert float(np.linalg.norm(left)) == pytest.approx(said.stationarity, rel=1e-6, abs=1e-9)
        own = [
            g_z + B.T @ prices.coupled + D.T @ delta
            for g_z, B, D, delta in zip(
                said.gradient_z, draft.B, draft.D, prices.shared, strict=True
            )
        ]
        assert np.allclose(prices.consensus.sum(axis=0), 0.0, atol=1e-9)
        assert np.allclose(np.ptp(np.array(own) + prices.consensus, axis=0), 0.0, atol=1e-9)


def test_prices_are_those_of_the_rows_as_stated() -> None:
    """min z^2/2 - z with 16 z = 32: z = 2, and the price of the row is -1/16."""
    found = _small(np.eye(2), np.array([0.0, 1.0]), D=[[16.0]], e=[32.0])
    said = found.at(np.zeros(1), np.array([[2.0]]))
    assert said.report is not None
    assert said.report.multipliers.shared[0] == pytest.approx([-1 / 16])
    assert said.report.residuals["shared"] == 0.0
    off = found.judged([np.zeros(1)], np.array([2.5]), np.zeros(0))
    assert off.report is not None
    assert off.report.residuals["shared"] == pytest.approx(8.0)


def _in_order(exact: Exact, prices: Multipliers) -> Array:
    """As the rows of the draft are: coupled, local by agents, shared by agents."""
    assert exact.kinds == sorted(exact.kinds, key=["coupled", "local", "shared"].index)
    return np.concatenate([prices.coupled, *prices.local, *prices.shared])
