"""What alternatives would send: messages to the float, steps within the factor that is stated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac import vfl
from ccmac.ledger import Costs
from ccmac.methods import (
    Auto,
    CrossApapc,
    CrossCg,
    CrossDirect,
    CrossIpm,
    CrossNewton,
    CrossSliding,
)
from ccmac.methods.base import Method, Request
from ccmac.methods.forecasts import forecast
from ccmac.methods.start import starting_point
from ccmac.paper.instances import random_quadratic
from ccmac.plans import Alternative
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from pins.problems import posed

MESSAGES = ("averagings", "rounds", "bytes", "network_bytes", "longest_message")


def _ridge() -> Any:
    random = np.random.default_rng(5)
    X = random.standard_normal((60, 12))
    y = random.standard_normal(60)
    return vfl.problem(X, y, 4, loss="squared", regularization=0.1)


def _stated(name: str) -> Any:
    if name == "ridge":
        return _ridge()
    if name.startswith("random"):
        return random_quadratic(3, n=5, d=8, q=9, m=7, kappa_f=float(name[6:]))
    return posed(name).problem


def _placed(name: str, averaging: str = "auto", costs: Costs | None = None) -> Any:
    problem = _stated(name)
    runtime = InProcess(ccmac.Network.ring(problem.n), averaging=averaging)
    work = Workspace(problem, runtime)
    return work, Request(1e-6, *starting_point(work, None), costs=costs or Costs())


def _forecast(method: Method, work: Workspace, request: Request) -> Alternative:
    found = forecast(method, work, request)
    assert found is not None
    return found


CASES = [
    ("quadratic", CrossDirect()),
    ("random10", CrossDirect()),
    ("random1e4", CrossDirect()),
    ("random10", CrossNewton()),
    ("logistic", CrossNewton()),
    ("ridge", CrossCg()),
    ("quadratic", CrossCg()),
    ("random10", CrossCg()),
    ("random1e4", CrossCg()),
    ("quadratic", CrossApapc()),
    ("random10", CrossApapc()),
    ("absolute", CrossIpm()),
    ("box", CrossIpm()),
    ("absolute", CrossSliding()),
]


@pytest.mark.parametrize(
    ("name", "method"), CASES, ids=[f"{name}-{method.name}" for name, method in CASES]
)
def test_averagings_are_within_the_factor(name: str, method: Method) -> None:
    work, request = _placed(name)
    found = _forecast(method, work, request)
    result = ccmac.solve(work.problem, work.runtime.network, method, tol=1e-6)
    assert result.status == "optimal"
    taken = result.ledger.of("solve")["averagings"] + found.once["averagings"]
    predicted = (found.predicted - found.proofs)["averagings"]
    assert predicted / found.within <= taken <= predicted * found.within


def test_dear_bytes_lead_from_the_matrix_to_the_vector() -> None:
    """Only where the bill is lower whatever the doubt about the steps; the matrix is not sent then.

    Long rows of few columns: a matrix of 120 by 120 against vectors of 60.
    """
    problem = _ridge()
    sent = []
    for byte, kind in ((0.0, CrossDirect), (1e-6, CrossDirect), (1e-2, CrossCg)):
        work = Workspace(problem, InProcess(ccmac.Network.ring(4)))
        request = Request(1e-6, *starting_point(work, None), costs=Costs(byte=byte))
        Auto().announce(work, request)
        method, why = Auto().choose(work, request)
        assert type(method) is kind
        assert ("bytes" in why) == (kind is CrossCg)
        assert work.gather_constraints() is not None
        sent.append(work.ledger.of("setup")["bytes"])
        first, *others = Auto().alternatives(work, request, method)
        assert first.method == method.name
        assert {a.method for a in (first, *others)} == {"cross-direct", "cross-cg", "cross-apapc"}
        assert [a.bill for a in others] == sorted(a.bill for a in others)
    assert sent[0] == sent[1] > 2 * sent[2]


PREDICTED = ["ridge", "random10", "random1e4"]


@pytest.mark.parametrize("averaging", ["relay", "tree"])
@pytest.mark.parametrize("name", PREDICTED)
def test_what_is_planned_is_what_a_run_takes(name: str, averaging: str) -> None:
    """Where the number of steps is as predicted: all of it. A plan made by itself hears less of
    contradictions, a few floats.
    """
    problem = _stated(name)
    network = ccmac.Network.ring(problem.n)
    plan = ccmac.plan(problem, network, averaging=averaging)
    result = ccmac.solve(problem, network, averaging=averaging)
    assert result.plan is not None
    ledger = result.ledger
    for made in (plan, result.plan):
        planned = made.alternatives[0].predicted
        assert made.method == made.alternatives[0].method
        for unit in MESSAGES[:2] if made is plan else MESSAGES:
            assert planned[unit] == ledger.total(unit), unit
    short = ledger.total("bytes") - plan.alternatives[0].predicted["bytes"]
    assert abs(short) <= 0.5 * ledger.total("bytes")


def test_the_plan_tells_the_alternatives_and_what_they_reveal() -> None:
    made = posed("quadratic")
    plan = ccmac.plan(made.problem, made.network)
    told = plan.as_dict()
    assert [a["regime"] for a in told["alternatives"]] == ["sum", "iterate", "iterate"]
    assert told["alternatives"][0]["averagings"] == 3  # two of them in the setup
    assert "equations" in told["reveals"]["parts_of"]
    assert told["reveals"]["seen"] == "every agent sees every agent's part"
    assert "cross-apapc" in str(plan)
    tree = ccmac.plan(made.problem, made.network, averaging="tree").as_dict()
    assert "branch" in tree["reveals"]["seen"]
    named = ccmac.plan(made.problem, made.network, "cross-apapc")
    assert not named.alternatives
    assert "copies of z" in named.reveals
