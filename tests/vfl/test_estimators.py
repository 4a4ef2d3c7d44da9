"""The estimators against scikit-learn on the joined table, and as scikit-learn estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    ElasticNet,
    HuberRegressor,
    Lasso,
    LogisticRegression,
    QuantileRegressor,
    Ridge,
)
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ccmac.vfl import (
    VerticalElasticNet,
    VerticalHuber,
    VerticalLasso,
    VerticalLogisticRegression,
    VerticalQuantile,
    VerticalRidge,
    VerticalSVC,
    problem,
)
from vfl import checks

DATA = load_diabetes(as_frame=True)
X = DATA.data
Y = DATA.target
WEIGHTS = np.random.default_rng(0).uniform(0.0, 2.0, len(Y))
WEIGHTS[:7] = 0.0
PARTIES = {"body": ["age", "sex", "bmi", "bp"], "blood": ["s1", "s2", "s3", "s4", "s5", "s6"]}


def tables(rows: slice = slice(None), *, seed: int = 0) -> dict[str, pd.DataFrame]:
    """The parties' tables, rows in different orders."""
    return {
        name: X.iloc[rows][columns].sample(frac=1.0, random_state=seed + k)
        for k, (name, columns) in enumerate(PARTIES.items())
    }


def close(ours: Any, theirs: Any, rtol: float = 1e-5) -> None:
    """Coefficients and intercepts, relative to the whole vector."""
    coef = np.ravel(ours.coef_)
    known = np.ravel(theirs.coef_)
    assert np.linalg.norm(coef - known) <= rtol * np.linalg.norm(known)
    off = np.ravel(ours.intercept_ - theirs.intercept_)
    size = np.linalg.norm(theirs.intercept_)
    assert np.linalg.norm(off) <= rtol * max(size, np.linalg.norm(known))


PAIRS = {
    "ridge": (VerticalRidge(0.5), Ridge(0.5)),
    "lasso": (VerticalLasso(0.5), Lasso(0.5, tol=1e-12)),
    "elastic net": (
        VerticalElasticNet(0.05, l1_ratio=0.7),
        ElasticNet(0.05, l1_ratio=0.7, tol=1e-12),
    ),
    "no intercept": (VerticalRidge(0.5, fit_intercept=False), Ridge(0.5, fit_intercept=False)),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_regression_is_that_of_the_joined_table(name: str, weights: Any) -> None:
    ours, theirs = (clone(e) for e in PAIRS[name])
    ours.set_params(parties=PARTIES).fit(X, Y, sample_weight=weights)
    close(ours, theirs.fit(X, Y, sample_weight=weights))
    assert ours.result_.status == "optimal"
    new = X.iloc[:50] * 1.1
    np.testing.assert_allclose(ours.predict(new), theirs.predict(new), rtol=1e-6)
    assert ours.score(X, Y) == pytest.approx(theirs.score(X, Y), abs=1e-8)


def test_tables_of_parties_and_new_rows() -> None:
    labels = Y[:400].sample(frac=1.0, random_state=9)
    model = VerticalRidge().fit(tables(slice(0, 400)), labels)
    joined = Ridge().fit(X.iloc[:400], Y.iloc[:400])
    known = pd.Series(joined.coef_, index=X.columns)
    np.testing.assert_allclose(model.coef_, known[[c for p in PARTIES.values() for c in p]])
    assert model.party_coef_["blood"]["s3"] == pytest.approx(known["s3"])
    new = tables(slice(400, None), seed=5)
    new["blood"] = new["blood"][PARTIES["blood"][::-1]]  # columns in another order
    predicted = pd.Series(model.predict(new), index=new["body"].index)
    np.testing.assert_allclose(predicted.sort_index(), joined.predict(X.iloc[400:]))
    theirs = joined.score(X.iloc[400:], Y.iloc[400:])
    assert model.score(new, Y.iloc[400:]) == pytest.approx(theirs)


def test_tables_are_joined_by_a_key_column() -> None:
    keyed = {name: table.reset_index(names="id") for name, table in tables().items()}
    labels = Y.sample(frac=1.0, random_state=9)
    model = VerticalRidge(key="id").fit(keyed, labels)
    close(model, Ridge().fit(X, Y))
    assert model.feature_names_in_.tolist() == [c for p in PARTIES.values() for c in p]
    known = VerticalRidge().fit(tables(), labels).predict(tables())
    np.testing.assert_array_equal(model.predict(keyed), known)
    whole = VerticalRidge(key="id", parties=PARTIES).fit(X.reset_index(names="id"), Y)
    assert whole.n_features_in_ == 10
    np.testing.assert_allclose(
        whole.predict(X.reset_index(names="id")),
        whole.predict(X.sample(frac=1.0, random_state=1).reset_index(names="id").sort_values("id")),
    )


@pytest.mark.parametrize("names", [[3, 1, 2, 0, 5, 4, 9, 8, 7, 6], range(1, 11), range(-10, 0)])
def test_columns_may_be_called_by_numbers(names: Any) -> None:
    numbered = X.set_axis(list(names), axis=1)
    names = list(names)
    theirs = Ridge().fit(X, Y)
    for parties in (3, [names[:4], names[4:]], {"one": names[:4], "two": set(names[4:])}):
        ours = VerticalRidge(parties=parties).fit(numbered, Y)
        close(ours, theirs)
        np.testing.assert_allclose(ours.predict(numbered), theirs.predict(X))
        assert problem(numbered, Y, 3).n == 3


@pytest.mark.parametrize(("load", "C"), [(load_breast_cancer, 1.0), (load_wine, 10.0)])
def test_logistic_regression_on_columns_of_any_size(load: Any, C: float) -> None:
    """Deviations from 0.003 to 600: rounding over the ridge is far above the usual tolerance."""
    Z, y = load(return_X_y=True)
    ours = VerticalLogisticRegression(C, parties=3).fit(Z, y)
    close(ours, LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12).fit(Z, y))
    assert ours.result_.status == "optimal"
    assert ours.result_.ledger["rounds"] < 20


def test_standardizing_is_scaling_first() -> None:
    wide = X * np.linspace(0.1, 1e3, 10)
    ours = VerticalRidge(standardize=True, parties=3).fit(wide, Y)
    theirs = make_pipeline(StandardScaler(), Ridge()).fit(wide, Y)
    np.testing.assert_allclose(ours.predict(wide), theirs.predict(wide), rtol=1e-8)
    flat = wide.assign(more=0.1)  # a constant column has no deviation, in full or sparse
    for table in (flat, sp.csr_array(flat)):
        with pytest.warns(UserWarning, match=r"party '2', column ('more'|10): is constant"):
            ours.fit(table, Y)
        assert abs(ours.coef_[10]) < 1e-6
        np.testing.assert_allclose(ours.coef_[:10], theirs[1].coef_ / theirs[0].scale_, rtol=1e-6)


def test_the_support_vector_machine_has_its_objective() -> None:
    Z, y = load_breast_cancer(return_X_y=True)
    Z = StandardScaler().fit_transform(Z)[:200]
    y = np.where(y == 1, "fine", "ill")[:200]
    ours = VerticalSVC(parties=3)
    theirs = SVC(kernel="linear", tol=1e-8)
    signs = np.where(y == "ill", 1.0, -1.0)

    def objective(model: Any) -> float:
        margins = signs * (Z @ model.coef_[0] + model.intercept_[0])
        return float(0.5 * model.coef_[0] @ model.coef_[0] + np.maximum(0, 1 - margins).sum())

    ours.fit(Z, y)
    assert objective(ours) <= objective(theirs.fit(Z, y)) * (1 + 1e-5)
    close(ours, theirs, 1e-3)
    assert ours.result_.status == "optimal"
    np.testing.assert_array_equal(ours.predict(Z), theirs.predict(Z))
    assert set(ours.classes_) == {"fine", "ill"}


def test_logistic_regression_is_that_of_the_joined_table() -> None:
    Z, y = load_breast_cancer(return_X_y=True)
    Z = StandardScaler().fit_transform(Z)
    y = np.where(y == 1, "fine", "ill")
    ours = VerticalLogisticRegression(parties=3).fit(Z[:400], y[:400])
    theirs = LogisticRegression(solver="newton-cholesky", tol=1e-12).fit(Z[:400], y[:400])
    close(ours, theirs)
    assert ours.result_.status == "optimal"
    np.testing.assert_array_equal(ours.predict(Z[400:]), theirs.predict(Z[400:]))
    found = ours.predict_proba(Z[400:])
    known = theirs.predict_proba(Z[400:])
    np.testing.assert_allclose(found, known, atol=1e-6)
    assert ours.score(Z[400:], y[400:]) == theirs.score(Z[400:], y[400:])


@pytest.mark.parametrize("weighted", [False, True])
def test_several_classes_are_one_multinomial_model(weighted: bool) -> None:
    Z, y = load_wine(return_X_y=True)
    Z = StandardScaler().fit_transform(Z)
    weights = np.linspace(0.0, 2.0, len(y)) if weighted else None
    ours = VerticalLogisticRegression(C=0.5, parties=3).fit(Z, y, sample_weight=weights)
    theirs = LogisticRegression(C=0.5, solver="newton-cholesky", tol=1e-12)
    theirs.fit(Z, y, sample_weight=weights)
    close(ours, theirs)
    np.testing.assert_allclose(ours.predict_proba(Z), theirs.predict_proba(Z), atol=1e-6)


def test_huber_finds_the_scale_as_well() -> None:
    rng = np.random.default_rng(3)
    Z = rng.standard_normal((80, 4))
    y = Z @ [1.0, 2.0, -1.0, 0.0] + 5.0 + 0.1 * rng.standard_normal(80)
    y[:8] += 20.0
    ours = VerticalHuber(parties=2, alpha=0.1).fit(Z, y)
    theirs = HuberRegressor(alpha=0.1, tol=1e-10, max_iter=10_000).fit(Z, y)
    close(ours, theirs)
    assert ours.scale_ == pytest.approx(theirs.scale_, rel=1e-5)
    np.testing.assert_array_equal(ours.outliers_, theirs.outliers_)
    weights = np.arange(80) % 3  # rows of no weight may be outliers, too
    ours.fit(Z, y, sample_weight=weights)
    theirs.fit(Z, y, sample_weight=weights)
    close(ours, theirs)
    np.testing.assert_array_equal(ours.outliers_, theirs.outliers_)


def test_pairs_of_classes_vote() -> None:
    Z, y = load_wine(return_X_y=True)
    Z = StandardScaler().fit_transform(Z)[::3]
    ours = VerticalSVC(parties=2).fit(Z, y[::3])
    theirs = SVC(kernel="linear", tol=1e-8).fit(Z, y[::3])
    assert ours.coef_.shape == theirs.coef_.shape
    np.testing.assert_array_equal(ours.predict(Z), theirs.predict(Z))
    assert ours.decision_function(Z).shape == (len(Z), 3)


def test_pipelines_and_grid_search() -> None:
    pipeline = make_pipeline(StandardScaler(), VerticalRidge(parties=2))
    search = GridSearchCV(pipeline, {"verticalridge__alpha": [0.1, 10.0]}, cv=2)
    search.fit(X.iloc[:100], Y.iloc[:100])
    theirs = GridSearchCV(
        make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [0.1, 10.0]}, cv=2
    ).fit(X.iloc[:100], Y.iloc[:100])
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=1e-6
    )


def test_a_warm_start_is_shorter() -> None:
    model = VerticalLasso(0.5, parties=2, warm_start=True).fit(X, Y)
    cold = model.result_.ledger["rounds"]
    assert model.fit(X, Y).result_.ledger["rounds"] < cold / 2
    assert model.set_params(alpha=0.45).fit(X, Y).result_.ledger["rounds"] < cold / 2
    close(model, Lasso(0.45, tol=1e-12).fit(X, Y))
    assert model.fit(X.iloc[:300], Y.iloc[:300]).result_.status == "optimal"  # another size


@pytest.mark.parametrize(("columns", "labels"), [(1e-5, 1e4), (1e6, 1e-7)])
def test_a_tolerance_means_the_same_in_any_units(columns: float, labels: float) -> None:
    Z = X * columns
    y = Y * labels
    pairs = (
        (VerticalRidge(columns**2), Ridge(columns**2)),
        (VerticalLasso(columns * labels), Lasso(columns * labels, tol=1e-12)),
    )
    for ours, theirs in pairs:
        ours.set_params(parties=2).fit(Z, y)
        theirs.fit(Z, y)
        close(ours, theirs)
        np.testing.assert_allclose(ours.predict(Z), theirs.predict(Z), rtol=1e-5)


def test_limits_are_told() -> None:
    with pytest.warns(ConvergenceWarning, match="VerticalLasso: ended as 'max_iterations'"):
        VerticalLasso(0.5, parties=2, max_iter=1).fit(X, Y)


@pytest.mark.parametrize("name", checks.ESTIMATORS)
def test_scikit_learns_own_checks(name: str) -> None:
    """All of them for one estimator, the quick ones for the others; see ``checks.py``."""
    whole = name == "VerticalRidge"
    found = checks.outcomes(checks.ESTIMATORS[name], lambda check: whole or check in checks.QUICK)
    assert {check: text for check, text in found.items() if text} == {}
    assert len(found) > (40 if whole else 18)


def test_huber_ends_proved_with_the_smallest_penalties() -> None:
    """Labels of two values, a ridge of 1e-8: the value is what can be proved."""
    Z, y = load_breast_cancer(return_X_y=True)
    Z = StandardScaler().fit_transform(Z)
    y = y.astype(float)
    ours = VerticalHuber(parties=3).fit(Z, y)
    theirs = HuberRegressor(tol=1e-9, max_iter=100_000).fit(Z, y)

    def objective(model: Any) -> float:
        ratio = np.abs(y - Z @ model.coef_ - model.intercept_) / model.scale_
        loss = np.where(ratio <= 1.35, ratio**2, 2.7 * ratio - 1.35**2)
        return float(model.scale_ * (1 + loss).sum() + 1e-4 * model.coef_ @ model.coef_)

    assert ours.result_.status == "optimal"
    assert objective(ours) <= objective(theirs) * (1 + 1e-7)
    assert ours.score(Z, y) == pytest.approx(theirs.score(Z, y), abs=1e-4)


def test_huber_ends_proved_where_most_rows_fit_exactly() -> None:
    random = np.random.default_rng(0)
    Z = (random.random((3000, 40)) < 0.1) * 1.0
    y = np.where(Z @ random.standard_normal(40) + random.standard_normal(3000) > 2.5, 1.0, -1.0)
    model = VerticalHuber(parties=3).fit(Z, y)
    assert (model.result_.status, model.scale_ < 1e-6) == ("optimal", True)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_quantiles_are_those_of_scikit_learn(intercept: bool, weighted: bool) -> None:
    X, y = load_diabetes(return_X_y=True)
    X, y = 100 * X[:150, :4], y[:150]
    s = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else None
    options = {"quantile": 0.8, "alpha": 0.02, "fit_intercept": intercept}
    ours = VerticalQuantile(**options, parties=2).fit(X, y, s)
    theirs = QuantileRegressor(**options).fit(X, y, s)
    values = [
        mean_pinball_loss(y, e.predict(X), alpha=0.8, sample_weight=s) + 0.02 * abs(e.coef_).sum()
        for e in (ours, theirs)
    ]
    assert ours.result_.status == "optimal"
    assert values[0] == pytest.approx(values[1], rel=1e-8)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
