"""What a linear operator is here: two products on flat local arrays and a cost known in advance.

Charging happens inside ``forward`` and ``adjoint``; ``cost`` says beforehand what either charges.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from ccmac.inputs import Array
from ccmac.ledger import Cost


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


def to_dense(operator: LinearOperator) -> Array:
    """The matrix, column by column: as many forward applications as there are columns."""
    columns = [operator.forward(unit) for unit in np.eye(operator.shape[1])]
    return np.stack(columns, axis=1) if columns else np.zeros(operator.shape)
