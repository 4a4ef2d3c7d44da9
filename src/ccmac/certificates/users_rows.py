"""A result of the reduced problem, in the user's rows: no slack, multipliers with their signs.

For every row and bound the Lagrangian is f + lambda'(A x - b), lambda >= 0 for <= and <= 0 for >=.
With r_x = grad_x f_i + A_i'y + C_i'kappa_i the multipliers of the bounds are lower = max(r_x, 0)
and upper = max(-r_x, 0), likewise for z with the sum over all agents. Wrong signs are set to zero
up to what is left of stationarity, of which they are a part. Violations are those of the user's
rows: of an inequality the positive part. Cost (phase monitor): one averaging, two reductions, one
gradient.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ccmac.certificates.farkas import Infeasibility
from ccmac.certificates.multipliers import Multipliers
from ccmac.inputs import Array, Senses, signs
from ccmac.limits import Reduction
from ccmac.limits.reduction import coupled_misfit
from ccmac.results import Result, Solution
from ccmac.runtime.base import Runtime
from ccmac.workspace import Workspace


def lifted(work: Workspace, solution: Any) -> Any:
    """A solution of the user's problem as one of the reduced problem; setup's averagings."""
    way = work.reduction
    assert way is not None
    if not hasattr(solution, "x"):
        return solution
    runtime = work.runtime
    owned = list(runtime.owned)
    places = owned if len(solution.x) == way.user.n else list(range(len(solution.x)))
    x = [np.asarray(solution.x[k]) for k in places]
    z = np.asarray(solution.z)
    if [len(v) for v in x] != list(way.user.d.values()) or len(z) != way.user.q:
        return solution  # its size is refused where every solution's is
    given = solution.multipliers
    with work.ledger.phase("setup"):
        if isinstance(given, Multipliers):
            shared = [given.shared[k] for k in places]
            given = Multipliers(
                way.lifted_multipliers(given.coupled, shared, runtime),
                [given.local[k] for k in places],
                way.equations(shared),
                given.consensus[places],
                cones=[given.cones[k] for k in places] if given.cones else [],
            )
        return Solution(way.lifted(x, z, runtime), z, given)


def in_users_rows(work: Workspace, result: Result) -> Result:
    """The result as the user stated the problem."""
    way = work.reduction
    assert way is not None
    user = way.user
    x = way.x(result.x)
    z = np.asarray(result.z)
    certificates = {**result.certificates, "slacks": way.slacks}
    if (direction := result.certificates.get("direction")) is not None:
        along = [v[: len(mine)] for v, mine in zip(direction["x"], x, strict=True)]
        certificates["direction"] = {**direction, "x": along}
    conflict = result.infeasibility
    found: dict[str, Any] = {
        "x": x,
        "_problem": user if user.complete else None,
        "certificates": certificates,
        "infeasibility": None if conflict is None else _farkas(way, conflict),
    }
    if not np.isfinite(result.objective) and not result.residuals:
        return replace(result, **found)
    with work.ledger.phase("monitor"):
        bounded = user.z_lower is not None or user.z_upper is not None
        received = None
        multipliers = result.multipliers
        if isinstance(multipliers, Multipliers):
            left = result.residuals.get("stationarity", 0.0)
            multipliers, on_z = signed_multipliers(way, multipliers, x, z, left)
            received = work.runtime.piggyback(on_z) if bounded else None
        norms, found["objective"] = violations(way, work.runtime, x, z)
        found["residuals"] = {**result.residuals, **norms}
        if isinstance(multipliers, Multipliers):
            r_z = np.zeros(user.q) if received is None else received.value
            low = _held(r_z, user.z_lower)
            high = _held(-r_z, user.z_upper)
            found["multipliers"] = replace(multipliers, z_lower=low, z_upper=high)
    return replace(result, **found)


def violations(
    way: Reduction, runtime: Runtime, x: list[Array], z: Array
) -> tuple[dict[str, float], float]:
    """(norms of what is violated at (x, z), the objective there)."""
    user = way.user
    sides = []
    rows = []
    for v, agent in zip(x, user.agents.values(), strict=True):
        sides.append(coupled_misfit(agent, v, z, user.m))
        off = [
            violation(None if agent.C is None else agent.C @ v, agent.c, agent.C_sense),
            violation(None if agent.D is None else agent.D @ z, agent.e, agent.D_sense),
            outside(v, agent.lower, agent.upper),
        ]
        rows.append([*(float(u @ u) for u in off), agent.objective.value(v, z)])
    received = runtime.piggyback(np.array(rows))
    total = user.n * runtime.average(np.stack(sides))[0] if user.m else None
    coupled = violation(total, None, user.sense)
    *squares, value = received.value
    on_z = outside(z, user.z_lower, user.z_upper)
    squares[2] += on_z @ on_z
    norms = dict(zip(("local", "shared", "limits"), map(math.sqrt, squares), strict=True))
    return {"coupled": float(np.linalg.norm(coupled)), **norms}, float(value)


def violation(left: Array | None, right: Array | None, sense: Senses | None) -> Array:
    """left - right of equations, its positive part for <=, its negative part for >=."""
    if left is None:
        return np.zeros(0)
    gap = left if right is None else left - right
    if sense is None:
        return np.asarray(gap)
    sign = signs(sense)
    return np.where(sign == 0, gap, sign * np.maximum(sign * gap, 0.0))


def outside(v: Array, lower: Array | None, upper: Array | None) -> Array:
    """How far entries lie outside their bounds."""
    low = 0.0 if lower is None else np.maximum(lower - v, 0.0)
    high = 0.0 if upper is None else np.maximum(v - upper, 0.0)
    return np.asarray(np.zeros(len(v)) + low + high)


# -- multipliers -----------------------------------------------------------------------------------
def signed_multipliers(
    way: Reduction, given: Multipliers, x: list[Array], z: Array, left: float
) -> tuple[Multipliers, Array]:
    """(multipliers in the user's rows, but for the bounds of z; every agent's slope there).

    ``left`` is what is left of stationarity at the point: a wrong sign below it is rounding.
    """
    user = way.user
    agents = list(user.agents.values())
    top = max(1e-7 * float(np.abs(given.coupled).max(initial=1.0)), left)
    shared = way.shared(given.coupled, given.shared)
    coupled = _signed(given.coupled[: user.m], user.sense, top)
    local = [_signed(v, a.C_sense, top) for v, a in zip(given.local, agents, strict=True)]
    shared = [_signed(v, a.D_sense, top) for v, a in zip(shared, agents, strict=True)]
    cones = given.cones or [np.zeros(0)] * len(agents)
    found = Multipliers(coupled, local, shared, given.consensus, cones=given.cones)
    on_z = []
    for agent, v, *own in zip(agents, x, local, shared, cones, strict=True):
        slope = np.full(len(v) + len(z), math.nan)  # where the objective has none to tell
        if agent.objective.capabilities & {"gradient", "subgradient"}:
            slope = np.concatenate(agent.objective.gradient(v, z))
        r_x, r_z = np.split(slope, [len(v)])
        blocks = (agent.A, agent.B), (agent.C, None), (None, agent.D), (agent.G, agent.H)
        for (on_x, rest), multiplier in zip(blocks, (coupled, *own), strict=True):
            r_x = r_x if on_x is None else r_x + on_x.T @ multiplier
            r_z = r_z if rest is None else r_z + rest.T @ multiplier
        found.lower.append(_held(r_x, agent.lower))
        found.upper.append(_held(-r_x, agent.upper))
        on_z.append(r_z)
    return found, np.stack(on_z)


def _signed(multiplier: Array, sense: Senses | None, rounding: float) -> Array:
    """Wrong signs up to ``rounding`` set to zero; larger ones are left to be seen."""
    if sense is None:
        return multiplier
    wrong = signs(sense) * multiplier
    return np.where((wrong < 0) & (wrong >= -rounding), 0.0, multiplier)


def _held(rest: Array, bound: Array | None) -> Array:
    """The part of the stationarity that a bound has to balance."""
    there = np.zeros(len(rest), dtype=bool) if bound is None else np.isfinite(bound)
    return np.where(there, np.maximum(rest, 0.0), 0.0)


def _farkas(way: Reduction, found: Infeasibility) -> Infeasibility:
    """The certificate in the user's rows."""
    user = way.user
    if len(found.coupled) != way.layout.width:
        return found
    given = [found.shared.get(i, np.zeros(way.problem.r[i])) for i in user.agents]
    shared = zip(user.agents, way.shared(found.coupled, given), strict=True)
    return replace(
        found,
        coupled=found.coupled[: user.m],
        shared={i: v for i, v in shared if v.any()},
        bounds={i: v[: user.d[i]] for i, v in found.bounds.items()},
    )
