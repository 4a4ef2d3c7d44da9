"""cross-lbfgs against Newton's method on the feasible set, its bill, and when auto takes it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.linalg

import ccmac
from ccmac import vfl
from ccmac.errors import MethodRefused
from ccmac.methods import registry
from ccmac.objectives import L1, Custom, Huber, Logistic, Objective, Separable, SquaredDistance
from methods.test_real_data import LAMBDA, dataset, logistic

N = 4
D = 4
Q = 3
M = 2
Array = np.ndarray


def problem_of(kind: str, seed: int) -> ccmac.Problem:
    """Random data with all four families; D at two agents."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((N, D))
    z = random.standard_normal(Q)
    return with_objectives(random, x, z, lambda: _objective(kind, random))


def with_objectives(
    random: np.random.Generator, x: Array, z: Array, objective: Callable[[], Objective]
) -> ccmac.Problem:
    """All four families at random, met by (x, z)."""
    agents = []
    for i in range(N):
        A, B, C = (random.standard_normal(s) for s in ((M, D), (M, Q), (1, D)))
        shared = random.standard_normal((1, Q)) if i < 2 else None
        agents.append(
            ccmac.Agent(
                objective(),
                A=A,
                B=B,
                b=A @ x[i] + B @ z,
                C=C,
                c=C @ x[i],
                D=shared,
                e=None if shared is None else shared @ z,
            )
        )
    return ccmac.Problem(agents)


def _objective(kind: str, random: np.random.Generator) -> Objective:
    rows = random.standard_normal((6, D + Q))
    y = random.choice([-1.0, 1.0], 6)
    if kind == "joint":
        return Logistic(rows, y, ridge=0.3)
    if kind == "sum":
        return Logistic(rows, y) + SquaredDistance(0.4)
    if kind == "separable":
        z_part = Huber(y=2 * random.standard_normal(Q), ridge=0.3)
        return Separable(x=Logistic(rows[:, :D], y, ridge=0.3), z=z_part)

    def value(x: Array, z: Array) -> float:
        u = np.concatenate([x, z])
        return float(np.sum(np.logaddexp(0.0, u)) + 0.2 * u @ u)

    def gradient(x: Array, z: Array) -> Array:
        u = np.concatenate([x, z])
        return 1 / (1 + np.exp(-u)) + 0.4 * u

    return Custom(value, gradient, 0.65, 0.4)


def dense_solution(problem: ccmac.Problem) -> Array:
    """(x_1..x_n, z) by damped Newton steps in the null space of all equations."""
    agents = list(problem.agents.values())
    coupled = np.hstack([*(a.A for a in agents), sum(a.B for a in agents)])
    local = np.hstack([scipy.linalg.block_diag(*(a.C for a in agents)), np.zeros((N, Q))])
    shared = [np.hstack([np.zeros((1, N * D)), a.D]) for a in agents if a.D is not None]
    right = [sum(a.b for a in agents), *(a.c for a in agents)]
    right += [a.e for a in agents if a.D is not None]
    equations = np.vstack([coupled, local, *shared])
    side = np.concatenate(right)
    u = np.linalg.pinv(equations) @ side
    null = scipy.linalg.null_space(equations)

    def slope(t: Array) -> Array:
        v = u + null @ t
        x = v[: N * D].reshape(N, D)
        z = v[N * D :]
        parts = [a.objective.gradient(x[i], z) for i, a in enumerate(agents)]
        full = np.concatenate([*(p[0] for p in parts), sum(p[1] for p in parts)])
        return np.asarray(null.T @ full)

    t = np.zeros(null.shape[1])
    for _ in range(200):
        shifts = 1e-5 * np.eye(len(t))
        hessian = np.stack([(slope(t + h) - slope(t - h)) / 2e-5 for h in shifts], axis=1)
        step = np.linalg.solve(hessian, slope(t))
        length = 1.0
        size = np.linalg.norm(slope(t))
        while length > 1e-4 and np.linalg.norm(slope(t - length * step)) > size:
            length /= 2
        t = t - length * step
        if np.linalg.norm(step) < 1e-13:
            break
    assert np.linalg.norm(slope(t)) < 1e-10
    return np.asarray(u + null @ t)


@pytest.mark.parametrize("kind", ["joint", "sum", "separable", "custom"])
def test_agrees_with_newton_on_the_feasible_set(kind: str) -> None:
    problem = problem_of(kind, 1)
    exact = dense_solution(problem)
    result = ccmac.solve(problem, ccmac.Network.ring(N), method="cross-lbfgs", tol=1e-7)
    error = np.linalg.norm(np.concatenate([*result.x, result.z]) - exact)
    assert result.status == "optimal"
    assert error <= result.error_bound + 1e-10
    assert result.error_bound <= 1e-7 * max(1.0, np.linalg.norm(exact)) * 1.01


def test_one_averaging_one_argmin_one_riding_reduction() -> None:
    problem = problem_of("joint", 0)
    network = ccmac.Network.ring(N)
    inner = []
    result = ccmac.solve(
        problem,
        network,
        method="cross-lbfgs",
        max_iterations=6,
        tol=1e-14,
        callback=lambda _, state: inner.append(state.inner.max()) and None,
    )
    ledger = result.ledger
    assert ledger["rounds"] == 6 * 2  # a ring of four averages in two rounds
    assert (ledger["argmins"], ledger["A"], ledger["reductions"]) == (6, 2 * 6 - 1, 6)
    assert ledger["gradients"] == 0
    assert inner == sorted(inner)
    assert inner[0] > 0


def test_warm_prices_save_iterations() -> None:
    problem = problem_of("joint", 5)
    network = ccmac.Network.ring(N)
    cold = ccmac.solve(problem, network, method="cross-lbfgs", tol=1e-6)
    warm = ccmac.solve(problem, network, method="cross-lbfgs", tol=1e-6, warm_start=cold)
    assert warm.status == "optimal"
    assert warm.iterations < 0.5 * cold.iterations


def test_refuses_with_a_way_out() -> None:
    random = np.random.default_rng(0)
    X = random.standard_normal((10, 4))
    y = random.choice([-1.0, 1.0], 10)
    flat = vfl.problem(X, y, 4, loss="logistic", regularization=0.0)
    kinked = ccmac.Problem([ccmac.Agent(Separable(x=L1(1.0)), A=X[:, :1])], q=0)
    with pytest.raises(MethodRefused, match=r"strongly convex.*use cross-"):
        ccmac.solve(flat, ccmac.Network.ring(4), method="cross-lbfgs")
    with pytest.raises(MethodRefused, match=r"smooth.*cross-ipm"):
        ccmac.solve(kinked, method="cross-lbfgs")


def test_auto_weighs_averagings_against_local_work(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(2)
    X = random.standard_normal((10, 4))
    y = random.choice([-1.0, 1.0], 10)
    problem = vfl.problem(X, y, 4, loss="logistic", shared_regularization=0.1)
    network = ccmac.Network.ring(4)
    dear = ccmac.Costs(round=20.0)
    assert ccmac.plan(problem, network).method == "cross-newton"
    rules = tuple(rule for rule in registry.RULES if rule.method.name != "cross-newton")
    monkeypatch.setattr(registry, "RULES", rules)
    assert ccmac.plan(problem, network).method == "cross-apapc"
    assert ccmac.plan(problem, network, costs=dear).method == "cross-lbfgs"


def test_rounds_on_real_data() -> None:
    """Logistic losses on a ring of 8: all sums and reductions charged, those of the setup too."""
    found = dataset("a1a")
    exact = logistic(found.X, found.y, LAMBDA)
    problem = vfl.problem(
        found.X, found.y, 8, loss="logistic", regularization=LAMBDA, shared_regularization=LAMBDA
    )
    result = ccmac.solve(
        problem, ccmac.Network.ring(8), method="cross-lbfgs", tol=1e-6, reference=exact
    )
    assert result.status == "optimal"
    if found.source == "libsvm":
        assert result.ledger.of("setup")["rounds"] + result.ledger["rounds"] <= 136
