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
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ccmac.certificates.farkas import Infeasibility
from ccmac.certificates.multipliers import Multipliers
from ccmac.inputs import Array, Senses, signs
from ccmac.limits import Reduction
from ccmac.limits.reduction import coupled_misfit
from ccmac.problem import Agent
from ccmac.results import Result, Solution
from ccmac.workspace import Workspace


def lifted(work: Workspace, solution: Any) -> Any:
    """A solution of the user's problem as one of the reduced problem; setup's averagings."""
    way = work.reduction
    assert way is not None
    if not hasattr(solution, "x"):
        return solution
    runtime = work.runtime
    owned = list(work.runtime.owned)
    places = owned if len(solution.x) == way.user.n else list(range(len(solution.x)))
    x = [np.asarray(solution.x[k]) for k in places]
    z = np.asarray(solution.z)
    fits = [len(v) for v in x] == list(way.user.d.values()) and len(z) == way.user.q
    if not fits:  # the size of what was given is refused where every solution's is
        return solution
    with work.ledger.phase("setup"):
        multipliers = solution.multipliers
        if isinstance(multipliers, Multipliers):
            shared = [multipliers.shared[k] for k in places]
            multipliers = Multipliers(
                way.lifted_multipliers(multipliers.coupled, shared, runtime),
                [multipliers.local[k] for k in places],
                way.equations(shared),
                multipliers.consensus[places],
                cones=[multipliers.cones[k] for k in places] if multipliers.cones else [],
            )
        return Solution(way.lifted(x, z, runtime), z, multipliers)


def in_users_rows(work: Workspace, result: Result) -> Result:
    """The result as the user stated the problem."""
    way = work.reduction
    assert way is not None
    x = way.x(result.x)
    z = np.asarray(result.z)
    found: dict[str, Any] = {"x": x, "_problem": way.user if way.user.complete else None}
    found["certificates"] = {**result.certificates, "slacks": way.slacks}
    if result.infeasibility is not None:
        found["infeasibility"] = _farkas(way, result.infeasibility)
    direction = result.certificates.get("direction")
    if direction is not None:
        along = [v[: len(mine)] for v, mine in zip(direction["x"], x, strict=True)]
        found["certificates"]["direction"] = {**direction, "x": along}
    if not np.isfinite(result.objective) and not result.residuals:
        return replace(result, **found)
    with work.ledger.phase("monitor"):
        announced = None
        if isinstance(result.multipliers, Multipliers):
            left = result.residuals.get("stationarity", 0.0)
            announced = _users_multipliers(work, way, result.multipliers, (x, z), left)
        norms, value = _violations(work, way, x, z)
        found["residuals"] = {**result.residuals, **norms}
        found["objective"] = value
        if announced is not None:
            found["multipliers"] = announced()
    return replace(result, **found)


def _violations(
    work: Workspace, way: Reduction, x: list[Array], z: Array
) -> tuple[dict[str, float], float]:
    """(norms of what is violated at (x, z), the objective there)."""
    user = way.user
    runtime = work.runtime
    zero = np.zeros(0)
    sides = []
    rows = []
    for v, agent in zip(x, user.agents.values(), strict=True):
        sides.append(coupled_misfit(agent, v, z, user.m))
        local = violation(zero if agent.C is None else agent.C @ v, agent.c, agent.C_sense)
        shared = violation(zero if agent.D is None else agent.D @ z, agent.e, agent.D_sense)
        limits = outside(v, agent.lower, agent.upper)
        rows.append([*(float(u @ u) for u in (local, shared, limits)), agent.objective.value(v, z)])
    coupled = zero
    received = runtime.piggyback(np.array(rows))
    if user.m:
        coupled = violation(user.n * runtime.average(np.stack(sides))[0], None, user.sense)
    local_sq, shared_sq, limits_sq, value = received.value
    on_z = outside(z, user.z_lower, user.z_upper)
    norms = {
        "coupled": float(np.linalg.norm(coupled)),
        "local": math.sqrt(local_sq),
        "shared": math.sqrt(shared_sq),
        "limits": math.sqrt(limits_sq + float(on_z @ on_z)),
    }
    return norms, float(value)


def violation(left: Array, right: Array | None, sense: Senses | None) -> Array:
    """left - right of equations, its positive part for <=, its negative part for >=."""
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
def _users_multipliers(
    work: Workspace,
    way: Reduction,
    multipliers: Multipliers,
    point: tuple[list[Array], Array],
    left: float,
) -> Callable[[], Multipliers]:
    """Multipliers in the user's rows, to be asked for when the next message has gone.

    ``left`` is what is left of stationarity at the point.
    """
    user, shared, (x, z) = way.user, way.shared(multipliers.coupled, multipliers.shared), point
    coupled = multipliers.coupled[: user.m]
    # A wrong sign is rounding below this.
    top = max(1e-7 * float(np.abs(multipliers.coupled).max(initial=1.0)), left)
    agents = list(user.agents.values())
    local = [_signed(v, a.C_sense, top) for v, a in zip(multipliers.local, agents, strict=True)]
    shared = [_signed(v, a.D_sense, top) for v, a in zip(shared, agents, strict=True)]
    coupled = _signed(coupled, user.sense, top)
    lower = []
    upper = []
    on_z = []
    cones = multipliers.cones or [np.zeros(0)] * len(agents)
    for agent, v, kappa, delta, y in zip(agents, x, local, shared, cones, strict=True):
        slope = _gradient(agent, v, z)
        r_x = slope[: len(v)]
        r_z = slope[len(v) :]
        for block, multiplier in ((agent.A, coupled), (agent.C, kappa), (agent.G, y)):
            r_x = r_x if block is None else r_x + block.T @ multiplier
        for block, multiplier in ((agent.B, coupled), (agent.D, delta), (agent.H, y)):
            r_z = r_z if block is None else r_z + block.T @ multiplier
        lower.append(_bound_multiplier(r_x, agent.lower))
        upper.append(_bound_multiplier(-r_x, agent.upper))
        on_z.append(r_z)
    bounded = user.z_lower is not None or user.z_upper is not None
    received = work.runtime.piggyback(np.stack(on_z)) if bounded else None

    def known() -> Multipliers:
        rest = np.zeros(user.q) if received is None else received.value
        ends = _bound_multiplier(rest, user.z_lower), _bound_multiplier(-rest, user.z_upper)
        rows = multipliers.consensus, lower, upper, *ends, multipliers.cones
        return Multipliers(coupled, local, shared, *rows)

    return known


def _signed(multiplier: Array, sense: Senses | None, rounding: float) -> Array:
    """Wrong signs up to ``rounding`` set to zero; larger ones are left to be seen."""
    if sense is None:
        return multiplier
    wrong = signs(sense) * multiplier
    return np.where((wrong < 0) & (wrong >= -rounding), 0.0, multiplier)


def _bound_multiplier(rest: Array, bound: Array | None) -> Array:
    """The part of the stationarity that a bound has to balance."""
    if bound is None:
        return np.zeros(len(rest))
    return np.where(np.isfinite(bound), np.maximum(rest, 0.0), 0.0)


def _gradient(agent: Agent, x: Array, z: Array) -> Array:
    """A subgradient of f_i; NaN where the objective has none to tell."""
    if agent.objective.capabilities & {"gradient", "subgradient"}:
        return np.concatenate(agent.objective.gradient(x, z))
    return np.full(len(x) + len(z), math.nan)


def _farkas(way: Reduction, found: Infeasibility) -> Infeasibility:
    """The certificate in the user's rows."""
    user = way.user
    if len(found.coupled) != way.layout.width:
        return found
    given = [found.shared.get(i, np.zeros(way.problem.r[i])) for i in user.agents]
    shared = way.shared(found.coupled, given)
    return replace(
        found,
        coupled=found.coupled[: user.m],
        shared={i: v for i, v in zip(user.agents, shared, strict=True) if v.any()},
        bounds={i: v[: user.d[i]] for i, v in found.bounds.items()},
    )
