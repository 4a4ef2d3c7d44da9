"""The picture of a dispatch: the grid with its prices and loaded lines; over hours the outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from ccmac.show import blank

if TYPE_CHECKING:
    from ccmac.power.case import Dispatch


def draw(case: Dispatch, result: Any, ax: Any = None) -> Any:
    """Axes with the grid at its hour of largest demand, and with the hours if there are some."""
    hours = ax is None and case.model.ask.hours > 1
    axes = blank(ax, (11.0, 4.6) if hours else (7.5, 5.5), 2 if hours else 1)
    first = np.ravel(axes)[0]
    _grid(first.figure, first, case, result)
    if hours:
        _hours(axes[1], case, result)
    return axes


def _grid(figure: Any, axes: Any, case: Dispatch, result: Any) -> None:
    grid = case.grid
    place = nx.kamada_kawai_layout(grid.graph())
    at = np.array([place[k] for k in range(grid.buses)])
    t = int(np.argmax(case.model.demand.sum(axis=1)))
    price = case.prices(result)[t]
    flow = np.abs(case.flows(result)[t])
    # share of its rating from which a line counts as full
    full = flow >= 0.999 * grid.base * grid.rating
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
