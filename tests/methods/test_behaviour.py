"""What a user meets: bad input, wrong certificates, limits, warm starts, interruption, records."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import pytest

import ccmac
from ccmac import objectives
from ccmac.errors import AssumptionWarning, GradientError, InputError, MethodRefused
from ccmac.methods import CrossApapc, CrossCg
from ccmac.paper import data
from ccmac.paper.instances import random_quadratic
from ccmac.paper.instances.reference import solve_kkt
from ccmac.workspace import declared

NETWORK = ccmac.Network.ring(4)


@pytest.fixture
def problem() -> ccmac.Problem:
    return random_quadratic(7, n=4)


def error(problem: ccmac.Problem, result: ccmac.Result) -> float:
    exact = solve_kkt(problem)
    gap = np.concatenate([*result.x, result.z]) - np.concatenate([*exact.x, exact.z])
    return float(np.linalg.norm(gap))


@pytest.mark.parametrize("tol", [0, -1e-3, float("nan"), float("inf"), "tight"])
def test_bad_tolerance(problem: ccmac.Problem, tol: object) -> None:
    with pytest.raises(InputError, match="tol"):
        ccmac.solve(problem, NETWORK, tol=tol)  # type: ignore[arg-type]


def test_network_of_another_size(problem: ccmac.Problem) -> None:
    with pytest.raises(InputError, match="5 agents but the problem has 4"):
        ccmac.solve(problem, ccmac.Network.ring(5))


def test_flat_objectives_are_refused_with_a_suggestion() -> None:
    flat = objectives.Quadratic(np.diag([1.0, 0.0]), np.ones(2))
    agents = [ccmac.Agent(flat, A=np.eye(1), B=np.eye(1)) for _ in range(4)]
    with pytest.raises(MethodRefused, match=r"strongly convex.*cross-ipm"):
        ccmac.solve(ccmac.Problem(agents), NETWORK, method="cross-apapc")


def test_a_gradient_that_turns_nan_names_agent_and_iteration() -> None:
    calls = [0]

    def value(x: np.ndarray, z: np.ndarray) -> float:
        return 0.5 * float(x @ x + z @ z)

    def good(x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return x, z

    def bad(x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        calls[0] += 1
        return (x * np.nan if calls[0] > 60 else x), z

    agents = [
        ccmac.Agent(
            objectives.Custom(value, bad if k == 2 else good, 1.0, 1.0),
            A=np.eye(1),
            B=np.eye(1),
            b=[float(k)],
        )
        for k in range(4)
    ]
    with pytest.raises(GradientError, match=r"agent 2.*iteration \d+"):
        ccmac.solve(ccmac.Problem(agents), NETWORK, tol=1e-300, max_iterations=500)


def test_a_smoothness_declared_too_small_is_noticed() -> None:
    def value(x: np.ndarray, z: np.ndarray) -> float:
        return 5.0 * float(x @ x + z @ z)

    def gradient(x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return 10.0 * x, 10.0 * z

    agents = [
        ccmac.Agent(objectives.Custom(value, gradient, 2.0, 1.0), A=np.eye(1), B=np.eye(1), b=[1.0])
        for _ in range(4)
    ]
    with pytest.warns(AssumptionWarning, match="declared smoothness"):
        ccmac.solve(ccmac.Problem(agents), NETWORK, max_iterations=3)


# -- certificates ---------------------------------------------------------------------------------
def test_supplied_certificates_are_used(problem: ccmac.Problem) -> None:
    given = ccmac.Certificates(h=100.0, mu_HC=0.01)
    result = ccmac.solve(problem, NETWORK, method=CrossApapc(certificates=given))
    assert result.status == "optimal"
    assert error(problem, result) <= result.error_bound


def test_a_certified_top_that_is_too_low_does_no_harm(problem: ccmac.Problem) -> None:
    given = ccmac.Certificates(h=0.3, mu_HC=0.01)
    result = ccmac.solve(problem, NETWORK, method=CrossApapc(certificates=given))
    assert result.status == "optimal"
    assert error(problem, result) <= result.error_bound


def test_a_cross_factor_that_is_too_small_is_noticed_and_widened(problem: ccmac.Problem) -> None:
    given = ccmac.Certificates(cross_factor=1.0)
    result = ccmac.solve(problem, NETWORK, method=CrossApapc(certificates=given))
    assert result.status == "optimal"
    assert any("it was put to" in text for text in result.warnings)
    assert error(problem, result) <= result.error_bound


def test_a_look_is_believed_only_when_the_interval_is_confirmed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """cross-cg never repairs: its last look is checked against a cross factor that is too small."""
    monkeypatch.setattr(declared.CurvatureTable, "eliminates_z", False)  # needs no cross factor
    found = data.load("a1a-like")
    problem = ccmac.vfl.problem(found.X, found.y, 8, shares=("cross_factor", 5.0))
    given = ccmac.Certificates(cross_factor=1.0)
    result = ccmac.solve(problem, ccmac.Network.ring(8), method=CrossCg(certificates=given))
    assert result.status == "optimal"
    assert any("it was put to" in text for text in result.warnings)


def test_a_blow_up_is_noticed_widened_and_reported() -> None:
    """Structure hides the spectrum's top from the check at setup: the run itself finds out."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = rng.standard_normal(60)
    problem = ccmac.vfl.problem(X, y, 4, regularization=0.05)
    given = ccmac.Certificates(h=0.02, mu_HC=0.01)
    result = ccmac.solve(problem, NETWORK, method=CrossApapc(certificates=given), tol=1e-6)
    exact = np.linalg.solve(X.T @ X / 60 + 0.05 * np.eye(8), X.T @ y / 60)
    assert result.status == "optimal"
    assert any("grew" in text or "not in the interval" in text for text in result.warnings)
    assert np.linalg.norm(problem.weights(result) - exact) <= result.error_bound


def test_energy_radius_gives_a_horizon(problem: ccmac.Problem) -> None:
    given = ccmac.Certificates(energy_radius=1e3)
    result = ccmac.solve(problem, NETWORK, method=CrossApapc(certificates=given))
    assert result.iterations <= result.certificates["horizon"]


@pytest.mark.parametrize("field", [{"h": -1.0}, {"h": 1.0, "mu_HC": 2.0}, {"cross_factor": 0.5}])
def test_impossible_certificates(field: dict[str, float]) -> None:
    with pytest.raises(InputError, match="certificates"):
        ccmac.Certificates(**field)


# -- stopping and continuing -----------------------------------------------------------------------
def test_limits(problem: ccmac.Problem) -> None:
    result = ccmac.solve(problem, NETWORK, method="cross-apapc", tol=1e-12, max_iterations=5)
    assert (result.status, result.iterations) == ("max_iterations", 5)
    assert error(problem, result) <= result.error_bound
    slow = ccmac.solve(problem, NETWORK, method="cross-apapc", tol=1e-14, max_seconds=1e-9)
    assert (slow.status, slow.iterations) == ("max_iterations", 0)
    assert "setup" in slow.warnings[0]


def test_reference_stops_by_relative_error(problem: ccmac.Problem) -> None:
    exact = solve_kkt(problem)
    result = ccmac.solve(
        problem,
        NETWORK,
        method="cross-apapc",
        tol=1e-8,
        reference=ccmac.Solution(list(exact.x), exact.z),
    )
    target = np.concatenate([*exact.x, exact.z])
    point = np.concatenate([*result.x, result.z])
    assert np.sum((point - target) ** 2) <= 1.01e-8 * np.sum(target**2)
    assert result.relative_error <= 1e-8
    assert result.ledger.of("monitor")["gradients"] <= 1  # observing is free
    same = ccmac.solve(problem, NETWORK, method="cross-apapc", tol=1e-8, reference=target)
    assert same.iterations == result.iterations


def test_a_reference_of_the_wrong_size(problem: ccmac.Problem) -> None:
    with pytest.raises(InputError, match="reference"):
        ccmac.solve(problem, NETWORK, reference=np.zeros(3))


def test_warm_start_saves_most_of_the_work(problem: ccmac.Problem) -> None:
    cold = ccmac.solve(problem, NETWORK, method="cross-apapc", tol=1e-7)
    warm = ccmac.solve(problem, NETWORK, method="cross-apapc", tol=1e-7, warm_start=cold)
    assert warm.iterations < cold.iterations / 3
    assert error(problem, warm) <= warm.error_bound


@pytest.mark.parametrize("method", ["cross-apapc", "cross-cg"])
def test_a_warm_start_keeps_the_prices(problem: ccmac.Problem, method: str) -> None:
    cold = ccmac.solve(problem, NETWORK, method=method, tol=1e-7)
    warm = ccmac.solve(problem, NETWORK, method=method, tol=1e-7, warm_start=cold)
    assert cold.multipliers is not None
    assert warm.multipliers is not None
    assert np.linalg.norm(cold.multipliers.coupled) > 1e-3
    assert warm.multipliers.coupled == pytest.approx(cold.multipliers.coupled, abs=1e-4)


def test_rows_that_are_dropped_are_listed() -> None:
    """Agent 1's second row repeats its first, the third coupled row adds up the others."""
    random = np.random.default_rng(4)
    A = random.standard_normal((2, 2, 3))
    f = ccmac.objectives.SquaredDistance(1.0)
    row = [[1.0, 2.0, 3.0]]
    rows = [np.array(row), np.vstack([row, row])]
    agents = [
        ccmac.Agent(f, A=np.vstack([A[i], A[i].sum(axis=0)]), b=[1.0, 2.0, 3.0], C=C, c=C[:, 0])
        for i, C in enumerate(rows)
    ]
    result = ccmac.solve(ccmac.Problem(agents, q=0), "path", "cross-cg")
    dropped = result.certificates["rows"]["dropped"]
    assert result.status == "optimal"
    assert result.certificates["rows"]["rank"] == 2  # of the coupled ones
    assert len(dropped["coupled"]) == 1
    assert {agent: len(rows) for agent, rows in dropped["local"].items()} == {"1": 1}


@pytest.mark.parametrize("shown", [True, False, None])
def test_a_bar_names_the_method(
    problem: ccmac.Problem,
    shown: bool | None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On standard error, where it is asked for; by itself only in a terminal."""
    monkeypatch.setenv("FORCE_COLOR", "1")  # else rich draws nothing in a pipe
    ccmac.solve(problem, "ring", "cross-cg", progress=shown)
    said = capsys.readouterr()
    assert ("cross-cg" in said.err) == bool(shown)
    assert not said.out


def test_ctrl_c_returns_the_iterate(problem: ccmac.Problem) -> None:
    def interrupt(count: int, state: object) -> None:
        if count == 7:
            os.kill(os.getpid(), signal.SIGINT)

    result = ccmac.solve(problem, NETWORK, method="cross-apapc", tol=1e-12, callback=interrupt)
    assert (result.status, result.iterations) == ("interrupted", 7)
    assert error(problem, result) <= result.error_bound


def test_callback_may_stop(problem: ccmac.Problem) -> None:
    result = ccmac.solve(
        problem, NETWORK, tol=1e-12, method="cross-apapc", callback=lambda k, s: k == 4
    )
    assert result.iterations == 4


# -- records ---------------------------------------------------------------------------------------
def test_result_reads_well_everywhere(problem: ccmac.Problem) -> None:
    result = ccmac.solve(problem, NETWORK, method="cross-apapc")
    text = str(result)
    assert "certified" in text
    assert "rounds" in text
    record = json.loads(json.dumps(result.as_dict(solution=True)))
    assert record["status"] == "optimal"
    assert "<table>" in result._repr_html_()
    assert len(result.trace) == result.iterations
    frame = result.trace.to_pandas()
    assert list(frame["iteration"]) == list(range(1, result.iterations + 1))
    assert result.geometry.cross_factor >= 1
