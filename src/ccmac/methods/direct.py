"""cross-direct: a quadratic problem with few coupled rows and shared variables in one sum.

Each agent eliminates its own variables (:mod:`ccmac.workspace.schur`); the sum of what is left
travels with the equations, and everybody solves alike. A step tells the others what the point
leaves of all equations, in extended precision: that is both the proof of the point
(:meth:`ccmac.certificates.bound.Proof.concluded`) and the right-hand side of its refinement.
Needs strongly convex quadratics and equations that all may know.
Cost: in the setup k(k + 3)/2 floats next to the equations, k = q + m (and an averaging of
(q + rank)(q + rank + 1)/2 floats where these are nearly dependent); a step 1 argmin, 1 gradient and
one averaging of 3 (m + q) + 9 floats.

With the coupled and shared rows whitened, What (y, z) = v_hat
(:class:`ccmac.workspace.equations.Constraints`; Ahat_i, Zhat its parts, What What' = I), the sum
over agents of their eliminated parts (:mod:`ccmac.workspace.schur`, rows Ahat_i) with Zhat in the
corner is the whole KKT system in (z, mu). It may be summed in whitened rows, or in the agents' own
and be whitened by all alike, which squares the condition of the equations: so it is done, with the
sum that travels with the equations, unless that would square too large a condition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from ccmac.certificates.bound import Contribution, Pieces, Proof, ProofJudge, Proved
from ccmac.certificates.stopping import Stop
from ccmac.errors import MethodRefused
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.extended import product, summed
from ccmac.linalg.tolerances import EPS
from ccmac.methods.base import Iteration, Method, Prepared, Request, State, known, vector
from ccmac.problem import Problem
from ccmac.runtime.notes import gathered_rows, gathered_rows_cost
from ccmac.workspace import Workspace
from ccmac.workspace.equations import Constraints, Kernel, symmetric
from ccmac.workspace.schur import LocalModel

STEPS = 5  # the solve and four refinements
Solve = Callable[[Array], Array]


class Whitened:
    """Ahat_i, Zhat and v_hat."""

    def __init__(self, problem: Problem, reduced: Constraints) -> None:
        self.q = problem.q
        self.m = problem.m
        self.rank = reduced.rank
        self.n = problem.n
        self.combine = reduced.U / reduced.sigma  # whitened rows = combine' times scaled rows
        self.top = self.combine[: problem.m].T * reduced.unit
        below = self.combine[problem.m :].T @ reduced.D
        self.Z = self.top @ reduced.Bbar.astype(np.float64) + below
        self.v = self.combine.T @ reduced.right
        self.kernels: list[Kernel] = reduced.kernels
        self.A = [
            self.top @ (A @ kernel.basis)
            for A, kernel in zip(reduced.A, reduced.kernels, strict=True)
        ]

    @property
    def size(self) -> int:
        """Unknowns of the summed system."""
        return self.q + self.rank

    def rows(self, total: Array) -> Array:
        """(z part, part of the coupled rows) with the rows whitened."""
        return np.concatenate([total[: self.q], self.top @ total[self.q :]])

    def whitened(self, triangle: Array) -> Array:
        """The triangle of a sum in the coupled rows, as one in whitened rows."""
        own = symmetric(triangle, self.q + self.m)
        half = np.vstack([own[: self.q], self.top @ own[self.q :]])
        whole = np.hstack([half[:, : self.q], half[:, self.q :] @ self.top.T])
        return np.asarray(whole[np.triu_indices(self.size)])

    def matrix(self, triangle: Array) -> Array:
        """The summed matrix (triangle in whitened rows) with Zhat in its corner."""
        K = symmetric(triangle, self.size)
        q = self.q
        K[q:, :q] += self.Z
        K[:q, q:] += self.Z.T
        return K

    def factorized(self, triangle: Array) -> Solve:
        """Solves with :meth:`matrix`."""
        return solver(self.matrix(triangle))

    def lacking(self, total: Array, z: Array, mu: Array) -> Array:
        """What the equations in (z, mu) lack, from the sum of the agents' parts."""
        own = np.concatenate([-self.Z.T @ mu, self.v - self.Z @ z])
        return np.asarray(total + own)


def solver(K: Array) -> Solve:
    """Solves with a symmetric K; where elimination ends in a zero, by its pseudo-inverse."""
    lu, pivots, zero = scipy.linalg.lapack.dgetrf(K)
    if zero:
        inverse = scipy.linalg.pinvh(K)
        return lambda right: np.asarray(inverse @ right)
    return lambda right: np.asarray(scipy.linalg.lu_solve((lu, pivots), right, check_finite=False))


@dataclass(frozen=True)
class System:
    """Solves with the summed matrix (None without unknowns); ``right`` is what it lacks at zero."""

    whitened: Whitened
    agents: list[LocalModel]
    solve: Solve | None
    right: Array


def summed_system(work: Workspace, reduced: Constraints, proof: Proof) -> System:
    """Every agent eliminates all of its variables; the rest is summed."""
    whitened = Whitened(work.problem, reduced)
    summed = work.announce_schur()
    if not summed.definite:
        raise MethodRefused(
            "method cross-direct: rounding leaves the Hessian of an agent without curvature on the "
            "kernel of its C; use cross-ipm"
        )
    agents = [model.on(R) for model, R in zip(summed.models, whitened.A, strict=True)]
    off = EPS * reduced.condition**2 * proof.L
    # share of an error that a refinement may leave where rows are whitened in the sum
    if off <= 1e-5 * max(proof.mu, 0.0):
        triangle = whitened.whitened(summed.triangle)
    else:  # one averaging more
        parts = np.stack([model.triangle() for model in agents])
        triangle = np.asarray(work.runtime.average(parts)[0] * work.problem.n)
    solve = whitened.factorized(triangle) if whitened.size else None
    zero = np.zeros(whitened.q), np.zeros(whitened.rank)
    right = whitened.lacking(whitened.rows(summed.right), *zero)
    return System(whitened, agents, solve, right)


# -- the iteration ---------------------------------------------------------------------------------
@dataclass(frozen=True)
class DirectState(State):
    """The point u = (x, copies of z), multipliers of coupled and scaled shared rows."""

    u: Array = vector()
    multipliers: Array = known()
    count: int = 0


@dataclass(frozen=True)
class _Point:
    """x by agents, z, coupled and shared multipliers."""

    x: Pieces
    z: Array
    coupled: Array
    shared: Array


class Direct(Iteration[DirectState]):
    """The first step solves; each of them judges its point and refines it."""

    def __init__(self, work: Workspace, reduced: Constraints) -> None:
        self.work = work
        self.reduced = reduced
        self.space = work.space
        self.runtime = work.runtime
        self.problem = work.problem
        self.proof = Proof(work, reduced)
        self.system = summed_system(work, reduced, self.proof)
        self.whitened = self.system.whitened
        self.agents = self.system.agents
        self.solve = self.system.solve
        self.found: Proved | None = None  # of the point before the last refinement

    def start(
        self, x: Array, z: Array, dual: Array | None = None, multiplier: Array | None = None
    ) -> DirectState:
        """The user's point (the first step does not depend on it)."""
        return DirectState(self.space.joined(x, z), np.zeros((1, len(self.reduced.right))))

    def proved(self, state: DirectState) -> Proved | None:
        return self.found

    # -- a step ------------------------------------------------------------------------------------
    def step(self, state: DirectState) -> DirectState:
        """Tell what the point leaves of the equations, judge it, solve for what they lack."""
        point = self._read(state) if state.count else self._solved()
        replicated = np.concatenate([point.z, point.coupled, point.shared])
        ends = np.cumsum([self.problem.q, self.problem.m])
        point = _Point(point.x, *np.split(self.runtime.common(replicated), ends))
        self.work.ledger.charge(argmins=1)
        contributions = self.proof.contributions(point.x, point.z, point.coupled)
        lacking = [self._lacking(k, share, point) for k, share in enumerate(contributions)]
        mine = np.stack(
            [
                np.concatenate([share.row, model.side.T[: self.whitened.q] @ y, A @ (model.N @ y)])
                for share, model, y, A in zip(
                    contributions, self.agents, lacking, self.reduced.A, strict=True
                )
            ]
        )
        table = gathered_rows(self.runtime, mine)
        shares = table[:, : self.proof.row]
        more = np.add.reduce(table[:, self.proof.row :])
        self.found = self.proof.concluded(contributions, shares, point.x, point.z, point.coupled)
        return self._written(self._refined(point, shares, more, lacking), state.count + 1)

    def _solved(self) -> _Point:
        """From the summed system, as exact as doubles solve it."""
        W = self.whitened
        known = np.zeros(W.size) if self.solve is None else self.solve(self.system.right)
        c = known[: W.q]
        mu = known[W.q :]
        coupled, shared = self._multipliers(mu)
        x = [
            share.onto_local(model.x(c, mu))
            for share, model in zip(self.proof.agents, self.agents, strict=True)
        ]
        point = _Point(x, c[: self.problem.q], coupled, shared)
        # Each agent by itself: what rounding left of its own minimum.
        lacks = [self._lacking(k, None, point) for k in range(len(x))]
        x = [v + model.N @ y for v, model, y in zip(x, self.agents, lacks, strict=True)]
        return _Point(x, point.z, coupled, shared)

    def _multipliers(self, mu: Array) -> tuple[Array, Array]:
        """(coupled, shared) of whitened rows."""
        whole = product(self.whitened.combine, mu).astype(np.float64)
        m = self.problem.m
        return self.reduced.unit * whole[:m], whole[m:]

    def _lacking(self, k: int, contribution: Contribution | None, point: _Point) -> Array:
        """y_i by which an agent's own minimum at (z, multipliers) is missed."""
        share = self.proof.agents[k]
        model = self.agents[k]
        gradient = (
            share.gradient(point.x[k], point.z) if contribution is None else contribution.gradient
        )
        left = gradient[: share.d] + product(share.A.T, point.coupled)
        return -model.solve(product(model.N.T, left).astype(np.float64))

    def _refined(self, point: _Point, shares: Array, more: Array, lacking: list[Array]) -> _Point:
        """The point moved by the solution of what all equations lack there."""
        m = self.problem.m
        q = self.problem.q
        reduced = self.reduced
        W = self.whitened
        common = W.q
        change = np.zeros(0)
        z = point.z
        coupled = point.coupled
        shared = point.shared
        if self.solve is not None:
            misfit = summed(shares[:, : 2 * m])
            slope = summed(shares[:, 2 * m : 2 * (m + q)])
            on_z = slope + product(reduced.Bbar.T, coupled) + product(reduced.D.T, shared)
            off = [reduced.unit * misfit, product(reduced.D, z) - reduced.e]
            rows = W.combine.T @ np.concatenate(off).astype(np.float64) + W.top @ more[common:]
            lacks = more[:common].copy()
            lacks[:q] += on_z.astype(np.float64)
            change = self.solve(-np.concatenate([lacks, rows]))
            d_coupled, d_shared = self._multipliers(change[common:])
            z = z + change[:q]
            coupled = coupled + d_coupled
            shared = shared + d_shared
        if len(change):
            lacking = [y - a.solved @ change for a, y in zip(self.agents, lacking, strict=True)]
        moved = [v + a.N @ y for a, v, y in zip(self.agents, point.x, lacking, strict=True)]
        x = [share.onto_local(v) for share, v in zip(self.proof.agents, moved, strict=True)]
        return _Point(x, z, coupled, shared)

    # -- states ------------------------------------------------------------------------------------
    def _written(self, point: _Point, count: int) -> DirectState:
        copies = np.broadcast_to(point.z, (len(point.x), self.problem.q))
        u = self.space.joined(np.concatenate([np.zeros(0), *point.x]), copies)
        return DirectState(u, np.concatenate([point.coupled, point.shared])[None], count)

    def _read(self, state: DirectState) -> _Point:
        x, z = self.point(state)
        rows = np.split(state.multipliers[0], [self.problem.m])
        return _Point(np.split(x, self.space.offsets[1:-1]), z[0], *rows)

    def point(self, state: DirectState) -> tuple[Array, Array]:
        """The refined point."""
        return self.space.x(state.u), self.space.z(state.u)

    def finished(self, state: DirectState) -> bool:
        """Further refinements gain nothing in this precision."""
        return state.count >= STEPS

    @property
    def settings(self) -> dict[str, Any]:
        """For the plan."""
        return {"rows": self.reduced.rank, "condition": self.reduced.condition}

    @property
    def cost(self) -> Cost:
        """1 argmin, a share of a proof and one averaging."""
        width = self.proof.row + self.whitened.q + self.problem.m
        return (
            Cost(argmins=1) + self.proof.contribution_cost + gathered_rows_cost(self.runtime, width)
        )


@dataclass(frozen=True)
class CrossDirect(Method):
    """Local elimination, one sum, a dense solve by everybody.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, X[:, 0], 3)
    >>> ccmac.solve(problem, "ring", ccmac.methods.CrossDirect()).status
    'optimal'
    """

    name = "cross-direct"
    summary = "quadratics with few coupled rows and shared variables: one sum, solved by all alike"
    needs = frozenset({"quadratic", "strongly convex"})
    reveals = "the equations, and eliminated Hessians A_i H_i^-1 A_i'"

    def announce(self, work: Workspace, request: Request) -> None:
        """The eliminated Hessians travel with the equations."""
        if self.needs <= work.capabilities and (work.gatherable or work.hides):
            work.announce_schur()

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """Gather the equations, sum the eliminated Hessians."""
        self.announce(work, request)
        reduced = work.gather_sums() if work.hides else work.gather_constraints()
        if reduced is None and work.runtime.averaging.hides:
            raise MethodRefused(
                "method cross-direct with masked averaging needs few equations; use cross-cg, or "
                "averaging='tree'"
            )
        if reduced is None:
            raise MethodRefused(
                "method cross-direct needs equations few enough to be known to all "
                f"(m = {work.problem.m}, q = {work.problem.q}); use cross-cg"
            )
        iteration = Direct(work, reduced)
        stopping = None
        if not request.reference and iteration.proof.mu > 0:
            stopping = Stop(ProofJudge(iteration.proof, request.tol), every=True)
        return Prepared(
            iteration,
            stopping,
            "summed",
            "few coupled rows and shared variables",
            iteration.settings,
            proves=True,
        )
