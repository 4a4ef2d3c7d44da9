"""Step sizes, horizons and schedules of methods that can be written down."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.ledger import Cost
from ccmac.linalg.chebyshev import correction_interval
from ccmac.methods import apapc
from ccmac.methods.apapc import Apapc, ApapcState
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


# -- a step ----------------------------------------------------------------------------------------
K = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 1.0]])
V = np.array([1.0, -1.0])
H = np.diag([0.5, 2.0, 8.0])
g = np.array([1.0, -1.0, 2.0])


def realized(empty: bool = False, steps: str = "tight", degree: int = 3) -> Any:
    system = Fake(
        empty=empty,
        cost=Cost(A=1),
        interval=Fake(low=0.9, high=5.0, source="proved"),
        residual=lambda w: (K.T @ (K @ w - V), (K @ w - V)[None]),
        common_price=lambda price: 2 * price,
    )
    objective = Fake(mu=0.5, L=8.0, gradient=lambda w: H @ w - g, cost=Cost(gradients=1))
    return Fake(
        system=system,
        objective=objective,
        space=None,
        steps=steps,
        degree=degree,
        predicted=9.0,
        realization="averaged",
        details={"kappa_f": 16.0},
        candidates=(),
        notes=("one",),
    )


@pytest.mark.parametrize("empty", [False, True])
def test_a_step_of_apapc(empty: bool) -> None:
    method = Apapc(realized(empty))
    tau, eta, theta = method.parameters()
    w = np.array([1.0, 2.0, -1.0])
    w_f = np.array([0.5, 0.0, 1.0])
    p = np.array([0.1, 0.2, 0.3])
    price = np.array([[4.0, 5.0]])
    found = method.step(ApapcState(w.copy(), w_f.copy(), p.copy(), price))
    mid = tau * w + (1 - tau) * w_f
    half = (w + eta * 0.5 * mid - eta * (H @ mid - g + p)) / (1 + eta * 0.5)
    change = np.zeros(3)
    if not empty:
        G = K.T @ K
        ref = np.linalg.pinv(K) @ V
        values, turn = np.linalg.eigh(G)
        c = (5.0 + 0.9) / 2
        s = (5.0 - 0.9) / 2
        poly = np.polynomial.chebyshev.Chebyshev.basis(3)
        share = 1 - poly((c - values) / s) / poly(c / s)
        change = theta * turn @ (share * (turn.T @ (half - ref)))
        assert K.T @ (found.price - price)[0] == pytest.approx(change)
    new = half - eta / (1 + eta * 0.5) * change
    assert found.w == pytest.approx(new)
    assert found.p == pytest.approx(p + change)
    assert found.w_f == pytest.approx(mid + 2 * tau / (2 - tau) * (new - w))
    assert method.cost == Cost(gradients=1) + (Cost() if empty else Cost(A=3))
    assert method.price(found) == pytest.approx(2 * found.price[0])


def test_where_the_spectrum_of_a_correction_lies() -> None:
    assert Apapc(realized(empty=True)).correction == (1.0, 1.0)
    assert Apapc(realized(steps="paper")).correction == (11 / 15, 19 / 15)
    assert Apapc(realized()).correction == correction_interval(0.9, 5.0, 3)


@pytest.mark.parametrize("steps", ["paper", "tight"])
def test_a_run_that_is_widened(steps: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight times at most; the paper's degree follows its interval."""
    monkeypatch.setattr(
        apapc, "replace", lambda stack, degree: Fake(**{**vars(stack), "degree": degree})
    )
    stack: Any = realized(steps=steps)

    def widen() -> None:
        stack.system.interval.low /= 4

    stack.system.widen = widen
    request: Any = Fake(tol=1e-4)
    found = apapc.prepared(stack, request, "why", 10.0)
    assert found.certificates == {
        "interval": [0.9, 5.0],
        "source": "proved",
        "mu": 0.5,
        "L": 8.0,
        "widened": 0,
        "horizon": found.horizon,
    }
    assert found.horizon == Apapc(stack).horizon(10.0, 1e-4)
    assert (found.predicted, found.notes, found.settings) == (9.0, ("one",), {"kappa_f": 16.0})
    assert found.judge is stack
    assert found.stopping is None
    assert not found.proves
    for count in range(1, 9):
        assert found.widen is not None
        found = found.widen()
        assert found.certificates["widened"] == count
        low = 0.9 / 4**count
        expected = math.ceil(math.sqrt(5.0 / low)) if steps == "paper" else 3
        assert found.iteration.degree == expected  # type: ignore[attr-defined]
    assert found.widen is None
    rule: Any = object()
    ruled = apapc.prepared(stack, request, "why", rule=rule)
    assert (ruled.stopping, ruled.proves, ruled.horizon) == (rule, True, None)
