"""max_seconds counts from the call, and the setup is left between two agents' pieces of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac import api
from ccmac.errors import OutOfTime
from ccmac.methods import falls
from ccmac.objectives import Box, Quadratic, Separable
from ccmac.paper.instances import random_quadratic
from ccmac.runtime import InProcess, Runtime
from ccmac.workspace import Workspace
from pins.problems import posed


@pytest.mark.parametrize("method", ["auto", "cross-apapc", "cross-cg"])
def test_what_comes_before_the_run_counts_too(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Placing the problem on its network takes longer than the limit."""
    placed = api.placed

    def slowly(*given: Any) -> Any:
        time.sleep(0.3)
        return placed(*given)

    monkeypatch.setattr(api, "placed", slowly)
    problem = random_quadratic(0, 3, kappa_f=10.0)
    result = ccmac.solve(problem, "ring", method, max_seconds=0.25)
    assert (result.status, result.iterations) == ("max_iterations", 0)
    assert result.seconds >= 0.3
    assert result.warnings == ["the time limit passed during the setup; raise max_seconds"]
    assert ccmac.solve(problem, "ring", method, max_seconds=60.0).status == "optimal"


@pytest.mark.parametrize(
    "piece",
    [
        lambda work: work.announce_schur(),
        lambda work: work.announce_flats(),
        lambda work: work.curvature._mixed_at(0.5),
        falls._own_slopes,
    ],
    ids=["summed", "flats", "curvature", "slopes"],
)
def test_time_is_looked_at_before_each_agent_s_piece(
    piece: Callable[[Workspace], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time is over when the first agent is done: the second one's matrices are never asked for."""
    agents = [
        ccmac.Agent(Quadratic(np.eye(3), np.ones(3)), A=[[1.0, 2.0]], B=[[1.0]], b=[1.0])
        for _ in range(4)
    ]
    work = Workspace(ccmac.Problem(agents), InProcess(ccmac.Network.complete(4)))
    _ = work.kernels
    asked = []
    for name in ("quadratic", "scaled_curvature"):
        true = getattr(Quadratic, name)

        def counted(self: Quadratic, *given: Any, true: Any = true) -> Any:
            asked.append(self)
            work.runtime.limit(time.monotonic() - 1.0)
            return true(self, *given)

        monkeypatch.setattr(Quadratic, name, counted)
    with work.ledger.phase("setup"), pytest.raises(OutOfTime):
        piece(work)
    assert len({id(f) for f in asked}) == 1
    work.runtime.limit(math.inf)


@pytest.mark.parametrize("reach", [2.0, 10.0])
def test_a_tenth_of_the_time_is_kept_for_contradictions(reach: float) -> None:
    """Six entries in [-1, 1] add up to 6 at most, and should to 3 ``reach``."""
    box = Separable(Box(-np.ones(2), np.ones(2)), Box(-np.ones(1), np.ones(1)))
    agents = [ccmac.Agent(box, A=[[1.0, 1.0]], B=[[0.0]], b=[reach]) for _ in range(3)]
    result = ccmac.solve(ccmac.Problem(agents), "ring", "cross-sliding", 1e-15, max_seconds=2.0)
    assert (result.status == "infeasible") == (reach > 2.0)
    if result.infeasibility is not None:
        lam = result.infeasibility.coupled
        assert abs(float(lam[0]) * 3 * reach) > 6 * abs(float(lam[0]))


def test_a_long_row_of_subgradients_looks_at_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """An outer step of sliding sends nothing until it is over."""
    made = posed("absolute")
    looks = 0
    plain = Runtime.mind_the_time

    def counted(self: Runtime) -> None:
        nonlocal looks
        looks += 1
        plain(self)

    monkeypatch.setattr(Runtime, "mind_the_time", counted)
    method = ccmac.methods.CrossSliding(schedule="subgradient")
    result = ccmac.solve(made.problem, made.network, method, 1e-3, max_iterations=20)
    assert looks >= result.ledger["gradients"] > 2 * result.iterations


def test_a_polynomial_of_many_products_is_left_between_them() -> None:
    """Coupled rows of length 2^-17 and 1: their canonical normalizer takes 230,304 products."""
    f = Quadratic(np.ones(3), np.ones(3))
    rows = np.diag([2.0**-17, 1.0])
    agents = [ccmac.Agent(f, A=rows, B=rows[:, :1], b=rows[:, 1]) for _ in range(2)]
    method = ccmac.methods.CrossApapc(realization="canonical")
    result = ccmac.solve(ccmac.Problem(agents), "path", method, max_seconds=0.2)
    assert (result.status, result.iterations) == ("max_iterations", 0)
    assert result.ledger.of("setup")["A"] < 200_000
