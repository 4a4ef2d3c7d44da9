"""Every method between owners, each a process of its own, and in one process: bits and bills.

    owners_bits.py KEYS AVERAGING

Prints how many runs are equal, and those that are not. (Threads would not do: the lock of
``functools.cached_property`` is shared by them until Python 3.12.)
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import ccmac
from ccmac.methods import CrossNewton
from ccmac.methods.registry import REGISTRY, parse
from ccmac.paper.instances import random_quadratic
from ccmac.runtime.owners import between_owners
from cones.families import drawn
from owners import Neighborhood

AGENTS = 4
NETWORK = ccmac.Network.ring(AGENTS)
Case = tuple[str, ccmac.Problem, dict[str, Any]]


def quadratic(*, coupled_z: bool = True) -> ccmac.Problem:
    """All four families of blocks; B = 0 for methods that need it."""
    return random_quadratic(
        5, AGENTS, d=3, q=2, m=2, kappa_f=4.0, B="generic" if coupled_z else "zero"
    )


def logistic() -> ccmac.Problem:
    """A table split by columns."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((12, 8))
    y = np.sign(rng.standard_normal(12))
    return ccmac.vfl.problem(X, y, AGENTS, loss="logistic", regularization=0.1)


def cases(averaging: str) -> list[Case]:
    """A short run of every method of the registry, one to the end, one that is not quadratic."""
    found: list[Case] = []
    for name in REGISTRY if averaging == "relay" else ():
        problem = quadratic(coupled_z=name != "mixed-yarmoshik")
        found.append((name, problem, {"method": parse(name), "max_iterations": 3}))
    if averaging != "masked":
        found.append(("cones", drawn(100)[1], {}))
    found.append(("to the end", quadratic(), {"method": "cross-cg", "tol": 1e-9}))
    for reveal in ("sketch", "range"):
        options = {"method": CrossNewton(reveal=reveal), "max_iterations": 4}
        found.append((f"logistic, {reveal}", logistic(), options))
    return found


def told(result: ccmac.Result) -> list[Any]:
    """What must be the same, but for the x_i."""
    prices = result.multipliers
    coupled = None if prices is None else prices.coupled.tobytes()
    facts = [result.status, result.iterations, repr(result.error_bound), result.ledger.as_dict()]
    return [*facts, result.z.tobytes(), coupled]


def horizon(problem: ccmac.Problem, runtime: ccmac.Runtime) -> list[ccmac.Result]:
    """A receding horizon: set up once; update, solve, update, solve."""
    prepared = ccmac.prepare(problem, method="cross-cg", runtime=runtime)
    found = [prepared.solve(1e-8)]
    for k in range(2):
        prepared.update(b={i: agent.b + 0.1 * k for i, agent in problem.agents.items()})
        found.append(prepared.solve(1e-8, warm_start=found[-1]))
    return found


def forked(work: Callable[[int], None], agents: int) -> int:
    """``work(i)`` in a process for every agent; how many failed."""
    children = []
    for i in range(agents):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                work(i)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        children.append(pid)
    return sum(os.waitpid(pid, 0)[1] != 0 for pid in children)


def main() -> None:
    keys, averaging = sys.argv[1:]
    place = Neighborhood(Path(keys), NETWORK)
    expected = []
    for _, problem, options in cases(averaging):
        alone = ccmac.InProcess(NETWORK, fused=False, averaging=averaging)
        expected.append(ccmac.solve(problem, runtime=alone, **options))

    alone = ccmac.InProcess(NETWORK, fused=False, averaging=averaging)
    steps = horizon(quadratic(), alone)

    def owner(i: int) -> None:
        with place.links(i) as links:
            links.start()
            for (name, problem, options), whole in zip(cases(averaging), expected, strict=True):
                mine = {i: problem.agents[i]}
                part = ccmac.Problem(mine, n=AGENTS, q=problem.q, m=problem.m)
                runtime = between_owners(links, NETWORK, averaging)
                result = ccmac.solve(part, runtime=runtime, **options)
                assert told(result) == told(whole), name
                assert result.x[0].tobytes() == whole.x[i].tobytes(), name
                assert list(result.agents) == [i]
                counted = runtime.transport.rounds - runtime.observed
                assert counted == result.ledger.total("rounds"), name
            problem = quadratic()
            part = ccmac.Problem({i: problem.agents[i]}, n=AGENTS, q=problem.q, m=problem.m)
            found = horizon(part, between_owners(links, NETWORK, averaging))
            for result, whole in zip(found, steps, strict=True):
                assert told(result) == told(whole), "horizon"
                assert result.x[0].tobytes() == whole.x[i].tobytes(), "horizon"

    failed = forked(owner, AGENTS)
    print(f"{len(expected)} runs, {failed} owners failed")


if __name__ == "__main__":
    main()
