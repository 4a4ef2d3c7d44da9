"""What prices prove of a quadratic problem with bounds: a gap, a contradiction, a free fall.

For a point w within its bounds, prices y of all equations K w = v and nu of the epigraphs' rows, with
r = Hw - g + K'y + R'nu, every solution w* obeys (convexity, and phi(w*) >= nu'(R w* - h))

    F(w) - F* <= sum_j |r_j| |w_j - bound_j|  +  phi(w) - nu'(R w - h)  -  y'(K w - v)
                 + <r_f, w - w0> + R ||r_f||,      R >= ||w* - w0||,

bound_j the one that r_j pushes to, r_f the entries of r that push where there is none. No dual state
is believed: whatever prices are brought, the bound holds. With r = K'y alone

    sum_j r_j bound_j - y'v > 0

excludes every point within R = that / ||r_f||; and a direction d within the bounds' own directions
with K d = 0, H d = 0 and g'd > phi_far(d) lets F fall without end.
Residuals are computed in extended precision; what rounding may change is added.
Cost: one averaging each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ccmac.certificates.gap import Goal, estimated_radius
from ccmac.certificates.infeasibility import REACH, VISIBLE, Infeasibility, claimed
from ccmac.certificates.proof import Proved
from ccmac.certificates.recession import Recession
from ccmac.inputs import Array, is_sparse
from ccmac.linalg.extended import Long, norm, product
from ccmac.linalg.tolerances import EPS
from ccmac.objectives.polyhedral import Polyhedral
from ccmac.workspace import Workspace
from ccmac.workspace.reduced import Kernel, Reduced


@dataclass(frozen=True)
class Prices:
    """Of the coupled rows, of the scaled shared rows, and by agents of C_i and of the epigraphs."""

    coupled: Array
    shared: Array
    local: list[Array]
    terms: list[Array]


@dataclass(frozen=True)
class DualityGap:
    """F - F* <= base + R slope; ``violation`` of unit rows beside their right-hand sides."""

    value: float
    base: float
    slope: float
    violation: float
    travelled: float

    def bound(self, radius: float) -> float:
        """F(w) - F* at most, when ||(x0, z0) - (x*, z*)|| <= radius."""
        return self.base + radius * self.slope

    def required(self, goal: Goal) -> float:
        """The radius it must hold for: given, else estimated."""
        return goal.radius if goal.radius is not None else estimated_radius(self.travelled)

    def met(self, goal: Goal) -> bool:
        """Whether gap and violation are small enough."""
        small = self.bound(self.required(goal)) <= goal.epsilon(self.value)
        return small and self.violation <= goal.tol

    def record(self, goal: Goal) -> dict[str, Any]:
        """For Result.certificates."""
        epsilon, left = goal.epsilon(self.value), goal.epsilon(self.value) - self.base
        proved = math.inf if self.slope <= 0 else left / self.slope
        source = "estimated: twice the distance travelled, at least 1"
        return {
            "epsilon": epsilon, "radius": self.required(goal),
            "radius_source": source if goal.radius is None else "supplied",
            "radius_proved": max(proved, 0.0) if left >= 0 else 0.0,
            "gap": self.bound(self.required(goal)), "violation": self.violation,
            "value": self.value, "proved_by": "bound" if self.met(goal) else "nothing",
        }  # fmt: skip


class _Agent:
    """One agent's blocks and its form; x and z within ``lower`` and ``upper``."""

    def __init__(self, work: Workspace, reduced: Reduced, k: int, form: Polyhedral) -> None:
        i = list(work.problem.agents)[k]
        agent = work.problem.agents[i]
        self.objective, self.form, self.d = agent.objective, form, work.problem.d[i]
        self.A, self.B, self.C = reduced.A[k], reduced.B[k], reduced.C[k]
        self.b = np.zeros(work.problem.m) if agent.b is None else agent.b
        self.c = np.zeros(len(self.C)) if agent.c is None else agent.c
        self.H = form.H.toarray() if is_sparse(form.H) else np.asarray(form.H)
        self.R = [t.R.toarray() if is_sparse(t.R) else np.asarray(t.R) for t in form.terms]
        self.kernel: Kernel = reduced.kernels[k]
        self.lower, self.upper = form.lower[: self.d], form.upper[: self.d]
        width = self.H.shape[0] + sum(self.A.shape) + len(self.C) + sum(map(len, self.R))
        self.room = (width + 8) * EPS  # of a sum of products

    def back(self, coupled: Array, local: Array, terms: list[Array]) -> tuple[Long, Array]:
        """(K'y + R'nu on (x, z), sizes of its terms)."""
        d = self.d
        out: Long = np.zeros(len(self.form.g), dtype=np.longdouble)
        sizes = np.zeros(len(out))
        out[:d] += product(self.A.T, coupled) + product(self.C.T, local)
        out[d:] += product(self.B.T, coupled)
        sizes[:d] += np.abs(self.A).T @ np.abs(coupled) + np.abs(self.C).T @ np.abs(local)
        sizes[d:] += np.abs(self.B).T @ np.abs(coupled)
        for R, nu in zip(self.R, terms, strict=True):
            out += product(R.T, nu)
            sizes += np.abs(R).T @ np.abs(nu)
        return out, sizes

    def misfit(self, x: Array, z: Array) -> Array:
        """A_i x_i + B_i z - b_i."""
        return (product(self.A, x) + product(self.B, z) - self.b).astype(np.float64)

    def own_misfit(self, x: Array) -> Array:
        """C_i x - c_i."""
        return (product(self.C, x) - self.c).astype(np.float64)

    def own_violation(self, x: Array) -> float:
        """Of its unit rows, the largest beside max(1, right-hand side)."""
        unit = self.kernel.space.inverse_lengths
        off = np.abs(unit * self.own_misfit(x)) / np.maximum(1.0, np.abs(unit * self.c))
        return float(off.max(initial=0.0))


def pushed(r: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """(the bound that r pushes each entry to, whether there is one; r = 0 pushes nowhere)."""
    bound = np.where(r > 0, lower, upper)
    held = np.isfinite(bound) | (r == 0)
    return np.where(held & (r != 0), bound, 0.0), held


class Duality:
    """Gaps and verdicts for one problem; ``bounds``: everybody's lower and upper ends of z."""

    def __init__(
        self, work: Workspace, reduced: Reduced, forms: list[Polyhedral], bounds: Array,
        start: tuple[Array, Array],
    ) -> None:  # fmt: skip
        self.work, self.reduced, q = work, reduced, work.problem.q
        self.lower, self.upper = bounds[:, :q].max(axis=0), bounds[:, q:].min(axis=0)
        # Who sets the bounds that count, in equal shares.
        low, high = bounds[:, :q] == self.lower, bounds[:, q:] == self.upper
        owned = list(work.problem.agents)
        self.sets_lower, self.sets_upper = ((s / s.sum(axis=0))[owned] for s in (low, high))
        self.space, self.runtime, self.problem = work.space, work.runtime, work.problem
        self.agents = [_Agent(work, reduced, k, form) for k, form in enumerate(forms)]
        self.x0, self.z0 = start

    def _each(self, x: Array) -> list[tuple[_Agent, Array]]:
        return [(agent, self.space.x_of(x, k)) for k, agent in enumerate(self.agents)]

    def _summed(self, vectors: list[Array], scalars: list[list[float]]) -> tuple[Array, Array]:
        """(sum of the vectors, all agents' scalars) in one message."""
        rows = self.runtime.gather(np.array(scalars), riding=bool(vectors[0].size))
        total = vectors[0]
        if total.size:
            total = self.runtime.average(np.stack(vectors))[0] * self.problem.n
        return total, rows

    # -- a gap -------------------------------------------------------------------------------------
    def gap(self, x: Array, z: Array, prices: Prices) -> tuple[DualityGap, Proved]:
        """At (x, z), which lies within the bounds."""
        m, work = self.problem.m, self.work
        work.ledger.charge(gradients=1, **{k: 2 for k in ("A", "B", "C") if k in self.problem.present})
        vectors, scalars, slopes, rests = [], [], [], []
        for k, (agent, own) in enumerate(self._each(x)):
            u, d = np.concatenate([own, z]), agent.d
            nus = [t.steady(nu) for t, nu in zip(agent.form.terms, self._terms(agent, prices, k), strict=True)]
            back, sizes = agent.back(prices.coupled, prices.local[k], nus)
            slope = product(agent.H, u) - agent.form.g
            sizes = sizes + np.abs(agent.H) @ np.abs(u) + np.abs(agent.form.g)
            rest = slope + back
            r, noise = rest[:d].astype(np.float64), agent.room * sizes
            bound, held = pushed(r, agent.lower, agent.upper)
            away = np.where(held, np.abs(r) * np.abs(own - bound), r * (own - self._x0(k)))
            bend = float(0.5 * u @ product(agent.H, u) - agent.form.g @ u) + agent.form.c
            value = agent.objective.value(own, z)
            images = [R @ u - t.h for R, t in zip(agent.R, agent.form.terms, strict=True)]
            below = sum(float(nu @ image) for nu, image in zip(nus, images, strict=True))
            off = agent.own_misfit(own)
            paid = float(prices.local[k] @ off)
            misfit = agent.misfit(own, z)
            size = abs(value) + abs(bend) + float(np.abs(agent.form.g) @ np.abs(u)) + abs(agent.form.c)
            size += float(np.abs(away).sum() + np.abs(prices.local[k]) @ np.abs(off))
            size += sum(float(np.abs(nu) @ (np.abs(R) @ np.abs(u) + np.abs(t.h))) for nu, R, t in zip(nus, agent.R, agent.form.terms, strict=True))
            size += float(np.abs(prices.coupled) @ np.abs(misfit))
            moved = own - self._x0(k)
            vectors.append(np.concatenate([misfit, rest[d:].astype(np.float64)]))
            scalars.append([
                float(np.where(r == 0, 0.0, away).sum()) + (value - bend - below) - paid, value,
                float(np.sum(np.where(held, 0.0, r) ** 2)), norm(noise) + self.problem.n * EPS * norm(rest[d:]),
                agent.room * size, agent.own_violation(own), float(moved @ moved),
            ])
            slopes.append(slope.astype(np.float64) + sum((R.T @ nu for R, nu in zip(agent.R, nus, strict=True)), np.zeros(len(u))))
            rests.append(np.where(held, r, 0.0))
        total, rows = self._summed(vectors, scalars)
        base, value, far2, noise, room, _, moved2 = (float(v) for v in np.add.reduce(rows, axis=0))
        misfit, r_z = total[:m], total[m:] + self.reduced.D.T @ prices.shared
        bound, held = pushed(r_z, self.lower, self.upper)
        away = np.where(held, np.abs(r_z) * np.abs(z - bound), r_z * (z - self.z0))
        off = self.reduced.D @ z - self.reduced.e
        base += float(np.where(r_z == 0, 0.0, away).sum() - prices.coupled @ misfit - prices.shared @ off)
        room += 8 * EPS * (len(z) + self.problem.n) * float(np.abs(away).sum() + np.abs(prices.shared) @ (np.abs(self.reduced.D) @ np.abs(z) + np.abs(self.reduced.e)))
        noise += 8 * EPS * (len(z) + len(off)) * norm(np.abs(self.reduced.D).T @ np.abs(prices.shared))
        far2 += float(np.sum(np.where(held, 0.0, r_z) ** 2))
        violation = max(float(rows[:, 5].max()), self._violation(misfit, off))
        travelled = math.sqrt(moved2 + float((z - self.z0) @ (z - self.z0)))
        slope = math.sqrt(far2) + noise
        found = DualityGap(value, base + room, slope, violation, travelled)
        # What the bounds add to a subgradient: minus what is left of r, at the first agent that sets them.
        gx = np.concatenate([s[: a.d] - r for a, s, r in zip(self.agents, slopes, rests, strict=True)])
        gz = np.stack([s[a.d :] for a, s in zip(self.agents, slopes, strict=True)])
        rest = np.where(held, r_z, 0.0)
        gz -= np.maximum(rest, 0.0) * self.sets_lower + np.minimum(rest, 0.0) * self.sets_upper
        return found, Proved(x, z, math.nan, slope, violation, math.sqrt(moved2), gx, gz, prices.coupled)

    def _terms(self, agent: _Agent, prices: Prices, k: int) -> list[Array]:
        sizes = [len(t.h) for t in agent.form.terms]
        return np.split(prices.terms[k], np.cumsum(sizes)[:-1]) if sizes else []

    def _x0(self, k: int) -> Array:
        return self.space.x_of(self.x0, k)

    def _violation(self, misfit: Array, off: Array) -> float:
        reduced = self.reduced
        coupled = np.abs(reduced.unit * misfit) / np.maximum(1.0, reduced.unit * reduced.size_b)
        shared = np.abs(off) / np.maximum(1.0, np.abs(reduced.e))
        return max(float(coupled.max(initial=0.0)), float(shared.max(initial=0.0)))

    # -- a contradiction ---------------------------------------------------------------------------
    def contradiction(self, prices: Prices, size: float) -> Infeasibility | None:
        """Proof that no point within reach of ``size`` meets equations and bounds, if it is one."""
        m = self.problem.m
        vectors, scalars, local, tilts = [], [], {}, {}
        for k, agent in enumerate(self.agents):
            none = [np.zeros(len(t.h)) for t in agent.form.terms]
            back, sizes = agent.back(prices.coupled, prices.local[k], none)
            r, noise = back[: agent.d].astype(np.float64), agent.room * sizes
            bound, held = pushed(r, agent.lower, agent.upper)
            gain = float((r * bound)[held].sum())
            paid = float(agent.b @ prices.coupled + agent.c @ prices.local[k])
            spread = float(np.abs(r * bound)[held].sum() + np.abs(agent.b) @ np.abs(prices.coupled) + np.abs(agent.c) @ np.abs(prices.local[k]))
            far = float(np.sum(np.where(held, 0.0, r) ** 2))
            i = list(self.problem.agents)[k]
            local[i], tilts[i] = prices.local[k], r
            vectors.append(back[agent.d :].astype(np.float64))
            weights = [norm(agent.kernel.space.inverse_lengths * 0 + prices.local[k]), norm(np.where(held, r, 0.0))]
            scalars.append([gain - paid, far, norm(noise) + self.problem.n * EPS * norm(back[agent.d :]), agent.room * spread, *weights])
        total, rows = self._summed(vectors, scalars)
        value, far2, noise, room = (float(v) for v in np.add.reduce(rows[:, :4], axis=0))
        r_z = total + self.reduced.D.T @ prices.shared
        bound, held = pushed(r_z, self.lower, self.upper)
        value += float((r_z * bound)[held].sum() - self.reduced.e @ prices.shared)
        room += 8 * EPS * (m + len(r_z) + self.problem.n) * float(np.abs(r_z * bound)[held].sum() + np.abs(self.reduced.e) @ np.abs(prices.shared))
        noise += 8 * EPS * (len(r_z) + len(self.reduced.e)) * norm(np.abs(self.reduced.D).T @ np.abs(prices.shared))
        defect = math.sqrt(far2 + float(np.sum(np.where(held, 0.0, r_z) ** 2))) + noise
        if not claimed(value - room, defect, size):
            return None
        ends = np.cumsum(self.work.curvature.r.astype(int))[:-1]
        by_agent = np.split(self.reduced.unit_D * prices.shared, ends)
        top = max(norm(prices.coupled), norm(prices.shared), float(rows[:, 4:].max(initial=0.0)))
        named = {
            "the coupled equation sum(A x + B z - b) = 0": norm(prices.coupled) > VISIBLE * top,
            f"the local equations C of agents {_some(rows[:, 4] > VISIBLE * top)}": bool((rows[:, 4] > VISIBLE * top).any()),
            "the shared equations D": norm(prices.shared) > VISIBLE * top,
            f"the bounds of agents {_some(rows[:, 5] > VISIBLE * top)}": bool((rows[:, 5] > VISIBLE * top).any()),
            "the bounds on z": norm(np.where(held, r_z, 0.0)) > VISIBLE * top,
        }
        message = (
            f"infeasible: {' and '.join(text for text, seen in named.items() if seen)} cannot hold "
            "together; correct the right-hand sides, widen the bounds or drop one of these"
        )
        shares = {i: by_agent[i] for i in self.problem.agents if by_agent[i].size}
        return Infeasibility(
            message, prices.coupled, {i: v for i, v in local.items() if v.size}, shares, defect, value,
            {i: v for i, v in tilts.items() if v.any()}, r_z,
        )  # fmt: skip

    # -- a free fall -------------------------------------------------------------------------------
    def fall(self, x: Array, z: Array) -> Recession | None:
        """Proof that F falls without end along (x, z), brought to length one; or None."""
        z = _outward(z, self.lower, self.upper)
        vectors, scalars, pieces = [], [], []
        for k, (agent, own) in enumerate(self._each(x)):
            own = _outward(own, agent.lower, agent.upper)
            u = np.concatenate([own, z])
            pieces.append(own)
            far = sum(t.value(R @ u) for t, R in zip(agent.form.terms, agent.R, strict=True))
            sizes = float(np.abs(agent.form.g) @ np.abs(u)) + sum(
                float(np.sum(np.abs(R) @ np.abs(u))) for R in agent.R
            )
            unit = agent.kernel.space.inverse_lengths
            scalars.append([
                float(agent.form.g @ u) - far, norm(product(agent.H, u)) ** 2,
                norm(unit * product(agent.C, own).astype(np.float64)) ** 2, agent.room * sizes,
                norm(own) ** 2, norm(agent.form.g),
            ])
            vectors.append((product(agent.A, own) + product(agent.B, z)).astype(np.float64))
        total, rows = self._summed(vectors, scalars)
        fall, bend2, local2, room, size2, steep = (float(v) for v in np.add.reduce(rows, axis=0))
        length = math.sqrt(size2 + float(z @ z))
        if length == 0.0:
            return None
        coupled = math.hypot(norm(self.reduced.unit * total), norm(self.reduced.D @ z))
        defect = (math.sqrt(bend2) + math.sqrt(local2) + coupled) / length
        fall = (fall - room) / length
        if fall <= 1e-9 * max(steep, 1e-300) or fall < REACH * defect * max(1.0, steep):
            return None
        return Recession([v / length for v in pieces], z / length, fall, defect)


def _outward(d: Array, lower: Array, upper: Array) -> Array:
    """The nearest direction along which the bounds stay met."""
    return np.clip(d, np.where(np.isfinite(lower), 0.0, -np.inf), np.where(np.isfinite(upper), 0.0, np.inf))


def _some(seen: Array) -> str:
    agents = [int(i) for i in np.flatnonzero(seen)]
    return ", ".join(map(str, agents[:6])) + (", ..." if len(agents) > 6 else "")


def crossing(bounds: Array, m: int) -> Infeasibility | None:
    """A contradiction between two agents' bounds on one entry of z."""
    low, high = np.split(bounds, 2, axis=1)
    gaps = low.max(axis=0, initial=-np.inf) - high.min(axis=0, initial=np.inf)
    if not (gaps > 0).any():
        return None
    j = int(np.argmax(gaps))
    above, below = int(np.argmax(low[:, j])), int(np.argmin(high[:, j]))
    tilt = np.zeros(low.shape[1])
    tilt[j] = 1.0
    return Infeasibility(
        f"infeasible: agent {above} wants entry {j} of z above {low[above, j]:.6g}, agent {below} "
        f"below {high[below, j]:.6g}; widen one of the bounds",
        np.zeros(m), value=float(gaps[j]), z_bounds=tilt,
    )  # fmt: skip
