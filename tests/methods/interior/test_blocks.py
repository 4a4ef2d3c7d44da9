"""One agent's part of Newton's equations against the dense system it stands for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from ccmac.inputs import Array
from ccmac.linalg.ranks import row_space
from ccmac.methods.interior import block as module
from ccmac.methods.interior.block import DELTA, RHO, Block, bordered
from ccmac.methods.interior.elimination import Elimination, Lack
from ccmac.methods.interior.own import OwnPoint
from ccmac.methods.interior.sides import Newton
from ccmac.objectives import L1, Box, Quadratic
from ccmac.workspace.reduced import Kernel

INF = np.inf
D = 4
Q = 2
RANDOM = np.random.default_rng(0)
ROOT = RANDOM.standard_normal((6, 6))
H = ROOT @ ROOT.T
G = RANDOM.standard_normal(6)
A = RANDOM.standard_normal((2, D))
C = np.array([[1.0, 2.0, 0.0, 1.0]])
LOWER = np.array([-1.0, -INF, 0.5, -INF, -INF, -INF])
UPPER = np.array([3.0, 2.0, 0.5, INF, INF, INF])
TAU = 0.8


def made(unit: float = 1.0) -> Block:
    """Bounds on entries 0 and 1 of x, entry 2 fixed, one equation, kinks of all entries."""
    form = (Quadratic(H, G) + Box(LOWER, UPPER) + L1(0.3)).polyhedral(D, Q)
    assert form is not None
    space = row_space(C)
    block = Block(form, D, Kernel.of(space, np.linalg.pinv(C) @ [1.5]), A, C)
    if unit != 1.0:
        block.scale(unit)
    return block


def point(block: Block) -> tuple[OwnPoint, Array, Array]:
    """Unknowns inside the bounds, z, lambda."""
    draw = np.random.default_rng(1)
    y = draw.standard_normal(block.size)
    nu = draw.standard_normal(len(block.f))
    s, v = draw.uniform(0.5, 2.0, (2, block.sides.count))
    return OwnPoint(y, nu, s, v), draw.standard_normal(Q), draw.standard_normal(2)


def whole(block: Block) -> Array:
    """H over (y, z), scaled."""
    full = np.zeros((block.size + Q, block.size + Q))
    at = [*range(D), block.size, block.size + 1]
    full[np.ix_(at, at)] = block.unit * H
    return full


@pytest.mark.parametrize("unit", [1.0, 0.25])
def test_the_data_of_an_agent(unit: float) -> None:
    block = made(unit)
    assert block.size == D + 2 * 6
    assert block.fixed.tolist() == [2]
    assert block.sides.count == 3 + 2 * 6
    assert block.width == block.size + len(block.f) + 2 * block.sides.count
    assert block.steepness == pytest.approx(max(abs(H).max(), unit * max(abs(G).max(), 0.3)))
    y = RANDOM.standard_normal(block.size)
    z = RANDOM.standard_normal(Q)
    on_y, on_z = block.slope(y, z)
    expected = whole(block) @ np.concatenate([y, z])
    assert np.concatenate([on_y, on_z]) == pytest.approx(expected)
    # Rows: C in unit length, x - t+ + t- = 0 of the kinks, the fixed entry.
    assert len(block.f) == 1 + 6 + 1
    assert np.abs(block.E[0, :D]) == pytest.approx(np.abs(C[0]) / np.sqrt(6))
    assert abs(block.f[0]) == pytest.approx(1.5 / np.sqrt(6))
    assert block.f[-1] == 0.5
    assert block.E[-1].tolist() == [0.0, 0.0, 1.0, *[0.0] * (block.size - 3)]
    assert block.support.tolist() == [0, 1, 2, 3]
    W = np.zeros((block.size + len(block.f), 4))
    W[:D] = np.hstack([unit * H[:D, D:], A.T])
    W[block.size :, :Q] = block.F
    assert pytest.approx(W) == block.W


def test_what_the_conditions_lack() -> None:
    block = made()
    p, z, lam = point(block)
    lack = Lack.at(block, p, z, lam, TAU)
    w = np.concatenate([p.y, z])
    curved = whole(block) @ w
    prices = np.zeros(block.size)
    for j, (at, sign) in enumerate(zip(block.sides.at, block.sides.sign, strict=True)):
        prices[at] += sign * p.v[j]
    r_y = curved[: block.size] - block.g_y * TAU + block.E.T @ p.nu - prices
    r_y[:D] += A.T @ lam
    assert lack.r_y == pytest.approx(r_y)
    r_E = block.E @ p.y + block.F @ z - block.f * TAU
    assert lack.r_E == pytest.approx(r_E)
    on_z = curved[block.size :] - block.g_z * TAU + block.F.T @ p.nu
    linear = block.g_y @ p.y + block.g_z @ z
    bounds = block.sides.sign * block.sides.bound
    gap = w @ curved / TAU - linear + block.f @ p.nu - bounds @ p.v
    assert lack.own == pytest.approx(np.concatenate([on_z, A @ p.y[:D], [gap]]))
    assert (lack.bend, lack.linear) == (pytest.approx(w @ curved), pytest.approx(linear))
    assert lack.square == pytest.approx(r_y @ r_y + r_E @ r_E)
    facts = Elimination(block, p, z, lam, TAU).facts()
    assert facts[:6] == pytest.approx(
        [r_y @ r_y, r_E @ r_E, w @ curved, linear, p.s @ p.v, block.sides.count]
    )
    assert facts[6:] == pytest.approx(lack.own)


def dense(block: Block, e: Elimination, rho: float) -> tuple[Array, Array, Array]:
    """(M, the columns of (z, lambda, tau), the row of tau) of the agent's equations."""
    theta = e.newton.theta
    Theta = np.zeros(block.size)
    tilt = np.zeros(block.size)
    for j, at in enumerate(block.sides.at):
        Theta[at] += theta[j]
        tilt[at] += theta[j] * block.sides.bound[j]
    rows = len(block.f)
    M = np.zeros((block.size + rows, block.size + rows))
    M[: block.size, : block.size] = whole(block)[: block.size, : block.size]
    M[: block.size, : block.size] += np.diag(Theta + rho) + block.flat @ block.flat.T
    M[: block.size, block.size :], M[block.size :, : block.size] = block.E.T, block.E
    M[block.size :, block.size :] = -DELTA * np.eye(rows)
    column = np.concatenate([-block.g_y - tilt, -block.f])
    on_y, _ = block.slope(e.point.y, e.z)
    row = np.concatenate([2 / TAU * on_y - block.g_y + tilt, block.f])
    return M, np.column_stack([block.W, column]), row


@pytest.mark.parametrize("rho", [RHO, 1e-3])
def test_eliminated_equations(rho: float) -> None:
    block = made()
    p, z, lam = point(block)
    e = Elimination(block, p, z, lam, TAU, rho=rho)
    M, W, row = dense(block, e, rho)
    X = np.linalg.solve(M, W)
    schur = -W[:, :4].T @ X[:, :4]
    schur[:Q, :Q] += H[D:, D:]
    assert block.schur(e.solved[:, :-1]) == pytest.approx(schur, rel=1e-6, abs=1e-6)
    column, tau_row, *rights = e.vectors()
    expected = -W[:, :4].T @ X[:, 4]
    expected[:Q] -= block.g_z
    assert column == pytest.approx(expected, rel=1e-6, abs=1e-6)
    expected = -row @ X
    _, on_z = block.slope(p.y, z)
    expected[:Q] += 2 / TAU * on_z - block.g_z
    w = np.concatenate([p.y, z])
    corner = -np.sum(e.newton.theta * block.sides.bound**2)
    expected[4] += corner - w @ whole(block) @ w / TAU**2
    assert tau_row == pytest.approx(expected, rel=1e-6, abs=1e-6)
    lack = Lack.at(block, p, z, lam, TAU)
    sides = block.sides
    for part, a in enumerate(e.newton.parts):
        on_y = np.zeros(block.size)
        for j, at in enumerate(sides.at):
            on_y[at] += sides.sign[j] * a[j]
        right = np.concatenate([on_y, np.zeros(len(block.f))])
        if part == 0:
            right -= np.concatenate([lack.r_y, lack.r_E])
        assert e.right(part) == pytest.approx(right)
        solved = np.linalg.solve(M, right)
        share = np.append(-W[:, :4].T @ solved, sides.sign * sides.bound @ a - row @ solved)
        if part == 0:
            share -= lack.own
        assert rights[part] == pytest.approx(share, rel=1e-6, abs=1e-5)


def test_the_agents_part_of_a_step() -> None:
    block = made()
    p, z, lam = point(block)
    e = Elimination(block, p, z, lam, TAU)
    M, W, _ = dense(block, e, RHO)
    weights = np.array([0.7, 1.0, 0.2])
    dc = np.array([0.3, -0.1, 0.5, 0.2, 0.4])
    second = np.linspace(-1.0, 1.0, block.sides.count)
    step = e.step(weights, second, dc, np.zeros(block.flat.shape[1]))
    newton: Newton = e.newton
    a = sum(w * part for w, part in zip(weights, newton.parts, strict=True)) + second
    right = sum(w * e.right(k) for k, w in enumerate(weights))
    right[: block.size] += newton.right(second)[0]
    both = np.linalg.solve(M, right - W @ dc)
    assert step.y == pytest.approx(both[: block.size], rel=1e-6, abs=1e-6)
    assert step.nu == pytest.approx(both[block.size :], rel=1e-5, abs=1e-5)
    moved = block.sides.sign * (step.y[block.sides.at] - block.sides.bound * 0.4)
    assert step.s == pytest.approx(moved - 0.7 * newton.rho)
    assert step.v == pytest.approx(a - newton.theta * moved)
    dy = np.ones(block.size)
    dz = np.full(Q, 2.0)
    dtau = 0.5
    off = np.concatenate([dy, dz]) - dtau / TAU * np.concatenate([p.y, z])
    assert e.curved(dy, dz, dtau) == pytest.approx(off @ whole(block) @ off / TAU)


def test_a_point_with_prices() -> None:
    """x clipped to its bounds; slopes that bounds and fixed entries have to hold."""
    block = made(0.5)
    x = np.array([5.0, 1.0, 0.5, -2.0])
    z = np.array([0.3, -0.4])
    along = RANDOM.standard_normal(D)
    near = block.near(x, z, along)
    assert near.y[:D].tolist() == [3.0, 1.0, 0.5, -2.0]
    assert near.s == pytest.approx(block.sides.slack(near.y, 1.0))
    slope = block.slope(near.y, z)[0] - block.g_y + block.E.T @ near.nu
    basis = block.own.kernel.space.basis
    slope[:D] += along - basis @ (basis.T @ along)
    assert abs(slope[2]) <= 1e-12  # the price of the fixed entry
    held = block.sides.sign * slope[block.sides.at]
    assert near.v == pytest.approx(np.maximum(held, 0.0))
    prices = 0.5 * np.concatenate(
        [t.multiplier(np.asarray(t.R @ np.append(x, z)) - t.h) for t in block.form.terms]
    )
    assert near.nu[1:-1] == pytest.approx(prices)
    assert near.nu[:1] == pytest.approx(basis.T @ along)


def test_large_blocks_stay_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    small = made()
    assert small.small
    assert isinstance(small.E, np.ndarray)
    monkeypatch.setattr(module, "LARGE", small.size + len(small.f) - 1)
    large = made()
    assert not large.small
    assert sp.issparse(large.E)
    diagonal = np.linspace(1.0, 2.0, small.size)
    v = RANDOM.standard_normal(small.size + len(small.f))
    for rho in (1e-2, 1e-4):
        one = small.factorized(diagonal, rho)(v)
        other = large.factorized(diagonal, rho)(v)
        assert other == pytest.approx(one, rel=1e-6, abs=1e-8)
    M: Any = sp.csc_array(np.diag([2.0, 3.0, 4.0]) + 0.5)
    for wide in ([], [1], [0, 2]):
        found = bordered(M, np.array(wide, dtype=np.int64))(np.array([1.0, 2.0, 3.0]))
        assert found == pytest.approx(np.linalg.solve(M.toarray(), [1.0, 2.0, 3.0]))


def test_directions_that_nothing_holds() -> None:
    """Entry 3 of x has no curvature, no bound and no row; with A alone it is a common unknown."""
    flat = np.diag([1.0, 1.0, 1.0, 0.0, 1.0, 1.0])
    form = (Quadratic(flat, np.zeros(6)) + Box(LOWER, UPPER)).polyhedral(D, Q)
    assert form is not None
    none = np.zeros((0, D))
    block = Block(form, D, Kernel.of(row_space(none), np.zeros(D)), A, none)
    assert np.abs(block.flat[:, 0]).tolist() == [0.0, 0.0, 0.0, 1.0]
    assert block.flat.shape == (4, 1)


def test_directions_that_nothing_holds_blur_no_small_curvature() -> None:
    """Added to the entries of M they would: half of the digits of 1 / rho were lost."""
    draw = np.random.default_rng(3)
    n = 20
    C = draw.standard_normal((6, n))
    A = draw.standard_normal((4, n))
    bounded = np.arange(n) < 12
    form = (
        Quadratic(np.zeros(n), np.zeros(n)) + Box(np.where(bounded, 0.0, -INF), np.full(n, INF))
    ).polyhedral(n, 0)
    assert form is not None
    block = Block(form, n, Kernel.of(row_space(C), np.zeros(n)), A, C)
    assert block.flat.shape == (n, 2)
    theta = np.where(bounded, np.where(np.arange(n) % 3 == 0, 1e3, 1e-9), 0.0)
    S = A @ block.factorized(theta)(block.W)[:n]
    assert np.abs(S).max() > 1e8
    assert np.abs(S - S.T).max() <= 1e-13 * np.abs(S).max()


@pytest.mark.parametrize(
    ("top", "least", "count"), [(1.0, 1e-8, 0), (1.0, 1e-10, 1), (1e4, 1e-6, 1), (1e-3, 1e-10, 1)]
)
def test_what_counts_as_curvature_is_seen_beside_the_largest(
    top: float, least: float, count: int
) -> None:
    """A share of 1e-9, of one where all are smaller."""
    bends = np.diag([1.0, 1.0, top, least, 1.0, 1.0])
    form = (Quadratic(bends, np.zeros(6)) + Box(LOWER, UPPER)).polyhedral(D, Q)
    assert form is not None
    none = np.zeros((0, D))
    block = Block(form, D, Kernel.of(row_space(none), np.zeros(D)), A, none)
    assert block.flat.shape == (4, count)
