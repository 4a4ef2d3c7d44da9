"""One run: widening after a blow-up, warm starts with their prices, references in every form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.errors import InputError
from ccmac.methods import CrossApapc
from ccmac.methods.base import Prepared, Request
from ccmac.methods.run import Limits, Run, starting_point
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


# -- starts ----------------------------------------------------------------------------------------


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
