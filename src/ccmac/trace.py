"""The history of a run: one row an iteration, cumulative costs of the solve phase."""

from __future__ import annotations

import csv
import io
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.ledger import Ledger

COLUMNS = (
    "iteration", "seconds", "gradients", "argmins", "affine", "products", "rounds",
    "modelled_rounds", "bytes", "relative_error", "error_bound", "energy",
)  # fmt: skip


class Trace:
    """Rows of :data:`COLUMNS`; NaN where something was not measured at that iteration."""

    def __init__(self) -> None:
        self._rows: list[tuple[float, ...]] = []

    def record(
        self,
        iteration: int,
        seconds: float,
        ledger: Ledger,
        relative_error: float,
        bound: float,
        energy: float = math.nan,
    ) -> None:
        """Append one row."""
        products = sum(ledger[unit] for unit in "ABCD")
        self._rows.append(
            (
                iteration, seconds, ledger["gradients"], ledger["argmins"], ledger["affine"],
                products, ledger["rounds"], ledger["modelled_rounds"], ledger["bytes"],
                relative_error, bound, energy,
            )
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, column: str) -> NDArray[np.float64]:
        """One column as an array."""
        index = COLUMNS.index(column)
        return np.array([row[index] for row in self._rows], dtype=np.float64)

    def as_dict(self) -> dict[str, list[float]]:
        """All columns."""
        return {name: self[name].tolist() for name in COLUMNS}

    def to_csv(self) -> str:
        """Comma-separated text with a header."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in self._rows:
            writer.writerow([f"{v:.10g}" for v in row])
        return text.getvalue()

    def to_pandas(self) -> Any:
        """A DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.as_dict())

    def restore(self, columns: dict[str, list[float]]) -> None:
        """Continue a stored history."""
        names = [columns[name] for name in COLUMNS]
        self._rows = [tuple(row) for row in zip(*names, strict=True)]
