"""What planning knows of a problem from a few averagings of blocks of vectors.

Where B_i = beta_i I for all agents, S(s) = S_A + s^2 f I with S_A = (1/n) sum A_i A_i' and
f = (1/n) sum beta_i^2: one basis of Ritz vectors of S_A serves every scale, and s^2 f bounds S from
below. The basis comes from random vectors and the data (start and gradient), :data:`BLOCKS` + 1
averagings in all, the first of which also carries the data and the right-hand side.

The twin does not need a hundred modes: neighboring Ritz values share one, with the weight of all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ccmac.inputs import Array
from ccmac.ledger import Costs
from ccmac.linalg.blocks import has_entries, multiply
from ccmac.linalg.nystrom import random_signs
from ccmac.linalg.ritz_blocks import RitzBlocks, ritz_blocks
from ccmac.linalg.tolerances import EPS
from ccmac.realizations.averaged.choices import Deflation
from ccmac.realizations.averaged.profile import Profile, Structure, data_rows
from ccmac.realizations.averaged.system import AveragedSystem
from ccmac.realizations.base import Images, Interval
from ccmac.workspace.blocks import block_mean, planned_size
from ccmac.workspace.coupling import right_hand_sides

BLOCKS = 3  # whose images are taken, after the random one: the first third of their Ritz vectors
# may be deflated, and the others show the top of what is left within 1.06 (w8a; elsewhere 1.00)
LEAST = 8  # vectors of a block; below that Lanczos steps pay
FLOATS = 2**25  # of a basis
GROUPS = (
    (4, 1),
    (8, 2),
    (48, 4),
    (96, 8),
    (10**9, 32),
)  # up to which vector, how many share a mode


def block_size(system: AveragedSystem, structure: Structure, costs: Costs) -> int:
    """Vectors of a block, by the prices of rounds and bytes; 0 where blocks are not for it."""
    m = system.coupling.m
    A = system.coupling.A
    if structure.multiples is None or A.empty or not system.local.empty:
        return 0
    size = planned_size(system.runtime, m, costs) // 2
    size = min(size, FLOATS // (m * BLOCKS))
    return size if size >= LEAST else 0


@dataclass(frozen=True)
class BlockProfile(Profile):
    """Modes of grouped Ritz vectors; ``ends`` says where each group ends."""

    span: RitzBlocks
    ends: tuple[int, ...]
    _tops: dict[int, float] = field(default_factory=dict)

    def _shift(self, s: float) -> float:
        return s * s * float(self.M_B[0, 0])

    def ritz(self, s: float) -> tuple[Array, Array]:
        """The modes, in their order (descending)."""
        return self.M_A.diagonal() + self._shift(s), np.eye(len(self.M_A))

    @property
    def block(self) -> Images:
        return Images(self.span.blocks[0], self.span.images[0])

    @property
    def known(self) -> tuple[bool, bool]:
        return False, False

    def ranks(self, fixed: int | None) -> list[int]:
        """A third of the vectors, and all where they span Range S_A: more cost no rounds."""
        size = self.span.size
        whole = self.span.exhausted
        if fixed is not None:
            return [min(fixed, size if whole else size - 1)]
        third = max((end for end in self.ends if end <= size // BLOCKS), default=1)
        return [third, size] if whole else [third]

    def top(self, s: float, r: int) -> float:
        if r not in self._tops:
            self._tops[r] = self.span.left_top(r)
        shift = self._shift(s)
        return self._tops[r] + shift + self.span.shifted_excess(r, shift)

    def response(self, s: float, r: int, low: float, top: float, vectors: Array) -> Array:
        """1/theta for what is deflated, a constant elsewhere."""
        theta, _ = self.ritz(s)
        return np.where(np.array(self.ends) <= r, 1.0 / theta, 2.0 / (low + top))

    def deflation(self, system: AveragedSystem, s: float, r: int, spectrum: Interval) -> Deflation:
        """No communication."""
        basis, images = self.span.pairs(r)
        shift = self._shift(s)
        images += shift * basis
        inverse = np.diag(1.0 / (self.span.values[:r] + shift))
        return Deflation(basis, images, inverse, spectrum.low, max(self.top(s, r), spectrum.low))


def build_block_profile(
    system: AveragedSystem, w0: Array, gradient: Array, size: int, structure: Structure, seed: int
) -> BlockProfile:
    """Blocks of ``size`` vectors and the data; also fixes the target of the system.

    Cost: BLOCKS + 1 averagings, 2 A a vector.
    """
    coupling = system.coupling
    runtime = system.runtime
    trace = runtime.ride(_squares(coupling.A.blocks))
    rows, told = data_rows(system, w0, gradient)
    right = right_hand_sides(coupling.problem).b

    def images(W: Array, beside: Array | None = None) -> tuple[Array, Array]:
        runtime.ledger.charge_cost(2 * W.shape[1] * coupling.A.cost)
        return block_mean(runtime, _gram(coupling.A.blocks, coupling.m), W, beside)

    found, means = images(random_signs(coupling.m, size, seed), np.hstack([right, *rows]))
    target, start, along_x, along_z = np.split(means, 4, axis=1)
    system.target = np.ascontiguousarray(target)
    data = np.stack([start[0] - target[0], along_x[0], along_z[0]], axis=1)
    lengths = np.linalg.norm(data, axis=0)
    data = data[:, lengths > 0]
    first = np.hstack([found / np.linalg.norm(found), data / lengths[lengths > 0]])
    squares, unknown = trace.value
    total = math.inf if unknown else float(squares) / runtime.n * (1 + 100 * EPS)
    span = ritz_blocks(lambda W: images(W)[0], first, BLOCKS, total)
    del found, means, first
    known = [_along(span, v) for v in (start - target, along_x, along_z)]
    groups = _groups(span.size)
    values, (misfit, slope_x, slope_z) = _grouped(span.values, known, groups)
    values = runtime.common(values)
    multiples = structure.multiples
    assert multiples is not None
    eye = np.eye(len(values))
    whole = told.value
    return BlockProfile(
        np.diag(values),
        float(np.mean(multiples**2)) * eye,
        float(np.mean(multiples)) ** 2 * eye,
        misfit,
        slope_x,
        slope_z,
        float(whole[0]),
        float(whole[1]),
        structure,
        span,
        groups,
    )


def _squares(blocks: list[Any]) -> Array:
    """An agent's sum of squared entries, and 1 where its block has none to look at."""
    rows = []
    for block in blocks:
        known = block is None or has_entries(block)
        entries = np.zeros(0) if block is None or not known else getattr(block, "data", block)
        rows.append([float(np.sum(np.square(np.asarray(entries)))), float(not known)])
    return np.array(rows)


def _gram(blocks: list[Any], m: int) -> Callable[[Array], Array]:
    """W -> A_i A_i'W, agent by agent."""

    def own(W: Array) -> Array:
        rows = np.zeros((len(blocks), m, W.shape[1]))
        for k, block in enumerate(blocks):
            if block is not None and has_entries(block):
                rows[k] = block @ (block.T @ W)
            elif block is not None:
                images = [multiply(block, multiply(block, w, adjoint=True)) for w in W.T]
                rows[k] = np.stack(images, axis=1)
        return rows

    return own


def _along(span: RitzBlocks, v: Array) -> Array:
    """Coordinates in the Ritz vectors."""
    return np.asarray(span.turn.T @ np.concatenate([block.T @ v[0] for block in span.blocks]))


def _groups(size: int) -> tuple[int, ...]:
    """Where groups end: single vectors first, then more and more."""
    ends = []
    end = 0
    while end < size:
        end += next(step for until, step in GROUPS if end < until)
        ends.append(min(end, size))
    return tuple(ends)


def _grouped(values: Array, known: list[Array], ends: tuple[int, ...]) -> tuple[Array, list[Array]]:
    """Mean values, weighted by the data, and the data, group by group."""
    starts = np.array([0, *ends[:-1]])
    squares = sum(v * v for v in known) + 1e-12 * max(sum(float(v @ v) for v in known), 1e-300)
    mean = np.add.reduceat(squares * values, starts) / np.add.reduceat(squares, starts)
    signs = [np.where(np.add.reduceat(v, starts) < 0, -1.0, 1.0) for v in known]
    sizes = [np.sqrt(np.add.reduceat(v * v, starts)) for v in known]
    return mean, [sign * size for sign, size in zip(signs, sizes, strict=True)]
