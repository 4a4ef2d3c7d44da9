"""Tables as they come: scikit-learn's pipeline of the joined table; predictions with their keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ccmac.errors import AssumptionWarning, InputError
from ccmac.vfl import VerticalLogisticRegression, VerticalLogisticRegressionCV, VerticalRidge

RNG = np.random.default_rng(0)
ROWS = 300
TABLE = pd.DataFrame(
    {
        "income": RNG.normal(50, 20, ROWS),
        "age": RNG.integers(20, 80, ROWS).astype(float),
        "town": RNG.choice(["Ulm", "Bonn", "Kiel"], ROWS),
        "visits": RNG.poisson(3, ROWS).astype(float),
        "card": RNG.choice(["gold", "none"], ROWS),
    },
    index=[f"k{j}" for j in range(ROWS)],
).astype({"town": object, "card": object})
Y = pd.Series(np.where(TABLE.income / 20 + TABLE.visits > 6, "good", "bad"), index=TABLE.index)
for name in ("income", "town", "visits", "card"):
    TABLE.loc[RNG.choice(TABLE.index, 20, replace=False), name] = None
OWN = {"bank": ["income", "age", "town"], "shop": ["visits", "card"]}


def split(table: pd.DataFrame) -> dict[str, Any]:
    return {party: table[columns] for party, columns in OWN.items()}


def columns(texts: Any = ("town", "card"), numbers: Any = ("income", "age", "visits")) -> Any:
    """The pipeline's first step, on the joined table or on some columns of it."""
    filled = SimpleImputer(strategy="most_frequent", missing_values=None)
    return make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), list(numbers)),
        (make_pipeline(filled, OneHotEncoder(handle_unknown="ignore")), list(texts)),
    )


@pytest.mark.parametrize("own", ["standard", "scikit-learn"])
def test_parties_prepare_their_columns_as_the_joined_pipeline_does(own: str) -> None:
    preprocess: Any = "standard"
    if own != "standard":
        preprocess = {
            "bank": columns(["town"], ["income", "age"]),
            "shop": columns(["card"], ["visits"]),
        }
    tables = split(TABLE.sample(frac=1.0, random_state=0))
    tables["shop"] = tables["shop"].drop("k7")
    model = VerticalLogisticRegression(preprocess=preprocess, join="inner").fit(tables, Y)
    fitted = TABLE.drop("k7")
    joined = make_pipeline(columns(), LogisticRegression(tol=1e-12, max_iter=1000))
    joined.fit(fitted, Y[fitted.index])
    new = TABLE[:40].copy()
    new.loc["k3", "town"] = "Rom"
    if own == "standard":
        with pytest.warns(AssumptionWarning, match="'bank', column 'town': 'Rom' was not there"):
            found = model.predict_proba(split(new))
        assert list(model.party_coef_["shop"]) == ["visits", "card=gold", "card=none"]
    else:
        found = model.predict_proba(split(new))
    np.testing.assert_allclose(found.loc[new.index], joined.predict_proba(new), atol=1e-7)
    assert list(found.columns) == ["bad", "good"]
    assert (model.n_rows_, model.n_features_in_, model.coef_.shape) == (ROWS - 1, 5, (1, 8))


def test_one_table_of_another_library_is_prepared_alike() -> None:
    tables = split(TABLE)
    model = VerticalLogisticRegression(preprocess="standard").fit(tables, Y)
    lists = {name: [None if pd.isna(v) else v for v in TABLE[name].tolist()] for name in TABLE}
    other = VerticalLogisticRegression(preprocess="standard", parties=OWN)
    other.fit(pl.DataFrame(lists), Y.to_numpy())
    np.testing.assert_allclose(other.coef_, model.coef_, atol=1e-12)
    assert isinstance(other.predict(pl.DataFrame(lists)), np.ndarray)


def test_predictions_carry_their_keys_and_missing_rows_are_told() -> None:
    table = TABLE[["age"]].assign(other=RNG.standard_normal(ROWS))
    tables = {"bank": table[["age"]], "shop": table[["other"]].sample(frac=1.0, random_state=1)}
    model = VerticalRidge(join="inner").fit(tables, table["age"])
    some = {"bank": tables["bank"][10:50], "shop": tables["shop"]}
    with pytest.warns(AssumptionWarning, match="40 of 300 rows are at all parties"):
        found = model.predict(some)
    np.testing.assert_allclose(found, table["age"][found.index], rtol=1e-3)
    assert list(found.index) == list(table.index[10:50])


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (lambda t: t.rename(columns={"card": "cards"}), "column 'card': is missing; did you mean"),
        (lambda t: t.assign(visits="many"), "column 'visits': holds 'many', which is no number"),
        (lambda t: t.assign(visits=np.inf), "column 'visits': has infinity (inf) in row 'k0'"),
    ],
)
def test_tables_that_have_changed_are_named(changed: Any, says: str) -> None:
    model = VerticalLogisticRegression(preprocess="standard").fit(split(TABLE), Y)
    tables = split(TABLE)
    tables["shop"] = changed(tables["shop"])
    with pytest.raises(InputError) as caught:
        model.predict(tables)
    assert f"vfl: party 'shop', {says}" in str(caught.value)


@pytest.mark.parametrize(
    ("table", "preprocess", "says"),
    [
        (TABLE.assign(age=np.nan), "standard", "column 'age': holds nothing but missing values"),
        (TABLE, "standart", "preprocess = 'standart'; take 'standard', a scikit-learn"),
        (TABLE, {"bank": "standard"}, "preprocess: says nothing of party 'shop'"),
        (TABLE, StandardScaler(), "party 'bank': preprocess: could not convert string"),
    ],
)
def test_what_cannot_be_prepared_is_refused(table: Any, preprocess: Any, says: str) -> None:
    with pytest.raises(InputError) as caught:
        VerticalLogisticRegression(preprocess=preprocess).fit(split(table), Y)
    assert says in str(caught.value)


def test_c_is_chosen_by_rows_that_were_left_out() -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = VerticalLogisticRegressionCV(Cs=(0.01, 1.0), cv=3, preprocess="standard")
    model.fit({"a": X.iloc[:, :10], "b": X.iloc[:, 10:]}, y)
    for C, found in model.scores_.items():
        p = np.zeros(len(y))
        for fit, left in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
            joined = make_pipeline(StandardScaler(), LogisticRegression(C=C, tol=1e-10))
            p[left] = joined.fit(X.iloc[fit], y[fit]).predict_proba(X.iloc[left])[:, 1]
        assert found["log_loss"] == pytest.approx(log_loss(y, p), rel=1e-5)
        assert found["auc"] == pytest.approx(roc_auc_score(y, p), abs=1e-4)
    assert model.C_ == 1.0
    assert model.score({"a": X.iloc[:, :10], "b": X.iloc[:, 10:]}, y) > 0.97
