"""The Ritz twin: APAPC itself, run without communication on a spectral model of the problem.

Each Ritz vector of S gives one mode with three coordinates (x part, mean of z, disagreement of
z), one coupled row (a, b, c) with a^2 + b^2 + c^2 = theta, and the consensus row (0, 0, 1). All
candidates run at once; the iteration at which a candidate's error passes the target is its
prediction. The rate formula of the theory ranks settings badly because it knows only the ends of
the spectrum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ccmac.inputs import Array
from ccmac.linalg.chebyshev import correction_interval
from ccmac.realizations.averaged.profile import Profile, chebyshev
from ccmac.realizations.base import apapc_steps
from ccmac.workspace.curvature import ScaledCurvature

LONGEST = 20000
NEGLIGIBLE = 1e-13  # of the top of S: rounding of the Krylov matrices
REACHABLE = 1e-24  # squared relative error that double precision can still reach


class Modes:
    """The spectral model at one scale: rows, curvature, gradient and misfit of every mode."""

    def __init__(
        self, profile: Profile, s: float, constants: ScaledCurvature, blocks: Array, n: int
    ) -> None:
        self.s, self.constants = s, constants
        mu_x, L_x, mu_z, L_z = blocks * np.array([1.0, 1.0, s * s, s * s])
        theta, vectors = profile.ritz(s)
        root = math.sqrt(n)
        parts = profile.M_A, s * s * profile.M_mean, s * s * (profile.M_B - profile.M_mean)
        noise = NEGLIGIBLE * float(theta.max(initial=0.0))
        a, b, c = (_root(np.einsum("kj,kl,lj->j", vectors, M, vectors), noise) for M in parts)
        g_x = root * _ratio(vectors.T @ profile.gradient_x, a)
        g_z = root * s * s * _ratio(vectors.T @ profile.gradient_z, b)
        misfit = root * (vectors.T @ profile.misfit)
        rest_x = math.sqrt(max(profile.rest_x - float(g_x @ g_x), 0.0))
        rest_z = s * math.sqrt(max(profile.rest_z - float(g_z @ g_z) / (s * s), 0.0))
        curvatures = sorted({(hx, hz) for hx in (mu_x, L_x) for hz in (mu_z, L_z)})
        share = 1.0 / math.sqrt(len(curvatures))
        rows, gradients, misfits, hessians = [], [], [], []
        for hx, hz in curvatures:
            h = np.array([hx, hz, hz + constants.augment])
            rows += [*np.stack([a, b, c], axis=1), np.zeros(3), np.zeros(3)]
            gradients += [
                *(share * np.stack([g_x, g_z, np.zeros_like(a)], axis=1)),
                np.array([share * rest_x, 0.0, 0.0]),
                np.array([0.0, share * rest_z, 0.0]),
            ]
            misfits += [*(share * misfit), 0.0, 0.0]
            hessians += [h] * (len(a) + 2)
        self.rows, self.gradients = np.array(rows), np.array(gradients)
        self.misfits, self.hessians = np.array(misfits), np.array(hessians)
        self.copies = len(curvatures)
        self.theta = theta
        self.solutions = self._solve()

    def _solve(self) -> Array:
        """min h w^2/2 + g w  s.t.  row w = -misfit, w_3 = 0, mode by mode."""
        h, g, k = self.hessians, self.gradients, self.rows
        flat = np.zeros_like(g)
        safe = np.maximum(h[:, :2], 1e-300)
        free = -g[:, :2] / safe
        gram = np.sum(k[:, :2] ** 2 / safe, axis=1)
        gap = -self.misfits - np.sum(k[:, :2] * free, axis=1)
        price = np.divide(gap, gram, out=np.zeros_like(gap), where=gram > 0)
        flat[:, :2] = free + k[:, :2] / safe * price[:, None]
        return flat


@dataclass(frozen=True)
class Setting:
    """One candidate: response and spread of the normalized channel 1 on the modes, outer degree."""

    modes: Modes
    response: Array  # q(theta) for the Ritz values theta of the modes
    low: float
    high: float
    outer: int
    weight: float  # bill of one iteration


def _root(squares: Array, noise: float) -> Array:
    """Square roots; what rounding left in place of a zero stays zero."""
    return np.sqrt(np.where(squares > noise, squares, 0.0))


def _ratio(top: Array, bottom: Array) -> Array:
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


def correction_matrices(setting: Setting) -> tuple[Array, Array]:
    """(P, offset).

    The correction of each mode is P w - offset, P = poly(G), G = q k k' + e3 e3'.
    """
    modes = setting.modes
    k = modes.rows
    q = np.concatenate([np.concatenate([setting.response, [0.0, 0.0]])] * modes.copies)
    gram = q[:, None, None] * k[:, :, None] * k[:, None, :]
    gram[:, 2, 2] += 1.0
    values, vectors = np.linalg.eigh(gram)
    centre, half = (setting.high + setting.low) / 2, (setting.high - setting.low) / 2
    poly = (
        1.0
        - chebyshev(setting.outer, (centre - values) / half)
        / chebyshev(setting.outer, np.array(centre / half))
        if half > 1e-14 * centre
        else np.minimum(values / centre, 1.0)
    )
    poly = np.where(values > 1e-13, poly, 0.0)
    P = np.einsum("mij,mj,mkj->mik", vectors, poly, vectors)
    return P, np.einsum("mij,mj->mi", P, modes.solutions)


@np.errstate(over="ignore", invalid="ignore")  # candidates may diverge; those are dropped
def predict(
    settings: list[Setting], target: float, measure: tuple[float, float],
    mind_the_time: Callable[[], object] = lambda: None,
) -> Array:  # fmt: skip
    """Iterations until the squared error, relative to the start, is at most ``target``.

    ``measure`` weighs the x and z coordinates of the error in the user's variables (times s^2 for
    z). Candidates that can no longer win are dropped (their prediction is inf). ``mind_the_time``
    is called now and then; what it raises ends the prediction.
    """
    count, modes = len(settings), [st.modes for st in settings]
    target = max(target, REACHABLE)
    P, offset = (np.stack(v) for v in zip(*map(correction_matrices, settings), strict=True))
    h = np.stack([m.hessians for m in modes])
    g = np.stack([m.gradients for m in modes])
    solution = np.stack([m.solutions for m in modes])
    weights = np.stack([[measure[0], measure[1] * m.s**2, 0.0] for m in modes])[:, None, :]
    steps = []
    for st in settings:
        low, high = correction_interval(st.low, st.high, st.outer)
        mu, L = st.modes.constants.mu, st.modes.constants.L
        steps.append([*apapc_steps(mu, L, low, high), mu])
    tau, eta, theta, rho = (np.array(v)[:, None, None] for v in zip(*steps, strict=True))
    bill = np.array([st.weight for st in settings])
    start = np.sum(weights * solution**2, axis=(1, 2))
    result = np.full(count, np.inf)
    alive = np.arange(count)
    w, wf, p = np.zeros_like(g), np.zeros_like(g), np.zeros_like(g)
    best = math.inf
    for iteration in range(1, LONGEST + 1):
        if iteration % 100 == 0:
            mind_the_time()
        wg = tau * w + (1 - tau) * wf
        half = (w - eta * (h * wg + g - rho * wg + p)) / (1 + eta * rho)
        r = theta * (np.einsum("cmij,cmj->cmi", P, half) - offset)
        p = p + r
        new = half - eta / (1 + eta * rho) * r
        wf = wg + 2 * tau / (2 - tau) * (new - w)
        w = new
        error = np.sum(weights * (w - solution) ** 2, axis=(1, 2))
        done = error <= target * start
        if done.any():
            result[alive[done]] = iteration
            best = min(best, float(np.min(iteration * bill[done])))
        keep = ~done & ((iteration + 1) * bill < 1.5 * best) & np.isfinite(error)
        if not keep.all():
            if not keep.any():
                break
            alive, bill, start = alive[keep], bill[keep], start[keep]
            P, offset, h, g, solution = (v[keep] for v in (P, offset, h, g, solution))
            weights, tau, eta, theta, rho = (v[keep] for v in (weights, tau, eta, theta, rho))
            w, wf, p = w[keep], wf[keep], p[keep]
    return result
