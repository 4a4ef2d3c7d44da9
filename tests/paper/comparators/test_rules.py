"""Step rules of the comparators, single steps and coupled forms against dense algebra."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import ccmac
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.objectives import Quadratic, Separable, SquaredDistance
from ccmac.paper.comparators.primal_dual import CondatVu, Papc, Pdhg
from ccmac.paper.comparators.reductions import CoupledForm
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace

K = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]])
V = np.array([1.0, -1.0])
H = np.diag([1.0, 2.0, 4.0])
g = np.array([1.0, 0.0, -2.0])


def realized(mu: float = 0.5, L: float = 8.0, low: float = 0.25, high: float = 4.0) -> Any:
    system = Fake(
        empty=False,
        residual=lambda w: (K.T @ (K @ w - V), None),
        cost=Cost(A=1),
        interval=Fake(low=low, high=high, ratio=high / low, source="proved"),
    )
    objective = Fake(mu=mu, L=L, gradient=lambda w: H @ w - g, cost=Cost(gradients=1))
    return Fake(system=system, objective=objective, space=None, s=3.0)


# -- rules -----------------------------------------------------------------------------------------
def test_condat_vu_balances_primal_and_dual() -> None:
    """(mu L kappa)^{1/2} = 8 and L/2 = 4: s = 8 times the balance."""
    rule = CondatVu().iteration(realized(), 1.0)
    assert (rule.tau, rule.sigma) == pytest.approx((0.999 / 12, 2.0))
    rule = CondatVu().iteration(realized(), 3.0)
    assert (rule.tau, rule.sigma) == pytest.approx((0.999 / 28, 6.0))
    rule = CondatVu().iteration(realized(mu=1e-6), 1.0)  # L/2 at least
    assert (rule.tau, rule.sigma) == pytest.approx((0.999 / 8, 1.0))


def test_pdhg_and_papc_use_the_whole_interval() -> None:
    rule: Any = Pdhg().iteration(realized(), 2.0)
    assert (rule.tau, rule.sigma) == pytest.approx((1 / 16, 4.0))
    rule = Papc().iteration(realized(), 1.0)
    assert (rule.tau, rule.sigma) == pytest.approx((2 / 8.5, 8.5 / 8))
    rule = Papc().iteration(realized(), 9.0)
    assert (rule.tau, rule.sigma) == pytest.approx((1.999 / 8, 8 / (1.999 * 4)))


# -- coupled forms ---------------------------------------------------------------------------------
def form(name: str, **more: Any) -> tuple[CoupledForm, Any]:
    """Three agents with d = 2, 1, 3, q = 2, m = 2, C at one and D at another."""
    random = np.random.default_rng(4)
    agents = []
    for i, d in enumerate((2, 1, 3)):
        B = (0.5 + i) * np.eye(2) if name != "R1" else random.standard_normal((2, 2))
        rows: dict[str, Any] = (
            {"C": random.standard_normal((1, d)), "c": np.array([2.0])} if i == 2 else {}
        )
        if i == 0 and name == "R1":
            rows = {"D": random.standard_normal((2, 2)), "e": np.array([3.0, 4.0])}
        agents.append(
            ccmac.Agent(
                Separable(
                    x=Quadratic((1.0 + i) * np.eye(d), np.zeros(d)), z=SquaredDistance(1.0 + i)
                ),
                A=random.standard_normal((2, d)),
                B=B if name == "R1" else sp.csr_array(B),
                b=random.standard_normal(2),
                **rows,
            )
        )
    problem = ccmac.Problem(agents)
    work = Workspace(problem, InProcess(ccmac.Network.path(3)))
    return CoupledForm(work, name, **more), problem


def stacked(found: CoupledForm) -> Array:
    """A'_i of all agents side by side, by columns of the space."""
    size = len(found.space.zeros())
    images = [found.forward(found.masked(e)) for e in np.eye(size)]
    return np.stack([image.ravel() for image in images], axis=1)


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("by_curvature", [False, True])
def test_the_form_with_copies_of_z(rows: bool, by_curvature: bool) -> None:
    found, problem = form("R1", rows=rows, by_curvature=by_curvature)
    m = q = 2
    own = 3 if rows else 0
    assert (found.copies, found.width) == (3, m + 3 * q + own)
    W = np.asarray(found.runtime.network.weights.toarray())
    agents = list(problem.agents.values())
    coupled = consensus = 0.0
    for i, a in enumerate(agents):
        h = (1.0 + i) if by_curvature else 1.0  # (L mu)^{1/2} of both parts
        coupled += (np.sum(a.A**2) + np.sum(a.B**2)) / h / m
        consensus += np.sum(W[:, i] ** 2) / (3 * h)
    w = math.sqrt(coupled / consensus)
    assert pytest.approx(w * W) == found.W
    u = np.random.default_rng(0).standard_normal(len(found.space.zeros()))
    image = found.forward(u)
    for k, (a, (x, z)) in enumerate(zip(agents, found.space.split(u), strict=True)):
        expected = [a.A @ x + a.B @ z, np.kron(w * W[:, k], z)]
        if rows:
            mine = np.zeros(3)
            mine[:2] = a.D @ z if k == 0 else 0.0
            mine[2:] = a.C @ x if k == 2 else 0.0
            expected.append(mine)
        assert image[k] == pytest.approx(np.concatenate(expected))
        assert found.right[k, :m] == pytest.approx(a.b)
        local = np.asarray(found.local_matrix(k).toarray())
        plain = np.hstack([a.A, a.B])
        gram = plain.T @ plain
        d = len(x)
        gram[d:, d:] += w**2 * np.sum(W[:, k] ** 2) * np.eye(q)
        assert pytest.approx(gram) == local.T @ local
    assert not found.right[:, m : m + 6].any()
    if rows:
        assert found.right[:, -3:].tolist() == [[3.0, 4.0, 0.0], [0.0] * 3, [0.0, 0.0, 2.0]]
    A = stacked(found)
    y = np.random.default_rng(1).standard_normal(image.shape)
    assert found.adjoint(y) == pytest.approx(A.T @ y.ravel())
    units = {"A": 1, "B": 1, **({"C": 1, "D": 1} if rows else {})}
    assert dict(found.product_cost) == units
    assert found.curvature() == pytest.approx((1.0, 3.0))
    x, z = found.point(u)
    assert (x.tolist(), z.tolist()) == (found.space.x(u).tolist(), found.space.z(u).tolist())


@pytest.mark.parametrize("name", ["R2", "R3"])
def test_forms_with_z_at_one_place(name: str) -> None:
    """beta = 0.5 + 1.5 + 2.5; losses of z add up: 1 + 2 + 3."""
    found, problem = form(name)
    assert (found.copies, found.width) == (0, 2)
    assert found.held.sum() == 2
    if name == "R3":
        assert found.held.sum(axis=1).tolist() == [1, 1, 0]
    else:
        assert sorted(found.held.sum(axis=1).tolist()) == [0, 0, 2]
    size = len(found.space.zeros())
    u = found.start(np.arange(1.0, 7.0), np.array([[7.0, 8.0]] * 3))
    assert found.space.x(u).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert found.space.z(u).sum(axis=0).tolist() == [7.0, 8.0]
    image = found.forward(u)
    agents = list(problem.agents.values())
    total = sum(a.A @ x for a, (x, _) in zip(agents, found.space.split(u), strict=True))
    assert image.sum(axis=0) == pytest.approx(total + 4.5 * np.array([7.0, 8.0]))
    A = stacked(found)
    y = np.random.default_rng(1).standard_normal(image.shape)
    assert found.adjoint(y) == pytest.approx(A.T @ y.ravel())
    slope = found.gradient(u)
    assert found.space.z(slope).sum(axis=0) == pytest.approx([42.0, 48.0])
    assert found.space.x(slope).tolist() == [1.0, 2.0, 6.0, 12.0, 15.0, 18.0]
    x, z = found.point(u)
    assert z.tolist() == [[7.0, 8.0]] * 3
    assert x.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert found.runtime.ledger.of("monitor")["averagings"] == 1
    assert size == 12
    low, high = found.curvature()
    assert (low, high) == pytest.approx((1.0, 6.0))
