"""What a solve returns: the solution, how good it provably is, and what it cost."""

from __future__ import annotations

import csv
import html
import io
import math
from array import array
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ccmac.inputs import Array
from ccmac.ledger import PHASES, Ledger
from ccmac.plans import Plan

ADVICE = {
    "optimal": "the tolerance is reached",
    "converged": "the tolerance is reached by an estimate; see .error_estimate",
    "stalled": "nothing more is to be gained in double precision; see .error_bound and .residuals",
    "max_iterations": "stopped by the iteration or time limit; raise it or loosen tol",
    "unbounded": "the objective falls without bound along a direction that keeps the equations",
    "infeasible": "the equations contradict each other; see .infeasibility",
    "interrupted": "stopped by the user; the iterate is usable and can warm-start a new run",
    "diverged": "the iterates grew without bound; check the constants of the objectives",
}


COLUMNS = (
    "iteration", "seconds", "gradients", "argmins", "affine", "products", "rounds",
    "modelled_rounds", "bytes", "relative_error", "error_bound", "energy",
)  # fmt: skip
WIDTH = len(COLUMNS)


ROWS = 20_000


class Trace:
    """The history of a run: one row per iteration, cumulative costs of the solve phase.

    A row has the :data:`COLUMNS`; NaN where something was not measured at that iteration. Of a run
    of more than ``limit`` rows every second is kept, later every fourth, and so on, and always the
    first and the last. ``epoch`` counts how often rows were dropped.
    """

    def __init__(self, limit: int = ROWS) -> None:
        self.limit = max(int(limit), 2)
        self._values = array("d")
        self._seen, self._stride, self.epoch = 0, 1, 0

    def record(
        self, iteration: int, seconds: float, ledger: Ledger, relative_error: float, bound: float,
        energy: float = math.nan,
    ) -> None:  # fmt: skip
        """Append one row."""
        products = sum(ledger[unit] for unit in "ABCD")
        row = (
            iteration, seconds, ledger["gradients"], ledger["argmins"], ledger["affine"],
            products, ledger["rounds"], ledger["modelled_rounds"], ledger["bytes"],
            relative_error, bound, energy,
        )  # fmt: skip
        if self._loose:
            del self._values[-WIDTH:]
        self._values.extend(row)
        self._seen += 1
        if len(self) > self.limit:
            self._thin()

    @property
    def _loose(self) -> bool:
        """Whether the last row is there only because it is the last."""
        return self._seen > 0 and (self._seen - 1) % self._stride != 0

    def _thin(self) -> None:
        last, settled = self._values[-WIDTH:], self.since(0)
        self._stride, self.epoch = 2 * self._stride, self.epoch + 1
        self._values = array("d", np.ascontiguousarray(settled[::2]).tobytes())
        if self._loose:
            self._values.extend(last)

    def __len__(self) -> int:
        return len(self._values) // WIDTH

    @property
    def _table(self) -> Array:
        return np.array(self._values, dtype=np.float64).reshape(-1, WIDTH)

    def __getitem__(self, column: str) -> Array:
        """One column as an array."""
        return self._table[:, COLUMNS.index(column)].copy()

    def as_dict(self) -> dict[str, list[float]]:
        """All columns."""
        return {name: self[name].tolist() for name in COLUMNS}

    def to_csv(self) -> str:
        """Comma-separated text with a header."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in self._table.tolist():
            writer.writerow([f"{v:.10g}" for v in row])
        return text.getvalue()

    def to_pandas(self) -> Any:
        """A DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.as_dict())

    # -- for a checkpoint --------------------------------------------------------------------------
    @property
    def settled(self) -> int:
        """How many rows stay as they are within this epoch."""
        return len(self) - self._loose

    def since(self, first: int) -> Array:
        """The settled rows from ``first`` on."""
        values = self._values[WIDTH * first : WIDTH * self.settled]
        return np.array(values, dtype=np.float64).reshape(-1, WIDTH)

    def memory(self) -> dict[str, Any]:
        """Everything but the settled rows; numbers as text, since some are NaN."""
        last = [repr(v) for v in self._values[-WIDTH:]] if self._loose else []
        return {
            "seen": self._seen, "stride": self._stride, "epoch": self.epoch, "limit": self.limit,
            "last": last,
        }  # fmt: skip

    def restore(self, settled: Array, memory: dict[str, Any]) -> None:
        """Continue a stored history; ValueError where the two do not fit."""
        counts = [memory[name] for name in ("seen", "stride", "epoch", "limit")]
        if any(type(v) is not int or v < 0 for v in counts) or min(counts[1], counts[3] - 1) < 1:
            raise ValueError("the counts of the trace are none")
        self._seen, self._stride, self.epoch, self.limit = counts
        self._values = array("d", np.ascontiguousarray(settled, dtype=np.float64).tobytes())
        last = [float(v) for v in memory["last"]]
        if len(last) != WIDTH * self._loose or len(self) != -(-self._seen // self._stride):
            raise ValueError("the rows of the trace do not fit their counts")
        self._values.extend(last)


@dataclass
class Solution:
    """A point (x_i, z), accepted wherever a reference or a warm start is."""

    x: list[Array]
    z: Array
    multipliers: Any = None


@dataclass
class Result(Solution):
    """The outcome of :func:`ccmac.solve`.

    ``error_bound`` is a certified bound on ||(x, z) - (x*, z*)|| computed without knowing the
    solution (NaN where a method offers none, or where it rests on an estimate: that is
    ``error_estimate``). Under MPI ``x`` holds the agents of this process.
    """

    status: str = "max_iterations"
    objective: float = float("nan")
    residuals: dict[str, float] = field(default_factory=dict)
    error_bound: float = float("nan")
    error_estimate: float = float("nan")
    iterations: int = 0
    seconds: float = 0.0
    relative_error: float = float("nan")
    ledger: Ledger = field(default_factory=Ledger)
    trace: Trace = field(default_factory=Trace)
    plan: Plan | None = None
    certificates: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    infeasibility: Any = None
    warnings: list[str] = field(default_factory=list)
    agents: range = range(0)
    _problem: Any = field(default=None, repr=False)
    _geometry: Any = field(default=None, repr=False)

    @property
    def geometry(self) -> Any:
        """The geometry of the user's problem (computed when first asked for)."""
        if self._geometry is None and self._problem is not None:
            from ccmac.angles.measure import geometry

            self._geometry = geometry(self._problem)
        return self._geometry

    @property
    def message(self) -> str:
        """The status in words."""
        if self.infeasibility is not None:
            return str(self.infeasibility.message)
        return ADVICE.get(self.status, self.status)

    def as_dict(self, *, solution: bool = False) -> dict[str, Any]:
        """Everything but the trace, ready for JSON."""
        names = (
            "status", "message", "objective", "error_bound", "error_estimate", "relative_error",
            "iterations", "seconds", "residuals", "ledger", "plan", "certificates", "provenance",
            "warnings",
        )  # fmt: skip
        record: dict[str, Any] = {name: getattr(self, name) for name in names}
        record["ledger"] = self.ledger.as_dict()
        record["plan"] = None if self.plan is None else self.plan.as_dict()
        if self.infeasibility is not None:
            record["infeasibility"] = self.infeasibility.as_dict()
        if solution:
            record["x"] = [block.tolist() for block in self.x]
            record["z"] = np.asarray(self.z).tolist()
        return record

    def __str__(self) -> str:
        head = self.plan.method if self.plan is not None else "solve"
        lines = [f"{head}: {self.status} after {self.iterations} iterations ({self.message})"]
        if np.isfinite(self.objective):
            lines.append(f"objective     {self.objective:.10g}")
        if np.isfinite(self.error_bound):
            lines.append(f"error bound   {self.error_bound:.3g}  (certified, in your variables)")
        if np.isfinite(self.error_estimate):
            lines.append(f"error         {self.error_estimate:.3g}  (estimated, not proved)")
        if np.isfinite(self.relative_error):
            lines.append(f"relative err  {self.relative_error:.3g}  (to the reference)")
        shown = ", ".join(f"{k} {v:.1e}" for k, v in self.residuals.items())
        if shown:
            lines.append(f"residuals     {shown}")
        lines += [f"warning       {text}" for text in self.warnings]
        lines += ["", str(self.ledger)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(unit)}</th>"
            + "".join(f"<td>{self.ledger.of(p)[unit]:,}</td>" for p in PHASES)
            + "</tr>"
            for unit in self.ledger.as_dict()["solve"]
        )
        head = "".join(f"<th>{p}</th>" for p in PHASES)
        method = html.escape(self.plan.method if self.plan is not None else "")
        return (
            f"<div><b>{method}: {html.escape(self.status)}</b> after {self.iterations} iterations"
            f"<br>objective {self.objective:.8g}, certified error bound {self.error_bound:.3g}"
            f"<br>{html.escape(self.message)}"
            f"<table><tr><th></th>{head}</tr>{rows}</table></div>"
        )

    def plot(self, against: str = "rounds", ax: Any = None) -> Any:
        """Error against a resource of the trace (needs matplotlib); returns the axes."""
        import matplotlib.pyplot as plt

        axes = ax if ax is not None else plt.subplots(figsize=(6, 4))[1]
        x = self.trace[against]
        labels = {"relative_error": "relative squared error", "error_bound": "certified bound"}
        for column, label in labels.items():
            y = self.trace[column]
            known = np.isfinite(y) & (y > 0)
            if known.any():
                line = "-o" if known.sum() < 40 else "-"
                axes.semilogy(x[known], y[known], line, ms=3, label=label)
        axes.set_xlabel(f"{against} (solve phase)")
        axes.set_ylabel("error")
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
        return axes
