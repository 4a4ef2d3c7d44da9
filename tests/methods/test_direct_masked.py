"""cross-direct where rows are masked: sums alone, bounds that say what squaring costs."""

from __future__ import annotations

import numpy as np
import pytest

import ccmac
from adversarial.draft import Draft
from adversarial.exact import Exact
from adversarial.families import base
from ccmac.errors import MethodRefused
from ccmac.lab.instances import random_quadratic
from ccmac.methods.base import Request
from ccmac.methods.direct import CrossDirect, Direct
from ccmac.methods.start import starting_point
from ccmac.objectives import Quadratic
from ccmac.workspace import Workspace


def draft(seed: int, power: int = 0, near: int | None = None) -> Draft:
    """Without shared rows; coupled ones 2^power long, the last 2^-near away from the first."""
    random = np.random.default_rng([5, seed])
    made = base(random, int(random.integers(2, 6)), m=2, p=seed % 2, r=0)
    made.D = [D[:0] for D in made.D]
    made.left_out = {(i, "D") for i in range(made.n)}
    made.A, made.B = [2.0**power * A for A in made.A], [2.0**power * B for B in made.B]
    for block in [*made.A, *made.B] if near is not None else []:
        block[1] = block[0]
    if near is not None:
        made.A[0][1, 0] += 2.0 ** (power - near)
    return made.plant()


def solved(made: Draft, method: str = "cross-direct", **given: bool) -> tuple[ccmac.Result, float]:
    """(result, its true error)."""
    network = ccmac.Network.path(made.n)
    runtime = ccmac.InProcess(network, averaging="masked", **given)
    result = ccmac.solve(made.problem(), network, method, 1e-8, runtime=runtime)
    exact = Exact(made)
    return result, exact.error(exact.point(result.x, result.z))


@pytest.mark.parametrize("power", [0, 20, -20])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_are_true_and_small(seed: int, power: int) -> None:
    result, error = solved(draft(seed, power), "auto")
    assert result.plan is not None
    assert result.plan.method == "cross-direct"
    assert (result.status, result.certificates["rests_on"]) == ("optimal", "proved")
    assert error <= result.error_bound


@pytest.mark.parametrize("near", [4, 10, 16, 20, 24, 28, 40])
def test_rows_that_squares_cannot_tell_apart_are_not_called_proved(near: int) -> None:
    for seed in range(3):
        made = draft(seed, near=near)
        result, error = solved(made)
        assert not result.error_bound < error
        if near >= 28:
            assert result.status == "stalled"
            assert solved(made, "auto")[0].status in ("converged", "stalled")
        if near <= 10:
            assert result.status == "optimal"


def test_nobody_sees_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    made = draft(1)
    runtime = ccmac.InProcess(ccmac.Network.path(made.n), averaging="masked")
    work = Workspace(made.problem(), runtime)

    def refused(*_: object) -> None:
        raise AssertionError("rows are told to all")

    monkeypatch.setattr(type(runtime), "gather", refused)
    found = CrossDirect().prepare(work, Request(1e-6, *starting_point(work, None)))
    iteration = found.iteration
    assert isinstance(iteration, Direct)
    state = iteration.start(np.zeros(sum(made.d)), np.zeros((made.n, made.q)))
    for _ in range(2):
        before = work.ledger.of("solve")
        state = iteration.step(state)
        after = work.ledger.of("solve") - before
    assert after == iteration.cost  # the first step agrees on scales too


def test_bits_do_not_depend_on_the_runtime() -> None:
    made = draft(3)
    one, other = solved(made)[0], solved(made, fused=False)[0]
    assert all(np.array_equal(a, b) for a, b in zip(one.x, other.x, strict=True))
    assert np.array_equal(one.z, other.z)
    assert one.error_bound == other.error_bound


def test_what_has_no_masked_form_is_refused_with_the_reason() -> None:
    with pytest.raises(MethodRefused, match="no shared equations"):
        ccmac.solve(random_quadratic(0, 4), "ring", "cross-direct", averaging="masked")
    f = Quadratic(np.diag([1.0, 0.0, 1.0]), np.ones(3))
    flat = [ccmac.Agent(f, A=np.ones((1, 2)), B=[[1.0]], b=[1.0]) for _ in range(3)]
    with pytest.raises(MethodRefused, match="strongly convex"):
        ccmac.solve(ccmac.Problem(flat), "ring", "cross-direct", averaging="masked")
