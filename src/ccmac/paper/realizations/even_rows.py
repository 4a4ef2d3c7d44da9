"""Own rows near unit length, for realizations that work with the rows as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.linalg.blocks import has_entries, powers
from ccmac.linalg.ranks import row_lengths
from ccmac.problem import Agent, Problem

# Row lengths beyond this, or its inverse, are evened out before rows are squared as they are: the
# squares of the rest differ by at most 256^4 = 4e9, which a Gram matrix still tells from rounding.
UNEVEN = 256.0


def even_rows(problem: Problem) -> Problem:
    """The same equations with very long and very short own rows of C_i and D_i near unit length.

    For realizations that work with the rows as they are: squares of rows that differ by more than
    UNEVEN^2 would not be seen next to each other, and the rank would be another one than
    everybody's (:mod:`ccmac.linalg.ranks`). Powers of two: nothing is rounded. No communication.
    """
    changed = {i: _even(agent) for i, agent in problem.agents.items()}
    if all(changed[i] is agent for i, agent in problem.agents.items()):
        return problem
    return problem.holding(changed)


def _even(agent: Agent) -> Agent:
    changes: dict[str, Any] = {}
    for name, right in (("C", "c"), ("D", "e")):
        block = getattr(agent, name)
        v = getattr(agent, right)
        if block is None or not has_entries(block):
            continue
        lengths = row_lengths(block)
        far = (lengths > 0) & ((lengths > UNEVEN) | (lengths < 1 / UNEVEN))
        if far.any():
            scale = np.where(far, powers(lengths), 1.0)
            changes[name] = (
                scale[:, None] * block
                if isinstance(block, np.ndarray)
                else (sp.csr_array(sp.diags_array(scale) @ block))
            )
            changes |= {} if v is None else {right: scale * v}
    return replace(agent, **changes) if changes else agent
