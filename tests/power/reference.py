"""The same dispatch stated in CVXPY, from the grid alone, and solved by Clarabel."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmac.power import Dispatch
from ccmac.power.model import EFFICIENCY

RESERVE_PRICE = 1.0  # per MW and hour


def unique(case: Dispatch, result: Any) -> Any:
    """Buses whose price is determined: no prices of active rows cancel there (one hour)."""
    grid = case.grid
    p = case.generation(result)[0] / grid.base
    flow = case.flows(result)[0] / grid.base
    units = len(p)
    buses = grid.buses
    lines = np.zeros((grid.lines, buses))
    lines[np.arange(grid.lines), grid.line_from] += grid.susceptance
    lines[np.arange(grid.lines), grid.line_to] -= grid.susceptance
    ends = (np.abs(lines) > 0) * np.sign(lines)
    at = np.zeros((buses, units))
    at[grid.unit_bus, np.arange(units)] = 1
    full = np.abs(flow) >= grid.rating - 1e-6
    stuck = (p <= grid.p_min + 1e-6) | (p >= grid.p_max - 1e-6)
    rows = np.block(
        [
            [at, -ends.T @ lines],
            [np.zeros((full.sum(), units)), lines[full]],
            [np.eye(units)[stuck], np.zeros((stuck.sum(), buses))],
            [np.zeros((1, units)), np.eye(buses)[[grid.reference]]],
        ]
    )
    U, s, _ = np.linalg.svd(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    free = U[:, np.count_nonzero(s > 1e-9 * s[0]) :]
    return np.linalg.norm(free[:buses], axis=1) <= 1e-9


def clarabel(case: Dispatch) -> tuple[float, Any]:
    """(cost of generation, prices per MWh by hours and buses)."""
    import cvxpy as cp

    grid = case.grid
    ask = case.model.ask
    hours = ask.hours
    units = len(grid.p_max)
    buses = grid.buses
    ends = np.zeros((buses, grid.lines))
    ends[grid.line_from, np.arange(grid.lines)] += 1
    ends[grid.line_to, np.arange(grid.lines)] -= 1
    at = np.zeros((buses, units))
    at[grid.unit_bus, np.arange(units)] = 1
    stores = len(ask.storage)
    p = cp.Variable((hours, units))
    theta = cp.Variable((hours, buses))
    z = cp.Variable(hours)
    charge, discharge, energy = (cp.Variable((hours, max(stores, 1))) for _ in range(3))
    least, most = grid.flow_limits
    above = np.flatnonzero(np.isfinite(most))
    below = np.flatnonzero(np.isfinite(least))
    worth = {k: cp.Variable(hours) for k in grid.pieces}
    shed = cp.Variable((hours, buses), nonneg=True)
    rules_of_shed = [shed <= np.maximum(case.model.demand, 0) * (ask.shed is not None)]
    cost = 0.0
    rules = rules_of_shed
    balances = []
    for t in range(hours):
        flow = cp.multiply(grid.susceptance, ends.T @ theta[t] - grid.shift)
        net = at @ p[t] + shed[t] - ends @ flow - case.model.demand[t]
        for k, store in enumerate(ask.storage):
            unit = np.eye(buses)[store.bus]
            net = net + unit * (discharge[t, k] - charge[t, k])
        balances.append(net == 0)
        rules += [p[t] >= grid.p_min, p[t] <= grid.p_max, theta[t, grid.reference] == 0]
        if above.size:
            rules += [flow[above] <= most[above], flow[below] >= least[below]]
        for k, lines in grid.pieces.items():
            rules += [worth[k][t] >= lines[:, 0] * p[t, k] + lines[:, 1]]
            cost += worth[k][t]
        cost += (ask.shed or 0.0) * grid.base * cp.sum(shed[t])
        cost += cp.sum(cp.multiply(grid.cost[:, 0], cp.square(p[t]))) + grid.cost[:, 1] @ p[t]
        cost += float(grid.cost[:, 2].sum())
        if ask.ramp is not None and t:
            rules.append(cp.abs(p[t] - p[t - 1]) <= cp.multiply(ask.ramp, grid.p_max))
        if ask.ramp is not None and not t and ask.before is not None:
            rules.append(cp.abs(p[0] - ask.before) <= cp.multiply(ask.ramp, grid.p_max))
    for k, store in enumerate(ask.storage):
        before = store.stored
        for t in range(hours):
            gained = EFFICIENCY * charge[t, k] - discharge[t, k] / EFFICIENCY
            rules += [energy[t, k] == before + gained, energy[t, k] <= store.energy]
            rules += [energy[t, k] >= (store.final if t == hours - 1 else 0.0)]
            before = energy[t, k]
        rules += [charge[:, k] >= 0, charge[:, k] <= store.power]
        rules += [discharge[:, k] >= 0, discharge[:, k] <= store.power]
    paid = 0.0
    if ask.reserve:
        paid = RESERVE_PRICE * grid.base * cp.sum(z)
        rules += [grid.p_max.sum() - cp.sum(p, axis=1) >= z]
        rules += [z >= ask.reserve * case.model.demand.sum(axis=1)]
    stated = cp.Problem(cp.Minimize(cost + paid), balances + rules)
    stated.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_feas=1e-10)
    assert stated.status == "optimal", stated.status
    value = float(cost.value) if hasattr(cost, "value") else float(cost)
    prices = np.array([-rule.dual_value for rule in balances]) / grid.base
    return value, prices
