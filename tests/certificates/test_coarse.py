"""Every term that stands for rounding, in closed form: the unit of rounding is made coarse."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.certificates import dual_bound, explicit, inside, own_rows, proof, share
from ccmac.certificates.dual_bound import DualBound
from ccmac.certificates.explicit import ExplicitProof
from ccmac.certificates.proof import Proof
from ccmac.certificates.share import NUMBERS, Heard
from ccmac.linalg.nystrom import Columns, Shifted
from ccmac.linalg.ranks import Doubt
from ccmac.objectives import Quadratic
from ccmac.realizations.base import Images
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace

COARSE = 2.0**-5
INF = math.inf


# -- the proof in the user's rows ------------------------------------------------------------------
def proof_of(n: int = 2) -> Proof:
    """n agents with two coupled rows, and one shared row of length 5 at agent 0."""
    agents = [
        ccmac.Agent(
            Quadratic(np.diag([2.0, 1.0, 4.0]), np.array([1.0, 0.0, 2.0])),
            A=np.array([[3.0], [4.0]]),
            B=np.array([[1.0, 3.0], [2.0, -1.0]]) * (1 - 3 * i),
            b=np.ones(2),
            D=np.array([[3.0, 4.0]]) if i == 0 else None,
            e=np.array([2.0]) if i == 0 else None,
        )
        for i in range(n)
    ]
    found = Proof.of(Workspace(ccmac.Problem(agents), InProcess(ccmac.Network.complete(n))))
    assert found is not None
    return found


def test_what_is_heard_of_all_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums and roots; with a grain, what each of them may lack is added before the root."""
    monkeypatch.setattr(share, "EPS", COARSE)
    monkeypatch.setattr(share, "EPS_LONG", COARSE / 4)
    m = 1
    q = 2
    n = 3
    numbers = np.arange(1.0, n * NUMBERS + 1).reshape(n, NUMBERS)
    slopes = np.array([[3.0, 4.0, 0.1, 0.1], [0.0, 2.0, 0.1, 0.1], [1.0, 0.0, 0.1, 0.1]])
    table = np.hstack([np.full((n, 2 * m), 7.0), slopes, np.array([[1.0], [2.0], [-4.0]]), numbers])
    sums = numbers.sum(axis=0)
    for grain in (None, 0.5):
        heard = Heard.of(table, m, q, grain)
        more = 0.0 if grain is None else grain
        noise = sums[0] + n * COARSE / 4 * 8.0
        if grain is not None:
            noise += 4 * COARSE * 8.0 + 4 * grain * math.sqrt(q)
        assert heard.noise == pytest.approx(noise)
        said = [
            heard.stationarity,
            heard.off,
            heard.scaled,
            heard.tail,
            heard.price_tail,
            heard.long_size,
        ]
        assert said == pytest.approx([math.sqrt(sums[k] + more) for k in (1, 3, 4, 7, 8, 9)])
        assert (heard.size, heard.local) == pytest.approx((math.sqrt(sums[2]), math.sqrt(sums[6])))
        assert (heard.value, heard.rounded.tolist()) == (sums[5], [-1.0])
        assert heard.slopes.tolist() == slopes.tolist()
        assert math.isnan(heard.shared)
        hidden = Heard.of(np.hstack([table, [[1.0], [5.0], [3.0]]]), m, q, grain)
        assert (hidden.shared, hidden.noise) == (3.0, heard.noise)


def test_the_bound_is_of_the_long_point_and_its_rounding_is_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """x = 1 + t, z = 1 + t with t below what a double keeps, a price likewise."""
    found = proof_of()
    monkeypatch.setattr(proof, "EPS", COARSE)
    t = np.longdouble(2.0) ** -60
    one = np.ones(1, dtype=np.longdouble)
    pieces = [one + t, one + t]
    z = np.array([1.0, 2.0]) + t * np.ones(2)
    price = np.array([1.0, 2.0]) + t
    sizes: list[float] = []

    def distance(self: Proof, z: Any, coupled: Any, size: float, heard: Heard) -> float:
        sizes.append(size)
        return 0.25

    monkeypatch.setattr(Proof, "_distance", distance)
    monkeypatch.setattr(Proof, "_shared_stationarity", lambda self, s, y: (4.0, np.zeros(1)))
    said = found.judged(pieces, z.astype(np.longdouble), price.astype(np.longdouble))
    grow = 1 + 16 * COARSE
    own = [a.tell(v, z, price).row[-NUMBERS + 1] for a, v in zip(found.agents, pieces, strict=True)]
    r = math.hypot(math.sqrt(sum(own)), 4.0 + 0.0) * grow
    delta = 0.25 * grow
    tail = float(t) * 2.0 * grow  # of two x and two entries of z
    bound = proof.distance_bound(r, delta, found.mu, found.L)
    assert said.error == pytest.approx(bound + tail, rel=1e-12)
    assert said.infeasibility == pytest.approx(delta + tail, rel=1e-12)
    assert said.stationarity == pytest.approx(r, rel=1e-12)
    assert said.size == pytest.approx(math.sqrt(2 + 5))
    assert sizes == pytest.approx([math.sqrt(2 + 5)])
    assert (said.gradient_x.shape, said.gradient_z.shape) == ((2,), (2, 2))
    # Curvature on the kernel of the equations alone, none at all, rows in doubt.
    mu = found.mu
    inner = proof.inner_bound(r, delta, 0.5, found.L) + tail
    for found.mu, found.inside, found.reduced.doubt, error in (
        (0.0, 0.5, Doubt.ROUNDING, inner),
        (INF, 0.5, Doubt.ROUNDING, inner),
        (0.0, 0.0, Doubt.ROUNDING, INF),
        (mu, 0.5, Doubt.ROUNDING, bound + tail),
        (mu, 0.0, Doubt.OPINION, INF),
        (0.0, 0.5, Doubt.OPINION, INF),
    ):
        said = found.judged(pieces, z.astype(np.longdouble), price.astype(np.longdouble))
        assert said.error == pytest.approx(error, rel=1e-12)
    found.mu = mu
    found.reduced.doubt = Doubt.NONE
    for far in ((math.nan, 0.25), (4.0, INF)):
        monkeypatch.setattr(Proof, "_distance", lambda self, z, c, s, h, far=far: far[1])
        monkeypatch.setattr(
            Proof, "_shared_stationarity", lambda self, s, y, far=far: (far[0], np.zeros(1))
        )
        said = found.judged(pieces, z.astype(np.longdouble), price.astype(np.longdouble))
        assert said.error == INF


def test_what_rounding_takes_from_point_and_price_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same where it is all there is: r = 0, delta = 0."""
    found = proof_of()
    monkeypatch.setattr(Proof, "_distance", lambda self, z, coupled, size, heard: 0.0)
    monkeypatch.setattr(Proof, "_shared_stationarity", lambda self, s, y: (0.0, np.zeros(1)))
    monkeypatch.setattr(proof, "EPS", COARSE)
    t = np.longdouble(2.0) ** -60
    grow = 1 + 16 * COARSE
    z = np.array([1.0 + t, 2.0 + t])
    price = np.array([1.0 + t, 2.0 - t])
    told = found.tell([np.array([1.0 + t])] * 2, z, price)
    table = np.stack([share.row for share in told])
    table[:, -NUMBERS : -NUMBERS + 2] = 0.0  # noise and r
    table[:, 4:8] = 0.0  # slopes, whose sum rounds
    said = found.concluded(told, table, [np.array([1.0 + t])] * 2, z, price)
    tail = 2 * float(t) * grow
    low = np.array([1.0, -1.0]) * float(t)
    Bbar = np.array([[-1.0, -3.0], [-2.0, 1.0]])
    off = math.sqrt(2 * (np.array([3.0, 4.0]) @ low) ** 2 + np.sum((Bbar.T @ low) ** 2))
    assert said.error == pytest.approx(tail, rel=1e-9, abs=0.0)
    assert said.infeasibility == pytest.approx(tail, rel=1e-9, abs=0.0)
    assert said.stationarity == pytest.approx(found.L * tail + off * grow, rel=1e-9, abs=0.0)


# -- contradictions --------------------------------------------------------------------------------
def test_values_and_defects_of_a_multiplier_count_their_rounding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(own_rows, "EPS_LONG", COARSE)
    M = np.array([[3.0, 1.0], [1.0, 2.0]])
    right = np.array([5.0, -2.0])
    price = np.array([1.0, -2.0])
    found = own_rows._weighed(M, right, price)
    assert found.value == pytest.approx(9.0)
    assert found.sure == pytest.approx(9.0 - 4 * COARSE * 9.0)
    defect = math.hypot(1.0, 3.0) + 4 * COARSE * math.hypot(5.0, 5.0)
    assert found.defect == pytest.approx(defect)
    # Two blocks that cancel exactly, and two that do not.
    assert own_rows.defect_of([(M, price), (M, -price)]) == 0.0
    both = own_rows.defect_of([(M, price), (M[:1], np.array([1.0]))])
    expected = math.hypot(4.0, 2.0) + 5 * COARSE * (math.hypot(5.0, 5.0) + math.hypot(3.0, 1.0))
    assert both == pytest.approx(expected)


# -- curvature on the kernel of all equations ------------------------------------------------------
def test_the_least_eigenvalue_counts_its_rounding() -> None:
    """In units of the diagonal, or as it is: the better of the two."""
    assert inside._least(np.zeros((0, 0)), COARSE) == (INF, 1.0)
    P = np.array([[4.0, 0.0], [0.0, 100.0]])  # scaled: the identity
    least, kappa = inside._least(P, COARSE)
    assert (least, kappa) == pytest.approx((4 * (1 - COARSE), 1.0))
    P = np.array([[2.0, 1.0], [1.0, 2.0]])
    least, kappa = inside._least(P, COARSE)
    assert (least, kappa) == pytest.approx((1 - 3 * COARSE, 3.0))
    # As it is: 3 and 8 with diagonal (4, 7); scaled 1 -+ 2/sqrt(28).
    P = np.array([[4.0, 2.0], [2.0, 7.0]])
    low = 1 - 2 / math.sqrt(28)
    high = 1 + 2 / math.sqrt(28)
    least, kappa = inside._least(P, COARSE)
    assert (least, kappa) == pytest.approx(
        (max(3 - 8 * COARSE, 4 * (low - high * COARSE)), high / low)
    )
    assert inside._least(np.array([[1.0, 1.0], [1.0, 1.0]]), COARSE)[1] > 1e15


def _scalar(
    S: float, G: float, W: float, p: float, t: float, lost: float, off_W: float, eta: float
) -> float:
    """The module's text for one c and one row, over all eps."""
    best = 0.0
    for power in range(2, 13, 2):
        eps = W * 10.0**-power
        if eps < off_W:
            continue
        sigma = math.sqrt(max(S, 0.0) + G * G / (W + eps) / 1.1)
        sigma -= 8 * COARSE**2 * 2 * (1 + math.sqrt(W / eps)) * sigma
        if sigma > 0:
            mu = 1 / ((p**-0.5 + t / sigma) ** 2 + sigma**-2)
            best = max(best, mu - lost - 11.0 * eta**2 / eps)
    return best


@pytest.mark.parametrize(
    "numbers",
    [
        (2.0, 3.0, 4.0, 5.0, 0.5, 0.0, 0.0, 0.0),
        (2.0, 3.0, 4.0, 5.0, 0.5, 0.01, 1e-3, 1e-3),
        (2.0, 0.0, 4.0, 5.0, 0.0, 0.0, 0.0, 1e-4),
        (-2.0, 3.0, 4.0, 5.0, 0.5, 0.0, 1e-5, 1e-2),
    ],
)
def test_the_best_curvature_in_closed_form(
    numbers: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inside, "EPS", COARSE**2)
    S, G, W, p, t, *off = numbers
    blocks = np.array([[S]]), np.array([[G]]), np.array([[W]])
    said = inside._best(blocks, (p, t), tuple(off))  # type: ignore[arg-type]
    assert said == pytest.approx(_scalar(*numbers), rel=1e-9)
    assert said > 0


@pytest.mark.parametrize("seed", range(6))
def test_the_best_curvature_of_several_variables(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text's S + G'(W + eps)^{-1}G / 1.1 by a dense inverse; W is not diagonal."""
    unit = COARSE**3
    monkeypatch.setattr(inside, "EPS", unit)
    draw = np.random.default_rng(seed).standard_normal
    S = draw((2, 3))
    W = draw((3, 3)) / 4
    G = draw((3, 3))
    S = S.T @ S  # S has a kernel
    W = W.T @ W
    p = 5.0
    t = 0.5
    lost = 0.01
    off_W = 1e-7
    eta = 1e-5
    best = 0.0
    top = float(np.linalg.norm(W))
    for eps in (top * 10.0**-power for power in range(2, 13, 2)):
        values = np.linalg.eigvalsh(S + G.T @ np.linalg.inv(W + eps * np.eye(3)) @ G / 1.1)
        sigma = math.sqrt(values[0]) - 8 * unit * 6 * (1 + math.sqrt(top / eps)) * math.sqrt(
            values[-1]
        )
        if eps >= off_W and sigma > 0:
            mu = 1 / ((p**-0.5 + t / sigma) ** 2 + sigma**-2)
            best = max(best, mu - lost - 11.0 * eta**2 / eps)
    assert best > 0
    said = inside._best((S, G, W), (p, t), (lost, off_W, eta))
    assert said == pytest.approx(best, rel=1e-6)


def test_the_best_curvature_in_its_corners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inside, "EPS", COARSE)
    none = np.zeros((0, 0))
    S = np.array([[2.0]])
    # Nothing in common: that of the agents; nothing at all: anything.
    assert inside._best((none, none, none), (5.0, 0.0), (0.5, 0.0, 0.0)) == pytest.approx(4.5)
    assert inside._best((none, none, none), (INF, 0.0), (0.0, 0.0, 0.0)) == 1.0
    # As much as W may be off by is enough for eps, and no less.
    one = np.ones((1, 1))
    S_1 = np.array([[1e3]])
    for off_W, there in ((1e-2, True), (1.001e-2, False)):
        with monkeypatch.context() as patch:
            patch.setattr(inside, "EPS", 0.0)
            found = inside._best((S_1, one, one), (5.0, 0.0), (0.0, off_W, 0.0))
            assert (found > 0) == there
    # No rows: S alone.
    sigma = math.sqrt(2.0) * (1 - 8 * COARSE * 1 * (1 + math.sqrt(0.5)))
    mu = 1 / ((5.0**-0.5 + 0.5 / sigma) ** 2 + sigma**-2)
    said = inside._best((S, np.zeros((0, 1)), none), (5.0, 0.5), (0.0, 0.0, 0.0))
    assert said == pytest.approx(max(mu, 0.0) if sigma > 0 else 0.0)


def test_the_curvature_of_all_counts_what_everybody_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes into the search over eps, from the summed matrix and two agents' numbers."""
    monkeypatch.setattr(inside, "EPS", COARSE)
    seen: list[Any] = []

    def best(*given: Any) -> float:
        seen.append(given)
        return 10.0

    monkeypatch.setattr(inside, "_best", best)
    K = np.array([[2.0, 3.0], [3.0, -4.0]])
    facts = np.array(
        [
            [5.0, 1.0, 0.1, 0.6, 0.3, 0.4, 7.0, 0.01, 3.0],
            [6.0, 3.0, 0.2, 0.1, 0.1, 0.1, 6.0, 0.02, 4.0],
        ]
    )
    reduced: Any = Fake(rank=1, least=0.5, sigma=np.array([2.0, 1.0]), frobenius=3.0, angle=0.0)
    found = inside.inside(K, 1, facts, reduced, 8.0)
    count = COARSE * (2 + 2 + 4)
    (S, G, W), own, (lost, off_W, eta) = seen[0]
    assert [float(v) for v in (S[0, 0], G[0, 0], W[0, 0])] == [2.0, 3.0, 4.0]
    assert own == (5.0, 2.0)
    assert lost == pytest.approx(2 * (0.3 + 8 * count * 2.0) + 0.5)
    assert off_W == pytest.approx(0.7 + 16 * count * 4.0)
    assert eta == pytest.approx(0.4 + 8 * count * 3.0 + (1.0 - 0.5 + 8 * count * 3.0) / 1.0)
    assert (found.mu, found.noise, found.size) == pytest.approx((10.0, 0.3, 7.0))
    assert (found.kept, found.dropped) == (6.0, 0.02)
    # A kernel that rounding turned; rows that rounding may have made dependent; none at all.
    reduced.angle = 0.125
    assert inside.inside(K, 1, facts, reduced, 8.0).mu == pytest.approx(
        10 * 0.875**2 - 2 * 8 * 0.125
    )
    reduced.angle = 0.9
    assert inside.inside(K, 1, facts, reduced, 8.0).mu == 0.0
    reduced.angle = 0.0
    reduced.least = 0.0
    assert inside.inside(K, 1, facts, reduced, 8.0).mu == 0.0
    reduced.rank = 0
    assert inside.inside(K, 1, facts, reduced, 8.0).mu == 10.0
    assert seen[-1][2][2] == pytest.approx(0.4 + 8 * count * 3.0)
    facts[0, 0] = 0.5
    assert inside.inside(K, 1, facts, reduced, 8.0).mu == 10.0
    facts[0, 0] = 0.0
    assert inside.inside(K, 1, facts, reduced, 8.0).mu == 0.0


# -- where z follows from x ------------------------------------------------------------------------
def test_the_bound_of_x_and_z_in_closed_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two agents with x = (3, 4) and 12, |A| = 2 and 1, b = 5 and 0, beta = -2, misfit 6: z = 3."""
    monkeypatch.setattr(explicit, "EPS", COARSE)
    found: Any = object.__new__(ExplicitProof)
    pieces = [np.array([3.0, 4.0]), np.array([12.0])]
    means = [np.array([[3.0]]), np.array([[84.5]]), np.array([[13.5]])]
    given: list[list[Any]] = []

    def combine(rows: list[Any]) -> list[Any]:
        given.append(rows)
        return means

    found.space = Fake(count=2, x_of=lambda x, k: pieces[k])
    found.problem, found._norms, found.norm = Fake(n=2, m=1), np.array([2.0, 1.0]), math.sqrt(5)
    found.explicit = Fake(beta=-2.0)
    found.mu = 0.5
    found.L_z = 4.0
    found._right = np.array([[5.0], [0.0]])
    found.runtime = Fake(
        combine=combine, unseen=lambda m: 0.25, total=lambda squares: squares.sum(axis=0)
    )
    images = np.array([16.0, -5.0])
    found.work = Fake(
        coupling=Fake(A=Fake(forward=lambda x: images)), curvature=Fake(d=np.array([2, 1]))
    )
    found._slopes = lambda z: (np.array([[1.0], [5.0]]), np.array([6.0]), 6.5, 0.75)
    found._gradients = lambda x, price, long: (
        np.full(3, float(price[0])),
        np.array([[4.0], [5.0]]),
    )
    said = found.at(np.zeros(3))
    rows, squares, sizes = given[0]
    assert rows.tolist() == [[11.0], [-5.0]]
    assert squares.tolist() == [[25.0], [144.0]]
    assert sizes.tolist() == [[15.0], [12.0]]
    assert said.z.tolist() == [3.0]
    assert said.price.tolist() == [3.0]
    assert said.gradient_x.tolist() == [3.0, 3.0, 3.0]
    off_z = COARSE * (2 + 2 + 4) * (27.0 / 2 + 3.0) + 2 * 0.5 / 2
    noise = 4.0 * off_z + COARSE * 10 * 6.5 + 0.75 + 0.5
    r = (math.sqrt(9.25) + math.sqrt(5) * noise / 2) * (1 + 8 * COARSE)
    off = r / 0.5
    assert said.stationarity == pytest.approx(r)
    assert said.infeasibility == pytest.approx(2 * off_z)
    assert said.error == pytest.approx(math.hypot(off, math.sqrt(5) * off / 2 + off_z))
    assert said.size == pytest.approx(math.sqrt(169.0 + 9.0))
    found.work.curvature.d[:] = 0
    assert found.at(np.zeros(3)).infeasibility == pytest.approx(2 * (off_z - COARSE * 2 * 16.5))


@pytest.mark.parametrize("common", [True, False])
def test_slopes_in_z_are_summed_unless_all_know_them(
    common: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With their own rounding, in units of EPS where it is summed with their sizes."""
    monkeypatch.setattr(explicit, "EPS", COARSE)
    found = ExplicitProof.__new__(ExplicitProof)
    charged: list[Any] = []
    told = [(np.array([3.0, 4.0]), 2 * COARSE), (np.array([0.0, 1.0]), 4 * COARSE)]
    known: Any = Fake(common=common, parts=[Fake(precise_at=lambda z, t=t: t) for t in told])
    found.explicit, found.problem = known, Fake(n=2)  # type: ignore[assignment]
    found.work = Fake(ledger=Fake(charge=lambda **units: charged.append(units)))  # type: ignore[assignment]
    found.runtime = Fake(  # type: ignore[assignment]
        common=lambda v: v, combine=lambda rows: [r.mean(axis=0, keepdims=True) for r in rows]
    )
    slopes, *said = found._slopes(np.zeros(2))
    assert slopes.tolist() == [[3.0, 4.0], [0.0, 1.0]]
    expected = ([6.0, 8.0], 10.0, 4 * COARSE) if common else ([3.0, 5.0], 12.0, 0.0)
    assert (said[0].tolist(), *said[1:]) == expected
    assert charged == [{"gradients": 1}]


def test_a_proof_is_made_where_there_is_hope() -> None:
    """The error over gap / sqrt(mu), at most at first, then as it was proved."""
    errors = [3.0, 1.0]
    point = np.zeros(1), np.array([[4.8, 6.4]])  # of length 8
    iteration: Any = Fake(point=lambda state: point, finished=lambda state: False)
    part: Any = Fake(norm=3.0, explicit=Fake(beta=-4.0), mu=0.25)
    part.at = lambda x, long: explicit.Proved(
        *point, errors.pop(0), 0.0, 0.0, 10.0, *[np.zeros(0)] * 3
    )
    stop = explicit.ExplicitStop(part, 0.1)
    assert stop.due(1)
    assert stop.memory() == {"ratio": 1.25}
    check = stop.check(iteration, Fake(gap=0.321), 7)  # 1.25 * 0.321 / 0.5 > 0.1 * 8
    assert math.isnan(check.bound)
    assert not check.done
    check = stop.check(iteration, Fake(gap=0.319), 7)
    assert (check.bound, check.done) == (3.0, False)
    assert stop.memory()["ratio"] == pytest.approx(3.0 * 0.5 / 0.319)
    check = stop.final(iteration, None)
    assert (check.bound, check.done) == (1.0, True)  # 0.1 * 10, just so
    stop.recall({"ratio": 2.0})
    assert stop.memory() == {"ratio": 2.0}


@pytest.mark.parametrize(
    ("z", "size", "gap", "there", "done"),
    [
        (8.0, 8.0, 0.4, True, True),
        (8.0, 7.99, 0.4, True, False),
        (0.25, 0.5, 0.05, True, False),
        (0.25, 0.5, 0.0501, False, False),
        (8.0, 8.0, 0.0, True, True),
    ],
)
def test_hopes_and_proofs_are_compared_with_the_size_or_one(
    z: float, size: float, gap: float, there: bool, done: bool
) -> None:
    """tol = 1/8, ratio 1.25, mu = 1/4: a hope of 2.5 gap, a proof of 1."""
    point = np.zeros(1), np.array([[z]])
    part: Any = Fake(norm=3.0, explicit=Fake(beta=-4.0), mu=0.25)

    def at(x: Any, long: bool) -> explicit.Proved:
        assert x is point[0]
        assert not long
        return explicit.Proved(*point, 1.0, 0.0, 0.0, size, *[np.zeros(0)] * 3)

    part.at = at
    iteration: Any = Fake(point=lambda state: point, finished=lambda state: False)
    stop = explicit.ExplicitStop(part, 0.125)
    assert stop.due(1) is True
    check = stop.check(iteration, Fake(gap=gap), 7)
    assert (math.isnan(check.bound), check.done) == (not there, done)
    if there:
        assert stop.memory()["ratio"] == pytest.approx(0.5 / max(gap, 1e-300))
    part.at = lambda x, long: explicit.Proved(*point, 0.125, 0.0, 0.0, 0.5, *[np.zeros(0)] * 3)
    assert stop.final(iteration, None).done
    part.at = lambda x, long: explicit.Proved(*point, 0.126, 0.0, 0.0, 0.5, *[np.zeros(0)] * 3)
    assert not stop.final(iteration, None).done


# -- a price alone ---------------------------------------------------------------------------------
PLAIN = Shifted(Columns(), np.zeros((0, 0)), 1.0, 0.0)


def test_many_agents_in_one_pass_say_what_each_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rounding of r is counted with all agents' columns, which are more; H and g are products,
    rounded as doubles are.
    """
    for name in ("EPS", "EPS_LONG"):
        monkeypatch.setattr(dual_bound, name, COARSE)
    random = np.random.default_rng(0)
    d = [2, 2, 2]
    n = 3
    A, H, g = (random.standard_normal(s) for s in ((2, 6), 6, 6))
    x, price, b = (random.standard_normal(s) for s in (6, 2, (3, 2)))
    gradients = np.split((H * x - g).astype(np.longdouble), 3)
    agents = {}
    for i, v in enumerate(gradients):
        f = Fake(value=lambda x, z: float(x @ x), precise_gradient=lambda x, z, v=v: (v, 0.0))
        agents[i] = Fake(A=A[:, 2 * i : 2 * i + 2], b=b[i], objective=f)
    blocks = np.array([np.linalg.norm(agents[i].A) for i in range(n)])
    parts: Any = Fake(
        problem=Fake(agents=agents, n=n),
        m=2,
        whole=None,
        g_x=g,
        b=b,
        space=Fake(d=d, count=n, x_size=6, x_of=lambda x, k: x[2 * k : 2 * k + 2]),
        lengths_of_blocks=blocks,
        A=Fake(abreast=None, blocks=[agent.A for agent in agents.values()], columns=d),
    )
    bound = DualBound(parts, PLAIN)
    alone = bound._all(x, np.zeros(1), price)
    parts.whole = Fake(H=H, A=A)
    parts.A.abreast = A
    together = bound._all(x, np.zeros(1), price)
    assert together[:, [1, 3]] == pytest.approx(alone[:, [1, 3]])
    assert together[:, 2] == pytest.approx(alone[:, 2] * (6 + n + 4) / (2 + n + 4))
    pulled = A.T @ price

    def of(v):
        return np.linalg.norm(v.reshape(3, 2), axis=1)

    left = of(H * x - g + pulled)
    through = blocks * np.linalg.norm(price)
    own = left + COARSE * 6 * (through + of(H * x - g))
    assert np.sqrt(alone[:, 0]) == pytest.approx(own)
    sizes = of(H * x) + of(g)
    both = left + COARSE * 8 * (through + sizes) + 2 * COARSE * sizes
    assert np.sqrt(together[:, 0]) == pytest.approx(both)


def test_the_metric_loses_what_rounding_may_have_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dual_bound, "EPS", COARSE)
    given: list[Any] = []

    def of(vectors: Any, images: Any, noise: float) -> Any:
        given.append((vectors, images, noise))
        return Fake(plus=lambda c: ("M", c))

    monkeypatch.setattr(dual_bound, "Nystrom", Fake(of=of))
    parts: Any = Fake(
        table=Fake(L_x=np.array([4.0, 2.0]), d=np.array([1, 3])),
        noise=0.5,
        c=2.0,
        m=2,
        problem=Fake(n=6),
        runtime=Fake(unseen=lambda m: 9.0),
    )
    top = 4.0 * (1 + 2 * COARSE)
    found = DualBound.from_block(parts, Images(np.eye(2), np.diag([2.0, 8.0])))
    assert found.M == ("M", 2.0)
    assert given[0][1] == pytest.approx(np.diag([2.0, 8.0]) * 6 / top)
    assert given[0][2] == pytest.approx(0.5 + 8 * COARSE * 2.0 + 3.0 / top)


def test_multipliers_of_a_price_alone() -> None:
    """nu_i = g_i - h_i z - beta_i y; no other equations."""
    problem = Fake(agents={0: None, 1: None}, p={0: 0, 1: 0}, r={0: 0, 1: 0})
    parts: Any = Fake(
        problem=problem,
        h_of=np.array([2.0, 3.0]),
        multiples=np.array([-1.0, 4.0]),
        g_z=np.array([[1.0, 2.0], [3.0, 4.0]]),
    )
    z = np.array([1.0, -1.0])
    price = np.array([5.0, 0.5])
    found = DualBound(parts, PLAIN)._prices(z, price)
    assert found.coupled.tolist() == price.tolist()
    expected = [[1 - 2 + 5, 2 + 2 + 0.5], [3 - 3 - 20, 4 + 3 - 2]]
    assert found.consensus == pytest.approx(np.array(expected))
    assert [v.tolist() for v in (*found.local, *found.shared)] == [[]] * 4


class Proving:
    """Bounds as listed, for points of size 10 unless said otherwise."""

    def __init__(self, *errors: float, size: float = 10.0) -> None:
        self.errors, self.slopes, self.size = list(errors), list[float](), size
        self.parts = Fake(shared=lambda price, slope: price)

    def estimate(self, energy: float) -> float:
        return energy

    def slope_again(self) -> tuple[Any, float]:
        return np.zeros(1), 77.0

    def at(self, price: Any, slope: Any, slopes: float) -> Any:
        self.slopes.append(slopes)
        self.given = slope
        return Fake(error=self.errors.pop(0), size=self.size)


def test_a_price_is_proved_once_its_residual_gives_hope() -> None:
    """tol |z| = 0.1 * 4; after a failure the estimate must halve."""
    proving: Any = Proving(2.0, 0.9)
    stop = dual_bound.DualStop(proving, 0.1)
    energy = [0.41]
    method: Any = Fake(
        energy=lambda state: energy[0], prices=lambda state: (np.array([4.0]), np.zeros(1), 3.0)
    )
    check = stop.check(method, None, 5)
    assert (check.bound, check.done) == (0.41, False)
    energy[0] = 0.4
    check = stop.check(method, None, 6)
    assert (check.bound, check.done) == (2.0, False)
    assert float(stop.memory()["hope"]) == 0.2
    energy[0] = 0.21
    assert stop.check(method, None, 7).bound == 0.21
    energy[0] = 0.19
    check = stop.check(method, None, 8)
    assert (check.bound, check.done, proving.slopes) == (0.9, True, [3.0, 3.0])
    # What is read from a file is computed anew.
    proving = Proving(1.5)
    stop = dual_bound.DualStop(proving, 0.1)
    stop.recall({"hope": "0.25"})
    assert not stop.final(method, None).done
    assert proving.slopes == [77.0]
    assert stop.memory() == {"hope": "0.25"}
    with pytest.raises(ValueError, match="none"):
        stop.recall({"hope": "-1"})


def spaced(proving: Any, planned: float | None = 40.0, warm: bool = False) -> Any:
    rider: Any = Fake(value=np.array([3.0, 4.0, 5.0]))
    return dual_bound.SpacedDualStop(proving, 1e-4, rider, planned, warm=warm)


def test_proofs_are_spaced_by_the_rate_planned_or_seen() -> None:
    method: Any = Fake(price=lambda state: np.array([4.0]))
    proving = Proving(1e-1, 1e-1, 1e-2, 1e-3)
    stop = spaced(proving)
    assert next(k for k in range(40) if stop.due(k)) == 28
    rate = math.log(1e4) / 40
    check = stop.check(method, None, 28)
    assert not check.done
    memory = stop.memory()
    assert (memory["rate"], memory["last"]) == (pytest.approx(rate), (28, 0.1))
    assert stop.memory()["next"] == 28 + math.ceil(math.log(0.1 / 1e-3) / rate)
    # No progress: the rate planned. A decade in one step: faster than planned.
    stop.check(method, None, 30)
    assert stop.memory()["next"] == 30 + math.ceil(math.log(100.0) / rate)
    stop.check(method, None, 31)
    assert stop.memory()["next"] == 31 + 1
    assert stop.check(method, None, 32).done
    assert proving.slopes == [5.0] * 4
    assert proving.given.tolist() == [3.0, 4.0]
    assert spaced(None, warm=True).due(1)
    assert not spaced(None, planned=None).due(dual_bound.FIRST_CHECK - 1)
    assert spaced(None, planned=None).due(dual_bound.FIRST_CHECK)
    assert spaced(None, planned=INF).due(dual_bound.FIRST_CHECK)
    assert [spaced(None, planned=plan).memory()["rate"] for plan in (None, INF)] == [0.0, 0.0]


def test_without_a_rate_proofs_wait_a_fifth_and_never_far() -> None:
    method: Any = Fake(price=lambda state: np.array([4.0]))
    stop = spaced(Proving(INF, INF), planned=None)
    stop.check(method, None, 10)
    assert stop.memory()["next"] == 13
    stop.check(method, None, 50)
    assert stop.memory()["next"] == 60
    stop = spaced(Proving(1e30, 1e30), planned=1e4)
    stop.check(method, None, 4)
    assert stop.memory()["next"] == 14
    stop.check(method, None, 50)
    assert stop.memory()["next"] == 100
    stop = spaced(Proving(0.5, 1e-3))
    stop.recall({"next": 3, "rate": 0.5, "last": [2, 1.0]})
    assert stop.due(3)
    assert not stop.due(2)
    assert stop.memory() == {"next": 3, "rate": 0.5, "last": (2, 1.0)}
    assert not stop.final(method, None).done
    assert stop.final(method, None).done
    assert stop.bound.slopes == [77.0, 77.0]
    with pytest.raises(ValueError, match="none"):
        stop.recall({"next": 3, "rate": math.inf, "last": None})


def test_the_spacing_of_proofs_in_closed_form() -> None:
    method: Any = Fake(price=lambda state: np.array([4.0]))
    assert spaced(None, planned=41.0).memory()["next"] == 29  # 28.7 steps
    # A tolerance near one plans for a half.
    rider: Any = Fake(value=np.zeros(2))
    loose = dual_bound.SpacedDualStop(Proving(), 0.75, rider, 8.0, warm=False)  # type: ignore[arg-type]
    assert loose.memory() == {"next": 6, "rate": pytest.approx(math.log(2.0) / 8), "last": None}
    # A factor e^2 in four steps, from 1e6: at that rate the rest takes 40, which is not far.
    stop = spaced(Proving(1e6 / math.e**2), planned=1e4)
    stop.recall({"next": 3, "rate": 1e-9, "last": [96, 1e6]})
    stop.check(method, None, 100)
    assert stop.memory()["next"] == 100 + math.ceil(2 * (math.log(1e6 / 1e-3) - 2))
    # The count has not moved on, or the error has grown: the rate planned.
    for last in ([100, 1e6], [96, 1e3]):
        stop = spaced(Proving(1e5))
        stop.recall({"next": 3, "rate": 1.0, "last": last})
        stop.check(method, None, 100)
        assert stop.memory()["next"] == 100 + math.ceil(math.log(1e8))
    stop.recall({"next": 3, "rate": 0.0, "last": None})
    assert stop.memory()["rate"] == 0.0
    stop.bound.errors.append(1e5)
    stop.check(method, None, 100)
    assert stop.memory()["next"] == 120  # no rate at all: a fifth


@pytest.mark.parametrize(
    ("error", "size", "done"),
    [(1e-4, 0.5, True), (1.01e-4, 0.5, False), (4e-4, 4.0, True), (4.01e-4, 4.0, False)],
)
def test_every_proof_is_compared_with_the_size_of_its_point(
    error: float, size: float, done: bool
) -> None:
    spread: Any = Fake(price=lambda state: np.array([4.0]))
    method: Any = Fake(
        energy=lambda state: 1e-5, prices=lambda state: (np.array([4.0]), np.zeros(1), 3.0)
    )
    rule = dual_bound.DualStop(Proving(*[error] * 2, size=size), 1e-4)  # type: ignore[arg-type]
    assert rule.due(0)
    checks = [rule.check(method, None, 3), rule.final(method, None)]
    later = spaced(Proving(*[error] * 2, size=size))
    checks += [later.check(spread, None, 3), later.final(spread, None)]
    for check in checks:
        assert (check.bound, check.done) == (error, done)
        assert check.certificate.size == size


def test_a_price_alone_counts_the_rounding_of_every_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """As test_dual_bound.py has it, where rounding alone is left: n = 3, m = 2."""
    monkeypatch.setattr(dual_bound, "EPS", COARSE)
    parts: Any = Fake(
        problem=Fake(n=3),
        m=2,
        c=4.0,
        mu=0.25,
        beta=-2.0,
        b=None,
        A=Fake(cost=None),
        minimisers=lambda price: np.zeros(2),
        shared=lambda price, slope: np.array([0.0, 1.0]),
        ledger=Fake(charge=lambda **k: None, charge_cost=lambda c: None),
        sums=lambda x, own, minus: (np.array([3.0, 0.0]), [0.0, 25.0, 0.0, 7.0]),
        runtime=Fake(unseen=lambda m: 0.0),
    )
    monkeypatch.setattr(DualBound, "_all", lambda self, x, z, price: None)
    monkeypatch.setattr(DualBound, "_prices", lambda self, z, price: None)
    four = Shifted(Columns(), np.zeros((0, 0)), 4.0, 0.0)
    found = DualBound(parts, four).at(np.array([0.0, 6.0]), np.array([8.0, 0.0]), 5.0)
    off = 4 * COARSE * (3 + 2)
    rho = 4 * COARSE * (8 + 2 * 6) + 3 * COARSE * 5
    error = (math.hypot(3.0, 2.0) + off) / 2 / 0.5 + 2 * rho / 0.25
    assert found.error == pytest.approx(error * (1 + 5 * COARSE))


def test_local_distances_count_the_rounding_of_the_decomposition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows (1, 0) and (0.6, 0.8): singular values sqrt(1 -+ 0.6); off by (1, 0.6)."""
    agent = ccmac.Agent(
        Quadratic(np.eye(3), np.zeros(3)), C=np.array([[1.0, 0.0], [0.6, 0.8]]), c=np.zeros(2)
    )
    work = Workspace(ccmac.Problem([agent], q=1), InProcess(ccmac.Network.complete(1)))
    found = Proof.of(work)
    assert found is not None
    monkeypatch.setattr(share, "EPS", COARSE / 8)
    least = math.sqrt(0.4) - 4 * COARSE / 8 * 4 * math.sqrt(1.6)
    off = math.hypot(1.0, 0.6) * (1 + 2 * COARSE / 8)
    assert found.agents[0].local_distance(np.array([1.0, 0.0])) == pytest.approx(off / least)
    monkeypatch.setattr(share, "EPS", 2 * COARSE)
    assert found.agents[0].local_distance(np.array([1.0, 0.0])) == INF


@pytest.mark.parametrize(("S", "top"), [(2.0, 0.5), (-1.0, 1.0)])
def test_rows_without_weight_are_measured_by_the_curvature(S: float, top: float) -> None:
    """W = 0: eps G'G / 1.1 with eps in units of 1/S, or 1."""
    blocks = np.array([[S]]), np.array([[1e-3]]), np.zeros((1, 1))
    said = inside._best(blocks, (5.0, 0.0), (0.0, 0.0, 0.0))
    sigma2 = max(S, 0.0) + 1e-6 / (top * 1e-12) / 1.1
    assert said == pytest.approx(1 / (1 / 5.0 + 1 / sigma2), rel=1e-6)


def test_rows_with_weights_add_to_the_curvature() -> None:
    """S + G'(W + eps)^{-1}G / 1.1, eps nearly nothing: 2 + (1/1 + 4/4) / 1.1."""
    blocks = np.array([[2.0]]), np.array([[1.0], [2.0]]), np.diag([1.0, 4.0])
    said = inside._best(blocks, (5.0, 0.0), (0.0, 0.0, 0.0))
    assert said == pytest.approx(1 / (1 / 5.0 + 1 / (2 + 2 / 1.1)), rel=1e-6)


# -- several processes that round differently ------------------------------------------------------
@pytest.mark.parametrize("others", [(0.5, 0.25, 0.1, 1.0, 0.0), (7.0, 6.0, 0.3, 0.0, 0.0)])
def test_what_all_processes_find(others: tuple[float, ...]) -> None:
    """The largest bound and drift; done where all are."""
    given: list[Any] = []

    def gather(rows: Any) -> Any:
        given.append(rows)
        return np.vstack([rows, others])

    notes = Fake(led=True, drift=0.2)
    runtime: Any = Fake(notes=notes, owned=[0, 1], gather=gather)
    point = explicit.Proved(np.zeros(1), np.zeros(1), 2.0, 0.0, 0.0, 1.0, *[np.zeros(0)] * 3)
    found = explicit.Check(3.0, True, point).agreed(runtime)
    assert given[0].tolist() == [[3.0, 2.0, 0.2, 1.0, 0.0]] * 2
    assert (found.bound, found.done) == (max(3.0, others[0]), others[3] == 1.0)
    assert found.certificate is not None
    assert found.certificate.error == max(2.0, others[1])
    assert notes.drift == max(0.2, others[2])
    # Nothing is claimed, nothing is sent; without a leader neither.
    nothing = explicit.Check(3.0, False)
    assert nothing.agreed(runtime) is nothing
    notes.led = False
    claim = explicit.Check(3.0, True, point)
    assert claim.agreed(runtime) is claim
    assert len(given) == 1


def test_a_verdict_that_not_all_reach_ends_nothing() -> None:
    verdict: Any = Fake(message="infeasible")
    for seen in (1.0, 0.0):
        other = [math.nan, math.nan, 0.0, 1.0, seen]
        runtime: Any = Fake(
            notes=Fake(led=True, drift=0.0),
            owned=[0],
            gather=lambda rows, o=other: np.vstack([rows, o]),
        )
        found = explicit.Check(math.nan, True, verdict=verdict).agreed(runtime)
        assert (found.done, found.verdict) == ((True, verdict) if seen else (False, None))
