"""How much a quadratic bends on the kernel of all equations, from the summed system: proved.

Let w = (x, z) be a point of ker K. Each agent's x_i = N_i u_i + (flat directions) has its curved
part u_i, and c = (z, coordinates of flat directions) is everybody's. With P_i = N_i'H_xx N_i,
v_i = u_i + P_i^{-1} H_xz z and the blocks of the summed matrix (:mod:`ccmac.workspace.schur`),

    w'Hw = sum_i v_i'P_i v_i + c'S c,    sum_i R_i v_i + G c = 0,    W = sum_i R_i P_i^{-1} R_i',

and (G c)'(W + eps)^{-1}(G c) <= sum_i v_i'P_i v_i for every eps >= 0, so that w'Hw is at least
sigma ||c||^2, sigma the least eigenvalue of S + G'(W + eps)^{-1} G, and at least p ||v||^2. With
t >= ||(P_i^{-1} H_xz)|| and ||u|| <= ||v|| + t ||c||,

    w'Hw >= mu ||w||^2,    1/mu = (p^{-1/2} + t sigma^{-1/2})^2 + 1/sigma.

No rank is decided: rows may be any combinations of the equations; eps is the best of a few. What
rounding changes (a constant times eps times sizes, conditions and magnitudes) may be a twentieth of
mu; a tenth is given away for it, or nothing is said.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ccmac.inputs import Array
from ccmac.linalg.tolerances import EPS
from ccmac.workspace.equations import Constraints
from ccmac.workspace.schur import LocalModel


def local_numbers(model: LocalModel, H: Array, d: int) -> list[float]:
    """One agent's numbers: p, t^2, what rounding leaves of its part of S, margins, ||H||."""
    size = float(np.linalg.norm(H))
    P = model.N.T @ H[:d, :d] @ model.N
    values = np.linalg.eigvalsh(P) if len(P) else np.array([math.inf])
    unit = 1 / np.sqrt(np.maximum(P.diagonal(), np.finfo(float).tiny))
    scaled = np.linalg.eigvalsh(unit[:, None] * P * unit) if len(P) else np.ones(1)
    least = max(float(values[0]), float(scaled[0] / (unit**2).max(initial=0.0)) if len(P) else 0.0)
    kappa = float(scaled[-1] / scaled[0]) if scaled[0] > 0 else math.inf
    t = float(np.linalg.norm(model.solved[:, : model.q]))
    off = 20 * EPS * (len(H) + 4) * (kappa * float(np.linalg.norm(model.H_xz)) * t + size)
    return [least, t * t, off, kappa, model.flat.kept, model.flat.dropped, size]


@dataclass(frozen=True)
class Inside:
    """mu, rounding and size of what S is summed from, and the margins at which flat directions were
    distinguished from others.
    """

    mu: float
    noise: float
    size: float
    kept: float
    dropped: float


def inside(K: Array, q: int, facts: Array, reduced: Constraints) -> Inside:
    """From the summed matrix in (c, whitened rows), q of them c, and all :func:`local_numbers`."""
    p, _, _, _, kept, _, _ = facts.min(axis=0).tolist()
    _, t2, noise, _, _, _, size = facts.sum(axis=0).tolist()
    kappa, dropped = facts[:, 3].max(), float(facts[:, 5].max())
    mu = 0.0
    if p > 0:
        mu = _curvature(K[:q, :q], K[q:, :q], -K[q:, q:], 1 / math.sqrt(p), math.sqrt(t2))
    lost = noise + 8 * EPS * (len(K) + len(facts)) * (kappa + reduced.condition) * size
    mu = 0.9 * mu if lost <= mu / 20 else 0.0
    return Inside(mu, noise, size, kept, dropped)


def _curvature(S: Array, G: Array, W: Array, root_p: float, t: float) -> float:
    """The largest mu of the module text over some eps."""
    if not len(S):
        return 1 / root_p**2 if root_p > 0 else 1.0
    top = float(np.linalg.norm(W)) or 1.0
    best = 0.0
    for eps in top * 10.0 ** -np.arange(2.0, 11.0, 2.0) if len(W) else np.ones(1):
        factor = np.linalg.cholesky(W + eps * np.eye(len(W)))
        rows = scipy.linalg.solve_triangular(factor, G, lower=True)
        sigma = float(np.linalg.eigvalsh(S + rows.T @ rows)[0])
        if sigma > EPS * len(S) / eps:
            root = 1 / math.sqrt(sigma)
            best = max(best, 1 / ((root_p + t * root) ** 2 + root**2))
    return best
