"""Who keeps the slack of which row: agreed upon by all, in one message of declarations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ccmac.inputs import is_sparse
from ccmac.problem import Agent, Problem
from ccmac.problem.reading import rows_of
from ccmac.runtime.base import Runtime


@dataclass(frozen=True)
class Layout:
    """Coupled inequality ``rows`` and the agent that has the slack of each; ``counts`` of D_i.

    The inequality rows of D_i become the coupled rows ``first[i]``, ..., ``first[i + 1] - 1``.
    """

    rows: NDArray[np.intp]
    keepers: NDArray[np.intp]
    first: NDArray[np.intp]

    @property
    def width(self) -> int:
        """All coupled rows of the reduced problem."""
        return int(self.first[-1])

    def kept(self, i: int) -> NDArray[np.intp]:
        """The coupled rows whose slack agent ``i`` has."""
        return np.asarray(self.rows[self.keepers == i], dtype=np.intp)

    def moved(self, i: int) -> NDArray[np.intp]:
        """The coupled rows that were D_i's."""
        return np.arange(self.first[i], self.first[i + 1])


def layout(problem: Problem, runtime: Runtime) -> Layout:
    """The slack of a row stays with the first agent whose x takes part in it, else whose z does.

    One averaging.
    """
    rows = rows_of(problem.sense, problem.m, equal=False)
    mine = [[float(_moved(a)), *_part(a, rows)] for a in problem.agents.values()]
    everybody = runtime.gather(np.array(mine))
    keepers = np.argmax(everybody[:, 1:], axis=0) if rows.size else np.zeros(0, dtype=np.intp)
    ends = problem.m + np.cumsum(everybody[:, 0]).astype(np.intp)
    return Layout(rows, keepers, np.concatenate([[problem.m], ends]).astype(np.intp))


def _moved(agent: Agent) -> int:
    return 0 if agent.D is None else len(rows_of(agent.D_sense, agent.D.shape[0], equal=False))


def _part(agent: Agent, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """2 where A_i has entries in a row, 1 where only B_i has, else 0."""
    found = np.zeros(len(rows))
    for block, weight in ((agent.B, 1.0), (agent.A, 2.0)):
        if block is None or not block.shape[1]:
            continue
        if is_sparse(block):
            there = (np.diff(block.indptr) > 0)[rows]
        elif isinstance(block, np.ndarray):
            there = block[rows].any(axis=1)
        else:
            there = np.ones(len(rows), dtype=bool)
        found[there] = weight
    return found
