"""Can groups keep their patients and still meet published totals?

scikit-learn's diabetes table, eight groups by sex and age. Each group keeps its patients. The
common effects z are shared, and x_i is what a group adds to them. Of men and of women the totals
over the population are published, and no measured effect is negative.

    python examples/plot_groups.py picture.png
"""

from __future__ import annotations

import sys

import matplotlib
import numpy as np

import ccmac

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

NAMES = ["bmi", "bp", "s1", "s5", "one"]
OWN = 0.05  # weight of the groups' own corrections


def stated() -> tuple[ccmac.Problem, list[str]]:
    """One agent a group: half a mean square, and two published totals."""
    table = load_diabetes(as_frame=True)
    people = table.data.assign(one=1.0)
    y = table.target.to_numpy() / 100
    scaled = people[NAMES] / people[NAMES].std(ddof=0).replace(0.0, 1.0)
    male = (people["sex"] > 0).to_numpy()
    age = np.digitize(people["age"], np.quantile(people["age"], [0.25, 0.5, 0.75]))
    published = [1.02 * y[male].sum(), 0.98 * y[~male].sum()]  # as a census would correct them
    agents = []
    names = []
    n = len(y)
    for sex in (True, False):
        for quarter in range(4):
            mine = (male == sex) & (age == quarter)
            F = scaled[mine].to_numpy()
            q = len(NAMES)
            gram = F.T @ F / n
            H = np.block([[gram + OWN * np.eye(q), gram], [gram, gram + 1e-3 * np.eye(q) / 8]])
            slope = F.T @ y[mine] / n
            total = np.zeros((2, q))
            total[0 if sex else 1] = F.sum(axis=0)
            agents.append(
                ccmac.Agent(
                    ccmac.objectives.Quadratic(H, np.concatenate([slope, slope])),
                    A=total / n,
                    B=total / n,
                    b=np.array(published) / n / 8,
                    name=f"{'men' if sex else 'women'} {quarter + 1}",
                )
            )
            names.append(agents[-1].name or "")
    lower = [-np.inf if name == "one" else 0.0 for name in NAMES]
    return ccmac.Problem(agents, z_lower=lower, row_names=["men", "women"], z_names=NAMES), names


def main(path: str) -> None:
    problem, names = stated()
    result = ccmac.solve(problem, "ring", tol=1e-8, progress=False)
    rounds = sum(result.ledger.of(phase)["rounds"] for phase in ("setup", "solve", "monitor"))
    print(f"{result.status}: totals met to {result.residuals['coupled']:.0e}, {rounds} rounds")
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    places = np.arange(len(NAMES))
    axes.bar(places, result.z, color="0.8", label="common")
    for k, (name, x) in enumerate(zip(names, result.x, strict=True)):
        axes.plot(places + 0.08 * (k - 3.5), result.z + x, "o", ms=4, label=name)
    axes.set_xticks(places, NAMES)
    axes.set_ylabel("effect on progression / 100")
    axes.legend(fontsize="small", ncols=3, frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1])
