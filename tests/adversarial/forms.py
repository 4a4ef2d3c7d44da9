"""Quadratic objectives given otherwise than by a symmetric H: their exact H, g and constant, and
families of them. Numbers have all of their 53 bits, so that whatever forms M'M in doubles rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from adversarial.draft import Array, Draft, Form
from adversarial.families import Random, base, family, powers
from ccmac.objectives import LeastSquares, Ridge, Separable, SquaredDistance, Sum
from ccmac.objectives.base import Function


@dataclass
class Part:
    """A function of one vector, its exact form, and the sizes of the terms of its value."""

    function: Function
    H: list[list[Fraction]]
    g: list[Fraction]
    constant: Fraction = Fraction(0)
    sizes: tuple[Array, Array, float] | None = None

    def form(self) -> Form:
        """As a function of (x, z)."""
        return Form(self.function, self.H, self.g, self.constant, self.sizes)


def exact(values: Array) -> list[Fraction]:
    """As they are."""
    return [Fraction(float(v)) for v in values]


def squares(M: Array, y: Array, weight: float = 1.0, ridge: float = 0.0, kind: int = 0) -> Part:
    """weight/2 ||Mv - y||^2 + ridge/2 ||v||^2; ``kind`` 1: M stored sparse."""
    rows = [exact(row) for row in M]
    targets = exact(y)
    w = Fraction(weight)
    r = Fraction(ridge)
    size = M.shape[1]
    H = [
        [
            w * sum((row[j] * row[k] for row in rows), Fraction(0)) + r * (j == k)
            for k in range(size)
        ]
        for j in range(size)
    ]
    g = [w * sum((row[j] * t for row, t in zip(rows, targets, strict=True))) for j in range(size)]
    stored = sp.csr_array(M) if kind == 1 else M
    function = Ridge(stored, y, ridge, weight) if ridge else LeastSquares(stored, y, weight)
    A = np.abs(M)
    t = np.abs(y)
    sizes = weight * A.T @ A + ridge * np.eye(size), weight * A.T @ t, weight * float(t @ t)
    return Part(function, H, g, w / 2 * sum(t * t for t in targets), sizes)


def distance(centre: Array, weight: float) -> Part:
    """weight/2 ||v - centre||^2."""
    w = Fraction(weight)
    points = exact(centre)
    size = len(centre)
    H = [[w * (j == k) for k in range(size)] for j in range(size)]
    g = [w * c for c in points]
    sizes = weight * np.eye(size), weight * np.abs(centre), weight * float(centre @ centre)
    function = SquaredDistance(weight, centre)
    return Part(function, H, g, w / 2 * sum(c * c for c in points), sizes)


def added(*parts: Part) -> Part:
    """The sum."""
    size = range(len(parts[0].g))
    H = [[sum((p.H[j][k] for p in parts), Fraction(0)) for k in size] for j in size]
    g = [sum((p.g[j] for p in parts), Fraction(0)) for j in size]
    known = [p.sizes for p in parts]
    sizes = tuple(sum(s[k] for s in known if s is not None) for k in range(3))
    constant = sum((p.constant for p in parts), Fraction(0))
    return Part(Sum(*(p.function for p in parts)), H, g, constant, sizes)  # type: ignore[arg-type]


def side_by_side(x: Part, z: Part) -> Form:
    """g(x) + h(z)."""
    d = len(x.g)
    q = len(z.g)
    H = [row + [Fraction(0)] * q for row in x.H] + [[Fraction(0)] * d + row for row in z.H]
    known = [p.sizes or (np.zeros((len(p.g),) * 2), np.zeros(len(p.g)), 0.0) for p in (x, z)]
    whole = np.zeros((d + q, d + q))
    whole[:d, :d], whole[d:, d:] = known[0][0], known[1][0]
    sizes = whole, np.concatenate([known[0][1], known[1][1]]), known[0][2] + known[1][2]
    objective = Separable(x=x.function, z=z.function)
    return Form(objective, H, x.g + z.g, x.constant + z.constant, sizes)


def tall(random: Random, columns: int, spread: int) -> Array:
    """Singular values 1 .. 2^-spread, between random bases; a few rows more than columns."""
    rows = columns + int(random.integers(0, 9))
    left, right = (np.linalg.qr(random.standard_normal((k, columns)))[0] for k in (rows, columns))
    values = np.exp2(-random.integers(0, spread + 1, size=columns).astype(float))
    values[random.permutation(columns)[:2]] = (1.0, 2.0**-spread)[:columns]
    return np.asarray((left * values) @ right.T)


def drawn(random: Random, columns: int, spread: int, unit: float = 1.0) -> Part:
    """Least squares of that condition, some with a ridge or sparse; targets far from the range."""
    M = tall(random, columns, spread)
    y = random.standard_normal(len(M)) * powers(random, 1, -3, 20)
    weight = unit * float(random.choice([1.0, 0.3, 2.0**-7]))
    ridge = unit * float(random.choice([0.0, 0.0, 0.1 * 4.0**-spread]))
    return squares(M, y, weight, ridge, int(random.integers(2)))


def spread_of(random: Random, seed: int) -> int:
    """kappa(M) = 2^0 .. 2^13, so that kappa_f reaches 7e7; every eighth 2^17."""
    return 17 if seed % 8 == 7 else int(random.integers(0, 14))


@family
def least_squares(random: Random, seed: int) -> Draft:
    """Squared losses of (x, z) together; every third in units of 2^-60 .. 2^60."""
    own = int(random.integers(0, 2)) if seed % 2 else 0
    draft = base(random, p=own, r=own)
    spread = spread_of(random, seed)
    unit = float(powers(random, 1, -60, 60)[0]) if seed % 3 == 2 else 1.0
    return draft.shaped([drawn(random, d + draft.q, spread, unit).form() for d in draft.d]).plant()


@family
def separable_squares(random: Random, seed: int) -> Draft:
    """Squared losses of x and of z, sums of them, squared distances."""
    draft = base(random, p=int(random.integers(0, 2)))
    spread = spread_of(random, seed)
    forms = []
    for d in draft.d:
        x = drawn(random, d, spread)
        if random.integers(2):
            x = added(x, distance(random.standard_normal(d) * 2.0**6, 0.7 * 4.0**-spread))
        z = distance(random.standard_normal(draft.q), 0.3)
        if random.integers(2):
            z = drawn(random, draft.q, int(random.integers(0, 5)))
        forms.append(side_by_side(x, z))
    return draft.shaped(forms).plant()
