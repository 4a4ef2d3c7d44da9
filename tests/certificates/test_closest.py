"""Contradictions where nobody knows all equations: multipliers from the closest point of a run."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ccmac
from adversarial import infeasible
from adversarial.exact import Exact
from adversarial.proofs import overstated, proof_numbers
from ccmac import Agent, Network, Problem
from ccmac.certificates.closest import ClosestPoint, _dependent
from ccmac.certificates.infeasibility import REACH
from ccmac.certificates.multipliers import Recovery
from ccmac.certificates.weighing import Lambda, Weighed, Weighing
from ccmac.linalg.tolerances import EPS
from ccmac.objectives import Quadratic, SquaredDistance
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace

KINDS = ("across-shared", "coupled-rows", "coupled-against-local", "unequal-copies")


@pytest.fixture(autouse=True)
def _nothing_is_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ccmac.workspace.reduced.ROWS", 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("power", [2, 10, 12])
def test_contradictions_down_to_1e_4_are_proved(
    kind: str, power: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where rows are in units of 2^-20 to 2^20."""
    monkeypatch.setattr(infeasible, "depth", lambda _: 2.0**-power)
    for seed in (1, 3):
        draft = infeasible.make(kind, seed).draft
        exact = Exact(draft)
        assert exact.level >= 1e-4
        for method in ("auto", "cross-apapc"):
            result = ccmac.solve(draft.problem(), method=method, tol=1e-6)
            assert result.status == "infeasible", (seed, method)
            assert not overstated(exact, result.infeasibility)
            assert result.infeasibility.radius >= REACH


def many(level: float, seed: int = 0) -> Problem:
    """61 coupled rows of length 30 or so, the last a sum of others; data of some thousands."""
    random = np.random.default_rng(seed)
    mix = np.append(random.integers(-1, 2, 20), np.zeros(40))

    def block(columns: int) -> np.ndarray:
        rows = random.integers(-9, 10, (60, columns)).astype(float)
        return np.vstack([rows, mix @ rows])

    A = [block(25) for _ in range(4)]
    B = [block(3) for _ in range(4)]
    z = random.integers(-99, 100, 3).astype(float)
    b = [a @ random.integers(-99, 100, 25) + c @ z for a, c in zip(A, B, strict=True)]
    lengths = np.linalg.norm(np.hstack([*A, sum(B)]), axis=1)
    b[0][-1] += level * np.linalg.norm(np.append(mix, 1.0) * lengths)  # from the range, unit rows
    return Problem(
        [Agent(SquaredDistance(), A=a, B=c, b=v) for a, c, v in zip(A, B, b, strict=True)]
    )


@pytest.mark.parametrize("level", [1e-2, 1e-3, 1.1e-4])
def test_what_rounding_leaves_of_the_multipliers_is_cancelled(level: float) -> None:
    result = ccmac.solve(many(level), "ring")
    assert result.status == "infeasible"
    assert result.infeasibility.radius >= REACH
    assert ccmac.solve(many(0.0), "ring").status in ("optimal", "converged")


def test_multipliers_are_cancelled_down_to_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """A millionth of noise, of which nothing is left but the component outside of Range K'."""
    random = np.random.default_rng(3)
    draft = infeasible.make("coupled-against-local", 3).draft
    seen = list[float]()
    cancelled = ClosestPoint._cancelled

    def noisy(self, realized, prices, weighed):  # type: ignore[no-untyped-def]
        noise = 1e-6 * weighed.length * random.standard_normal(len(prices.coupled))
        prices = type(prices)(prices.coupled + noise, prices.local, prices.shared)
        found = cancelled(self, realized, prices, weighed)
        seen.append(self.own.weighed(found, [0.0] * len(found.local)).defect)
        return found

    claims = iter([False, True])
    monkeypatch.setattr("ccmac.certificates.closest.claimed", lambda *numbers: next(claims))
    monkeypatch.setattr("ccmac.certificates.closest._dependent", lambda seen: True)
    monkeypatch.setattr(ClosestPoint, "_cancelled", noisy)
    monkeypatch.setattr(infeasible, "depth", lambda _: 0.25)
    result = ccmac.solve(draft.problem(), method="cross-apapc")
    assert result.status == "infeasible"
    assert len(seen) == 1
    assert seen[0] <= 1e-11
    value, defect, _ = proof_numbers(Exact(draft), result.infeasibility)
    assert defect <= seen[0] * (1 + 1e-9)
    assert result.infeasibility.value == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("kind", ["across-shared", "coupled-rows"])
def test_what_stays_violated_without_a_proof_is_a_warning(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ClosestPoint, "at", lambda *given: None)
    monkeypatch.setattr(infeasible, "depth", lambda _: 2.0**-10)
    result = ccmac.solve(infeasible.make(kind, 1).draft.problem(), method="cross-apapc")
    assert result.status == "converged"
    assert any("stay violated" in text for text in result.warnings)
    assert not math.isfinite(result.error_bound)
    assert result.certificates["rests_on"] == "estimated"


@pytest.mark.parametrize("power", [16, 24, 36, 42])
@pytest.mark.parametrize("method", ["auto", "cross-apapc"])
def test_equations_that_only_large_points_meet_are_not_called_contradictory(
    power: int, method: str
) -> None:
    """(1, 2, t)'z = 1 and (1, 2, 0)'z = 0 twice, by three agents: z = (0, 0, 1 / t)."""
    result = ccmac.solve(far_away(power), "complete", method, max_iterations=2000)
    assert result.status != "infeasible"
    if power >= 36:  # such points are not found
        assert any("stay violated" in text for text in result.warnings)


def far_away(power: int) -> Problem:
    """Equations that z = (0, 0, 2^power) meets."""
    rows = np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 2.0**-power], [2.0, 4.0, 0.0]])
    f = Quadratic(np.eye(4), np.zeros(4))
    return Problem(
        [
            Agent(f, A=[[1.0]], b=[1.0], D=[row], e=[side])
            for row, side in zip(rows, (0.0, 1.0, 0.0), strict=True)
        ]
    )


def test_nothing_but_rounding_may_be_left() -> None:
    assert _dependent(Weighed(1.0, 1.0, 0.5, 1.0, 1.0, rounding=0.5))
    assert not _dependent(Weighed(1.0, 1.0, 0.5, 1.0, 1.0, rounding=0.49))


def test_what_rounding_to_doubles_leaves_in_closed_form() -> None:
    """Of 3 x + 4 z with a price of 2: five eps of 6 and of 8."""
    agent = Agent(Quadratic(np.eye(2), np.zeros(2)), A=[[3.0]], B=[[4.0]], b=[1.0])
    work = Workspace(Problem([agent]), InProcess(Network.complete(1)))
    none = [np.zeros(0)]
    seen = Weighing(Recovery(work)).weighed(Lambda(np.array([2.0]), none, none), [0.0])
    assert seen.rounding == pytest.approx(5 * EPS * (6 + 8), rel=1e-9, abs=0.0)
    assert (seen.value, seen.length, seen.defect) == (2.0, 2.0, pytest.approx(10.0))
