"""Contradictions are claimed when nothing within reach can satisfy them, and only then."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ccmac
from adversarial import infeasible, suite
from adversarial.draft import Array, Draft
from adversarial.exact import Exact
from adversarial.proofs import overstated, proof_numbers
from ccmac import Agent, Network, Problem
from ccmac.certificates.conflicts import Conflicts
from ccmac.certificates.infeasibility import (
    DOUBTED,
    EXACT_REACH,
    REACH,
    Infeasibility,
    claimed,
    described,
    doubted,
)
from ccmac.certificates.own_rows import contradiction
from ccmac.linalg.extended import EPS_LONG
from ccmac.linalg.ranks import row_space
from ccmac.objectives import Quadratic
from ccmac.results import Result
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from certificates.points import workspace

KINDS = tuple(infeasible.GENERATORS)
NEAR = ("near-local", "near-shared", "near-across", "near-coupled", "near-mixed", "two-agents")


def found_in(work: Workspace) -> Infeasibility | None:
    """As a run looks for it: inside the agents, then among all."""
    conflicts = Conflicts(work)
    own = conflicts.own()
    assert work.gather_constraints() is not None
    return own if own is not None else conflicts.together(work.gather_constraints())


def assert_proved(draft: Draft, said: Infeasibility) -> None:
    """Value, defect and radius against rational arithmetic in the user's own blocks."""
    exact = Exact(draft)
    assert not exact.feasible
    value, defect, radius = proof_numbers(exact, said)
    assert said.value == pytest.approx(value, rel=1e-9)
    assert said.defect >= defect * (1 - 1e-9)
    assert not overstated(exact, said)
    assert said.radius <= radius
    assert said.radius >= EXACT_REACH


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_at_every_level_seen_by_double_precision(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for power in range(0, 41, 4):
        monkeypatch.setattr(infeasible, "depth", lambda _, p=power: 2.0**-p)
        for seed in (0, 1):
            draft = infeasible.make(kind, seed).draft
            level = Exact(draft).level
            said = found_in(workspace(draft))
            size = np.linalg.norm(np.concatenate([*draft.x, draft.z]))
            if level >= 1e-10 * max(1.0, size):
                assert said is not None, (power, seed)
            if said is not None:
                assert level > 0
                assert_proved(draft, said)


@pytest.mark.parametrize("family", [*NEAR, "row-scales", "redundant", "overlapping"])
def test_consistent_equations_are_never_claimed(family: str) -> None:
    for seed in range(25):
        assert found_in(workspace(suite.make(family, seed).draft)) is None, seed


@given(st.integers(0, 10**6), st.integers(2, 40))
@settings(max_examples=60)
def test_nearly_dependent_rows_with_rounded_sides_are_not_claimed(seed: int, power: int) -> None:
    """Rows at an angle t, sides rounded from a point: solutions exist, of size 1 / t at most."""
    random = np.random.default_rng(seed)
    row = random.standard_normal(3)
    rows = np.stack([row, row + 2.0**-power * random.standard_normal(3)])
    agents = [
        Agent(Quadratic(np.eye(4), np.zeros(4)), D=rows[i : i + 1], e=rows[i : i + 1] @ row)
        for i in range(2)
    ]
    work = Workspace(Problem(agents), InProcess(Network.complete(2)))
    assert found_in(work) is None


def test_multipliers_inside_one_agent_are_given() -> None:
    agents = [
        Agent(Quadratic(np.eye(2), np.zeros(2)), A=[[1.0]], B=[[1.0]], b=[1.0]),
        Agent(
            Quadratic(np.eye(2), np.zeros(2)),
            A=[[1.0]],
            B=[[1.0]],
            b=[1.0],
            C=[[1.0], [2.0]],
            c=[1.0, 3.0],
        ),
    ]
    result = ccmac.solve(Problem(agents), "path")
    assert result.status == "infeasible"
    said = result.infeasibility
    assert "agent 1's own equations C" in said.message
    assert set(said.local) == {1}
    assert not said.shared
    assert not said.coupled.any()
    kappa = said.local[1]
    assert abs(kappa[0] + 2 * kappa[1]) <= 1e-15 * abs(kappa[0])  # K'lambda
    assert kappa @ [1.0, 3.0] == pytest.approx(said.value)
    record = json.loads(json.dumps(result.as_dict()))["infeasibility"]
    assert record["value"] == said.value
    assert record["local"] == {"1": kappa.tolist()}


def test_shared_equations_of_one_agent_are_named() -> None:
    agent = Agent(Quadratic(np.eye(2), np.zeros(2)), D=[[1.0], [1.0]], e=[0.0, 1e-6])
    result = ccmac.solve(Problem([agent]))
    assert result.status == "infeasible"
    said = result.infeasibility
    assert "own equations D" in said.message
    assert set(said.shared) == {0}
    assert said.value == pytest.approx(1e-6 / math.sqrt(2))
    assert said.defect <= 1e-18  # multipliers +-1 of equal rows
    assert said.radius > 1e12


@pytest.mark.parametrize("right", [1.0, -1e-6, 1e-300])
def test_zero_equals_something(right: float) -> None:
    rows = np.array([[0.0], [1.0], [0.0]])
    sides = np.array([right / 2, 5.0, right])
    said = contradiction(rows, sides, row_space(rows))
    assert said is not None
    assert said.price.tolist() == [0.0, 0.0, math.copysign(1.0, right)]
    assert (said.value, said.sure, said.defect) == (abs(right), abs(right), 0.0)


def test_zero_equals_zero_is_no_contradiction() -> None:
    rows = np.array([[0.0], [1.0]])
    assert contradiction(rows, np.array([0.0, 2.0]), row_space(rows)) is None


@given(st.integers(0, 10**6), st.integers(-44, 0))
@settings(max_examples=80)
def test_numbers_of_a_contradiction_in_rational_arithmetic(seed: int, power: int) -> None:
    """One row too many, of random doubles: value from below, defect from above."""
    random = np.random.default_rng(seed)
    rows = random.standard_normal((2, 3))
    matrix = np.vstack([rows, rows.sum(axis=0)]) * 2.0 ** random.integers(-20, 20, size=(3, 1))
    point = random.standard_normal(3)
    right = matrix @ point
    right[2] += 2.0**power * np.linalg.norm(matrix[2])
    said = contradiction(matrix, right, row_space(matrix))
    if said is None:
        assert power < -40
        return
    value = abs(_exact(said.price, right))
    assert said.sure <= value * (1 + Fraction(2.0**-53))
    assert said.value == pytest.approx(float(value), rel=1e-6)
    squares = sum((_exact(said.price, matrix[:, j]) ** 2 for j in range(3)), Fraction(0))
    assert said.defect**2 >= float(squares) * (1 - 1e-12)
    if power > -30:
        assert said.sure >= 0.999 * float(value)
        assert claimed(said.sure, said.defect, float(np.linalg.norm(point)))


def _exact(price: Array, right: Array) -> Fraction:
    pairs = zip(price, right, strict=True)
    return sum((Fraction(float(a)) * Fraction(float(b)) for a, b in pairs), Fraction(0))


def test_noise_is_held_against_the_claim() -> None:
    """A misfit at the level of rounding in the long format is not sure."""
    matrix = np.array([[1.0 / 3], [1.0 / 3]])
    said = contradiction(matrix, np.array([1.0, 1.0 + 2.0**-44]), row_space(matrix))
    assert said is not None
    assert said.sure < said.value
    assert said.value - said.sure == pytest.approx(
        4 * EPS_LONG * np.abs(said.price).sum(), rel=0.05, abs=0.0
    )
    assert contradiction(matrix, np.array([1.0, 1.0 + 2.0**-50]), row_space(matrix)) is None


@given(st.floats(1e-12, 1e3), st.floats(0, 1), st.floats(0, 1e6))
def test_claimed_exactly_when_the_radius_is_beyond_reach(
    value: float, defect: float, size: float
) -> None:
    said = Infeasibility("", np.zeros(0), defect=defect, value=value)
    beyond = said.radius >= REACH * max(1.0, size) if defect else True
    near = defect and math.isclose(said.radius, REACH * max(1.0, size), rel_tol=1e-12)
    assert near or claimed(value, defect, size) == beyond
    assert not claimed(0.0, defect, size)
    assert not claimed(-value, defect, size)


@pytest.mark.parametrize(("rule", "factor"), [(claimed, REACH), (doubted, DOUBTED)])
def test_claims_and_doubts_begin_just_so(rule: Callable[..., bool], factor: float) -> None:
    """At so many times the defect, for points of norm one or more."""
    for size, least in ((0.25, 1.0), (4.0, 4.0)):
        assert rule(factor * least * 0.5, 0.5, size)
        assert not rule(factor * least * 0.5 * (1 - 1e-9), 0.5, size)
    assert not rule(0.0, 0.0, 1.0)
    assert rule(1e-300, 0.0, 1.0)


def test_the_radius_is_value_over_defect_whatever_the_sign() -> None:
    assert Infeasibility("", np.zeros(0), defect=0.5, value=-2.0).radius == 4.0
    endless = Infeasibility("", np.zeros(0), defect=0.0, value=1.0)
    assert endless.radius == math.inf
    assert endless.as_dict()["radius"] is None


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("across-shared", ["shared equations D"]),
        ("coupled-rows", ["coupled equation"]),
        ("coupled-against-local", ["coupled equation", "local equations C"]),
    ],
)
def test_words_name_the_blocks(kind: str, words: list[str]) -> None:
    said = found_in(workspace(infeasible.make(kind, 0).draft))
    assert said is not None
    for word in words:
        assert word in said.message
    assert said.message.startswith("infeasible: ")
    assert ("coupled" in said.message) == (kind != "across-shared")


def test_solutions_far_away_are_not_excluded() -> None:
    """[1 0; 1 t] z = (0, 1) has the solution (0, 1/t): R may not reach it, whatever t."""
    for power in (10, 20, 30, 38):
        t = 2.0**-power
        agents = [
            Agent(Quadratic(np.eye(3), np.zeros(3)), D=[row], e=[side])
            for row, side in (([1.0, 0.0], 0.0), ([1.0, t], 1.0))
        ]
        work = Workspace(Problem(agents), InProcess(Network.complete(2)))
        assert found_in(work) is None, power


def test_a_contradiction_costs_one_more_gathering() -> None:
    draft = infeasible.make("across-shared", 0).draft
    work = workspace(draft, Network.ring(draft.n) if draft.n > 2 else None)
    conflicts = Conflicts(work)
    assert work.gather_constraints() is not None
    before = work.ledger.of("solve")
    assert conflicts.own() is None
    assert work.ledger.of("solve") - before == work.runtime.gather_cost(5)
    before = work.ledger.of("solve")
    assert conflicts.together(work.gather_constraints()) is not None
    assert (work.ledger.of("solve") - before)["reductions"] == 1


@pytest.mark.parametrize("kind", ["across-shared", "coupled-rows", "coupled-against-local"])
def test_contradictions_found_by_a_repair_where_nothing_is_gathered(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ccmac.workspace.reduced.ROWS", 0)
    monkeypatch.setattr(infeasible, "depth", lambda _: 0.25)
    draft = infeasible.make(kind, 1).draft
    result = ccmac.solve(draft.problem(), method="cross-apapc", tol=1e-6)
    assert result.status == "infeasible"
    exact = Exact(draft)
    value, defect, radius = proof_numbers(exact, result.infeasibility)
    assert result.infeasibility.value == pytest.approx(value, rel=1e-6)
    assert result.infeasibility.defect == pytest.approx(defect, rel=0.5, abs=1e-10)
    assert radius >= REACH
    assert result.message.startswith("infeasible: ")


@pytest.mark.parametrize("level", [2.0**-7, 2.0**-20, 2.0**-26])
def test_the_value_of_a_small_contradiction_is_exact(level: float) -> None:
    """lambda'v is a difference of numbers of size one: what travels are their two halves."""
    random = np.random.default_rng(3)
    H = np.eye(4)
    g = np.zeros(4)
    blocks = [random.integers(-64, 64, (2, 4)) / 32 for _ in range(5)]
    rights = [random.integers(-64, 64, 2) / 32 for _ in range(5)]
    agents = []
    for A, b in zip(blocks, rights, strict=True):
        doubled = np.vstack([A, A.sum(axis=0)])
        side = np.append(b, b.sum())
        agents.append(
            ccmac.Agent(
                ccmac.objectives.Quadratic(H, g), A=doubled[:, :2], B=doubled[:, 2:], b=side
            )
        )
    last = agents[-1]
    agents[-1] = ccmac.Agent(last.objective, A=last.A, B=last.B, b=last.b + level * np.eye(3)[2])
    result = ccmac.solve(ccmac.Problem(agents), "ring")
    assert result.status == "infeasible"
    proof = result.infeasibility
    exact = sum((_exact(proof.coupled, agent.b) for agent in agents), Fraction(0))
    assert proof.value == pytest.approx(float(exact), rel=1e-9)


# -- between rounding and proof ----------------------------------------------------------------
def _thrice(level: float, where: str) -> Problem:
    """Two equations and their weighted sum, in C, in D or coupled; its side is off by ``level``."""
    rows = np.array([[3.0, 1.0], [1.0, 2.0], [19.0, 18.0]])  # 4, 7
    right = np.array([4.0, 3.0, 37.0 + 26.0 * level])
    if where == "b":
        blocks = {"A": rows, "B": np.zeros((3, 2)), "b": right}
    else:
        blocks = {"A": np.eye(1, 2), "b": np.ones(1), {"c": "C", "e": "D"}[where]: rows}
        blocks[where] = right
    return Problem([Agent(Quadratic(np.eye(4), np.ones(4)), **blocks)])


@pytest.mark.parametrize("where", ["b", "c", "e"])
@pytest.mark.parametrize(
    ("power", "word"), [(13, "infeasible"), (30, "infeasible"), (52, "optimal")]
)
def test_small_contradictions_are_proved_or_rounding(power: int, word: str, where: str) -> None:
    for method in ("auto", "cross-apapc"):
        result = ccmac.solve(_thrice(2.0**-power, where), "complete", method)
        assert result.status == word
        if word == "infeasible":
            assert result.infeasibility.radius >= REACH
        assert math.isfinite(result.error_bound) == (word == "optimal")


@pytest.mark.parametrize(
    ("level", "words"),
    [
        (2.0**-10, {"infeasible"}),
        (2.0**-22, {"infeasible"}),
        (2.0**-38, {"infeasible", "converged"}),  # the price's own rounding decides
        (0.0, {"optimal"}),
    ],
)
def test_nearly_dependent_local_rows_hide_no_contradiction_of_shared_ones(
    level: float, words: set[str]
) -> None:
    C = np.array([[1.0, 2.0], [1.0, 2.0 + 2.0**-36]])
    x = np.ones(2)
    f = Quadratic(np.eye(4), np.zeros(4))
    agents = [
        Agent(f, A=np.eye(2), b=x, C=C, c=C @ x, D=[[1.0, 2.0]], e=[3.0 + k * level])
        for k in range(2)
    ]
    result = ccmac.solve(Problem(agents), "path", tol=1e-3)
    assert result.status in words
    assert (result.infeasibility is not None) == (result.status == "infeasible")


@pytest.mark.parametrize(
    ("value", "defect", "text"),
    [
        (1.2999, 1e-10, "no solution has a norm below 1.2e+10"),
        (-2.0, 0.5, "no solution has a norm below 4"),
        (1.999, 1e-4, "no solution has a norm below 1.9e+04"),
        (1e-300, 0.0, "no solution, whatever its norm"),
    ],
)
def test_a_printed_result_names_the_radius(value: float, defect: float, text: str) -> None:
    """Rounded down: what is printed is proved as well."""
    said = Infeasibility("no", np.ones(1), value=value, defect=defect)
    assert said.excluded == text
    result = Result([], np.zeros(0), None, "infeasible", infeasibility=said)
    assert f"\nproved        {text}\n" in str(result)
    assert f"<br>proved: {text}" in result._repr_html_()
    assert "proved" not in str(Result([], np.zeros(0), None, "stalled"))
    assert "proved" not in Result([], np.zeros(0), None, "stalled")._repr_html_()


def test_at_most_six_agents_are_named() -> None:
    norms = {"coupled": 0.0, "shared": 1.0}
    few = described({"coupled": [], "C": [], "D": list(range(6))}, norms)
    many = described({"coupled": [], "C": [], "D": list(range(7))}, norms)
    assert "of agents 0, 1, 2, 3, 4, 5 cannot" in few
    assert "of agents 0, 1, 2, 3, 4, 5, ... cannot" in many


def test_the_record_names_agents_by_text() -> None:
    found = Infeasibility(
        "no", np.ones(1), {0: np.ones(1)}, {2: np.ones(2)}, 0.5, -4.0, {1: np.zeros(1)}, np.ones(1)
    )
    assert found.as_dict() == {
        "message": "no",
        "coupled": [1.0],
        "local": {"0": [1.0]},
        "shared": {"2": [1.0, 1.0]},
        "defect": 0.5,
        "value": -4.0,
        "radius": 8.0,
        "bounds": {"1": [0.0]},
        "z_bounds": [1.0],
    }
    assert Infeasibility("no", np.ones(1), value=1.0).as_dict()["radius"] is None
