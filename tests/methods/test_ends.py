"""When conjugate gradients end, and what a summed system leaves undetermined, in small numbers."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.linalg.tolerances import EPS, SETTLED, SWELLED
from ccmac.methods.cg import CgState, DualConjugateGradients
from ccmac.methods.sketched import SketchedConjugateGradients, SketchedState
from ccmac.methods.system import System, Whitened, _free, _symmetric, affordable, solver


# -- one step of CG on both channels ---------------------------------------------------------------
class Channels:
    """Two agents with one z each and one coupled row; T_i = t_i on (x, z)."""

    T = np.array([2.0, 1.0, 0.5, 4.0])  # x_1, x_2, z_1, z_2
    A = np.array([1.0, 3.0])
    B = np.array([2.0, 1.0])

    def made(self, products: tuple[float, float] | None = None) -> Any:
        """``products`` are told in the place of <y, r> and <h, t>."""
        space = Fake(
            zeros=lambda: np.zeros(4),
            x=lambda w: w[:2],
            z=lambda w: w[2:, None],
            q=1,
            count=2,
            joined=lambda x, z: np.concatenate([x, z.ravel()]),
            partial_dots=lambda a, b: (a * b).reshape(2, 2).sum(axis=0)[:, None],
        )
        coupling = Fake(
            empty=False,
            width=1,
            adjoint=lambda price: (self.A * price[0, 0], (self.B * price[0, 0])[:, None]),
            contributions=lambda x, z, with_z: ((self.A * x)[:, None] + self.B[:, None] * z, z),
        )
        runtime = Fake(
            ride=lambda rows: Fake(value=rows.sum(axis=0) if products is None else products),
            combine=lambda parts: [part.mean(axis=0, keepdims=True) for part in parts],
        )
        made = object.__new__(DualConjugateGradients)
        local = Fake(apply=lambda h: self.T * h, minimisers=lambda h: -self.T * h, shifted=False)
        vars(made).update(
            space=space,
            coupling=coupling,
            runtime=runtime,
            local=local,
            omega=0.5,
            problem=Fake(n=2),
            _right=np.array([[1.0], [2.0]]),
        )
        return made

    def state(self, **more: Any) -> CgState:
        known: dict[str, Any] = {
            "u": np.zeros(4),
            "t": np.ones(4),
            "r_l": np.array([[2.0]]),
            "r_n": np.array([[1.0], [-1.0]]),
            "s_l": np.array([[3.0]]),
            "count": 4,
            "s_n": np.array([[0.5], [-0.5]]),
            "d_l": np.array([[1.0]]),
            "price": np.array([[7.0]]),
            "g": 10.0,
            "alpha": 0.25,
            "first": 40.0,
            "least": 10.0,
        }
        return CgState(**{**known, **more})


def test_one_step_on_both_channels() -> None:
    c = Channels()
    found = c.made().step(c.state())
    h = np.concatenate([2.0 * c.A, 2.0 * c.B + 0.5 * np.array([1.0, -1.0])])
    t = c.T * h
    q_l = c.A @ t[:2] + c.B @ t[2:]
    q_n = t[2:] - t[2:].mean()
    g = 2.0**2 + 0.5 * 2.0
    d = h @ t
    beta = g / 10.0
    alpha = g / (d - beta * g / 0.25)
    direction = t + beta
    assert (found.g, found.alpha, found.least, found.first) == pytest.approx((g, alpha, g, 40.0))
    assert found.t == pytest.approx(direction)
    assert found.u == pytest.approx(-alpha * direction)
    assert found.s_l[0, 0] == pytest.approx(q_l + beta * 3.0)
    assert found.s_n[:, 0] == pytest.approx(q_n + beta * np.array([0.5, -0.5]))
    assert found.d_l[0, 0] == pytest.approx(2.0 + beta)
    assert found.price[0, 0] == pytest.approx(7.0 + alpha * (2.0 + beta))
    assert found.r_l[0, 0] == pytest.approx(2.0 - alpha * (q_l + beta * 3.0))
    assert found.r_n[:, 0] == pytest.approx([1.0, -1.0] - alpha * found.s_n[:, 0])
    assert (found.count, found.over) == (5, False)
    opened = c.made().step(c.state(count=0))
    assert opened.u == pytest.approx(-c.T)
    assert opened.r_l[0, 0] == pytest.approx(c.A @ -c.T[:2] + c.B @ -c.T[2:] - 3.0)
    assert opened.r_n[:, 0] == pytest.approx(-c.T[2:] + c.T[2:].mean())
    assert not opened.t.any()
    assert opened.count == 1


@pytest.mark.parametrize(
    ("g", "d", "over"),
    [
        (40.0, 1e9, False),
        (40 * SETTLED, 1.0, True),
        (50 * SETTLED, 1.0, False),
        (10 * SWELLED * 1.01, 1e99, True),
        (10 * SWELLED * 0.99, 1e99, False),
        (10.0, 40.0, True),
        (10.0, 40.1, False),  # d - beta g / alpha = d - 40
    ],
)
def test_when_conjugate_gradients_end(g: float, d: float, over: bool) -> None:
    c = Channels()
    found = c.made((g, d)).step(c.state())
    assert found.over == over
    assert found.least == min(g, 10.0)
    assert found.first == 40.0
    fresh = c.made((g, d)).step(c.state(g=0.0, first=0.0, least=math.inf))
    assert fresh.first == g
    assert fresh.alpha == pytest.approx(g / d)
    assert (SETTLED, SWELLED) == (1e-30, 1e8)


# -- one step of CG on a sketch --------------------------------------------------------------------
def sketched(curvature: float = 3.0, after: float | None = None) -> tuple[Any, list[Any]]:
    """S = diag(2, 4), M = 2; told curvature and energy where they are given."""
    kept: list[Any] = []

    def common(value: Any) -> Any:
        return value

    S = np.array([2.0, 4.0]) * np.sign(curvature)

    def explored(p: Any) -> Any:
        kept.append(p)
        return S * p, np.array([1.0, 1.0, 1.0])

    parts = Fake(
        explored=explored,
        m=2,
        h=2.0,
        beta=3.0,
        shared=lambda price, slope: price + slope,
        minimisers=lambda price: np.array([1.0, 2.0, 3.0]),
        residual=lambda x: (np.array([1.0, -1.0]), np.array([0.5, 0.25]), 9.0),
    )
    made = object.__new__(SketchedConjugateGradients)
    vars(made).update(parts=parts, M=Fake(solve=lambda r: r / 2), runtime=Fake(common=common))
    if after is not None:
        made._preconditioned = lambda r: (r / 2, after)  # type: ignore[method-assign]
    return made, kept


def begun(**more: Any) -> SketchedState:
    known: dict[str, Any] = {
        "x": np.zeros(3),
        "price": np.array([[1.0, 1.0]]),
        "r": np.array([[2.0, 4.0]]),
        "y": np.array([[1.0, 2.0]]),
        "p": np.array([[1.0, -1.0]]),
        "slope": np.zeros((1, 2)),
        "g": 10.0,
        "g_old": 20.0,
        "first": 40.0,
        "least": 10.0,
        "count": 3,
    }
    return SketchedState(**{**known, **more})


def test_one_step_on_a_sketch() -> None:
    made, kept = sketched()
    found = made.step(begun())
    p = np.array([1.5, 1.5])
    q = np.array([3.0, 6.0])
    alpha = 10.0 / (p @ q)
    assert kept[0] == pytest.approx(p)
    r = np.array([2.0, 4.0]) - alpha * q
    assert found.r[0] == pytest.approx(r)
    assert found.y[0] == pytest.approx(r / 2)
    assert found.price[0] == pytest.approx(1.0 + alpha * p)
    assert found.x == pytest.approx(-alpha * np.ones(3))
    assert (found.g, found.g_old) == (pytest.approx(r @ r / 2), 10.0)
    assert (found.count, found.least) == (4, pytest.approx(min(10.0, r @ r / 2)))
    steep, _ = sketched()
    assert steep.step(begun(g_old=0.0)).p[0].tolist() == [1.0, 2.0]
    lost, _ = sketched(-1.0)
    assert lost.step(begun()).over


def test_the_first_step_on_a_sketch() -> None:
    made, _ = sketched()
    made.space = Fake(x=lambda w: w, count=2)
    cold = made.start(np.ones(3), np.array([[4.0, 5.0], [4.0, 5.0]]))
    assert cold.slope[0].tolist() == [8.0, 10.0]  # h z: z is the user's
    assert not cold.price.any()
    warm = made.start(np.ones(3), np.array([[4.0, 5.0]]), price=np.array([1.0, 2.0]))
    assert warm.slope[0].tolist() == [11.0, 16.0]
    assert math.isinf(made.energy(cold))
    found = made.step(warm)
    assert found.x.tolist() == [1.0, 2.0, 3.0]
    r = np.array([1.0, -1.0]) + 3.0 * np.array([1.5, 2.25])
    assert found.r[0] == pytest.approx(r)
    assert (found.g, found.first, found.least) == pytest.approx((r @ r / 2,) * 3)
    assert (found.count, found.slopes, found.over) == (1, 9.0, False)
    assert made.energy(found) == found.g
    price, slope, slopes = made.prices(found)
    assert (price.tolist(), slope.tolist(), slopes) == ([1.0, 2.0], [0.5, 0.25], 9.0)
    x, z = made.point(found)
    assert z.tolist() == [[1.5, 2.25]] * 2
    assert x is found.x


@pytest.mark.parametrize(
    ("after", "over"),
    [(40 * SETTLED, True), (41 * SETTLED, False), (10.1 * SWELLED, True), (9.9 * SWELLED, False)],
)
def test_when_a_sketch_ends(after: float, over: bool) -> None:
    made, _ = sketched(after=after)
    assert made.step(begun()).over == over


# -- systems ---------------------------------------------------------------------------------------
def test_what_a_system_leaves_free() -> None:
    """S = diag(2, 1e-9, 0), G sees nothing: the second entry is loose, the third free."""
    S = np.diag([2.0, 1e-9, 0.0])
    G = np.zeros((1, 3))
    free, loose, turned, clear = _free(S, G, 4e-9, 2.0)
    assert np.abs(free.T).tolist() == [[0.0, 0.0, 1.0]]
    assert loose.shape == (3, 2)
    assert _free(S, G, 0.8e-9, 2.0)[1].shape == (3, 1)  # 4e-10 of noise below 5e-10 of S
    off = 8 * EPS * 7  # of rounding: four rows, three columns
    assert (turned, clear) == (pytest.approx(2e-9 + off), True)  # over 1, the least that counts
    tight, same, turned, clear = _free(S, G, 0.0, 2.0)
    assert (tight.shape, same.shape) == ((3, 1), (3, 1))
    assert (turned, clear) == (pytest.approx(off / 5e-10), True)
    assert _free(np.diag([2.0, 1e-12, 0.0]), G, 0.0, 2.0)[3] is False  # 5e-13 is no rounding
    assert _free(S, G, 3e-5, 2.0)[3] is False  # a haze that hides what there may be
    assert _free(1e-12 * S, G, 2e-9, 2.0)[2] == pytest.approx(1e-9 + off)  # nothing counts
    row = np.array([[0.0, 0.0, 5.0]])
    assert _free(S, row, 4e-9, 2.0)[0].shape == (3, 0)
    everything, also, *_ = _free(np.zeros((2, 2)), np.zeros((0, 2)), 0.0, 0.0)
    assert everything.shape == also.shape == (2, 2)
    none, also, *known = _free(np.zeros((0, 0)), np.zeros((0, 0)), 0.0, 0.0)
    assert none.shape == also.shape == (0, 0)
    assert known == [0.0, True]


@pytest.mark.parametrize("turned", [0.0, 1e-9])
def test_slopes_along_free_directions(turned: float) -> None:
    """What exceeds 1e-13 of all slopes, and what rounding may have turned the directions by."""
    e = np.eye(3)
    least = max(turned, 1e-13)
    for size, count in ((0.9 * least, 1), (1.1 * least, 2)):
        right = np.array([1.0, size, 0.5 * size, 99.0])
        none = np.zeros((3, 0))
        made: Any = Fake(q=3)
        one = System(made, [], None, right, e[:, 1:2], none, turned=turned)
        assert len(one.slopes) == count - 1
        both = System(made, [], None, right, e[:, :1], e[:, 1:2], turned=turned)
        assert len(both.slopes) == count
        assert both.slopes[0].tolist() == [1.0, 0.0, 0.0]


def test_few_unknowns_are_affordable() -> None:
    for rank, fits in ((600, True), (601, False)):
        work: Any = Fake(problem=Fake(q=60), flats=Fake(count=40))
        assert affordable(work, Fake(rank=rank)) == fits  # type: ignore[arg-type]


def test_whitened_rows_of_a_sum() -> None:
    """Two coupled rows and one of D, whitened; z has two entries and one flat direction joins."""
    random = np.random.default_rng(0)
    unit = np.array([2.0, 0.5])
    Bbar = random.standard_normal((2, 2))
    D = random.standard_normal((1, 2))
    right = random.standard_normal(3)
    U = np.linalg.qr(random.standard_normal((3, 3)))[0][:, :2]
    sigma = np.array([3.0, 0.7])
    A = random.standard_normal((2, 4))
    basis = random.standard_normal((4, 3))
    reduced: Any = Fake(
        rank=2,
        U=U,
        sigma=sigma,
        unit=unit,
        D=D,
        Bbar=Bbar,
        right=right,
        A=[A],
        kernels=[Fake(basis=basis)],
    )
    w = Whitened(Fake(q=2, m=2, n=3), reduced, flat=1)  # type: ignore[arg-type]
    combine = U / sigma
    top = combine[:2].T * unit
    assert w.size == 3 + 2
    assert w.top == pytest.approx(top)
    assert w.v == pytest.approx(combine.T @ right)
    Z = np.zeros((2, 3))
    Z[:, :2] = top @ Bbar + combine[2:].T @ D
    assert pytest.approx(Z) == w.Z
    assert w.A[0] == pytest.approx(top @ A @ basis)
    total = np.arange(5.0)
    assert w.rows(total) == pytest.approx(np.concatenate([total[:3], top @ total[3:]]))
    own = random.standard_normal((5, 5))
    own = own + own.T
    turn = np.zeros((5, 5))
    turn[:3, :3], turn[3:, 3:] = np.eye(3), top
    white = turn @ own @ turn.T
    triangle = w.whitened(own[np.triu_indices(5)])
    assert triangle == pytest.approx(white[np.triu_indices(5)])
    K = white.copy()
    K[3:, :3] += Z
    K[:3, 3:] += Z.T
    assert w.matrix(triangle) == pytest.approx(K)
    assert w.factorized(triangle)(total) == pytest.approx(np.linalg.solve(K, total))
    z = np.array([1.0, 2.0, 3.0])
    mu = np.array([4.0, 5.0])
    lacking = total + np.concatenate([-Z.T @ mu, combine.T @ right - Z @ z])
    assert w.lacking(total, z, mu) == pytest.approx(lacking)
    singular = np.diag([2.0, 0.0])
    assert solver(singular)(np.array([4.0, 3.0])) == pytest.approx([2.0, 0.0])
    assert _symmetric(np.array([1.0, 2.0, 3.0]), 2).tolist() == [[1.0, 2.0], [2.0, 3.0]]
