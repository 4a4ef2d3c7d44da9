"""Closed forms of the two-channel geometry: weighted projectors, scalar balance, envelopes."""

from __future__ import annotations

import math

from ccmac.errors import InputError


def weighted_projector_spectrum(theta: float, a: float, b: float) -> tuple[float, float]:
    """(lambda_-, lambda_+) of a P_U + b P_V on a principal plane of angle theta.

    lambda_+- = (a + b +- sqrt((a-b)^2 + 4ab cos^2 theta)) / 2  (Lemma weighted-projectors); the
    lower one is written as ab sin^2 theta / lambda_+, which does not cancel.
    """
    if not (a > 0 and b > 0):
        raise InputError(f"weighted projectors: a = {a} and b = {b} must be positive")
    upper = (a + b + math.hypot(a - b, 2 * math.sqrt(a * b) * math.cos(theta))) / 2
    return a * b * math.sin(theta) ** 2 / upper, upper


def scalar_balance(mu_1: float, L_1: float, mu_2: float, L_2: float) -> float:
    """eta* = (mu_1 L_1 / (mu_2 L_2))^{1/4}, the best scalar in [M_1; eta M_2] (Theorem angle).

    mu_j and L_j are the extreme positive squared singular values of M_j; optimal for the envelope
    of :func:`condition_envelope` without common directions.
    """
    _positive(mu_1, L_1, mu_2, L_2)
    return math.sqrt(math.sqrt(mu_1 * L_1 / (mu_2 * L_2)))


def condition_envelope(
    mu: tuple[float, float],
    L: tuple[float, float],
    c: float,
    eta: float = 1.0,
    *,
    common: bool = False,
) -> tuple[float, float]:
    """(Lambda_eta, delta_eta): bounds on the squared singular values of [M_1; eta M_2].

    Theorem angle: the stack's condition is at most Lambda/delta. ``common`` says that the two row
    spaces share an exact direction, where the weights add up.
    """
    _positive(mu[0], L[0], mu[1], L[1])
    if not 0 <= c < 1 or not eta > 0:
        raise InputError(f"envelope: need 0 <= c < 1 and eta > 0, got c = {c}, eta = {eta}")
    theta = math.acos(c)
    lower = weighted_projector_spectrum(theta, mu[0], eta**2 * mu[1])[0]
    if common:
        return L[0] + eta**2 * L[1], lower
    return weighted_projector_spectrum(theta, L[0], eta**2 * L[1])[1], lower


def _positive(mu_1: float, L_1: float, mu_2: float, L_2: float) -> None:
    if not (0 < mu_1 <= L_1 and 0 < mu_2 <= L_2):
        raise InputError(
            f"channel bounds: need 0 < mu <= L, got ({mu_1}, {L_1}) and ({mu_2}, {L_2})"
        )
