"""One or more examples of every registered objective, on x in R^3, z in R^4."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from ccmac.objectives import (
    L1,
    Box,
    ConcomitantHuber,
    Custom,
    ElasticNet,
    Halfspace,
    Hinge,
    Huber,
    Intercept,
    LeastSquares,
    Limited,
    Logistic,
    MaxAffine,
    Multinomial,
    Objective,
    Pinball,
    Quadratic,
    Ridge,
    Separable,
    Simplex,
    SquaredDistance,
    Sum,
    Tweedie,
    named,
)

D = 3
Q = 4
N = D + Q


def _matrix(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, columns))


def _sparse(rows: int, columns: int) -> sp.csr_array:
    dense = _matrix(rows, columns, 5)
    return sp.csr_array(np.where(np.abs(dense) > 0.6, dense, 0.0))


def _y(size: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(size)


def _signs(size: int) -> np.ndarray:
    return np.where(np.random.default_rng(2).standard_normal(size) > 0, 1.0, -1.0)


def _weights(size: int) -> np.ndarray:
    return np.random.default_rng(4).uniform(0.2, 2.0, size)


def _psd(size: int, rank: int) -> np.ndarray:
    root = _matrix(rank, size, 3)
    return root.T @ root


@named("tests: length")
def _length(x: np.ndarray, z: np.ndarray) -> float:
    return float(np.sqrt(1 + x**2).sum() + z @ z)


@named("tests: slope of the length")
def _slope(x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return x / np.sqrt(1 + x**2), 2 * z


EXAMPLES: dict[str, list[Callable[[], Objective]]] = {
    "Tweedie": [
        lambda: Tweedie(y=np.arange(float(N))),
        lambda: Tweedie(y=_weights(N), weight=_weights(N), power=2.0, ridge=0.3),
        lambda: Tweedie(_matrix(9, N), np.abs(_y(9)), power=1.5, offset=_y(9)),
    ],
    "Custom": [lambda: Custom(_length, _slope, 2.0, dim=N)],
    "SquaredDistance": [
        lambda: SquaredDistance(0.7),
        lambda: SquaredDistance(1.5, _y(N)),
        lambda: SquaredDistance(0.0),
    ],
    "Quadratic": [
        lambda: Quadratic(_psd(N, 9), _y(N)),
        lambda: Quadratic(_psd(N, 4), _psd(N, 4) @ _y(N)),
        lambda: Quadratic(np.linspace(0.5, 2.0, N), _y(N)),
        lambda: Quadratic(sp.csr_array(_psd(N, 2) + np.eye(N)), _y(N)),
    ],
    "LeastSquares": [
        lambda: LeastSquares(_matrix(10, N), _y(10), 0.3),
        lambda: LeastSquares(_matrix(4, N), _y(4)),
        lambda: LeastSquares(_sparse(9, N), _y(9)),
        lambda: LeastSquares(_sparse(4, N), _y(4)),
    ],
    "Limited": [
        lambda: Limited(SquaredDistance(0.7), np.full(N, -1.0), np.full(N, np.inf), 1, Q),
        lambda: Limited(
            Quadratic(_psd(N, 9), _y(N)), np.full(N, -np.inf), np.full(N, np.inf), 0, Q
        ),
    ],
    "Ridge": [
        lambda: Ridge(_matrix(10, N), _y(10), 0.1, 0.5),
        lambda: Ridge(_sparse(5, N), _y(5), 0.2),
    ],
    "Logistic": [
        lambda: Logistic(_matrix(10, N), _signs(10), 0.5),
        lambda: Logistic(_sparse(10, N), _signs(10), 0.5, ridge=0.1),
        lambda: Logistic(y=_signs(N), weight=3.0),
        lambda: Logistic(y=_signs(N), ridge=0.3),
        lambda: Logistic(y=_signs(N), weight=_weights(N), ridge=0.3),
        lambda: Logistic(_matrix(10, N), _signs(10), _weights(10)),
    ],
    "Huber": [
        lambda: Huber(_matrix(10, N), _y(10), 0.8),
        lambda: Huber(_sparse(10, N), None, 0.8, 0.5, 0.1),
        lambda: Huber(delta=0.5),
        lambda: Huber(y=_y(N), delta=0.5, weight=2.0, ridge=0.3),
        lambda: Huber(delta=0.5, weight=_weights(N)),
    ],
    "Hinge": [
        lambda: Hinge(_matrix(10, N), _signs(10), 0.5),
        lambda: Hinge(_sparse(10, N), _signs(10), ridge=0.1),
        lambda: Hinge(y=_signs(N)),
        lambda: Hinge(y=_signs(N), weight=0.5, ridge=0.3),
        lambda: Hinge(_matrix(10, N), _signs(10), _weights(10)),
    ],
    "Multinomial": [lambda: Multinomial([2], N), lambda: Multinomial([4], N, [1.7])],
    "ConcomitantHuber": [
        lambda: ConcomitantHuber(_y(N), 1.35, 0.2, _weights(N)),
        lambda: ConcomitantHuber(_y(N), 1.1, 0.05, 0.7, intercept=False),
    ],
    "Pinball": [
        lambda: Pinball(_matrix(10, N), _y(10), 0.3, 0.5),
        lambda: Pinball(y=_y(N), quantile=0.8, weight=_weights(N), ridge=0.2),
    ],
    "Intercept": [
        lambda: Intercept(Pinball(y=_y(N), quantile=0.3, weight=_weights(N))),
        lambda: Intercept(Logistic(y=_signs(N))),
        lambda: Intercept(Logistic(y=_signs(N), weight=_weights(N))),
        lambda: Intercept(Huber(y=_y(N), delta=0.4, weight=_weights(N))),
        lambda: Intercept(Hinge(y=_signs(N))),
        lambda: Intercept(Hinge(y=_signs(N), weight=_weights(N))),
        lambda: Intercept(SquaredDistance(0.7, _y(N))),
        lambda: Intercept(Quadratic(_weights(N), _y(N))),
    ],
    "L1": [lambda: L1(0.5), lambda: L1(1.0, _y(N))],
    "ElasticNet": [lambda: ElasticNet(0.5, 0.2), lambda: ElasticNet(0.5, 0.0)],
    "Box": [
        lambda: Box(-0.5, 0.5),
        lambda: Box(np.full(N, -0.3), np.inf),
        lambda: Box(high=np.linspace(0, 1, N)),
    ],
    "Halfspace": [lambda: Halfspace(_y(N), 0.5), lambda: Halfspace(np.arange(N), -1.0)],
    "Simplex": [Simplex, lambda: Simplex(2.5)],
    "MaxAffine": [lambda: MaxAffine(_matrix(6, N), _y(6)), lambda: MaxAffine(_sparse(6, N))],
    "Sum": [
        lambda: Logistic(y=_signs(N)) + SquaredDistance(0.2, _y(N)),
        lambda: LeastSquares(_matrix(5, N), _y(5)) + SquaredDistance(0.3),
        lambda: Sum(LeastSquares(_sparse(5, N), _y(5)), Quadratic(np.ones(N), _y(N))),
        lambda: Sum(L1(0.3), Box(-0.4, 0.6), SquaredDistance(0.5, _y(N))),
        lambda: Sum(Quadratic(np.linspace(0, 2, N), _y(N)), L1(0.2, _y(N)), Box(-1, 0.7)),
        lambda: Sum(Logistic(y=_signs(N)), Huber(y=_y(N), delta=0.4), Hinge(y=_signs(N))),
        lambda: Sum(ElasticNet(0.1, 0.3), Box(0.0, 0.6), Halfspace(np.arange(N), 3.0)),
        lambda: MaxAffine(_matrix(6, N)) + SquaredDistance(0.3),
        lambda: Huber(_matrix(6, N)) + Logistic(_matrix(6, N, 8), _signs(6)),
    ],
    "Separable": [
        lambda: Separable(SquaredDistance(0.1), Logistic(y=_signs(Q), ridge=0.1)),
        lambda: Separable(LeastSquares(_matrix(6, D), _y(6)), SquaredDistance(1.0, _y(Q))),
        lambda: Separable(z=Huber(y=_y(Q))),
        lambda: Separable(x=L1(0.2), z=Quadratic(_psd(Q, 6), _y(Q))),
        lambda: Separable(x=Box(-1, 1), z=Hinge(y=_signs(Q))),
        Separable,
    ],
}
CASES = [(kind, k) for kind, makers in EXAMPLES.items() for k in range(len(makers))]


def build(case: tuple[str, int]) -> Objective:
    """The example named by ``case``."""
    kind, k = case
    return EXAMPLES[kind][k]()
