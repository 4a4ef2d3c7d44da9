"""Counts of the theory on small problems, to the unit."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest

import ccmac
from ccmac.cli.main import main
from ccmac.methods import CrossApapc, CrossContinuation
from ccmac.objectives import Quadratic
from ccmac.paper.complexity import complexity
from ccmac.paper.instances import communication_path, uniform_rounds


@pytest.mark.parametrize("realization", ["averaged", "canonical"])
def test_the_radius_of_agents_without_a_shared_variable_is_their_own(realization: str) -> None:
    """q = 0: no copies, so that the radius is not multiplied by sqrt(n), here sqrt(10)."""
    f = Quadratic(np.ones(1), np.ones(1))  # L = 1

    def certified(accuracy: float, agent: ccmac.Agent) -> ccmac.Result:
        method = CrossContinuation(
            schedule="certified",
            radius=4.0,
            accuracy=accuracy,
            multiplier_budget=1.0,
            realization=realization,
        )
        problem = ccmac.Problem([agent] * 10, q=0)
        return ccmac.solve(problem, "ring", method, progress=False)

    free = certified(0.1, ccmac.Agent(f))
    assert (free.status, free.ledger["rounds"]) == ("optimal", 0)
    assert free.certificates["steps"] == 18  # ceil sqrt(2 L R^2 / eps); 57 with the factor
    coupled = certified(2.0, ccmac.Agent(f, A=[[1.0]], b=[0.5]))
    assert coupled.status == "optimal"
    assert coupled.certificates["gradients"] == 9548  # 39,031 with the factor


def test_rounds_of_the_lift_where_local_rows_fix_the_coupled_ones() -> None:
    """S_HC = 0: B = 0 and A within C; the interval is [h, 37 h], not [mu_HC/4, 37 h] (382)."""
    row = [[1.0, 2.0]]
    f = Quadratic(np.eye(3), np.ones(3))
    agents = [ccmac.Agent(f, A=row, B=[[0.0]], b=[1.0], C=row, c=[1.0]) for _ in range(4)]
    problem = ccmac.Problem(agents)
    lift = complexity(problem, ccmac.Network.ring(4)).lift
    plan = ccmac.plan(problem, "ring", CrossApapc(realization="certified"))
    assert lift is not None
    assert lift.rounds_per_iteration == plan.iteration["rounds"] == 222


GRID = itertools.product((1, 2, 4, 16, 64), (1, 4, 16, 64, 256), (1e2, 1e3, 1e5), (0.1, 1e-3, 1e-9))


def test_the_bound_on_rounds_is_uniform_over_a_grid() -> None:
    """Evidence for chi sqrt(kappa_W kappa_f) log(1/eps) at a radius that does not depend on t."""
    factors = []
    for M, t, kappa, eps in GRID:
        rounds, radius = uniform_rounds(M, t, kappa, eps)
        assert 1.0 <= radius <= 1.010
        chi = t + math.sqrt(1 + t * t)
        order = chi * math.sqrt(kappa) / math.tan(math.pi / (6 * M)) * math.log(1 / eps)
        factors.append(rounds / order)
    assert min(factors) >= 0.086
    assert max(factors) <= 0.236


@pytest.mark.parametrize(("M", "t", "eps"), [(1, 3.0, 1e-6), (2, 1.0, 1e-9), (3, 2.0, 0.5)])
def test_the_bound_is_that_of_the_lengthened_instance(M: int, t: float, eps: float) -> None:
    instance = communication_path(M, t, 100.0, eps=eps)
    rounds, radius = uniform_rounds(M, t, 100.0, eps)
    assert instance.lower_bound("rounds", eps) == rounds
    assert instance.execution_radius**2 == pytest.approx(3 * M * radius, rel=1e-12)
    assert rounds < instance.exposure["rounds"].needed(len(instance.z))  # not cut by the chain


def test_the_suite_holds_rounds_against_their_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path)
    assert main(["suite", "run", "lower-bound", "--out", out, "--only", "chain-2-n6"]) == 0
    capsys.readouterr()
    main(["suite", "verify", out])
    factors = re.findall(r"ok   rounds are (\S+) to (\S+) times", capsys.readouterr().out)
    assert [list(map(float, pair)) for pair in factors] == [pytest.approx([3.57, 14.5], rel=0.05)]
    with pytest.raises(ccmac.errors.InputError, match="relative distance"):
        uniform_rounds(2, 1.0, 100.0, 0.0)
