"""T's lower bound, its cut and its right-hand sides in closed form: rounding is made coarse."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac import Agent, Network, Problem
from ccmac.inputs import Array
from ccmac.linalg.ranks import Doubt, rank_cut, row_space
from ccmac.objectives import Quadratic
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace, local, reduced
from ccmac.workspace.local import Kernel, kernels_of
from ccmac.workspace.reduced import Reduced, affordable

N = 3
D_X = (4, 3, 2)
Q = 3
M = 2
COARSE = 2.0**-12
LONG = 2.0**-9


def drawn(seed: int) -> tuple[Workspace, list[dict[str, Array]]]:
    """Three agents with 1, 0 and 1 local rows and 1, 2 and 0 shared ones."""
    draw = np.random.default_rng(seed).standard_normal
    blocks: list[dict[str, Array]] = []
    for d, p, r in zip(D_X, (1, 0, 1), (1, 2, 0), strict=True):
        own = {"A": draw((M, d)), "B": draw((M, Q)), "b": draw(M)}
        if p:
            own |= {"C": draw((p, d)), "c": draw(p)}
        if r:
            own |= {"D": 3 * draw((r, Q)), "e": draw(r)}
        blocks.append(own)
    agents = [
        Agent(Quadratic(np.eye(d + Q), np.zeros(d + Q)), **own)
        for d, own in zip(D_X, blocks, strict=True)
    ]
    return Workspace(Problem(agents), InProcess(Network.complete(N))), blocks


def kernel_of(own: dict[str, Array], d: int) -> Array:
    return np.linalg.svd(own["C"])[2][len(own["C"]) :].T if "C" in own else np.eye(d)


@pytest.mark.parametrize("seed", range(6))
def test_the_least_singular_value_loses_what_rounding_and_angles_may_change(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reduced, "EPS", COARSE)
    monkeypatch.setattr(local, "EPS", COARSE)
    monkeypatch.setattr(reduced, "EPS_LONG", LONG)
    work, blocks = drawn(seed)
    found = work.reduced
    assert found is not None
    Bbar = sum(own["B"] for own in blocks)
    size_B = sum(np.abs(own["B"]) for own in blocks)
    D = np.vstack([own["D"] for own in blocks if "D" in own])
    assert found.size_B == pytest.approx(size_B)
    assert found.Bbar.astype(float) == pytest.approx(Bbar)
    assert pytest.approx(found.unit_D[:, None] * D) == found.D
    whole = np.sum([np.sum(own["A"] ** 2, axis=1) for own in blocks], axis=0)
    whole = whole + np.sum(Bbar**2, axis=1)
    assert np.all(np.abs(np.log2(found.unit * np.sqrt(whole))) <= 0.5 + 1e-12)
    angle = max(4 * COARSE * (d + 1) for d in (4, 2))  # of one row: condition one
    assert found.angle == pytest.approx(angle)
    before = math.hypot(np.linalg.norm(found.unit * np.sqrt(whole)), np.linalg.norm(found.D))
    rounding = 4 * COARSE * (N + M + 2 + 4) * before
    rounding += N * LONG * float(np.linalg.norm(found.unit[:, None] * size_B))
    inside = np.hstack([own["A"] @ kernel_of(own, d) for d, own in zip(D_X, blocks, strict=True)])
    T = np.block(
        [
            [found.unit[:, None] * inside, found.unit[:, None] * Bbar],
            [np.zeros((3, inside.shape[1])), found.D],
        ]
    )
    sigma = np.linalg.svd(T, compute_uv=False)
    assert found.sigma == pytest.approx(sigma)
    assert found.frobenius == pytest.approx(np.linalg.norm(T))
    assert found.least == pytest.approx(max(sigma[-1] - rounding - angle * before, 0.0))
    assert found.condition == pytest.approx(sigma[0] / found.least if found.least > 0 else math.inf)
    cut = rank_cut((5, 5)) * max(1.0, sigma[0])
    assert found.near_cut == pytest.approx({"kept": sigma[-1] / cut, "dropped": 0.0})
    # The right-hand side, and the sizes it is summed from.
    sides = [
        own["b"] - own["A"] @ (np.linalg.pinv(own["C"]) @ own["c"] if "C" in own else np.zeros(d))
        for d, own in zip(D_X, blocks, strict=True)
    ]
    assert found.beta == pytest.approx(sum(sides))
    assert found.size_b == pytest.approx(sum(np.abs(side) for side in sides))
    e = np.concatenate([own["e"] for own in blocks if "e" in own])
    assert found.right == pytest.approx(np.append(found.unit * sum(sides), found.unit_D * e))
    # Prices of shared rows by agents.
    prices = np.array([2.0, -3.0, 5.0])
    for k, rows in enumerate((slice(0, 1), slice(1, 3), slice(3, 3))):
        own_prices, image = found.own_shared(k, prices)
        assert own_prices == pytest.approx((found.unit_D * prices)[rows])
        assert image == pytest.approx((found.unit_D[:, None] * D)[rows].T @ prices[rows])
    assert found.hidden(0) == []


def test_other_right_hand_sides_of_the_same_equations() -> None:
    work, blocks = drawn(0)
    first = work.reduced
    assert first is not None
    problem = work.problem
    agents = [
        Agent(
            a.objective,
            A=a.A,
            B=a.B,
            b=None if i == 1 else -3 * a.b,
            C=a.C,
            c=None if a.c is None else a.c + 1.0,
            D=a.D,
            e=a.e,
        )
        for i, a in problem.agents.items()
    ]
    changed = Problem(agents)
    found = first.again(changed, work.local.again(changed))
    sides = []
    for i, (own, d) in enumerate(zip(blocks, D_X, strict=True)):
        point = np.linalg.pinv(own["C"]) @ (own["c"] + 1.0) if "C" in own else np.zeros(d)
        sides.append((0.0 if i == 1 else -3.0) * own["b"] - own["A"] @ point)
        assert found.kernels[i].point == pytest.approx(point)
        assert found.kernels[i].basis is first.kernels[i].basis
    assert found.beta == pytest.approx(sum(sides))
    assert found.size_b == pytest.approx(sum(np.abs(side) for side in sides))
    assert found.problem is changed
    assert found.sigma is first.sigma
    assert first.beta != pytest.approx(sum(sides))


def test_kernels_and_their_angles() -> None:
    """4 eps (d + rows) times the condition of the unit rows; none without rows."""
    C = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0]])
    space = row_space(C)
    kernel = Kernel.of(space, np.arange(3.0))
    assert kernel.angle == pytest.approx(4 * 2.0**-52 * (3 + 2) * 2.0, rel=1e-9, abs=0.0)
    assert np.abs(kernel.basis) == pytest.approx(np.array([[0.0], [0.0], [1.0]]))
    assert (kernel.space is space, kernel.point.tolist()) == (True, [0.0, 1.0, 2.0])
    local: Any = Fake(point=np.arange(5.0), empty=True)
    problem: Any = Fake(d={0: 2, 4: 3}, p={0: 0, 4: 0})
    kernels = kernels_of(problem, local)
    assert [k.point.tolist() for k in kernels] == [[0.0, 1.0], [2.0, 3.0, 4.0]]
    assert [k.basis.tolist() for k in kernels] == [np.eye(2).tolist(), np.eye(3).tolist()]
    assert [k.angle for k in kernels] == [0.0, 0.0]


def made(D: Array, unit: float = 1.0, Bbar: Array | None = None, m: int = 0) -> Reduced:
    """Shared rows as they are, and coupled ones without entries in A."""
    found: Any = object.__new__(Reduced)
    found.D, found.unit = D, np.full(m, unit)
    found.Bbar = np.zeros((m, D.shape[1])) if Bbar is None else Bbar
    return found  # type: ignore[no-any-return]


@pytest.mark.parametrize("scale", [1.0, 8.0, 2.0**-3])
def test_the_rank_is_cut_beside_the_largest_singular_value_or_one(scale: float) -> None:
    for share, rank in ((1.1, 2), (0.9, 1)):
        cut = rank_cut((2, 2)) * max(1.0, scale)
        found = made(np.diag([scale, share * cut]))
        found._decompose(np.zeros((1, 0, 0)), 0.25 * cut)
        assert (found.rank, found.sigma.tolist()) == (rank, [scale, share * cut][:rank])
        assert found.U.shape == (2, rank)
        assert found.U_null.shape == (2, 2 - rank)
        dropped = 0.0 if rank == 2 else 0.9
        kept = 1.1 if rank == 2 else scale / cut
        assert found.near_cut == pytest.approx({"kept": kept, "dropped": dropped})
        assert found._dropped == (pytest.approx(dropped * cut / max(1.0, scale)), (2, 2))
        assert found.least == pytest.approx(found.sigma[-1] - 0.25 * cut)
        assert found.frobenius == pytest.approx(math.hypot(scale, share * cut))
    none = made(np.zeros((0, 2)))
    none._decompose(np.zeros((1, 0, 0)), 0.25)
    assert (none.rank, none.least, none.condition) == (0, math.inf, 1.0)
    assert none.near_cut == {"kept": math.inf, "dropped": 0.0}
    zero = made(np.zeros((1, 2)))
    zero._decompose(np.zeros((1, 0, 0)), 0.25)
    assert (zero.rank, zero.U_null.shape) == (0, (1, 1))
    empty = made(np.zeros((1, 0)), m=2)
    empty._decompose(np.zeros((1, 2, 0)), 0.25)
    assert (empty.rank, empty.U_null.tolist()) == (0, np.eye(3).tolist())
    close = made(np.eye(2))
    close._decompose(np.zeros((1, 0, 0)), 1.5)
    assert (close.least, close.condition) == (0.0, math.inf)


def test_coupled_rows_beside_shared_ones() -> None:
    """unit (factors, Bbar) above (0, D): columns of zeros are left out, wide ones are folded."""
    factors = np.array([[[3.0, 0.0], [1.0, 0.0]], [[0.0, 2.0], [5.0, 0.0]]])
    Bbar = np.array([[1.0, -1.0], [2.0, 0.5]])
    D = np.array([[0.25, 4.0]])
    found = made(D, 0.5, Bbar, 2)
    found._decompose(factors, 0.125)
    T = np.array([[3.0, 0.0, 2.0, 1.0, -1.0], [1.0, 5.0, 0.0, 2.0, 0.5], [0, 0, 0, 0.25, 4.0]])
    T[:2] *= 0.5
    U, sigma, _ = np.linalg.svd(T)
    assert found.sigma == pytest.approx(sigma)
    assert np.abs(found.U.T @ U) == pytest.approx(np.eye(3), abs=1e-12)
    assert found._dropped == (0.0, (3, 6))
    assert found.least == pytest.approx(sigma[-1] - 0.125)


def test_more_room_where_nothing_else_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the floats, and as many rows as a minute takes; d counts up to the rows."""
    problem: Any = Fake(m=4, q=2)
    table: Any = Fake(d=np.array([2, 3]), r=np.array([1.0, 2.0]))
    floats = 4 * (3 + 2 + 1) + 2 * 3
    for room in (1, 2):
        for name, least in (
            ("FLOATS", floats / room),
            ("ALL_FLOATS", 2 * floats),
            ("SQUARES", 4**2 + 5**2),
            ("ROWS" if room == 1 else "MANY", 4 + 3),
        ):
            with monkeypatch.context() as patch:
                patch.setattr(reduced, name, least)
                assert affordable(problem, table, room)
                patch.setattr(reduced, name, least - 1)
                assert not affordable(problem, table, room)
    none: Any = Fake(d=np.zeros(0, int), r=np.zeros(0))
    monkeypatch.setattr(reduced, "FLOATS", 4 * 3)
    assert affordable(problem, none)
    monkeypatch.setattr(reduced, "FLOATS", 4 * 3 - 1)
    assert not affordable(problem, none)


# -- doubt -----------------------------------------------------------------------------------------
class Asked:
    """Rank 2 of 4 rows, and a doubt of an agent's own; what is heard of the others is made up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, rank: int, own: int) -> None:
        found: Any = object.__new__(Reduced)
        found.exactly = Fake(rank=rank, excess=own, digits="counts")
        found.U = np.zeros((4, 2))
        found.rank = 2
        found._own = Doubt.CONVENTION
        found.U_null = np.eye(4)[:, 2:]
        found._dropped = (0.5, (4, 5))
        self.given: list[Any] = []

        def of(*given: Any, rounded: bool) -> Doubt:
            self.given.append((*given, rounded))
            return Doubt.OPINION

        def made_of_rounded(counts: str, part: Array) -> str:
            assert (counts, part.tolist()) == ("counts", [0.0, 0.0, 1.0, 1.0])
            return "rounded"

        monkeypatch.setattr(reduced.Doubt, "of", of)
        monkeypatch.setattr(reduced, "made_of_rounded", made_of_rounded)
        self.found: Reduced = found


@pytest.mark.parametrize(
    ("A", "B", "D", "asked"),
    [
        ([[1.0], [0.0]], [[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0]], False),  # zero rows are no rows
        ([[0.0], [0.0]], [[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0]], False),
        ([[1.0], [2.0]], [[1.0, 0.0], [2.0, 0.0]], [[0.0, 1.0]], True),
        ([[1.0], [0.0]], [[1.0, 0.0], [0.0, 2.0]], [[0.0, 1.0]], True),
        ([[1.0], [0.0]], [[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]], False),
        ([[1.0], [1.0]], [[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0]], False),
        ([[1.0], [1.0]], [[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [1.0, 0.0]], True),  # their sides
    ],
)
def test_others_are_asked_where_rows_seem_to_depend_on_each_other(
    A: Any, B: Any, D: Any, asked: bool
) -> None:
    agent = Agent(
        Quadratic(np.eye(3), np.zeros(3)), A=A, B=B, b=np.zeros(2), D=D, e=np.zeros(len(D))
    )
    found = Workspace(Problem([agent]), InProcess(Network.complete(1))).reduced
    assert found is not None
    assert (found.exactly is not None) is asked
    assert found.doubt == Doubt.NONE


@pytest.mark.parametrize(
    ("rank", "own", "doubt"),
    [
        (2, 0, Doubt.NONE),
        (1, 1, Doubt.NONE),
        (1, 2, Doubt.CONVENTION),
        (2, 1, Doubt.CONVENTION),
        (3, 0, Doubt.OPINION),
        (4, 0, Doubt.OPINION),
    ],
)
def test_rows_that_were_dropped_are_in_doubt_where_the_rank_is_larger(
    rank: int, own: int, doubt: Doubt, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(monkeypatch, rank, own)
    assert asked.found.doubt == doubt
    assert asked.given == ([(0.5, (4, 5), "rounded")] if rank > 2 else [])


def test_the_larger_doubt_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, 4, 0)
    monkeypatch.setattr(reduced.Doubt, "of", lambda *given, rounded: Doubt.NONE)
    assert asked.found.doubt == Doubt.CONVENTION
