"""Results in the user's rows: violations by sense, prices with their signs, names; closed forms."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.certificates import users_rows as limits
from ccmac.certificates.farkas import Infeasibility
from ccmac.certificates.multipliers import Multipliers
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
    v = np.array([-2.0, 1.0, 7.0])
    low = np.zeros(3)
    high = np.full(3, 3.0)
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
    x = np.array([2.0])
    z = np.array([3.0])
    known: Any = Fake(objective=Quadratic(np.diag([2.0, 4.0]), np.ones(2)))
    assert limits._gradient(known, x, z).tolist() == [3.0, 11.0]
    silent: Any = Fake(objective=Fake(capabilities=frozenset({"prox"})))
    assert np.isnan(limits._gradient(silent, x, z)).tolist() == [True, True]


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


def test_prices_of_bounds_balance_the_slope() -> None:
    """r = grad f + A'y + C'kappa at x_0 = 3, and the sum over agents for z."""
    work, way = posed()
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
        (-3e-7, 4.0, 0.0, 0.0),
        (-5e-7, 4.0, 0.0, -5e-7),
        (-2e-7, 0.5, 0.0, -2e-7),
        (-5e-7, 4.0, 1e-6, 0.0),
        (-3e-7, -4.0, 0.0, 0.0),
    ):
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


@pytest.mark.parametrize("ends", [{"z_lower": 0.0}, {"z_upper": 0.0}, {}])
def test_prices_of_bounds_on_z_from_one_side(ends: dict[str, float]) -> None:
    """f = (x^2 + z^2) / 2 of two agents at z = 3 or -3; without bounds nothing is sent."""
    f = Quadratic(np.eye(2), np.zeros(2))
    side = 3.0 if "z_lower" in ends else -3.0
    agents = [ccmac.Agent(f, C=[[1.0]], c=[9.0], C_sense="<=") for _ in range(2)]
    work = Workspace(ccmac.Problem(agents, q=1, **ends), InProcess(ccmac.Network.path(2)))
    given = Multipliers(np.zeros(0), [np.zeros(1)] * 2, [np.zeros(0)] * 2, np.zeros((2, 1)))
    point = [np.zeros(1)] * 2, np.array([side])
    assert work.reduction is not None
    known = limits._prices(work, work.reduction, given, point, 0.0)
    before = work.ledger.of("solve")["averagings"]
    found = known()
    assert work.ledger.of("solve")["averagings"] - before == len(ends)
    assert found.z_lower.tolist() == [6.0 if "z_lower" in ends else 0.0]
    assert found.z_upper.tolist() == [6.0 if "z_upper" in ends else 0.0]


def test_a_solution_is_lifted_with_its_slacks_and_prices() -> None:
    work = posed()[0]
    x = [np.array([-3.0]), np.array([-4.0])]
    z = np.array([5.0])
    prices = Multipliers(
        np.array([0.5, -2.0]),
        [np.array([4.0]), np.zeros(0)],
        [np.zeros(0), np.array([-1.5])],
        np.array([[1.0], [-1.0]]),
    )
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


def test_of_a_solution_of_all_agents_the_own_parts_are_lifted() -> None:
    """Agent 1 of two is here; so it is where the solution has its part alone."""
    given: list[Any] = []

    def lifted(x: Any, z: Any, runtime: Any) -> Any:
        given.append([v.tolist() for v in x])
        return x

    way = Fake(user=Fake(n=2, d={1: 1}, q=1), lifted=lifted)
    work: Any = Fake(
        reduction=way, runtime=Fake(owned=[1]), ledger=Fake(phase=lambda name: nullcontext())
    )
    z = np.zeros(1)
    for x in ([np.array([3.0]), np.array([4.0])], [np.array([4.0])]):
        assert limits.lifted(work, Solution(x, z, None)).z is z
    assert given == [[[4.0]], [[4.0]]]


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


# -- whole results ---------------------------------------------------------------------------------
@dataclass(frozen=True)
class Told:
    """What of a result is read and replaced."""

    x: list[Any]
    z: Any
    certificates: dict[str, Any] = field(default_factory=dict)
    infeasibility: Any = None
    objective: float = 1.0
    residuals: dict[str, float] = field(default_factory=dict)
    multipliers: Any = None
    _problem: Any = "reduced"


POINT = [np.array([-5.0]), np.array([-4.0])], np.array([-8.0])
# Rows: -5 - 8 - 1 - 8 - 8 <= 0 holds, -10 - 4 - 8 = 0 is 22 off; 2 x_0 <= 1 holds, 3 z >= 3 is 27
# off; x_0 >= -1 by 4, z >= -7 by 1.
OFF = {"coupled": 22.0, "local": 0.0, "shared": 27.0, "limits": math.sqrt(17.0)}


def value(x: float, z: float) -> float:
    return x * x - x + 2 * z * z - 3 * z


def test_violations_and_the_objective_at_a_point() -> None:
    work, way = posed()
    norms, said = limits._violations(work, way, *POINT)
    assert norms == pytest.approx(OFF)
    assert said == pytest.approx(value(-5.0, -8.0) + value(-4.0, -8.0))
    # The other sides: sums above, C above, D held, bounds from above.
    norms, _ = limits._violations(work, way, [np.array([12.0]), np.array([1.0])], np.array([7.0]))
    rows = np.array([12 + 7 - 1 + 2 + 7, 24 + 1 + 7])
    assert norms == pytest.approx(
        {"coupled": np.linalg.norm(rows), "local": 23.0, "shared": 0.0, "limits": math.sqrt(9 + 1)}
    )


def test_a_result_as_the_user_stated_the_problem() -> None:
    work, way = posed()
    x = [np.append(v, np.zeros(way.problem.d[i] - 1)) for i, v in enumerate(POINT[0])]
    assert [len(v) for v in x] == [3, 2]
    prices = Multipliers(
        np.array([0.5, -2.0, -1.5]),
        [np.array([4.0]), np.zeros(0)],
        [np.zeros(0)] * 2,
        np.zeros((2, 1)),
    )
    direction = {"x": [np.arange(3.0), np.arange(2.0)], "z": np.ones(1), "fall": 2.0}
    told: Any = Told(
        x,
        POINT[1],
        {"gap": 0.5, "direction": direction},
        None,
        3.0,
        {"stationarity": 0.25, "coupled": 9.0},
        prices,
    )
    found: Any = limits.in_users_rows(work, told)
    assert [v.tolist() for v in found.x] == [[-5.0], [-4.0]]
    assert found._problem is way.user
    assert (found.certificates["slacks"], found.certificates["gap"]) == (3, 0.5)
    along = found.certificates["direction"]
    assert ([v.tolist() for v in along["x"]], along["fall"]) == ([[0.0], [0.0]], 2.0)
    assert found.residuals == pytest.approx({"stationarity": 0.25, **OFF})
    assert found.objective == pytest.approx(value(-5.0, -8.0) + value(-4.0, -8.0))
    assert found.multipliers.coupled.tolist() == [0.5, -2.0]
    assert found.multipliers.shared[1].tolist() == [-1.5]
    assert work.ledger.of("monitor")["averagings"] > 0
    assert work.ledger.of("solve")["averagings"] == 0
    # What is left of stationarity excuses a wrong sign.
    given = replace(prices, coupled=np.array([-0.2, -2.0, -1.5]))
    for left, kept in ((0.25, 0.0), (0.1, -0.2)):
        told = replace(told, multipliers=given, residuals={"stationarity": left})
        found = limits.in_users_rows(work, told)
        assert found.multipliers.coupled[0] == kept
    told = replace(told, residuals={"coupled": 1.0})
    assert limits.in_users_rows(work, told).multipliers.coupled[0] == -0.2
    found = limits.in_users_rows(work, replace(told, multipliers=None))
    assert found.multipliers is None


def test_a_verdict_needs_no_point() -> None:
    work = posed()[0]
    x = [np.zeros(3), np.zeros(2)]
    proof = Infeasibility("x", np.array([1.0, 2.0, 3.0]), value=2.0)
    told: Any = Told(x, np.zeros(1), {}, proof, math.nan)
    found: Any = limits.in_users_rows(work, told)
    assert found.infeasibility.coupled.tolist() == [1.0, 2.0]
    assert (found.residuals, found.certificates) == ({}, {"slacks": 3})
    assert work.ledger.of("monitor")["averagings"] == 0
    # Either a value or residuals: there is a point to look at.
    for more in ({"objective": 1.0}, {"residuals": {"local": 1.0}}):
        assert "limits" in limits.in_users_rows(work, replace(told, **more)).residuals
