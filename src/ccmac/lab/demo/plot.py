"""The demo's picture: certified error against rounds, and where the rounds went."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from ccmac.ledger import PHASES
from ccmac.results import Result

UNEVEN, EVEN = "uneven shares, chi = 5", "equal shares, chi = 1"
COLORS = {UNEVEN: "#b5482a", EVEN: "#2a6f97"}
TONES = {"setup": "#8d99ae", "solve": "#2a6f97", "monitor": "#d9a441"}


def picture(uneven: Result, even: Result) -> bytes | None:
    """A PNG; None without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return None
    figure = Figure(figsize=(8, 3.4), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    runs = {UNEVEN: uneven, EVEN: even}
    for name, result in runs.items():
        rounds, bound = result.trace["rounds"], result.trace["error_bound"]
        known = np.isfinite(bound) & (bound > 0)
        left.semilogy(rounds[known], bound[known], "o-", ms=4, color=COLORS[name], label=name)
    left.set(xlabel="neighbor rounds (solve phase)", ylabel="certified error bound")
    left.grid(alpha=0.3)
    left.legend(
        frameon=False, ncols=2, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1)
    )
    _bars(right, runs)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()


def _bars(axes: Any, runs: dict[str, Result]) -> None:
    base = np.zeros(len(runs))
    labels = [name.split(", ")[1] for name in runs]
    for phase in PHASES:
        height = np.array([r.ledger.of(phase)["rounds"] for r in runs.values()], dtype=np.float64)
        axes.bar(labels, height, 0.55, bottom=base, color=TONES[phase], label=phase)
        base += height
    axes.set(ylabel="neighbor rounds, all phases")
    axes.legend(
        frameon=False, ncols=3, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1),
        columnspacing=0.8,
    )  # fmt: skip
