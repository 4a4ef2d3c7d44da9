"""The penalty that ADMM-type methods start from.

The dual Hessian of a coupled problem is sum_i A'_i H_i^{-1} A'_i'; a penalty near the inverse of
its typical eigenvalue balances primal and dual progress:

    c = m' / sum_i [ ||A'_i,x||_F^2 / h_x + ||A'_i,z||_F^2 / h_z ],   h = (L mu)^{1/2} per block

(h = L where mu = 0). It knows neither the extremes of the spectrum nor the graph: the best penalty
on large sets is 0.05 to 0.5 of it, which ``tune="grid"`` finds in :data:`GRID`. Cost: two
reductions, in setup.
"""

from __future__ import annotations

import numpy as np

from ccmac.methods.comparators.reductions import CoupledForm, typical

GRID = (1.0, 0.03, 0.1, 0.3, 3.0, 10.0)


def balanced_penalty(form: CoupledForm) -> float:
    """c of the module text (1 when there is nothing to balance)."""
    rows = []
    for k, f in enumerate(form.objectives):
        d = form.space.d[k]
        c = f.curvature(d, form.space.q if form.held[k].any() else 0)
        squares = form.local_matrix(k).power(2).sum(axis=0)
        on_x, on_z = float(np.sum(squares[:d])), float(np.sum(squares[d:]))
        rows.append([on_x / typical(c.L_x, c.mu_x) + on_z / typical(c.L_z, c.mu_z)])
    total = float(form.runtime.total(np.array(rows))[0])
    return form.width / total if total > 0 else 1.0
