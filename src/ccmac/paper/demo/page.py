"""The demo's report: one HTML file that needs nothing else, with the certified error against rounds
and where the rounds went.
"""

from __future__ import annotations

import html
import io
from typing import Any

import numpy as np

from ccmac.ledger import PHASES
from ccmac.page import document, wide
from ccmac.results import Result
from ccmac.show import TONES, ledger_html


def page(paragraphs: list[str], uneven: Result, even: Result, image: bytes | None) -> str:
    """The story with picture and ledgers; every text is escaped."""
    sections = []
    for paragraph in paragraphs:
        heading, _, text = paragraph.partition("\n")
        if text:
            sections.append(f"<h2>{html.escape(heading)}</h2>\n<p>{html.escape(text)}</p>")
        else:
            sections.append(f'<p class="soft">{html.escape(heading)}</p>')
    tables = "".join(
        wide(f"Ledger, {name} shares", ledger_html(result.ledger))
        for name, result in (("uneven", uneven), ("equal", even))
    )
    return document(
        "ccmac demo", "Eight agents, one model", "\n".join(sections) + tables, image=image or b""
    )


UNEVEN = "uneven shares, chi = 5"
EVEN = "equal shares, chi = 1"
ABOVE: dict[str, Any] = {"frameon": False, "fontsize": "small", "loc": "lower center"}
ABOVE["bbox_to_anchor"] = (0.5, 1)
COLORS = {UNEVEN: "#b5482a", EVEN: "#2a6f97"}


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
        rounds = result.trace["rounds"]
        bound = result.trace["error_bound"]
        known = np.isfinite(bound) & (bound > 0)
        left.semilogy(rounds[known], bound[known], "o-", ms=4, color=COLORS[name], label=name)
    left.set(xlabel="neighbor rounds (solve phase)", ylabel="certified error bound")
    left.grid(alpha=0.3)
    left.legend(ncols=2, **ABOVE)
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
    axes.legend(ncols=3, columnspacing=0.8, **ABOVE)
