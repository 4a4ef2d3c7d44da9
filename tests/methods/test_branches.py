"""One test for each special branch: absent blocks, one agent, common directions, infeasibility."""

from __future__ import annotations

import numpy as np
import pytest

import ccmac
from ccmac import objectives
from ccmac.paper.instances import infeasible, random_quadratic
from ccmac.paper.instances.reference import solve_kkt


def quadratic(size: int, seed: int = 0) -> objectives.Quadratic:
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((size, size))
    return objectives.Quadratic(np.eye(size) + root @ root.T / size, rng.standard_normal(size))


def check(problem: ccmac.Problem, network: ccmac.Network, **options: object) -> ccmac.Result:
    result = ccmac.solve(problem, network, method="cross-apapc", tol=1e-7, **options)  # type: ignore[arg-type]
    reference = solve_kkt(problem)
    exact = np.concatenate([*reference.x, reference.z])
    error = np.linalg.norm(np.concatenate([*result.x, result.z]) - exact)
    assert result.status == "optimal", result.message
    assert error <= result.error_bound
    assert result.objective == pytest.approx(reference.objective, abs=1e-5)
    return result


def test_coupled_equation_without_blocks_is_vacuous_or_infeasible() -> None:
    agents = [ccmac.Agent(quadratic(3, k), C=np.ones((1, 1)), c=[1.0]) for k in range(3)]
    check(ccmac.Problem(agents, q=2), ccmac.Network.ring(3))
    broken = [ccmac.Agent(a.objective, C=a.C, c=a.c, b=[1.0, 0.0]) for a in agents]
    result = ccmac.solve(ccmac.Problem(broken, q=2), ccmac.Network.ring(3))
    assert result.status == "infeasible"
    assert "whose b_i do not add up to zero" in result.message


def test_local_equations_that_fix_everything() -> None:
    """S_HC = 0: C_i leaves no freedom in x and B = 0."""
    rng = np.random.default_rng(0)
    A = [rng.standard_normal((2, 2)) for _ in range(3)]
    x = [rng.standard_normal(2) for _ in range(3)]
    agents = [
        ccmac.Agent(quadratic(4, k), A=A[k], b=A[k] @ x[k], C=np.eye(2), c=x[k]) for k in range(3)
    ]
    check(ccmac.Problem(agents, q=2), ccmac.Network.path(3))


def test_consensus_alone() -> None:
    agents = [ccmac.Agent(quadratic(3, k)) for k in range(4)]
    check(ccmac.Problem(agents, q=3), ccmac.Network.ring(4))


def test_no_constraint_at_all() -> None:
    result = check(ccmac.Problem([ccmac.Agent(quadratic(3))], q=1), ccmac.Network.path(1))
    assert result.ledger["affine"] == 0
    assert result.ledger.total("rounds") == 0


def test_one_agent_never_communicates() -> None:
    result = check(random_quadratic(3, n=1), ccmac.Network.path(1))
    assert result.ledger.total("rounds") == 0
    assert result.ledger.total("bytes") == 0


def test_without_B_no_product_with_B_is_charged() -> None:
    result = check(random_quadratic(5, n=4, absent=("B",)), ccmac.Network.ring(4))
    assert result.ledger.total("B") == 0


@pytest.mark.parametrize("absent", ["C", "D", "A"])
def test_absent_family(absent: str) -> None:
    result = check(random_quadratic(6, n=4, absent=(absent,)), ccmac.Network.star(4))
    assert result.ledger.total(absent) == 0


def test_complete_graph_has_one_eigenvalue() -> None:
    network = ccmac.Network.complete(5)
    assert network.condition == pytest.approx(1.0)
    result = check(random_quadratic(8, n=5), network)
    assert result.plan is not None
    assert result.plan.averaging_rounds == 1


def test_common_directions_are_benign() -> None:
    check(random_quadratic(4, n=3, B="overlap"), ccmac.Network.ring(3))


@pytest.mark.parametrize("conflict", ["coupled", "shared", "cross"])
@pytest.mark.parametrize("n", [3, 4])
@pytest.mark.parametrize("fused", [True, False])
def test_infeasibility_certificate(conflict: str, n: int, fused: bool) -> None:
    """K'lambda = 0 and lambda'v != 0, checked with dense blocks."""
    problem = infeasible(2, conflict, n=n)  # type: ignore[arg-type]
    result = ccmac.solve(
        problem, method="cross-apapc", runtime=ccmac.InProcess(ccmac.Network.ring(n), fused=fused)
    )
    assert result.status == "infeasible"
    found = result.infeasibility
    value = 0.0
    total_z = np.zeros(problem.q)
    for i, agent in problem.agents.items():
        gx = np.zeros(problem.d[i])
        gz = np.zeros(problem.q)
        for block, price, right, into in (
            (agent.A, found.coupled, None, gx),
            (agent.B, found.coupled, agent.b, gz),
            (agent.C, found.local.get(i), agent.c, gx),
            (agent.D, found.shared.get(i), agent.e, gz),
        ):
            if block is not None and price is not None:
                into[...] += block.T @ price
            if right is not None and price is not None:
                value += float(price @ right)
        np.testing.assert_allclose(gx, 0.0, atol=1e-8)
        total_z += gz
    np.testing.assert_allclose(total_z, 0.0, atol=1e-8)
    assert abs(value) > 1e-4
    assert value == pytest.approx(found.value, rel=1e-6)


def test_one_agent_owns_the_labels() -> None:
    """Strong convexity in z only from the sum: recovered by augmentation."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 12))
    y = rng.standard_normal(40)
    problem = ccmac.vfl.problem(X, y, 4, label_owner=1, regularization=0.1)
    exact = np.linalg.solve(X.T @ X / 40 + 0.1 * np.eye(12), X.T @ y / 40)
    result = ccmac.solve(problem, ccmac.Network.ring(4), method="cross-apapc", tol=1e-8)
    assert result.status == "optimal"
    assert np.linalg.norm(problem.weights(result) - exact) <= result.error_bound
    assert result.plan is not None
    assert result.plan.settings["augmentation"] > 0
