"""Random problems with every mix of senses and bounds, and what Clarabel and KKT say of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

import ccmac
from ccmac.inputs import signs
from ccmac.objectives import Objective, Quadratic, Separable, SquaredDistance

KINDS = ("separable", "quadratic", "linear", "open", "contradictory")
WORDS = np.array(["==", "<=", ">="])


def random_limited(seed: int, kind: str = "separable") -> ccmac.Problem:
    """A feasible problem: senses, bounds and right-hand sides are drawn around a point.

    ``separable`` and ``quadratic`` are strongly convex; ``linear`` has bounds on every entry, and
    ``open`` is linear without: some of these fall without end. ``contradictory`` asks of a bounded
    problem one row too much.
    """
    if kind == "contradictory":
        return _contradictory(seed)
    rng = np.random.default_rng([21, seed])
    n = int(rng.integers(1, 5))
    q = int(rng.integers(0, 4))
    m = int(rng.integers(0, 4))
    z = rng.standard_normal(q)
    d = rng.integers(1, 5, n)
    x = [rng.standard_normal(k) for k in d]
    agents = []
    misfit = np.zeros(m)
    sense = rng.choice(WORDS, m)
    for i in range(n):
        A = rng.standard_normal((m, d[i]))
        B = rng.standard_normal((m, q))
        if rng.random() < 0.3:
            A *= rng.random(A.shape) < 0.5
        p = int(rng.integers(0, min(d[i], 3)))
        r = int(rng.integers(0, min(q, 2) + 1))
        C = rng.standard_normal((p, d[i]))
        D = rng.standard_normal((r, q))
        C_sense = rng.choice(WORDS, p)
        D_sense = rng.choice(WORDS[1:], r)
        lower, upper = _bounds(rng, x[i], kind == "linear")
        blocks: dict[str, Any] = {"C": C, "D": D} if rng.random() < 0.7 else {}
        if blocks:
            blocks |= {"c": C @ x[i] + _slack(rng, C_sense), "C_sense": C_sense}
            blocks |= {"e": D @ z + _slack(rng, D_sense), "D_sense": D_sense}
        misfit += A @ x[i] + B @ z
        wide = sp.csr_array(A) if rng.random() < 0.3 else A
        agents.append(
            ccmac.Agent(
                _objective(rng, kind, int(d[i]), q),
                A=wide,
                B=B,
                b=np.zeros(m),
                **blocks,
                lower=lower,
                upper=upper,
                name=f"agent-{i}",
            )
        )
    agents[-1].b[:] = misfit + _slack(rng, sense)
    z_lower, z_upper = _bounds(rng, z, kind == "linear")
    return ccmac.Problem(agents, q=q, m=m, sense=sense, z_lower=z_lower, z_upper=z_upper)


def _contradictory(seed: int) -> ccmac.Problem:
    """sum_i a_i'x_i <= (or >=) something that no x within its bounds reaches."""
    rng = np.random.default_rng([22, seed])
    problem = random_limited(seed, "linear")
    sign = float(rng.choice([-1.0, 1.0]))
    agents = []
    reach = 0.0
    for agent in problem.agents.values():
        a = rng.standard_normal(agent.A.shape[1])
        ends = np.where(sign * a > 0, agent.lower, agent.upper)  # the least of sign a'x
        reach += float(a @ ends)
        A = np.vstack([agent.A.toarray() if sp.issparse(agent.A) else agent.A, a])
        B = np.vstack([agent.B, np.zeros(problem.q)])
        b = np.append(agent.b, 0.0)
        agents.append(replace(agent, A=A, B=B, b=b))
    agents[0].b[-1] = reach - sign * float(rng.choice([0.01, 1.0]))
    old = np.full(problem.m, "==") if problem.sense is None else problem.sense
    sense = np.append(old, "<=" if sign > 0 else ">=")
    bounds = {"z_lower": problem.z_lower, "z_upper": problem.z_upper}
    return ccmac.Problem(agents, q=problem.q, sense=sense, **bounds)


def _slack(rng: np.random.Generator, sense: Any) -> Any:
    room = rng.choice([0.0, 0.1, 1.0], len(sense))
    return np.where(sense == "<=", room, np.where(sense == ">=", -room, 0.0))


def _bounds(rng: np.random.Generator, v: Any, everywhere: bool) -> tuple[Any, Any]:
    room = rng.choice([0.0, 0.2, 2.0, np.inf], (2, len(v)))
    if everywhere:
        room[np.isinf(room)] = 3.0
    return v - room[0], v + room[1]


def _objective(rng: np.random.Generator, kind: str, d: int, q: int) -> Objective:
    if kind == "separable":
        x = 3 * rng.standard_normal(d)
        z = 3 * rng.standard_normal(q)
        return Separable(SquaredDistance(1.0, x), SquaredDistance(0.5, z))
    slope = 3 * rng.standard_normal(d + q)
    if kind in ("linear", "open"):
        return Quadratic(np.zeros(d + q), slope)
    root = rng.standard_normal((d + q, d + q))
    return Quadratic(root @ root.T + 0.1 * np.eye(d + q), slope)


@dataclass(frozen=True)
class Reference:
    """What Clarabel finds: status, value and, where it is unique, the point."""

    status: str
    value: float
    x: list[Any]
    z: Any


def reference(problem: ccmac.Problem) -> Reference:
    """The problem as stated, row by row, given to CVXPY."""
    import cvxpy as cp

    x = [cp.Variable(d) for d in problem.d.values()]
    z = cp.Variable(problem.q) if problem.q else None
    value = 0.0
    coupled = np.zeros(problem.m)
    rules = []
    for v, (i, agent) in zip(x, problem.agents.items(), strict=True):
        both = v if z is None else cp.hstack([v, z])
        H, g, constant = agent.objective.quadratic(problem.d[i], problem.q)
        H = H.toarray() if sp.issparse(H) else H
        value += constant - g @ both
        if H.any():
            value += 0.5 * cp.quad_form(both, cp.psd_wrap(H))
        if problem.m:  # CVXPY 1.7 knows no matrix without rows
            coupled = coupled - agent.b + agent.A @ v
            coupled = coupled + (0 if z is None or agent.B is None else agent.B @ z)
        rules += _rules(agent.C, agent.c, agent.C_sense, v)
        rules += _rules(agent.D, agent.e, agent.D_sense, z)
        rules += _within(v, agent.lower, agent.upper)
    rules += _related(coupled, 0.0, problem.sense, problem.m)
    if z is not None:
        rules += _within(z, problem.z_lower, problem.z_upper)
    stated = cp.Problem(cp.Minimize(value), rules)
    try:
        stated.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    except cp.error.SolverError:  # it gives up on some linear problems without a solution
        stated.solve(solver="SCIPY")
    point = [np.zeros(0) if v.value is None else v.value for v in x]
    return Reference(
        stated.status, float(stated.value), point, np.zeros(0) if z is None else z.value
    )


def _rules(block: Any, right: Any, sense: Any, v: Any) -> list[Any]:
    if block is None or not block.shape[0] or v is None:
        return []
    return _related(block @ v, right, sense, block.shape[0])


def _related(left: Any, right: Any, sense: Any, rows: int) -> list[Any]:
    if not rows:
        return []
    gap = left - right
    sign = np.zeros(rows) if sense is None else signs(sense)
    found = []
    for s in (0.0, 1.0, -1.0):
        where = np.flatnonzero(sign == s)
        if where.size:
            found.append(gap[where] == 0 if s == 0 else s * gap[where] <= 0)
    return found


def _within(v: Any, lower: Any, upper: Any) -> list[Any]:
    found = []
    for bound, s in ((lower, -1.0), (upper, 1.0)):
        if bound is not None and np.isfinite(bound).any():
            where = np.flatnonzero(np.isfinite(bound))
            found.append(s * (v[where] - bound[where]) <= 0)
    return found


def kkt(problem: ccmac.Problem, result: Any) -> dict[str, float]:
    """Largest violations of the optimality conditions, in the user's rows.

    ``signs`` of prices, ``slackness`` |price| * room, ``stationarity`` of the Lagrangian.
    """
    price = result.multipliers
    z = np.asarray(result.z)
    coupled = np.zeros(problem.m)
    on_z = price.z_upper - price.z_lower
    worst = {"signs": 0.0, "slackness": 0.0, "stationarity": 0.0}

    def row(name: str, values: Any) -> None:
        worst[name] = max(worst[name], float(np.max(np.abs(values), initial=0.0)))

    def judged(gap: Any, y: Any, sense: Any) -> None:
        sign = np.zeros(len(y)) if sense is None else signs(sense)
        row("signs", np.minimum(sign * y, 0.0))
        row("slackness", np.where(sign != 0, y * gap, 0.0))

    def bounded(v: Any, low: Any, high: Any, lower: Any, upper: Any) -> None:
        row("signs", np.minimum([*low, *high], 0.0))
        for y, bound in ((low, lower), (high, upper)):
            if bound is not None:
                there = np.isfinite(bound)
                row("slackness", y[there] * (v - bound)[there])
                row("signs", y[~there])

    for k, agent in enumerate(problem.agents.values()):
        x = result.x[k]
        r_x, r_z = agent.objective.gradient(x, z)
        r_x = r_x + agent.A.T @ price.coupled + price.upper[k] - price.lower[k]
        r_z = r_z + agent.B.T @ price.coupled
        coupled += agent.A @ x + agent.B @ z - agent.b
        if agent.C is not None:
            r_x = r_x + agent.C.T @ price.local[k]
            r_z = r_z + agent.D.T @ price.shared[k]
            judged(agent.C @ x - agent.c, price.local[k], agent.C_sense)
            judged(agent.D @ z - agent.e, price.shared[k], agent.D_sense)
        row("stationarity", r_x)
        on_z = on_z + r_z
        bounded(x, price.lower[k], price.upper[k], agent.lower, agent.upper)
    row("stationarity", on_z)
    judged(coupled, price.coupled, problem.sense)
    bounded(z, price.z_lower, price.z_upper, problem.z_lower, problem.z_upper)
    return worst
