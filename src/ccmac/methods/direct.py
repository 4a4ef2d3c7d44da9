"""cross-direct: a quadratic problem with few coupled rows and shared variables in one sum.

Each agent eliminates its own variables (:mod:`ccmac.workspace.schur`); the sum of what is left
travels with the equations, and everybody solves alike. A step tells the others what the point
leaves of all equations, in extended precision: that is both the proof of the point
(:meth:`ccmac.certificates.bound.Proof.concluded`) and the right-hand side of its refinement.
Needs quadratic objectives and equations that all may know; directions of ker C_i without curvature
become unknowns of the summed system.
Cost: in the setup k(k + 3)/2 floats next to the equations, k = q + m (and an averaging of
(q + rank)(q + rank + 1)/2 floats where these are nearly dependent); a step 1 argmin, 1 gradient and
one averaging of 3 (m + q) + 9 floats, and one for each flat direction.

With the coupled and shared rows whitened, What (y, z) = v_hat
(:class:`ccmac.workspace.equations.Constraints`; Ahat_i, Zhat its parts, What What' = I), the sum
over agents of their eliminated parts (:mod:`ccmac.workspace.schur`, rows Ahat_i) with Zhat in the
corner is the whole KKT system in (z, mu). It may be summed in whitened rows, or in the agents' own
and be whitened by all alike, which squares the condition of the equations.

Where F is strongly convex the sum has travelled with the equations (:mod:`ccmac.workspace.schur`)
and is whitened by all alike, unless that would square too large a condition. Elsewhere directions
without curvature become unknowns of it (:mod:`ccmac.workspace.schur`); how many there are is known
only with the equations, so that the sum travels after them, in whitened rows: an averaging of
k(k + 3)/2 floats, k = q + flat directions + rank. With c = (z, flat coordinates) the matrix is
[[S, G'], [G, -W]], S and W semidefinite: what it leaves undetermined are the c with S c = 0 and
G c = 0. Such solutions are ``free`` to move; the system is solved for the c across them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from ccmac.certificates.bound import Contribution, Pieces, Proof, ProofJudge, Proved
from ccmac.certificates.gap import Duality, DualityJudge, Goal
from ccmac.certificates.inside import Inside, inside, local_numbers
from ccmac.certificates.recession import Recession, Recessions
from ccmac.certificates.stopping import Stop, Stopping
from ccmac.errors import MethodRefused
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.blocks import dense
from ccmac.linalg.extended import product, summed
from ccmac.linalg.ranks import rank_cut
from ccmac.linalg.tolerances import EPS, PROMISED, RANK
from ccmac.methods.base import Iteration, Method, Prepared, Request, State, known, option, vector
from ccmac.problem import Problem
from ccmac.runtime.notes import gathered_rows, gathered_rows_cost
from ccmac.workspace import Workspace
from ccmac.workspace.conic import conic_forms, conic_models
from ccmac.workspace.equations import Constraints, Kernel, symmetric
from ccmac.workspace.schur import LocalModel

STEPS = 5  # the solve and four refinements
UNKNOWNS = 700  # of a system with flat directions: a message of 2 MB, one dense decomposition
LITTLE = (
    "the objective bends so little along some direction that rounding hides whether it does: "
    "nothing is proved of how far its least value lies below; add curvature or equations"
)

Solve = Callable[[Array], Array]


class Whitened:
    """Ahat_i, Zhat and v_hat; ``flat`` more unknowns stand behind z, their columns in the sum."""

    def __init__(self, problem: Problem, reduced: Constraints, flat: int = 0) -> None:
        self.q = problem.q + flat
        self.m = problem.m
        self.rank = reduced.rank
        self.n = problem.n
        self.combine = reduced.U / reduced.sigma  # whitened rows = combine' times scaled rows
        self.top = self.combine[: problem.m].T * reduced.unit
        below = self.combine[problem.m :].T @ reduced.D
        self.Z = np.zeros((reduced.rank, self.q))
        self.Z[:, : problem.q] = self.top @ reduced.Bbar.astype(np.float64) + below
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
    """Solves with the summed matrix (None without unknowns); ``right`` is what it lacks at zero.

    ``free`` are orthonormal directions of c without curvature that no equation sees, ``loose`` as
    far as the rounding of the sum lets that be seen, both empty where it hides which they are;
    rounding may have ``turned`` either by that share. ``inside`` is what is known of the curvature
    across them (None where F itself is strongly convex).
    """

    whitened: Whitened
    agents: list[LocalModel]
    solve: Solve | None
    right: Array
    free: Array
    loose: Array
    inside: Inside | None = None
    turned: float = 0.0

    @property
    def slopes(self) -> list[Array]:
        """Of -F along free and loose directions: c that may lower F without end.

        Only what exceeds the slope that directions turned by rounding have of themselves.
        """
        c = self.right[: self.whitened.q]
        found = [basis @ (basis.T @ c) for basis in (self.free, self.loose)]
        # slope relative to all slopes that is rounding wherever directions are exact
        least = max(self.turned, 1e-13) * max(float(np.linalg.norm(c)), 1e-300)
        return [along for along in found if np.linalg.norm(along) > least]


def affordable(work: Workspace, reduced: Constraints) -> bool:
    """Whether the flat directions of all agents may join the system; known to all."""
    return work.problem.q + work.announce_flats().count + reduced.rank <= UNKNOWNS


def definite(work: Workspace, reduced: Constraints, proof: Proof) -> System:
    """Where every agent eliminates all of its variables."""
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
    right = whitened.lacking(whitened.rows(summed.right), *_zeros(whitened))
    none = np.zeros((whitened.q, 0))
    return System(whitened, agents, solve, right, none, none)


def flat(work: Workspace, reduced: Constraints, proof: Proof) -> System:
    """With flat directions among the unknowns; one averaging."""
    problem = work.problem
    runtime = work.runtime
    whitened = Whitened(problem, reduced, work.announce_flats().count)
    zero = _zeros(whitened)
    agents = []
    facts = []
    for k, (i, agent) in enumerate(problem.agents.items()):
        runtime.mind_the_time()
        H, g, _ = agent.objective.quadratic(problem.d[i], problem.q)
        H = dense(H)
        own = work.announce_flats().own[k]
        agents.append(LocalModel(H, np.asarray(g), reduced.kernels[k], whitened.A[k], own))
        facts.append(local_numbers(agents[-1], H, problem.d[i]))
    runtime.ledger.charge(argmins=1, A=problem.m if "A" in problem.present else 0)
    known = runtime.piggyback(np.array(facts), whole=True)
    rows = np.stack([np.append(model.triangle(), model.residual(*zero)) for model in agents])
    total = runtime.average(rows)[0] * problem.n if rows.size else rows[0]
    triangle, right = np.split(total, [len(total) - whitened.size])
    K = whitened.matrix(triangle)
    q = whitened.q
    seen = inside(K, q, known.value, reduced)
    free, loose, turned, clear = _free(K[:q, :q], K[q:, :q], seen.noise, seen.size)
    # curvature relative to the cut of ranks that rounding does not leave
    clear = clear and seen.dropped <= 0.05
    turned = turned + _turned_flats(seen, K.shape)
    K[:q, :q] += max(float(np.abs(K).max(initial=0.0)), 1.0) * (free @ free.T)
    solve = solver(K) if whitened.size else None
    if not clear and not (seen.mu > 0 and not free.size):
        loose = np.zeros((q, 0))
        turned = math.inf
        if LITTLE not in work.doubts:
            work.doubts.append(LITTLE)
    right = whitened.lacking(right, *zero)
    return System(whitened, agents, solve, right, free, loose, seen, turned)


def _turned_flats(seen: Inside, shape: tuple[int, int]) -> float:
    """The share by which rounding may have turned the agents' own flat directions."""
    return 8 * EPS * sum(shape) / (seen.kept * rank_cut(shape)) if seen.kept > 0 else math.inf


def _zeros(whitened: Whitened) -> tuple[Array, Array]:
    return np.zeros(whitened.q), np.zeros(whitened.rank)


def _free(S: Array, G: Array, noise: float, size: float) -> tuple[Array, Array, float, bool]:
    """Orthonormal bases of the c with S c = 0, G c = 0: at the cut of ranks, and up to ``noise``
    of S, whose terms have the ``size``; by what share rounding may have turned them (that of the
    matrix over the least singular value that counts), and whether that is little and all that does
    not count is rounding.
    """
    stacked = np.vstack([S / size if size > 0 else S, G])
    if not stacked.size:
        return np.eye(S.shape[1]), np.eye(S.shape[1]), 0.0, True
    _, s, Vt = np.linalg.svd(stacked)
    top = max(float(s[0]), 1.0)
    cut = rank_cut(stacked.shape) * top
    off = noise / size if size > 0 else 0.0
    first, second = (int(np.count_nonzero(s > least)) for least in (cut, max(cut, off)))
    off += 8 * EPS * sum(stacked.shape) * top
    turned = off / (float(s[second - 1]) if second else top)
    # rounding of the sum, relative to its size, that hides curvature
    clear = off <= 1e-5 * top and bool(s[first:].max(initial=0.0) <= off)
    return Vt[first:].T, Vt[second:].T, turned, clear


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
        made = definite if "strongly convex" in work.capabilities else flat
        self.system = made(work, reduced, self.proof)
        self.whitened = self.system.whitened
        self.agents = self.system.agents
        self.solve = self.system.solve
        if self.system.inside is not None and not self.system.free.size:
            self.proof.inside = self.system.inside.mu
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
                np.concatenate([share.row, self._seen(k, share, point, y), A @ (model.N @ y)])
                for k, (share, model, y, A) in enumerate(
                    zip(contributions, self.agents, lacking, self.reduced.A, strict=True)
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
        known = (
            np.zeros(W.size) if self.solve is None else self.solve(self._across(self.system.right))
        )
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

    def _across(self, right: Array) -> Array:
        """A right-hand side without its part along directions that are free."""
        q = self.whitened.q
        free = self.system.free
        return np.concatenate([right[:q] - free @ (free.T @ right[:q]), right[q:]])

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

    def _seen(self, k: int, contribution: Contribution, point: _Point, y: Array) -> Array:
        """What the unknowns of all see of an agent: of its miss y, and its slope where flat."""
        share = self.proof.agents[k]
        model = self.agents[k]
        seen = model.side.T[: self.whitened.q] @ y
        if model.flat.count:
            slope = contribution.gradient[: share.d] + product(share.A.T, point.coupled)
            seen += product(model.along.T, slope).astype(np.float64)
        return np.asarray(seen)

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
            change = self.solve(self._across(-np.concatenate([lacks, rows])))
            d_coupled, d_shared = self._multipliers(change[common:])
            z = z + change[:q]
            coupled = coupled + d_coupled
            shared = shared + d_shared
        if len(change):
            lacking = [y - a.solved @ change for a, y in zip(self.agents, lacking, strict=True)]
        moved = [v + a.N @ y for a, v, y in zip(self.agents, point.x, lacking, strict=True)]
        if len(change) and self.agents[0].flat.count:
            moved = [v + a.along @ change[:common] for a, v in zip(self.agents, moved, strict=True)]
        x = [share.onto_local(v) for share, v in zip(self.proof.agents, moved, strict=True)]
        return _Point(x, z, coupled, shared)

    # -- where the equations leave something undetermined ------------------------------------------
    def multipliers(self, state: DirectState) -> tuple[Array, list[Array]]:
        """Coupled ones of the state, and the best of each agent's own rows (C_i, then D_i)."""
        coupled, shared = np.split(state.multipliers[0], [self.problem.m])
        x, z = self.point(state)
        found = []
        for k, share in enumerate(self.proof.agents):
            slope = share.gradient(self.space.x_of(x, k), z[k])
            own = share.stationarity(slope[: share.d], coupled)[1]
            found.append(np.append(own, self.reduced.own_shared(k, shared)[0]))
        return coupled, found

    def steepest(self) -> list[tuple[Array, Array]]:
        """From the slopes along the directions that are free."""
        found = []
        for c in self.system.slopes:
            pieces = [a.along @ c - a.N @ (a.solved[:, : len(c)] @ c) for a in self.agents]
            found.append((np.concatenate([np.zeros(0), *pieces]), c[: self.problem.q]))
        return found

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
        seen = self.system.inside
        reduced = self.reduced
        about: dict[str, Any] = {"rows": reduced.rank, "condition": reduced.condition}
        if seen is not None:
            about["flat"] = self.whitened.q - self.problem.q
            about["free"] = self.system.free.shape[1]
            about["curvature"] = seen.mu
            about["flat_kept"], about["flat_dropped"] = seen.kept, seen.dropped
        return about

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

    Parameters
    ----------
    radius : float, optional
        R >= ||(x0, z0) - (x*, z*)||, for a gap where solutions are many (estimated).
    accuracy : float, optional
        Absolute accuracy of it (tol max(1, |F|)).

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
    needs = frozenset({"quadratic"})
    reveals = "the equations, and eliminated Hessians A_i H_i^-1 A_i'"

    radius: float | None = option(
        None, float, "R >= ||(x0, z0) - (x*, z*)||, for a gap where solutions are many (estimated)"
    )
    accuracy: float | None = option(None, float, "absolute accuracy of it (tol max(1, |F|))")

    def announce(self, work: Workspace, request: Request) -> None:
        """The eliminated Hessians, or the number of flat directions, travel with the equations."""
        curved = "strongly convex" in work.capabilities
        if self.needs <= work.capabilities and (work.gatherable or (work.hides and curved)):
            _ = work.announce_schur() if curved else work.announce_flats()

    def finds_falls(self, work: Workspace) -> bool:
        """From the system it solves."""
        return work.gatherable

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """Gather the equations, sum the eliminated Hessians."""
        self.announce(work, request)
        curved = "strongly convex" in work.capabilities
        reduced = work.gather_sums() if curved and work.hides else work.gather_constraints()
        if reduced is None and work.runtime.averaging.hides:
            raise MethodRefused(
                "method cross-direct with masked averaging needs strongly convex objectives and "
                "few equations; use cross-cg, or averaging='tree'"
            )
        if reduced is None or not (curved or affordable(work, reduced)):
            raise MethodRefused(
                "method cross-direct needs equations and flat directions few enough to be known to "
                f"all (m = {work.problem.m}, q = {work.problem.q}); use "
                f"{'cross-cg' if curved else 'cross-sliding'}"
            )
        iteration = Direct(work, reduced)
        found: dict[str, Any] = {}
        stopping: Stopping | None = None
        if not request.reference and max(iteration.proof.mu, iteration.proof.inside) > 0:
            stopping = Stop(ProofJudge(iteration.proof, request.tol), every=True)
        elif not request.reference and not curved:
            goal = Goal(request.tol, self.accuracy, self.radius)
            forms = conic_forms(work)
            duality = Duality(work, forms, conic_models(work, forms), (request.x0, request.z0))
            recessions = Recessions(work, reduced, forms)
            stopping = Stop(DualityJudge(duality, recessions, goal, found), every=True)
        return Prepared(
            iteration,
            stopping,
            "summed",
            "few coupled rows and shared variables",
            iteration.settings,
            certificates=found,
            proves=True,
        )


# -- before a method starts ------------------------------------------------------------------------
UNSEEN = (
    "the objective slopes along directions without curvature that are too many to be looked at "
    "together: whether it falls without end is not known; add curvature, limits or equations"
)


def falling(work: Workspace, request: Request) -> Recession | None:
    """A recession direction that proves that a quadratic F has no least value, if one is found.

        d in ker K and ker H,   <g, d> < 0

    No such d exists where every g_i is orthogonal to the (x_i, z) with H_i (x_i, z) = 0 and
    C_i x_i = 0, as those of least squares are: everybody tells whether its own is. Where one is
    not, g's part along the free directions of the summed system is tested. Cost: a float with the
    next message; if somebody slopes, the sum and an averaging for each direction tried.
    """
    if (reduced := work.gather_constraints()) is None:
        return None
    sloping = work.runtime.piggyback(np.array([[float(slopes)] for slopes in _own_slopes(work)]))
    if not sloping.value.any():
        return None
    if not affordable(work, reduced):
        work.doubts.append(UNSEEN)
        return None
    problem = work.problem
    forms = [a.objective.polyhedral(problem.d[i], problem.q) for i, a in problem.agents.items()]
    test = Recessions(work, reduced, forms).test
    tried = (test(*direction) for direction in Direct(work, reduced).steepest())
    return next((found for found in tried if found is not None), None)


def _own_slopes(work: Workspace) -> list[bool]:
    """Of the agents owned here: whether g_i has a part on ker H_i and ker C_i."""
    problem = work.problem
    found = []
    for kernel, (i, agent) in zip(work.kernels, problem.agents.items(), strict=True):
        work.runtime.mind_the_time()
        H, g, _ = agent.objective.quadratic(problem.d[i], problem.q)
        d = problem.d[i]
        N = kernel.basis
        whole = np.vstack([N.T @ dense(H)[:d], dense(H)[d:]])
        own = np.hstack([whole[:, :d] @ N, whole[:, d:]])
        inside = np.concatenate([N.T @ g[:d], g[d:]])
        fit = np.linalg.lstsq(own, inside, rcond=RANK)[0]
        left = inside - own @ fit
        found.append(bool(np.linalg.norm(left) > PROMISED * np.linalg.norm(g)))
    return found
