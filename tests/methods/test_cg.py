"""cross-cg against dense KKT systems, its bill, its stop on conflicts, and when auto takes it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ccmac
from ccmac import vfl
from ccmac.paper.instances import infeasible, random_quadratic, solve_kkt


@settings(max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 5),
    rank_deficient=st.booleans(),
    B=st.sampled_from(["generic", "overlap"]),
    sparse=st.booleans(),
    absent=st.sampled_from([(), ("C",), ("D",), ("A", "C"), ("B",), 0.3]),
)
def test_agrees_with_the_dense_solution(seed, n, rank_deficient, B, sparse, absent) -> None:
    problem = random_quadratic(
        seed, n, rank_deficient=rank_deficient, B=B, sparse=sparse, absent=absent
    )
    reference = solve_kkt(problem)
    network = ccmac.Network.path(n)
    result = ccmac.solve(problem, network, method="cross-cg", tol=1e-16, reference=reference)
    found = np.concatenate([*result.x, result.z])
    scale = 1 + np.linalg.norm(reference.vector)
    assert np.linalg.norm(found - reference.vector) <= 1e-7 * scale


def test_certified_error_holds_without_a_reference() -> None:
    problem = random_quadratic(7, 4, kappa_f=30.0)
    reference = solve_kkt(problem).vector
    result = ccmac.solve(problem, ccmac.Network.ring(4), method="cross-cg", tol=1e-8)
    error = np.linalg.norm(np.concatenate([*result.x, result.z]) - reference)
    assert result.status == "optimal"
    assert error <= result.error_bound <= 1e-8 * max(1.0, np.linalg.norm(reference)) * 1.01


def test_one_averaging_one_solve_one_riding_reduction() -> None:
    problem = random_quadratic(1, 4)
    network = ccmac.Network.ring(4)
    result = ccmac.solve(problem, network, method="cross-cg", max_iterations=5, tol=1e-14)
    ledger = result.ledger
    assert ledger["rounds"] == 5 * 2  # a ring of four averages in two rounds
    assert (ledger["argmins"], ledger["A"], ledger["reductions"]) == (5, 2 * 5 - 1, 4)
    assert ledger["gradients"] == 0


@pytest.mark.parametrize("conflict", ["coupled", "shared", "cross"])
def test_conflicting_equations_are_found(conflict: str) -> None:
    result = ccmac.solve(
        infeasible(0, conflict), ccmac.Network.ring(4), method="cross-cg", max_iterations=200
    )
    assert result.status == "infeasible"


def test_label_owner_has_curvature_enough() -> None:
    random = np.random.default_rng(1)
    X = random.standard_normal((30, 8))
    y = random.standard_normal(30)
    weights = np.linalg.solve(X.T @ X / 30 + 1e-2 * np.eye(8), X.T @ y / 30)
    problem = vfl.problem(X, y, 4, label_owner=2)
    result = ccmac.solve(
        problem, ccmac.Network.ring(4), method="cross-cg", tol=1e-20, reference=weights
    )
    assert problem.weights(result) == pytest.approx(weights, abs=1e-8)


def test_auto_takes_it_for_large_quadratics_unless_told_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = random_quadratic(2, 4)
    network = ccmac.Network.ring(4)
    assert ccmac.plan(problem, network).method == "cross-direct"
    monkeypatch.setattr("ccmac.workspace.base.affordable", lambda *_: False)
    assert ccmac.plan(problem, network).method == "cross-cg"
    assert (
        ccmac.plan(problem, network, ccmac.methods.Auto(realization="averaged")).method
        == "cross-apapc"
    )
