"""How far from optimal: methods on the hard families, measured over lower bound per resource.

Theorem thm:minimax-sc, by instances instead of orders.

The bound is fixed before anything runs. A run starts at zero and ends when

    RelErr = (||x - x*||^2 + ||z - z*||^2) / (||x*||^2 + ||z*||^2) <= tol,   z the mean copy.

After k uses of a resource no copy of z, hence not their mean, has entries beyond chain place
s = frontier(k), so that RelErr >= sum_{j > s} (z*_j)^2 / (||x*||^2 + ||z*||^2) (the tail of
Equation eq:cvxlf-tail and Equation eq:cvxlf-affinehard, on the closed-form solution of the finite
instance). The bound is T_s for the least s whose tail is at most tol. On the physical path the
paper's explicit radius formula (Equation eq:target-comm-lb) with eps = tol^{1/2} is printed too.

The frontier test runs a method for a few iterations and looks for entries of z beyond the frontier
of its solve phase: there must be none. (Counting setup too would make the test empty where the
spectral estimates of the setup spend more rounds than the chain is long.)

Without strong convexity the target is half the distance to the solution, RelErr <= 1/4: a point of
accuracy mu R^2/24 in value and feasibility is that near (Equation eq:cvxlf-nesting). ``scheduled``
is what the certified schedule would take for that accuracy: a proof of the order, with constants in
the thousands. Of a maximum of affine functions subgradients learn one piece each; ``cross-ipm``,
which minimises its pieces, needs none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ccmac.api import solve
from ccmac.errors import InputError
from ccmac.paper import instances
from ccmac.paper.instances import HardInstance, radius_explicit_rounds
from ccmac.paper.instances.base import Resource
from ccmac.paper.schedules.continuation import certified_schedule
from ccmac.results import Solution
from ccmac.texts import nearest, shown

TOL = 1e-6
HALF = 0.25
KAPPA = 100.0
REGIMES = {"smooth strongly convex": TOL, "smooth convex": HALF, "nonsmooth": HALF}
CONSTANTS = (
    "Where the factor goes: an averaging takes as many rounds as the diameter of the graph (5 "
    "on a path of six, and no exact averaging needs fewer), where the bound charges the distance "
    "between two groups (3); the rest is the number of iterations: compare cross-apapc with "
    "cross-cg, which gets the most out of the same messages (docs/hard-families.md takes the "
    "factor apart)."
)
IMPRACTICAL = (
    "Certified schedules have constants that are impractical: take the practical schedule (the "
    "default). Maxima of affine functions are for cross-ipm, which auto takes."
)


@dataclass(frozen=True)
class Efficiency:
    """One method on one family: ``ratio`` = measured / bound (total counts setup too)."""

    family: str
    method: str
    resource: str
    cross_factor: float
    kappa_f: float
    iterations: int
    measured: int
    setup: int
    bound: float
    ratio: float
    explicit: float | None
    frontier_held: bool | None
    regime: str = "smooth strongly convex"
    scheduled: int | None = None


@dataclass(frozen=True)
class HardFamily:
    """An instance, the resource it bounds, what is run on it, and an explicit formula if any."""

    build: Callable[[], HardInstance]
    resource: Resource
    methods: tuple[str, ...] = ("cross-apapc", "cross-cg")
    regime: str = "smooth strongly convex"
    explicit: float | None = None


def families() -> dict[str, HardFamily]:
    """By name."""
    eps = TOL**0.5
    affine = ("cross-apapc",)  # bounds on products: local minimisations are a stronger oracle
    six = partial(instances.complete_six, 1.0, KAPPA)
    path = partial(instances.communication_path, 2, 1.0, KAPPA)
    angle = partial(instances.bounded_angle, 2, KAPPA)
    block = partial(instances.six_block, KAPPA)
    found = {
        f"physical path t={t}": HardFamily(
            partial(instances.physical_path, 2, float(t), KAPPA),
            "rounds",
            explicit=radius_explicit_rounds(2, float(t), KAPPA, eps),
        )
        for t in (1, 3)
    }
    found |= {
        "communication path": HardFamily(path, "rounds"),
        "complete six": HardFamily(six, "rounds"),
        "bounded angle": HardFamily(angle, "rounds"),
        "matching path": HardFamily(partial(instances.matching_path, 6, KAPPA), "affine", affine),
        "virtual path": HardFamily(partial(instances.virtual_path, 2, KAPPA), "affine", affine),
        "six block": HardFamily(block, "affine", affine),
    }
    convex = ("cross-continuation",), "smooth convex"
    found |= {
        "convex path": HardFamily(path, "rounds", *convex),
        "convex six": HardFamily(six, "rounds", *convex),
        "convex angle": HardFamily(angle, "rounds", *convex),
        "convex block": HardFamily(block, "affine", *convex),
        "max of coordinates": HardFamily(
            partial(instances.max_of_coordinates, 8), "gradients", ("cross-ipm",), "nonsmooth"
        ),
    }
    return found


def lower_bound(hard: HardInstance, resource: Resource, tol: float) -> int:
    """Uses of ``resource`` before RelErr can reach ``tol`` (see the module text)."""
    whole = float(sum(x @ x for x in hard.x) + hard.z @ hard.z)
    return hard.exposure[resource].needed(int(np.argmax(hard.tails <= tol * whole)))


def measure(name: str, family: HardFamily, method: str) -> Efficiency:
    """Run one method to the regime's RelErr and for three iterations."""
    hard = family.build()
    resource = family.resource
    tol = REGIMES[family.regime]
    bound = lower_bound(hard, resource, tol)
    known = Solution(hard.x, hard.z)
    result, early = (
        solve(hard.problem, hard.network, method, tol, reference=known, max_iterations=limit)
        for limit in (None, 3)
    )
    spent = result.ledger[resource]
    beyond = early.z[~hard.reachable(resource, early.ledger[resource])]
    held = not np.any(beyond) if resource == "rounds" else None
    return Efficiency(
        name,
        method,
        resource,
        float(hard.facts["cross_factor"]),
        KAPPA,
        result.iterations,
        spent,
        result.ledger.of("setup")[resource],
        bound,
        spent / max(bound, 1),
        family.explicit,
        held,
        family.regime,
        scheduled_gradients(hard) if family.regime == "smooth convex" else None,
    )


def scheduled_gradients(hard: HardInstance) -> int:
    """Gradients of the certified schedule for the accuracy mu R^2/24, with L = 1."""
    radius = hard.execution_radius
    budget = 1.0 + hard.facts["multiplier_bound"]
    return certified_schedule(1.0, radius, radius**2 / (24 * KAPPA), budget).gradients()


def report(names: Iterable[str] | None = None) -> list[Efficiency]:
    """All rows, or those of the families named."""
    chosen = families()
    asked = list(chosen if names is None else names)
    for name in asked:
        if name not in chosen:
            raise InputError(f"family {shown(name)} is unknown; {nearest(name, chosen)}")
    return [
        measure(name, chosen[name], method) for name in asked for method in chosen[name].methods
    ]
