"""The step rule of APAPC, shared by the method and by the twin that plans it."""

from __future__ import annotations

import math


def apapc_steps(mu: float, L: float, low: float, high: float) -> tuple[float, float, float]:
    """(tau, eta, theta) for a correction with spectrum in [low, high] (Salim et al. 2022)."""
    tau = min(1.0, 0.5 * math.sqrt(high / low * mu / L))
    eta = 1.0 / (4.0 * tau * L)
    return tau, eta, 1.0 / (eta * high)
