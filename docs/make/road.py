"""The picture of docs/architecture.md: the road of a solve.

    python docs/make/road.py [docs/images/road.png]

Needs Matplotlib. Look at the picture before committing it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

TARGET = Path(__file__).resolve().parents[1] / "images" / "road.png"
WIDTH = 21.0
HEIGHT = 13.2
SETUP = "#dbe9f6"
SOLVE = "#fdebd0"
MONITOR = "#e3f1df"
QUIET = "#f4f4f4"
INK = "#222222"
PALE = "#666666"
THERE = (
    (
        "solve(...)",
        "api.py",
        "checks every argument;\nnames become a method,\na network, a runtime",
        QUIET,
    ),
    (
        "Workspace",
        "workspace/",
        "coupling, equations,\nranks, curvature:\neach once, when asked for",
        SETUP,
    ),
    (
        "Method",
        "methods/",
        "owns its options;\nprepare() gives an iteration\nand a stopping rule",
        SETUP,
    ),
    (
        "Realization",
        "realizations/",
        "constraints as a stack\nwith a spectral interval;\nthe planner prices choices",
        SETUP,
    ),
)
BACK = (
    ("Result", "results.py", "point, prices, bound,\nledger, trace, plan", QUIET),
    (
        "Finish",
        "methods/run.py",
        "back to (x, z);\nprices, violations,\nproof of a contradiction",
        MONITOR,
    ),
    (
        "Stopping",
        "certificates/",
        "error bound or gap at\nthe repaired point;\nsays when to look again",
        MONITOR,
    ),
    (
        "Driver",
        "methods/driver.py",
        "the only loop: step, look,\nsave, report, callback;\nlimits and blow-ups",
        SOLVE,
    ),
)
GROUND = (
    "The ground: exchanges and sums (runtime/), products with blocks (linalg/blocks.py), "
    "gradients (realizations/base.py). They charge the ledger."
)


def station(
    axes: Axes, x: float, y: float, title: str, place: str, lines: str, colour: str
) -> None:
    """A box with its name, the folder it lives in, and what happens there."""
    axes.add_patch(
        FancyBboxPatch(
            (x, y), WIDTH, HEIGHT, boxstyle="round,pad=0,rounding_size=0.9", fc=colour, ec=INK
        )
    )
    left = x + 1.0
    top = y + HEIGHT
    axes.text(left, top - 2.3, title, size=11, weight="bold", va="center", color=INK)
    axes.text(left, top - 4.9, place, size=8, family="monospace", va="center", color=PALE)
    axes.text(left, top - 6.7, lines, size=8.8, va="top", linespacing=1.35, color=INK)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], bend: str = "") -> None:
    """From one station to the next."""
    style = {"arrowstyle": "-|>", "color": INK, "lw": 1.3, "shrinkA": 0, "shrinkB": 0}
    if bend:
        style["connectionstyle"] = bend
    axes.annotate("", xy=end, xytext=start, arrowprops=style)


def draw() -> plt.Figure:
    """Two rows of stations on a common ground."""
    figure, axes = plt.subplots(figsize=(11.6, 5.9), layout="constrained")
    axes.set(xlim=(0, 100), ylim=(-3, 46))
    axes.axis("off")
    columns = [0.5 + 26.0 * k for k in range(4)]
    upper = 31.5
    lower = 12.0
    for x, (title, place, lines, colour) in zip(columns, THERE, strict=True):
        station(axes, x, upper, title, place, lines, colour)
    for x, (title, place, lines, colour) in zip(columns, BACK, strict=True):
        station(axes, x, lower, title, place, lines, colour)
    high = upper + HEIGHT / 2
    low = lower + HEIGHT / 2
    for k in range(2):
        arrow(axes, (columns[k] + WIDTH, high), (columns[k + 1], high))
    axes.text(columns[2] + WIDTH + 2.5, high + 3.2, "asks for", size=8, ha="center", color=PALE)
    arrow(axes, (columns[2] + WIDTH, high + 1.6), (columns[3], high + 1.6))
    arrow(axes, (columns[3], high - 1.6), (columns[2] + WIDTH, high - 1.6))
    # Prepared: from the method down to the driver.
    middle = columns[2] + 0.8 * WIDTH
    arrow(axes, (middle, upper), (columns[3] + 0.2 * WIDTH, lower + HEIGHT))
    axes.text(middle + 7.0, upper - 2.2, "Prepared", size=8.5, style="italic", color=INK)
    # Driver and stopping talk to each other.
    arrow(axes, (columns[3], low + 1.6), (columns[2] + WIDTH, low + 1.6))
    arrow(axes, (columns[2] + WIDTH, low - 1.6), (columns[3], low - 1.6))
    axes.text(columns[2] + WIDTH + 2.5, low + 2.4, "state", size=8, ha="center", color=PALE)
    axes.text(columns[2] + WIDTH + 2.5, low - 3.6, "done?", size=8, ha="center", color=PALE)
    arrow(axes, (columns[1], low), (columns[0] + WIDTH, low))
    # The outcome passes below the stopping rule.
    edge = lower - 1.6
    axes.plot(
        [columns[3] + WIDTH / 2, columns[3] + WIDTH / 2, columns[1] + WIDTH / 2],
        [lower, edge, edge],
        color=INK,
        lw=1.3,
        solid_joinstyle="miter",
    )
    arrow(axes, (columns[1] + WIDTH / 2, edge), (columns[1] + WIDTH / 2, lower))
    axes.text(columns[2] + WIDTH / 2, edge - 1.4, "last state", size=8, ha="center", color=PALE)
    # What the workspace hands back at the end.
    arrow(axes, (columns[1] + 0.35 * WIDTH, upper), (columns[1] + 0.35 * WIDTH, lower + HEIGHT))
    axes.text(columns[1] + 0.38 * WIDTH, upper - 3.2, "the same equations", size=8, color=PALE)
    ground(axes, columns[0], columns[3] + WIDTH - columns[0])
    return figure


def ground(axes: Axes, x: float, width: float) -> None:
    """What all stations stand on, and the colours."""
    axes.add_patch(
        FancyBboxPatch(
            (x, 1.6), width, 5.2, boxstyle="round,pad=0,rounding_size=0.9", fc="white", ec=PALE
        )
    )
    axes.text(x + 1.0, 4.2, GROUND, size=8.8, va="center", color=INK)
    for k, (colour, name) in enumerate(
        ((SETUP, "charged to setup"), (SOLVE, "charged to solve"), (MONITOR, "charged to monitor"))
    ):
        left = x + 24.0 * k
        axes.add_patch(plt.Rectangle((left, -1.9), 2.2, 1.8, fc=colour, ec=PALE, lw=0.8))
        axes.text(left + 3.0, -1.0, name, size=8.8, va="center", color=INK)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    draw().savefig(target, dpi=120, metadata={"Software": None})
