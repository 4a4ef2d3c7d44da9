"""What sums over the few agents of a row could save: a grid of 118 buses, each bus an agent.

    python benchmarks/partial_sums.py

Every balance row concerns a bus and its neighbors, so that its sum could be had in two rounds. The
table has the averagings and rounds of three methods to a proved error of 1e-6, and what the rounds
would be if every averaging took two.
"""

from __future__ import annotations

import numpy as np

import ccmac
from ccmac.ledger import PHASES
from ccmac.linalg.blocks import dense
from ccmac.objectives import Quadratic

UNIT, LEAST = 1e4, 0.1  # of the costs; curvature that the angles get: the methods want some


def main() -> None:
    """One line a method."""
    case, agents = ccmac.power.dc_opf("case118"), []
    for agent in case.problem.agents.values():
        H, g, _ = agent.objective.quadratic(agent.A.shape[1], 0)
        curved = np.maximum(np.diag(dense(H)) / UNIT, LEAST)
        agents.append(
            ccmac.Agent(
                Quadratic(curved, g / UNIT), A=agent.A, b=agent.b, C=agent.C, c=agent.c
            )
        )  # fmt: skip
    problem = ccmac.Problem(agents, q=0, m=case.problem.m)
    for method in ("cross-direct", "cross-cg", "cross-apapc"):
        result = ccmac.solve(problem, case.network, method=method, tol=1e-6)
        spent = [sum(int(result.ledger.of(p)[u]) for p in PHASES) for u in ("averagings", "rounds")]
        print(f"{method:14} {result.status:10}", *(f"{v:,}" for v in [*spent, 2 * spent[0]]))


if __name__ == "__main__":
    main()
