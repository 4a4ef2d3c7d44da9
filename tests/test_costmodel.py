"""The cost model against closed forms."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmac.ledger import Cost
from ccmac.network import Network

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from costmodel import CostModel, Point, Workload, fit, simulate, tree_rounds


@given(alpha=st.floats(1e-7, 1e-1), beta=st.floats(1e-11, 1e-6))
def test_exact_measurements_are_recovered(alpha: float, beta: float) -> None:
    sizes = [(m, s) for m in (1, 2, 4) for s in (8, 1024, 10**6)]
    model = fit([Point(m, s, alpha * m + beta * s) for m, s in sizes])
    for m, s in [*sizes, (3, 10**5)]:
        assert model.round_seconds(m, s) == pytest.approx(alpha * m + beta * s, rel=1e-6)
    assert model.misfit < 1e-6


def test_a_latency_is_paid_once_however_many_the_neighbors() -> None:
    sizes = [(m, s) for m in (2, 5) for s in (16, 10**4, 10**6)]
    model = fit([Point(m, s, 0.02 + 1e-4 * m + 1e-8 * s) for m, s in sizes], apart=True)
    assert (model.latency, model.alpha, model.beta) == pytest.approx((0.02, 1e-4, 1e-8))
    assert "20 ms on the way" in str(model)
    cost = Cost(rounds=3, bytes=3 * 2 * 8)
    expected = 3 * (0.02 + 2e-4 + 16e-8)
    assert model.iteration_seconds(cost, degree=2) == pytest.approx(expected)
    assert simulate(Network.ring(9), model, Workload(3, 1)) == pytest.approx(expected)


def test_a_fit_is_never_negative_and_tells_its_misfit() -> None:
    model = fit([Point(1, 8, 1e-3), Point(1, 10**6, 0.5e-3)])  # faster when larger: noise
    assert model.alpha >= 0
    assert model.beta == 0
    assert 0.2 < model.misfit < 1
    assert "unlimited" in str(model)


def test_even_agents_take_the_time_of_the_formula() -> None:
    model = CostModel(1e-3, 1e-6)
    network = Network.ring(50)
    work = Workload(rounds=7, width=10, compute=0.5)
    cost = Cost(rounds=7, bytes=7 * 2 * 80)
    expected = 0.5 + 7 * (2 * 1e-3 + 2 * 80 * 1e-6)
    assert model.iteration_seconds(cost, degree=2, compute=0.5) == pytest.approx(expected)
    assert simulate(network, model, work, iterations=3) == pytest.approx(expected)


def test_waiting_is_for_neighbors_only() -> None:
    # A star of messages that take no time: after one round everybody waits for the centre only,
    # after two for everybody.
    network = Network.star(6)
    still = CostModel(0.0, 0.0)
    slow = np.random.default_rng(0).lognormal(-0.5 * 0.25, 0.5, 6)
    two = simulate(network, still, Workload(rounds=2, width=1, compute=1.0, jitter=0.5))
    assert two == pytest.approx(slow.max())


@pytest.mark.parametrize("network", [Network.grid(7, 9), Network.ring(31), Network.star(12)])
def test_sampled_tree_is_within_a_factor_two_of_the_best(network: Network) -> None:
    exact = 2 * network.centre[1]
    assert exact <= tree_rounds(network) <= 2 * exact
    assert tree_rounds(network, samples=network.n) == exact
