"""A normalized stack given by a dense matrix, for tests that need many cheap residuals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ccmac.ledger import Cost
from ccmac.network import Network
from ccmac.objectives import LeastSquares
from ccmac.problem import Agent, Problem
from ccmac.realizations.base import AffineSystem, ExecutionObjective, Interval, Realized
from ccmac.runtime import InProcess
from ccmac.runtime.space import Space

Array = NDArray[np.float64]


class DenseSystem(AffineSystem):
    """G = K'K, g = K'v with the interval widened by ``loose``."""

    def __init__(self, space: Space, K: Array, v: Array, loose: float = 1.0) -> None:
        self.space = space
        self.K = K
        self.v = v
        values = np.linalg.eigvalsh(K @ K.T)
        positive = values[values > 1e-10 * values[-1]]
        self.interval = Interval(positive[0] / loose, positive[-1] * loose)
        self.empty = False

    def residual(self, w: Array) -> tuple[Array, Array]:
        """K'(K w - v)."""
        self.space.runtime.ledger.charge(affine=2)
        return self.K.T @ (self.K @ w - self.v), self.zero_multiplier()

    @property
    def cost(self) -> Cost:
        """Two affine calls."""
        return Cost(affine=2)

    def channel_residuals(self, w: Array) -> list[Array]:
        """One channel."""
        return [self.residual(w)[0]]

    def homogeneous(self) -> DenseSystem:
        """v = 0."""
        other = object.__new__(DenseSystem)
        other.__dict__.update(self.__dict__)
        other.v = np.zeros_like(self.v)
        return other


class Toy:
    """min 0.5 ||M w - y||^2 s.t. K w = v, rank-deficient in both, with its dense solutions."""

    def __init__(self, seed: int, *, loose: float = 1.0, spread: float = 1.0) -> None:
        rng = np.random.default_rng(seed)
        d = 14
        rows = 6
        rank = 5
        self.M, self.y = rng.standard_normal((rows, d)), rng.standard_normal(rows)
        left = np.linalg.qr(rng.standard_normal((rank + 1, rank)))[0]
        right = np.linalg.qr(rng.standard_normal((d, rank)))[0]
        K = left @ np.diag(np.linspace(1.0, spread, rank)) @ right.T
        inside = rng.standard_normal(d)
        runtime = InProcess(Network.complete(1))
        self.space = Space(runtime, [d], 0)
        problem = Problem([Agent(LeastSquares(self.M, self.y))], q=0, m=0)
        self.L = float(np.linalg.norm(self.M, 2) ** 2)
        objective = ExecutionObjective(problem, self.space, mu=0.0, L=self.L)
        self.system = DenseSystem(self.space, K, K @ inside, loose)
        self.realized = Realized("dense", self.space, objective, self.system)
        self.K, self.v, self.w0 = K, K @ inside, np.zeros(d)
        # H has a kernel on ker K; the least-norm solution of the KKT system is the nearest one.
        self.solution, _ = self.constrained(self.M.T @ self.M, self.M.T @ self.y)
        self.radius = float(np.linalg.norm(self.solution))

    def constrained(self, H: Array, g: Array) -> tuple[Array, Array]:
        """argmin 0.5 w'Hw - g'w on the feasible set and p = K'lambda."""
        d = len(g)
        m = len(self.v)
        kkt = np.block([[H, self.K.T], [self.K, np.zeros((m, m))]])
        found = np.linalg.lstsq(kkt, np.concatenate([g, self.v]), rcond=1e-12)[0]
        return found[:d], self.K.T @ found[d:]

    def value(self, w: Array) -> float:
        """F."""
        return float(0.5 * np.sum((self.M @ w - self.y) ** 2))
