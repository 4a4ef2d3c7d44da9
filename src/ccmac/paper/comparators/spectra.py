"""Spectral numbers of coupled forms: norms known to each agent, least eigenvalues by Lanczos."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.inputs import Array
from ccmac.linalg.lanczos import lanczos
from ccmac.linalg.symmetric import gram_extremes
from ccmac.paper.comparators.reductions import CoupledForm, matrix
from ccmac.workspace import Workspace


def largest_norm(form: CoupledForm) -> float:
    """max_i ||A'_i||^2, own rows included: local work and one reduction."""
    rows = []
    for k in range(form.space.count):
        K: Any = form.local_matrix(k)
        if form.own is not None:
            own = form.own
            C = matrix(own.C.blocks[k], (own.C.rows[k], form.space.d[k]))
            D = matrix(own.D.blocks[k], (own.D.rows[k], form.space.q))[:, form.held[k]]
            K = sp.csr_array(sp.vstack([K, sp.block_diag([C, D])], format="csr"))
        rows.append([gram_extremes(K, both=False).bounds()[0] if K.nnz else 0.0])
    return float(form.runtime.gather(np.array(rows)).max())


def least_eigenvalue(
    work: Workspace, contribution: Callable[[Array], Array], width: int, seed: int
) -> float:
    """Least positive eigenvalue of S v = mean_i contribution_i(v), with half of it as margin.

    Lanczos from a random vector of Range S: exact when the Krylov space is exhausted. Too small a
    value only slows a method down. Cost, in setup: one averaging of ``width`` floats a step.
    """
    drawn = np.random.default_rng(seed).standard_normal((1, width))
    start = work.runtime.average(contribution(drawn))
    steps = 16 if width > 5000 else min(width + 1, 60)
    krylov = lanczos(work.runtime, contribution, start, steps)
    if not krylov.steps:
        return 1.0
    values = np.linalg.eigvalsh(krylov.tridiagonal())
    positive = values[values > 1e-10 * values[-1]]
    return float(positive[0]) * (1 - 1e-9 if krylov.exhausted else 0.5)
