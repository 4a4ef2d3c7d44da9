"""The system that cross-direct solves: eliminated by the agents, summed, known to all.

Where F is strongly convex the sum has travelled with the equations (:mod:`ccmac.workspace.summed`)
and is whitened by all alike, unless that would square too large a condition. Elsewhere directions
without curvature become unknowns of it (:mod:`ccmac.workspace.flats`); how many there are is known
only with the equations, so that the sum travels after them, in whitened rows: an averaging of
k(k + 3)/2 floats, k = q + flat directions + rank. With c = (z, flat coordinates) the matrix is
[[S, G'], [G, -W]], S and W semidefinite: what it leaves undetermined are the c with S c = 0 and
G c = 0. Such solutions are ``free`` to move; the system is solved for the c across them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ccmac.certificates.inside import Inside, inside, told
from ccmac.certificates.proof import Proof
from ccmac.errors import MethodRefused
from ccmac.inputs import Array
from ccmac.linalg.blocks import dense
from ccmac.linalg.ranks import rank_cut
from ccmac.linalg.tolerances import EPS
from ccmac.methods.summed import Solve, Whitened, solver
from ccmac.workspace import Workspace
from ccmac.workspace.reduced import Reduced
from ccmac.workspace.summed import LocalModel

UNKNOWNS = 700  # of a system with flat directions: a message of 2 MB, one dense decomposition
SQUARED = 1e-5  # share of an error that a refinement may leave where rows are whitened in the sum
STEEP = 1e-9  # slope along free directions, beside the whole, that promises a free fall


@dataclass(frozen=True)
class System:
    """Solves with the summed matrix (None without unknowns); ``right`` is what it lacks at zero.

    ``free`` are orthonormal directions of c without curvature that no equation sees, ``loose`` as
    far as the rounding of the sum lets that be seen; ``inside`` is what is known of the curvature
    across them (None where F itself is strongly convex).
    """

    whitened: Whitened
    agents: list[LocalModel]
    solve: Solve | None
    right: Array
    free: Array
    loose: Array
    inside: Inside | None = None

    @property
    def slopes(self) -> list[Array]:
        """Of -F along free and loose directions: c that may lower F without end, unless small."""
        c = self.right[: self.whitened.q]
        found = [basis @ (basis.T @ c) for basis in (self.free, self.loose)]
        least = STEEP * max(float(np.linalg.norm(c)), 1e-300)
        return [along for along in found if np.linalg.norm(along) > least]


def affordable(work: Workspace, reduced: Reduced) -> bool:
    """Whether the flat directions of all agents may join the system; known to all."""
    return work.problem.q + work.flats.count + reduced.rank <= UNKNOWNS


def definite(work: Workspace, reduced: Reduced, proof: Proof) -> System:
    """Where every agent eliminates all of its variables."""
    whitened, summed = Whitened(work.problem, reduced), work.summed
    if not summed.definite:
        raise MethodRefused(
            "method cross-direct: rounding leaves the Hessian of an agent without curvature on the "
            "kernel of its C; use cross-ipm"
        )
    agents = [model.on(R) for model, R in zip(summed.models, whitened.A, strict=True)]
    off = EPS * reduced.condition**2 * proof.L
    if off <= SQUARED * max(proof.mu, 0.0):
        triangle = whitened.whitened(summed.triangle)
    else:  # one averaging more
        parts = np.stack([model.triangle() for model in agents])
        triangle = np.asarray(work.runtime.average(parts)[0] * work.problem.n)
    solve = whitened.factorized(triangle) if whitened.size else None
    right = whitened.lacking(whitened.rows(summed.right), *_zeros(whitened))
    none = np.zeros((whitened.q, 0))
    return System(whitened, agents, solve, right, none, none)


def flat(work: Workspace, reduced: Reduced, proof: Proof) -> System:
    """With flat directions among the unknowns; one averaging."""
    problem, runtime = work.problem, work.runtime
    whitened = Whitened(problem, reduced, work.flats.count)
    zero, agents, facts = _zeros(whitened), [], []
    for k, (i, agent) in enumerate(problem.agents.items()):
        H, g, _ = agent.objective.quadratic(problem.d[i], problem.q)
        H, own = dense(H), work.flats.own[k]
        agents.append(LocalModel(H, np.asarray(g), reduced.kernels[k], whitened.A[k], own))
        facts.append(told(agents[-1], H, problem.d[i]))
    runtime.ledger.charge(argmins=1, A=problem.m if "A" in problem.present else 0)
    known = runtime.ride(np.array(facts), whole=True)
    rows = np.stack([np.append(model.triangle(), model.residual(*zero)) for model in agents])
    total = runtime.average(rows)[0] * problem.n if rows.size else rows[0]
    triangle, right = np.split(total, [len(total) - whitened.size])
    K, q = whitened.matrix(triangle), whitened.q
    seen = inside(K, q, known.value, reduced, proof.L)
    free, loose = _free(K[:q, :q], K[q:, :q], seen.noise, seen.size)
    K[:q, :q] += max(float(np.abs(K).max(initial=0.0)), 1.0) * (free @ free.T)
    solve = solver(K) if whitened.size else None
    return System(whitened, agents, solve, whitened.lacking(right, *zero), free, loose, seen)


def _zeros(whitened: Whitened) -> tuple[Array, Array]:
    return np.zeros(whitened.q), np.zeros(whitened.rank)


def _free(S: Array, G: Array, noise: float, size: float) -> tuple[Array, Array]:
    """Orthonormal bases of the c with S c = 0, G c = 0: at the cut of ranks, and up to ``noise``
    of S, whose terms have the ``size``.
    """
    stacked = np.vstack([S / size if size > 0 else S, G])
    if not stacked.size:
        return np.eye(S.shape[1]), np.eye(S.shape[1])
    _, s, Vt = np.linalg.svd(stacked)
    cut = rank_cut(stacked.shape) * max(float(s[0]), 1.0)
    seen = max(cut, noise / size if size > 0 else 0.0)
    free, loose = (Vt[int(np.count_nonzero(s > least)) :].T for least in (cut, seen))
    return free, loose
