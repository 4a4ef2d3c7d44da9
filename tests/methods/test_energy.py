"""The energy of an accelerated run at a state, in closed form."""

from __future__ import annotations

from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.linalg.chebyshev import correction_interval
from ccmac.methods.energy import Energy
from certificates.test_realized import case


@pytest.mark.parametrize("augment", [0.0, 0.75])
@pytest.mark.parametrize("empty", [False, True])
def test_the_energy_is_its_formula(augment: float, empty: bool) -> None:
    c = case(2, s=2.0)
    space = c.realized.space
    system = c.realized.system
    Q = np.zeros((10, 10))  # |z_i - mean|^2
    for j in range(2):
        at = [6 + j, 8 + j]
        Q[np.ix_(at, at)] = np.eye(2) - 0.5
    H = c.H + augment * Q
    objective = Fake(
        values=c.realized.objective.values, gradient=lambda w: H @ w - c.g, augment=augment
    )
    iteration: Any = Fake(
        objective=objective,
        space=space,
        degree=3,
        parameters=lambda: (0.25, 0.5, 2.0),
        realized=Fake(embed=lambda x, z: c.solution),
        system=Fake(empty=empty, interval=system.interval),
    )
    random = np.random.default_rng(0)
    w, ahead, p = (c.solution + random.standard_normal(10) for _ in range(3))
    assert np.array_equal(np.nonzero(space.z(np.arange(10.0)).ravel())[0], range(4))
    energy = Energy(iteration, np.zeros(6), np.zeros((2, 2)))
    state: Any = Fake(w=w, w_f=ahead, p=p)
    step = ahead - c.solution
    expected = np.sum((w - c.solution) ** 2) / 0.5 + 2 * 0.75 / 0.25 * (step @ H @ step) / 2
    if not empty:
        low, _ = correction_interval(system.interval.low, system.interval.high, 3)
        expected += np.sum((p + H @ c.solution - c.g) ** 2) / (2.0 * low)
    before = space.runtime.ledger.total
    assert energy(state) == pytest.approx(expected)
    assert space.runtime.ledger.total == before
    energy.value += 1e6  # were rounding so large: a distance is never negative
    assert energy(state) == pytest.approx(expected - 2 * 0.75 / 0.25 * (step @ H @ step) / 2)
