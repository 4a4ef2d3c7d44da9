"""Cases that runs seldom meet, each in closed form."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

from ccmac import Agent, Network, Problem
from ccmac.certificates import dual_bound, explicit, inside, recession
from ccmac.certificates.dual_bound import SpacedDualStop
from ccmac.certificates.error_bound import Bound
from ccmac.certificates.gap import DualityGap, Gap, Goal
from ccmac.certificates.gap_stopping import as_bound
from ccmac.certificates.prices import Recovery
from ccmac.certificates.share import Share
from ccmac.certificates.stopping import Check
from ccmac.certificates.weighing import Weighing
from ccmac.inputs import Array
from ccmac.objectives import Quadratic, Separable, SquaredDistance
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from certificates.test_duality_sums import D_X, Made, N, Q


@pytest.mark.parametrize("least", [0.0, -1.0, math.nan])
def test_equations_that_may_be_dependent_leave_no_curvature(least: float) -> None:
    """What the agents told of sizes and flat directions is kept all the same."""
    facts = np.array([[4.0, 0.0, 0.5, 0, 0, 0, 7.0, 0.25, 3.0], [9.0, 0, 1, 0, 0, 0, 5, 0.5, 2]])
    reduced: Any = Fake(rank=1, least=least)
    said = inside.inside(np.eye(3), 2, facts, reduced, 9.0)
    assert said == inside.Inside(0.0, noise=1.5, size=5.0, kept=5.0, dropped=0.5)


def test_the_bound_of_a_gap_holds_what_the_gap_holds() -> None:
    w, gradient, price = (np.full(2, v) for v in (1.0, 2.0, 3.0))
    found = Gap(w, gradient, -w, 5.0, 0.1, 0.2, 0.3, 0.1, 1.0, True, 1.0, error=0.75, price=price)
    said = as_bound(found)
    assert (said.error, said.stationarity, said.infeasibility) == (0.75, 0.2, 0.3)
    assert said.w is w
    assert said.gradient is gradient
    assert said.price is price


@pytest.mark.parametrize(("travelled", "radius"), [(0.1, 1.0), (0.5, 1.0), (3.0, 6.0)])
def test_a_radius_that_nobody_gave_is_named_as_an_estimate(travelled: float, radius: float) -> None:
    w = np.zeros(1)
    plain = Gap(w, w, w, 5.0, 0.1, 0.2, 0.3, travelled, 1.0, True, 1.0)
    dual = DualityGap(5.0, 0.1, 0.2, 0.3, travelled)
    for said in (plain.record(Goal(1e-3)), dual.record(Goal(1e-3))):
        assert said["radius"] == radius
        assert said["radius_source"] == "estimated: twice the distance travelled, at least 1"
        assert said["gap"] == pytest.approx(0.1 + 0.2 * radius)
    for said in (plain.record(Goal(1e-3, 1.0, 7.0)), dual.record(Goal(1e-3, 1.0, 7.0))):
        assert (said["radius"], said["radius_source"]) == (7.0, "supplied")
    units = replace(dual, least=0.25).record(Goal(1e-3, 1.0, 7.0))
    assert units["radius"] == 7.0 / 4
    assert units["radius_source"] == (
        "supplied, in units of the unknowns; told is the ball of yours within"
    )


def _stop(found: list[Check], refined: list[Any]) -> explicit.ExplicitStop:
    """Judges as told, one after the other, and notes what is refined."""

    def refine(state: Any, proved: Any) -> Any:
        refined.append(proved)
        return state

    part: Any = Fake(
        norm=3.0, explicit=Fake(beta=-4.0), mu=0.25, runtime=Fake(notes=Fake(led=False))
    )
    stop = explicit.ExplicitStop(part, 0.1, refine)
    stop._judged = lambda x, long=False: found.pop(0)  # type: ignore[method-assign]
    return stop


def test_what_all_agree_on_is_refined() -> None:
    """A check that is passed on to all, and one whose proof the others do not have."""
    passed = list[float]()
    refined = list[Any]()

    class Heard(Check):
        def agreed(self, runtime: Any) -> Check:
            passed.append(self.bound)
            return self

    proved = explicit.Proved(*[np.zeros(1)] * 2, 8.0, 0.0, 0.0, 1.0, *[np.zeros(1)] * 3)
    iteration: Any = Fake(point=lambda state: (state, None), finished=lambda state: True)
    stop = _stop([Heard(8.0, False, proved), Heard(7.9, False, proved)], refined)
    assert stop.final(iteration, 0).bound == 7.9
    assert passed == [8.0, 7.9]
    assert refined == [proved]
    refined.clear()
    other = Heard(8.0, False, None)  # nothing to refine from
    assert _stop([other], refined).final(iteration, 0) is other
    assert refined == []


def _spaced(planned: float | None, errors: list[float], warm: bool = False) -> SpacedDualStop:
    """Proves the errors one after the other; the goal is 0.01."""
    bound: Any = Fake(at=lambda price, slope, slopes: Fake(error=errors.pop(0), size=0.5))
    slope: Any = Fake(value=np.zeros(3))
    return SpacedDualStop(bound, 0.01, slope, planned, warm=warm)


def _next(stop: SpacedDualStop, count: int) -> int:
    """After how many more steps it looks again."""
    iteration: Any = Fake(price=lambda state: np.zeros(2))
    stop.check(iteration, None, count)
    return next(k for k in range(1000) if stop.due(count + k))


@pytest.mark.parametrize("planned", [None, math.inf])
def test_without_a_plan_proofs_are_a_fifth_apart(planned: float | None) -> None:
    for count, steps in ((4, 3), (17, 3), (19, 3), (20, 4), (34, 6), (104, 20)):
        for error in (1.0, math.inf):
            assert _next(_spaced(planned, [error]), count) == steps
    first = _spaced(planned, [])
    assert [first.due(k) for k in (dual_bound.FIRST_CHECK - 1, dual_bound.FIRST_CHECK)] == [0, 1]
    assert _spaced(planned, [], warm=True).due(1)


def test_proofs_follow_the_faster_of_two_rates() -> None:
    """Planned: a factor 100 in 100 steps. Seen: a factor 10 in 10 steps is faster, 1.1 is not."""
    first = _spaced(100.0, [])
    early = round(100 * dual_bound.EARLY)
    assert [first.due(k) for k in (early - 1, early)] == [0, 1]
    assert _next(_spaced(100.0, [0.1]), 80) == 50
    assert _next(_spaced(100.0, [1.0]), 80) == 80  # not farther than it has come
    assert _next(_spaced(100.0, [10.0]), 5) == 10
    assert _next(_spaced(100.0, [math.inf]), 80) == 16
    assert _next(_spaced(100.0, [0.010001]), 80) == 1
    for errors, steps in (([1.0, 0.1], 10), ([0.11, 0.1], 50), ([0.05, 0.1], 50)):
        stop = _spaced(100.0, [*errors])
        _next(stop, 80)
        assert _next(stop, 90) == steps
    again = _spaced(100.0, [1.0, 0.1])
    _next(again, 90)
    assert _next(again, 90) == 50  # twice at one place: no rate
    other = _spaced(None, [0.1])
    other.bound.slope_again = lambda: (np.zeros(2), 1.0)  # type: ignore[method-assign]
    other.recall({"next": 90, "rate": math.log(100) / 100, "last": [80, 1.0]})
    assert other.memory() == {"next": 90, "rate": math.log(100) / 100, "last": (80, 1.0)}
    assert _next(other, 90) == 10


def test_the_worst_violation_of_an_agents_own_rows_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(0, monkeypatch)
    made.scalars[:, 12] = 0.0
    made.scalars[1, 12] = 1e6
    found, _ = made.found.gap(made.draw(N * D_X), made.draw(Q), made.mine)
    assert found.violation == 1e6


def _heard(mine: Check, *others: tuple[float, ...], drift: float = 0.25) -> tuple[Check, Any]:
    """What becomes of a check where other agents say (bound, error, drift, done, verdict)."""
    asked: list[Array] = []

    def gather(rows: Array) -> Array:
        asked.append(rows)
        return np.vstack([rows, np.reshape(others, (-1, 5))])

    runtime: Any = Fake(notes=Fake(led=True, drift=drift), owned=[0, 1], gather=gather)
    said = mine.agreed(runtime)
    if asked:
        assert asked[0].shape == (2, 5)
        np.testing.assert_array_equal(asked[0][0], asked[0][1])
    return said, (len(asked), runtime.notes.drift)


def test_processes_that_round_differently_say_the_worst_of_all() -> None:
    proof = Bound(0.5, 0.0, 0.0, np.zeros(1))
    mine = Check(0.5, True, proof)
    said, (asked, drift) = _heard(mine, (0.25, 0.125, 0.5, 1, 0), (0.25, 0.25, 0.0, 1, 0))
    assert (said.bound, said.done, said.certificate.error) == (0.5, True, 0.5)
    assert (asked, drift) == (1, 0.5)
    said, (_, drift) = _heard(mine, (0.75, 0.625, 0.125, 1, 0))
    assert (said.bound, said.done, said.certificate.error, drift) == (0.75, True, 0.625, 0.25)
    said, _ = _heard(mine, (0.25, 0.25, 0.0, 0, 0), (0.25, 0.25, 0.0, 1, 0))
    assert not said.done  # one of them is not content
    assert said.certificate == proof
    said, _ = _heard(replace(mine, done=False), (0.25, 0.25, 0.0, 1, 0))
    assert not said.done


def test_a_verdict_is_said_by_all_or_nobody() -> None:
    verdict: Any = Fake()
    mine = Check(math.nan, True, None, verdict)
    assert _heard(mine, (math.nan, math.nan, 0.0, 1, 1))[0].verdict is verdict
    assert _heard(mine, (math.nan, math.nan, 0.0, 1, 1))[0].done
    for other in ((0.1, 0.1, 0.0, 1, 0), (math.nan, math.nan, 0.0, 0, 0)):
        said, _ = _heard(mine, other)
        assert (said.verdict, said.done) == (None, False)
    plain = Check(0.1, True, Bound(0.1, 0.0, 0.0, np.zeros(1)))
    assert not _heard(plain, (0.1, 0.1, 0.0, 1, 1))[0].done  # others have a verdict


def test_where_nothing_is_claimed_nothing_is_asked() -> None:
    idle = Check(1.0, False)
    said, (asked, drift) = _heard(idle, (9.0, 9.0, 9.0, 1, 1))
    assert said is idle
    assert (asked, drift) == (0, 0.25)
    runtime: Any = Fake(notes=Fake(led=False))
    done = Check(1.0, True)
    assert done.agreed(runtime) is done
    assert _heard(done, (1.0, math.nan, 0.0, 0, 0))[0].done is False


def test_quadratics_of_unequal_parts_are_laid_out_as_x_and_z() -> None:
    """a |x|^2 / 2 - a c'x and b |z|^2 / 2 with three entries of x and two of z."""
    f = Separable(SquaredDistance(2.0, [1.0, -1.0, 4.0]), SquaredDistance(5.0))
    agents = [Agent(f, A=np.eye(1, 3), B=np.eye(1, 2), b=[1.0]) for _ in range(2)]
    work = Workspace(Problem(agents), InProcess(Network.complete(2)))
    assert work.reduced is not None
    own = Share(work, work.reduced, 0)
    slope, _ = own.gradient(np.array([1.0, 2.0, 3.0]), np.array([-1.0, 0.5]))
    assert slope.astype(float).tolist() == [0.0, 6.0, -2.0, -5.0, 2.5]


def test_products_with_operators_are_those_with_their_entries() -> None:
    """A_i'y + C_i'kappa of an agent whose blocks can only be multiplied."""
    draw = np.random.default_rng(4).standard_normal
    A = draw((3, 4))
    B = draw((3, 2))
    C = draw((2, 4))
    f = Separable(SquaredDistance(1.0), SquaredDistance(1.0))
    said = []
    for made in (np.asarray, aslinearoperator):
        agent = Agent(f, A=made(A), B=made(B), b=draw(3), C=made(C), c=draw(2))
        work = Workspace(Problem([agent, agent]), InProcess(Network.complete(2)))
        own = Weighing(Recovery(work))
        price = np.array([1.0, 0.0, -2.0])
        kappa = np.array([0.5, 3.0])
        said.append([*own.on_x(1, price, kappa), *own.on_z(1, price, np.zeros(0))])
        assert said[-1][0].astype(float) == pytest.approx(A.T @ price + C.T @ kappa)
        assert said[-1][2].astype(float) == pytest.approx(B.T @ price)
    dense, products = said
    assert products[1] == pytest.approx(dense[1], rel=1e-12)
    assert products[3] == pytest.approx(dense[3], rel=1e-12)


@pytest.mark.parametrize(("steep", "seen"), [(1e-3, False), (4.0, True)])
def test_a_fall_must_exceed_what_is_left_of_the_equations(
    steep: float, seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F = -2 steep z with x_1 + x_2 + 2 z = 0, a defect of 1/2 made up: beside sizes of one."""
    f = Quadratic(np.zeros((2, 2)), [0.0, steep])
    agents = [Agent(f, A=[[1.0]], B=[[1.0]], b=[0.0]) for _ in range(2)]
    work = Workspace(Problem(agents), InProcess(Network.complete(2)))
    monkeypatch.setattr(recession, "_image", lambda *given: 0.5)
    monkeypatch.setattr(recession, "REACH", 0.5)
    found = recession.recession(work)
    assert (found is not None) is seen
    if found is not None:
        slope = steep * np.array([0.0, 0.0, 2.0])
        across = np.array([1.0, 1.0, 2.0]) / math.sqrt(6)
        inside = slope - across * (across @ slope)
        assert found.fall == pytest.approx(np.linalg.norm(inside))
        assert found.defect == 0.5
