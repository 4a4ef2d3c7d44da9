"""solve against a dense KKT reference on random quadratics of every flavour."""

from __future__ import annotations

import numpy as np
import pytest

import ccmac
from ccmac.errors import InputError
from ccmac.paper.instances import random_quadratic
from ccmac.paper.instances.reference import solve_kkt
from ccmac.runtime import InProcess
from ccmac.runtime.averaging import Tree

TOL = 1e-6
REFERENCE = 1e-13  # relative accuracy of a dense KKT solve in doubles (condition below 1e3)


def flavour(seed: int) -> tuple[ccmac.Problem, ccmac.Network]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    options: dict[str, object] = {"kappa_f": float(10 ** rng.uniform(1, np.log10(300)))}
    if rng.random() < 0.3:
        options["rank_deficient"] = True
    if rng.random() < 0.15:
        options["B"] = "zero"
    if rng.random() < 0.15:
        options["B"] = "overlap"
    if rng.random() < 0.2:
        options["sparse"] = True
    if rng.random() < 0.3:
        count = int(rng.integers(1, 3))
        options["absent"] = tuple(str(b) for b in rng.choice(list("ABCD"), count, replace=False))
    problem = random_quadratic(seed, n=n, **options)  # type: ignore[arg-type]
    if n == 1:
        return problem, ccmac.Network.path(1)
    networks = (ccmac.Network.ring, ccmac.Network.path, ccmac.Network.star)
    return problem, networks[seed % 3](n)


def distance(problem: ccmac.Problem, result: ccmac.Result) -> float:
    """From the reference, less what its own rounding may be; tests/adversarial is exact."""
    reference = solve_kkt(problem)
    exact = np.concatenate([*reference.x, reference.z])
    off = float(np.linalg.norm(point(result) - exact))
    return max(off - REFERENCE * (1 + float(np.linalg.norm(exact))), 0.0)


@pytest.mark.parametrize("block", range(2))
def test_bound_and_tolerance_on_forty_instances(block: int) -> None:
    loose = 0
    for seed in range(20 * block, 20 * block + 20):
        problem, network = flavour(seed)
        result = ccmac.solve(problem, network, method="cross-apapc", tol=TOL)
        error = distance(problem, result)
        size = float(np.linalg.norm(np.concatenate([*result.x, result.z])))
        assert result.status == "optimal", (seed, result.message)
        assert error <= TOL * max(1.0, size), seed
        assert error <= result.error_bound, seed
        loose += result.error_bound > 100 * error
    assert loose <= 2  # within a factor 100 on at least 90 %


@pytest.mark.parametrize("seed", range(20))
def test_auto_agrees_too(seed: int) -> None:
    problem, network = flavour(seed)
    result = ccmac.solve(problem, network, tol=TOL)
    assert result.status == "optimal", result.message
    assert distance(problem, result) <= result.error_bound


@pytest.mark.parametrize("seed", range(6))
def test_multipliers_are_prices(seed: int) -> None:
    """grad_x f + A'y + C'kappa = 0 and sum_i (grad_z f + B'y + D'delta) = 0 at the solution."""
    problem, network = flavour(seed)
    result = ccmac.solve(problem, network, method="cross-apapc", tol=1e-9)
    prices = result.multipliers
    assert prices is not None
    balance = np.zeros(problem.q)
    for k, (i, agent) in enumerate(problem.agents.items()):
        gx, gz = agent.objective.gradient(result.x[i], result.z)
        for block, price, target in (
            (agent.A, prices.coupled, "x"),
            (agent.C, prices.local[k], "x"),
            (agent.B, prices.coupled, "z"),
            (agent.D, prices.shared[k], "z"),
        ):
            if block is not None:
                push = block.T @ price
                gx, gz = (gx + push, gz) if target == "x" else (gx, gz + push)
        assert np.linalg.norm(gx) <= 1e-5 * (1 + np.linalg.norm(prices.coupled))
        balance += gz
    assert np.linalg.norm(balance) <= 1e-5 * (1 + np.linalg.norm(prices.coupled))


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_fused_in_the_averaged_realization(seed: int) -> None:
    problem, network = flavour(seed)
    fused = ccmac.solve(problem, network, method="cross-apapc", tol=1e-5)
    plain = ccmac.solve(
        problem,
        network,
        method="cross-apapc",
        tol=1e-5,
        runtime=ccmac.InProcess(network, fused=False),
    )
    assert fused.iterations == plain.iterations
    assert fused.ledger.as_dict() == plain.ledger.as_dict()
    assert np.array_equal(point(fused), point(plain))


def test_averaging_is_checked() -> None:
    problem, network = flavour(1)
    with pytest.raises(InputError, match="'gossip' is unknown; take one of auto, relay, tree"):
        ccmac.solve(problem, network, averaging="gossip")
    runtime = InProcess(network, averaging=Tree(network))
    with pytest.raises(InputError, match="'relay': the runtime given has tree"):
        ccmac.solve(problem, network, runtime=runtime, averaging="relay")


def point(result: ccmac.Result) -> np.ndarray:
    """(x, z) as one vector."""
    return np.concatenate([*result.x, result.z])
