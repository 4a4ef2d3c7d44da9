"""The value that loading and generating return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

__all__ = ["Dataset"]


@dataclass(frozen=True, eq=False, slots=True)
class Dataset:
    """A binary classification set: rows ``X`` (CSR, float64), labels ``y`` in {-1, +1}.

    ``source`` is ``"libsvm"`` for the published file and ``"generated"`` for a look-alike, whose
    ``name`` ends in ``-like``.
    """

    name: str
    X: csr_array[np.float64]
    y: NDArray[np.float64]
    source: Literal["libsvm", "generated"]

    def __repr__(self) -> str:
        rows, columns = self.X.shape
        return (
            f"Dataset({self.name!r}, {rows:,} rows, {columns:,} features, "
            f"{self.X.nnz:,} nonzeros, {self.source})"
        )
