"""Figures of a suite, as pure functions of its records (matplotlib, no display needed)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.paper.experiments import analysis
from ccmac.paper.experiments.records import Record, read_records
from ccmac.storage.files import atomic_path
from ccmac.texts import shown

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#a65628")
MARKERS = {"path": "s", "ring": "o", "grid": "D", "erdos_renyi": "^", "random_regular": "v"}
MARKERS |= {"star": "*", "complete": "P"}
PANELS = (
    ("work", "gradient evaluations", ":", " (dotted: local argmins)"),
    ("products", "native affine products", "", ""),
    ("rounds", "neighbor rounds", "--", " (dashed: modelled)"),
)


def draw(folder: Path, out: Path, formats: Sequence[str] = ("png",)) -> list[Path]:
    """Write every figure the records allow; returns the files. None at all is an error."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise InputError("figures need matplotlib: pip install 'ccmac[plot]'") from None
    known = ("png", "pdf", "svg")
    if any(form not in known for form in formats):
        raise InputError(f"figure format {shown(formats)} is unknown; take {', '.join(known)}")
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    records = [r for r in read_records(folder) if r.finished]
    written = []
    drawn = figures(records)
    if not drawn:
        raise InputError(
            f"{folder}: its {len(records)} finished runs have nothing to draw; look at "
            f"ccmac suite status {folder}"
        )
    for name, figure in drawn.items():
        for form in formats:
            with atomic_path(out / f"{name}.{form}") as place:
                figure.savefig(place, dpi=160, bbox_inches="tight")
            written.append(out / f"{name}.{form}")
        plt.close(figure)
    return written


def figures(records: Sequence[Record]) -> dict[str, Any]:
    """Named figures: convergence by set and size, scaling in chi, accuracy in eps."""
    out: dict[str, Any] = {}
    factors = {round(r.cross_factor, 6) for r in records if not math.isnan(r.cross_factor)}
    labels = {r.run.label for r in records}
    if len(factors) >= 4 and analysis.affine_fit(records) is not None:
        for label in sorted(labels):
            own = [r for r in records if r.run.label == label]
            if analysis.affine_fit(own) is not None:
                out[f"scaling-{label}" if len(labels) > 1 else "scaling"] = scaling_figure(own)
    if len({r.run.tol for r in records}) >= 3 and analysis.accuracy_fit(records) is not None:
        out["accuracy"] = accuracy_figure(records)
    groups: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        if record.trace and np.isfinite(record.trace["relative_error"]).any():
            groups.setdefault((record.run.data, record.run.agents), []).append(record)
    for (data, agents), group in groups.items():
        name = Path(data).name
        out[f"convergence-{name}-{agents}"] = method_figure(group, f"{name}, {agents} agents")
    return out


def method_figure(records: Sequence[Record], title: str) -> Any:
    """Three panels of error against cost: seed traces, their range, and the median.

    Figure fig:experiments-a9a, Figure fig:experiments-mushrooms, Figure fig:experiments-a8a-n16.
    """
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13.5, 4.1), sharey=True, constrained_layout=True)
    labels = list(dict.fromkeys(r.run.label for r in records))
    for ax, (column, caption, special, remark) in zip(axes, PANELS, strict=True):
        styles = set()
        for k, label in enumerate(labels):
            group = [r for r in records if r.run.label == label]
            curves = [curve for r in group if (curve := _curve(r, column)) is not None]
            if curves:
                styles.add(style := _style(group, column))
                _draw_band(ax, curves, COLOURS[k % len(COLOURS)], label, style)
        ax.axhline(max(r.run.tol for r in records), color="black", ls=":", lw=1)
        ax.set(xscale="log", yscale="log", xlabel=caption + remark * (special in styles))
        ax.grid(alpha=0.25, which="major")
    axes[0].set_ylabel("relative squared error of the weights")
    curves_of: dict[str, Any] = {}
    for ax in axes:
        for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
            curves_of.setdefault(name, handle)
    handles = list(curves_of.values())
    columns = min(6, len(handles))
    figure.legend(handles, [*curves_of], loc="outside lower center", ncols=columns, frameon=False)
    figure.suptitle(f"{title} ({records[0].run.profile} profile)")
    return figure


def _curve(record: Record, column: str) -> tuple[Any, Any] | None:
    trace = record.trace
    name = column
    if column == "work":
        name = "gradients" if trace["gradients"][-1] > 0 else "argmins"
    x = trace[name]
    error = trace["relative_error"]
    keep = np.isfinite(error) & (x > 0)
    return (x[keep], error[keep]) if keep.any() else None


def _style(group: Sequence[Record], column: str) -> str:
    if column == "rounds" and any(r.modelled for r in group):
        return "--"
    if column == "work" and not any(r.count("gradients") for r in group):
        return ":"
    return "-"


def _draw_band(
    ax: Any, curves: Sequence[tuple[Any, Any]], colour: str, label: str, style: str
) -> None:
    for x, error in curves:
        ax.plot(x, error, color=colour, lw=0.6, alpha=0.45)
    found = analysis.band(curves)
    if len(curves) > 1:
        ax.fill_between(found.x, found.low, found.high, color=colour, alpha=0.15, lw=0)
    ax.plot(found.x, found.median, color=colour, lw=2, ls=style, label=label)


def scaling_figure(records: Sequence[Record]) -> Any:
    """Affine calls against chi and rounds against chi sqrt(kappa_W), with the fitted powers.

    Figure fig:experiments-scaling.
    """
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.4), constrained_layout=True)
    done = [r for r in records if r.reached]
    sets = list(dict.fromkeys(r.run.data for r in done))
    kind = "modelled neighbor rounds" if any(r.modelled for r in done) else "neighbor rounds"
    panels: tuple[tuple[Any, ...], ...] = (
        (
            axes[0],
            lambda r: r.cross_factor,
            lambda r: float(r.count("affine")),
            analysis.affine_fit,
            r"cross factor $\chi$",
            "normalized affine calls",
            r"\alpha_{\rm aff}",
        ),
        (
            axes[1],
            lambda r: r.cross_factor * math.sqrt(r.kappa_W),
            lambda r: float(r.rounds),
            analysis.communication_fit,
            r"$\chi\sqrt{\kappa_W}$",
            kind,
            r"\alpha_{\rm comm}",
        ),
    )
    for ax, abscissa, count, fit, xlabel, ylabel, symbol in panels:
        for record in done:
            family = record.run.network["family"]
            colour = COLOURS[sets.index(record.run.data) % len(COLOURS)]
            look = {"ms": 5, "mew": 0.8, "mfc": "none", "color": colour}
            ax.plot(abscissa(record), count(record), MARKERS.get(family, "x"), **look)
        found = fit(done)
        if found is not None:
            _draw_fit(ax, done, abscissa, count, found.exponents[0])
            ax.set_title(f"${symbol}$ = {found.text()}", fontsize=11)
        ax.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel)
        _few_ticks(ax)
        ax.grid(alpha=0.25, which="both")
    _scaling_legend(axes[0], sets, done)
    return figure


def accuracy_figure(records: Sequence[Record]) -> Any:
    """Gradients and rounds against 1/eps, one line for each cross factor."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.1), constrained_layout=True)
    done = sorted((r for r in records if r.reached), key=lambda r: -r.run.tol)
    lines: dict[str, list[Record]] = {}
    for record in done:
        name = f"{record.run.data}, chi = {record.cross_factor:.3g}"
        lines.setdefault(name, []).append(record)
    for ax, caption in zip(axes, ("gradients", "rounds"), strict=True):
        for k, (name, own) in enumerate(lines.items()):
            counts = [r.count("gradients") if caption == "gradients" else r.rounds for r in own]
            colour = COLOURS[k % len(COLOURS)]
            inverse = [1 / r.run.tol for r in own]
            ax.plot(inverse, counts, "o-", mfc="none", label=name, color=colour)
        ax.set(xscale="log", yscale="log", xlabel="1/eps", ylabel=caption)
        _few_ticks(ax)
        ax.grid(alpha=0.25, which="both")
    found = analysis.accuracy_fit(done)
    if found is not None:
        axes[0].set_title(f"gradients ~ (1/eps)^p, p = {found.text()}", fontsize=11)
    axes[0].legend(frameon=False, fontsize=8)
    return figure


def _few_ticks(ax: Any) -> None:
    """Plain numbers at 1, 2 and 5: axes of one or two decades are otherwise crowded or bare."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_locator(NullLocator())


def _draw_fit(ax: Any, done: Sequence[Record], abscissa: Any, count: Any, slope: float) -> None:
    used = [r for r in done if r.cross_factor >= analysis.PLATEAU * (1 - 1e-9)]
    x = np.array([abscissa(r) for r in used])
    y = np.array([count(r) for r in used])
    level = np.exp(np.mean(np.log(y) - slope * np.log(x)))
    ends = np.array([x.min(), x.max()])
    ax.plot(ends, level * ends**slope, color="black", lw=1.2)


def _scaling_legend(ax: Any, sets: Sequence[str], done: Sequence[Record]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=COLOURS[k % len(COLOURS)], lw=3) for k in range(len(sets))]
    families = list(dict.fromkeys(r.run.network["family"] for r in done))
    handles += [
        Line2D([], [], ls="", marker=MARKERS.get(f, "x"), mfc="none", color="gray")
        for f in families
    ]
    names = [*sets, *(f.replace("_", " ") for f in families)]
    ax.legend(handles, names, frameon=False, fontsize=8)
