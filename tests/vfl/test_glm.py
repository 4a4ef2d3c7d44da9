"""Poisson, gamma and Tweedie regression against scikit-learn on the joined table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import (
    GammaRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    TweedieRegressor,
)

import ccmac
from ccmac.errors import InputError
from ccmac.objectives import Tweedie
from ccmac.vfl import (
    VerticalGamma,
    VerticalLogisticRegression,
    VerticalPoisson,
    VerticalRidge,
    VerticalTweedie,
    problem,
)

ROWS = 1500
RANDOM = np.random.default_rng(0)
X = pd.DataFrame(RANDOM.standard_normal((ROWS, 6)) * [1, 0.1, 10, 1, 1, 3], columns=list("abcdef"))
MEANS = np.exp(X.to_numpy() @ [0.3, 2.0, 0.02, -0.2, 0.0, 0.1] + 0.5)
WEIGHTS = RANDOM.uniform(0.0, 2.0, ROWS)
WEIGHTS[:9] = 0.0
Y = {
    1.0: RANDOM.poisson(MEANS).astype(float),
    1.5: np.array([RANDOM.gamma(1.5, 1.0, k).sum() for k in RANDOM.poisson(MEANS)]),
    2.0: RANDOM.gamma(2.0, MEANS / 2),
}
TIGHT: dict[str, Any] = {"tol": 1e-12, "max_iter": 10_000, "solver": "newton-cholesky"}
PAIRS = {
    1.0: (VerticalPoisson(parties=3), PoissonRegressor(**TIGHT)),
    1.5: (VerticalTweedie(1.5, parties=3), TweedieRegressor(power=1.5, link="log", **TIGHT)),
    2.0: (VerticalGamma(parties=3), GammaRegressor(**TIGHT)),
}


@pytest.mark.parametrize("power", PAIRS)
@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_fits_are_those_of_the_joined_table(power: float, alpha: float, weights: Any) -> None:
    ours, theirs = (clone(model).set_params(alpha=alpha) for model in PAIRS[power])
    ours.fit(X, Y[power], sample_weight=weights)
    theirs.fit(X, Y[power], sample_weight=weights)
    assert ours.result_.status == "optimal"
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-8)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-6)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6)
    assert ours.score(X, Y[power]) == pytest.approx(theirs.score(X, Y[power]), abs=1e-8)


def test_an_exposure_is_a_weighted_rate() -> None:
    exposure = pd.Series(np.random.default_rng(2).uniform(0.2, 3.0, ROWS), index=X.index)
    counts = np.random.default_rng(3).poisson(MEANS * exposure)
    tables = {"one": X[["a", "b"]].sample(frac=1, random_state=0), "two": X[["c", "d", "e", "f"]]}
    labels = pd.Series(counts, index=X.index)
    ours = VerticalPoisson(0.0).fit(tables, labels, exposure=exposure.sample(frac=1))
    theirs = PoissonRegressor(alpha=0, **TIGHT)
    theirs.fit(X, counts / exposure, sample_weight=exposure)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-8)
    predicted = ours.predict(
        {name: t.sort_index() for name, t in tables.items()}, exposure=exposure
    )
    np.testing.assert_allclose(predicted, theirs.predict(X) * exposure, rtol=1e-6)
    with pytest.raises(InputError, match="give one of them"):
        ours.fit(tables, labels, exposure=exposure, offset=exposure)
    with pytest.raises(InputError, match="give positive numbers"):
        ours.fit(tables, labels, exposure=-exposure)


def test_no_penalty_is_none() -> None:
    y = X["a"] + 3 * X["f"] + RANDOM.standard_normal(ROWS)
    ours: Any = VerticalRidge(0.0, parties=3).fit(X, y)
    theirs: Any = LinearRegression().fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8, atol=1e-9)
    label = np.where(y > 0, "high", "low")
    ours = VerticalLogisticRegression(np.inf, parties=3).fit(X, label)
    theirs = LogisticRegression(C=np.inf, tol=1e-12, solver="newton-cholesky").fit(X, label)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-8)
    assert ours.result_.status == "optimal"


@pytest.mark.parametrize(
    ("loss", "owner"), [("poisson", None), ("gamma", None), ("tweedie", None), ("gamma", 1)]
)
def test_as_a_problem(loss: str, owner: int | None) -> None:
    """Also where one party alone has the loss: by many steps of few rows."""
    power = {"poisson": 1.0, "gamma": 2.0, "tweedie": 1.5}[loss]
    rows = ROWS if owner is None else 50
    made = problem(
        X[:rows],
        Y[power][:rows],
        3,
        loss,
        0.1,
        label_owner=owner,
        intercept=True,
        power=1.5,
        partition_seed=1,
    )
    result = ccmac.solve(made, "ring", tol=1e-7)
    theirs = clone(PAIRS[power][1]).set_params(alpha=0.1).fit(X[:rows], Y[power][:rows])
    assert result.status == "optimal"
    np.testing.assert_allclose(made.weights(result), theirs.coef_, atol=1e-6)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match=r"power: is 0\.5"):
        VerticalTweedie(0.5, parties=2).fit(X, Y[1.0])
    with pytest.raises(InputError, match="all must be positive"):
        VerticalGamma(parties=2).fit(X, Y[1.0])
    with pytest.raises(InputError, match="all must be not negative"):
        VerticalPoisson(parties=2).fit(X, -Y[1.0])
    with pytest.raises(InputError, match="all values are zero"):
        Tweedie(y=[0.0, 0.0])
