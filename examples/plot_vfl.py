"""What does a party gain by learning with others?

A clinic and a laboratory measure different things about 442 patients (scikit-learn's diabetes
data). Each alone learns to predict the progression of the disease, and both together learn it
without showing their tables. The boxes are of twenty random halves of the patients.

    python examples/plot_vfl.py picture.png
"""

from __future__ import annotations

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split

from ccmac.vfl import VerticalRidge

X, y = load_diabetes(return_X_y=True, as_frame=True)
parts = {"clinic": X.columns[:4], "laboratory": X.columns[4:]}
scores: dict[str, list[float]] = {}
gap = 0.0
for seed in range(20):
    fit, test, y_fit, y_test = train_test_split(X, y, test_size=0.5, random_state=seed)
    for name, columns in parts.items():
        alone = Ridge(alpha=0.1).fit(fit[columns], y_fit)
        scores.setdefault(f"{name} alone", []).append(alone.score(test[columns], y_test))
    model = VerticalRidge(alpha=0.1).fit({k: fit[c] for k, c in parts.items()}, y_fit)
    together = model.score({k: test[c] for k, c in parts.items()}, y_test)
    scores.setdefault("together,\ntables apart", []).append(together)
    joined = Ridge(alpha=0.1).fit(fit, y_fit)
    scores.setdefault("tables joined", []).append(joined.score(test, y_test))
    gap = max(gap, float(abs(model.coef_ - joined.coef_).max()))

for name, values in scores.items():
    print(f"{' '.join(name.split()):22} median R2 {np.median(values):.6f}")
print("coefficients as on the joined table, to 1e-9:", gap < 1e-9)
rounds = sum(model.result_.ledger.of(phase)["rounds"] for phase in ("setup", "solve", "monitor"))
print(f"the last fit: {model.result_.status}, proved, in {rounds} neighbor rounds")

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
drawn = axes.boxplot(list(scores.values()), patch_artist=True, widths=0.55)
for box, color in zip(drawn["boxes"], ("#d9a441", "#d9a441", "#2a6f97", "#8d99ae"), strict=True):
    box.set_facecolor(color)
plt.setp(drawn["medians"], color="black")
axes.set_xticks(range(1, len(scores) + 1), list(scores))
axes.set(ylabel="R2 on patients not seen")
axes.spines[["top", "right"]].set_visible(False)
axes.grid(axis="y", alpha=0.3)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "vfl.png", dpi=110)
