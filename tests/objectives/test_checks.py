"""The shipped checks notice what they are meant to notice."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import ccmac
from ccmac.errors import AssumptionWarning, InputError
from ccmac.objectives import Custom, SquaredDistance
from ccmac.objectives.checks import check_problem, gradient_slope

D = 3
Q = 4


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def quartic(factor: float = 1.0) -> Custom:
    """A smooth f whose gradient is off by ``factor``."""
    return Custom(
        lambda x, z: float(np.sum(np.cosh(x)) + np.sum(np.cosh(z))),
        lambda x, z: (factor * np.sinh(x), factor * np.sinh(z)),
        smoothness=1e9,
        strong_convexity=0.0,
    )


def test_slope_tells_a_wrong_gradient() -> None:
    assert gradient_slope(quartic(), D, Q, rng()) == pytest.approx(2.0, abs=0.05)
    assert gradient_slope(quartic(1.01), D, Q, rng()) < 1.5
    assert gradient_slope(quartic(-1.0), D, Q, rng()) < 1.5


def test_slope_of_an_affine_function_is_infinite() -> None:
    zero = SquaredDistance(0.0)
    assert gradient_slope(zero, D, Q, rng()) == math.inf


def _bowl(smoothness: float, strong_convexity: float, sign: float = 1.0) -> Custom:
    curvature = sign * np.array([1.0, 2.0, 3.0])
    return Custom(
        lambda x, z: float(0.5 * curvature @ x**2 + z @ z),
        lambda x, z: np.concatenate([curvature * x, 2 * z]),
        smoothness,
        strong_convexity,
        dim=D + Q,
    )


def problem(objective: Custom) -> ccmac.Problem:
    quiet = ccmac.Agent(SquaredDistance(1.0), A=np.zeros((1, D)))
    return ccmac.Problem([quiet, ccmac.Agent(objective, A=np.ones((1, D)), B=np.ones((1, Q)))])


def test_a_wrong_gradient_is_named_before_a_run() -> None:
    assert check_problem(problem(_bowl(3.0, 1.0))) == 1
    with pytest.warns(AssumptionWarning, match=r"^agent 1.*value and gradient disagree"):
        check_problem(problem(quartic(1.1)))


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        (_bowl(2.5, 1.0), r"rate (2\.9|3).* 2\.5;"),
        (_bowl(3.0, 1.8), r"less than .*convexity 1\.8"),
        (_bowl(9.0, 0.0, sign=-1.0), "not convex"),
        (_bowl(3.0, 1.0), "^$"),
    ],
)
def test_gradients_seen_refute_constants(objective: Custom, words: str) -> None:
    for u in np.concatenate([np.eye(D + Q), -np.eye(D + Q)]):
        objective.gradient(np.zeros(D), np.zeros(Q))
        objective.gradient(u[:D], u[D:])
    assert re.search(words, objective.refuted())


def test_only_custom_objectives_are_probed() -> None:
    agents = [ccmac.Agent(SquaredDistance(1.0), B=np.ones((1, 2)))]
    assert check_problem(ccmac.Problem(agents)) == 0


def test_nonsmooth_and_proximal_custom_objectives() -> None:
    absolute = Custom(
        lambda x, z: float(np.abs(x).sum() + np.abs(z).sum()),
        lambda x, z: (np.sign(x), np.sign(z)),
        smoothness=math.inf,
        lipschitz=math.sqrt(D + Q),
        prox=lambda x, z, t, s: (x - np.clip(x, -t, t), z - np.clip(z, -s, s)),
    )
    assert absolute.capabilities == {"subgradient", "prox"}
    assert absolute.lipschitz(D, Q) == math.sqrt(D + Q)
    assert check_problem(problem(absolute)) > 0
    only_prox = Custom(lambda x, z: 0.0, None, math.inf, prox=lambda x, z, t, s: (x, z))
    assert only_prox.capabilities == {"prox"}
    assert check_problem(problem(only_prox)) == 0


def test_custom_accepts_both_shapes_of_gradient_and_copies() -> None:
    buffer = np.zeros(D + Q)
    objective = Custom(lambda x, z: 0.0, lambda x, z: buffer, 1.0, 0.0)
    gx, gz = objective.gradient(np.ones(D), np.ones(Q))
    buffer += 1.0
    assert not gx.any()
    assert not gz.any()
    assert (len(gx), len(gz)) == (D, Q)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.zeros(5), "returned 5 entries but x has 3 and z has 4"),
        ((np.zeros(3), np.zeros(3)), r"blocks of \[3, 3\] entries; x has 3 and z has 4"),
        ((np.zeros(3),), r"blocks of \[3\] entries"),
        ("wrong", "not numeric"),
    ],
)
def test_custom_refuses_a_gradient_of_wrong_shape(result: object, message: str) -> None:
    objective = Custom(lambda x, z: 0.0, lambda x, z: result, 1.0, 0.0)
    with pytest.raises(InputError, match=message):
        objective.gradient(np.ones(D), np.ones(Q))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, abs, 1.0, 0.0), "value"),
        ((abs, None, 1.0, 0.0), "gradient"),
        ((abs, abs, -1.0, 0.0), "smoothness"),
        ((abs, abs, math.nan, 0.0), "smoothness"),
        ((abs, abs, "1", 0.0), "smoothness"),
        ((abs, abs, 1.0, math.inf), "strong_convexity"),
        ((abs, abs, 1.0, 2.0), "strong_convexity"),
    ],
)
def test_custom_refuses_bad_declarations(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(InputError, match=f"Custom, {message}"):
        Custom(*arguments)
