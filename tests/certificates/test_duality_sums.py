"""What the agents' shares add up to: gaps, contradictions and falls from made-up shares."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.certificates import duality
from ccmac.certificates.bounded import Shares
from ccmac.certificates.duality import Duality, Prices
from ccmac.certificates.gap import DualityGap, Goal
from ccmac.certificates.infeasibility import in_words
from ccmac.inputs import Array
from ccmac.linalg.ranks import Doubt
from ccmac.linalg.tolerances import EPS

SEEDS = range(8)
N = 3
M = 2
Q = 4
R = (1, 0, 2)
D_X = 2
INF = math.inf
COARSE = 2.0**-6
UNITS = np.array([2.0, 0.5, 4.0, 0.25])  # of z; those of x are 8
SQUARES = np.array([4.0, 1.0, 0.25, 9.0])  # of the first agent's columns of z
LED = 0.125  # what the leader's z and prices are larger by: all count with those


class Made:
    """Three agents that answer with numbers drawn at random; z is bounded in two entries.

    Its first entry from below by agents 0 and 2 alike, its second from above by agent 1.
    """

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        draw = self.draw = np.random.default_rng(seed).standard_normal
        self.asked: list[Any] = []
        self.charged: list[dict[str, int]] = []
        self.present = {"A", "C"} if seed % 2 else {"A", "B"}  # nobody has the third
        self.vectors, self.scalars = draw((N, M + Q)), draw((N, 13))
        sizes = [2, 6, 7, 8, 10, 11]  # squares, and rounding
        self.scalars[:, sizes] = np.abs(self.scalars[:, sizes])
        self.slope_x, self.slope_z = draw((N, D_X)), draw((N, Q))
        powers = 2.0 ** np.arange(-1, 2)
        B = list(draw((N, M, Q)))
        D = draw((3, Q))
        self.rows = [slice(0, 1), slice(1, 1), slice(1, 3)]

        def own_shared(k: int, prices: Array) -> tuple[Array, Array]:
            return (powers * prices)[self.rows[k]], D[self.rows[k]].T @ prices[self.rows[k]]

        self.reduced: Any = Fake(
            D=D,
            e=3 * draw(3),
            unit_D=powers,
            unit=np.array([0.5, 4.0]),
            least=0.375,
            beta=np.array([-8.0, 0.1]),
            beside=np.array([4.0, 1.0]),
            doubt=Doubt.NONE,
            B=B,
            own_shared=own_shared,
        )
        own = [(D / powers[:, None])[rows] for rows in self.rows]
        agents = {i: Fake(D=own[i] if k else None) for i, k in enumerate(R)}
        self.x0, self.z0 = draw(N * D_X), draw(Q)
        runtime = Fake(
            ride=lambda rows, whole: Fake(value=rows) if whole else None,
            common=lambda v: v + LED,
            average=lambda v: v.mean(axis=0, keepdims=True),
        )
        self.table = Fake(
            r=np.array(R, dtype=float),
            d=np.full(N, float(D_X)),
            quadratic=True,
            L=np.array([1.0, 2.0, 4.0]),
        )
        work: Any = Fake(
            doubts=[],
            problem=Fake(
                agents=agents, n=N, m=M, q=Q, present=self.present, d=dict.fromkeys(agents, D_X)
            ),
            runtime=runtime,
            space=Fake(x_of=lambda x, k: x[D_X * k : D_X * k + D_X]),
            curvature=self.table,
            ledger=Fake(charge=lambda **units: self.charged.append(units)),
        )
        low = np.full((N, Q), -INF)
        high = np.full((N, Q), INF)
        low[:, 0], high[:, 1] = (-1.0, -5.0, -1.0), (3.0, 2.0, 9.0)
        monkeypatch.setattr(duality, "Bounded", self._agent)
        self.bounds = np.hstack([low, high])
        forms: Any = ["f0", "f1", "f2"]
        self.units = np.append(np.ones(D_X), np.ones(Q))
        plain = Duality(work, self.reduced, forms, self.bounds, (self.x0, self.z0))
        assert plain.units.tolist() == [1.0] * Q
        self.units = np.append(np.full(D_X, 8.0), UNITS)
        units = [self.units[:D_X]] * N, UNITS
        found = Duality(work, self.reduced, forms, self.bounds, (self.x0, self.z0), units)
        assert found._room == 8 * EPS * (Q + 3 + N)
        assert found._rounding == 2 * EPS * (4 + math.sqrt(N * D_X + Q))
        assert found.lower.tolist() == [-1.0, -INF, -INF, -INF]
        assert found.upper.tolist() == [INF, 2.0, INF, INF]
        found._room = COARSE
        monkeypatch.setattr(duality, "EPS", COARSE / 2)
        monkeypatch.setattr(duality, "EPS_LONG", COARSE / 8)
        self.found = found
        self.agents = agents
        mine = self.mine = Prices(draw(M), draw(3), list(draw((N, 1))), list(draw((N, 2))))
        self.prices = replace(mine, coupled=mine.coupled + LED, shared=mine.shared + LED)

    def _agent(self, work: Any, reduced: Any, k: int, form: str, units: Array) -> Any:
        assert (form, units.tolist()) == (f"f{k}", self.units.tolist())

        def share(columns: slice, width: int, *more: Array) -> Any:
            def told(*given: Any) -> Shares:
                self.asked.append(given)
                numbers = self.scalars[k, :width].tolist()
                vector = self.vectors[k, columns]
                vector = np.concatenate([vector, *more])
                return Shares(vector, numbers, self.slope_x[k], self.slope_z[k])

            return told

        def fall(x: Array, z: Array) -> tuple[Array, list[float]]:
            self.asked.append((x, z))
            return self.vectors[k, :M], self.scalars[k, :8].tolist()

        low = np.array([0.0, -INF])
        high = np.array([INF, 0.0])
        return Fake(
            gap=share(slice(None), 13),
            fall=fall,
            contradiction=share(slice(M, None), 9, SQUARES * (k + 1)),
            lower=low if k else -low,
            upper=high,
        )

    def on_z(self, units: Array | float = 1.0) -> tuple[Array, Array, Array, float]:
        """(r on z, the bound it pushes to, whether there is one, what rounding adds on z)."""
        D = self.reduced.D
        delta = self.prices.shared
        total = self.vectors[:, M:].sum(axis=0)
        r = total + D.T @ delta
        ends = np.array([-1.0 if r[0] > 0 else INF, 2.0 if r[1] < 0 else INF, INF, INF])
        held = np.isfinite(ends)
        sizes = np.linalg.norm(units * (np.abs(total) + np.abs(D).T @ np.abs(delta)))
        rounded = 2 * 4 * COARSE / 8 * sizes + COARSE / 2 * np.linalg.norm((units * r)[~held])
        return r, ends, held, float(rounded)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_gap(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(seed, monkeypatch)
    reduced = made.reduced
    prices = made.prices
    rows = made.scalars
    x = made.draw(N * D_X)
    z = made.draw(Q) + LED
    found, said = made.found.gap(x, z - LED, made.mine)
    assert made.charged == [{"gradients": 1, **dict.fromkeys(made.present, 2)}]
    for k, (own, at, start, *paid) in enumerate(made.asked):
        piece = slice(D_X * k, D_X * k + D_X)
        assert (own.tolist(), at.tolist()) == (x[piece].tolist(), z.tolist())
        assert start.tolist() == [*made.x0[piece], *made.z0]
        expected = prices.coupled, prices.local[k], prices.terms[k]
        assert [v.tolist() for v in paid] == [v.tolist() for v in expected]
    base, value, far2, noise, room, spread, moved2, local2, near2, due = rows[:, :10].sum(axis=0)
    misfit, (r, ends, held, rounded) = made.vectors[:, :M].sum(axis=0), made.on_z(UNITS)
    off = reduced.D @ z - reduced.e
    away = np.where(held, r * (z - ends), r * (z - made.z0))
    owed = prices.coupled @ misfit + prices.shared @ off
    sizes = np.abs(reduced.D) @ np.abs(z) + np.abs(reduced.e)
    room += COARSE * (np.abs(away).sum() + np.abs(prices.shared) @ sizes)
    far2 += np.sum((UNITS * r)[~held] ** 2)
    slope = math.sqrt(far2) + noise + N * COARSE / 2 * spread + rounded
    assert found.base == pytest.approx(base + away.sum() - owed + room)
    assert (found.value, found.slope) == pytest.approx((value, slope))
    moved = math.sqrt(moved2 + np.sum(((z - made.z0) / UNITS) ** 2))
    assert found.travelled == pytest.approx(moved)
    assert found.least == UNITS.min()
    blur = rows[:, 10:12].sum(axis=0)
    lost = 2 * (Q + 2) * COARSE / 8 * sizes + COARSE / 2 * np.abs(off)
    coupled = np.abs(reduced.unit * misfit) / [4.0, 1.0] + blur[1]
    shared = (np.abs(off) + lost) / np.maximum(1.0, np.abs(reduced.e))
    assert found.violation == pytest.approx(max(*coupled, *shared, *rows[:, 12]))
    assert found.hidden == pytest.approx(blur[0] + COARSE * np.linalg.norm(sizes))
    assert found.lacks == pytest.approx(
        math.hypot(*(reduced.unit * misfit), *off, math.sqrt(near2))
    )
    # F may lie below F*: by what is owed, and by the way to the equations.
    near = math.sqrt(near2)
    left = math.hypot(
        np.linalg.norm(reduced.unit * misfit) + blur[0], np.linalg.norm(off) + np.linalg.norm(lost)
    )
    way = near + (left + math.sqrt(2 * M) * near) / 0.375
    steep = slope / UNITS.min()
    assert found.below == pytest.approx(abs(owed + due) + room + way * (steep + 7.0 * way / 2))
    assert said.report is not None
    assert said.report.residuals == pytest.approx(
        {
            "coupled": np.linalg.norm(misfit),
            "local": math.sqrt(local2),
            "shared": np.linalg.norm(off / reduced.unit_D),
            "consensus": 0.0,
        }
    )
    assert (said.stationarity, said.infeasibility) == (found.slope, found.violation)
    assert (said.size, said.report.objective) == (found.travelled, found.value)
    assert math.isnan(said.error)
    assert said.gradient_x.tolist() == made.slope_x.ravel().tolist()
    assert said.gradient_z.size == 0
    # Prices: of z what is left of every slope, but for what bounds hold, in equal parts.
    told = said.report.multipliers
    scaled = reduced.unit_D * prices.shared
    by_agent = [scaled[:1], scaled[1:1], scaled[1:]]
    assert [v.tolist() for v in told.shared] == [v.tolist() for v in by_agent]
    assert told.coupled.tolist() == said.price.tolist() == prices.coupled.tolist()
    assert told.local is made.mine.local
    for k in range(N):
        own = made.slope_z[k] + reduced.B[k].T @ prices.coupled
        if made.agents[k].D is not None:
            own += made.agents[k].D.T @ by_agent[k]
        if held[0]:
            own[0] -= r[0] * (0.0 if k == 1 else 0.5)
        if held[1]:
            own[1] -= r[1] * float(k == 1)
        assert told.consensus[k] == pytest.approx(np.where(held, 0.0, r) / N - own)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_contradiction(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(seed, monkeypatch)
    reduced = made.reduced
    prices = made.prices
    rows = made.scalars
    rows[:, [1, 7, 8]] = np.abs(rows[:, [1, 7, 8]])
    monkeypatch.setattr(duality, "CLEAN", 1e9)
    claims: list[tuple[float, ...]] = []

    def claim(*numbers: float) -> bool:
        claims.append(numbers)
        return len(claims) == 1

    monkeypatch.setattr(duality, "claimed", claim)
    found = made.found.contradiction(made.mine, 17.0)
    assert made.charged == [dict.fromkeys(made.present, 1)]
    for k, given in enumerate(made.asked):
        paid = prices.coupled, prices.local[k], made.mine.terms[k]
        assert [v.tolist() for v in given] == [v.tolist() for v in paid]
    value, far2, noise, room, spread = rows[:, :5].sum(axis=0)
    r, ends, held, rounded = made.on_z()
    gain = np.where(held, r * np.where(held, ends, 0.0), 0.0)
    value += gain.sum() - reduced.e @ prices.shared
    room += COARSE * (np.abs(gain).sum() + np.abs(reduced.e) @ np.abs(prices.shared))
    defect = math.sqrt(far2 + np.sum(r[~held] ** 2)) + noise + N * COARSE / 2 * spread + rounded
    assert claims == [pytest.approx((value - room, defect, 17.0))]
    assert found is not None
    assert (found.value, found.defect) == pytest.approx((value - room, defect))
    assert found.z_bounds == pytest.approx(np.where(held, r, 0.0))
    assert found.coupled.tolist() == prices.coupled.tolist()
    assert {i: v.tolist() for i, v in found.local.items()} == {
        i: prices.local[i].tolist() for i in range(N)
    }
    scaled = reduced.unit_D * prices.shared
    assert {i: v.tolist() for i, v in found.shared.items()} == {
        0: scaled[:1].tolist(),
        2: scaled[1:].tolist(),
    }
    assert {i: v.tolist() for i, v in found.bounds.items()} == {
        i: (-made.slope_x[i]).tolist() for i in range(N)
    }
    words = in_words(
        float(np.linalg.norm(prices.coupled)),
        float(np.linalg.norm(prices.shared)),
        float(np.linalg.norm(np.where(held, r, 0.0))),
        rows[:, 5:7],
    )
    assert found.message == words
    assert made.found.contradiction(made.mine, 17.0) is None
    # What is left of K'y beside the columns and the prices, all rows of length one.
    columns = np.sqrt(6 * SQUARES + np.sum(reduced.D**2, axis=0))
    left = max(rows[:, 7].max(), np.max((np.abs(r) / columns)[~held], initial=0.0))
    length = math.hypot(*(prices.coupled / reduced.unit), *prices.shared, *np.sqrt(rows[:, 8]))
    for share, count in ((0.999, 0), (1.001, 1)):
        claims.clear()
        monkeypatch.setattr(duality, "CLEAN", share * left / length)
        assert (made.found.contradiction(made.mine, 17.0) is not None) == bool(count)
        assert len(claims) == count


@pytest.mark.parametrize("seed", SEEDS)
def test_a_fall(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is summed, what ends it, and the direction within everybody's bounds."""
    made = Made(seed, monkeypatch)
    rows = np.abs(made.scalars[:, :8])
    rows[:, 0] += 10.0
    made.scalars[:, :8] = rows
    x = made.draw(N * D_X)
    z = made.draw(Q)
    fall, bend2, local2, room, size2, steep, curved, blur = rows.sum(axis=0)
    on_z = np.array([max(z[0], 0.0), min(z[1], 0.0), *z[2:]]) + LED
    length = math.sqrt(size2 + on_z @ on_z)
    image = np.append(made.reduced.unit * made.vectors[:, :M].sum(axis=0), made.reduced.D @ on_z)
    defect = (math.sqrt(bend2) + math.sqrt(local2) + np.linalg.norm(image) + blur) / length
    fall = (fall - room) / length
    reach = fall / (defect * max(1.0, steep))
    left = (math.sqrt(local2) + np.linalg.norm(image)) / length
    monkeypatch.setattr(duality, "REACH", 0.999 * reach)
    monkeypatch.setattr(duality, "FLAT", 1.001 * curved / length)
    made.found._rounding = 0.999 * left
    assert made.found.fall(x, z) is None
    made.asked.clear()
    made.charged.clear()
    made.found._rounding = 1.001 * left
    found = made.found.fall(x, z)
    assert found is not None
    assert made.charged == [dict.fromkeys(made.present, 1)]
    assert (found.fall, found.defect) == pytest.approx((fall, defect))
    assert found.z == pytest.approx(on_z / length)
    for k, (own, at) in enumerate(made.asked):
        first = x[2 * k]
        second = min(x[2 * k + 1], 0.0)
        assert own.tolist() == [max(first, 0.0), second]
        assert at.tolist() == on_z.tolist()
        assert found.x[k] == pytest.approx(own / length)
    for name, factor in (("REACH", 1.001 * reach), ("FLAT", 0.999 * curved / length)):
        with monkeypatch.context() as patch:
            patch.setattr(duality, name, factor)
            assert made.found.fall(x, z) is None
    made.reduced.doubt = Doubt.CONVENTION
    assert made.found.fall(x, z) is not None
    made.found.work.doubts.append("of something")
    assert made.found.fall(x, z) is None
    made.found.work.doubts.clear()
    made.reduced.doubt = Doubt.ROUNDING
    assert made.found.fall(x, z) is None


def test_a_fall_must_be_seen_and_have_a_length(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(0, monkeypatch)
    x = np.zeros(N * D_X)
    z = np.zeros(Q)
    made.found.runtime.common = lambda v: v  # type: ignore[method-assign]
    monkeypatch.setattr(duality, "REACH", 0.0)
    monkeypatch.setattr(duality, "FLAT", 0.5)
    made.found._rounding = INF
    for size2, fall, steep, there in (
        (1.0, 1.9e-9, 2.0, False),
        (1.0, 2.1e-9, 2.0, True),
        (0.0, 1.0, 2.0, False),
        (INF, INF, 2.0, False),
        (1.0, -1.0, 2.0, False),
        (1.0, 0.0, 0.0, False),
    ):
        made.scalars[:, :8] = 0.0
        made.scalars[1, 0], made.scalars[2, 4], made.scalars[0, 5] = fall, size2, steep
        made.scalars[0, 6] = 0.5  # as curved as a fall may be
        assert (made.found.fall(x, z) is not None) is there, (size2, fall)
        if 0 < size2 < INF:
            assert made.found.slope_seen is there
            assert (made.found.fall(x, z, 1e-10) is not None) is (fall > 0)
    # Beside the steepness, which is one at least.
    made.scalars[1, 0], made.scalars[2, 4], made.scalars[0, 5] = 1.0, 1.0, 0.25
    made.vectors[:, :M] = 0.0
    made.vectors[0, 0] = 2.0  # times the unit of a half: a defect of one
    for reach, there in ((1.0, True), (1.01, False)):
        monkeypatch.setattr(duality, "REACH", reach)
        assert (made.found.fall(x, z) is not None) is there


@pytest.mark.parametrize(
    ("violation", "lacks", "hidden", "met"),
    [
        (9e-4, 0.69e-4, 0.0, True),
        (1.1e-3, 0.0, 0.0, False),
        (9e-4, 0.71e-4, 0.0, False),
        (9e-4, 0.3, 0.31, True),
        (9e-4, 0.3, 0.29, False),
    ],
)
def test_what_may_be_a_contradiction_is_not_met(
    violation: float, lacks: float, hidden: float, met: bool
) -> None:
    """Of 1e-4 in rows of unit length, however large their sides, unless rounding is as large."""
    found = DualityGap(7.0, 0.0, 0.0, violation, 1.0, lacks=lacks, hidden=hidden)
    assert found.met(Goal(1e-3)) is met


@pytest.mark.parametrize(("least", "radius"), [(1.0, None), (0.25, None), (1.0, 3.0)])
def test_a_radius_is_told_in_the_users_units(least: float, radius: float | None) -> None:
    """Twice the way of 5 is required in units; told is the ball that lies within for certain."""
    found = DualityGap(7.0, 0.5, 0.125, 0.0, 5.0, least=least)
    record = found.record(Goal(1e-3, 2.0, radius))
    required = 10.0 if radius is None else radius
    assert record["radius"] == least * required
    assert record["radius_proved"] == least * (2.0 - 0.5) / 0.125
    assert record["gap"] == 0.5 + 0.125 * required
    assert ("in units" in record["radius_source"]) == (least < 1)


def test_what_lies_below(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(0, monkeypatch)
    found = made.found
    left = 1.75
    assert found._distance(left, 0.5) == pytest.approx(0.5 + (left + 2.0 * 0.5) / 0.375)
    assert found._below(0.7, 0.3, 2.0) == pytest.approx(0.7 + 2.0 * (0.3 + 7.0))
    made.table.quadratic = False
    assert found._below(0.7, 0.3, 2.0) == 0.0
    made.reduced.doubt = Doubt.OPINION
    assert found._below(0.7, 0.3, 2.0) == INF
    made.reduced.least = 0.0
    assert found._distance(left, 0.5) == INF


def test_without_rows_and_without_z_nothing_is_averaged(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Made(0, monkeypatch).found
    found.runtime.average = None  # type: ignore[method-assign, assignment]
    total, rows = found._summed([np.zeros(0)] * 2, [[1.0], [2.0]])
    assert (total.size, rows.tolist()) == (0, [[1.0], [2.0]])
