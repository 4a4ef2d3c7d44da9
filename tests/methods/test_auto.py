"""method="auto": every branch of the choice, and what is handed on."""

from __future__ import annotations

from typing import Any

import pytest

import ccmac
from ccmac import Certificates
from ccmac.errors import InputError
from ccmac.ledger import Costs
from ccmac.methods import Auto
from ccmac.methods.newton.eliminated import EliminatedNewton
from pins.problems import posed


def chosen(name: str, costs: Costs | None = None, **options: Any) -> str:
    made = posed(name)
    plan = ccmac.plan(made.problem, made.network, Auto(**options), costs=costs)
    assert plan.why
    return plan.method


@pytest.mark.parametrize(
    ("problem", "options", "method"),
    [
        ("quadratic", {}, "cross-direct"),
        ("quadratic", {"realization": "averaged"}, "cross-apapc"),
        ("quadratic", {"certificates": Certificates(h=100.0, mu_HC=0.01)}, "cross-apapc"),
        ("quadratic", {"radius": 3.0}, "cross-direct"),
        ("stack", {}, "cross-apapc"),
        ("flat", {}, "cross-ipm"),
        ("flat", {"radius": 3.0, "accuracy": 0.1}, "cross-ipm"),
        ("flat", {"realization": "averaged"}, "cross-continuation"),
        ("long", {}, "cross-ipm"),
        ("absolute", {}, "cross-ipm"),
        ("absolute", {"realization": "canonical"}, "cross-sliding"),
        ("box", {}, "cross-ipm"),
        ("box", {"realization": "averaged"}, "cross-sliding"),
        ("composite", {}, "cross-ipm"),
    ],
)
def test_the_method_that_fits(problem: str, options: dict[str, Any], method: str) -> None:
    assert chosen(problem, **options) == method


def test_newton_where_averagings_cost_something() -> None:
    assert chosen("logistic") == "cross-newton"
    assert chosen("logistic", Costs(round=0.0)) == "cross-apapc"
    assert chosen("logistic", realization="averaged") == "cross-apapc"


def test_options_are_handed_on() -> None:
    made = posed("quadratic")
    plan = ccmac.plan(made.problem, made.network, Auto(realization="certified"))
    assert (plan.method, plan.realization) == ("cross-apapc", "certified")


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
    method = Auto(reveal="sketch")
    result = ccmac.solve(made.problem, made.network, method, max_iterations=2000)
    assert result.status == "optimal"
    assert result.plan is not None
    assert result.plan.method == "cross-apapc"
    assert any("cross-newton stalled" in warning for warning in result.warnings)
