"""Directions along which an agent's quadratic is flat, and how many all agents have.

    P = N'H_xx N,   P = [rest basis] diag(P_rest, 0) [rest basis]',   N a basis of ker C_i

An unpenalized intercept or a free angle has no curvature of its own: coupled rows or shared
variables must hold it. Such directions (H is semidefinite, so that they do not meet z in H either)
are not eliminated; they become unknowns that all solve for, numbered behind z. Which they are is
read off P with its entries in units of what they were before the projection, at the cut of
:mod:`ccmac.linalg.ranks`. Cost: one float an agent in the message that gathers the equations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ccmac.inputs import Array
from ccmac.linalg.blocks import dense
from ccmac.linalg.ranks import rank_cut
from ccmac.problem import Problem
from ccmac.runtime.base import Runtime
from ccmac.workspace.local import Kernel


@dataclass(frozen=True)
class Flat:
    """Orthonormal ``basis`` of the flat directions and ``rest``, both in coordinates of ker C_i.

    ``kept`` is the least curvature that counts, ``dropped`` the largest that does not, over the
    cut. ``first`` numbers the directions among the ``count`` of all agents.
    """

    basis: Array
    rest: Array
    kept: float = math.inf
    dropped: float = 0.0
    first: int = 0
    count: int = 0


def flat_directions(P: Array, sizes: Array) -> Flat:
    """Of a semidefinite P whose diagonal had the ``sizes`` before what it was computed from met."""
    unit = 1.0 / np.sqrt(np.where(sizes > 0, sizes, 1.0))
    values, vectors = np.linalg.eigh(unit[:, None] * P * unit)
    cut = rank_cut(P.shape) * max(1.0, float(values.max(initial=0.0)))
    count = int(np.count_nonzero(values <= cut))
    if not count:
        kept = float(values[0]) / cut if len(values) else math.inf
        return Flat(np.zeros((len(P), 0)), np.eye(len(P)), kept)
    whole, _ = np.linalg.qr(unit[:, None] * vectors[:, :count], mode="complete")
    kept = float(values[count]) / cut if count < len(values) else math.inf
    dropped = max(float(np.abs(values[:count]).max()) / cut, 0.0)
    return Flat(whole[:, :count], whole[:, count:], kept, dropped)


class Flats:
    """Of the agents owned here, numbered once the counts of all are known."""

    def __init__(self, problem: Problem, runtime: Runtime, kernels: list[Kernel]) -> None:
        self._own = []
        for kernel, (i, agent) in zip(kernels, problem.agents.items(), strict=True):
            runtime.mind_the_time()
            d = problem.d[i]
            N = kernel.basis
            H = dense(agent.objective.quadratic(d, problem.q)[0])[:d, :d]
            sizes = np.einsum("ij,ij->j", np.abs(N), np.abs(H) @ np.abs(N))
            self._own.append(flat_directions(N.T @ H @ N, sizes))
        self._owned = list(problem.agents)
        rows = [[float(flat.basis.shape[1])] for flat in self._own]
        self._sent = runtime.piggyback(np.array(rows), whole=True)

    @property
    def counts(self) -> list[int]:
        """All agents' numbers of flat directions."""
        return [int(k) for k in self._sent.value[:, 0]]

    @property
    def count(self) -> int:
        """All of them."""
        return sum(self.counts)

    @property
    def own(self) -> list[Flat]:
        """Of the agents owned here."""
        starts = np.concatenate([[0], np.cumsum(self.counts)]).astype(int)
        return [
            Flat(f.basis, f.rest, f.kept, f.dropped, int(starts[i]), int(starts[-1]))
            for i, f in zip(self._owned, self._own, strict=True)
        ]
