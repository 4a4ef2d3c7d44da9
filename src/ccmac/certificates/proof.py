"""An error bound in the user's own variables and equations, rounding included.

For w = (x, z), K the user's rows (local, coupled, shared), any coupled price y and

    g = grad F(w) + (A'y, Bbar'y),   r = dist(g, Range [C' 0; 0 D']),   delta >= dist(w, {K w = v})

D = ||w - w*|| obeys the bound of :mod:`ccmac.certificates.error_bound` with mu and L of F. delta
comes from violations of the equations themselves, divided by a lower bound of the least singular
value of the rows (:class:`ccmac.workspace.reduced.Reduced`); what rounding may have added to a
gradient, a violation, a kernel or that singular value is added to r and delta. Where the rank of
the rows is a matter of opinion the bound is infinite. The point is first moved onto the equations,
and y is the best price there; both are dense work on what everybody knows.
Residuals are computed in extended precision.
Cost: 5 averagings (copies, violation twice, verification with gradients, norms), 1 gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ccmac.certificates.error_bound import distance_bound
from ccmac.certificates.prices import Multipliers
from ccmac.inputs import Array
from ccmac.linalg.extended import EPS_LONG, Long, halves, norm, product, summed
from ccmac.linalg.tolerances import EPS
from ccmac.workspace import Workspace
from ccmac.workspace.reduced import Reduced

PASSES = 2  # repairs: a second one removes what rounding left of the first


@dataclass(frozen=True)
class Particulars:
    """What else a proof found out about its point: residuals, prices, F."""

    residuals: dict[str, float]
    multipliers: Multipliers
    objective: float


@dataclass(frozen=True)
class Proved:
    """A point (flat x, one z for all) and what is proved of it.

    ``error`` bounds its distance from the solution, ``stationarity`` is r and ``infeasibility``
    delta; ``gradient_x``, ``gradient_z`` (one row per agent) and the coupled ``price`` go with it,
    unless ``report`` has what they are for.
    """

    x: Array
    z: Array
    error: float
    stationarity: float
    infeasibility: float
    size: float
    gradient_x: Array
    gradient_z: Array
    price: Array
    report: Particulars | None = None


class _Agent:
    """One agent's blocks, and its gradient with a bound on its rounding."""

    def __init__(self, work: Workspace, reduced: Reduced, k: int, L: float) -> None:
        self.i = list(work.problem.agents)[k]
        agent = work.problem.agents[self.i]
        self.objective, self.d, self.q = agent.objective, work.problem.d[self.i], work.problem.q
        self.A, self.B, self.C = reduced.A[k], reduced.B[k], reduced.C[k]
        self.b = np.zeros(work.problem.m) if agent.b is None else agent.b
        self.c = np.zeros(len(self.C)) if agent.c is None else agent.c
        self.kernel, self.L = reduced.kernels[k], L
        self.quadratic = None
        if "quadratic" in self.objective.capabilities:
            H, g, _ = self.objective.quadratic(self.d, self.q)
            self.quadratic = (H.toarray() if hasattr(H, "toarray") else np.asarray(H)), g

    def gradient(self, x: Array, z: Array) -> tuple[Long, float]:
        """(grad f_i, bound on its rounding)."""
        u = np.concatenate([x, z])
        if self.quadratic is not None:
            H, g = self.quadratic
            sizes = np.abs(H) @ np.abs(u) + np.abs(g)
            return product(H, u) - g, (len(u) + 2) * EPS_LONG * float(np.linalg.norm(sizes))
        slope = np.concatenate(self.objective.gradient(x, z))
        size = self.L * float(np.linalg.norm(u)) + float(np.linalg.norm(slope))
        return slope.astype(np.longdouble), 2 * EPS * (len(u) + 2) * size

    def misfit(self, x: Array, z: Array) -> Long:
        """A_i x_i + B_i z - b_i."""
        return product(self.A, x) + product(self.B, z) - self.b

    def onto_local(self, x: Array) -> Array:
        """Nearest to x on {C_i x = c_i}, as far as the kernel is known."""
        N = self.kernel.basis
        return np.asarray(self.kernel.point + N @ (N.T @ (x - self.kernel.point)))

    def local_distance(self, x: Array) -> float:
        """From {C_i x = c_i}: the violation of the unit rows over their least singular value."""
        space = self.kernel.space
        if not space.rank:
            return 0.0
        unit = space.inverse_lengths
        off = norm(unit * (product(self.C, x) - self.c))
        size = norm(unit[:, None] * self.C) * norm(x) + norm(unit * self.c)
        off += (self.d + 4) * EPS_LONG * size + 2 * EPS * off
        least = float(space.singular[-1]) - 4 * EPS * sum(self.C.shape) * float(space.singular[0])
        return off / least if least > 0 else math.inf

    def stationarity(self, gradient: Long, rounding: float, price: Array) -> float:
        """dist(grad_x + A'y, Range C'), by a multiplier of C."""
        total = gradient + product(self.A.T, price)
        kappa = self.kernel.space.multipliers(self.kernel.space.basis.T @ total.astype(np.float64))
        spread = norm(np.abs(self.A).T @ np.abs(price)) + norm(np.abs(self.C).T @ np.abs(kappa))
        noise = rounding + (len(price) + len(kappa) + 2) * EPS_LONG * (spread + norm(gradient))
        return norm(total - product(self.C.T, kappa)) + noise


class Proof:
    """Bounds for points of one smooth, strongly convex problem whose equations all may know."""

    def __init__(self, work: Workspace, reduced: Reduced) -> None:
        self.work, self.reduced = work, reduced
        self.space, self.runtime, self.problem = work.space, work.runtime, work.problem
        table = work.curvature
        if table.separable:
            mu = min(float(table.mu_x.min()), float(table.mu_z.sum()))
            self.L = max(float(table.L_x.max()), float(table.L_z.sum()))
            own = np.maximum(table.L_x, table.L_z)
        else:
            mu, self.L, own = float(table.mu.min()), float(table.L.sum()), table.L
        # Constants from a decomposition are right to its rounding.
        # Without any unknowns there is no curvature to speak of, and no error either.
        mu = mu if mu < math.inf else 1.0
        self._widest = int(table.d.max(initial=0))  # of all agents: all must find the same bound
        self.mu = mu - 2 * EPS * (self._widest + self.problem.q) * float(own.max())
        indices = list(self.problem.agents)
        self.agents = [_Agent(work, reduced, k, float(own[i])) for k, i in enumerate(indices)]

    @classmethod
    def of(cls, work: Workspace) -> Proof | None:
        """Where the equations may be gathered and F is strongly convex."""
        if not {"smooth", "strongly convex"} <= work.capabilities or work.reduced is None:
            return None
        found = cls(work, work.reduced)
        return found if found.mu > 0 else None

    def _charge(self, **units: int) -> None:
        there = {u: k for u, k in units.items() if len(u) > 1 or u in self.problem.present}
        self.work.ledger.charge(**there)

    # -- the point ---------------------------------------------------------------------------------
    def repaired(self, x: Array, copies: Array) -> tuple[Array, Array]:
        """(x, z) moved onto the equations, as far as double precision goes."""
        z = self.runtime.average(copies)[0] if self.problem.q else np.zeros(0)
        shared = self.reduced.shared
        for _ in range(PASSES):
            x = self._each(x, lambda agent, piece: agent.onto_local(piece))
            z = z + shared.basis @ (shared.coordinates(self.reduced.e) - shared.basis.T @ z)
            x, z = self._moved(x, z)
        return x, z

    def _each(self, x: Array, change: Callable[[_Agent, Array], Array]) -> Array:
        out = np.empty_like(x)
        for k, agent in enumerate(self.agents):
            self.space.x_of(out, k)[...] = change(agent, self.space.x_of(x, k))
        return out

    def _pieces(self, x: Array) -> list[tuple[_Agent, Array]]:
        return [(agent, self.space.x_of(x, k)) for k, agent in enumerate(self.agents)]

    def _violation(self, coupled: Long, z: Array) -> Long:
        """Of the scaled rows."""
        shared = product(self.reduced.D, z) - self.reduced.e
        return np.concatenate([self.reduced.unit * coupled, shared])

    def _moved(self, x: Array, z: Array) -> tuple[Array, Array]:
        """The least change that cancels the violation: T'(T T')^+ of it. One averaging."""
        reduced = self.reduced
        if not reduced.rank:
            return x, z
        self._charge(A=2, B=1)
        shares = np.stack([halves(agent.misfit(piece, z)) for agent, piece in self._pieces(x)])
        rows = self._violation(summed(self.runtime.gather(shares)), z).astype(np.float64)
        price, shared = reduced.prices(reduced.inverse_gram(rows))

        def back(agent: _Agent, piece: Array) -> Array:
            N = agent.kernel.basis
            return np.asarray(piece - N @ (N.T @ (agent.A.T @ price)))

        Bbar = reduced.Bbar.astype(np.float64)
        return self._each(x, back), z - Bbar.T @ price - reduced.D.T @ shared

    # -- the bound ---------------------------------------------------------------------------------
    def at(self, x: Array, copies: Array) -> Proved:
        """The bound at the repaired point."""
        x, z = self.repaired(x, copies)
        self._charge(gradients=1, A=3, B=1, C=2)
        found = [agent.gradient(piece, z) for agent, piece in self._pieces(x)]
        coupled, along, slope, noise = self._sums(x, z, found)
        price = self._best_price(along, slope.astype(np.float64))
        rows = np.zeros((len(self.agents), 4))
        for k, (agent, piece) in enumerate(self._pieces(x)):
            gradient, rounding = found[k]
            r = agent.stationarity(gradient[: agent.d], rounding, price)
            off, scaled = agent.local_distance(piece), norm(self.reduced.unit[:, None] * agent.A)
            length = norm(piece)
            rows[k] = r * r, length * length, off * off, scaled * scaled
        r2, x2, off2, scaled2 = (float(v) for v in self.runtime.total(rows))
        size = math.hypot(math.sqrt(x2), norm(z))
        r = math.hypot(math.sqrt(r2), self._shared_stationarity(slope, price) + noise)
        delta = self._distance(z, coupled, size, math.sqrt(off2), math.sqrt(scaled2))
        r, delta = r * (1 + 8 * EPS), delta * (1 + 8 * EPS)
        error = math.inf
        if math.isfinite(r) and math.isfinite(delta) and not self.reduced.doubtful:
            error = distance_bound(r, delta, self.mu, self.L)
        gradients = [g.astype(np.float64) for g, _ in found]
        gx = np.concatenate([g[: a.d] for a, g in zip(self.agents, gradients, strict=True)])
        gz = np.stack([g[a.d :] for a, g in zip(self.agents, gradients, strict=True)])
        return Proved(x, z, error, r, delta, size, gx, gz, price)

    def _sums(
        self, x: Array, z: Array, found: list[tuple[Long, float]]
    ) -> tuple[Long, Array, Long, float]:
        """(violation, sum A_i P_i grad_x, sum grad_z, its rounding): one averaging."""
        m, q = self.problem.m, self.problem.q
        shares: list[Array] = []
        for (agent, piece), (gradient, rounding) in zip(self._pieces(x), found, strict=True):
            N, gx = agent.kernel.basis, gradient[: agent.d].astype(np.float64)
            inside = agent.A @ (N @ (N.T @ gx))
            misfit, slope = halves(agent.misfit(piece, z)), halves(gradient[agent.d :])
            shares.append(np.concatenate([misfit, inside, slope, np.array([rounding])]))
        everybody = self.runtime.gather(np.stack(shares))
        coupled, along, slopes, noise = np.split(everybody, np.cumsum([2 * m, m, 2 * q]), axis=1)
        sizes = float(np.sum(np.linalg.norm(slopes[:, :q], axis=1)))
        total = float(np.sum(noise)) + len(everybody) * EPS_LONG * sizes
        return summed(coupled), np.add.reduce(along, axis=0), summed(slopes), total

    def _best_price(self, along: Array, slope: Array) -> Array:
        """y that cancels the most of the gradient: -(T T')^+ T grad F."""
        reduced = self.reduced
        if not reduced.rank:
            return np.zeros(self.problem.m)
        coupled = along + reduced.Bbar.astype(np.float64) @ slope
        image = np.concatenate([reduced.unit * coupled, reduced.D @ slope])
        return -reduced.prices(reduced.inverse_gram(image))[0]

    def projected(self, x: Array, z: Array, slopes: list[Long]) -> tuple[list[Array], Array]:
        """The part of a gradient in ker K, by agents and for z. One averaging."""
        _, along, slope, _ = self._sums(x, z, [(gradient, 0.0) for gradient in slopes])
        total = slope.astype(np.float64)
        price = self._best_price(along, total)
        on_x = []
        for agent, gradient in zip(self.agents, slopes, strict=True):
            N = agent.kernel.basis
            own = gradient[: agent.d].astype(np.float64) + agent.A.T @ price
            on_x.append(np.asarray(N @ (N.T @ own)))
        basis = self.reduced.shared.basis
        on_z = total + self.reduced.Bbar.astype(np.float64).T @ price
        return on_x, np.asarray(on_z - basis @ (basis.T @ on_z))

    def image(self, d_x: list[Array], d_z: Array) -> float:
        """||(sum A_i d_i + Bbar d_z, D d_z)|| in scaled rows. One averaging."""
        shares = [agent.A @ d + agent.B @ d_z for agent, d in zip(self.agents, d_x, strict=True)]
        coupled = self.runtime.average(np.stack(shares))[0] * self.problem.n
        return math.hypot(norm(self.reduced.unit * coupled), norm(self.reduced.D @ d_z))

    def _shared_stationarity(self, slope: Long, price: Array) -> float:
        """dist(sum grad_z + Bbar'y, Range D'), by a multiplier of D; everybody knows all of it."""
        reduced = self.reduced
        total = slope + product(reduced.Bbar.T, price)
        delta = reduced.shared.multipliers(reduced.shared.basis.T @ total.astype(np.float64))
        spread = norm(reduced.size_B.T @ np.abs(price))
        spread += norm(np.abs(reduced.D).T @ np.abs(delta)) + norm(slope)
        noise = (len(price) + len(delta) + self.problem.n + 2) * EPS_LONG * spread
        return norm(total - product(reduced.D.T, delta)) + noise

    def _distance(self, z: Array, coupled: Long, size: float, off: float, scaled: float) -> float:
        """delta: onto the local rows first, then along the rows of T."""
        reduced = self.reduced
        if not reduced.rank:
            return off
        B, D = norm(reduced.unit[:, None] * reduced.size_B), norm(reduced.D)
        right = norm(reduced.unit * reduced.size_b) + norm(reduced.e)
        widest = self._widest + self.problem.q + self.problem.n
        noise = (widest + 4) * EPS_LONG * (math.hypot(scaled, B, D) * size + right)
        whole = norm(self._violation(coupled, z)) + noise + scaled * off
        if not (reduced.least > 0 and math.isfinite(off)):
            return math.inf
        return off + whole / reduced.least
