"""Frontiers by brute-force closure of supports, and the bounds that follow from them.

Supports are grown with the instance's own blocks, Hessians and graph: nothing here knows about
groups, matchings or distances.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ccmac.errors import InputError
from ccmac.paper.instances import (
    HardInstance,
    bounded_angle,
    communication_path,
    complete_six,
    matching_path,
    physical_path,
    radius_explicit_rounds,
    six_block,
    virtual_path,
)
from ccmac.paper.instances.reference import dense


class LocalSupport:
    """What one agent can hold: supports of (x, z) and of its residual in the coupled equation."""

    def __init__(self, instance: HardInstance, i: int) -> None:
        problem = instance.problem
        agent = instance.problem.agents[i]
        d = problem.d[i]
        q = problem.q
        m = problem.m
        H, g, _ = agent.objective.quadratic(d, q)
        self.d = d
        self.gradient = dense(H, (d + q, d + q)) != 0
        self.seed = g != 0
        self.link = np.hstack([dense(agent.A, (m, d)), dense(agent.B, (m, q))]) != 0
        self.u = np.zeros(d + q, dtype=bool)
        self.y = np.zeros(m, dtype=bool)

    def close(self) -> None:
        """Gradients and own blocks are free until nothing new appears."""
        before = -1
        while before != self.u.sum() + self.y.sum():
            before = self.u.sum() + self.y.sum()
            self.u |= self.seed | (self.gradient @ self.u) | (self.link.T @ self.y)
            self.y |= self.link @ self.u


def first_rounds(instance: HardInstance, places: int) -> list[int]:
    """Round in which each of the first ``places`` chain places first appears at some agent."""
    agents = [LocalSupport(instance, i) for i in range(instance.problem.n)]
    seen: dict[int, int] = {}
    count = 0
    while len(seen) < places:
        for agent in agents:
            agent.close()
        for agent in agents:
            for place in instance.coordinate[agent.u[agent.d :]]:
                seen.setdefault(int(place), count)
        z = [agent.u[agent.d :].copy() for agent in agents]
        y = [agent.y.copy() for agent in agents]
        for i, agent in enumerate(agents):
            for j in instance.network.neighbors(i):
                agent.u[agent.d :] |= z[j]
                agent.y |= y[j]
        count += 1
    return [seen[j] for j in range(1, places + 1)]


def stack(instance: HardInstance) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(pattern of K, pattern of the Hessian, seed) on z of a one-agent instance."""
    problem = instance.problem
    agent = instance.problem.agents[0]
    K = np.vstack(
        [dense(agent.B, (problem.m, problem.q)), dense(agent.D, (problem.r[0], problem.q))]
    )
    H, g, _ = agent.objective.quadratic(1, problem.q)
    return K != 0, dense(H, (problem.q + 1, problem.q + 1))[1:, 1:] != 0, g[1:] != 0


def first_calls(instance: HardInstance, places: int) -> list[int]:
    """The same in affine calls; each step applies K and K' at once, which no order can beat."""
    K, H, g = stack(instance)
    z = np.zeros(K.shape[1], dtype=bool)
    y = np.zeros(K.shape[0], dtype=bool)
    seen: dict[int, int] = {}
    count = 0
    while len(seen) < places:
        before = -1
        while before != z.sum():
            before = z.sum()
            z |= g | (H @ z)
        for place in instance.coordinate[z]:
            seen.setdefault(int(place), count)
        z, y = z | (K.T @ y), y | (K @ z)
        count += 1
    return [seen[j] for j in range(1, places + 1)]


def first_gradients(instance: HardInstance, places: int) -> list[int]:
    """The same in gradients, affine calls free."""
    K, H, g = stack(instance)
    z = np.zeros(K.shape[1], dtype=bool)
    seen: dict[int, int] = {}
    count = 0
    while len(seen) < places:
        z |= g | (H @ z)
        count += 1
        before = -1
        while before != z.sum():
            before = z.sum()
            z |= K.T @ (K @ z)
        for place in instance.coordinate[z]:
            seen.setdefault(int(place), count)
    return [seen[j] for j in range(1, places + 1)]


NETWORKED = [
    *(physical_path(m, 2.0, 50.0, 12) for m in (1, 2, 3, 5)),
    physical_path(2, 0.5, 20.0, 12, eps=1e-1),
    communication_path(2, 1.0, 100.0),
    complete_six(1.0, 100.0),
    bounded_angle(2, 100.0),
    bounded_angle(2, 100.0, complete=True),
]
ONE_AGENT = [
    *(matching_path(N, 10.0, length=12) for N in (4, 5, 6, 9)),
    virtual_path(2, 100.0),
    six_block(100.0),
]


def named(instance: HardInstance) -> str:
    return instance.name


@pytest.mark.parametrize("instance", NETWORKED, ids=named)
def test_rounds_before_each_place_are_exactly_as_stated(instance):
    first = first_rounds(instance, 7)
    assert first == [instance.exposure["rounds"].needed(j) for j in range(1, 8)]
    for count in range(first[-1]):
        reached = sum(when <= count for when in first)
        assert instance.frontier("rounds", count) == reached
        assert instance.reachable("rounds", count).sum() == np.sum(instance.coordinate <= reached)


@pytest.mark.parametrize("instance", ONE_AGENT, ids=named)
def test_calls_and_gradients_before_each_place_are_exactly_as_stated(instance):
    assert first_calls(instance, 6) == [instance.exposure["affine"].needed(j) for j in range(1, 7)]
    assert first_gradients(instance, 6) == [1, 2, 3, 4, 5, 6]
    assert [instance.frontier("gradients", k) for k in range(4)] == [0, 1, 2, 3]


@pytest.mark.parametrize("instance", [*NETWORKED, *ONE_AGENT], ids=named)
def test_lower_bound_is_where_the_tail_crosses_eps(instance):
    for eps, resource in itertools.product([0.9, 0.5, 1e-2], instance.exposure):
        bound = instance.lower_bound(resource, eps)
        if bound:
            short = instance.frontier(resource, bound - 1)
            assert instance.tail(short) > eps * instance.execution_radius
        enough = instance.frontier(resource, bound)
        assert instance.tail(enough) <= eps * instance.execution_radius * (1 + 1e-12)


@pytest.mark.parametrize("t", [1.0, 2.0, 8.0])
@pytest.mark.parametrize("m_grp", [1, 3])
@pytest.mark.parametrize("eps", [1e-2, 1e-5])
def test_exact_tail_agrees_with_the_radius_explicit_formula(m_grp, t, eps):
    instance = physical_path(m_grp, t, 50.0, eps=eps)
    formula = radius_explicit_rounds(m_grp, t, 50.0, eps)
    exact = instance.lower_bound("rounds", eps)
    slack = 1e-2 * (m_grp + 1)  # the cut moves the tail by a thousandth of eps
    assert formula - slack <= exact <= formula + (m_grp + 1) + slack


def test_formula_vanishes_when_the_target_is_loose():
    assert radius_explicit_rounds(2, 1.0, 50.0, 0.99) == 0.0


@pytest.mark.parametrize(("M", "t", "kappa"), [(1, 1.0, 100.0), (3, 2.0, 400.0), (2, 6.0, 1e4)])
def test_rounds_at_half_the_radius_grow_like_M_t_sqrt_kappa(M, t, kappa):
    bound = communication_path(M, t, kappa).lower_bound("rounds", 0.5)
    alpha = math.acosh(1 + 3 / (kappa * t * t))
    assert bound >= (M + 1) * (math.floor(1 / (2 * alpha)) - 1)  # the stated tail, 0.998/e
    assert bound >= 0.2 * M * t * math.sqrt(kappa) - (M + 1)


@pytest.mark.parametrize(("N", "kappa"), [(4, 100.0), (9, 100.0), (24, 1000.0)])
@pytest.mark.parametrize("eps", [1e-3, 1e-6])
def test_calls_grow_like_sqrt_kappa_chi_log(N, kappa, eps):
    instance = matching_path(N, kappa, eps=eps)
    order = math.sqrt(kappa) * instance.facts["cross_factor"] * math.log(1 / eps)
    assert 0.15 * order <= instance.lower_bound("affine", eps) <= 2 * order
    gradients = math.sqrt(kappa) * math.log(1 / eps)
    assert 0.2 * gradients <= instance.lower_bound("gradients", eps) <= gradients


def test_refusals():
    instance = communication_path(1, 1.0, 100.0)
    with pytest.raises(InputError, match="there is one on rounds"):
        instance.lower_bound("affine", 0.5)
    with pytest.raises(InputError, match="positive"):
        instance.lower_bound("rounds", 0.0)
