"""Lanczos on common vectors: one averaging a step, scalars agreed upon by all agents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ccmac.runtime.base import Runtime
from ccmac.spaces import Space

Array = NDArray[np.float64]
BREAKDOWN = 1e-9


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
        v, out = self.vectors, np.empty_like(self.vectors[:count])
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
    return runtime.agree(left @ right[0])


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
    exhausted, complete, scale = False, False, 0.0
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
            complete = length <= BREAKDOWN * max(scale, 1e-300)
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
    runtime: Runtime,
    contribution: Callable[[Array], Array],
    basis: Array,
    rng: np.random.Generator,
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

    Orthogonalizes against the last ``keep`` vectors (all of them on small problems), and once more
    where little is left. One or two reductions a step, which nothing can go on without: their
    rounds are charged.
    """
    norm = space.norm(start, riding=True)
    if norm == 0.0:
        return 1.0, 1.0, True

    def dots(vectors: list[Array], right: Array) -> Array:
        rows = [space.partial_dots(vector, right) for vector in vectors]
        return space.runtime.total(np.concatenate(rows, axis=1))

    basis = [start / norm]
    alpha: list[float] = []
    beta: list[float] = []
    exhausted = False
    for _ in range(steps):
        image, left = apply(basis[-1]), 0.0
        for turn in range(2):
            *along, square = dots([*basis, image], image)
            if not turn:
                alpha.append(float(along[-1]))
            image = image - sum(c * vector for c, vector in zip(along, basis, strict=True))
            left = float(square - np.dot(along, along))
            if left > 1e-4 * square:  # what cancelled cost four digits at most
                break
        length = float(np.sqrt(max(left, 0.0)))
        if length <= 1e-8 * max(map(abs, alpha)):
            exhausted = True
            break
        beta.append(length)
        basis.append(image / length)
        basis = basis[-keep:]
    values = scipy.linalg.eigh_tridiagonal(
        np.array(alpha), np.array(beta[: len(alpha) - 1]), eigvals_only=True
    )
    # The start lies in the range of the map: a Ritz value of rounding size is its kernel.
    # Values below zero stay: they tell that the map is not positive.
    values = values[np.abs(values) > 1e-10 * np.abs(values).max()]
    return float(values[0]), float(values[-1]), exhausted
