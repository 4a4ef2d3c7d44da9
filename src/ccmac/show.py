"""Pictures and tables of the public objects: what their ``plot`` and their notebook form draw.

Pictures need Matplotlib (``ccmac[plot]``) and return its axes; tables are plain HTML.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ccmac.errors import needed

TONES = {"setup": "#8d99ae", "solve": "#2a6f97", "monitor": "#d9a441"}
BLUE, RED, GREEN, OCHRE = "#2a6f97", "#b5482a", "#4f8a5b", "#d9a441"
MOST = 12
"""Agents, rows or names that a picture or a table lists."""


def blank(ax: Any, size: tuple[float, float] = (6.0, 4.0), panels: int = 1) -> Any:
    """``ax``, or new axes without a frame: one, or an array of as many as ``panels``."""
    if ax is not None:
        return ax
    plt = needed("matplotlib.pyplot", "pictures need Matplotlib: pip install 'ccmac[plot]'")
    axes = plt.figure(figsize=size, layout="constrained").subplots(1, panels)
    for one in np.ravel(axes):
        one.spines[["top", "right"]].set_visible(False)
    return axes


# -- tables ----------------------------------------------------------------------------------------
def table(head: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """An HTML table; the first column names the rows."""
    top = "".join(f"<th>{html.escape(str(name))}</th>" for name in head)
    body = "".join(
        f"<tr><th style='text-align:left'>{html.escape(str(first))}</th>"
        + "".join(f"<td>{html.escape(str(value))}</td>" for value in rest)
        + "</tr>"
        for first, *rest in rows
    )
    return f"<table><tr>{top}</tr>{body}</table>"


def card(title: str, lines: Iterable[str], *tables: str) -> str:
    """A title, lines of text and tables."""
    text = "<br>".join(html.escape(line) for line in lines)
    return f"<div><b>{html.escape(title)}</b><br>{text}{''.join(tables)}</div>"


def named_rows(values: Mapping[str, float]) -> list[tuple[str, str]]:
    """The largest by size, as rows of a table."""
    largest = sorted(values.items(), key=lambda pair: -abs(pair[1]))[:MOST]
    rows = [(name, f"{value:.6g}") for name, value in largest]
    more = len(values) - len(rows)
    return [*rows, (f"and {more} more", "")] if more else rows


class Listing(dict[str, dict[str, Any]]):
    """A mapping of names to facts that shows itself as a table, in text and in a notebook."""

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}}  {about['summary']}" for name, about in self.items())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [(k, v["summary"], ", ".join(v["needs"]) or "–") for k, v in self.items()]
        return table(("method", "what it does", "needs"), rows)


def problem_html(problem: Any) -> str:
    """Who has what."""
    rows = [
        (
            i if a.name is None else f"{i} ({a.name})",
            type(a.objective).__name__,
            problem.d[i],
            *("–" if getattr(a, k) is None else getattr(a, k).shape[0] for k in "ABCD"),
        )
        for i, a in list(problem.agents.items())[:MOST]
    ]
    head = ("agent", "objective", "entries of x", "rows A", "rows B", "rows C", "rows D")
    more = [f"the first {MOST} of {problem.n} agents"] if problem.n > MOST else []
    return card(repr(problem), more, table(head, rows))


def ledger_html(ledger: Any) -> str:
    """Units by phase."""
    counts = ledger.as_dict()
    units = next(iter(counts.values()))
    rows = [(unit, *(f"{counts[phase][unit]:,}" for phase in counts)) for unit in units]
    return table(("", *counts), rows)


# -- pictures --------------------------------------------------------------------------------------
def draw_problem(problem: Any, ax: Any = None) -> Any:
    """The blocks: agents' variables and z from left to right, kinds of rows downwards."""
    agents = list(problem.agents.items())[:MOST]
    z = len(agents)
    rows = [("coupled", [(k, "A") for k, (_, a) in enumerate(agents) if a.A is not None])]
    if "B" in problem.present:
        rows[0][1].append((z, "B"))
    for name, word in (("C", "local"), ("D", "shared")):
        having = [(k, i) for k, (i, a) in enumerate(agents) if getattr(a, name) is not None]
        rows += [(f"{word} {i}", [(k if name == "C" else z, name)]) for k, i in having]
    for k, (i, a) in enumerate(agents):
        if a.cones is not None:
            own = [(k, "G"), (z, "H")]
            rows.append((f"cones {i}", [(x, b) for x, b in own if getattr(a, b) is not None]))
    axes = blank(ax, (1.5 + 0.6 * (z + 1), 0.9 + 0.32 * len(rows)))
    tones = {"A": BLUE, "B": OCHRE, "C": GREEN, "D": RED, "G": GREEN, "H": RED}
    for y, (_, entries) in enumerate(rows):
        for x, name in entries:
            axes.barh(y, 0.92, left=x - 0.46, height=0.86, color=tones[name])
            axes.text(x, y, name, ha="center", va="center", color="white")
    names = [f"$x_{{{i}}}$" if a.name is None else a.name for i, a in agents]
    names += ["z"] if problem.q else []
    axes.set_xticks(range(len(names)), names, rotation=0 if z < 9 else 90)
    axes.set_yticks(range(len(rows)), [label for label, _ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.tick_params(length=0)
    axes.set_title("who has which block", fontsize="medium")
    return axes


def draw_network(network: Any, ax: Any = None) -> Any:
    """Agents and the links between them."""
    import networkx as nx

    axes = blank(ax, (4.5, 4.0))
    ring = all(degree == 2 for _, degree in network.graph.degree)
    graph = network.graph
    place = nx.circular_layout(graph) if ring else nx.kamada_kawai_layout(graph, weight=None)
    at = np.array([place[i] for i in range(network.n)]).reshape(-1, 2)
    for i, j in network.graph.edges:
        axes.plot(*at[[i, j]].T, color="#8d99ae", lw=1.2, zorder=1)
    axes.scatter(*at.T, s=260 if network.n <= 30 else 20, color=BLUE, zorder=2)
    if network.n <= 30:
        for i, (x, y) in enumerate(at):
            axes.text(x, y, str(i), ha="center", va="center", color="white", fontsize="small")
    axes.set_title(repr(network), fontsize="medium")
    axes.margins(0.12)
    axes.set_axis_off()
    return axes


def draw_geometry(geometry: Any, ax: Any = None) -> Any:
    """The two channels as lines at their Friedrichs angle, and each agent's part."""
    bars = ax is None and bool(geometry.agents)
    panels = blank(ax, (8.0 if bars else 4.0, 3.4), 2 if bars else 1)
    axes = np.ravel(panels)[0]
    theta = geometry.friedrichs_angle
    for angle, color, name in ((0.0, BLUE, "channel 1"), (theta, RED, "channel 2")):
        axes.plot([0, math.cos(angle)], [0, math.sin(angle)], color=color, lw=3, label=name)
    arc = np.linspace(0, theta)
    axes.plot(0.35 * np.cos(arc), 0.35 * np.sin(arc), color="#555")
    middle = 0.42 * np.array([math.cos(theta / 2), math.sin(theta / 2)])
    axes.text(*middle, f"{math.degrees(theta):.3g}°", va="center")
    axes.set(xlim=(-0.05, 1.1), ylim=(-0.05, 1.1), aspect="equal")
    axes.set_title(f"chi = {geometry.cross_factor:.4g}", fontsize="medium")
    axes.legend(frameon=False, loc="lower right", fontsize="small", bbox_to_anchor=(1, 0.05))
    axes.set_axis_off()
    if bars:
        _bars(panels[1], {str(i): p for i, p in enumerate(geometry.agents)}, BLUE)
        panels[1].set_title("part of each agent in the overlap", fontsize="medium")
    return panels


def draw_plan(plan: Any, ax: Any = None) -> Any:
    """Predicted rounds of the ways to solve the problem, or of a step of the one taken."""
    axes = blank(ax, (6.0, 2.6))
    ways = {f"{a.method} ({a.regime})": float(a.predicted["rounds"]) for a in plan.alternatives}
    once = {unit: float(plan.iteration[unit]) for unit in ("gradients", "argmins", "rounds")}
    _bars(axes, ways or once, BLUE)
    title = "predicted neighbor rounds" if ways else f"one step of {plan.method}"
    axes.set_title(title, fontsize="medium")
    return axes


def draw_ledger(ledger: Any, ax: Any = None) -> Any:
    """Each unit's parts by phase, in per cent of its total."""
    counts = ledger.as_dict()
    units = [u for u in next(iter(counts.values())) if u not in ("longest_message", "reductions")]
    axes = blank(ax, (6.0, 0.9 + 0.3 * len(units)))
    base = np.zeros(len(units))
    totals = np.array([sum(counts[phase][unit] for phase in counts) for unit in units])
    for phase, count in counts.items():
        part = 100 * np.array([count[unit] for unit in units]) / np.maximum(totals, 1)
        axes.barh(range(len(units)), part, left=base, color=TONES[phase], label=phase)
        base += part
    names = [f"{unit}  {total:,}" for unit, total in zip(units, totals, strict=True)]
    axes.set_yticks(range(len(units)), names)
    axes.invert_yaxis()
    axes.set_xlabel("per cent by phase")
    axes.legend(frameon=False, ncols=3, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1))
    return axes


def draw_trace(trace: Any, against: str = "rounds", ax: Any = None) -> Any:
    """Errors against a column of the trace."""
    axes = blank(ax)
    labels = {"relative_error": "relative squared error", "error_bound": "certified bound"}
    for column, label in labels.items():
        y = trace[column]
        known = np.isfinite(y) & (y > 0)
        if known.any():
            line = "-o" if known.sum() < 40 else "-"
            axes.plot(trace[against][known], y[known], line, ms=3, label=label)
            axes.set_yscale("log")
    axes.set(xlabel=f"{against} (solve phase)", ylabel="error")
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False)
    return axes


def draw_result(result: Any, against: str = "rounds") -> Any:
    """The bill, the residuals, the multipliers, and the errors where there is a history."""
    known = max(np.isfinite(result.trace[c]).sum() for c in ("error_bound", "relative_error"))
    dual = result.named.get("coupled", {})
    panels = blank(None, (14.0 if known > 1 else 11.0, 3.4), 2 + bool(dual) + (known > 1))
    draw_ledger(result.ledger, panels[0])
    _bars(panels[1], {k: max(v, 1e-17) for k, v in result.residuals.items()}, GREEN)
    panels[1].set_xscale("log")
    panels[1].set_title(f"residuals; {result.status}", fontsize="medium")
    if dual:
        largest = sorted(dual.items(), key=lambda pair: -abs(pair[1]))[:MOST]
        _bars(panels[2], dict(largest), RED)
        panels[2].set_title("multipliers of coupled rows", fontsize="medium")
    if known > 1:
        draw_trace(result.trace, against, panels[-1])
    return panels


def _bars(axes: Any, values: Mapping[str, float], color: str) -> None:
    """Horizontal bars, the first on top."""
    shown = list(values.items())[:MOST]
    axes.barh(range(len(shown)), [value for _, value in shown], color=color)
    axes.set_yticks(range(len(shown)), [name for name, _ in shown])
    axes.invert_yaxis()
