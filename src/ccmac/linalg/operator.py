"""What a linear operator is here: two products on flat local arrays and a price known in advance.

``forward`` and ``adjoint`` map the arrays that this process holds. Charging happens inside the
leaves; ``cost`` says beforehand what one application, forward or adjoint, will charge.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse.linalg as spla
from numpy.typing import NDArray

from ccmac.ledger import Cost

Array = NDArray[np.float64]


@runtime_checkable
class LinearOperator(Protocol):
    """K with K u and K' v; anything with these four members is one."""

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns) of the part held by this process."""

    @property
    def cost(self) -> Cost:
        """Ledger units of one application; forward and adjoint cost the same."""

    def forward(self, u: Array, /) -> Array:
        """K u."""

    def adjoint(self, v: Array, /) -> Array:
        """K' v."""


def to_scipy(operator: LinearOperator) -> Any:
    """The operator as a ``scipy.sparse.linalg.LinearOperator``; its products still charge."""
    return spla.LinearOperator(
        operator.shape, matvec=operator.forward, rmatvec=operator.adjoint, dtype=np.float64
    )


def to_dense(operator: LinearOperator) -> Array:
    """The matrix, column by column: as many forward applications as there are columns."""
    rows, columns = operator.shape
    dense = np.zeros((rows, columns))
    unit = np.zeros(columns)
    for j in range(columns):
        unit[j] = 1.0
        dense[:, j] = operator.forward(unit)
        unit[j] = 0.0
    return dense
