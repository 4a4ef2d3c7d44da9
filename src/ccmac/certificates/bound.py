"""One error bound that needs no solution.

For any w and any p in Range K', with r = grad F(w) + p and delta >= the distance of w from the
points that meet the equations, D = ||w - w*|| obeys

    D <= (B + (B^2 + 4 ||r|| delta / mu)^{1/2}) / 2,    B = ||r||/mu + (L/mu)^{1/2} delta.

Proof: let e = grad F(w) - grad F(w*) = r - q with q in Range K', and s = <e, w - w*>. Then
s <= ||r|| D + (||e|| + ||r||) delta, while mu D^2 <= s and (cocoercivity) ||e||^2 <= L s; solve for
s^{1/2}. delta is the violation of unit rows over a lower bound sigma of their least singular value.
Who knows sigma: :mod:`ccmac.certificates.structure` (z follows from x), :class:`Proof` (the
gathered rows) and :mod:`ccmac.certificates.realized` (the interval of a realization).

With gathered rows: for w = (x, z), K the user's rows (local, coupled, shared), any coupled
multiplier y and

    g = grad F(w) + (A'y, Bbar'y),   r = dist(g, Range [C' 0; 0 D']),   delta >= dist(w, {K w = v})

D = ||w - w*|| obeys the bound with mu and L of F. delta comes from violations of the equations
themselves over a lower bound of the least singular value of the rows
(:class:`ccmac.workspace.equations.Constraints`); rows that are dependent by the convention of
:mod:`ccmac.linalg.ranks` are left out, and the bound is about the problem without them. All of it
is evaluated in the long format; rounding is added in :meth:`Proof.concluded` and nowhere else.

:meth:`Proof.judged` bounds the error of any point and multiplier in one averaging, which carries
residuals, objective and what the other multipliers need as well.
:meth:`Proof.at` first moves a point onto the equations and takes the best multiplier there, dense
work on what everybody knows: two averagings more (three where rounding left much to move).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ccmac.certificates.multipliers import Multipliers
from ccmac.certificates.stopping import Check, Judge, Judged, check_of
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.extended import (
    EPS_LONG,
    Long,
    gradient_rounding,
    halves,
    norm,
    product,
    square,
    summed,
)
from ccmac.linalg.ranks import RowSpace
from ccmac.linalg.tolerances import EPS
from ccmac.runtime.notes import gathered_rows
from ccmac.workspace import Workspace
from ccmac.workspace.equations import Constraints


@dataclass(frozen=True)
class Dual:
    """A dual state: p = K'lambda in execution coordinates and lambda's coupled part.

    Without ``p`` the point minimises the Lagrangian: p = -grad Phi there.
    """

    p: Array | None
    multiplier: Array


@dataclass(frozen=True)
class Particulars:
    """What else a bound found out about its point: residuals, multipliers, F."""

    residuals: dict[str, float]
    multipliers: Multipliers
    objective: float


@dataclass(frozen=True)
class Proved:
    """A point (flat x; one z for all, or one row an agent) and what is known of its error.

    ``error`` bounds its distance from the solution, ``stationarity`` is ||r|| and ``infeasibility``
    delta, ``size`` is ||(x, z)||. The user's ``gradient_x``, ``gradient_z`` (one row an agent) and
    the coupled ``multiplier`` go with it, unless ``report`` has what they are for; ``w`` is
    the point on a realization.
    """

    x: Array
    z: Array
    error: float
    stationarity: float
    infeasibility: float
    size: float
    gradient_x: Array
    gradient_z: Array
    multiplier: Array
    report: Particulars | None = None
    w: Array | None = None


def distance_bound(r: float, delta: float, mu: float, L: float) -> float:
    """The bound of the module text; infinite where r or delta are no numbers or mu is zero."""
    if not (0 < mu < math.inf and math.isfinite(r) and math.isfinite(delta)):
        return math.inf
    b = r / mu + math.sqrt(L / mu) * delta
    return (b + math.sqrt(b * b + 4 * r * delta / mu)) / 2


Pieces = list[Array]  # one x_i an agent


@dataclass(frozen=True)
class Contribution:
    """One agent's local contribution at a point: the row that it sends and what it keeps."""

    row: Array
    gradient: Long
    multiplier: Array  # of C, with the sign of the Lagrangian


class Share:
    """One agent's blocks, in the long format where it counts."""

    def __init__(self, work: Workspace, reduced: Constraints, k: int) -> None:
        i = list(work.problem.agents)[k]
        self.objective = work.problem.agents[i].objective
        self.d = work.problem.d[i]
        self.A = reduced.A[k]
        self.B = reduced.B[k]
        self.C = reduced.C[k]
        self.D = reduced.own_D[k]
        self.b, self.c, self.e = (work.problem.sides(name)[k] for name in "bce")
        self.unit = reduced.unit
        self.kernel = reduced.kernels[k]
        self.space = self.kernel.space  # of the rows of C
        self.least = float(self.space.singular.min(initial=math.inf))
        self.L = float(work.curvature.own_L[i])
        self.size = self.d + work.problem.q + work.problem.n

    def gradient(self, x: Array, z: Array) -> Array | Long:
        """grad f_i, in the long format where it can be evaluated in it."""
        return self.objective.precise_gradient(x.astype(np.longdouble), z.astype(np.longdouble))

    def rounding(self, gradient: Array | Long, x: Array, z: Array) -> list[float]:
        """What rounding may take from the gradient, from the distance to the local equations and
        from this agent's part of the coupled unit rows: eps times sizes times magnitudes.
        """
        many = 4 * EPS_LONG * self.size
        own = np.abs(self.C) @ np.abs(x) + np.abs(self.c)
        rows = np.abs(self.A) @ np.abs(x) + np.abs(self.B) @ np.abs(z) + np.abs(self.b)
        local = norm(self.space.inverse_lengths * own) / self.least
        slope = gradient_rounding(gradient, np.concatenate([x, z]), self.L)
        return [slope, (many * local) ** 2, many * norm(self.unit * rows)]

    def misfit(self, x: Array, z: Array) -> Long:
        """A_i x_i + B_i z - b_i."""
        return product(self.A, x) + product(self.B, z) - self.b.astype(np.longdouble)

    def onto_local(self, x: Array) -> Array:
        """The nearest point to x on {C_i x = c_i}, as far as the kernel is known."""
        lacks = (self.c - product(self.C, x)).astype(np.float64)
        return np.asarray(x + self.space.basis @ self.space.coordinates(lacks))

    def inside(self, v: Array) -> Array:
        """The part of v in ker C_i."""
        N = self.kernel.basis
        return np.asarray(N @ (N.T @ v))

    def local_distance(self, x: Array) -> float:
        """From {C_i x = c_i}: the violation of the unit rows over their least singular value."""
        return norm(self.space.inverse_lengths * (product(self.C, x) - self.c)) / self.least

    def stationarity(self, gradient: Array | Long, multiplier: Array) -> tuple[float, Array]:
        """(dist(grad_x + A'y, Range C') by a multiplier of C, that one)."""
        return _stripped(gradient + product(self.A.T, multiplier), self.C, self.space)

    def contribution(self, x: Array, z: Array, multiplier: Array) -> Contribution:
        """The share at a point."""
        precise = self.gradient(x, z)
        gradient = precise.astype(np.longdouble)
        r, kappa = self.stationarity(gradient[: self.d], multiplier)
        numbers = [
            *self.rounding(precise, x, z),
            r * r,
            square(x),
            self.local_distance(x) ** 2,
            self.objective.value(x, z),
            square(product(self.C, x) - self.c),
            square(product(self.D, z) - self.e),
        ]
        row = np.concatenate([halves(self.misfit(x, z)), halves(gradient[self.d :]), numbers])
        return Contribution(row, gradient, kappa)


def _stripped(total: Long, rows: Array, space: RowSpace) -> tuple[float, Array]:
    """(||total - rows'kappa||, -kappa) for the best kappa, and what rounding left of it."""
    kappa: Long = np.zeros(len(rows), dtype=np.longdouble)
    left = total
    for _ in range(2):
        kappa = kappa + space.multipliers(space.basis.T @ left.astype(np.float64))
        left = total - product(rows.T, kappa)
    return norm(left), np.asarray(-kappa.astype(np.float64))


class Proof:
    """Bounds for points of one smooth, strongly convex problem whose equations all may know."""

    def __init__(self, work: Workspace, reduced: Constraints) -> None:
        self.work = work
        self.reduced = reduced
        self.space = work.space
        self.runtime = work.runtime
        self.problem = work.problem
        table = work.curvature
        if table.separable:
            mu = min(float(table.mu_x.min()), float(table.mu_z.sum()))
            self.L = max(float(table.L_x.max()), float(table.L_z.sum()))
        else:
            mu = float(table.mu.min())
            self.L = float(table.L.sum())
        # Without any unknowns there is no curvature to speak of, and no error either.
        mu = mu if mu < math.inf else 1.0
        self._widest = int(table.d.max(initial=0)) + self.problem.q
        # Constants from a decomposition are right to its rounding.
        self.mu = mu - 2 * EPS * self._widest * float(table.own_L.max())
        self.agents = [Share(work, reduced, k) for k in range(len(self.problem.agents))]

    @classmethod
    def of(cls, work: Workspace) -> Proof | None:
        """Where F is strongly convex and all know the equations, or that sums of them suffice."""
        curved = {"smooth", "strongly convex"} <= work.capabilities
        if not curved or (reduced := work.gather_provable()) is None:
            return None
        found = cls(work, reduced)
        return found if found.mu > 0 else None

    def _present(self, **units: int) -> Cost:
        """Without the blocks that nobody has."""
        here = self.problem.present
        return Cost(**{u: k for u, k in units.items() if u not in "ABCD" or u in here})

    # -- the point ---------------------------------------------------------------------------------
    def _met(self, x: Array, copies: Array) -> tuple[Pieces, Array]:
        """The copies' mean and x on the local equations, moved onto all: one averaging."""
        self.work.ledger.charge_cost(self._present(A=2, C=2))
        pieces = [agent.onto_local(self.space.x_of(x, k)) for k, agent in enumerate(self.agents)]
        if not (self.problem.q or self.problem.m):
            return pieces, np.zeros(0)
        mean = self.runtime.piggyback(copies)
        shares = [halves(product(a.A, v) - a.b) for a, v in zip(self.agents, pieces, strict=True)]
        coupled = summed(gathered_rows(self.runtime, np.stack(shares)))
        z = mean.value / self.problem.n
        if not self.reduced.rank:
            return pieces, z
        return self._moved(pieces, z, coupled + product(self.reduced.Bbar, z))[:2]

    def _violation(self, coupled: Long, z: Array) -> Long:
        """Of the scaled rows."""
        shared = product(self.reduced.D, z) - self.reduced.e
        return np.concatenate([self.reduced.unit * coupled, shared])

    def _moved(self, pieces: Pieces, z: Array, coupled: Long) -> tuple[Pieces, Array, float]:
        """(the least change that cancels a violation, T'(T T')^+ of it; its length)."""
        reduced = self.reduced
        rows = self._violation(coupled, z).astype(np.float64)
        multiplier, shared = reduced.multipliers(reduced.inverse_gram(rows))
        back = [
            agent.onto_local(v - agent.inside(agent.A.T @ multiplier))
            for agent, v in zip(self.agents, pieces, strict=True)
        ]
        z = z - reduced.Bbar.astype(np.float64).T @ multiplier - reduced.D.T @ shared
        return back, z, norm((reduced.U.T @ rows) / reduced.sigma)

    # -- the bound ---------------------------------------------------------------------------------
    def at(self, x: Array, copies: Array) -> Proved:
        """The bound at the repaired point."""
        pieces, z = self._met(x, copies)
        multiplier = np.zeros(self.problem.m)
        for _ in range(3 if self.reduced.rank else 0):
            self.work.ledger.charge_cost(self._present(gradients=1, A=3, B=1, C=2))
            slopes = [a.gradient(v, z) for a, v in zip(self.agents, pieces, strict=True)]
            coupled, along, slope, size = self.sums(pieces, z, slopes)
            multiplier = self.best_multiplier(along, slope.astype(np.float64))
            pieces, z, length = self._moved(pieces, z, coupled)
            if length <= 1e-9 * max(1.0, math.hypot(size, norm(z))):
                break
        return self.judged(pieces, z, multiplier)

    @property
    def row(self) -> int:
        """Floats of a share."""
        return 2 * (self.problem.m + self.problem.q) + 9

    @property
    def contribution_cost(self) -> Cost:
        """What :meth:`contributions` is charged."""
        return self._present(gradients=1, A=3, B=2, C=5)

    def contributions(self, pieces: Pieces, z: Array, multiplier: Array) -> list[Contribution]:
        """The shares of the agents owned here."""
        self.work.ledger.charge_cost(self.contribution_cost)
        return [a.contribution(v, z, multiplier) for a, v in zip(self.agents, pieces, strict=True)]

    def judged(self, pieces: Pieces, z: Array, multiplier: Array) -> Proved:
        """The bound at a point and a multiplier as they are: one averaging."""
        known = self.runtime.common(np.concatenate([z, multiplier]))
        z, multiplier = np.split(known, [self.problem.q])
        contributions = self.contributions(pieces, z, multiplier)
        table = gathered_rows(self.runtime, np.stack([share.row for share in contributions]))
        return self.concluded(contributions, table, pieces, z, multiplier)

    def concluded(
        self,
        contributions: Sequence[Contribution],
        table: Array,
        pieces: Pieces,
        z: Array,
        multiplier: Array,
    ) -> Proved:
        """The bound from the shares of all agents (``table``)."""
        m = self.problem.m
        q = self.problem.q
        reduced = self.reduced
        misfits, slopes, numbers = np.split(table, [2 * m, 2 * (m + q)], axis=1)
        coupled = summed(misfits)
        slope = summed(slopes)
        # Of masked sums each is wrong by the grain, and rounded once.
        hidden = self.runtime.averaging.hides
        grain = self.runtime.averaging.grain if hidden else 0.0
        rounding, lost2, lost, r2, x2, off2, value, C2, D2 = np.add.reduce(numbers) + grain
        on_z, shared = _stripped(
            slope + product(reduced.Bbar.T, multiplier), reduced.D, reduced.shared
        )
        # The one term of rounding, of r and of the distance to the equations.
        r = math.hypot(math.sqrt(r2), on_z) + float(rounding)
        off = math.sqrt(off2) + math.sqrt(lost2)
        away = 0.0
        if reduced.rank:
            # Who moves onto the local rows first moves the coupled ones, of length one, as well.
            away = norm(self._violation(coupled, z)) + math.sqrt(2 * m) * off + float(lost)
            away += 4 * EPS_LONG * (q + 2) * (norm(reduced.D) * norm(z) + norm(reduced.e))
            if hidden:
                r += 4 * EPS * norm(slope) + 4 * math.sqrt(q) * grain
                away += norm(reduced.unit * (4 * EPS * np.abs(coupled) + 4 * grain))
                away += reduced.off * (1 + norm(z))
            away = away / reduced.least if reduced.least > 0 else math.inf
        delta = off + away
        gradients = [share.gradient.astype(np.float64) for share in contributions]
        gz = np.stack([g[a.d :] for a, g in zip(self.agents, gradients, strict=True)])
        gx = [g[: a.d] for a, g in zip(self.agents, gradients, strict=True)]
        present = self.problem.present
        residuals = {
            "coupled": norm(coupled),
            "local": math.sqrt(C2) if "C" in present else 0.0,
            "shared": math.sqrt(D2) if "D" in present else 0.0,
            "consensus": 0.0,
        }
        kappa = [share.multiplier for share in contributions]
        multipliers = self._multipliers(kappa, gz, multiplier, slope, shared)
        return Proved(
            np.concatenate([np.zeros(0), *pieces]),
            z,
            distance_bound(r, delta, self.mu, self.L),
            r,
            delta,
            math.hypot(math.sqrt(x2), norm(z)),
            np.concatenate([np.zeros(0), *gx]),
            gz,
            multiplier,
            Particulars(residuals, multipliers, float(value)),
        )

    def _multipliers(
        self, kappa: list[Array], gz: Array, y: Array, slope: Long, shared: Array
    ) -> Multipliers:
        """Coupled, local, shared (least in scaled rows where not unique) and consensus ones."""
        reduced = self.reduced
        mean = slope + product(reduced.Bbar.T, y) + product(reduced.D.T, shared)
        mean = (mean / self.problem.n).astype(np.float64)
        own = [reduced.own_shared(k, shared) for k in range(len(self.agents))]
        images = [a.B.T @ y + image for a, (_, image) in zip(self.agents, own, strict=True)]
        return Multipliers(y, kappa, [delta for delta, _ in own], mean - (gz + np.stack(images)))

    def sums(
        self, pieces: Pieces, z: Array, slopes: Sequence[Array | Long]
    ) -> tuple[Long, Array, Long, float]:
        """(violation, sum A_i P_i grad_x, sum grad_z, ||x||): one averaging."""
        m = self.problem.m
        q = self.problem.q
        shares: list[Array] = []
        for agent, piece, slope in zip(self.agents, pieces, slopes, strict=True):
            along = agent.A @ agent.inside(slope[: agent.d].astype(np.float64))
            misfit = halves(agent.misfit(piece, z))
            on_z = halves(slope[agent.d :].astype(np.longdouble))
            shares.append(np.concatenate([misfit, along, on_z, [square(piece)]]))
        everybody = gathered_rows(self.runtime, np.stack(shares))
        coupled, along, on_z, size = np.split(everybody, np.cumsum([2 * m, m, 2 * q]), axis=1)
        return summed(coupled), np.add.reduce(along), summed(on_z), math.sqrt(np.sum(size))

    def best_multiplier(self, along: Array, slope: Array) -> Array:
        """y that cancels the most of the gradient: -(T T')^+ T grad F."""
        reduced = self.reduced
        if not reduced.rank:
            return np.zeros(self.problem.m)
        coupled = along + reduced.Bbar.astype(np.float64) @ slope
        image = np.concatenate([reduced.unit * coupled, reduced.D @ slope])
        return -reduced.multipliers(reduced.inverse_gram(image))[0]


@dataclass
class ProofJudge(Judge):
    """||error|| <= tol max(1, ||(x, z)||) by a :class:`Proof`.

    Where the steps' own messages bound the error, nothing else is asked.
    """

    proof: Proof
    tol: float

    def check(self, iteration: Judged, state: Any) -> Check:
        """One bound."""
        known = iteration.proved(state)
        found = self.proof.at(*iteration.point(state)) if known is None else known
        return check_of(found, self.tol)
