"""A stored run continues what it was written for and refuses everything else by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

import ccmac
from ccmac.errors import InputError
from ccmac.methods import CrossApapc
from ccmac.methods import identity as identities
from ccmac.objectives import Custom, Logistic, Quadratic, Separable, SquaredDistance
from ccmac.paper.instances import random_quadratic

NETWORK = "ring"
METHOD = CrossApapc()


def logistic(flip: int | None = None, weight: float = 0.1) -> ccmac.Problem:
    """Four agents with labels; those of agent ``flip`` are turned round."""
    rng = np.random.default_rng(3)
    agents = []
    for i in range(4):
        data = rng.standard_normal((12, 3))
        labels = rng.choice([-1.0, 1.0], 12)
        z = Logistic(data, -labels if i == flip else labels, ridge=weight)
        objective = Separable(SquaredDistance(1.0, rng.standard_normal(4)), z)
        A = sp.random_array((3, 4), density=0.6, rng=rng, format="csr")
        agents.append(ccmac.Agent(objective, A=A, B=rng.standard_normal((3, 3)), b=np.ones(3)))
    return ccmac.Problem(agents)


def with_agent(problem: ccmac.Problem, i: int, **blocks: Any) -> ccmac.Problem:
    agents = list(problem.agents.values())
    agents[i] = replace(agents[i], **blocks)
    return ccmac.Problem(agents)


def permuted(problem: ccmac.Problem) -> ccmac.Problem:
    """The same stored numbers of A_2 at other places."""
    A = problem.agents[2].A
    moved = sp.csr_array((A.data, (A.indices + 1) % A.shape[1], A.indptr), shape=A.shape)
    assert np.array_equal(moved.data, A.data)
    return with_agent(problem, 2, A=moved)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("state")
    ended = ccmac.solve(logistic(), NETWORK, METHOD, 1e-9, checkpoint=place, max_iterations=9)
    assert ended.status == "max_iterations"
    return place


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"problem": lambda: logistic(flip=3)}, "the objective of agent 3 differs"),
        ({"problem": lambda: logistic(weight=1.0)}, "the objective of agents 0, 1, 2, ... differs"),
        ({"problem": lambda: permuted(logistic())}, "block A of agent 2 differs"),
        ({"problem": lambda: with_agent(logistic(), 1, b=np.zeros(3))}, "side b of agent 1"),
        ({"network": "path"}, "the network"),
        ({"averaging": "tree"}, "the averaging scheme"),
        ({"method": CrossApapc(realization="certified")}, "option realization ('averaged', here"),
        ({"method": CrossApapc(inner=2)}, "option inner (None, here 2)"),
        ({"method": "dpmm"}, "the method (cross-apapc, here dpmm)"),
        ({"seed": 5}, "the seed (0, here 5)"),
        ({"costs": ccmac.Costs(round=7.0)}, "the costs"),
        ({"reference": np.ones(16)}, "whether a reference ends the run"),
        ({"warm_start": ccmac.Solution([np.ones(4)] * 4, np.ones(3))}, "the starting point"),
    ],
)
def test_what_a_run_depends_on_is_refused_by_name(
    stored: Path, change: dict[str, Any], told: str
) -> None:
    before = {f.name: f.read_bytes() for f in stored.iterdir()}
    asked: dict[str, Any] = {"problem": logistic, "network": NETWORK, "method": METHOD, **change}
    problem = asked.pop("problem")()
    with pytest.raises(InputError) as caught:
        ccmac.solve(problem, tol=1e-9, checkpoint=stored, **asked)
    assert told in str(caught.value)
    assert "from the stored run's" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert {f.name: f.read_bytes() for f in stored.iterdir()} == before


def test_another_version_is_refused_by_name(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identities, "__version__", "99.0")
    with pytest.raises(InputError, match=r"the version of ccmac .*here 99.0"):
        ccmac.solve(logistic(), NETWORK, METHOD, 1e-9, checkpoint=stored)


@pytest.mark.parametrize("tol", [1e-3, 1e-9, 1e-11])
@pytest.mark.parametrize("method", [METHOD, CrossApapc(realization="certified"), "auto"])
def test_another_tolerance_is_accepted(tmp_path: Path, method: Any, tol: float) -> None:
    problem = logistic()
    asked = {"checkpoint": {"path": tmp_path, "every": 4}}
    ccmac.solve(problem, NETWORK, method, 1e-6, max_iterations=9, **asked)
    fresh = ccmac.solve(problem, NETWORK, method, tol)
    resumed = ccmac.solve(problem, NETWORK, method, tol, max_seconds=300.0, **asked)
    assert resumed.status == fresh.status == "optimal"
    gap = np.concatenate([*resumed.x, resumed.z]) - np.concatenate([*fresh.x, fresh.z])
    assert np.linalg.norm(gap) <= fresh.error_bound + resumed.error_bound


def square(shift: float) -> Custom:
    return Custom(
        lambda x, z: 0.5 * float(x @ x + z @ z) - shift * float(x.sum()),
        lambda x, z: (x - shift, z),
        1.0,
        1.0,
    )


def operators(scale: float = 1.0, shift: float = 0.5) -> ccmac.Problem:
    rng = np.random.default_rng(5)
    return ccmac.Problem(
        [
            ccmac.Agent(
                square(shift),
                A=aslinearoperator(scale * rng.standard_normal((2, 3))),
                B=rng.standard_normal((2, 2)),
                b=np.ones(2),
            )
            for _ in range(3)
        ]
    )


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (lambda: operators(scale=1.5), "block A of agents 0, 1, 2"),
        (lambda: operators(shift=0.25), "the objective of agents"),
    ],
)
def test_code_is_known_by_what_it_answers(
    tmp_path: Path, other: Callable[[], ccmac.Problem], told: str
) -> None:
    ccmac.solve(operators(), NETWORK, METHOD, 1e-9, checkpoint=tmp_path, max_iterations=5)
    assert ccmac.solve(operators(), NETWORK, METHOD, 1e-9, checkpoint=tmp_path).status == "optimal"
    with pytest.raises(InputError, match=told):
        ccmac.solve(other(), NETWORK, METHOD, 1e-9, checkpoint=tmp_path)


def test_a_certified_schedule_belongs_to_its_tolerance(tmp_path: Path) -> None:
    flat = Quadratic(np.diag([1.0, 0.0]), np.ones(2) * [1.0, 0.0])
    problem = ccmac.Problem([ccmac.Agent(flat, A=[[1.0]], B=[[1.0]], b=[1.0]) for _ in range(3)])
    method = ccmac.methods.CrossContinuation(schedule="certified", radius=3.0)
    ccmac.solve(problem, NETWORK, method, 1e-2, checkpoint=tmp_path, max_iterations=3)
    with pytest.raises(InputError, match="a certified schedule is made for"):
        ccmac.solve(problem, NETWORK, method, 1e-3, checkpoint=tmp_path)


def test_the_bill_of_a_resumed_run_is_that_of_an_uninterrupted_one(tmp_path: Path) -> None:
    """Also where scalars had been asked for that were to travel with the next message."""
    problem = random_quadratic(7, n=4)
    place = {"path": tmp_path / "state", "every": 10}
    given: dict[str, Any] = {"method": "cross-apapc", "tol": 1e-9}
    whole = ccmac.solve(problem, "ring", **given)
    ccmac.solve(problem, "ring", max_iterations=20, checkpoint=place, **given)
    resumed = ccmac.solve(problem, "ring", checkpoint=place, **given)
    assert resumed.iterations == whole.iterations > 20
    for phase in ("setup", "solve", "monitor"):
        assert resumed.ledger.of(phase) == whole.ledger.of(phase)
