"""Coupled forms: adjoints, equivalence with the problem, local argmins, iteration counts."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

import ccmac
from ccmac import vfl
from ccmac.methods import (
    CondatVu,
    CoupledYarmoshik,
    Dpmm,
    Method,
    MixedYarmoshik,
    Papc,
    Pdhg,
    TrackingAdmm,
)
from ccmac.paper import data
from ccmac.paper.comparators.admm import PENALTIES
from ccmac.paper.comparators.local_argmin import LocalArgmin
from ccmac.paper.comparators.primal_dual import BALANCES
from ccmac.paper.comparators.reductions import CoupledForm
from ccmac.paper.comparators.tuning import FIRST, HORIZON
from ccmac.paper.instances import random_quadratic, solve_kkt
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace

RING = ccmac.Network.ring(4)


def coupled_form(problem: ccmac.Problem, name: str, **how: bool) -> CoupledForm:
    return CoupledForm(Workspace(problem, InProcess(RING)), name, **how)


def toy(loss: str = "squared") -> tuple[vfl.VflProblem, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 20))
    y = X @ random.standard_normal(20) + 0.5 * random.standard_normal(60)
    weights = np.linalg.solve(X.T @ X / 60 + 1e-2 * np.eye(20), X.T @ y / 60)
    labels = y if loss == "squared" else np.sign(y)
    return vfl.problem(X, labels, 4, loss=loss, shared_regularization=0.0), weights


@pytest.mark.parametrize("rows", [False, True])
def test_adjoint_and_feasibility_of_R1(rows: bool) -> None:
    problem = random_quadratic(3, 4)
    form = coupled_form(problem, "R1", rows=rows)
    random = np.random.default_rng(0)
    w = random.standard_normal(form.space.size)
    v = random.standard_normal(form.right.shape)
    assert np.sum(form.forward(w) * v) == pytest.approx(w @ form.adjoint(v))
    solution = solve_kkt(problem)
    at = form.start(np.concatenate(solution.x), np.tile(solution.z, (4, 1)))
    misfit = (form.forward(at) - form.right).sum(axis=0)
    assert misfit == pytest.approx(np.zeros(form.width), abs=1e-10)


@pytest.mark.parametrize("name", ["R2", "R3"])
def test_pooled_objective_is_the_objective(name: str) -> None:
    problem, _ = toy()
    form = coupled_form(problem, name)
    random = np.random.default_rng(1)
    x = random.standard_normal(20)
    z = random.standard_normal(60)
    w = form.start(x, np.tile(z, (4, 1)))
    slope = form.gradient(w)
    expected = sum(a.objective.gradient(np.zeros(5), z)[1] for a in problem.agents.values())
    assert form.space.z(slope).sum(axis=0) == pytest.approx(expected)
    assert form.space.z(w).sum(axis=0) == pytest.approx(z)
    assert form.point(w)[1] == pytest.approx(np.tile(z, (4, 1)))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_local_argmin_against_a_general_minimiser(loss: str) -> None:
    problem, _ = toy(loss)
    form = coupled_form(problem, "R1")
    random = np.random.default_rng(2)
    h, u0 = random.standard_normal((2, form.space.size))
    argmin = LocalArgmin(form, c=0.7, rho=0.05)
    found = argmin(h, u0)

    def value(w: np.ndarray) -> float:
        rest = h @ w + 0.35 * np.sum(form.forward(w) ** 2) + 0.025 * np.sum((w - u0) ** 2)
        pairs = zip(form.objectives, form.space.split(w), strict=True)
        return float(rest + sum(f.value(x, z) for f, (x, z) in pairs))

    def gradient(w: np.ndarray) -> np.ndarray:
        penalty = 0.7 * form.adjoint(form.forward(w)) + 0.05 * (w - u0)
        return np.asarray(form.gradient(w) + h + penalty)

    assert np.linalg.norm(gradient(found)) <= 1e-10 * np.linalg.norm(h)
    other = scipy.optimize.minimize(value, np.zeros_like(h), jac=gradient, method="BFGS")
    assert value(found) <= other.fun + 1e-12 * abs(other.fun)
    assert (argmin.inner_gradients > 0) == (loss == "logistic")


# Iterations of separate implementations with tuned parameters on data of this size (n = 4, N = 60,
# d = 20); the defaults may not need more than a fifth more.
@pytest.mark.parametrize(
    ("method", "tol", "expected_count"),
    [
        (TrackingAdmm(reduction="R1"), 1e-12, 156),
        (TrackingAdmm(reduction="R2"), 1e-12, 165),
        (TrackingAdmm(reduction="R3"), 1e-12, 128),
        (Dpmm(reduction="R1"), 1e-12, 157),
        (Dpmm(reduction="R2"), 1e-12, 114),
        (Dpmm(reduction="R3"), 1e-12, 100),
        (CoupledYarmoshik(reduction="R1"), 1e-12, 201),
        (CoupledYarmoshik(reduction="R2"), 1e-12, 411),
        (CoupledYarmoshik(reduction="R3"), 1e-12, 415),
        (CondatVu(), 1e-12, 194),
        (Pdhg(), 1e-12, 119),
        (Papc(), 1e-6, 94),
    ],
)
def test_iterations_of_the_defaults(method: Method, tol: float, expected_count: int) -> None:
    problem, weights = toy()
    result = ccmac.solve(problem, RING, method, tol=tol, reference=weights)
    assert result.status == "optimal"
    assert result.iterations <= 1.2 * expected_count
    assert result.plan is not None
    asked = getattr(method, "reduction", None)
    assert asked is None or result.plan.settings["reduction"] == asked


def test_iterations_of_mixed_constraints() -> None:
    """68 to 92 to six digits, 169 to 186 to twelve, on random (A, C, D) elsewhere."""
    problem = random_quadratic(0, 4, absent=("B",))
    result = ccmac.solve(problem, RING, MixedYarmoshik(), tol=1e-12, reference=solve_kkt(problem))
    assert result.status == "optimal"
    errors = result.trace.to_pandas().set_index("iteration")["relative_error"]
    assert errors[errors <= 1e-6].index[0] <= 1.2 * 92
    assert result.iterations <= 1.2 * 186


@pytest.mark.parametrize("B", ["generic", "overlap"])
def test_dependent_equations_are_no_obstacle_to_the_coupled_method(B: str) -> None:
    """mu_A is the least positive eigenvalue, so redundant rows of R1 only cost degree."""
    problem = random_quadratic(0, 4, rank_deficient=True, B=B)
    result = ccmac.solve(
        problem,
        RING,
        CoupledYarmoshik(),
        tol=1e-8,
        reference=solve_kkt(problem),
        max_iterations=200,
    )
    assert result.status == "optimal"
    assert max(result.residuals.values()) <= 1e-3


def run(method: Method, **limits: int) -> ccmac.Result:
    problem, weights = toy()
    return ccmac.solve(problem, RING, method, tol=1e-6, reference=weights, **limits)


@pytest.mark.parametrize(
    ("method", "key", "grid"),
    [
        (Dpmm, "penalty", PENALTIES),
        (TrackingAdmm, "penalty", PENALTIES),
        (CondatVu, "balance", BALANCES),
        (Pdhg, "balance", BALANCES),
        (Papc, "balance", BALANCES),
    ],
)
def test_the_race_is_near_the_best_of_its_grid_and_charged_to_setup(method, key, grid) -> None:
    tuned = run(method(tune="grid"))
    fixed = {value: run(method(**{key: value}), max_iterations=150) for value in grid}
    assert tuned.iterations <= 1.2 * min(result.iterations for result in fixed.values())
    trials = tuned.ledger.of("setup")["A"] - fixed[1.0].ledger.of("setup")["A"]
    assert len(grid) * FIRST <= trials / 2 <= len(grid) * HORIZON + len(grid)
    chosen = fixed[tuned.plan.settings[key]].ledger.of("solve")
    assert dict(tuned.ledger.of("solve")) == dict(chosen)


@pytest.mark.data
def test_condat_vu_is_tuned_to_its_own_rule_on_mushrooms() -> None:
    """Forty steps are not enough to tell: a fast start at a tenth of the rule takes 1,405."""
    loaded = data.load("mushrooms")
    X = loaded.X
    y = loaded.y
    gram = (X.T @ X).toarray() / len(y) + 1e-2 * np.eye(X.shape[1])
    result = ccmac.solve(
        vfl.problem(X, y, 8),
        ccmac.Network.ring(8),
        CondatVu(tune="grid"),
        tol=1e-6,
        reference=np.linalg.solve(gram, X.T @ y / len(y)),
    )
    assert result.iterations <= 240
