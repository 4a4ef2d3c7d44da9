"""An error bound that needs no solution.

For any w and any p in Range K', with r = grad Phi(w) + p and delta = ||G w - g|| / lambda_- >= the
distance of w to the feasible set, D = ||w - w*|| obeys

    D <= (B + (B^2 + 4 ||r|| delta / mu)^{1/2}) / 2,    B = ||r||/mu + (L/mu)^{1/2} delta.

Proof: let e = grad Phi(w) - grad Phi(w*) = r - q with q in Range K', and s = <e, w - w*>. Then
s <= ||r|| D + (||e|| + ||r||) delta, while mu D^2 <= s and (cocoercivity) ||e||^2 <= L s; solve for
s^{1/2}. :mod:`ccmac.certificates.certifier` finds r and delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ccmac.certificates.prices import Multipliers
from ccmac.inputs import Array
from ccmac.linalg.tolerances import EPS

TURNED = 0.5  # share beyond which a decomposition says nothing of single directions


@dataclass(frozen=True)
class Bound:
    """A certified bound on ||(x, z) - (x*, z*)|| in the user's variables.

    ``w`` is the point it holds for, ``gradient`` grad Phi there, ``price`` the coupled multiplier
    of the dual state it was taken with.
    """

    error: float
    stationarity: float
    infeasibility: float
    w: Array
    gradient: Array | None = None
    price: Array | None = None


@dataclass(frozen=True)
class Dual:
    """A dual state: p = K'lambda in execution coordinates and lambda's coupled part.

    Without ``p`` the point minimises the Lagrangian: p = -grad Phi there.
    """

    p: Array | None
    price: Array


@dataclass(frozen=True)
class Look:
    """What one residual and one reduction tell of a point w."""

    w: Array
    dual: Dual | None
    size: float  # ||(x, z)|| in the user's variables
    bound: Bound | None  # None without a dual state
    residual: Array | None  # G w - g
    norm: float  # of it
    length: float  # ||w||
    parts: tuple[float, float]  # what r and delta alone add to the bound (r: nan without a dual)


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


def distance_bound(r: float, delta: float, mu: float, L: float) -> float:
    """The bound of the module text."""
    b = r / mu + math.sqrt(L / mu) * delta
    return (b + math.sqrt(b * b + 4 * r * delta / mu)) / 2


def change_bound(rows: Array, U: Array, sigma: Array, least: float) -> float:
    """Length of the least change that cancels a violation ``rows`` of equations T y = v, at most.

    With T = U diag(sigma) V' up to slack = sigma_r - least > 0 (and as much that was dropped), the
    least change y has V'y = diag(1/sigma) U'(rows - E y), ||E|| <= 2 slack, and at most 2 slack /
    least of it lies outside of V. So ||y|| (1 - 4 slack / least) <= ||diag(1/sigma) U'rows||; where
    that says nothing, ||y|| <= ||rows|| / least.
    """
    whole = float(np.linalg.norm(rows)) * (1 + EPS * len(rows))
    turned = 4 * (float(sigma[-1]) - least) / least
    if not turned < TURNED:
        return whole / least
    along = float(np.linalg.norm((U.T @ rows) / sigma)) + 4 * EPS * len(rows) * whole / least
    return min(along / (1 - turned), whole / least)
