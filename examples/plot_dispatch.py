"""What does energy cost by the hour, when areas share a reserve?

Six areas meet the demand of a day together. They agree on a reserve schedule z. The multipliers
of the balances are the prices of the hours.

    python examples/plot_dispatch.py picture.png
"""

from __future__ import annotations

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import ccmac
from ccmac.paper.instances import dispatch

HOURS = 24
day = dispatch(seed=0, areas=6, hours=HOURS)
print(ccmac.geometry(day.problem, network=day.network))

result = ccmac.solve(day.problem, day.network, tol=1e-8, progress=False)
print(result)
error = max(np.abs(x - exact).max() for x, exact in zip(result.x, day.x, strict=True))
print(f"largest error of a dispatched quantity: {error:.1e}")

hours = np.arange(HOURS)
power = np.array([x[:HOURS] for x in result.x])  # x_i = (power, heat, storage)
storage = np.array([x[2 * HOURS :] for x in result.x])
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.stackplot(hours, power, alpha=0.85)
left.plot(hours, power.sum(axis=0) + storage.sum(axis=0), "k--", lw=1, label="with storage")
left.set(xlabel="hour", ylabel="power of the six areas")
left.legend(frameon=False)
right.plot(hours, -result.multipliers.coupled, "o-", ms=3, label="price of energy")
right.plot(hours, result.z, "s-", ms=3, label="reserve")
right.set(xlabel="hour")
right.legend(frameon=False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "dispatch.png", dpi=110)
