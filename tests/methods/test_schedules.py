"""The paper's schedules in closed form, and what a state is made of."""

from __future__ import annotations

import math

import pytest

from ccmac.errors import InputError
from ccmac.paper.schedules.continuation import certified_schedule, gradient_steps
from ccmac.paper.schedules.sliding import balanced_phase, certified_phases


@pytest.mark.parametrize("budget", [1.0, 20.0])
def test_the_schedule_of_continuation(budget: float) -> None:
    """L = 3, R = 2, eps = 0.1: S = ceil log2(64 * 120), k of Equation eq:cvxlf-schedule."""
    plan = certified_schedule(3.0, 2.0, 0.1, budget)
    constant = 200.0 if budget == 1.0 else 20.0 + 26.0**2
    last = math.ceil(math.log2(64 * 120))
    assert plan.nu == pytest.approx([3.0 / 2**s for s in range(last + 1)])
    assert plan.lengths == tuple(
        math.ceil(math.log(constant) / math.log(1 + 2 ** (-s / 2) / 24)) for s in range(last + 1)
    )
    assert plan.repairs == math.ceil(math.log2(16 * math.sqrt(2) * (budget + 6) * 120))
    assert plan.time == pytest.approx(math.sqrt(120))
    total = sum(plan.lengths)
    assert (plan.steps, plan.horizon) == (total, total + plan.repairs + 1)
    assert plan.gradients() == 1 + total
    assert plan.affine(7) == 7 * (4 * total + 2 * plan.repairs + 4)
    tau, eta, theta = plan.steps_of(2)  # nu = 3/4
    assert (tau, eta, theta) == pytest.approx((0.25, 1 / 18, 6.0))


def test_the_least_accuracy_of_continuation() -> None:
    assert certified_schedule(1.0, 1.0, 1.0, 1.0).time == 1.0
    for epsilon in (0.0, -1.0, 1.01):
        with pytest.raises(InputError, match="positive and at most"):
            certified_schedule(1.0, 1.0, epsilon, 1.0)
    assert gradient_steps(3.0, 2.0, 0.1) == math.ceil(math.sqrt(240))
    assert gradient_steps(1e-9, 1.0, 1.0) == 1


def test_a_phase_of_sliding() -> None:
    """||K|| = 2, sigma = 0.5, M = 3, R = 1.5, eps = 0.1: Rl = 12, eta = 16, tau = 1/4."""
    phase = balanced_phase(2.0, 0.5, 3.0, 1.5, 0.1)
    assert (phase.radius, phase.dual_radius, phase.eta, phase.tau) == (1.5, 12.0, 16.0, 0.25)
    assert phase.inner == math.ceil(32 * 9 / 1.6) - 3
    growth = 1 + 2 / (phase.inner * (phase.inner + 3))
    assert phase.outer == math.ceil((1 + growth) * 2 * 1.5 * 12 / 0.1)
    assert phase.affine == 2 * phase.outer
    assert phase.subgradients == phase.outer * phase.inner
    least = balanced_phase(2.0, 0.5, 3.0, 1.5, 1e9)
    assert (least.inner, least.outer) == (1, 1)


def test_phases_of_a_strongly_convex_function() -> None:
    """mu = 0.8, R = 4: eps_s = 1.6, 0.4, 0.1, then 0.05 is asked for."""
    phases = certified_phases(2.0, 0.5, 3.0, 4.0, 0.05, 0.8)
    radii = (4.0, 2.0, 1.0, 0.5)
    targets = (1.6, 0.4, 0.1, 0.05)
    assert phases == [
        balanced_phase(2.0, 0.5, 3.0, r, e) for r, e in zip(radii, targets, strict=True)
    ]
    assert certified_phases(2.0, 0.5, 3.0, 4.0, 0.05, 0.0) == [
        balanced_phase(2.0, 0.5, 3.0, 4.0, 0.05)
    ]
