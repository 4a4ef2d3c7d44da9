"""Block scaling x = t x~, z = s z~: what it does to curvature, and how to balance it."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from ccmac.linalg.families import identity_multiple
from ccmac.problem import Problem
from ccmac.runtime.base import Runtime

Array = NDArray[np.float64]
AUGMENT_GAIN = 4.0


@dataclass(frozen=True)
class Constants:
    """Curvature of Phi under one scaling; ``augment`` is rho of the consensus augmentation."""

    mu: float
    L: float
    augment: float

    @property
    def condition(self) -> float:
        """kappa_f of the execution objective (inf when mu = 0)."""
        return self.L / self.mu if self.mu > 0 else np.inf


class CurvatureTable:
    """What the agents declare of themselves, known to everybody after one reduction of scalars:
    curvature, capabilities of the objective, and c when B_i = c I.
    """

    def __init__(self, problem: Problem, runtime: Runtime) -> None:
        self.problem, self.runtime = problem, runtime
        rows = []
        for i, agent in problem.agents.items():
            c = agent.objective.curvature(problem.d[i], problem.q)
            able = [float(name in agent.objective.capabilities) for name in ("quadratic", "prox")]
            multiple = 0.0 if agent.B is None else identity_multiple(agent.B)
            rows.append(
                [
                    c.L_x, c.mu_x, c.L_z, c.mu_z, c.L, c.mu, float(not c.separable), *able,
                    np.nan if multiple is None else multiple, problem.d[i],
                ]
            )  # fmt: skip
        self.rows = runtime.gather(np.array(rows, dtype=np.float64))
        self._scaled: dict[float, tuple[float, float]] = {}
        self.smooth = bool(np.isfinite(self.rows[:, 4]).all())  # every f_i has a Lipschitz gradient
        self.floor = 0.0

    @property
    def separable(self) -> bool:
        """Every f_i is g(x) + h(z)."""
        return not self.rows[:, 6].any()

    @property
    def size(self) -> int:
        """Execution variables of all agents: sum of d_i + q."""
        return int(self.rows[:, 10].sum()) + len(self.rows) * self.problem.q

    @property
    def quadratic(self) -> bool:
        """Every objective gives its Hessian and linear term."""
        return bool(self.rows[:, 7].all())

    @property
    def prox(self) -> bool:
        """Every objective has a prox."""
        return bool(self.rows[:, 8].all())

    @property
    def multiples(self) -> Array | None:
        """The beta_i when B_i = beta_i I for all agents (absent counts as 0), else None."""
        values = self.rows[:, 9]
        known = not np.isnan(values).any() and values.any() and self.problem.m == self.problem.q
        return values if known else None

    def block(self, column: int, reduce: str) -> float:
        """min or max over agents of one column (L_x, mu_x, L_z, mu_z, L, mu)."""
        values = self.rows[:, column]
        return float(values.min() if reduce == "min" else values.max())

    @property
    def convexity(self) -> tuple[float, float]:
        """(mu_x, mu_z) with f_i - (mu_x/2) ||x||^2 - (mu_z/2) ||z||^2 convex for every agent."""
        if self.separable:
            x, z = self.block(1, "min"), self.block(3, "min")
            return min(x, 1e300), min(z, 1e300)  # a block of size 0 has inf
        return self.block(5, "min"), self.block(5, "min")

    def balance(self) -> float:
        """s at which both blocks have the same geometric-mean curvature (t = 1)."""
        L_x, mu_x = self.block(0, "max"), self.block(1, "min")
        L_z, mu_z = self.block(2, "max"), float(np.mean(self.rows[:, 3]))
        if not self.separable:
            mu_x, mu_z = max(mu_x, self.block(5, "min")), max(mu_z, self.block(5, "min"))
        x, z = L_x * min(mu_x, L_x), L_z * min(mu_z, L_z)
        if x <= 0 or z <= 0 or not np.isfinite(x) or not np.isfinite(z):
            x, z = L_x**2, L_z**2
        return float((x / z) ** 0.25) if x > 0 and z > 0 and np.isfinite(x / z) else 1.0

    def regularized(self, condition: float) -> CurvatureTable:
        """The table of a strongly convex stand-in, for planning where curvature is missing.

        Blocks without strong convexity get L/condition; kinks count as curvature 1 where no other
        agent's block has a finite one.
        """
        other = copy.copy(self)
        other.rows, other._scaled = self.rows.copy(), {}
        for high, low in ((0, 1), (2, 3), (4, 5)):
            L = other.rows[:, high]
            known = L[np.isfinite(L) & (L > 0)]
            L[~np.isfinite(L)] = float(known.max()) if known.size else 1.0
            floor = np.full_like(L, (float(L.max()) or 1.0) / condition)
            other.rows[:, low] = np.maximum(other.rows[:, low], floor)
        other.floor = 1.0 / condition
        return other

    def at(self, s: float) -> Constants:
        """mu, L (and augmentation) of sum_i f_i(x, s z)."""
        if self.separable:
            mu_x, L_x = self.block(1, "min"), self.block(0, "max")
            h, L_z = s * s * self.rows[:, 3], s * s * self.block(2, "max")
            mu_x = mu_x if np.isfinite(mu_x) else np.inf
            plain = Constants(min(mu_x, float(h.min())), max(L_x, L_z), 0.0)
            # The augmentation lifts mu to the mean of the h_i at most: nothing to lift, no gain.
            if self.runtime.n == 1 or not np.isfinite([*h, L_x, L_z]).all() or h.max() <= 0:
                return plain
            rho, mu, L = best_augmentation(h, L_z, mu_x, L_x)
            better = mu > 0 and (plain.mu <= 0 or plain.condition > AUGMENT_GAIN * L / mu)
            return Constants(mu, L, rho) if better else plain
        if s not in self._scaled:
            pairs = [
                agent.objective.scaled_curvature(self.problem.d[i], self.problem.q, 1.0, s)
                for i, agent in self.problem.agents.items()
            ]
            both = self.runtime.gather(np.array(pairs, dtype=np.float64))
            self._scaled[s] = (float(both[:, 0].min()), float(both[:, 1].max()))
        mu, L = self._scaled[s]
        if self.floor:
            L = L if np.isfinite(L) else max(1.0, s * s) * self.block(4, "max")
            mu = max(mu, self.floor * L)
        return Constants(mu, L, 0.0)


def recovered_curvature(h: Array, augment: float) -> float:
    """lambda_min(diag(h) + augment (I - 11'/n)), by its secular equation."""
    n = len(h)
    if n == 1 or augment == 0:
        return float(h.min())
    if n <= 400:
        matrix = np.diag(h + augment) - augment / n
        return float(np.linalg.eigvalsh(matrix)[0])
    # 1 = (augment/n) sum 1/(h_i + augment - x), smallest root below min h + augment.
    low, high = float(h.min()), float(min(h.mean(), h.min() + augment))

    def secular(x: float) -> float:
        return float(augment / n * np.sum(1.0 / (h + augment - x)) - 1.0)

    if secular(high) <= 0:
        return high
    return float(scipy.optimize.brentq(secular, low, high))


def best_augmentation(h: Array, L_z: float, mu_x: float, L_x: float) -> tuple[float, float, float]:
    """(rho, mu, L) minimising the condition number L/mu of the augmented objective."""
    best = (0.0, min(mu_x, float(h.min())), max(L_x, L_z))
    top = max(L_x, L_z)
    for rho in np.concatenate([[0.0], top * np.geomspace(1e-3, 1e2, 26)]):
        mu = min(mu_x, recovered_curvature(h, float(rho)))
        L = max(L_x, L_z + float(rho))
        if mu > 0 and (best[1] <= 0 or L / mu < best[2] / best[1]):
            best = (float(rho), mu, L)
    return best
