"""What other mutators have found, made again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.errors import InputError, MethodRefused
from ccmac.objectives import (
    Box,
    Hinge,
    Intercept,
    Logistic,
    MaxAffine,
    Quadratic,
    Separable,
    Simplex,
    SquaredDistance,
)
from ccmac.storage.owner import Mine, read_toml

EMPTY = {
    "quadratic": lambda: Quadratic(np.zeros((0, 0)), np.zeros(0)),
    "squares": lambda: Separable(x=SquaredDistance(), z=SquaredDistance()),
    "kinks": lambda: Separable(x=Box(np.zeros(0), np.zeros(0)), z=Hinge(y=np.zeros(0))),
    "an empty set": lambda: Simplex(1.0),
}


PLAIN = [(kind, "auto") for kind in ("quadratic", "squares")]


@pytest.mark.filterwarnings("ignore:invalid value")  # of a comparator's price of zero rows
@pytest.mark.parametrize("kind", EMPTY)
@pytest.mark.parametrize("n", [1, 3])
def test_a_problem_without_unknowns_says_something(kind: str, n: int) -> None:
    """It ended in a division by zero, the largest of nothing, or a gradient that a box lacks."""
    agents = [ccmac.Agent(EMPTY[kind](), A=np.zeros((1, 0)), b=np.zeros(1)) for _ in range(n)]
    problem = ccmac.Problem(agents, q=0)
    for method in ("auto", *ccmac.available_methods()):
        try:
            result = ccmac.solve(problem, "complete", method, 1e-4, max_iterations=20)
        except (InputError, MethodRefused):
            continue
        assert [v.shape for v in result.x] == [(0,)] * n
        assert result.status == "optimal" or (kind, method) not in PLAIN


def test_units_may_take_blocks_beyond_what_is_accepted() -> None:
    """Equations in units of columns were checked like a user's, and refused after the run."""
    tiny = np.array([[4.0e-62, -5.7e-62], [1.6e-60, -5.4e-61]])
    row = np.array([-0.397, 0.337, -2.724, -0.794])
    agents = [
        ccmac.Agent(
            Quadratic(1e12 * np.ones(4), -1e44 * np.ones(4)),
            A=np.vstack([row, row]),
            b=[-1.8e11, 8.7e11],
            C=[[-0.448, 0.505, 0.8, -0.074], [0.78, 1.14, -0.29, -1.34]],
        ),
        ccmac.Agent(
            Quadratic([4.0, 2.0], [0.0, -0.3]),
            A=[[-0.05, -1.4], [0.76, -0.77]],
            b=[0.7, -1.3],
            lower=[-1.8, 0.5],
            upper=[-1.2, 2.0],
        ),
        ccmac.Agent(
            Quadratic([1.6, 2.0], [0.8, 1.0]), A=tiny, b=[0.4, 0.3], C=[[-0.333, -0.755]], c=[-1.2]
        ),
        ccmac.Agent(
            Quadratic([3.4], [0.0]),
            A=[[0.9], [0.9]],
            b=[-1.4, -1.0],
            C=[[0.4], [0.9]],
            c=[0.04, -0.6],
            C_sense=">=",
        ),
    ]
    found = ccmac.solve(ccmac.Problem(agents, q=0), "complete", "cross-sliding", max_iterations=3)
    assert found.status in ("max_iterations", "infeasible", "stalled", "diverged")


def test_slopes_whose_product_is_no_number_of_this_machine_have_signs() -> None:
    """An intercept of a loss of weight 1e-300 ended in a ValueError."""
    loss = Logistic(y=np.array([1.0, -1.0, -1.0, -1.0]), weight=1e-300)
    [offset] = Intercept(loss).offset(np.zeros(4))
    assert offset == pytest.approx(-np.log(3.0))


def test_functions_of_nothing_have_a_gradient_and_a_prox() -> None:
    """A sum with a set, of an empty z, ended in a TypeError."""
    empty = np.zeros(0)
    part = Box(empty, empty)
    assert part.gradient_at(empty).shape == (0,)
    assert MaxAffine(np.zeros((2, 0))).prox_at(empty, 1.0).shape == (0,)
    agents = [
        ccmac.Agent(
            Separable(x=SquaredDistance(1.0, np.ones(2)), z=part + SquaredDistance()),
            A=np.ones((1, 2)),
            b=np.zeros(1),
        )
    ] * 2
    plan = ccmac.plan(ccmac.Problem(agents, q=0), "path", "cross-continuation")
    assert plan.method == "cross-continuation"


class Odd:
    """Says that it has entries, and gives none."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, place: object) -> object:
        raise KeyError(place)


@pytest.mark.parametrize("channels", [np.array(1.0), Odd(), [Odd()], "ab"])
def test_channels_that_cannot_be_gone_through(channels: Any) -> None:
    with pytest.raises(InputError, match="pair"):
        ccmac.Stack(SquaredDistance(), channels)


@pytest.mark.parametrize("text", [f"agent = 0x1{0:06000d}", f"neighbors = [0b1{0:0200d}]"])
def test_whole_numbers_of_many_digits_are_refused_in_settings(tmp_path: Path, text: str) -> None:
    """Hexadecimal ones have no limit in TOML, and cannot be printed in a message."""
    file = tmp_path / "me.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=r"a whole number of about \d+ digits is too large"):
        read_toml(file, Mine)
