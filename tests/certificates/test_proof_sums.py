"""What a proof makes of the agents' shares, number by number, with numbers of both signs."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.certificates import proof
from ccmac.certificates.error_bound import change_bound
from ccmac.certificates.proof import Proof
from ccmac.inputs import Array
from ccmac.linalg.ranks import row_space

SEEDS = range(5)
N = 3
M = 2
Q = 4
R = 3
COARSE = 2.0**-8
LONG = 2.0**-6


class Made:
    """Equations drawn at random; multipliers of D that are found to three quarters at a time."""

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        draw = self.draw = np.random.default_rng(seed).standard_normal
        D = draw((R, Q))
        exact = row_space(D)
        shared = Fake(basis=exact.basis, multipliers=lambda v: 0.75 * exact.multipliers(v))
        self.reduced: Any = Fake(
            rank=4,
            Bbar=draw((M, Q)).astype(np.longdouble),
            size_B=4 + draw((M, Q)),
            D=D,
            e=3 * draw(R),
            unit=np.array([0.5, 4.0]),
            unit_D=2.0 ** np.arange(-1, 2),
            size_b=np.array([3.0, 1.0]),
            shared=shared,
            rounded=0.25,
            off_D=0.125,
            off_e=0.0625,
            least=0.375,
            sigma=np.array([2.0, 1.5, 1.0, 0.3755]),
            U=np.linalg.qr(draw((M + R, 4)))[0],
        )
        found: Any = object.__new__(Proof)
        found.reduced, found.problem, found._widest = self.reduced, Fake(n=N, q=Q, m=M), 5
        found.open, found.runtime = True, Fake(averaging=Fake(grain=0.75))
        monkeypatch.setattr(proof, "EPS", COARSE)
        monkeypatch.setattr(proof, "EPS_LONG", LONG)
        self.found: Proof = found


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_left_on_z(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(seed, monkeypatch)
    reduced = made.reduced
    slope = made.draw(Q)
    price = made.draw(M)
    said, multiplier = made.found._shared_stationarity(
        slope.astype(np.longdouble), price.astype(np.longdouble)
    )
    Bbar = reduced.Bbar.astype(float)
    D = reduced.D
    total = slope + Bbar.T @ price
    best = np.linalg.lstsq(D.T, total, rcond=None)[0]
    delta = 0.75 * best
    more = 0.75 * 0.25 * best
    assert multiplier == pytest.approx(-(delta + more))
    spread = np.linalg.norm(reduced.size_B.T @ np.abs(price)) + np.linalg.norm(slope)
    spread += np.linalg.norm(np.abs(D).T @ (np.abs(delta) + np.abs(more)))
    noise = (M + 2 * R + N + 3) * LONG * spread
    noise += 0.25 * np.linalg.norm(np.abs(Bbar).T @ np.abs(price))
    noise += 0.125 * np.linalg.norm(delta + more)
    left = np.linalg.norm(total - D.T @ (delta + more))
    assert said == pytest.approx(left + noise)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_distance_from_all_equations(
    seed: int, masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(seed, monkeypatch)
    found = made.found
    reduced = made.reduced
    z = made.draw(Q)
    coupled = made.draw(M)
    found.open = not masked
    heard: Any = Fake(off=0.3, scaled=1.7)
    rows = math.hypot(
        1.7, np.linalg.norm(reduced.unit[:, None] * reduced.size_B), np.linalg.norm(reduced.D)
    )
    right = np.linalg.norm(reduced.unit * reduced.size_b) + np.linalg.norm(reduced.e)
    noise = (5 + Q + N + 4) * LONG * (rows * 7.0 + right) + 0.125 * np.linalg.norm(z) + 0.0625
    if masked:
        noise += np.linalg.norm(reduced.unit * (4 * COARSE * np.abs(coupled) + 4 * 0.75))
    left = np.append(reduced.unit * coupled, reduced.D @ z - reduced.e)
    sigma = np.full(4, math.inf) if masked else reduced.sigma  # masked: only the least is known
    across = change_bound(left, reduced.U, sigma, 0.375)

    def said() -> float:
        return found._distance(z.astype(np.longdouble), coupled.astype(np.longdouble), 7.0, heard)

    assert said() == pytest.approx(0.3 + across + (noise + 1.7 * 0.3) / 0.375)
    reduced.least = 0.0
    assert said() == math.inf
    reduced.least = 0.375
    heard.off = math.inf
    assert said() == math.inf
    reduced.rank = 0
    heard.off = 0.3
    assert said() == 0.3


def test_the_length_of_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Misfits in halves and rounded, slopes in halves, numbers; one more where rows are hidden."""
    made = Made(0, monkeypatch)
    for hidden in ([], [None]):
        made.found.agents = [Fake(hidden=hidden)]  # type: ignore[misc]
        assert made.found.row == 3 * M + 2 * Q + proof.NUMBERS + len(hidden)


def test_masked_shares_are_heard_with_their_grain(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(0, monkeypatch)
    given: list[Any] = []

    def of(*arguments: Any) -> None:
        given.append(arguments)
        raise ZeroDivisionError

    monkeypatch.setattr(proof, "Heard", Fake(of=of))
    table = np.zeros((1, 1))
    z = np.zeros(Q, dtype=np.longdouble)
    for made.found.open, grain in ((True, None), (False, 0.75)):
        with pytest.raises(ZeroDivisionError):
            made.found.concluded([], table, [], z, z)
        assert given[-1][1:] == (M, Q, grain)


@pytest.mark.parametrize("seed", SEEDS)
def test_prices_of_all_kinds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left on z is shared by all; nu_i is what is missing from an agent's own slope."""
    made = Made(seed, monkeypatch)
    reduced = made.reduced
    draw = made.draw
    own = list(draw((N, 2)))
    images = draw((N, Q))
    B = draw((N, M, Q))
    reduced.own_shared = lambda k, shared: (own[k] * shared[0], images[k])
    made.found.agents = [Fake(B=B[k]) for k in range(N)]  # type: ignore[misc]
    told: Any = [Fake(multiplier=k) for k in "abc"]
    gz = draw((N, Q))
    price = draw(M)
    slope = draw(Q)
    shared = draw(R)
    found = made.found._multipliers(
        told, gz, price.astype(np.longdouble), slope.astype(np.longdouble), shared
    )
    mean = (slope + reduced.Bbar.astype(float).T @ price + reduced.D.T @ shared) / N
    assert found.coupled.tolist() == price.tolist()
    assert found.local == ["a", "b", "c"]
    for k in range(N):
        assert found.shared[k] == pytest.approx(own[k] * shared[0])
        assert found.consensus[k] == pytest.approx(mean - (gz[k] + B[k].T @ price + images[k]))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_price_is_least_squares(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """-(T T')^+ T grad F in scaled rows, T = (A, Bbar; 0, D); no rows, no price."""
    made = Made(seed, monkeypatch)
    reduced = made.reduced
    found = made.found
    A = made.draw((M, 6))
    on_x = made.draw(6)
    on_z = made.draw(Q)
    Bbar = reduced.Bbar.astype(float)
    T = np.block(
        [[reduced.unit[:, None] * A, reduced.unit[:, None] * Bbar], [np.zeros((R, 6)), reduced.D]]
    )
    reduced.inverse_gram = lambda rows: np.linalg.pinv(T @ T.T) @ rows

    def prices(rows: Array) -> tuple[Array, Array]:
        return reduced.unit * rows[:M], rows[M:]

    reduced.prices = prices
    best = np.linalg.lstsq(T.T, np.append(on_x, on_z), rcond=None)[0]
    assert found.best_price(A @ on_x, on_z) == pytest.approx(-reduced.unit * best[:M])
    reduced.rank = 0
    assert found.best_price(A @ on_x, on_z).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("separable", [True, False])
def test_constants_of_all_agents(separable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """mu less what a decomposition may round."""
    monkeypatch.setattr(proof, "EPS", COARSE)
    monkeypatch.setattr(proof, "Share", lambda work, reduced, k: k)
    table: Any = Fake(
        separable=separable,
        mu_x=np.array([3.0, 2.0]),
        mu_z=np.array([0.5, 1.0]),
        quadratic=True,
        L_x=np.array([4.0, 6.0]),
        L_z=np.array([5.0, 2.0]),
        mu=np.array([1.75, 1.25]),
        L=np.array([7.0, 9.0]),
        d=np.array([3, 2]),
    )
    problem = Fake(agents={0: None, 1: None}, q=1)
    runtime = Fake(averaging=Fake(hides=False))
    work: Any = Fake(curvature=table, space=None, runtime=runtime, problem=problem)
    found = Proof(work, None)  # type: ignore[arg-type]
    largest = 6.0 if separable else 9.0
    assert found.mu == (1.5 if separable else 1.25) - 2 * COARSE * (3 + 1) * largest
    assert (found.L, found.inside, found.open) == (7.0 if separable else 16.0, 0.0, True)
    assert found.agents == [0, 1]  # type: ignore[comparison-overlap]
    # Where F is strongly convex, even as rounding may have it, and all may know the equations.
    work.provable = "T"
    work.capabilities = {"smooth", "strongly convex", "quadratic"}
    assert isinstance(Proof.of(work), Proof)
    for name, value in (("provable", None), ("capabilities", {"smooth"})):
        kept = getattr(work, name)
        setattr(work, name, value)
        assert Proof.of(work) is None
        setattr(work, name, kept)
    less = 2 * COARSE * (3 + 1) * largest
    table.mu_x[:] = table.mu_z[:] = table.mu[:] = less
    assert Proof.of(work) is None
    table.mu_x[:], table.mu_z[:], table.mu[:] = math.inf, math.inf, math.inf
    for values in (table.L_x, table.L_z, table.L):
        values[:] = 0.0
    assert Proof(work, None).mu == 1.0  # type: ignore[arg-type]


def test_where_processes_round_differently_the_leaders_numbers_count() -> None:
    """Halves of everything travel; what comes back is put together again, in its places."""
    made = [np.array(v, dtype=np.longdouble) for v in ([1.0, 2.0], [3.0], [4.0, 5.0])]
    made[0][1] += np.longdouble(2.0) ** -60
    found: Any = object.__new__(Proof)
    found.runtime = Fake(common=lambda v: 2 * v, notes=Fake(led=True))
    said = found.alike(*made)
    assert [v.tolist() for v in said] == [(2 * v).tolist() for v in made]
    found.runtime.notes.led = False
    assert all(v is w for v, w in zip(found.alike(*made), made, strict=True))


@pytest.mark.parametrize(
    ("lengths", "scale", "passes"),
    [
        ((1.0, 9.0), 0.1, 1),
        ((1.1, 0.9), 0.1, 2),
        ((4.9, 9.0), 1.0, 1),
        ((5.1, 4.9), 1.0, 2),
        ((9.0, 9.0, 9.0, 9.0), 1.0, 3),
    ],
)
def test_repairs_are_repeated_while_they_move_the_point(
    lengths: tuple[float, ...], scale: float, passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By more than MOVED of its size, |x| = 3 and |z| = 4 times a scale, or of one."""
    made = Made(0, monkeypatch)
    found: Any = made.found
    ways = list(lengths)
    charged = list[Any]()
    z = scale * np.array([4.0, 0.0, 0.0, 0.0])
    found._charge = lambda **units: charged.append(units)
    found._met = lambda x, copies: (["x0"], z)
    found.agents = [Fake(gradient=lambda v, at: (f"slope at {v}", None))]

    def sums(pieces: Any, at: Any, slopes: Any) -> Any:
        assert slopes == [f"slope at {pieces[0]}"]
        return f"misfit of {pieces[0]}", pieces[0], np.ones(Q, dtype=np.longdouble), 3.0 * scale

    def moved(pieces: Any, at: Any, coupled: Any) -> Any:
        assert coupled == f"misfit of {pieces[0]}"
        return [pieces[0] + "'"], z, proof.MOVED * ways.pop(0)

    found.sums = sums
    found._moved = moved
    found.best_price = lambda along, slope: np.full(M, float(len(along)))
    found.judged = lambda pieces, at, price: (pieces, price)
    pieces, price = found.at(None, None)
    assert pieces == ["x0" + passes * "'"]
    assert price.tolist() == [float(1 + passes)] * M
    assert price.dtype == np.longdouble
    assert charged == [{"gradients": 1, "A": 3, "B": 1, "C": 2}] * passes
    found.reduced.rank = 0
    pieces, price = found.at(None, None)
    assert (pieces, price.tolist()) == (["x0"], [0.0] * M)
