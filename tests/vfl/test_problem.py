"""Problems of several parties' tables: partition, names, scaling, intercept, on disk as well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import ccmac
from ccmac.errors import InputError
from ccmac.vertical import VflProblem
from ccmac.vfl import problem, units

RNG = np.random.default_rng(5)
N = 40
LAM = 0.05
TABLE = pd.DataFrame(
    RNG.standard_normal((N, 5)) * [1.0, 3.0, 0.2, 1.0, 2.0] + [0.0, 1.0, -2.0, 5.0, 0.0],
    index=[f"id-{j}" for j in range(N)],
    columns=["a", "b", "c", "d", "e"],
)
Y = pd.Series(TABLE.to_numpy() @ [1.0, -1.0, 2.0, 0.0, 0.5] + 3.0, index=TABLE.index)
Y += 0.1 * RNG.standard_normal(N)


def ridge(X: np.ndarray, y: np.ndarray, s: np.ndarray, scale: np.ndarray) -> tuple[Any, float]:
    """(w, b) by the normal equations, the penalty on scaled columns."""
    s = s / s.sum()
    mean = s @ X
    centre = s @ y
    Z = (X - mean) * np.sqrt(s)[:, None]
    w = np.linalg.solve(Z.T @ Z + LAM * np.diag(scale**2), Z.T @ (np.sqrt(s) * (y - centre)))
    return w, float(centre - mean @ w)


def solved(p: VflProblem) -> tuple[np.ndarray, float]:
    result = ccmac.solve(p, tol=1e-9, progress=False)
    assert result.status == "optimal"
    return p.weights(result), float(p.intercept(result)[0])


def shuffled(table: Any, seed: int) -> Any:
    return table.sample(frac=1.0, random_state=seed)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_tables_in_any_order_are_the_joined_table(standardize: bool, weighted: bool) -> None:
    s = pd.Series(RNG.uniform(0.5, 2.0, N) if weighted else np.ones(N), index=TABLE.index)
    mean = np.average(TABLE, axis=0, weights=s)
    deviation = np.sqrt(np.average((TABLE - mean) ** 2, axis=0, weights=s))
    scale = deviation if standardize else np.ones(5)
    w, b = ridge(TABLE.to_numpy(), Y.to_numpy(), s.to_numpy(), scale)
    parties = {"one": shuffled(TABLE[["d", "a"]], 1), "two": shuffled(TABLE[["b", "c", "e"]], 2)}
    p = problem(
        parties,
        shuffled(Y, 3),
        regularization=LAM,
        intercept=True,
        standardize=standardize,
        sample_weight=shuffled(s, 4) if weighted else None,
    )
    assert p.n == 2
    assert p.vertical.columns == ("d", "a", "b", "c", "e")
    found, intercept = solved(p)
    np.testing.assert_allclose(found, w[[3, 0, 1, 2, 4]], rtol=1e-7)
    assert intercept == pytest.approx(b, rel=1e-7)


def test_one_table_dealt_out_by_names_keeps_its_order() -> None:
    w, _ = ridge(TABLE.to_numpy(), Y.to_numpy(), np.ones(N), np.ones(5))
    for parties in ({"one": ["d", "a"], "two": ["b", "c", "e"]}, [[3, 0], [1, 2, 4]], 2):
        p = problem(TABLE, Y, regularization=LAM, intercept=True, parties=parties)
        assert p.vertical.columns == tuple("abcde")
        np.testing.assert_allclose(solved(p)[0], w, rtol=1e-7)


def test_an_inner_join_keeps_the_common_rows() -> None:
    left = TABLE[["a", "b"]].iloc[:30]
    right = shuffled(TABLE[["c", "d", "e"]].iloc[10:], 1)
    p = problem({"l": left, "r": right}, Y, regularization=LAM, intercept=True, join="inner")
    assert p.q == 20
    w, _ = ridge(TABLE.to_numpy()[10:30], Y.to_numpy()[10:30], np.ones(20), np.ones(5))
    np.testing.assert_allclose(solved(p)[0], w, rtol=1e-7)


def test_a_key_column_joins_as_an_index_does() -> None:
    by_index = problem({"l": TABLE[["a", "b"]], "r": TABLE[["c", "d", "e"]]}, Y)
    keyed = TABLE.reset_index(names="id")
    parts = {"l": shuffled(keyed[["id", "a", "b"]], 1), "r": keyed[["c", "id", "d", "e"]]}
    by_column = problem(parts, shuffled(Y, 2), key="id")
    assert by_column.vertical.columns == by_index.vertical.columns
    np.testing.assert_allclose(solved(by_column)[0], solved(by_index)[0], rtol=1e-7)


def test_sparse_columns_stay_sparse_and_still_have_an_intercept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(units, "SMALL", 0)  # as if the table were a large one
    rng = np.random.default_rng(1)
    X = sp.random_array((400, 30), density=0.02, rng=rng, format="csr")
    y = X @ rng.standard_normal(30) + 2.0
    p = problem(X, y, parties=3, regularization=0.05, intercept=True)
    assert all(sp.issparse(block) for block in p.blocks("A"))
    w, b = ridge(X.toarray(), y, np.ones(400), np.ones(30))
    found, intercept = solved(p)
    np.testing.assert_allclose(found, w, atol=1e-6)
    assert intercept == pytest.approx(b, abs=1e-6)


def test_labels_of_any_kind() -> None:
    for labels in (np.where(Y > 3, "yes", "no"), Y > 3, np.where(Y > 3, 7, 4)):
        p = problem(TABLE.to_numpy(), labels, parties=2, loss="logistic")
        assert p.vertical.classes == tuple(np.unique(labels).tolist())
        signs = p.agents[0].objective.z_part.y  # type: ignore[attr-defined]
        np.testing.assert_array_equal(signs, np.where(Y > 3, 1.0, -1.0))


def test_everything_survives_the_disk(tmp_path: Path) -> None:
    p = problem(
        {"one": TABLE[["d", "a"]], "two": TABLE[["b", "c", "e"]]},
        Y,
        regularization=LAM,
        intercept=True,
        standardize=True,
    )
    p.save(tmp_path / "p")
    loaded = ccmac.Problem.load(tmp_path / "p")
    assert isinstance(loaded, VflProblem)
    for name in ("parties", "columns", "target", "outputs", "classes", "prediction_scale"):
        assert getattr(loaded.vertical, name) == getattr(p.vertical, name)
    for name in ("mean", "scale", "shares"):
        np.testing.assert_array_equal(getattr(loaded.vertical, name), getattr(p.vertical, name))
    np.testing.assert_array_equal(solved(loaded)[0], solved(p)[0])
    assert solved(loaded)[1] == solved(p)[1]


def test_a_reference_in_another_order_is_refused() -> None:
    p = problem(TABLE, Y, parties={"one": ["d", "a"], "two": ["b", "c", "e"]}, standardize=True)
    w = pd.Series(solved(p)[0], index=TABLE.columns)
    result = ccmac.solve(p, reference=w, tol=1e-12, progress=False)
    assert result.status == "optimal"
    with pytest.raises(InputError, match="entry 0 is 'e' but column 0 of the table is 'a'"):
        ccmac.solve(p, reference=w[::-1], progress=False)


def test_shares_change_the_geometry_and_their_old_name_is_known() -> None:
    X = TABLE.to_numpy()
    y = Y.to_numpy()
    even, uneven = (problem(X, y, 4, shares=shares) for shares in (None, ("cross_factor", 3.0)))
    assert ccmac.geometry(even).cross_factor == pytest.approx(1.0)
    assert ccmac.geometry(uneven).cross_factor == pytest.approx(3.0)
    old = problem(X, y, 4, alpha=("cross_factor", 3.0))
    np.testing.assert_array_equal(old.shares, uneven.shares)
    with pytest.raises(InputError, match="alpha is the old name of shares"):
        problem(X, y, 4, shares=[0.25] * 4, alpha=[0.25] * 4)
