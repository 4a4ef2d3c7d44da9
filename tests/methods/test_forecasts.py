"""What alternatives are predicted to send, against what runs of these methods are charged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac import vfl
from ccmac.ledger import Costs
from ccmac.paper.instances import random_quadratic
from pins.problems import posed


def _ridge(rows: int = 60) -> Any:
    """Long rows of few columns: a matrix of rows by rows against vectors of them."""
    random = np.random.default_rng(5)
    X = random.standard_normal((rows, 12))
    y = random.standard_normal(rows)
    return vfl.problem(X, y, 4, loss="squared", regularization=0.1)


def _stated(name: str) -> Any:
    if name == "ridge":
        return _ridge()
    if name.startswith("random"):
        return random_quadratic(3, n=5, d=8, q=9, m=7, kappa_f=float(name[6:]))
    return posed(name).problem


@pytest.mark.parametrize("averaging", ["relay", "tree"])
@pytest.mark.parametrize("name", ["quadratic", "ridge", "random10", "random1e4", "logistic"])
def test_alternatives_are_of_the_order_of_what_is_taken(name: str, averaging: str) -> None:
    """Rounds of the whole run within a factor of five; the first row is the method taken."""
    problem = _stated(name)
    network = ccmac.Network.ring(problem.n)
    plan = ccmac.plan(problem, network, averaging=averaging)
    assert plan.alternatives[0].method == plan.method
    for way in plan.alternatives:
        assert all(count >= 0 for count in way.predicted.values())
        result = ccmac.solve(problem, network, way.method, averaging=averaging)
        assert result.status == "optimal"
        taken = result.ledger.total("rounds")
        assert way.predicted["rounds"] / 5 <= taken <= 5 * way.predicted["rounds"], way.method


def test_dear_bytes_lead_from_the_matrix_to_the_vector() -> None:
    """Only where the bill is lower with more steps than predicted; the matrix is not sent then."""
    problem = _ridge()
    network = ccmac.Network.ring(4)
    sent = []
    for byte, method in ((0.0, "cross-direct"), (1e-6, "cross-direct"), (1e-2, "cross-cg")):
        plan = ccmac.plan(problem, network, costs=Costs(byte=byte))
        assert plan.method == method
        assert ("fewer bytes" in plan.why) == (method == "cross-cg")
        first, *others = plan.alternatives
        assert first.method == method
        assert {a.method for a in (first, *others)} == {"cross-direct", "cross-cg", "cross-apapc"}
        assert [a.bill for a in others] == sorted(a.bill for a in others)
        result = ccmac.solve(problem, network, costs=Costs(byte=byte))
        assert result.status == "optimal"
        sent.append(result.ledger.of("setup")["longest_message"])
    assert sent[0] == sent[1] > 2 * sent[2]


def test_the_plan_shows_the_alternatives_and_what_they_reveal() -> None:
    made = posed("quadratic")
    plan = ccmac.plan(made.problem, made.network)
    shown = plan.as_dict()
    assert [a["regime"] for a in shown["alternatives"]] == ["sum", "iterate", "iterate"]
    assert "equations" in shown["reveals"]["parts_of"]
    assert shown["reveals"]["seen"] == "every agent sees every agent's part"
    assert "cross-apapc" in str(plan)
    tree = ccmac.plan(made.problem, made.network, averaging="tree").as_dict()
    assert "branch" in tree["reveals"]["seen"]
    named = ccmac.plan(made.problem, made.network, "cross-apapc")
    assert not named.alternatives
    assert "copies of z" in named.reveals
