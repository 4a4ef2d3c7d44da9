"""What every linear operator must pass: adjoints, and charges as declared."""

from __future__ import annotations

import numpy as np

from ccmac.ledger import Cost, Ledger
from ccmac.linalg.operator import LinearOperator


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
