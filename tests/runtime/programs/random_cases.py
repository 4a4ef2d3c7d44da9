"""Random problems: families that only some ranks have, blocks of several kinds and storage orders
beside each other, inequalities, bounds and cones.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parents[2]))

from beside import Case

import ccmac
from ccmac.paper.instances import random_quadratic
from cones.families import drawn
from limits.cases import random_limited
from workspace.sparse_coupling import sparse_coupling

LIMITED = {"max_iterations": 8, "tol": 1e-12}
AVERAGED: tuple[dict[str, Any], ...] = (
    {"method": "cross-apapc"},
    {"method": "cross-apapc", "averaging": "tree", **LIMITED},
    {"method": "cross-cg"},
)
CERTIFIED: dict[str, Any] = {
    "method": ccmac.methods.CrossApapc(realization="certified"),
    "max_iterations": 1,
}


def mixed(n: int) -> ccmac.Problem:
    """Multiples of the identity beside general B_i; A_i stored by rows and by columns."""
    rng = np.random.default_rng(8)
    m = 6
    agents = []
    for i in range(n):
        general = sp.csr_array(sp.random(m, m, 0.5, rng=rng))
        A = rng.standard_normal((m, 7))
        agents.append(
            ccmac.Agent(
                ccmac.objectives.Quadratic(rng.uniform(1, 3, 7 + m), rng.standard_normal(7 + m)),
                A=np.asfortranarray(A) if i % 2 else A,
                B=general if i == 1 else sp.csr_array(0.3 * (i + 1) * sp.eye_array(m)),
                b=rng.standard_normal(m),
            )
        )
    return ccmac.Problem(agents)


def spread(n: int) -> Iterator[Case]:
    """Blocks of several kinds, sparse coupling, absent families, certificates, many rows."""
    network = ccmac.Network.ring(n)
    for options in AVERAGED:
        yield Case(f"mixed {options}", mixed(n), network, options)
    for stray in (False, True):
        problem = sparse_coupling(3, n, stray=stray)
        for method in ("auto", "cross-cg" if stray else "cross-ipm"):
            yield Case(f"sparse {stray} {method}", problem, network, {"method": method})
    absent = random_quadratic(1, n=n, q=4, m=3, sparse=True, absent=0.4)
    yield Case("absent", absent, network, {"method": "cross-apapc"})
    absent = random_quadratic(1, n=n, d=2, q=2, m=1, absent=0.4)
    yield Case("certified", absent, network, CERTIFIED, fused=False)
    random = np.random.default_rng(9)  # so many rows that they are brought to their range
    X = random.standard_normal((1_300, 9))
    y = random.standard_normal(1_300)
    vertical = ccmac.vfl.problem(X, y, n, l1=0.05)
    yield Case("range", vertical, network, {"method": "cross-ipm"})


def limited() -> Iterator[Case]:
    """Inequalities, bounds and cones: solvable and not, and from a warm start."""
    for seed, kind, solvable in (
        (1, "separable", True),
        (5, "contradictory", False),
        (100, "cones", True),
        (13, "cones", False),
    ):
        problem = drawn(seed)[1] if kind == "cones" else random_limited(seed, kind)
        network = ccmac.Network.complete(problem.n)
        options = {"max_iterations": 40}
        yield Case(f"{kind} {seed}", problem, network, options, warm=solvable)
