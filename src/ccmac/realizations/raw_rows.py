"""For realizations that multiply the rows of C_i and D_i as they are given.

The averaged realization works with rows of unit length and an orthonormal basis of them. The
others use C_i C_i' itself, in which independent rows of very different lengths cannot be told from
dependent ones: such rows are refused, since a certificate that leaves them out would be false.
"""

from __future__ import annotations

from ccmac.errors import InputError
from ccmac.linalg.families import dense
from ccmac.linalg.ranks import squared_range
from ccmac.problem import Problem

SQUARES = 1e-11
"""Share of the largest eigenvalue of M M' below which another one is taken for rounding."""
ENTRIES = 4_000_000
"""Larger blocks are not decomposed for this; their constants come from iterations or the user."""


def refuse_uneven(problem: Problem, name: str) -> None:
    """Refuse own equations whose squared singular values span more than 1/:data:`SQUARES`."""
    for i, agent in problem.agents.items():
        for letter, block in (("C", agent.C), ("D", agent.D)):
            if block is None or not 0 < block.shape[0] * block.shape[1] <= ENTRIES:
                continue
            _, low, high = squared_range(dense(block))
            if low < SQUARES * high:
                raise InputError(
                    f"{name}: rows of {letter} of agent {i} differ too much in size (squares of "
                    f"singular values from {low:.1e} to {high:.1e}); scale them, or take the "
                    "averaged realization of cross-apapc"
                )
