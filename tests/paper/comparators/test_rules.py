"""Step rules of the comparators by hand."""

from __future__ import annotations

from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.ledger import Cost
from ccmac.paper.comparators.primal_dual import CondatVu, Papc, Pdhg

K = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]])
V = np.array([1.0, -1.0])
H = np.diag([1.0, 2.0, 4.0])
g = np.array([1.0, 0.0, -2.0])


def realized(mu: float = 0.5, L: float = 8.0, low: float = 0.25, high: float = 4.0) -> Any:
    system = Fake(
        empty=False,
        residual=lambda w: (K.T @ (K @ w - V), None),
        cost=Cost(A=1),
        interval=Fake(low=low, high=high, ratio=high / low, source="proved"),
    )
    objective = Fake(mu=mu, L=L, gradient=lambda w: H @ w - g, cost=Cost(gradients=1))
    return Fake(system=system, objective=objective, space=None, s=3.0)


# -- rules -----------------------------------------------------------------------------------------
def test_condat_vu_balances_primal_and_dual() -> None:
    """(mu L kappa)^{1/2} = 8 and L/2 = 4: s = 8 times the balance."""
    rule = CondatVu().iteration(realized(), 1.0)
    assert (rule.tau, rule.sigma) == pytest.approx((0.999 / 12, 2.0))
    rule = CondatVu().iteration(realized(), 3.0)
    assert (rule.tau, rule.sigma) == pytest.approx((0.999 / 28, 6.0))
    rule = CondatVu().iteration(realized(mu=1e-6), 1.0)  # L/2 at least
    assert (rule.tau, rule.sigma) == pytest.approx((0.999 / 8, 1.0))


def test_pdhg_and_papc_use_the_whole_interval() -> None:
    rule: Any = Pdhg().iteration(realized(), 2.0)
    assert (rule.tau, rule.sigma) == pytest.approx((1 / 16, 4.0))
    rule = Papc().iteration(realized(), 1.0)
    assert (rule.tau, rule.sigma) == pytest.approx((2 / 8.5, 8.5 / 8))
    rule = Papc().iteration(realized(), 9.0)
    assert (rule.tau, rule.sigma) == pytest.approx((1.999 / 8, 8 / (1.999 * 4)))
