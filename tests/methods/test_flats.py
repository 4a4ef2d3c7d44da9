"""cross-direct on quadratics with flat directions, against exact arithmetic and dense algebra."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import ccmac
from adversarial import flats
from adversarial.direct import averagings
from ccmac.errors import MethodRefused
from ccmac.methods.direct import solver
from ccmac.objectives import Quadratic
from ccmac.workspace.schur import flat_directions


@pytest.mark.parametrize("seed", range(300, 324))
def test_verdicts_bounds_and_gaps_are_true(seed: int) -> None:
    """The short form of the script."""
    assert flats.judged(seed, "cross-direct", Counter()) is None


def intercept(n: int = 3) -> ccmac.Problem:
    """An entry of agent 0 without curvature, held by the coupled rows alone."""
    agents = []
    for i in range(n):
        weights = {0: [1.0, 0.0, 0.0], 1: [1.0, 1.0, 1.0]}.get(i, [1.0, 1.0, 0.0])
        f = Quadratic(np.diag(weights), np.array(weights))
        A = np.array([[1.0, 1.0], [0.0, 1.0 + i]])
        B = np.array([[1.0], [2.0]])
        agents.append(ccmac.Agent(f, A=A, B=B, b=np.array([1.0, float(i)])))
    return ccmac.Problem(agents, q=1)


def dense(problem: ccmac.Problem) -> np.ndarray:
    """(x, z) of the KKT system; no C and D."""
    d = list(problem.d.values())
    q = problem.q
    ends = np.cumsum([0, *d])
    size = sum(d) + q
    H = np.zeros((size, size))
    g = np.zeros(size)
    K = np.zeros((problem.m, size))
    v = np.zeros(problem.m)
    for i, agent in problem.agents.items():
        at = np.r_[ends[i] : ends[i + 1], size - q : size]
        own, slope, _ = agent.objective.quadratic(d[i], q)
        H[np.ix_(at, at)] += own
        g[at] += slope
        K[:, at] += np.hstack([agent.A, agent.B])
        v += agent.b
    kkt = np.block([[H, K.T], [K, np.zeros((problem.m, problem.m))]])
    return np.linalg.solve(kkt, np.concatenate([g, v]))[:size]


@pytest.mark.parametrize("method", ["auto", "cross-direct"])
def test_an_unpenalized_entry_joins_the_system(method: str) -> None:
    problem = intercept()
    result = ccmac.solve(problem, "ring", method, 1e-9)
    assert result.status == "optimal"
    assert result.plan is not None
    assert result.plan.method == "cross-direct"
    assert result.plan.settings["flat"] == 1
    assert result.plan.settings["free"] == 0
    assert result.plan.settings["flat_kept"] > 1e9
    assert result.plan.settings["flat_dropped"] < 1e-3
    error = float(np.linalg.norm(np.concatenate([*result.x, result.z]) - dense(problem)))
    assert error <= result.error_bound <= 1e-9
    assert averagings(result) <= 4  # what all declare, equations, the sum, a step


def test_bits_and_bills_do_not_depend_on_the_runtime() -> None:
    for seed in (1, 2, 6, 19):
        problem = (draft := flats.make(seed)[1]).problem()
        network = ccmac.Network.path(draft.n)
        one, other = (
            ccmac.solve(problem, network, "cross-direct", runtime=ccmac.InProcess(network, fused=f))
            for f in (True, False)
        )
        assert all(np.array_equal(a, b) for a, b in zip(one.x, other.x, strict=True))
        assert np.array_equal(one.z, other.z)
        assert one.ledger.total("bytes") == other.ledger.total("bytes")


def test_small_curvature_is_not_taken_for_none() -> None:
    found = flat_directions(np.diag([1.0, 1e-20, 0.0]), np.array([1.0, 1e-20, 0.0]))
    assert found.basis.shape == (3, 1)
    assert abs(found.basis[2, 0]) == pytest.approx(1.0)


def test_too_many_flat_directions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ccmac.methods.direct.UNKNOWNS", 2)
    with pytest.raises(MethodRefused, match="flat directions few enough"):
        ccmac.solve(intercept(), "ring", "cross-direct")
    other = ccmac.solve(intercept(), "ring", tol=1e-6)
    assert other.plan is not None
    assert other.plan.method == "cross-ipm"
    assert other.status == "optimal"


def test_a_matrix_that_elimination_finds_singular_is_solved_across_its_null_space() -> None:
    K = np.diag([2.0, 0.0, -4.0])
    np.testing.assert_allclose(solver(K)(np.array([2.0, 7.0, 4.0])), [1.0, 0.0, -1.0])
    np.testing.assert_allclose(solver(K + np.eye(3))(np.array([3.0, 1.0, 3.0])), [1.0, 1.0, -1.0])


# -- little curvature, little slope ----------------------------------------------------------------
def fitted(rows: list[list[float]], levels: list[int], right: list[float], n: int, q: int) -> Any:
    """n agents with |M u - y|^2/2 of u = (x, z), M of exact rows: least at every M u = y."""
    M = np.array(rows) * 2.0 ** -np.array(levels)[:, None]
    f = Quadratic(M.T @ M, M.T @ np.array(right))
    agents = [ccmac.Agent(f, C=np.zeros((0, M.shape[1] - q))) for _ in range(n)]
    return ccmac.Problem(agents, q=q, m=0)


@pytest.mark.parametrize(
    "problem",
    [
        fitted([[-2, 0, 2, 2], [-1, -1, 2, -3]], [0, 19], [-3, 81920], 3, 4),
        fitted([[-2, 2, -3], [-2, 2, -1]], [0, 15], [0, -32], 2, 3),
        fitted([[2, 0, 3], [2, 3, -1]], [17, 0], [-32768, 0], 3, 3),
    ],
)
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
def test_where_it_bends_little_nothing_falls_without_end(
    problem: ccmac.Problem, tol: float
) -> None:
    """Rounding turns directions without curvature towards those with little, which slope."""
    assert ccmac.solve(problem, tol=tol).status != "unbounded"


@pytest.mark.parametrize("size", [1.0, 2.0**8])
@pytest.mark.parametrize("slope", [3 * 2.0**-8, 2.0**-16])
def test_a_slight_slope_without_curvature_is_a_free_fall(size: float, slope: float) -> None:
    """Of an entry that no equation sees, beside gradients of ``size``."""
    held = Quadratic([1.0, 0.0, 1.0], [size, slope, 0.0])
    agents = [ccmac.Agent(held, A=[[1.0, 0.0]], B=[[1.0]], b=[size])]
    agents += [ccmac.Agent(Quadratic(np.ones(2), [size, 1.0]), A=[[1.0]], B=[[1.0]])]
    result = ccmac.solve(ccmac.Problem(agents), "path", tol=1e-3)
    assert result.status == "unbounded"
    assert result.certificates["fall"] == pytest.approx(slope)
