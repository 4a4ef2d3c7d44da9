"""How do three desks share one limit of risk?

Each desk holds assets of its own. The risk of all together is a norm of their common factors and of
what is left at each desk. A risk office limits it, and sees totals alone.

    python examples/plot_portfolio.py picture.png
"""

from __future__ import annotations

import sys

import matplotlib

matplotlib.use("Agg")
import cvxpy as cp
import matplotlib.pyplot as plt
import numpy as np

import ccmac

DESKS = ["equities", "bonds", "commodities"]
rng = np.random.default_rng(3)
weights = [cp.Variable(6, nonneg=True, name=name) for name in DESKS]
returns = [rng.uniform(0.02, 0.12, 6) for _ in DESKS]
factors = [0.2 * rng.standard_normal((3, 6)) for _ in DESKS]
own = [rng.uniform(0.05, 0.25, 6) for _ in DESKS]
exposure = cp.Variable(3, name="exposure")  # of all desks to the common factors
left = cp.Variable(3, name="left")  # what is left at each desk
limit = cp.Parameter(name="limit", value=0.1)
risk = cp.norm(cp.hstack([exposure, left])) <= limit
gain = sum(r @ w for r, w in zip(returns, weights, strict=True))
model = cp.Problem(
    cp.Maximize(gain - 0.05 * sum(cp.sum_squares(w) for w in weights)),
    [
        risk,
        exposure == sum(F @ w for F, w in zip(factors, weights, strict=True)),
        sum(cp.sum(w) for w in weights) <= 1,
        *(cp.norm(cp.multiply(own[k], w)) <= left[k] for k, w in enumerate(weights)),
    ],
)
owners = {name: [w] for name, w in zip(DESKS, weights, strict=True)}
problem = ccmac.cvx.split(model, {**owners, "risk office": [exposure, left]})
prepared = ccmac.prepare(problem, "star")
limits = np.linspace(0.03, 0.15, 9)
held = []
gains = []
for value in limits:
    limit.value = value
    prepared.update()
    result = prepared.solve(1e-8)
    held.append([float(w.value.sum()) for w in weights])
    gains.append(100 * float(gain.value))
    print(f"risk at most {value:.3f}: {result.status}, expected return {gains[-1]:.4f} %")
    print(f"    a unit of risk is worth {float(risk.dual_value):.4f}")

figure, (one, other) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
one.plot(limits, gains, "o-")
one.set(xlabel="limit of risk", ylabel="expected return, %")
one.grid(alpha=0.3)
other.stackplot(limits, np.array(held).T, labels=DESKS)
other.set(xlabel="limit of risk", ylabel="share of the money")
figure.legend(loc="outside upper right", ncols=3, frameon=False, fontsize="small")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "portfolio.png", dpi=110)
