"""Agents with conic rows of their own: solved, saved, refused where another method is asked for."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import ccmac
from ccmac.cones import Nonnegative, SecondOrder, Zero
from ccmac.errors import InputError, MethodRefused
from ccmac.objectives import Quadratic
from cones.joined import joined
from cones.sweep import judged

BALL = -np.eye(4)[:, 1:]  # rows of (t, x) with t a constant: ||x|| <= h_0


def shared_ball(**changes: Any) -> ccmac.Problem:
    """Two agents, one in a ball, one on rows of all cones that z takes part in."""
    rng = np.random.default_rng(5)
    first = {
        "A": rng.standard_normal((2, 3)),
        "B": rng.standard_normal((2, 2)),
        "b": [0.3, -0.2],
        "G": sp.csr_array(BALL),
        "h": [0.7, 0.0, 0.0, 0.0],
        "cones": [SecondOrder(4)],
        "C": [[1.0, 1.0, 1.0]],
        "c": [0.1],
        "C_sense": "<=",
    }
    second = {
        "A": rng.standard_normal((2, 2)),
        "G": rng.standard_normal((6, 2)),
        "H": rng.standard_normal((6, 2)),
        "h": [0.4, 0.2, 0.3, 1.5, 0.0, 0.1],
        "cones": [Zero(1), Nonnegative(2), SecondOrder(3)],
    }
    agents = [
        ccmac.Agent(Quadratic(np.eye(5), [3.0, 1.0, -2.0, 0.5, 0.5]), **(first | changes)),
        ccmac.Agent(Quadratic(np.eye(4), [1.0, 2.0, 0.0, -1.0]), **second, name="east"),
    ]
    return ccmac.Problem(agents, z_lower=-1.0)


def test_cost_prices_and_residuals_are_those_of_the_joined_problem() -> None:
    problem = shared_ball()
    result = ccmac.solve(problem, "path", tol=1e-8)
    judge = joined(problem)
    assert (result.status, judge.status) == ("optimal", "optimal")
    assert result.plan.method == "cross-ipm"  # type: ignore[union-attr]
    assert result.objective == pytest.approx(judge.cost, rel=1e-7)
    assert result.multipliers.coupled == pytest.approx(judge.coupled, abs=1e-4)
    for mine, other in zip(result.multipliers.cones, judge.cones, strict=True):
        assert mine == pytest.approx(other, abs=1e-4)
    assert result.residuals["cones"] < 1e-7
    y = result.multipliers.cones[0]
    assert y[0] >= np.linalg.norm(y[1:])  # in the dual cone, whatever rounding did


def test_a_second_solve_may_start_from_the_first() -> None:
    problem = shared_ball()
    first = ccmac.solve(problem, "path", tol=1e-8)
    again = ccmac.solve(problem, "path", tol=1e-8, warm_start=first)
    assert again.status == "optimal"
    assert again.objective == pytest.approx(first.objective, rel=1e-7)


def test_a_run_in_pieces_is_the_same_run(tmp_path: Path) -> None:
    whole = ccmac.solve(shared_ball(), "path")
    kept = {"path": tmp_path, "every": 1}
    for limit in (2, 5, None):
        found = ccmac.solve(shared_ball(), "path", checkpoint=kept, max_iterations=limit)
    assert [v.tobytes() for v in found.x] == [v.tobytes() for v in whole.x]
    assert [v.tobytes() for v in found.multipliers.cones] == [
        v.tobytes() for v in whole.multipliers.cones
    ]
    assert found.ledger.as_dict() == whole.ledger.as_dict()
    with pytest.raises(InputError, match="checkpoint"):
        ccmac.solve(shared_ball(h=[0.8, 0.0, 0.0, 0.0]), "path", checkpoint=kept)


@pytest.mark.parametrize("seed", range(8))
def test_random_problems_have_the_status_of_their_construction(seed: int) -> None:
    assert judged(seed) == ""


def test_a_saved_problem_and_result_keep_their_cones(tmp_path: Path) -> None:
    problem = shared_ball()
    problem.save(tmp_path / "problem")
    again = ccmac.Problem.load(tmp_path / "problem")
    assert again.agents[1].cones == (Zero(1), Nonnegative(2), SecondOrder(3))
    assert "version: 3" in (tmp_path / "problem" / "problem.yaml").read_text()
    result = ccmac.solve(again, "path")
    result.save(tmp_path / "result")
    kept = ccmac.Result.load(tmp_path / "result").multipliers.cones
    assert [v.tolist() for v in kept] == [v.tolist() for v in result.multipliers.cones]
    problem.agents[0].save(tmp_path / "agent")
    alone = ccmac.Agent.load(tmp_path / "agent")
    assert alone.cones == [SecondOrder(4)]
    assert (alone.G.toarray() == BALL).all()


@pytest.mark.parametrize("name", [m for m in ccmac.available_methods() if m != "cross-ipm"])
def test_every_other_method_refuses_cones(name: str) -> None:
    with pytest.raises(MethodRefused, match=r"does not take cones.*use cross-ipm"):
        ccmac.solve(shared_ball(), "path", name)


def test_masked_averagings_and_other_objectives_are_refused() -> None:
    with pytest.raises(MethodRefused, match="masked"):
        ccmac.solve(shared_ball(), "path", averaging="masked")
    agent = ccmac.Agent(
        ccmac.objectives.Custom(lambda x, z: 0.0, lambda x, z: (0 * x, 0 * z), 1.0, 0.0),
        G=[[1.0]],
        cones=[Nonnegative(1)],
    )
    with pytest.raises(MethodRefused, match="cones"):
        ccmac.solve(ccmac.Problem([agent], q=0))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cones": None}, "agent 0, block G: given without cones"),
        ({"cones": [SecondOrder(3)]}, "agent 0, block G: has 4 rows but the cones have 3"),
        ({"h": [1.0]}, "agent 0, block h: has 1 rows but the cones have 4"),
        ({"cones": ["ball"]}, "agent 0, cones: 'ball' is no cone"),
        ({"cones": 4}, "agent 0, cones: is 4; give a list"),
        ({"G": np.ones((4, 2))}, "agent 0, block G: has 2 columns but x has 3"),
        ({"H": np.ones((4, 3))}, "agent 0, block H: fits z with 3 entries but z has 2"),
        ({"G": np.full((4, 3), np.nan)}, "agent 0, block G"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        shared_ball(**changes)


def test_the_geometry_leaves_conic_rows_out() -> None:
    problem = shared_ball()
    bare = [replace(a, G=None, H=None, h=None, cones=None) for a in problem.agents.values()]
    found = [ccmac.geometry(p) for p in (problem, ccmac.Problem(bare, q=problem.q))]
    assert found[0].cross_factor == found[1].cross_factor
    assert found[0].ranks == found[1].ranks


def ball_and_bounds(limit: float, total: float) -> ccmac.Problem:
    """||x|| <= limit of one agent, -1 <= x <= 1 of the other, x_0 + x = total."""
    ball = ccmac.Agent(
        Quadratic(np.zeros((2, 2))),
        A=[[1.0, 0.0]],
        b=[total],
        G=[[0.0, 0.0], [-1.0, 0.0], [0.0, -1.0]],
        h=[limit, 0.0, 0.0],
        cones=[SecondOrder(3)],
    )
    other = ccmac.Agent(Quadratic([[1.0]]), A=[[1.0]], lower=-1.0, upper=1.0, name="east")
    return ccmac.Problem([ball, other], q=0)


def test_a_contradiction_carries_multipliers_of_cones(tmp_path: Path) -> None:
    result = ccmac.solve(ball_and_bounds(limit=1.0, total=3.0), "path")
    assert result.status == "infeasible"
    assert re.search("conic rows of agents? 0", result.message)
    [y] = [-v for v in result.infeasibility.cones.values()]
    assert y[0] >= np.linalg.norm(y[1:]) > 0
    assert result.infeasibility.radius > 1e6
    result.save(tmp_path)
    kept = ccmac.Result.load(tmp_path).infeasibility.cones
    assert kept[0].tolist() == (-y).tolist()


def test_an_agent_that_is_infeasible_by_itself_is_named_alone() -> None:
    result = ccmac.solve(ball_and_bounds(limit=-1.0, total=3.0), "path")
    assert re.search("the conic rows of agent 0 cannot hold", result.message)
    assert list(result.infeasibility.cones) == [0]
    assert not result.infeasibility.coupled.any()


def test_a_fall_stays_within_the_cones() -> None:
    def problem(slope: float) -> ccmac.Problem:
        cone = ccmac.Agent(
            Quadratic(np.zeros((3, 3)), [slope, 1.0, 0.0]),
            A=[[0.0, 1.0, 0.0]],
            G=-np.eye(3),
            cones=[SecondOrder(3)],
        )
        free = ccmac.Agent(Quadratic([[0.0]]), A=[[1.0]], b=[1.0])
        return ccmac.Problem([cone, free], q=0)

    result = ccmac.solve(problem(-0.5), "path")
    assert result.status == "unbounded"
    t, *x = result.certificates["direction"]["x"][0]
    assert t >= np.linalg.norm(x) - 1e-12
    assert ccmac.solve(problem(-1.5), "path").status == "optimal"
