"""Block Lanczos with thick restarts for the top of a positive semidefinite operator.

The operator need be symmetric only on a subspace that it maps into: every basis vector stays there.
(A library routine that goes on with a random vector after a breakdown would leave it.) A block of k
vectors sees an eigenvalue that is repeated up to k times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LANCZOS_TOLERANCE = 1e-5
"""Residual at which to stop, relative to the distance from the largest value there can be."""
FRESH = 1e-13
DRIFT = 1e-10


def below(ceiling: float) -> Callable[[float], float]:
    """Stop when the distance to ``ceiling``, which bounds the eigenvalues, is known well enough."""
    return lambda value: LANCZOS_TOLERANCE * max(ceiling - value, 1e-4 * ceiling)


@dataclass(frozen=True)
class Ritz:
    """Values (descending), orthonormal vectors (columns), and the residual norms."""

    values: Array
    vectors: Array
    residuals: Array


def top_ritz(
    apply: Callable[[Array], Array],
    start: Array,
    project: Callable[[Array], Array],
    *,
    enough: Callable[[float], float],
    columns: int = 48,
    products: int = 4000,
) -> Ritz:
    """Largest eigenpairs, as many as ``start`` has columns, until the first has converged.

    ``project`` maps onto the subspace on which the operator is symmetric; start lies in it. An
    eigenvalue lies within the residual of each value, and usually much closer (the error of a
    separated one is about residual^2 / gap). ``enough`` says which residual will do.
    Cost: at most ``products`` applications; 2 max(columns, 4 blocks) vectors of memory.
    """
    block = orthonormal(start)[0]
    width = block.shape[1]
    room = max(columns, 4 * width)
    V, AV = block[:, :0], block[:, :0]
    used, drift = 0, FRESH
    while True:
        image = np.stack([apply(v) for v in block.T], axis=1)
        used += block.shape[1]
        V, AV = np.hstack([V, block]), np.hstack([AV, image])
        H = V.T @ AV
        values, turn = np.linalg.eigh((H + H.T) / 2)
        order = np.argsort(values)[::-1]
        values, turn = values[order], turn[:, order]
        keep = min(width, len(values))
        Y = V @ turn[:, :keep]
        residuals = np.linalg.norm(AV @ turn[:, :keep] - Y * values[:keep], axis=0)
        block, drift = extend(V, image, project, drift)
        if residuals[0] <= enough(float(values[0])) or used >= products or block.shape[1] == 0:
            return Ritz(values[:keep], Y, residuals)
        if V.shape[1] + width > room:
            kept = turn[:, : 2 * width]
            V, AV = V @ kept, AV @ kept


def orthonormal(X: Array, floor: float = 0.0) -> tuple[Array, float]:
    """Orthonormal columns spanning X, and the least relative size among what was kept.

    What is below ``floor``, or 1e-10 of the largest, depends on the rest and is dropped.
    """
    if X.shape[1] == 0:
        return X, 1.0
    left, singular, _ = np.linalg.svd(X, full_matrices=False)
    kept = singular > max(floor, 1e-10 * float(singular[0]), 1e-300)
    return np.asarray(left[:, kept]), float(singular[kept][-1]) if kept.any() else 1.0


def extend(
    V: Array, image: Array, project: Callable[[Array], Array], drift: float
) -> tuple[Array, float]:
    """The part of ``image`` outside V, orthonormal, and how far it may lie outside the subspace.

    Subtracting V from its image magnifies V's own error by the ratio of the two sizes, so errors
    multiply from step to step; once they could matter the new vectors are projected again.
    """
    size = float(np.linalg.norm(image, 2))
    W, least = orthonormal(image - V @ (V.T @ image), 1e-9 * size)
    drift *= max(1.0, size / least)
    if drift > DRIFT and W.shape[1]:
        W, drift = np.stack([project(w) for w in W.T], axis=1), FRESH
    W = orthonormal(W - V @ (V.T @ W), 1e-2)[0]
    return orthonormal(W - V @ (V.T @ W), 1e-2)[0], drift
