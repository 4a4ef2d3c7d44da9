"""Vertical federated learning: eight agents, one logistic model.

Run: python examples/plot_vfl.py [picture.png]
"""

from __future__ import annotations

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import ccmac
from ccmac.paper.data import generate

data = generate("a1a")
network = ccmac.Network.ring(8)
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")

for chi in (1.0, 3.0):
    problem = ccmac.vfl.problem(
        data.X, data.y, 8, loss="logistic", shares=("cross_factor", chi), shared_regularization=1e-2
    )
    # Columns stay at home: one product with them an averaging.
    method = ccmac.methods.CrossNewton(reveal="sketch")
    result = ccmac.solve(problem, network, method, tol=1e-6, progress=False)
    met = np.mean(np.sign(problem.predictions(result)) == data.y)
    print(
        f"chi = {chi:g}: {result.status}, {result.ledger['rounds']} rounds, "
        f"bound {result.error_bound:.1e}, {met:.1%} of the labels met"
    )
    known = np.isfinite(result.trace["error_bound"])
    bound = result.trace["error_bound"][known]
    axes.semilogy(result.trace["rounds"][known], bound, "o-", ms=3, label=f"chi = {chi:g}")

axes.set(xlabel="neighbor rounds", ylabel="certified error bound")
axes.grid(alpha=0.3)
axes.legend(frameon=False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "vfl.png", dpi=110)
