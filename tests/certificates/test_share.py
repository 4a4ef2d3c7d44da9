"""One agent's share of a proof, number by number, with numbers of both signs."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from ccmac.certificates import share
from ccmac.certificates.share import NUMBERS, Share
from ccmac.linalg.ranks import row_space
from ccmac.objectives import Quadratic, quadratic

SEEDS = range(5)
D = 4
Q = 2
M = 3
P = 2
COARSE = 2.0**-8
LONG = 2.0**-6
TAIL = np.longdouble(2.0) ** -60  # below what a double keeps


class Made:
    """Blocks drawn at random; multipliers that are found to three quarters at a time."""

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch, sparse: bool = False) -> None:
        draw = self.draw = np.random.default_rng(seed).standard_normal
        self.A, self.B, self.C = draw((M, D)), draw((M, Q)), draw((P, D))
        self.b, self.c, self.unit = draw(M), 3 * draw(P), np.array([0.5, 4.0, 1.0])
        H = draw((D + Q, D + Q))
        self.g = draw(D + Q)
        self.H = H.T @ H
        given = Quadratic(sp.csr_array(self.H) if sparse else self.H, self.g)
        objective = Fake(
            value=lambda x, z: 2 * x[1] - z[0], precise_gradient=given.precise_gradient
        )
        agent = Fake(objective=objective, b=self.b, c=self.c)
        self.space = row_space(self.C)
        exact = self.space
        kernel = np.linalg.svd(self.C)[2][P:].T
        space = Fake(
            rank=P,
            basis=exact.basis,
            coordinates=exact.coordinates,
            singular=exact.singular,
            inverse_lengths=exact.inverse_lengths,
            multipliers=lambda v: 0.75 * exact.multipliers(v),
        )
        self.hidden = [(draw((2, Q)), draw(2))]
        reduced: Any = Fake(
            A=[None, self.A],
            B=[None, self.B],
            C=[None, self.C],
            unit=self.unit,
            kernels=[None, Fake(space=space, basis=kernel)],
            hidden=lambda k: self.hidden if k == 1 else [],
        )
        work: Any = Fake(problem=Fake(agents={3: None, 5: agent}, d={3: 0, 5: D}, q=Q, m=M))
        self.share = Share(work, reduced, 1)
        for module in (share, quadratic):
            monkeypatch.setattr(module, "EPS", COARSE)
            monkeypatch.setattr(module, "EPS_LONG", LONG)


@pytest.mark.parametrize("seed", SEEDS)
def test_gradients_and_their_rounding(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(seed, monkeypatch, sparse=bool(seed % 2))
    x = made.draw(D)
    z = made.draw(Q)
    u = np.append(x, z)
    said, rounding = made.share.gradient(x, z)
    assert said.dtype == np.longdouble
    assert said.astype(float) == pytest.approx(made.H @ u - made.g)
    sizes = np.abs(made.H) @ np.abs(u) + np.abs(made.g)
    assert rounding == pytest.approx((D + Q + 2) * LONG * np.linalg.norm(sizes) * (1 + 8 * COARSE))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_way_onto_the_local_equations(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(seed, monkeypatch)
    x = made.draw(D)
    across = np.linalg.pinv(made.C)
    assert made.share.onto_local(x).astype(float) == pytest.approx(
        x - across @ (made.C @ x - made.c)
    )
    assert made.share.inside(x) == pytest.approx(x - across @ made.C @ x)
    lengths = np.linalg.norm(made.C, axis=1)
    rows = made.C / lengths[:, None]
    right = made.c / lengths
    off = np.linalg.norm(rows @ x - right)
    noise = (D + 4) * LONG * (np.linalg.norm(rows) * np.linalg.norm(x) + np.linalg.norm(right))
    values = np.linalg.svd(rows, compute_uv=False)
    for coarse in (COARSE, 2.0**-20, 1.0):
        monkeypatch.setattr(share, "EPS", coarse)
        least = values[-1] - 4 * coarse * (P + D) * values[0]
        expected = (off + noise + 2 * coarse * off) / least if least > 0 else math.inf
        assert made.share.local_distance(x) == pytest.approx(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_stationarity_by_a_multiplier_found_in_two_steps(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(seed, monkeypatch)
    gradient = made.draw(D).astype(np.longdouble)
    price = made.draw(M)
    said, multiplier = made.share.stationarity(gradient, 0.3, price)
    total = gradient.astype(float) + made.A.T @ price
    best = np.linalg.lstsq(made.C.T, total, rcond=None)[0]
    kappa = 0.75 * best
    more = 0.75 * 0.25 * best
    assert multiplier == pytest.approx(-(kappa + more))
    left = total - made.C.T @ (kappa + more)
    spread = np.linalg.norm(np.abs(made.A).T @ np.abs(price)) + np.linalg.norm(
        gradient.astype(float)
    )
    spread += np.linalg.norm(np.abs(made.C).T @ (np.abs(kappa) + np.abs(more)))
    noise = 0.3 + (M + 2 * P + 3) * LONG * spread
    assert said == pytest.approx(np.linalg.norm(left) + noise)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_told_of_a_point(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """x, z and the price have more digits than doubles; each is looked at as rounded too."""
    made = Made(seed, monkeypatch)
    own = made.share
    x, z, price = (made.draw(k) + (TAIL * made.draw(k).astype(np.longdouble)) for k in (D, Q, M))
    x_high, z_high, y_high = (v.astype(float) for v in (x, z, price))
    told = own.tell(x, z, price)
    gradient, rounding = own.gradient(x, z)
    r, multiplier = own.stationarity(gradient[:D], rounding, price)
    assert told.gradient.tolist() == gradient.tolist()
    assert told.multiplier.tolist() == multiplier.tolist()
    misfit, slope, rounded, numbers = np.split(told.row, np.cumsum([2 * M, 2 * Q, M]))
    exact = own.misfit(x, z)
    assert misfit[:M] + misfit[M:] == pytest.approx(
        made.A @ x_high + made.B @ z_high - made.b, rel=1e-12
    )
    assert (misfit[:M].astype(np.longdouble) + misfit[M:]).tolist() == exact.tolist()
    assert (slope[:Q].astype(np.longdouble) + slope[Q:]).tolist() == gradient[D:].tolist()
    assert rounded == pytest.approx(made.A @ x_high + made.B @ z_high - made.b)
    assert rounded.tolist() == own.misfit(x_high, z_high).astype(float).tolist()
    [(hidden, e)] = made.hidden
    scaled = np.linalg.norm(made.unit[:, None] * made.A)
    low = [np.linalg.norm((v - w).astype(float)) for v, w in ((x, x_high), (price, y_high))]
    assert min(low) > 0
    expected = [
        rounding,
        r * r,
        x_high @ x_high,
        own.local_distance(x) ** 2,
        scaled**2,
        2 * x_high[1] - z_high[0],
        np.sum((made.C @ x_high - made.c) ** 2),
        low[0] ** 2,
        np.sum((made.A.T @ (price - y_high).astype(float)) ** 2),
        x_high @ x_high,
        np.sum((hidden @ z_high - e) ** 2),
    ]
    assert len(expected) == NUMBERS + 1
    assert numbers == pytest.approx(expected, rel=1e-9, abs=0.0)


def test_an_agent_without_sides_and_rows() -> None:
    agent = Fake(objective=None, b=None, c=None)
    work: Any = Fake(problem=Fake(agents={0: agent}, d={0: 2}, q=1, m=1))
    none = np.zeros((0, 2))
    kernel = Fake(space=row_space(none), basis=np.eye(2))
    reduced: Any = Fake(
        A=[np.ones((1, 2))],
        B=[np.ones((1, 1))],
        C=[none],
        unit=np.ones(1),
        kernels=[kernel],
        hidden=lambda k: [],
    )
    own = Share(work, reduced, 0)
    assert (own.b.tolist(), own.c.tolist()) == ([0.0], [])
    x = np.array([1.0, -2.0])
    assert own.onto_local(x).tolist() == x.tolist()
    assert own.local_distance(x) == 0.0
    assert own.misfit(x, np.array([5.0])).tolist() == [4.0]
