"""A contradiction among equations that all know, number by number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ccmac import Agent, Network, Problem
from ccmac.certificates import conflicts
from ccmac.certificates.conflicts import Conflicts
from ccmac.certificates.prices import Recovery
from ccmac.inputs import Array
from ccmac.objectives import Quadratic
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from ccmac.workspace.reduced import Reduced

COARSE = 2.0**-7


def posed() -> tuple[Conflicts, Reduced]:
    """x = (3, 1) by C alone, then (1, 2)'z = 11 - 9 - 1 by the coupled row and 5 by D."""
    f = Quadratic(np.eye(3), np.zeros(3))
    agents = [
        Agent(f, A=[[3.0]], B=[[1.0, 2.0]], b=[10.0], C=[[2.0]], c=[6.0], D=[[1.0, 2.0]], e=[5.0]),
        Agent(f, A=[[1.0]], B=[[0.0, 0.0]], b=[1.0], C=[[4.0]], c=[4.0]),
    ]
    work = Workspace(Problem(agents), InProcess(Network.complete(2)))
    assert work.reduced is not None
    return Conflicts(work, Recovery(work)), work.reduced


def test_value_defect_and_size_in_closed_form(monkeypatch: pytest.MonkeyPatch) -> None:
    found, reduced = posed()
    seen: list[tuple[float, ...]] = []

    def claim(*numbers: float) -> bool:
        seen.append(numbers)
        return True

    def cancelled(pairs: list[tuple[Array, Array]]) -> float:
        assert sum(matrix.T @ price for matrix, price in pairs) == pytest.approx(0.0, abs=1e-15)
        assert all(np.any(price) for _, price in pairs)
        return 0.0

    monkeypatch.setattr(conflicts, "claimed", claim)
    monkeypatch.setattr(conflicts, "_defect", cancelled)
    for name in ("EPS", "EPS_LONG"):
        monkeypatch.setattr(conflicts, name, COARSE)
    said = found.together(reduced)
    assert said is not None
    u, v = float(reduced.unit[0]), float(reduced.unit_D[0])
    h, sign = math.hypot(u, v), np.sign(said.value)
    unit = u * v / h
    # y = -unit, kappa = (3/2, 1/4) unit, delta = unit, up to the sign.
    assert said.coupled == pytest.approx([-sign * unit])
    assert said.local[0] == pytest.approx([1.5 * sign * unit])
    assert said.local[1] == pytest.approx([0.25 * sign * unit])
    assert said.shared[0] == pytest.approx([sign * unit])
    assert said.value == pytest.approx(sign * 4 * unit)
    [(sure, defect, size)] = seen
    assert sure == pytest.approx(4 * unit - 4 * COARSE * (21 + 5) * unit)
    assert defect == pytest.approx(2 * COARSE * math.sqrt(5) * unit, rel=1e-6)
    assert said.defect == defect
    assert size == pytest.approx((u * u + 5 * v * v) / (math.sqrt(5) * h * h))
    for text in ("coupled equation", "C of agents 0, 1", "D of agents 0", "violation"):
        assert text in said.message


def test_a_share_in_closed_form() -> None:
    """Of agent 0: b'y + c'kappa, what A'y + C'kappa leaves, and the sizes."""
    found, reduced = posed()
    high, low, off2, terms, size = found._share(reduced, 0, np.array([2.0]), np.array([-5.0]))
    assert high + low == 10 * 2 - 6 * 5
    assert math.sqrt(off2) == pytest.approx(abs(3 * 2 - 2 * 5))
    assert (terms, size) == (20 + 30, 5.0)


def test_a_misfit_that_may_be_rounding_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of the range lie 4 uv/h of (u, 5v): SEEN for every row, and the kernels' angle."""
    found, reduced = posed()
    u, v = float(reduced.unit[0]), float(reduced.unit_D[0])
    share = 4 * u * v / math.hypot(u, v) / math.hypot(u, 5 * v)
    for factor, there in ((0.99, True), (1.01, False)):
        monkeypatch.setattr(conflicts, "SEEN", factor * share / math.sqrt(2))
        assert (found.together(reduced) is not None) is there
    monkeypatch.setattr(conflicts, "SEEN", 0.25 * share / math.sqrt(2))
    for factor, there in ((0.74, True), (0.76, False)):
        reduced.angle = factor * share
        assert (found.together(reduced) is not None) is there


@pytest.mark.parametrize(("defect", "said"), [(1e-6, "proof"), (1e-3, "doubt"), (1.0, "nothing")])
def test_what_is_claimed_doubted_or_left_alone(
    defect: float, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, reduced = posed()
    monkeypatch.setattr(conflicts, "_defect", lambda pairs: defect)
    assert (found.together(reduced) is not None) is (said == "proof")
    assert ("all agents together" in found.doubt) is (said == "doubt")
