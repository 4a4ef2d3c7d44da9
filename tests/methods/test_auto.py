"""method="auto": every branch of the choice, and what is handed on."""

from __future__ import annotations

from typing import Any

import pytest

import ccmac
from ccmac import Certificates
from ccmac.errors import InputError
from ccmac.ledger import Costs
from ccmac.methods import (
    Auto,
    CrossApapc,
    CrossContinuation,
    CrossDirect,
    CrossIpm,
    CrossLbfgs,
    CrossNewton,
    CrossSliding,
)
from ccmac.methods.auto import ARGMIN_GRADIENTS
from ccmac.methods.base import Method, Request
from ccmac.methods.newton.eliminated import EliminatedNewton
from ccmac.methods.start import starting_point
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from pins.problems import posed


def chosen(name: str, costs: Costs | None = None, **options: Any) -> Method:
    made = posed(name)
    work = Workspace(made.problem, InProcess(made.network or ccmac.Network.complete(1)))
    request = Request(1e-6, *starting_point(work, None), costs=costs or Costs())
    method, why = Auto(**options).choose(work, request)
    assert why
    return method


@pytest.mark.parametrize(
    ("problem", "options", "method"),
    [
        ("quadratic", {}, CrossDirect()),
        ("quadratic", {"access": "factor"}, CrossDirect()),
        ("quadratic", {"access": "matvec"}, CrossApapc(access="matvec")),
        ("quadratic", {"realization": "averaged"}, CrossApapc()),
        ("quadratic", {"realization": "certified"}, CrossApapc(realization="certified")),
        (
            "quadratic",
            {"certificates": Certificates(h=100.0, mu_HC=0.01)},
            CrossApapc(certificates=Certificates(h=100.0, mu_HC=0.01)),
        ),
        ("quadratic", {"radius": 3.0}, CrossDirect(radius=3.0)),
        ("stack", {}, CrossApapc()),
        ("flat", {}, CrossDirect()),
        ("flat", {"radius": 3.0, "accuracy": 0.1}, CrossDirect(radius=3.0, accuracy=0.1)),
        ("flat", {"access": "matvec"}, CrossContinuation(access="matvec")),
        ("absolute", {}, CrossIpm()),
        ("absolute", {"realization": "canonical"}, CrossSliding(realization="canonical")),
        ("box", {}, CrossIpm()),
        ("box", {"realization": "averaged"}, CrossSliding()),
        ("composite", {}, CrossSliding()),
    ],
)
def test_the_method_that_fits(problem: str, options: dict[str, Any], method: Method) -> None:
    assert chosen(problem, **options) == method


def test_newton_where_averagings_have_a_price() -> None:
    assert chosen("logistic") == CrossNewton()
    assert chosen("logistic", Costs(round=0.0)) == CrossApapc()
    assert chosen("logistic", access="matvec") == CrossApapc(access="matvec")


def test_prices_decide_between_gradients_and_minimisations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one averaging costs as much as the gradients of one minimisation, and Newton is out."""
    monkeypatch.setattr(Auto, "_newton", lambda *_: False)
    made = posed("logistic")
    assert made.network is not None
    rounds = InProcess(made.network).averaging.rounds
    edge = ARGMIN_GRADIENTS / rounds
    assert chosen("logistic", Costs(round=1.01 * edge)) == CrossLbfgs()
    assert chosen("logistic", Costs(round=0.99 * edge)) == CrossApapc()
    assert chosen("logistic", Costs(gradient=0.0, product=1.0, round=0.0)) == CrossApapc()
    assert chosen("logistic", Costs(round=9 * edge), realization="averaged") == CrossApapc()


def test_the_plan_says_what_was_chosen_and_why() -> None:
    made = posed("quadratic")
    plan = ccmac.plan(made.problem, made.network)
    assert plan.method == "cross-direct"
    assert "one sum" in plan.why
    assert ccmac.plan(made.problem, made.network, "cross-cg").why.startswith("asked for")


def test_a_realization_that_does_not_fit_is_refused() -> None:
    made = posed("quadratic")
    with pytest.raises(InputError, match="realization"):
        ccmac.solve(made.problem, made.network, Auto(realization="stack"))


def test_a_method_that_diverges_is_followed_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    made = posed("logistic")

    def failed(self: Any) -> bool:
        return isinstance(self.iteration, EliminatedNewton)

    monkeypatch.setattr("ccmac.methods.driver._Health.failed", failed)
    result = ccmac.solve(made.problem, made.network, max_iterations=2000)
    assert result.status == "optimal"
    assert result.plan is not None
    assert result.plan.method == "cross-apapc"
    assert any("cross-newton stalled" in warning for warning in result.warnings)
