"""The common system in (z, lambda, tau): which entries are summed, and how the sum is solved.

    S = sum_i [P_zz, B_i'; B_i, 0] - V_i M_i^{-1} U_i

is symmetric but for tau. Only entries that some agent fills are sent. Where no agent's own unknowns
touch z and its curvature is diagonal, as in vertical learning, everybody eliminates z before the
dense solve.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.inputs import Array
from ccmac.linalg.tolerances import EPS
from ccmac.methods.interior.local import Elimination, LocalSystem, sparse_factor
from ccmac.workspace.equations import BITS, bits, words

PROXIMAL = 1e-11  # weight of z and of lambda: dependent coupled rows, free directions of z,
SEEN = 64 * EPS  # which rounding of a row's largest entry must not hide
LARGE = 400  # unknowns from which on the sum may be factorized as a sparse matrix,
SPARSE = 10  # where fewer than one entry in so many is there (of the upper triangle)
VECTORS = 5  # column and row of tau, three right-hand sides


class CommonSystem:
    """The layout of the sum, from what all agents have ``announced``; its solution.

    ``width_own`` is the width of the widest agent's state, ``degree`` e'e of all cones with tau's,
    ``turned`` says whether there are cones whose active rows cannot be guessed.
    """

    def __init__(self, agents: list[LocalSystem], table: Array, q: int, m: int) -> None:
        self.q = q
        self.m = m
        self.size = q + m
        self.agents = agents
        own, both, flags = np.split(table, [(width := -(-self.size // BITS)), 2 * width], axis=1)
        eliminated = bits(own, self.size)
        corners = bits(both, self.size)
        self.plain = bool(flags[:, 0].all()) and q == m
        self.width_own = int(flags[:, 1].max())
        self.degree = int(flags[:, 2].sum()) + 1
        self.turned = bool(flags[:, 3].any())
        if self.plain:
            eliminated[:, :q] = False
            diagonal = np.arange(q) * (self.size + 1)
            others = np.append(diagonal, diagonal + q)
        else:
            others = _pairs(corners, self.size)
        keys = np.union1d(_pairs(eliminated, self.size), others)
        self.at = np.divmod(keys, max(self.size, 1))
        self.places = []
        alike: dict[bytes, Any] = {}
        for agent in agents:
            if (support := agent.support.tobytes()) not in alike:
                alike[support] = self._place(agent.support, keys)
            row, column = agent.corner_at
            there = np.searchsorted(keys, row * self.size + column)
            self.places.append((*alike[support], there))

    def _place(self, support: NDArray[np.int64], keys: NDArray[np.int64]) -> Any:
        """Which entries of an agent's matrix are sent, and where they are among those of all."""
        of_z = int(np.searchsorted(support, self.q)) if self.plain else 0
        own = np.arange(of_z)
        rows, columns = np.triu_indices(len(support) - of_z)
        at = np.append(own, rows + of_z), np.append(own, columns + of_z)
        return at, np.searchsorted(keys, support[at[0]] * self.size + support[at[1]])

    @property
    def entries(self) -> int:
        """So many of the upper triangle are sent."""
        return len(self.at[0])

    @property
    def width(self) -> int:
        """Floats of :meth:`share`."""
        return self.entries + VECTORS * (self.size + 1)

    def share(self, k: int, e: Elimination) -> Array:
        """What agent k here adds: entries; column and row of tau; right-hand sides."""
        agent = e.agent
        matrix, column, row, corner = e.schur()
        entries = self.guessed(k, matrix, agent)
        p = agent.model
        wide = np.zeros((VECTORS, self.size + 1))
        rights = e.eliminated()
        wide[:, agent.support] = [column, row, *(r[:-1] for r in rights)]
        wide[1:, -1] = [corner, *(r[-1] for r in rights)]
        wide[0, :-1] += np.concatenate([p.c_z, -p.b])
        wide[1, :-1] += np.concatenate([e.tilt_z, p.b])
        wide[2] -= e.residual
        return np.concatenate([entries, wide.ravel()])

    def guessed(self, k: int, matrix: Array, agent: LocalSystem) -> Array:
        """The entries of a system without tau, with this matrix on the support."""
        upper, index, there = self.places[k]
        entries = np.zeros(self.entries)
        entries[index] += matrix[upper]
        entries[there] += agent.corner
        return entries

    def spread(self, k: int, right: Array) -> Array:
        """A vector on (support of agent k here, tau) as one on (z, lambda, tau)."""
        out = np.zeros(self.size + 1)
        out[self.agents[k].support] = right[:-1]
        out[-1] = right[-1]
        return out

    def own(self, k: int, dc: Array) -> Array:
        """dc on (support, tau)."""
        return np.append(dc[self.agents[k].support], dc[-1])

    def split(self, total: Array) -> tuple[Array, Array]:
        """(entries, the vectors) of a sum of shares."""
        entries, rest = np.split(total, [self.entries])
        return entries, rest.reshape(VECTORS, -1)

    def solver(self, entries: Array, column: Array, row: Array) -> Callable[[Array], Array]:
        """b -> c with [[S, column], [row]] c = b; ``row`` ends with its corner."""
        inner = self.factorized(entries)
        along = inner(column)
        pivot = float(row[-1] - row[:-1] @ along) or np.inf

        def solve(b: Array) -> Array:
            base = inner(b[:-1])
            last = float(b[-1] - row[:-1] @ base) / pivot
            return np.append(base - last * along, last)

        return solve

    def factorized(self, entries: Array) -> Callable[[Array], Array]:
        """b -> S^{-1} b, with proximal terms; heavier ones of the factors are refined away."""
        q = self.q
        if not self.size:
            return lambda b: b
        S = sp.coo_array((entries, self.at), shape=(self.size, self.size))
        signs = np.repeat([1.0, -1.0], [q, self.m])
        heavier = SEEN * largest(abs(S), self.size) * signs
        if not self.plain or not q:
            if self.size > LARGE and SPARSE * self.entries < self.size**2:
                whole = sp.csc_array(S + sp.triu(S, 1).T + sp.diags_array(PROXIMAL * signs))
                factor = sparse_factor(sp.csc_array(whole + sp.diags_array(heavier)))
                return refined(whole, factor.solve)
            dense = _symmetric(S.toarray())
            dense[np.diag_indices(self.size)] += PROXIMAL * signs
            return refined(dense, dense_solve(dense + np.diag(heavier)))
        upper = sp.csr_array(S)
        curvature = upper.diagonal()[:q] + PROXIMAL
        B = sp.csr_array(upper[:q, q:].T)
        rows = _symmetric(upper[q:, q:].toarray()) - PROXIMAL * np.eye(self.m)
        scaled = B @ sp.diags_array(1.0 / curvature)
        rows = rows - (scaled @ B.T).toarray()
        last = refined(rows, dense_solve(rows + np.diag(heavier[q:])))

        def solve(b: Array) -> Array:
            dual = last(b[q:] - scaled @ b[:q])
            return np.concatenate([(b[:q] - B.T @ dual) / curvature, dual])

        return solve


def dense_solve(matrix: Array) -> Callable[[Array], Array]:
    """b -> matrix^{-1} b."""
    factor = scipy.linalg.lu_factor(matrix, check_finite=False)
    return partial(scipy.linalg.lu_solve, factor, check_finite=False)


def refined(matrix: Any, solve: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """``solve``, of a matrix nearby, with steps of iterative refinement."""

    def closer(b: Array) -> Array:
        x = solve(b)
        for _ in range(3):
            x = x + solve(b - matrix @ x)
        return np.asarray(x)

    return closer


def largest(upper: sp.coo_array, size: int) -> Array:
    """The largest entry of each row of a symmetric matrix, from its upper triangle."""
    found = np.zeros(size)
    for at in upper.coords:
        np.maximum.at(found, at, upper.data)
    return found


def _symmetric(upper: Array) -> Array:
    return np.asarray(upper + np.triu(upper, 1).T)


def _pairs(supports: NDArray[np.bool_], size: int) -> NDArray[np.int64]:
    """Keys row * size + column of the upper triangles that the supports span."""
    keys = [np.zeros(0, dtype=np.int64)]
    for row in np.unique(supports, axis=0):
        at = np.flatnonzero(row)
        upper = np.triu_indices(len(at))
        keys.append(at[upper[0]] * size + at[upper[1]])
    return np.unique(np.concatenate(keys))


def announced(agents: list[LocalSystem], k: int) -> Array:
    """What agents say of themselves, a row each: which common unknowns their own touch, and their
    P_zz and B; whether these are diagonal; the width of a state, e'e, and cones that turn.
    """
    eliminated = np.zeros((len(agents), k), dtype=bool)
    corners = np.zeros((len(agents), k), dtype=bool)
    facts = np.zeros((len(agents), 4))
    for j, agent in enumerate(agents):
        p = agent.model
        eliminated[j, agent.support] = True
        corners[j, np.concatenate(agent.corner_at)] = True
        facts[j] = agent.plain, p.size + 2 * p.rows, p.cone.degree, p.cone.turned
    return np.hstack([words(eliminated), words(corners), facts])
