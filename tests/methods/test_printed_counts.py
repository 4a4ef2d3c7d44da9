"""The rows of comparators in docs/methods-why.md, counted again where it is quick; their ratio."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.methods.registry import parse
from ccmac.paper import data

PAGE = Path(__file__).parents[2] / "docs" / "methods-why.md"
CELL = re.compile(r"([\d,]+) \(([\d,]+)\)(?: at ([\d.]+))?")
SETS = ("a9a", "mushrooms", "w8a", "a8a")
GRADIENTS = ("condat-vu", "pdhg", "papc", "joint-apapc")


@cache
def printed() -> dict[str, dict[str, tuple[int, int, dict[str, Any]]]]:
    """method -> data set -> (rounds of the solve, of the setup, options)."""
    measured = PAGE.read_text(encoding="utf-8").partition("## Measured")[2]
    rows = {}
    for method in ("cross-apapc", *GRADIENTS, "cross-lbfgs"):
        line = re.search(rf"^\| `{method}` \|(.*)$", measured, re.MULTILINE)
        assert line is not None
        found = CELL.findall(line[1])
        rows[method] = {
            name: (_whole(solve), _whole(setup), {"balance": float(at)} if at else {})
            for name, (solve, setup, at) in zip(SETS, found, strict=True)
        }
    return rows


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


@cache
def mushrooms() -> tuple[ccmac.Problem, np.ndarray, bool]:
    found = data.load("mushrooms", fallback=True)
    X = found.X
    y = found.y
    gram = (X.T @ X).toarray() / len(y) + 1e-2 * np.eye(X.shape[1])
    weights = np.linalg.solve(gram, X.T @ y / len(y))
    return ccmac.vfl.problem(X, y, 8), weights, found.source == "libsvm"


@pytest.mark.parametrize("method", [*GRADIENTS, "cross-lbfgs"])
def test_counts_of_comparators(method: str) -> None:
    problem, weights, real = mushrooms()
    solve, setup, options = printed()[method]["mushrooms"]
    result = ccmac.solve(problem, "ring", parse(method, options), 1e-6, reference=weights)
    assert result.status == "optimal"
    if real:
        ledger = result.ledger
        assert (ledger.of("solve")["rounds"], ledger.of("setup")["rounds"]) == (solve, setup)


def test_the_ratio_that_is_printed() -> None:
    rows = printed()
    ratios = [
        min(rows[method][name][0] for method in GRADIENTS) / rows["cross-apapc"][name][0]
        for name in SETS
    ]
    said = f"{min(ratios):.1f} to {max(ratios):.1f} times fewer"
    assert said in " ".join(PAGE.read_text(encoding="utf-8").split())
