"""Bounds, repairs and doubts of a certifier on dense systems, in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from ccmac.certificates.bound import Dual, distance_bound
from ccmac.certificates.realized import Certifier
from ccmac.inputs import Array
from ccmac.network import Network
from ccmac.objectives import Quadratic
from ccmac.problem import Agent, Problem
from ccmac.realizations.base import ExecutionObjective, Interval, Realized
from ccmac.runtime import InProcess
from ccmac.runtime.space import Space
from methods.dense_system import DenseSystem

MU = 0.5
L = 8.0


@dataclass
class Case:
    """Two agents, z = s z~, some rows K on the execution vector; w* by a dense KKT system."""

    realized: Realized
    H: Array
    g: Array
    K: Array
    v: Array
    solution: Array

    @property
    def system(self) -> DenseSystem:
        assert isinstance(self.realized.system, DenseSystem)
        return self.realized.system


def case(seed: int, s: float = 3.0, rows: int = 3, spread: float = 4.0, loose: float = 1.0) -> Case:
    random = np.random.default_rng(seed)
    d = 3
    q = 2
    n = 2
    agents = []
    Hs = []
    gs = []
    for _ in range(n):
        turn = np.linalg.qr(random.standard_normal((d + q, d + q)))[0]
        unit = np.repeat([1.0, s], [d, q])
        H = turn * np.geomspace(MU, L, d + q) @ turn.T  # of Phi
        g = random.standard_normal(d + q)
        Hs.append(H)
        gs.append(g)
        agents.append(Agent(Quadratic(H / unit / unit[:, None], g / unit)))
    space = Space(InProcess(Network.complete(n)), [d] * n, q)
    objective = ExecutionObjective(Problem(agents, q=q, m=0), space, s=s, mu=MU, L=L)
    order = np.argsort([0, 0, 0, 2, 2, 1, 1, 1, 3, 3], kind="stable")  # x, x, then z, z
    whole = np.zeros((10, 10))
    whole[:5, :5], whole[5:, 5:] = Hs
    whole = whole[np.ix_(order, order)]
    g = np.concatenate(gs)[order]
    left = np.linalg.qr(random.standard_normal((rows, rows)))[0]
    right = np.linalg.qr(random.standard_normal((10, rows)))[0]
    K = 0.8 * left * np.geomspace(1.0, math.sqrt(spread), rows) @ right.T
    v = K @ random.standard_normal(10)
    kkt = np.block([[whole, K.T], [K, np.zeros((rows, rows))]])
    solution = np.linalg.solve(kkt, np.concatenate([g, v]))[:10]
    system = DenseSystem(space, K, v, loose)
    return Case(Realized("dense", space, objective, system, s), whole, g, K, v, solution)


def user(c: Case, w: Array) -> Array:
    """(x, mean of the copies of z) in the user's variables."""
    space = c.realized.space
    return np.concatenate([space.x(w), c.realized.copies(w).mean(axis=0)])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("s", [0.5, 3.0])
def test_a_bound_at_the_point_in_closed_form(seed: int, s: float) -> None:
    c = case(seed, s)
    random = np.random.default_rng(seed)
    w = c.solution + 0.1 * random.standard_normal(10)
    p = c.K.T @ random.standard_normal(3)
    residual = c.K.T @ (c.K @ w - c.v)
    low = c.system.interval.low
    r = float(np.linalg.norm(c.H @ w - c.g + p))
    delta = float(np.linalg.norm(residual)) / low
    scale = max(1.0, s / math.sqrt(2))
    space = c.realized.space
    copies = c.realized.copies(w) / math.sqrt(2)
    size = math.hypot(np.linalg.norm(space.x(w)), np.linalg.norm(copies))
    found = Certifier(c.realized).plain(w, Dual(p, np.zeros((1, 0))))
    assert found.size == pytest.approx(size)
    assert found.w == pytest.approx(w)
    assert found.infeasibility == pytest.approx(delta)
    assert found.stationarity == pytest.approx(r)
    assert found.error == pytest.approx(scale * distance_bound(r, delta, MU, L))
    assert np.linalg.norm(user(c, w) - user(c, c.solution)) <= found.error


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tol", [1e-2, 1e-8])
def test_a_tight_bound_is_right_and_near_what_is_left(seed: int, tol: float) -> None:
    c = case(seed)
    certifier = Certifier(c.realized)
    random = np.random.default_rng(seed)
    for off in (1e-9, 1e-1):
        w = c.solution + off * random.standard_normal(10)
        price = np.linalg.lstsq(c.K.T, c.g - c.H @ w, rcond=None)[0]
        for dual in (None, Dual(c.K.T @ price, np.zeros((1, 0))), Dual(None, np.zeros((1, 0)))):
            bound = certifier.tight(w, dual, tol)
            goal = tol * max(1.0, bound.size)
            error = float(np.linalg.norm(user(c, bound.w) - user(c, c.solution)))
            assert error <= bound.error
            assert bound.gradient_x == pytest.approx((c.H @ bound.w - c.g)[:6])
            limit = max(0.05 * goal / c.realized.error_scale * math.sqrt(MU / L), 1e-11)
            assert bound.infeasibility <= limit * 1.01
            true = np.linalg.norm(np.linalg.pinv(c.K) @ (c.K @ bound.w - c.v))
            assert true <= bound.infeasibility * (1 + 1e-6) + 1e-15
            if dual is None:
                # What multipliers cannot cancel, to the share of the goal that is left alone.
                left = c.H @ bound.w - c.g
                best = left - c.K.T @ np.linalg.lstsq(c.K.T, left, rcond=None)[0]
                least = float(np.linalg.norm(best))
                enough = 0.9 * MU * goal / c.realized.error_scale
                assert least * (1 - 1e-9) - 1e-14 <= bound.stationarity
                assert bound.stationarity <= max(1.05 * least, enough * 1.01) + 1e-12


def test_a_repair_ends_on_the_equations_nearby() -> None:
    c = case(2)
    w = c.solution + np.random.default_rng(0).standard_normal(10)
    repaired, _ = Certifier(c.realized).repaired(w)
    assert np.linalg.norm(c.K @ repaired - c.v) <= 1e-11
    nearest = w - np.linalg.pinv(c.K) @ (c.K @ w - c.v)
    assert repaired == pytest.approx(nearest, abs=1e-10)


# -- an interval that is wrong -------------------------------------------------------------------
def test_a_lower_end_above_the_spectrum_is_met_and_mended() -> None:
    c = case(3, spread=100.0)
    true = c.system.interval
    c.system.interval = Interval(10 * true.low, true.high)
    certifier = Certifier(c.realized)
    w = c.solution + 0.1 * np.random.default_rng(0).standard_normal(10)
    certifier.repaired(w)
    mended = c.system.interval
    assert mended.low == pytest.approx(0.5 * true.low, rel=0.2)
    assert mended.high == true.high
    assert mended.low <= true.low
    assert len(certifier.notes) == 1
    assert "not in the interval" in certifier.notes[0]
    certifier.repaired(w)
    assert len(certifier.notes) == 1


def test_an_upper_end_below_the_spectrum_is_met_and_mended() -> None:
    c = case(3, spread=100.0)
    true = c.system.interval
    c.system.interval = Interval(true.low, true.high / 10)
    certifier = Certifier(c.realized)
    w = c.solution + 0.1 * np.random.default_rng(0).standard_normal(10)
    certifier.repaired(w)
    mended = c.system.interval
    assert true.high <= mended.high <= 1.2 * true.high
    assert mended.low == true.low
    assert "not in the interval" in certifier.notes[0]
