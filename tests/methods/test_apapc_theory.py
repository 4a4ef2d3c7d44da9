"""The theory of Cross-APAPC as tests: energy, call counts, prices, and rates in chi, W and f."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from ccmac import vfl
from ccmac.angles.principal import pair_geometry, principal_angles
from ccmac.ledger import Cost
from ccmac.linalg.chebyshev import correction_interval, minimal_degree, outer_degree
from ccmac.linalg.ranks import row_space
from ccmac.methods.apapc import Apapc, ApapcState
from ccmac.network import Network
from ccmac.objectives import Quadratic
from ccmac.paper.instances.random_quadratic import random_quadratic
from ccmac.paper.instances.reference import solve_kkt
from ccmac.paper.realizations.canonical import canonical
from ccmac.paper.realizations.certified import certified
from ccmac.problem import Agent, Problem
from ccmac.realizations.base import AffineSystem, ExecutionObjective, Interval, Realized
from ccmac.runtime import InProcess
from ccmac.runtime.space import Space
from ccmac.workspace import Workspace
from paper.realizations.flavours import fresh, instance, iterate, positive_ends

Array = NDArray[np.float64]
DIM = 14


class DenseSystem(AffineSystem):
    """K w = v as matrices, on one agent."""

    empty = False

    def __init__(self, space: Space, K: Array, v: Array) -> None:
        self.space = space
        self.K = K
        self.v = v
        self.interval = Interval(*positive_ends(K.T @ K))

    def residual(self, w: Array) -> tuple[Array, Array]:
        self.space.runtime.ledger.charge(affine=2)
        return self.K.T @ (self.K @ w - self.v), self.zero_multiplier()

    def channel_residuals(self, w: Array) -> list[Array]:
        return [self.residual(w)[0]]

    def homogeneous(self) -> DenseSystem:
        return DenseSystem(self.space, self.K, np.zeros_like(self.v))

    @property
    def cost(self) -> Cost:
        return Cost(affine=2)


def quadratic_model(seed: int, kappa_f: float, kappa_K: float, rank: int) -> tuple[Realized, Array]:
    """A random quadratic under K of the given rank (of 8 rows) and condition, and its solution."""
    random = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(random.standard_normal((DIM, DIM)))
    H = (basis * np.geomspace(1, kappa_f, DIM)) @ basis.T
    g = random.standard_normal(DIM)
    left, _ = np.linalg.qr(random.standard_normal((8, 8)))
    right, _ = np.linalg.qr(random.standard_normal((DIM, DIM)))
    sizes = np.sqrt(np.geomspace(1.0, kappa_K, rank))
    K = (left[:, :rank] * sizes) @ right[:, :rank].T
    v = K @ random.standard_normal(DIM)
    kernel = right[:, rank:]
    base = np.linalg.pinv(K) @ v
    solution = base + kernel @ np.linalg.solve(kernel.T @ H @ kernel, kernel.T @ (g - H @ base))
    runtime = InProcess(Network.complete(1))
    space = Space(runtime, [DIM], 0)
    problem = Problem([Agent(Quadratic(H, g))], q=0)
    objective = ExecutionObjective(problem, space, mu=1.0, L=kappa_f)
    return Realized("dense", space, objective, DenseSystem(space, K, v)), solution


def correction_matrix(system: DenseSystem, degree: int) -> Array:
    """P = I - T_N(.)/T_N(.) of K'K, through its eigenvectors."""
    values, vectors = np.linalg.eigh(system.K.T @ system.K)
    low = system.interval.low
    high = system.interval.high
    if high <= low * (1 + 1e-12):
        symbol = (values > 1e-9).astype(np.float64)
    else:
        x = np.clip((high + low - 2 * values) / (high - low), -1, 1)
        growth = math.cosh(degree * math.acosh((high + low) / (high - low)))
        symbol = np.where(values > 1e-9, 1 - np.cos(degree * np.arccos(x)) / growth, 0.0)
    return np.asarray((vectors * symbol) @ vectors.T)


@pytest.mark.parametrize("kappa_f", [1.0, 10.0, 1000.0])
@pytest.mark.parametrize("kappa_K", [1.0, 30.0, 1e4])
@pytest.mark.parametrize("rank", [8, 5])
@pytest.mark.parametrize("steps", ["paper", "interval", "minimal"])
def test_the_energy_contracts_at_every_step(
    kappa_f: float, kappa_K: float, rank: int, steps: str
) -> None:
    model, solution = quadratic_model(rank, kappa_f, kappa_K, rank)
    system = model.system
    mu = model.objective.mu
    assert isinstance(system, DenseSystem)
    choose = minimal_degree if steps == "minimal" else outer_degree
    degree = choose(system.interval.low, system.interval.high)
    if steps == "interval":
        degree = max(1, degree // 3)  # any degree is safe with the interval's own steps
    rule = "interval" if steps == "interval" else "paper"
    iteration = Apapc(replace(model, degree=degree, steps=rule))
    tau, eta, theta = iteration.parameters()
    low, high = correction_interval(system.interval.low, system.interval.high, degree)
    if steps != "interval":
        low = 11 / 15
        high = 19 / 15
    chi = high / low
    bound = 1 / (1 + 0.25 * min(1 / math.sqrt(kappa_f * chi), 1 / chi))
    inverse = np.linalg.pinv(correction_matrix(system, degree), rcond=1e-9)
    H, g = model.objective.problem.agents[0].objective.quadratic(DIM, 0)[:2]
    multiplier = -(H @ solution - g)

    def energy(state: ApapcState) -> float:
        w = state.w - solution
        f = state.w_f - solution
        p = state.p - multiplier
        dual = p @ inverse @ p / theta - eta / (1 + eta * mu) * p @ p
        return float(w @ w / eta + dual + (1 - tau) / tau * f @ (H @ f))

    state = fresh(iteration)
    before = first = energy(state)
    for _ in range(400):
        state = iteration.step(state)
        after = energy(state)
        assert after <= bound * before * (1 + 1e-6)
        before = after
        if after <= 1e-18 * first:
            break


def test_a_step_costs_one_gradient_and_two_calls_a_degree() -> None:
    model, _ = quadratic_model(0, 10.0, 50.0, 6)
    for degree in (1, 4, 9):
        iteration = Apapc(replace(model, degree=degree))
        state = fresh(iteration)
        before = model.objective.ledger.of("solve")
        iteration.step(state)
        spent = model.objective.ledger.of("solve") - before
        assert spent == iteration.cost == Cost(gradients=1, affine=2 * degree)


@pytest.mark.parametrize("build", [canonical, certified])
def test_prices_are_the_kkt_multipliers(build: object) -> None:
    problem, network = instance("no C, no D")
    exact = solve_kkt(problem)
    assert callable(build)
    realized: Realized = build(Workspace(problem, InProcess(network)))
    iteration = Apapc(realized)
    state = fresh(iteration)
    for _ in range(400):
        state = iteration.step(state)
    assert np.allclose(state.multiplier.mean(axis=0), exact.coupled, atol=1e-9)


@pytest.mark.parametrize("accuracy", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("common", [False, True])
def test_inexact_whitening_keeps_the_cross_factor(accuracy: float, common: bool) -> None:
    for seed in range(40):
        random = np.random.default_rng(seed)
        M = [random.standard_normal((3, 9)), random.standard_normal((4, 9))]
        if common:
            M[1][0] = random.standard_normal(3) @ M[0]
        spaces = [row_space(m) for m in M]
        angles = principal_angles(spaces[0].basis, spaces[1].basis)
        pair = pair_geometry(angles, (spaces[0].rank, spaces[1].rank), 1e-9)
        whitened = []
        for s in spaces:
            # Any K^ with K^'K^ between (1 -+ accuracy) P_U.
            basis = s.basis if s.basis.shape[0] < 9 else s.basis.T
            twist, _ = np.linalg.qr(random.standard_normal((len(basis), len(basis))))
            sizes = np.sqrt(random.uniform(1 - accuracy, 1 + accuracy, len(basis)))
            whitened.append(sizes[:, None] * (twist @ basis))
        stacked = np.vstack(whitened)
        low, high = positive_ends(stacked.T @ stacked)
        chi2 = pair.cross_factor**2
        spread = (1 + accuracy) / (1 - accuracy)
        assert chi2 * (1 - 1e-8) <= high / low <= (2 if common else 1) * spread * chi2 * (1 + 1e-8)


# -- rates -----------------------------------------------------------------------------------------
def slope(x: Sequence[float], y: Sequence[float]) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


@pytest.mark.parametrize(
    "options", [{}, {"rule": "exact"}, {"inner": 24}], ids=["accuracy 1/2", "whitened", "degree 24"]
)
def test_affine_calls_grow_like_the_cross_factor(options: dict[str, object]) -> None:
    random = np.random.default_rng(0)
    X = random.standard_normal((40, 12))
    y = random.standard_normal(40)
    factors = (1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0)
    calls = []
    for chi in factors:
        problem = vfl.problem(X, y, 4, shares=("cross_factor", chi))
        runtime = InProcess(Network.ring(4))
        realized = canonical(Workspace(problem, runtime), **options)  # type: ignore[arg-type]
        assert realized.details["cross_factor"] == pytest.approx(chi, rel=1e-6)
        iterate(realized, solve_kkt(problem).vector, tol=1e-5)
        calls.append(runtime.ledger["affine"])
    assert 0.93 <= slope(factors, calls) <= 1.07


def test_gradients_grow_like_the_root_of_the_condition_of_f() -> None:
    conditions = (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
    gradients = []
    for kappa_f in conditions:
        problem = random_quadratic(5, n=4, kappa_f=kappa_f)
        runtime = InProcess(Network.ring(4))
        realized = canonical(Workspace(problem, runtime), rule="exact")
        iterate(realized, solve_kkt(problem).vector, tol=1e-6, limit=5000)
        gradients.append(runtime.ledger["gradients"])
    assert 0.85 <= 2 * slope(conditions, gradients) <= 1.15


def path_with_a_weak_edge(weight: float, n: int = 6) -> Network:
    weights = np.ones(n - 1)
    weights[n // 2 - 1] = weight
    W = np.zeros((n, n))
    for i, w in enumerate(weights):
        W[i : i + 2, i : i + 2] += w * np.array([[1.0, -1.0], [-1.0, 1.0]])
    return Network.from_weights(W)


def test_executed_rounds_grow_like_the_root_of_the_condition_of_the_graph() -> None:
    problem = random_quadratic(7, n=6, d=2, q=2, m=1)
    solution = solve_kkt(problem).vector
    conditions = []
    rounds = []
    modelled = []
    for weight in (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001):
        network = path_with_a_weak_edge(weight)
        conditions.append(network.condition)
        for build, counts, unit in (
            (certified, rounds, "rounds"),
            (canonical, modelled, "modelled_rounds"),
        ):
            runtime = InProcess(network)
            iterate(build(Workspace(problem, runtime)), solution, tol=1e-5)
            counts.append(runtime.ledger[unit])
    assert 0.85 <= 2 * slope(conditions, rounds) <= 1.15
    assert 0.85 <= 2 * slope(conditions, modelled) <= 1.15
