"""The history of a run, a row per iteration."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np

from ccmac import show
from ccmac.errors import UnknownName
from ccmac.inputs import Array
from ccmac.ledger import Ledger
from ccmac.texts import nearest, shown

COLUMNS = (
    "iteration",
    "seconds",
    "gradients",
    "argmins",
    "affine",
    "products",
    "rounds",
    "modelled_rounds",
    "bytes",
    "relative_error",
    "error_bound",
)


class Trace:
    """The history of a run: one row per iteration, cumulative costs of the solve phase.

    A row has the :data:`COLUMNS`; NaN where something was not measured at that iteration. Of a run
    of more than ``limit`` rows every second is kept, later every fourth, and so on, and always the
    first and the last.

    Parameters
    ----------
    limit : int
        Rows that are kept; of longer runs every second, every fourth, and so on.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Quadratic(np.eye(2), [1.0, 2.0])
    >>> problem = ccmac.Problem([ccmac.Agent(f, A=[[1]], B=[[1]], b=[1]) for _ in range(3)])
    >>> trace = ccmac.solve(problem, "ring", "cross-apapc").trace
    >>> bool(np.all(np.diff(trace["rounds"]) > 0))
    True
    """

    def __init__(self, limit: int = 20_000) -> None:
        self.limit = max(int(limit), 2)
        self._rows: list[tuple[float, ...]] = []
        self._seen = 0
        self._stride = 1

    def record(
        self, iteration: int, seconds: float, ledger: Ledger, relative_error: float, bound: float
    ) -> None:
        """Append one row."""
        products = sum(ledger[unit] for unit in "ABCD")
        row = (
            iteration,
            seconds,
            ledger["gradients"],
            ledger["argmins"],
            ledger["affine"],
            products,
            ledger["rounds"],
            ledger["modelled_rounds"],
            ledger["bytes"],
            relative_error,
            bound,
        )
        if self._loose:
            self._rows.pop()
        self._rows.append(row)
        self._seen += 1
        if len(self) > self.limit:
            self._stride *= 2
            self._rows = self._rows[: -1 if self._loose else None : 2]
            if self._loose:
                self._rows.append(row)

    @property
    def _loose(self) -> bool:
        """Whether the last row is there only because it is the last."""
        return self._seen > 0 and (self._seen - 1) % self._stride != 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def _table(self) -> Array:
        return np.array(self._rows, dtype=np.float64).reshape(-1, len(COLUMNS))

    def __getitem__(self, column: str) -> Array:
        """One column as an array."""
        if column not in COLUMNS:
            hint = nearest(column, COLUMNS)
            raise UnknownName(f"trace: column {shown(column)} is unknown; {hint}")
        k = COLUMNS.index(column)
        return np.array([row[k] for row in self._rows], dtype=np.float64)

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

    def plot(self, against: str = "rounds", ax: Any = None) -> Any:
        """Draw the errors against a column; returns the axes."""
        return show.draw_trace(self, against, ax)

    def __repr__(self) -> str:
        return f"Trace({len(self)} rows)"

    def _repr_html_(self) -> str:
        known = [name for name in COLUMNS if np.isfinite(self[name]).any()]
        rows = self._table[-5:, [COLUMNS.index(name) for name in known]]
        last = show.table(known, [[f"{v:.4g}" for v in row] for row in rows])
        return show.card(f"{self!r}, the last ones", [], last)

    # -- for a checkpoint --------------------------------------------------------------------------
    def memory(self) -> tuple[dict[str, int], Array]:
        """Counts and rows, for :meth:`recall`."""
        return {"seen": self._seen, "stride": self._stride, "limit": self.limit}, self._table

    def recall(self, counts: dict[str, int], rows: Array) -> None:
        """Continue a stored history; ValueError where the two do not fit."""
        self._seen, self._stride, self.limit = (
            int(counts[name]) for name in ("seen", "stride", "limit")
        )
        if min(self._stride, self.limit - 1) < 1 or rows.shape[1:] != (len(COLUMNS),):
            raise ValueError("the history is none")
        if len(rows) != -(-self._seen // self._stride) + self._loose:
            raise ValueError("the rows of the history do not fit their counts")
        self._rows = [tuple(row) for row in rows.tolist()]
