"""Names and options become a method in one place; what does not fit the problem is refused."""

from __future__ import annotations

from typing import Any

import pytest

import ccmac
from ccmac.errors import InputError, MethodRefused
from ccmac.methods import CrossApapc, CrossCg, CrossLbfgs, Dpmm, Method, Pdhg
from ccmac.methods.registry import REGISTRY, available_methods, parse, refuse_unless_fit
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from pins.problems import posed


def work(name: str) -> Workspace:
    made = posed(name)
    return Workspace(made.problem, InProcess(made.network or ccmac.Network.complete(1)))


@pytest.mark.parametrize("method", [3, None, ccmac.Problem])
def test_other_things_are_no_methods(method: Any) -> None:
    with pytest.raises(InputError, match="expected a name or a method"):
        parse(method)


@pytest.mark.parametrize(
    ("method", "problem", "text"),
    [
        (CrossApapc(), "flat", "needs strongly convex.*use cross-ipm"),
        (CrossApapc(), "absolute", "needs smooth and strongly convex"),
        (CrossCg(), "logistic", "needs quadratic"),
        (CrossLbfgs(), "flat", "needs strongly convex"),
        (Dpmm(), "absolute", "needs smooth"),
        (CrossCg(), "stack", "not a Stack"),
        (Pdhg(), "stack", "not a Stack"),
    ],
)
def test_what_the_objectives_do_not_offer_is_named(method: Method, problem: str, text: str) -> None:
    with pytest.raises(MethodRefused, match=text):
        refuse_unless_fit(method, work(problem))


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        (CrossApapc(), "quadratic"),
        (CrossApapc(), "stack"),
        (CrossCg(), "ridge"),
        (CrossLbfgs(), "logistic"),
        (Dpmm(), "logistic"),
    ],
)
def test_what_fits_passes(method: Method, problem: str) -> None:
    refuse_unless_fit(method, work(problem))


def test_the_listing_shows_summary_needs_and_options() -> None:
    listing = available_methods()
    assert list(listing) == list(REGISTRY)
    assert listing["cross-cg"]["needs"] == ["quadratic", "smooth", "strongly convex"]
    assert all(entry["summary"] for entry in listing.values())
    assert all(entry["options"] for name, entry in listing.items() if name != "cross-direct")
