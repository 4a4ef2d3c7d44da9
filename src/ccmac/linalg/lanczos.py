"""Lanczos, three times: on common vectors, on execution vectors, and in one process.

``eigenpairs``    of a small sum, or of one of low rank: a block of vectors
``lanczos``       vectors that all agents hold: one averaging per step, scalars agreed upon by all
``extreme_ritz``  execution vectors, of which every agent holds its part: two reductions per step
``top_ritz``      blocks, for operators within one process. A block of k vectors sees an eigenvalue
                  that is repeated up to k times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ccmac.inputs import Array
from ccmac.linalg.tolerances import BREAKDOWN, BREAKDOWN_PARTIAL, KERNEL
from ccmac.runtime.base import Piggyback, Runtime
from ccmac.runtime.space import Space


@dataclass(frozen=True)
class Krylov:
    """Orthonormal vectors w_1..w_k with W'SW = tridiag(beta, alpha, beta), and w_{k+1}.

    ``vectors`` has shape (k + 1, m). ``exhausted``: w_{k+1} vanished, so the Ritz values are
    eigenvalues.
    """

    vectors: Array
    alpha: Array
    beta: Array
    exhausted: bool

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
        """Number of products with S."""
        return len(self.alpha)

    def tridiagonal(self) -> Array:
        """T = W'SW."""
        off = self.beta[: self.steps - 1]
        return np.asarray(np.diag(self.alpha) + np.diag(off, 1) + np.diag(off, -1))


def agreed_dots(runtime: Runtime, left: Array, right: Array) -> Array:
    """Inner products of common vectors, the rows of ``left``, with the row ``right``."""
    return runtime.common(left @ right[0])


def lanczos(
    runtime: Runtime, contribution: Callable[[Array], Array], start: Array, steps: int
) -> Krylov:
    """``steps`` steps with full reorthogonalization; S v is the mean of ``contribution`` v."""
    norm = float(np.sqrt(agreed_dots(runtime, start, start)[0]))
    m = start.shape[1]
    if norm == 0.0 or steps == 0:
        return Krylov(np.zeros((1, m)), np.zeros(0), np.zeros(0), True)
    vectors = np.empty((steps + 1, m))
    vectors[0] = start[0] / norm
    alpha: list[float] = []
    beta: list[float] = []
    exhausted = False
    scale = 0.0
    for k in range(steps):
        image = runtime.average(contribution(vectors[k : k + 1]))
        alpha.append(float(agreed_dots(runtime, vectors[k : k + 1], image)[0]))
        scale = max(scale, abs(alpha[-1]))
        image, length = _remainder(runtime, vectors[: k + 1], image)
        scale = max(scale, length)
        exhausted = length <= BREAKDOWN * scale
        beta.append(0.0 if exhausted else length)
        vectors[k + 1] = 0.0 if exhausted else image[0] / length
        if exhausted:
            break
    count = len(alpha)
    return Krylov(vectors[: count + 1], np.array(alpha), np.array(beta), exhausted)


def _remainder(runtime: Runtime, basis: Array, vector: Array) -> tuple[Array, float]:
    """What is left of ``vector`` outside the basis, and its norm."""
    for _ in range(2):
        vector = vector - (basis @ vector[0]) @ basis
    return vector, float(np.sqrt(agreed_dots(runtime, vector, vector)[0]))


def eigenpairs(
    runtime: Runtime,
    contribution: Callable[[Array], Array],
    size: int,
    rank: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Positive eigenvalues and eigenvectors (rows) of S of at most this rank, S v the mean of
    ``contribution`` v: one averaging of a block of vectors, two where the rank is below the size.
    """

    def images(W: Array) -> Array:
        rows = [contribution(w[None]) for w in W]
        [mean] = runtime.combine([np.hstack(rows)])
        return mean.reshape(W.shape)

    V = np.eye(size)
    if rank < size:
        block = rng.standard_normal((rank, size))
        _, singular, Vt = np.linalg.svd(images(block) if rank else block, full_matrices=False)
        V = Vt[: np.count_nonzero(singular > BREAKDOWN * singular.max(initial=0.0))]
    if not len(V):
        return np.zeros(0), V
    T = images(V) @ V.T
    values, turn = np.linalg.eigh((T + T.T) / 2)
    keep = values > KERNEL * values[-1]
    return values[keep], np.ascontiguousarray(turn[:, keep].T @ V)


def extreme_ritz(
    space: Space, apply: Callable[[Array], Array], start: Array, steps: int, keep: int
) -> tuple[float, float, bool]:
    """(smallest, largest) Ritz value of a symmetric map on execution vectors, and exhaustion.

    Orthogonalizes twice against the last ``keep`` vectors (all of them on small problems). Two
    reductions per step. The second pass and the length of a vector u are known before the averaging
    of ``apply(u)`` and travel with it, because what they change is linear in u and ``apply(u)``.
    Nothing can go on without the first pass: its rounds are charged.
    """

    def dots(vectors: list[Array], right: Array) -> Piggyback:
        return space.piggyback(*((vector, right) for vector in vectors))

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
@dataclass(frozen=True)
class Ritz:
    """Values (descending), orthonormal vectors (columns), and the residual norm of the first.

    ``steps`` products with every column of the start were made. ``exhausted``: the next block
    vanished, so that all eigenvalues which the start can see were seen.
    """

    values: Array
    vectors: Array
    residual: float
    steps: int
    exhausted: bool


def top_ritz(
    apply: Callable[[Array], Array],
    start: Array,
    enough: Callable[[float, float, int], bool],
    columns: int = 240,
) -> Ritz:
    """Largest eigenpairs of a symmetric operator by block Lanczos, fully orthogonalized.

    ``start`` has orthonormal columns; as many pairs are returned. An eigenvalue lies within the
    residual of the first value, and usually much closer. ``enough(value, residual, steps)`` says
    when to stop. Cost: at most ``columns`` products, and as many vectors of memory.
    """
    size, width = start.shape
    V = np.empty((size, columns + width))
    V[:, :width] = start
    T = np.zeros((columns + width, columns + width))
    old = 0
    new = width
    steps = 0
    check = 0
    while True:
        steps += 1
        image = np.stack([apply(v) for v in V[:, old:new].T], axis=1)
        inner = V[:, :new].T @ image
        T[:new, old:new] = inner
        T[old:new, :new] = inner.T
        rest = image - V[:, :new] @ inner
        rest -= V[:, :new] @ (V[:, :new].T @ rest)
        fresh, lengths, _ = np.linalg.svd(rest, full_matrices=False)
        count = int(np.count_nonzero(lengths > BREAKDOWN * np.abs(T[:new, :new]).max()))
        last = count == 0 or new + count > columns
        if last or new >= check:
            check = 1.1 * new
            values, turn = np.linalg.eigh(T[:new, :new])
            residual = float(np.linalg.norm(rest @ turn[old:, -1]))
            if last or enough(float(values[-1]), residual, steps):
                top = slice(-1, -1 - min(width, new), -1)
                return Ritz(values[top], V[:, :new] @ turn[:, top], residual, steps, count == 0)
        V[:, new : new + count] = fresh[:, :count]
        old = new
        new += count
