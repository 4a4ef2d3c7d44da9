"""Minimisers of one agent at given prices, against dense KKT systems and closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ccmac import Agent, Network, Problem
from ccmac.inputs import Array
from ccmac.methods.local import Descent, LocalMinimisers, _Joined, constrained_inverse
from ccmac.objectives import Custom, Logistic, Quadratic
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace

D = 3
Q = 2


def kkt(H: Array, g: Array, E: Array, r: Array) -> Array:
    """argmin u'Hu/2 - g'u with E u = r."""
    whole = np.block([[H, E.T], [E, np.zeros((len(E), len(E)))]])
    return np.linalg.solve(whole, np.concatenate([g, r]))[: len(g)]


def work_of(agents: list[Agent], q: int = Q) -> Workspace:
    return Workspace(Problem(agents, q=q), InProcess(Network.complete(len(agents))))


def posed(seed: int = 0) -> tuple[Workspace, list[Any]]:
    """Two agents with mixed Hessians; the first has rows of C and D, the second none."""
    random = np.random.default_rng(seed)
    agents = []
    parts = []
    for k in range(2):
        factor = random.standard_normal((D + Q, D + Q))
        H = factor.T @ factor + np.eye(D + Q)
        g = random.standard_normal(D + Q)
        C = random.standard_normal((1, D))
        c = random.standard_normal(1)
        R = random.standard_normal((1, Q))
        e = random.standard_normal(1)
        more = {} if k else {"C": C, "c": c, "D": R, "e": e}
        agents.append(Agent(Quadratic(H, g), A=random.standard_normal((1, D)), b=[0.0], **more))
        E = np.zeros((2, D + Q))
        E[0, :D], E[1, D:] = C, R
        parts.append((H, g, E[: 0 if k else 2], np.concatenate([c, e])[: 0 if k else 2]))
    return work_of(agents), parts


def test_quadratics_under_their_own_equations() -> None:
    work, parts = posed()
    found = LocalMinimisers(work)
    h = np.random.default_rng(1).standard_normal(2 * (D + Q))
    before = work.ledger.of("solve")["argmins"]
    u, _ = found.minimise(h, h)
    t = found.inverse(h)
    assert work.ledger.of("solve")["argmins"] - before == 2
    assert not found.shifted
    for k, (H, g, E, r) in enumerate(parts):
        mine = work.space.read(h, k)
        assert work.space.read(u, k) == pytest.approx(kkt(H, g - mine, E, r))
        assert work.space.read(t, k) == pytest.approx(kkt(H, mine, E, 0 * r))
    assert constrained_inverse(np.asarray, np.zeros((0, 3)))(np.ones(3)).tolist() == [1.0] * 3


# -- other smooth functions ------------------------------------------------------------------------


def loss(seed: int = 0) -> Logistic:
    random = np.random.default_rng(seed)
    return Logistic(random.standard_normal((12, D)), np.sign(random.standard_normal(12)))


def both(g: Any) -> Custom:
    """g(x) as a function that has no Hessian to tell."""
    return Custom(
        value=lambda x, z: g.value_at(x) + 0.5 * float(z @ z),
        gradient=lambda x, z: (g.gradient_at(x), z),
        smoothness=10.0,
        strong_convexity=0.1,
    )


@pytest.mark.parametrize("hessian", [True, False])
def test_a_minimiser_meets_equations_and_has_no_slope_along_them(hessian: bool) -> None:
    E = np.linalg.qr(np.random.default_rng(3).standard_normal((D, 1)))[0].T
    point = np.array([0.5, -1.0, 2.0])
    h = np.array([1.0, -2.0, 0.5])
    shift = np.full(D, 0.7)
    g: Any = loss() if hessian else _Joined(both(loss()), D)
    found = Descent(g, shift, E, point)
    u, count = found.minimise(h, np.full(D, 5.0))
    assert E @ u == pytest.approx(E @ point)
    slope = loss().gradient_at(u) + 0.7 * u + h
    tangent = slope - E.T @ (E @ slope)
    assert np.linalg.norm(tangent) <= (1e-11 if hessian else 1e-6)
    assert found.tangent(slope) == pytest.approx(tangent)
    value = loss().value_at(u) + 0.35 * float(u @ u) + float(h @ u)
    assert found.value(u, h) == pytest.approx(value)
    if hessian:
        assert count % 3 == 1
        assert 4 <= count <= 31
        again, few = found.newton(h, u)
        assert few <= 4
        assert again == pytest.approx(u)
    nearest = found.feasible(np.full(D, 5.0))
    assert nearest == pytest.approx(5.0 + E.T[:, 0] * (E @ (point - 5.0)))
