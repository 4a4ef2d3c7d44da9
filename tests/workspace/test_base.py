"""The workspace: what is derived from problem and network is built once and charged to setup."""

from __future__ import annotations

import numpy as np
import pytest

import ccmac
from ccmac.errors import InputError
from ccmac.methods import CrossApapc, CrossCg
from ccmac.methods.base import Request
from ccmac.methods.run import starting_point
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from pins.problems import posed

PARTS = ("space", "coupling", "local", "shared")


def workspace(name: str = "quadratic") -> Workspace:
    made = posed(name)
    return Workspace(made.problem, InProcess(made.network or ccmac.Network.complete(1)))


def test_what_it_costs_is_setup_whoever_asks() -> None:
    work = workspace()
    with work.ledger.phase("solve"):
        for part in PARTS:
            getattr(work, part)
    assert not work.ledger.of("solve")
    assert not work.ledger.of("monitor")
    assert work.ledger.of("setup")["reductions"] > 0


def test_two_methods_share_what_is_there() -> None:
    """The second preparation is charged less, by what the first one built."""
    work = workspace()
    alone = workspace()
    request = Request(1e-6, *starting_point(work, None))
    with work.ledger.phase("setup"):
        CrossApapc().prepare(work, request)
    before = work.ledger.of("setup")["reductions"]
    parts = {name: vars(work)[name] for name in PARTS if name in vars(work)}
    with work.ledger.phase("setup"):
        CrossCg().prepare(work, request)
    with alone.ledger.phase("setup"):
        CrossCg().prepare(alone, request)
    assert work.ledger.of("setup")["reductions"] - before < alone.ledger.of("setup")["reductions"]
    assert all(vars(work)[name] is part for name, part in parts.items())


@pytest.mark.parametrize(
    ("problem", "offered"),
    [
        ("quadratic", {"smooth", "strongly convex", "quadratic", "prox"}),
        ("logistic", {"smooth", "strongly convex"}),
        ("flat", {"smooth", "quadratic", "prox"}),
        ("absolute", {"prox"}),
        ("composite", set()),
    ],
)
def test_capabilities_are_what_all_objectives_offer(problem: str, offered: set[str]) -> None:
    """Of the four that methods ask for."""
    assert offered <= workspace(problem).capabilities
    asked = {"smooth", "strongly convex", "quadratic"}
    assert workspace(problem).capabilities & asked == offered & asked


def test_a_stack_is_one_agent_without_blocks() -> None:
    work = workspace("stack")
    assert work.stack is posed("stack").problem
    assert work.problem.n == 1
    assert work.coupling.empty
    assert workspace().stack is None


def test_the_network_must_fit() -> None:
    with pytest.raises(InputError, match="5 agents but the problem has 4"):
        Workspace(posed("quadratic").problem, InProcess(ccmac.Network.ring(5)))
    with pytest.raises(InputError, match="expected a ccmac"):
        Workspace(np.eye(2), InProcess(ccmac.Network.ring(5)))  # type: ignore[arg-type]
