"""Why does energy cost more at some buses?

Ten areas of the IEEE 118-bus system are dispatched together, while the ratings of the loaded
lines fall. Each area keeps its units and costs. The more lines are full, the further apart are
the prices.

    python examples/plot_grid.py picture.png
"""

from __future__ import annotations

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import ccmac

wide = ccmac.power.dc_opf("case118", areas=10)
free = ccmac.solve(wide.problem, wide.network, tol=1e-8, progress=False)
figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.6), width_ratios=(3, 2), layout="constrained"
)
shares = [0.98, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7]
spread = []
for share in shares:
    case = ccmac.power.dc_opf("case118", areas=10, ratings=wide.tightened(free, share))
    result = ccmac.solve(case.problem, case.network, tol=1e-8, progress=False)
    price = case.prices(result)[0]
    spread.append(np.percentile(price, [0, 25, 50, 75, 100]))
    print(
        f"ratings at {share:.0%}: {result.status}, {case.cost(result):,.0f} an hour, "
        f"prices {price.min():.2f} to {price.max():.2f}"
    )
    if share == 0.8:
        case.plot(result, left)

low, quarter, middle, three, high = np.array(spread).T
right.fill_between(shares, low, high, color="#2a6f97", alpha=0.2, label="all buses")
right.fill_between(shares, quarter, three, color="#2a6f97", alpha=0.4, label="the middle half")
right.plot(shares, middle, color="#b5482a", label="median")
right.invert_xaxis()
right.set(xlabel="rating over the unconstrained flow", ylabel="price per MWh")
right.legend(frameon=False, loc="upper left")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "grid.png", dpi=110)
