"""In which units columns and labels enter a vertical model: each party centres and scales alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.inputs import Array, is_sparse
from ccmac.linalg.tolerances import EPS

SMALL = 2_000_000  # entries of one party's columns that are stored in full where that helps
DENSE = 10_000_000  # and up to how many, where this share of them is filled
FILLED = 0.05


def power_of_two(values: Array) -> float:
    """The one nearest to the root mean square; 1 where all are zero."""
    size = float(np.sqrt(np.mean(np.square(values))))
    return float(np.exp2(np.round(np.log2(size)))) if 0 < size < math.inf else 1.0


def may_be_centred(X: Any) -> bool:
    """Stored in full anyway, small, or filled enough."""
    entries = X.shape[0] * X.shape[1]
    filled = is_sparse(X) and X.nnz >= FILLED * entries
    return bool(not is_sparse(X) or entries <= SMALL or (filled and entries <= DENSE))


def column_moments(
    X: Any, weights: Array | None, *, centre: bool, scale: bool
) -> tuple[Array | None, Array | None]:
    """(mean or None, deviation or None) of every column; 1 for a constant one."""
    if not (centre or scale):
        return None, None
    s = np.ones(X.shape[0]) if weights is None else weights
    mean = np.asarray(X.T @ s) / s.sum()
    if not scale:
        return mean, None
    if is_sparse(X):
        squares = np.asarray(X.multiply(X).T @ s) / s.sum() - mean**2
        rounding = 4.0 * EPS * X.shape[0] * mean**2
    else:
        squares = np.asarray(((X - mean) ** 2).T @ s) / s.sum()
        rounding = (4.0 * EPS * X.shape[0] * mean) ** 2
    constant = squares <= rounding
    constant[constant_columns(X)] = True
    return (mean if centre else None), np.sqrt(np.where(constant, 1.0, squares))


def constant_columns(X: Any) -> NDArray[np.int64]:
    """Their places."""
    low = X.min(axis=0)
    high = X.max(axis=0)
    return np.flatnonzero((low == high) if not is_sparse(X) else (high - low).toarray() == 0)


def entered(X: Any, mean: Array | None, scale: Array | None) -> Any:
    """(X - mean) / scale; in full where it is centred."""
    if mean is not None:
        X = (X.toarray() if is_sparse(X) else X) - mean
    if scale is None:
        return X
    return sp.csr_array(X / scale[None, :]) if is_sparse(X) else X / scale
