"""What agents and everybody know of one iterate, and the sums that need a message.

A state holds the agents' unknowns (:class:`.block.OwnPoint`) as rows of one width and everybody's
(:class:`.common.Common`) as one row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.certificates.duality import DualPoint
from ccmac.inputs import Array
from ccmac.methods.base import State, known, rows
from ccmac.methods.interior.block import Block
from ccmac.methods.interior.common import END, Common, Equations
from ccmac.methods.interior.own import OwnPoint
from ccmac.methods.interior.units import Units
from ccmac.workspace import Workspace
from ccmac.workspace.constraints import Constraints

VANISHED = 1e-6  # tau over kappa below which there is no point to show


@dataclass(frozen=True)
class InteriorState(State):
    """The agents' unknowns (padded to one width), everybody's, and how far they are.

    ``primal`` is the norm of the equations' residuals and ``gap`` the duality gap expected after
    the step (cost scaled), ``value`` the cost before it, ``length`` the step's. ``warm`` is 0 for
    an interior point, else the number of the step to come from a warm start: then ``doubt`` marks
    the agents' doubtful entries, ``slots`` has the room for them in the next message, ``weight``
    makes prices as large as slacks, and the rest is as :mod:`.guided` says.
    """

    own: Array = rows()
    common: Array = known()
    doubt: Array = rows()
    slots: Array = known()
    tau: float = 1.0
    kappa: float = 1.0
    primal: float = np.inf
    gap: float = np.inf
    value: float = 0.0
    length: float = 1.0
    count: int = 0
    warm: int = 0
    weight: float = 1.0


@dataclass(frozen=True)
class Setup:
    """What agents told each other: bounds on z, all supports, flat directions, widths of states.

    ``units`` are those of the unknowns, None where they are the user's, whose equations are
    ``equations``.
    """

    lower: Array
    upper: Array
    supports: Array
    flats: list[tuple[Array, Array]]
    widths: Array
    equations: Constraints
    units: Units | None = None

    @property
    def width(self) -> int:
        """The widest state."""
        return int(self.widths.max())

    @property
    def bounded(self) -> Array:
        """So many bounded entries the agents have at most: each has a slack and a price."""
        return np.floor(self.widths / 3)


class Agents:
    """The agents' blocks and the common equations; states of them, packed and unpacked."""

    def __init__(
        self, work: Workspace, reduced: Constraints, blocks: list[Block], setup: Setup
    ) -> None:
        self.work = work
        self.reduced = reduced
        self.blocks = blocks
        self.setup = setup
        self.space = work.space
        self.runtime = work.runtime
        self.problem = work.problem
        self.unit = blocks[0].unit
        self.k = self.problem.q + self.problem.m
        self.equations = Equations(reduced, setup.lower, setup.upper, setup.flats)
        ends = np.cumsum([0, *(len(gamma) for _, gamma in setup.flats)])
        self.flat_of = [slice(ends[i], ends[i + 1]) for i in self.problem.agents]
        # Entries of the summed matrix that some agent fills, and where each agent's go.
        seen = np.triu(setup.supports.T @ setup.supports > 0)
        self.entries = np.nonzero(seen)
        place = np.full((self.k, self.k), -1)
        place[self.entries] = np.arange(len(self.entries[0]))
        self.places = []
        for block in blocks:
            upper = np.triu_indices(len(block.support))
            at = place[block.support[upper[0]], block.support[upper[1]]]
            self.places.append((upper, at))

    @property
    def reach(self) -> float:
        """The size of a point that meets the equations."""
        reduced = self.setup.equations
        return float(np.linalg.norm((reduced.U.T @ reduced.right) / reduced.sigma))

    # -- the state ---------------------------------------------------------------------------------
    def inside(self) -> InteriorState:
        """In the middle of the bounds, whatever the user's point: interior points start inside."""
        points = []
        for block in self.blocks:
            y = block.sides.middle()
            s = block.sides.slack(y, 1.0)
            points.append(OwnPoint(y, np.zeros(len(block.f)), s, 1.0 / s))
        equations = self.equations
        mid = equations.sides.middle()
        s = equations.sides.slack(mid, 1.0)
        mu = np.zeros(equations.rank)
        phi = np.zeros(len(equations.fixed))
        return self.packed(points, Common(mid, mu, phi, s, 1.0 / s, 1.0, 1.0))

    def packed(
        self,
        points: list[OwnPoint],
        common: Common,
        doubt: list[NDArray[np.bool_]] | None = None,
        slots: Array | None = None,
        **numbers: Any,
    ) -> InteriorState:
        """The state at a point; with what is in ``doubt`` where it is a warm start's."""
        own = self._rows(points)
        marks = np.zeros_like(own)
        room = np.zeros((1, self.problem.n))
        for row, mask in zip(marks, doubt or [], strict=False):
            row[: len(mask)] = mask
        pair = common.tau, common.kappa
        return InteriorState(
            own, _row(common), marks, room if slots is None else slots, *pair, **numbers
        )

    def doubt(self, state: InteriorState) -> list[NDArray[np.bool_]]:
        """The agents' doubtful entries at a warm start."""
        pairs = zip(state.doubt, self.blocks, strict=True)
        return [row[: block.size] > 0 for row, block in pairs]

    def _rows(self, points: list[OwnPoint]) -> Array:
        own = np.zeros((len(points), self.setup.width))
        for row, p in zip(own, points, strict=True):
            flat = np.concatenate([p.y, p.nu, p.s, p.v])
            row[: len(flat)] = flat
        return own

    def points(self, state: InteriorState) -> list[OwnPoint]:
        """The agents' unknowns."""
        return self._points(state.own)

    def common(self, state: InteriorState) -> Common:
        """Everybody's unknowns."""
        near = 1.0 if state.warm else state.gap * state.tau**2 / END
        return replace(self._common(state.common, state.tau, state.kappa), near=near)

    def _points(self, own: Array) -> list[OwnPoint]:
        found = []
        for row, block in zip(own, self.blocks, strict=True):
            sizes = [block.size, len(block.f), block.sides.count, block.sides.count]
            found.append(OwnPoint(*np.split(row, np.cumsum(sizes))[:4]))
        return found

    def _common(self, row: Array, tau: float, kappa: float) -> Common:
        equations = self.equations
        sizes = [equations.q, equations.rank, len(equations.fixed), equations.sides.count]
        z, mu, phi, s, v = np.split(row[0], np.cumsum(sizes))
        return Common(z, mu, phi, s, v, tau, kappa)

    def point(self, state: InteriorState) -> tuple[Array, Array]:
        """w / tau, put on the bounds it lies beyond; w / kappa where tau tells of no solution."""
        scale = state.tau if state.tau > VANISHED * state.kappa else state.kappa
        lower = [block.form.lower[: block.d] for block in self.blocks]
        upper = [block.form.upper[: block.d] for block in self.blocks]
        pieces = [p.y[: b.d] for b, p in zip(self.blocks, self.points(state), strict=True)]
        x = np.clip(np.concatenate(pieces) / scale, np.concatenate(lower), np.concatenate(upper))
        z = np.clip(self.common(state).z / scale, self.setup.lower, self.setup.upper)
        x, z = self.shown(x, z)
        return x, np.broadcast_to(z, (len(self.blocks), len(z)))

    def shown(self, x: Array, z: Array) -> tuple[Array, Array]:
        """(flat x, z) in the user's units."""
        units = self.setup.units
        return (x, z) if units is None else (np.concatenate(units.x) * x, units.z * z)

    def multipliers(self, state: InteriorState, scale: float) -> DualPoint:
        """In the user's rows and cost, over ``scale``."""
        common = self.common(state)
        size = scale * self.unit
        reduced = self.reduced
        coupled, shared = reduced.multipliers(self.equations.combine @ (common.mu / size))
        local = []
        terms = []
        for k, (block, p) in enumerate(zip(self.blocks, self.points(state), strict=True)):
            space = reduced.kernels[k].space
            nu = p.nu / size
            inside = space.basis.T @ (reduced.A[k].T @ coupled)
            local.append(block.own.prices(nu[: space.rank], inside))
            terms.append(nu[space.rank : len(nu) - len(block.fixed)])
        units = self.setup.units
        if units is not None:
            shared = shared * (reduced.unit_D / self.setup.equations.unit_D)
            terms = [nu / length for nu, length in zip(terms, units.rows, strict=True)]
        return DualPoint(coupled, shared, local, terms)

    # -- a sum -------------------------------------------------------------------------------------
    def summed(self, matrices: list[Array], vectors: list[Array]) -> tuple[Array, Array]:
        """Sums of the agents' matrices between their supports, and of vectors: one averaging."""
        count = len(self.entries[0])
        messages = []
        for (upper, at), matrix, vector in zip(self.places, matrices, vectors, strict=True):
            entries = np.zeros(count)
            entries[at] = matrix[upper]
            messages.append(np.append(entries, vector))
        total = self.runtime.average(np.stack(messages))[0] * self.problem.n
        whole = np.zeros((self.k, self.k))
        whole[self.entries] = total[:count]
        return whole + np.triu(whole, 1).T, total[count:]


def _row(common: Common) -> Array:
    return np.concatenate([common.z, common.mu, common.phi, common.s, common.v])[None]
