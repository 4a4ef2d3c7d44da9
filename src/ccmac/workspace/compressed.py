"""Long coupled rows with few columns: the same problem on the range of all A_i.

Where B_i = beta_i I and f_i = g_i(x_i) + (a_i/2)||z||^2 - s_i'z + const, the coupled rows keep z on
the range of (A_1 ... A_n, sum b_i). With an orthonormal basis Q of it, z = Q t and

    sum_i (Q'A_i) x_i + beta_i t = sum_i Q'b_i,     g_i(x_i) + (a_i/2)||t||^2 - (Q's_i)'t

is the same problem with as many rows as there are columns, not as there are samples. Q comes from
one sum of A_i times random matrices that agent i alone knows (drawn by a digest of A_i): others
learn the range of A_i and nothing of its columns. What is lost by rounding is bounded:

    |F(x) - F_t(x)| <= a (eta R^2 + 2 e R + e^2)/2 + ||s|| e,   e = (delta R + delta_b)/|beta|,

for points of norm R, delta the part of the A_i off the range of Q and eta = ||Q'Q - I||.
Cost: one averaging of m (d + 9) floats, d the columns of all agents; then that of a small problem.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from ccmac.inputs import Array, is_sparse
from ccmac.linalg.blocks import dense, has_entries
from ccmac.linalg.tolerances import EPS
from ccmac.objectives.basic import SquaredDistance
from ccmac.objectives.quadratic import Quadratic
from ccmac.objectives.separable import Separable
from ccmac.problem import Agent, Problem
from ccmac.runtime.base import Runtime
from ccmac.workspace.coupling import right_hand_sides
from ccmac.workspace.curvature import CurvatureTable

COLUMNS = 500  # of all agents together
SPARE = 8  # random vectors beyond the columns
FLOATS = 2**27  # of all agents in one message
PIECE = 16  # vectors at a time
CHUNK = 128  # rows whose products are summed at once


def compressible(problem: Problem, runtime: Runtime, table: CurvatureTable) -> bool:
    """Whether the problem has the form, and is worth it; one reduction where sizes say so."""
    columns = int(table.d.sum())
    vectors = columns + SPARE + 1
    if table.multiples is None or not (table.separable and table.polyhedral):
        return False
    if "D" in problem.present or not math.fsum(table.multiple):
        return False
    if not 4 * vectors < problem.m or columns > COLUMNS:
        return False
    if problem.m * vectors * runtime.n > FLOATS or problem.limited:
        return False
    told = [[float(_form(agent) is not None)] for agent in problem.agents.values()]
    return bool(runtime.gather(np.array(told)).all())


def _form(agent: Agent) -> tuple[float, Array | None] | None:
    """(a_i, s_i), where the agent's objective has them and its A_i entries."""
    f = agent.objective
    if not isinstance(f, Separable) or not (agent.A is None or has_entries(agent.A)):
        return None
    return (f.z_part or SquaredDistance(0.0)).isotropic()


class Compressed:
    """Q and the small ``problem``; ``offset`` is F less its objective."""

    def __init__(self, problem: Problem, runtime: Runtime, table: CurvatureTable) -> None:
        self.n, self.m, self.q, self.runtime = problem.n, problem.m, problem.q, runtime
        self.beta = math.fsum(table.multiple)
        self._sizes = list(problem.d.values())
        self.Q = self._range(problem, int(table.d.sum()) + SPARE)
        agents, scalars = {}, []
        for i, agent in problem.agents.items():
            agents[i], numbers = self._own(agent, problem.d[i], float(table.multiple[i]))
            scalars.append(numbers)
        self.problem = Problem(
            agents, n=problem.n, q=self.rank, m=self.rank, present=problem.present
        )
        self._told = runtime.ride(np.array(scalars), whole=True)

    @property
    def rank(self) -> int:
        """Rows of the small problem."""
        return int(self.Q.shape[1])

    def _range(self, problem: Problem, size: int) -> Array:
        """An orthonormal basis, the same at all agents: one averaging."""
        mean = self.runtime.average_in_pieces(self._images(problem, size))[0] * self.n
        # Pieces and the last column: m floats a vector, vectors of a piece side by side.
        ends = [self.m * min(PIECE, size - k) for k in range(0, size, PIECE)]
        *pieces, side = np.split(mean, np.cumsum(ends))
        Y = np.hstack([piece.reshape(self.m, -1) for piece in pieces])
        typical, length = float(np.linalg.norm(Y)) / math.sqrt(size), float(np.linalg.norm(side))
        if length > 0 and typical > 0:
            Y = np.column_stack([Y, side * (typical / length)])
        Q, R = np.linalg.qr(Y)
        U, sigma, _ = np.linalg.svd(R)
        rank = int(np.count_nonzero(sigma > 8 * EPS * max(Y.shape) * sigma[0])) if typical else 0
        self.runtime.common(sigma)
        return np.ascontiguousarray(Q @ U[:, :rank])

    def _images(self, problem: Problem, size: int) -> Iterator[Array]:
        """A_i Omega_i, piece by piece, then b_i; one flat row an agent."""
        sizes = zip(problem.agents.values(), self._sizes, strict=True)
        matrices = [drawn(agent.A, d, size) for agent, d in sizes]
        for k in range(0, size, PIECE):
            rows = np.zeros((len(matrices), self.m * min(PIECE, size - k)))
            for row, agent, omega in zip(rows, problem.agents.values(), matrices, strict=True):
                if agent.A is not None:
                    row[:] = np.asarray(agent.A @ omega[:, k : k + PIECE]).ravel()
            yield rows
        yield right_hand_sides(problem).b

    def _own(self, agent: Agent, d: int, beta: float) -> tuple[Agent, list[float]]:
        """One agent's part, and [delta_i, a_i, |s_i|, constant, |b_i|]."""
        Q, f = self.Q, agent.objective
        assert isinstance(f, Separable)
        A = np.zeros((self.m, d)) if agent.A is None else dense(agent.A)
        a, s = _form(agent) or (0.0, None)
        small = Q.T @ A
        linear = np.zeros(self.rank) if s is None else Q.T @ s
        z_part = Quadratic(np.full(self.rank, a), linear)
        b = None if agent.b is None else Q.T @ agent.b
        changed = Agent(
            Separable(x=f.x_part, z=z_part), A=small, B=beta * np.eye(self.rank), b=b, C=agent.C,
            c=agent.c,
        )  # fmt: skip
        constant = 0.0 if f.z_part is None else float(f.z_part.value_at(np.zeros(self.q)))
        # Of the product only, whose sums have as many terms as Q has columns.
        rounding = (self.rank + 4) * EPS * _length(np.abs(Q) @ np.abs(small))
        off = _length(A - Q @ small) + rounding + EPS * _length(A)
        lengths = [0.0 if v is None else _length(v) for v in (s, agent.b)]
        return changed, [off, a, lengths[0], constant, lengths[1]]

    # -- what rounding lost ------------------------------------------------------------------------
    @property
    def offset(self) -> float:
        """F less the objective of the small problem."""
        return math.fsum(self._told.value[:, 3])

    def slack(self, radius: float) -> float:
        """|F(x) - F_t(x)| at most, for points of that norm."""
        told, eta, room = self._told.value, self._skew, 4 * EPS * (self.m + self.rank)
        a, s = math.fsum(told[:, 1]), math.fsum(told[:, 2])
        sides = 2 * room * math.fsum(told[:, 4])  # their sum is one of the columns of Q
        off = (_length(told[:, 0]) * radius + sides) / abs(self.beta)
        bent = a * (eta * radius**2 + 2 * off * radius * (1 + eta) + off**2) / 2
        return bent + s * (off + room * radius) + EPS * abs(self.offset)

    @cached_property
    def _skew(self) -> float:
        """eta = ||Q'Q - I||, in the norm of Frobenius: sums of CHUNK rows, then of those."""
        gram, sizes = np.zeros((2, self.rank, self.rank))
        for k in range(0, self.m, CHUNK):
            part = self.Q[k : k + CHUNK]
            gram, sizes = gram + part.T @ part, sizes + np.abs(part).T @ np.abs(part)
        terms = CHUNK + -(-self.m // CHUNK)
        return _length(gram - np.eye(self.rank)) + (terms + 4) * EPS / 2 * _length(sizes)

    def lifted(self, t: Array) -> Array:
        """z, or a price, from the small problem's."""
        return np.asarray(self.Q @ t)


def _length(v: Array) -> float:
    return float(np.linalg.norm(v))


def drawn(A: Any, d: int, size: int) -> Array:
    """A random matrix that only who has A can draw again."""
    told = hashlib.sha256(b"range")
    for part in (A.data, A.indices, A.indptr) if is_sparse(A) else (A,) if A is not None else ():
        told.update(np.ascontiguousarray(part).tobytes())
    return np.random.default_rng(list(told.digest())).standard_normal((d, size))
