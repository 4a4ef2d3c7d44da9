"""Ritz pairs of a positive semidefinite S from a few products with blocks of common vectors.

From a block Q_1 the block Krylov space V = [Q_1, Q_2, ...] grows by what S Q_j has outside of it;
only the last block leaves something outside, S V = V H + E. A message may carry a block, so that a
product costs the rounds of one vector.

What the deflation of the r largest Ritz vectors W leaves, R = S - S W T^{-1} W'S, T = W'S W, has
no proved top but its trace, tr S - sum_j |S w_j|^2 / theta_j. It is estimated from the other Ritz
vectors Y: R y = S y, so that the largest eigenvalue of Y'S^2 Y against Y'S Y lies below the top and
within half a product of what one block more would show.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ccmac.inputs import Array
from ccmac.linalg.tolerances import BREAKDOWN, DEPENDENT, EPS


@dataclass(frozen=True)
class RitzBlocks:
    """Ritz values, descending; their vectors are V ``turn``, V the ``blocks`` (m x b) side by side.

    ``images``: S of every block. ``left``: E'E in the Ritz vectors. ``exhausted``: E vanished, so
    that every eigenvalue of S is among the values, but not with more than the first block's
    ``width`` vectors. ``trace``: of S, infinite where it is not known.
    """

    values: Array
    turn: Array
    blocks: list[Array]
    images: list[Array]
    left: Array
    exhausted: bool
    trace: float = math.inf

    @property
    def size(self) -> int:
        """Number of Ritz vectors."""
        return len(self.values)

    def pairs(self, r: int) -> tuple[Array, Array]:
        """The first r Ritz vectors, in rows, and S of them."""
        ends = np.cumsum([block.shape[1] for block in self.blocks])[:-1]
        turns = [turn.T for turn in np.split(self.turn[:, :r], ends)]
        sides = [
            sum(turn @ block.T for turn, block in zip(turns, side, strict=True))
            for side in (self.blocks, self.images)
        ]
        return np.ascontiguousarray(sides[0]), np.ascontiguousarray(sides[1])

    def left_trace(self, r: int) -> float:
        """Trace of R: a proved bound on its top, rounding included."""
        if math.isinf(self.trace):
            return math.inf
        known = self.values[:r] + self.left.diagonal()[:r] / np.maximum(self.values[:r], 1e-300)
        rounding = EPS * (100.0 + self.blocks[0].shape[0]) * self.trace
        return float(max(self.trace - math.fsum(known), 0.0) + rounding)

    def left_top(self, r: int) -> float:
        """The top of R, estimated with a margin; never above its trace."""
        if self.exhausted:  # what is left of repeated eigenvalues
            return min(float(self.values[0]), self.left_trace(r))
        rest = self.values[r:]
        # of the largest of the other Ritz values: those below say nothing about the top
        near = rest > 0.1 * rest[0]
        scale = 1.0 / np.sqrt(rest[near])
        squares = self.left[r:, r:][np.ix_(near, near)] + np.diag(rest[near] ** 2)
        top = float(np.linalg.eigvalsh(scale[:, None] * squares * scale)[-1])
        # on an estimated top
        return min(1.1 * top, self.left_trace(r))

    def shifted_excess(self, r: int, shift: float) -> float:
        """By how much the top of what is left of S + shift I may exceed shift + the top of R.

        R(shift) = R + shift (I - W W') + E_W (T^{-1} - (T + shift)^{-1}) E_W'; the trace of the
        last.
        """
        theta = self.values[:r]
        return float(np.sum(self.left.diagonal()[:r] * shift / (theta * (theta + shift))))


def ritz_blocks(
    apply: Callable[[Array], Array], start: Array, steps: int, trace: float = math.inf
) -> RitzBlocks:
    """From ``steps`` products with blocks, the first of them the ``start`` (m x b, any vectors)."""
    block = orthonormal_columns(start)
    blocks = [block]
    images = [apply(block)]
    columns = []
    scale = float(np.linalg.norm(images[0]))
    exhausted = False
    for step in range(1, steps + 1):
        along, rest = _outside(blocks, images[-1])
        columns.append(along)
        block = orthonormal_columns(rest, BREAKDOWN * scale)
        exhausted = block.shape[1] == 0
        if exhausted or step == steps:
            break
        blocks.append(block)
        images.append(apply(block))
    size = sum(found.shape[1] for found in blocks)
    H = np.zeros((size, size))
    E = np.zeros((size, size))
    end = 0
    for along in columns:
        first = end
        end = len(along)
        H[:end, first:end], H[first:end, :end] = along, along.T
    last = blocks[-1].shape[1]
    if not exhausted:
        E[-last:, -last:] = rest.T @ rest
    values, turn = np.linalg.eigh((H + H.T) / 2)
    turn = turn[:, ::-1]
    values = np.maximum(values[::-1], DEPENDENT * max(float(values[-1]), 1e-300))
    return RitzBlocks(values, turn, blocks, images, turn.T @ E @ turn, exhausted, trace)


def _outside(blocks: list[Array], image: Array) -> tuple[Array, Array]:
    """(V'image, what the image has outside V)."""
    along = np.zeros((sum(block.shape[1] for block in blocks), image.shape[1]))
    for _ in range(2):
        more = np.concatenate([block.T @ image for block in blocks])
        ends = np.cumsum([block.shape[1] for block in blocks])[:-1]
        for block, part in zip(blocks, np.split(more, ends), strict=True):
            image = image - block @ part
        along += more
    return along, image


def orthonormal_columns(X: Array, floor: float = 0.0) -> Array:
    """Orthonormal columns spanning those of X whose independent part exceeds ``floor``.

    By two turns of X'X = U s^2 U': cheaper than a factorization of X, and as orthonormal.
    """
    for _ in range(2):
        if not X.shape[1]:
            break
        squares, turn = np.linalg.eigh(X.T @ X)
        kept = squares > max(floor**2, DEPENDENT * float(squares[-1]), 1e-300)
        X = X @ (turn[:, kept] / np.sqrt(squares[kept]))
        floor = 0.0
    return np.ascontiguousarray(X)
