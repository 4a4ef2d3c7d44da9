"""The shape of the package: one notion of everything, built once, under one name."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.objectives import SquaredDistance
from pins.cases import solved
from pins.options import OWNED, home
from pins.problems import posed
from pins.walk import content, defined, modules, named_class, same

POINT = np.array([1.0, 5.0])


# -- one notion of rank ----------------------------------------------------------------------------
def tied(block: str, width: float) -> tuple[Any, int]:
    """Rows diag(1, width) as C or D of one of two agents, or in a Stack; the rank geometry sees."""
    rows = np.diag([1.0, width])
    objective = SquaredDistance(1.0)
    if block == "stack":
        stack = ccmac.Stack(objective, [(rows, rows @ POINT)])
        return stack, ccmac.geometry(stack).ranks[0]
    empty = {"C": np.zeros((0, 2)), "c": np.zeros(0)}
    if block == "C":
        first = ccmac.Agent(objective, C=rows, c=rows @ POINT)
    else:
        first = ccmac.Agent(objective, D=rows, e=rows @ POINT, **empty)
    problem = ccmac.Problem([first, ccmac.Agent(objective, **empty)], q=2, m=0)
    ranks = ccmac.geometry(problem).ranks
    return problem, ranks[0] if block == "C" else ranks[1] - problem.q


WAYS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("C", "cross-cg", {}),
    ("C", "cross-lbfgs", {}),
    ("C", "cross-apapc", {}),
    ("C", "cross-apapc", {"realization": "canonical"}),
    ("C", "cross-apapc", {"realization": "certified"}),
    ("C", "joint-apapc", {}),
    ("C", "cross-sliding", {}),
    ("D", "cross-cg", {}),
    ("D", "cross-apapc", {}),
    ("D", "cross-apapc", {"realization": "certified"}),
    ("stack", "cross-apapc", {}),
)


@pytest.mark.parametrize("width", [0.1, 1e-11])
@pytest.mark.parametrize(("block", "method", "options"), WAYS)
def test_geometry_and_solve_see_one_rank(
    block: str, method: str, options: dict[str, Any], width: float
) -> None:
    """The solution obeys the rows that geometry counts, within its own error bound."""
    posed_, rank = tied(block, width)
    network = None if block == "stack" else ccmac.Network.path(2)
    if block == "C" and "realization" in options and width < 1e-6:
        with pytest.raises(ccmac.errors.MethodRefused, match="rescale the rows"):
            solved(posed_, network, method, options, tol=1e-6)
        return
    result = solved(posed_, network, method, options, tol=1e-6)
    seen = np.asarray(result.z if block == "D" else result.x[0])
    expected = POINT if rank == 2 else np.array([POINT[0], 0.0])
    assert result.status == "optimal"
    assert np.linalg.norm(seen - expected) <= result.error_bound + 1e-9


# -- built once ------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", OWNED)
@pytest.mark.parametrize(
    "name", ["LocalEquations", "SharedEquations", "CurvatureTable", "Coupling"]
)
def test_built_once_in_a_solve(method: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = named_class(name)
    made = home(method, {})
    built: list[object] = []
    original = kind.__init__

    def counting(self: Any, *arguments: Any, **keywords: Any) -> None:
        built.append(self)
        original(self, *arguments, **keywords)

    monkeypatch.setattr(kind, "__init__", counting)
    solved(made.problem, made.network, method, {}, max_iterations=2)
    assert len(built) <= 1


# -- names -----------------------------------------------------------------------------------------
def test_methods_is_a_module() -> None:
    assert isinstance(importlib.import_module("ccmac.methods"), ModuleType)
    assert isinstance(ccmac.methods, ModuleType)


def test_methods_are_listed_by_a_function_of_its_own() -> None:
    listing = ccmac.available_methods()
    assert set(listing) == set(OWNED)


def test_no_module_is_hidden_by_a_public_name() -> None:
    """``import ccmac.name`` yields a module, whatever was imported before."""
    hidden = [
        module.__name__
        for module in modules()
        if module.__name__.count(".") == 1
        and getattr(ccmac, module.__name__.split(".")[1]) is not module
    ]
    assert hidden == []


def test_no_module_has_the_name_of_a_public_function() -> None:
    """Commands apart, which are called as what they do."""
    functions = {name for name in ccmac.__all__ if inspect.isfunction(getattr(ccmac, name))}
    shared = [
        module.__name__
        for module in modules()
        if module.__name__.rsplit(".", 1)[-1] in functions
        and not module.__name__.startswith("ccmac.cli.")
    ]
    assert shared == []


@pytest.mark.parametrize("name", ["row_space", "right_hand_sides"])
def test_function_is_defined_once(name: str) -> None:
    assert sum(known == name for known, _ in defined(inspect.isfunction)) <= 1


@pytest.mark.parametrize("name", ["ROUNDING", "GROWTH"])
def test_constant_has_one_value(name: str) -> None:
    values = {vars(module)[name] for module in modules() if name in vars(module)}
    assert len(values) <= 1


def test_no_special_case_for_hidden_modes() -> None:
    assert [m.__name__ for m in modules() if m.__name__.endswith(".hidden")] == []


# -- states ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", OWNED)
def test_a_callback_may_keep_what_it_sees(method: str) -> None:
    """States handed to a callback are neither changed by later steps nor emptied at the end."""
    made = home(method, {})
    kept: list[tuple[Any, Any]] = []

    def keep(_: int, state: Any) -> None:
        kept.append((state, content(state)))

    result = solved(
        made.problem, made.network, method, {}, tol=1e-300, max_iterations=5, callback=keep
    )
    # The last refinement of a direct method ends the run.
    assert len(kept) == (5 if method != "cross-direct" else result.iterations)
    assert all(same(content(state), before) for state, before in kept)


def test_solving_twice_gives_the_same_bits() -> None:
    made = posed("quadratic")
    first, second = (solved(made.problem, made.network, "cross-cg", {}) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first.x, second.x, strict=True))
    assert np.array_equal(first.z, second.z)
