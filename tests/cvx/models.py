"""Random CVXPY problems of several owners, judged by Clarabel on the whole."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

import ccmac

KINDS = ("solvable",) * 7 + ("infeasible", "infeasible", "unbounded")


@dataclass
class Model:
    """A problem, who owns what, and what it was made to be."""

    problem: cp.Problem
    owners: dict[str, list[cp.Variable]]
    shared: list[cp.Variable]
    kind: str


def random_model(seed: int) -> Model:
    """LP, QP or SOCP atoms around a point that is feasible unless the model is made not to be."""
    rng = np.random.default_rng(seed)
    kind = KINDS[rng.integers(len(KINDS))]
    shared = [cp.Variable(int(rng.integers(1, 3)), name="z")] if rng.random() < 0.5 else []
    owners: dict[str, list[cp.Variable]] = {}
    for i in range(int(rng.integers(2, 7))):
        signs = rng.random(int(rng.integers(1, 3))) < 0.3
        owners[f"owner{i}"] = [
            cp.Variable(int(rng.integers(1, 5)), name=f"x{i}{k}", nonneg=bool(sign))
            for k, sign in enumerate(signs)
        ]
    everything = [v for own in owners.values() for v in own] + shared
    for v in everything:
        v.value = np.abs(rng.standard_normal(v.size))
    cost = 0
    constraints = []
    for own in owners.values():
        known = cp.hstack([*own, *(shared if rng.random() < 0.6 else [])])
        for _ in range(int(rng.integers(1, 4))):
            cost += term(rng, known)
        constraints += local_rows(rng, known)
    for _ in range(int(rng.integers(1, 4))):
        constraints.append(coupled_rows(rng, owners, shared))
    constraints += [cp.abs(v) <= 10 for v in everything]
    if kind == "infeasible":
        constraints.append(contradiction(rng, everything))
    if kind == "unbounded":
        free = cp.Variable(2, name="free")
        owners["owner0"].append(free)
        cost += free[0] - 2 * free[1]
        constraints += [free[0] - free[1] == 1, cp.sum(everything[0]) + free[0] >= -5]
    whole = cp.Minimize(cost) if rng.random() < 0.8 else cp.Maximize(-cost)
    return Model(cp.Problem(whole, constraints), owners, shared, kind)


def term(rng: np.random.Generator, x: cp.Expression) -> cp.Expression:
    """One convex term, some of which touch the kink or the boundary at the solution."""
    M = rng.standard_normal((int(rng.integers(1, 4)), x.size))
    y = M @ x - rng.standard_normal(M.shape[0])
    weight = float(rng.uniform(0.1, 3))
    terms = (
        lambda: cp.sum_squares(y),
        lambda: cp.norm1(y),
        lambda: cp.norm(y),
        lambda: cp.norm_inf(y),
        lambda: cp.max(y),
        lambda: cp.sum(cp.huber(y, 0.5)),
        lambda: cp.sum(cp.pos(y)),
        lambda: cp.sum(cp.power(y, 2)),
        lambda: cp.sum(y),
        lambda: cp.quad_form(y, np.eye(len(M)) + 0.5),
        lambda: cp.quad_over_lin(y, cp.sum(x) + 50),
        lambda: cp.maximum(y[0], cp.abs(x[0]), 0.3),
    )
    return weight * terms[rng.integers(len(terms))]()


def local_rows(rng: np.random.Generator, x: cp.Expression) -> list[cp.Constraint]:
    """Constraints of one owner that its values satisfy."""
    a = rng.standard_normal(x.size)
    slack = float(rng.choice([0.0, 0.1, 2.0]))
    rows = (
        lambda: a @ x == float(a @ x.value),
        lambda: a @ x <= float(a @ x.value) + slack,
        lambda: cp.norm(x) <= float(np.linalg.norm(x.value)) + slack + 0.1,
        lambda: cp.norm1(x) <= float(np.abs(x.value).sum()) + slack + 0.1,
        lambda: cp.sum_squares(x) <= float(x.value @ x.value) + slack + 0.1,
        lambda: x >= x.value - slack - 0.05,
    )
    return [rows[k]() for k in rng.choice(len(rows), int(rng.integers(0, 3)), replace=False)]


def coupled_rows(
    rng: np.random.Generator, owners: dict[str, list[cp.Variable]], shared: list[cp.Variable]
) -> cp.Constraint:
    """An affine or separable constraint of several owners."""
    size = int(rng.integers(1, 3))
    two = rng.choice(list(owners), 2, replace=False)
    parts = [v for name, own in owners.items() for v in own if name in two or rng.random() < 0.5]
    parts += shared
    total = sum(rng.standard_normal((size, v.size)) @ v for v in parts)
    slack = float(rng.choice([0.0, 0.5]))
    choice = rng.integers(4)
    if choice == 0:
        return total == total.value
    if choice == 1:
        return total >= total.value - slack
    if choice == 2:
        spent = sum(cp.norm1(v) for v in parts)
        return spent <= float(spent.value) + slack + 0.1
    return total <= total.value + slack


def contradiction(rng: np.random.Generator, variables: list[cp.Variable]) -> cp.Constraint:
    """What the box of all variables excludes."""
    if rng.random() < 0.3:
        return cp.sum(variables[0]) >= 10.5 * variables[0].size
    return sum(cp.sum(v) for v in variables) == 10.5 * sum(v.size for v in variables)


def disagreements(model: Model, tol: float = 1e-8) -> list[str]:
    """What differs from Clarabel on the whole: status, value, multipliers; empty where nothing."""
    problem = model.problem
    result = ccmac.solve(ccmac.cvx.split(problem, model.owners, model.shared), tol=tol)
    status = problem.status
    value = problem.value
    duals = [c.dual_value for c in problem.constraints]
    points = {v.id: v.value for v in problem.variables()}
    problem.solve(cp.CLARABEL)
    found = []
    if (result.status, status) == ("stalled", "optimal_inaccurate"):
        found.append("unproved")  # the point may be right all the same
    elif {status, result.status} != {problem.status.removesuffix("_inaccurate")}:
        return [f"{result.status} ({status}), Clarabel {problem.status}"]
    if model.kind != "solvable" or problem.status != "optimal":
        return [] if value == problem.value else [f"value {value}, Clarabel {problem.value}"]
    size = max(1.0, abs(problem.value))
    if abs(value - problem.value) > 1e-6 * size:
        found.append(f"value {value}, Clarabel {problem.value}")
    for v in problem.variables():
        v.value = points[v.id]
    off = max(float(np.max(c.violation(), initial=0.0)) for c in problem.constraints)
    if off > 1e-6:
        found.append(f"violated by {off}")
    bound = lagrangian_bound(model, duals)
    if abs(bound - problem.value) > 1e-5 * size:
        found.append(f"multipliers prove {bound}, value {problem.value}")
    return found


def lagrangian_bound(model: Model, duals: list[np.ndarray]) -> float:
    """min of the Lagrangian over a box: equal to the value if and only if multipliers are right."""
    problem = model.problem
    sign = 1 if isinstance(problem.objective, cp.Minimize) else -1
    lagrangian = sign * problem.objective.expr
    for c, dual in zip(problem.constraints, duals, strict=True):
        y = dual if isinstance(c, cp.constraints.Equality) else np.maximum(dual, 0.0)
        lagrangian += cp.sum(cp.multiply(y, c.expr))
    box = [cp.norm_inf(v) <= 10 for v in problem.variables()]
    enough = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-7)
    return float(sign * cp.Problem(cp.Minimize(lagrangian), box).solve(cp.CLARABEL, **enough))
