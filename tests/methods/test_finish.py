"""From the end of a run to what is said of it, case by case."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.certificates.bound import Proved
from ccmac.certificates.recession import Recession
from ccmac.certificates.stopping import Check
from ccmac.linalg.ranks import row_space
from ccmac.methods import finish
from ccmac.methods.driver import Outcome
from ccmac.runtime import InProcess


def proved() -> Proved:
    none = np.zeros(0)
    return Proved(none, none, 0.5, 0.0, 0.0, 1.0, none, none, none)


@pytest.mark.parametrize(
    ("kept", "dropped", "told"), [(100.0, 0.01, False), (99.0, 0.0, True), (1e9, 0.011, True)]
)
def test_what_is_said_of_the_rows(kept: float, dropped: float, told: bool) -> None:
    """Which were left out, and whether something lies within two decades of the cut."""
    near = {"kept": kept, "dropped": dropped}
    reduced = Fake(rank=3, least=0.5, condition=7.0, near_cut=near, convention="said")
    reduced.redundant = {"coupled": [2], "shared": {}}
    work: Any = Fake(runtime=Fake(notes=Fake(led=False)), constraints=reduced)
    work.problem = Fake(agents={4: None, 7: None})
    work.local = Fake(spaces=[row_space(np.eye(2)), row_space(np.ones((2, 1)))])
    facts = finish._facts(work, proved(), "proved")
    rows: dict[str, Any] = {"rank": 3, "least_singular_value": 0.5, "condition": 7.0}
    [row] = facts["rows"]["dropped"]["local"].pop("7")
    assert row in (0, 1)
    rows |= {"dropped": {"coupled": [2], "local": {}}, "convention": "said"}
    expected: dict[str, Any] = {"rests_on": "proved", "rows": rows}
    if told:
        expected["rank_cut"] = near
    assert facts == expected
    assert finish._facts(work, None, "nothing") == {"rests_on": "nothing"}


# -- results without a run -------------------------------------------------------------------------
def problem() -> Any:
    agents = [ccmac.Agent(ccmac.objectives.SquaredDistance(1.0), A=np.ones((1, d))) for d in (2, 1)]
    return ccmac.Problem(agents, q=1)


def test_results_of_problems_without_a_solution() -> None:
    runtime = InProcess(ccmac.Network.path(2))
    work: Any = Fake(problem=problem(), runtime=runtime, ledger=runtime.ledger)
    conflict: Any = Fake(message="they contradict each other")
    none = finish.infeasible_result(work, conflict, 5)
    assert (none.status, none.infeasibility) == ("infeasible", conflict)
    assert [v.tolist() for v in none.x] == [[0.0, 0.0], [0.0]]
    assert none.z.tolist() == [0.0]
    assert none.provenance["seed"] == 5
    assert none.ledger is runtime.ledger
    direction = object.__new__(Recession)
    vars(direction).update(x=[np.ones(2), np.zeros(1)], z=np.full(1, 3.0), fall=2.0, defect=1e-12)
    for free in (
        finish.unbounded_result(work, direction, 5),
        finish.without_solution(
            work,
            Outcome("done", None, 3, Check(math.nan, verdict=direction)),  # type: ignore[arg-type]
            None,
            None,
            5,  # type: ignore[arg-type]
        ),
    ):
        assert (free.status, free.objective) == ("unbounded", -math.inf)
        assert free.certificates == {
            "direction": {"x": [[1.0, 1.0], [0.0]], "z": [3.0]},
            "fall": 2.0,
            "defect": 1e-12,
        }
        assert free.warnings == [direction.message]
    assert free.iterations == 3
    request: Any = Fake(x0=np.array([1.0, 2.0, 3.0]), z0=np.array([4.0]), seed=6)
    late = finish.late_result(work, request, 1.5)
    assert (late.status, late.seconds) == ("max_iterations", 1.5)
    assert [v.tolist() for v in late.x] == [[1.0, 2.0], [3.0]]
    assert late.z.tolist() == [4.0]
    assert late.provenance["seed"] == 6


def test_the_settings_of_a_run_are_recorded() -> None:
    runtime = InProcess(ccmac.Network.path(3), averaging="tree")
    told = finish.provenance(runtime, 7)
    assert told["ccmac"] == ccmac.__version__
    assert told["numpy"] == np.__version__
    assert {k: told[k] for k in ("runtime", "averaging", "network", "agents", "seed", "fused")} == {
        "runtime": "inprocess",
        "averaging": "tree",
        "network": runtime.network.name,
        "agents": 3,
        "seed": 7,
        "fused": runtime.fused,
    }
    assert {"python", "scipy"} <= told.keys()
    condition = runtime.network.condition
    assert finish.provenance(runtime, 7)["kappa_W"] == condition


def test_values_and_pieces_of_the_agents() -> None:
    runtime = InProcess(ccmac.Network.path(2))
    x = np.array([1.0, 2.0, 3.0])
    z = np.array([[2.0]])
    total = finish._values(problem(), runtime, x, z)
    runtime.average(np.zeros((2, 1)))
    assert total.value[0] == pytest.approx(0.5 * (1 + 4 + 9) + 2 * 0.5 * 4)
    assert [v.tolist() for v in finish._split(problem(), x)] == [[1.0, 2.0], [3.0]]
