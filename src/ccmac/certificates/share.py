"""One agent's share of a proof: what it tells of a point w = (x, z) at a coupled price y.

All of it is computed in extended precision with its own blocks; the point may carry more digits
than a double has, so that what is proved of it is not the rounding of the point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ccmac.inputs import Array
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
from ccmac.linalg.tolerances import EPS
from ccmac.workspace import Workspace
from ccmac.workspace.reduced import Reduced

NUMBERS = 10  # of a share beside its vectors


@dataclass(frozen=True)
class Told:
    """A share: the row that travels, and what the agent keeps of it."""

    row: Array
    gradient: Long
    multiplier: Array  # of C, with the sign of the Lagrangian


@dataclass(frozen=True)
class Heard:
    """The shares of all agents, summed: misfit of the coupled rows and grad_z at the point, misfit
    at its rounding to doubles, and numbers.
    """

    misfit: Array  # rows of halves
    slopes: Array
    rounded: Array
    noise: float  # of the sum of the grad_z
    stationarity: float
    size: float  # ||x|| as rounded
    off: float  # distance from the local equations
    scaled: float  # norm of the scaled A
    value: float
    local: float  # violation of the local rows, as rounded
    tail: float  # what rounding takes from x
    price_tail: float  # and from A'y
    long_size: float  # ||x||
    shared: float  # violation of the shared rows, as rounded; nan where all know these

    @classmethod
    def of(cls, table: Array, m: int, q: int, grain: float | None = None) -> Heard:
        """From all agents' rows, or their sum in doubles, each wrong by the ``grain`` too."""
        misfit, slopes, rounded, numbers = np.split(table, np.cumsum([2 * m, 2 * q, m]), axis=1)
        totals = [float(v) for v in np.add.reduce(numbers)]
        noise, r, size, off, scaled, value, local, tail, price_tail, long_size, *hidden = totals
        sizes = float(np.sum(np.linalg.norm(slopes[:, :q], axis=1)))
        noise += len(table) * EPS_LONG * sizes
        if grain is not None:
            noise += 4 * EPS * sizes + 4 * grain * math.sqrt(q)
            r, off, scaled, tail = (v + grain for v in (r, off, scaled, tail))
            price_tail = price_tail + grain
            long_size = long_size + grain
        root = math.sqrt
        return cls(
            misfit,
            slopes,
            np.add.reduce(rounded),
            noise,
            root(r),
            root(size),
            root(off),
            root(scaled),
            value,
            root(local),
            root(tail),
            root(price_tail),
            root(long_size),
            root(hidden[0]) if hidden else math.nan,
        )


class Share:
    """One agent's blocks, and its gradient with a bound on its rounding."""

    def __init__(self, work: Workspace, reduced: Reduced, k: int) -> None:
        self.i = list(work.problem.agents)[k]
        agent = work.problem.agents[self.i]
        self.objective = agent.objective
        self.d = work.problem.d[self.i]
        self.q = work.problem.q
        self.A = reduced.A[k]
        self.B = reduced.B[k]
        self.C = reduced.C[k]
        self.b = np.zeros(work.problem.m) if agent.b is None else agent.b
        self.c = np.zeros(len(self.C)) if agent.c is None else agent.c
        self.kernel, self.hidden = reduced.kernels[k], reduced.hidden(k)
        self.scaled = norm(reduced.unit[:, None] * self.A)
        self.L = float(work.curvature.own_L[self.i])

    def gradient(self, x: Array | Long, z: Array | Long) -> tuple[Long, float]:
        """(grad f_i, bound on its rounding)."""
        gradient = self.objective.precise_gradient(x, z)
        rounding = gradient_rounding(gradient, np.concatenate([x, z]), self.L)
        return gradient.astype(np.longdouble), rounding

    def misfit(self, x: Array | Long, z: Array | Long) -> Long:
        """A_i x_i + B_i z - b_i."""
        return product(self.A, x) + product(self.B, z) - self.b

    def onto_local(self, x: Array | Long) -> Long:
        """The nearest point to x on {C_i x = c_i}, as far as the kernel is known."""
        space = self.kernel.space
        x = x.astype(np.longdouble)
        if not space.rank:
            return x
        lacks = (self.c - product(self.C, x)).astype(np.float64)
        return np.asarray(x + space.basis @ space.coordinates(lacks))

    def inside(self, v: Array) -> Array:
        """The part of v in ker C_i."""
        N = self.kernel.basis
        return np.asarray(N @ (N.T @ v))

    def local_distance(self, x: Array | Long) -> float:
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

    def stationarity(
        self, gradient: Long, rounding: float, price: Array | Long
    ) -> tuple[float, Array]:
        """(dist(grad_x + A'y, Range C') by a multiplier of C, that multiplier)."""
        total = gradient + product(self.A.T, price)
        space = self.kernel.space
        kappa = space.multipliers(space.basis.T @ total.astype(np.float64))
        # What rounding left of it is a multiple of C' too.
        left = total - product(self.C.T, kappa)
        more = space.multipliers(space.basis.T @ left.astype(np.float64))
        left = left - product(self.C.T, more)
        whole = kappa.astype(np.longdouble) + more
        size = norm(np.abs(self.C).T @ (np.abs(kappa) + np.abs(more)))
        spread = norm(np.abs(self.A).T @ np.abs(price)) + size
        noise = rounding + (len(price) + 2 * len(kappa) + 3) * EPS_LONG * (spread + norm(gradient))
        return norm(left) + noise, np.asarray(-whole.astype(np.float64))

    def tell(self, x: Long, z: Long, price: Long) -> Told:
        """The share at a point, which is also looked at as rounded to doubles."""
        gradient, rounding = self.gradient(x, z)
        r, multiplier = self.stationarity(gradient[: self.d], rounding, price)
        x_high = x.astype(np.float64)
        z_high = z.astype(np.float64)
        off = self.local_distance(x)
        low = (price - price.astype(np.float64)).astype(np.float64)
        numbers = [
            rounding,
            r * r,
            square(x_high),
            off * off,
            self.scaled**2,
            self.objective.value(x_high, z_high),
            square(product(self.C, x_high) - self.c),
            square(x - x_high),
            square(self.A.T @ low),
            square(x),
            *(square(product(D, z_high) - e) for D, e in self.hidden),
        ]
        rounded = self.misfit(x_high, z_high).astype(np.float64)
        row = np.concatenate(
            [halves(self.misfit(x, z)), halves(gradient[self.d :]), rounded, numbers]
        )
        return Told(row, gradient, multiplier)


def unmet(work: Workspace, reduced: Reduced, passes: int) -> tuple[Array, float]:
    """(misfit of the scaled rows at the point closest to all equations, distance of the right-hand
    sides from the range), the rows of the C_i of length one counted like all others.

    A point is moved onto the equations in ``passes``: the angles of the kernels turn what is left
    of the right-hand sides, and not all of them. With Z a basis of ker T', g = Z'(what is left) and
    W_i = A_i C_i^+ in scaled rows, lambda = (Z a, -W_i'Z a) are the multipliers with K'lambda = 0,
    and a = (I + Z' sum W_i W_i' Z)^-1 g are those along the misfit, of length (a'g)^(1/2). One
    averaging for each pass, and one of l min(l, d) floats.
    """
    agents = [Share(work, reduced, k) for k in range(len(reduced.kernels))]
    pieces = [agent.onto_local(agent.kernel.point) for agent in agents]
    z: Long = np.zeros(work.problem.q, dtype=np.longdouble)
    left = reduced.right
    for _ in range(passes):
        price, shared = reduced.prices(reduced.inverse_gram(left))
        moved = [v + a.inside(a.A.T @ price) for a, v in zip(agents, pieces, strict=True)]
        pieces = [a.onto_local(v) for a, v in zip(agents, moved, strict=True)]
        z = z + reduced.Bbar.T @ price + reduced.D.T @ shared
        rows = [halves(a.misfit(v, z)) for a, v in zip(agents, pieces, strict=True)]
        coupled = summed(work.runtime.gather(np.stack(rows)))
        misfit = -reduced.unit * coupled, reduced.e - product(reduced.D, z)
        left = np.concatenate(misfit).astype(np.float64)
    wide = int(work.curvature.d.max(initial=0))
    m = work.problem.m
    own = []
    for agent in agents:
        space = agent.kernel.space
        through = reduced.unit[:, None] * (agent.A @ (space.basis / space.singular))
        own.append(reduced.packing.factor(through, agent.i, wide))
    packing = reduced.packing
    factors = packing.unpacked(work.runtime.gather(np.stack(own)), min(packing.length, wide))
    along = reduced.U_null[:m].T @ np.hstack([np.zeros((m, 0)), *factors])
    R = np.asarray(np.linalg.qr(np.vstack([np.eye(len(along)), along.T]), mode="r"))
    half = np.linalg.solve(R.T, reduced.U_null.T @ left)
    return np.asarray(reduced.U_null @ np.linalg.solve(R, half)), norm(half)
