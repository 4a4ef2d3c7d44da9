"""Lanczos, three times: on common vectors, on execution vectors, and in one process.

``lanczos``       vectors that all agents hold: one averaging per step, scalars agreed upon by all
``extreme_ritz``  execution vectors, of which every agent holds its part: two reductions per step
``top_ritz``      blocks with thick restarts, for operators within one process. The operator need be
                  symmetric only on a subspace that it maps into: every basis vector stays there.
                  (A library routine that goes on with a random vector after a breakdown would leave
                  it.) A block of k vectors sees an eigenvalue that is repeated up to k times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ccmac.inputs import Array
from ccmac.linalg.tolerances import (
    BREAKDOWN,
    BREAKDOWN_PARTIAL,
    DEPENDENT,
    DRIFT,
    FRESH,
    KERNEL,
    REORTHOGONAL,
    RITZ,
    RITZ_FLOOR,
    SWAMPED,
)
from ccmac.runtime.base import Rider, Runtime
from ccmac.runtime.space import Space


@dataclass(frozen=True)
class Krylov:
    """Orthonormal vectors w_1..w_k with W'SW = tridiag(beta, alpha, beta), and w_{k+1}.

    ``vectors`` has shape (k + 1, m). ``exhausted``: w_{k+1} vanished, so the Ritz values are
    eigenvalues. ``complete``: the vectors span all of Range(S).
    """

    vectors: Array
    alpha: Array
    beta: Array
    exhausted: bool
    complete: bool = False

    @property
    def basis(self) -> Array:
        """w_1..w_k, shape (k, m)."""
        return self.vectors[: self.steps]

    def images(self, count: int) -> Array:
        """S w_1, ..., S w_count by the three-term relation; no products."""
        v = self.vectors
        out = np.empty_like(self.vectors[:count])
        for k in range(count):
            out[k] = self.alpha[k] * v[k] + self.beta[k] * v[k + 1]
            if k:
                out[k] += self.beta[k - 1] * v[k - 1]
        return out

    @property
    def steps(self) -> int:
        """Products with S."""
        return len(self.alpha)

    def tridiagonal(self) -> Array:
        """T = W'SW."""
        off = self.beta[: self.steps - 1]
        return np.asarray(np.diag(self.alpha) + np.diag(off, 1) + np.diag(off, -1))


def agreed_dots(runtime: Runtime, left: Array, right: Array) -> Array:
    """Inner products of common vectors, the rows of ``left``, with the row ``right``."""
    return runtime.common(left @ right[0])


def lanczos(
    runtime: Runtime,
    contribution: Callable[[Array], Array],
    start: Array,
    steps: int,
    *,
    rng: np.random.Generator | None = None,
) -> Krylov:
    """``steps`` Lanczos steps with full reorthogonalization; S v is the mean of ``contribution`` v.

    With ``rng`` an exhausted run starts again outside what it has spanned, so that repeated
    eigenvalues are seen with all their vectors, until Range(S) is complete (one averaging more for
    every new start).
    """
    norm = float(np.sqrt(agreed_dots(runtime, start, start)[0]))
    m = start.shape[1]
    if norm == 0.0 or steps == 0:
        return Krylov(np.zeros((1, m)), np.zeros(0), np.zeros(0), True)
    vectors = np.empty((steps + 1, m))
    vectors[0] = start[0] / norm
    alpha: list[float] = []
    beta: list[float] = []
    exhausted = False
    complete = False
    scale = 0.0
    for k in range(steps):
        image = runtime.average(contribution(vectors[k : k + 1]))
        alpha.append(float(agreed_dots(runtime, vectors[k : k + 1], image)[0]))
        scale = max(scale, abs(alpha[-1]))
        image, length = _remainder(runtime, vectors[: k + 1], image)
        scale = max(scale, length)
        exhausted = length <= BREAKDOWN * scale
        beta.append(0.0 if exhausted else length)
        if exhausted and rng is not None:
            image, length = _fresh(runtime, contribution, vectors[: k + 1], rng)
            complete = length <= BREAKDOWN * scale
            exhausted = complete
        vectors[k + 1] = 0.0 if exhausted else image[0] / length
        if exhausted:
            break
    count = len(alpha)
    complete = complete or (exhausted and count == m)
    return Krylov(vectors[: count + 1], np.array(alpha), np.array(beta), exhausted, complete)


def _remainder(runtime: Runtime, basis: Array, vector: Array) -> tuple[Array, float]:
    """What is left of ``vector`` outside the basis, and its norm."""
    for _ in range(2):
        vector = vector - (basis @ vector[0]) @ basis
    return vector, float(np.sqrt(agreed_dots(runtime, vector, vector)[0]))


def _fresh(
    runtime: Runtime, contribution: Callable[[Array], Array], basis: Array, rng: np.random.Generator
) -> tuple[Array, float]:
    """S times a random unit vector outside an invariant basis: zero when Range(S) is spanned."""
    count, m = basis.shape
    if count >= m:
        return np.zeros((1, m)), 0.0
    noise, length = _remainder(runtime, basis, rng.standard_normal((1, m)))
    return _remainder(runtime, basis, runtime.average(contribution(noise / length)))


def extreme_ritz(
    space: Space, apply: Callable[[Array], Array], start: Array, steps: int, keep: int
) -> tuple[float, float, bool]:
    """(smallest, largest) Ritz value of a symmetric map on execution vectors, and exhaustion.

    Orthogonalizes twice against the last ``keep`` vectors (all of them on small problems). Two
    reductions per step. The second pass and the length of a vector u are known before the averaging
    of ``apply(u)`` and ride on it, because what they change is linear in u and ``apply(u)``.
    Nothing can go on without the first pass: its rounds are charged.
    """

    def dots(vectors: list[Array], right: Array) -> Rider:
        return space.ride(*((vector, right) for vector in vectors))

    def without(vector: Array, weights: Array, others: list[Array]) -> Array:
        for c, other in zip(weights, others, strict=True):
            vector = vector - c * other
        return vector

    basis: list[Array] = []
    images: list[Array] = []
    alpha: list[float] = []
    beta: list[float] = []
    exhausted = False
    u = start
    for _ in range(steps):
        products = dots([*basis, u], u)
        image = apply(u)
        again = products.value
        length = float(np.sqrt(max(again[-1] - again[:-1] @ again[:-1], 0.0)))
        if length <= BREAKDOWN_PARTIAL * max(map(abs, alpha), default=0.0):
            exhausted = True
            break
        if alpha:
            beta.append(length)
        basis = [*basis, without(u, again[:-1], basis) / length][-keep:]
        images = [*images, without(image, again[:-1], images) / length][-keep:]
        along = dots(basis, images[-1]).value
        alpha.append(float(along[-1]))
        u = without(images[-1], along, basis)
    if not alpha:
        return 1.0, 1.0, True
    values = scipy.linalg.eigh_tridiagonal(
        np.array(alpha), np.array(beta[: len(alpha) - 1]), eigvals_only=True
    )
    # The start lies in the range of the map: a Ritz value of rounding size is its kernel.
    # Values below zero stay: they tell that the map is not positive.
    values = values[np.abs(values) > KERNEL * np.abs(values).max()]
    return float(values[0]), float(values[-1]), exhausted


# -- in one process -------------------------------------------------------------------------------
def below(ceiling: float) -> Callable[[float], float]:
    """Stop when the distance to ``ceiling``, which bounds the eigenvalues, is known well enough."""
    return lambda value: RITZ * max(ceiling - value, RITZ_FLOOR * ceiling)


@dataclass(frozen=True)
class Ritz:
    """Values (descending), orthonormal vectors (columns), and the residual norms.

    ``steps`` products with every column of the start came before the first restart.
    """

    values: Array
    vectors: Array
    residuals: Array
    steps: int = 0

    def missed(self, size: int, probability: float = 1e-6) -> float:
        """eps with lambda_max <= values[0] / (1 - eps), but for this probability over the start.

        Of a positive semidefinite operator on ``size`` dimensions, started at random (Kuczynski
        and Wozniakowski 1992): failure <= 1.648 sqrt(size) exp(-sqrt(eps) (2 steps - 1)).
        """
        bits = np.log(1.648 * np.sqrt(size) / probability)
        return float(min(1.0, (bits / max(2 * self.steps - 1, 1)) ** 2))


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
    V = block[:, :0]
    AV = block[:, :0]
    used = 0
    drift = FRESH
    steps = 0
    restarted = False
    while True:
        steps += not restarted
        image = np.stack([apply(v) for v in block.T], axis=1)
        used += block.shape[1]
        V = np.hstack([V, block])
        AV = np.hstack([AV, image])
        H = V.T @ AV
        values, turn = np.linalg.eigh((H + H.T) / 2)
        order = np.argsort(values)[::-1]
        values = values[order]
        turn = turn[:, order]
        keep = min(width, len(values))
        Y = V @ turn[:, :keep]
        residuals = np.linalg.norm(AV @ turn[:, :keep] - Y * values[:keep], axis=0)
        block, drift = extend(V, image, project, drift)
        if residuals[0] <= enough(float(values[0])) or used >= products or block.shape[1] == 0:
            return Ritz(values[:keep], Y, residuals, steps)
        if V.shape[1] + width > room:
            kept = turn[:, : 2 * width]
            restarted = True
            V = V @ kept
            AV = AV @ kept


def orthonormal(X: Array, floor: float = 0.0) -> tuple[Array, float]:
    """Orthonormal columns spanning X, and the least relative size among what was kept.

    What is below ``floor``, or DEPENDENT of the largest, depends on the rest and is dropped.
    """
    if X.shape[1] == 0:
        return X, 1.0
    left, singular, _ = np.linalg.svd(X, full_matrices=False)
    kept = singular > max(floor, DEPENDENT * float(singular[0]), 1e-300)
    return np.asarray(left[:, kept]), float(singular[kept][-1]) if kept.any() else 1.0


def extend(
    V: Array, image: Array, project: Callable[[Array], Array], drift: float
) -> tuple[Array, float]:
    """The part of ``image`` outside V, orthonormal, and how far it may lie outside the subspace.

    Subtracting V from its image magnifies V's own error by the ratio of the two sizes, so errors
    multiply from step to step; once they could matter the new vectors are projected again.
    """
    size = float(np.linalg.norm(image, 2))
    W, least = orthonormal(image - V @ (V.T @ image), SWAMPED * size)
    drift *= max(1.0, size / least)
    if drift > DRIFT and W.shape[1]:
        W = np.stack([project(w) for w in W.T], axis=1)
        drift = FRESH
    return orthonormal(W - V @ (V.T @ W), REORTHOGONAL)[0], drift
