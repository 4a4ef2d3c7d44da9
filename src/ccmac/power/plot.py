"""The picture of a dispatch: the grid with its prices and loaded lines; over hours the outputs."""

from __future__ import annotations

import io
from typing import Any

import networkx as nx
import numpy as np

from ccmac.power.case import Dispatch

NEAR = 0.999  # share of its rating from which a line counts as full


def picture(case: Dispatch, result: Any) -> bytes | None:
    """A PNG; None without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return None
    hours = case.model.ask.hours
    figure = Figure(figsize=(11, 4.6) if hours > 1 else (7.5, 5.5), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 2 if hours > 1 else 1, squeeze=False)[0]
    _grid(figure, axes[0], case, result)
    if hours > 1:
        _hours(axes[1], case, result)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()


def _grid(figure: Any, axes: Any, case: Dispatch, result: Any) -> None:
    grid = case.grid
    place = nx.kamada_kawai_layout(grid.graph())
    at = np.array([place[k] for k in range(grid.buses)])
    t = int(np.argmax(case.model.demand.sum(axis=1)))
    price = case.prices(result)[t]
    flow = np.abs(case.flows(result)[t])
    full = flow >= NEAR * grid.base * grid.rating
    widest = max(float(flow.max()), 1e-9)
    for k in range(grid.lines):
        ends = at[[grid.line_from[k], grid.line_to[k]]]
        color = "#b5482a" if full[k] else "#8d99ae"
        axes.plot(*ends.T, color=color, lw=0.4 + 3.0 * flow[k] / widest, zorder=1)
    seen = axes.scatter(*at.T, c=price, s=26, cmap="viridis", zorder=2)
    figure.colorbar(seen, ax=axes, shrink=0.8, label="price per MWh")
    hour = f", hour {t}" if case.model.ask.hours > 1 else ""
    axes.set_title(f"{grid.name}{hour}: {int(full.sum())} lines full (red)", fontsize=10)
    axes.set_axis_off()


def _hours(axes: Any, case: Dispatch, result: Any) -> None:
    p = case.generation(result)
    hours = np.arange(case.model.ask.hours)
    order = np.argsort(-p.sum(axis=0))
    shown = [p[:, k] for k in order[:8]] + [p[:, order[8:]].sum(axis=1)]
    axes.stackplot(hours, *shown, alpha=0.85)
    axes.plot(hours, case.grid.base * case.model.demand.sum(axis=1), "k--", lw=1)
    axes.set(xlabel="hour", ylabel="MW", title="outputs of the units and the demand (dashed)")
    axes.spines[["top", "right"]].set_visible(False)
