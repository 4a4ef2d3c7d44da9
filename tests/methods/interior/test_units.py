"""Columns of uneven length: units in closed form, and the same answers in any units."""

from __future__ import annotations

import numpy as np
import pytest

import ccmac
from ccmac.linalg.blocks import dense
from ccmac.methods.interior.units import Units, _alone, _ends, _told_apart
from ccmac.objectives import L1, Box, Hinge, Quadratic
from ccmac.results import Solution
from methods.interior.problems import make, violation
from methods.interior.test_interior import begun

INF = np.inf
EXPECTED = {"solvable": "optimal", "unbounded": "unbounded"}


def rescaled(problem: ccmac.Problem, random: np.random.Generator, size: float) -> ccmac.Problem:
    """The same problem of w / S with S between 10^-size and 10^size."""
    z = 10 ** random.uniform(-size, size, problem.q)
    agents = []
    for i, agent in problem.agents.items():
        x = 10 ** random.uniform(-size, size, problem.d[i])
        form = agent.objective.polyhedral(problem.d[i], problem.q)
        S = np.append(x, z)
        objective = Quadratic(S[:, None] * form.H * S, S * form.g)
        blocks = {"A": agent.A * x, "B": agent.B * z, "C": agent.C * x, "D": agent.D * z}
        right = {"b": agent.b, "c": agent.c, "e": agent.e}
        objective = objective + Box(form.lower / S, form.upper / S)
        agents.append(ccmac.Agent(objective, **blocks, **right))
    return ccmac.Problem(agents)


def solve(problem: ccmac.Problem, **more: object) -> ccmac.Result:
    network = ccmac.Network.path(problem.n)
    return ccmac.solve(problem, network, "cross-ipm", 1e-6, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [3, 11, 25, 30, 33])
def test_problems_are_what_they_are_in_any_units(seed: int) -> None:
    """Without units of its own the method stalls on each of these, far from an answer."""
    made = make(seed)
    problem = rescaled(made.problem, np.random.default_rng(seed), 4.0)
    result = solve(problem)
    assert result.status == EXPECTED[made.kind], result.message
    assert result.iterations <= 40
    if made.kind == "solvable":
        room = 1e-6 * max(1.0, abs(made.value))
        assert abs(result.objective - made.value) <= room
        assert result.objective - made.value <= result.certificates["gap"] + 1e-12
        assert violation(problem, result) <= 1e-6


def test_units_make_columns_and_bounds_alike() -> None:
    """x_0 + 2^-12 x_1 = 4 with bounds 4 and 2^14: columns over their length, times beta = 4."""
    entries = (1.0, 2.0**-12)
    agents = []
    for a in entries:
        objective = Quadratic([0.0], [1.0]) + Box(0.0, 4.0 / a)
        agents.append(ccmac.Agent(objective, A=[[a]], b=[2.0]))
    iteration = begun(ccmac.Problem(agents))[0]
    units = iteration.setup.units
    assert units is not None
    assert [float(S[0]) for S in units.x] == [4.0, 2.0**14]
    assert iteration.blocks[1].form.upper == pytest.approx([1.0])
    assert iteration.reach == pytest.approx(4.0)


def test_even_columns_keep_their_units() -> None:
    assert begun(make(11).problem)[0].setup.units is None


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_bound_written_as_a_row_is_one(sign: float) -> None:
    """x_0 <= 1024 as a row of C says nothing of the column; its slack has the unit of x_0."""
    one = ccmac.Agent(
        Quadratic([0.0, 0.0], [1.0, 0.0]),
        A=[[2.0**-10, 1.0]],
        b=[1.0],
        C=[[sign, 0.0]],
        c=[sign * 1024.0],
        C_sense="<=" if sign > 0 else ">=",
        lower=[-np.inf, -1.0],
        upper=[np.inf, 1.0],
    )
    problem = ccmac.Problem([one])
    units = begun(problem)[0].setup.units
    assert units is not None
    assert units.x[0] == pytest.approx([2.0**10, 1.0, 2.0**10])
    result = solve(problem)
    assert result.x[0] == pytest.approx([1024.0, 0.0], abs=1e-3)


@pytest.mark.parametrize("warm", [False, True])
def test_prices_are_those_of_the_users_rows(warm: bool) -> None:
    """min x'x/2 + |x|_1 twice, a'x summed to 2 a_1 4: x = (0, 4), a_1 y = -(4 + 1)."""
    a = 2.0**14
    f = Quadratic([1.0, 1.0], [0.0, 0.0]) + L1(1.0)
    problem = ccmac.Problem([ccmac.Agent(f, A=[[1.0, a]], b=[4.0 * a])] * 2, q=0)
    assert begun(problem)[0].setup.units is not None
    result = solve(problem)
    if warm:
        start = Solution(result.x, result.z, result.multipliers)
        again = solve(problem, warm_start=start)
        assert again.iterations <= min(result.iterations, 3)
        result = again
    assert result.status == "optimal"
    assert np.concatenate(result.x) == pytest.approx([0.0, 4.0] * 2, abs=1e-6)
    assert result.multipliers.coupled == pytest.approx([-5.0 / a], rel=1e-6)


def test_a_run_along_a_ray_has_not_blown_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Far points are what tells of problems without a solution: no health check ends the run."""
    monkeypatch.setattr("ccmac.methods.driver.BLOW_UP", 0.0)
    problem = rescaled(make(25).problem, np.random.default_rng(25), 4.0)
    assert solve(problem, max_iterations=10).status == "max_iterations"


def test_bounds_out_of_sight_tell_no_size() -> None:
    """A million beside a nearer bound, or beside most others; of 2^10 and more it is no size."""
    low = np.array([-1.0, -1e6, 0.0, -INF])
    high = np.array([1e6, 1e6, 4.0, INF])
    assert _ends(low, high).tolist() == [1.0, 1e6, 4.0, 0.0]
    assert _ends(np.array([2.0, 2.0]), np.array([2048.0, 2049.0])).tolist() == [2048.0, 2.0]
    assert _told_apart([np.array([0.0, 1.0]), np.array([2.0, 11.0, 11.1])]).tolist() == [
        0.0,
        1.0,
        2.0,
        11.0,
        11.1,
    ]
    assert _told_apart([np.array([0.0, 1.0, 1.0, 11.0, 11.1])]).tolist() == [0.0, 1.0, 1.0, 11.0]
    assert _told_apart([np.zeros(0)]).tolist() == []


def test_unknowns_in_no_row_have_the_size_of_their_minimum() -> None:
    """|g| / H = 3 within bounds, at the nearest point of theirs beyond; bounds where it is flat."""
    ends = np.array([1e6, 2.0, 9.0, 1e6, 0.0, 1e6])
    least = np.array([0.0, 0.0, 5.0, 0.0, 0.0, 0.0])
    curved = np.array([2.0, 2.0, 2.0, 0.0, 2.0, 2.0])
    slope = np.array([6.0, -6.0, 6.0, 6.0, 6.0, 0])
    assert _alone(ends, least, curved, slope).tolist() == [3.0, 2.0, 5.0, 1e6, 3.0, 1e6]


def test_bounds_of_a_million_that_nothing_reaches() -> None:
    """x_0 + x_1 = 1, of least x_0^2 - x_1: x = (-1/2, 3/2); another entry has its own minimum."""
    far = Box([-1e6, -0.5], [1e6, 1e6])
    agents = []
    for H, g in (([2.0, 1.0], [0.0, 3.0]), ([0.0, 1.0], [1.0, -4.0])):
        agents.append(ccmac.Agent(Quadratic(H, g) + far, A=[[1.0, 0.0]], b=[0.5]))
    result = solve(ccmac.Problem(agents, q=0))
    assert result.status == "optimal"
    assert result.iterations <= 20
    assert np.concatenate(result.x) == pytest.approx([-0.5, 3.0, 1.5, -0.5], abs=1e-5)


def test_a_right_hand_side_that_is_rounding_tells_no_size() -> None:
    """x_0 + x_1 = 1e-17 within bounds of 4: what cancelled is no size, units stay."""
    f = Quadratic([1.0], [1.0]) + Box(-4.0, 4.0)
    one = ccmac.Agent(f, A=[[1.0]], b=[1e-17])
    assert begun(ccmac.Problem([one, ccmac.Agent(f, A=[[1.0]])]))[0].setup.units is None


def test_rounding_of_one_agents_point_tells_nobody_a_size() -> None:
    """x_1 >= 0 >= x_1 in rows: what rounding leaves of C^+ c is the coupled right-hand side of all.

    F* = min (x^2/2 + 2x on [-1, inf)) - max (x on [0, 2]) = -3/2 - 2.
    """
    agents = [
        ccmac.Agent(
            Quadratic(np.diag([1.0, 0.0]), [-2.0, 3.0]),
            A=[[0.0, -2.0]],
            C=[[0.0, -2.0], [-3.0, 0.0]],
            c=[0.0, 6.0],
            C_sense="<=",
            lower=[-1.0, -INF],
            upper=[INF, 0.0],
        ),
        ccmac.Agent(Quadratic([0.0], [1.0]), A=[[1.0]], lower=0.0, upper=2.0),
        ccmac.Agent(Quadratic([0.0], [0.0]), A=[[-2.0]]),
    ]
    result = solve(ccmac.Problem(agents, q=0, sense=">="))
    assert result.status == "optimal"
    assert result.objective == pytest.approx(-3.5, abs=4e-6)


def test_a_shared_unknown_in_no_row_is_measured_by_its_minimum_or_its_bounds() -> None:
    """Two times 2^-12 z^2 / 2 - z / 4: z = 2^10; with bounds of 2^7 these count."""
    H = np.diag([1.0, 2.0**-12])
    g = np.array([0.0, -0.25])
    for bound, unit in ((np.inf, 2.0**10), (2.0**7, 2.0**7)):
        f = Quadratic(H, g) + Box([-np.inf, -bound], [np.inf, bound])
        units = begun(ccmac.Problem([ccmac.Agent(f, A=[[1.0]])] * 2, q=1))[0].setup.units
        assert units is not None
        assert units.z.tolist() == [unit]


def test_an_objective_in_other_units_is_the_same_function() -> None:
    """Rows of kinks come near unit length, by powers of two; slacks have their row's unit."""
    S = np.array([4.0, 0.5, 2.0**-6])
    R = np.array([[2.5, 0.0, 0.0], [0.0, 6.0, 2.0**8]])  # in units: (10, 0, 0), (0, 3, 4)
    f = Quadratic(np.diag([1.0, 2.0, 3.0]), [1.0, -2.0, 0.5]) + Box(-8.0, 8.0)
    form = f.polyhedral(2, 1)
    assert form is not None
    form = form.with_terms(*(Hinge(R, [1.0, -1.0]).polyhedral(2, 1) or form).terms)
    units = Units.of([S[:2]], S[2:], [form])
    assert [r.tolist() for r in units.rows] == [[8.0, 4.0]]
    new = units.form(0, form)
    assert new.lower.tolist() == (-8.0 / S).tolist()
    assert new.upper.tolist() == (8.0 / S).tolist()
    assert new.g == pytest.approx(S * form.g)
    assert np.asarray(new.H.todense() if hasattr(new.H, "todense") else new.H) == pytest.approx(
        np.diag(S**2 * [1.0, 2.0, 3.0])
    )
    [term] = new.terms
    [before] = form.terms
    assert np.abs(dense(term.R)) == pytest.approx(np.array([[1.25, 0, 0], [0, 0.75, 1.0]]))
    assert term.h == pytest.approx(before.h / [8.0, 4.0])
    random = np.random.default_rng(0)
    for w in random.standard_normal((5, 3)):
        images = [np.asarray(t.R @ v) - t.h for t, v in ((before, w), (term, w / S))]
        slacks = [t.slack(image) for t, image in zip((before, term), images, strict=True)]
        assert term.a @ slacks[1] == pytest.approx(before.a @ slacks[0])
        prices = [t.multiplier(image) for t, image in zip((before, term), images, strict=True)]
        assert prices[1] == pytest.approx(prices[0] * [8.0, 4.0])


@pytest.mark.parametrize(("size", "kept"), [(-4, True), (-6, False), (5, False)])
def test_units_change_where_one_of_them_is_far_from_one(size: int, kept: bool) -> None:
    """x_0 + 2^-8 x_1 = 0 within 2^size and 2^(size + 8): these are the units."""
    agents = []
    for a in (1.0, 2.0**-8):
        bound = 2.0**size / a
        agents.append(ccmac.Agent(Quadratic([0.0], [1.0]) + Box(-bound, bound), A=[[a]]))
    units = begun(ccmac.Problem(agents))[0].setup.units
    assert (units is None) == kept
    if units is not None:
        assert [float(S[0]) for S in units.x] == [2.0**size, 2.0 ** (size + 8)]
