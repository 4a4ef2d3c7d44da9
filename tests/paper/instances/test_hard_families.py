"""Solutions, angles, radii and multipliers of the hard families against dense linear algebra."""

from __future__ import annotations

import math
from functools import cache

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
    six_block,
    solve_kkt,
    two_agent,
    two_rows,
    virtual_path,
)
from paper.instances.dense_geometry import channels, friedrichs_cosine, multiplier_scale, row_basis

FAMILIES = {
    "matching 4": lambda: matching_path(4, 10.0, eps=1e-2),
    "matching 5": lambda: matching_path(5, 4.0, eps=1e-2),
    "matching 9": lambda: matching_path(9, 30.0, eps=1e-1),
    "physical 1": lambda: physical_path(1, 2.0, 50.0, 20),
    "physical 2": lambda: physical_path(2, 2.0, 50.0, 21),
    "physical 3": lambda: physical_path(3, 0.5, 20.0, eps=1e-1),
    "communication 1": lambda: communication_path(1, 1.0, 100.0),
    "communication 2": lambda: communication_path(2, 4.0 / 3.0, 100.0),
    "complete six": lambda: complete_six(1.0, 100.0),
    "bounded angle": lambda: bounded_angle(1, 100.0),
    "bounded angle, complete": lambda: bounded_angle(2, 100.0, complete=True),
    "virtual path": lambda: virtual_path(2, 100.0),
    "six blocks": lambda: six_block(100.0),
}


@cache
def family(name: str) -> HardInstance:
    return FAMILIES[name]()


@pytest.fixture(params=FAMILIES)
def instance(request) -> HardInstance:
    return family(request.param)


def test_closed_form_solution_solves_the_kkt_system(instance):
    solution = solve_kkt(instance.problem)
    assert solution.unique
    np.testing.assert_allclose(solution.z, instance.z, atol=1e-12)
    for x, expected in zip(solution.x, instance.x, strict=True):
        np.testing.assert_allclose(x, expected, atol=1e-12)


def test_angle_and_cross_factor(instance):
    cosine = friedrichs_cosine(instance.problem)
    assert instance.facts["friedrichs_cosine"] == pytest.approx(cosine, abs=1e-10)
    chi = math.sqrt((1 + cosine) / (1 - cosine))
    assert instance.facts["cross_factor"] == pytest.approx(chi, rel=1e-9)


def test_whitened_stack_has_condition_chi_squared(instance):
    K = np.vstack([row_basis(K) for K in channels(instance.problem)])
    values = np.linalg.svd(K, compute_uv=False)
    positive = values[values > 1e-9]
    chi = instance.facts["cross_factor"]
    assert (positive[0] / positive[-1]) ** 2 == pytest.approx(chi**2, rel=1e-8)


def test_each_channel_is_a_multiple_of_a_partial_isometry(instance):
    values = np.linalg.svd(channels(instance.problem)[0], compute_uv=False)
    positive = values[values > 1e-9]
    if positive.size:
        assert positive[0] / positive[-1] == pytest.approx(1.0, abs=1e-12)


def test_radius_is_that_of_the_execution_space(instance):
    assert instance.facts["radius"] == pytest.approx(instance.execution_radius, rel=1e-13)


def test_multiplier_bound_holds(instance):
    scale = multiplier_scale(instance.problem, instance.x, instance.z, L=1.0)
    assert scale <= instance.facts["multiplier_bound"]


@pytest.mark.parametrize("M", [1, 2])
@pytest.mark.parametrize(("kappa", "t"), [(100.0, 1.0), (100.0, 4 / 3), (400.0, 1.0)])
def test_radius_uniform_family_has_radius_and_multiplier_as_stated(M, kappa, t):
    instance = communication_path(M, t, kappa)
    squared = instance.facts["radius"] ** 2
    assert squared == pytest.approx(M * (3 + t * t * instance.facts["energy"]), rel=1e-13)
    assert 3 * M <= squared <= M * (3 + 4 / kappa)
    bound = (7 / math.sqrt(kappa) + 2 / kappa) / math.sqrt(3)
    assert instance.facts["multiplier_bound"] == pytest.approx(bound)
    assert multiplier_scale(instance.problem, instance.x, instance.z, 1.0) <= bound < 1


def test_explicit_multiplier_of_the_communication_family():
    """lambda_i = -L h x_i and d_i = -(gradient in u_i) - t R' (...) sum to zero over the agents."""
    t = 1.5
    kappa = 100.0
    instance = communication_path(2, t, kappa)
    mu = 1 / kappa
    u = instance.z
    beta = instance.facts["beta"]
    length = len(u)
    pair = np.array([1.0, -1.0]) / math.sqrt(2)
    P = {1: np.zeros((length, length)), 3: np.zeros((length, length))}
    for j in range(length - 1):
        P[3 if j % 2 == 0 else 1][j : j + 2, j : j + 2] += np.outer(pair, pair)
    e1 = np.eye(length)[0]
    d = {1: beta * e1 - mu * u - t * t * P[1] @ u, 2: -mu * u, 3: -mu * u - t * t * P[3] @ u}
    np.testing.assert_allclose(d[1] + d[2] + d[3], 0.0, atol=1e-14)
    h = math.sqrt(1 + t * t)
    links = sum(float(h * h * x @ x) for x in instance.x)
    norm = math.sqrt(links + 2 * sum(float(v @ v) for v in d.values()))
    scale = instance.facts["sigma"] * norm / instance.facts["radius"]
    assert scale <= instance.facts["multiplier_bound"]
    exact = multiplier_scale(instance.problem, instance.x, instance.z, 1.0)
    assert exact == pytest.approx(scale, rel=1e-9)  # unique: the two row spaces are disjoint


@pytest.mark.parametrize("t", [0.5, 2.0, 8.0])
def test_physical_path_constants(t):
    instance = physical_path(2, t, 50.0, eps=1e-3)
    r = math.exp(-math.acosh(1 + 3 / (50 * t * t)))
    energy = (1 - r) * (3 + r) / 2
    cut = instance.facts["truncation_error"]
    assert cut < 1e-6
    assert instance.facts["rate"] == pytest.approx(r, rel=1e-12)
    assert instance.facts["energy"] == pytest.approx(energy, abs=10 * cut)
    full = math.sqrt(2 * (3 + t * t * energy))
    assert instance.facts["radius"] == pytest.approx(full, abs=10 * cut * full)
    xi = math.sqrt(1 - r * r) / t * (3 / 50 + t * t / 2 * (3 - r))
    assert instance.facts["xi"] == pytest.approx(xi, rel=1e-12)


@pytest.mark.parametrize("t", [-3.0, -0.5, 0.0, 1.0, 10.0])
def test_two_agents_keep_their_solution_at_every_angle(t):
    instance = two_agent(t)
    solution = solve_kkt(instance.problem)
    np.testing.assert_allclose(solution.vector, 0.25, atol=1e-14)
    assert solution.coupled[0] == pytest.approx(instance.facts["price"])
    assert solution.objective == pytest.approx(instance.facts["objective"])
    assert friedrichs_cosine(instance.problem) == pytest.approx(abs(t) / math.sqrt(2 + t * t))
    assert instance.facts["friedrichs_cosine"] == pytest.approx(abs(t) / math.sqrt(2 + t * t))


@pytest.mark.parametrize("theta", [0.01, 0.5, math.pi / 2])
def test_two_rows_in_the_plane(theta):
    instance = two_rows(theta)
    np.testing.assert_allclose(solve_kkt(instance.problem).z, instance.z, atol=1e-10)
    values = np.linalg.svd(np.vstack(channels(instance.problem)), compute_uv=False)
    kappa = (values[0] / values[1]) ** 2
    assert kappa == pytest.approx(1 / math.tan(theta / 2) ** 2, rel=1e-9)
    assert instance.facts["cross_factor"] ** 2 == pytest.approx(kappa, rel=1e-9)
    assert friedrichs_cosine(instance.problem) == pytest.approx(
        instance.facts["friedrichs_cosine"], abs=1e-9
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: matching_path(3, 10.0), "N >= 4"),
        (lambda: physical_path(0, 1.0, 10.0), "m_grp >= 1"),
        (lambda: physical_path(1, 0.0, 10.0), "t > 0"),
        (lambda: communication_path(1, 0.5, 100.0), "t >= 1"),
        (lambda: complete_six(1.0, 50.0), "kappa >= 100"),
        (lambda: bounded_angle(3, 100.0, complete=True), "M = 2"),
        (lambda: virtual_path(1, 100.0), "six_block"),
        (lambda: two_agent(math.inf), "finite"),
        (lambda: two_rows(0.0), "pi/2"),
    ],
)
def test_refusals_name_the_remedy(make, words):
    with pytest.raises(InputError, match=words):
        make()
