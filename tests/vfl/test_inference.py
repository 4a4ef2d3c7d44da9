"""Standard errors, tests and likelihoods against statsmodels on the joined table."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import statsmodels.api as sm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.exceptions import ConvergenceWarning

from ccmac.errors import InputError
from ccmac.paper import data
from ccmac.vfl import (
    VerticalGamma,
    VerticalInverseGaussian,
    VerticalLasso,
    VerticalLogisticRegression,
    VerticalPoisson,
    VerticalRidge,
    VerticalTweedie,
)

RANDOM = np.random.default_rng(0)


def cancer() -> tuple[Any, Any]:
    X, y = load_breast_cancer(return_X_y=True)
    return X[:, :6] / X[:, :6].std(axis=0) + RANDOM.standard_normal((len(y), 6)), y


def wine() -> tuple[Any, Any]:
    X, y = load_wine(return_X_y=True)
    return X[:, [0, 1, 4]] + RANDOM.standard_normal((len(y), 3)), (y == 1).astype(int)


@cache
def a9a() -> tuple[Any, Any]:
    found = data.load("a9a", fallback=True)
    X = found.X[:3000].toarray()
    kept: list[int] = []
    for j in np.flatnonzero((X.mean(axis=0) > 0.1) & (X.mean(axis=0) < 0.9)):
        if np.linalg.cond(constant_last(X[:, [*kept, j]])) < 30:
            kept.append(j)
    return X[:, kept[:8]], (found.y[:3000] > 0).astype(int)


def counts() -> tuple[Any, Any]:
    found = sm.datasets.randhie.load_pandas()
    return found.exog.to_numpy(), found.endog.to_numpy()


def close(ours: Any, theirs: Any, order: Any = None) -> None:
    """Estimates to 1e-6, standard errors to 1e-5; ours has the intercept last."""
    found = ours.summary() if order is None else order
    size = np.abs(theirs.bse) + np.abs(theirs.params)
    np.testing.assert_array_less(np.abs(found.coef - theirs.params), 1e-6 * size)
    np.testing.assert_allclose(found.std_errors, theirs.bse, rtol=1e-5)
    np.testing.assert_allclose(found.statistics, theirs.tvalues, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.p_values, theirs.pvalues, rtol=1e-3, atol=1e-8)
    reach = 1e-5 * np.abs(theirs.bse)[:, None]
    assert (np.abs(found.intervals - theirs.conf_int()) <= 3 * reach + 1e-6 * size[:, None]).all()


def constant_last(X: Any) -> Any:
    return np.column_stack([X, np.ones(len(X))])


@pytest.mark.parametrize("load", [cancer, wine, a9a])
@pytest.mark.parametrize("robust", [False, True])
def test_logistic_regression(load: Any, robust: bool) -> None:
    X, y = load()
    ours = VerticalLogisticRegression(np.inf, parties=3).fit(X, y)
    assert ours.result_.status == "optimal"
    kind = {"cov_type": "HC0"} if robust else {}
    theirs = sm.GLM(y, constant_last(X), family=sm.families.Binomial()).fit(tol=1e-14, **kind)
    found = ours.summary(robust=robust)
    close(ours, theirs, found)
    assert found.log_likelihood == pytest.approx(theirs.llf, rel=1e-9)
    assert found.aic == pytest.approx(theirs.aic, rel=1e-9)
    assert found.dispersion == 1


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_least_squares(robust: bool, intercept: bool) -> None:
    X, y = load_diabetes(return_X_y=True)
    ours = VerticalRidge(0.0, parties=3, fit_intercept=intercept).fit(X, y)
    kind = {"cov_type": "HC0"} if robust else {}
    theirs = sm.OLS(y, constant_last(X) if intercept else X).fit(**kind)
    close(ours, theirs, ours.summary(robust=robust))
    known = sm.GLM(y, constant_last(X) if intercept else X).fit()
    assert ours.inference_.dispersion == pytest.approx(known.scale)
    assert ours.inference_.log_likelihood == pytest.approx(theirs.llf)


def test_counts_with_an_exposure() -> None:
    X, y = counts()
    X, y = X[::7], y[::7]
    exposure = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    ours = VerticalPoisson(0.0, parties=3).fit(X, y, exposure=exposure)
    family = sm.families.Poisson()
    theirs = sm.GLM(y, constant_last(X), family=family, exposure=exposure).fit(tol=1e-14)
    close(ours, theirs)
    found = ours.inference_
    assert found.aic == pytest.approx(theirs.aic)
    assert found.deviance == pytest.approx(theirs.deviance)
    robust = sm.GLM(y, constant_last(X), family=family, exposure=exposure).fit(cov_type="HC0")
    np.testing.assert_allclose(ours.summary(robust=True).std_errors, robust.bse, rtol=1e-5)
    new = ours.predict(X[:5], exposure=exposure[:5])
    np.testing.assert_allclose(new, theirs.mu[:5], rtol=1e-6)


SETS: dict[str, tuple[Any, Any]] = {
    "anes96": (VerticalLogisticRegression(np.inf), sm.families.Binomial()),
    "ccard": (VerticalRidge(0.0), sm.families.Gaussian()),
    "committee": (VerticalPoisson(0.0), sm.families.Poisson()),
    "cpunish": (VerticalPoisson(0.0), sm.families.Poisson()),
    "longley": (VerticalRidge(0.0), sm.families.Gaussian()),
    "scotland": (VerticalGamma(0.0), sm.families.Gamma(sm.families.links.Log())),
    "spector": (VerticalLogisticRegression(np.inf), sm.families.Binomial()),
    "stackloss": (VerticalRidge(0.0), sm.families.Gaussian()),
}


def bundled(name: str) -> tuple[Any, Any]:
    found = getattr(sm.datasets, name).load_pandas()
    X, y = found.exog.select_dtypes("number"), found.endog.to_numpy()
    if name == "anes96":
        X, y = found.data[["logpopul", "selfLR", "age", "educ", "income"]], found.data["vote"]
    return np.asarray(X.loc[:, X.nunique() > 1]), np.asarray(y)


@pytest.mark.parametrize("name", SETS)
def test_sets_that_come_with_statsmodels(name: str) -> None:
    X, y = bundled(name)
    ours, family = SETS[name]
    fitted = clone(ours).set_params(parties=2).fit(X, y)
    if name in ("ccard", "longley", "stackloss"):
        theirs = sm.OLS(y, constant_last(X)).fit()
    else:
        theirs = sm.GLM(y, constant_last(X), family=family).fit(tol=1e-15, maxiter=500)
    close(fitted, theirs, fitted.summary(information="expected"))
    assert fitted.result_.status == "optimal"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("power", [1.4, 2.0, 3.0])
def test_amounts(power: float, weighted: bool) -> None:
    random = np.random.default_rng(5)
    X = random.standard_normal((800, 4)) * [1, 0.1, 5, 1]
    mu = np.exp(X @ [0.3, 1.0, 0.05, 0.0] + 0.4)
    if power == 2:
        y = random.gamma(2.0, mu / 2)
        ours: Any = VerticalGamma(0.0, parties=2)
    elif power == 3:
        y = random.wald(mu, 20 * mu)
        ours = VerticalInverseGaussian(0.0, parties=2)
    else:
        y = np.array([random.gamma(1.5, 1.0, k).sum() for k in random.poisson(mu)])
        ours = VerticalTweedie(power, alpha=0.0, parties=2)
    s = random.uniform(0.2, 2.0, len(y)) if weighted else None
    ours.fit(X, y, sample_weight=s)
    link = sm.families.links.Log()
    family = {
        1.4: sm.families.Tweedie(link, var_power=1.4),
        2.0: sm.families.Gamma(link),
        3.0: sm.families.InverseGaussian(link),
    }[power]
    theirs = sm.GLM(y, constant_last(X), family=family, var_weights=s).fit(tol=1e-15, maxiter=500)
    close(ours, theirs, ours.summary(information="expected"))
    observed = np.linalg.inv(-theirs.model.hessian(theirs.params, observed=True))
    errors = ours.inference_.std_errors
    np.testing.assert_allclose(errors, np.sqrt(np.diagonal(observed)), rtol=1e-5)
    assert ours.inference_.dispersion == pytest.approx(theirs.scale)
    if power >= 2:
        assert ours.inference_.log_likelihood == pytest.approx(theirs.llf)
    assert ours.result_.status == ("optimal" if power <= 2 else "converged")


@pytest.mark.parametrize("sparse", [False, True])
def test_a_penalty_adds_to_the_information(sparse: bool) -> None:
    X, y = a9a()
    ours = VerticalLogisticRegression(0.5, parties=2).fit(sp.csr_array(X) if sparse else X, y)
    p = ours.predict_proba(X)[:, 1]
    wide = constant_last(X)
    H = (wide * (p * (1 - p))[:, None]).T @ wide
    H[np.arange(X.shape[1]), np.arange(X.shape[1])] += 2.0
    errors = np.sqrt(np.diagonal(np.linalg.inv(H)))
    np.testing.assert_allclose(ours.inference_.std_errors, errors, rtol=1e-8)


def test_a_summary_is_a_table_that_names_parties_and_columns() -> None:
    random = np.random.default_rng(0)
    tables = {
        "bank": pd.DataFrame(random.standard_normal((60, 2)), columns=["income", "debt"]),
        "shop": pd.DataFrame(random.standard_normal((60, 1)), columns=["visits"]),
    }
    y = tables["bank"]["income"] + 0.1 * random.standard_normal(60)
    model = VerticalRidge(0.1).fit(tables, y)
    lines = str(model.summary(level=0.9)).splitlines()
    assert lines[0].split() == ["party", "column", "estimate", "std", "error", "t", "p", "90%"]
    assert [line.split()[:2] for line in lines[1:4]] == [
        ["bank", "income"],
        ["bank", "debt"],
        ["shop", "visits"],
    ]
    assert lines[4].startswith("       (intercept)") or "(intercept)" in lines[4]
    assert "56 degrees of freedom" in lines[5]
    assert set(model.inference_.of("shop")) == {"visits"}


def test_where_there_are_none() -> None:
    X, y = load_wine(return_X_y=True)
    for model in (VerticalLogisticRegression(parties=2), VerticalLasso(0.1, parties=2)):
        with pytest.raises(InputError, match="has no standard errors"):
            model.fit(X, y).summary()
    with pytest.raises(InputError, match="singular"):
        twice = np.column_stack([X[:, 0], X[:, 0]])
        with pytest.warns(ConvergenceWarning, match="not proved"):
            model = VerticalLogisticRegression(np.inf, parties=2).fit(twice, y == 1)
        model.summary()
    with pytest.raises(InputError, match="take 'observed'"):
        VerticalRidge(parties=2).fit(X, y).summary(information="all")
