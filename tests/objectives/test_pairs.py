"""The prox of every pair of functions: what is claimed, what comes out, and what CVXPY finds."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.objectives import (
    KINDS,
    L1,
    Box,
    ConcomitantHuber,
    Custom,
    ElasticNet,
    Function,
    Halfspace,
    Hinge,
    Huber,
    Intercept,
    LeastSquares,
    Limited,
    Logistic,
    MaxAffine,
    Multinomial,
    Pinball,
    Quadratic,
    Ridge,
    Separable,
    Simplex,
    SquaredDistance,
    Sum,
    Tweedie,
)
from ccmac.objectives.loss import Loss

N = 5
RNG = np.random.default_rng(4)
M, ROOT = RNG.standard_normal((2, 4, N))
T, G, A = RNG.standard_normal((3, N))
SIGNS = np.array([1.0, -1.0, 1.0, -1.0, -1.0])
OTHER = np.array([1.0, 1.0, -1.0, -1.0, 1.0])

# Of every kind at least one; "entrywise" functions have a prox and act entry by entry.
ENTRYWISE: dict[str, Function] = {
    "distance": SquaredDistance(0.8, T),
    "diagonal": Quadratic(np.linspace(0.0, 2.0, N), G),
    "ridge": SquaredDistance(0.4),
    "logistic": Logistic(y=SIGNS, weight=1.5, ridge=0.1),
    "other logistic": Logistic(y=OTHER),
    "huber": Huber(y=T, delta=0.3, weight=2.0, ridge=0.2),
    "hinge": Hinge(y=SIGNS, weight=0.6, ridge=0.1),
    "pinball": Pinball(y=OTHER, quantile=0.3, weight=0.6, ridge=0.1),
    "l1": L1(0.5, G),
    "elastic net": ElasticNet(0.4, 0.3),
    "box": Box(np.array([-0.5, -np.inf, 0.1, -0.2, 0.0]), 0.6),
    "sum": Sum(L1(0.2), SquaredDistance(0.1), Box(-1.0, 0.9)),
}
QUADRATIC: dict[str, Function] = {
    "quadratic": Quadratic(ROOT.T @ ROOT, G),
    "sparse": LeastSquares(sp.csr_array(M), np.ones(4)),
    "full ridge": Ridge(M, np.ones(4), 0.3),
}
ROWS: dict[str, Function] = {"halfspace": Halfspace(A, -0.4), "simplex": Simplex(1.5)}
NONE: dict[str, Function] = {
    "logistic of M": Logistic(M, np.ones(4)),
    "huber of M": Huber(M),
    "counts of M": Tweedie(M, np.arange(4.0)),
    "hinge of M": Hinge(M, np.ones(4)),
    "max affine": MaxAffine(M),
    "huber with its scale": ConcomitantHuber(np.ones(N)),
    "multinomial": Multinomial([1], N, 1.3),
}
WHOLE: dict[str, Function] = {
    "intercept": Intercept(Logistic(y=SIGNS, weight=1.5)),
    "hinge with intercept": Intercept(Hinge(y=OTHER, weight=np.linspace(0.5, 1.5, N))),
}
TABLE = {**ENTRYWISE, **QUADRATIC, **ROWS, **NONE, **WHOLE}
PLAIN = ("distance", "ridge")  # gradients a v - s: they merge with anything


def claimed(first: str, second: str) -> bool:
    """By the mathematics: one part with a prox, or one solve; a box clips, a linear row on top."""
    pair = {first, second}
    if pair & NONE.keys():
        return False
    if "halfspace" in pair:  # one root, whatever else has a prox
        return not pair <= ROWS.keys()
    if pair & {*PLAIN}:
        return True
    if pair & {"simplex", "box"}:
        return bool(pair & ENTRYWISE.keys()) and pair <= {*ENTRYWISE, "simplex"}
    return pair <= {*QUADRATIC, "diagonal"}


def cvxpy_form(f: Function, u: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
    """The same function, as CVXPY writes it."""
    if isinstance(f, Sum):
        forms = [cvxpy_form(part, u) for part in f.parts]
        return sum(form[0] for form in forms), [c for form in forms for c in form[1]]
    if isinstance(f, Box):
        ends = (np.broadcast_to(end, N) for end in (f.low, f.high))
        low, high = (np.clip(end, -100.0, 100.0) for end in ends)
        return cp.Constant(0.0), [u >= low, u <= high]
    if isinstance(f, Halfspace):
        return cp.Constant(0.0), [f.a @ u <= f.b]
    if isinstance(f, Simplex):
        return cp.Constant(0.0), [u >= 0, cp.sum(u) == f.radius]
    if "quadratic" in f.capabilities:
        H, g, _ = f.quadratic_at(N)
        dense = H.toarray() if sp.issparse(H) else H
        return 0.5 * cp.quad_form(u, cp.psd_wrap(dense)) - g @ u, []
    if isinstance(f, L1):
        return f.weight * cp.norm1(u if f.centre is None else u - f.centre), []
    if isinstance(f, Intercept):
        return cvxpy_form(f.loss, u + cp.Variable())
    assert isinstance(f, Loss)
    terms = {
        Logistic: lambda: cp.logistic(cp.multiply(-f.y, u)),
        Huber: lambda: 0.5 * cp.huber(u - f.y, f.delta),
        Hinge: lambda: cp.pos(1 - cp.multiply(f.y, u)),
        Pinball: lambda: cp.maximum(f.quantile * (f.y - u), (f.quantile - 1) * (f.y - u)),
    }[type(f)]()
    weight = np.broadcast_to(f.weight, N)
    return weight @ terms + 0.5 * f.ridge * cp.sum_squares(u), []


def test_every_function_is_in_the_table() -> None:
    kinds = {type(f) for f in TABLE.values()}
    assert kinds == set(KINDS.values()) - {Custom, Separable, Limited}


def assert_prox(total: Function, v: np.ndarray, what: str) -> None:
    """That of CVXPY, at v and steps that differ."""
    step = np.linspace(0.3, 2.0, N)
    u = cp.Variable(N)
    value, constraints = cvxpy_form(total, u)
    near = cp.sum(cp.multiply(cp.square(u - v), 0.5 / step))
    cp.Problem(cp.Minimize(value + near), constraints).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    found = total.prox_at(v, step)
    np.testing.assert_allclose(found, u.value, atol=2e-6, err_msg=what)
    assert np.isfinite(total.value_at(found)), what


# Some versions of Clarabel doubt their last digits; that both agree is what is tested.
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate:UserWarning")
@pytest.mark.parametrize("second", TABLE)
def test_claims_and_results(second: str) -> None:
    names = list(TABLE)
    for first in names[: names.index(second) + 1]:
        total = TABLE[first] + TABLE[second]
        v = 1.5 * G + 0.3
        has = "prox" in total.capabilities
        assert has == claimed(first, second), (first, second)
        if not has:
            with pytest.raises(TypeError, match="prox"):
                total.prox_at(v, np.ones(N))
            continue
        assert_prox(total, v, f"{first} + {second}")


def test_a_row_on_top_of_several_that_are_solved_with() -> None:
    """Where the row is met with equality: the closed form with one multiplier."""
    total = Sum(*QUADRATIC.values(), SquaredDistance(0.5), Halfspace(A, -2.0))
    step = np.linspace(0.3, 2.0, N)
    H, g, _ = Sum(*QUADRATIC.values(), SquaredDistance(0.5)).quadratic_at(N)
    K = np.asarray(H) + np.diag(1 / step)
    free = np.linalg.solve(K, T / step + g)
    turned = np.linalg.solve(K, A)
    assert A @ free > -2.0
    expected = free - (A @ free + 2.0) / (A @ turned) * turned
    np.testing.assert_allclose(total.prox_at(T, step), expected, atol=1e-12)


def test_bounds_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(InputError, match="no common point"):
        Sum(Box(0, 1), Box(2, 3))
    for one, other in (
        (Simplex(1.0), Box(0.0, 0.2)),
        (Simplex(1.0), Box(np.full(3, 0.5), 1.0)),
        (Halfspace(np.ones(3), -1.0), Box(0, 1)),
    ):
        with pytest.raises(InputError, match="no common point"):
            (one + other).prox_at(np.zeros(3), 1.0)
    with pytest.raises(InputError, match="zero"):
        Halfspace(np.zeros(3))
