"""One run: widening after a blow-up, warm starts with their prices, references in every form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.certificates.bound import ProofJudge
from ccmac.certificates.realized import RealizedJudge
from ccmac.errors import InputError
from ccmac.methods import CrossApapc, CrossCg, Method
from ccmac.methods.base import Prepared, Request
from ccmac.methods.driver import positions
from ccmac.methods.run import Limits, Run, starting_point
from ccmac.realizations.base import Certificates
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from pins.problems import posed

QUIET = Limits(max_iterations=3, progress=False)


def workspace(name: str = "quadratic") -> Workspace:
    made = posed(name)
    assert made.network is not None
    return Workspace(made.problem, InProcess(made.network))


def request(work: Workspace, warm: Any = None, **more: Any) -> Request:
    return Request(1e-6, *starting_point(work, warm), **more)


class Narrow(CrossApapc):
    """Its interval must be widened ``times`` times before it converges."""

    name = "narrow"
    times = 2

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        return self.spoiled(super().prepare(work, request), 0)

    def spoiled(self, prepared: Prepared, widened: int) -> Prepared:
        if widened >= self.times:
            return replace(prepared, widen=None)
        step = prepared.iteration.step

        def growing(state: Any) -> Any:
            state = step(state)
            state.w[...] *= 1e6
            return state

        def widen() -> Prepared:
            prepared.iteration.step = step  # type: ignore[method-assign]
            work.ledger.charge(affine=1)
            return self.spoiled(prepared, widened + 1)

        work = prepared.judge.space.runtime  # type: ignore[union-attr]
        prepared.iteration.step = growing  # type: ignore[method-assign]
        return replace(prepared, widen=widen)


def test_a_blow_up_is_widened_until_it_holds() -> None:
    work = workspace()
    before = workspace()
    CrossApapc().prepare(before, request(before))
    run = Run(work, Narrow(), request(work))
    result = run.solve(Limits(progress=False))
    assert result.status == "optimal"
    assert [text for text in result.warnings if "widened, started again" in text] == run.warnings
    assert len(run.warnings) == 2


def test_what_cannot_be_widened_is_reported_as_diverged() -> None:
    work = workspace()
    method = Narrow()
    prepared = method.prepare(work, request(work))
    run = Run(work, method, request(work))
    run.prepare = lambda: replace(prepared, widen=None, stopping=None)  # type: ignore[method-assign]
    assert run.solve(Limits(progress=False)).status == "diverged"


@pytest.mark.parametrize("method", [CrossCg, CrossApapc])
def test_the_run_names_the_rule_that_proves_the_tolerance(method: type[Method]) -> None:
    work = workspace()
    assert Run(work, method(), request(work, reference=True)).prepare().stopping is None
    in_own_rows = Run(work, method(), request(work)).prepare()
    assert isinstance(in_own_rows.stopping.judge, ProofJudge)
    assert in_own_rows.stopping.judge.tol == request(work).tol
    vouched = Run(work, method(certificates=Certificates()), request(work)).prepare()
    assert isinstance(vouched.stopping.judge, RealizedJudge)
    assert vouched.stopping.judge.certifier.realized is vouched.judge
    assert vouched.stopping.judge.tol == request(work).tol


def test_preparation_is_charged_to_setup_alone() -> None:
    work = workspace()
    run = Run(work, CrossApapc(), request(work))
    plan = run.plan(run.prepare())
    assert plan.setup == work.ledger.of("setup")
    assert plan.setup["rounds"] > 0
    assert not work.ledger.of("solve")
    assert not work.ledger.of("monitor")


def test_what_may_travel_with_the_equations_is_announced_first() -> None:
    calls: list[str] = []

    class Announcing(CrossApapc):
        name = "announcing"

        def announce(self, work: Workspace, request: Request) -> None:
            calls.append("announced")

        def prepare(self, work: Workspace, request: Request) -> Prepared:
            calls.append("prepared")
            return super().prepare(work, request)

    work = workspace()
    Run(work, Announcing(), request(work)).prepare()
    assert calls == ["announced", "prepared"]


def test_a_horizon_limits_the_run_unless_the_caller_does() -> None:
    work = workspace()
    run = Run(work, CrossApapc(), request(work, reference=True))
    prepared = replace(run.prepare(), horizon=4, stopping=None)
    for limit, count in ((None, 4), (6, 6)):
        run.prepare = lambda: prepared  # type: ignore[method-assign]
        assert run.solve(Limits(max_iterations=limit, progress=False)).iterations == count


# -- starts ----------------------------------------------------------------------------------------
def test_a_start_is_zero_or_that_of_a_solution() -> None:
    work = workspace()
    solution = posed("quadratic").reference
    x, z = starting_point(work, None)
    assert not x.any()
    assert not z.any()
    x, z = starting_point(work, solution)
    assert np.array_equal(x, np.concatenate(solution.x))
    assert np.array_equal(z, solution.z)


@pytest.mark.parametrize(
    "wrong",
    [
        ccmac.Solution([np.zeros(2)] * 4, np.zeros(3)),
        ccmac.Solution([np.zeros(3)] * 4, np.zeros(2)),
        ccmac.Solution([np.zeros(3)] * 3, np.zeros(3)),
    ],
)
def test_a_start_of_other_sizes_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"warm_start|solution: has 3"):
        starting_point(workspace(), wrong)


def test_a_warm_start_hands_its_prices_to_the_iteration() -> None:
    made = posed("quadratic")
    cold = ccmac.solve(made.problem, made.network, "cross-apapc", tol=1e-9, progress=False)
    work = workspace()
    seen: dict[str, Any] = {}
    run = Run(work, CrossApapc(), request(work, cold), warm=cold)
    prepared = run.prepare()
    start = prepared.iteration.start

    def recording(x: Any, z: Any, dual: Any = None, multiplier: Any = None) -> Any:
        seen.update(dual=dual, multiplier=multiplier)
        return start(x, z, dual, multiplier)

    prepared.iteration.start = recording  # type: ignore[method-assign]
    run.prepare = lambda: prepared  # type: ignore[method-assign]
    result = run.solve(Limits(progress=False))
    assert cold.multipliers is not None
    assert np.array_equal(seen["multiplier"], cold.multipliers.coupled)
    assert np.linalg.norm(seen["dual"]) > 0
    assert result.iterations <= 10 < cold.iterations


# -- references ------------------------------------------------------------------------------------
def test_references_of_every_form_observe_the_same() -> None:
    made = posed("quadratic")
    solution = posed("quadratic").reference
    x = np.concatenate(solution.x)
    errors = []
    for reference in (solution, np.concatenate([x, solution.z])):
        work = workspace()
        run = Run(work, CrossApapc(), request(work, reference=True), reference)
        errors.append(run.solve(QUIET).relative_error)
    assert errors[0] == pytest.approx(errors[1])
    work = workspace()
    local = Run(work, CrossApapc(), request(work, reference=True), x).solve(QUIET)
    assert local.relative_error == pytest.approx(
        np.sum((np.concatenate(local.x) - x) ** 2) / np.sum(x**2)
    )
    assert made.problem.n == 4


@pytest.mark.parametrize("size", [1, 11, 14, 16])
def test_references_of_other_sizes_are_refused(size: int) -> None:
    work = workspace()
    run = Run(work, CrossApapc(), request(work, reference=True), np.zeros(size))
    with pytest.raises(InputError, match=rf"reference: has {size} entries; give the 12 .* \(15\)"):
        run.solve(QUIET)


def test_positions_of_whole_and_partial_solutions() -> None:
    class Part:
        """Agents 1 and 2 of four."""

        owned = range(1, 3)

    work = workspace()
    work.runtime = Part()  # type: ignore[assignment]
    whole = ccmac.Solution([np.zeros(3)] * 4, np.zeros(3))
    part = ccmac.Solution([np.zeros(3)] * 2, np.zeros(3))
    assert positions(work, whole) == [1, 2]
    assert positions(work, part) == [0, 1]
    with pytest.raises(InputError, match="has 3 local variables; give 4"):
        positions(work, ccmac.Solution([np.zeros(3)] * 3, np.zeros(3)))
