"""T against the dense stacked equations on ker C, and its least singular value from below."""

from __future__ import annotations

import math

import flint
import numpy as np
import pytest
from flint import acb_mat, arb, fmpq_mat
from hypothesis import given, settings
from hypothesis import strategies as st

from adversarial import suite
from adversarial.draft import Array, Draft
from adversarial.exact import BITS, matrix, rational
from adversarial.families import base, rescaled_rows
from ccmac import Agent, Network, Problem
from ccmac.objectives import Quadratic
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace, equations
from ccmac.workspace.equations import Constraints, affordable
from certificates.points import onto_rows, workspace

SEEDS = st.integers(0, 10**4)


def gathered(work: Workspace) -> Constraints:
    """T, which must be affordable here."""
    assert work.gather_constraints() is not None
    return work.gather_constraints()


def dense_T(draft: Draft, scaled: Constraints) -> Array:
    """[A_i N_i ..., Bbar; 0, D] from null spaces by SVD, rows scaled as T's are."""
    bases = []
    for C in draft.C:
        _, s, Vt = np.linalg.svd(C, full_matrices=True)
        bases.append(Vt[int(np.count_nonzero(s > 1e-9 * s.max(initial=0.0))) :].T)
    coupled = np.hstack([*(A @ N for A, N in zip(draft.A, bases, strict=True)), sum(draft.B)])
    D = np.vstack(draft.D)
    shared = np.hstack([np.zeros((len(D), coupled.shape[1] - draft.q)), D])
    return np.vstack([scaled.unit[:, None] * coupled, scaled.unit_D[:, None] * shared])


def positive(values: Array) -> Array:
    """Singular values above rounding, largest first."""
    return values[values > 1e-10 * max(1.0, values.max(initial=0.0))]


@given(SEEDS)
@settings(max_examples=40)
def test_singular_values_are_those_of_the_dense_equations(seed: int) -> None:
    random = np.random.default_rng(seed)
    draft = rescaled_rows(base(random, p=2, r=int(random.integers(0, 3))), -8, 8).plant(drift=False)
    found = gathered(workspace(draft))
    expected = positive(np.linalg.svd(dense_T(draft, found), compute_uv=False))
    assert found.rank == len(expected)
    assert np.allclose(found.sigma, expected, rtol=1e-11)
    if found.rank:
        assert found.least <= expected[-1]
        assert found.least >= expected[-1] * (1 - 1e-9)
        assert found.condition == pytest.approx(expected[0] / expected[-1], rel=1e-9)


@given(SEEDS)
@settings(max_examples=25)
def test_left_vectors_solve_with_the_gram_matrix_and_split_the_range(seed: int) -> None:
    random = np.random.default_rng(seed)
    draft = base(random, p=1, r=2).plant()
    found = gathered(workspace(draft))
    T = dense_T(draft, found)
    rows = random.standard_normal(len(T))
    assert np.allclose(found.inverse_gram(rows), np.linalg.pinv(T @ T.T, rcond=1e-9) @ rows)
    outside = np.eye(len(T)) - found.U @ found.U.T
    assert np.linalg.norm(outside @ T) <= 1e-13 * np.linalg.norm(T)
    coupled, shared = found.multipliers(rows)
    assert np.array_equal(coupled, found.unit * rows[: draft.m])
    assert np.array_equal(shared, rows[draft.m :])


@given(SEEDS)
@settings(max_examples=25)
def test_the_right_hand_side_is_what_the_least_norm_points_leave(seed: int) -> None:
    random = np.random.default_rng(seed)
    draft = base(random, p=1, r=1).plant()
    found = gathered(workspace(draft))
    beta = sum(draft.b)
    for A, C, c in zip(draft.A, draft.C, draft.c, strict=True):
        beta = beta - A @ (np.linalg.pinv(C) @ c)
    e = found.unit_D * np.concatenate(draft.e)
    assert np.allclose(found.right, np.concatenate([found.unit * beta, e]), atol=1e-12)


FAMILIES = (
    "near-local",
    "near-shared",
    "near-across",
    "near-coupled",
    "near-mixed",
    "two-agents",
    "row-scales",
    "redundant",
    "overlapping",
    "block-scales",
    "absent",
    "no-local",
)


def exact_sigma(draft: Draft, found: Constraints) -> list[float]:
    """Singular values of S T from its rational Gram matrix at 300 bits, largest first."""
    rows = draft.m + len(found.unit_D)
    gram = fmpq_mat(rows, rows)
    scales = [rational(float(v)) for v in (*found.unit, *found.unit_D)]
    for A, C in zip(draft.A, draft.C, strict=True):
        if A.size:
            block = matrix(A, A.shape[1])
            part = fmpq_mat(draft.m, draft.m)
            pulled = block.transpose()
            for j in range(draft.m):
                column = fmpq_mat(A.shape[1], 1, [pulled[k, j] for k in range(A.shape[1])])
                inside = onto_rows(matrix(C, C.shape[1]), column) if C.size else 0 * column
                image = block * (column - inside)
                for i in range(draft.m):
                    part[i, j] = image[i, 0]
            for i in range(draft.m):
                for j in range(draft.m):
                    gram[i, j] += part[i, j]
    wide = matrix(np.vstack([sum(draft.B), *draft.D]), draft.q)
    outer = wide * wide.transpose() if draft.q else fmpq_mat(rows, rows)
    for i in range(rows):
        for j in range(rows):
            gram[i, j] = scales[i] * scales[j] * (gram[i, j] + outer[i, j])
    before = flint.ctx.prec
    flint.ctx.prec = BITS
    try:
        values = acb_mat(flint.arb_mat(gram)).eig(algorithm="approx", tol=arb(2) ** (20 - BITS))
        squares = sorted((float(v.real.mid()) for v in values), reverse=True)
    finally:
        flint.ctx.prec = before
    return [math.sqrt(v) for v in squares[: gram.rank()]]


@pytest.mark.parametrize("family", FAMILIES)
def test_least_is_a_lower_bound_however_near_rows_are_to_dependence(family: str) -> None:
    for seed in range(8):
        draft = suite.make(family, seed).draft
        found = gathered(workspace(draft))
        true = []
        if draft.m + len(found.unit_D):
            true = exact_sigma(draft, found)
        if len(true) != found.rank or (found.rank and found.least == 0):
            continue  # by convention, or nothing is claimed
        assert found.rank == len(true), (family, seed)
        if true:
            assert found.least <= true[-1], (family, seed)
            size = math.hypot(*true)
            assert found.least >= 0.9 * true[-1] - (2 * found.angle + 1e-13) * size, (family, seed)


@pytest.mark.parametrize("exponent", range(10, 35, 3))
def test_nearly_dependent_rows_of_two_agents(exponent: int) -> None:
    draft = suite.make("two-agents", exponent - 10).draft
    assert draft.D[1][0, 1] == 2.0 + 2.0**-exponent
    found = gathered(workspace(draft))
    true = exact_sigma(draft, found)[-1]
    assert found.rank == 3
    assert 0.9 * true <= found.least <= true
    assert found.near_cut["dropped"] == 0.0
    assert found.near_cut["kept"] == pytest.approx(true / 1e-12 / found.sigma[0], rel=0.01)


def test_repeated_rows_are_listed() -> None:
    agent = Agent(Quadratic(np.eye(3), np.ones(3)), D=np.ones((2, 2)), e=np.ones(2))
    found = gathered(Workspace(Problem([agent]), InProcess(Network.complete(1))))
    assert found.rank == 1
    assert found.redundant in ({"coupled": [], "shared": {"0": [k]}} for k in range(2))
    assert found.near_cut["dropped"] < 1e-2


def test_nothing_is_gathered_beyond_what_is_affordable(monkeypatch: pytest.MonkeyPatch) -> None:
    work = workspace(base(np.random.default_rng(0), 3, m=2, r=1).plant())
    assert affordable(work.problem, work.curvature)
    monkeypatch.setattr(equations, "ROWS", 2)
    assert not affordable(work.problem, work.curvature)
    assert work.gather_constraints() is None


def test_gathered_once_and_charged_to_the_setup() -> None:
    work = workspace(base(np.random.default_rng(3), 4, d=3, d_top=3, q=2, m=2, r=1).plant())
    _ = work.curvature, work.local
    before = work.ledger.of("setup")
    first = work.gather_constraints()
    spent = work.ledger.of("setup") - before
    width = 2 * 2 + 2 * 2 + 2 + 2 + 1 * 2 + 1 + 1
    expected = work.runtime.gather_cost(width)  # the declarations before had a longer message
    assert {**spent, "longest_message": 0} == {**expected, "longest_message": 0}
    assert spent["reductions"] == 1
    assert work.gather_constraints() is first
    assert work.ledger.of("setup") - before == spent
    assert not work.ledger.of("solve")["rounds"]
