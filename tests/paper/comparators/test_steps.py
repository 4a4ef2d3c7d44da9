"""Single steps of the penalty and accelerated comparators, and their constants, written out."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.chebyshev import outer_degree
from ccmac.paper.comparators import admm, local_argmin
from ccmac.paper.comparators.accelerated import (
    AcceleratedIteration,
    AcceleratedState,
    Penalized,
    row_correction,
)
from ccmac.paper.comparators.admm import (
    Dpmm,
    DpmmIteration,
    DpmmState,
    TrackingIteration,
    TrackingState,
    balanced_penalty,
)
from ccmac.paper.comparators.coupled import CoupledIteration
from ccmac.paper.comparators.local_argmin import Arrow, block_solve
from ccmac.paper.comparators.mixed import MixedConstants, MixedIteration

RANDOM = np.random.default_rng(2)
A = RANDOM.standard_normal((2, 2, 3))  # two agents, two rows, three unknowns each
RIGHT = np.array([[1.0, 2.0], [0.5, -1.0]])
W = np.array([[0.75, -0.75], [-0.75, 0.75]])
T = RANDOM.standard_normal((6, 6))


def form(n: int = 2) -> Any:
    """A'_i u_i row by row; u is flat."""
    return Fake(
        right=RIGHT,
        width=2,
        space=Fake(size=6, zeros=lambda: np.zeros(6)),
        forward=lambda u: np.einsum("iab,ib->ia", A, u.reshape(2, 3)),
        adjoint=lambda rows: np.einsum("iab,ia->ib", A, rows).ravel(),
        runtime=Fake(
            n=n,
            mix=lambda rows, M=W: M @ rows,
            mix_cost=lambda width, M=None: Cost(rounds=width),
            network=Fake(extremes=(1.5, 1.5), metropolis=lambda: np.full((2, 2), 0.5)),
        ),
        start=lambda x, z: np.concatenate([x, z]),
        product_cost=Cost(A=1),
    )


@pytest.fixture(autouse=True)
def _argmin(monkeypatch: pytest.MonkeyPatch) -> None:
    """A local minimisation that is linear in h and in the centre."""

    def made(form: Any, c: float, rho: float = 0.0) -> Any:
        return lambda h, centre: T @ h + c * centre + rho

    monkeypatch.setattr(admm, "LocalArgmin", made)


@pytest.mark.parametrize("n", [1, 2])
def test_a_step_of_dpmm(n: int) -> None:
    f = form(n)
    gamma = 0.5
    weight = 0.25
    dpmm = DpmmIteration(f, gamma, weight)
    beta = 0.99 / (gamma * (1.5 if n > 1 else 1.0))
    assert dpmm.beta == pytest.approx(beta)
    assert dpmm.settings == {"message floats": 2, "gamma": 0.5, "beta": dpmm.beta, "1/alpha": 0.25}
    assert dpmm.cost == Cost(argmins=1, A=2, rounds=2)
    u, y, Lam = RANDOM.standard_normal(6), *RANDOM.standard_normal((2, 2, 2))
    found = dpmm.step(DpmmState(u, y.copy(), Lam.copy()))
    ahead = y - gamma * Lam
    after = T @ f.adjoint(ahead - gamma * RIGHT) + gamma * u + weight
    hat = ahead + gamma * (f.forward(after) - RIGHT)
    new = Lam + (beta * W @ hat if n > 1 else 0.0)
    assert found.u == pytest.approx(after)
    assert found.Lam == pytest.approx(new)
    assert found.y == pytest.approx(hat + gamma * (Lam - new))
    begun = dpmm.start(np.ones(3), np.zeros(3))
    assert begun.u.tolist() == [1.0] * 3 + [0.0] * 3
    assert not begun.y.any()
    assert not begun.Lam.any()


@pytest.mark.parametrize("n", [1, 2])
def test_a_step_of_tracking_admm(n: int) -> None:
    f = form(n)
    c = 0.5
    tracking = TrackingIteration(f, c)
    assert tracking.settings == {"message floats": 4, "c": 0.5}
    assert tracking.cost == Cost(argmins=1, A=2, rounds=4)
    begun = tracking.start(np.ones(3), np.zeros(3))
    assert begun.image == pytest.approx(f.forward(begun.u))
    assert begun.pair == pytest.approx(np.hstack([begun.image - RIGHT, np.zeros((2, 2))]))
    d, lam = RANDOM.standard_normal((2, 2, 2))
    u = RANDOM.standard_normal(6)
    image = f.forward(u)
    found = tracking.step(TrackingState(u, image.copy(), np.hstack([d, lam])))
    M = np.full((2, 2), 0.5) if n > 1 else np.eye(2)
    d = M @ d
    lam = M @ lam
    after = T @ f.adjoint(lam + c * (d - image)) + c * u
    d = d + f.forward(after) - image
    assert found.u == pytest.approx(after)
    assert found.image == pytest.approx(f.forward(after))
    assert found.pair == pytest.approx(np.hstack([d, lam + c * d]))


def test_the_unit_of_penalties() -> None:
    """m' over the sum of squared entries by typical curvature."""
    blocks = [np.array([[1.0, 2.0, 3.0]]), np.array([[2.0, 0.0]])]
    held = np.array([[True], [False]])
    curvature = Fake(L_x=8.0, mu_x=0.5, L_z=4.0, mu_z=0.0)
    asked: list[int] = []
    objective = Fake(curvature=lambda d, q: asked.append(q) or curvature)
    made: Any = Fake(
        objectives=[objective] * 2,
        space=Fake(d=[2, 2], q=1),
        held=held,
        width=5,
        local_matrix=lambda k: sp.csr_array(blocks[k]),
        runtime=Fake(total=lambda rows: rows.sum(axis=0)),
    )
    assert balanced_penalty(made) == pytest.approx(5 / (5 / 2 + 9 / 4 + 4 / 2))
    assert asked == [1, 0]
    made.local_matrix = lambda k: sp.csr_array(0 * blocks[k])
    assert balanced_penalty(made) == 1.0


def test_the_proximal_weight_of_dpmm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admm, "DpmmIteration", lambda form, gamma, weight: (gamma, weight))
    for method, mu, weight in (
        (Dpmm(), 2.0, 0.02),
        (Dpmm(), 0.0, 0.08),
        (Dpmm(proximal=0.5), 2.0, 1.0),
    ):
        built: Any = method.builder(Fake(curvature=lambda mu=mu: (mu, 8.0)))  # type: ignore[arg-type]
        assert built(3.0) == (3.0, pytest.approx(weight))


# -- accelerated -----------------------------------------------------------------------------------
class Halfway(AcceleratedIteration):
    """A correction that is a matrix."""

    def correction(self, v: Array) -> Array:
        return np.asarray(C @ v)

    @property
    def correction_cost(self) -> Cost:
        return Cost(A=7)


B = RANDOM.standard_normal((4, 10))
C = RANDOM.standard_normal((10, 10))
H = np.diag(np.arange(1.0, 7))


def test_a_step_of_accelerated_corrections() -> None:
    """On G = F + (r/2) ||B v - b||^2 with F = u'H u / 2."""
    b = RIGHT.ravel()
    rows = Fake(
        form=Fake(space=Fake(size=6), gradient=lambda u: H @ u),
        cost=Cost(A=1),
        misfit=lambda v: (B @ v - b).reshape(2, 2),
        adjoint=lambda rows: B.T @ rows.ravel(),
        parts=lambda v: (v[:6], v[6:].reshape(2, 2)),
    )
    G = Penalized(0.3, 0.5, 8.0, 19 / 15)
    tau = 0.5 * math.sqrt(19 / 15 / 16)
    eta = 1 / (4 * tau * 8.0)
    assert (G.tau, G.eta) == pytest.approx((tau, eta))
    assert Penalized(0.3, 9.0, 1.0, 2.0).tau == 1.0
    v, v_f, p = RANDOM.standard_normal((3, 10))
    state = AcceleratedState(
        v[:6], v_f[:6], p[:6], *(part[6:].reshape(2, 2) for part in (v, v_f, p))
    )
    iteration = Halfway(rows, G)  # type: ignore[arg-type]
    found = iteration.step(state)
    ahead = tau * v + (1 - tau) * v_f
    slope = 0.3 * B.T @ (B @ ahead - b) - 0.5 * ahead
    slope[:6] += H @ ahead[:6]
    half = (v - eta * (slope + p)) / (1 + eta * 0.5)
    after = p + 15 / (19 * eta) * C @ half
    new = (v - eta * (slope + after)) / (1 + eta * 0.5)
    assert np.concatenate([found.u, found.y.ravel()]) == pytest.approx(new)
    assert np.concatenate([found.p, found.p_y.ravel()]) == pytest.approx(after)
    ahead = ahead + 2 * tau / (2 - tau) * (new - v)
    assert np.concatenate([found.u_f, found.y_f.ravel()]) == pytest.approx(ahead)
    assert iteration.cost == Cost(gradients=1, A=9)


def test_corrections_in_the_space_of_the_rows() -> None:
    """B't is the polynomial of B'B applied to v - v_ref: zero misfit stays, the rest shrinks."""
    gram = B @ B.T
    low, high = np.linalg.eigvalsh(gram)[[0, -1]]
    ref, v = RANDOM.standard_normal((2, 10))
    degree = 3
    t = row_correction(lambda rows: gram @ rows, B @ (v - ref), (low, high), degree)
    left = B @ (v - B.T @ t - ref)
    values, turn = np.linalg.eigh(gram)
    mid = (high + low) / 2
    half = (high - low) / 2
    poly = np.polynomial.chebyshev.Chebyshev.basis(degree)
    share = poly((mid - values) / half) / poly(mid / half)
    assert turn.T @ left == pytest.approx(share * (turn.T @ (B @ (v - ref))))


def test_constants_of_the_coupled_method() -> None:
    f = form()
    f.work = None
    for mu_A, L_A, mu_f, L_f in ((1.0, 4.0, 2.0, 8.0), (4.0, 4.0, 2.0, 2.0)):
        made = CoupledIteration(f, mu_A, L_A, mu_f, L_f)
        ratio = (mu_A + L_A) / L_A
        spread = (19 / 11) ** 2
        assert made.coupled.weight == pytest.approx(math.sqrt(mu_A + L_A) * 15 / 11)
        interval = mu_A / 2, L_A + (L_A + mu_A) * spread
        assert made.interval == pytest.approx(interval)
        assert made.degree == outer_degree(*interval)
        G = made.objective
        assert (G.r, G.mu) == pytest.approx((mu_f / (2 * L_A), mu_f * min(0.5, ratio / 4)))
        assert pytest.approx(max(L_f + mu_f, mu_f * spread * ratio)) == G.L
        assert G.ratio == pytest.approx(19 / 11)


@pytest.mark.parametrize("d_D", [0.0, 1.0])
def test_constants_of_the_mixed_method(d_D: float) -> None:
    f = form()
    f.work = Fake(local="local", shared="shared")
    f.name = "none"
    made = MixedIteration(f, MixedConstants(4.0, 0.5, d_D, 0.2, 2.0, 9.0))
    G = made.objective
    assert (G.r, G.mu, G.L, G.ratio) == pytest.approx((0.25, 1.0, 37.0, 19 / 15))
    assert made.coupled.weight == pytest.approx(math.sqrt(48))
    assert made.beta == pytest.approx(math.sqrt(24))
    assert made.first == (0.125, 148.0)
    assert made.second == ((0.1, 19.0) if d_D else (0.25, 2.25))
    assert made.g == pytest.approx(math.sqrt(8) if d_D else 1.0)
    assert made.degrees == (outer_degree(0.125, 148.0), outer_degree(*made.second))
    assert made.copied
    f.name = "R2"
    assert not MixedIteration(f, MixedConstants(4.0, 0.5, d_D, 0.2, 2.0, 9.0)).copied


# -- local minimisations ---------------------------------------------------------------------------
@pytest.mark.parametrize("limit", [3000, 1])
def test_solves_with_a_diagonal_trailing_block(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_argmin, "DENSE", limit)
    X = np.diag([4.0, 5.0]) + 0.5
    S = 0.3 * RANDOM.standard_normal((2, 3))
    t = np.array([2.0, 3.0, 4.0])
    M = np.block([[X, S], [S.T, np.diag(t)]])
    v = np.arange(1.0, 6.0)
    arrow = Arrow.of(sp.csr_array(M), 2)
    assert (arrow is None) == (limit == 1)
    assert block_solve(sp.csr_array(M), 2)(v) == pytest.approx(np.linalg.solve(M, v))
    if arrow is not None:
        more = np.diag([1.0, 2.0])
        shifted = M + np.diag([1.0, 2.0, 0.1, 0.2, 0.3])
        found = arrow.solve(more, np.array([0.1, 0.2, 0.3]))(v)
        assert found == pytest.approx(np.linalg.solve(shifted, v))
    full = M + 0.1
    assert Arrow.of(sp.csr_array(full), 2) is None
    assert Arrow.of(sp.csr_array(M), 5) is None
    assert block_solve(sp.csr_array(full), 2)(v) == pytest.approx(np.linalg.solve(full, v))
    alone = sp.csr_array(np.diag(t))
    assert block_solve(alone, 0)(v[:3]) == pytest.approx(v[:3] / t)
