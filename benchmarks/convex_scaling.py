"""Executed counts of the certified schedules against accuracy and cross factor, with slopes.

    python benchmarks/convex_scaling.py [--parts continuation factor sliding factors restarts]

Problems with two channels of equations whose principal angles are all equal, so that the cross
factor chi is exact. "First hit" is where the criterion first holds by true values (a dense KKT
solution, or a linear program); the schedules run to their ends all the same. Every executed ledger
is compared with the schedule's formula. Prints Markdown tables; fitted exponents follow each.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import cvxpy
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

import ccmac
from ccmac.methods import CrossContinuation, CrossSliding
from ccmac.objectives import L1, LeastSquares, SquaredDistance, Sum
from ccmac.paper.schedules.continuation import certified_schedule
from ccmac.results import Result
from ccmac.runtime import InProcess

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Equations:
    """K w = v, K = [U; cU + sV] with orthonormal rows in U and V: chi^2 = (1 + c)/(1 - c)."""

    K: Array
    v: Array
    chi: float

    @classmethod
    def random(cls, d: int, rows: int, chi: float, seed: int) -> Equations:
        """``rows`` equations in two channels of equal size, with a random feasible point."""
        rng = np.random.default_rng(seed)
        U, V = np.split(np.linalg.qr(rng.standard_normal((d, rows)))[0].T, 2)
        c = (chi**2 - 1) / (chi**2 + 1)
        K = np.vstack([U, c * U + math.sqrt(1 - c * c) * V])
        return cls(K, K @ rng.standard_normal(d), chi)

    @property
    def channels(self) -> list[tuple[Array, Array]]:
        """As a Stack takes them."""
        half = len(self.v) // 2
        return [(self.K[:half], self.v[:half]), (self.K[half:], self.v[half:])]

    def distance(self, w: Array) -> float:
        """||K w - v|| / sigma."""
        sigma = math.sqrt(2.0 / (1.0 + self.chi**2))
        return float(np.linalg.norm(self.K @ w - self.v)) / sigma


@dataclass
class FirstHit:
    """Callback: the first iterate with F - F* <= eps and steepness dist <= eps."""

    equations: Equations
    value: Any
    best: float
    steepness: float  # L R (smooth) or M
    epsilon: float
    count: int = 0

    def __call__(self, count: int, state: Any) -> None:
        """After every driver step, until found."""
        if self.count:
            return
        w = state.w
        far = self.steepness * self.equations.distance(w)
        if self.value(w) - self.best <= self.epsilon and far <= self.epsilon:
            self.count = count


@dataclass
class Table:
    """Rows printed as they come; remembered for the slopes."""

    columns: tuple[str, ...]
    rows: list[list[float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        print("\n|", " | ".join(self.columns), "|")
        print("|", " | ".join("---:" for _ in self.columns), "|")

    def add(self, *row: float) -> None:
        """Print one row."""
        self.rows.append(list(row))
        cells = [f"{x:,}" if isinstance(x, int) else f"{x:.4g}" for x in row]
        print("|", " | ".join(cells), "|", flush=True)

    def slopes(self, against: str, names: Iterable[str], last: int = 0) -> None:
        """Least-squares exponents of ``names`` in ``against``, over the ``last`` rows (0: all)."""
        rows = np.array(self.rows, dtype=float)[-last:]
        x = np.log(rows[:, self.columns.index(against)])
        for name in names:
            y = rows[:, self.columns.index(name)]
            if (y > 0).all():
                slope = np.polyfit(x, np.log(y), 1)[0]
                ratios = ", ".join(f"{r:.2f}" for r in y[1:] / y[:-1])
                print(f"{name} ~ ({against})^{slope:.3f}; ratios {ratios}", flush=True)


def expect(result: Result, **counts: int) -> None:
    """The executed ledger is the predicted one, to the unit."""
    for unit, predicted in counts.items():
        if result.ledger[unit] != predicted:
            raise AssertionError(f"{unit}: executed {result.ledger[unit]}, predicted {predicted}")


class SmoothProblem:
    """min 0.5 ||M w - y||^2, M of rank 12 in 30 unknowns with singular values 1 ... 1/30."""

    def __init__(self, chi: float) -> None:
        rng = np.random.default_rng(0)
        self.equations = Equations.random(30, 10, chi, 1)
        left, right = (np.linalg.qr(rng.standard_normal((k, 12)))[0] for k in (12, 30))
        self.M, self.y = (left * np.geomspace(1, 1 / 30, 12)) @ right.T, rng.standard_normal(12)
        K = self.equations.K
        v = self.equations.v
        kkt = np.block([[self.M.T @ self.M, K.T], [K, np.zeros((10, 10))]])
        right_hand_side = np.concatenate([self.M.T @ self.y, v])
        self.solution = np.linalg.lstsq(kkt, right_hand_side, rcond=1e-12)[0][:30]
        self.radius = float(np.linalg.norm(self.solution))
        self.stack = ccmac.Stack(LeastSquares(self.M, self.y), self.equations.channels)

    def value(self, w: Array) -> float:
        """F."""
        return float(0.5 * np.sum((self.M @ w - self.y) ** 2))

    def epsilon(self, time: float) -> float:
        """L R^2 / T^2, a little more: rounding must not decide a stage at the schedule's log2."""
        return 1.001 * (self.radius / time) ** 2

    def certified(self, time: float) -> tuple[Result, int]:
        """The certified schedule for T_cvx = time (L = 1), and its first hit (gradients)."""
        epsilon = self.epsilon(time)
        hit = FirstHit(self.equations, self.value, self.value(self.solution), self.radius, epsilon)
        result = ccmac.solve(
            self.stack,
            method=CrossContinuation(
                schedule="certified", radius=self.radius, accuracy=epsilon, multiplier_budget=1.0
            ),
            callback=hit,
        )
        L = float(np.linalg.norm(self.M, 2) ** 2)
        plan = certified_schedule(L, self.radius, epsilon, 1.0)
        degree = math.ceil(self.equations.chi - 1e-6)
        expect(result, gradients=plan.gradients(), affine=plan.affine(degree))
        return result, 1 + hit.count

    def practical(self, time: float) -> Result:
        """The same criterion, stopped by its proof."""
        method = CrossContinuation(radius=self.radius, accuracy=self.epsilon(time))
        return ccmac.solve(self.stack, method=method)


def continuation() -> None:
    """eps / 4, over three decades."""
    problem = SmoothProblem(3.0)
    table = Table(
        ("T", "gradients", "affine", "first hit: gradients", "practical: gradients", "affine, all")
    )
    for time in (2, 4, 8, 16, 32, 64):
        result, hit = problem.certified(time)
        quick = problem.practical(time).ledger
        counts = [result.ledger[unit] for unit in ("gradients", "affine")]
        table.add(time, *counts, hit, *[quick.total(unit) for unit in ("gradients", "affine")])
    table.slopes("T", table.columns[1:])


def factor() -> None:
    """Cross factors at T = 4."""
    table = Table(("chi", "gradients", "affine", "first hit: gradients"))
    for chi in (1, 2, 4, 8):
        result, hit = SmoothProblem(chi).certified(4)
        table.add(chi, *[result.ledger[unit] for unit in ("gradients", "affine")], hit)
    table.slopes("chi", ("gradients", "affine"))


class KinkedProblem:
    """min ||x - a||_1 + 0.3 ||x||_1 (+ ridge/2 ||x||^2), with its true value and solution."""

    def __init__(self, chi: float, d: int = 30, rows: int = 8, ridge: float = 0.0) -> None:
        self.equations = Equations.random(d, rows, chi, 2)
        self.ridge = ridge
        self.a = np.random.default_rng(3).standard_normal(d)
        self.solution = self._linear_program() if not ridge else self._conic_program()
        self.best, self.radius = self.value(self.solution), float(np.linalg.norm(self.solution))
        parts: list[Any] = [L1(1.0, centre=self.a), L1(0.3)]
        if ridge:
            parts.append(SquaredDistance(ridge))
        self.stack = ccmac.Stack(Sum(*parts), self.equations.channels)
        # ||x|| <= 4R on B(x*, 3R).
        self.lipschitz = 1.3 * math.sqrt(d) + 4 * ridge * self.radius

    def value(self, x: Array) -> float:
        """F."""
        kinks = np.abs(x - self.a).sum() + 0.3 * np.abs(x).sum()
        return float(kinks + 0.5 * self.ridge * (x @ x))

    def _linear_program(self) -> Array:
        d = len(self.a)
        K = self.equations.K
        eye = np.eye(d)
        zero = np.zeros((d, d))
        rows = [[eye, -eye, zero], [-eye, -eye, zero], [eye, zero, -eye], [-eye, zero, -eye]]
        right = np.concatenate([self.a, -self.a, np.zeros(2 * d)])
        cost = np.concatenate([np.zeros(d), np.ones(d), 0.3 * np.ones(d)])
        found = linprog(
            cost,
            np.block(rows),
            right,
            np.hstack([K, np.zeros((len(K), 2 * d))]),
            self.equations.v,
            bounds=(None, None),
        )
        return np.asarray(found.x[:d])

    def _conic_program(self) -> Array:
        x = cvxpy.Variable(len(self.a))
        cost = (
            cvxpy.norm1(x - self.a) + 0.3 * cvxpy.norm1(x) + self.ridge / 2 * cvxpy.sum_squares(x)
        )
        equality = self.equations.K @ x == self.equations.v
        cvxpy.Problem(cvxpy.Minimize(cost), [equality]).solve(solver=cvxpy.CLARABEL)
        return np.asarray(x.value)

    def certified(self, epsilon: float, **options: Any) -> tuple[Result, FirstHit]:
        """The certified schedule, and the outer step of its first hit."""
        hit = FirstHit(self.equations, self.value, self.best, self.lipschitz, epsilon)
        method = CrossSliding(
            schedule="certified", radius=self.radius, accuracy=epsilon, lipschitz=self.lipschitz
        )
        result = ccmac.solve(self.stack, method=method, **{"callback": hit, **options})
        found = result.certificates
        expect(result, affine=found["affine"], gradients=found["subgradients"])
        return result, hit


def sliding_row(problem: KinkedProblem, epsilon: float) -> list[float]:
    result, hit = problem.certified(epsilon)
    calls, subgradients = (result.ledger[unit] for unit in ("affine", "gradients"))
    inner = 2 * subgradients // calls
    gap = (problem.value(result.x[0]) - problem.best) / epsilon
    return [calls, subgradients, 2 * hit.count, inner * hit.count, gap]


SLIDING = ("affine", "subgradients", "first hit: affine", "first hit: subgradients")


def sliding() -> None:
    """eps / 2."""
    problem = KinkedProblem(3.0)
    table = Table(("eps", *SLIDING, "gap/eps"))
    for epsilon in (4.0, 2.0, 1.0, 0.5, 0.25):
        table.add(epsilon, *sliding_row(problem, epsilon))
    table.slopes("eps", SLIDING)


def factors() -> None:
    """Cross factor x 8."""
    table = Table(("chi", *SLIDING, "gap/eps"))
    for chi in (1, 8):
        table.add(chi, *sliding_row(KinkedProblem(chi), 0.5))
    table.slopes("chi", SLIDING)


def restarts() -> None:
    """A strongly convex F: cumulated counts at the ends of the phases of one run, eps / 4 each."""
    problem = KinkedProblem(2.0, d=8, rows=4, ridge=2.0)
    table = Table(("phase", "eps", "affine", "subgradients", "distance/(R_s/2)"))
    runtime = InProcess(ccmac.Network.complete(1))

    def watch(count: int, state: Any) -> None:
        number = state.phase
        if number > len(table.rows):
            half = problem.radius / 2**number
            far = float(np.linalg.norm(state.w - problem.solution)) / half
            spent = [runtime.ledger[unit] for unit in ("affine", "gradients")]
            table.add(number, problem.ridge * half**2 / 2, *spent, far)

    problem.certified(problem.ridge * problem.radius**2 / 8 / 4**2, callback=watch, runtime=runtime)
    table.slopes("eps", ("affine", "subgradients"))


PARTS = {
    "continuation": continuation,
    "factor": factor,
    "sliding": sliding,
    "factors": factors,
    "restarts": restarts,
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    for name in arguments.parse_args().parts:
        PARTS[name]()


if __name__ == "__main__":
    main()
