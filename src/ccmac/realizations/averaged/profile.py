"""What planning knows of a problem: three small matrices from one Lanczos run.

On a Krylov basis W of S = (1/n) sum H_i P_kerC H_i', started at the data, the projections

    M_A = W' (1/n sum A_i P_kerC A_i') W,  M_B = W' (1/n sum B_i B_i') W,  M_mean = W' Bbar Bbar' W

describe S under every scaling z = s z~, S(s) ~ M_A + s^2 M_B, and split each direction into its
x part, its mean z part and its disagreement part M_B - M_mean. A normalizer q approximates S^{-1}
on common vectors: here are the intervals and deflations it is built from, and its response on Ritz
values, which the twin plans with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ccmac.inputs import Array
from ccmac.linalg.blocks import multiply
from ccmac.linalg.lanczos import Krylov, agreed_dots, lanczos
from ccmac.linalg.tolerances import KERNEL
from ccmac.realizations.averaged.choices import Deflation
from ccmac.realizations.averaged.system import AveragedSystem
from ccmac.realizations.base import Images, Interval
from ccmac.runtime.base import Rider, Runtime
from ccmac.runtime.space import piece_sums, row_dots

TOP_MARGIN = 1.1
DEFLATED = (3, 4, 6, 8, 10, 12, 14, 16, 20, 24)


@dataclass(frozen=True)
class Structure:
    """Facts about the B_i that scalars reveal: B_i = beta_i I for all agents."""

    multiples: Array | None

    @property
    def floor(self) -> float | None:
        """(1/n) sum beta_i^2: a lower bound of (1/n) sum B_i B_i'; None when unknown."""
        return None if self.multiples is None else float(np.mean(self.multiples**2))

    def cosine_bound(self) -> float | None:
        """sqrt(sum (beta_i - mean)^2 / sum beta_i^2) >= c_F when C = D = 0 (A A' only helps)."""
        if self.multiples is None:
            return None
        spread = np.sum((self.multiples - self.multiples.mean()) ** 2)
        return float(np.sqrt(spread / np.sum(self.multiples**2)))


@dataclass(frozen=True)
class Profile(ABC):
    """Projected matrices and the data in a basis W, and the deflations it allows."""

    M_A: Array
    M_B: Array
    M_mean: Array
    misfit: Array  # W' (mean H w0 - target)
    gradient_x: Array  # W' mean A_i P grad_x, unscaled
    gradient_z: Array  # W' mean B_i grad_z, unscaled
    rest_x: float  # ||grad_x F(w0)||^2, whole
    rest_z: float
    structure: Structure

    def matrix(self, s: float) -> Array:
        """W' S(s) W."""
        return self.M_A + s * s * self.M_B

    def ritz(self, s: float) -> tuple[Array, Array]:
        """Ritz values of S(s), ascending, and vectors in the Krylov basis."""
        values, vectors = scipy.linalg.eigh(self.matrix(s))
        return np.maximum(values, 0.0), vectors

    @property
    def block(self) -> Images | None:
        """What is known of S_A apart from the scale."""
        return None

    @property
    @abstractmethod
    def known(self) -> tuple[bool, bool]:
        """(whether the Ritz values are all eigenvalues there are, whether Range S is spanned)."""

    @abstractmethod
    def ranks(self, fixed: int | None) -> list[int]:
        """Sizes of deflations to try."""

    @abstractmethod
    def top(self, s: float, r: int) -> float:
        """Largest eigenvalue of S - S W_r T_r^{-1} W_r' S, what a deflation leaves; with margin."""

    @abstractmethod
    def response(self, s: float, r: int, low: float, top: float, vectors: Array) -> Array:
        """y' P y for every Ritz vector y, P the deflation."""

    @abstractmethod
    def deflation(self, system: AveragedSystem, s: float, r: int, spectrum: Interval) -> Deflation:
        """At scale s."""


@dataclass(frozen=True)
class LanczosProfile(Profile):
    """From Lanczos vectors."""

    krylov: Krylov

    @property
    def known(self) -> tuple[bool, bool]:
        return self.krylov.exhausted, self.krylov.complete

    def ranks(self, fixed: int | None) -> list[int]:
        """Six steps beyond the deflated vectors show what is left of the top (within 1.02 on every
        data set tried; with four the margin of 1.1 was not always enough).
        """
        k = self.krylov.steps
        if fixed is not None or self.krylov.exhausted:
            return [k if self.krylov.exhausted else min(fixed or k, k)] if k else []
        return [r for r in DEFLATED if r <= k - 6]

    def top(self, s: float, r: int) -> float:
        """Of the matrix projected on all Lanczos vectors."""
        M = self.matrix(s)
        left = M[:, :r]
        rest = M - left @ np.linalg.solve(M[:r, :r], left.T)
        return float(np.linalg.eigvalsh((rest + rest.T) / 2)[-1]) * TOP_MARGIN

    def response(self, s: float, r: int, low: float, top: float, vectors: Array) -> Array:
        """P written in the Krylov basis."""
        M = self.matrix(s)
        k = len(M)
        inverse = np.linalg.inv(M[:r, :r])
        E = np.zeros((k, k))
        E[:r] = inverse @ M[:r, :]
        fine = np.eye(k) - E
        P = 2.0 / (low + top) * fine @ fine.T
        P[:r, :r] += inverse
        return np.asarray(np.einsum("kj,kl,lj->j", vectors, P, vectors))

    def deflation(self, system: AveragedSystem, s: float, r: int, spectrum: Interval) -> Deflation:
        """Its images cost one averaging unless the structure gives them."""
        krylov = self.krylov
        s0 = system.coupling.s
        if krylov.exhausted:
            return _whole_deflation(system, self, s, spectrum)
        basis = krylov.basis[:r].copy()  # lets the other Krylov vectors go
        if s == s0 or self.structure.multiples is not None:
            images = krylov.images(r)
            if s != s0:
                images += (s * s - s0 * s0) * (self.structure.floor or 0.0) * basis
            T = self.matrix(s)[:r, :r]
        else:
            images, T = _images(system.at_scale(s), basis)
        top = max(self.top(s, r), spectrum.low)
        inverse = np.asarray(np.linalg.inv((T + T.T) / 2), dtype=np.float64)
        return Deflation(basis, images, inverse, spectrum.low, top)


def build_profile(
    system: AveragedSystem,
    w0: Array,
    gradient: Array,
    steps: int,
    structure: Structure,
    rng: np.random.Generator,
    *,
    exhaust: bool = False,
) -> LanczosProfile:
    """Lanczos on S at the system's scaling; ``steps`` + 2 averagings (setup).

    ``gradient`` is the unscaled gradient of F at w0 in the execution layout. ``exhaust`` goes on
    until all of Range(S) is spanned.
    """
    runtime = system.runtime
    coupling = system.coupling
    rows, told = data_rows(system, w0, gradient)
    mean_start, along_x, along_z = runtime.combine(rows)
    misfit = mean_start - system.target
    s = coupling.s
    noise = rng.standard_normal(coupling.width)
    noise /= np.linalg.norm(noise)
    # Directions the data do not excite still have to be seen when nothing else bounds S below.
    share = 0.05 if structure.multiples is None else 1e-3
    data = _unit(runtime, misfit) + _unit(runtime, along_x + s * s * along_z)
    data = _unit(runtime, data) + share * noise

    fresh = rng if exhaust else None
    krylov = lanczos(runtime, system.gram_contribution, data, steps, rng=fresh)
    T = krylov.tridiagonal()
    M_B, M_mean = _shared_grams(system, krylov, structure)
    M_A = T - s * s * M_B
    whole = told.value
    return LanczosProfile(
        M_A,
        M_B,
        M_mean,
        agreed_dots(runtime, krylov.basis, misfit),
        agreed_dots(runtime, krylov.basis, along_x),
        agreed_dots(runtime, krylov.basis, along_z),
        float(whole[0]),
        float(whole[1]),
        structure,
        krylov,
    )


def data_rows(system: AveragedSystem, w0: Array, gradient: Array) -> tuple[list[Array], Rider]:
    """What the agents put into the means of H w0, A P grad_x and B grad_z (unscaled).

    The squares of grad_x and grad_z ride on the next message. Cost: 2 A, 2 B, 2 projectors C.
    """
    coupling = system.coupling
    space = system.space
    gx = space.x(gradient)
    gz = space.z(gradient)
    kernel_gx = gx if system.local.empty else gx - system.local.project(gx)
    plain = coupling.rescaled(1.0, 1.0)
    projected = space.x(w0) - system.local.project(space.x(w0))
    at_start = coupling.contributions(projected, space.z(w0))[0]
    part_x = plain.contributions(kernel_gx, None)[0]
    part_z = plain.contributions(None, gz)[0]
    squares = np.stack([piece_sums(gx * gx, space.d), row_dots(gz, gz)], axis=1)
    return [at_start, part_x, part_z], system.runtime.ride(squares)


def _unit(runtime: Runtime, vector: Array) -> Array:
    """A common vector divided by its norm (agreed upon), or zero."""
    norm = float(np.sqrt(agreed_dots(runtime, vector, vector)[0]))
    return vector / norm if norm > 0 else vector


def _shared_grams(
    system: AveragedSystem, krylov: Krylov, structure: Structure
) -> tuple[Array, Array]:
    """(W'(1/n sum B B')W, W' Bbar Bbar' W): one averaging of k q floats, one reduction."""
    k = krylov.steps
    runtime = system.runtime
    coupling = system.coupling
    if coupling.B.empty:
        return np.zeros((k, k)), np.zeros((k, k))
    if structure.multiples is not None:
        beta = structure.multiples
        return np.mean(beta**2) * np.eye(k), np.mean(beta) ** 2 * np.eye(k)
    q = coupling.q
    count = len(coupling.problem.agents)
    images = np.zeros((count, k * q))
    grams = np.zeros((count, k * k))
    runtime.ledger.charge(B=k)
    for row, block in enumerate(coupling.problem.blocks("B")):
        if block is None:
            continue
        image = np.stack([multiply(block, v, adjoint=True) for v in krylov.basis])
        images[row] = image.ravel()
        grams[row] = (image @ image.T).ravel()
    told = runtime.ride(grams)
    mean = runtime.average(images).reshape(k, q)
    return told.value.reshape(k, k) / runtime.n, runtime.common(mean @ mean.T)


# -- normalizers of channel 1 ---------------------------------------------------------------------
def spectrum_at(profile: Profile, s: float) -> Interval:
    """Interval of S(s): exact when the Krylov space is exhausted, else with margins."""
    values, _ = profile.ritz(s)
    positive = values[values > KERNEL * values.max(initial=0.0)]
    if not positive.size:
        return Interval(1.0, 1.0)
    exhausted = profile.known[0]
    source = "exhausted" if exhausted else "estimated"
    high = float(positive.max()) * (1 + 1e-9 if exhausted else TOP_MARGIN)
    if floor := profile.structure.floor:
        return Interval(s * s * floor, max(high, s * s * floor), "proved")
    return Interval(float(positive.min()) * (1 - 1e-9 if exhausted else 0.5), high, source)


def _images(system: AveragedSystem, basis: Array) -> tuple[Array, Array]:
    """S W and W'SW at the system's scaling: one averaging of k m floats."""
    images = np.concatenate(
        system.runtime.combine([system.gram_contribution(v[None]) for v in basis])
    )
    return images, system.runtime.common(basis @ images.T)


def _whole_deflation(
    system: AveragedSystem, profile: LanczosProfile, s: float, spectrum: Interval
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
    basis = rotate @ krylov.basis
    images = rotate @ images
    inverse = np.diag(1.0 / values[keep])
    if krylov.complete:
        return Deflation(basis, images, inverse, 1.0, 1.0)
    return Deflation(basis, images, inverse, spectrum.low, spectrum.high)
