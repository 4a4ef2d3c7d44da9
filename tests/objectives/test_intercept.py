"""Losses that fit their intercept, weights of rows, and the multinomial loss on several rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from ccmac.errors import InputError
from ccmac.objectives import Function, Hinge, Huber, Intercept, Logistic, Multinomial, Quadratic
from ccmac.objectives.checks import gradient_slope

RNG = np.random.default_rng(3)
V = RNG.standard_normal(9)
SIGNS = np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0, -1.0, 1.0, 1.0])
WEIGHTS = np.array([2.0, 1.0, 3.0, 1.0, 1.0, 2.0, 1.0, 0.0, 1.0])
CLASSES = np.array([0.0, 2.0, 1.0])


@pytest.mark.parametrize("loss", [Logistic(y=SIGNS), Huber(y=2 * SIGNS, delta=0.3), Hinge(y=SIGNS)])
def test_the_intercept_is_the_best_one(loss: Logistic | Huber | Hinge) -> None:
    found = scipy.optimize.minimize_scalar(lambda b: loss.value_at(V + b), tol=1e-12)
    assert Intercept(loss).value_at(V) == pytest.approx(found.fun, abs=1e-9)
    shifted = Intercept(loss).offset(V + 5.0)[0]
    assert loss.value_at(V + 5.0 + shifted) == pytest.approx(found.fun, abs=1e-9)


@pytest.mark.parametrize("M", [None, RNG.standard_normal((9, 4))])
def test_a_hinge_with_intercept_has_its_epigraph(M: np.ndarray | None) -> None:
    """Value, slacks, slope far out; steady multipliers give lower bounds and balance."""
    f = Intercept(Hinge(M, y=SIGNS, weight=WEIGHTS))
    size = 9 if M is None else 4
    (term,) = f.polyhedral_at(size).terms
    random = np.random.default_rng(1)
    for _ in range(20):
        v, other = 2 * random.standard_normal((2, size))
        image = term.R @ v - term.h
        t = term.slack(term.R @ v - term.h)
        assert term.value(image) == pytest.approx(f.value_at(v), abs=1e-12)
        assert term.a @ t == pytest.approx(f.value_at(v), abs=1e-12)
        np.testing.assert_allclose(term.T @ t, -image, atol=1e-12)
        assert (t[:-1] >= 0).all()
        assert term.value(term.R @ v) == pytest.approx(f.value_at(1e9 * v) / 1e9, rel=1e-6)
        for nu in (random.uniform(-3.0, 1.0, 9), term.multiplier(image)):
            steady = term.steady(nu)
            assert abs(steady @ term.signs) <= 1e-14
            assert (term.a + term.T.T @ steady >= -1e-14).all()
            assert f.value_at(other) >= steady @ (term.R @ other - term.h) - 1e-12
    assert not term.steady(np.ones(9)).any()


def test_class_intercepts_are_the_best_ones() -> None:
    loss = Multinomial(CLASSES, 3, [1.0, 2.0, 0.5])
    profiled = Intercept(loss)
    for scale in (1.0, 30.0, 1e3, 1e5):
        v = scale * V
        b = profiled.offset(v)
        slopes = loss.gradient_at((v.reshape(3, 3) + b).ravel()).reshape(3, 3)
        np.testing.assert_allclose(slopes.sum(axis=0), 0.0, atol=1e-12)
        assert b.sum() == pytest.approx(0.0, abs=1e-12 * scale)
    for seed in range(3):
        assert gradient_slope(profiled, 4, 5, np.random.default_rng(seed)) > 1.8


@pytest.mark.parametrize("kind", [Logistic, Hinge])
def test_weights_are_repetitions(kind: type[Logistic | Hinge]) -> None:
    repeated = np.repeat(np.arange(9), WEIGHTS.astype(int))
    weighted = kind(y=SIGNS, weight=WEIGHTS)
    plain = kind(y=SIGNS[repeated])
    assert weighted.value_at(V) == pytest.approx(plain.value_at(V[repeated]))
    summed = np.zeros(9)
    np.add.at(summed, repeated, plain.gradient_at(V[repeated]))
    np.testing.assert_allclose(weighted.gradient_at(V), summed, atol=1e-12)


def test_two_classes_are_logistic() -> None:
    binary = Logistic(y=SIGNS)
    scores = np.stack([np.zeros(9), V], axis=1).ravel()
    both = Multinomial((SIGNS > 0).astype(float), 2)
    assert both.value_at(scores) == pytest.approx(binary.value_at(V))
    np.testing.assert_allclose(both.gradient_at(scores)[1::2], binary.gradient_at(V), atol=1e-14)


@pytest.mark.parametrize(
    "g",
    [
        Intercept(Logistic(y=SIGNS, weight=WEIGHTS)),
        Multinomial(CLASSES, 3, [1.0, 2.0, 0.5]),
        Intercept(Multinomial(CLASSES, 3)),
        Logistic(y=SIGNS),
        Intercept(Quadratic(WEIGHTS, V)),
    ],
)
def test_the_second_derivative_on_a_span(g: Function) -> None:
    E = RNG.standard_normal((4, 9))
    h = 1e-5
    rows = [(g.gradient_at(V + h * e) - g.gradient_at(V - h * e)) / (2 * h) for e in np.eye(9)]
    np.testing.assert_allclose(g.gram(V, E), E @ np.array(rows) @ E.T, atol=1e-8)


def test_what_cannot_be_fitted_is_refused() -> None:
    with pytest.raises(InputError, match="would be infinite"):
        Intercept(Logistic(y=np.ones(3)))
    with pytest.raises(InputError, match="would be infinite"):
        Intercept(Multinomial([0.0, 1.0], 3))
    with pytest.raises(InputError, match="without M and ridge"):
        Intercept(Logistic(y=SIGNS, ridge=0.1))
    with pytest.raises(InputError, match="no class 0"):
        Multinomial([3.0], 3)
    with pytest.raises(InputError, match="one for each row"):
        Multinomial([1.0], 3, [1.0, 2.0])
    with pytest.raises(InputError, match="2 entries but there are 9 terms"):
        Logistic(y=SIGNS, weight=[1.0, 2.0])
