"""Names and options become a method in one place; what does not fit the problem is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import ccmac
from ccmac.errors import InputError, MethodRefused
from ccmac.methods import Auto, CrossApapc, CrossCg, CrossLbfgs, Dpmm, Method, Pdhg
from ccmac.methods.options import options_of
from ccmac.methods.registry import REGISTRY, available_methods, find, parse, refuse_unless_fit
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from pins.problems import posed


def work(name: str) -> Workspace:
    made = posed(name)
    return Workspace(made.problem, InProcess(made.network or ccmac.Network.complete(1)))


@pytest.mark.parametrize("name", REGISTRY)
def test_a_method_is_a_frozen_dataclass_under_its_name(name: str) -> None:
    cls = find(name)
    assert cls.name == name
    method: Any = cls()
    assert parse(name) == method
    assert parse(cls) == method  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.certificates = None
    assert {f.name for f in dataclasses.fields(cls)} == set(options_of(cls))
    assert all(about.doc for about in options_of(cls).values())


def test_a_method_given_is_taken_as_it_is() -> None:
    method = CrossApapc(inner=3)
    assert parse(method) is method
    with pytest.raises(InputError, match="give options to the method itself"):
        parse(method, {"inner": 4})


def test_flat_options_become_fields() -> None:
    assert parse("cross-apapc", {"inner": "3", "normalizer": "semi-iteration"}) == CrossApapc(
        inner=3, normalizer="semi-iteration"
    )
    assert parse("auto", {"radius": "2"}) == Auto(radius=2.0)
    assert isinstance(parse("auto"), Auto)


VALUES: dict[str, Any] = {
    "scale": 2.0,
    "normalizer": "deflation",
    "inner": 3,
    "outer": 2,
    "floor": 0.5,
    "lanczos": 9,
    "rule": "tight",
    "delta": 0.25,
    "interval": "tight",
    "model": "paper-6",
    "materialise": True,
    "spectra": [(1.0, 2.0)],
}
TAKEN = {
    "averaged": "scale normalizer inner outer floor lanczos",
    "canonical": "inner rule delta interval model materialise",
    "certified": "inner delta materialise",
    "stack": "rule delta interval spectra",
}


@pytest.mark.parametrize("realization", TAKEN)
def test_a_realization_takes_its_own_options_and_no_others(realization: str) -> None:
    for name, value in VALUES.items():
        given = {"realization": realization, name: value}
        if name in TAKEN[realization].split():
            assert getattr(parse("cross-apapc", given), name) == value
        else:
            with pytest.raises(InputError, match=f"{name} belongs to realization"):
                parse("cross-apapc", given)


def test_joint_apapc_is_executed_in_two_ways() -> None:
    for name in ("averaged", "canonical"):
        assert parse("joint-apapc", {"realization": name}).realization == name  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"realization.*averaged, canonical"):
        parse("joint-apapc", {"realization": "certified"})


@pytest.mark.parametrize("method", [3, None, ccmac.Problem])
def test_other_things_are_no_methods(method: Any) -> None:
    with pytest.raises(InputError, match="expected a name or a method"):
        parse(method)


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'cross-cg'"):
        parse("cross-gc")
    with pytest.raises(InputError, match="take one of auto, cross-apapc"):
        parse("simplex")


@pytest.mark.parametrize(
    ("method", "problem", "text"),
    [
        (CrossApapc(), "flat", "needs strongly convex.*use cross-direct"),
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
    assert all(entry["options"] for entry in listing.values())
