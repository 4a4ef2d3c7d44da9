"""The error bound where the coupled rows give z: sigma from structure, B_i = beta_i I.

:class:`DualBound`, for quadratics whose z follows from the coupled multiplier l. With the parts of
:mod:`ccmac.workspace.dual`, S = sum_i K_i H_i^{-1} K_i' >= c I and M = B B' + c I of a sketch
with share M <= S, the minimisers (x, z) of any l obey

    ||(x, z) - (x*, z*)|| <= (e'M^{-1}e / (share mu))^{1/2} + 2 ||rho|| / mu,

e the violation there and rho = grad F + (A'l, beta l) what rounding left of their stationarity
(with v = w - w(l) and H v = rho: ||K v||_{S^{-1}} <= ||v||_H <= ||rho|| / mu^{1/2}).
Cost: one averaging of m + 4 floats, 1 argmin, 3 A, 1 gradient.

:class:`ExplicitBound`, where F(x) = sum_i g_i(x_i) + h(z(x)) (:mod:`ccmac.workspace.dual`): the
bound of :mod:`ccmac.certificates.bound` on the kernel of the C_i, delta = 0 and mu = min_i mu(g_i),

    |x - x*| <= |P grad F(x)| / mu,   grad_i F = grad g_i - A_i' grad h(z(x)) / beta,
    |z - z*| <= (sum_i |A_i|^2)^{1/2} |x - x*| / |beta|.

Cost: 2 averagings (3 where h has to be summed), 2 gradients, 2 A, 2 C.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ccmac.certificates.bound import Particulars, Proved, distance_bound
from ccmac.certificates.multipliers import Multipliers
from ccmac.certificates.stopping import Check, Judge, Judged, check_of, over
from ccmac.inputs import Array
from ccmac.linalg.extended import gradient_rounding, norm, product
from ccmac.linalg.nystrom import Nystrom, Shifted
from ccmac.linalg.tolerances import EPS
from ccmac.realizations.base import Images
from ccmac.runtime.base import Piggyback
from ccmac.workspace import Workspace
from ccmac.workspace.dual import DualForm, Explicit
from ccmac.workspace.equations import right_hand_sides


@dataclass
class DualBound:
    """Bounds for multipliers of one eliminated problem."""

    parts: DualForm
    M: Shifted

    @classmethod
    def from_block(cls, parts: DualForm, block: Images) -> DualBound:
        """With what is known of S_A = (1/n) sum A_i A_i': S - c I >= (n / L) S_A for H_i <= L I."""
        top = float(np.max(parts.table.L_x * (1 + 2 * EPS * parts.table.d)))
        noise = parts.noise + 8 * EPS * parts.c
        noise += math.sqrt(parts.runtime.unseen(parts.m)) / top  # of images that were summed
        known = Nystrom.of(block.vectors, block.images * (parts.problem.n / top), noise)
        return cls(parts, known.plus(parts.c))

    def estimate(self, energy: float) -> float:
        """The bound for e'M^{-1}e = energy, without what rounding adds."""
        return math.sqrt(max(energy, 0.0) / (max(self.M.share, EPS) * self.parts.mu))

    def at(self, multiplier: Array, slope: Array, slopes: float) -> Proved:
        """The bound at ``multiplier``'s minimisers; ``slope`` = sum g_i, ``slopes`` = sum ||g_i||.

        The point, its violation, multipliers and value travel in one message.
        """
        parts = self.parts
        n = parts.problem.n
        x = parts.minimisers(multiplier)
        z = parts.shared(multiplier, slope)
        own = np.array([self._own(k, x, z, multiplier) for k in range(len(parts.parts))])
        parts.ledger.charge(gradients=1)
        parts.ledger.charge_cost(parts.A.cost)  # A'lambda in the long format
        total, (rho2, x2, rounding, value) = parts.sums(x, own, minus=parts.b)
        shared = parts.beta * z
        violation = total + shared
        unseen = math.sqrt(parts.runtime.unseen(parts.m))
        off = float(rounding) + 4 * EPS * (norm(total) + norm(shared)) + 2 * unseen
        # z is (g - beta l)/h, each operation rounded once; g a sum of n products.
        rest = 4 * EPS * (norm(slope) + norm(parts.beta * multiplier)) + n * EPS * slopes
        rho = math.hypot(math.sqrt(rho2) + unseen, rest + unseen)
        energy = (norm(violation) + off) / math.sqrt(parts.c)
        if self.M.share > 0:
            energy = min(energy, self.M.norm(violation, off) / math.sqrt(self.M.share))
        error = energy / math.sqrt(parts.mu) + 2 * rho / parts.mu
        size = math.hypot(math.sqrt(x2), norm(z))
        residuals = {"coupled": norm(violation), "local": 0.0, "shared": 0.0, "consensus": 0.0}
        nu = parts.g_z - np.outer([part.h for part in parts.parts], z)
        nu -= np.outer(parts.table.own("multiple"), multiplier)
        none = [np.zeros(0) for _ in parts.parts]  # there are no other equations
        report = Particulars(
            residuals, Multipliers(multiplier.copy(), none, none.copy(), nu), float(value)
        )
        gradients = np.zeros(0), np.zeros(0)
        return Proved(x, z, error, rho, norm(violation), size, *gradients, multiplier, report)

    def _own(self, k: int, x: Array, z: Array, multiplier: Array) -> list[float]:
        """One agent's ||rho||^2, ||x||^2, rounding of its part of the violation, and value."""
        parts = self.parts
        agent = list(parts.problem.agents.values())[k]
        x = parts.space.x_of(x, k)
        gradient = agent.objective.precise_gradient(x, z)
        own = gradient[: len(x)]
        if agent.A is not None:
            own = own + product(parts.A.blocks[k].T, multiplier)
        rho = norm(own) + gradient_rounding(gradient, np.append(x, z), parts.own_L[k])
        b = 0.0 if agent.b is None else norm(agent.b)
        off = EPS * (len(x) + parts.problem.n + 4) * (parts.lengths_of_blocks[k] * norm(x) + b)
        return [rho * rho, norm(x) ** 2, off, agent.objective.value(x, z)]


@dataclass
class DualJudge(Judge):
    """||error|| <= tol max(1, ||(x, z)||) by a :class:`DualBound`.

    A method that knows e'M^{-1}e (``energy``) and its ``multipliers`` gives an estimate at every
    step for nothing; of others, with a ``slope`` that was piggybacked, the ``multiplier`` is asked.
    """

    bound: DualBound
    tol: float
    slope: Piggyback | None = None

    def _known(self, iteration: Any, state: Any) -> tuple[Array, Array, float]:
        """(multiplier, sum of the g_i, sum of their norms)."""
        if self.slope is None:
            multiplier, slope, slopes = iteration.multipliers(state)
            return multiplier, slope, slopes
        known = self.slope.value
        return iteration.multiplier(state), known[:-1], float(known[-1])

    def estimate(self, iteration: Judged, state: Any) -> tuple[float, float] | None:
        """From the method's own residual, where it knows that; z alone is less than (x, z)."""
        if self.slope is not None:
            return None
        method: Any = iteration
        seen = self.bound.estimate(method.energy(state))
        multiplier, slope, _ = self._known(iteration, state)
        size = norm(self.bound.parts.shared(multiplier, slope))
        return seen, over(seen, self.tol * max(1.0, size))

    def check(self, iteration: Judged, state: Any) -> Check:
        """One bound."""
        return check_of(self.bound.at(*self._known(iteration, state)), self.tol)


class ExplicitBound:
    """Bounds for points x of one problem.

    ``near(z, r)`` is the strong convexity between a point and the solution, where it is known.
    """

    def __init__(
        self,
        work: Workspace,
        explicit: Explicit,
        near: Callable[[Array, float], float] | None = None,
    ) -> None:
        self.work = work
        self.near = near
        self.explicit = explicit
        self.space = work.space
        self.problem = work.problem
        self.runtime = work.runtime
        table = work.curvature
        own = table.mu_x - 2 * EPS * table.d * table.L_x
        self.mu = float(own[table.d > 0].min(initial=math.inf))
        self.L_z = float(table.L_z.sum())
        here = list(self.problem.agents)
        self._own_L_x = table.L_x[here]
        # Of losses that are the same, all agents count with the same constant.
        common = np.full(len(here), self.L_z / work.problem.n)
        self._own_L_z = common if explicit.common else table.L_z[here]
        self.norm = norm(explicit.norms)
        self._right = right_hand_sides(self.problem).b

    def at(self, x: Array) -> Proved:
        """The bound at (x, z(x))."""
        beta = self.explicit.beta
        unseen = math.sqrt(self.runtime.unseen(self.problem.m))
        z, off_z, size, _ = self.followed(x)
        slopes, slope, off_slope = self._slopes(z)
        multiplier = -slope / beta
        gradient, squares = self.gradients(x, multiplier)
        # What rounding may have moved the multiplier by: z itself, the slopes, their sum.
        noise = self.L_z * off_z + off_slope + unseen
        r = math.sqrt(float(self.runtime.total(squares)[0])) + unseen
        r += self.norm * noise / abs(beta)
        mu = self.mu if self.near is None else max(self.mu, self.near(z, r))
        off = distance_bound(r, 0.0, mu, mu) if mu < math.inf else 0.0
        error = math.hypot(off, self.norm * off / abs(beta) + off_z)
        return Proved(x, z, error, r, off_z * abs(beta), size, gradient, slopes, multiplier)

    def followed(self, x: Array, *rows: Array) -> tuple[Array, float, float, Array]:
        """(z(x), what rounding may move it by, |(x, z)|, sums of more ``rows``): one averaging."""
        n = self.problem.n
        beta = abs(self.explicit.beta)
        images = self._images(x)
        points = [self.space.x_of(x, k) for k in range(self.space.count)]
        own = [[norm(v) ** 2, norm(image)] for v, image in zip(points, images, strict=True)]
        sizes = np.hstack([np.array(own), *rows])
        misfit, numbers = (n * mean[0] for mean in self.runtime.combine([images, sizes]))
        z = -misfit / self.explicit.beta
        unseen = math.sqrt(self.runtime.unseen(self.problem.m))
        off = 4 * EPS * n * (float(numbers[1]) / beta + norm(z)) + 2 * unseen / beta
        return z, off, math.sqrt(float(numbers[0]) + norm(z) ** 2), numbers[2:]

    def _images(self, x: Array) -> Array:
        """A_i x_i - b_i by rows, from the long format."""
        self.work.ledger.charge_cost(self.work.coupling.A.cost)
        rows = -self._right
        for k, agent in enumerate(self.problem.agents.values()):
            if agent.A is not None:
                rows[k] = product(agent.A, self.space.x_of(x, k)) - self._right[k]
        return rows

    def _slopes(self, z: Array) -> tuple[Array, Array, float]:
        """(grad h_i by rows, grad h, what rounding may have taken from it)."""
        self.work.ledger.charge(gradients=1)
        n = self.problem.n
        found = [part.precise_at(z) for part in self.explicit.parts]
        own = [gradient_rounding(g, z, L) for g, L in zip(found, self._own_L_z, strict=True)]
        if all(p.has_gram and "prox" in p.capabilities for p in self.explicit.parts):
            # Entry by entry, and pairwise sums for an intercept: not as many terms as entries.
            # Operations on an entry and additions on its way into a sum, at most.
            own = [off * min(1.0, 64.0 / len(z)) for off in own]
        slopes = np.stack([row.astype(np.float64) for row in found])
        if self.explicit.common:
            slope = self.runtime.common(n * slopes[0])
            return slopes, slope, 4 * EPS * norm(slope) + n * own[0]
        sizes = [[4 * EPS * n * norm(row) + off] for row, off in zip(slopes, own, strict=True)]
        total, lost = self.runtime.combine([slopes, np.array(sizes)])
        return slopes, total[0] * n, float(lost[0, 0]) * n

    def gradients(self, x: Array, multiplier: Array) -> tuple[Array, Array]:
        """(grad g_i, flat; the squares of what is left of them along the equations)."""
        self.work.ledger.charge(gradients=1)
        self.work.ledger.charge_cost(self.work.coupling.A.cost)
        space = self.space
        gradient = np.zeros_like(x)
        total = np.zeros_like(x)
        lost = np.zeros(space.count)
        for k, agent in enumerate(self.problem.agents.values()):
            point = space.x_of(x, k)
            own = self.explicit.x_parts[k].precise_at(point)
            whole = own if agent.A is None else own + product(agent.A.T, multiplier)
            space.x_of(gradient, k)[...] = own
            space.x_of(total, k)[...] = whole
            lost[k] = gradient_rounding(own, point, self._own_L_x[k])
            if not self.work.local.empty:  # what is projected is rounded before
                lost[k] += 4 * EPS * (len(point) + 2) * norm(whole)
        total -= self.work.local.project(total)
        sizes = np.array([norm(space.x_of(total, k)) for k in range(space.count)])
        return gradient, ((sizes + lost) ** 2)[:, None]


@dataclass
class ExplicitJudge(Judge):
    """||error|| <= tol max(1, ||(x, z)||) by an :class:`ExplicitBound`.

    The state's ``gap`` bounds |x - x*| in the norm of g'' one step before. ``refine(state, found)``
    is an x nearer to the solution: x has lost digits on its way from the multiplier.
    """

    bound: ExplicitBound
    tol: float
    refine: Callable[[Any, Proved], Array]

    def estimate(self, iteration: Judged, state: Any) -> tuple[float, float] | None:
        """What the gap can mean at most."""
        _, copies = iteration.point(state)
        reach = math.hypot(1.0, self.bound.norm / self.bound.explicit.beta)
        seen = reach * state.gap / math.sqrt(self.bound.mu)
        return seen, over(seen, self.tol * max(1.0, norm(copies[0])))

    def check(self, iteration: Judged, state: Any) -> Check:
        """A bound, and as many refinements as bring it nearer to the goal."""
        found = self._checked(iteration.point(state)[0])
        for _ in range(4):
            if found.done or found.certificate is None:
                break
            again = self._checked(self.refine(state, found.certificate))
            pays = again.bound < 0.3 * found.bound
            found = again if again.bound < found.bound else found
            if not pays:
                break
        return found

    def _checked(self, x: Array) -> Check:
        """What follows has messages: all go on, or nobody."""
        convex = all(part.convex for part in self.bound.explicit.parts)
        rests = "proved" if convex else "estimated"
        return check_of(self.bound.at(x), self.tol, rests).agreed(self.bound.runtime)

    def final(self, iteration: Judged, state: Any) -> Check:
        """One bound; where the iteration can do no more, of a point as good as it gets."""
        if iteration.finished(state):
            return self.check(iteration, state)
        return self._checked(iteration.point(state)[0])
