"""Typical mistakes with tables, keys and labels: one clear line each, party and column named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from ccmac.errors import AssumptionWarning, InputError
from ccmac.vfl import VerticalLogisticRegression, VerticalRidge, party, problem

RNG = np.random.default_rng(0)
KEYS = [f"k{j}" for j in range(12)]
BANK = pd.DataFrame(RNG.standard_normal((12, 2)), index=KEYS, columns=["income", "age"])
SHOP = pd.DataFrame(RNG.standard_normal((12, 2)), index=KEYS, columns=["visits", "spent"])
Y = pd.Series(RNG.standard_normal(12), index=KEYS)
LABELS = Y > 0
ARRAY = RNG.standard_normal((12, 3))


def changed(table: pd.DataFrame, column: str, value: Any) -> pd.DataFrame:
    """The table with another value in row k3."""
    out = table.astype({column: object}) if isinstance(value, str) else table.copy()
    out.loc["k3", column] = value
    return out


def both(bank: Any = BANK, shop: Any = SHOP) -> dict[str, Any]:
    return {"bank": bank, "shop": shop}


def fitted() -> VerticalRidge:
    return VerticalRidge().fit(both(), Y)


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "text in a column": (
        lambda: problem(both(changed(BANK, "age", "old")), Y),
        "party 'bank', column 'age': holds 'old', which is no number; encode",
    ),
    "NaN": (
        lambda: problem(both(shop=changed(SHOP, "spent", np.nan)), Y),
        "party 'shop', column 'spent': has NaN (a missing value) in row 'k3'; fill or drop it",
    ),
    "infinity": (
        lambda: problem(both(changed(BANK, "income", np.inf)), Y),
        "party 'bank', column 'income': has infinity (inf) in row 'k3'",
    ),
    "dates": (
        lambda: problem(both(BANK.assign(since=pd.Timestamp("2020-01-01"))), Y),
        "party 'bank', column 'since': holds dates or times",
    ),
    "complex numbers": (
        lambda: problem(both(BANK.assign(age=1j)), Y),
        "party 'bank', column 'age': Complex data not supported",
    ),
    "a column twice": (
        lambda: problem(both(pd.concat([BANK, BANK[["age"]]], axis=1)), Y),
        "party 'bank', column 'age': is there twice",
    ),
    "no columns": (lambda: problem(both(shop=SHOP[[]]), Y), "party 'shop': has no columns"),
    "no rows": (
        lambda: problem(both(shop=SHOP[:0]), Y),
        "party 'shop': Found array with 0 sample(s)",
    ),
    "a key twice": (
        lambda: problem(both(shop=SHOP.rename(index={"k5": "k3"})), Y),
        "party 'shop' has the key 'k3' twice (rows 3 and 5); keys must be unique",
    ),
    "a key missing": (
        lambda: problem(both(shop=SHOP.drop("k7")), Y),
        "party 'shop' lacks the key 'k7' that party 'bank' has; add the rows, or keep",
    ),
    "keys of another type": (
        lambda: problem(both(shop=SHOP.set_axis(range(12))), Y),
        "party 'shop' shares no key with party 'bank' (they look like 0 and 'k0')",
    ),
    "a key that is missing": (
        lambda: problem(both(shop=SHOP.rename(index={"k5": np.nan})), Y),
        "party 'shop' has a missing key in row 5",
    ),
    "another order without keys on y": (
        lambda: problem(both(shop=SHOP[::-1]), Y.to_numpy()),
        "y has no keys, but the rows of party 'shop' are in another order than those of party",
    ),
    "a label missing": (
        lambda: problem(both(), Y.drop("k2")),
        "y lacks the key 'k2' that party 'bank' has",
    ),
    "rows that do not match": (
        lambda: problem([ARRAY, ARRAY[:9]], Y.to_numpy()),
        "party '1' has 9 rows but party '0' has 12",
    ),
    "a key column that is not there": (
        lambda: problem(both(), Y, key="id"),
        "party 'bank': has no key column 'id'",
    ),
    "one class": (
        lambda: problem(both(), Y * 0 > 1, loss="logistic"),
        "y has one class only (False); a classifier needs two",
    ),
    "three classes for a margin": (
        lambda: problem(both(), pd.Series(list("abc") * 4, index=KEYS), loss="logistic"),
        "y has 3 classes ('a', 'b', 'c', ...) but loss 'logistic' takes two",
    ),
    "text labels in a regression": (
        lambda: problem(both(), pd.Series(list("abc") * 4, index=KEYS)),
        "y holds 'a', which is no number",
    ),
    "a missing label": (
        lambda: problem(both(), Y.where(Y.index != "k4")),
        "y has NaN (a missing value) in row 'k4'",
    ),
    "a missing class": (
        lambda: VerticalLogisticRegression().fit(
            both(), LABELS.astype(object).where(Y.index != "k4")
        ),
        "y has NaN (a missing label) in row 'k4'",
    ),
    "fractions as classes": (
        lambda: VerticalLogisticRegression().fit(both(), Y),
        "y has fractions such as",
    ),
    "a column that nobody has": (
        lambda: problem(BANK, Y, parties={"a": ["income"], "b": ["agee"]}),
        "party 'b', column 'agee': is not in the table; did you mean 'age'?",
    ),
    "a column that two have": (
        lambda: problem(BANK, Y, parties={"a": ["income", "age"], "b": ["age"]}),
        "column 'age': belongs to party 'a' and to party 'b'",
    ),
    "a column left over": (
        lambda: problem(BANK, Y, parties={"a": ["income"]}),
        "column 'age': belongs to no party",
    ),
    "more parties than columns": (lambda: problem(BANK, Y, parties=3), "3 parties for 2 columns"),
    "a party missing at prediction": (
        lambda: fitted().predict({"bank": BANK}),
        "party 'shop' is missing from X",
    ),
    "a column missing at prediction": (
        lambda: fitted().predict(both(BANK[["age"]])),
        "party 'bank', column 'income': is missing",
    ),
    "a column too many at prediction": (
        lambda: fitted().predict(both(BANK.assign(more=1.0))),
        "party 'bank', column 'more': was not there when the model was fitted",
    ),
    "a party too many at prediction": (
        lambda: fitted().predict({**both(), "web": SHOP}),
        "party 'web' was not there when the model was fitted",
    ),
    "shares that do not sum to one": (
        lambda: problem(both(), Y, shares=[1.0, 1.0]),
        "shares: give 2 numbers, one for each party, that sum to one",
    ),
    "a label owner who is none": (
        lambda: problem(both(), Y, label_owner="shopp"),
        "label_owner 'shopp': did you mean 'shop'?",
    ),
    "weights below zero": (
        lambda: problem(both(), Y, sample_weight=-np.ones(12)),
        "sample_weight: give numbers that are not negative",
    ),
    "a misspelled loss": (
        lambda: problem(both(), Y, loss="logistics"),
        "loss 'logistics' is unknown; did you mean 'logistic'?",
    ),
    "NaN in a sparse table": (
        lambda: problem([sp.csr_array(np.where(ARRAY > 0, np.nan, 0)), ARRAY], Y.to_numpy()),
        "party '0', column",
    ),
    "text in an array": (
        lambda: problem([ARRAY, np.array([["a"]] * 12, dtype=object)], Y.to_numpy()),
        "party '1', column 0: holds 'a', which is no number",
    ),
    "rows of different lengths": (
        lambda: problem([ARRAY, [[1, 2], [3]]], Y.to_numpy()),
        "party '1': has rows of different lengths",
    ),
    "two parties of one name": (
        lambda: problem({1: BANK, "1": SHOP}, Y),
        "party '1': is there twice",
    ),
    "labels in two columns": (
        lambda: VerticalRidge().fit(both(), pd.DataFrame({"a": Y, "b": Y})),
        "y has shape (12, 2); bad input shape, give one label a row",
    ),
    "a path instead of a table": (
        lambda: VerticalRidge().fit("bank.csv", Y),
        "X is 'bank.csv'; give tables, such as pandas.read_csv reads them",
    ),
    "one table for those of the parties": (
        lambda: fitted().predict(pd.concat([BANK, SHOP], axis=1)),
        "fitted with a table of each party ('bank', 'shop') but X is one table",
    ),
    "new rows that one party lacks": (
        lambda: fitted().predict(both(BANK[:5], SHOP[3:])),
        "party 'bank' lacks the key 'k5' and 6 more that party 'shop' has",
    ),
    "infinity in a sparse table": (
        lambda: problem([sp.csr_array(np.full((12, 2), np.inf)), ARRAY], Y.to_numpy()),
        "party '0', column 0: has infinity (inf) in row 0; fill or drop it",
    ),
    "too few weights": (
        lambda: problem([ARRAY, ARRAY], Y.to_numpy(), sample_weight=np.ones(5)),
        "sample_weight has 5 rows but party '0' has 12",
    ),
    "NaN in one table dealt out": (
        lambda: VerticalRidge(parties={"a": ["income"], "b": ["age"]}).fit(
            changed(BANK, "age", np.nan), Y
        ),
        "party 'b', column 'age': has NaN (a missing value) in row 'k3'",
    ),
    "numbers written as text": (
        lambda: VerticalRidge(parties=2).fit(ARRAY.astype(str), Y.to_numpy()),
        "party '0', column 0: holds '",
    ),
    "one word among numbers written as text": (
        lambda: problem(both(changed(BANK.astype({"age": str}), "age", "old")), Y),
        "party 'bank', column 'age': holds 'old', which is no number",
    ),
    "a mask instead of places": (
        lambda: VerticalRidge(parties=[[True, False, False], [1, 2]]).fit(ARRAY, Y.to_numpy()),
        "party '0', column True: give names of columns, or places",
    ),
    "tables as nested lists": (
        lambda: VerticalRidge().fit([ARRAY.tolist(), ARRAY[:, :2].tolist()], Y.to_numpy()),
        "has rows of different lengths; give a table",
    ),
    "a key that pandas calls missing": (
        lambda: problem(both(BANK.set_axis([pd.NA, *KEYS[1:]])), Y),
        "party 'bank' has a missing key in row 0",
    ),
    "a class that pandas calls missing": (
        lambda: VerticalLogisticRegression().fit(
            both(), LABELS.map(str).astype("string").where(Y.index != "k4")
        ),
        "y has NaN (a missing label) in row 'k4'",
    ),
    "dates as classes": (
        lambda: VerticalLogisticRegression().fit(
            both(), LABELS.map({True: pd.Timestamp(0), False: pd.Timestamp(9)})
        ),
        "y holds dates or times",
    ),
    "a list as a key": (
        lambda: VerticalRidge(key=["id"]).fit(both(), Y),
        "party 'bank': has no key column ['id']",
    ),
    "a tolerance in quotes": (
        lambda: VerticalRidge(tol="1e-6").fit(both(), Y),
        "VerticalRidge, tol: is not numeric",
    ),
    "a word for yes or no": (
        lambda: VerticalRidge(fit_intercept="no").fit(both(), Y),
        "VerticalRidge, fit_intercept: expected True or False, got str",
    ),
    "a party's labels in another number": (
        lambda: party(BANK, Y[:3], parties=2),
        "y lacks the key 'k3' and 8 more",
    ),
    "all tables at one party": (lambda: party(both(), Y, parties=2), "X is one party's table"),
    "a penalty below zero": (
        lambda: VerticalRidge(alpha=-1.0).fit(both(), Y),
        "VerticalRidge, alpha: is -1.0",
    ),
}


def test_labels_may_be_a_frame_of_one_column() -> None:
    framed = VerticalRidge().fit(both(), Y.to_frame("y"))
    np.testing.assert_array_equal(framed.coef_, fitted().coef_)


@pytest.mark.parametrize("name", MISTAKES)
def test_one_clear_line(name: str) -> None:
    run, expected = MISTAKES[name]
    with pytest.raises(InputError) as caught:
        run()
    line = str(caught.value)
    assert expected in line
    assert "\n" not in line
    assert len(line) < 240


def test_one_table_without_parties_is_one_party_and_says_so() -> None:
    X = np.random.default_rng(0).standard_normal((30, 4))
    with pytest.warns(AssumptionWarning, match="there is one party"):
        VerticalRidge().fit(X, X[:, 0])


def test_frames_of_another_library() -> None:
    polars = pytest.importorskip("polars")
    X = np.random.default_rng(0).standard_normal((40, 4))
    y = X @ np.arange(4.0)
    parties = {"left": ["a", "b"], "right": ["c", "d"]}
    frame = polars.DataFrame(dict(zip("abcd", X.T, strict=True)))
    model = VerticalRidge(parties=parties).fit(frame, y)
    plain = VerticalRidge(parties=parties).fit(pd.DataFrame(X, columns=list("abcd")), y)
    assert np.array_equal(model.coef_, plain.coef_)
    tables = {"left": frame[["a", "b"]], "right": frame[["c", "d"]]}
    assert np.allclose(VerticalRidge().fit(tables, y).coef_, plain.coef_, atol=1e-9)
    assert np.array_equal(model.predict(frame), plain.predict(pd.DataFrame(X, columns=[*"abcd"])))
