"""Arguments of every wrong kind at the public interface: refused in one line, no traceback."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import ccmac
from ccmac import objectives
from ccmac.errors import CcmacError, InputError
from ccmac.methods.registry import REGISTRY

LONGEST = 400  # characters of a line
WRONG: dict[str, Any] = {
    "None": None,
    "three": 3,
    "minus one": -1,
    "zero": 0,
    "a half": 2.5,
    "text": "x",
    "empty": "",
    "nan": float("nan"),
    "inf": float("inf"),
    "list": [],
    "dict": {},
    "object": object(),
    "nan array": np.array([np.nan]),
    "cube": np.zeros((2, 2, 2)),
    "long": "\u00e9" * 200,
    "truth": True,
    "bytes": b"x",
    "huge": 10**30,
    "ragged": [[1, 2], [3]],
    "function": len,
    "mapping": {"a": 1},
    "list of None": [None],
    "letters": np.array(["a"]),
    "complex": 1j,
    "class": dict,
    "lines": "a\nb",
}


def agent(**more: Any) -> ccmac.Agent:
    objective = objectives.Quadratic(np.eye(3), np.ones(3))
    return ccmac.Agent(
        **{"objective": objective, "A": np.ones((1, 2)), "B": np.ones((1, 1)), "b": [1.0], **more}
    )


def problem() -> ccmac.Problem:
    return ccmac.Problem([agent() for _ in range(4)])


def alone(**blocks: Any) -> ccmac.Problem:
    return ccmac.Problem([agent(**blocks)])


def stacked(**parts: Any) -> ccmac.Result:
    return ccmac.solve(ccmac.Stack(**parts), max_iterations=10)


def called(call: Callable[..., Any], **given: Any) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The call with all its parameters: those given, the others by default, or 1."""
    parameters = inspect.signature(call).parameters.values()
    others = {
        p.name: 1.0 if p.default is p.empty else p.default
        for p in parameters
        if p.kind is not p.VAR_KEYWORD
    }
    return call, {**others, **given}


X = np.arange(40.0).reshape(10, 4) % 7
SHORT = {"max_iterations": 50, "max_seconds": 5.0}
UPDATED = ("b", "c", "e", "y", "g", "lower", "upper", "z_lower", "z_upper")
BLOCKS = {"A": np.ones((1, 2)), "b": [1.0], "C": np.ones((1, 2)), "c": [1.0]}
SHARED = {"D": [[1.0]], "e": [1.0], "name": "a", "lower": None, "upper": None}
SENSES = {"C_sense": "==", "D_sense": "=="}
STACKED = {"objective": objectives.Quadratic(np.eye(2), np.zeros(2)), "channels": [([[1, 1]], [1])]}
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "solve": called(ccmac.solve, problem=problem(), network="ring", **SHORT),
    "plan": called(ccmac.plan, problem=problem(), network="ring"),
    "prepare": called(ccmac.prepare, problem=problem(), network="ring"),
    "prepared.solve": called(ccmac.prepare(problem(), "ring").solve, **SHORT),
    "prepared.update": (ccmac.prepare(problem(), "ring").update, dict.fromkeys(UPDATED)),
    "geometry": called(ccmac.geometry, problem=problem()),
    "Agent": (alone, {"objective": agent().objective, **BLOCKS, **SHARED, **SENSES}),
    "Problem": called(ccmac.Problem, agents=[agent()]),
    "Problem.load": called(ccmac.Problem.load, directory="nowhere"),
    "Stack": (stacked, STACKED),
    "Costs": called(ccmac.Costs),
    "Certificates": called(ccmac.Certificates),
    "ring": called(ccmac.Network.ring, n=4),
    "path": called(ccmac.Network.path, n=4),
    "star": called(ccmac.Network.star, n=4),
    "complete": called(ccmac.Network.complete, n=4),
    "grid": called(ccmac.Network.grid, rows=2, cols=2),
    "erdos_renyi": called(ccmac.Network.erdos_renyi, n=4, p=0.9, seed=0),
    "random_regular": called(ccmac.Network.random_regular, n=4, degree=2, seed=0),
    "from_graph": (ccmac.Network.from_graph, {"graph": nx.cycle_graph(4), "nodes": None}),
    "from_weights": called(ccmac.Network.from_weights, W=np.eye(4)),
    "vfl.problem": called(ccmac.vfl.problem, X=X, y=np.ones(10), n_agents=2),
}
OBJECTIVES = (
    "LeastSquares",
    "Ridge",
    "Logistic",
    "Huber",
    "L1",
    "Hinge",
    "ElasticNet",
    "Box",
    "Quadratic",
    "Custom",
    "MaxAffine",
    "Simplex",
    "Halfspace",
    "Multinomial",
)
for name in OBJECTIVES:
    CALLS[name] = called(getattr(objectives, name))


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_arguments_of_a_wrong_kind_are_refused_in_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Accepted, or refused by an error of the package; nothing else is raised."""
    monkeypatch.chdir(tmp_path)  # a text is a fine name of a checkpoint
    call, given = CALLS[name]
    for argument in given:
        for what, value in WRONG.items():
            try:
                call(**{**given, argument: value})
            except CcmacError as error:
                line = str(error)
                assert len(line.splitlines()) == 1, (argument, what, line)
                assert len(line) <= LONGEST, (argument, what, line)
            except Exception as error:
                raise AssertionError(f"{argument} = {what}: {error!r}") from error


@pytest.mark.parametrize("name", ccmac.available_methods())
def test_a_misspelled_option_is_refused_by_the_class_too(name: str) -> None:
    """With the nearest name, as by the command line."""
    cls = REGISTRY[name]
    with pytest.raises(InputError, match=f"{name}: option 'raduis' is unknown"):
        cls(raduis=3)


def test_the_nearest_option_is_named() -> None:
    with pytest.raises(InputError, match="did you mean 'inner'"):
        ccmac.methods.CrossApapc(iner=3)
