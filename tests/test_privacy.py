"""What docs/privacy.md says can be learned, computed."""

from __future__ import annotations

import numpy as np
import pytest

import ccmac
from ccmac.inputs import Array
from ccmac.lab.instances import random_quadratic, solve_kkt
from ccmac.workspace import Workspace

N, FEATURES, AGENTS = 60, 9, 3


def table(seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, FEATURES))
    return X, X @ rng.standard_normal(FEATURES) + rng.standard_normal(N)


@pytest.mark.parametrize("owner", [None, 2])
def test_with_a_squared_loss_z_and_the_coupled_price_tell_all_labels(owner: int | None) -> None:
    """y = sqrt(N) (z - lambda): the slope of the loss at the predictions is the price."""
    X, y = table()
    problem = ccmac.vfl.problem(X, y, AGENTS, regularization=0.1, label_owner=owner)
    result = ccmac.solve(problem, "ring", tol=1e-7)
    assert result.multipliers is not None
    guess = np.sqrt(N) * (result.z - result.multipliers.coupled)
    assert np.abs(guess - y).max() < 1e-5 * np.abs(y).max()


@pytest.mark.parametrize("owner", [None, 2])
def test_with_a_logistic_loss_they_tell_their_signs(owner: int | None) -> None:
    X, y = table(1)
    labels = np.sign(y)
    problem = ccmac.vfl.problem(
        X, labels, AGENTS, "logistic", regularization=0.1, label_owner=owner
    )
    result = ccmac.solve(problem, "ring", tol=1e-6)
    assert result.multipliers is not None
    assert np.array_equal(np.sign(-result.multipliers.coupled), labels)


def test_two_agents_hide_nothing_from_each_other() -> None:
    """The sum less one's own row is the other's, masked or not."""
    rows = np.random.default_rng(0).standard_normal((2, 5))
    total = 2 * ccmac.InProcess(ccmac.Network.path(2), averaging="masked").average(rows)
    assert np.allclose(total[0] - rows[0], rows[1], rtol=0, atol=1e-14)


def test_gathered_equations_tell_the_products_of_an_agents_blocks() -> None:
    """From the factor that is sent everybody knows A_i A_i' (here without C_i), and B_i, b_i."""
    rng = np.random.default_rng(3)
    f = ccmac.objectives.Quadratic(np.eye(5), np.zeros(5))
    blocks = [(rng.standard_normal((2, 3)), rng.standard_normal((2, 2))) for _ in range(AGENTS)]
    problem = ccmac.Problem([ccmac.Agent(f, A=A, B=B, b=[1.0, 2.0]) for A, B in blocks])
    reduced = Workspace(problem, ccmac.InProcess(ccmac.Network.ring(AGENTS))).reduced
    assert reduced is not None
    sent = [reduced._message(k, 2, 0) for k in range(AGENTS)]
    for row, (A, B) in zip(sent, blocks, strict=True):
        factor = row[:4].reshape(2, 2)
        assert np.allclose(factor @ factor.T, A @ A.T)
        assert np.array_equal(row[4:8].reshape(2, 2), B)
        assert row[8:10].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("method", ["cross-cg", "cross-apapc", "cross-lbfgs"])
@pytest.mark.parametrize("scale", [1.0, 1e6, 1e-6])
def test_a_masked_solve_of_known_structure_is_proved(method: str, scale: float) -> None:
    """The bound holds against the dense KKT system, whatever the size of the numbers."""
    random = np.random.default_rng(0)
    X, y = random.standard_normal((60, 8)), scale * random.standard_normal(60)
    result, error, size = masked(ccmac.vfl.problem(X, y, 4), method)
    assert (result.status, result.certificates["rests_on"]) == ("optimal", "proved")
    assert error <= result.error_bound <= 1e-8 * max(1.0, size)


@pytest.mark.parametrize("method", ["cross-cg", "cross-apapc", "cross-lbfgs"])
def test_a_masked_solve_of_any_equations_is_estimated(method: str) -> None:
    """Nobody sees the equations together, so that near-dependence is not excluded."""
    problem = random_quadratic(5, 4, d=3, q=2, m=2, kappa_f=4.0)
    result, error, size = masked(problem, method)
    assert (result.status, result.certificates["rests_on"]) == ("converged", "estimated")
    assert error <= 1e-8 * max(1.0, size)
    network = ccmac.Network.ring(4)
    assert Workspace(problem, ccmac.InProcess(network, averaging="masked")).reduced is None


def test_a_masked_direct_solve_is_proved_where_sums_of_squares_tell_rows_apart() -> None:
    problem = random_quadratic(5, 4, d=3, q=9, m=2, r=1, kappa_f=4.0)
    result, error, size = masked(problem, "cross-direct")
    assert (result.status, result.certificates["rests_on"]) == ("optimal", "proved")
    assert error <= result.error_bound <= 1e-8 * max(1.0, size)


def masked(problem: ccmac.Problem, method: str) -> tuple[ccmac.Result, float, float]:
    """(result, its true error, the size of its point)."""
    exact = solve_kkt(problem)
    result = ccmac.solve(problem, ccmac.Network.ring(4), method, 1e-8, averaging="masked")
    point = np.concatenate([*result.x, result.z])
    off = np.linalg.norm(point - np.concatenate([*exact.x, exact.z]))
    return result, float(off), float(np.linalg.norm(point))
