"""An error bound where z follows from x (:mod:`ccmac.workspace.explicit`), rounding included.

F(x) = sum_i g_i(x_i) + h(z(x)) is strongly convex with mu = min_i mu(g_i), so that

    |x - x*| <= |P grad F(x)| / mu,   grad_i F = grad g_i - A_i' grad h(z(x)) / beta,
    |z - z*| <= (sum_i |A_i|^2)^{1/2} |x - x*| / |beta|,

with P the projection onto the ker C_i. z is computed from x anew. What rounding may have added to z
(eps times the sizes of its terms), to the slopes and to the gradient is added. Where that is too
much, x has lost digits on its way from the price: the iteration refines it, and products with the
A_i are taken in the long format.
Cost: 2 averagings (3 where h has to be summed), 2 gradients, 2 A, 2 C; a refinement is one more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ccmac.certificates.error_bound import Proved
from ccmac.certificates.stopping import Check, Judged, Stopping
from ccmac.inputs import Array
from ccmac.linalg.extended import EPS_LONG, gradient_rounding, product
from ccmac.linalg.tolerances import EPS
from ccmac.workspace import Workspace
from ccmac.workspace.coupling import right_hand_sides
from ccmac.workspace.explicit import Explicit

REFINED = 4  # Newton steps on a point that is judged
WORTH = 0.3  # of the bound: what is left of it where another step pays


class ExplicitProof:
    """Bounds for points x of one problem."""

    def __init__(self, work: Workspace, explicit: Explicit) -> None:
        self.work = work
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
        self._own_L_z = table.L_z[here]
        self._norms = explicit.norms[list(self.problem.agents)]
        self.norm = math.sqrt(math.fsum(explicit.norms**2))
        self._right = right_hand_sides(self.problem).b

    def at(self, x: Array, *, long: bool = False) -> Proved:
        """The bound at (x, z(x)); ``long``: products with A_i in the long format."""
        space = self.space
        n = self.problem.n
        beta = self.explicit.beta
        m = self.problem.m
        lengths = np.array([_size(space.x_of(x, k)) for k in range(space.count)])
        many = n + int(self.work.curvature.d.max(initial=0)) + 4
        images, sizes = self._images(x, lengths, many if long else 0)
        rows = [images, lengths[:, None] ** 2, sizes[:, None]]
        misfit, square, terms = (n * mean[0] for mean in self.runtime.combine(rows))
        z = -misfit / beta
        unseen = math.sqrt(self.runtime.unseen(m))
        off_z = EPS * many * (float(terms[0]) / abs(beta) + _size(z)) + 2 * unseen / abs(beta)
        slopes, slope, sizes_z, off_slope = self._slopes(z)
        price = -slope / beta
        # What rounding may have moved the price by: z itself, the slopes, their sum.
        noise = self.L_z * off_z + EPS * (n + 8) * sizes_z + off_slope + unseen
        gradient, squares = self._gradients(x, price, long)
        r2 = float(self.runtime.total(squares)[0]) + unseen**2
        r = (math.sqrt(r2) + self.norm * noise / abs(beta)) * (1 + 8 * EPS)
        off = r / self.mu
        off_shared = self.norm * off / abs(beta) + off_z
        size = math.sqrt(float(square[0]) + _size(z) ** 2)
        error = math.hypot(off, off_shared)
        return Proved(x, z, error, r, off_z * abs(beta), size, gradient, slopes, price)

    def _images(self, x: Array, lengths: Array, many: int) -> tuple[Array, Array]:
        """(A_i x_i - b_i by rows; sizes of their terms, ``many`` of which EPS may be lost of).

        In the long format, where ``many`` is not 0, only the ends are rounded n + 4 times.
        """
        right = self._right
        sizes = self._norms * lengths + np.array([_size(b) for b in right])
        if not many:
            return self.work.coupling.A.forward(x).reshape(-1, self.problem.m) - right, sizes
        rows = np.zeros_like(right)
        for k, agent in enumerate(self.problem.agents.values()):
            own = 0.0 if agent.A is None else product(agent.A, self.space.x_of(x, k))
            rows[k] = own - right[k]
        ends = (self.problem.n + 4) / many * np.array([_size(row) for row in rows])
        return rows, ends + EPS_LONG / EPS * sizes

    def _slopes(self, z: Array) -> tuple[Array, Array, float, float]:
        """(grad h_i by rows, grad h, sum |grad h_i|, rounding of the grad h_i)."""
        self.work.ledger.charge(gradients=1)
        n = self.problem.n
        found = [part.precise_at(z) for part in self.explicit.parts]
        slopes = np.stack([row.astype(np.float64) for row in found])
        own = [gradient_rounding(row, z, L) for row, L in zip(found, self._own_L_z, strict=True)]
        off = own[0]
        if self.explicit.common:
            slope = self.runtime.common(n * slopes[0])
            return slopes, slope, _size(slope), n * off
        # What all are told of an agent's rounding counts in units of EPS, as sizes do.
        sizes = np.array([[_size(row) + off / EPS] for row, off in zip(slopes, own, strict=True)])
        total, size = self.runtime.combine([slopes, sizes])
        return slopes, total[0] * n, float(size[0, 0]) * n, 0.0

    def _gradients(self, x: Array, price: Array, long: bool = False) -> tuple[Array, Array]:
        """(grad g_i, flat; the squares of what is left of them along the equations)."""
        self.work.ledger.charge(gradients=1)
        space = self.space
        gradient = np.zeros_like(x)
        off = np.zeros(space.count)
        for k, part in enumerate(self.explicit.x_parts):
            point = space.x_of(x, k)
            own = part.precise_at(point)
            space.x_of(gradient, k)[...] = own
            off[k] = gradient_rounding(own, point, self._own_L_x[k])
        share = 1.0  # what is projected is rounded as well
        before = np.zeros(space.count)
        if not long:
            total = gradient + self.work.coupling.A.adjoint_common(price)
        else:
            share = EPS_LONG / EPS
            total = gradient.copy()
            for k, agent in enumerate(self.problem.agents.values()):
                own = space.x_of(total, k)
                own[...] = own + (0.0 if agent.A is None else product(agent.A.T, price))
                before[k] = _size(own)
        total -= self.work.local.project(total)
        squares = np.zeros((space.count, 1))
        for k in range(space.count):
            own = space.x_of(total, k)
            coupled = share * self._norms[k] * _size(price)
            rounded = _size(space.x_of(gradient, k)) + coupled + before[k]
            rounding = (len(own) + 8) * rounded + self.problem.m * coupled
            squares[k] = (_size(own) + off[k] + 2 * EPS * rounding) ** 2
        return gradient, squares


class ExplicitStop(Stopping):
    """||error|| <= tol max(1, ||(x, z)||); a proof is made where the iteration's gap gives hope.

    The state has ``gap``, which bounds |x - x*| in the norm of g'' one step before. ``refine(state,
    proved)`` is an x nearer to the solution.
    """

    def __init__(
        self, proof: ExplicitProof, tol: float, refine: Callable[[Any, Proved], Array] | None = None
    ) -> None:
        self.proof = proof
        self.tol = tol
        self._refine = refine
        # The error over gap / sqrt(mu): at first what it can be at most, then as last proved.
        self._ratio = math.hypot(1.0, proof.norm / proof.explicit.beta)

    def memory(self) -> dict[str, Any]:
        """What the last proof said of the gap."""
        return {"ratio": self._ratio}

    def recall(self, memory: dict[str, Any]) -> None:
        """Only when to look, never what is proved."""
        self._ratio = float(memory["ratio"])

    def due(self, iteration: int) -> bool:
        """A look costs nothing."""
        return True

    def check(self, iteration: Judged, state: Any, count: int) -> Check:
        """A proof, where it may succeed."""
        _, copies = iteration.point(state)
        hope = self._ratio * state.gap / math.sqrt(self.proof.mu)
        if not hope <= self.tol * max(1.0, _size(copies[0])):
            return Check(math.nan, False)
        found = self._refined(iteration, state)
        self._ratio = found.bound * math.sqrt(self.proof.mu) / max(state.gap, 1e-300)
        return found

    def final(self, iteration: Judged, state: Any) -> Check:
        """One proof; where the iteration can do no more, of a point as good as it gets."""
        if iteration.finished(state):
            return self._refined(iteration, state)
        return self._judged(iteration.point(state)[0])

    def _refined(self, iteration: Judged, state: Any) -> Check:
        """A proof, and as many refinements as bring it nearer to the goal."""
        found = self._judged(iteration.point(state)[0])
        refine = self._refine
        if refine is None:
            return found
        runtime = self.proof.runtime
        for _ in range(REFINED):
            found = found.agreed(runtime)  # what follows has messages: all go on, or nobody
            if found.done or not isinstance(found.certificate, Proved):
                break
            again = self._judged(refine(state, found.certificate), long=True).agreed(runtime)
            pays = again.bound < WORTH * found.bound
            found = min(found, again, key=_bound)
            if not pays:
                break
        return found

    def _judged(self, x: Array, *, long: bool = False) -> Check:
        found = self.proof.at(x, long=long)
        return Check(found.error, found.error <= self.tol * max(1.0, found.size), found)


def _bound(found: Check) -> float:
    return found.bound


def _size(v: Array) -> float:
    return float(np.linalg.norm(v))
