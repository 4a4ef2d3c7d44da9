"""The equations as every agent sees them: coupled, its own, and those on the shared variable.

Coupled (:class:`Coupling`): execution variables are scaled per block, x = t x~, z = s z~, which
every agent does for itself; the coupled row is then H u = t A x~ + s B z~.

Own (:class:`LocalEquations`), C_i x_i = c_i, without communication: from one factorization the
agent has P_{C_i}, the projector onto Range(C_i'), and the least-norm point C_i^+ c_i;
:class:`Kernel` is what is left free.

Shared (:class:`SharedEquations`), D_i z = e_i, as one channel with consensus. Range([D; W (x) I]')
is the disagreement space plus 1 (x) Range(S_D), S_D = (1/n) sum D_i' D_i. The normalized channel is
therefore (I - Pi) on disagreement and q(S_D) S_D on the mean, one averaging per product with S_D.
Every agent first replaces D_i by orthonormal rows, which changes neither the row space nor the
solutions and leaves spec(S_D) in [0, 1].
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ccmac.inputs import Array
from ccmac.ledger import Cost, Ledger
from ccmac.linalg.blocks import LocalFamily, dense
from ccmac.linalg.chebyshev import Chain, semi_iteration_chain, smallest_degree
from ccmac.linalg.lanczos import Krylov
from ccmac.linalg.ranks import RowSpace, row_space
from ccmac.linalg.tolerances import EPS, KERNEL
from ccmac.problem import Problem
from ccmac.runtime.base import Piggyback, Runtime

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

    def sum_forward(self, x: Array, z: Array) -> Array:
        """sum_i H_i u_i at once: for a simulation that no distributed run has to match in bits."""
        return self.t * self.A.forward_sum(x) + self.s * self.B.forward_sum(z)

    @property
    def width(self) -> int:
        """Floats of the coupled row in a message: m, or nothing when A = B = 0."""
        return 0 if self.empty else self.m

    def product_cost(self) -> Cost:
        """Static cost of the products with both families, forward or adjoint."""
        return self.A.cost + self.B.cost

    # -- local adjoints -------------------------------------------------------------------------
    def adjoint(self, multiplier: Array, out: Array | None = None) -> tuple[Array, Array]:
        """(t A_i'y, s B_i'y) for a common multiplier y; flat x part, row-per-agent z part.

        ``out`` may take the z part. Cost: one product with each family; no communication.
        """
        count = len(self.problem.agents)
        gx = self.A.adjoint_common(self.t * multiplier[0])
        gz = np.empty((count, self.q)) if out is None else out
        self.B.adjoint_common(self.s * multiplier[0], gz.reshape(-1))
        return gx, gz


def own_spaces(problem: Problem, name: str) -> list[RowSpace]:
    """Row spaces of the agents' own rows of C or D."""
    d = list(problem.d.values())
    count = len(d)
    rows, columns = (problem.p, d) if name == "C" else (problem.r, [problem.q] * count)
    sizes = zip(problem.blocks(name), rows.values(), columns, strict=True)
    return [row_space(np.zeros((p, k)) if M is None else dense(M)) for M, p, k in sizes]


def orthonormal_rows(name: str, spaces: list[RowSpace], ledger: Ledger, there: bool) -> LocalFamily:
    """Their bases as rows."""
    bases = [np.ascontiguousarray(space.basis.T) for space in spaces]
    ranks = [space.rank for space in spaces]
    columns = [len(space.basis) for space in spaces]
    return LocalFamily(name, bases, ranks, columns, ledger, present=there)


class LocalEquations:
    """P_C and C^+ c for the agents owned here."""

    def __init__(self, problem: Problem, runtime: Runtime) -> None:
        self.empty = "C" not in problem.present
        self.spaces = own_spaces(problem, "C")
        self.family = orthonormal_rows("C", self.spaces, runtime.ledger, not self.empty)
        self._take(problem)

    def _take(self, problem: Problem) -> None:
        right = problem.sides("c")
        self.right = np.concatenate([*right, np.zeros(0)])
        pairs = zip(self.spaces, right, strict=True)
        points = [space.basis @ space.coordinates(c) for space, c in pairs]
        self.point = np.concatenate([*points, np.zeros(0)])

    def again(self, problem: Problem) -> LocalEquations:
        """The same rows with the right-hand sides of ``problem``."""
        other = copy.copy(self)
        other._take(problem)
        return other

    def project(self, x: Array) -> Array:
        """P_C x, onto Range(C'). Cost: 2 C."""
        return self.family.adjoint(self.family.forward(x))

    @property
    def cost(self) -> Cost:
        """Static cost of :meth:`project`."""
        return 2 * self.family.cost

    def multipliers(self, gradient: Array) -> list[Array]:
        """kappa_i with C_i' kappa_i = -P_C gradient_i (least squares), one array per agent."""
        pieces = np.split(gradient, np.cumsum(self.family.columns)[:-1])
        pairs = zip(self.spaces, pieces, strict=True)
        return [space.multipliers(-(space.basis.T @ piece)) for space, piece in pairs]


@dataclass(frozen=True)
class Kernel:
    """One agent's ker C_i: ``basis`` N_i, the ``point`` C_i^+ c_i, and the ``angle`` (rad) by which
    rounding may have turned both.
    """

    space: RowSpace
    basis: Array
    point: Array
    angle: float

    @classmethod
    def of(cls, space: RowSpace, point: Array) -> Kernel:
        """From the row space of C_i."""
        d = len(point)
        if not space.rank:
            return cls(space, np.eye(d), point, 0.0)
        whole, _ = np.linalg.qr(space.basis, mode="complete")
        angle = 4 * EPS * (d + len(space.left)) * space.condition
        return cls(space, whole[:, space.rank :], point, angle)


def kernels_of(local: LocalEquations) -> list[Kernel]:
    """Of the agents owned here; no communication."""
    points = np.split(local.point, np.cumsum(local.family.columns)[:-1])
    return [Kernel.of(space, point) for space, point in zip(local.spaces, points, strict=True)]


class SharedEquations:
    """D_i (possibly with orthonormal rows) and e_i of the agents owned here."""

    def __init__(self, problem: Problem, runtime: Runtime) -> None:
        self.runtime = runtime
        self.problem = problem
        self.q = problem.q
        self.empty = "D" not in problem.present
        self.spaces = own_spaces(problem, "D")
        self.family = orthonormal_rows("D", self.spaces, runtime.ledger, not self.empty)
        self.right = self._coordinates(problem)
        self.interval = (1.0, 1.0)
        self.steps = 1
        self._target: Array | Piggyback = np.zeros((1, self.q))
        self.scale = 1.0
        # Orthonormal eigenvectors spanning Range(S_D), known to all; None: semi-iterate.
        self.span: Array | None = None
        self._values = np.zeros(0)

    def _coordinates(self, problem: Problem) -> Array:
        """Right-hand sides of the orthonormal rows, flat."""
        pairs = zip(self.spaces, problem.sides("e"), strict=True)
        return np.concatenate([np.zeros(0), *(s.coordinates(e) for s, e in pairs)])

    # -- S_D -------------------------------------------------------------------------------------
    def gram_contribution(self, mean: Array) -> Array:
        """D_i' D_i mean: its average is S_D mean. Cost: 2 D."""
        count = len(self.problem.agents)
        rows = np.broadcast_to(mean, (count, self.q))
        return self.family.adjoint(self.family.forward(rows)).reshape(count, self.q)

    @property
    def target(self) -> Array:
        """mean_i D_i'e_i."""
        if isinstance(self._target, Piggyback):
            self._target = self._target.mean
        return self._target

    def _rows(self) -> Array:
        return self.family.adjoint(self.right).reshape(len(self.problem.agents), self.q)

    def prepare_target(self) -> None:
        """Average D'e once (setup)."""
        self._target = self.runtime.average(self._rows())

    def again(self, problem: Problem) -> SharedEquations:
        """The same rows with other right-hand sides; not yet sent to the others."""
        other = copy.copy(self)
        other.problem = problem
        other.right = self._coordinates(problem)
        return other

    def announce(self) -> None:
        """Send D'e along with the next message."""
        self._target = self.runtime.piggyback(self._rows())

    def copied(self) -> SharedEquations:
        """The same equations, whose interval or span may be fixed apart (nothing is copied)."""
        return copy.copy(self)

    def at_scale(self, s: float) -> SharedEquations:
        """The same equations in z = s z~."""
        other = copy.copy(self)
        other.scale = s
        return other

    def homogeneous(self) -> SharedEquations:
        """The same equations with zero right-hand sides."""
        other = copy.copy(self)
        other._target = np.zeros((1, self.q))
        return other

    def fix(self, interval: tuple[float, float], error: float) -> None:
        """The interval of S_D and the least degree whose error is at most ``error``."""
        self.interval, self.steps = interval, smallest_degree(*interval, error)

    def fix_span(self, krylov: Krylov) -> None:
        """Range(S_D) is spanned completely: the channel becomes an exact projection of the mean.

        No products and no rounds remain, only work on what every agent holds.
        """
        values, vectors = np.linalg.eigh(krylov.tridiagonal())
        keep = values > KERNEL * values[-1]
        rotate = np.ascontiguousarray(vectors[:, keep].T)
        self.span = rotate @ krylov.basis
        self._values = values[keep]
        self.interval = (1.0, 1.0)
        self.steps = 0

    def chain(self, mean: Array) -> Chain:
        """q(S_D)(S_D mean - target). Cost: ``steps`` averagings of q floats, 2 D each."""
        if self.span is not None:
            inside = (self.span @ mean[0]) @ self.span
            point = ((self.span @ self.target[0]) / self._values) @ self.span
            return np.asarray(inside - point / self.scale)[None]
        image = yield self.gram_contribution(mean)
        right = image - self.target / self.scale
        result = yield from semi_iteration_chain(
            self.gram_contribution, right, *self.interval, self.steps
        )
        return result

    @property
    def product_cost(self) -> Cost:
        """Products of one :meth:`chain`."""
        return Cost() if self.empty else Cost(D=2 * self.steps)

    def multipliers(self, direction: Array) -> list[Array]:
        """delta_i = D_i direction in the user's rows: sum_i D_i' delta_i = n S_D direction."""
        images = self.family.forward(np.broadcast_to(direction, (len(self.problem.agents), self.q)))
        return self.in_user_rows(images)

    def in_user_rows(self, flat: Array) -> list[Array]:
        """Multipliers of the orthonormal rows, as multipliers of the user's D_i."""
        pieces = np.split(flat, np.cumsum(self.family.rows)[:-1])
        return [space.multipliers(v) for space, v in zip(self.spaces, pieces, strict=True)]
