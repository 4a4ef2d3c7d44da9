"""Contradictions are proved where no point shorter than R solves, and only there."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import aslinearoperator

import ccmac
from adversarial import infeasible, suite
from adversarial.exact import Exact
from ccmac import Agent, Network, Problem
from ccmac.certificates.farkas import Infeasibility
from ccmac.objectives import Box, Quadratic
from ccmac.results import Result
from checker.judge import judge

KINDS = tuple(infeasible.GENERATORS)
METHODS = ("cross-apapc", "cross-cg", "cross-lbfgs", "joint-apapc", "papc", "dpmm")


def flat(d: int, q: int = 0) -> Quadratic:
    return Quadratic(np.eye(d + q), np.zeros(d + q))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("averaging", ["auto", "masked"])
def test_every_kind_is_proved_down_to_1e_8_of_the_data(
    kind: str, averaging: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for power in (0, 12, 24, 40):
        monkeypatch.setattr(infeasible, "depth", lambda _, p=power: 2.0**-p)
        case = infeasible.make(kind, power)
        exact = Exact(case.draft)
        if averaging == "masked" and power == 24:
            continue  # sums in fixed point keep fewer digits
        said = judge(case, averaging=averaging, max_iterations=200)
        assert not said.false, said.why
        if exact.level > 1e-8 * exact.data:
            assert said.status == "infeasible", (power, exact.level)


@pytest.mark.parametrize("t", [0.0, 2.0**-42, 2.0**-30, 2.0**-16])
@pytest.mark.parametrize("block", ["C", "D"])
def test_rows_that_only_large_points_meet(block: str, t: float) -> None:
    """(1, 2) and (1, 2 + t) times u are 1 and 1.5: u_1 = 1/(2t)."""
    right = [1.0, 1.5]
    rows = [[1.0, 2.0], [1.0, 2.0 + t]]
    if block == "C":
        agents = [Agent(flat(2), C=rows, c=right)]
    else:
        agents = [
            Agent(flat(1, 2), A=[[1.0]], B=[[1.0, 1.0]], b=[0.0], D=[row], e=[side])
            for row, side in zip(rows, right, strict=True)
        ]
    result = ccmac.solve(Problem(agents, q=0 if block == "C" else 2))
    assert result.status == ("infeasible" if t < 1e-6 else "optimal")
    if t:
        return
    assert "no solution shorter than" in result.message


def test_an_agent_that_contradicts_itself_is_named() -> None:
    good = Agent(flat(2, 1), A=[[1.0, 1.0]], B=[[1.0]], b=[1.0])
    for block in ("C", "D"):
        rows: Any = [[1.0, 2.0], [2.0, 4.0]] if block == "C" else [[1.0], [2.0]]
        sides = {block: rows, {"C": "c", "D": "e"}[block]: [1.0, 3.0]}
        bad = Agent(flat(2, 1), A=[[1.0, 1.0]], B=[[1.0]], b=[1.0], **sides)
        result = ccmac.solve(Problem([good, good, bad]), "path")
        assert result.status == "infeasible"
        assert f"equations {block} of agent 2 cannot hold" in result.message
        found = result.infeasibility.local if block == "C" else result.infeasibility.shared
        assert found[2] @ np.array(rows) == pytest.approx(0.0, abs=1e-14)
        assert list(found) == [2]


@pytest.mark.parametrize("right", [1e-300, 0.5, -7.0])
def test_zero_equals_something(right: float) -> None:
    result = ccmac.solve(Problem([Agent(flat(1), C=[[0.0]], c=[right])], q=0))
    if abs(right) > 1e-8:
        assert result.status == "infeasible"
        assert result.infeasibility.radius == math.inf
        assert "no solution, however long" in result.message
    assert ccmac.solve(Problem([Agent(flat(1), C=[[0.0]], c=[0.0])], q=0)).status == "optimal"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("across-shared", ["shared equations D of agents"]),
        ("coupled-rows", ["the coupled equation sum(A x + B z - b) = 0"]),
        ("coupled-against-local", ["the coupled equation", "local equations C of agents"]),
    ],
)
def test_words_name_the_blocks(kind: str, words: list[str]) -> None:
    case = infeasible.make(kind, 0)
    result = ccmac.solve(case.draft.problem(), case.network)
    assert result.status == "infeasible"
    for text in [*words, "cannot hold together", "correct the right-hand sides"]:
        assert text in result.message


def test_at_most_six_agents_are_named_those_that_carry_it_first() -> None:
    agents = [Agent(flat(0, 1), D=[[1.0]], e=[float(k * k)]) for k in range(8)]
    result = ccmac.solve(Problem(agents, q=1, m=0), "path")
    assert "of agents 7, 6, 0, 1, 2, 3, ... cannot" in result.message


def test_who_takes_hardly_any_part_is_not_named() -> None:
    """Agent 0 asks for what the bounds of agent 1 exclude; agent 2 has a ten-thousandth of it."""
    agents = [
        Agent(flat(1), A=[[a]], b=[b], lower=0.0, upper=1.0, name=name)
        for a, b, name in ((1.0, 9.0, "north"), (1.0, 0.0, "south"), (1e-4, 0.0, "east"))
    ]
    result = ccmac.solve(Problem(agents, row_names=["power"]), "path")
    assert result.status == "infeasible"
    assert "the coupled rows power and the bounds of agents" in result.message
    assert "north" in result.message
    assert "east" not in result.message


# -- bounds ----------------------------------------------------------------------------------------
def farkas_value(problem: Problem, found: Infeasibility) -> float:
    """lambda'v - max over the box of (K'lambda)'w, in plain arithmetic; -inf where it is free."""
    value = 0.0
    for i, agent in problem.agents.items():
        form = agent.objective.polyhedral(problem.d[i], problem.q)
        r = agent.A.T @ found.coupled
        r = np.where(np.abs(r) > 1e-12, r, 0.0)
        ends = np.where(r > 0, form.upper, form.lower)
        value += agent.b @ found.coupled - float(r[r != 0] @ ends[r != 0])
    return value


@given(st.integers(0, 10**6), st.sampled_from([1e-5, 1e-3, 1.0]))
@settings(max_examples=6)
def test_boxes_that_no_sum_leaves(seed: int, level: float) -> None:
    """sum a'x = sum |a| + level with x in [-1, 1]; below that there are points."""
    random = np.random.default_rng(seed)
    rows = random.standard_normal((3, 3))
    most = float(np.abs(rows).sum())

    def posed(right: float) -> tuple[Problem, Result]:
        agents = [Agent(flat(3) + Box(-1.0, 1.0), A=row[None], b=[right / 3]) for row in rows]
        problem = Problem(agents, q=0)
        return problem, ccmac.solve(problem, "path", tol=1e-6)

    problem, result = posed(most * (1 + level))
    assert result.status == "infeasible"
    assert "the bounds of agents" in result.message
    assert "widen the bounds" in result.message
    assert farkas_value(problem, result.infeasibility) == pytest.approx(
        result.infeasibility.value, rel=1e-6, abs=1e-12
    )
    assert result.infeasibility.value > 0
    assert posed(most * (1 - level))[1].status == "optimal"


def test_bounds_on_z_that_cross_name_both_agents() -> None:
    agents = [
        Agent(flat(1, 1), A=[[1.0]], b=[0.0], lower=0.0),
        Agent(flat(1, 1) + Box([-np.inf, 3.0], [np.inf, np.inf]), A=[[1.0]], b=[0.0]),
        Agent(flat(1, 1) + Box([-np.inf, -np.inf], [np.inf, 2.0]), A=[[1.0]], b=[0.0]),
    ]
    result = ccmac.solve(Problem(agents, q=1), "path")
    assert result.status == "infeasible"
    assert "agent 1 wants entry 0 of z above 3, agent 2 below 2" in result.message


# -- where nobody knows all equations --------------------------------------------------------------
def as_operators(problem: Problem) -> Problem:
    """The same with operators that show no entries."""
    agents = []
    for agent in problem.agents.values():
        blocks = {n: aslinearoperator(getattr(agent, n)) for n in "AB"}
        agents.append(Agent(agent.objective, b=agent.b, **blocks))
    return Problem(agents, q=problem.q)


def contradictory(seed: int, level: float) -> Problem:
    """The last coupled row is a sum of the others; its right-hand side is off."""
    random = np.random.default_rng(seed)
    agents = []
    for i in range(3):
        A = random.standard_normal((2, 3))
        B = random.standard_normal((2, 2))
        b = random.standard_normal(2)
        last = [float(b.sum()) + (level if i == 0 else 0.0)]
        wide = np.vstack([A, A.sum(axis=0)]), np.vstack([B, B.sum(axis=0)])
        agents.append(Agent(flat(3, 2), A=wide[0], B=wide[1], b=np.append(b, last)))
    return Problem(agents, q=2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("operators", [False, True])
def test_at_the_closest_point_of_a_run(
    method: str, operators: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ccmac.workspace.base.affordable", lambda *given: False)
    for seed, level in ((0, 1.0), (1, 1e-2), (2, 1e-4)):
        problem = contradictory(seed, level)
        problem = as_operators(problem) if operators else problem
        result = ccmac.solve(problem, "ring", method, 1e-6, max_iterations=3000)
        assert result.status not in ("optimal", "infeasible"), (seed, result.residuals)
        same = contradictory(seed, 0.0)
        same = as_operators(same) if operators else same
        assert ccmac.solve(same, "ring", method, 1e-4, max_iterations=3000).status != "infeasible"


# -- the record ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("value", "defect", "text"),
    [(1.0, 0.0, "no solution, however long"), (-2.99, 1e-6, "no solution shorter than 2.9e+06")],
)
def test_a_printed_result_names_the_radius(value: float, defect: float, text: str) -> None:
    assert Infeasibility("m", np.zeros(0), defect=defect, value=value).excluded == text


def test_the_record_is_plain_json() -> None:
    case = suite.make("across-shared", 0)
    result = ccmac.solve(case.draft.problem(), Network.path(case.draft.n))
    told = json.loads(json.dumps(result.infeasibility.as_dict()))
    assert told["radius"] == pytest.approx(result.infeasibility.radius)
    assert set(told["shared"]) == {str(i) for i in result.infeasibility.shared}


def test_where_no_agent_has_A_or_B() -> None:
    agents = [Agent(flat(1), C=np.zeros((0, 1)), b=[1.0]) for _ in range(2)]
    result = ccmac.solve(Problem(agents, q=0, m=1), "path")
    assert result.status == "infeasible"
    assert "without A and B" in result.message
