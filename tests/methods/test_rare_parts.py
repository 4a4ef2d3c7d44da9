"""Parts of methods that few problems need: each against its definition."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import ccmac
from ccmac import Agent, Network, Problem
from ccmac.certificates.duality import DualityJudge
from ccmac.certificates.proof import ProofJudge
from ccmac.errors import InputError, MethodRefused
from ccmac.methods import CrossDirect
from ccmac.methods.base import Request
from ccmac.methods.interior.doubted import doubtful
from ccmac.methods.interior.sides import Sides
from ccmac.methods.interior.units import _lengths, _term
from ccmac.methods.local.inverse import _multiples_of_identity
from ccmac.methods.newton.subspace import Span
from ccmac.methods.sliding.parts import split
from ccmac.objectives import (
    L1,
    Hinge,
    Limited,
    Logistic,
    MaxAffine,
    Quadratic,
    Separable,
    SquaredDistance,
)
from ccmac.objectives.base import Objective
from ccmac.paper.comparators.pooling import pooled_multiple
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace

M = np.array([[1.0, 2.0, 0.0], [0.5, -1.0, 1.0], [0.0, 1.0, -2.0]])
LABELS = np.array([1.0, -1.0, 1.0])
BOX = np.full(3, -1.0), np.full(3, 2.0)
TILTED = Quadratic(np.array([[2.0, 1.0], [1.0, 3.0]]), np.zeros(2))


# -- what is smooth and what has a prox ------------------------------------------------------------
@pytest.mark.parametrize(
    ("inner", "smooth"),
    [
        (Logistic(M, LABELS, 0.5), True),
        (Logistic(M, LABELS) + L1(0.3), True),
        (SquaredDistance(0.7), False),
    ],
)
def test_a_function_under_bounds_is_a_smooth_and_a_simple_part(
    inner: Objective, smooth: bool
) -> None:
    """f = H + G at points within the bounds and beyond, H with slopes and G with a prox."""
    f = Limited(inner, *BOX, 0, 1)
    found = split(f)
    assert found is not None
    H, G = found
    assert "gradient" in H.capabilities
    assert "prox" in G.capabilities
    for seed in range(20):
        w = np.random.default_rng(seed).uniform(-1.3, 2.2, 3)
        x = w[:2]
        z = w[2:]
        assert H.value(x, z) + G.value(x, z) == pytest.approx(f.value(x, z))
        assert math.isfinite(H.value(x, z))
        assert (H.value(x, z) != 0) == smooth


def test_a_kink_without_a_prox_is_no_part() -> None:
    kinked = MaxAffine(M, np.zeros(3))
    assert split(Limited(kinked, *BOX, 0, 1)) is None
    assert split(kinked) is None


# -- multiples of the identity ---------------------------------------------------------------------
def _multiples(*pairs: tuple[Any, Any], shift: float = 0.0, **blocks: Any) -> Any:
    agents = [
        Agent(Separable(x, z), A=np.eye(2), B=np.eye(2), b=np.ones(2), **blocks) for x, z in pairs
    ]
    work = Workspace(Problem(agents), InProcess(Network.complete(len(pairs))))
    return work, _multiples_of_identity(work, np.full(len(pairs), shift))


def test_weights_and_slopes_of_plain_squares() -> None:
    """a/2 |v - c|^2 has the diagonal a and the slope a c; z also what it is shifted by."""
    near = SquaredDistance(2.0, [1.0, -1.0])
    work, found = _multiples((near, SquaredDistance(3.0)), (SquaredDistance(5.0), near), shift=0.5)
    weights, linear = found
    space = work.space
    assert [space.x_of(weights, k).tolist() for k in range(2)] == [[2.0, 2.0], [5.0, 5.0]]
    assert space.z(weights).tolist() == [[3.5, 3.5], [2.5, 2.5]]
    assert [space.x_of(linear, k).tolist() for k in range(2)] == [[2.0, -2.0], [0.0, 0.0]]
    assert space.z(linear).tolist() == [[0.0, 0.0], [2.0, -2.0]]


def test_other_quadratics_are_no_multiples() -> None:
    plain = SquaredDistance(1.0)
    assert _multiples((plain, plain), (plain, plain))[1] is not None
    assert _multiples((plain, plain), (TILTED, plain))[1] is None
    assert _multiples((plain, TILTED), (plain, plain))[1] is None
    assert _multiples((plain, None), (plain, plain))[1] is None  # flat in a copy of z
    assert _multiples((plain, None), (plain, plain), shift=0.25)[1] is not None
    assert _multiples((plain, plain), C=[[1.0, 1.0]], c=[0.0])[1] is None
    assert _multiples((plain, plain), D=[[1.0, 1.0]], e=[0.0])[1] is None


# -- interior points -------------------------------------------------------------------------------
def test_a_wrong_guess_is_more_doubtful_than_one_on_both_bounds() -> None:
    """Entry 0 has neither slack nor price; entry 1 a negative slack, entry 2 a negative price."""
    sides = Sides(np.zeros(4), np.full(4, math.inf))
    s = np.array([0.0, -1e-3, 1e-3, 5.0])
    v = np.array([0.0, 1e-3, -1e-3, 5.0])
    none = np.zeros(4, dtype=bool)
    assert np.flatnonzero(doubtful(sides, s, v, 1.0, none, 2)).tolist() == [1, 2]
    assert np.flatnonzero(doubtful(sides, s, v, 1.0, none, 4)).tolist() == [0, 1, 2]
    before = np.array([False, False, False, True])
    assert np.flatnonzero(doubtful(sides, s, v, 1.0, before, 2)).tolist() == [1, 3]
    # A price counts times the weight: below the edge of 1e-10 it is rounding.
    assert np.flatnonzero(doubtful(sides, s, v, 1e-8, none, 1)).tolist() == [1]
    assert np.flatnonzero(doubtful(sides, np.abs(s), v, 1e-8, none, 1)).tolist() == [0]


def test_terms_with_a_free_slack_keep_the_length_of_their_rows() -> None:
    """v = S v': the rows R S v' + T t = h are the same equations."""
    S = np.array([4.0, 0.25, 2.0])
    form = MaxAffine(16 * M, np.ones(3)).polyhedral(2, 1)
    [term] = form.terms
    assert term.free
    said = _term(term, S)
    v = np.array([1.0, -2.0, 3.0])
    assert said.R @ v == pytest.approx(term.R @ (S * v))
    assert (said.h.tolist(), said.a.tolist()) == (term.h.tolist(), term.a.tolist())
    assert _lengths(term, S).tolist() == [1.0] * 3
    [bound] = Hinge(16 * M, LABELS).polyhedral(2, 1).terms
    long = np.linalg.norm(16 * M * S, axis=1)
    assert np.all(_lengths(bound, S) <= long * math.sqrt(2))
    assert np.all(_lengths(bound, S) >= long / math.sqrt(2))
    assert set(np.log2(_lengths(bound, S)) % 1) == {0.0}


# -- refusals and verdicts -------------------------------------------------------------------------
def _pair(f: Any, **more: Any) -> Problem:
    return Problem([Agent(f, A=[[1.0]], B=[[1.0]], b=[1.0], **more) for _ in range(2)])


def test_refusals_name_the_method_and_a_way_out() -> None:
    flat = _pair(Quadratic(np.diag([1.0, 0.0]), np.ones(2)))
    with pytest.raises(MethodRefused, match=r"mixed-yarmoshik.*cross-"):
        ccmac.solve(flat, "complete", "mixed-yarmoshik")
    near = ccmac.solve(_pair(SquaredDistance(1.0)), "complete")
    bad = np.array([math.nan])
    for name, x, z in (("x", [near.x[0], bad], near.z), ("z", near.x, bad)):
        with pytest.raises(InputError, match=f"^reference, {name}"):
            ccmac.solve(_pair(SquaredDistance(1.0)), "complete", reference=Fake(x=x, z=z))


@pytest.mark.parametrize("method", ["cross-continuation", "cross-sliding"])
def test_a_free_fall_is_seen_before_the_first_step(method: str) -> None:
    """f_i = -x_i - 3 z with x_1 + x_2 + 2 z = 0: F = -4 z falls as z grows."""
    f = Quadratic(np.zeros((2, 2)), [1.0, 3.0])
    problem = Problem([Agent(f, A=[[1.0]], B=[[1.0]], b=[0.0]) for _ in range(2)])
    said = ccmac.solve(problem, "complete", method)
    assert said.status == "unbounded"
    direction = said.certificates["direction"]
    x = np.concatenate(direction["x"])
    z = np.asarray(direction["z"])
    assert x.sum() + 2 * z[0] == pytest.approx(0.0, abs=1e-12)
    assert -x.sum() - 6 * z[0] < 0


# -- directions of Newton's method -----------------------------------------------------------------
@pytest.mark.parametrize("seed", range(3))
def test_a_span_stays_orthonormal_whatever_joins_it(seed: int) -> None:
    """P S P' = I and E = P S, also for a vector that was not made orthogonal before."""
    draw = np.random.default_rng(seed).standard_normal
    S = draw((5, 5))
    S = S @ S.T + np.eye(5)
    span = Span(np.zeros((4, 5)), np.zeros((4, 5)), 0)
    for k in range(3):
        v = draw(5)
        before = span.P[: span.k].copy()
        span, length = span.extended(v, S @ v)
        assert span.k == k + 1
        left = v - before.T @ (before @ S @ v)  # the part of v outside, in the metric of S
        assert length == pytest.approx(math.sqrt(left @ S @ left))
    P = span.P[:3]
    assert pytest.approx(np.eye(3), abs=1e-12) == P @ S @ P.T
    assert span.E[:3] == pytest.approx(P @ S)


# -- who ends a direct solve -----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("f", "rule"),
    [(SquaredDistance(1.0), ProofJudge), (Quadratic(np.zeros((2, 2)), np.zeros(2)), DualityJudge)],
)
def test_a_reference_takes_the_place_of_a_proof(f: Any, rule: type) -> None:
    work = Workspace(_pair(f), InProcess(Network.complete(2)))
    start = np.zeros(2), np.zeros((2, 1))
    for reference in (False, True):
        prepared = CrossDirect().prepare(work, Request(1e-6, *start, reference=reference))
        assert prepared.stopping is None if reference else type(prepared.stopping.judge) is rule


# -- reductions ------------------------------------------------------------------------------------
def _pooled(*blocks: Any, **more: Any) -> float:
    f = Separable(SquaredDistance(1.0), SquaredDistance(1.0))
    agents = [Agent(f, A=np.eye(2), B=B, b=np.ones(2), **more) for B in blocks]
    return pooled_multiple(Workspace(Problem(agents), InProcess(Network.complete(2))), "R3")


def test_the_sum_of_multiples_of_the_identity() -> None:
    unit = sp.eye_array(2, format="csr")
    assert _pooled(2.0 * unit, -0.5 * unit) == 1.5
    assert _pooled(2.0 * unit, None) == 2.0
    for other in (-2.0 * unit, sp.csr_array([[1.0, 1.0], [0.0, 1.0]])):
        with pytest.raises(MethodRefused, match=r"R3 needs B_i that are multiples.*use reduction"):
            _pooled(2.0 * unit, other)
    with pytest.raises(MethodRefused, match=r"R3 has no place for equations D z = e; use"):
        _pooled(unit, unit, D=[[1.0, 1.0]], e=[0.0])
