"""Checks that an objective keeps its word; for its author's tests and for ``Custom`` at run time.

- :func:`gradient_slope`: the gradient belongs to the value (Taylor remainder of second order);
- :func:`lipschitz_probe`: the declared smoothness and strong convexity hold where probed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from ccmac.errors import AssumptionWarning
from ccmac.inputs import Array
from ccmac.linalg.tolerances import EPS
from ccmac.objectives.base import Objective
from ccmac.objectives.custom import Custom, Rates


class Probe(NamedTuple):
    """The largest and smallest rates of change of the gradient seen, and the gradients spent."""

    smoothness: float
    strong_convexity: float
    gradients: int


class HasAgents(Protocol):
    """What a problem shows of itself here."""

    @property
    def agents(self) -> Mapping[int, Any]: ...
    @property
    def d(self) -> Mapping[int, int]: ...
    @property
    def q(self) -> int: ...


def gradient_slope(
    objective: Objective, d: int, q: int, rng: np.random.Generator, *, scale: float = 1.0
) -> float:
    """Order of |f(u + hv) - f(u) - h <grad f(u), v>| in h: about 2 (or more) for a right gradient.

    A wrong gradient gives 1. The median of the local orders over h = 10^-1 ... 10^-5 is returned;
    inf when the remainder drowns in roundoff (f is affine there). Cost: 1 gradient.
    """
    u = scale * rng.standard_normal(d + q)
    v = rng.standard_normal(d + q)
    start = objective.value(u[:d], u[d:])
    derivative = float(np.concatenate(objective.gradient(u[:d], u[d:])) @ v)
    steps = 10.0 ** -np.arange(1.0, 5.25, 0.5)
    remainders = []
    noise = []
    for h in steps:
        moved = u + h * v
        value = objective.value(moved[:d], moved[d:])
        remainders.append(abs(value - start - h * derivative))
        noise.append(100 * EPS * (abs(value) + abs(start) + abs(h * derivative)))
    seen = np.array(remainders) > np.array(noise)
    if np.count_nonzero(seen) < 2:
        return math.inf
    order = np.diff(np.log10(np.array(remainders)[seen])) / np.diff(np.log10(steps[seen]))
    return float(np.median(order))


def lipschitz_probe(
    objective: Objective,
    d: int,
    q: int,
    rng: np.random.Generator,
    *,
    agent: int | None = None,
    probes: int = 4,
    powers: int = 6,
) -> Probe:
    """Compare ||g(a) - g(b)|| with L ||a - b||, and <g(a) - g(b), a - b> with mu ||a - b||^2.

    Next to random pairs, power iterations on differences of the gradient turn a - b towards the
    directions of largest and smallest curvature. A rate beyond the declared constants is certain
    proof against them (the converse is not) and leads to an ``AssumptionWarning``. Cost:
    probes * (2 + 2 powers) gradients.
    """
    declared = objective.curvature(d, q)
    rates = Rates()
    spent = 0

    def slope(u: Array) -> Array:
        nonlocal spent
        spent += 1
        with np.errstate(all="ignore"):
            return np.concatenate(objective.gradient(u[:d], u[d:]))

    def compare(a: Array, at_a: Array, b: Array) -> Array:
        at_b = slope(b)
        rates.see(a, at_a, b, at_b, declared.L)
        return (at_b - at_a) / float(np.linalg.norm(b - a))

    for _ in range(probes if d + q else 0):
        a = 10.0 ** rng.uniform(-1, 1) * rng.standard_normal(d + q)
        at_a = slope(a)
        compare(a, at_a, 10.0 ** rng.uniform(-1, 1) * rng.standard_normal(d + q))
        h = 1e-3 * (1.0 + float(np.linalg.norm(a)))
        for largest in (True, False):
            v = _unit(rng.standard_normal(d + q))
            for _ in range(powers):
                change = compare(a, at_a, a + h * v)
                v = _unit(change if largest else rates.high * v - change, otherwise=v)
    if text := rates.refute(declared.L, declared.mu):
        _warn(agent, text)
    return Probe(rates.high, rates.low, spent)


def _unit(v: Array, otherwise: Array | None = None) -> Array:
    length = float(np.linalg.norm(v))
    if not (math.isfinite(length) and length > 0):
        return v if otherwise is None else otherwise
    return v / length


def _warn(agent: int | None, text: str) -> None:
    where = "objective" if agent is None else f"agent {agent}, objective"
    warnings.warn(AssumptionWarning(f"{where}: {text}"), stacklevel=3)


def check_problem(problem: HasAgents, seed: int = 0) -> int:
    """Probe every ``Custom`` objective held here; warn where it breaks its word.

    Returns how many parallel gradients were spent (0 without ``Custom``), for the ledger.
    """
    spent = 0
    for i, agent in problem.agents.items():
        objective = agent.objective
        if not isinstance(objective, Custom) or not objective.capabilities - {"prox"}:
            continue
        rng = np.random.default_rng([seed, i])
        d = problem.d[i]
        q = problem.q
        probe = lipschitz_probe(objective, d, q, rng, agent=i)
        spent = max(spent, probe.gradients)
        if "gradient" in objective.capabilities:
            spent = max(spent, probe.gradients + 1)
            order = gradient_slope(objective, d, q, rng)
            if order < 1.5:
                _warn(
                    i,
                    f"value and gradient disagree (Taylor remainder of order {order:.2f} "
                    "instead of 2); check the gradient's formula",
                )
    return spent
