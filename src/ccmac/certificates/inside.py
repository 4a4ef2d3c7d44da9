"""How much a quadratic bends on the kernel of all equations, from the summed system: proved.

Let w = (x, z) be a point of ker K. Each agent's x_i = N_i u_i + (flat directions) has its curved
part u_i, and c = (z, coordinates of flat directions) is everybody's. With P_i = N_i'H_xx N_i,
v_i = u_i + P_i^{-1} H_xz z and the blocks of the summed matrix (:mod:`ccmac.workspace.schur`),

    w'Hw = sum_i v_i'P_i v_i + c'S c,    sum_i R_i v_i + G c = 0,    W = sum_i R_i P_i^{-1} R_i',

and (G c)'(W + eps)^{-1}(G c) <= sum_i v_i'P_i v_i for every eps >= 0, so that w'Hw is at least
sigma ||c||^2, sigma the least eigenvalue of S + G'(W + eps)^{-1} G, and at least p ||v||^2. With
t >= ||(P_i^{-1} H_xz)|| and ||u|| <= ||v|| + t ||c||,

    w'Hw >= mu ||w||^2,    1/mu = (p^{-1/2} + t sigma^{-1/2})^2 + 1/sigma.

No rank is decided: rows may be any combinations of the equations. What rounding changed in them
(eta), in S and in H itself, and what flat directions bend after all is subtracted (``lost``); eps,
at least the rounding of W, is the best of a few. Then with r and delta as in
:mod:`ccmac.certificates.proof`, D = ||w - w*||, s^2 = (w - w*)'H(w - w*) and w - w* split along
ker K (e) and across (<= delta):

    s^2 <= r D + (L^{1/2} s + r) delta,   mu^{1/2} ||e|| <= s + L^{1/2} delta,   D <= ||e|| + delta

or, from H e in ker K, mu ||e|| <= r + L delta; the better of the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ccmac.inputs import Array
from ccmac.linalg.extended import rounded_sum
from ccmac.linalg.tolerances import EPS
from ccmac.workspace.constraints import Constraints
from ccmac.workspace.declared import SOLVES
from ccmac.workspace.schur import LocalModel

SHARE = 1.1  # of the energy, so that what rounding left of a row may be split off
REGULAR = 10.0 ** -np.arange(2.0, 13.0, 2.0)  # eps relative to the size of W


def inner_bound(r: float, delta: float, mu: float, L: float) -> float:
    """The bound of the module text."""
    root = math.sqrt(mu)
    steep = math.sqrt(L)
    b = r / root + steep * delta
    s = (b + math.sqrt(b * b + 4 * r * delta * (steep / root + 2))) / 2
    return math.hypot(delta, min((s + steep * delta) / root, (r + L * delta) / mu))


def local_numbers(model: LocalModel, H: Array, d: int) -> list[float]:
    """One agent's numbers: p, t^2, rounding of its parts of S, W and G, what is lost, margins and
    ||H_zz||.
    """
    size = float(np.linalg.norm(H))
    N = model.N
    q = model.q
    rounding = 4 * (len(H) + 4) * EPS
    bends = float(np.linalg.norm(H[:, :d] @ model.along)) + rounding * size
    p, kappa = _least(N.T @ H[:d, :d] @ N, rounding)
    solved_z = model.solved[:, :q]
    solved_rows = model.solved[:, q:]
    t = float(np.linalg.norm(solved_z))
    back = float(np.linalg.norm(solved_rows))
    off = SOLVES * max(1, N.shape[1]) * kappa * EPS + rounding
    Q = float(np.linalg.norm(model.H_xz))
    R = float(np.linalg.norm(model.rows))
    G = rounding * float(np.linalg.norm(model.corner))
    return [
        p,
        (t * (1 + off)) ** 2,
        off * Q * t + rounding * size,
        off * R * back,
        off * R * t + G,
        2 * bends,
        model.flat.kept,
        model.flat.dropped,
        float(np.linalg.norm(model.H_zz)),
    ]


def _least(P: Array, rounding: float) -> tuple[float, float]:
    """(a lower bound of the least eigenvalue, condition), in units of the diagonal or as it is."""
    if not len(P):
        return math.inf, 1.0
    values = np.linalg.eigvalsh(P)
    diagonal = np.maximum(P.diagonal(), np.finfo(float).tiny)
    unit = 1 / np.sqrt(diagonal)
    scaled = np.linalg.eigvalsh(unit[:, None] * P * unit)
    plain = float(values[0]) - rounding * float(values[-1])
    even = (float(scaled[0]) - rounding * float(scaled[-1])) * float(diagonal.min())
    least = max(plain, even)
    kappa = float(scaled[-1] / scaled[0]) if scaled[0] > 0 else math.inf
    return least, kappa


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


def inside(K: Array, q: int, facts: Array, reduced: Constraints, L: float) -> Inside:
    """From the summed matrix in (c, whitened rows), q of them c, and all :func:`local_numbers`."""
    p, kept = (float(facts[:, k].min()) for k in (0, 6))
    dropped = float(facts[:, 7].max())
    size = rounded_sum(facts[:, 8])
    t = math.sqrt(rounded_sum(facts[:, 1]))
    off_S, off_W, off_G, bends = (rounded_sum(facts[:, k]) for k in (2, 3, 4, 5))
    S = K[:q, :q]
    G = K[q:, :q]
    W = -K[q:, q:]
    count = EPS * (len(K) + len(facts) + 4)
    eta = off_G + 8 * count * float(np.linalg.norm(G))
    if reduced.rank:
        if not reduced.least > 0:
            return Inside(0.0, off_S, size, kept, dropped)
        moved = float(reduced.sigma[-1]) - reduced.least + 8 * count * reduced.frobenius
        eta += moved / float(reduced.sigma[-1])
    lost = 2 * (off_S + 8 * count * float(np.linalg.norm(S))) + bends
    off_W += 16 * count * float(np.linalg.norm(W))
    mu = 0.0 if not p > 0 else _best((S, G, W), (p, t), (lost, off_W, eta))
    mu = mu * (1 - reduced.angle) ** 2 - 2 * L * reduced.angle
    return Inside(max(float(mu), 0.0), off_S, size, kept, dropped)


def _best(
    blocks: tuple[Array, Array, Array], own: tuple[float, float], off: tuple[float, float, float]
) -> float:
    """The largest mu over some eps."""
    (S, G, W), (p, t), (lost, off_W, eta) = blocks, own, off
    root_p = 1 / math.sqrt(p)
    if not len(S):
        return min(1 / root_p**2 - lost, np.finfo(float).max) if p < math.inf else 1.0
    values, vectors = np.linalg.eigh(S)
    half = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    top = float(np.linalg.norm(W))
    if not top > 0:
        top = 1 / float(values[-1]) if values[-1] > 0 else 1.0
    best = 0.0
    for eps in top * REGULAR if len(W) else np.ones(1):
        if eps < off_W:
            break
        rows = np.zeros((0, len(S)))
        if len(W):
            factor = np.linalg.cholesky(W + eps * np.eye(len(W)))
            rows = scipy.linalg.solve_triangular(factor, G, lower=True) / math.sqrt(SHARE)
        s = np.linalg.svd(np.vstack([half, rows]), compute_uv=False)
        # A triangular solve is right to its backward error, times the condition of the factor.
        wide = 1 + math.sqrt(top / eps)
        least = float(s[-1]) - 8 * EPS * (len(S) + len(W)) * wide * float(s[0])
        if least <= 0:
            continue
        root = 1 / least
        apart = SHARE / (SHARE - 1) * eta**2 / eps
        best = max(best, 1 / ((root_p + t * root) ** 2 + root**2) - lost - apart)
    return best
