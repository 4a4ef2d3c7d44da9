"""Results in the user's rows: violations by sense, prices with their signs, names; closed forms."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.certificates import limits
from ccmac.certificates.infeasibility import Infeasibility
from ccmac.certificates.prices import Multipliers
from ccmac.objectives import Quadratic
from ccmac.results import Solution
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace

MIXED = np.array(["<=", "<=", ">=", ">=", "==", "=="])
INF = math.inf


def test_what_is_violated_by_the_sense_of_a_row() -> None:
    left = np.array([3.0, -3.0, 3.0, -3.0, 3.0, -3.0])
    assert limits.violation(left, None, MIXED).tolist() == [3.0, 0.0, 0.0, -3.0, 3.0, -3.0]
    shifted = limits.violation(left, np.array([1.0, -5.0, 5.0, 1.0, 1.0, 1.0]), MIXED)
    assert shifted.tolist() == [2.0, 2.0, -2.0, -4.0, 2.0, -4.0]
    assert limits.violation(left, np.ones(6), None).tolist() == (left - 1).tolist()
    assert limits.violation(left, None, None).tolist() == left.tolist()


def test_how_far_entries_lie_outside_their_bounds() -> None:
    v, low, high = np.array([-2.0, 1.0, 7.0]), np.zeros(3), np.full(3, 3.0)
    assert limits.outside(v, low, high).tolist() == [2.0, 0.0, 4.0]
    assert limits.outside(v, low, None).tolist() == [2.0, 0.0, 0.0]
    assert limits.outside(v, None, high).tolist() == [0.0, 0.0, 4.0]
    assert limits.outside(v, None, None).tolist() == [0.0, 0.0, 0.0]


def test_wrong_signs_are_rounding_up_to_a_point() -> None:
    price = np.array([-1.0, -2.0, 1.0, 2.0, -1.0, 1.0])
    assert limits._signed(price, MIXED, 1.0).tolist() == [0.0, -2.0, 0.0, 2.0, -1.0, 1.0]
    right = np.array([5.0, 0.5, -5.0, -0.5, 0.0, 9.0])
    assert limits._signed(right, MIXED, 1.0).tolist() == right.tolist()
    assert limits._signed(price, None, 1.0).tolist() == price.tolist()


def test_a_bound_balances_what_pushes_against_it() -> None:
    rest = np.array([3.0, -3.0, 3.0])
    assert limits._bound_price(rest, np.array([0.0, 0.0, -INF])).tolist() == [3.0, 0.0, 0.0]
    assert limits._bound_price(rest, None).tolist() == [0.0, 0.0, 0.0]


def test_an_objective_without_slopes_tells_none() -> None:
    x, z = np.array([2.0]), np.array([3.0])
    known: Any = Fake(objective=Quadratic(np.diag([2.0, 4.0]), np.ones(2)))
    assert limits._gradient(known, x, z).tolist() == [3.0, 11.0]
    silent: Any = Fake(objective=Fake(capabilities=frozenset({"prox"})))
    assert np.isnan(limits._gradient(silent, x, z)).tolist() == [True, True]


def posed() -> tuple[Workspace, Any]:
    """x_0 = 3, x_1 = -4, z = 5: two coupled rows, a row of C, a row of D, bounds on all."""
    f = Quadratic(np.diag([2.0, 4.0]), np.array([1.0, 3.0]))
    agents = [
        ccmac.Agent(
            f, A=[[1.0], [2.0]], B=[[1.0], [0.0]], b=[1.0, 0.0], C=[[2.0]], c=[1.0], C_sense="<=",
            lower=-1.0, upper=9.0, name="north",
        ),
        ccmac.Agent(f, A=[[2.0], [1.0]], B=[[1.0], [1.0]], D=[[3.0]], e=[3.0], D_sense=">="),
    ]  # fmt: skip
    problem = ccmac.Problem(
        agents, sense=["<=", "=="], z_lower=-7.0, z_upper=6.0, row_names=["sum", "balance"]
    )
    work = Workspace(problem, InProcess(ccmac.Network.path(2)))
    assert work.reduction is not None
    return work, work.reduction


def test_prices_of_bounds_balance_the_slope() -> None:
    """r = grad f + A'y + C'kappa at x_0 = 3, and the sum over agents for z."""
    work, way = posed()
    y, kappa, delta = np.array([0.5, -2.0]), 4.0, -1.5
    given = Multipliers(
        np.append(y, delta), [np.array([kappa]), np.zeros(0)], [np.zeros(0), np.zeros(0)],
        np.zeros((2, 1)),
    )  # fmt: skip
    x, z = [np.array([3.0]), np.array([-4.0])], np.array([5.0])
    known = limits._prices(work, way, given, (x, z), 0.0)
    work.runtime.average(np.zeros((2, 1)))  # the next message
    found = known()
    assert found.coupled.tolist() == y.tolist()
    assert [v.tolist() for v in found.shared] == [[], [delta]]
    r_0 = (2 * 3.0 - 1) + 0.5 + 2 * -2.0 + 2 * kappa
    assert [found.lower[0].tolist(), found.upper[0].tolist()] == [[r_0], [0.0]]
    assert [found.lower[1].tolist(), found.upper[1].tolist()] == [[0.0], [0.0]]
    r_z = 2 * (4 * 5.0 - 3) + (0.5 + 0.5 - 2.0) + 3 * delta
    assert (found.z_lower, found.z_upper) == (pytest.approx([r_z]), pytest.approx([0.0]))
    # A wrong sign is rounding beside the largest price, or what is left of stationarity.
    for wrong, largest, left, kept in (
        (-3e-7, 4.0, 0.0, 0.0), (-5e-7, 4.0, 0.0, -5e-7), (-2e-7, 0.5, 0.0, -2e-7),
        (-5e-7, 4.0, 1e-6, 0.0),
    ):  # fmt: skip
        given.coupled[:2] = wrong, largest
        known = limits._prices(work, way, given, (x, z), left)
        work.runtime.average(np.zeros((2, 1)))
        assert known().coupled.tolist() == [kept, largest]
    given.coupled[:2] = y
    # The other way round: what pulls from above.
    given.coupled[0] = -500.0
    known = limits._prices(work, way, given, (x, z), 0.0)
    work.runtime.average(np.zeros((2, 1)))
    found = known()
    assert found.lower[0].tolist() == [0.0]
    assert found.upper[0] == pytest.approx([-(r_0 - 500.5)])
    assert found.z_upper == pytest.approx([-(r_z - 1001.0)])


def test_a_solution_is_lifted_with_its_slacks_and_prices() -> None:
    work = posed()[0]
    x, z = [np.array([-3.0]), np.array([-4.0])], np.array([5.0])
    prices = Multipliers(
        np.array([0.5, -2.0]), [np.array([4.0]), np.zeros(0)], [np.zeros(0), np.array([-1.5])],
        np.array([[1.0], [-1.0]]),
    )  # fmt: skip
    found = limits.lifted(work, Solution(x, z, prices))
    # Room of 2 in row 0, of 7 in C, of 12 in D, in powers of two near the lengths of rows.
    assert sorted(np.concatenate(found.x).tolist()) == sorted([-3.0, -4.0, 2 / 2, 7 / 2, 12 / 4])
    assert found.multipliers.coupled.tolist() == [0.5, -2.0, -1.5]
    assert [v.tolist() for v in found.multipliers.local] == [[4.0], []]
    assert [v.tolist() for v in found.multipliers.shared] == [[], []]
    assert found.multipliers.consensus.tolist() == [[1.0], [-1.0]]
    assert work.ledger.of("setup")["averagings"] > 0
    assert work.ledger.of("solve")["averagings"] == 0
    # What is no solution, or not of this problem, is left for others to judge.
    assert limits.lifted(work, "warm") == "warm"
    other = Solution([np.zeros(2), np.zeros(1)], z, prices)
    assert limits.lifted(work, other) is other
    other = Solution(x, np.zeros(2), prices)
    assert limits.lifted(work, other) is other


def test_words_name_the_rows_that_matter_most_and_the_agents() -> None:
    _, way = posed()
    said = "the coupled equation sum(A x + B z - b) = 0 and the bounds of agents 0, 1 cannot"
    named = limits._in_names(way.user, said, np.array([1.0, -2.0]))
    assert named == "the coupled rows balance, sum and the bounds of agents north, 1 cannot"
    assert limits._in_names(way.user, said, np.array([0.0, -2.0])).startswith(
        "the coupled rows balance and"
    )
    assert limits._in_names(way.user, said, np.zeros(2)).startswith("the coupled equation sum(")
    plain: Any = Fake(row_names=None, agents={})
    many = limits._in_names(plain, said, np.array([1.0, 2.0, 0.0, -4.0, 3.0]))
    assert many == "the coupled rows 3, 4, 1, ... and the bounds of agents 0, 1 cannot"


def test_a_contradiction_in_the_users_rows() -> None:
    _, way = posed()
    found = Infeasibility(
        "x", np.array([1.0, 2.0, 3.0]), shared={}, defect=0.5, value=2.0,
        bounds={0: np.array([1.0, 5.0, 6.0]), 1: np.array([2.0, 7.0])},
    )  # fmt: skip
    told = limits._farkas(way, found)
    assert told.coupled.tolist() == [1.0, 2.0]
    assert {i: v.tolist() for i, v in told.shared.items()} == {1: [3.0]}
    assert {i: v.tolist() for i, v in told.bounds.items()} == {0: [1.0], 1: [2.0]}
    short = Infeasibility("x", np.zeros(2))
    assert limits._farkas(way, short) is short
