"""What other mutators have found, made again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import ccmac
from ccmac.cli.main import main
from ccmac.errors import InputError
from ccmac.objectives import (
    Box,
    Hinge,
    Intercept,
    Logistic,
    MaxAffine,
    Quadratic,
    Separable,
    SquaredDistance,
)


def test_a_problem_without_unknowns_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ended in a division by zero, the largest of nothing, or a gradient that a box lacks."""
    empty = np.zeros(0)
    with pytest.raises(InputError, match="there are no unknowns"):
        ccmac.Problem([ccmac.Agent(Separable(x=Box(empty, empty), z=Hinge(y=empty)))])
    ccmac.Problem([ccmac.Agent(Separable(x=SquaredDistance(), z=SquaredDistance(centre=empty)),
                               A=np.ones((1, 1)))]).save(tmp_path / "p")  # fmt: skip
    listing = yaml.safe_load((tmp_path / "p" / "problem.yaml").read_text())
    listing["agents"][0]["d"] = 0  # as a rank sees it that holds others
    (tmp_path / "p" / "problem.yaml").write_text(yaml.safe_dump(listing))
    assert main(["solve", str(tmp_path / "p")]) == 2
    assert "there are no unknowns" in capsys.readouterr().err


def test_units_may_take_blocks_beyond_what_is_accepted() -> None:
    """Equations in units of columns were checked like a user's, and refused after the run."""
    tiny = np.array([[4.0e-62, -5.7e-62], [1.6e-60, -5.4e-61]])
    row = np.array([-0.397, 0.337, -2.724, -0.794])
    agents = [
        ccmac.Agent(
            Quadratic(1e12 * np.ones(4), -1e44 * np.ones(4)), A=np.vstack([row, row]),
            b=[-1.8e11, 8.7e11], C=[[-0.448, 0.505, 0.8, -0.074], [0.78, 1.14, -0.29, -1.34]],
        ),
        ccmac.Agent(
            Quadratic([4.0, 2.0], [0.0, -0.3]), A=[[-0.05, -1.4], [0.76, -0.77]], b=[0.7, -1.3],
            lower=[-1.8, 0.5], upper=[-1.2, 2.0],
        ),
        ccmac.Agent(
            Quadratic([1.6, 2.0], [0.8, 1.0]), A=tiny, b=[0.4, 0.3], C=[[-0.333, -0.755]], c=[-1.2]
        ),
        ccmac.Agent(
            Quadratic([3.4], [0.0]), A=[[0.9], [0.9]], b=[-1.4, -1.0], C=[[0.4], [0.9]],
            c=[0.04, -0.6], C_sense=">=",
        ),
    ]  # fmt: skip
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
        ccmac.Agent(Separable(x=SquaredDistance(1.0, np.ones(2)), z=part + SquaredDistance()),
                    A=np.ones((1, 2)), b=np.zeros(1))
    ] * 2  # fmt: skip
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
