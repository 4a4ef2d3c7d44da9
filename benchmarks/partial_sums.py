"""What sums over the few agents of a row save: a grid of 118 buses, each bus an agent.

    python benchmarks/partial_sums.py

Every balance row concerns a bus and its neighbors, so that its sum is had in two rounds. The table
has the averagings, rounds, megabytes of the busiest agent and messages of three methods to a proved
error of 1e-6, setup and proofs included; of cross-apapc also where every sum reaches everybody, and
of its steps alone.
"""

from __future__ import annotations

import numpy as np

import ccmac
from ccmac.ledger import PHASES
from ccmac.linalg.blocks import dense
from ccmac.objectives import Quadratic
from ccmac.workspace.coupling import Coupling

UNIT = 1e4  # of the costs; curvature that the angles get: the methods want some
LEAST = 0.1


def curved() -> tuple[ccmac.Problem, ccmac.Network]:
    """The grid with quadratic costs of angles too."""
    case = ccmac.power.dc_opf("case118")
    agents = []
    for agent in case.problem.agents.values():
        H, g, _ = agent.objective.quadratic(agent.A.shape[1], 0)
        diagonal = np.maximum(np.diag(dense(H)) / UNIT, LEAST)
        agents.append(
            ccmac.Agent(Quadratic(diagonal, g / UNIT), A=agent.A, b=agent.b, C=agent.C, c=agent.c)
        )
    return ccmac.Problem(agents, q=0, m=case.problem.m), case.network


def shown(name: str, result: ccmac.Result, phases: tuple[str, ...] = PHASES) -> None:
    """One line."""
    units = ("averagings", "rounds", "bytes", "messages")
    counts = [sum(int(result.ledger.of(p)[u]) for p in phases) for u in units]
    megabytes = f"{counts[2] / 1e6:.1f}"
    told = [f"{counts[0]:,}", f"{counts[1]:,}", megabytes, f"{counts[3]:,}"]
    print(f"{name:32} {result.status:10}", *(f"{v:>12}" for v in told))


def main() -> None:
    """The methods, then cross-apapc with sums that reach everybody."""
    problem, network = curved()
    for method in ("cross-direct", "cross-cg", "cross-apapc"):
        result = ccmac.solve(problem, network, method=method, tol=1e-6)
        shown(method, result)
    shown("  its steps", result, ("solve",))
    Coupling.few = property(lambda self: None)  # type: ignore[assignment,misc]
    result = ccmac.solve(problem, network, method="cross-apapc", tol=1e-6)
    shown("cross-apapc, sums for everybody", result)
    shown("  its steps", result, ("solve",))


if __name__ == "__main__":
    main()
