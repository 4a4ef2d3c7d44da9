"""Products and sums beyond double precision, for residuals and certificates.

In the longest floating-point format of the machine: on x86-64 it has 64 bits of mantissa, so that
what is computed here from doubles carries errors some 2,000 times smaller than doubles do, and a
residual of a double point is the residual and not its rounding. Where the format is no longer than
double, :data:`EPS_LONG` says so and bounds widen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.inputs import Array, is_sparse

Long = NDArray[np.longdouble]
EPS_LONG = float(np.finfo(np.longdouble).eps)
AT_ONCE = 2**20  # entries of a dense matrix that are lengthened at once


def product(matrix: Any, v: Array | Long) -> Long:
    """matrix @ v of a dense or sparse matrix; accumulated in the long format."""
    if 0 in matrix.shape:
        return np.zeros(matrix.shape[0], dtype=np.longdouble)
    v = v.astype(np.longdouble)
    if is_sparse(matrix) or matrix.size <= AT_ONCE:
        return np.asarray(matrix.astype(np.longdouble, copy=False) @ v)
    some = max(1, AT_ONCE // matrix.shape[1])
    parts = [matrix[k : k + some] for k in range(0, len(matrix), some)]
    return np.concatenate([part.astype(np.longdouble) @ v for part in parts])


def times(matrix: Any, v: Any) -> Any:
    """matrix @ v in the format of v."""
    return product(matrix, v) if v.dtype == np.longdouble else np.asarray(matrix @ v)


def thinned(matrix: Any) -> Any:
    """The matrix as it is multiplied often: sparse in the long format where most of it is zero."""
    # a matrix with less than one entry in so many is sparse
    if is_sparse(matrix) or np.count_nonzero(matrix) <= matrix.size // 4:
        return sp.csr_array(matrix).astype(np.longdouble)
    return np.asarray(matrix)


def halves(v: Long) -> Array:
    """v as two rows of doubles whose sum it is: what travels."""
    high = v.astype(np.float64)
    low = (v - high).astype(np.float64)
    return np.concatenate([high, low])


def summed(rows: Array) -> Long:
    """The sum of rows of halves, in row order."""
    half = rows.shape[1] // 2
    total: Long = np.zeros(half, dtype=np.longdouble)
    for row in rows:
        total += row[:half].astype(np.longdouble) + row[half:].astype(np.longdouble)
    return total


def gradient_rounding(gradient: Array | Long, point: Array | Long, L: float) -> float:
    """What rounding may have taken from a gradient: eps size (L ||point|| + ||gradient||).

    eps is that of the gradient's format; a point of more digits counts as one of doubles there.
    """
    unit = float(np.finfo(gradient.dtype).eps)
    return unit * (len(point) + 2) * (L * norm(point) + norm(gradient))


def norm(v: Any) -> float:
    """||v|| as a double."""
    long = np.asarray(v, dtype=np.longdouble)
    return float(np.sqrt(np.sum(long * long)))


def square(v: Any) -> float:
    """||v||^2 as a double; infinite where it is beyond."""
    length = norm(v)
    return length * length
