"""One model for all, or one for each clinic?

Both: ten clinics share the weights z of a model of disease progression, and have corrections x_i
of their own. Predictions of all must add up to the known total. Two shared effects may not be
negative, and no correction exceeds 60.

    python examples/plot_personal.py picture.png
"""

from __future__ import annotations

import sys

import matplotlib
import numpy as np
from sklearn.datasets import load_diabetes

import ccmac

matplotlib.use("Agg")
import matplotlib.pyplot as plt

GROUPS = 10
REGULARIZATION = 0.5
LARGEST = 60.0


def main(path: str) -> None:
    data = load_diabetes()
    X = np.column_stack([data.data / data.data.std(axis=0), np.ones(len(data.data))])
    y = data.target
    q = X.shape[1]
    groups = np.array_split(np.argsort(data.data[:, 0], kind="stable"), GROUPS)  # by age
    agents = []
    for k, rows in enumerate(groups):
        own = X[rows]
        count = len(rows)
        H = np.block([[own.T @ own, own.T @ own]] * 2) / count
        H[:q, :q] += REGULARIZATION * np.eye(q)
        g = np.tile(own.T @ y[rows], 2) / count
        total = own.sum(axis=0, keepdims=True)
        agents.append(
            ccmac.Agent(
                ccmac.objectives.Quadratic(H, g),
                A=total,
                B=total,
                b=[y[rows].sum()],
                lower=-LARGEST,
                upper=LARGEST,
                name=f"group {k}",
            )
        )
    names = [*data.feature_names, "intercept"]
    low = [0.0 if name in ("bmi", "bp") else -np.inf for name in names]
    problem = ccmac.Problem(agents, row_names=["total"], z_lower=low, z_names=names)
    result = ccmac.solve(problem, "ring", tol=1e-8)
    said = sum(float((a.A @ (x + result.z))[0]) for a, x in zip(agents, result.x, strict=True))
    print(f"{result.status}: total {said:,.1f} of {y.sum():,.0f}")
    print(f"price of the total {result.named['coupled']['total']:.4f}")
    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    axes.bar(names, result.z, color="#2a6f97", label="shared")
    for x in result.x:
        axes.plot(names, result.z + x, "o", color="#b5482a", ms=3, alpha=0.6)
    axes.axhline(0, color="0.5", lw=0.8)
    axes.set_ylabel("weight (dots: with the groups' corrections)")
    figure.savefig(path)


if __name__ == "__main__":
    main(sys.argv[1])
