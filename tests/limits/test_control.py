"""Carts in a receding horizon do what the centralized solution does."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ccmac
from limits.cases import reference

EXAMPLE = Path(__file__).parents[2] / "examples" / "plot_control.py"


def follow(steps: int) -> float:
    """Largest distance of applied forces and states from those of CVXPY's closed loop."""
    pytest.importorskip("matplotlib")
    example = runpy.run_path(str(EXAMPLE))
    carts = example["CARTS"]
    ahead = example["AHEAD"]
    mine = np.array([[0.0, 0.0], [-0.6, 0.0], [0.5, 0.0]])
    other = mine.copy()
    worst = 0.0
    prepared: Any = None
    result = None
    for t in range(steps):
        forces = []
        for state in (mine, other):
            agents = [example["cart"](i, state[i], t) for i in range(carts)]
            problem = ccmac.Problem(agents, sense="<=")
            if state is mine:
                if prepared is None:
                    prepared = ccmac.prepare(problem, "path")
                else:
                    prepared.update(c=[a.c for a in agents], g=[a.objective.g for a in agents])
                result = prepared.solve(tol=1e-10, warm_start=result)
                assert result.status == "optimal"
                x = result.x
            else:
                x = reference(problem).x
            u = np.array([v[2 * ahead] for v in x])
            state[:, 0] += example["STEP"] * state[:, 1]
            state[:, 1] += example["STEP"] * u / example["MASS"]
            forces.append(u)
        worst = max(
            worst, float(np.abs(forces[0] - forces[1]).max()), float(np.abs(mine - other).max())
        )
    return worst


def test_control_tracks_the_centralized_solution() -> None:
    assert follow(3) <= 1e-6


if __name__ == "__main__":
    print(f"50 steps: at most {follow(50):.1e} from the centralized closed loop")
