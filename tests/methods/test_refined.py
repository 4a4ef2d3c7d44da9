"""Refinements of cross-direct, and minima over spans: where one call leads from any point."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.methods import CrossDirect
from ccmac.methods.base import Request
from ccmac.methods.direct import STEPS, Direct
from ccmac.methods.newton.subspace import OnSpan, Span
from ccmac.methods.start import starting_point
from ccmac.methods.system import definite
from ccmac.objectives import Quadratic
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from pins.problems import posed


def _flat() -> tuple[Any, Any, Any]:
    """Two agents with a direction each that only the coupled rows see; the KKT point by algebra."""
    random = np.random.default_rng(8)
    d = 3
    q = 2
    m = 4
    agents = []
    H = []
    g = []
    for i in range(2):
        root = random.standard_normal((3, d + q))
        H.append(root.T @ root)
        g.append(random.standard_normal(d + q))
        rows = {"D": random.standard_normal((1, q)), "e": np.ones(1)} if i else {}
        A = random.standard_normal((m, d))
        B = random.standard_normal((m, q))
        agents.append(
            ccmac.Agent(Quadratic(H[i], g[i]), A=A, B=B, b=random.standard_normal(m), **rows)
        )
    size = 2 * d + q
    whole = np.zeros((size, size))
    slope = np.zeros(size)
    for i in range(2):
        at = [*range(d * i, d * i + d), *range(2 * d, size)]
        whole[np.ix_(at, at)] += H[i]
        slope[at] += g[i]
    K = np.zeros((m + 1, size))
    K[:m] = np.hstack([agents[0].A, agents[1].A, agents[0].B + agents[1].B])
    K[m, 2 * d :] = agents[1].D[0]
    right = np.append(agents[0].b + agents[1].b, 1.0)
    kkt = np.block([[whole, K.T], [K, np.zeros((m + 1, m + 1))]])
    found = np.linalg.solve(kkt, np.concatenate([slope, right]))
    return ccmac.Problem(agents), ccmac.Network.path(2), found[:size]


def case(name: str) -> tuple[Direct, Any, np.ndarray]:
    """(iteration, its state at the end, the solution (x, z))."""
    if name == "flat":
        problem, network, exact = _flat()
    else:
        made = posed(name)
        problem = made.problem
        network = made.network
        reference = made.reference
        exact = np.concatenate([*reference.x, reference.z])
    work = Workspace(problem, InProcess(network))
    with work.ledger.phase("setup"):
        x, z = starting_point(work, None)
        iteration = CrossDirect().prepare(work, Request(1e-9, x, z)).iteration
    assert isinstance(iteration, Direct)
    copies = np.broadcast_to(z, (work.space.count, len(z)))
    return iteration, iteration.step(iteration.start(x, copies)), exact


@pytest.mark.parametrize("name", ["quadratic", "B-zero", "no-B", "no-coupling", "grid", "flat"])
def test_one_refinement_is_enough(name: str) -> None:
    iteration, end, exact = case(name)
    random = np.random.default_rng(1)
    x, z = iteration.point(end)
    assert np.concatenate([x, z[0]]) == pytest.approx(exact, abs=1e-9)
    assert (end.count, iteration.finished(end)) == (1, False)
    half = end.prices.shape[1] // 2
    noise = np.concatenate([random.standard_normal(half), np.zeros(half)])
    far = replace(end, u=end.u + random.standard_normal(end.u.shape), prices=end.prices + noise)
    iteration.space.z(far.u)[...] = iteration.space.z(far.u)[0]  # copies agree
    for k, share in enumerate(iteration.proof.agents):  # on the agents' own equations
        mine = iteration.space.x_of(far.u, k)
        mine[...] = share.onto_local(mine.astype(np.longdouble))
    x, z = iteration.point(far)
    off = np.linalg.norm(np.concatenate([x, z[0]]) - exact)
    again = iteration.step(far)
    x, z = iteration.point(again)
    assert np.concatenate([x, z[0]]) == pytest.approx(exact, abs=1e-9)
    assert again.prices.sum() == pytest.approx(end.prices.sum(), abs=1e-7)
    # What was proved is of the point before, put on the agents' own equations.
    assert iteration.found is not None
    assert iteration.found.error > 1e-3
    before = np.concatenate([iteration.found.x, np.ravel(iteration.found.z)])
    assert np.linalg.norm(before - exact) <= iteration.found.error
    assert off > 0.1
    assert iteration.finished(replace(end, count=STEPS))
    assert STEPS == 5
    stored = iteration._read(again)
    assert [v.astype(float) for v in stored.x] == [
        pytest.approx(iteration.space.x_of(x, k)) for k in range(iteration.space.count)
    ]


@pytest.mark.parametrize(
    ("L", "mu", "more"),
    [(0.9, 1.0, 0), (1.1, 1.0, 1), (1.1, 1.3, 0), (0.9, 0.8, 1), (1e-9, 0.0, 1), (1e-9, -1.0, 1)],
)
def test_rows_are_whitened_in_the_sum_where_that_loses_little(
    L: float, mu: float, more: int
) -> None:
    """eps condition^2 L at most 1e-5 of mu; else the agents whiten theirs, one averaging more."""
    work = case("quadratic")[0].work
    reduced: Any = work.gather_constraints()
    edge = 1e-5 / (np.finfo(float).eps * reduced.condition**2)
    before = work.ledger.of("setup")["averagings"]
    with work.ledger.phase("setup"):
        made = definite(work, reduced, Fake(L=L * edge, mu=mu))
    assert work.ledger.of("setup")["averagings"] - before == more
    right = np.arange(1.0, made.whitened.size + 1)
    expected = case("quadratic")[0].system.solve(right)
    assert made.solve is not None
    assert made.solve(right) == pytest.approx(expected, rel=1e-9, abs=1e-9)


class Steep:
    """h(z) = sum log cosh(20 (z - 1)): Newton's full step from zero leads far beyond."""

    beta = 2.0

    def __init__(self) -> None:
        self.looks: list[float] = []

    def value(self, z: np.ndarray) -> float:
        return float(np.sum(np.logaddexp(20 * (z - 1), -20 * (z - 1)) - np.log(2)))

    def slope(self, z: np.ndarray) -> np.ndarray:
        self.looks.append(float(z[0]))
        return 20 * np.tanh(20 * (z - 1))

    def gram(self, z: np.ndarray, E: np.ndarray) -> np.ndarray:
        bend = 400 / np.cosh(np.clip(20 * (z - 1), -300, 300)) ** 2
        return np.asarray((E * bend) @ E.T)


def test_the_minimum_over_a_span_and_the_looks_it_takes() -> None:
    """|c|^2/2 + h((E'c - a)/beta): slopes along a step are followed to their root by secants."""
    h: Any = Steep()
    E = np.array([[1.0, 0.5], [0.0, 1.0], [0.0, 0.0]])
    on = OnSpan(h, np.array([0.3, -0.2]))
    span = Span(np.eye(3)[:, :2].copy(), E, 2)
    c = on.minimiser(span, np.zeros(3))
    first = len(h.looks)
    again = on.minimiser(span, c)  # a tenth of a percent of the first decrement is left at most
    for _ in range(6):
        again = on.minimiser(span, again)
    z = (again[:2] @ E[:2] - on.a) / 2
    assert again[:2] + E[:2] @ (20 * np.tanh(20 * (z - 1))) / 2 == pytest.approx(
        [0.0, 0.0], abs=1e-9
    )
    assert again[2] == 0.0

    def F(c: np.ndarray) -> float:
        return h.value((c[:2] @ E[:2] - on.a) / 2) + 0.5 * float(c @ c)

    assert F(again) <= F(c) < F(np.zeros(3))
    ways = [-0.15, 7.35, 2.35, 0.9214286, 0.9816598, 0.9434056, 0.9318808, 0.9268979, 0.9244238]
    assert h.looks[:9] == pytest.approx(ways, abs=1e-6)
    assert first == 13


@pytest.mark.parametrize(
    ("told", "ratio", "steps"),
    [(7.0, 0.75, 13), (0.2, -2 / 3, 9)],  # falls shrink with its square, down to a thousandth
)
def test_a_whole_step_that_falls_is_taken_as_it_is(told: float, ratio: float, steps: int) -> None:
    """c^2/2 + h(c) with h = c^2/2 but another h'' told: c becomes (1 - 2/(1 + told)) c."""
    looks = []

    def slope(z: np.ndarray) -> np.ndarray:
        looks.append(float(z[0]))
        return z

    h: Any = Fake(
        beta=1.0,
        value=lambda z: 0.5 * float(z @ z),
        slope=slope,
        gram=lambda z, E: np.array([[told]]),
    )
    one = np.ones((1, 1))
    c = OnSpan(h, np.zeros(1)).minimiser(Span(one, one, 1), np.ones(1))
    assert looks == pytest.approx([ratio**k for k in range(steps + 1)], rel=1e-9)
    assert c == pytest.approx(looks[-1:])
