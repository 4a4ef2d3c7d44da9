"""Random quadratics are what they say; the dense reference satisfies KKT and agrees with CVXPY."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import subspace_angles

from ccmac.errors import InputError
from ccmac.paper.instances import infeasibility, infeasible, random_quadratic, solve_kkt
from ccmac.paper.instances.random_quadratic import COUPLINGS
from ccmac.paper.instances.reference import constraints, dense
from ccmac.problem import Problem
from paper.instances.dense_geometry import channels, row_basis

FLAGS = st.fixed_dictionaries(
    {
        "rank_deficient": st.booleans(),
        "B": st.sampled_from(COUPLINGS),
        "sparse": st.booleans(),
        "absent": st.sampled_from([(), "A", "CD", "C", "D", "B", 0.4]),
        "d": st.sampled_from([(3, 5), 1, (0, 2)]),
        "m": st.integers(0, 4),
        "p": st.integers(0, 3),
        "r": st.integers(0, 3),
        "q": st.integers(1, 5),
    }
)


def kkt_violation(problem: Problem) -> float:
    """Largest violation of stationarity and feasibility, from the agents' own oracles."""
    s = solve_kkt(problem)
    worst = 0.0
    z_slope = np.zeros(problem.q)
    coupled = np.zeros(problem.m)
    for i, a in problem.agents.items():
        d = problem.d[i]
        p = problem.p[i]
        r = problem.r[i]
        m = problem.m
        q = problem.q
        A = dense(a.A, (m, d))
        B = dense(a.B, (m, q))
        C = dense(a.C, (p, d))
        D = dense(a.D, (r, q))
        g_x, g_z = a.objective.gradient(s.x[i], s.z)
        x_slope = g_x + A.T @ s.coupled + C.T @ s.local[i]
        z_slope += g_z + B.T @ s.coupled + D.T @ s.shared[i]
        coupled += A @ s.x[i] + B @ s.z - a.b
        local = C @ s.x[i] - (0.0 if a.c is None else a.c)
        shared = D @ s.z - (0.0 if a.e is None else a.e)
        worst = max([worst, *(np.abs(v).max(initial=0.0) for v in (x_slope, local, shared))])
    return max(worst, np.abs(z_slope).max(initial=0.0), np.abs(coupled).max(initial=0.0))


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 5), flags=FLAGS)
def test_every_switch_gives_a_feasible_problem_with_exact_kkt(seed, n, flags):
    problem = random_quadratic(seed, n, **flags)
    assert problem.complete
    assert problem.n == n
    assert infeasibility(problem) < 1e-10
    assert kkt_violation(problem) < 1e-8


def test_agrees_with_a_conic_solver():
    problem = random_quadratic(3, 3, kappa_f=20.0)
    G, h = constraints(problem)
    x = [cp.Variable(problem.d[i]) for i in range(3)]
    z = cp.Variable(problem.q)
    objective = 0
    for i, agent in problem.agents.items():
        u = cp.hstack([x[i], z])
        objective += 0.5 * cp.quad_form(u, agent.objective.H) - agent.objective.g @ u
    program = cp.Problem(cp.Minimize(objective), [G @ cp.hstack([*x, z]) == h])
    program.solve(solver="CLARABEL")
    solution = solve_kkt(problem)
    assert solution.unique
    assert solution.objective == pytest.approx(program.value, rel=1e-7)
    np.testing.assert_allclose(solution.z, z.value, atol=1e-6)


def test_condition_number_is_the_one_asked_for():
    problem = random_quadratic(0, 3, kappa_f=25.0)
    for agent in problem.agents.values():
        values = np.linalg.eigvalsh(agent.objective.H)
        assert values[0] == pytest.approx(1.0)
        assert values[-1] == pytest.approx(25.0)


@pytest.mark.parametrize("B", ["generic", "overlap"])
def test_overlap_gives_the_channels_a_common_direction(B):
    problem = random_quadratic(2, 3, d=4, B=B)
    K1, K2 = channels(problem)
    common = (
        np.linalg.matrix_rank(K1)
        + np.linalg.matrix_rank(K2)
        - np.linalg.matrix_rank(np.vstack([K1, K2]))
    )
    assert common == (1 if B == "overlap" else 0)


def test_without_B_the_channels_are_orthogonal():
    K1, K2 = channels(random_quadratic(2, 3, B="zero"))
    assert np.cos(subspace_angles(row_basis(K1).T, row_basis(K2).T)).max() < 1e-12


@pytest.mark.parametrize("conflict", ["coupled", "local", "shared", "cross"])
@pytest.mark.parametrize("n", [1, 4])
def test_infeasible_problems_are_infeasible(conflict, n):
    problem = infeasible(7, conflict, n)
    assert infeasibility(problem) > 1e-3
    with pytest.raises(InputError, match="contradict"):
        solve_kkt(problem)


@pytest.mark.parametrize("n", [1, 4])
def test_cross_conflict_leaves_each_channel_consistent(n):
    problem = infeasible(7, "cross", n)
    without_D = {
        i: type(a)(a.objective, A=a.A, B=a.B, b=a.b, C=a.C, c=a.c)
        for i, a in problem.agents.items()
    }
    without_coupling = {
        i: type(a)(a.objective, C=a.C, c=a.c, D=a.D, e=a.e) for i, a in problem.agents.items()
    }
    assert infeasibility(Problem(without_D, n=n)) < 1e-10
    assert infeasibility(Problem(without_coupling, n=n)) < 1e-10


def test_refusals_name_the_remedy():
    with pytest.raises(InputError, match="n >= 1"):
        random_quadratic(0, 0)
    with pytest.raises(InputError, match="condition number"):
        random_quadratic(0, kappa_f=0.5)
    with pytest.raises(InputError, match="one of coupled"):
        infeasible(0, "nowhere")
    with pytest.raises(InputError, match="needs all of them"):
        solve_kkt(random_quadratic(0, 4).restricted(range(2)))
