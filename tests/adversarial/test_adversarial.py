"""Two hundred adversarial problems: ccmac-check confirms all that is said of them.

Each family lists all its failures in one message.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from adversarial import infeasible, suite
from adversarial.draft import Draft
from adversarial.exact import Exact
from ccmac.methods import CrossCg
from checker.judge import judge

METHODS = {"cross-apapc": 200, "joint-apapc": 200, "cross-lbfgs": 60, "papc": 200, "dpmm": 100}
EASY = ("ordinary", "two-agents", "across-shared")


@pytest.mark.parametrize("family", suite.FAMILIES)
def test_all_that_is_said_is_confirmed(family: str) -> None:
    said = [judge(suite.make(family, seed), max_iterations=500) for seed in range(4)]
    assert not [(k, s.status, s.why) for k, s in enumerate(said) if s.false]
    assert sum(s.word == "not checked" for s in said) <= 1  # rows that are nearly dependent


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("family", EASY)
def test_other_methods_say_nothing_false(family: str, method: str) -> None:
    for seed in (2, 7):
        said = judge(suite.make(family, seed), method, max_iterations=METHODS[method])
        assert not said.false, (seed, said.status, said.why)


def test_bounds_from_a_price_alone() -> None:
    for seed in range(8):
        case = suite.make("priced", seed)
        method = CrossCg(sketch=1 + seed % 3)
        assert judge(case, method).word == "confirmed"
        tight = judge(replace(case, tol=1e-15), method)  # rounding alone is left
        assert not tight.false, (seed, tight.why)


# -- rational solutions, of which other tests know more than what is claimed -----------------------
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
