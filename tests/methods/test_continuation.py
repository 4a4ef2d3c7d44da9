"""cross-continuation: ledgers, accuracy, realizations, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.errors import InputError
from ccmac.methods import CrossContinuation
from ccmac.objectives import LeastSquares
from ccmac.paper.data import load
from methods.convex_problems import case
from methods.dense_system import Toy


def stack(seed: int, channels: int = 2) -> tuple[ccmac.Stack, Toy]:
    """The toy's equations, row by row in several channels."""
    toy = Toy(seed, spread=2.0)
    parts = np.array_split(np.arange(len(toy.v)), channels)
    pairs = [(toy.K[rows], toy.v[rows]) for rows in parts]
    return ccmac.Stack(LeastSquares(toy.M, toy.y), pairs), toy


@pytest.mark.parametrize("channels", [1, 3])
def test_certified_ledger_is_exact_and_the_criterion_holds(channels: int) -> None:
    """N_grad = 1 + A_tot, N_aff = d_RF (4 A_tot + 2k + 4)."""
    problem, toy = stack(channels, channels)
    epsilon = toy.L * toy.radius**2 / 1.1
    result = ccmac.solve(
        problem,
        method=CrossContinuation(
            schedule="certified", radius=toy.radius, accuracy=epsilon, multiplier_budget=1.0
        ),
    )
    found = result.certificates
    degree = int(np.ceil(np.sqrt(found["interval"][1] / found["interval"][0]) - 1e-9))
    assert result.status == "optimal"
    assert result.ledger["gradients"] == 1 + found["steps"]
    assert result.ledger["affine"] == degree * (4 * found["steps"] + 2 * found["repairs"] + 4)
    w = result.x[0]
    assert toy.value(w) - toy.value(toy.solution) <= epsilon
    assert np.linalg.norm(toy.K @ w - toy.v) * toy.L * toy.radius <= epsilon * 1e-6


def test_calls_are_proportional_to_the_cross_factor() -> None:
    """Looser certificates raise the degree, and the calls with it; gradients stay."""
    problem, toy = stack(1)
    accuracy = toy.L * toy.radius**2 / 2
    seen = []
    for factor in (4.0, 8.0):
        spectra = [
            tuple(np.linalg.svd(M, compute_uv=False)[[-1, 0]] ** 2) for M, _ in problem.channels
        ]
        method = CrossContinuation(
            schedule="certified",
            radius=toy.radius,
            accuracy=accuracy,
            realization="stack",
            rule="paper",
            spectra=spectra,
            certificates=ccmac.Certificates(cross_factor=factor),
        )
        seen.append(dict(ccmac.plan(problem, method=method).iteration))
    assert seen[1]["affine"] == pytest.approx(2 * seen[0]["affine"], rel=0.1)
    assert seen[1]["gradients"] == seen[0]["gradients"]


def test_practical_is_three_hundred_times_cheaper() -> None:
    """The same criterion, proved at exit for the same radius."""
    from ccmac.paper.schedules.continuation import certified_schedule

    for seed in range(3):
        problem, toy = stack(seed)
        for time in (50, 200):
            epsilon = toy.L * toy.radius**2 / time**2
            result = ccmac.solve(
                problem, method=CrossContinuation(radius=toy.radius, accuracy=epsilon)
            )
            assert result.status == "optimal"
            assert result.certificates["gap"] <= epsilon
            assert result.certificates["radius_proved"] >= toy.radius * (1 - 1e-9)
            assert toy.value(result.x[0]) - toy.value(toy.solution) <= epsilon
            certified = certified_schedule(toy.L, toy.radius, epsilon, 1.0).gradients()
            spent = result.ledger.total("gradients")
            assert 300 * spent <= certified


@pytest.mark.parametrize("realization", ["averaged", "canonical", "certified"])
def test_all_realizations_meet_the_criterion(realization: str) -> None:
    """Each proves the bound in its own execution space."""
    sample = case("least-squares", 1)
    result = ccmac.solve(
        sample.problem,
        sample.network,
        tol=1e-2,
        max_iterations=5000,
        method=CrossContinuation(realization=realization, radius=3 * sample.radius),
    )
    assert result.status == "optimal"
    assert result.objective - sample.value <= 1e-2
    assert result.residuals["coupled"] <= 1e-3


def test_unknown_radius_is_estimated_and_named() -> None:
    """The Result says for which R the bound holds."""
    sample = case("logistic", 0)
    result = ccmac.solve(sample.problem, sample.network, method="cross-continuation", tol=1e-3)
    assert result.status == "optimal"
    assert result.certificates["radius_source"].startswith("estimated")
    assert result.certificates["radius_proved"] >= result.certificates["radius"] * (1 - 1e-9)
    assert np.isnan(result.error_bound)


def test_without_equations_gradients_are_accelerated() -> None:
    """Algorithm alg:cvx-agd and its count."""
    toy = Toy(3)
    problem = ccmac.Problem([ccmac.Agent(LeastSquares(toy.M, toy.y))], q=0, m=0)
    best = np.linalg.lstsq(toy.M, toy.y, rcond=None)[0]
    radius = float(np.linalg.norm(best))
    epsilon = 1e-3
    certified = ccmac.solve(
        problem, method=CrossContinuation(schedule="certified", radius=radius, accuracy=epsilon)
    )
    expected = int(np.ceil(np.sqrt(2 * toy.L * radius**2 / epsilon)))
    assert certified.ledger["gradients"] == expected
    assert toy.value(certified.x[0]) <= toy.value(best) + epsilon
    practical = ccmac.solve(problem, method="cross-continuation", tol=epsilon)
    assert practical.status == "optimal"
    assert toy.value(practical.x[0]) <= toy.value(best) + epsilon


def test_certified_needs_a_radius() -> None:
    """In one line, with the remedy."""
    with pytest.raises(InputError, match=r'CrossContinuation\(schedule="certified", radius=R\)'):
        CrossContinuation(schedule="certified")


@pytest.mark.parametrize(("options", "schedule"), [({"multiplier_budget": 2.0}, "certified")])
def test_options_of_the_other_schedule_are_refused(options: dict[str, Any], schedule: str) -> None:
    """By name, with the schedule they belong to."""
    with pytest.raises(InputError, match=f"belongs to schedule '{schedule}'"):
        CrossContinuation(**options)


@pytest.mark.parametrize(
    ("kind", "method"), [("logistic", "cross-continuation"), ("lasso", "cross-sliding")]
)
def test_splitting_the_work_changes_nothing(kind: str, method: str) -> None:
    """Nothing is fused in the averaged realization."""
    sample = case(kind, 2)
    runs = [
        ccmac.solve(
            sample.problem,
            sample.network,
            method=method,
            tol=1e-2,
            runtime=ccmac.InProcess(sample.network, fused=fused),
        )
        for fused in (True, False)
    ]
    assert runs[0].iterations == runs[1].iterations
    assert np.array_equal(runs[0].z, runs[1].z)
    assert runs[0].ledger.as_dict() == runs[1].ledger.as_dict()


def test_without_shared_variables_the_schedule_takes_the_radius_as_it_is() -> None:
    """No copies of z: nine agents need the steps that one agent with the same sum needs."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((9, 3))
    M = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    several = ccmac.Problem([ccmac.Agent(LeastSquares(M, M @ v)) for v in x], q=0)
    whole = LeastSquares(np.kron(np.eye(9), M), (x @ M.T).ravel())
    radius = float(np.linalg.norm(x))
    method = CrossContinuation(
        schedule="certified", radius=radius, accuracy=radius**2 / 25, realization="canonical"
    )
    found = [
        ccmac.solve(several, ccmac.Network.ring(9), method),
        ccmac.solve(ccmac.Problem([ccmac.Agent(whole)], q=0), ccmac.Network.complete(1), method),
    ]
    assert [result.status for result in found] == ["optimal", "optimal"]
    assert [result.ledger["gradients"] for result in found] == [11, 11]


def test_a_smaller_tolerance_takes_more_of_the_same_run() -> None:
    """Logistic regression without regularization: the plan does not change with tol."""
    found = load("a1a-like")
    problem = ccmac.vfl.problem(found.X, found.y, 4, loss="logistic", regularization=0.0)
    results = [ccmac.solve(problem, "ring", CrossContinuation(), tol) for tol in (1e-1, 1e-2)]
    assert {r.status for r in results} == {"optimal"}
    gradients = [r.ledger["gradients"] for r in results]
    assert gradients == sorted(gradients)
    assert len({r.plan.settings["scale"] for r in results if r.plan is not None}) == 1
