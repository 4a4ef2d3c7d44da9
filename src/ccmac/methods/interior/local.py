"""One agent in one step: its KKT matrix factorized, its unknowns eliminated, its step recovered.

With W the Nesterov-Todd scaling of (s, v) and xi = u/tau, Newton's equations of the homogeneous
form are, for the agent's (y, v) and the common c = (z, lambda, tau),

    M (dy, dv) + U dc = r,   M = [[P + rho I, G'], [G, -W^2 - delta I]],
    U = [[P_z, A', c_y], [H, 0, -h]],   V = [[P_z', H'], [A, 0], [(2 P xi + c)_y', h']]

so that the agent adds -V M^{-1} U and -V M^{-1} r to what is summed. rho, and delta on equations,
are proximal terms: the step is that of the problem with rho ||y - y_k||^2 / 2 added. The unknowns
of the factorization are W dv, so that its small entries do not drown in W^2.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray

from ccmac.inputs import Array
from ccmac.workspace.conic import StandardForm

RHO = 2e-8  # free directions put 1/rho into the sum, which keeps digits while rho > sqrt(EPS)
DELTA = 1e-9
DENSE = 150  # unknowns and rows up to which the factorization is dense
SMALL = 12  # unknowns and rows of a part
FULL = 0.1  # share of entries from which on a product is one of dense matrices


@dataclass(frozen=True)
class Point:
    """An agent's unknowns: y, slacks s in K, multipliers v in the dual cone."""

    y: Array
    s: Array
    v: Array

    def moved(self, step: Point, length: float) -> Point:
        """``length`` of the way along a step."""
        y, s, v = (a + length * b for a, b in zip(self.flat, step.flat, strict=True))
        return Point(y, s, v)

    @property
    def flat(self) -> tuple[Array, Array, Array]:
        return self.y, self.s, self.v


@dataclass(frozen=True)
class Shared:
    """What everybody knows: z, lambda, and tau, kappa of the homogeneous form."""

    z: Array
    dual: Array
    tau: float = 1.0
    kappa: float = 1.0


class LocalSystem:
    """The fixed part: the model, and which of the common unknowns touch its own (``support``)."""

    def __init__(self, model: StandardForm) -> None:
        p = model.patterned()
        own_z = np.diff(sp.csc_array(sp.vstack([p.P_z, p.H])).indptr) > 0
        own_rows = np.diff(p.A.indptr) > 0
        self.support = np.flatnonzero(np.concatenate([own_z, own_rows]))
        self.parts = Parts(p)
        on_z = sp.vstack([p.P_z, p.H])
        on_rows = sp.vstack([p.A.T, sp.csr_array((p.rows, len(p.b)))])
        self.plain = diagonal(p.P_zz) and diagonal(p.B) and self.parts.apart(on_z, on_rows)
        row, column, _ = _corner(p)
        self.corner_at = row, column
        self.equations = p.cone.equations
        self.held = np.where(self.equations, DELTA, 1.0)
        self.GT = sp.csr_array(p.G.T)
        self.HT = sp.csr_array(p.H.T)
        self.AT = sp.csr_array(p.A.T)
        self.BT = sp.csr_array(p.B.T)
        self._take(model)

    def _take(self, p: StandardForm) -> None:
        self.model = p
        q = len(p.c_z)
        at_z = self.support[self.support < q]
        at_rows = self.support[self.support >= q] - q
        top = sp.hstack([p.P_z[:, at_z], p.A[at_rows].T])
        bottom = sp.hstack([p.H[:, at_z], sp.csr_array((p.rows, len(at_rows)))])
        self.border = sp.csr_array(sp.vstack([top, bottom]))
        row, column, data = _corner(p)
        size = q + len(p.b)
        wanted = self.corner_at[0] * size + self.corner_at[1]
        self.corner = np.zeros(len(wanted))
        self.corner[np.searchsorted(wanted, row * size + column)] = data
        self.P_zT = sp.csr_array(p.P_z.T)

    def near(self, y: Array, z: Array, damped: float = 0.0) -> LocalSystem:
        """With models of second order at (y, z) in place of smooth functions."""
        if not self.model.smooth:
            return self
        other = copy(self)
        other._take(self.model.near(y, z, damped))
        return other

    def slack(self, y: Array, z: Array) -> Array:
        """h - G y - H z."""
        p = self.model
        return np.asarray(p.h - p.G @ y - p.H @ z)

    def factorized(self, inverse: sp.csr_array, held: Array | None = None) -> Factor:
        """M^{-1}, refined once; ``inverse`` is W^{-1} (1 on equations).

        ``held`` is minus the lower diagonal: 1, and delta on equations, unless given.
        """
        p = self.model
        size = p.size
        top = p.P + RHO * sp.eye_array(size)
        G = sp.csr_array(inverse @ p.G)
        M = sp.csc_array(
            sp.block_array([[top, G.T], [G, -sp.diags_array(self.held if held is None else held)]])
        )
        if not M.shape[0]:
            return Factor(self, lambda b: b)
        if self.parts.small and M.shape[0] > DENSE:
            turn = sp.block_diag([sp.eye_array(size), inverse], format="csr")
            N = sp.csr_array(turn.T @ self.parts.inverse(M) @ turn)
            return Factor(self, lambda b: np.asarray(N @ b), N)
        if M.shape[0] <= DENSE:
            factor = scipy.linalg.lu_factor(M.toarray(), check_finite=False)
            solve: Callable[[Array], Array] = partial(
                scipy.linalg.lu_solve, factor, check_finite=False
            )
        else:
            solve = sparse_factor(M).solve
        inverse_t = sp.csr_array(inverse.T)

        def refined(b: Array) -> Array:
            scaled = np.concatenate([b[:size], inverse @ b[size:]])
            x = solve(scaled)
            x += solve(scaled - M @ x)
            return np.concatenate([x[:size], inverse_t @ x[size:]])

        return Factor(self, refined)


@dataclass(frozen=True)
class Factor:
    """An agent's M^{-1}: b -> M^{-1} b, and the matrix itself where it is as sparse as M."""

    agent: LocalSystem
    solve: Callable[[Array], Array]
    inverse: sp.csr_array | None = None

    def condensed(self) -> Array:
        """-border' M^{-1} border, on the support."""
        border = self.agent.border
        if self.inverse is None:
            return np.asarray(-(border.T @ self.solve(border.toarray())))
        of_z = int(np.searchsorted(self.agent.support, len(self.agent.model.c_z)))
        return -congruence(self.inverse, border, of_z)


def _corner(p: StandardForm) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Rows, columns and entries of the upper triangle of [[P_zz, B'], [B, 0]], row by row."""
    none = sp.csr_array((len(p.b), len(p.b)))
    upper = sp.triu(sp.block_array([[p.P_zz, p.B.T], [p.B, none]]), format="csr")
    upper.sum_duplicates()
    found = sp.coo_array(upper)
    return found.row.astype(np.int64), found.col.astype(np.int64), found.data


def sparse_factor(M: Any) -> Any:
    """Pivots on the diagonal, where the ordering keeps factors sparse; others where that fails."""
    symmetric = {"SymmetricMode": True}
    order = "MMD_AT_PLUS_A"
    try:
        splu: Any = spla.splu
        return splu(M, permc_spec=order, diag_pivot_thresh=0.001, options=symmetric)
    except RuntimeError:  # exactly singular without pivoting
        return spla.splu(M)


class Elimination:
    """An agent's Newton equations at one point, solved for all that the common unknowns ask.

    ``rights`` are right-hand sides (y, v): minus the residuals, W^2 v = s, minus W (point \\ e).
    ``residual`` is the agent's share of the common equations' residuals.
    """

    def __init__(
        self, agent: LocalSystem, point: Point, shared: Shared, damped: float = 0.0
    ) -> None:
        self.whole = agent.model
        self.shared = shared
        agent = agent.near(point.y / shared.tau, shared.z / shared.tau, damped)
        self.agent = agent
        self.point = point
        p = agent.model
        y, s, v = point.flat
        z, dual, tau = shared.z, shared.dual, shared.tau
        curved_y = p.P @ y + p.P_z @ z
        curved_z = agent.P_zT @ y + p.P_zz @ z
        bend = float(y @ curved_y + z @ curved_z)
        linear = float(p.c @ y + p.c_z @ z)
        self.r_y = curved_y + agent.GT @ v + agent.AT @ dual + p.c * tau
        self.r_v = p.G @ y + p.H @ z + s - p.h * tau
        self.residual = np.concatenate(
            [
                curved_z + agent.HT @ v + agent.BT @ dual + p.c_z * tau,
                p.A @ y + p.B @ z - p.b * tau,
                [bend / tau + linear + float(p.h @ v + p.b @ dual)],
            ]
        )
        self.value = 0.5 * bend / tau**2 + linear / tau + p.constant
        self.bend = bend / tau**2
        self.tilt_z = 2.0 * curved_z / tau + p.c_z
        self.tilt = np.concatenate([2.0 * curved_y / tau + p.c, p.h])
        self.scaling = p.cone.scaling(s, v)
        self.factor = agent.factorized(sp.csr_array(self.scaling.inverse_matrix()))
        self.solve = self.factor.solve
        self.along = np.append(p.c, -p.h)
        self.rights = [
            np.append(-self.r_y, -self.r_v),
            np.append(np.zeros(p.size), s),
            self.asked(p.cone.identity),
        ]
        asked = [self.along, *self.rights]
        border = agent.border
        if self.factor.inverse is None:
            solved = self.solve(np.column_stack([border.toarray(), *asked]))
            on_shared, solved = np.split(solved, [border.shape[1]], axis=1)
            self._schur = -(border.T @ on_shared), -(self.tilt @ on_shared)
        else:
            solved = self.solve(np.column_stack(asked))
            self._schur = self.factor.condensed(), -(border.T @ self.solve(self.tilt))
        self._on_tau, *self._on_rights = solved.T

    def asked(self, target: Array) -> Array:
        """The right-hand side of point o (W dv + W^{-1} ds) = ``target``."""
        W = self.scaling
        return np.append(np.zeros(self.agent.model.size), -W.apply(W.divided(target)))

    def schur(self) -> tuple[Array, Array, Array, float]:
        """-V M^{-1} U: (matrix on the support, column of tau, row of tau, corner)."""
        column = -(self.agent.border.T @ self._on_tau)
        matrix, row = self._schur
        corner = -float(self.tilt @ self._on_tau) - self.bend
        return matrix, column, row, corner

    def eliminated(self) -> list[Array]:
        """-V M^{-1} r for the right-hand sides, on (support, tau)."""
        return [self._paid(part) for part in self._on_rights]

    def eliminated_of(self, right: Array) -> Array:
        """-V M^{-1} r for another one."""
        return self._paid(self.solve(right))

    def _paid(self, part: Array) -> Array:
        return np.append(-(self.agent.border.T @ part), -(self.tilt @ part))

    def step(self, right: Array, dc: Array, target: Array) -> Point:
        """The step for one right-hand side and dc on (support, tau).

        ``target`` is what W^2 dv + ds shall be; ds follows from the rows themselves, so that these
        lose nothing to rounding.
        """
        p = self.agent.model
        own = right - self.charge(dc)
        flat = self.solve(own)
        ds = own[p.size :] + target - p.G @ flat[: p.size]
        ds[self.agent.equations] = 0.0
        return Point(flat[: p.size], ds, flat[p.size :])

    def charge(self, dc: Array) -> Array:
        """U dc."""
        return np.asarray(self.agent.border @ dc[:-1] + dc[-1] * self.along)

    def second(self, step: Point) -> Array:
        """-(W^{-1} ds) o (W dv): the second order of complementarity."""
        W = self.scaling
        return np.negative(self.agent.model.cone.product(W.inverse(step.s), W.apply(step.v)))

    def bending(self, step: Point, dc: Array) -> float:
        """The second order of u'P u / tau: d'P d / tau with d = du - (u / tau) dtau."""
        p = self.agent.model
        tau = self.shared.tau
        grown = float(dc[-1]) / tau
        y = step.y - grown * self.point.y
        z = dc[: len(p.c_z)] - grown * self.shared.z
        return float(y @ (p.P @ y + 2.0 * (p.P_z @ z)) + z @ (p.P_zz @ z)) / tau

    def owing(self, step: Point) -> Array:
        """What the proximal terms took from a step's own equations, as a right-hand side."""
        on_rows = np.where(self.agent.equations, -DELTA * step.v, 0.0)
        return np.append(RHO * step.y, on_rows)

    def lacking(self, step: Point, dc: Array) -> Array:
        """Its share of what a full step (dc on z, lambda, tau) leaves of the common equations."""
        agent = self.agent
        p = agent.model
        q = len(p.c_z)
        dz, dual, dtau = dc[:q], dc[q:-1], dc[-1]
        curved = agent.P_zT @ step.y + p.P_zz @ dz
        own = self.tilt @ np.append(step.y, step.v)
        last = own + self.tilt_z @ dz + p.b @ dual - self.bend * dtau
        on_z = curved + agent.HT @ step.v + agent.BT @ dual + p.c_z * dtau
        on_rows = p.A @ step.y + p.B @ dz - p.b * dtau
        return np.asarray(self.residual + np.concatenate([on_z, on_rows, [last]]))

    def trusted(self, step: Point, dc: Array, room: float) -> float:
        """How far smooth functions stay at their models, but for ``room`` in the slope.

        ``dc`` is the step of (z, lambda, tau); infinity: all the way, and where there are none.
        """
        if not self.whole.smooth:
            return np.inf
        q = len(self.whole.c_z)
        u = np.append(self.point.y, self.shared.z)
        du = np.append(step.y, dc[:q])
        length = 1.0
        for _ in range(20):
            tau = self.shared.tau + length * float(dc[-1])
            with np.errstate(over="ignore", invalid="ignore"):
                off = tau * self.whole.missed(self.agent.model, (u + length * du) / tau)
            if np.linalg.norm(off) <= room:
                break
            length *= 0.5
        return np.inf if length == 1.0 else length

    def length(self, step: Point) -> float:
        """The longest step that keeps s and v in their cones; 0 where it is no number."""
        if not all(np.isfinite(part).all() for part in step.flat):
            return 0.0
        cone = self.agent.model.cone
        return min(cone.length(self.point.s, step.s), cone.length(self.point.v, step.v))


class Parts:
    """Independent parts of the pattern [[P, G'], [G, I]], rows of one cone kept together.

    Without curvature or rows that tie unknowns together, as in vertical learning, an agent's matrix
    is block-diagonal with a block for every column: blocks are inverted one by one, the inverse is
    as sparse as the matrix, and the Schur complement X D X' one product of dense matrices.
    """

    def __init__(self, p: StandardForm) -> None:
        first = np.arange(p.rows)
        for _, rows in p.cone.groups:
            first[rows] = rows[:, :1]
        one = np.ones(p.rows)
        cones = sp.coo_array((one, (np.arange(p.rows), first)), shape=(p.rows, p.rows))
        pattern = sp.block_array([[abs(p.P) + sp.eye_array(p.size), None], [abs(p.G), cones]])
        self.count, self.label = sp.csgraph.connected_components(pattern, directed=False)
        sizes = np.bincount(self.label, minlength=self.count)
        self.small = bool(self.count) and int(sizes.max(initial=0)) <= SMALL
        order = np.argsort(self.label, kind="stable")
        self._slot = np.zeros(len(order), dtype=np.int64)
        starts = np.cumsum(sizes) - sizes
        self._slot[order] = np.arange(len(order)) - np.repeat(starts, sizes)
        self._size = sizes
        self._members = [
            order[starts[own][:, None] + np.arange(size)]
            for size in np.unique(sizes)
            for own in [np.flatnonzero(sizes == size)]
        ]

    def apart(self, on_z: Any, on_rows: Any) -> bool:
        """Whether no part is touched by two of z, or by one of z and a coupled row."""
        touched = sp.coo_array(on_z)
        pairs = np.unique(np.stack([self.label[touched.row], touched.col]), axis=1)
        of_z = np.bincount(pairs[0], minlength=self.count)
        of_rows = np.zeros(self.count, dtype=bool)
        of_rows[self.label[sp.coo_array(on_rows).row]] = True
        return bool((of_z <= 1).all()) and not bool((of_rows & (of_z > 0)).any())

    def inverse(self, M: Any) -> sp.csr_array:
        """M^{-1}, refined once."""
        whole = sp.coo_array(M)
        size = self._size[self.label[whole.row]]
        place = np.zeros(self.count, dtype=np.int64)
        found = []
        for members in self._members:
            parts, width = members.shape
            place[self.label[members[:, 0]]] = np.arange(parts)
            own = size == width
            row, column = whole.row[own], whole.col[own]
            blocks = np.zeros((parts, width, width))
            at = place[self.label[row]], self._slot[row], self._slot[column]
            blocks[at] = whole.data[own]
            rows = np.repeat(members, width, axis=1).ravel()
            columns = np.tile(members, width).ravel()
            found.append((np.linalg.inv(blocks).ravel(), rows, columns))
        data, rows, columns = (np.concatenate(parts) for parts in zip(*found, strict=True))
        N = sp.csr_array((data, (rows, columns)), shape=M.shape)
        return sp.csr_array(N + N @ (sp.eye_array(M.shape[0]) - M @ N))


def congruence(N: sp.csr_array, border: sp.csr_array, q: int) -> Array:
    """border' N border, of columns that belong to ``q`` of z and to coupled rows."""
    on_z = border[:, :q]
    on_rows = border[:, q:]
    k = border.shape[1]
    found = np.zeros((k, k))
    if q:
        turned = N @ on_z
        found[:q, :q] = (on_z.T @ turned).toarray()
        found[q:, :q] = (on_rows.T @ turned).toarray()
        found[:q, q:] = found[q:, :q].T
    at = np.flatnonzero(np.diff(on_rows.indptr))
    some = on_rows[at]
    inner = N[at][:, at]
    if some.nnz > FULL * some.shape[0] * some.shape[1]:
        full = some.toarray()
        found[q:, q:] = full.T @ (inner @ full)
    else:
        found[q:, q:] = (some.T @ (inner @ some)).toarray()
    return found


def diagonal(M: Any) -> bool:
    """Whether all entries are on the diagonal."""
    there: sp.coo_array = sp.coo_array(M)
    row: NDArray[Any] = there.row
    return bool(np.all(row == there.col))
