"""Gradients of g_i(x_i) + h_i(z_i) for all agents in one vectorised pass.

Covered: x-parts with gradient a x - s (squared distances, ridges, absent parts) and z-parts that
are such too or elementwise losses without a matrix. Every entry is computed by the same operations
as in the agent's own gradient, so that the order of agents cannot change a bit of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ccmac.inputs import Array
from ccmac.objectives.base import FusedGradient
from ccmac.objectives.function import Function
from ccmac.objectives.loss import Loss


class TwoParts(Protocol):
    """An objective g(x) + h(z)."""

    x_part: Function | None
    z_part: Function | None


def fused_separable(members: Sequence[TwoParts], d: Sequence[int], q: int) -> FusedGradient | None:
    """The fused gradient, or None when some part is not covered."""
    x_parts = [_linear(m.x_part) for m in members]
    losses = [m.z_part if _is_plain_loss(m.z_part) else None for m in members]
    z_parts = [
        (loss.ridge, None) if isinstance(loss, Loss) else _linear(m.z_part)
        for m, loss in zip(members, losses, strict=True)
    ]
    x_known = [p for p in x_parts if p is not None]
    z_known = [p for p in z_parts if p is not None]
    if len(x_known) < len(members) or len(z_known) < len(members):
        return None
    groups: dict[type[Loss], list[int]] = {}
    for row, loss in enumerate(losses):
        if isinstance(loss, Loss):
            groups.setdefault(type(loss), []).append(row)
    blocks = [
        _LossRows([x for x in losses if type(x) is kind], rows, len(members), q)
        for kind, rows in groups.items()
    ]
    return _Fused(x_known, z_known, blocks, d, q)


def _linear(part: Function | None) -> tuple[float, Array | None] | None:
    return (0.0, None) if part is None else part.isotropic()


def _is_plain_loss(part: Function | None) -> bool:
    return isinstance(part, Loss) and part.M is None


class _Fused(FusedGradient):
    """out_x = a x - s on the flat x; the same on the rows of z, plus the losses' rows."""

    def __init__(
        self,
        x_parts: Sequence[tuple[float, Array | None]],
        z_parts: Sequence[tuple[float, Array | None]],
        losses: Sequence[_LossRows],
        d: Sequence[int],
        q: int,
    ) -> None:
        self.x_factor = np.repeat([a for a, _ in x_parts], d)
        self.x_shift = None
        if any(s is not None for _, s in x_parts):
            pieces = [np.zeros(k) if s is None else s for (_, s), k in zip(x_parts, d, strict=True)]
            self.x_shift = np.concatenate(pieces)
        self.z_factor = np.array([[a] for a, _ in z_parts])
        self.z_shift = None
        if any(s is not None for _, s in z_parts):
            self.z_shift = _rows([np.zeros(q) if s is None else s for _, s in z_parts])
        self.losses = losses
        # One loss over all agents and nothing else on z: it may write where it is wanted.
        self.direct = len(losses) == 1 and losses[0].everyone and not self.z_factor.any()

    def gradient(self, x: Array, z: Array, out_x: Array, out_z: Array) -> None:
        np.multiply(self.x_factor, x, out=out_x)
        if self.x_shift is not None:
            out_x -= self.x_shift
        if self.direct:
            self.losses[0].write(z, out_z)
            return
        np.multiply(self.z_factor, z, out=out_z)
        if self.z_shift is not None:
            out_z -= self.z_shift
        for loss in self.losses:
            loss.add(z, out_z)


class _LossRows:
    """weight * phi'(z) on the rows of those agents that hold losses of one kind."""

    def __init__(
        self, members: Sequence[Function | None], rows: Sequence[int], n: int, q: int
    ) -> None:
        losses = [loss for loss in members if isinstance(loss, Loss)]
        self.slope = losses[0].slope
        self.weight = np.array([[loss.weight] for loss in losses])
        self.parameters = [
            _rows(list(p)) for p in zip(*(x.parameters for x in losses), strict=True)
        ]
        self.everyone = len(rows) == n
        # A slice keeps z[rows] a view; agents in the middle of nowhere need an index.
        contiguous = rows[-1] - rows[0] + 1 == len(rows)
        self.rows: Any = slice(rows[0], rows[-1] + 1) if contiguous else np.array(rows)
        self.work = np.empty((len(losses), q))

    def write(self, z: Array, out: Array) -> None:
        """out = weight * phi'(z); for all agents."""
        self.slope(z, out, *self.parameters)
        out *= self.weight

    def add(self, z: Array, out: Array) -> None:
        """out[rows] += weight * phi'(z[rows])."""
        self.slope(z[self.rows], self.work, *self.parameters)
        self.work *= self.weight
        out[self.rows] += self.work


def _rows(values: Sequence[Array | float]) -> Array:
    """One row per agent; a single row (or number) when all are alike, to spare memory."""
    first = values[0]
    if all(v is first or np.array_equal(v, first) for v in values[1:]):
        return np.atleast_2d(np.asarray(first, dtype=np.float64))
    return np.stack(np.broadcast_arrays(*(np.atleast_1d(v) for v in values)))
