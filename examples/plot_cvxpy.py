"""How do five divisions share a budget when each writes its own model in CVXPY?

Each division spends on four projects. It knows its gains, dislikes changes (an L1 term), and limits
its own risk (a second-order cone). All share one budget, and nobody shows its model.

    python examples/plot_cvxpy.py picture.png
"""

from __future__ import annotations

import sys

import matplotlib

matplotlib.use("Agg")
import cvxpy as cp
import matplotlib.pyplot as plt
import numpy as np

import ccmac

NAMES = ["north", "south", "east", "west", "centre"]


def division(k: int) -> tuple[cp.Variable, cp.Minimize, cp.Constraint]:
    """What division k spends, what it wants, and how much risk it takes."""
    rng = np.random.default_rng(k)
    gain = rng.uniform(0.8, 2.0, 4)
    today = rng.uniform(0.0, 2.0, 4)
    spread = 0.4 * rng.standard_normal((4, 4))
    spend = cp.Variable(4, nonneg=True, name="spend")
    cost = 0.2 * cp.sum_squares(spend) - gain @ spend + 0.3 * cp.norm1(spend - today)
    return spend, cp.Minimize(cost), cp.norm(spread @ spend) <= 1.5


def main(path: str) -> None:
    budgets = np.linspace(6.0, 30.0, 9)
    budget = cp.Parameter(name="budget", value=budgets[0])
    parts = [division(k) for k in range(5)]
    agents = [
        ccmac.cvx.Agent(cost, [risk], coupled=[cp.sum(spend) - budget / 5], name=name)
        for name, (spend, cost, risk) in zip(NAMES, parts, strict=True)
    ]
    prepared = ccmac.prepare(ccmac.Problem(agents, sense="<=", row_names=["budget"]), "ring")
    spent = []
    worth = []
    for value in budgets:
        budget.value = value
        prepared.update()
        result = prepared.solve(1e-8)
        spent.append([float(spend.value.sum()) for spend, _, _ in parts])
        worth.append(result.named["coupled"]["budget"])
        print(f"budget {value:4.1f}: {result.status}, one unit more is worth {worth[-1]:.4f}")
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.stackplot(budgets, np.array(spent).T, labels=NAMES)
    left.set(xlabel="common budget", ylabel="spent by each division")
    left.legend(loc="upper left", frameon=False, fontsize="small")
    right.plot(budgets, worth, "o-")
    right.set(xlabel="common budget", ylabel="worth of one unit more", ylim=(0, None))
    right.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1])
