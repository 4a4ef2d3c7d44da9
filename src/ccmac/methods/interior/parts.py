"""Independent parts of an agent's equations: where all are small they are inverted one by one.

Without curvature or rows that tie unknowns together, as in vertical learning, an agent's matrix is
block-diagonal with a block for every column. Its inverse is as sparse as it is, and the Schur
complement X D X' one product of dense matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.inputs import Array
from ccmac.workspace.conic import StandardForm

SMALL = 12  # unknowns and rows of a part
FULL = 0.1  # share of entries from which on a product is one of dense matrices


class Parts:
    """The parts of a pattern [[P, G'], [G, I]], rows of one cone kept together."""

    def __init__(self, p: StandardForm) -> None:
        first = np.arange(p.rows)
        for _, rows in p.cone.groups:
            first[rows] = rows[:, :1]
        one = np.ones(p.rows)
        cones = sp.coo_array((one, (np.arange(p.rows), first)), shape=(p.rows, p.rows))
        pattern = sp.block_array([[abs(p.P) + sp.eye_array(p.size), None], [abs(p.G), cones]])
        self.count, self.label = sp.csgraph.connected_components(pattern, directed=False)
        sizes = np.bincount(self.label, minlength=self.count)
        self.small = bool(self.count) and int(sizes.max(initial=0)) <= SMALL
        order = np.argsort(self.label, kind="stable")
        self._slot = np.zeros(len(order), dtype=np.int64)
        starts = np.cumsum(sizes) - sizes
        self._slot[order] = np.arange(len(order)) - np.repeat(starts, sizes)
        self._size = sizes
        self._members = [
            order[starts[own][:, None] + np.arange(size)]
            for size in np.unique(sizes)
            for own in [np.flatnonzero(sizes == size)]
        ]

    def apart(self, on_z: Any, on_rows: Any) -> bool:
        """Whether no part is touched by two of z, or by one of z and a coupled row."""
        touched = sp.coo_array(on_z)
        pairs = np.unique(np.stack([self.label[touched.row], touched.col]), axis=1)
        of_z = np.bincount(pairs[0], minlength=self.count)
        of_rows = np.zeros(self.count, dtype=bool)
        of_rows[self.label[sp.coo_array(on_rows).row]] = True
        return bool((of_z <= 1).all()) and not bool((of_rows & (of_z > 0)).any())

    def inverse(self, M: Any) -> sp.csr_array:
        """M^{-1}, refined once."""
        whole = sp.coo_array(M)
        size = self._size[self.label[whole.row]]
        place = np.zeros(self.count, dtype=np.int64)
        found = []
        for members in self._members:
            parts, width = members.shape
            place[self.label[members[:, 0]]] = np.arange(parts)
            own = size == width
            row, column = whole.row[own], whole.col[own]
            blocks = np.zeros((parts, width, width))
            at = place[self.label[row]], self._slot[row], self._slot[column]
            blocks[at] = whole.data[own]
            rows = np.repeat(members, width, axis=1).ravel()
            columns = np.tile(members, width).ravel()
            found.append((np.linalg.inv(blocks).ravel(), rows, columns))
        data, rows, columns = (np.concatenate(parts) for parts in zip(*found, strict=True))
        N = sp.csr_array((data, (rows, columns)), shape=M.shape)
        return sp.csr_array(N + N @ (sp.eye_array(M.shape[0]) - M @ N))


def congruence(N: sp.csr_array, border: sp.csr_array, q: int) -> Array:
    """border' N border, of columns that belong to ``q`` of z and to coupled rows."""
    on_z = border[:, :q]
    on_rows = border[:, q:]
    k = border.shape[1]
    found = np.zeros((k, k))
    if q:
        turned = N @ on_z
        found[:q, :q] = (on_z.T @ turned).toarray()
        found[q:, :q] = (on_rows.T @ turned).toarray()
        found[:q, q:] = found[q:, :q].T
    at = np.flatnonzero(np.diff(on_rows.indptr))
    some = on_rows[at]
    inner = N[at][:, at]
    if some.nnz > FULL * some.shape[0] * some.shape[1]:
        full = some.toarray()
        found[q:, q:] = full.T @ (inner @ full)
    else:
        found[q:, q:] = (some.T @ (inner @ some)).toarray()
    return found


def diagonal(M: Any) -> bool:
    """Whether all entries are on the diagonal."""
    there: sp.coo_array = sp.coo_array(M)
    row: NDArray[Any] = there.row
    return bool(np.all(row == there.col))
