"""Step sizes, horizons and schedules of methods that can be written down."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import pytest

from ccmac.methods.apapc import Apapc
from ccmac.methods.checkpoints import Checkpoints


def iteration(rule: str, empty: bool = False) -> Any:
    """mu = 1/2, L = 8, a correction with spectrum in [1/2, 2]."""
    return Fake(
        rule=rule, system=Fake(empty=empty), correction=(0.5, 2.0), objective=Fake(mu=0.5, L=8.0)
    )


def test_the_papers_step_sizes() -> None:
    """tau = sqrt(19/15 / kappa) / 2, eta = 1/(4 tau L), theta = 15/(19 eta)."""
    tau, eta, theta = Apapc.parameters(iteration("paper"))
    assert tau == pytest.approx(0.5 * math.sqrt(19 / 15 / 16))
    assert eta == pytest.approx(1 / (32 * tau))
    assert theta == pytest.approx(15 / (19 * eta))
    assert Apapc.parameters(iteration("paper", empty=True)) == pytest.approx((0.125, 0.25, 0.0))


def test_the_horizon_of_the_theorem() -> None:
    """chi = 4, kappa = 16: the rate is 1/4 of min(1/8, 1/4)."""
    expected = math.ceil(2 * math.log(1e5) / math.log1p(1 / 32))
    assert Apapc.horizon(iteration("paper"), 10.0, 1e-4) == expected
    assert Apapc.horizon(iteration("paper"), 1e-9, 1.0) == math.ceil(2 / math.log1p(1 / 32))


def test_checkpoints_come_every_so_many_iterations() -> None:
    every: Any = Fake(every=3)
    assert [k for k in range(1, 10) if Checkpoints.due(every, k)] == [3, 6, 9]
