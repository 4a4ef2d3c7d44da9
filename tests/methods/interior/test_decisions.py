"""When proofs are tried, how long steps are, which bounds a direction keeps: without a run."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from ccmac import Agent, Problem
from ccmac.certificates.farkas import Infeasibility
from ccmac.certificates.gap import DualityGap, Goal
from ccmac.certificates.recession import Recession
from ccmac.certificates.stopping import Check, Evidence
from ccmac.inputs import Array
from ccmac.methods.interior import feasible, made, stopping
from ccmac.methods.interior.common import Common, _sparse
from ccmac.methods.interior.iteration import Interior
from ccmac.methods.interior.own import OwnPoint
from ccmac.methods.interior.rays import Ray, _begun, largest
from ccmac.methods.interior.sides import Sides
from ccmac.methods.interior.stopping import DualityStop
from ccmac.objectives import L1, Box, Halfspace, Huber, Limited, Quadratic, Separable, Simplex
from methods.interior.test_interior import begun

INF = np.inf
WAIT = Check(0.5)
DONE = Check(1e-9, Evidence("gap", 0.5))


def rule(tol: float = 1e-6) -> Any:
    """A rule whose proofs are counted and fail, and whose verdicts are none."""
    made: Any = DualityStop(Fake(), Goal(tol, None, None), {}, (Fake(), Fake()))  # type: ignore[arg-type]
    made.proofs = []
    made.verdicts = []
    made.settlings = []
    made._proof = lambda iteration, state: made.proofs.append(state) or WAIT
    made.verdict = lambda iteration, state: made.verdicts.append(state)
    made._settled = lambda iteration, state, *how: made.settlings.append(how)
    return made


def interior(**more: Any) -> Any:
    made = object.__new__(Interior)
    vars(made).update(unit=2.0, **more)
    return made


def state(**more: Any) -> Any:
    """In the cost's unit 2: a value of 4 and a gap that is far."""
    known = {"warm": 0, "kappa": 0.0, "tau": 1.0, "value": 8.0, "gap": 1.0, "primal": 0.0}
    return Fake(**{**known, "count": 0, "length": 1.0, **more})


def test_a_warm_start_that_fails_begins_inside_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps that were tried count."""
    box = Box(0.0, 4.0)
    square = Quadratic([1.0], [-1.0])
    made, inside = begun(Problem([Agent(square + box, A=[[1.0]], b=[1.0])] * 2))
    monkeypatch.setattr("ccmac.methods.interior.iteration.guided", lambda *_: None)
    cold = made.step(inside)
    warm = made.step(replace(inside, warm=3, count=5))
    assert (cold.count, warm.count, warm.warm) == (1, 6, 0)
    assert made.point(warm)[0] == pytest.approx(made.point(cold)[0])


def test_a_step_of_a_warm_start_counts() -> None:
    box = Box(0.0, 4.0)
    square = Quadratic([1.0], [-1.0])
    made, inside = begun(Problem([Agent(square + box, A=[[1.0]], b=[1.0])] * 2))
    x, z = made.point(inside)
    first = replace(made.start(x + 0.25, z, made.space.zeros(), np.array([3.0])), count=5)
    after = made.step(first)
    assert (first.warm, after.warm, after.count) == (1, 2, 6)
    assert after.weight == first.weight != 1.0
    assert 1e-6 < after.gap < math.inf


def test_a_proof_is_tried_where_gap_and_equations_promise_it() -> None:
    """eps = 1e-6 max(1, |F|) = 4e-6, in the user's units; equations to tol tau."""
    for gap, primal, tau, tried in (
        (7.9e-6, 1e-6, 1.0, True),
        (8.1e-6, 1e-6, 1.0, False),
        (7.9e-6, 1.1e-6, 1.0, False),
        (7.9e-6, 1.9e-6, 2.0, True),
    ):
        stop = rule()
        found = stop.check(interior(), state(gap=gap, primal=primal, tau=tau), 3)
        assert len(stop.proofs) == tried
        assert found is WAIT if tried else found.bound == pytest.approx(gap / 2)
        assert not found.done
        assert stop.settlings[:1] == ([(1,)] if tried else [(2,)])  # sooner where it is near


def test_settling_is_tried_close_by_and_not_soon_again() -> None:
    """Within 1e-4 of max(1, |F|) and of the equations; again at a thousandth of that gap."""
    stop = rule()
    for gap, primal, count in (
        (8.1e-4, 0.0, 0),
        (7.9e-4, 1.1e-4, 0),
        (7.9e-4, 0.9e-4, 1),
        (7.9e-6, 1e-4, 1),
        (8e-7, 0.9e-4, 1),
        (7.8e-7, 0.9e-4, 2),
    ):
        stop.check(interior(), state(gap=gap, primal=primal), 3)
        assert len(stop.settlings) == count
    small = rule()
    small.check(interior(), state(value=0.0, gap=1.9e-4), 3)
    assert small.settlings == [(2,)]
    assert small.memory()["close"] == pytest.approx(0.95e-7)


def test_rays_are_looked_at_when_they_have_grown() -> None:
    stop = rule()
    for kappa, tau, count in (
        (999.0, 1.0, 0),
        (1000.0, 1.0, 1),
        (9990.0, 1.0, 1),
        (1000.0, 0.1, 2),
        (1.0, 1e-300, 3),
    ):
        stop.check(interior(), state(kappa=kappa, tau=tau), 3)
        assert len(stop.verdicts) == count
    new = {"least": 1e300, "vain": 0, "undecided": False}
    assert stop.memory() == pytest.approx({"ray": 1e301, "close": 1e300, "warm": 1e-5, **new})
    stop.verdict = lambda iteration, state: "none"
    stop.recall({"ray": 5.0, "close": 2.0})
    assert stop.memory() == {"ray": 5.0, "close": 2.0, "warm": 1e-5, **new}
    found = stop.check(interior(), state(kappa=5.0), 3)
    assert (found.done, found.verdict) == (True, "none")
    stop.recall({"ray": 5.0, "close": 2.0, "warm": 3.0})
    assert stop.memory()["warm"] == 3.0
    stop.recall({"ray": 5.0, "close": 2.0, "least": 7.0, "vain": 2})
    assert (stop.memory()["least"], stop.memory()["vain"]) == (7.0, 2)
    assert stop.due(17)


@pytest.mark.parametrize(
    ("lacks", "over"),
    [
        ([9.0, 8.0, 7.0, 6.0], [False, False, False, True]),  # none of them is half of the best
        ([9.0, 8.0, 7.0, 4.5, 9.0, 9.0, 2.3], [False] * 6 + [True]),
        ([9.0, 8.0, 7.0, 4.5, 9.0, 9.0, 2.2], [False] * 7),
    ],
)
def test_a_run_is_over_when_proofs_no_longer_gain(lacks: list[float], over: list[bool]) -> None:
    """At points that promise a proof; what a proof lacks is told beside what is asked for."""
    stop = rule()
    run = interior()
    told = list(lacks)

    def proof(iteration: Any, state: Any) -> Check:
        found = DualityGap(4.0, told[0] * 4e-6, 0.0, 0.0, 1.0)
        return stop._judged(found, None)

    stop._proof = proof
    for expected in over:
        assert not stop.check(run, state(gap=1e-6), 3).done
        assert run.finished(Fake(count=3, length=1.0, tau=1.0, kappa=0.0)) is expected
        told.pop(0)
    stop.check(run, state(gap=1.0), 3)  # far away nothing is tried
    assert run.over is over[-1]


@pytest.mark.parametrize(("away", "pulled"), [(999.0, []), (1001.0, [(2, 1e-8)])])
def test_far_away_a_smaller_solution_is_looked_for(away: float, pulled: list[Any]) -> None:
    """Digits of large unknowns may be what a proof lacks; the same where nothing else helps."""
    stop = rule()
    run = interior()
    stop._proof = lambda iteration, state: stop._judged(DualityGap(4.0, 1.0, 0.0, 0.0, away), None)
    stop.check(run, state(gap=1e-6), 3)
    assert stop.settlings == [(1,), *pulled]
    for _ in range(3):
        stop.check(run, state(gap=1e-6), 3)
    assert run.over
    assert stop.settlings[-1] == (2, 1e-8)


def test_a_run_that_ends_without_a_proof_shows_its_best_point() -> None:
    """The point whose proof lacked least, with what is told of it."""
    stop = rule()
    for gap, violation in ((1.0, 0.0), (1e-5, 1e-5), (-3e-5, 1e-6), (1e-5, 1e-3), (math.nan, 0.0)):
        found = DualityGap(4.0, gap, 0.0, violation, 1.0)
        stop._proof = lambda iteration, state, found=found: stop._judged(found, None)
        stop.final(interior(), state())
    assert stop.final(interior(), state()).bound == -3e-5
    assert (stop.record["gap"], stop.record["feasibility"]) == (-3e-5, 1e-6)


def test_a_contradiction_known_before_ends_it() -> None:
    stop = rule()
    stop.crossing = "crossing"
    found = stop.check(interior(), state(), 0)
    assert (found.done, found.verdict) == (True, "crossing")
    assert math.isnan(found.bound)


def test_warm_states_are_proved_when_they_are_close() -> None:
    stop = rule()
    for gap, count in ((1.1e-5, 0), (1e-5, 1), (1.1e-6, 1), (0.9e-6, 2)):
        stop.check(interior(), state(warm=2, gap=gap), 3)
        assert len(stop.proofs) == count


def test_the_end_is_judged_as_a_ray_or_as_a_point() -> None:
    stop = rule()
    assert stop.final(interior(), state(kappa=1.0, tau=1.0)) is WAIT
    assert not stop.verdicts
    assert stop.final(interior(), state(kappa=1.1, tau=1.0)) is WAIT
    assert len(stop.verdicts) == 1
    stop.verdict = lambda iteration, state: "none"
    found = stop.final(interior(), state(kappa=1.1, tau=1.0))
    assert (found.done, found.verdict) == (True, "none")


@pytest.mark.parametrize(
    ("first", "bounds", "steps", "proofs"),
    [
        (1, [1.0, 1.0, 1.0], 3, 3),  # three tries, more where they gain
        (2, [1.0, 1.0], 3, 2),
        (1, [1.0, 1.0, 0.1, 0.01, 0.0011], 5, 5),
        (1, [1.0, 1.0, 0.1, 0.01, 1e-3, 1e-4], 6, 6),
        (1, [1.0, 1.0, math.nan], 3, 3),
        (1, [1.0, -1.0], 2, 2),  # here: proved
    ],
)
def test_how_often_it_is_settled(
    first: int, bounds: list[float], steps: int, proofs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled: list[Any] = []
    monkeypatch.setattr(stopping, "settled", lambda it, *how: settled.append(how) or len(settled))
    stop: Any = DualityStop(Fake(), Goal(1e-6, None, None), {}, (Fake(), Fake()))  # type: ignore[arg-type]
    told = list(bounds)

    def proof(iteration: Any, state: Any) -> Check:
        bound = told.pop(0)
        return DONE if bound < 0 else Check(bound)

    stop._proof = proof
    found = stop._settled(interior(), 0, first, 0.5)
    assert settled == [(k, 0.5 if k < first - 1 else 0.0) for k in range(steps)]
    assert len(bounds) - len(told) == proofs
    assert found is (DONE if -1.0 in bounds else None)


# -- lengths ---------------------------------------------------------------------------------------
def own(s: list[float], v: list[float]) -> OwnPoint:
    return OwnPoint(np.zeros(1), np.zeros(1), np.array(s), np.array(v))


def test_the_length_of_a_step_is_that_of_everything() -> None:
    riding: list[Array] = []
    runtime = Fake(ride=lambda rows, whole: riding.append(rows) or Fake(value=rows))
    it = interior(runtime=runtime)
    points = [own([1.0, 2.0], [1.0, 1.0]), own([4.0], [6.0])]
    step = Fake(
        own=[own([-2.0, 1.0], [-1.0, 0.0]), own([-1.0], [-2.0])],
        dc=np.zeros(3),
        ds=np.array([-1.0]),
        dv=np.array([1.0]),
        dtau=1.0,
        dkappa=-4.0,
    )
    told = it._lengths(points, step)
    assert told.value.tolist() == [[0.5], [3.0]]
    common: Any = Fake(s=np.array([0.4]), v=np.array([1.0]), tau=1.0, kappa=8.0)
    assert it._length(common, step, told) == 0.4
    common.s = np.array([7.0])
    assert it._length(common, step, told) == 0.5
    common.kappa = 1.0
    assert it._length(common, step, told) == 0.25
    step.dtau = -10.0
    common.tau = 1.0
    assert it._length(common, step, told) == 0.1
    step.dc = np.array([0.0, math.nan, 0.0])
    assert it._length(common, step, told) == 0.0
    step.own[0].s[0] = math.nan
    assert it._lengths(points, step).value.tolist() == [[0.0], [3.0]]


def test_when_no_step_gains_anything() -> None:
    for count, length, tau, kappa, over in (
        (99, 1.0, 1.0, 1.0, False),
        (100, 1.0, 1.0, 1.0, True),
        (3, 0.9e-9, 1.0, 1.0, True),
        (3, 1e-9, 1.0, 1.0, False),
        (3, 1.0, 0.9e-20, 1.0, True),
        (3, 1.0, 1e-20, 1.0, False),
    ):
        known: Any = Fake(count=count, length=length, tau=tau, kappa=kappa)
        assert interior().finished(known) == over


def test_the_proximal_term_fades_along_a_ray() -> None:
    none = np.zeros(0)
    for tau, kappa, share in ((1.0, 0.5, 1.0), (1.0, 2.0, 0.5), (1e-9, 1.0, 1e-7)):
        found = Common(none, none, none, none, none, tau, kappa).rho
        assert found / 1e-8 == pytest.approx(share)
    for near, share in ((2.0, 1.0), (0.5, 0.5), (1e-9, 1e-7)):
        end = Common(none, none, none, none, none, 1.0, 0.0, near)
        assert end.rho / 1e-8 == pytest.approx(share)


# -- directions ------------------------------------------------------------------------------------
def test_which_bounds_a_direction_keeps() -> None:
    """Lower bounds on entries 0 and 1, upper ones on 1 and 2; entry 3 is free."""
    sides = Sides(np.array([0.0, -1.0, -INF, -INF]), np.array([INF, 1.0, 2.0, INF]))
    d = np.array([-1.0, 0.0, -3.0, 4.0])
    s = np.array([1.0, 1.0, 1.0, 1.0])
    v = np.array([0.0, 2.0, 0.0, 0.0])
    start, weights = _begun(sides, d, s, v)
    # Entry 0 leads beyond its bound, the lower bound on entry 1 has the larger price.
    assert weights.tolist() == [100.0, 100.0, 0.0, 0.0]
    assert start.tolist() == [0.0, 0.0, -3.0, 4.0]


def test_a_stall_asks_for_a_contradiction_and_a_fall_for_a_feasible_point() -> None:
    """Decided once: by what is found, a word or none."""
    conflict = Infeasibility("no", np.zeros(1))
    fall = Recession([], np.zeros(0), 1.0, 0.0)
    for decided, said in ((conflict, conflict), (True, fall), (False, None)):
        stop = rule()
        stop._decided = decided
        assert stop._from_somewhere(interior(), fall) is said
        assert stop.final(interior(), state()).verdict is None  # somebody ended the run
        ended = stop.final(interior(), state(length=0.0))
        assert ended.verdict is (conflict if decided is conflict else None)
        assert ended.done is (decided is conflict)
        again = rule()
        again.recall({**stop.memory(), "undecided": decided is False})
        assert again._decided is (False if decided is False else None)


def test_the_direction_of_an_iterate() -> None:
    points = [own([1.0, 5.0], [2.0, 0.0]), own([], [])]
    points = [OwnPoint(np.array([2.0, 4.0, 8.0]), p.nu, p.s, p.v) for p in points]
    agents: Any = Fake(
        points=lambda state: points,
        common=lambda state: Fake(z=np.array([6.0])),
        blocks=[Fake(d=2), Fake(d=3)],
        runtime=Fake(ride=lambda rows, whole: rows),
        shown=lambda x, z: (x, 2.0 * z),
    )
    known: Any = Fake(kappa=2.0)
    ray = Ray.of(agents, known)
    x, z = ray.point(agents)
    assert (x.tolist(), z.tolist()) == ([1.0, 2.0, 1.0, 2.0, 4.0], [6.0])
    told: Any = largest(agents, known)
    assert told.tolist() == [[5.0, 2.0], [0.0, 0.0]]


def test_where_objectives_are_finite() -> None:
    """Bounds and rows of the parts, wherever they stand; smooth functions set none."""
    x = L1(1.0) + Box([-1.0, -INF], [INF, 2.0]) + Halfspace([1.0, -2.0], 3.0)
    inner = Separable(x, Huber(None, np.ones(1)))
    form = feasible.domain(inner, 2, 1)
    assert (form.lower.tolist(), form.upper.tolist()) == ([-1.0, -INF, -INF], [INF, 2.0, INF])
    [row] = form.terms
    assert (row.R.toarray().tolist(), row.h.tolist(), row.low) == ([[1.0, -2.0, 0.0]], [3.0], 0.0)
    assert not row.a.any()
    assert not form.g.any()
    assert not form.H.count_nonzero()
    limited = Limited(inner, [0.0, -INF, 0.0, 5.0], [INF, INF, INF, 6.0], slacks=1, q=1)
    form = feasible.domain(limited, 3, 1)
    assert form.lower.tolist() == [0.0, -INF, 0.0, 5.0]
    assert form.upper.tolist() == [INF, 2.0, INF, 6.0]
    assert form.terms[0].R.toarray().tolist() == [[1.0, -2.0, 0.0, 0.0]]
    simplex = feasible.domain(Simplex(2.0), 1, 1)
    assert simplex.lower.tolist() == [0.0, 0.0]
    assert (simplex.terms[0].low, simplex.terms[0].T.shape) == (-INF, (1, 0))


def test_bounds_on_z_of_all_and_of_each() -> None:
    ends = np.array([[-INF, 0.0, 4.0, INF], [-2.0, -INF, INF, 1.0]])
    for low, high, expected in (
        (None, None, ends),
        (np.array([-1.0, -1.0]), None, [[-1.0, 0.0, 4.0, INF], [-1.0, -1.0, INF, 1.0]]),
        (None, np.array([5.0, 0.5]), [[-INF, 0.0, 4.0, 0.5], [-2.0, -INF, 5.0, 0.5]]),
    ):
        work: Any = Fake(whole=Fake(z_lower=low, z_upper=high))
        assert np.array_equal(made._with_everybodys(work, ends), expected)


def test_no_step_at_all_ends_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    made, inside = begun(Problem([Agent(Quadratic([1.0], [-1.0]) + Box(0.0, 4.0), A=[[1.0]])]))
    monkeypatch.setattr(Interior, "_length", lambda *_: 0.0)
    after = made.step(inside)
    assert (after.length, after.count) == (0.0, 1)
    assert made.finished(after)
    assert np.array_equal(made.point(after)[0], made.point(inside)[0])


def test_a_singular_sparse_matrix_gives_no_step() -> None:
    for K in (sp.csc_array((2, 2)), sp.csc_array([[1.0, 2.0], [2.0, 4.0]])):
        solve, regular = _sparse(K)
        assert not regular
        assert np.isnan(solve(np.ones(2))).all()
    solve, regular = _sparse(sp.csc_array([[2.0, 0.0], [0.0, 4.0]]))
    assert (regular, solve(np.ones(2)).tolist()) == (True, [0.5, 0.25])
