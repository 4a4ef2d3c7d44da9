"""What planning knows of a problem: three small matrices from one Lanczos run.

On a Krylov basis W of S = (1/n) sum H_i P_kerC H_i', started at the data, the projections

    M_A = W' (1/n sum A_i P_kerC A_i') W,  M_B = W' (1/n sum B_i B_i') W,  M_mean = W' Bbar Bbar' W

describe S under every block scaling, S(t, s) ~ t^2 M_A + s^2 M_B, and split each direction into its
x part, its mean z part and its disagreement part M_B - M_mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ccmac.inputs import Array
from ccmac.linalg.families import multiply
from ccmac.linalg.lanczos import Krylov, agreed_dots, lanczos
from ccmac.realizations.averaged.system import AveragedSystem
from ccmac.runtime.base import Runtime
from ccmac.runtime.space import piece_sums, row_dots


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
class Profile:
    """Projected matrices and the data in the Krylov basis; ``m`` is the size of the equation."""

    krylov: Krylov
    M_A: Array
    M_B: Array
    M_mean: Array
    misfit: Array  # W' (mean H w0 - target)
    gradient_x: Array  # W' mean A_i P grad_x, unscaled
    gradient_z: Array  # W' mean B_i grad_z, unscaled
    rest_x: float  # ||grad_x F(w0)||^2, whole
    rest_z: float
    structure: Structure

    def ritz(self, t: float, s: float) -> tuple[Array, Array]:
        """Ritz values of S(t, s), ascending, and vectors in the Krylov basis."""
        values, vectors = scipy.linalg.eigh(t * t * self.M_A + s * s * self.M_B)
        return np.maximum(values, 0.0), vectors


def build_profile(
    system: AveragedSystem,
    w0: Array,
    gradient: Array,
    steps: int,
    structure: Structure,
    rng: np.random.Generator,
    *,
    exhaust: bool = False,
) -> Profile:
    """Lanczos on S at the system's scaling; ``steps`` + 2 averagings (setup).

    ``gradient`` is the unscaled gradient of F at w0 in the execution layout. ``exhaust`` goes on
    until all of Range(S) is spanned.
    """
    runtime, coupling, space = system.runtime, system.coupling, system.space
    gx, gz = space.x(gradient), space.z(gradient)
    kernel_gx = gx if system.local.empty else gx - system.local.project(gx)
    plain = coupling.rescaled(1.0, 1.0)
    projected = space.x(w0) - system.local.project(space.x(w0))
    at_start = coupling.contributions(projected, space.z(w0))[0]
    part_x = plain.contributions(kernel_gx, None)[0]
    part_z = plain.contributions(None, gz)[0]
    mean_start, along_x, along_z = runtime.combine([at_start, part_x, part_z])
    misfit = mean_start - system.target
    t, s = coupling.t, coupling.s
    noise = rng.standard_normal(coupling.width)
    noise /= np.linalg.norm(noise)
    # Directions the data do not excite still have to be seen when nothing else bounds S below.
    share = 0.05 if structure.multiples is None else 1e-3
    data = _unit(runtime, misfit) + _unit(runtime, t * t * along_x + s * s * along_z)
    data = _unit(runtime, data) + share * noise

    fresh = rng if exhaust else None
    krylov = lanczos(runtime, system.gram_contribution, data, steps, rng=fresh)
    T = krylov.tridiagonal()
    M_B, M_mean = _shared_grams(system, krylov, structure)
    M_A = (T - s * s * M_B) / (t * t)
    squares = np.stack([piece_sums(gx * gx, space.d), row_dots(gz, gz)], axis=1)
    whole = runtime.total(squares, riding=True)
    return Profile(
        krylov, M_A, M_B, M_mean,
        agreed_dots(runtime, krylov.basis, misfit),
        agreed_dots(runtime, krylov.basis, along_x),
        agreed_dots(runtime, krylov.basis, along_z),
        float(whole[0]), float(whole[1]), structure,
    )  # fmt: skip


def _unit(runtime: Runtime, vector: Array) -> Array:
    """A common vector divided by its norm (agreed upon), or zero."""
    norm = float(np.sqrt(agreed_dots(runtime, vector, vector)[0]))
    return vector / norm if norm > 0 else vector


def _shared_grams(
    system: AveragedSystem, krylov: Krylov, structure: Structure
) -> tuple[Array, Array]:
    """(W'(1/n sum B B')W, W' Bbar Bbar' W): one averaging of k q floats, one reduction."""
    k, runtime, coupling = krylov.steps, system.runtime, system.coupling
    if coupling.B.empty:
        return np.zeros((k, k)), np.zeros((k, k))
    if structure.multiples is not None:
        beta = structure.multiples
        return np.mean(beta**2) * np.eye(k), np.mean(beta) ** 2 * np.eye(k)
    q, count = coupling.q, len(coupling.problem.agents)
    images = np.zeros((count, k * q))
    grams = np.zeros((count, k * k))
    runtime.ledger.charge(B=k)
    for row, block in enumerate(coupling.problem.blocks("B")):
        if block is None:
            continue
        image = np.stack([multiply(block, v, adjoint=True) for v in krylov.basis])
        images[row] = image.ravel()
        grams[row] = (image @ image.T).ravel()
    total = runtime.total(grams, riding=True).reshape(k, k) / runtime.n
    mean = runtime.average(images).reshape(k, q)
    return total, runtime.agree(mean @ mean.T)
