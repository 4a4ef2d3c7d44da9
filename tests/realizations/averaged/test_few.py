"""Coupled rows summed among those they concern: the same answers, fewer rounds and bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac import InProcess, Network
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods import CrossApapc, JointApapc
from ccmac.methods.base import Method, Prepared, Request
from ccmac.methods.registry import parse
from ccmac.methods.start import starting_point
from ccmac.paper.instances import solve_kkt
from ccmac.runtime.few import Few
from ccmac.workspace import Workspace
from ccmac.workspace.coupling import Coupling
from workspace.sparse_coupling import neighborly

RING = Network.ring(8)
AMONG = "sums among few"
ALONE = neighborly(3, 8)
BESIDE = neighborly(3, 8, q=3)
PLANNED = CrossApapc(normalizer="semi-iteration", inner=4, outer=2, scale=1.0)
PAIRS = [
    (PLANNED, "relay"),
    (PLANNED, "tree"),
    (PLANNED, "scatter"),
    (JointApapc(), "relay"),
    (parse("papc"), "tree"),
    (parse("pdhg"), "scatter"),
    (parse("condat-vu"), "relay"),
]


def solved(problem: ccmac.Problem, scheme: str, method: Any = PLANNED, **more: Any) -> ccmac.Result:
    runtime = InProcess(RING, averaging=scheme)
    return ccmac.solve(problem, runtime=runtime, method=method, **more)


def reaching_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Coupling, "few", property(lambda self: None))


def stepped(problem: ccmac.Problem, method: Method, scheme: str) -> tuple[Prepared, Array, Cost]:
    """Prepared, the point after eight steps, and what one of them cost."""
    work = Workspace(problem, InProcess(RING, averaging=scheme))
    with work.ledger.phase("setup"):
        prepared = method.prepare(work, Request(1e-6, *starting_point(work, None)))
    iteration = prepared.iteration
    state = iteration.start(np.zeros(48), np.zeros((8, problem.q)))
    for _ in range(8):
        before = work.ledger.of("solve")
        state = iteration.step(state)
    spent = work.ledger.of("solve") - before
    assert {**spent} == {**iteration.cost}
    assert iteration.silent == (problem.q == 0 and AMONG in prepared.settings)
    return prepared, np.concatenate([v.ravel() for v in iteration.point(state)]), spent


@pytest.mark.parametrize("problem", [ALONE, BESIDE], ids=["alone", "beside"])
@pytest.mark.parametrize(
    ("method", "scheme"), PAIRS, ids=[f"{method.name} {scheme}" for method, scheme in PAIRS]
)
def test_the_same_steps_in_fewer_rounds_and_bytes_as_declared(
    method: Method, scheme: str, problem: ccmac.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, point, one = stepped(problem, method, scheme)
    reaching_all(monkeypatch)
    full, other_point, other = stepped(problem, method, scheme)
    assert AMONG in few.settings
    assert AMONG not in full.settings
    assert np.linalg.norm(point - other_point) <= 1e-12 * np.linalg.norm(other_point)
    assert one["averagings"] == other["averagings"]
    assert one["rounds"] <= other["rounds"]
    if not problem.q:
        assert one["rounds"] == 2 * one["averagings"]
        assert one["bytes"] < 0.2 * other["bytes"]
    elif scheme != "scatter":  # which takes nothing along
        assert one["network_bytes"] < 0.6 * other["network_bytes"]


def test_proofs_and_prices_are_those_of_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound from the method's own price (no gathered equations), and the price reported."""
    few = solved(ALONE, "relay", tol=1e-7)
    monkeypatch.setattr(ccmac.workspace.Workspace, "gatherable", property(lambda self: False))
    looked = solved(ALONE, "relay", tol=1e-7)
    reaching_all(monkeypatch)
    full = solved(ALONE, "relay", tol=1e-7)
    assert few.status == "optimal"
    assert (looked.status, looked.iterations) == (full.status, full.iterations)
    for result in (few, looked):
        assert result.multipliers is not None
        assert full.multipliers is not None
        prices = result.multipliers.coupled, full.multipliers.coupled
        assert np.allclose(*prices, rtol=1e-5, atol=1e-5)
    assert looked.ledger["rounds"] < full.ledger["rounds"]


def test_health_takes_a_tenth_of_the_rounds_at_most() -> None:
    """One averaging after the first and the tenth step, then one in 10 x 8 rounds of steps."""
    result = solved(
        ALONE, "tree", "papc", reference=solve_kkt(ALONE), max_iterations=170, tol=1e-15
    )
    assert (result.iterations, result.plan.averaging_rounds) == (170, 8)
    assert result.ledger.of("solve")["rounds"] == 2 * 170
    assert result.ledger.of("monitor")["averagings"] == 2 + 170 // 40 + 2  # and at the end


def test_iterates_that_blow_up_are_noticed() -> None:
    """An interval of S that ends too low: widened, started again."""
    given = ccmac.Certificates(mu_HC=0.05, h=4.0)
    method = CrossApapc(normalizer="semi-iteration", inner=2, certificates=given)
    result = solved(ALONE, "relay", method, tol=1e-5, reference=solve_kkt(ALONE))
    assert AMONG in result.plan.settings
    assert any("grew" in warning for warning in result.warnings)


@pytest.mark.parametrize("averaging", ["relay", "masked"])
def test_the_plan_says_who_sees_what(averaging: str) -> None:
    plan = solved(ALONE, averaging, max_iterations=1).plan
    told = plan.as_dict()["reveals"]["seen"]
    if averaging == "masked":
        assert AMONG not in plan.settings
        assert told == "all see the sum, nobody a part"
    else:
        assert plan.settings[AMONG] == "2 rounds for a coupled row alone"
        assert told.startswith("of a coupled row those it concerns")
        assert told in str(plan)


def test_vectors_of_all_rows_reach_everybody() -> None:
    """Deflated vectors need inner products over all rows; plans count what either takes."""
    deflated = solved(ALONE, "relay", CrossApapc(normalizer="deflation"), max_iterations=3)
    assert AMONG not in deflated.plan.settings
    assert deflated.plan.iteration["rounds"] == 4
    by_rows = solved(ALONE, "relay", max_iterations=1).plan
    assert by_rows.iteration["rounds"] == 2 * 2 * 4
    assert by_rows.candidates[0].rounds == by_rows.candidates[0].iterations * 16


def test_a_resumed_run_has_the_same_bits(tmp_path: Path) -> None:
    options = {"reference": solve_kkt(ALONE), "tol": 1e-12}
    whole = solved(ALONE, "tree", max_iterations=45, **options)
    place = {"path": tmp_path / "state", "every": 10}
    for iterations in (20, 45):
        ended = solved(ALONE, "tree", max_iterations=iterations, checkpoint=place, **options)
    assert ended.iterations == whole.iterations == 45
    assert all(np.array_equal(a, b) for a, b in zip(ended.x, whole.x, strict=True))
    assert ended.ledger.as_dict() == whole.ledger.as_dict()


def test_the_alternatives_count_fewer_rounds() -> None:
    plan = ccmac.plan(ALONE, RING, averaging="relay")
    rounds = {a.method: a.step["rounds"] for a in plan.alternatives}
    assert rounds["cross-apapc"] == 2
    assert rounds["cross-cg"] == 4


def test_trees_are_found_once() -> None:
    work = Workspace(ALONE, InProcess(RING, averaging="relay"))
    few = work.coupling.few
    assert isinstance(few, Few)
    assert work.coupling.rescaled(1.0, 2.0).few is few
    assert np.array_equal(few.held(range(2)), work.coupling.supports[:2].any(axis=0))
