"""The demo's report: one HTML file that needs nothing else, with the certified error against rounds
and where the rounds went.
"""

from __future__ import annotations

import base64
import html
import io
from typing import Any

import numpy as np

from ccmac.ledger import PHASES
from ccmac.results import Result
from ccmac.show import TONES, ledger_html
from ccmac.version import __version__

STYLE = """
:root { color-scheme: light dark; --paper: #fdfcf9; --ink: #22252b; --soft: #667; --line: #ddd; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #17191d; --ink: #e4e4e0; --soft: #9a9da5; --line: #3a3d44; }
}
body { margin: 0 auto; max-width: 46rem; padding: 1.5rem 1rem 3rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin: 1.6rem 0 .2rem; }
p { margin: .2rem 0; } .soft { color: var(--soft); font-size: .9rem; }
figure { margin: 1.5rem 0; } img { width: 100%; height: auto; border-radius: 6px; }
.wide { overflow-x: auto; margin-top: 1.4rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
caption { text-align: left; font-weight: 600; padding: .4rem 0; }
th, td { padding: .2rem .9rem .2rem 0; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child { text-align: left; font-weight: 500; } tr > :last-child { padding-right: 0; }
"""


def page(paragraphs: list[str], uneven: Result, even: Result, image: bytes | None) -> str:
    """The story with picture and ledgers; every text is escaped."""
    sections = []
    for paragraph in paragraphs:
        heading, _, text = paragraph.partition("\n")
        if text:
            sections.append(f"<h2>{html.escape(heading)}</h2>\n<p>{html.escape(text)}</p>")
        else:
            sections.append(f'<p class="soft">{html.escape(heading)}</p>')
    figure = ""
    if image is not None:
        encoded = base64.b64encode(image).decode("ascii")
        words = "Certified error against rounds, and rounds by phase, for uneven and equal shares"
        figure = (
            f'<figure><img alt="{words}" src="data:image/png;base64,{encoded}">'
            f'<figcaption class="soft">{words}.</figcaption></figure>'
        )
    tables = "".join(
        f'<h2>Ledger, {name} shares</h2>\n<div class="wide">{ledger_html(result.ledger)}</div>\n'
        for name, result in (("uneven", uneven), ("equal", even))
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>ccmac demo</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        "<h1>Eight agents, one model</h1>\n"
        f'<p class="soft">ccmac {html.escape(__version__)}</p>\n{figure}\n'
        + "\n".join(sections)
        + f"\n{tables}</body>\n</html>\n"
    )


UNEVEN = "uneven shares, chi = 5"
EVEN = "equal shares, chi = 1"
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
        frameon=False,
        ncols=3,
        fontsize="small",
        loc="lower center",
        bbox_to_anchor=(0.5, 1),
        columnspacing=0.8,
    )
