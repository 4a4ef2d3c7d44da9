"""The bound from a price alone, number by number: rounding is made large enough to be seen."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.certificates.dual_bound import DualBound
from ccmac.linalg.extended import EPS_LONG
from ccmac.linalg.nystrom import Columns, Shifted
from ccmac.linalg.tolerances import EPS
from ccmac.realizations.base import Images

A = np.array([[1.0, 2.0], [2.0, -1.0]])
PRICE = np.array([1.0, -1.0])
X = np.array([3.0, -4.0])


def plain(c: float) -> Shifted:
    """M = c I, S >= M."""
    return Shifted(Columns(), np.zeros((0, 0)), c, 0.0)


def test_an_agents_numbers() -> None:
    """grad + A'y = 0 at x = (3, -4), and all that is left is rounding, its own included."""
    own = -A.T @ PRICE
    gradient = np.append(own, 9.0).astype(np.longdouble)
    f = Fake(value=lambda x, z: 7.0, precise_gradient=lambda x, z: (gradient, 3 * EPS_LONG))
    agent = Fake(A=A, b=np.array([6.0, 8.0]), objective=f)
    known = {"lengths_of_blocks": [float(np.linalg.norm(A))]}
    parts: Any = Fake(problem=Fake(agents={0: agent}, n=5), m=2, **known)
    bound = DualBound(parts, plain(1.0))
    z = np.zeros(1)
    pulled = (A.T @ PRICE).astype(np.longdouble)
    rho2, size2, off, value = bound._own(0, X, z, pulled, float(np.linalg.norm(PRICE)))
    block = math.sqrt(10.0)
    length = float(np.linalg.norm(own))
    long = EPS_LONG * (6 * (block * math.sqrt(2.0) + length) + 3)
    assert math.sqrt(rho2) == pytest.approx(long, rel=1e-12, abs=0.0)
    assert (size2, value) == (pytest.approx(25.0), 7.0)
    assert off == pytest.approx(EPS * 11 * (block * 5 + 10), rel=1e-9, abs=0.0)


def test_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Violation (3, 0) - 2 (0, -2) = (3, 4), and rounding of the size of one everywhere."""
    unit = 1 / EPS
    n = 3
    z = np.array([0.0, -2.0])
    slope = np.array([unit, 0.0])
    price = np.array([0.0, unit])
    parts: Any = Fake(
        problem=Fake(n=n),
        m=2,
        c=4.0,
        mu=0.25,
        beta=-2.0,
        b=None,
        A=Fake(cost=None),
        minimisers=lambda price: X,
        shared=lambda price, slope: z,
        ledger=Fake(charge=lambda **k: None, charge_cost=lambda c: None),
        sums=lambda x, own, minus: (np.array([3.0, 0.0]), [9.0, 25.0, 0.5, 7.0]),
        runtime=Fake(unseen=lambda m: 0.25),
    )
    monkeypatch.setattr(DualBound, "_all", lambda self, x, z, price: None)
    monkeypatch.setattr(DualBound, "_prices", lambda self, z, price: None)
    found = DualBound(parts, plain(4.0)).at(price, slope, unit)
    off = 0.5 + 0.5 + 0.25
    rho = math.hypot(math.sqrt(9.25), 4 * (1 + 2) + n + 0.5)
    assert found.error == pytest.approx((5 + off) / 2 / 0.5 + 2 * rho / 0.25, rel=1e-12)
    assert found.stationarity == pytest.approx(rho)
    assert found.infeasibility == pytest.approx(5.0)
    assert found.size == pytest.approx(math.sqrt(29.0))
    assert (found.x.tolist(), found.z.tolist()) == (X.tolist(), z.tolist())
    assert (found.gradient_x.size, found.gradient_z.size, found.price) == (
        0,
        0,
        pytest.approx(price),
    )
    assert found.report is not None
    nothing = {"local": 0.0, "shared": 0.0, "consensus": 0.0}
    assert (found.report.residuals, found.report.objective) == ({"coupled": 5.0, **nothing}, 7.0)
    # A metric that knows more, of which a quarter is believed.
    seen: list[Any] = []
    sharp: Any = Fake(share=0.25, norm=lambda v, off: seen.append((v, off)) or 0.75)
    error = 0.75 / math.sqrt(0.25) / 0.5 + 2 * rho / 0.25
    assert DualBound(parts, sharp).at(price, slope, unit).error == pytest.approx(error, rel=1e-12)
    assert (seen[0][0].tolist(), seen[0][1]) == ([3.0, 4.0], pytest.approx(off))
    # Where the metric proves nothing, the curvature c alone does.
    alone = Shifted(Columns(), np.zeros((0, 0)), 4.0, 9.0)
    assert alone.share == 0
    assert DualBound(parts, alone).at(price, slope, unit).error == pytest.approx(found.error)
    assert DualBound(parts, plain(4.0)).estimate(16.0) == pytest.approx(4.0 / 0.5)
    assert DualBound(parts, plain(4.0)).estimate(0.25) == pytest.approx(0.5 / 0.5)
    assert DualBound(parts, plain(4.0)).estimate(-1e-9) == 0.0
    assert DualBound(parts, alone).estimate(EPS) == pytest.approx(1.0 / 0.5)


def test_slopes_of_a_state_that_was_read_are_summed_again_for_nothing() -> None:
    seen: list[str] = []

    @contextmanager
    def observing() -> Iterator[None]:
        seen.append("observed")
        yield

    def slope() -> Any:
        seen.append("summed")
        return Fake(value=np.array([1.0, 2.0, 3.0, 9.0]))

    parts: Any = Fake(ledger=Fake(observing=observing), slope=slope)
    found, sizes = DualBound(parts, plain(1.0)).slope_again()
    assert (found.tolist(), sizes, seen) == ([1.0, 2.0, 3.0], 9.0, ["observed", "summed"])


def test_what_images_say_of_the_metric() -> None:
    """S_A = diag(2, 6) of two agents with H <= 4 I: M = (2 / 4) S_A + I."""
    parts: Any = Fake(
        table=Fake(L_x=np.array([4.0, 2.0]), d=np.array([1, 1])),
        noise=0.0,
        c=1.0,
        m=2,
        problem=Fake(n=2),
        runtime=Fake(unseen=lambda m: 0.0),
    )
    found = DualBound.from_block(parts, Images(np.eye(2), np.diag([2.0, 6.0])))
    assert found.M.solve(np.ones(2)) == pytest.approx([1 / 2, 1 / 4], rel=1e-6)
    assert 0.99 < found.M.share < 1
