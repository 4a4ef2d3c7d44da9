"""cross-newton with summed systems, against Newton's method on the feasible set."""

from __future__ import annotations

import numpy as np
import pytest

import ccmac
from ccmac.errors import InputError, MethodRefused
from ccmac.methods import CrossNewton
from ccmac.objectives import Custom
from methods.test_lbfgs import D, N, Q, dense_solution, problem_of, with_objectives

Array = np.ndarray
NETWORK = ccmac.Network.ring(N)


def steep(seed: int, *, with_hessian: bool = True) -> ccmac.Problem:
    """Sums of 5 sqrt(1 + u^2) with little curvature far away: full Newton steps diverge there."""
    random = np.random.default_rng(seed)
    x = 10 * random.standard_normal((N, D))
    z = random.standard_normal(Q)

    def value(x: Array, z: Array) -> float:
        u = np.concatenate([x, z])
        return float(np.sum(5 * np.sqrt(1 + u**2)) + 0.005 * u @ u)

    def gradient(x: Array, z: Array) -> Array:
        u = np.concatenate([x, z])
        return 5 * u / np.sqrt(1 + u**2) + 0.01 * u

    def hessian(x: Array, z: Array, v_x: Array, v_z: Array) -> tuple[Array, Array]:
        return (5 / (1 + x**2) ** 1.5 + 0.01) * v_x, (5 / (1 + z**2) ** 1.5 + 0.01) * v_z

    known = hessian if with_hessian else None
    return with_objectives(random, x, z, lambda: Custom(value, gradient, 5.01, 0.01, hessian=known))


def test_the_first_proof_is_tried_after_four_steps() -> None:
    """However little is asked for: before, a point is not worth an averaging."""
    result = ccmac.solve(problem_of("joint", 1), NETWORK, "cross-newton", 1e3)
    assert (result.status, result.iterations) == ("optimal", 4)


@pytest.mark.parametrize("kind", ["joint", "sum", "separable"])
@pytest.mark.parametrize("seed", [1, 2])
def test_agrees_with_newton_on_the_feasible_set(kind: str, seed: int) -> None:
    problem = problem_of(kind, seed)
    exact = dense_solution(problem)
    result = ccmac.solve(problem, NETWORK, "cross-newton", 1e-8)
    error = np.linalg.norm(np.concatenate([*result.x, result.z]) - exact)
    assert result.status == "optimal"
    assert result.certificates["rests_on"] == "proved"
    assert error <= result.error_bound + 1e-10
    assert result.iterations <= 9
    assert result.ledger["rounds"] == 2 * result.iterations  # one averaging a step


@pytest.mark.parametrize("seed", [0, 1])
def test_own_functions_with_hessian_products_and_steps_that_must_be_cut(seed: int) -> None:
    problem = steep(seed)
    exact = dense_solution(problem)
    cuts: list[int] = []
    result = ccmac.solve(
        problem, NETWORK, CrossNewton(), 1e-8, callback=lambda _, s: cuts.append(s.cut) and None
    )
    assert result.status == "optimal"
    assert np.linalg.norm(np.concatenate([*result.x, result.z]) - exact) <= 1e-7
    assert max(cuts) > 0
    assert result.iterations <= 40


def test_every_step_costs_what_it_declares() -> None:
    runs = [
        ccmac.solve(problem_of("joint", 0), NETWORK, "cross-newton", 1e-15, max_iterations=k)
        for k in (2, 4)
    ]
    spent = runs[1].ledger.of("solve") - runs[0].ledger.of("solve")
    assert runs[1].plan is not None
    assert dict(spent) == dict(2 * runs[1].plan.iteration)
    k = Q + runs[1].plan.settings["rows"]
    width = k * (k + 1) // 2 + k + 8
    assert runs[1].plan.iteration["bytes"] >= 8 * width


def test_without_hessians_it_refuses_and_auto_takes_another() -> None:
    problem = steep(0, with_hessian=False)
    with pytest.raises(MethodRefused, match="Hessians"):
        ccmac.solve(problem, NETWORK, "cross-newton")
    assert ccmac.plan(problem, NETWORK).method == "cross-apapc"
    plan = ccmac.plan(steep(0), NETWORK)
    assert (plan.method, plan.realization) == ("cross-newton", "summed")
    assert plan.predicted is not None


def test_wrong_hessian_products_are_refused() -> None:
    f = Custom(lambda x, z: 0.0, lambda x, z: np.zeros(3), 1.0, hessian=lambda *v: np.zeros(2))
    with pytest.raises(InputError, match="hessian"):
        f.hessian_product(np.zeros(2), np.zeros(1), np.zeros(2), np.zeros(1))
