"""What a linear operator is here, and the checks that any of them must pass.

Two products on flat local arrays and a cost known in advance: charging happens inside ``forward``
and ``adjoint``, ``cost`` says beforehand what either will charge. The checks ship with the package
so that new operators can use them; they raise ``AssertionError`` with the numbers in the message.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from ccmac.inputs import Array
from ccmac.ledger import Cost, Ledger


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


def dot_test(
    operator: LinearOperator,
    rng: np.random.Generator,
    *,
    samples: int = 3,
    tolerance: float = 1e-12,
) -> float:
    """<K u, v> = <u, K' v> for random u, v; returns the largest gap relative to the norms."""
    rows, columns = operator.shape
    worst = 0.0
    for _ in range(samples):
        u = rng.standard_normal(columns)
        v = rng.standard_normal(rows)
        image = operator.forward(u)
        preimage = operator.adjoint(v)
        assert image.shape == (rows,), f"forward gave shape {image.shape}, not {(rows,)}"
        assert preimage.shape == (columns,), f"adjoint gave shape {preimage.shape}"
        norm = np.linalg.norm
        size = float(norm(image) * norm(v) + norm(preimage) * norm(u))
        gap = abs(float(image @ v) - float(u @ preimage)) / max(size, 1e-300)
        worst = max(worst, gap)
    assert worst <= tolerance, f"adjoint is wrong: <Ku, v> and <u, K'v> differ by {worst:.3g}"
    return worst


def cost_test(operator: LinearOperator, ledger: Ledger) -> Cost:
    """What forward and adjoint charge to ``ledger`` equals the static cost; returns that cost."""
    rows, columns = operator.shape
    with ledger.phase("monitor"):
        start = ledger.of("monitor")
        operator.forward(np.ones(columns))
        middle = ledger.of("monitor")
        operator.adjoint(np.ones(rows))
        end = ledger.of("monitor")
    expected = dict(operator.cost)
    for name, charged in (("forward", middle - start), ("adjoint", end - middle)):
        assert dict(charged) == expected, f"{name} charged {charged}, declared {operator.cost}"
    return operator.cost
