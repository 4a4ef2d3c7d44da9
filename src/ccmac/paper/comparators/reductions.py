"""Reductions of a CC-MAC problem to coupled constraints: min sum f'_i(u_i), sum_i A'_i u_i = b'.

R1  u_i = (x_i, z_i), A'_i = [A_i B_i; 0 w W_{:,i} (x) I], b'_i = (b_i, 0): any problem; messages
    of m + nq floats. Keeps the geometry of the B_i. The weight w balances coupled and consensus
    rows: one mean square, of A' or (``by_curvature``) of A' H^{-1/2} (one reduction).
R2  z at one agent only (the first with a loss of z), losses and B_i pooled there: A'_1 =
    [A_1, beta I], A'_i = A_i; messages of m floats. No consensus: the cross factor disappears.
R3  z cut into n slices, one per agent: A'_i = [A_i, beta I_{:,S_i}]; messages of m floats.

C_i x = c_i (and D_i z = e_i in R1) stay local sets, or become rows of A'_i in places of their own
(``rows=True``) for methods that know no local sets. "none" leaves A'_i = [A_i B_i] for a method
that sees to the copies of z itself. Vectors keep the layout (x, z) with the entries
of z that an agent does not hold at zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.blocks import LocalFamily, dense
from ccmac.methods.base import Iteration, State, vector
from ccmac.objectives import Separable
from ccmac.objectives.base import Objective
from ccmac.paper.comparators.pooling import pooled_loss, pooled_multiple
from ccmac.workspace import Workspace
from ccmac.workspace.equations import right_hand_sides

REDUCTIONS = ("R1", "R2", "R3")


class CoupledForm:
    """A'_i, b'_i and f'_i of the agents here; ``width`` is m', ``held`` marks entries of z.

    ``name`` is R1, R2, R3 or none.
    """

    def __init__(
        self, work: Workspace, name: str = "R1", *, rows: bool = False, by_curvature: bool = False
    ) -> None:
        self.work = work
        self.name = name
        self.problem = work.problem
        self.runtime = work.runtime
        self.space = work.space
        self.A = work.coupling.A
        self.B = work.coupling.B
        n = work.runtime.n
        m = work.problem.m
        q = work.problem.q
        count = work.space.count
        self.held = np.ones((count, q), dtype=bool)
        self.objectives: list[Objective] = [a.objective for a in work.problem.agents.values()]
        if name in ("R2", "R3"):
            self._pool(pooled_multiple(work, name))
        self.W = np.asarray(work.runtime.network.weights[:, list(work.runtime.owned)].toarray())
        self.copies = n if name == "R1" and n > 1 else 0
        self.W *= self._consensus_weight(by_curvature)
        wanted = rows and not {"C", "D"}.isdisjoint(work.problem.present)
        self.own = _OwnRows(work, start=m + self.copies * q) if wanted else None
        self.width = m + self.copies * q + (self.own.total if self.own else 0)
        self.right = np.zeros((count, self.width))
        self.right[:, :m] = right_hand_sides(work.problem).b
        if self.own is not None:
            self.own.write_right(self.right)

    def _pool(self, beta: float) -> None:
        """z, its losses and beta I at one agent (R2), or a slice of them at each (R3)."""
        q = self.space.q
        runtime = self.runtime
        holder, loss = pooled_loss(self.work, self.name)
        slices = np.array_split(np.arange(q), runtime.n)
        for k, i in enumerate(runtime.owned):
            mine = np.arange(q if i == holder else 0) if self.name == "R2" else slices[i]
            self.held[k] = np.isin(np.arange(q), mine)
            x_part = self.problem.agents[i].objective.x_part  # type: ignore[attr-defined]
            self.objectives[k] = Separable(x_part, loss if len(mine) else None)
        identity = sp.eye_array(q, format="csr") * beta
        blocks = [identity if held.any() else None for held in self.held]
        old = self.B
        self.B = LocalFamily(
            "B", blocks, old.rows, old.columns, old.ledger, present="B" in self.problem.present
        )

    def _consensus_weight(self, by_curvature: bool) -> float:
        """w: equal mean squares of coupled and consensus rows, divided by (L mu)^{1/2} if asked."""
        if not self.copies or not self.problem.m:
            return 1.0
        m = self.problem.m
        q = self.space.q
        squares = []
        for k, d in enumerate(self.space.d):
            h_x = h_z = 1.0
            if by_curvature:
                c = self.objectives[k].curvature(d, q)
                h_x = typical(c.L_x, c.mu_x)
                h_z = typical(c.L_z, c.mu_z)
            coupled = float(np.sum(matrix(self.A.blocks[k], (m, d)).data ** 2)) / h_x
            coupled += float(np.sum(matrix(self.B.blocks[k], (m, q)).data ** 2)) / h_z
            own = float(np.sum(self.W[:, k] ** 2)) / (self.copies * h_z)
            squares.append([coupled / m, own])
        coupled, consensus = self.runtime.total(np.array(squares))
        return float(np.sqrt(coupled / consensus)) if coupled > 0 else 1.0

    def forward(self, w: Array) -> Array:
        """(A'_i u_i)_i, one row per agent. Cost: 1 A, 1 B (and C, D as rows)."""
        m = self.problem.m
        q = self.space.q
        x = self.space.x(w)
        z = self.space.z(w)
        head = self.A.forward(x).reshape(self.space.count, m)
        head += self.B.forward(z).reshape(self.space.count, m)
        if self.width == m:
            return head
        out = np.zeros((self.space.count, self.width))
        out[:, :m] = head
        for k in range(self.space.count if self.copies else 0):
            for j in np.flatnonzero(self.W[:, k]):
                out[k, m + j * q : m + (j + 1) * q] = self.W[j, k] * z[k]
        if self.own is not None:
            self.own.forward(x, z, out)
        return out

    def adjoint(self, rows: Array) -> Array:
        """(A'_i' y_i)_i as a vector (x, z). Cost: as forward."""
        m = self.problem.m
        q = self.space.q
        head = np.ascontiguousarray(rows[:, :m])
        out = self.space.zeros()
        x = self.space.x(out)
        z = self.space.z(out)
        x[...] = self.A.adjoint(head)
        z[...] = self.B.adjoint(head).reshape(z.shape)
        for k in range(self.space.count if self.copies else 0):
            for j in np.flatnonzero(self.W[:, k]):
                z[k] += self.W[j, k] * rows[k, m + j * q : m + (j + 1) * q]
        if self.own is not None:
            self.own.adjoint(rows, x, z)
        return self.masked(out)

    def masked(self, w: Array) -> Array:
        """``w`` with zeros where an agent holds no entry of z (in place)."""
        for z, held in zip(self.space.z(w), self.held, strict=True):
            if not held.any():
                z[...] = 0.0
            elif not held.all():
                z[~held] = 0.0
        return w

    @property
    def product_cost(self) -> Cost:
        """Static cost of forward or adjoint."""
        extra = Cost() if self.own is None else self.own.cost
        return self.A.cost + self.B.cost + extra

    def gradient(self, w: Array) -> Array:
        """grad sum f'_i. Cost: 1 gradient."""
        self.runtime.ledger.charge(gradients=1)
        out = self.space.zeros()
        for k, ((x, z), f) in enumerate(zip(self.space.split(w), self.objectives, strict=True)):
            self.space.x_of(out, k)[...], self.space.z(out)[k] = f.gradient(x, z)
        return self.masked(out)

    def local_matrix(self, k: int) -> Any:
        """A matrix on (x, held z) with the Gram matrix of A'_k (own rows left out)."""
        d = self.space.d[k]
        m = self.problem.m
        held = np.flatnonzero(self.held[k])
        A = matrix(self.A.blocks[k], (m, d))
        B = matrix(self.B.blocks[k], (m, self.space.q))[:, held]
        stacked = sp.hstack([A, B], format="csr")
        if self.copies:
            weight = float(np.linalg.norm(self.W[:, k]))
            below = sp.hstack([sp.csr_array((len(held), d)), weight * sp.eye_array(len(held))])
            stacked = sp.vstack([stacked, below], format="csr")
        return sp.csr_array(stacked)

    def curvature(self) -> tuple[float, float]:
        """(mu, L) of sum f'_i on the entries that exist: one reduction."""
        rows = []
        for k, f in enumerate(self.objectives):
            c = f.curvature(self.space.d[k], self.space.q if self.held[k].any() else 0)
            rows.append([c.mu, c.L])
        values = self.runtime.gather(np.array(rows))
        return float(values[:, 0].min()), float(values[:, 1].max())

    def point(self, w: Array) -> tuple[Array, Array]:
        """(x, copies of z). In R2 and R3 telling everybody z is one averaging, in ``monitor``."""
        if self.name in ("R1", "none"):
            return self.space.x(w), self.space.z(w)
        with self.runtime.ledger.phase("monitor"):
            mean = self.runtime.average(self.space.z(w)) * self.runtime.n
        return self.space.x(w), np.array(np.broadcast_to(mean, self.held.shape))

    def start(self, x: Array, z: Array) -> Array:
        """The execution vector of the user's variables."""
        w = self.space.zeros()
        self.space.x(w)[...] = x
        self.space.z(w)[...] = z
        return self.masked(w)


class _OwnRows:
    """C_i x = c_i and D_i z = e_i as rows of the coupled equation, in places of agent i alone."""

    def __init__(self, work: Workspace, start: int) -> None:
        problem = work.problem
        ledger = work.ledger
        there = work.problem.present
        d = work.space.d
        copies = [problem.q] * work.space.count
        p = list(problem.p.values())
        r = list(problem.r.values())
        self.C = LocalFamily("C", problem.blocks("C"), p, d, ledger, present="C" in there)
        self.D = LocalFamily("D", problem.blocks("D"), r, copies, ledger, present="D" in there)
        sizes = work.runtime.gather(np.array([p, r], dtype=np.float64).T).astype(int)
        ends = start + np.concatenate([[0], np.cumsum(sizes.sum(axis=1))])
        self.total = int(sizes.sum())
        # Places of all C rows, then of all D rows, in a flat array of the agents' rows.
        firsts = [k * int(ends[-1]) + int(ends[i]) for k, i in enumerate(work.runtime.owned)]
        self._at_C = _ranges(firsts, p)
        self._at_D = _ranges([at + size for at, size in zip(firsts, p, strict=True)], r)
        _, self._c, self._e = right_hand_sides(problem)

    @property
    def cost(self) -> Cost:
        return self.C.cost + self.D.cost

    def write_right(self, right: Array) -> None:
        flat = right.reshape(-1)
        flat[self._at_C], flat[self._at_D] = self._c, self._e

    def forward(self, x: Array, z: Array, out: Array) -> None:
        flat = out.reshape(-1)
        flat[self._at_C], flat[self._at_D] = self.C.forward(x), self.D.forward(z)

    def adjoint(self, rows: Array, x: Array, z: Array) -> None:
        x += self.C.adjoint(rows.reshape(-1)[self._at_C])
        z += self.D.adjoint(rows.reshape(-1)[self._at_D]).reshape(z.shape)


def _ranges(starts: list[int], sizes: list[int]) -> NDArray[np.intp]:
    pairs = zip(starts, sizes, strict=True)
    return np.concatenate([np.arange(start, start + size) for start, size in pairs])


@dataclass(frozen=True)
class CoupledState(State):
    """The vector u of a coupled form; methods add what else they carry."""

    u: Array = vector()


Carried = TypeVar("Carried", bound=CoupledState)


class FormIteration(Iteration[Carried]):
    """An iteration on a coupled form."""

    def __init__(self, form: CoupledForm) -> None:
        self.form = form
        self.space = form.space

    def point(self, state: Carried) -> tuple[Array, Array]:
        """Back through the reduction."""
        return self.form.point(state.u)


def typical(L: float, mu: float) -> float:
    """(L mu)^{1/2} of a block, L where mu = 0, 1 where there is no curvature at all."""
    if not (np.isfinite(L) and L > 0):
        return 1.0
    return float(np.sqrt(L * mu)) if 0 < mu <= L else L


def matrix(block: Any, shape: tuple[int, int]) -> sp.csr_array:
    """A block as a sparse matrix; zeros if absent."""
    if block is None:
        return sp.csr_array(shape)
    entries: Any = block if sp.issparse(block) else dense(block)
    return sp.csr_array(entries)
