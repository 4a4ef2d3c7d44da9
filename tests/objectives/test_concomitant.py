"""Huber's loss with its scale: the inner minimum, its gradient and curvature."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from ccmac.errors import InputError
from ccmac.objectives import ConcomitantHuber

RNG = np.random.default_rng(5)
Y = RNG.normal(size=40)
Y[:6] += 30.0
WEIGHTS = RNG.uniform(0.2, 2.0, size=40)
V = RNG.normal(size=40)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_minimum_over_offset_and_scale(intercept: bool) -> None:
    loss = ConcomitantHuber(Y, 1.35, 1e-4, WEIGHTS, intercept)

    def joint(at: np.ndarray) -> float:
        b = at[0] if intercept else 0.0
        sigma = np.exp(at[1])
        t = np.abs(V + b - Y) / sigma
        H = np.where(t <= 1.35, 0.5 * t**2, 1.35 * t - 0.5 * 1.35**2)
        return float(WEIGHTS @ (sigma * (0.5 + H)))

    found = scipy.optimize.minimize(
        joint, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14}
    )
    assert loss.value_at(V) == pytest.approx(found.fun, rel=1e-9)
    assert loss.fitted(V)[1] == pytest.approx(np.exp(found.x[1]), rel=1e-4)


@pytest.mark.parametrize("least", [1e-4, 50.0])  # free, at its least
def test_the_curvature_is_that_of_the_gradient(least: float) -> None:
    loss = ConcomitantHuber(Y, 1.35, least, WEIGHTS)
    E = RNG.normal(size=(3, 40))
    h = 1e-6
    rises = np.array([(loss.gradient_at(V + h * e) - loss.gradient_at(V - h * e)) for e in E])
    np.testing.assert_allclose(loss.gram(V, E), rises @ E.T / (2 * h), rtol=1e-6, atol=1e-7)


def test_an_exact_fit_has_the_least_scale() -> None:
    y = np.where(np.arange(40) < 4, 9.0, V - 3.0)  # few enough outliers
    assert ConcomitantHuber(y, 1.35, 1e-6).fitted(V) == (pytest.approx(-3.0), 1e-6)


def test_an_epsilon_without_minimum_is_refused() -> None:
    with pytest.raises(InputError, match="epsilon"):
        ConcomitantHuber(Y, 0.5)
    with pytest.raises(InputError, match="weight"):
        ConcomitantHuber(Y, weight=[1.0, 2.0])
