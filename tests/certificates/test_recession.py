"""Unbounded problems are seen by a direction; bounded ones are left alone."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import ccmac
from adversarial.draft import Array, Draft
from adversarial.exact import Exact
from adversarial.families import base
from ccmac import Agent, Network, Problem
from ccmac.certificates import recession as module
from ccmac.certificates.infeasibility import REACH
from ccmac.certificates.recession import Recession, recession
from ccmac.objectives import Custom, Quadratic
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from certificates.points import workspace


def of(*agents: Agent, **sizes: int) -> Recession | None:
    """What is found for these agents."""
    network = Network.complete(len(agents))
    return recession(Workspace(Problem(list(agents), **sizes), InProcess(network)))


def quadratic(H: Array, g: Array, **blocks: object) -> Agent:
    """f(u) = u'Hu/2 - g'u."""
    return Agent(Quadratic(np.asarray(H, float), np.asarray(g, float)), **blocks)  # type: ignore[arg-type]


def test_a_linear_objective_falls_along_its_slope() -> None:
    found = of(quadratic(np.zeros((2, 2)), [3.0, 4.0]), q=1)
    assert found is not None
    assert found.x[0] == pytest.approx([0.6])
    assert found.z == pytest.approx([0.8])
    assert found.fall == pytest.approx(5.0)
    assert found.defect < 1e-15
    assert "falls by 5 per unit" in found.message


def test_nothing_bends_a_linear_objective(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FLAT", 0.0)
    assert of(quadratic(np.zeros((2, 2)), [3.0, 4.0]), q=1) is not None


def test_a_gentle_slope_falls_for_ever_too() -> None:
    found = of(quadratic(np.zeros((2, 2)), [3e-3, 4e-3]), q=1)
    assert found is not None
    assert found.fall == pytest.approx(5e-3)


def test_equations_in_the_way() -> None:
    flat = np.zeros((2, 2))
    assert of(quadratic(flat, [1.0, 0.0], C=[[1.0]], c=[2.0]), q=1) is None
    assert of(quadratic(flat, [0.0, 1.0], D=[[2.0]], e=[1.0])) is None
    assert of(quadratic(flat, [1.0, 1.0], A=[[1.0]], B=[[1.0]], b=[0.0])) is None
    # Along the equation x + z = 0 the slopes (1, -1) do not cancel.
    found = of(quadratic(flat, [1.0, -1.0], A=[[1.0]], B=[[1.0]], b=[0.0]))
    assert found is not None
    assert found.fall == pytest.approx(np.sqrt(2))
    assert found.x[0] + found.z == pytest.approx([0.0], abs=1e-15)


def test_curvature_in_the_way() -> None:
    assert of(quadratic(np.diag([1.0, 0.0]), [3.0, 0.0]), q=1) is None
    # Curvature of another agent in the shared variable.
    one = quadratic(np.diag([1.0, 0.0]), [0.0, 1.0])
    two = quadratic(np.eye(2), [0.0, 0.0])
    assert of(one, two, q=1) is None
    two = quadratic(np.diag([1.0, 0.0]), [0.0, 1.0])
    found = of(one, two, q=1)
    assert found is not None
    assert found.z == pytest.approx([1.0])
    assert found.fall == pytest.approx(2.0)
    assert [v.tolist() for v in found.x] == [[0.0], [0.0]]


def test_slopes_of_the_agents_that_cancel() -> None:
    agents = [quadratic(np.diag([1.0, 0.0]), [0.0, sign]) for sign in (1.0, -1.0)]
    assert of(*agents, q=1) is None


def test_asked_only_of_quadratics_without_strong_convexity_that_all_may_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert of(quadratic(np.eye(2), [1.0, 1.0]), q=1) is None
    falling = Custom(lambda x, z: -float(x[0]), lambda x, z: (-np.ones(1), np.zeros(1)), 1.0)
    assert of(Agent(falling, A=[[0.0]], B=[[0.0]], b=[0.0])) is None
    monkeypatch.setattr("ccmac.workspace.reduced.FLOATS", 0)
    assert of(quadratic(np.zeros((2, 2)), [1.0, 0.0], A=[[1.0]], B=[[1.0]], b=[0.0])) is None


def flattened(seed: int) -> Draft:
    """A planted draft in which each Hessian loses some of its directions."""
    random = np.random.default_rng(seed)
    draft = base(random, p=int(random.integers(0, 2)), r=int(random.integers(0, 2)))
    for i, d in enumerate(draft.d):
        kept = (random.random(d + draft.q) < 0.7).astype(float)
        draft.H[i] = np.diag(np.diag(draft.H[i]) * kept)
        if random.random() < 0.5:
            draft.g[i] = draft.g[i] * kept
    return draft.plant()


@given(st.integers(0, 10**4))
@settings(max_examples=80)
def test_claims_are_true_in_exact_arithmetic(seed: int) -> None:
    """Only unbounded problems, and with numbers that hold for the direction given."""
    draft = flattened(seed)
    found = recession(workspace(draft))
    exact = Exact(draft)
    assert exact.feasible
    if found is None:
        return
    assert exact.solution is None
    d = np.concatenate([*found.x, found.z])
    H = np.array(exact.H.tolist(), dtype=float)
    assert np.linalg.norm(d) == pytest.approx(1.0)
    assert np.linalg.norm(H @ d) <= 1e-9
    assert np.linalg.norm(exact.rows @ d) <= 1e-9
    u = np.concatenate([*draft.x, draft.z])
    slope = H @ u - np.array([float(v) for v in exact.g.entries()])
    assert found.fall == pytest.approx(-float(slope @ d), rel=1e-6)
    assert found.fall >= REACH * found.defect


def test_every_unbounded_linear_problem_is_seen() -> None:
    unbounded = 0
    for seed in range(40):
        draft = base(np.random.default_rng(seed), p=seed % 3, r=seed % 2)
        draft.H = [np.zeros_like(H) for H in draft.H]
        if seed % 4 == 0:  # slopes inside the rows: bounded
            price = np.ones(draft.m)
            draft.g = [
                np.concatenate([A.T @ price, B.T @ price])
                for A, B in zip(draft.A, draft.B, strict=True)
            ]
        draft.plant()
        true = Exact(draft).solution is None
        assert (recession(workspace(draft)) is not None) == true, seed
        unbounded += true
    assert 20 <= unbounded < 40


def test_the_status_is_unbounded() -> None:
    flat = np.zeros((2, 2))
    agents = [quadratic(flat, [1.0, 2.0], A=[[1.0]], B=[[1.0]], b=[1.0]) for _ in range(3)]
    result = ccmac.solve(Problem(agents), "path")
    assert result.status == "unbounded"
    assert result.objective == -np.inf
    assert np.isnan(result.error_bound)
    assert result.certificates["fall"] > 0
    assert any("falls" in text for text in result.warnings)


@pytest.mark.parametrize("method", ["auto", "cross-ipm"])
@pytest.mark.parametrize("exponent", [20, 34, 42])
def test_the_least_curvature_ends_a_fall(method: str, exponent: int) -> None:
    """Of least value at u_1 = 2^exponent; u_2 is free."""
    H = np.zeros((3, 3))
    H[:2, :2] = [[1.0, 1.0], [1.0, 1.0 + 2.0**-exponent]]
    problem = Problem([Agent(Quadratic(H, [0.0, 1.0, 0.0]))], q=0)
    assert ccmac.solve(problem, None, method, max_iterations=40).status != "unbounded"
    H[1, 1] = 1.0
    problem = Problem([Agent(Quadratic(H, [0.0, 1.0, 0.0]))], q=0)
    assert ccmac.solve(problem, None, method).status == "unbounded"


class Made:
    """Two agents whose slopes, blocks and prices are drawn at random; all of it is summed here."""

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        draw = np.random.default_rng(seed).standard_normal
        d = 2
        q = 3
        m = 2
        self.slopes = draw((2, d + q))
        self.keep = draw((2, d, d))
        self.A, self.B, self.C, self.H = draw((2, m, d)), draw((2, m, q)), draw((2, 1, d)), []
        agents = []
        for k in range(2):
            H = draw((d + q, d + q))
            self.H.append(H)
            slope = self.slopes[k].astype(np.longdouble)
            agents.append(
                Fake(
                    d=d,
                    q=q,
                    A=self.A[k],
                    B=self.B[k],
                    C=self.C[k],
                    objective=Fake(quadratic=lambda d, q, H=H: (H, None, 0.0)),
                    gradient=lambda x, z, s=slope: (s, 0.0),
                    inside=lambda v, k=k: self.keep[k] @ v,
                )
            )
        D = draw((1, q))
        basis = np.linalg.qr(draw((q, 1)))[0]  # not quite the rows of D
        self.reduced: Any = Fake(
            Bbar=self.B.sum(axis=0).astype(np.longdouble),
            unit=np.array([0.5, 4.0]),
            D=D,
            shared=Fake(basis=basis),
        )
        self.along, self.total, self.price = draw(m), draw(q), draw(m)

        def best_price(along: Array, slope: Array) -> Array:
            assert (along is self.along, slope.dtype) == (True, np.float64)
            return self.price

        def sums(pieces: Any, z: Any, slopes: Any) -> Any:
            assert (pieces, z, len(slopes)) == ("pq", "z", 2)
            return None, self.along, self.total.astype(np.longdouble), None

        runtime = Fake(
            total=lambda rows: rows.sum(axis=0),
            ride=lambda rows: Fake(value=rows.sum(axis=0)),
            average=lambda rows: rows.mean(axis=0, keepdims=True),
        )
        proof = Fake(
            agents=agents,
            reduced=self.reduced,
            runtime=runtime,
            problem=Fake(n=2),
            sums=sums,
            best_price=best_price,
            repaired=lambda x, z: ("pq", "z"),
        )
        monkeypatch.setattr(module, "Proof", lambda work, reduced: proof)
        self.work: Any = Fake(
            capabilities={"quadratic"},
            gather_constraints=lambda: self.reduced,
            problem=Fake(q=q),
            runtime=runtime,
            space=Fake(x_size=2 * d, count=2),
        )
        # The gradient's part in the kernel, by hand.
        on_z = self.total + self.B.sum(axis=0).T @ self.price
        self.z = -(on_z - basis @ basis.T @ on_z)
        self.x = [-self.keep[k] @ (self.slopes[k, :d] + self.A[k].T @ self.price) for k in range(2)]
        self.length = float(np.linalg.norm([*self.x[0], *self.x[1], *self.z]))
        self.u = [np.append(x, self.z) / self.length for x in self.x]


@pytest.mark.parametrize("seed", [2, 5, 6, 8, 9])  # downwards
def test_a_direction_in_closed_form(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(seed, monkeypatch)
    d = 2
    bend = math.sqrt(sum(np.sum((H @ u) ** 2) for H, u in zip(made.H, made.u, strict=True)))
    local = math.sqrt(sum(np.sum((C @ u[:d]) ** 2) for C, u in zip(made.C, made.u, strict=True)))
    image = sum(A @ u[:d] + B @ u[d:] for A, B, u in zip(made.A, made.B, made.u, strict=True))
    coupled = np.linalg.norm([*(made.reduced.unit * image), *(made.reduced.D @ made.u[0][d:])])
    steep = sum(float(np.linalg.norm(s)) for s in made.slopes)
    fall = -sum(float(s @ u) for s, u in zip(made.slopes, made.u, strict=True))
    assert fall > 0
    defect = bend + local + float(coupled)
    reach = fall / (defect * max(1.0, steep))
    curved = max(
        np.linalg.norm(H @ u) / np.linalg.norm(H) for H, u in zip(made.H, made.u, strict=True)
    )
    monkeypatch.setattr(module, "FLAT", 1.001 * curved)
    monkeypatch.setattr(module, "REACH", 0.999 * reach)
    found = recession(made.work)
    assert found is not None
    assert (found.fall, found.defect) == pytest.approx((fall, defect))
    assert found.z == pytest.approx(made.z / made.length)
    for v, x in zip(found.x, made.x, strict=True):
        assert v == pytest.approx(x / made.length)
    for name, value in (("FLAT", 0.999 * curved), ("REACH", 1.001 * reach)):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            assert recession(made.work) is None
    # A rise is none, nor what cannot be told from level.
    monkeypatch.setattr(module, "REACH", 0.0)
    share = fall / steep
    for less, there in ((0.9e-9, False), (1.1e-9, True), (-1.0, False)):
        made.work.runtime.ride = lambda rows, t=less: Fake(
            value=rows.sum(axis=0) * [t / share, 1.0, 1.0, 1.0]
        )
        assert (recession(made.work) is not None) is there


def test_curvature_beside_the_size_of_the_matrix() -> None:
    H = np.array([[3.0, 0.0], [0.0, 4.0]])
    d = np.array([1.0, 0.5])
    assert module.curved(H, d) == pytest.approx(math.sqrt(13) / 5)
    assert module.curved(sp.csr_array(H), d) == pytest.approx(math.sqrt(13) / 5)
    assert module.curved(H / 16, d) == pytest.approx(math.sqrt(13) / 5)
    assert module.curved(np.zeros((2, 2)), d) == 0.0
