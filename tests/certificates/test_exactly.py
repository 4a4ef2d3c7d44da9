"""Contradictions that exact arithmetic decides: of large solutions, behind near dependence."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import ccmac
from ccmac import Agent, Problem
from ccmac.certificates.infeasibility import EXACT_REACH
from ccmac.certificates.own_rows import contradiction, defect_of
from ccmac.inputs import Array
from ccmac.linalg import extended
from ccmac.linalg.ranks import mostly_rounded, row_space
from ccmac.objectives import Quadratic

LARGE = 2.0**27
ROWS = np.array([[3.0, 1.0], [1.0, 2.0], [19.0, 18.0]])  # 4, 7


def posed(off: float, where: str, near: float = 0.0) -> Problem:
    """Three rows in C, D or coupled whose solution is LARGE (1, 1); the last side is ``off``.

    With ``near`` the agent has two nearly parallel rows of C besides.
    """
    right = LARGE * np.array([4.0, 3.0, 37.0])
    right[2] += off
    if where == "b":
        blocks = {"A": ROWS, "B": np.zeros((3, 2)), "b": right}
    else:
        blocks = {"A": np.eye(1, 2), "b": [LARGE], {"c": "C", "e": "D"}[where]: ROWS, where: right}
    if near:
        blocks = {"A": np.hstack([ROWS, ROWS]), "B": np.zeros((3, 2)), "b": 2 * right}
        blocks["C"] = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0 + near, 1.0, 1.0]])
        blocks["c"] = LARGE * np.array([4.0, 4.0 + near])
    size = 4 if not near else 6
    return Problem([Agent(Quadratic(np.eye(size), np.ones(size)), **blocks)])


@pytest.mark.parametrize("where", ["b", "c", "e"])
@pytest.mark.parametrize("near", [0.0, 2.0**-24])
def test_a_small_contradiction_of_large_solutions_is_proved(where: str, near: float) -> None:
    for method in ("auto", "cross-cg"):
        result = ccmac.solve(posed(2.0**-8, where, near), method=method)
        assert result.status == "infeasible"
        assert result.infeasibility.radius >= 100 * LARGE
        assert ccmac.solve(posed(0.0, where, near), method=method).status in (
            "optimal",
            "converged",
        )


def behind(gap: float, near: float, *, rounded: bool, seed: int = 2) -> Problem:
    """A coupled row that is a sum of others, its side off by ``gap``; two rows of C that differ by
    ``near`` fix x and turn what is left of the coupled rows.
    """
    rng = np.random.default_rng(seed)
    C = rng.integers(-256, 257, (1, 2)) / 128
    C = np.vstack([C, 2 * C + [[near, 0.0]]])
    A = [rng.integers(-256, 257, (3, d)) / 128 for d in (2, 1)]
    A = [np.vstack([rows, rows[0] - rows[1] + rows[2]]) for rows in A]
    x = [np.array([3.0, -1.0]), np.array([2.0])]
    if rounded:
        x = [v + rng.standard_normal(len(v)) for v in x]
    b = [rows @ v for rows, v in zip(A, x, strict=True)]
    b[0][-1] += gap
    own = {"C": C, "c": C @ x[0]}, {}
    return Problem(
        [
            Agent(Quadratic(np.eye(rows.shape[1]), np.ones(rows.shape[1])), A=rows, b=right, **more)
            for rows, right, more in zip(A, b, own, strict=True)
        ]
    )


@pytest.mark.parametrize("near", [2.0**-8, 2.0**-26])
@pytest.mark.parametrize("rounded", [False, True])
def test_angles_of_kernels_hide_no_contradiction(near: float, *, rounded: bool) -> None:
    """Those of 2^-40 are proved, or doubted where sides are rounded: no bound is given."""
    for gap, status in (
        (0.0, "optimal"),
        (2.0**-40, "converged" if rounded else "infeasible"),
        (2.0**-30, "infeasible"),
        (2.0**-13, "infeasible"),
    ):
        result = ccmac.solve(behind(gap, near, rounded=rounded), "path")
        assert result.status == status, (gap, near)
        assert math.isfinite(result.error_bound) is (status == "optimal")
        assert bool(result.warnings) is (status == "converged")


def test_what_may_be_rounding_of_the_sides_is_not_claimed() -> None:
    """The same misfit, in right-hand sides that use all their digits."""
    right = np.array([4.0, 3.0, 37.0 + 2.0**-35])
    assert row_space(ROWS).agrees(right) is False
    assert row_space(ROWS).agrees(right / 7) is None
    assert row_space(ROWS).agrees(np.array([4.0, 3.0, 37.0])) is True
    for side, status in ((right, "infeasible"), (right / 7, "converged")):
        for block in ({"C": ROWS, "c": side}, {"D": ROWS, "e": side}):
            agent = Agent(Quadratic(np.eye(4), np.zeros(4)), **block)
            assert ccmac.solve(Problem([agent], q=2)).status == status


def placed(rows: Array, sides: Array, where: str) -> Problem:
    """Equations of one unknown vector: in a C, in a D, in the D of an agent each, or coupled."""
    k = rows.shape[1]
    f = Quadratic(np.eye(k + 1), np.zeros(k + 1))
    if where == "D apart":
        pairs = zip(rows, sides, strict=True)
        return Problem([Agent(f, A=[[1.0]], b=[1.0], D=[row], e=[side]) for row, side in pairs])
    blocks = {
        "C": {"B": [[1.0]], "b": [1.0], "C": rows, "c": sides},
        "D": {"A": [[1.0]], "b": [1.0], "D": rows, "e": sides},
        "A": {"A": rows, "b": sides},
    }[where]
    return Problem([Agent(f, **blocks)], q=k if where == "D" else 1)


PLACES = ("A", "C", "D", "D apart")


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("power", [42, 50])
def test_equations_that_only_large_points_meet_are_not_called_contradictory(
    where: str, power: int
) -> None:
    """(1, 2, t)'x = 1 and (1, 2, 0)'x = 0 twice: x = (0, 0, 1 / t)."""
    t = 2.0**-power
    rows = np.array([[1.0, 2.0, 0.0], [1.0, 2.0, t], [2.0, 4.0, 0.0]])
    sides = np.eye(3)[1]
    assert np.array_equal(rows @ [0.0, 0.0, 1 / t], sides)
    for averaging in ("masked", "auto"):
        result = ccmac.solve(placed(rows, sides, where), "complete", averaging=averaging)
        assert result.status in ("stalled", "converged")
        assert result.warnings
        assert not math.isfinite(result.error_bound)
    assert any(f"points of norm {1 / t:.2g}" in text for text in result.warnings) or power == 50


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
def test_sides_of_twelve_digits_are_doubted_and_not_called_contradictory(
    where: str, size: float
) -> None:
    """Two rows and their weighted sum at a random point: sides are off by up to 1e-12 of it."""
    lengths = np.linalg.norm(ROWS, axis=1)
    doubted = 0
    for seed in range(6):
        point = size * np.random.default_rng(seed).uniform(0.1, 1.0, 2)
        sides = np.array([float(f"{v:.12g}") for v in ROWS @ point])
        one, two, three = (Fraction(v) for v in sides)
        misfit = abs(float(4 * one + 7 * two - three)) / np.linalg.norm([4, 7, -1] * lengths)
        result = ccmac.solve(placed(ROWS, sides, where), "complete")
        if misfit < 1e-13 * np.linalg.norm(sides / lengths):  # by chance
            assert result.status != "infeasible", seed
            continue
        doubted += 1
        assert result.status == "converged", seed
        assert any("too little for a proof" in text for text in result.warnings), seed
    assert doubted >= 2


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("averaging", ["auto", "masked"])
@pytest.mark.parametrize("size", [1e3, 1e6, 3e8])
def test_sides_of_all_digits_contradict_each_other_from_1e_4_on(
    where: str, averaging: str, size: float
) -> None:
    """The distance from the range, in rows of unit length: a third side off by some of it."""
    unit = ROWS / np.linalg.norm(ROWS, axis=1)[:, None]
    null = np.linalg.svd(unit.T)[2][-1]
    for seed in range(3):
        sides = ROWS @ (size * np.random.default_rng(seed).uniform(0.1, 1.0, 2))
        sides[2] += 1.01e-4 / abs(null[2]) * np.linalg.norm(ROWS[2])
        result = ccmac.solve(placed(ROWS, sides, where), "complete", averaging=averaging)
        assert result.status == "infeasible", seed
        assert result.infeasibility.radius > EXACT_REACH * size


def test_what_few_unrounded_numbers_count() -> None:
    """Two entries of three, where both have a part; one that has none does not count."""
    counts = np.array([1, 1, 1, 0]), np.array([1, 1, 0, 0])
    assert mostly_rounded(counts, np.ones(4))
    assert not mostly_rounded(counts, np.array([0.0, 1.0, 1.0, 1.0]) * [1, 0, 1, 1])
    assert not mostly_rounded(counts, np.array([0.0, 0.0, 0.0, 1.0]))


def test_updated_sides_are_looked_at_again() -> None:
    """Sides off by 2^-44: far from what is proved and from what is taken for rounding.

    Multiples of three do not cancel to the last digit, whatever the processor's order of sums.
    """
    agents = [
        Agent(Quadratic(np.eye(2), np.zeros(2)), A=[[1.0], [3.0]], B=[[1.0], [3.0]], b=[1.0, 3.0])
        for _ in range(2)
    ]
    prepared = ccmac.prepare(Problem(agents), "complete")
    assert prepared.solve().status == "optimal"
    prepared.update(b=[np.array([1.0, 3.0]), np.array([1.0, 3.0 + 2.0**-44])])
    assert prepared.solve().status == "converged"
    prepared.update(b=[np.array([1.0, 3.0]), np.array([3.0, 9.0])])
    assert prepared.solve().status == "optimal"


def test_the_side_left_by_a_kernel_is_that_of_rational_arithmetic() -> None:
    """x = (2, 1/3, .): C x = (5, 4), so b - A x = 7 - (2 + 1/3); and C x = (5, 10 + 1) has none."""
    C = np.array([[2.0, 3.0, 0.0], [4.0, 6.0, 0.0]])
    A = np.array([[1.0, 1.0, 0.0]])
    for prime in extended.PRIMES:
        none, side = extended.side_on_kernel(
            np.vstack([A, C[:1]]), C, (np.array([7.0, 9.0]), np.array([5.0, 10.0])), prime
        )[[0, 2]]
        assert (none, side) == (0, 9 - 5)  # a row of C itself
        assert extended.side_on_kernel(A, C, (np.ones(1), np.array([5.0, 11.0])), prime)[0] == 1


def test_a_defect_is_zero_only_where_it_is_so_exactly() -> None:
    """3 (1/3) - 1 rounds to zero and is not."""
    third = 1 / 3
    assert defect_of([(np.array([[3.0], [-1.0]]), np.array([0.25, 0.75]))]) == 0.0
    off = defect_of([(np.array([[3.0], [-1.0]]), np.array([third, 1.0]))])
    assert 0 < 2.0**-54 <= off <= 1e-15


@pytest.mark.parametrize("power", [-12, -24])
def test_sharpened_multipliers_cancel_nearly_dependent_rows(power: int) -> None:
    t = 2.0**power
    M = np.array([[3.0, 1.0, 1.0], [3.0, 1.0 + t, 1.0], [7.0, 2.0 + t, 2.0], [0.0, t, 0.0]])
    space = row_space(M)
    right = M @ np.array([2.0, 1.0, 0.0]) + np.array([0.0, 0.0, 0.0, 2.0**-30])
    plain = contradiction(M, right, space)
    sharp = contradiction(M, right, space, exact=True)
    assert plain is not None
    assert sharp is not None
    assert sharp.defect <= 4 * np.finfo(float).eps * np.linalg.norm(
        np.abs(M).T @ np.abs(sharp.price)
    )
    assert sharp.defect <= 1.5 * plain.defect or math.isclose(plain.defect, 0.0)


def test_zero_rows_of_c_alone_and_operators_among_flat_directions() -> None:
    """Rows 0 = 0 where nobody has other rows of C; D known by its products alone."""

    class Products:
        shape = (1, 2)

        def matvec(self, v: Array) -> Array:
            return np.array([v[0] - v[1]])

        def rmatvec(self, v: Array) -> Array:
            return np.array([v[0], -v[0]])

    flat = Quadratic(np.diag([1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0]))
    rows = {"A": [[1.0]], "B": [[1.0, 1.0]], "b": [2.0]}
    agents = [Agent(flat, C=[[0.0]], c=[0.0], **rows), Agent(flat, D=Products(), e=[0.0], **rows)]
    for problem in (Problem(agents), Problem([agents[1]])):
        result = ccmac.solve(problem, "complete")
        assert result.status == "optimal"
        assert result.z[0] == pytest.approx(result.z[1])
        assert result.x[0] == pytest.approx(1.0)
