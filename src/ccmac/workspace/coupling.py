"""The coupled equation as every agent sees it, and which of its rows concern whom.

Execution variables are scaled per block, x = t x~, z = s z~, which every agent does for itself; the
coupled row is then H u = t A x~ + s B z~.

Agent i has the rows where A_i or B_i has an entry, its support, known to all with the first message
of a problem. Where supports are short, what agents send of their coupled rows is sent of these
alone. b_i does not count: right-hand sides may change later. Cost: m/48 floats in the first
averaging, for problems of at least LEAST rows.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ccmac.inputs import Array, is_sparse
from ccmac.ledger import Cost, Ledger
from ccmac.linalg.blocks import has_entries, stored_rows
from ccmac.linalg.families import LocalFamily
from ccmac.problem import Problem
from ccmac.runtime.base import Runtime

Supports = NDArray[np.bool_]

LEAST = 32  # rows below which zeros are not worth a word
FEW = 0.5  # share of all rows that the longest support may have
BITS = 48  # in one float, exactly


def own_supports(problem: Problem, multiples: Array) -> Array:
    """The rows of the owned agents, 48 to a float; ``multiples`` c_i where B_i = c_i I."""
    m = problem.m if problem.m >= LEAST else 0
    rows = np.zeros((len(problem.agents), m), dtype=bool)
    for k, agent in enumerate(problem.agents.values()):
        if m:
            rows[k] = bool(multiples[k] > 0 or multiples[k] < 0) or (
                _touched(agent.A, m) | _touched(agent.B, m)
            )
    return words(rows)


def all_supports(sent: Array, m: int) -> Supports | None:
    """Rows by agents (n, m); None where somebody's are too many to leave others out."""
    rows = bits(sent, m)
    return rows if rows.sum(axis=1).max() <= FEW * m else None


def words(rows: Supports) -> Array:
    """Yes and no, 48 to a float."""
    count, width = rows.shape
    padded = np.zeros((count, -(-width // BITS) * BITS))
    padded[:, :width] = rows
    return np.asarray(padded.reshape(count, -1, BITS) @ np.exp2(np.arange(BITS)))


def bits(sent: Array, width: int) -> Supports:
    """What :func:`words` says."""
    whole = sent.astype(np.int64)[:, :, None] >> np.arange(BITS)
    return (whole & 1).astype(bool).reshape(len(sent), -1)[:, :width]


def _touched(block: Any, m: int) -> Supports:
    """Rows with entries."""
    if block is None or not has_entries(block):
        return np.full(m, block is not None)
    if is_sparse(block):
        return stored_rows(block)
    return np.asarray((block != 0).any(axis=1))


class Packing:
    """Arrays with one row for each coupled row, sent on an agent's own rows alone."""

    def __init__(self, supports: Supports | None, n: int, m: int) -> None:
        self.supports = supports
        self.shape = (n, m)
        self.length = m if supports is None else int(supports.sum(axis=1).max(initial=0))

    def packed(self, values: Array, agent: int) -> Array:
        """``values`` on the agent's rows, padded to :attr:`length`; flat."""
        if self.supports is None:
            return values.ravel()
        own = values[self.supports[agent]]
        out = np.zeros((self.length, *values.shape[1:]))
        out[: len(own)] = own
        return out.ravel()

    def factor(self, values: Array, agent: int, wide: int) -> Array:
        """A triangular factor with the same products of rows, min(length, ``wide``) columns."""
        out = np.zeros((self.length, min(self.length, wide)))
        inside = self.packed(values, agent).reshape(self.length, values.shape[1])
        if inside.size:
            lower = np.asarray(np.linalg.qr(inside.T, mode="r")).T
            out[:, : lower.shape[1]] = lower
        return out.ravel()

    def outside(self, values: Array, agent: int) -> bool:
        """Whether anything lies in other rows."""
        return self.supports is not None and bool(values[~self.supports[agent]].any())

    def unpacked(self, sent: Array, *width: int) -> Array:
        """All agents' arrays from what they sent, shape (n, m, *width)."""
        n, m = self.shape
        if self.supports is None:
            return sent.reshape(n, m, *width)
        out = np.zeros((n, m, *width))
        sent = sent.reshape(n, self.length, *width)
        for there, rows, values in zip(out, self.supports, sent, strict=True):
            there[rows] = values[: int(rows.sum())]
        return out


class RightHandSides(NamedTuple):
    """b with one row per agent; c and e flat, agent after agent. Absent ones are zero."""

    b: Array
    c: Array
    e: Array


def right_hand_sides(problem: Problem) -> RightHandSides:
    """Of the agents held here (no copies of b if no agent has one)."""
    agents = problem.agents
    m = problem.m
    b: Array = np.broadcast_to(0.0, (len(agents), m))
    if any(agent.b is not None for agent in agents.values()):
        b = np.stack([_filled(agent.b, m) for agent in agents.values()])
    c = [_filled(agent.c, problem.p[i]) for i, agent in agents.items()]
    e = [_filled(agent.e, problem.r[i]) for i, agent in agents.items()]
    return RightHandSides(b, np.concatenate([*c, np.zeros(0)]), np.concatenate([*e, np.zeros(0)]))


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


def _filled(vector: Any, size: int) -> Array:
    return np.zeros(size) if vector is None else np.asarray(vector, dtype=np.float64)


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
