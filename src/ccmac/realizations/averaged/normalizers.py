"""Normalizers of channel 1 from a Krylov profile: intervals of S, deflations, their responses.

A normalizer q approximates S^{-1} on common vectors; its response on a Ritz value is what the
twin plans with.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ccmac.linalg.chebyshev import growth
from ccmac.realizations.averaged.profile import Profile
from ccmac.realizations.averaged.system import AveragedSystem, Deflation

Array = NDArray[np.float64]
TOP_MARGIN = 1.1
KERNEL = 1e-10


@dataclass(frozen=True)
class SchurRange:
    """[low, high] of S under a scaling and where it comes from."""

    low: float
    high: float
    source: str


def spectrum_at(profile: Profile, s: float) -> SchurRange:
    """Interval of S(1, s): exact when the Krylov space is exhausted, else with margins."""
    values, _ = profile.ritz(1.0, s)
    positive = values[values > KERNEL * values[-1]] if values.size else values
    if not positive.size:
        return SchurRange(1.0, 1.0, "exact")
    exhausted = profile.krylov.exhausted
    high = float(positive[-1]) * (1 + 1e-9 if exhausted else TOP_MARGIN)
    floor = profile.structure.floor
    if floor:
        return SchurRange(
            s * s * floor, max(high, s * s * floor), "exact" if exhausted else "estimated"
        )
    low = float(positive[0]) * (1 - 1e-9 if exhausted else 0.5)
    return SchurRange(low, high, "exact" if exhausted else "estimated")


def deflation_top(profile: Profile, s: float, r: int) -> float:
    """Largest Ritz value of S - S W_r T_r^{-1} W_r' S: what the deflation leaves of the top."""
    M = profile.M_A + s * s * profile.M_B
    left = M[:, :r]
    rest = M - left @ np.linalg.solve(M[:r, :r], left.T)
    return float(np.linalg.eigvalsh((rest + rest.T) / 2)[-1])


def build_deflation(
    system: AveragedSystem, profile: Profile, s: float, r: int, spectrum: SchurRange
) -> Deflation:
    """The deflation at scale s; its images cost one averaging unless the structure gives them."""
    krylov, s0 = profile.krylov, system.coupling.s
    if krylov.exhausted:
        return _whole_deflation(system, profile, s, spectrum)
    basis = krylov.basis[:r].copy()  # lets the other Krylov vectors go
    if s == s0 or profile.structure.multiples is not None:
        images = krylov.images(r)
        if s != s0:
            images += (s * s - s0 * s0) * (profile.structure.floor or 0.0) * basis
        T = (profile.M_A + s * s * profile.M_B)[:r, :r]
    else:
        images, T = _images(system.at_scale(s), basis)
    top = max(deflation_top(profile, s, r) * TOP_MARGIN, spectrum.low)
    inverse = np.asarray(np.linalg.inv((T + T.T) / 2), dtype=np.float64)
    return Deflation(basis, images, inverse, spectrum.low, top)


def _images(system: AveragedSystem, basis: Array) -> tuple[Array, Array]:
    """S W and W'SW at the system's scaling: one averaging of k m floats."""
    images = np.concatenate(
        system.runtime.combine([system.gram_contribution(v[None]) for v in basis])
    )
    return images, system.runtime.agree(basis @ images.T)


def _whole_deflation(
    system: AveragedSystem, profile: Profile, s: float, spectrum: SchurRange
) -> Deflation:
    """All positive Ritz vectors of an exhausted Krylov space: the inverse on what they span.

    When they span Range(S), nothing is left; otherwise repeated eigenvalues may be, and those lie
    in the spectrum's interval.
    """
    krylov = profile.krylov
    images, T = _images(system.at_scale(s), krylov.basis)
    values, vectors = np.linalg.eigh((T + T.T) / 2)
    keep = values > KERNEL * values[-1]
    rotate = np.ascontiguousarray(vectors[:, keep].T)
    basis, images = rotate @ krylov.basis, rotate @ images
    inverse = np.diag(1.0 / values[keep])
    if krylov.complete:
        return Deflation(basis, images, inverse, 1.0, 1.0)
    return Deflation(basis, images, inverse, spectrum.low, spectrum.high)


def semi_response(theta: Array, low: float, high: float, steps: int) -> Array:
    """q(theta) of the semi-iteration."""
    if high <= low:
        return np.full_like(theta, 1.0 / low)
    centre, half = (high + low) / 2, (high - low) / 2
    x = (centre - theta) / half
    inside = np.cos(steps * np.arccos(np.clip(x, -1, 1)))
    outside = np.sign(x) ** steps * np.cosh(steps * np.arccosh(np.maximum(np.abs(x), 1.0)))
    residual = np.where(np.abs(x) <= 1, inside, outside) / growth(steps, low, high)
    return np.where(theta > 0, (1 - residual) / np.maximum(theta, 1e-300), 1.0 / centre)


def deflation_response(
    profile: Profile, s: float, r: int, low: float, top: float, vectors: Array
) -> Array:
    """y' P y for every Ritz vector y, P the deflation written in the Krylov basis."""
    M = profile.M_A + s * s * profile.M_B
    k = len(M)
    inverse = np.linalg.inv(M[:r, :r])
    E = np.zeros((k, k))
    E[:r] = inverse @ M[:r, :]
    fine = np.eye(k) - E
    P = 2.0 / (low + top) * fine @ fine.T
    P[:r, :r] += inverse
    return np.asarray(np.einsum("kj,kl,lj->j", vectors, P, vectors))
