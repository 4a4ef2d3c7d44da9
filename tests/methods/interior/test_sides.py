"""Bounds with slacks and prices, and the solves of interior points, against dense algebra."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from ccmac.methods.interior import common
from ccmac.methods.interior.block import RHO, bordered
from ccmac.methods.interior.common import LEAST, Common, Solver
from ccmac.methods.interior.iteration import Interior
from ccmac.methods.interior.own import OwnPoint
from ccmac.methods.interior.sides import STIFF, THETA, Exclusive, Newton, Sides, apart, longest
from ccmac.methods.interior.steps import Step

INF = math.inf


def sides() -> Sides:
    """1 <= w_0, w_1 <= 4, 2 <= w_2 <= 8, w_3 free: sides in the order w_0, w_2, w_1, w_2."""
    return Sides(np.array([1.0, -INF, 2.0, -INF]), np.array([INF, 4.0, 8.0, INF]))


def test_sides_of_bounds() -> None:
    found = sides()
    assert (found.count, found.size) == (4, 4)
    assert found.at.tolist() == [0, 2, 1, 2]
    assert found.sign.tolist() == [1.0, 1.0, -1.0, -1.0]
    assert found.bound.tolist() == [1.0, 2.0, 4.0, 8.0]
    assert found.signed_bound.tolist() == [1.0, 2.0, -4.0, -8.0]
    assert found.spread(np.array([1.0, 2.0, 3.0, 4.0])).tolist() == [1.0, 3.0, 6.0, 0.0]
    w = np.array([3.0, 1.0, 5.0, 9.0])
    assert found.slack(w, 2.0).tolist() == [3 - 2, 5 - 4, 8 - 1, 16 - 5]


def test_a_point_inside() -> None:
    low = np.array([1.0, -INF, 2.0, -INF, -3.0, -INF])
    high = np.array([INF, 4.0, 8.0, INF, INF, -4.0])
    assert Sides(low, high).middle().tolist() == [2.0, 0.0, 5.0, 0.0, 0.0, -5.0]
    low = np.array([0.0, 0.0, 7.0, -1e6, -1e6])
    high = np.array([200.0, 201.0, 1e6, 1e6, -7.0])
    assert Sides(low, high).middle().tolist() == [100.0, 100.0, 107.0, 0.0, -107.0]


def test_newtons_equation_of_slacks_and_prices() -> None:
    """v ds + s dv = t - s v, ds = sign (dw - bound dtau) - eta rho, for t = 0, 1 and -ds dv."""
    found = sides()
    tau = 2.0
    w = np.array([3.0, 1.0, 5.0, 9.0])
    s = np.array([2.0, 3.0, 5.0, 4.0])
    v = np.arange(1.0, 5.0)
    newton = Newton.at(found, w, s, v, tau)
    assert newton.rho.tolist() == [2 - 1, 3 - 1, 5 - 7, 4 - 11]
    assert newton.theta == pytest.approx(v / s)
    assert newton.diagonal == pytest.approx(
        [v[0] / s[0], v[2] / s[2], v[1] / s[1] + v[3] / s[3], 0]
    )
    tilt = [v[0] / s[0], 4 * v[2] / s[2], 2 * v[1] / s[1] + 8 * v[3] / s[3], 0]
    assert newton.tilt == pytest.approx(tilt)
    assert newton.corner == pytest.approx(-(v / s) @ found.bound**2)
    dw = np.array([0.5, -1.0, 2.0, 7.0])
    dtau = 0.25
    moved = found.slack(dw, dtau)
    residual, zero, one = newton.parts
    for eta, t in ((1.0, 0.0), (0.5, 3.0)):
        ds, dv = newton.steps(eta * residual + zero + t * one, dw, dtau, eta)
        assert ds == pytest.approx(moved - eta * newton.rho)
        assert v * ds + s * dv == pytest.approx(t - s * v)
    ds = np.array([1.0, -1.0, 2.0, 0.5])
    dv = np.array([2.0, 3.0, -1.0, 4.0])
    assert s * newton.second(ds, dv) == pytest.approx(-ds * dv)
    on_w, on_tau = newton.right(np.array([1.0, 2.0, 3.0, 4.0]))
    assert on_w.tolist() == [1.0, -3.0, 2.0 - 4.0, 0.0]
    assert on_tau == pytest.approx(1 + 4 - 12 - 32)


def test_bounds_that_are_guessed_active() -> None:
    """theta dw + shift: an active side moves onto its bound, of another the price vanishes."""
    found = sides()
    s = np.array([1.0, 5.0, 2.0, 3.0])
    v = np.array([2.0, 1.0, 2.0, 0.0])
    guess = Exclusive.guessed(found, s, v)
    assert guess.theta.tolist() == [STIFF, 0.0, 0.0, 0.0]
    assert guess.shift.tolist() == [-STIFF, -1.0, -2.0, 0.0]
    assert guess.parts[0] is guess.shift
    assert len(guess.parts) == 1
    assert not guess.rho.any()
    heavier = Exclusive.guessed(found, s, v, 6.0)
    assert heavier.theta.tolist() == [STIFF, STIFF, STIFF, 0.0]


def test_doubtful_bounds_are_left_open() -> None:
    """theta is shared by an entry's sides, and nothing moves them but a price to be found."""
    found = sides()
    s = np.array([1.0, 5.0, 2.0, 3.0])
    v = np.array([2.0, 1.0, 2.0, 0.0])
    doubt = np.array([False, False, True, False])
    newton = Exclusive.opened(found, s, v, 1.0, doubt)
    assert newton.theta.tolist() == [STIFF, THETA / 2, 0.0, THETA / 2]
    assert newton.shift.tolist() == [-STIFF, 0.0, -2.0, 0.0]
    assert newton.diagonal.tolist() == [STIFF, 0.0, THETA, 0.0]
    assert found.bounded.tolist() == [True, True, True, False]
    p = np.array([3.0, -2.0, 4.0, 0.0])
    assert found.split(p).tolist() == [3.0, 2.0, 2.0, -2.0]
    assert found.net(found.split(p)).tolist() == p.tolist()
    assert found.net(v).tolist() == [2.0, -2.0, 1.0, 0.0]


def test_what_slacks_and_prices_lack_to_exclude_each_other() -> None:
    s = np.array([0.0, 3.0, -1.0, 2.0, 0.5])
    v = np.array([2.0, 0.0, 5.0, -0.25, 0.75])
    assert apart(s, v, 2.0) == 1.0 + 0.25 + 0.25


def test_the_longest_step_that_stays_inside() -> None:
    assert longest(np.array([2.0, 3.0, 5.0]), np.array([-1.0, -6.0, 1.0])) == 0.5
    assert longest(np.array([2.0, 3.0]), np.array([1.0, 0.0])) == INF


def test_how_long_a_step_may_be() -> None:
    """Until a slack, a price, tau or kappa is zero, for everybody; no step where one blew up."""
    none = np.zeros(0)
    c = Common(none, none, none, np.array([2.0, 4.0]), np.ones(2), 1.0, 2.0)
    plain = Step(np.array([1.0, -0.25]), [], np.array([-1.0, 1.0]), np.array([1.0, -0.1]), 0.5)
    method: Any = Fake(runtime=Fake(ride=lambda rows, whole: Fake(value=rows)))
    for change, told, length in (
        ({}, 3.0, 2.0),
        ({}, 1.5, 1.5),
        ({"dv": np.array([-0.8, 0.0])}, 3.0, 1.25),
        ({"dkappa": -4.0}, 3.0, 0.5),
        ({"dc": np.array([0.0, -2.0])}, 3.0, 0.5),
        ({"dc": np.array([math.nan, -0.25])}, 3.0, 0.0),
    ):
        everybody: Any = Fake(value=np.array([[7.0], [told]]))
        assert Interior._length(method, c, replace(plain, **change), everybody) == length
    ones = OwnPoint(*[np.ones(1)] * 4)
    fall = OwnPoint(none, none, np.array([-0.5]), np.array([-0.25]))
    bad = replace(fall, y=np.array([math.nan]))
    rows = Interior._lengths(method, [ones, ones], replace(plain, own=[fall, bad]))
    assert rows.value.tolist() == [[2.0], [0.0]]


def test_common_unknowns_move_and_their_proximal_term() -> None:
    parts = [np.array([float(k)]) for k in range(5)]
    c = Common(*parts, 2.0, 8.0)
    moved = c.moved(Common(*(p + 1 for p in parts), 1.0, -2.0), 0.5)
    assert [p.tolist() for p in (moved.z, moved.mu, moved.phi, moved.s, moved.v)] == [
        [0.5],
        [2.0],
        [3.5],
        [5.0],
        [6.5],
    ]
    assert (moved.tau, moved.kappa) == (2.5, 7.0)
    for tau, kappa, share in ((2.0, 8.0, 0.25), (8.0, 2.0, 1.0), (1e-9, 1.0, LEAST)):
        assert Common(*parts, tau, kappa).rho == pytest.approx(RHO * share)
    own = OwnPoint(*parts[:4]).moved(OwnPoint(*(p + 1 for p in parts[:4])), 2.0)
    assert [float(p[0]) for p in (own.y, own.nu, own.s, own.v)] == [2.0, 5.0, 8.0, 11.0]
    assert own.finite
    for k in range(4):
        bad = [np.array([INF]) if k == j else p for j, p in enumerate(parts[:4])]
        assert not OwnPoint(*bad).finite


@pytest.mark.parametrize("sparse", [True, False])
def test_the_common_matrix_is_solved_with_its_border(
    sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    k = 12
    if sparse:
        monkeypatch.setattr(common, "ROWS", k - 1)
    K = np.diag(np.append(np.tile([2.0, -2.0], k // 2), -5.0))
    K[0, 1] = K[1, 0] = 0.5
    K[-1, :-1], K[:-1, -1] = random.standard_normal((2, k))
    right = random.standard_normal(k + 1)
    signs = np.tile([1.0, -1.0], k // 2)
    found = Solver(K, signs)
    assert sp.issparse(found.K) == sparse
    schur = K[-1, -1] - K[-1, :-1] @ np.linalg.solve(K[:-1, :-1], K[:-1, -1])
    assert found.pivot == pytest.approx(schur)
    assert found.inner(right[:-1]) == pytest.approx(np.linalg.solve(K[:-1, :-1], right[:-1]))
    # tau moves where its pivot is negative, and stays where it is not.
    assert found.moves == (schur < 0)
    K[-1, -1] -= schur + 3.0
    assert Solver(K, signs).solve(right) == pytest.approx(np.linalg.solve(K, right))
    K[-1, -1] += 3.0 + 1e-15
    stays = Solver(K, signs)
    assert not stays.moves
    assert stays.solve(right)[-1] == 0.0
    assert stays.solve(right)[:-1] == pytest.approx(np.linalg.solve(K[:-1, :-1], right[:-1]))


def test_a_full_matrix_stays_dense_however_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "ROWS", 3)
    full = np.eye(6) * 9 + 1
    assert not sp.issparse(Solver(full, np.ones(5)).K)


def test_a_singular_matrix_is_shifted_by_the_signs() -> None:
    """[1 0; 0 0] with a price in the second place: shifted by -1e-9 there."""
    K = np.diag([1.0, 0.0, -1.0])
    found = Solver(K, np.array([1.0, -1.0]))
    assert found.lu is not None
    assert found.lu(np.array([1.0, 1.0])) == pytest.approx([1.0, -1e9])
    assert Solver(np.array([[-2.0]]), np.zeros(0)).solve(np.array([4.0])).tolist() == [-2.0]


@pytest.mark.parametrize("wide", [[], [1], [0, 3]])
def test_columns_that_fill_are_eliminated_last(wide: list[int]) -> None:
    random = np.random.default_rng(0)
    M = random.standard_normal((5, 5))
    M = M + M.T + 10 * np.diag([1.0, -1.0, 1.0, 1.0, -1.0])
    for v in (random.standard_normal(5), random.standard_normal((5, 2))):
        found = bordered(sp.csc_array(M), np.array(wide, dtype=np.int64))(v)
        assert found == pytest.approx(np.linalg.solve(M, v))
