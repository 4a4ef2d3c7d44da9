"""Normalized channels as matrices: the same numbers faster, on small problems in one process.

The charge stays that of the execution along the edges. A simulation that is not fused executes
every round, bit for bit as separate processes do, and is materialised only on request.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
from ccmac.inputs import Array

from ccmac.errors import InputError
from ccmac.ledger import Ledger
from ccmac.realizations.normalized import NormalizedChannel, PolynomialChannel, dense_matrix
from ccmac.runtime.space import Space

LARGEST = 600


class MaterialisedChannel(NormalizedChannel):
    """M'(p(Q)^2 (M w - v)) with M and p(Q)^2 M dense."""

    def __init__(self, executed: PolynomialChannel, ledger: Ledger) -> None:
        self.channel, self.ledger = executed.channel, ledger
        self.spread, self.cost = executed.spread, executed.cost
        self.matrix = dense_matrix(executed.channel, ledger)
        values, vectors = np.linalg.eigh(self.matrix @ self.matrix.T)
        squared = (vectors * executed.polynomial(values) ** 2) @ vectors.T
        self.smoothed = squared @ self.matrix
        self.right = squared @ executed.channel.right

    def residual(self, w: Array) -> tuple[Array, Array | None]:
        """Two dense products."""
        self.ledger.charge_cost(self.cost)
        rows = self.smoothed @ w - self.right
        return rows @ self.matrix, self.channel.price(rows)

    def homogeneous(self) -> MaterialisedChannel:
        """v = 0."""
        other = copy.copy(self)
        other.right = np.zeros_like(self.right)
        return other


def materialised(
    channels: Sequence[NormalizedChannel], space: Space, wanted: bool | None
) -> list[NormalizedChannel]:
    """The channels with polynomials turned into matrices.

    ``wanted`` = None decides: fused, all agents here, at most 600 variables and rows a channel.
    """
    runtime = space.runtime
    if wanted and len(runtime.owned) != runtime.n:
        raise InputError("materialise: needs all agents in one process; drop the option")
    result: list[NormalizedChannel] = []
    for c in channels:
        chosen = wanted
        if isinstance(c, PolynomialChannel) and wanted is None:
            small = max(space.size, len(c.right)) <= LARGEST
            chosen = runtime.fused and len(runtime.owned) == runtime.n and small
        if isinstance(c, PolynomialChannel) and chosen:
            result.append(MaterialisedChannel(c, runtime.ledger))
        else:
            result.append(c)
    return result
