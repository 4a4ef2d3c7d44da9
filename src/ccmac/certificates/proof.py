"""An error bound in the user's own variables and equations, rounding included.

For w = (x, z), K the user's rows (local, coupled, shared), any coupled price y and

    g = grad F(w) + (A'y, Bbar'y),   r = dist(g, Range [C' 0; 0 D']),   delta >= dist(w, {K w = v})

D = ||w - w*|| obeys the bound of :mod:`ccmac.certificates.error_bound` with mu and L of F (that of
:mod:`ccmac.certificates.inside` where a quadratic F bends on ker K only). delta comes from
violations of the equations themselves, divided by a lower bound of the least singular value of the
rows (:class:`ccmac.workspace.reduced.Reduced`); what rounding may have added to a gradient, a
violation, a kernel or that singular value is added to r and delta. Rows that are
dependent by the convention of :mod:`ccmac.linalg.ranks` are left out: the bound is about the
problem without them.

:meth:`Proof.judged` proves it of any point and price in one averaging, which carries residuals,
objective and what multipliers need as well (:mod:`ccmac.certificates.share`). Of quadratics the
point may have more digits than doubles; the bound of its rounding is larger by the distance of the
two. :meth:`Proof.at` first moves a point onto the equations and takes the best price there, dense
work on what everybody knows: two averagings more (three where rounding left much to move).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ccmac.certificates.error_bound import Particulars, Proved, change_bound, distance_bound
from ccmac.certificates.inside import inner_bound
from ccmac.certificates.prices import Multipliers
from ccmac.certificates.share import NUMBERS, Heard, Share, Told
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.extended import EPS_LONG, Long, halves, norm, product, square, summed
from ccmac.linalg.tolerances import EPS
from ccmac.runtime.notes import heard_by_all
from ccmac.workspace import Workspace
from ccmac.workspace.reduced import Reduced

PASSES = 3  # repairs with prices, at most
MOVED = 1e-9  # of a point's size: a repair that moves it further is followed by another

Pieces = list[Long]  # one x_i an agent


class Proof:
    """Bounds for points of one smooth, strongly convex problem whose equations all may know."""

    def __init__(self, work: Workspace, reduced: Reduced) -> None:
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
        # Constants from a decomposition are right to its rounding.
        # Without any unknowns there is no curvature to speak of, and no error either.
        mu = mu if mu < math.inf else 1.0
        self._widest = int(table.d.max(initial=0))  # of all agents: all must find the same bound
        self.mu = mu - 2 * EPS * (self._widest + self.problem.q) * float(table.own_L.max())
        self.agents = [Share(work, reduced, k) for k in range(len(self.problem.agents))]
        self.open = not work.runtime.averaging.hides
        self.inside = 0.0  # curvature on the kernel of all equations, where that is what is known
        self._long = table.quadratic  # others have gradients at doubles only

    @classmethod
    def of(cls, work: Workspace) -> Proof | None:
        """Where F is strongly convex and all know the equations, or that sums of them suffice."""
        curved = {"smooth", "strongly convex"} <= work.capabilities
        if not curved or (reduced := work.gather_provable()) is None:
            return None
        found = cls(work, reduced)
        return found if found.mu > 0 else None

    def _charge(self, **units: int) -> None:
        self.work.ledger.charge_cost(self._present(Cost(**units)))

    def _present(self, cost: Cost) -> Cost:
        """Without the blocks that nobody has."""
        absent = {u for u in "ABCD" if u not in self.problem.present}
        return Cost(**{u: k for u, k in cost.items() if u not in absent})

    # -- the point ---------------------------------------------------------------------------------
    def repaired(self, x: Array, copies: Array) -> tuple[Pieces, Long]:
        """(x by agents, z) moved onto the equations: two averagings."""
        pieces, z = self._met(x, copies)
        if self.reduced.rank:
            self._charge(A=2, B=1)
            shares = [halves(a.misfit(v, z)) for a, v in zip(self.agents, pieces, strict=True)]
            pieces, z, _ = self._moved(
                pieces, z, summed(heard_by_all(self.runtime, np.stack(shares)))
            )
        return pieces, z

    def _met(self, x: Array, copies: Array) -> tuple[Pieces, Long]:
        """The copies' mean and x on the local equations, moved onto all: one averaging."""
        self._charge(A=2, C=2)
        pieces = [agent.onto_local(self.space.x_of(x, k)) for k, agent in enumerate(self.agents)]
        shares = [halves(product(a.A, v) - a.b) for a, v in zip(self.agents, pieces, strict=True)]
        if not (self.problem.q or self.problem.m):
            return pieces, np.zeros(0, dtype=np.longdouble)
        mean = self.runtime.ride(copies)
        coupled = summed(heard_by_all(self.runtime, np.stack(shares)))
        z = (mean.value / self.problem.n).astype(np.longdouble)
        if not self.reduced.rank:
            return pieces, z
        pieces, z, _ = self._moved(pieces, z, coupled + product(self.reduced.Bbar, z))
        return pieces, z

    def _violation(self, coupled: Long, z: Long) -> Long:
        """Of the scaled rows."""
        shared = product(self.reduced.D, z) - self.reduced.e
        return np.concatenate([self.reduced.unit * coupled, shared])

    def _moved(self, pieces: Pieces, z: Long, coupled: Long) -> tuple[Pieces, Long, float]:
        """(the least change that cancels a violation, T'(T T')^+ of it; its length)."""
        reduced = self.reduced
        rows = self._violation(coupled, z).astype(np.float64)
        price, shared = reduced.prices(reduced.inverse_gram(rows))
        Bbar = reduced.Bbar.astype(np.float64)
        back = [
            agent.onto_local(self.rounded(piece - agent.inside(agent.A.T @ price)))
            for agent, piece in zip(self.agents, pieces, strict=True)
        ]
        length = float(np.linalg.norm((reduced.U.T @ rows) / reduced.sigma))
        z = z - Bbar.T @ price - reduced.D.T @ shared
        return [self.rounded(v) for v in back], self.rounded(z), length

    def rounded(self, v: Long) -> Long:
        """To doubles, unless every objective is quadratic."""
        return v if self._long else v.astype(np.float64).astype(np.longdouble)

    # -- the bound ---------------------------------------------------------------------------------
    def at(self, x: Array, copies: Array) -> Proved:
        """The bound at the repaired point."""
        pieces, z = self._met(x, copies)
        price = np.zeros(self.problem.m)
        for _ in range(PASSES if self.reduced.rank else 0):
            self._charge(gradients=1, A=3, B=1, C=2)
            slopes = [a.gradient(v, z)[0] for a, v in zip(self.agents, pieces, strict=True)]
            coupled, along, slope, size = self.sums(pieces, z, slopes)
            price = self.best_price(along, slope.astype(np.float64))
            pieces, z, length = self._moved(pieces, z, coupled)
            if length <= MOVED * max(1.0, math.hypot(size, norm(z))):
                break
        return self.judged(pieces, z, price.astype(np.longdouble))

    def alike(self, *known: Long) -> list[Long]:
        """What everybody has computed from what all know: shares are told of one z, one price."""
        told = self.runtime.common(np.concatenate([halves(v) for v in known]))
        if not self.runtime.notes.led:
            return list(known)
        ends = np.cumsum([2 * len(v) for v in known])[:-1]
        return [summed(part[None]) for part in np.split(told, ends)]

    @property
    def row(self) -> int:
        """Floats of a share."""
        return 3 * self.problem.m + 2 * self.problem.q + NUMBERS + len(self.agents[0].hidden)

    @property
    def tell_cost(self) -> Cost:
        """What :meth:`tell` is charged."""
        return self._present(Cost(gradients=1, A=3, B=2, C=5))

    def tell(self, pieces: Pieces, z: Long, price: Long) -> list[Told]:
        """The shares of the agents owned here."""
        self.work.ledger.charge_cost(self.tell_cost)
        return [a.tell(v, z, price) for a, v in zip(self.agents, pieces, strict=True)]

    def judged(self, pieces: Pieces, z: Long, price: Long) -> Proved:
        """The bound at a point and a price as they are: one averaging."""
        z, price = self.alike(z, price)
        told = self.tell(pieces, z, price)
        table = heard_by_all(self.runtime, np.stack([share.row for share in told]))
        return self.concluded(told, table, pieces, z, price)

    def concluded(
        self, told: Sequence[Told], table: Array, pieces: Pieces, z: Long, price: Long
    ) -> Proved:
        """The bound from the shares of all agents (``table``)."""
        m = self.problem.m
        q = self.problem.q
        heard = Heard.of(table, m, q, None if self.open else self.runtime.averaging.grain)
        slope = summed(heard.slopes)
        z_high = z.astype(np.float64)
        left, shared = self._shared_stationarity(slope, price)
        r = math.hypot(heard.stationarity, left + heard.noise) * (1 + 16 * EPS)
        long_size = math.hypot(heard.long_size, norm(z))
        delta = self._distance(z, summed(heard.misfit), long_size, heard) * (1 + 16 * EPS)
        tail = math.hypot(heard.tail, norm(z - z_high)) * (1 + 16 * EPS)
        error = math.inf
        finite = math.isfinite(r) and math.isfinite(delta)
        if finite and 0 < self.mu < math.inf:
            error = distance_bound(r, delta, self.mu, self.L) + tail
        elif finite and self.inside > 0:
            error = inner_bound(r, delta, self.inside, self.L) + tail
        # At the point as rounded, with the price as rounded.
        low = (price - price.astype(np.float64)).astype(np.float64)
        off_price = math.hypot(heard.price_tail, norm(self.reduced.Bbar.T @ low)) * (1 + 16 * EPS)
        gradients = [share.gradient.astype(np.float64) for share in told]
        gz = np.stack([g[a.d :] for a, g in zip(self.agents, gradients, strict=True)])
        gx = [g[: a.d] for a, g in zip(self.agents, gradients, strict=True)]
        report = Particulars(
            self._residuals(heard, z_high),
            self._multipliers(told, gz, price, slope, shared),
            heard.value,
        )
        return Proved(
            np.concatenate([np.zeros(0), *(v.astype(np.float64) for v in pieces)]),
            z_high,
            error,
            r + self.L * tail + off_price,
            delta + tail,
            math.hypot(heard.size, norm(z_high)),
            np.concatenate([np.zeros(0), *gx]),
            gz,
            price.astype(np.float64),
            report,
        )

    def _residuals(self, heard: Heard, z: Array) -> dict[str, float]:
        """Of the user's rows, at the point as rounded."""
        reduced = self.reduced
        present = self.problem.present
        shared = norm((product(reduced.D, z) - reduced.e) / reduced.unit_D)
        if not math.isnan(heard.shared):
            shared = heard.shared if "D" in present else 0.0
        local = heard.local if "C" in present else 0.0
        coupled = norm(heard.rounded)
        return {"coupled": coupled, "local": local, "shared": shared, "consensus": 0.0}

    def _multipliers(
        self, told: Sequence[Told], gz: Array, price: Long, slope: Long, shared: Array
    ) -> Multipliers:
        """Coupled, local, shared (least in scaled rows where not unique) and consensus prices."""
        reduced = self.reduced
        y = price.astype(np.float64)
        mean = slope + product(reduced.Bbar.T, y) + product(reduced.D.T, shared)
        mean = (mean / self.problem.n).astype(np.float64)
        nu = np.zeros_like(gz)
        by_agent = []
        for k, agent in enumerate(self.agents):
            own, image = reduced.own_shared(k, shared)
            by_agent.append(own)
            nu[k] = mean - (gz[k] + agent.B.T @ y + image)
        return Multipliers(y, [share.multiplier for share in told], by_agent, nu)

    def sums(
        self, pieces: Pieces, z: Long, slopes: Sequence[Long]
    ) -> tuple[Long, Array, Long, float]:
        """(violation, sum A_i P_i grad_x, sum grad_z, ||x||): one averaging."""
        m = self.problem.m
        q = self.problem.q
        shares: list[Array] = []
        for agent, piece, slope in zip(self.agents, pieces, slopes, strict=True):
            along = agent.A @ agent.inside(slope[: agent.d].astype(np.float64))
            misfit = halves(agent.misfit(piece, z))
            on_z = halves(slope[agent.d :])
            shares.append(np.concatenate([misfit, along, on_z, [square(piece)]]))
        everybody = heard_by_all(self.runtime, np.stack(shares))
        coupled, along, on_z, size = np.split(everybody, np.cumsum([2 * m, m, 2 * q]), axis=1)
        return summed(coupled), np.add.reduce(along), summed(on_z), math.sqrt(np.sum(size))

    def best_price(self, along: Array, slope: Array) -> Array:
        """y that cancels the most of the gradient: -(T T')^+ T grad F."""
        reduced = self.reduced
        if not reduced.rank:
            return np.zeros(self.problem.m)
        coupled = along + reduced.Bbar.astype(np.float64) @ slope
        image = np.concatenate([reduced.unit * coupled, reduced.D @ slope])
        return -reduced.prices(reduced.inverse_gram(image))[0]

    def _shared_stationarity(self, slope: Long, price: Long) -> tuple[float, Array]:
        """(dist(sum grad_z + Bbar'y, Range D') by a multiplier of scaled rows, that multiplier
        with the sign of the Lagrangian); everybody knows all of it.
        """
        reduced = self.reduced
        total = slope + product(reduced.Bbar.T, price)
        space = reduced.shared
        delta = space.multipliers(space.basis.T @ total.astype(np.float64))
        left = total - product(reduced.D.T, delta)
        more = space.multipliers(space.basis.T @ left.astype(np.float64))
        left = left - product(reduced.D.T, more)
        whole = delta.astype(np.longdouble) + more
        spread = norm(reduced.size_B.T @ np.abs(price)) + norm(slope)
        spread += norm(np.abs(reduced.D).T @ (np.abs(delta) + np.abs(more)))
        noise = (len(price) + 2 * len(delta) + self.problem.n + 3) * EPS_LONG * spread
        noise += reduced.rounded * norm(np.abs(reduced.Bbar).T @ np.abs(price))
        noise += reduced.off_D * norm(whole)
        return norm(left) + noise, np.asarray(-whole.astype(np.float64))

    def _distance(self, z: Long, coupled: Long, size: float, heard: Heard) -> float:
        """delta: onto the local rows first, then along the rows of T."""
        reduced = self.reduced
        off = heard.off
        scaled = heard.scaled
        if not reduced.rank:
            return off
        B = norm(reduced.unit[:, None] * reduced.size_B)
        D = norm(reduced.D)
        right = norm(reduced.unit * reduced.size_b) + norm(reduced.e)
        widest = self._widest + self.problem.q + self.problem.n
        noise = (widest + 4) * EPS_LONG * (math.hypot(scaled, B, D) * size + right)
        noise += reduced.off_D * norm(z) + reduced.off_e
        if not self.open:
            off_sum = 4 * EPS * np.abs(coupled) + 4 * self.runtime.averaging.grain
            noise += norm(reduced.unit * off_sum)
        if not (reduced.least > 0 and math.isfinite(off)):
            return math.inf
        rows = self._violation(coupled, z).astype(np.float64)
        least = reduced.least
        sigma = reduced.sigma if self.open else np.full(reduced.rank, np.inf)
        across = change_bound(rows, reduced.U, sigma, least)
        return off + across + (noise + scaled * off) / least
