"""What rounding may have added to a bound is in it, where rounding alone matters."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adversarial.draft import Array, Draft
from adversarial.exact import Exact
from ccmac import Agent, Network, Problem
from ccmac.certificates.proof import Proof
from ccmac.certificates.share import NUMBERS, Heard
from ccmac.linalg.extended import EPS_LONG
from ccmac.linalg.tolerances import EPS
from ccmac.objectives import Custom, Quadratic
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from certificates.points import distance, flat, pieces, stationarity, workspace

SEEDS = st.integers(0, 10**6)


def proof_of(work: Workspace) -> Proof:
    """The proof, whether mu is positive or not."""
    assert work.reduced is not None
    return Proof(work, work.reduced)


def single(H: Array, g: Array, **blocks: object) -> Proof:
    """One agent with one shared variable."""
    problem = Problem([Agent(Quadratic(H, g), **blocks)], q=1)  # type: ignore[arg-type]
    return proof_of(Workspace(problem, InProcess(Network.complete(1))))


def rational(value: np.longdouble) -> Fraction:
    """A long number as it is."""
    high = float(value)
    return Fraction(high) + Fraction(float(value - np.longdouble(high)))


@given(SEEDS, st.integers(1, 6))
def test_gradients_are_right_to_their_stated_rounding(seed: int, size: int) -> None:
    random = np.random.default_rng(seed)
    H = random.standard_normal((size, size)) * 2.0 ** random.integers(-20, 20)
    H = H + H.T
    H = H + np.diag(2 * np.abs(H).sum(axis=1) + 1)
    g = random.standard_normal(size)
    u = random.standard_normal(size)
    whole = np.zeros((size + 1, size + 1))
    whole[:size, :size], whole[size, size] = H, 1.0
    agent = single(whole, np.append(g, 0.0)).agents[0]
    gradient, rounding = agent.gradient(u, np.zeros(1))
    off = Fraction(0)
    for i in range(size):
        terms = [Fraction(float(a)) * Fraction(float(v)) for a, v in zip(H[i], u, strict=True)]
        off += (rational(gradient[i]) - (sum(terms) - Fraction(float(g[i])))) ** 2
    assert math.sqrt(off) <= rounding
    sizes = np.abs(H) @ np.abs(u) + np.abs(g)
    assert rounding <= (size + 3) * EPS_LONG * np.linalg.norm(sizes) * 1.01


def test_a_sum_swallows_what_is_below_its_rounding() -> None:
    """2^-70 - 1 is -1 and 1 - 2^-70 is 1 in the long format: the bound must say so."""
    for H, g, value in ((2.0**-70, 1.0, -1.0), (1.0, 2.0**-70, 1.0)):
        agent = single(np.diag([H, 1.0]), np.array([g, 0.0])).agents[0]
        gradient, rounding = agent.gradient(np.ones(1), np.zeros(1))
        assert float(gradient[0]) == value
        assert 2.0**-70 <= rounding <= 8 * EPS_LONG


@given(SEEDS)
@settings(max_examples=150)
def test_local_distances_count_the_rounding_of_the_violation(seed: int) -> None:
    """One row, c the nearest number to C x: the distance is of the size of rounding itself."""
    random = np.random.default_rng(seed)
    d = int(random.integers(1, 6))
    C = random.standard_normal((1, d)) * 2.0 ** random.integers(-30, 30)
    x = random.standard_normal(d) * 2.0 ** random.integers(-30, 30)
    c = C @ x
    agent = single(np.eye(d + 1), np.zeros(d + 1), C=C, c=c).agents[0]
    row = [Fraction(float(v)) for v in C[0]]
    off = sum((a * Fraction(float(v)) for a, v in zip(row, x, strict=True)), -Fraction(float(c[0])))
    true = abs(float(off)) / math.sqrt(float(sum(a * a for a in row)))
    said = agent.local_distance(x)
    assert true <= said * (1 + 1e-15)
    assert said <= true * (1 + 1e-12) + 3 * EPS_LONG * (d + 4) * float(np.linalg.norm(x))


def test_local_distances_without_rows_and_beyond_double_precision() -> None:
    agent = single(np.eye(3), np.zeros(3)).agents[0]
    assert agent.local_distance(np.ones(2)) == 0.0
    agent = single(np.eye(3), np.zeros(3), C=[[0.0, 0.0]], c=[0.0]).agents[0]
    assert agent.local_distance(np.ones(2)) == 0.0
    # Rows at an angle t: the distance is the violation over t, not the violation.
    t = 2.0**-20
    C = np.array([[1.0, 0.0], [1.0, t]])
    agent = single(np.eye(3), np.zeros(3), C=C, c=[0.0, 0.0]).agents[0]
    assert agent.local_distance(np.array([0.0, 1.0])) >= 1.0
    assert agent.local_distance(np.array([0.0, 1.0])) <= 3.0


def test_the_rounding_of_local_distances_in_closed_form() -> None:
    """C = I and c = x: no violation, but of rows of norm 2 and of c."""
    x = np.array([3.0, -4.0, 0.0, 12.0])
    agent = single(np.eye(5), np.zeros(5), C=np.eye(4), c=x).agents[0]
    assert agent.local_distance(x) == pytest.approx(
        8 * EPS_LONG * (2 * 13.0 + 13.0), rel=1e-9, abs=0.0
    )


def test_the_rounding_of_gradients_of_other_functions() -> None:
    """At doubles: eps for every entry, of L |u| and of what the function says."""
    f = Custom(lambda x, z: 0.0, lambda x, z: (np.array([3.0]), np.array([4.0])), 10.0, 1.0)
    problem = Problem([Agent(f, A=[[1.0]], B=[[1.0]], b=[0.0])])
    agent = proof_of(Workspace(problem, InProcess(Network.complete(1)))).agents[0]
    slope, rounding = agent.gradient(np.array([5.0]), np.array([12.0]))
    assert slope.tolist() == [3.0, 4.0]
    assert rounding == pytest.approx(2 * EPS * 4 * (10.0 * 13.0 + 5.0), rel=1e-12, abs=0.0)


def draft_of(random: np.random.Generator, n: int, **blocks: list[Array]) -> Draft:
    """Half squares with random doubles for blocks; right-hand sides as given or zero."""
    d = [blocks["A"][i].shape[1] for i in range(n)]
    q = blocks["B"][0].shape[1]
    m = len(blocks["A"][0])
    none = [np.zeros((0, k)) for k in d], [np.zeros((0, q)) for _ in d]
    draft = Draft(
        random,
        d,
        q,
        m,
        blocks["A"],
        blocks["B"],
        blocks.get("C", none[0]),
        blocks.get("D", none[1]),
        [np.zeros(k) for k in d],
        np.zeros(q),
        H=[np.eye(k + q) for k in d],
        g=[random.standard_normal(k + q) for k in d],
    )
    draft.b = blocks.get("b", [random.standard_normal(m) for _ in d])
    draft.c = [random.standard_normal(len(C)) for C in draft.C]
    draft.e = [random.standard_normal(len(D)) for D in draft.D]
    return draft


def assert_bounded(draft: Draft, x: Array, copies: Array) -> None:
    """All three numbers, exactly."""
    said = proof_of(workspace(draft)).at(x, copies)
    exact = Exact(draft)
    u = exact.point(pieces(draft, said.x), said.z)
    assert distance(exact, u) <= said.infeasibility
    assert stationarity(exact, u, said.price) <= said.stationarity
    assert exact.error(u) <= said.error


@given(SEEDS)
@settings(max_examples=80)
def test_one_coupled_row_of_random_numbers(seed: int) -> None:
    """The violation left by the repair is rounding; nothing hides it behind a condition."""
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 4))
    A = [random.standard_normal((1, 2)) * 2.0 ** random.integers(-9, 9) for _ in range(n)]
    B = [random.standard_normal((1, 2)) if i == 0 else np.zeros((1, 2)) for i in range(n)]
    draft = draft_of(random, n, A=A, B=B)
    assert_bounded(draft, *flat(draft, [random.standard_normal(2) for _ in A], np.ones(2)))


@given(SEEDS)
@settings(max_examples=60)
def test_one_shared_row_of_random_numbers(seed: int) -> None:
    random = np.random.default_rng(seed)
    A = [np.zeros((0, 1))]
    B = [np.zeros((0, 3))]
    D = [random.standard_normal((1, 3)) * 2.0 ** random.integers(-9, 9)]
    draft = draft_of(random, 1, A=A, B=B, D=D)
    assert_bounded(draft, np.zeros(1), random.standard_normal((1, 3)))


@given(SEEDS)
@settings(max_examples=60)
def test_local_rows_beside_a_coupled_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    A = [random.standard_normal((1, 3)) * 2.0**9 for _ in range(2)]
    B = [random.standard_normal((1, 1)), np.zeros((1, 1))]
    C = [random.standard_normal((1, 3)), random.standard_normal((2, 3))]
    draft = draft_of(random, 2, A=A, B=B, C=C)
    assert_bounded(draft, *flat(draft, [random.standard_normal(3) for _ in A], np.ones(1)))


@pytest.mark.parametrize("power", [10, 30, 40])
def test_large_shared_blocks_that_cancel_in_the_sum(power: int) -> None:
    """B_1 = -B_0 + something small: rounding is that of the agents' own products."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        B_0 = random.standard_normal((1, 2)) * 2.0**power
        small = random.integers(1, 100, size=(1, 2)) * 2.0 ** (power - 40)
        A = [random.standard_normal((1, 1)) for _ in range(2)]
        draft = draft_of(random, 2, A=A, B=[B_0, small - np.round(B_0, 0)])
        draft.B[0] = np.round(B_0, 0)
        assert_bounded(draft, *flat(draft, [np.ones(1)] * 2, random.standard_normal(2)))


def test_the_rounding_of_a_violation_in_closed_form() -> None:
    """Nothing violated: (d + q + n + 4) eps (size of the rows times that of the point + b)."""
    A = np.array([[3.0, 0.0, 4.0]])
    B = np.array([[12.0]])
    found = single(np.eye(4), np.zeros(4), A=A, B=B, b=[2.0])
    reduced = found.reduced
    unit = float(reduced.unit[0])
    zero = np.zeros(1, dtype=np.longdouble)
    rows = unit * math.hypot(5.0, 12.0)
    noise = (3 + 1 + 1 + 4) * EPS_LONG * (rows * 7.0 + unit * 2.0)

    def distance(off: float, scaled: float) -> float:
        table = np.zeros((1, found.row))
        table[0, -NUMBERS:][[3, 4]] = off**2, scaled**2
        heard = Heard.of(table, 1, 1)
        return found._distance(zero, zero, 7.0, heard)

    said = distance(0.0, unit * 5.0)
    assert said == pytest.approx(noise / reduced.least, rel=1e-9, abs=0.0)
    # What is off the local rows counts itself, and through the coupled rows.
    said = distance(0.5, unit * 5.0)
    expected = 0.5 + (noise + unit * 5.0 * 0.5) / reduced.least
    assert said == pytest.approx(expected, rel=1e-12)
    assert distance(math.inf, 1.0) == math.inf
    reduced.least = 0.0
    assert distance(0.0, 1.0) == math.inf


def test_the_rounding_of_shared_rows_in_closed_form() -> None:
    """D z = e holds: (q + n + 4) eps (|D| |z| + |e|), rows scaled by a power of two."""
    found = single(np.eye(1), np.zeros(1), D=[[4.0]], e=[12.0])
    z = np.array([3.0], dtype=np.longdouble)
    none = np.zeros(0, dtype=np.longdouble)
    heard = Heard.of(np.zeros((1, found.row)), 0, 1)
    said = found._distance(z, none, 7.0, heard)
    noise = (1 + 1 + 4) * EPS_LONG * (1.0 * 7.0 + 3.0)
    assert said == pytest.approx(noise / found.reduced.least, rel=1e-9, abs=0.0)


def test_the_rounding_of_gradients_enters_the_stationarity() -> None:
    agent = single(np.eye(3), np.zeros(3), A=[[1.0, 1.0]], B=[[0.0]], b=[0.0]).agents[0]
    gradient = np.ones(2, dtype=np.longdouble)
    price = np.array([2.0])
    plain = agent.stationarity(gradient, 0.0, price)[0]
    assert plain == pytest.approx(3 * math.sqrt(2))
    assert agent.stationarity(gradient, 1.0, price)[0] == pytest.approx(plain + 1.0)
    # All cancels: what is left is rounding, that of the price and of the gradient.
    left = agent.stationarity(-2 * gradient, 0.0, price)[0]
    noise = (1 + 0 + 3) * EPS_LONG * (2 * math.sqrt(2) + 2 * math.sqrt(2))
    assert left == pytest.approx(noise, rel=1e-9, abs=0.0)
