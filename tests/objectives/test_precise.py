"""Gradients for certificates: within their own bound of the gradient at 300 bits.

Data are drawn so that terms cancel: what is left of a gradient is far smaller than what it is
summed from, and products formed in doubles would be wrong in every digit of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import flint
import numpy as np
import pytest
import scipy.sparse as sp
from flint import arb

from ccmac.inputs import Array
from ccmac.linalg.extended import EPS_LONG
from ccmac.objectives import (
    Huber,
    Intercept,
    LeastSquares,
    Limited,
    Logistic,
    Multinomial,
    Objective,
    Quadratic,
    Ridge,
    Separable,
    SquaredDistance,
    Sum,
)
from ccmac.objectives.base import from_doubles

BITS = 300
SEEDS = range(6)
Reals = list[arb]


@contextmanager
def precise() -> Iterator[None]:
    """300 bits."""
    before = flint.ctx.prec
    flint.ctx.prec = BITS
    try:
        yield
    finally:
        flint.ctx.prec = before


def real(value: Any) -> arb:
    """A number of either format as it is."""
    high = float(value)
    return arb(high) + arb(float(value - np.longdouble(high)))


def total(values: Any) -> arb:
    return sum(values, arb(0))


def slope(f: Any, u: Reals) -> Reals:
    """weight phi'(u) of an elementwise loss."""
    weights = np.broadcast_to(f.weight, len(u))
    if isinstance(f, Ridge) and f.y is None:
        return [arb(0)] * len(u)
    out = []
    for j, (w, t) in enumerate(zip(weights, u, strict=True)):
        if isinstance(f, Logistic):
            label = arb(float(f.y[j]))
            out.append(-arb(float(w)) * label / (1 + (label * t).exp()))
        else:
            rest = t - (0 if f.y is None else arb(float(f.y[j])))
            clipped = rest
            if isinstance(f, Huber):
                clipped = max(-arb(f.delta), min(arb(f.delta), rest))
            out.append(arb(float(w)) * clipped)
    return out


def exact(f: Any, v: Reals) -> Reals:
    """The gradient of a function of one vector, by its definition."""
    if isinstance(f, Sum):
        parts = [exact(part, v) for part in f.parts]
        return [total(column) for column in zip(*parts, strict=True)]
    if isinstance(f, SquaredDistance):
        centre = np.zeros(len(v)) if f.centre is None else f.centre
        return [arb(f.weight) * (t - arb(float(c))) for t, c in zip(v, centre, strict=True)]
    if isinstance(f, Quadratic):
        H = f.given.toarray() if sp.issparse(f.given) else f.given
        H = [
            [(arb(float(H[j, k])) + arb(float(H[k, j]))) / 2 for k in range(len(v))]
            for j in range(len(v))
        ]
        return [
            total(h * t for h, t in zip(row, v, strict=True)) - arb(float(g))
            for row, g in zip(H, f.g, strict=True)
        ]
    if isinstance(f, Multinomial):
        return choice(f, v, [arb(0)] * f.classes)
    if f.M is None:
        return [s + arb(f.ridge) * t for s, t in zip(slope(f, v), v, strict=True)]
    M = f.M.toarray() if sp.issparse(f.M) else f.M
    M = [[arb(float(a)) for a in row] for row in M]
    image = [total(a * t for a, t in zip(row, v, strict=True)) for row in M]
    slopes = slope(f, image)
    return [
        total(row[k] * s for row, s in zip(M, slopes, strict=True)) + arb(f.ridge) * t
        for k, t in enumerate(v)
    ]


def choice(f: Multinomial, v: Reals, b: Reals) -> Reals:
    """weight (softmax - indicator), scores moved by b."""
    K = f.classes
    out = []
    weights = np.broadcast_to(f.weight, len(f.y))
    for j, (label, w) in enumerate(zip(f.y, weights, strict=True)):
        powers = [(t + c).exp() for t, c in zip(v[j * K : (j + 1) * K], b, strict=True)]
        whole = total(powers)
        out += [arb(float(w)) * (p / whole - (k == int(label))) for k, p in enumerate(powers)]
    return out


def fitted(f: Intercept, v: Reals) -> Reals:
    """The gradient at the best offset: by Newton's method, or by halving."""
    loss = f.loss
    if isinstance(loss, Multinomial):
        K = loss.classes
        b = [real(t) for t in f.offset(np.array([float(t.mid()) for t in v]))]
        for _ in range(6):
            g = choice(loss, v, b)
            sums = [total(g[k::K]) for k in range(K)]
            H = flint.arb_mat(K, K)
            weights = np.broadcast_to(loss.weight, len(loss.y))
            for j, w in enumerate(weights):
                powers = [(t + c).exp() for t, c in zip(v[j * K : (j + 1) * K], b, strict=True)]
                p = [e / total(powers) for e in powers]
                for k in range(K):
                    for i in range(K):
                        H[k, i] += arb(float(w)) * p[k] * ((k == i) - p[i])
            for k in range(K):
                for i in range(K):
                    H[k, i] += 1
            move = H.solve(flint.arb_mat(K, 1, sums))
            b = [(c - move[k, 0]).mid() for k, c in enumerate(b)]
        return choice(loss, v, b)
    low = arb(-(2**40))
    high = arb(2**40)
    for _ in range(260):
        middle = ((low + high) / 2).mid()
        up = total(exact(loss, [t + middle for t in v])) > 0
        low, high = (low, middle) if up else (middle, high)
    return exact(loss, [t + low for t in v])


def distance(said: Any, true: Reals) -> float:
    gaps = [real(s) - t for s, t in zip(said, true, strict=True)]
    return float(total(g * g for g in gaps).mid().sqrt())


# -- functions -------------------------------------------------------------------------------------
Make = Callable[[np.random.Generator], Any]
N = 5


def tall(random: np.random.Generator, rows: int = 30) -> Array:
    """Condition 1e5."""
    left, _ = np.linalg.qr(random.standard_normal((rows, N)))
    right, _ = np.linalg.qr(random.standard_normal((N, N)))
    return np.asarray((left * np.logspace(0, -5, N)) @ right)


def sparse(random: np.random.Generator) -> sp.csr_array:
    return sp.csr_array(tall(random) * (random.random((30, N)) < 0.5))


def signs(random: np.random.Generator, rows: int) -> Array:
    return np.where(np.arange(rows) % 2 > 0, 1.0, -1.0) * random.permutation([1.0, -1.0])[0]


def lopsided(random: np.random.Generator) -> Array:
    M = tall(random)
    return np.asarray(M.T @ M * (1 + 1e-14 * random.standard_normal((N, N))))


def far(random: np.random.Generator, size: int) -> Array:
    return 1e6 * random.standard_normal(size)


def cancelling(c: Array) -> Sum:
    return Sum(SquaredDistance(0.3, c), SquaredDistance(0.3, 1e-6 - c))


def gram(M: Array) -> Array:
    return np.asarray(M.T @ M + np.eye(N))


FUNCTIONS: dict[str, Make] = {
    "distance": lambda r: SquaredDistance(0.3, far(r, N)),
    "ridge alone": lambda r: Ridge(regularization=0.1),
    "targets": lambda r: Ridge(None, far(r, N), 0.1, 0.3),
    "least squares": lambda r: LeastSquares(tall(r), far(r, 30), 0.3),
    "ridge": lambda r: Ridge(sparse(r), far(r, 30), 1e-7),
    "quadratic": lambda r: Quadratic(gram(tall(r)), far(r, N)),
    "lopsided": lambda r: Quadratic(lopsided(r) + np.eye(N), r.standard_normal(N)),
    "lopsided sparse": lambda r: Quadratic(sp.csr_array(lopsided(r) + np.eye(N)), far(r, N)),
    "logistic": lambda r: Logistic(3 * tall(r), signs(r, 30), 0.7, 0.1),
    "logistic weights": lambda r: Logistic(sparse(r), signs(r, 30), r.random(30)),
    "logistic entries": lambda r: Logistic(None, signs(r, N), 1e3),
    "huber": lambda r: Huber(tall(r), far(r, 30), 1e6, 0.7, 1e-3),
    "huber entries": lambda r: Huber(None, far(r, N), 1e5, r.random(N)),
    "classes": lambda r: Multinomial(np.arange(6) % 3, 3, r.random(6)),
    "cancelling": lambda r: cancelling(far(r, N)),
    "sum": lambda r: Sum(LeastSquares(tall(r), far(r, 30)), Quadratic(lopsided(r), far(r, N))),
    "intercept": lambda r: Intercept(Logistic(None, signs(r, 12), r.random(12))),
    "intercept huber": lambda r: Intercept(Huber(None, r.standard_normal(12), 0.1, 0.3)),
    "intercept squared": lambda r: Intercept(SquaredDistance(0.3, far(r, 12))),
    "intercept classes": lambda r: Intercept(Multinomial(np.arange(9) % 3, 3, r.random(9))),
    "classes apart": lambda r: Intercept(Multinomial(np.arange(9) % 3, 3, r.random(9))),
    "intercept apart": lambda r: Intercept(Logistic(None, signs(r, 12), r.random(12))),
}


def point(f: Any, random: np.random.Generator) -> Any:
    """With more digits than a double; near the minimiser where that is easily had."""
    size = N if f.size is None else f.size
    v = random.standard_normal(size)
    if "quadratic" in f.capabilities:
        H, g, _ = f.quadratic_at(size)
        v = np.linalg.lstsq(H.toarray() if sp.issparse(H) else H, g, rcond=None)[0]
    return v + np.longdouble(2.0) ** -60 * random.standard_normal(size)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("seed", SEEDS)
def test_gradients_are_within_their_bound(name: str, seed: int) -> None:
    random = np.random.default_rng([seed, len(name)])
    f = FUNCTIONS[name](random)
    v = point(f, random) * (20 if name.endswith("apart") else 1)
    said, rounding = f.precise_at(v)
    assert said.dtype == np.longdouble
    with precise():
        true = (fitted if isinstance(f, Intercept) else exact)(f, [real(t) for t in v])
        off = distance(said, true)
    assert off <= rounding
    # Doubles would be off by more than the bound of what is said here: it is one of long numbers.
    plain = f.gradient_at(v.astype(float))
    size = float(np.linalg.norm(plain)) + f.constants(len(v))[0] * float(np.linalg.norm(v))
    if not isinstance(f, Intercept):
        M = getattr(f, "M", None)
        targets = 0.0 if M is None or f.y is None else abs(M).sum() * float(np.abs(f.y).max())
        parts = sum(
            float(np.linalg.norm(p.gradient_at(v.astype(float)))) for p in getattr(f, "parts", ())
        )
        assert rounding <= 200 * EPS_LONG * (size + targets + parts + 10)
    elif not name.endswith("apart"):
        assert rounding <= 1e-13 * (size + 1e6)


@pytest.mark.parametrize("seed", SEEDS)
def test_objectives_put_their_parts_together(seed: int) -> None:
    random = np.random.default_rng(seed)
    x = LeastSquares(tall(random), far(random, 30))
    z = Logistic(None, signs(random, 3), 0.7)
    u = random.standard_normal(N)
    t = random.standard_normal(3)
    (on_x, off_x), (on_z, off_z) = x.precise_at(u), z.precise_at(t)
    whole: list[Objective] = [Separable(x, z), Separable(x), Separable(z=z)]
    for f, first, second in zip(whole, (1, 1, 0), (1, 0, 1), strict=True):
        said, off = f.precise_gradient(u, t)
        assert said.tolist() == [*(first * on_x), *(second * on_z)]
        assert off == math.hypot(first * off_x, second * off_z)
    free = np.full(N + 2 + 3, math.inf)
    said, off = Limited(whole[0], -free, free, 2, 3).precise_gradient(np.append(u, [7.0, 8.0]), t)
    assert said.tolist() == [*on_x, 0.0, 0.0, *on_z]
    assert off == math.hypot(off_x, off_z)


def test_gradients_of_doubles_count_what_a_point_loses() -> None:
    v = np.array([3.0, 4.0]) + np.longdouble(2.0) ** -54 * np.array([3.0, 4.0])
    said, off = from_doubles(np.array([6.0, 8.0]), v, 2.0)
    assert said.tolist() == [6.0, 8.0]
    assert off == pytest.approx(2 * 2.0**-52 * 4 * 20.0 + 2.0 * 5.0 * 2.0**-54, rel=1e-9)


# -- forms and constants ---------------------------------------------------------------------------
FORMS = ("least squares", "ridge", "lopsided", "lopsided sparse", "sum", "distance", "targets")


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_forms_and_constants_hold_with_rounding(name: str, seed: int) -> None:
    """Columns of the exact Hessian are differences of exact gradients."""
    random = np.random.default_rng([seed, 7])
    f = FUNCTIONS[name](random)
    H = f.quadratic_at(N)[0]
    H = H.toarray() if sp.issparse(H) else H
    L, mu = f.constants(N)
    with precise():
        zero = exact(f, [arb(0)] * N)
        columns = [
            [
                a - b
                for a, b in zip(exact(f, [arb(int(j == k)) for j in range(N)]), zero, strict=True)
            ]
            for k in range(N)
        ]
        gap = np.array([[float(H[j, k] - columns[k][j]) for k in range(N)] for j in range(N)])
        true = flint.arb_mat(N, N, [columns[k][j] for j in range(N) for k in range(N)])
        values = [float(v.real.mid()) for v in flint.acb_mat(true).eig(algorithm="approx")]
    assert float(np.linalg.norm(gap, 2)) <= f.form_rounding_at(N)
    assert f.form_rounding(2, N - 2) == f.form_rounding_at(N)
    room = 2 * 2.0**-52 * N * L  # what certificates leave to decompositions
    assert mu - room <= min(values) * (1 + 1e-15)
    assert L + room >= max(values) * (1 - 1e-15)


def test_an_unsymmetric_matrix_means_its_symmetric_part() -> None:
    H = np.array([[2.0, 1.0], [1.0 + 2.0**-52, 3.0]])
    for given in (H, sp.csr_array(H)):
        f = Quadratic(given, np.zeros(2))
        S = f.H.toarray() if sp.issparse(f.H) else f.H
        assert (S == S.T).all()
        said, _ = f.precise_at(np.array([1.0, 0.0]))
        assert said[1] == np.longdouble(1.0) + np.longdouble(2.0) ** -53
        assert f.form_rounding_at(2) == pytest.approx(math.sqrt(2) * 2.0**-53)
        again = Quadratic.from_state(f.state())
        assert isinstance(again, Quadratic)
        assert (again.given != f.given).sum() == 0
    f = Quadratic(np.array([[2.0, 1.0], [1.0, 3.0]]), np.zeros(2))
    assert f.H is f.given
    assert f.form_rounding_at(2) == 0.0


def test_shifts_that_cancel_are_no_shift() -> None:
    """a v - s is the gradient to rounding only where s is as large as what it is summed from."""
    one = np.ones(3)
    assert Sum(SquaredDistance(1.0, one), SquaredDistance(2.0, one)).isotropic() is not None
    assert Sum(SquaredDistance(1.0, one), SquaredDistance(1.0, -0.9 * one)).isotropic() is None
    assert Sum(SquaredDistance(1.0), SquaredDistance(1.0)).isotropic() == (2.0, None)
