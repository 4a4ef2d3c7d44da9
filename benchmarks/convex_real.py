"""Lasso, hinge-SVM and logistic regression without ridge on z, vertically split over a ring of 8.

    python benchmarks/convex_real.py [--data a9a mushrooms] [--problems lasso svm logistic]

For each problem: rounds until the primal objective P(w) = loss(Xw) + penalty(w) is within the
target of the reference (Clarabel), for ``cross-sliding`` (setup included) and for PDHG and, where
it applies, Condat-Vu on the stack without normalization. Those are tuned: a grid of scales and
steps in decades, then a pattern search around the best, to an eighth of a decade; neither their
setup nor their tuning is charged. The ratio is cross-sliding's rounds, setup included, over those
of the better baseline. The last column is a run of ``auto`` that stops by its own proof. Prints a
Markdown table.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import cvxpy
import numpy as np
from numpy.typing import NDArray

import ccmac
from ccmac import vfl
from ccmac.methods import CrossSliding, Request
from ccmac.paper.comparators.primal_dual import (
    CondatVuIteration,
    PdhgIteration,
    PrimalDualIteration,
)
from ccmac.paper.data import load
from ccmac.realizations.base import Realized
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace

Array = NDArray[np.float64]
AGENTS = 8
PROBLEMS: dict[str, dict[str, Any]] = {
    "lasso": {"loss": "squared", "regularization": 0.0, "l1": 1e-3, "target": 1e-3},
    "svm": {"loss": "hinge", "regularization": 1e-2, "l1": 0.0, "target": 1e-3},
    "logistic": {"loss": "logistic", "regularization": 1e-2, "l1": 0.0, "target": 1e-6},
}
PLAIN: dict[str, Any] = {"inner": 1, "outer": 1}
HALF_DECADE = 0.5
FINEST = 0.125
FLOORS = (-1.0, -2.0, 0.0, -3.0)  # log10
WEIGHTS = (-1.0, 0.0, -2.0, 1.0, -3.0, -4.0)  # log10
LIMIT = 6000  # rounds
Build = Callable[[Realized, float], PrimalDualIteration]


class Instance:
    """One data set and loss, with its reference value."""

    def __init__(self, data: str, kind: str) -> None:
        settings = dict(PROBLEMS[kind])
        self.target = settings.pop("target")
        self.loss, self.ridge, self.l1 = (settings[k] for k in ("loss", "regularization", "l1"))
        loaded = load(data)
        self.X, self.y = loaded.X, np.where(loaded.y == loaded.y.max(), 1.0, -1.0)
        self.problem = vfl.problem(self.X, self.y, AGENTS, **settings)
        self.reference = self._reference()

    def value(self, w: Array) -> float:
        """P(w)."""
        u = self.X @ w
        losses = {
            "squared": lambda: 0.5 * np.mean((u - self.y) ** 2),
            "hinge": lambda: np.mean(np.maximum(0.0, 1.0 - self.y * u)),
            "logistic": lambda: np.mean(np.logaddexp(0.0, -self.y * u)),
        }
        penalty = 0.5 * self.ridge * float(w @ w) + self.l1 * float(np.abs(w).sum())
        return float(losses[self.loss]()) + penalty

    def _reference(self) -> float:
        count, width = self.X.shape
        w = cvxpy.Variable(width)
        u = self.X @ w
        losses = {
            "squared": lambda: cvxpy.sum_squares(u - self.y) / (2 * count),
            "hinge": lambda: cvxpy.sum(cvxpy.pos(1 - cvxpy.multiply(self.y, u))) / count,
            "logistic": lambda: cvxpy.sum(cvxpy.logistic(-cvxpy.multiply(self.y, u))) / count,
        }
        penalty = self.ridge / 2 * cvxpy.sum_squares(w) + self.l1 * cvxpy.norm1(w)
        cvxpy.Problem(cvxpy.Minimize(losses[self.loss]() + penalty)).solve(solver=cvxpy.CLARABEL)
        return self.value(np.asarray(w.value))

    def gap(self, execution: Array) -> float:
        """(P(w) - P*)/P* of the weights in an execution vector."""
        blocks = []
        start = 0
        for size in self.problem.d.values():
            blocks.append(execution[start : start + size])
            start += size
        return (self.value(self.problem.weights(blocks)) - self.reference) / self.reference


def with_sliding(instance: Instance) -> tuple[str, float, ccmac.Result]:
    """Rounds of the solve phase until the target, as observed; then the run ends."""
    gaps: list[float] = []

    def watch(count: int, state: Any) -> bool:
        gaps.append(instance.gap(state.w))
        return gaps[-1] <= instance.target

    network = ccmac.Network.ring(AGENTS)
    result = ccmac.solve(
        instance.problem,
        network,
        CrossSliding(),
        tol=1e-9,
        callback=watch,
        max_iterations=LIMIT // 4,
    )
    rounds = result.ledger["rounds"] if gaps[-1] <= instance.target else math.inf
    return result.plan.method if result.plan else "", rounds, result


def certified_run(instance: Instance) -> ccmac.Result:
    """auto with its own stopping at tol = target P*: what a user pays who knows no reference."""
    tol = instance.target * instance.reference
    return ccmac.solve(instance.problem, ccmac.Network.ring(AGENTS), tol=tol, max_iterations=20000)


def baselines(instance: Instance) -> Iterator[tuple[str, Build]]:
    """PDHG always; Condat-Vu where the objective is smooth."""

    def pdhg(realized: Realized, weight: float) -> PrimalDualIteration:
        return PdhgIteration(realized, 1.0 / weight, weight / realized.system.interval.high)

    def condat_vu(realized: Realized, weight: float) -> PrimalDualIteration:
        L = realized.objective.L
        high = realized.system.interval.high
        return CondatVuIteration(realized, 0.999 / (L / 2 + weight * L), weight * L / high)

    yield "pdhg", pdhg
    if instance.loss == "logistic":
        yield "condat-vu", condat_vu


class Tuner:
    """Rounds of one baseline as a function of log10 of the scale's share and of the weight."""

    def __init__(self, instance: Instance, build: Build) -> None:
        self.instance = instance
        self.build = build
        self.best = math.inf
        self.limit = math.inf
        self.place = (0.0, 0.0)
        self._tried: set[tuple[float, float]] = set()
        self._realized: dict[float, Realized] = {}

    def realized(self, floor: float) -> Realized:
        """The plain stack at one scale."""
        if floor not in self._realized:
            self._realized[floor] = self._realize(floor)
        return self._realized[floor]

    def _realize(self, floor: float) -> Realized:
        problem = self.instance.problem
        work = Workspace(problem, InProcess(ccmac.Network.ring(AGENTS)))
        start = np.zeros(sum(problem.d.values())), np.zeros(problem.q)
        return CrossSliding(**PLAIN, floor=10.0**floor).realize(work, Request(1e-6, *start))

    def run(self, floor: float, weight: float) -> None:
        """One setting, until the target or until it has lost against the best so far."""
        if (floor, weight) in self._tried:
            return
        self._tried.add((floor, weight))
        realized = self.realized(floor)
        problem = self.instance.problem
        rounds = realized.system.cost["rounds"]
        iteration = self.build(realized, 10.0**weight)
        state = iteration.start(np.zeros(sum(problem.d.values())), np.zeros((AGENTS, problem.q)))
        for count in itertools.count(1):
            if count * rounds >= min(self.best, self.limit):
                return
            state = iteration.step(state)
            gap = self.instance.gap(state.w)
            if not math.isfinite(gap):
                return
            if gap <= self.instance.target:
                self.best = count * rounds
                self.place = (floor, weight)
                return

    def tune(self, limit: float) -> float:
        """The grid, then a pattern search with halved steps.

        ``limit`` (rounds) is doubled until some setting of the grid arrives.
        """
        self.limit = limit
        while not math.isfinite(self.best) and self.limit <= LIMIT:
            self._tried.clear()
            for floor, weight in itertools.product(FLOORS, WEIGHTS):
                self.run(float(floor), float(weight))
            self.limit *= 2
        step = HALF_DECADE
        while step >= FINEST and math.isfinite(self.best):
            floor, weight = centre = self.place
            for i, j in itertools.product((-step, 0.0, step), repeat=2):
                self.run(floor + i, weight + j)
            if self.place == centre:
                step /= 2
        return self.best


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--data", nargs="+", default=["a9a", "mushrooms"])
    arguments.add_argument("--problems", nargs="+", default=list(PROBLEMS))
    arguments.add_argument("--untuned", action="store_true", help="leave the baselines out")
    chosen = arguments.parse_args()
    print("| data | problem | target | method | rounds | setup | tuned baselines | ratio | auto |")
    print("|---|---|---:|---|---:|---:|---|---:|---:|")
    for data, kind in itertools.product(chosen.data, chosen.problems):
        instance = Instance(data, kind)
        method, rounds, result = with_sliding(instance)
        setup = result.ledger.of("setup")["rounds"]
        stopped = certified_run(instance)
        total = sum(stopped.ledger.of(phase)["rounds"] for phase in ("solve", "monitor"))
        true = (stopped.objective - instance.reference) / instance.reference
        tuned: dict[str, float] = {}
        if not chosen.untuned:
            for name, build in baselines(instance):
                tuner = Tuner(instance, build)
                tuned[name] = tuner.tune(rounds)
                print(f"{data} {kind} {name}: best at 10^{tuner.place}", file=sys.stderr)
        ratio = (rounds + setup) / min(tuned.values()) if tuned else math.nan
        cells = [
            data,
            kind,
            f"{instance.target:.0e}",
            method,
            f"{rounds:,.0f}",
            f"{setup:,}",
            ", ".join(f"{name} {best:,.0f}" for name, best in tuned.items()),
            f"{ratio:.2f}",
            f"{total:,} ({stopped.status}, true {true:.0e})",
        ]
        print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
