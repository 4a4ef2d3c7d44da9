"""Gradients for certificates: right to the rounding of their format, beside 300 bits."""

from __future__ import annotations

import math
from typing import Any

import flint
import numpy as np
import pytest
from flint import arb

from ccmac.linalg.extended import gradient_rounding
from ccmac.objectives import Huber, LeastSquares, Logistic, Quadratic, Ridge, SquaredDistance, Sum

N = 6
M = np.random.default_rng(1).standard_normal((9, N))
Y = np.random.default_rng(2).standard_normal(9)
H = M.T @ M
FUNCTIONS: dict[str, Any] = {
    "quadratic": Quadratic(0.5 * (H + H.T), M.T @ Y),
    "least squares": LeastSquares(M, Y),
    "ridge": Ridge(M, Y, 0.3),
    "distance": SquaredDistance(0.7, Y[:N]),
    "huber": Huber(M, Y, 0.5, ridge=0.2),
    "logistic": Logistic(M, np.sign(Y), 0.5, ridge=0.1),
    "sum": Sum(LeastSquares(M, Y), SquaredDistance(0.3)),
}


def real(value: Any) -> arb:
    high = float(value)
    return arb(high) + arb(float(value - np.longdouble(high)))


def rows(matrix: Any, v: list[arb]) -> list[arb]:
    return [sum((arb(float(a)) * t for a, t in zip(row, v, strict=True)), arb(0)) for row in matrix]


def exact(f: Any, v: list[arb]) -> list[arb]:
    """grad f at v, from the formulas."""
    if isinstance(f, Sum):
        parts = [exact(part, v) for part in f.parts]
        return [sum(column, arb(0)) for column in zip(*parts, strict=True)]
    if isinstance(f, Quadratic):
        return [a - arb(float(b)) for a, b in zip(rows(f.H, v), f.g, strict=True)]
    if isinstance(f, SquaredDistance):
        assert f.centre is not None or f.weight == 0.3
        centre = np.zeros(N) if f.centre is None else f.centre
        return [arb(f.weight) * (t - arb(float(c))) for t, c in zip(v, centre, strict=True)]
    slopes = []
    for u, y in zip(rows(f.M, v), f.y, strict=True):
        label = arb(float(y))
        if isinstance(f, Logistic):
            slope = -label / (1 + (label * u).exp())
        else:
            slope = u - label
            if isinstance(f, Huber) and abs(float(slope)) > f.delta:
                slope = arb(math.copysign(f.delta, float(slope)))
        slopes.append(arb(float(f.weight)) * slope)
    ridge = arb(float(f.ridge))
    return [a + ridge * t for a, t in zip(rows(f.M.T, slopes), v, strict=True)]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("seed", range(3))
def test_gradients_are_right_to_the_rounding_of_the_long_format(name: str, seed: int) -> None:
    f = FUNCTIONS[name]
    random = np.random.default_rng(seed)
    v = random.standard_normal(N) + np.longdouble(2.0) ** -60 * random.standard_normal(N)
    said = f.precise_at(v)
    assert said.dtype == np.longdouble
    before = flint.ctx.prec
    flint.ctx.prec = 300
    try:
        true = exact(f, [real(t) for t in v])
        off = math.sqrt(sum(float(real(a) - b) ** 2 for a, b in zip(said, true, strict=True)))
    finally:
        flint.ctx.prec = before
    assert off <= gradient_rounding(said, v, f.constants(N)[0])
    assert off <= 1e-3 * np.finfo(float).eps * float(np.linalg.norm(said.astype(float)) + 10)


def test_an_unsymmetric_matrix_means_its_symmetric_part() -> None:
    f = Quadratic(np.array([[2.0, 1.0], [1.0 + 2.0**-52, 3.0]]), np.zeros(2))
    assert (f.H == f.H.T).all()
    with pytest.raises(Exception, match="not symmetric"):
        Quadratic(np.array([[2.0, 1.0], [1.1, 3.0]]), np.zeros(2))
