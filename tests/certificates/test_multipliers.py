"""Violations, prices and their way back, against dense algebra in the user's own blocks."""

from __future__ import annotations

import numpy as np
import pytest

from ccmac import Agent, Network, Problem
from ccmac.certificates.multipliers import Recovery
from ccmac.inputs import Array
from ccmac.objectives import Quadratic
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace

N = 3
D_X = 3
Q = 4


def draw(seed: int = 0) -> tuple[Recovery, list[Agent]]:
    """Three agents with all blocks; the shared rows of two of them depend on each other."""
    random = np.random.default_rng(seed)
    D = [random.standard_normal((2, Q)), random.standard_normal((1, Q))]
    D.append(D[0][:1] - 2 * D[1])
    agents = [
        Agent(
            Quadratic(np.eye(D_X + Q), np.zeros(D_X + Q)),
            A=random.standard_normal((2, D_X)),
            B=random.standard_normal((2, Q)),
            b=random.standard_normal(2),
            C=random.standard_normal((1 + i % 2, D_X)),
            c=random.standard_normal(1 + i % 2),
            D=D[i],
            e=random.standard_normal(len(D[i])),
        )
        for i in range(N)
    ]
    work = Workspace(Problem(agents), InProcess(Network.complete(N)))
    return Recovery(work), agents


def point(seed: int) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    return random.standard_normal(N * D_X), random.standard_normal((N, Q))


def test_violations_and_the_size_they_are_compared_with() -> None:
    recovery, agents = draw()
    x, z = point(1)
    own = np.split(x, N)
    mean = z.mean(axis=0)
    norms, said = recovery.violations(x, z)
    assert said[0] == pytest.approx(mean)
    pairs = list(zip(agents, own, strict=True))
    total = sum(a.A @ v + a.B @ mean - a.b for a, v in pairs)
    assert norms["coupled"] == pytest.approx(np.linalg.norm(total))
    local = np.concatenate([a.C @ v - a.c for a, v in pairs])
    shared = np.concatenate([a.D @ mean - a.e for a in agents])
    assert norms["local"] == pytest.approx(np.linalg.norm(local))
    assert norms["shared"] == pytest.approx(np.linalg.norm(shared))
    assert norms["consensus"] == pytest.approx(np.linalg.norm(z - mean))
    size = np.linalg.norm(np.concatenate([v for a in agents for v in (a.b, a.c, a.e)]))
    assert recovery.scale() == pytest.approx(size)
    assert draw()[0].scale() == pytest.approx(size)  # asked for by itself


def test_prices_are_least_squares_and_stationary_as_far_as_can_be() -> None:
    recovery, agents = draw()
    gx, gz = point(2)
    price = np.array([[0.7, -1.3]])
    found = recovery.multipliers(gx.copy(), gz.copy(), price)
    assert found.coupled.tolist() == price[0].tolist()
    y = price[0]
    stacked = np.vstack([a.D for a in agents])
    for agent, slope, kappa in zip(agents, np.split(gx, N), found.local, strict=True):
        total = slope + agent.A.T @ y
        assert kappa == pytest.approx(np.linalg.lstsq(agent.C.T, -total, rcond=None)[0])
    along = [g + a.B.T @ y for a, g in zip(agents, gz, strict=True)]
    delta = np.concatenate(found.shared)
    best = np.linalg.lstsq(stacked.T, -sum(along), rcond=1e-10)[0]
    assert stacked.T @ delta == pytest.approx(stacked.T @ best)
    parts = [g + a.D.T @ v for a, g, v in zip(agents, along, found.shared, strict=True)]
    assert found.consensus == pytest.approx(np.mean(parts, axis=0) - np.array(parts))
    # K'lambda, as a warm start takes it.
    back = recovery.dual_vector(found)
    on_x = [a.A.T @ y + a.C.T @ k for a, k in zip(agents, found.local, strict=True)]
    on_z = [
        a.B.T @ y + a.D.T @ v + nu
        for a, v, nu in zip(agents, found.shared, found.consensus, strict=True)
    ]
    assert recovery.space.x(back) == pytest.approx(np.concatenate(on_x))
    assert recovery.space.z(back) == pytest.approx(np.array(on_z))
