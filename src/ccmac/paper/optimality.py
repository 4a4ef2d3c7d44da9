"""How far from optimal: methods on the hard families, measured over lower bound per resource.

The bound is fixed before anything runs. A run starts at zero and ends when

    RelErr = (||x - x*||^2 + ||z - z*||^2) / (||x*||^2 + ||z*||^2) <= tol,   z the mean copy.

After k uses of a resource no copy of z, hence not their mean, has entries beyond chain place
s = frontier(k), so that RelErr >= sum_{j > s} (z*_j)^2 / (||x*||^2 + ||z*||^2) (the tail of eqs.
cvxlf-tail and cvxlf-affinehard, on the closed-form solution of the finite instance). The bound is
T_s for the least s whose tail is at most tol. On the physical path the paper's explicit radius
formula (eq. target-comm-lb) with eps = tol^{1/2} is printed too.

The frontier test runs a method for a few iterations and looks for entries of z beyond the frontier
of its solve phase: there must be none. (Counting setup too would make the test empty where the
spectral estimates of the setup spend more rounds than the chain is long.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from ccmac.api import solve
from ccmac.errors import InputError
from ccmac.paper import instances
from ccmac.paper.instances import HardInstance, radius_explicit_rounds
from ccmac.paper.instances.base import Resource
from ccmac.results import Solution
from ccmac.texts import nearest, shown

TOL = 1e-6
KAPPA = 100.0
EARLY = 3
METHODS = ("cross-apapc", "cross-cg")
CONSTANTS = (
    "Where the factor goes: an averaging takes as many rounds as the diameter of the graph (5 "
    "on a path of six, and no exact averaging needs fewer), where the bound charges the distance "
    "between two groups (3); the rest is the number of iterations: compare cross-apapc with "
    "cross-cg, which gets the most out of the same messages (docs/hard-families.md takes the "
    "factor apart)."
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


def families() -> dict[str, tuple[Callable[[], HardInstance], Resource, float | None]]:
    """Name -> (instance, resource it bounds, the explicit radius formula if it has one)."""
    eps = TOL**0.5
    return {
        "physical path t=1": (
            lambda: instances.physical_path(2, 1.0, KAPPA),
            "rounds",
            radius_explicit_rounds(2, 1.0, KAPPA, eps),
        ),
        "physical path t=3": (
            lambda: instances.physical_path(2, 3.0, KAPPA),
            "rounds",
            radius_explicit_rounds(2, 3.0, KAPPA, eps),
        ),
        "communication path": (lambda: instances.communication_path(2, 1.0, KAPPA), "rounds", None),
        "complete six": (lambda: instances.complete_six(1.0, KAPPA), "rounds", None),
        "bounded angle": (lambda: instances.bounded_angle(2, KAPPA), "rounds", None),
        "matching path": (lambda: instances.matching_path(6, KAPPA), "affine", None),
        "virtual path": (lambda: instances.virtual_path(2, KAPPA), "affine", None),
        "six block": (lambda: instances.six_block(KAPPA), "affine", None),
    }


def lower_bound(hard: HardInstance, resource: Resource, tol: float) -> int:
    """Uses of ``resource`` before RelErr can reach ``tol`` (see the module text)."""
    whole = float(sum(x @ x for x in hard.x) + hard.z @ hard.z)
    return hard.exposure[resource].needed(int(np.argmax(hard.tails <= tol * whole)))


def measure(
    name: str, hard: HardInstance, resource: Resource, method: str, explicit: float | None
) -> Efficiency:
    """Run one method to RelErr <= TOL and for :data:`EARLY` iterations."""
    bound = lower_bound(hard, resource, TOL)
    result, early = (
        solve(
            hard.problem,
            hard.network,
            method,
            TOL,
            reference=Solution(hard.x, hard.z),
            max_iterations=limit,
        )
        for limit in (None, EARLY)
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
        explicit,
        held,
    )


def report(
    names: Iterable[str] | None = None, methods: Iterable[str] = METHODS
) -> list[Efficiency]:
    """All rows; affine bounds speak of products, so only cross-apapc is measured by them."""
    chosen = families()
    rows = []
    asked = list(chosen if names is None else names)
    for name in asked:
        if name not in chosen:
            raise InputError(f"family {shown(name)} is unknown; {nearest(name, chosen)}")
    for name in asked:
        build, resource, explicit = chosen[name]
        hard = build()
        for method in methods:
            if resource == "rounds" or method == "cross-apapc":
                rows.append(measure(name, hard, resource, method, explicit))
    return rows
