"""What a proof says of its point."""

from __future__ import annotations

from dataclasses import dataclass

from ccmac.certificates.prices import Multipliers
from ccmac.inputs import Array


@dataclass(frozen=True)
class Particulars:
    """What else a proof found out about its point: residuals, prices, F."""

    residuals: dict[str, float]
    multipliers: Multipliers
    objective: float


@dataclass(frozen=True)
class Proved:
    """A point (flat x, one z for all) and what is proved of it.

    ``error`` bounds its distance from the solution, ``stationarity`` is r and ``infeasibility``
    delta; ``gradient_x``, ``gradient_z`` (one row per agent) and the coupled ``price`` go with it,
    unless ``report`` has what they are for.
    """

    x: Array
    z: Array
    error: float
    stationarity: float
    infeasibility: float
    size: float
    gradient_x: Array
    gradient_z: Array
    price: Array
    report: Particulars | None = None
