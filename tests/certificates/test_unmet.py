"""The misfit of all equations, those of the agents included, against dense least squares."""

from __future__ import annotations

import numpy as np
import pytest

from ccmac import Agent, Network, Problem
from ccmac.certificates.proof import unmet
from ccmac.inputs import Array
from ccmac.objectives import Quadratic
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace

SIZES = (3, 2, 4)  # of the x_i
Q = 2
M = 4


def drawn(seed: int, local: tuple[int, ...], shared: int) -> Problem:
    """Coupled rows of rank two, shared ones of rank one, and any right-hand sides."""
    rng = np.random.default_rng(seed)
    mix = rng.integers(-2, 3, (M, 2)).astype(float)
    agents = []
    for d, p in zip(SIZES, local, strict=True):
        blocks = {
            "A": mix @ rng.integers(-3, 4, (2, d)),
            "B": mix @ rng.integers(-3, 4, (2, Q)),
            "b": rng.standard_normal(M),
            "C": rng.standard_normal((p, d)),
            "c": rng.normal(size=p),
            "D": rng.normal(size=(shared, 1)) @ rng.normal(size=(1, Q)),
            "e": rng.normal(size=shared),
        }
        f = Quadratic(np.eye(d + Q), np.zeros(d + Q))
        given = {name: block for name, block in blocks.items() if block.size}
        agents.append(Agent(f, **given))
        shared = 0  # the first agent alone has rows of D
    return Problem(agents)


def _unit(rows: Array) -> Array:
    return 1 / np.linalg.norm(rows, axis=1) if len(rows) else np.zeros(0)


@pytest.mark.parametrize("local", [(1, 0, 2), (2, 1, 1), (0, 0, 0), SIZES])
@pytest.mark.parametrize("shared", [0, 1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_what_no_point_can_meet(seed: int, shared: int, local: tuple[int, ...]) -> None:
    """v - K w at the least-squares w, in the rows that all scale and the C_i of length one.

    Where the C_i leave nothing of x free, coupled and shared rows contradict each other too.
    """
    problem = drawn(seed, local, shared)
    work = Workspace(problem, InProcess(Network.path(len(SIZES))))
    reduced = work.gather_constraints()
    assert reduced is not None
    assert reduced.U_null.shape[1]
    agents = list(problem.agents.values())
    sums = np.hstack([*(np.asarray(a.A) for a in agents), sum(np.asarray(a.B) for a in agents)])
    rows = [reduced.unit[:, None] * sums]
    right = [reduced.unit * sum(a.b for a in agents)]
    if shared:
        D = np.hstack([np.zeros((shared, sum(SIZES))), np.asarray(agents[0].D)])
        rows.append(reduced.unit_D[:, None] * D)
        right.append(reduced.unit_D * agents[0].e)
    for at, agent in zip(np.cumsum((0, *SIZES)), agents, strict=False):
        if agent.C is not None:
            C = np.asarray(agent.C)
            wide = np.zeros((len(C), sum(SIZES) + Q))
            wide[:, at : at + C.shape[1]] = C
            rows.append(_unit(C)[:, None] * wide)
            right.append(_unit(C) * agent.c)
    K = np.vstack(rows)
    v = np.concatenate(right)
    left = v - K @ np.linalg.lstsq(K, v, rcond=None)[0]
    said, length = unmet(work, reduced, 3)
    assert length == pytest.approx(np.linalg.norm(left), rel=1e-9)
    assert said == pytest.approx(left[: M + shared], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_large_points_hide_no_digit_of_the_misfit(seed: int) -> None:
    """Right-hand sides K w + s, exact in binary, with a large w of integers: s alone is left."""
    rng = np.random.default_rng(seed)
    mix = rng.integers(-2, 3, (M, 2)).astype(float)
    z = rng.integers(-(2**30), 2**30, Q)
    large = []
    small = []
    for d in SIZES:
        A = mix @ rng.integers(-3, 4, (2, d))
        B = mix @ rng.integers(-3, 4, (2, Q))
        C = rng.integers(1, 4, (1, d)).astype(float)
        x = rng.integers(-(2**30), 2**30, d)
        s = rng.integers(-64, 65, M) / 256
        t = rng.integers(-64, 65, 1) / 256
        f = Quadratic(np.eye(d + Q), np.zeros(d + Q))
        large.append(Agent(f, A=A, B=B, b=A @ x + B @ z + s, C=C, c=C @ x + t))
        small.append(Agent(f, A=A, B=B, b=s, C=C, c=t))
    said, expected = (_unmet(agents) for agents in (large, small))
    assert said[1] == pytest.approx(expected[1], rel=1e-8)
    assert said[0] == pytest.approx(expected[0], rel=1e-8, abs=1e-9)


def _unmet(agents: list[Agent]) -> tuple[Array, float]:
    work = Workspace(Problem(agents), InProcess(Network.path(len(agents))))
    assert work.gather_constraints() is not None
    return unmet(work, work.gather_constraints(), 3)
