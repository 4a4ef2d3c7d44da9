"""Lasso, hinge-SVM and logistic regression without ridge on z, vertically split over a ring of 8.

    python benchmarks/convex_real.py [--data a9a mushrooms] [--problems lasso svm logistic]

For each problem: rounds until the primal objective P(w) = loss(Xw) + penalty(w) is within the
target of the reference (Clarabel), for ``auto`` and for the best of a grid of settings of
Condat-Vu and PDHG on the stack without normalization (their tuning is not charged). Prints a
Markdown table.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import cvxpy
import numpy as np
from numpy.typing import NDArray

import ccmac
from ccmac import vfl
from ccmac.baselines.condat_vu import CondatVu
from ccmac.baselines.pdhg import Pdhg
from ccmac.data import load
from ccmac.pipeline.realized import Realized
from ccmac.runtime import InProcess
from ccmac.solvers.base import ModelIteration, Solver, State
from ccmac.solvers.convex_realization import realize
from ccmac.solvers.method import Context

Array = NDArray[np.float64]
AGENTS = 8
PROBLEMS: dict[str, dict[str, Any]] = {
    "lasso": {"loss": "squared", "regularization": 0.0, "l1": 1e-3, "target": 1e-3},
    "svm": {"loss": "hinge", "regularization": 1e-2, "l1": 0.0, "target": 1e-3},
    "logistic": {"loss": "logistic", "regularization": 1e-2, "l1": 0.0, "target": 1e-6},
}
PLAIN = {"normalizer": "semi-iteration", "inner": 1, "outer": 1}
FLOORS = (0.005, 0.05, 0.5)
WEIGHTS = tuple(10.0**k for k in np.arange(-2.5, 0.01, 0.5))
LIMIT = 600


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
        blocks, start = [], 0
        for size in self.problem.d.values():
            blocks.append(execution[start : start + size])
            start += size
        return (self.value(self.problem.weights(blocks)) - self.reference) / self.reference


def with_auto(instance: Instance) -> tuple[str, float, ccmac.Result]:
    """Rounds of the solve phase until the target, as observed; then the run ends."""
    gaps: list[float] = []

    def watch(count: int, state: State) -> bool:
        gaps.append(instance.gap(state.vectors["w"]))
        return gaps[-1] <= instance.target

    network = ccmac.Network.ring(AGENTS)
    result = ccmac.solve(instance.problem, network, tol=1e-9, callback=watch, max_iterations=LIMIT)
    rounds = result.ledger["rounds"] if gaps[-1] <= instance.target else math.inf
    return result.plan.method if result.plan else "", rounds, result


def certified_run(instance: Instance) -> ccmac.Result:
    """auto with its own stopping at tol = target P*: what a user pays who knows no reference."""
    tol = instance.target * instance.reference
    return ccmac.solve(instance.problem, ccmac.Network.ring(AGENTS), tol=tol, max_iterations=20000)


def baselines(instance: Instance) -> Iterator[tuple[str, Callable[[Realized, float], Solver]]]:
    """PDHG always; Condat-Vu where the objective is smooth."""

    def pdhg(realized: Realized, weight: float) -> Solver:
        return Pdhg(1.0 / weight, weight / realized.system.interval.high)

    def condat_vu(realized: Realized, weight: float) -> Solver:
        L = realized.objective.L
        return CondatVu(0.999 / (L / 2 + weight * L), weight * L / realized.system.interval.high)

    yield "pdhg", pdhg
    if instance.loss == "logistic":
        yield "condat-vu", condat_vu


def best_tuned(instance: Instance, build: Callable[[Realized, float], Solver]) -> float:
    """Fewest rounds over the grid of scales and weights; slower ones are cut short."""
    best, network = math.inf, ccmac.Network.ring(AGENTS)
    d, q = sum(instance.problem.d.values()), instance.problem.q
    for floor in FLOORS:
        context = Context(
            instance.problem, InProcess(network), 1e-6, np.zeros(d), np.zeros(q),
            pinned={**PLAIN, "floor": floor},
        )  # fmt: skip
        realized = realize(context)
        rounds = realized.system.cost["rounds"]
        for weight in WEIGHTS:
            iteration = ModelIteration("tuned", build(realized, weight), realized)
            state = iteration.start(np.zeros(d), np.zeros((AGENTS, q)))
            for count in itertools.count(1):
                if count * rounds >= min(best, rounds * LIMIT):
                    break
                state = iteration.step(state)
                gap = instance.gap(state.vectors["w"])
                if gap <= instance.target:
                    best = count * rounds
                    break
                if not math.isfinite(gap):
                    break
    return best


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--data", nargs="+", default=["a9a", "mushrooms"])
    arguments.add_argument("--problems", nargs="+", default=list(PROBLEMS))
    arguments.add_argument("--untuned", action="store_true", help="leave the baselines out")
    chosen = arguments.parse_args()
    print("| data | problem | target | auto | rounds | setup | certified stop | tuned baselines |")
    print("|---|---|---:|---|---:|---:|---:|---|")
    for data in chosen.data:
        for kind in chosen.problems:
            instance = Instance(data, kind)
            method, rounds, result = with_auto(instance)
            stopped = certified_run(instance)
            total = sum(stopped.ledger.of(phase)["rounds"] for phase in ("solve", "monitor"))
            true = (stopped.objective - instance.reference) / instance.reference
            tuned = []
            if not chosen.untuned:
                tuned = [f"{n} {best_tuned(instance, b):,.0f}" for n, b in baselines(instance)]
            cells = [
                data, kind, f"{instance.target:.0e}", method, f"{rounds:,.0f}",
                f"{result.ledger.of('setup')['rounds']:,}",
                f"{total:,} ({stopped.status}, true {true:.0e})", ", ".join(tuned),
            ]  # fmt: skip
            print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
