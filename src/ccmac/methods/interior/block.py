"""One agent's part of the Newton system: its block factorized, the common unknowns left.

The agent's unknowns are y = (x_i, t) and the multipliers nu of its own rows E y + F z = f tau (an
orthonormal form of C_i, or its own rows where these are sparse and independent; the epigraphs'
rows; entries fixed by equal bounds). Everybody's are
c = (z, lambda, tau), lambda for the coupled rows in unit length, projected on ker C_i. With

    M = [[H_yy + Theta + rho, E'], [E, -delta]],  W the columns and V the rows of c,

the agent adds V M^{-1} W and V M^{-1} r to what is summed; W = V' but for tau, and W is zero
outside the columns that the agent touches, its ``support``. Directions that neither H, E nor a
bound holds would make M singular: they leave it (``flat``) and become common unknowns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray

from ccmac.inputs import Array
from ccmac.linalg.blocks import dense
from ccmac.methods.interior.own import DENSE, OwnPoint, OwnRows
from ccmac.methods.interior.sides import Sides
from ccmac.objectives.polyhedral import Polyhedral
from ccmac.workspace.local import Kernel

RHO = 1e-8  # curvature of a proximal term; its inverse times eps is what sums lose
DELTA = 1e-10  # its counterpart on rows: dependent ones
FLAT = 1e-9  # singular values below this share of the largest: a direction without curvature
LARGE = 1500  # unknowns up to which a block with an orthonormal form of its rows is dense


class Block:
    """The data of one agent; ``unit`` scales the cost once all agents' are known."""

    unit: float = 1.0

    def __init__(self, form: Polyhedral, d: int, kernel: Kernel, A: Array, C: Any) -> None:
        self.form, self.d, self.q, self.A = form, d, len(form.g) - d, A
        self.own = OwnRows(kernel, C, self.d)
        aux = sum(len(term.a) for term in form.terms)
        self.size = d + aux
        self.H_xx: Any = form.H[:d, :d]
        self.H_xz = dense(form.H[:d, d:])
        self.H_zz = dense(form.H[d:, d:])
        self.g_z = form.g[d:]
        self.g_y = np.concatenate([form.g[:d], *(-term.a for term in form.terms)])
        lower = np.concatenate([form.lower[:d], *(term.lower for term in form.terms)])
        upper = np.concatenate([form.upper[:d], np.full(aux, np.inf)])
        self.fixed = np.flatnonzero(lower == upper)
        E, self.F, self.f = self._rows(lower[self.fixed])
        lower[self.fixed], upper[self.fixed] = -np.inf, np.inf
        self.wide = d + np.flatnonzero(np.isinf(lower[d:]))  # free slacks: in all rows of a term
        self.sides, self.flat = Sides(lower, upper), np.zeros((self.size, 0))
        self.small = self.size + len(self.f) <= (LARGE if self.own.scale is None else DENSE)
        self.E: Any = dense(E) if self.small else E
        self.H_xx = dense(self.H_xx) if self.small else sp.csr_array(self.H_xx)
        self._find_flat()
        self.W = np.zeros((self.size + len(self.f), self.q + len(A)))
        self.W[:d, : self.q], self.W[:d, self.q :] = self.H_xz, A.T
        self.W[self.size :, : self.q] = self.F
        touched = np.any(self.W != 0, axis=0)
        touched[: self.q] |= np.any(self.H_zz != 0, axis=0)
        self.support = np.flatnonzero(touched)

    def _rows(self, values: Array) -> tuple[sp.csr_array, Array, Array]:
        """(E, F, f): own equations, epigraphs, fixed entries."""
        d = self.d
        size = self.size
        q = self.q
        own = self.own
        rows = [sp.hstack([own.rows, sp.csr_array((own.rows.shape[0], size - d))])]
        shared = [np.zeros((own.rows.shape[0], q))]
        right = [own.right]
        start = d
        for term in self.form.terms:
            count = len(term.h)
            end = start + len(term.a)
            gaps = sp.csr_array((count, start - d)), sp.csr_array((count, size - end))
            rows.append(sp.hstack([sp.csr_array(term.R[:, :d]), gaps[0], term.T, gaps[1]]))
            shared.append(dense(term.R[:, d:]))
            right.append(term.h)
            start = end
        count = len(self.fixed)
        pick = (np.ones(count), (np.arange(count), self.fixed))
        rows.append(sp.csr_array(pick, shape=(count, size)))
        F = np.vstack([*shared, np.zeros((count, q))])
        return sp.csr_array(sp.vstack(rows)), F, np.concatenate([*right, values])

    def _find_flat(self) -> None:
        """Orthonormal directions of free entries along which E y and the gradient stay."""
        held = np.zeros(self.size, dtype=bool)
        held[self.sides.at] = True
        free = np.flatnonzero(~held)
        if not len(free):
            return
        H = np.zeros((self.d, len(free)))
        own = free < self.d
        H[:, own] = dense(self.H_xx[:, free[own]])
        stacked = np.vstack([H, dense(self.E[:, free])])
        if len(stacked) > len(free):
            stacked = np.asarray(np.linalg.qr(stacked, mode="r"))
        _, s, Vt = np.linalg.svd(stacked, full_matrices=True)
        rank = int(np.count_nonzero(s > FLAT * max(1.0, float(s.max(initial=0.0)))))
        self.flat = np.zeros((self.size, len(free) - rank))
        self.flat[free] = Vt[rank:].T

    @property
    def steepness(self) -> float:
        """The largest entry of the cost's data."""
        H = float(abs(self.form.H).max()) if self.form.H.shape[0] else 0.0
        return max(H, *(float(np.abs(g).max(initial=0.0)) for g in (self.g_y, self.g_z)))

    @property
    def width(self) -> int:
        """Floats of a :class:`OwnPoint`."""
        return self.size + len(self.f) + 2 * self.sides.count

    def scale(self, unit: float) -> None:
        """Multiply the cost by ``unit``."""
        self.unit = unit
        self.H_xx = unit * self.H_xx
        self.H_xz = unit * self.H_xz
        self.H_zz = unit * self.H_zz
        self.g_y = unit * self.g_y
        self.g_z = unit * self.g_z
        self.W[: self.d, : self.q] = self.H_xz

    def slope(self, y: Array, z: Array) -> tuple[Array, Array]:
        """H (y, z), by blocks."""
        x = y[: self.d]
        on_y = np.zeros(self.size)
        on_y[: self.d] = self.H_xx @ x + self.H_xz @ z
        return on_y, self.H_xz.T @ x + self.H_zz @ z

    def near(self, x: Array, z: Array, along: Array) -> OwnPoint:
        """A point with prices: ``along`` = K'lambda on x (cost scaled)."""
        u = np.append(x, z)
        slacks = []
        prices = []
        for term in self.form.terms:
            image = np.asarray(term.R @ u) - term.h
            slacks.append(term.slack(image))
            prices.append(self.unit * term.multiplier(image))
        y = np.concatenate(
            [np.clip(x, self.form.lower[: self.d], self.form.upper[: self.d]), *slacks]
        )
        basis = self.own.kernel.space.basis
        inside = basis.T @ along
        nu = np.concatenate([self.own.held(inside), *prices, np.zeros(len(self.fixed))])
        slope = self.slope(y, z)[0] - self.g_y + self.E.T @ nu
        slope[: self.d] += along - basis @ inside
        nu[len(nu) - len(self.fixed) :] = -slope[self.fixed]
        v = np.maximum(self.sides.sign * slope[self.sides.at], 0.0)
        return OwnPoint(y, nu, self.sides.slack(y, 1.0), v)

    def schur(self, solved: Array) -> Array:
        """Its part of the common matrix between its support; ``solved`` = M^{-1} W there."""
        S = -self.W[:, self.support].T @ solved
        inside = self.support < self.q
        at = self.support[inside]
        S[np.ix_(inside, inside)] += self.H_zz[np.ix_(at, at)]
        return np.asarray(S)

    def factorized(self, diagonal: Array, rho: float = RHO) -> Callable[[Array], Array]:
        """v -> M^{-1} v, Theta = diag(diagonal), with a proximal term of weight ``rho``.

        Flat directions are held by a border of their own: added to the entries of y they would
        blur curvatures as small as rho.
        """
        size = self.size
        rows = len(self.f)
        flats = self.flat.shape[1]
        last = np.repeat([-DELTA, -1.0], [rows, flats])
        if self.small:
            M = np.zeros((size + len(last), size + len(last)))
            M[: self.d, : self.d] = self.H_xx
            M[size : size + rows, :size], M[size + rows :, :size] = self.E, self.flat.T
            M[:size, size:] = M[size:, :size].T
            M[np.diag_indices(len(M))] += np.append(diagonal + rho, last)
            factor = scipy.linalg.lu_factor(M, check_finite=False)
            solve: Callable[[Array], Array] = partial(
                scipy.linalg.lu_solve, factor, check_finite=False
            )
        else:
            rest = sp.csr_array((size - self.d, size - self.d))
            top = sp.block_diag([self.H_xx, rest]) + sp.diags_array(diagonal + rho)
            held = sp.vstack([self.E, sp.csr_array(self.flat.T)])
            both = sp.block_array([[top, held.T], [held, sp.diags_array(last)]], format="csc")
            solve = bordered(both, self.wide)
        if not flats:
            return solve
        return lambda v: solve(np.concatenate([v, np.zeros((flats, *v.shape[1:]))]))[:-flats]


def bordered(M: Any, wide: NDArray[np.int64]) -> Callable[[Array], Array]:
    """v -> M^{-1} v; columns ``wide``, which would fill the factors, are eliminated last."""
    rest = np.setdiff1d(np.arange(M.shape[0]), wide)
    if not len(wide):
        return spla.splu(M).solve
    lu = spla.splu(M[rest][:, rest])
    border = dense(M[rest][:, wide])
    across = lu.solve(border)
    last = dense(M[wide][:, wide]) - border.T @ across

    def solve(v: Array) -> Array:
        out = np.empty_like(v)
        inner = lu.solve(v[rest])
        out[wide] = np.linalg.solve(last, v[wide] - border.T @ inner)
        out[rest] = inner - across @ out[wide]
        return out

    return solve
