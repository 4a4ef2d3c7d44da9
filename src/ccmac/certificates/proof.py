"""An error bound in the user's own variables and equations, rounding included.

For w = (x, z), K the user's rows (local, coupled, shared), any coupled price y and

    g = grad F(w) + (A'y, Bbar'y),     r = dist(g, Range [C' 0; 0 D']),     delta >= dist(w, {K w = v})

D = ||w - w*|| obeys the bound of :mod:`ccmac.certificates.error_bound` with mu and L of F. delta
comes from violations of the equations themselves, divided by a lower bound of the least singular
value of the rows (:class:`ccmac.workspace.reduced.Reduced`); what rounding may have added to a
gradient, a violation, a kernel or that singular value is added to r and delta. Where the rank of the
rows is a matter of opinion the bound is infinite. The point is first moved onto the equations, and y
is the best price there; both are dense work on what everybody knows.
Cost: 4 averagings (copies, violation, verification with gradients, norms), 1 gradient, 2 A, 2 B.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ccmac.certificates.error_bound import distance_bound
from ccmac.linalg.tolerances import EPS
from ccmac.realizations.objective import ExecutionObjective
from ccmac.workspace import Workspace
from ccmac.workspace.blocks import right_hand_sides
from ccmac.workspace.reduced import Reduced

Array = NDArray[np.float64]
PASSES = 2  # repairs: a second one removes what rounding left of the first


@dataclass(frozen=True)
class Proved:
    """A point (flat x, one z for all) and what is proved of it.

    ``error`` bounds its distance from the solution, ``stationarity`` is r and ``infeasibility``
    delta; ``gradient_x``, ``gradient_z`` (one row per agent) and the coupled ``price`` belong to it.
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


class Proof:
    """Bounds for points of one problem: smooth, strongly convex, with equations that all may know."""

    def __init__(self, work: Workspace, reduced: Reduced) -> None:
        self.work, self.reduced = work, reduced
        self.space, self.runtime, self.problem = work.space, work.runtime, work.problem
        self.objective = ExecutionObjective(work.problem, work.space)
        self._b = right_hand_sides(work.problem).b[:, : work.coupling.width]
        table = work.curvature
        widest = int(table.d.max(initial=0)) + self.problem.q
        self.rounding = 2 * EPS * (widest + len(table.d))
        if table.separable:
            mu = min(float(table.mu_x.min()), float(table.mu_z.sum()))
            self.L = max(float(table.L_x.max()), float(table.L_z.sum()))
            self.steepest = max(float(table.L_x.max()), float(table.L_z.max()))
        else:
            mu, self.L = float(table.mu.min()), float(table.L.sum())
            self.steepest = float(table.L.max())
        # Constants from a decomposition are right to its rounding.
        self.mu = mu - self.rounding * self.steepest

    @classmethod
    def of(cls, work: Workspace) -> Proof | None:
        """Where the equations may be gathered and F is strongly convex."""
        if not {"smooth", "strongly convex"} <= work.capabilities or work.reduced is None:
            return None
        found = cls(work, work.reduced)
        return found if 0 < found.mu < math.inf else None

    # -- the point ---------------------------------------------------------------------------------
    def repaired(self, x: Array, copies: Array) -> tuple[Array, Array]:
        """(x, z) moved onto the equations, as far as double precision goes."""
        z = self.runtime.average(copies)[0] if self.problem.q else np.zeros(0)
        x = self._onto_local(x)
        shared, reduced = self.reduced.shared, self.reduced
        z = z + shared.basis @ (shared.coordinates(reduced.e) - shared.basis.T @ z)
        return self._moved(x, z, self._violation(x, z))

    def _onto_local(self, x: Array) -> Array:
        out = np.empty_like(x)
        for k, kernel in enumerate(self.reduced.kernels):
            piece = self.space.x_of(x, k) - kernel.point
            self.space.x_of(out, k)[...] = kernel.point + kernel.basis @ (kernel.basis.T @ piece)
        return out

    def _violation(self, x: Array, z: Array) -> Array:
        """sum_i A_i x_i + B_i z - b_i: one averaging."""
        if not self.problem.m:
            return np.zeros(0)
        [mean] = self.runtime.combine([self._misfits(x, z)])
        return np.asarray(mean[0] * self.problem.n)

    def _misfits(self, x: Array, z: Array) -> Array:
        coupled, _ = self.work.coupling.contributions(x, self._spread(z))
        misfits = np.zeros((len(self._b), self.problem.m))
        misfits[:, : coupled.shape[1]] = coupled - self._b
        return misfits

    def _spread(self, z: Array) -> Array:
        return np.ascontiguousarray(np.broadcast_to(z, (self.space.count, self.problem.q)))

    def _rows(self, coupled: Array, z: Array) -> Array:
        """Violations of the scaled rows."""
        return np.concatenate([self.reduced.unit * coupled, self.reduced.D @ z - self.reduced.e])

    def _moved(self, x: Array, z: Array, coupled: Array) -> tuple[Array, Array]:
        """The least change that cancels a violation: T'(T T')^+ of it."""
        reduced = self.reduced
        if not reduced.rank:
            return x, z
        price, shared = reduced.prices(reduced.inverse_gram(self._rows(coupled, z)))
        out = np.empty_like(x)
        for k, kernel in enumerate(reduced.kernels):
            change = kernel.basis @ (kernel.basis.T @ (reduced.A[k].T @ price))
            self.space.x_of(out, k)[...] = self.space.x_of(x, k) - change
        return out, z - reduced.Bbar.T @ price - reduced.D.T @ shared

    # -- the bound ---------------------------------------------------------------------------------
    def at(self, x: Array, copies: Array) -> Proved:
        """The bound at the repaired point."""
        x, z = self.repaired(x, copies)
        for _ in range(PASSES - 1):
            moved = self._moved(x, z, self._violation(x, z))
            x, z = self._onto_local(moved[0]), moved[1]
        w = self.space.zeros()
        self.space.x(w)[...], self.space.z(w)[...] = x, z
        gradient = self.objective.gradient(w)
        gx, gz = self.space.x(gradient), self.space.z(gradient)
        coupled, along, slope = self._sums(x, z, gx, gz)
        price = self._best_price(along, slope)
        r, size, delta = self._norms(x, z, gx, slope, price, coupled)
        error = math.inf
        if math.isfinite(r) and math.isfinite(delta) and not self.reduced.doubtful:
            error = distance_bound(r, delta, self.mu, self.L)
        return Proved(x, z, error, r, delta, size, gx, gz, price)

    def _sums(self, x: Array, z: Array, gx: Array, gz: Array) -> tuple[Array, Array, Array]:
        """(violation, sum A_i P_i grad_x, sum grad_z): one averaging."""
        m = self.problem.m
        inside = np.zeros((self.space.count, m))
        for k, kernel in enumerate(self.reduced.kernels):
            piece = kernel.basis @ (kernel.basis.T @ self.space.x_of(gx, k))
            inside[k] = self.reduced.A[k] @ piece
        means = self.runtime.combine([self._misfits(x, z), inside, gz])
        coupled, along, slope = (np.asarray(mean[0] * self.problem.n) for mean in means)
        return coupled, along, slope

    def _best_price(self, along: Array, slope: Array) -> Array:
        """y that cancels the most of the gradient: -(T T')^+ T grad F."""
        reduced = self.reduced
        if not reduced.rank:
            return np.zeros(self.problem.m)
        image = np.concatenate(
            [reduced.unit * (along + reduced.Bbar @ slope), reduced.D @ slope]
        )
        return -reduced.prices(reduced.inverse_gram(image))[0]

    def _norms(
        self, x: Array, z: Array, gx: Array, slope: Array, price: Array, coupled: Array
    ) -> tuple[float, float, float]:
        """(r, ||(x, z)||, delta) with all that rounding may have added; one reduction."""
        reduced, gamma = self.reduced, self.rounding
        rows = np.zeros((self.space.count, 5))
        for k, kernel in enumerate(reduced.kernels):
            x_k, g_k, A = self.space.x_of(x, k), self.space.x_of(gx, k), reduced.A[k]
            pulled = A.T @ price
            total = g_k + pulled
            spread = float(np.linalg.norm(np.abs(A).T @ np.abs(price)))
            r = float(np.linalg.norm(kernel.basis.T @ total))
            r += (kernel.angle + gamma) * float(np.linalg.norm(total))
            r += gamma * (spread + float(np.linalg.norm(g_k)))
            size = float(np.linalg.norm(x_k))
            off = self._local_distance(k, x_k)
            scaled = float(np.linalg.norm(reduced.unit[:, None] * A))
            rows[k] = r * r, size * size, off * off, scaled * scaled, 0.0
        r2, x2, off2, scaled2, _ = self.runtime.total(rows)
        size = math.sqrt(float(x2) + float(z @ z))
        delta = self._distance(z, coupled, size, math.sqrt(off2), math.sqrt(scaled2))
        h = slope + reduced.Bbar.T @ price
        basis = reduced.shared.basis
        angle = 4 * EPS * sum(reduced.D.shape) * reduced.shared.condition if len(basis.T) else 0.0
        length = float(np.linalg.norm(h))
        r_z = float(np.linalg.norm(h - basis @ (basis.T @ h))) + (angle + gamma) * length
        r_z += gamma * (float(np.linalg.norm(np.abs(reduced.Bbar).T @ np.abs(price))))
        # A gradient is computed from terms as large as L ||w||, at every agent.
        own = gamma * (2 * self.steepest * size + float(np.linalg.norm(slope)))
        r = math.sqrt(float(r2) + r_z * r_z) + own * math.sqrt(self.problem.n + 1)
        return r, size, delta

    def _local_distance(self, k: int, x: Array) -> float:
        """From {C_i x = c_i}: the violation of the unit rows over their least singular value."""
        space = self.reduced.kernels[k].space
        if not space.rank:
            return 0.0
        i = list(self.problem.agents)[k]
        agent = self.problem.agents[i]
        C = self.reduced.C[k]
        c = np.zeros(len(C)) if agent.c is None else agent.c
        unit = space.inverse_lengths
        off = float(np.linalg.norm(unit * (C @ x - c)))
        size = float(np.linalg.norm(unit[:, None] * C)) * float(np.linalg.norm(x))
        off += self.rounding * (size + float(np.linalg.norm(unit * c)))
        least = float(space.singular[-1]) - 4 * EPS * sum(C.shape) * float(space.singular[0])
        return off / least if least > 0 else math.inf

    def _distance(
        self, z: Array, coupled: Array, size: float, off: float, scaled: float
    ) -> float:
        """delta: onto the local rows first, then along the rows of T."""
        reduced, gamma = self.reduced, self.rounding
        if not reduced.rank:
            return off
        rows = self._rows(coupled, z)
        frobenius = math.hypot(scaled, float(np.linalg.norm(reduced.unit[:, None] * reduced.Bbar)))
        frobenius = math.hypot(frobenius, float(np.linalg.norm(reduced.D)))
        right = float(np.linalg.norm(reduced.unit * reduced.size_b))
        noise = gamma * (frobenius * size + right + float(np.linalg.norm(reduced.e)))
        whole = float(np.linalg.norm(reduced.U.T @ rows)) + noise + scaled * off
        if not (reduced.least > 0 and math.isfinite(off)):
            return math.inf
        return off + whole / reduced.least
