"""Results in the user's rows: violations by sense, multipliers and their signs, names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.certificates import users_rows as limits
from ccmac.certificates.farkas import Infeasibility
from ccmac.certificates.multipliers import Multipliers
from ccmac.objectives import Quadratic
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace

MIXED = np.array(["<=", "<=", ">=", ">=", "==", "=="])


def test_what_is_violated_by_the_sense_of_a_row() -> None:
    left = np.array([3.0, -3.0, 3.0, -3.0, 3.0, -3.0])
    assert limits.violation(left, None, MIXED).tolist() == [3.0, 0.0, 0.0, -3.0, 3.0, -3.0]
    shifted = limits.violation(left, np.array([1.0, -5.0, 5.0, 1.0, 1.0, 1.0]), MIXED)
    assert shifted.tolist() == [2.0, 2.0, -2.0, -4.0, 2.0, -4.0]
    assert limits.violation(left, np.ones(6), None).tolist() == (left - 1).tolist()
    assert limits.violation(left, None, None).tolist() == left.tolist()


def test_how_far_entries_lie_outside_their_bounds() -> None:
    v = np.array([-2.0, 1.0, 7.0])
    low = np.zeros(3)
    high = np.full(3, 3.0)
    assert limits.outside(v, low, high).tolist() == [2.0, 0.0, 4.0]
    assert limits.outside(v, low, None).tolist() == [2.0, 0.0, 0.0]
    assert limits.outside(v, None, high).tolist() == [0.0, 0.0, 4.0]
    assert limits.outside(v, None, None).tolist() == [0.0, 0.0, 0.0]


def posed() -> tuple[Workspace, Any]:
    """x_0 = 3, x_1 = -4, z = 5: two coupled rows, a row of C, a row of D, bounds on all."""
    f = Quadratic(np.diag([2.0, 4.0]), np.array([1.0, 3.0]))
    agents = [
        ccmac.Agent(
            f,
            A=[[1.0], [2.0]],
            B=[[1.0], [0.0]],
            b=[1.0, 0.0],
            C=[[2.0]],
            c=[1.0],
            C_sense="<=",
            lower=-1.0,
            upper=9.0,
            name="north",
        ),
        ccmac.Agent(f, A=[[2.0], [1.0]], B=[[1.0], [1.0]], D=[[3.0]], e=[3.0], D_sense=">="),
    ]
    problem = ccmac.Problem(
        agents, sense=["<=", "=="], z_lower=-7.0, z_upper=6.0, row_names=["sum", "balance"]
    )
    work = Workspace(problem, InProcess(ccmac.Network.path(2)))
    assert work.reduction is not None
    return work, work.reduction


def test_multipliers_of_bounds_balance_the_slope() -> None:
    """r = grad f + A'y + C'kappa at x_0 = 3, and the sum over agents for z."""
    _, way = posed()
    y = np.array([0.5, -2.0])
    kappa = 4.0
    delta = -1.5
    given = Multipliers(
        np.append(y, delta),
        [np.array([kappa]), np.zeros(0)],
        [np.zeros(0), np.zeros(0)],
        np.zeros((2, 1)),
    )
    x = [np.array([3.0]), np.array([-4.0])]
    z = np.array([5.0])
    found, on_z = limits.signed_multipliers(way, given, x, z, 0.0)
    assert found.coupled.tolist() == y.tolist()
    assert [v.tolist() for v in found.shared] == [[], [delta]]
    r_0 = (2 * 3.0 - 1) + 0.5 + 2 * -2.0 + 2 * kappa
    assert [found.lower[0].tolist(), found.upper[0].tolist()] == [[r_0], [0.0]]
    assert [found.lower[1].tolist(), found.upper[1].tolist()] == [[0.0], [0.0]]
    r_z = 2 * (4 * 5.0 - 3) + (0.5 + 0.5 - 2.0) + 3 * delta
    assert on_z.sum(axis=0) == pytest.approx([r_z])
    # A wrong sign is rounding relative to the largest multiplier, or what is left of stationarity.
    for wrong, largest, left, kept in (
        (-3e-7, 4.0, 0.0, 0.0),
        (-5e-7, 4.0, 0.0, -5e-7),
        (-2e-7, 0.5, 0.0, -2e-7),
        (-5e-7, 4.0, 1e-6, 0.0),
        (-3e-7, -4.0, 0.0, 0.0),
    ):
        given.coupled[:2] = wrong, largest
        known, _ = limits.signed_multipliers(way, given, x, z, left)
        assert known.coupled.tolist() == [kept, largest]
    given.coupled[:2] = y
    # The other way round: what pulls from above.
    given.coupled[0] = -500.0
    found, on_z = limits.signed_multipliers(way, given, x, z, 0.0)
    assert found.lower[0].tolist() == [0.0]
    assert found.upper[0] == pytest.approx([-(r_0 - 500.5)])
    assert on_z.sum(axis=0) == pytest.approx([r_z - 1001.0])


@pytest.mark.parametrize("ends", [{"z_lower": 3.0}, {"z_upper": -3.0}, {}])
def test_multipliers_of_bounds_on_z_from_one_side(ends: dict[str, float]) -> None:
    """f = (x^2 + z^2) / 2 of two agents, held at z = 3 or -3."""
    f = Quadratic(np.eye(2), np.zeros(2))
    agents = [ccmac.Agent(f, C=[[1.0]], c=[9.0], C_sense="<=") for _ in range(2)]
    found = ccmac.solve(ccmac.Problem(agents, q=1, **ends), "path", tol=1e-9).multipliers
    low, high = (6.0 if name in ends else 0.0 for name in ("z_lower", "z_upper"))
    assert found.z_lower == pytest.approx([low], abs=1e-6)
    assert found.z_upper == pytest.approx([high], abs=1e-6)


def test_a_contradiction_in_the_users_rows() -> None:
    _, way = posed()
    found = Infeasibility(
        "x",
        np.array([1.0, 2.0, 3.0]),
        shared={},
        defect=0.5,
        value=2.0,
        bounds={0: np.array([1.0, 5.0, 6.0]), 1: np.array([2.0, 7.0])},
    )
    told = limits._farkas(way, found)
    assert told.coupled.tolist() == [1.0, 2.0]
    assert {i: v.tolist() for i, v in told.shared.items()} == {1: [3.0]}
    assert {i: v.tolist() for i, v in told.bounds.items()} == {0: [1.0], 1: [2.0]}
    # Equations D of an agent that takes no part: no price is one of zero, which is not named.
    f = Quadratic(np.eye(2), np.zeros(2))
    agents = [ccmac.Agent(f, D=[[1.0]], e=[k], lower=0.0) for k in (1.0, 2.0)]
    work = Workspace(ccmac.Problem(agents, q=1), InProcess(ccmac.Network.path(2)))
    assert work.reduction is not None
    told = limits._farkas(
        work.reduction, Infeasibility("x", np.zeros(0), shared={1: np.array([5.0])})
    )
    assert {i: v.tolist() for i, v in told.shared.items()} == {1: [5.0]}
    short = Infeasibility("x", np.zeros(2))
    assert limits._farkas(way, short) is short
