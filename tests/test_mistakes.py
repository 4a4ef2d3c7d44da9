"""Ordinary slips end in one line that names what was meant."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import ccmac

H = np.eye(2)


def problem() -> ccmac.Problem:
    f = ccmac.objectives.Quadratic(H, [1.0, 2.0])
    return ccmac.Problem([ccmac.Agent(f, A=[[1.0]], B=[[1.0]]) for _ in range(2)])


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: ccmac.sovle, AttributeError, "did you mean 'solve'"),
        (lambda: ccmac.methods.CrossAPAPC, AttributeError, "did you mean 'CrossApapc'"),
        (lambda: ccmac.vfl.VerticalRige, AttributeError, "did you mean 'VerticalRidge'"),
        (lambda: ccmac.objectives.quadratic_, AttributeError, "did you mean 'Quadratic'"),
        (lambda: ccmac.power.dc_op, AttributeError, "did you mean 'dc_opf'"),
        (
            lambda: ccmac.objectives.Custom(lambda x, z: 0.0, lambda x, z: (x, z)),
            ccmac.errors.InputError,
            "smoothness: is missing; give the Lipschitz constant",
        ),
        (
            lambda: ccmac.solve(problem(), inner=3),  # type: ignore[call-arg]
            TypeError,
            "unexpected keyword argument 'inner'",
        ),
        (
            lambda: ccmac.solve(problem(), threads=10**30),
            ccmac.errors.InputError,
            "threads = 1000.* are more than 10,000",
        ),
        (lambda: ccmac.solve(problem()).ledger["round"], KeyError, "did you mean 'rounds'"),
        (lambda: ccmac.solve(problem()).ledger.of("setpu"), KeyError, "did you mean 'setup'"),
        (lambda: ccmac.solve(problem()).trace["round"], KeyError, "did you mean 'rounds'"),
    ],
)
def test_a_slip_is_one_line(call: Callable[[], object], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words) as refused:
        call()
    assert "\n" not in str(refused.value)


def test_a_quadratic_without_a_linear_term_has_none() -> None:
    assert ccmac.objectives.Quadratic(H).value(np.ones(1), np.ones(1)) == 1.0
