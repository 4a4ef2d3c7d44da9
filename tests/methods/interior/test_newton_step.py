"""A step of interior points removes one share of every linear residual: Newton's equations hold."""

from __future__ import annotations

import numpy as np
import pytest

import ccmac
from ccmac.inputs import Array
from ccmac.methods.interior import rays
from ccmac.methods.interior.elimination import Lack
from ccmac.methods.interior.iteration import Interior
from ccmac.methods.interior.state import InteriorState
from ccmac.objectives import L1, Box, Hinge, Quadratic
from methods.interior.problems import make
from methods.interior.test_interior import begun

INF = np.inf


def kinked() -> ccmac.Problem:
    """Two agents: a kink, a hinge, one and two bounds, fixed entries, a direction nobody bends."""
    random = np.random.default_rng(3)
    agents = []
    for i in range(2):
        H = np.diag([2.0, 1.0, 0.0, 3.0, 1.0])
        low = np.array([0.0, -INF, -INF, -1.0, 0.5 if i else -INF])
        high = np.array([INF, 2.0, INF, 4.0, 0.5 if i else INF])
        f = Quadratic(H, random.standard_normal(5)) + L1(0.3) + Box(low, high)
        if i:
            f = Quadratic(H, random.standard_normal(5)) + Box(low, high)
        agents.append(
            ccmac.Agent(
                f,
                A=random.standard_normal((2, 3)),
                B=random.standard_normal((2, 2)),
                b=random.standard_normal(2),
                C=random.standard_normal((1, 3)),
                c=np.array([0.2]),
                D=np.array([[1.0, 2.0]]) if i == 0 else None,
                e=np.array([1.5]) if i == 0 else None,
            )
        )
    return ccmac.Problem(agents)


def hinged() -> ccmac.Problem:
    random = np.random.default_rng(4)
    f = [
        Hinge(random.standard_normal((4, 3)), np.sign(random.standard_normal(4)))
        + Quadratic(np.diag([1.0, 0.5, 2.0]), np.zeros(3))
        for _ in range(2)
    ]
    blocks = {"A": [[1.0, 2.0]], "B": [[1.0]], "b": [0.5]}
    return ccmac.Problem([ccmac.Agent(g, **blocks) for g in f])  # type: ignore[arg-type]


def residual(iteration: Interior, state: InteriorState) -> Array:
    """All linear equations at a state: the agents' own, and what is common but for tau."""
    equations = iteration.equations
    common = iteration.common(state)
    lam = equations.lam(common.mu)
    own = []
    total = np.zeros(iteration.k + 1)
    for block, point in zip(iteration.blocks, iteration.points(state), strict=True):
        lack = Lack.at(block, point, common.z, lam, common.tau)
        off = point.s - block.sides.slack(point.y, common.tau)
        own += [lack.r_y, lack.r_E, off]
        total += lack.own
    out = equations.residual(common)
    out[equations.z] += total[: equations.q]
    out[equations.mu] += equations.top.T @ total[equations.q : -1]
    off = common.s - equations.sides.slack(common.z, common.tau)
    return np.concatenate([*own, off, out[:-1]])


PROBLEMS = {
    "kinked": kinked,
    "hinged": hinged,
    **{str(k): lambda k=k: make(k).problem for k in range(6)},
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_linear_residual_shrinks_alike(name: str) -> None:
    iteration, state = begun(PROBLEMS[name]())
    for count in range(4):
        following = iteration.step(state)
        before = residual(iteration, state)
        after = residual(iteration, following)
        left = float(before @ after) / float(before @ before)
        assert 1 - following.length - 1e-6 <= left <= 1
        assert after == pytest.approx(left * before, abs=1e-5 * float(np.abs(before).max()))
        assert following.count == count + 1
        assert 0 < following.length <= 1
        rows = np.concatenate(
            [
                np.concatenate(
                    [
                        Lack.at(
                            b,
                            p,
                            iteration.common(following).z,
                            iteration.equations.lam(iteration.common(following).mu),
                            following.tau,
                        ).r_E
                        for b, p in zip(iteration.blocks, iteration.points(following), strict=True)
                    ]
                ),
                after[len(after) - iteration.equations.size + 1 :][iteration.equations.mu],
            ]
        )
        assert following.primal == pytest.approx(np.linalg.norm(rows), rel=1e-4, abs=1e-7)
        for point in iteration.points(following):
            assert (point.s > 0).all()
            assert (point.v > 0).all()
        state = following


def test_a_direction_is_straightened_as_a_dense_system_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """min 0.5 |e|^2 + |d + e|_H^2 with K (d + e) = 0; x_1 of the first agent is held at zero."""
    monkeypatch.setattr(rays, "EPSILON", 0.5)
    monkeypatch.setattr(rays, "STIFF", 1e8)
    random = np.random.default_rng(5)
    agents = []
    bends = []
    for i in range(2):
        root = random.standard_normal((2, 4))
        bends.append(root.T @ root)
        f = Quadratic(bends[-1], np.zeros(4)) + Box([-INF, -3.0 if i else 0.0, -INF, -INF], INF)
        A = random.standard_normal((2, 2))
        B = random.standard_normal((2, 2))
        agents.append(ccmac.Agent(f, A=A, B=B, D=[[1.0, -2.0]] if i else None))
    iteration, state = begun(ccmac.Problem(agents))
    d = random.standard_normal(6)
    d[1], d[3] = -1.0, 1.0  # beyond the first agent's bound, into the other's room
    before = rays.Ray([d[:2].copy(), d[2:4].copy()], d[4:].copy())
    found = rays.straightened(iteration, state, before, 0.0)
    H = np.zeros((6, 6))
    K = np.zeros((4, 6))
    for i, agent in enumerate(agents):
        at = [2 * i, 2 * i + 1, 4, 5]
        H[np.ix_(at, at)] += iteration.unit * bends[i]
        K[:2, at] += np.hstack([agent.A, agent.B])
    K[2, 4:], K[3, 1], d[1] = [1.0, -2.0], 1.0, 0.0
    system = np.block([[H + 0.5 * np.eye(6), K.T], [K, np.zeros((4, 4))]])
    e = np.linalg.solve(system, -np.concatenate([H @ d, K @ d]))[:6]
    assert np.concatenate([*found.own, found.z]) == pytest.approx(d + e, abs=1e-5)
