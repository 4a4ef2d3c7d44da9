"""Flags that ride on mixed rows: all have them after as many rounds as the diameter."""

from __future__ import annotations

import numpy as np
import pytest

import ccmac
from ccmac.paper.instances import random_quadratic, solve_kkt
from ccmac.runtime.whisper import FLAGS, Whisper

NETWORKS = [ccmac.Network.path(5), ccmac.Network.ring(6), ccmac.Network.grid(2, 3)]


@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: n.name)
@pytest.mark.parametrize("metropolis", [False, True])
def test_a_flag_reaches_everybody_in_as_many_rounds_as_the_diameter(
    network: ccmac.Network, metropolis: bool
) -> None:
    runtime = ccmac.InProcess(network, fused=False)
    matrix = network.metropolis() if metropolis else network.weights
    block = np.random.default_rng(0).standard_normal((network.n, 3))
    for agent in range(network.n):
        whisper = Whisper(runtime)
        far = int(network.hops([agent]).max())
        mine = np.zeros((network.n, FLAGS), dtype=bool)
        mine[agent, 1] = True
        assert not whisper.turn(mine).any()
        for k in range(1, network.diameter + 1):
            assert np.array_equal(whisper(block, matrix), matrix @ block)
            assert whisper.flags[:, 1].all() == (k >= far)
        assert whisper(block, matrix).shape == block.shape  # nothing rides any more
        assert whisper.turn(mine).tolist() == [False, True, False, False]
        assert not whisper.flags.any()  # what was heard just now is not said again


def test_a_method_that_only_mixes_averages_for_its_health_at_the_beginning_alone() -> None:
    """Later its flags ride: so many floats to every neighbor, in a diameter of rounds of ten."""
    problem = random_quadratic(5, 6, d=3, q=2, m=2, kappa_f=4.0)
    network = ccmac.Network.ring(6)
    exact = solve_kkt(problem)
    bills = []
    for fused in (True, False):
        for iterations in (30, 39):
            runtime = ccmac.InProcess(network, fused=fused)
            result = ccmac.solve(
                problem,
                method="dpmm",
                tol=1e-15,
                runtime=runtime,
                reference=exact,
                max_iterations=iterations,
            )
            bills.append(result.ledger.of("monitor"))
    assert bills[:2] == bills[2:]
    more = bills[1] - bills[0]
    one = runtime.mix_cost(FLAGS)
    assert (more["averagings"], more["rounds"], more["messages"]) == (0, 0, 0)
    assert more["network_bytes"] == network.diameter * one["network_bytes"]
    assert more["bytes"] == network.diameter * one["bytes"]
