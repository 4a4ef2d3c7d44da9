"""Ordinary problems of every kind that a proof is written for, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import ccmac
from ccmac.inputs import Array
from ccmac.objectives import (
    L1,
    ElasticNet,
    Hinge,
    Logistic,
    MaxAffine,
    Quadratic,
    Separable,
    SquaredDistance,
)
from cones.families import drawn

Made = tuple[ccmac.Problem, dict[str, Any]]


def plants(random: np.random.Generator) -> Made:
    """The README's problem."""
    agents = [
        ccmac.Agent(SquaredDistance(1.0, [float(k)]), A=[[1.0]], b=[2.0])
        for k in random.permutation(4)
    ]
    return ccmac.Problem(agents, q=0), {}


def table(random: np.random.Generator, rows: int = 40) -> tuple[Array, Array]:
    """Columns and labels."""
    X = random.standard_normal((rows, 8))
    return X, np.sign(X @ random.standard_normal(8) + 0.3 * random.standard_normal(rows))


def vertical(loss: str) -> Callable[[np.random.Generator], Made]:
    """Vertical learning."""

    def make(random: np.random.Generator) -> Made:
        return ccmac.vfl.problem(*table(random), 4, loss=loss), {}

    return make


def estimated(loss: str) -> Callable[[np.random.Generator], Made]:
    """The same with an intercept and weights of the rows, as the estimators have it."""

    def make(random: np.random.Generator) -> Made:
        X, y = table(random)
        if loss not in ("logistic", "hinge"):
            y = np.round(np.exp(0.3 * X[:, 0]) + random.uniform(size=len(y)), 2)
        weights = random.uniform(0.5, 2.0, len(y))
        more: dict[str, Any] = {"intercept": True, "sample_weight": weights}
        return ccmac.vfl.problem(X, y, 4, loss=loss, **more), {}

    return make


def mixed(random: np.random.Generator) -> Made:
    """All four kinds of rows, some of them twice; curvature on their kernel only."""
    agents = []
    for k in range(4):
        factor = random.standard_normal((4, 7))
        C = random.standard_normal((1, 4))
        agents.append(
            ccmac.Agent(
                Quadratic(factor.T @ factor, random.standard_normal(7)),
                A=random.standard_normal((2, 4)),
                B=random.standard_normal((2, 3)),
                b=random.standard_normal(2),
                C=np.vstack([C, 2 * C]),
                c=[1.0, 2.0],
                D=None if k else random.standard_normal((1, 3)),
                e=None if k else [1.0],
            )
        )
    return ccmac.Problem(agents), {}


def logistic(random: np.random.Generator) -> Made:
    """A loss that is not quadratic, with local and coupled rows."""
    agents = [
        ccmac.Agent(
            Separable(
                x=Logistic(
                    random.standard_normal((6, 4)), np.sign(random.standard_normal(6)), ridge=0.1
                ),
                z=SquaredDistance(0.2),
            ),
            A=random.standard_normal((2, 4)),
            B=random.standard_normal((2, 3)),
            b=random.standard_normal(2),
            C=random.standard_normal((1, 4)),
            c=[1.0],
        )
        for _ in range(4)
    ]
    return ccmac.Problem(agents), {}


def masked(random: np.random.Generator) -> Made:
    """Rows that only sums are known of."""
    problem, _ = mixed(random)
    agents = [
        ccmac.Agent(SquaredDistance(1.0, random.standard_normal(7)[:4]), A=a.A, b=a.b)
        for a in problem.agents.values()
    ]
    return ccmac.Problem(agents, q=0), {"averaging": "masked"}


def bounded(
    *,
    sense: str | None = None,
    linear: bool = False,
    far: float = 0.0,
    upper: float = 1.0,
    strong: float = 0.0,
) -> Callable[[np.random.Generator], Made]:
    """A quadratic or linear program with bounds; ``far`` right-hand sides contradict them."""

    def make(random: np.random.Generator) -> Made:
        A = [random.standard_normal((2, 3)) for _ in range(4)]
        b = np.sum([M @ random.uniform(size=3) for M in A], axis=0) / 4 + far
        agents = []
        for M in A:
            factor = random.standard_normal((2, 3)) * (not linear)
            H = factor.T @ factor + strong * np.eye(3)
            f = Quadratic(H, random.standard_normal(3))
            agents.append(ccmac.Agent(f, A=M, b=b, lower=np.zeros(3), upper=np.full(3, upper)))
        return ccmac.Problem(agents, q=0, sense=sense), {}

    return make


def contradiction(random: np.random.Generator) -> Made:
    """Equations that no point meets."""
    row = random.standard_normal(2)
    agents = [ccmac.Agent(SquaredDistance(), A=[row, 2 * row], b=[1.0, 1.0]) for _ in range(3)]
    return ccmac.Problem(agents, q=0), {}


def kinked(name: str) -> Callable[[np.random.Generator], Made]:
    """Objectives with kinks: on entries, on rows, of maxima."""

    def make(random: np.random.Generator) -> Made:
        X, y = table(random)
        agents = []
        for k in range(4):
            own = X[:, 2 * k : 2 * k + 2]
            rows = {"A": random.standard_normal((1, 2)), "b": [0.5]}
            if name == "lasso":
                f: Any = Separable(x=L1(0.1), z=SquaredDistance(1 / 40, y))
                rows = {"A": own, "B": -np.eye(40) / 4, "b": np.zeros(40)}
            elif name == "machine":
                f = Separable(x=ElasticNet(0.01, 0.1), z=Hinge(None, y, 1 / 40))
                rows = {"A": own, "B": -np.eye(40) / 4, "b": np.zeros(40)}
            elif name == "hinges":
                f = Hinge(own, y, 1 / 40) + SquaredDistance(0.1)
            else:
                f = MaxAffine(random.standard_normal((7, 2))) + SquaredDistance(0.1)
            agents.append(ccmac.Agent(f, **rows))
        return ccmac.Problem(agents), {}

    return make


def dispatch(random: np.random.Generator) -> Made:
    """A grid."""
    case = ccmac.power.dc_opf("case118", areas=int(random.integers(3, 9)))
    return case.problem, {"network": case.network}


def conic(kind: int) -> Callable[[np.random.Generator], Made]:
    """Second-order cones: 0 with a solution, 1 contradictory, 2 unbounded."""

    def make(random: np.random.Generator) -> Made:
        return drawn(12 * int(random.integers(1000)) + 4 + kind)[1], {"network": "complete"}

    return make


CASES: dict[str, tuple[Callable[[np.random.Generator], Made], str]] = {
    "plants": (plants, "optimal"),
    "ridge": (vertical("squared"), "optimal"),
    "vertical logistic": (vertical("logistic"), "optimal"),
    "huber": (vertical("huber"), "optimal"),
    "quantiles": (estimated("quantile"), "optimal"),
    "support vectors": (estimated("hinge"), "optimal"),
    "classes": (estimated("logistic"), "optimal"),
    "counts": (estimated("poisson"), "optimal"),
    "mixed": (mixed, "optimal"),
    "logistic": (logistic, "optimal"),
    "masked": (masked, "optimal"),
    "quadratic program": (bounded(), "optimal"),
    "half bounded": (bounded(upper=np.inf, strong=0.1), "optimal"),
    "inequalities": (bounded(sense="<="), "optimal"),
    "linear program": (bounded(linear=True), "optimal"),
    "lasso": (kinked("lasso"), "optimal"),
    "machine": (kinked("machine"), "optimal"),
    "hinges": (kinked("hinges"), "optimal"),
    "maxima": (kinked("maxima"), "optimal"),
    "dispatch": (dispatch, "optimal"),
    "cones": (conic(0), "optimal"),
    "contradictory cones": (conic(1), "infeasible"),
    "falling in cones": (conic(2), "unbounded"),
    "far": (bounded(far=10.0), "infeasible"),
    "far inequalities": (bounded(far=-10.0, sense="<="), "infeasible"),
    "contradiction": (contradiction, "infeasible"),
    "falling": (bounded(linear=True, upper=np.inf), "unbounded"),
}


def solved(name: str, seed: int = 0) -> tuple[ccmac.Problem, ccmac.Result]:
    """One of them and its result."""
    make, status = CASES[name]
    problem, options = make(np.random.default_rng(seed))
    network = options.pop("network", "ring")
    result = ccmac.solve(problem, network, **options)
    assert result.status == status, (name, seed, result.status)
    return problem, result
