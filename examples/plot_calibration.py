"""How do personal models add up to published totals, and what does it cost?

Eight people have a model each, with common effects z. Their predictions must add up to totals
that are published. Giving every agent the mean block lowers chi, and with it the rounds.

    python examples/plot_calibration.py picture.png
"""

from __future__ import annotations

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import ccmac
from ccmac.paper.instances import calibration

people = calibration(seed=1, persons=8)
problems = {"as stated": people.problem, "rebalanced": people.problem.rebalanced()}
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")

for name, problem in problems.items():
    chi = ccmac.geometry(problem).cross_factor
    result = ccmac.solve(problem, people.network, "cross-apapc", tol=1e-7, progress=False)
    error = np.linalg.norm(result.z - people.z)
    print(
        f"{name}: chi = {chi:.3f}, {result.status}, {result.ledger['rounds']} rounds, "
        f"common effects right to {error:.1e}"
    )
    known = np.isfinite(result.trace["error_bound"])
    bound = result.trace["error_bound"][known]
    label = f"{name}, chi = {chi:.2f}"
    axes.semilogy(result.trace["rounds"][known], bound, "o-", ms=3, label=label)

axes.set(xlabel="neighbor rounds", ylabel="certified error bound")
axes.grid(alpha=0.3)
axes.legend(frameon=False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "calibration.png", dpi=110)
