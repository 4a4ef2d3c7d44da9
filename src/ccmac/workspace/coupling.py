"""The coupled equation as every agent sees it.

Execution variables are scaled per block, x = t x~, z = s z~, which every agent does for itself; the
coupled row is then H u = t A x~ + s B z~.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ccmac.inputs import Array
from ccmac.ledger import Cost, Ledger
from ccmac.linalg.families import LocalFamily
from ccmac.problem import Problem
from ccmac.runtime.base import Runtime

BITS = 48  # in one float, exactly


def words(rows: NDArray[np.bool_]) -> Array:
    """Yes and no, 48 to a float."""
    count, width = rows.shape
    padded = np.zeros((count, -(-width // BITS) * BITS))
    padded[:, :width] = rows
    return np.asarray(padded.reshape(count, -1, BITS) @ np.exp2(np.arange(BITS)))


def bits(sent: Array, width: int) -> NDArray[np.bool_]:
    """What :func:`words` says."""
    whole = sent.astype(np.int64)[:, :, None] >> np.arange(BITS)
    return (whole & 1).astype(bool).reshape(len(sent), -1)[:, :width]


class RightHandSides(NamedTuple):
    """b with one row per agent; c and e flat, agent after agent. Absent ones are zero."""

    b: Array
    c: Array
    e: Array


def right_hand_sides(problem: Problem) -> RightHandSides:
    """Of the agents held here (no copies of b if no agent has one)."""
    agents = problem.agents
    b: Array = np.broadcast_to(0.0, (len(agents), problem.m))
    if any(agent.b is not None for agent in agents.values()):
        b = np.stack(problem.sides("b"))
    c, e = (np.concatenate([*problem.sides(name), np.zeros(0)]) for name in "ce")
    return RightHandSides(b, c, e)


def block_families(problem: Problem, ledger: Ledger) -> dict[str, LocalFamily]:
    """The families A, B, C, D over the agents that ``problem`` holds."""
    d, p, r = (list(sizes.values()) for sizes in (problem.d, problem.p, problem.r))
    m = [problem.m] * len(d)
    q = [problem.q] * len(d)
    shapes = {"A": (m, d), "B": (m, q), "C": (p, d), "D": (r, q)}
    return {
        name: LocalFamily(
            name, problem.blocks(name), rows, columns, ledger, present=name in problem.present
        )
        for name, (rows, columns) in shapes.items()
    }


class Coupling:
    """H = [t A, s B] of the agents owned here, with its mean over all agents."""

    def __init__(
        self,
        problem: Problem,
        runtime: Runtime,
        t: float = 1.0,
        s: float = 1.0,
        multiples: Array | None = None,
    ) -> None:
        self.problem = problem
        self.runtime = runtime
        self.t = t
        self.s = s
        self.m = problem.m
        self.q = problem.q
        count = len(problem.agents)
        d = list(problem.d.values())
        ledger = runtime.ledger
        rows = [self.m] * count
        q = [self.q] * count
        present = problem.present
        self.A = LocalFamily("A", problem.blocks("A"), rows, d, ledger, present="A" in present)
        self.B = LocalFamily(
            "B", problem.blocks("B"), rows, q, ledger, present="B" in present, multiples=multiples
        )
        self.empty = self.A.empty and self.B.empty

    def rescaled(self, t: float, s: float) -> Coupling:
        """The same blocks under another scaling (nothing is copied)."""
        other = copy.copy(self)
        other.t = t
        other.s = s
        return other

    # -- means over all agents ----------------------------------------------------------------
    def contributions(
        self, x: Array | None, z: Array | None, *, with_z: bool = False
    ) -> tuple[Array, Array]:
        """What the agents put into an averaging: (H u, z); ``None`` leaves a block out.

        :meth:`Runtime.combine` turns them into common means. Without ``with_z`` the second has no
        columns. Cost: one product with each family used.
        """
        count = len(self.problem.agents)
        if x is None or self.A.empty:
            coupled = np.zeros((count, self.width))
        else:
            coupled = self.A.forward(x).reshape(count, self.m)
            if self.t != 1.0:
                coupled *= self.t
        if z is not None and not self.B.empty:
            self.B.add_forward(z, self.s, coupled)
        return coupled, z if with_z and z is not None else np.zeros((count, 0))

    def sum_forward(self, x: Array, z: Array | None) -> Array:
        """sum_i H_i u_i at once: for a simulation that no distributed run has to match in bits."""
        total = self.t * self.A.forward_sum(x)
        return total if z is None else total + self.s * self.B.forward_sum(z)

    @property
    def width(self) -> int:
        """Floats of the coupled row in a message: m, or nothing when A = B = 0."""
        return 0 if self.empty else self.m

    def product_cost(self, *, x: bool = True, z: bool = True) -> Cost:
        """Static cost of the products with the families asked for, forward or adjoint."""
        return (self.A.cost if x else Cost()) + (self.B.cost if z else Cost())

    # -- local adjoints -------------------------------------------------------------------------
    def adjoint(
        self, multiplier: Array, out: Array | None = None, *, z: bool = True
    ) -> tuple[Array, Array]:
        """(t A_i'y, s B_i'y) for a common multiplier y; flat x part, row-per-agent z part.

        ``out`` may take the z part; without ``z`` it is left out (no columns). Cost: one product
        with each family; no communication.
        """
        count = len(self.problem.agents)
        gx = self.A.adjoint_common(self.t * multiplier[0])
        if not z:
            return gx, np.zeros((count, 0))
        gz = np.empty((count, self.q)) if out is None else out
        self.B.adjoint_common(self.s * multiplier[0], gz.reshape(-1))
        return gx, gz
