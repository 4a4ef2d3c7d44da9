"""Computations that need several averagings, run in lockstep so that their messages share rounds.

A chain is a generator: it yields a contribution, receives its mean, and returns a result.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.chebyshev import Chain
from ccmac.runtime.averaging import Pattern
from ccmac.runtime.base import Runtime


def lockstep(runtime: Runtime, chains: Sequence[Chain], own: Pattern | None = None) -> list[Array]:
    """Run the chains together; rounds are those of the longest, bytes are those of all.

    ``own``: who has entries in a contribution, where there is one chain.
    """
    results: list[Array] = [np.zeros(0)] * len(chains)
    pending: dict[int, Array] = {}

    def advance(k: int, mean: Array | None) -> None:
        try:
            pending[k] = chains[k].send(mean)  # type: ignore[arg-type]
        except StopIteration as stop:
            pending.pop(k, None)
            results[k] = stop.value

    for k in range(len(chains)):
        advance(k, None)
    while pending:
        order = list(pending)
        means = runtime.combine([pending[k] for k in order], own if len(chains) == 1 else None)
        for k, mean in zip(order, means, strict=True):
            advance(k, mean)
    return results


def lockstep_cost(
    runtime: Runtime, chains: Sequence[tuple[int, int]], own: Pattern | None = None
) -> Cost:
    """Static communication cost of chains given as (averagings, width)."""
    cost = Cost()
    for step in range(max((steps for steps, _ in chains), default=0)):
        width = sum(w for steps, w in chains if step < steps)
        cost = cost + runtime.average_cost(width, own=own if len(chains) == 1 else None)
    return cost
