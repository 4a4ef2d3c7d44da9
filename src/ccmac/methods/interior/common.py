"""What everybody knows and solves alike: z, the prices of the equations, tau and kappa.

The summed matrix lives on (z, lambda), lambda the prices of all coupled rows in unit length; rows
that depend on others are left out by whitening, lambda = combine mu (:class:`Constraints`), after
the sum (many rows that are independent stay as they are: combine = 1).
The agents' flat directions xi and the entries of z fixed by equal bounds (prices phi) join:

    [ S_zz + Theta_z   .            .    .  . ] [dz  ]
    [ combine'S_lz + Z  combine'S_ll combine   .    .  . ] [dmu ]
    [ 0                G'           0    .  . ] [dxi ]
    [ 1_fixed          0            0    0  . ] [dphi]
    [ row of tau                              ] [dtau]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from ccmac.inputs import Array
from ccmac.methods.interior.block import DELTA, RHO
from ccmac.methods.interior.own import HELD
from ccmac.methods.interior.sides import Newton, Sides
from ccmac.workspace.constraints import ROWS, Constraints

SHIFTS = (0.0, 1e-9, 1e-6, 1e-3)
FULL = 0.1  # share of entries up to which a large matrix is sparse
END = 1e-9  # slacks times prices of a point that should be good enough
LEAST = 1e-7  # of RHO: with less, a matrix of doubles loses what a direction is judged by
PIVOT = 1e-13  # share of its terms below which the pivot of tau is rounding


@dataclass(frozen=True)
class Common:
    """z, mu, phi (of fixed z), slacks and prices of the bounds on z, tau, kappa.

    The flat directions xi are unknowns of a step only: they are part of the agents' y. ``near`` is
    the sum of all slacks times prices, over what is left of it at an ordinary end.
    """

    z: Array
    mu: Array
    phi: Array
    s: Array
    v: Array
    tau: float
    kappa: float
    near: float = 1.0

    @property
    def rho(self) -> float:
        """The weight of the proximal term: RHO, and less of it where tau vanishes beside kappa.

        Along a ray dw = g tau / rho at most: what holds a point would bound a free fall. The same
        holds of directions with little curvature, once slacks and prices have come to their end.
        """
        ray = self.tau / max(self.kappa, self.tau)
        return RHO * max(LEAST, min(1.0, ray, self.near))

    def moved(self, step: Common, alpha: float) -> Common:
        """A step of length alpha."""
        pairs = zip(vars(self).values(), vars(step).values(), strict=True)
        return replace(Common(*(a + alpha * b for a, b in pairs)), near=self.near)


class Equations:
    """The static part: whitened rows, bounds on z, flat directions."""

    def __init__(
        self, reduced: Constraints, lower: Array, upper: Array, flats: list[tuple[Array, Array]]
    ) -> None:
        m = len(reduced.unit)
        self.q = len(lower)
        self.rank = reduced.rank
        self.plain = reduced.rank == len(reduced.U) > ROWS and reduced.condition <= HELD
        self.combine: Any = reduced.U / reduced.sigma
        if self.plain:
            self.combine = sp.eye_array(reduced.rank, format="csr")
        self.top = self.combine[:m]
        self.Z = self.top.T @ (reduced.unit[:, None] * reduced.Bbar.astype(np.float64))
        self.Z = self.Z + self.combine[m:].T @ reduced.D
        self._reduced = reduced
        self.G = self.top.T @ np.hstack([G for G, _ in flats])
        self.gamma = np.concatenate([gamma for _, gamma in flats])
        self.fixed = np.flatnonzero(lower == upper)
        self.held = lower[self.fixed]
        lower = lower.copy()
        upper = upper.copy()
        lower[self.fixed], upper[self.fixed] = -np.inf, np.inf
        self.sides = Sides(lower, upper)
        sizes = [self.q, self.rank, len(self.gamma), len(self.fixed)]
        ends = np.cumsum([0, *sizes])
        self.z, self.mu, self.xi, self.phi = (
            slice(ends[k], ends[k + 1]) for k in range(len(sizes))
        )
        self.size = int(ends[-1]) + 1
        self.signs = np.repeat([1.0, -1.0, 1.0, -1.0], sizes)

    @cached_property
    def v(self) -> Array:
        """The right-hand sides of the whitened rows; they may arrive with the first message."""
        return np.asarray(self.combine.T @ self._reduced.right)

    def lam(self, mu: Array) -> Array:
        """Multipliers of the unit rows."""
        return np.asarray(self.top @ mu)

    def mu_of(self, rows: Array) -> Array:
        """mu with combine mu = ``rows``, as far as there is one."""
        reduced = self._reduced
        return rows if self.plain else np.asarray(reduced.sigma * (reduced.U.T @ rows))

    def told(self, dc: Array) -> Array:
        """What agents need of a common step: dz, dlambda, dtau."""
        return np.concatenate([dc[self.z], self.lam(dc[self.mu]), dc[-1:]])

    def residual(self, c: Common) -> Array:
        """The common part of what the equations lack."""
        sides = self.sides
        out = np.zeros(self.size)
        out[self.z] = self.Z.T @ c.mu - sides.spread(sides.sign * c.v)
        out[self.fixed] += c.phi
        out[self.mu] = self.Z @ c.z - self.v * c.tau
        out[self.xi] = self.G.T @ c.mu - self.gamma * c.tau
        out[self.phi] = c.z[self.fixed] - self.held * c.tau
        out[-1] = self.v @ c.mu + self.held @ c.phi - sides.signed_bound @ c.v + c.kappa
        return out

    def right(self, share: Array, newton: Newton, a: Array) -> Array:
        """A summed right-hand side on (z, lambda, tau), with a of the bounds on z."""
        out = np.zeros(self.size)
        on_z, on_tau = newton.right(a)
        out[self.z] = share[: self.q] + on_z
        out[self.mu] = self.top.T @ share[self.q : -1]
        out[-1] = share[-1] + on_tau
        return out

    def matrix(self, S: Array, column: Array, row: Array, newton: Newton, c: Common) -> Array:
        """The common matrix from the sums S on (z, lambda), the column and the row of tau."""
        q = self.q
        K = np.zeros((self.size, self.size))
        z = self.z
        mu = self.mu
        xi = self.xi
        phi = self.phi
        top = self.top
        K[z, z] = S[:q, :q] + np.diag(newton.diagonal + c.rho)
        K[mu, z] = top.T @ S[q:, :q] + self.Z
        K[z, mu] = K[mu, z].T
        K[mu, mu] = top.T @ S[q:, q:] @ top - DELTA * np.eye(self.rank)
        K[mu, xi], K[xi, mu] = self.G, self.G.T
        K[xi, xi] = c.rho * np.eye(len(self.gamma))
        at = np.arange(phi.start, phi.stop)
        K[at, self.fixed] = K[self.fixed, at] = 1.0
        K[at, at] = -DELTA
        tilt = newton.tilt
        K[z, -1], K[-1, z] = column[:q] - tilt, row[:q] + tilt
        K[mu, -1], K[-1, mu] = top.T @ column[q:] - self.v, top.T @ row[q:-1] + self.v
        K[xi, -1], K[-1, xi] = -self.gamma, -self.gamma
        K[phi, -1], K[-1, phi] = -self.held, self.held
        K[-1, -1] = row[-1] + newton.corner - c.kappa / c.tau
        return K


class Solver:
    """Solves with the common matrix; tau stays where rounding leaves nothing of its pivot.

    ``signs`` of the diagonal: unknowns +1, prices -1. A matrix that rounding made singular is
    shifted that way.
    """

    def __init__(self, K: Array, signs: Array) -> None:
        self.K: Any = K[:-1, :-1]
        self.row = K[-1, :-1]
        self.lu: Callable[[Array], Array] | None = None
        many = len(signs) > ROWS and np.count_nonzero(self.K) <= FULL * self.K.size
        if many:
            self.K = sp.csc_array(self.K)
        for shift in SHIFTS if len(signs) else ():
            diagonal = sp.diags_array(shift * signs) if many else np.diag(shift * signs)
            self.lu, regular = (_sparse if many else _dense)(self.K + diagonal)
            if regular:
                break
        self.along = self.inner(K[:-1, -1])
        self.pivot = float(K[-1, -1] - self.row @ self.along)
        terms = abs(float(K[-1, -1])) + float(np.abs(self.row) @ np.abs(self.along))
        self.moves = self.pivot < -PIVOT * terms

    def inner(self, right: Array) -> Array:
        """With one refinement."""
        if self.lu is None:
            return right
        x = self.lu(right)
        return np.asarray(x + self.lu(right - self.K @ x))

    def solve(self, right: Array) -> Array:
        """The common step."""
        first = self.inner(right[:-1])
        dtau = float(right[-1] - self.row @ first) / self.pivot if self.moves else 0.0
        return np.append(first - dtau * self.along, dtau)


def _dense(K: Array) -> tuple[Callable[[Array], Array], bool]:
    """(v -> K^{-1} v, whether K is regular)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)
        lu = scipy.linalg.lu_factor(K, check_finite=False)
    solve = partial(scipy.linalg.lu_solve, lu, check_finite=False)
    return solve, bool(np.diag(lu[0]).all())


def _sparse(K: Any) -> tuple[Callable[[Array], Array], bool]:
    """The same of a sparse K; where it is singular or not finite all of it becomes NaN."""
    try:
        return spla.splu(K).solve, True
    except (RuntimeError, ValueError):
        return lambda v: np.full_like(v, np.nan), False
