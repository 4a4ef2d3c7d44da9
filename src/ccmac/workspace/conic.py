"""The conic form of a problem: one agent's part in standard form, without messages.

    minimize    u'P u / 2 + c'u,   u = (y, z),  y = (x, t)
    subject to  G y + H z + s = h,   s in K,   and its share A y + B z - b of the coupled rows

t are the auxiliary variables of epigraphs. The rows are, in this order: C x = c, D z = e, equations
of the epigraphs, entries fixed by equal bounds (all in the zero cone), t >= 0 and bounds (in the
nonnegative cone), and the agent's own conic rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.cones import Cone, Nonnegative, Zero
from ccmac.cones.product import ProductCone
from ccmac.inputs import Array
from ccmac.linalg.blocks import dense
from ccmac.objectives import Limited
from ccmac.objectives.base import Function
from ccmac.objectives.polyhedral import Polyhedral
from ccmac.problem import Agent
from ccmac.workspace.base import Workspace

Sparse = Any  # a scipy.sparse.csr_array


@dataclass(frozen=True)
class Rows:
    """Some rows G y + H z + s = h of one cone, and what they are."""

    name: str
    G: Sparse
    H: Sparse
    h: Array
    cones: tuple[Cone, ...]


@dataclass(frozen=True)
class SmoothPart:
    """weight f(unit u[at]), a smooth function of some entries of u = (y, z)."""

    function: Function
    at: NDArray[Any]
    unit: Array
    weight: float = 1.0

    def scaled(self, unit: Array, weight: float) -> SmoothPart:
        """The function of u / ``unit``, times ``weight``."""
        return replace(self, unit=self.unit * unit[self.at], weight=self.weight * weight)

    def slope(self, u: Array) -> Array:
        """Its gradient at u, on u[at]."""
        v = self.unit * u[self.at]
        return np.asarray(self.weight * self.unit * self.function.gradient_at(v))

    def model(self, u: Array, damped: float) -> tuple[Any, Array, float]:
        """(H, c, k): u[at]'H u[at]/2 + c'u[at] + k is its model of second order at u.

        H has ``damped`` of the largest curvature the function may have more than its Hessian.
        """
        own = u[self.at]
        v = self.unit * own
        D = sp.diags_array(self.unit)
        most = self.function.constants(len(v))[0]
        more = damped * most if np.isfinite(most) else 0.0
        bend = self.function.hessian_at(v) + more * sp.eye_array(len(v))
        H = sp.csr_array(self.weight * (D @ bend @ D))
        slope = self.slope(u)
        c = slope - H @ own
        value = self.weight * self.function.value_at(v)
        return H, c, value - 0.5 * float(own @ (slope + c))

    @property
    def pattern(self) -> Any:
        """Entries that its Hessian may have."""
        size = len(self.at)
        return sp.eye_array(size) if self.function.coordinatewise else np.ones((size, size))


@dataclass(frozen=True)
class StandardForm:
    """The standard form; ``parts`` are the rows of each name."""

    d: int
    P: Sparse
    P_z: Sparse
    P_zz: Sparse
    c: Array
    c_z: Array
    G: Sparse
    H: Sparse
    h: Array
    cone: ProductCone
    A: Sparse
    B: Sparse
    b: Array
    parts: dict[str, slice]
    bounds: tuple[NDArray[np.int64], NDArray[np.int64]]
    smooth: tuple[SmoothPart, ...] = ()
    constant: float = 0.0

    def near(self, y: Array, z: Array, damped: float = 0.0) -> StandardForm:
        """With models of second order at (y, z) in place of the smooth functions."""
        if not self.smooth:
            return self
        u = np.append(y, z)
        models = [part.model(u, damped) for part in self.smooth]
        c = np.append(self.c, self.c_z)
        for part, (_, slope, _) in zip(self.smooth, models, strict=True):
            c[part.at] += slope
        bent = self._with([H for H, _, _ in models])
        constant = sum((k for _, _, k in models), self.constant)
        return replace(bent, c=c[: self.size], c_z=c[self.size :], constant=constant)

    def slope(self, u: Array) -> Array:
        """P u + c, without smooth functions."""
        y, z = np.split(u, [self.size])
        on_y = self.P @ y + self.P_z @ z + self.c
        return np.append(on_y, self.P_z.T @ y + self.P_zz @ z + self.c_z)

    def missed(self, fitted: StandardForm, u: Array) -> Array:
        """By how much the slope at u is another than that of ``fitted`` in its place."""
        slope = self.slope(u) - fitted.slope(u)
        for part in self.smooth:
            slope[part.at] += part.slope(u)
        return slope

    def patterned(self) -> StandardForm:
        """With all entries that Hessians may have."""
        return self._with([part.pattern for part in self.smooth]) if self.smooth else self

    def _with(self, hessians: list[Any]) -> StandardForm:
        size = self.size
        whole = sp.block_array([[self.P, self.P_z], [self.P_z.T, self.P_zz]], format="csr")
        for part, H in zip(self.smooth, hessians, strict=True):
            own = sp.coo_array(H)
            at = part.at[own.row], part.at[own.col]
            whole = whole + sp.coo_array((own.data, at), shape=whole.shape)
        whole = sp.csr_array(whole)
        return replace(
            self, P=whole[:size, :size], P_z=whole[:size, size:], P_zz=whole[size:, size:]
        )

    @property
    def size(self) -> int:
        """Own unknowns."""
        return len(self.c)

    @property
    def rows(self) -> int:
        """Own rows."""
        return len(self.h)


def conic_forms(work: Workspace) -> list[Polyhedral]:
    """The objectives of the agents held here; bounds that the problem sets on z are agent 0's."""
    found = []
    q = work.problem.q
    for i, agent in work.problem.agents.items():
        objective = agent.objective
        form = objective.polyhedral(work.problem.d[i], q)
        if isinstance(objective, Limited) and i and q:
            own = objective.objective.polyhedral(objective.d, q)
            lower = np.append(form.lower[:-q], own.lower[-q:])
            upper = np.append(form.upper[:-q], own.upper[-q:])
            form = replace(form, lower=lower, upper=upper)
        found.append(form)
    return found


def conic_models(work: Workspace, forms: list[Polyhedral]) -> list[StandardForm]:
    """The standard forms of the agents held here."""
    problem = work.problem
    pairs = zip(forms, problem.agents.items(), strict=True)
    return [_model(form, agent, problem.d[i], problem.m) for form, (i, agent) in pairs]


def _model(form: Polyhedral, agent: Agent, d: int, m: int) -> StandardForm:
    """From an objective and an agent's blocks."""
    q = len(form.g) - d
    aux = sum(len(term.a) for term in form.terms)
    size = d + aux
    rows: list[Rows] = []

    def add(name: str, on_x: Any, on_t: Any, on_z: Any, h: Array | None, *cones: Cone) -> None:
        count = max((M.shape[0] for M in (on_x, on_t, on_z) if M is not None), default=0)
        if not count:
            return
        G = sp.hstack([_matrix(on_x, count, d), _matrix(on_t, count, aux)])
        h = np.zeros(count) if h is None else np.asarray(h, dtype=np.float64)
        cones = cones or (Zero(count),)
        rows.append(Rows(name, sp.csr_array(G), _matrix(on_z, count, q), h, cones))

    add("C", agent.C, None, None, agent.c)
    add("D", None, None, agent.D, agent.e)
    start = 0
    signed = [np.zeros(0, dtype=np.int64)]
    for term in form.terms:
        R = sp.csr_array(term.R)
        moves = sp.coo_array(term.T)
        T = sp.csr_array((moves.data, (moves.row, moves.col + start)), shape=(len(term.h), aux))
        add("epigraphs", R[:, :d], T, R[:, d:], term.h)
        signed.append(start + np.flatnonzero(np.isfinite(term.lower)))
        start += len(term.a)
    lower = form.lower
    upper = form.upper
    one = sp.eye_array(d + q, format="csr")
    fixed = one[np.flatnonzero(lower == upper)]
    add("fixed", fixed[:, :d], None, fixed[:, d:], lower[lower == upper])
    signs = -sp.eye_array(aux, format="csr")[np.concatenate(signed)]
    add("signs", None, signs, None, None, Nonnegative(max(signs.shape[0], 1)))
    below = np.flatnonzero(np.isfinite(lower) & (lower != upper))
    above = np.flatnonzero(np.isfinite(upper) & (lower != upper))
    for name, at, sign, ends in (("lower", below, -1.0, lower), ("upper", above, 1.0, upper)):
        M = sign * one[at]
        add(name, M[:, :d], None, M[:, d:], sign * ends[at], Nonnegative(max(len(at), 1)))
    own = agent.conic(d, q)
    if own is not None:
        add("cones", own.G, None, own.H, own.h, *own.cone.cones)
    H = sp.csr_array(form.H)
    parts: dict[str, slice] = {}
    start = 0
    for row in rows:
        first = parts.get(row.name, slice(start, start)).start
        start += len(row.h)
        parts[row.name] = slice(first, start)
    A = _matrix(agent.A, m, d)
    return StandardForm(
        d,
        sp.block_diag([H[:d, :d], sp.csr_array((aux, aux))], format="csr"),
        sp.vstack([H[:d, d:], sp.csr_array((aux, q))], format="csr"),
        sp.csr_array(H[d:, d:]),
        np.concatenate([-form.g[:d], *(term.a for term in form.terms)]),
        -form.g[d:],
        sp.csr_array(sp.vstack([sp.csr_array((0, size)), *(row.G for row in rows)])),
        sp.csr_array(sp.vstack([sp.csr_array((0, q)), *(row.H for row in rows)])),
        np.concatenate([np.zeros(0), *(row.h for row in rows)]),
        ProductCone([cone for row in rows for cone in row.cones]),
        sp.csr_array(sp.hstack([A, sp.csr_array((m, aux))])),
        _matrix(agent.B, m, q),
        np.zeros(m) if agent.b is None else np.asarray(agent.b, dtype=np.float64),
        parts,
        (below, above),
        tuple(_smooth(function, at, d, aux) for function, at in form.smooth),
    )


def _smooth(function: Function, at: NDArray[Any], d: int, aux: int) -> SmoothPart:
    """Auxiliary variables lie between x and z."""
    return SmoothPart(function, np.where(at < d, at, at + aux), np.ones(len(at)))


def _matrix(block: Any, rows: int, columns: int) -> Sparse:
    """A sparse matrix of this shape; None is zero."""
    if block is None:
        return sp.csr_array((rows, columns))
    whole: Any = block if sp.issparse(block) else dense(block)
    return sp.csr_array(whole, shape=(rows, columns))
