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
from typing import NamedTuple

import numpy as np

from ccmac.inputs import Array
from ccmac.linalg.chebyshev import correction_interval
from ccmac.realizations.averaged.profile import Profile
from ccmac.realizations.base import apapc_steps
from ccmac.workspace.curvature import ScaledCurvature

LONGEST = 20000
NEGLIGIBLE = 1e-13  # of the top of S: rounding of the Krylov matrices
SLOWER = 1.5  # times the best bill: candidates beyond are not followed any further
REACHABLE = 1e-24  # squared relative error that double precision can still reach


class Modes:
    """The spectral model at one scale: rows, curvature, gradient and misfit of every mode."""

    def __init__(
        self, profile: Profile, s: float, constants: ScaledCurvature, blocks: Array, n: int
    ) -> None:
        self.s = s
        self.constants = constants
        mu_x, L_x, mu_z, L_z = blocks
        theta, vectors = profile.ritz(s)
        root = math.sqrt(n)
        parts = profile.M_A, s * s * profile.M_mean, s * s * (profile.M_B - profile.M_mean)
        noise = NEGLIGIBLE * float(theta.max(initial=0.0))
        a, b, c = (_root(np.sum(vectors * (M @ vectors), axis=0), noise) for M in parts)
        g_x = root * _ratio(vectors.T @ profile.gradient_x, a)
        g_z = root * s * s * _ratio(vectors.T @ profile.gradient_z, b)
        misfit = root * (vectors.T @ profile.misfit)
        rest_x = math.sqrt(max(profile.rest_x - float(g_x @ g_x), 0.0))
        rest_z = s * math.sqrt(max(profile.rest_z - float(g_z @ g_z) / (s * s), 0.0))
        # As many at every scale, also where rounding makes two of them alike.
        curvatures = sorted({(hx, hz) for hx in (mu_x, L_x) for hz in (mu_z, L_z)})
        self.copies = len(curvatures)
        share = 1.0 / math.sqrt(self.copies)
        count = len(a)
        (rows, gradients), misfits = np.zeros((2, count + 2, 3)), np.zeros(count + 2)
        rows[:count] = np.stack([a, b, c], axis=1)
        gradients[:count, 0], gradients[:count, 1] = share * g_x, share * g_z
        gradients[count, 0], gradients[count + 1, 1] = share * rest_x, share * rest_z
        misfits[:count] = share * misfit
        h = np.array([[hx, s * s * hz, s * s * hz + constants.augment] for hx, hz in curvatures])
        self.rows, self.gradients = (np.tile(v, (self.copies, 1)) for v in (rows, gradients))
        self.misfits, self.hessians = np.tile(misfits, self.copies), h.repeat(count + 2, axis=0)
        self.theta = theta
        self.solutions = self._solve()

    def spread(self, response: Array) -> Array:
        """A response to the Ritz values, for all modes."""
        return np.tile(np.concatenate([response, [0.0, 0.0]]), self.copies)

    def _solve(self) -> Array:
        """min h w^2/2 + g w  s.t.  row w = -misfit, w_3 = 0, mode by mode."""
        h = self.hessians
        g = self.gradients
        k = self.rows
        flat = np.zeros_like(g)
        safe = np.maximum(h[:, :2], 1e-300)
        free = -g[:, :2] / safe
        gram = np.sum(k[:, :2] ** 2 / safe, axis=1)
        gap = -self.misfits - np.sum(k[:, :2] * free, axis=1)
        price = np.divide(gap, gram, out=np.zeros_like(gap), where=gram > 0)
        flat[:, :2] = free + k[:, :2] / safe * price[:, None]
        return flat


class Setting(NamedTuple):
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


def chebyshev(degree: Array | int, x: Array) -> Array:
    """T_degree(x), on [-1, 1] and beyond."""
    size = np.abs(x)
    out = np.cos(degree * np.arccos(np.clip(x, -1, 1)))
    far = size > 1
    if far.any():
        outside = np.cosh(degree * np.arccosh(np.maximum(size, 1.0)))
        out = np.where(far, np.sign(x) ** degree * outside, out)
    return np.asarray(out)


def semi_response(theta: Array, low: float, high: float, steps: Array) -> Array:
    """q(theta) of the semi-iterations, one row for each number of steps."""
    if high <= low:
        return np.full((len(steps), len(theta)), 1.0 / low)
    centre = (high + low) / 2
    half = (high - low) / 2
    x = (centre - theta) / half
    residual = chebyshev(steps[:, None], x) / chebyshev(steps, np.array(centre / half))[:, None]
    return np.where(theta > 0, (1 - residual) / np.maximum(theta, 1e-300), 1.0 / centre)


def corrections(settings: list[Setting]) -> Array:
    """P = poly(G), G = q k k' + e3 e3', of all candidates and modes, (3, 3, candidates, modes).

    G acts on the plane of u = (a, b, 0)/|.| and e3, where P is the 2 x 2 matrix
    [[uu, u3], [u3, 33]] = alpha I + beta G; alpha + beta x is the line through poly at the
    eigenvalues of G.
    """
    k = np.stack([st.modes.rows for st in settings])
    q = np.stack([st.modes.spread(st.response) for st in settings])
    length = np.hypot(k[..., 0], k[..., 1])
    a, b = (_ratio(k[..., j], length) for j in (0, 1))
    uu = q * length**2
    u3 = q * length * k[..., 2]
    e3 = q * k[..., 2] ** 2 + 1.0
    mean = (uu + e3) / 2
    half = np.hypot((uu - e3) / 2, u3)
    high = mean + half
    low = np.maximum(_ratio(uu * e3 - u3 * u3, high), 0.0)
    apart = high - low
    # Where the two coincide, G is a multiple of I there and the slope does not matter.
    f_high = _correction(settings, high)
    f_low = _correction(settings, low)
    beta = np.where(apart > 1e-9 * high, _ratio(f_high - f_low, apart), 0.0)
    alpha = f_high - beta * high
    uu = alpha + beta * uu
    u3 = beta * u3
    e3 = alpha + beta * e3
    ab = a * b * uu
    a3 = a * u3
    b3 = b * u3
    return np.stack([a * a * uu, ab, a3, ab, b * b * uu, b3, a3, b3, e3]).reshape(3, 3, *a.shape)


def _correction(settings: list[Setting], values: Array) -> Array:
    """poly of every candidate at its row of values."""
    low, high, outer = (
        np.array(v)[:, None]
        for v in zip(*((s.low, s.high, s.outer) for s in settings), strict=True)
    )
    centre = (high + low) / 2
    half = (high - low) / 2
    narrow = half <= 1e-14 * centre
    safe = np.where(narrow, centre, half)
    poly = 1.0 - chebyshev(outer, (centre - values) / safe) / chebyshev(outer, centre / safe)
    poly = np.where(narrow, np.minimum(values / centre, 1.0), poly)
    return np.where(values > 1e-13, poly, 0.0)


@np.errstate(over="ignore", invalid="ignore")  # candidates may diverge; those are dropped
def predict(
    settings: list[Setting],
    target: float,
    measure: tuple[float, float],
    mind_the_time: Callable[[], object] = lambda: None,
    *,
    by_price: bool = False,
    known: float = math.inf,
) -> Array:
    """Iterations until the squared error, relative to the start, is at most ``target``.

    ``measure`` weighs the x and z coordinates of the error in the user's variables (times s^2 for
    z); ``by_price`` takes the error of the minimisers at the current price. Candidates that can no
    longer win, also against a bill that is ``known``, are dropped (their prediction is inf).
    ``mind_the_time`` is called now and then; what it raises ends the prediction.
    """
    count = len(settings)
    modes = [st.modes for st in settings]
    h, price, solution = (
        np.ascontiguousarray(np.stack(v).transpose(2, 0, 1))
        for v in zip(*((m.hessians, m.gradients, m.solutions) for m in modes), strict=True)
    )
    weights = np.array([[measure[0], measure[1] * m.s**2, 0.0] for m in modes]).T[:, :, None]
    tau, step, shrunk, theta, rho = (v[:, None] for v in _steps(settings))
    ahead = 2 * tau / (2 - tau)
    bill = np.array([st.weight for st in settings])
    P = theta * corrections(settings)
    offset = _applied(P, solution)
    curved = h - rho
    weights = np.sqrt(weights)
    # The error is that of ``price`` or of w, times ``gauge``, plus ``away``.
    away = weights * solution
    enough = max(target, REACHABLE) * _squares(away)
    gauge = weights / np.maximum(h, 1e-300) if by_price else weights + np.zeros_like(h)
    away = away if by_price else -away
    result = np.full(count, np.inf)
    alive = np.arange(count)
    best = known
    w = np.zeros_like(h)
    behind = np.zeros_like(h)
    for iteration in range(1, LONGEST + 1):
        if iteration % 100 == 0:
            mind_the_time()
        mixed = behind + tau * (w - behind)
        half = shrunk * w - step * (curved * mixed + price)
        r = _applied(P, half) - offset
        price += r
        half -= step * r
        behind = mixed + ahead * (half - w)
        w = half
        error = _squares((price if by_price else w) * gauge + away)
        done = error <= enough
        if done.any():
            result[alive[done]] = iteration
            best = min(best, float(np.min(iteration * bill[done])))
        elif (iteration + 1) * bill.max() < SLOWER * best and math.isfinite(error.sum()):
            continue
        keep = ~done & ((iteration + 1) * bill < SLOWER * best) & np.isfinite(error)
        if not keep.any():
            break
        P = P[:, :, keep]
        alive = alive[keep]
        bill, enough, tau, step, shrunk, ahead = (
            v[keep] for v in (bill, enough, tau, step, shrunk, ahead)
        )
        curved, offset, gauge, away, price, w, behind = (
            v[:, keep] for v in (curved, offset, gauge, away, price, w, behind)
        )
    return result


def _steps(settings: list[Setting]) -> Array:
    """(tau, eta/(1 + eta mu), 1/(1 + eta mu), theta, mu) of APAPC, candidate by candidate."""
    found = []
    for st in settings:
        mu = st.modes.constants.mu
        L = st.modes.constants.L
        tau, eta, theta = apapc_steps(mu, L, *correction_interval(st.low, st.high, st.outer))
        shrunk = 1.0 / (1.0 + eta * mu)
        found.append((tau, eta * shrunk, shrunk, theta, mu))
    return np.array(found).T


def _applied(P: Array, w: Array) -> Array:
    """P w for vectors (3, candidates, modes)."""
    return np.asarray(np.einsum("ijck,jck->ick", P, w))


def _squares(off: Array) -> Array:
    """Of the norms, candidate by candidate."""
    return np.asarray(np.einsum("ick,ick->c", off, off))
