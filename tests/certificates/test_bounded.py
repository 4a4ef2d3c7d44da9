"""An agent's share of what prices prove, number by number, with numbers of both signs."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.certificates import bounded
from ccmac.certificates.bounded import Bounded, outward, pushed
from ccmac.inputs import Array
from ccmac.linalg.extended import EPS_LONG
from ccmac.linalg.ranks import row_space
from ccmac.linalg.tolerances import EPS
from ccmac.objectives.polyhedral import Polyhedral

SEEDS = range(6)
D = 3
Q = 2
M = 2
P = 2
INF = math.inf
ROOM = 2.0**-7
ROOM_LONG = 2.0**-5
COARSE = 2.0**-6


def drawn(seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Bounded, Any]:
    """x in R^3 partly bounded, z in R^2, three terms of 4, 3 and 2 rows; rounding is coarse.

    Terms are made up: their multipliers are halved, and lean by their sum.
    """
    random = np.random.default_rng(seed)
    draw = random.standard_normal
    terms = []
    for k, rows in enumerate((4, 3, 2)):
        terms.append(
            Fake(
                R=draw((rows, D + Q)),
                h=draw(rows),
                steady=lambda nu: nu / 2,
                steepness=1.5 + k,
                a=np.full(rows, float(k != 1)),
                unsteady=lambda nu, k=k: k * abs(float(nu.sum())),
                value=lambda v: float(v[0]),
            )
        )
    lower = np.array([-1.0, -INF, -INF, 0.0, 0.0])
    upper = np.array([INF, 2.0, INF, 0.0, 0.0])
    H = draw((D + Q, D + Q))
    form: Any = Polyhedral(H + H.T, draw(D + Q), float(draw()), lower, upper, tuple(terms))
    agent = Fake(objective=Fake(value=lambda x, z: 3 * x[0] - z[1]), b=draw(M), c=5 * draw(P))
    A = draw((M, D))
    B = draw((M, Q))
    C = draw((P, D))
    work: Any = Fake(problem=Fake(agents={7: None, 4: agent}, d={7: 0, 4: D}, m=M, n=9))
    blocks = {"A": [None, A], "B": [None, B], "C": [None, C]}
    space = row_space(C)
    rows = Fake(unit=np.array([0.5, 4.0]), beside=np.array([1.0, 3.0]))
    reduced: Any = Fake(**blocks, **vars(rows), kernels=[None, Fake(space=space)])
    monkeypatch.setattr(bounded, "thinned", lambda block: block)
    found = Bounded(work, reduced, 1, form)
    width = D + Q + (M + D) + P + (4 + 3 + 2) + 9 + 8
    assert (found.room, found.room_long) == (width * EPS, width * EPS_LONG)
    found.room = ROOM
    found.room_long = ROOM_LONG
    monkeypatch.setattr(bounded, "EPS", COARSE)
    known = Fake(
        A=A,
        B=B,
        C=C,
        b=agent.b,
        c=agent.c,
        form=form,
        draw=draw,
        terms=terms,
        objective=agent.objective,
        unit=1 / np.linalg.norm(C, axis=1),
        rows=rows,
        singular=space.singular,
    )
    return found, known


def blurred(
    known: Any, x: Array, z: Array, right: Array | float, part: Array
) -> tuple[Array, Array]:
    """(rounding of what is added up in the long format and as doubles, in unit rows; sizes)."""
    sizes = np.abs(known.A) @ np.abs(x) + np.abs(known.B) @ np.abs(z) + right
    return known.rows.unit * (ROOM_LONG * sizes + ROOM * np.abs(part)), sizes


def ends(r: Array, form: Any) -> tuple[Array, Any]:
    """(the bound that each entry is pushed to, whether there is one)."""
    low = form.lower[:D]
    high = form.upper[:D]
    found = np.array([low[j] if r[j] > 0 else high[j] for j in range(D)])
    return found, np.isfinite(found)


def test_what_a_bound_holds() -> None:
    r = np.array([1.0, -1.0, 1.0, -1.0, 0.0, 0.0, 0.0])
    low = np.full(7, -INF)
    high = np.full(7, INF)
    low[0], high[1], low[5], high[6] = 2.0, 3.0, 4.0, 5.0
    bound, held = pushed(r, low, high)
    assert bound.tolist() == [2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert held.tolist() == [True, True, False, False, True, True, True]
    assert outward(-r[:5], low[:5], high[:5]).tolist() == [0.0, 0.0, -1.0, 1.0, 0.0]
    assert outward(r[:5], low[:5], high[:5]).tolist() == [1.0, -1.0, 1.0, -1.0, 0.0]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_numbers_of_a_gap(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """F(w) - F(v) <= base + r_f (v - w0) of every v that meets bounds and equations."""
    agent, known = drawn(seed, monkeypatch)
    A = known.A
    B = known.B
    C = known.C
    form = known.form
    draw = known.draw
    x, z, start, y, k, nu = (draw(s) for s in (D, Q, D + Q, M, P, 9))
    u = np.append(x, z)
    found = agent.gap(x, z, start, y, k, nu)
    slope = form.H @ u - form.g
    sizes = np.abs(form.H) @ np.abs(u) + np.abs(form.g)
    below = size = leaning = 0.0
    for term, steady in zip(known.terms, (nu[:4] / 2, nu[4:7] / 2, nu[7:] / 2), strict=True):
        lean = term.unsteady(steady)
        spread = np.abs(term.R)
        slope = slope + term.R.T @ steady
        sizes = sizes + spread.T @ np.abs(steady)
        below += steady @ (term.R @ u - term.h)
        below -= lean * max(spread @ np.abs(start) + np.abs(term.h))
        leaning += lean * max(spread.sum(axis=1))
        size += np.abs(steady) @ (spread @ np.abs(u) + np.abs(term.h))
    r = slope[:D] + A.T @ y + C.T @ k
    on_z = slope[D:] + B.T @ y
    sizes[:D] += np.abs(A).T @ np.abs(y) + np.abs(C).T @ np.abs(k)
    sizes[D:] += np.abs(B).T @ np.abs(y)
    bound, held = ends(r, form)
    away = r * (x - np.where(held, bound, start[:D]))
    bend = u @ form.H @ u / 2 - form.g @ u + form.c
    value = known.objective.value(x, z)
    off = C @ x - known.c
    misfit = A @ x + B @ z - known.b
    size += abs(value) + abs(bend) + np.abs(form.g) @ np.abs(u) + abs(form.c)
    size += np.abs(u) @ np.abs(form.H) @ np.abs(u)
    size += np.abs(away).sum() + np.abs(k) @ np.abs(off)
    size += np.abs(y) @ (np.abs(misfit) + np.abs(known.b))
    far = r[~held]
    near = np.linalg.norm(np.linalg.pinv(C) @ off)
    # What rounding takes: of the value, of the misfits, and of the way to C x = c.
    blur, spread = blurred(known, x, z, np.abs(known.b), misfit)
    own = np.abs(C) @ np.abs(x) + np.abs(known.c)
    lost = ROOM_LONG * (np.abs(y) @ spread + np.abs(k) @ own)
    least = known.singular[-1] - 4 * COARSE * (P + D) * known.singular[0]
    lacks = np.linalg.norm(known.unit * (ROOM_LONG * own + ROOM * np.abs(off)))
    near = near + lacks / least if least > 0 else INF
    violation = np.abs(known.unit * off) / np.maximum(1.0, np.abs(known.unit * known.c))
    expected = [
        away.sum() + value - bend - below - k @ off,
        value,
        far @ far,
        ROOM_LONG * np.linalg.norm(sizes) + COARSE * np.linalg.norm(far) + leaning,
        ROOM * size + lost,
        np.linalg.norm(on_z),
        np.sum((x - start[:D]) ** 2),
        off @ off,
        near**2,
        k @ off,
        np.linalg.norm(blur),
        max(blur / known.rows.beside),
        violation.max(),
    ]
    assert found.scalars == pytest.approx(expected, rel=1e-10, abs=0.0)
    assert found.vector == pytest.approx(np.append(misfit, on_z))
    assert found.slope_x == pytest.approx(slope[:D] - np.where(held, r, 0.0))
    assert found.slope_z == pytest.approx(slope[D:])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_numbers_of_a_contradiction(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """K'y = (A'y + C'k, B'y): what pushes to a bound counts, what pushes to none is its defect.

    Of the terms the second one has no cost: its rows are a set's, and count too.
    """
    agent, known = drawn(seed, monkeypatch)
    A = known.A
    B = known.B
    C = known.C
    y = known.draw(M)
    k = known.draw(P)
    nu = known.draw(4 + 3 + 2)
    found = agent.contradiction(y, k, nu)
    (R, h), steady = (known.terms[1].R, known.terms[1].h), nu[4:7] / 2
    r = A.T @ y + C.T @ k + R[:, :D].T @ steady
    on_z = B.T @ y + R[:, D:].T @ steady
    bound, held = ends(r, known.form)
    gain = np.where(held, r * bound, 0.0)
    rest = np.where(held, r, 0.0)
    far = r[~held]
    gain = np.nan_to_num(gain)
    sizes = np.append(np.abs(A).T @ np.abs(y) + np.abs(C).T @ np.abs(k), np.abs(B).T @ np.abs(y))
    sizes += np.abs(R).T @ np.abs(steady)
    size = np.abs(gain).sum() + np.abs(known.b) @ np.abs(y) + np.abs(known.c) @ np.abs(k)
    size += np.abs(h) @ np.abs(steady)
    unit = known.rows.unit[:, None]
    stacked = np.vstack([np.hstack([unit * A, unit * B]), R])
    columns = np.linalg.norm(stacked, axis=0)
    columns[:D] = np.hypot(columns[:D], np.linalg.norm(known.unit[:, None] * C, axis=0))
    expected = [
        gain.sum() - known.b @ y - known.c @ k - h @ steady,
        far @ far,
        ROOM_LONG * np.linalg.norm(sizes) + COARSE * np.linalg.norm(far),
        ROOM * size,
        np.linalg.norm(on_z),
        np.linalg.norm(k),
        np.hypot(*map(np.linalg.norm, (rest, steady))),
        np.max((np.abs(r) / columns[:D])[~held], initial=0.0),
        np.sum((k / known.unit) ** 2) + steady @ steady,
    ]
    assert found.scalars == pytest.approx(expected, rel=1e-12, abs=0.0)
    assert found.vector == pytest.approx(np.append(on_z, columns[D:] ** 2))
    assert found.slope_x == pytest.approx(-rest)
    assert found.slope_z == pytest.approx(on_z)


def test_a_fall_knows_nothing_of_right_hand_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    """However large: what rounding may do to A x + B z must not drown in them."""
    agent, known = drawn(0, monkeypatch)
    x = 1e-9 * known.draw(D)
    z = 1e-9 * known.draw(Q)
    before = agent.fall(x, z)[1]
    agent.b = 1e30 * agent.b
    assert agent.fall(x, z)[1] == before


@pytest.mark.parametrize("seed", SEEDS)
def test_the_numbers_of_a_fall(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    agent, known = drawn(seed, monkeypatch)
    A = known.A
    B = known.B
    C = known.C
    form = known.form
    x = known.draw(D)
    z = known.draw(Q)
    u = np.append(x, z)
    vector, numbers = agent.fall(x, z)
    assert vector == pytest.approx(A @ x + B @ z)
    size = np.abs(form.g) @ np.abs(u)
    size += sum(t.steepness * np.sum(np.abs(t.R) @ np.abs(u)) for t in known.terms)
    expected = [
        form.g @ u - sum((t.R @ u)[0] for t in known.terms),
        np.sum((form.H @ u) ** 2),
        np.sum((known.unit * (C @ x)) ** 2),
        ROOM * size,
        x @ x,
        np.linalg.norm(form.g),
        np.linalg.norm(form.H @ u) / np.linalg.norm(form.H),
        np.linalg.norm(blurred(known, x, z, 0.0, vector)[0]),
    ]
    assert numbers == pytest.approx(expected, rel=1e-10, abs=0.0)


def test_sides_that_are_not_given_are_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is nearly empty is multiplied as sparse."""
    form = Polyhedral.zero(3)
    agent = Fake(objective=None, b=None, c=None)
    work: Any = Fake(problem=Fake(agents={0: agent}, d={0: 2}, m=1, n=1))
    C = np.array([[3.0, 4.0]])
    reduced: Any = Fake(
        A=[np.zeros((1, 2))],
        B=[np.ones((1, 1))],
        C=[C],
        kernels=[Fake(space=row_space(C))],
        unit=np.ones(1),
    )
    found = Bounded(work, reduced, 0, form)
    assert (found.b.tolist(), found.c.tolist()) == ([0.0], [0.0])
    assert hasattr(found.A, "toarray")
    assert found.H.dtype == np.longdouble
    assert found._back(np.ones(1), np.ones(1))[0].dtype == np.longdouble
    assert not hasattr(found.B, "toarray")
    assert found._violation(np.array([-10.0])) == pytest.approx(2.0)
