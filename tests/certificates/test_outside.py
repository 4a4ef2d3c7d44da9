"""What rounding leaves outside Range K', and bounds of points that it has reached."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse.linalg as spla

import ccmac
from adversarial import suite
from adversarial.judge import judge
from ccmac.certificates.outside import Outside
from ccmac.inputs import Array
from ccmac.methods import CrossApapc
from ccmac.methods.base import Request
from ccmac.network import Network
from ccmac.paper.instances import random_quadratic
from ccmac.realizations.base import Realized
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace


@pytest.mark.parametrize("method", ["cross-apapc", "cross-lbfgs", "cross-cg", "papc"])
@pytest.mark.parametrize("seed", [0, 6])
def test_bounds_hold_where_rounding_is_all_that_is_left(
    seed: int, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against exact errors; equations are not gathered, and nothing can be reached beyond."""
    monkeypatch.setattr("ccmac.workspace.reduced.ROWS", 0)
    case = replace(suite.make("explained", seed), tol=1e-15)
    found = judge(case, method, max_iterations=3000, max_seconds=5)
    assert found.faults == []
    assert found.error <= found.bound <= 1e-10


def system(seed: int, r: int) -> tuple[Outside, Realized, Workspace]:
    work = Workspace(random_quadratic(seed, 3, r=r), InProcess(Network.path(3)))
    start = np.zeros(work.space.x_size), np.zeros(work.problem.q)
    realized = CrossApapc().realize(work, Request(1e-6, *start))
    return Outside(work, realized), realized, work


def exactly(values: Array) -> list[Fraction]:
    return [Fraction(float(v)) for v in values]


def distance(p: Array, y: Array, realized: Realized, work: Workspace) -> float:
    """Of p from {A'y + C'kappa, s B'y + nu}, kappa free (one row a C_i), in rational numbers."""
    squares = Fraction(0)
    mean = [Fraction(0)] * work.problem.q
    for k, agent in enumerate(work.problem.agents.values()):
        x = exactly(work.space.x_of(p, k))
        z = exactly(work.space.z(p)[k])
        for row, price in zip(np.asarray(agent.A), exactly(y), strict=True):
            x = [a - b * price for a, b in zip(x, exactly(row), strict=True)]
        for row, price in zip(np.asarray(agent.B), exactly(y), strict=True):
            z = [a - Fraction(realized.s) * b * price for a, b in zip(z, exactly(row), strict=True)]
        [c] = [exactly(row) for row in np.asarray(agent.C)]
        share = sum(a * b for a, b in zip(c, x, strict=True)) / sum(a * a for a in c)
        squares += sum((a - share * b) ** 2 for a, b in zip(x, c, strict=True))
        mean = [a + b for a, b in zip(mean, z, strict=True)]
    return math.sqrt(squares + sum(v * v for v in mean) / work.problem.n)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("off", [0.0, 1e-13, 1e-3])
def test_the_distance_from_the_range_is_never_too_small(seed: int, off: float) -> None:
    outside, realized, work = system(seed, r=0)
    random = np.random.default_rng(seed)
    space = work.space
    y = random.standard_normal(work.problem.m)
    p = space.zeros()
    nu = random.standard_normal((3, work.problem.q))
    for k, agent in enumerate(work.problem.agents.values()):
        space.x_of(p, k)[...] = agent.A.T @ y + agent.C.T @ random.standard_normal(1)
        space.z(p)[k] = realized.s * (agent.B.T @ y) + nu[k] - nu.mean(axis=0)
    p += off * random.standard_normal(len(p))
    gradient = random.standard_normal(len(p))
    left = gradient + p  # rounded: p is what it is without the gradient
    truly = distance((left.astype(np.longdouble) - gradient).astype(float), y, realized, work)
    told = outside.tell(space.zeros(), left, gradient, y[None])
    found, lost = outside.heard(told.sum(axis=0))
    assert truly * (1 - 1e-9) <= found <= 1.01 * truly + 1e-13
    assert 0 < lost < 1e-13  # of the right-hand sides


def test_equations_d_that_nobody_knows_together_count_as_rounding() -> None:
    outside, _, work = system(1, r=1)
    w = np.random.default_rng(1).standard_normal(work.space.size)
    told = outside.tell(w, w, np.zeros_like(w), np.zeros((1, work.problem.m)))
    found, _ = outside.heard(told.sum(axis=0))
    assert 0 < found <= 1e-13


@pytest.mark.parametrize("name", ["averaged", "certified"])
def test_precise_gradients_are_those_of_doubles_but_for_rounding(name: str) -> None:
    work = Workspace(random_quadratic(2, 3), InProcess(Network.path(3)))
    start = np.zeros(work.space.x_size), np.zeros(work.problem.q)
    realized = CrossApapc(realization=name).realize(work, Request(1e-6, *start))
    w = 1e6 * np.random.default_rng(2).standard_normal(realized.space.size)
    gradient, off = realized.objective.precise_gradient(w)
    assert gradient == pytest.approx(realized.objective.gradient(w), rel=1e-9)
    apart = np.linalg.norm(gradient - realized.objective.gradient(w))
    assert 0 < np.linalg.norm(off) < 1e-5
    assert apart <= 10 * np.linalg.norm(off) + 1e-9


def test_operators_multiply_in_doubles_and_what_they_round_counts() -> None:
    """The same numbers as of matrices but for the unit of rounding."""
    plain, _, work = system(0, r=0)
    random = np.random.default_rng(0)
    space = work.space
    w, left, gradient = (random.standard_normal(space.size) for _ in range(3))
    price = random.standard_normal((3, work.problem.m))
    told = plain.tell(w, left, gradient, price)
    plain.blocks = [tuple(map(spla.aslinearoperator, own)) for own in plain.blocks]
    probed = plain.tell(w, left, gradient, price)
    assert np.allclose(probed, told, rtol=1e-12)
    assert (probed[:, 0] > told[:, 0]).all()


def test_operators_that_are_not_gathered_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ccmac.workspace.reduced.ROWS", 0)
    given = random_quadratic(1, 3, r=0)
    agents = [
        ccmac.Agent(
            a.objective,
            A=spla.aslinearoperator(a.A),
            B=spla.aslinearoperator(a.B),
            b=a.b,
            C=spla.aslinearoperator(a.C),
            c=a.c,
        )
        for a in given.agents.values()
    ]
    found = ccmac.solve(ccmac.Problem(agents), "path", method="cross-apapc", tol=1e-8)
    known = ccmac.solve(given, "path", tol=1e-12)
    apart = np.concatenate([*found.x, found.z]) - np.concatenate([*known.x, known.z])
    assert found.status == "converged"  # nobody has confirmed the lower end of the spectrum
    assert np.linalg.norm(apart) <= found.error_estimate <= 1e-6
