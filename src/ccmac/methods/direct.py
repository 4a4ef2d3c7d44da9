"""cross-direct: a quadratic problem with few coupled rows and shared variables in one sum.

Each agent eliminates its own variables (:mod:`ccmac.workspace.summed`); the sum of what is left
travels with the equations, and everybody solves alike. A step tells the others what the point
leaves of all equations, in extended precision: that is both the proof of the point
(:meth:`ccmac.certificates.proof.Proof.concluded`) and the right-hand side of its refinement. The
point itself is kept in two halves, so that what is proved is not its rounding to doubles.
Needs quadratic objectives, definite on ker C_i, and equations that all may know.
Cost: in the setup k(k + 3)/2 floats beside the equations, k = q + m (and an averaging of
(q + rank)(q + rank + 1)/2 floats where these are nearly dependent); a step 1 argmin, 1 gradient and
one averaging of 4 m + 3 q + 10 floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ccmac.certificates.proof import Pieces, Proof
from ccmac.certificates.proved import Proved
from ccmac.certificates.share import Told
from ccmac.certificates.stopping import Check, Judged, Stopping
from ccmac.errors import MethodRefused
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.extended import Long, halves, product, summed
from ccmac.linalg.tolerances import EPS
from ccmac.methods.base import Iteration, Method, Prepared, Request, State, rows, vector
from ccmac.methods.summed import Whitened
from ccmac.runtime.masked import Masked
from ccmac.workspace import Workspace
from ccmac.workspace.reduced import Reduced

STEPS = 5  # the solve and four refinements
SQUARED = 1e-5  # share of an error that a refinement may leave where rows are whitened in the sum


@dataclass(frozen=True)
class DirectState(State):
    """The point u + tail = (x, copies of z), and the prices of coupled and scaled shared rows."""

    u: Array = vector()
    tail: Array = vector()
    prices: Array = rows()  # in halves
    count: int = 0


@dataclass(frozen=True)
class _Point:
    """x by agents, z, coupled and shared prices, all in the long format."""

    x: Pieces
    z: Long
    coupled: Long
    shared: Long


class Direct(Iteration[DirectState]):
    """The first step solves; each of them judges its point and refines it."""

    def __init__(self, work: Workspace, reduced: Reduced) -> None:
        self.work, self.reduced = work, reduced
        self.space, self.runtime, self.problem = work.space, work.runtime, work.problem
        self.proof, self.whitened = Proof(work, reduced), Whitened(self.problem, reduced)
        if not work.summed.definite:
            raise MethodRefused(
                "method cross-direct: the Hessian of an agent is not definite on the kernel of "
                "its C; use cross-ipm"
            )
        A = self.whitened.A
        self.agents = [model.on(R) for model, R in zip(work.summed.models, A, strict=True)]
        self.solve = self.whitened.factorized(self._triangle()) if self.whitened.size else None
        self.found: Proved | None = None  # of the point before the last refinement

    def _triangle(self) -> Array:
        """Of the summed system in whitened rows; one averaging where these must be sent so."""
        mu, L = max(self.proof.mu, 0.0), self.proof.L
        off = EPS * self.reduced.condition**2 * L
        if off <= SQUARED * mu:
            return self.whitened.whitened(self.work.summed.triangle)
        parts = np.stack([model.triangle() for model in self.agents])
        return np.asarray(self.runtime.average(parts)[0] * self.problem.n)

    def start(
        self, x: Array, z: Array, dual: Array | None = None, price: Array | None = None
    ) -> DirectState:
        """The user's point (the first step does not depend on it)."""
        u = self.space.zeros()
        self.space.x(u)[...], self.space.z(u)[...] = x, z
        return DirectState(u, self.space.zeros(), np.zeros((1, 2 * len(self.reduced.right))))

    # -- a step ------------------------------------------------------------------------------------
    def step(self, state: DirectState) -> DirectState:
        """Tell what the point leaves of the equations, judge it, solve for what they lack."""
        point = self._read(state) if state.count else self._solved()
        self.work.ledger.charge(argmins=1)
        told = self.proof.tell(point.x, point.z, point.coupled)
        lacking = [self._lacking(k, share, point) for k, share in enumerate(told)]
        mine = np.stack(
            [
                np.concatenate([share.row, model.side.T[: self.problem.q] @ y, A @ (model.N @ y)])
                for share, model, y, A in zip(
                    told, self.agents, lacking, self.reduced.A, strict=True
                )
            ]
        )
        table = self.runtime.gather(mine)
        shares, more = table[:, : self.proof.row], np.add.reduce(table[:, self.proof.row :], axis=0)
        self.found = self.proof.concluded(told, shares, point.x, point.z, point.coupled)
        return self._written(self._refined(point, shares, more, lacking), state.count + 1)

    def _solved(self) -> _Point:
        """From the summed system, as exact as doubles solve it."""
        W, q, zero = self.whitened, self.problem.q, np.zeros
        known = zero(W.size)
        if self.solve is not None:
            total = W.rows(self.work.summed.right)
            known = self.solve(W.lacking(total, zero(q), zero(W.rank)))
        z, mu = known[:q], known[q:]
        coupled, shared = self._prices(mu)
        x = [
            share.onto_local(model.x(z, mu))
            for share, model in zip(self.proof.agents, self.agents, strict=True)
        ]
        point = _Point(x, z.astype(np.longdouble), coupled, shared)
        # Each agent by itself: what rounding left of its own minimum.
        lacks = [self._lacking(k, None, point) for k in range(len(x))]
        x = [v + model.N @ y for v, model, y in zip(x, self.agents, lacks, strict=True)]
        return _Point(x, point.z, coupled, shared)

    def _prices(self, mu: Array) -> tuple[Long, Long]:
        """(coupled, shared) of whitened rows."""
        whole = product(self.whitened.combine, mu)
        m = self.problem.m
        return self.reduced.unit * whole[:m], whole[m:]

    def _lacking(self, k: int, told: Told | None, point: _Point) -> Array:
        """y_i by which an agent's own minimum at (z, prices) is missed."""
        share, model = self.proof.agents[k], self.agents[k]
        gradient = share.gradient(point.x[k], point.z)[0] if told is None else told.gradient
        left = gradient[: share.d] + product(share.A.T, point.coupled)
        return -model.solve(product(model.N.T, left).astype(np.float64))

    def _refined(self, point: _Point, shares: Array, more: Array, lacking: list[Array]) -> _Point:
        """The point moved by the solution of what all equations lack there."""
        m, q, reduced, W = self.problem.m, self.problem.q, self.reduced, self.whitened
        change, z, coupled, shared = np.zeros(0), point.z, point.coupled, point.shared
        if self.solve is not None:
            misfit, slope = summed(shares[:, : 2 * m]), summed(shares[:, 2 * m : 2 * (m + q)])
            on_z = slope + product(reduced.Bbar.T, coupled) + product(reduced.D.T, shared)
            off = [reduced.unit * misfit, product(reduced.D, z) - reduced.e]
            rows = W.combine.T @ np.concatenate(off).astype(np.float64) + W.top @ more[q:]
            change = self.solve(-np.concatenate([on_z.astype(np.float64) + more[:q], rows]))
            d_coupled, d_shared = self._prices(change[q:])
            z, coupled, shared = z + change[:q], coupled + d_coupled, shared + d_shared
        if len(change):
            lacking = [y - a.solved @ change for a, y in zip(self.agents, lacking, strict=True)]
        moved = [v + a.N @ y for a, v, y in zip(self.agents, point.x, lacking, strict=True)]
        x = [share.onto_local(v) for share, v in zip(self.proof.agents, moved, strict=True)]
        return _Point(x, z, coupled, shared)

    # -- states ------------------------------------------------------------------------------------
    def _written(self, point: _Point, count: int) -> DirectState:
        u, tail = self.space.zeros(), self.space.zeros()
        for part, z in zip((u, tail), np.split(halves(point.z), 2), strict=True):
            self.space.z(part)[...] = z
        for part, x in zip((u, tail), np.split(halves(_flat(point.x)), 2), strict=True):
            self.space.x(part)[...] = x
        prices = halves(np.concatenate([point.coupled, point.shared]))
        return DirectState(u, tail, prices[None], count)

    def _read(self, state: DirectState) -> _Point:
        x, z = (
            part(state.u).astype(np.longdouble) + part(state.tail)
            for part in (self.space.x, self.space.z)
        )
        coupled, shared = np.split(summed(state.prices), [self.problem.m])
        return _Point(np.split(x, self.space.offsets[1:-1]), z[0], coupled, shared)

    def point(self, state: DirectState) -> tuple[Array, Array]:
        """The refined point, as doubles."""
        return self.space.x(state.u), self.space.z(state.u)

    def finished(self, state: DirectState) -> bool:
        """Further refinements gain nothing in this precision."""
        return state.count >= STEPS

    @property
    def cost(self) -> Cost:
        """1 argmin, a share of a proof and one averaging."""
        width = self.proof.row + self.problem.q + self.problem.m
        return Cost(argmins=1) + self.proof.tell_cost + self.runtime.gather_cost(width)


def _flat(pieces: Pieces) -> Long:
    return np.concatenate([np.zeros(0, dtype=np.longdouble), *pieces])


class DirectStop(Stopping):
    """||error|| <= tol max(1, ||(x, z)||), as the steps' own messages prove it."""

    def __init__(self, tol: float) -> None:
        self.tol = tol

    def due(self, iteration: int) -> bool:
        """A look costs nothing."""
        return True

    def check(self, iteration: Judged, state: Any, count: int) -> Check:
        """The point that the last step told of."""
        assert isinstance(iteration, Direct)
        found = iteration.found
        if found is None:  # a run that was resumed at its end
            found = iteration.proof.at(*iteration.point(state))
        return Check(found.error, found.error <= self.tol * max(1.0, found.size), count + 1, found)

    def final(self, iteration: Judged, state: Any) -> Check:
        """The same."""
        return self.check(iteration, state, 0)


@dataclass(frozen=True)
class CrossDirect(Method):
    """Local elimination, one sum, a dense solve by everybody."""

    name = "cross-direct"
    summary = "quadratics with few coupled rows and shared variables: one sum, solved by all alike"
    needs = frozenset({"smooth", "strongly convex", "quadratic"})
    reveals = "the equations, and eliminated Hessians A_i H_i^-1 A_i'"

    def announce(self, work: Workspace) -> None:
        """The eliminated Hessians travel with the equations."""
        if self.needs <= work.capabilities and work.gatherable:
            _ = work.summed

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """Gather the equations, sum the eliminated Hessians."""
        self.announce(work)
        reduced = work.reduced
        if isinstance(work.runtime.averaging, Masked):
            raise MethodRefused(
                "method cross-direct tells all agents the equations, which masked averaging hides; "
                "use cross-cg, or averaging='tree'"
            )
        if reduced is None:
            raise MethodRefused(
                "method cross-direct needs equations small enough to be known to all "
                f"(m = {work.problem.m}, q = {work.problem.q}); use cross-cg"
            )
        iteration = Direct(work, reduced)
        proves = not request.reference and iteration.proof.mu > 0
        settings = {"rows": reduced.rank, "condition": reduced.condition}
        return Prepared(
            iteration, DirectStop(request.tol) if proves else None, "summed",
            "few coupled rows and shared variables", settings, proves=True,
        )  # fmt: skip
