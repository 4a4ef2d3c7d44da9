"""J separately normalized channels of one vector (Proposition prop:multi-channel).

    a G_J <= sum_j M^_j'M^_j <= b G_J,   G_J = sum_j P_{U_j},   chi_{x,J} = sqrt(kappa_+(G_J))

In one process and without agents: the steps are charged gradients and affine calls only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.blocks import dense, multiply
from ccmac.linalg.ranks import squared_range
from ccmac.linalg.tolerances import DENSE_MARGIN, OVERLAP
from ccmac.paper.realizations.inverse_root import inverse_root_polynomial
from ccmac.paper.realizations.normalized import (
    RULES,
    Channel,
    NormalizedChannel,
    NormalizedStack,
    PolynomialChannel,
    WhitenedChannel,
    spread_over,
)
from ccmac.realizations.base import ExecutionObjective, Interval, Realized, refuse_unknown
from ccmac.stack import DENSE
from ccmac.workspace import Workspace


class MatrixChannel(Channel):
    """M w = v for a dense, sparse or operator M; its products have no letter in the ledger."""

    def __init__(self, matrix: object, right: Array) -> None:
        self.matrix = matrix
        self.right = right

    @property
    def cost(self) -> Cost:
        return Cost()

    def forward(self, w: Array) -> Array:
        return multiply(self.matrix, w)

    def adjoint(self, rows: Array) -> Array:
        return multiply(self.matrix, rows, adjoint=True)


def stacked(
    work: Workspace,
    *,
    rule: str = "exact",
    delta: float = 0.5,
    spectra: Sequence[tuple[float, float]] | None = None,
    factor: float | None = None,
    minimal: bool = False,
) -> Realized:
    """Normalize every channel by itself and take the interval of the stack from G_J.

    ``rule="exact"`` whitens by dense SVDs; ``paper`` and ``tight`` use polynomials on ``spectra``
    (intervals that hold spec^+(M_j M_j'); computed when absent). ``factor`` >= chi_{x,J} replaces
    the computed one, with the certificate [a/factor^2, J b]. Channels of rank zero drop out.
    """
    stack = work.stack
    runtime = work.runtime
    problem = work.problem
    space = work.space
    assert stack is not None
    refuse_unknown("stack", ("rule", rule, RULES))
    if spectra is not None and len(spectra) != len(stack.channels):
        raise InputError(
            f"stack: {len(spectra)} spectra for {len(stack.channels)} channels; give one each"
        )
    certified = rule != "exact" and spectra is not None and factor is not None
    if not certified and stack.dim > DENSE:
        raise InputError(
            f"stack: dimension {stack.dim} exceeds {DENSE} for dense factorizations; "
            "take rule='paper' and supply spectra and factor"
        )
    with runtime.ledger.phase("setup"):
        channels, bases = _normalized(work, rule, delta, spectra, certified)
        constants = work.curvature.at(1.0)
    chi = factor if factor is not None else multi_channel_factor(bases)
    interval = _interval(channels, bases, factor)
    objective = ExecutionObjective(problem, space, mu=constants.mu, L=constants.L)
    return Realized(
        "stack",
        space,
        objective,
        NormalizedStack(space, channels, interval),
        degree=interval.degree(minimal=minimal),
        steps="paper",
        details={
            "channels": len(channels),
            "rule": rule,
            "multi_channel_factor": chi,
            "degrees": [c.degree for c in channels if c.degree is not None],
        },
    )


def _normalized(
    work: Workspace,
    rule: str,
    delta: float,
    spectra: Sequence[tuple[float, float]] | None,
    certified: bool,
) -> tuple[list[NormalizedChannel], list[Array]]:
    """The channels, and orthonormal rows of each unless all is ``certified``."""
    channels: list[NormalizedChannel] = []
    bases: list[Array] = []
    assert work.stack is not None
    for j, (matrix, right) in enumerate(work.stack.channels):
        raw = MatrixChannel(matrix, right)
        if not certified:
            whitened = WhitenedChannel(raw, dense(matrix), work.ledger)
            if not whitened.rows.rank:
                continue
            bases.append(whitened.rows.basis.T)
            if rule == "exact":
                channels.append(whitened)
                continue
        if spectra is not None:
            ends = spectra[j]
        else:
            _, low, high = squared_range(dense(matrix))
            ends = (low, high * (1 + DENSE_MARGIN))
        polynomial = inverse_root_polynomial(*ends, accuracy=delta, rule=rule)
        channels.append(PolynomialChannel(raw, polynomial))
    return channels, bases


def multi_channel_factor(bases: list[Array]) -> float:
    """chi_{x,J} = sqrt(kappa_+(G_J)) from orthonormal rows of the channels."""
    values = _joint_singular_values(bases)
    return float(values[0] / values[-1])


def _joint_singular_values(bases: list[Array]) -> Array:
    """Positive singular values of the stacked bases: sqrt of spec^+(G_J), no angle squared."""
    if not bases:
        return np.ones(1)
    values = np.linalg.svd(np.vstack(bases), compute_uv=False)
    return np.asarray(values[values > OVERLAP])


def _interval(
    channels: list[NormalizedChannel], bases: list[Array], factor: float | None
) -> Interval:
    if not channels:
        return Interval(1.0, 1.0)
    a, b = spread_over(channels)
    if factor is not None:
        # lambda_max(G_J) <= J and lambda_max(G_J) >= 1, so lambda_min^+ >= 1/factor^2.
        return Interval(a / factor**2, b * len(channels), "supplied")
    positive = _joint_singular_values(bases) ** 2
    return Interval(
        a * float(positive[-1]) * (1 - DENSE_MARGIN), b * float(positive[0]) * (1 + DENSE_MARGIN)
    )
