"""Filters, energy, warm starts and schedule of the certified continuation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ccmac.certificates.gap import GapCertifier, Goal
from ccmac.errors import InputError
from ccmac.linalg.chebyshev import outer_degree
from ccmac.methods.continuation import Correction, StageSteps, stage_step
from ccmac.paper.polynomials import first_kind_filter, second_kind_filter
from ccmac.paper.schedules.continuation import Continuation, certified_schedule, gradient_steps
from methods.dense_system import Toy

Array = NDArray[np.float64]
WARM = 108 + (math.sqrt(12) + 2.5) ** 2 + 8 * (0.75 + 2.5 * math.sqrt(2))


@given(st.floats(1.0, 400.0), st.floats(0.0, 1.0))
def test_filter_bounds(ratio: float, place: float) -> None:
    """|r| < 1/2, |s| <= 1, sqrt(t) |s| <= sqrt(l) on [l, lambda_hi].

    Equation eq:cvxlf-filter-bounds.
    """
    low = 1.0
    high = ratio
    t = low + place * (high - low)
    degree = outer_degree(low, high)

    def residual(x: Array) -> tuple[Array, Array]:
        return t * x, np.zeros(1)

    r = first_kind_filter(residual, np.ones(1), low, high, degree)[0][0]
    s = second_kind_filter(residual, np.ones(1), high, degree)[0][0]
    assert abs(r) < 0.5
    assert abs(s) <= 1 + 1e-12
    assert math.sqrt(t) * abs(s) <= math.sqrt(low) * (1 + 1e-12)


class Energy:
    """E_nu of the paper (Equation eq:cvxlf-energy), with dense a_nu and p_nu."""

    def __init__(self, toy: Toy, correct: Correction, nu: float) -> None:
        self.toy, self.nu, d = toy, nu, len(toy.w0)
        self.P = np.stack([correct(toy.w0 + e) - correct(toy.w0) for e in np.eye(d)], axis=1)
        self.H = toy.M.T @ toy.M + toy.L * self.P + nu * np.eye(d)
        # The augmentation and its gradient vanish on the feasible set: p_nu belongs to F + nu/2.
        plain = toy.M.T @ toy.M + nu * np.eye(d)
        self.a, self.p = toy.constrained(plain, toy.M.T @ toy.y + nu * toy.w0)
        self.inverse = np.linalg.pinv(self.P, rcond=1e-9, hermitian=True)
        self.tau = 0.5 * math.sqrt(nu / toy.L)
        self.eta = 1 / (12 * math.sqrt(toy.L * nu))

    def __call__(self, x: Array, f: Array, p: Array) -> float:
        gap = p - self.p
        away = f - self.a
        metric = 3 * self.inverse @ gap - gap / (1 + self.eta * self.nu)
        bregman = 0.5 * away @ self.H @ away
        return float(
            12 * np.sum((x - self.a) ** 2)
            + gap @ metric / (12 * self.toy.L * self.nu)
            + 4 * (1 - self.tau) / self.nu * bregman
        )


@pytest.mark.parametrize("seed", range(4))
def test_energy_contracts_and_warm_starts_stay_bounded(seed: int) -> None:
    """Every step contracts; the start and every warm start obey their bounds."""
    toy = Toy(seed, loose=1.0 + 0.5 * (seed % 2), spread=1.0 + seed)
    correct = Correction.of(toy.system)
    R2 = toy.radius**2
    L = toy.L
    multiplier = np.linalg.norm(toy.M.T @ (toy.M @ toy.solution - toy.y)) / (L * toy.radius)
    plan = certified_schedule(L, toy.radius, L * R2 / 16, max(1.0, float(multiplier)))
    gradient = toy.M.T @ (toy.M @ toy.w0 - toy.y)
    degree = outer_degree(toy.system.interval.low, toy.system.interval.high)
    homogeneous = toy.system.homogeneous()
    filtered = second_kind_filter(homogeneous.residual, gradient, toy.system.interval.high, degree)[
        0
    ]
    x = toy.w0.copy()
    f = toy.w0.copy()
    p = filtered - gradient
    budget = max(1.0, float(multiplier))
    for stage, nu in enumerate(plan.nu[:4]):
        energy = Energy(toy, correct, nu)
        tau, eta, theta = plan.steps_of(stage)
        steps = StageSteps(nu, tau, eta, theta, L)
        now = energy(x, f, p)
        bound = (19 + (budget + 5) ** 2 / 2) if stage == 0 else WARM
        assert now <= bound * R2 * (1 + 1e-9)
        for _ in range(plan.lengths[stage]):
            moved = stage_step(toy.realized.objective, correct, steps, x, f, p, toy.w0)
            x = moved.x
            f = moved.f
            p = moved.p
            following = energy(x, f, p)
            if now > 1e-9 * R2:  # below, the energy is rounding of its own terms
                assert following <= now / (1 + math.sqrt(nu / L) / 24) * (1 + 1e-6)
            now = following
        assert now <= R2
        x = f.copy()


def test_warm_start_constant() -> None:
    """177.854779..."""
    assert pytest.approx(177.854779, abs=1e-5) == WARM
    assert WARM < 178


def test_schedule_has_no_logarithm() -> None:
    """Gradients and calls are proportional to T; calls to the degree."""
    exponents = range(1, 12)  # eps / 4 each time: T over three decades
    plans = [certified_schedule(3.0, 2.0, 12.0 / 4.0**k, 1.0) for k in exponents]
    times = np.log([plan.time for plan in plans])
    for counts in ([p.gradients() for p in plans], [p.affine(3) for p in plans]):
        slope = np.polyfit(times[3:], np.log(counts)[3:], 1)[0]
        assert slope == pytest.approx(1.0, abs=0.05)
    for plan in plans:
        constant = math.sqrt(128) * (1 + 25 * math.log(200)) / (1 - 1 / math.sqrt(2))
        assert plan.steps < constant * plan.time
        assert plan.affine(6) == 2 * plan.affine(3)


def executed(time: float, loose: float = 1.0) -> tuple[float, int, int]:
    """(T, gradients, affine calls) of a whole run, checked against the schedule's formulas."""
    toy = Toy(1, loose=loose)
    plan = certified_schedule(toy.L, toy.radius, toy.L * (toy.radius / time) ** 2, 1.0)
    certifier = GapCertifier(toy.realized, toy.w0)
    ledger = toy.space.runtime.ledger
    iteration = Continuation(certifier, Goal(1e-6), plan)
    state = iteration.start(toy.w0, np.zeros((1, 0)))
    while not iteration.finished(state):
        state = iteration.step(state)
    degree = outer_degree(toy.system.interval.low, toy.system.interval.high)
    assert ledger["gradients"] == plan.gradients()
    assert ledger["affine"] == plan.affine(degree)
    assert toy.value(state.w) - toy.value(toy.solution) <= toy.L * toy.radius**2 / time**2
    return plan.time, ledger["gradients"], ledger["affine"]


def test_executed_counts_grow_like_the_time() -> None:
    """eps / 4 three times, run to the end: slope 1 without a logarithm."""
    runs = np.log([executed(time) for time in (1.3, 2.6, 5.2)])
    for counts in runs.T[1:]:
        assert np.polyfit(runs[:, 0], counts, 1)[0] == pytest.approx(1.0, abs=0.05)


def test_executed_calls_grow_like_the_cross_factor() -> None:
    """An interval four times as wide at both ends: chi x 4, calls x 4, gradients alike."""
    (_, gradients, calls), (_, same, more) = (executed(1.3, loose) for loose in (1.0, 4.0))
    assert same == gradients
    assert more == 4 * calls


def test_schedule_refuses_what_needs_no_work() -> None:
    """eps above L R^2."""
    with pytest.raises(InputError, match="L R\\^2"):
        certified_schedule(1.0, 1.0, 2.0, 1.0)


def test_gradient_branch_length() -> None:
    """ceil sqrt(2 L R^2 / eps)."""
    assert gradient_steps(2.0, 3.0, 1.0) == 6
