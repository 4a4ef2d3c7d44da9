"""A few hundred adversarial problems: no false word about any of them, and enough of them solved.

Each family lists all its failures in one message.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

import numpy as np
import pytest

from adversarial import infeasible, suite
from adversarial.draft import Draft
from adversarial.exact import Exact
from adversarial.judge import GRAIN, SLACK, Verdict, false_bound, judge
from adversarial.summary import RATIO
from ccmac.methods import CrossCg

SEEDS = 16
FEW = 10  # of each of the families
ITERATIONS = 500  # of auto: more than any problem that must be solved needs
METHODS = {"cross-apapc": 200, "joint-apapc": 200, "cross-lbfgs": 60, "papc": 200, "dpmm": 100}
METHOD_FAMILIES = ("ordinary", "two-agents", "across-shared")
METHOD_SEEDS = (2, 7)
ALLOWED = 0.03  # of the easy problems may be missed


def _complaints(verdicts: list[Verdict]) -> list[str]:
    """Every false word; what was missed, if it is too much of it."""
    lines = [v.line() for v in verdicts if v.false]
    easy = [v for v in verdicts if v.easy]
    missed = [v for v in easy if "MISSED" in v.faults]
    if len(missed) > math.ceil(ALLOWED * len(easy)):
        lines += [v.line() for v in missed]
    return lines + [v.line() for v in verdicts if "MISSED INFEASIBLE" in v.faults]


@pytest.mark.parametrize("family", suite.FAMILIES)
def test_nothing_false_is_said(family: str) -> None:
    verdicts = [judge(suite.make(family, s), max_iterations=ITERATIONS) for s in range(FEW)]
    complaints = _complaints(verdicts)
    assert not complaints, "\n" + "\n".join(complaints)


PAIRS = [f"{family} {method}" for method in METHODS for family in METHOD_FAMILIES]


@pytest.mark.parametrize("pair", PAIRS)
def test_other_methods_say_nothing_false(pair: str) -> None:
    family, method = pair.split()
    # A contradiction may take a slow method longer than this: it is proved by others.
    verdicts = [
        judge(suite.make(family, s), method, max_iterations=METHODS[method]) for s in METHOD_SEEDS
    ]
    complaints = [v.line() for v in verdicts if v.false]
    assert not complaints, "\n" + "\n".join(complaints)


def test_bounds_from_a_price_alone() -> None:
    cases = [suite.make("priced", s) for s in range(SEEDS)]
    cases += [replace(case, tol=1e-15) for case in cases]  # rounding alone is left
    verdicts = [judge(case, CrossCg(sketch=1 + s % 3)) for s, case in enumerate(cases)]
    complaints = [f"{v.seed} {v.tol}: {v.faults} {v.bound} {v.error}" for v in verdicts if v.false]
    assert not complaints, "\n" + "\n".join(complaints)
    assert sum(v.status == "optimal" for v in verdicts[:SEEDS]) >= SEEDS - 1


def test_bounds_are_not_far_above_the_error() -> None:
    verdicts = [judge(suite.make("ordinary", s), "cross-apapc") for s in range(SEEDS)]
    ratios = [v.ratio for v in verdicts if not math.isnan(v.ratio)]
    assert len(ratios) >= 5
    assert statistics.median(ratios) < RATIO


# -- the reference itself ---------------------------------------------------------------------
def _small(e: float = 3.0) -> Draft:
    """min x^2/2 + z^2/2 - z  with  x + 2 z = 4 and  z = e twice."""
    one = np.ones((1, 1))
    draft = Draft(
        np.random.default_rng(0),
        [1],
        1,
        1,
        A=[one],
        B=[2 * one],
        C=[np.zeros((0, 1))],
        D=[np.ones((2, 1))],
        x=[np.array([-2.0])],
        z=np.array([3.0]),
        H=[np.eye(2)],
        g=[np.array([0.0, 1.0])],
    ).plant()
    draft.e[0][1] = e
    return draft


def test_the_reference_solves_by_hand() -> None:
    exact = Exact(_small())
    assert exact.feasible
    assert exact.rank == 2
    assert [float(v) for v in exact.solution.entries()] == [-2.0, 3.0]
    assert exact.error(exact.point([np.array([-2.0])], np.array([3.0 + 2.0**-50]))) == 2.0**-50


def test_the_reference_sees_the_least_contradiction() -> None:
    exact = Exact(_small(3.0 + 2.0**-51))
    assert not exact.feasible
    # Rows (1, 2)/sqrt 5, (0, 1), (0, 1): half of the gap on either side of the mean.
    assert exact.level == pytest.approx(2.0**-51 / math.sqrt(2), rel=1e-12)


def test_the_reference_agrees_with_the_planted_point_and_with_kkt() -> None:
    for family in suite.CONSISTENT:
        exact = Exact(suite.make(family, 3).draft)
        assert exact.feasible, family
        u = exact.point(exact.draft.x, exact.draft.z)
        assert not any(exact.residual(u).entries()), family
        if exact.solution is not None:
            assert not any(exact.residual(exact.solution).entries()), family
            assert exact.value(exact.solution) <= exact.value(u), family
            assert exact.error(exact.solution) == 0.0, family


def test_contradictions_cover_all_levels() -> None:
    for family in suite.CONTRADICTORY:
        levels = [Exact(infeasible.make(family, s).draft).level for s in range(40)]
        assert min(levels) > 0, family
        assert min(levels) < 1e-12, family
        assert max(levels) > 0.1, family


def test_the_judge_sees_a_false_bound() -> None:
    assert false_bound(1.0, 1.0 + 10 * SLACK, 1.0)
    assert not false_bound(1.0, 1.0 + SLACK / 10, 1.0)
    assert false_bound(0.0, 10 * GRAIN, 1.0)
    assert not false_bound(0.0, 10 * GRAIN, 100.0)
    said = judge(suite.make("ordinary", 0))
    assert said.status == "optimal"
    assert said.bound >= said.error


def test_far_points_count_as_none() -> None:
    """Rows that differ by t meet at 1/t: by convention nothing beyond 1e6 is a solution."""
    for t, contradictory in ((2.0**-10, False), (2.0**-30, True)):
        draft = _small(4.0)
        draft.D[0] = np.array([[1.0], [1.0]])
        draft.A[0] = np.array([[t]])
        exact = Exact(draft)
        assert not exact.feasible
        assert exact.contradictory
        draft.D[0] = draft.D[0][:1]
        draft.e[0] = draft.e[0][:1]
        exact = Exact(draft)
        assert exact.shortest == pytest.approx(math.hypot(3, 2 / t), rel=1e-2)
        assert exact.contradictory == contradictory


def test_a_row_below_the_cut_may_be_dropped() -> None:
    for t, dropped in ((2.0**-20, False), (2.0**-44, True)):
        draft = _small()
        draft.A[0] = np.array([[t], [0.0]])
        draft.B[0] = np.array([[1.0], [1.0]])
        draft.m = 2
        draft.x[0] = np.array([64.0])
        exact = Exact(draft.plant())
        far = exact.error(exact.point([np.zeros(1)], np.array([3.0])))
        assert far == pytest.approx(0.0 if dropped else 64.0, abs=1e-9)
