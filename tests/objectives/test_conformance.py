"""Every registered objective keeps the protocol's promises."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.objectives import KINDS, Function, Objective
from ccmac.objectives.checks import gradient_slope
from ccmac.objectives.custom import Rates
from objectives.examples import CASES, EXAMPLES, D, N, Q, build


def over(wanted: Callable[[Objective], bool]) -> pytest.MarkDecorator:
    """Parametrize over the examples that have what the test is about."""
    cases = [case for case in CASES if wanted(build(case))]
    return pytest.mark.parametrize("case", cases, ids=[f"{kind}-{k}" for kind, k in cases])


def having(*capabilities: str) -> pytest.MarkDecorator:
    """Parametrize over the examples with at least one of the capabilities."""
    return over(lambda objective: bool(objective.capabilities & set(capabilities)))


every = over(lambda objective: True)


def lipschitz_probe(
    objective: Objective, d: int, q: int, rng: np.random.Generator, *, powers: int = 6
) -> Rates:
    """The rates at which the gradient changes: random pairs, and power iterations."""
    rates = Rates()
    L = objective.curvature(d, q).L

    def slope(u: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.concatenate(objective.gradient(u[:d], u[d:]))

    for _ in range(4):
        a, b = (10.0 ** rng.uniform(-1, 1) * rng.standard_normal(d + q) for _ in range(2))
        at_a = slope(a)
        rates.see(a, at_a, b, slope(b), L)
        h = 1e-3 * (1.0 + float(np.linalg.norm(a)))
        for largest in (True, False):
            v = rng.standard_normal(d + q)
            for _ in range(powers):
                v /= float(np.linalg.norm(v)) or 1.0
                at_b = slope(a + h * v)
                rates.see(a, at_a, a + h * v, at_b, L)
                ahead = (at_b - at_a) / h if largest else rates.high * v - (at_b - at_a) / h
                v = ahead if 0 < float(np.linalg.norm(ahead)) < math.inf else v
    return rates


def test_every_registered_kind_has_an_example() -> None:
    assert set(EXAMPLES) == set(KINDS)
    assert all(type(build(case)) is KINDS[case[0]] for case in CASES)


@having("gradient")
def test_gradient_belongs_to_the_value(case: tuple[str, int]) -> None:
    objective = build(case)
    for seed in range(5):
        assert gradient_slope(objective, D, Q, np.random.default_rng(seed)) > 1.8


@having("gradient", "subgradient")
def test_subgradient_inequality(case: tuple[str, int]) -> None:
    objective = build(case)
    rng = np.random.default_rng(0)
    mu = objective.curvature(D, Q).mu
    for _ in range(50):
        u, v = (rng.standard_normal(N) * 10.0 ** rng.uniform(-1, 1) for _ in range(2))
        slope = np.concatenate(objective.gradient(u[:D], u[D:])) @ (v - u)
        lower = objective.value(u[:D], u[D:]) + slope + 0.5 * mu * ((v - u) @ (v - u))
        value = objective.value(v[:D], v[D:])
        assert value >= lower - 1e-12 * (1 + abs(lower) + abs(value))


@having("prox")
def test_prox_satisfies_moreau(case: tuple[str, int]) -> None:
    """w = (v - p)/t is a subgradient at the prox p: by values near, far and along single axes."""
    objective = build(case)
    for steps in ((1.0, 1.0), (0.01, 0.01), (30.0, 30.0), (0.5, 4.0)):
        rng = np.random.default_rng(0)
        for v in 2 * rng.standard_normal((3, N)):
            p = np.concatenate(objective.prox(v[:D], v[D:], *steps))
            w = (v - p) / np.repeat(steps, [D, Q])
            base = objective.value(p[:D], p[D:])
            assert math.isfinite(base)
            moves = np.concatenate([rng.standard_normal((4, N)), np.eye(N), -np.eye(N)])
            for move in np.concatenate([2e-1 * moves, 2e-3 * moves, 2e-5 * moves]):
                value = objective.value(*np.split(p + move, [D]))
                noise = 1e-14 * (abs(base) + abs(value) + abs(w) @ (np.abs(p) + 1))
                assert value >= base + w @ move - 1e-9 * np.linalg.norm(move) - noise
            if "gradient" in objective.capabilities:
                slope = np.concatenate(objective.gradient(p[:D], p[D:]))
                np.testing.assert_allclose(slope, w, atol=1e-9 * (1 + np.linalg.norm(w)))


@having("gradient")
def test_declared_constants_hold_and_are_tight_for_quadratics(case: tuple[str, int]) -> None:
    objective = build(case)
    seen = lipschitz_probe(objective, D, Q, np.random.default_rng(0), powers=40)
    shape = objective.curvature(D, Q)
    assert not seen.refute(shape.L, shape.mu)
    assert shape.mu <= seen.low + 1e-9
    assert seen.high <= shape.L * (1 + 1e-9)
    if "quadratic" in objective.capabilities:
        values = np.linalg.eigvalsh(_dense(objective.quadratic(D, Q)[0]))
        assert pytest.approx(values[-1], rel=1e-10, abs=1e-14) == shape.L
        assert shape.mu == pytest.approx(max(values[0], 0.0), rel=1e-8, abs=1e-12)


def _dense(H: np.ndarray | sp.csr_array) -> np.ndarray:
    return H.toarray() if sp.issparse(H) else np.asarray(H)


@having("quadratic")
def test_quadratic_form_is_the_function(case: tuple[str, int]) -> None:
    objective = build(case)
    H, g, c = objective.quadratic(D, Q)
    rng = np.random.default_rng(3)
    for _ in range(5):
        u = rng.standard_normal(N)
        assert objective.value(u[:D], u[D:]) == pytest.approx(0.5 * u @ (H @ u) - g @ u + c)
        gradient = np.concatenate(objective.gradient(u[:D], u[D:]))
        np.testing.assert_allclose(gradient, H @ u - g, rtol=1e-12, atol=1e-12)


@having("gradient")
def test_block_and_scaled_curvature(case: tuple[str, int]) -> None:
    """Against the Hessian by blocks; for other functions the bounds must at least hold."""
    objective = build(case)
    shape = objective.curvature(D, Q)
    t = 0.3
    s = 2.0
    mu, L = objective.scaled_curvature(D, Q, t, s)
    scale = np.repeat([t, s], [D, Q])
    if "quadratic" in objective.capabilities:
        H = _dense(objective.quadratic(D, Q)[0])
        blocks = (H[:D, :D], shape.L_x, shape.mu_x), (H[D:, D:], shape.L_z, shape.mu_z)
        for block, high, low in blocks:
            values = np.linalg.eigvalsh(block)
            assert values[-1] <= high * (1 + 1e-10)
            assert low <= values[0] + 1e-10
        values = np.linalg.eigvalsh(scale[:, None] * H * scale)
        assert values[-1] <= L * (1 + 1e-10)
        assert mu <= values[0] + 1e-10
    rng = np.random.default_rng(4)
    for _ in range(30):
        u = rng.standard_normal(N)
        v = rng.standard_normal(N)
        a = scale * u
        b = scale * v
        change = scale * (
            np.concatenate(objective.gradient(a[:D], a[D:]))
            - np.concatenate(objective.gradient(b[:D], b[D:]))
        )
        assert np.linalg.norm(change) <= L * np.linalg.norm(u - v) * (1 + 1e-9) + 1e-12
        assert change @ (u - v) >= mu * ((u - v) @ (u - v)) - 1e-10


@over(lambda f: math.isfinite(f.lipschitz(D, Q)))
def test_lipschitz_bound_covers_the_subgradients(case: tuple[str, int]) -> None:
    objective = build(case)
    bound = objective.lipschitz(D, Q)
    rng = np.random.default_rng(5)
    norms = [
        np.linalg.norm(np.concatenate(objective.gradient(u[:D], u[D:])))
        for u in rng.standard_normal((100, N)) * 5
    ]
    assert max(norms) <= bound * (1 + 1e-12)


@every
def test_state_round_trip(case: tuple[str, int]) -> None:
    objective = build(case)
    copy = type(objective).from_state(objective.state())
    rng = np.random.default_rng(6)
    u = rng.uniform(-0.2, 0.2, N)
    assert copy.value(u[:D], u[D:]) == objective.value(u[:D], u[D:])
    assert copy.capabilities == objective.capabilities
    assert copy.curvature(D, Q) == objective.curvature(D, Q)


@over(lambda f: f.dim is not None)
def test_wrong_size_is_refused(case: tuple[str, int]) -> None:
    objective = build(case)
    objective.check(D, Q)
    with pytest.raises(InputError, match="entries"):
        objective.check(D, Q + 1)


@every
def test_undeclared_oracles_refuse(case: tuple[str, int]) -> None:
    objective = build(case)
    x = np.zeros(D)
    z = np.zeros(Q)
    if "prox" not in objective.capabilities:
        with pytest.raises(TypeError, match="prox"):
            objective.prox(x, z, 1.0, 1.0)
    if "quadratic" not in objective.capabilities:
        with pytest.raises(TypeError, match="quadratic"):
            objective.quadratic(D, Q)
    if not objective.capabilities & {"gradient", "subgradient"}:
        with pytest.raises(TypeError, match="gradient"):
            objective.gradient(x, z)


@every
def test_inputs_are_left_alone(case: tuple[str, int]) -> None:
    objective = build(case)
    rng = np.random.default_rng(7)
    x = rng.standard_normal(D)
    z = rng.standard_normal(Q)
    before = x.copy(), z.copy()
    if objective.capabilities & {"gradient", "subgradient"}:
        gradient = objective.gradient(x, z)
        assert not any(np.shares_memory(g, v) for g in gradient for v in (x, z))
    if "prox" in objective.capabilities:
        objective.prox(x, z, 1.0, 1.0)
    assert np.array_equal(x, before[0])
    assert np.array_equal(z, before[1])


@over(lambda f: isinstance(f, Function) and f.coordinatewise)
def test_functions_are_coordinatewise_where_they_say_so(case: tuple[str, int]) -> None:
    function = build(case)
    assert isinstance(function, Function)
    rng = np.random.default_rng(8)
    u, v = rng.uniform(-0.2, 0.2, (2, N))
    swapped = u.copy()
    swapped[:3] = v[:3]
    other = v.copy()
    other[:3] = u[:3]
    total = function.value_at(u) + function.value_at(v)
    assert function.value_at(swapped) + function.value_at(other) == pytest.approx(total)
