"""One notion of rank; states that a callback may keep; the same bits twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.objectives import SquaredDistance
from pins.cases import solved
from pins.options import OWNED, home
from pins.problems import posed
from pins.walk import content, same

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
