"""Solve one named case and write, for the agents of this process, the bits and the ledger.

    solve_bits.py CASE NETWORK RUNTIME OUT [CHECKPOINT]

RUNTIME is ``mpi``, ``fused`` (the default of one process) or ``executed`` (one process in which no
polynomial is multiplied out).
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import ccmac
from ccmac import objectives
from ccmac.paper.instances import random_quadratic

N = 8


def network(name: str) -> ccmac.Network:
    """The graphs of the comparison."""
    graphs = {
        "ring": lambda: ccmac.Network.ring(N),
        "grid": lambda: ccmac.Network.grid(2, N // 2),
        "regular": lambda: ccmac.Network.random_regular(N, 4, 0),
    }
    return graphs[name]()


def flat_problem() -> ccmac.Problem:
    """Rank-deficient least squares: smooth, convex, not strongly."""
    rng = np.random.default_rng(3)
    agents = []
    for _ in range(N):
        M = rng.standard_normal((3, 7))
        agents.append(
            ccmac.Agent(
                objectives.LeastSquares(M, rng.standard_normal(3)),
                A=rng.standard_normal((2, 4)),
                B=rng.standard_normal((2, 3)),
                b=0.1 * rng.standard_normal(2),
            )
        )
    return ccmac.Problem(agents)


def kinked_problem() -> ccmac.Problem:
    """Absolute losses: not smooth."""
    rng = np.random.default_rng(4)
    agents = []
    for _ in range(N):
        f = objectives.Separable(
            x=objectives.L1(1.0, centre=rng.standard_normal(4)),
            z=objectives.L1(0.5, centre=rng.standard_normal(3)),
        )
        blocks = {"A": rng.standard_normal((2, 4)), "B": rng.standard_normal((2, 3))}
        agents.append(ccmac.Agent(f, b=0.1 * rng.standard_normal(2), **blocks))
    return ccmac.Problem(agents)


def case(name: str) -> tuple[ccmac.Problem, dict[str, Any]]:
    """Problem and options of solve."""
    if name == "averaged":
        return random_quadratic(5, n=N, q=6, m=5), {"method": "cross-apapc"}
    if name == "joint":
        return random_quadratic(5, n=N, q=6, m=5), {"method": "joint-apapc", "max_iterations": 6}
    if name == "vertical":
        rng = np.random.default_rng(0)
        X = rng.standard_normal((40, 16))
        problem = ccmac.vfl.problem(X, X @ rng.standard_normal(16), N, regularization=0.05)
        return problem, {"method": "cross-apapc"}
    if name == "certified":
        lifted = ccmac.methods.CrossApapc(realization="certified")
        options = {"method": lifted, "max_iterations": 2}
        return random_quadratic(6, n=N, d=2, q=2, m=1), options
    if name == "cg":
        return random_quadratic(5, n=N, q=6, m=5), {"method": "cross-cg"}
    if name == "sketched":
        rng = np.random.default_rng(1)
        X = rng.standard_normal((60, 24))
        return ccmac.vfl.problem(X, X @ rng.standard_normal(24), N, alpha=("cross_factor", 3)), {
            "method": ccmac.methods.CrossCg(sketch=8)
        }
    if name == "convex":
        return flat_problem(), {"method": "cross-continuation", "tol": 1e-3, "max_iterations": 120}
    if name == "newton":
        rng = np.random.default_rng(4)
        X = rng.standard_normal((60, 16))
        y = np.sign(rng.standard_normal(60))
        problem = ccmac.vfl.problem(X, y, N, loss="logistic", regularization=0.01, label_owner=3)
        return problem, {"method": "cross-newton"}
    if name == "interior":
        return kinked_problem(), {"method": "cross-ipm", "tol": 1e-6}
    if name == "nonsmooth":
        return kinked_problem(), {"method": "cross-sliding", "tol": 0.1, "max_iterations": 60}
    problem = random_quadratic(9, n=N, q=6, m=5, kappa_f=300.0)
    return problem, {"method": "cross-apapc", "tol": 1e-10}


def main() -> None:
    """Run and write ``OUT/part-START.json``."""
    name, graph, runtime, out, *place = sys.argv[1:]
    problem, options = case(name)
    if place:
        options["checkpoint"] = {"path": place[0], "every": 10}
        options["callback"] = lambda count, state: time.sleep(0.01)
    options["runtime"] = "mpi"
    if runtime != "mpi":
        options["runtime"] = ccmac.InProcess(network(graph), fused=runtime == "fused")
    result = ccmac.solve(problem, network(graph), **options)
    record = {
        "status": result.status,
        "iterations": result.iterations,
        "ledger": result.ledger.as_dict(),
        "trace": {
            k: list(map(repr, v)) for k, v in result.trace.as_dict().items() if k != "seconds"
        },
        "x": {str(i): x.tobytes().hex() for i, x in zip(result.agents, result.x, strict=True)},
    }
    target = Path(out) / f"part-{result.agents.start}.json"
    target.write_text(json.dumps(record))


if __name__ == "__main__":
    main()
