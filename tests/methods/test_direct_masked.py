"""cross-direct where rows are masked: sums alone, bounds that say what squaring costs."""

from __future__ import annotations

import numpy as np
import pytest

import ccmac
from adversarial.draft import Draft
from adversarial.exact import Exact
from adversarial.families import base
from ccmac.errors import MethodRefused
from ccmac.methods.base import Request
from ccmac.methods.direct import CrossDirect, Direct
from ccmac.methods.run import starting_point
from ccmac.objectives import Quadratic
from ccmac.workspace import Workspace


def draft(seed: int, power: int = 0, near: int | None = None, shared: int = 0) -> Draft:
    """Coupled rows 2^power long, the last 2^-near away from the first; ``shared`` ones an agent,
    more of them in all than z has entries.
    """
    random = np.random.default_rng([5, seed])
    made = base(random, int(random.integers(2, 6)), m=2, p=seed % 2, r=shared)
    made.D = [2.0**-power * D[:shared] for D in made.D]
    made.left_out = {(i, "D") for i in range(made.n) if not shared}
    made.A = [2.0**power * A for A in made.A]
    made.B = [2.0**power * B for B in made.B]
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
@pytest.mark.parametrize(("seed", "shared"), [(0, 0), (1, 0), (2, 1), (3, 2)])
def test_bounds_are_true_and_small(seed: int, shared: int, power: int) -> None:
    result, error = solved(draft(seed, power, shared=shared), "auto")
    assert result.plan is not None
    assert result.plan.method == "cross-direct"
    assert (result.status, result.certificates["rests_on"]) == ("optimal", "proved")
    assert error <= result.error_bound


@pytest.mark.parametrize("near", [4, 10, 16, 20, 24, 28, 40])
def test_rows_that_squares_cannot_tell_apart_are_dropped_by_convention(near: int) -> None:
    """What is claimed is then about the problem without them, and the result says so."""
    for seed in range(3):
        result, error = solved(draft(seed, near=near))
        dropped = result.certificates["rows"].get("dropped", {})
        assert bool(dropped) == (near >= 16)
        assert any("dependent" in text for text in result.warnings) == bool(dropped)
        if not dropped:
            assert result.status == "optimal"
            assert error <= result.error_bound


def one_shared(near: int) -> Draft:
    """Two shared rows, of two agents, that are 2^-near apart."""
    made = draft(2, shared=1)
    for i in range(made.n):
        made.D[i][0] = made.D[0][0] if i < 2 else 0.0
    made.D[1][0, 0] += 2.0**-near
    return made.plant()


@pytest.mark.parametrize("near", [4, 10, 20, 28, 40])
def test_shared_rows_that_squares_cannot_tell_apart_count_as_dependent(near: int) -> None:
    result, error = solved(one_shared(near))
    if near >= 20:  # they count as one
        assert result.certificates["rows"]["dropped"] == {"shared": 4}  # and three rows of zeros
        assert any("count as dependent" in text for text in result.warnings)
        return
    assert not result.error_bound < error
    assert result.status == ("optimal" if near <= 4 else "stalled")
    if near == 4:  # an angle of 0.02, as docs/privacy.md says
        assert 1e-9 < result.error_bound < 4e-9
        assert error < 1e-12


@pytest.mark.parametrize("shared", [1, 2])
def test_prices_are_those_of_open_rows(shared: int) -> None:
    made = draft(4, shared=shared)
    masked, _ = solved(made)
    problem = made.problem()
    network = ccmac.Network.path(made.n)
    opened = ccmac.solve(problem, network, "cross-direct", 1e-8, averaging="tree")
    slopes = []
    for result in (masked, opened):
        prices = result.multipliers.shared
        slopes.append(sum(D.T @ y for D, y in zip(made.D, prices, strict=True)))
    np.testing.assert_allclose(*slopes, atol=1e-9)
    assert masked.residuals["shared"] <= 1e-9


def test_nobody_sees_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    made = draft(1, shared=1)
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
    agreed = {"longest_message": work.ledger.of("solve")["longest_message"]}  # upon scales
    assert dict(after) == {**dict(iteration.cost), **agreed}


def test_bits_do_not_depend_on_the_runtime() -> None:
    made = draft(3, shared=1)
    one = solved(made)[0]
    other = solved(made, fused=False)[0]
    assert all(np.array_equal(a, b) for a, b in zip(one.x, other.x, strict=True))
    assert np.array_equal(one.z, other.z)
    assert one.error_bound == other.error_bound


def test_what_has_no_masked_form_is_refused_with_the_reason() -> None:
    f = Quadratic(np.diag([1.0, 0.0, 1.0]), np.ones(3))
    flat = [ccmac.Agent(f, A=np.ones((1, 2)), B=[[1.0]], b=[1.0]) for _ in range(3)]
    with pytest.raises(MethodRefused, match="strongly convex"):
        ccmac.solve(ccmac.Problem(flat), "ring", "cross-direct", averaging="masked")
