"""The figures of the pages, each drawn from a run or from a table of a page.

    python docs/make/figures.py           all of them
    python docs/make/figures.py bound     one

Needs Matplotlib and scikit-learn. Look at a picture before committing it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyBboxPatch

import ccmac
from ccmac import objectives
from ccmac.show import BLUE, GREEN, MOST, OCHRE, RED, TONES, blank

DOCS = Path(__file__).resolve().parents[1]
IMAGES = DOCS / "images"
GREY = "#8d99ae"
FIGURES: dict[str, Callable[[], Any]] = {}


def figure(draw: Callable[[], Any]) -> Callable[[], Any]:
    """Register a function that returns axes; its name is the picture's."""
    FIGURES[draw.__name__] = draw
    return draw


def plants(shares: tuple[float, ...] = (0.1, 0.2, 0.7)) -> ccmac.Problem:
    """Three plants with a common demand and a reserve z: the example of the Learn pages."""
    agents = []
    for name, cost, share, demand in zip(
        ("north", "south", "east"), (1.0, 2.0, 4.0), shares, (3.0, 4.0, 2.0), strict=True
    ):
        f = objectives.Quadratic(np.diag([cost, 1.0]), [0.0, 4.0])
        agents.append(ccmac.Agent(f, A=[[1.0]], B=[[-share]], b=[demand], name=name))
    return ccmac.Problem(agents, row_names=["demand"], z_names=["reserve"])


def learner(shares: Any = None) -> ccmac.Problem:
    """Eight parties and one table, for runs with a history."""
    random = np.random.default_rng(0)
    X = random.standard_normal((300, 24))
    return ccmac.vfl.problem(X, X @ random.standard_normal(24), 8, shares=shares)


# -- Learn -----------------------------------------------------------------------------------------
@figure
def problem() -> Any:
    return plants().plot()


@figure
def geometry() -> Any:
    left, right = blank(None, (9.0, 3.6), 2)
    ccmac.geometry(plants()).plot(left)
    angles = np.radians(np.linspace(8, 90, 200))
    right.plot(np.degrees(angles), 1 / np.tan(angles / 2), color=BLUE)
    theta = ccmac.geometry(plants()).friedrichs_angle
    right.plot(np.degrees(theta), 1 / np.tan(theta / 2), "o", color=RED, label="the three plants")
    right.set(xlabel="Friedrichs angle, degrees", ylabel="cross factor chi", ylim=(0, 12))
    right.legend(frameon=False)
    return left


@figure
def plan() -> Any:
    axes = ccmac.plan(learner(), "ring", tol=1e-6).plot()
    axes.set_xlabel("neighbor rounds")
    return axes


@figure
def bound() -> Any:
    agents = []
    for i in range(6):
        random = np.random.default_rng(i)
        f = objectives.Quadratic(np.diag([*np.logspace(0, 2, 6), 1.0, 1.0]), np.arange(8.0))
        A, B = random.standard_normal((4, 6)), random.standard_normal((4, 2))
        agents.append(ccmac.Agent(f, A=A, B=B, b=np.ones(4)))
    whole = ccmac.Problem(agents)
    exact = ccmac.solve(whole, "ring", tol=1e-12)
    points = []
    for steps in range(10, 310, 20):
        stopped = ccmac.solve(whole, "ring", "cross-apapc", tol=1e-9, max_iterations=steps)
        gap = [a - b for a, b in zip(stopped.x, exact.x, strict=True)] + [stopped.z - exact.z]
        error = float(np.linalg.norm(np.concatenate(gap)))
        points.append((stopped.ledger["rounds"], error, stopped.error_bound))
    rounds, errors, bounds = np.array(points).T
    axes = blank(None, (6.5, 3.8))
    axes.semilogy(rounds, bounds, "o-", ms=4, color=RED, label="proved bound")
    axes.semilogy(rounds, errors, "s-", ms=4, color=BLUE, label="true error")
    axes.set(xlabel="neighbor rounds", ylabel="distance to the solution")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    return axes


@figure
def bill() -> Any:
    return ccmac.solve(learner(), "ring", "cross-apapc").ledger.plot()


@figure
def result() -> Any:
    return ccmac.solve(learner(("cross_factor", 3.0)), "ring", "cross-apapc").plot()


# -- Do --------------------------------------------------------------------------------------------
@figure
def vertical() -> Any:
    from sklearn.datasets import load_diabetes
    from sklearn.linear_model import Ridge

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    tables = {"clinic": X.iloc[:, :4], "laboratory": X.iloc[:, 4:]}
    model = ccmac.vfl.VerticalRidge(alpha=0.1).fit(tables, y)
    pooled = Ridge(alpha=0.1).fit(X, y)
    place = np.arange(X.shape[1])
    axes = blank(None, (7.5, 3.4))
    alone = [Ridge(alpha=0.1).fit(table, y).coef_ for table in tables.values()]
    axes.bar(place - 0.27, pooled.coef_, 0.27, color=GREY, label="all columns joined")
    axes.bar(place, model.coef_, 0.27, color=BLUE, label="VerticalRidge")
    axes.bar(place + 0.27, np.concatenate(alone), 0.27, color=OCHRE, label="each party alone")
    axes.set_xticks(place, X.columns)
    axes.set(ylabel="coefficient", title="the clinic has the first four columns")
    axes.legend(frameon=False)
    return axes


@figure
def operations() -> Any:
    names: dict[str, Any] = {}
    code = re.findall(r"```python\n(.*?)```", (DOCS / "operations.md").read_text(), re.DOTALL)
    exec(code[0], names)
    left, right = blank(None, (9.0, 3.2), 2)
    made = names["result"].named["x"]
    bottom = np.zeros(len(made))
    rows = np.array(list(made.values()))
    for k, product in enumerate(("tables", "chairs")):
        left.bar(list(made), rows[:, k], bottom=bottom, color=(BLUE, OCHRE)[k], label=product)
        bottom += rows[:, k]
    left.set(ylabel="pieces a week")
    left.legend(frameon=False)
    worth = {k: abs(v) for k, v in names["result"].named["coupled"].items()}
    right.barh(list(worth), list(worth.values()), color=RED)
    right.set(xlabel="worth of one unit more")
    return left


@figure
def limits() -> Any:
    capacities = np.linspace(2, 9, 29)
    prices = []
    for capacity in capacities:
        f = objectives.SquaredDistance()
        agents = [
            ccmac.Agent(f, A=[[1.0]], b=[4.0], upper=capacity if i == 0 else None) for i in range(3)
        ]
        result = ccmac.solve(ccmac.Problem(agents, sense=">=", q=0), tol=1e-8)
        prices.append((-result.multipliers.coupled[0], result.multipliers.upper[0][0]))
    axes = blank(None, (6.5, 3.4))
    axes.plot(capacities, np.array(prices)[:, 0], color=BLUE, label="price of the demand")
    axes.plot(capacities, np.array(prices)[:, 1], color=RED, label="worth of the capacity")
    axes.set(xlabel="capacity of agent 0", ylabel="multiplier")
    axes.legend(frameon=False)
    return axes


@figure
def again() -> Any:
    names: dict[str, Any] = {}
    code = re.findall(r"```python\n(.*?)```", (DOCS / "again.md").read_text(), re.DOTALL)
    for block in code:
        exec(block, names)
    steps = [run.ledger for run in names["nights"]]
    axes = blank(None, (6.5, 3.2))
    base = np.zeros(len(steps))
    for phase in ("setup", "solve", "monitor"):
        height = np.array([ledger.of(phase)["rounds"] for ledger in steps], dtype=float)
        axes.bar(range(1, len(steps) + 1), height, bottom=base, color=TONES[phase], label=phase)
        base += height
    axes.set(xlabel="night", ylabel="neighbor rounds")
    axes.legend(frameon=False)
    return axes


@figure
def losses() -> Any:
    v = np.linspace(-3, 3, 241)
    left, right = blank(None, (9.0, 3.4), 2)
    none = np.zeros(0)
    for name, f in {
        "SquaredDistance": objectives.SquaredDistance(),
        "Huber": objectives.Huber(None, [0.0]),
        "L1": objectives.L1(),
        "ElasticNet(1, 1)": objectives.ElasticNet(1.0, 1.0),
    }.items():
        left.plot(v, [f.value(np.array([s]), none) for s in v], label=name)
    for name, g in {
        "Logistic": objectives.Logistic(None, [1.0]),
        "Hinge": objectives.Hinge(None, [1.0]),
        "MaxAffine": objectives.MaxAffine([[-0.5], [0.25]]),
    }.items():
        right.plot(v, [g.value(np.array([s]), none) for s in v], label=name)
    left.set(ylim=(0, 4), xlabel="v", title="distances and penalties")
    right.set(ylim=(0, 4), xlabel="v", title="losses of the class +1, and a maximum")
    for axes in (left, right):
        axes.legend(frameon=False)
    return left


@figure
def tracking() -> Any:
    module = sys.modules["page"] = ModuleType("page")  # dataclasses look for their module
    names = vars(module)
    page = (DOCS / "your-own-method.md").read_text(encoding="utf-8")
    exec(re.findall(r"```python\n(# gradient_tracking.py.*?)```", page, re.DOTALL)[0], names)
    problem = names["regression"](8, 0)
    exact = ccmac.solve(problem, "ring", tol=1e-12)
    axes = blank(None, (6.5, 3.6))
    for method, color in ((names["GradientTracking"](), RED), ("cross-apapc", BLUE)):
        run = ccmac.solve(problem, "ring", method, tol=1e-12, reference=exact, max_iterations=900)
        label = method if isinstance(method, str) else method.name
        axes.semilogy(run.trace["rounds"], run.trace["relative_error"], color=color, label=label)
    axes.set(xlabel="neighbor rounds", ylabel="relative squared error")
    axes.legend(frameon=False)
    return axes


@figure
def methods() -> Any:
    page = (DOCS / "methods-why.md").read_text(encoding="utf-8").partition("## Measured")[2]
    sets = ("a9a", "mushrooms", "w8a", "a8a")
    axes = blank(None, (8.0, 4.6))
    names = []
    for line in re.findall(r"^\| `([\w-]+)` \|(.*)$", page, re.MULTILINE)[:MOST]:
        counts = [int(k.replace(",", "")) for k in re.findall(r"([\d,]+) \([\d,]+\)", line[1])]
        setup = [int(k.replace(",", "")) for k in re.findall(r"\(([\d,]+)\)", line[1])]
        if len(counts) == len(sets):
            names.append((line[0], np.add(counts, setup)))
    names.sort(key=lambda pair: pair[1][0])
    for k, color in enumerate((BLUE, OCHRE, GREEN, RED)):
        axes.scatter([t[k] for _, t in names], range(len(names)), color=color, label=sets[k])
    axes.set_xscale("log")
    axes.set_yticks(range(len(names)), [name for name, _ in names])
    axes.invert_yaxis()
    axes.set(xlabel="neighbor rounds, setup and solve")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return axes


@figure
def scale() -> Any:
    page = (DOCS / "scale.md").read_text(encoding="utf-8")
    axes = blank(None, (7.0, 3.6))
    unit = {"ms": 1e-3, "s": 1.0, "us": 1e-6, "min": 60.0}
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for agents, network, links, time, of in re.findall(
        r"^\| ([\d,]+) \| ([^|]+?) \| [\d,]+ \| ([^|]+?) \| ([\d.,]+) (\w+) \|", page, re.MULTILINE
    ):
        kind = "grid" if network.startswith("grid") else network
        seconds = float(time.replace(",", "")) * unit[of]
        found.setdefault((kind, links), []).append((int(agents.replace(",", "")), seconds))
    for (kind, links), points in found.items():
        if len(points) > 1:
            axes.loglog(*np.array(sorted(points)).T, "o-", ms=4, label=f"{kind}, {links}")
    axes.set(xlabel="agents", ylabel="seconds an iteration")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small", bbox_to_anchor=(1, 1))
    return axes


# -- diagrams --------------------------------------------------------------------------------------
def box(axes: Any, x: float, y: float, text: str, color: str, width: float = 2.0) -> None:
    """A rounded box with text."""
    shape = FancyBboxPatch(
        (x - width / 2, y - 0.4), width, 0.8, "round,pad=0.05", fc=color, ec="#333", lw=0.8
    )
    axes.add_patch(shape)
    axes.text(x, y, text, ha="center", va="center", fontsize=9)


def link(axes: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    """A line with two heads."""
    axes.annotate("", end, start, arrowprops={"arrowstyle": "<->", "color": "#333"})


def sheet(size: tuple[float, float], wide: float, high: float) -> Any:
    """Axes without ticks."""
    axes = blank(None, size)
    axes.set(xlim=(0, wide), ylim=(0, high))
    axes.set_axis_off()
    return axes


@figure
def owners() -> Any:
    axes = sheet((8.0, 3.6), 10.0, 4.5)
    places = {"north": (1.6, 2.25), "east": (5.0, 3.8), "south": (8.4, 2.25), "west": (5.0, 0.7)}
    for name, (x, y) in places.items():
        box(axes, x, y, f"{name}\nits data, its $x_i$", "#dbe9f6", 2.3)
    pairs = [("north", "east"), ("east", "south"), ("south", "west"), ("west", "north")]
    for one, other in pairs:
        (a, b), (c, d) = places[one], places[other]
        start = (a + 0.3 * (c - a), b + 0.3 * (d - b))
        link(axes, start, (a + 0.7 * (c - a), b + 0.7 * (d - b)))
    axes.text(
        5.0,
        2.25,
        "TLS 1.3 between neighbors\nz, multiplier, bound: known to all\nno server, no pooled data",
        ha="center",
        va="center",
        fontsize=9,
    )
    return axes


@figure
def ranks() -> Any:
    axes = sheet((8.0, 2.6), 10.0, 3.2)
    for rank, agents in enumerate((range(3), range(3, 6), range(6, 8))):
        x = 1.7 + 3.3 * rank
        box(axes, x, 2.2, "  ".join(f"agent {i}" for i in agents), "#dbe9f6", 2.8)
        axes.text(x, 1.45, f"rank {rank}", ha="center", fontsize=9)
        if rank:
            link(axes, (x - 1.85, 2.2), (x - 1.45, 2.2))
    axes.text(
        5.0,
        0.6,
        "every sum in one order: the same bits and the same bill\non one process and on three",
        ha="center",
        fontsize=9,
    )
    return axes


@figure
def statuses() -> Any:
    axes = sheet((8.6, 3.4), 11.0, 4.4)
    steps = [
        ("a proof that\nno solution exists?", "infeasible,\nunbounded"),
        ("a bound, gap or\nreference met?", "optimal"),
        ("an estimate\nmet?", "converged"),
        ("nothing more\nto gain?", "stalled"),
    ]
    for k, (ask, word) in enumerate(steps):
        x = 1.4 + 2.7 * k
        box(axes, x, 3.4, ask, "#f4f4f4", 2.2)
        box(axes, x, 1.3, word, "#dbe9f6", 2.0)
        axes.annotate(
            "yes",
            (x, 1.75),
            (x, 2.72),
            ha="center",
            fontsize=8,
            arrowprops={"arrowstyle": "->", "color": "#333"},
        )
        if k:
            axes.annotate(
                "",
                (x - 1.17, 3.4),
                (x - 1.5, 3.4),
                arrowprops={"arrowstyle": "->", "color": "#333"},
            )
    axes.text(
        5.5,
        0.35,
        "from left to right: the first answer that is yes names the status",
        ha="center",
        fontsize=9,
    )
    return axes


def main(names: list[str]) -> int:
    """Draw those named, or all."""
    for name in names or FIGURES:
        axes = FIGURES[name]()
        target = IMAGES / f"{name}.png"
        np.ravel(axes)[0].figure.savefig(target, dpi=110, metadata={"Software": None})
        plt.close("all")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
