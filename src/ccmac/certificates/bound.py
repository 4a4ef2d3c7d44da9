"""One error bound that needs no solution.

For any w and any p in Range K', with r = grad F(w) + p and delta >= the distance of w from the
points that meet the equations, D = ||w - w*|| obeys

    D <= (B + (B^2 + 4 ||r|| delta / mu)^{1/2}) / 2,    B = ||r||/mu + (L/mu)^{1/2} delta.

Proof: let e = grad F(w) - grad F(w*) = r - q with q in Range K', and s = <e, w - w*>. Then
s <= ||r|| D + (||e|| + ||r||) delta, while mu D^2 <= s and (cocoercivity) ||e||^2 <= L s; solve for
s^{1/2}. delta is the violation of unit rows over a lower bound sigma of their least singular value.
Who knows sigma: :mod:`ccmac.certificates.structure` (z follows from x), `.proof` (the gathered
rows) and `.realized` (the interval of a realization).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ccmac.certificates.multipliers import Multipliers
from ccmac.inputs import Array


@dataclass(frozen=True)
class Dual:
    """A dual state: p = K'lambda in execution coordinates and lambda's coupled part.

    Without ``p`` the point minimises the Lagrangian: p = -grad Phi there.
    """

    p: Array | None
    multiplier: Array


@dataclass(frozen=True)
class Particulars:
    """What else a bound found out about its point: residuals, multipliers, F."""

    residuals: dict[str, float]
    multipliers: Multipliers
    objective: float


@dataclass(frozen=True)
class Proved:
    """A point (flat x; one z for all, or one row an agent) and what is known of its error.

    ``error`` bounds its distance from the solution, ``stationarity`` is ||r|| and ``infeasibility``
    delta, ``size`` is ||(x, z)||. The user's ``gradient_x``, ``gradient_z`` (one row an agent) and
    the coupled ``multiplier`` go with it, unless ``report`` has what they are for; ``w`` is
    the point on a realization.
    """

    x: Array
    z: Array
    error: float
    stationarity: float
    infeasibility: float
    size: float
    gradient_x: Array
    gradient_z: Array
    multiplier: Array
    report: Particulars | None = None
    w: Array | None = None


def distance_bound(r: float, delta: float, mu: float, L: float) -> float:
    """The bound of the module text; infinite where r or delta are no numbers or mu is zero."""
    if not (0 < mu < math.inf and math.isfinite(r) and math.isfinite(delta)):
        return math.inf
    b = r / mu + math.sqrt(L / mu) * delta
    return (b + math.sqrt(b * b + 4 * r * delta / mu)) / 2
