"""The common equations of interior points, and points of a state, against dense algebra."""

from __future__ import annotations

from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.methods.interior import common as module
from ccmac.methods.interior.block import DELTA
from ccmac.methods.interior.common import Common, Equations
from ccmac.methods.interior.iteration import Interior
from ccmac.methods.interior.own import HELD
from ccmac.methods.interior.sides import Newton
from ccmac.methods.interior.steps import Iterate, Second

INF = np.inf
RANDOM = np.random.default_rng(6)
M = 3  # coupled rows, rows of D, entries of z
R = 1
Q = 4


def reduced(rank: int = 3, condition: float = 10.0) -> Any:
    U = np.linalg.qr(np.random.default_rng(0).standard_normal((M + R, rank)))[0]
    return Fake(
        unit=np.array([2.0, 0.5, 1.0]),
        rank=rank,
        U=U,
        sigma=np.linspace(3.0, 0.5, rank),
        Bbar=np.random.default_rng(1).standard_normal((M, Q)),
        condition=condition,
        D=np.random.default_rng(2).standard_normal((R, Q)),
        right=np.arange(1.0, M + R + 1),
    )


LOWER = np.array([-1.0, -INF, 0.5, -INF])
UPPER = np.array([2.0, 3.0, 0.5, INF])
FLATS = [(np.ones((M, 1)), np.array([7.0])), (np.arange(6.0).reshape(M, 2), np.array([8.0, 9.0]))]


def whole(found: Equations, given: Any) -> tuple[Any, ...]:
    combine = given.U / given.sigma
    top = combine[:M]
    Z = top.T @ (given.unit[:, None] * given.Bbar) + combine[M:].T @ given.D
    G = top.T @ np.hstack([G for G, _ in FLATS])
    return combine, top, Z, G, combine.T @ given.right


def point() -> Common:
    """Bounds on z: entry 0 from both sides, entry 1 from above; entry 2 is fixed."""
    draw = np.random.default_rng(3).standard_normal
    return Common(
        draw(Q), draw(3), draw(1), np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]), 0.8, 0.3
    )


def test_the_static_part_and_residuals() -> None:
    given = reduced()
    found = Equations(given, LOWER, UPPER, FLATS)
    combine, top, Z, G, v = whole(found, given)
    assert not found.plain
    assert found.fixed.tolist() == [2]
    assert found.held.tolist() == [0.5]
    assert found.sides.count == 3
    assert found.size == Q + 3 + 3 + 1 + 1
    assert found.signs.tolist() == [1.0] * 4 + [-1.0] * 3 + [1.0] * 3 + [-1.0]
    assert (found.z, found.mu, found.xi, found.phi) == (
        slice(0, 4),
        slice(4, 7),
        slice(7, 10),
        slice(10, 11),
    )
    assert pytest.approx(Z) == found.Z
    assert pytest.approx(G) == found.G
    assert found.v == pytest.approx(v)
    mu = np.array([1.0, -2.0, 0.5])
    assert found.lam(mu) == pytest.approx(top @ mu)
    assert found.mu_of(combine @ mu) == pytest.approx(mu)
    dc = np.arange(12.0)
    assert found.told(dc) == pytest.approx(np.concatenate([dc[:4], top @ dc[4:7], [11.0]]))
    c = point()
    prices = np.array([4.0 - 5.0, -6.0, 0.0, 0.0])  # lower less upper, by entries
    on_z = Z.T @ c.mu - prices
    on_z[2] += c.phi[0]
    last = v @ c.mu + 0.5 * c.phi[0] - (-1.0 * 4.0 - 2.0 * 5.0 - 3.0 * 6.0) + 0.3
    expected = [
        on_z,
        Z @ c.z - 0.8 * v,
        G.T @ c.mu - 0.8 * np.array([7.0, 8.0, 9.0]),
        [c.z[2] - 0.5 * 0.8],
        [last],
    ]
    assert found.residual(c) == pytest.approx(np.concatenate(expected))


def test_the_matrix_and_its_right_hand_sides() -> None:
    given = reduced()
    found = Equations(given, LOWER, UPPER, FLATS)
    _, top, Z, G, v = whole(found, given)
    c = point()
    newton = Newton.at(found.sides, c.z, c.s, c.v, c.tau)
    theta = c.v / c.s
    S = RANDOM.standard_normal((Q + M, Q + M))
    S = S + S.T
    column = RANDOM.standard_normal(Q + M)
    row = RANDOM.standard_normal(Q + M + 1)
    K = found.matrix(S, column, row, newton, c)
    diagonal = np.array([theta[0] + theta[1], theta[2], 0.0, 0.0])
    tilt = np.array([-theta[0] + 2 * theta[1], 3 * theta[2], 0.0, 0.0])
    gamma = np.array([7.0, 8.0, 9.0])
    one = np.array([[0.0, 0.0, 1.0, 0.0]])
    mid = top.T @ S[Q:, :Q] + Z
    zero = np.zeros
    corner = row[-1] - theta @ np.array([1.0, 4.0, 9.0]) - 0.3 / 0.8
    expected = np.block(
        [
            [
                S[:Q, :Q] + np.diag(diagonal + c.rho),
                mid.T,
                zero((4, 3)),
                one.T,
                (column[:Q] - tilt)[:, None],
            ],
            [
                mid,
                top.T @ S[Q:, Q:] @ top - DELTA * np.eye(3),
                G,
                zero((3, 1)),
                (top.T @ column[Q:] - v)[:, None],
            ],
            [zero((3, 4)), G.T, c.rho * np.eye(3), zero((3, 1)), -gamma[:, None]],
            [one, zero((1, 3)), zero((1, 3)), np.array([[-DELTA]]), np.array([[-0.5]])],
            [
                (row[:Q] + tilt)[None],
                (top.T @ row[Q:-1] + v)[None],
                -gamma[None],
                np.array([[0.5]]),
                np.array([[corner]]),
            ],
        ]
    )
    assert pytest.approx(expected, abs=1e-12) == K
    share = RANDOM.standard_normal(Q + M + 1)
    a = np.array([1.0, 2.0, 3.0])
    right = found.right(share, newton, a)
    on_z = share[:Q] + np.array([1.0 - 2.0, -3.0, 0.0, 0.0])
    last = share[-1] + (-1.0 * 1.0 - 2.0 * 2.0 - 3.0 * 3.0)
    expected = np.concatenate([on_z, top.T @ share[Q:-1], np.zeros(4), [last]])
    assert right == pytest.approx(expected)


def test_many_independent_rows_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    free = np.full(Q, -INF), np.full(Q, INF)
    for rows, condition, plain in ((3, HELD, True), (4, HELD, False), (3, 1.01 * HELD, False)):
        monkeypatch.setattr(module, "ROWS", rows)
        given = reduced(M + R, condition)
        found = Equations(given, *free, [(np.zeros((M, 0)), np.zeros(0))])
        assert found.plain == plain
        if plain:
            assert found.v == pytest.approx(given.right)
            assert pytest.approx(np.vstack([given.unit[:, None] * given.Bbar, given.D])) == found.Z
            assert found.lam(np.arange(4.0)).tolist() == [0.0, 1.0, 2.0]
            assert found.mu_of(np.arange(4.0)).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert not Equations(reduced(), *free, [(np.zeros((M, 0)), np.zeros(0))]).plain


def test_a_step_of_tau_and_kappa() -> None:
    """kappa dtau + tau dkappa = t - tau kappa; everything moves by alpha."""
    found = Equations(reduced(), LOWER, UPPER, FLATS)
    c = point()
    newton = Newton.at(found.sides, c.z, c.s, c.v, c.tau)
    rights = [np.full(found.size, 2.0**k) for k in range(3)]
    solver: Any = Fake(solve=lambda right: right / 10)
    at = Iterate(found, [], newton, c, solver, rights, [])
    weights = np.array([0.7, 1.0, 0.2])
    second = Second(np.ones(found.size), [], np.array([0.1, 0.2, 0.3]), -0.05)
    step = at.step(weights, second)
    dc = (0.7 + 2.0 + 0.8 + 1.0) / 10
    assert step.dc == pytest.approx(np.full(found.size, dc))
    assert step.dtau == pytest.approx(dc)
    assert c.kappa * step.dtau + c.tau * step.dkappa == pytest.approx(0.2 - 0.05 - c.tau * c.kappa)
    a = sum(w * p for w, p in zip(weights, newton.parts, strict=True)) + second.on_z
    ds, dv = newton.steps(a, step.dc[:Q], dc, 0.7)
    assert (step.ds, step.dv) == (pytest.approx(ds), pytest.approx(dv))
    moved = step.moved(c, found, 0.5)
    for name in ("z", "mu", "phi"):
        assert getattr(moved, name) == pytest.approx(getattr(c, name) + 0.5 * dc)
    assert (moved.s, moved.v) == (pytest.approx(c.s + 0.5 * ds), pytest.approx(c.v + 0.5 * dv))
    assert moved.kappa == pytest.approx(c.kappa + 0.5 * step.dkappa)
    assert moved.tau == pytest.approx(c.tau + 0.5 * dc)
    none = at.none
    assert (none.cross, none.right.any(), none.on_z.tolist()) == (0.0, False, [0.0] * 3)


def test_points_of_a_state() -> None:
    """w over tau, clipped; over kappa where tau is nothing beside it."""
    made = object.__new__(Interior)
    form = Fake(lower=np.array([0.0, -INF]), upper=np.array([INF, 1.0]))
    blocks = [Fake(d=1, form=form), Fake(d=2, form=form)]
    setup = Fake(lower=np.array([-1.0]), upper=np.array([1.0]), units=None)
    vars(made).update(blocks=blocks, setup=setup)
    y = [Fake(y=np.array([-4.0, 9.0])), Fake(y=np.array([4.0, 6.0, 9.0]))]
    made.points = lambda state: y  # type: ignore[method-assign,assignment,return-value]
    made.common = lambda state: Fake(z=np.array([1.0]))  # type: ignore[method-assign,assignment,return-value]
    for tau, kappa, scale in ((2.0, 1e6, 2.0), (1e-14, 4.0, 4.0)):
        x, z = made.point(Fake(tau=tau, kappa=kappa))  # type: ignore[arg-type]
        assert x.tolist() == [0.0, 4.0 / scale, 1.0]
        assert z.tolist() == [[1.0 / scale]] * 2
    setup.units = Fake(x=[np.array([8.0]), np.array([2.0, 4.0])], z=np.array([16.0]))
    x, z = made.point(Fake(tau=2.0, kappa=1.0))  # type: ignore[arg-type]
    assert (x.tolist(), z.tolist()) == ([0.0, 4.0, 4.0], [[8.0]] * 2)
