"""The summed KKT system of a quadratic on all equations, solved by everybody alike.

With the coupled and shared rows whitened, What (y, z) = v_hat
(:class:`ccmac.workspace.constraints.Constraints`; Ahat_i, Zhat its parts, What What' = I), the sum
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

import numpy as np
import scipy.linalg

from ccmac.certificates.bound import Proof
from ccmac.certificates.inside import Inside, inside, local_numbers
from ccmac.errors import MethodRefused
from ccmac.inputs import Array
from ccmac.linalg.blocks import dense
from ccmac.linalg.ranks import rank_cut
from ccmac.linalg.tolerances import EPS
from ccmac.problem import Problem
from ccmac.workspace import Workspace
from ccmac.workspace.constraints import Constraints
from ccmac.workspace.equations import Kernel
from ccmac.workspace.schur import LocalModel

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
        own = _symmetric(triangle, self.q + self.m)
        half = np.vstack([own[: self.q], self.top @ own[self.q :]])
        whole = np.hstack([half[:, : self.q], half[:, self.q :] @ self.top.T])
        return np.asarray(whole[np.triu_indices(self.size)])

    def matrix(self, triangle: Array) -> Array:
        """The summed matrix (triangle in whitened rows) with Zhat in its corner."""
        K = _symmetric(triangle, self.size)
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


def _symmetric(triangle: Array, size: int) -> Array:
    """The symmetric matrix with this upper triangle."""
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = triangle
    return np.asarray(matrix + np.triu(matrix, 1).T)


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
