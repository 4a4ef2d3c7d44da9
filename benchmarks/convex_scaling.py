"""Certified schedules against what is needed: first hits, and the practical schedules.

    python benchmarks/convex_scaling.py

Rank-deficient least squares with two channels of equations (T = sqrt(L R^2 / eps)), then an L1
problem for sliding. "First hit" is the gradient (outer step) at which the criterion first holds by
true values; the schedules run to their ends all the same. Prints Markdown tables.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import ccmac
from ccmac.objectives import L1, LeastSquares
from ccmac.solvers.base import State

Array = NDArray[np.float64]


class FirstHit:
    """Watches a run for the first iterate that meets the criterion."""

    def __init__(self, K: Array, v: Array, weight: float, epsilon: float) -> None:
        self.K, self.v, self.weight, self.epsilon = K, v, weight, epsilon
        self.count: int | None = None

    def watch(self, gap: float, w: Array, count: int) -> None:
        """``weight`` is L R / sigma or M / sigma."""
        far = self.weight * float(np.linalg.norm(self.K @ w - self.v))
        if self.count is None and gap <= self.epsilon and far <= self.epsilon:
            self.count = count


def continuation() -> None:
    """Gradients of the certified and the practical schedule."""
    rng = np.random.default_rng(0)
    M, y, K = (rng.standard_normal(shape) for shape in ((12, 30), 12, (11, 30)))
    v = K @ rng.standard_normal(30)
    stack = ccmac.Stack(LeastSquares(M, y), [(K[:6], v[:6]), (K[6:], v[6:])])
    kkt = np.block([[M.T @ M, K.T], [K, np.zeros((11, 11))]])
    best = np.linalg.lstsq(kkt, np.concatenate([M.T @ y, v]), rcond=1e-12)[0][:30]

    def value(w: Array) -> float:
        return float(0.5 * np.sum((M @ w - y) ** 2))

    L, radius = float(np.linalg.norm(M, 2) ** 2), float(np.linalg.norm(best))
    print("| T | schedule | gradients | affine | first hit | practical: gradients | affine |")
    print("|---:|---|---:|---:|---:|---:|---:|")
    for time in (1, 2, 4, 8, 50, 200, 1000):
        epsilon = L * radius**2 / time**2 / 1.001
        pinned = {"radius": radius, "accuracy": epsilon, "multiplier_budget": 1.0}
        practical = ccmac.solve(stack, method="cross-continuation", pinned=pinned)
        spent = [practical.ledger.total(unit) for unit in ("gradients", "affine")]
        options = {"method": "cross-continuation", "schedule": "certified", "pinned": pinned}
        if time <= 8:
            plan = np.linalg.svd(K, compute_uv=False)[-1]
            hit = FirstHit(K, v, L * radius / plan, epsilon)

            def watch(count: int, state: State, hit: FirstHit = hit) -> None:
                w = state.vectors["w"]
                hit.watch(value(w) - value(best), w, count)

            result = ccmac.solve(stack, callback=watch, **options)
            counts = [result.ledger[unit] for unit in ("gradients", "affine")]
            cells = ["executed", *[f"{k:,}" for k in counts], f"{hit.count:,}"]
        else:
            result = ccmac.solve(stack, max_iterations=1, **options)
            found = result.certificates
            cells = ["computed", f"{found['gradients']:,}", f"{found['affine']:,}", ""]
        print("|", " | ".join([str(time), *cells, *[f"{k:,}" for k in spent]]), "|", flush=True)


def sliding() -> None:
    """Affine calls and subgradients of the certified schedule."""
    rng = np.random.default_rng(1)
    K, a = rng.standard_normal((4, 12)), rng.standard_normal(12)
    v = K @ rng.standard_normal(12)
    stack = ccmac.Stack(L1(1.0, centre=a), [(K[:2], v[:2]), (K[2:], v[2:])])
    reference = ccmac.solve(stack, tol=1e-8)
    best = reference.x[0]
    value, radius = reference.objective, float(np.linalg.norm(best))
    sigma = float(np.linalg.svd(K, compute_uv=False)[-1])
    print("\n| eps | affine | subgradients | first hit (affine) | proximal mode: proxes |")
    print("|---:|---:|---:|---:|---:|")
    for epsilon in (4.0, 2.0, 1.0, 0.5):
        hit = FirstHit(K, v, np.sqrt(12.0) / sigma, epsilon)

        def watch(count: int, state: State, hit: FirstHit = hit) -> None:
            w = state.vectors["w"]
            hit.watch(float(np.abs(w - a).sum()) - value, w, 2 * count)

        pinned = {"radius": radius, "accuracy": epsilon}
        options = {"method": "cross-sliding", "pinned": pinned}
        result = ccmac.solve(stack, schedule="certified", callback=watch, **options)
        quick = ccmac.solve(stack, **options).ledger["proxes"]
        counts = [result.ledger[unit] for unit in ("affine", "gradients")]
        cells = [f"{epsilon:g}", *[f"{k:,}" for k in counts], f"{hit.count}", f"{quick:,}"]
        print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    continuation()
    sliding()
