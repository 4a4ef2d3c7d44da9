"""Parties in processes of their own: each reads its table, together they fit the joined model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ccmac
from ccmac.cli.main import main
from ccmac.cli.vfl import read_me
from ccmac.errors import InputError
from ccmac.runtime import InProcess
from ccmac.vfl.between import Agreement, PartyModel, joined_rows, train
from ccmac.vfl.files import read_model, read_table
from owners import free_ports

PROGRAM = Path(__file__).parents[1] / "runtime" / "programs" / "vfl_party.py"
RNG = np.random.default_rng(2)
ROWS = 60
NEW = 12
KEYS = [f"p{j:03d}" for j in range(ROWS + NEW)]
TABLE = pd.DataFrame(
    RNG.standard_normal((ROWS + NEW, 6)), index=pd.Index(KEYS, name="id"), columns=list("abcdef")
)
SCORES = TABLE.to_numpy() @ [1.0, -2.0, 0.5, 0.0, 1.0, 0.3] + 0.7
COLUMNS = {"clinic": ["a", "b"], "lab": ["c"], "shop": ["d", "e", "f"]}
MODEL = """
[model]
loss = "{loss}"
regularization = 0.05
salt = "between us"
tol = 1e-8
"""


def written(folder: Path, loss: str, y: Any, more: str = "") -> None:
    """Tables in different row orders, and what each party says of itself."""
    for k, (party, columns) in enumerate(COLUMNS.items()):
        table = TABLE[columns].assign(**({"y": y} if party == "lab" else {}))
        table[:ROWS].sample(frac=1.0, random_state=k).to_csv(folder / f"{party}.csv")
        table[ROWS:].sample(frac=1.0, random_state=k + 5)[columns].to_csv(folder / f"{party}-n.csv")
        (folder / f"{party}.toml").write_text(
            f'party = "{party}"\nparties = {json.dumps(list(COLUMNS))}\ntable = "{party}.csv"\n'
            f'new = "{party}-n.csv"\nkey = "id"\nout = "{party}"\n'
            + ('label = "y"\n' if party == "lab" else "")
            + MODEL.format(loss=loss)
            + more
        )


def kept_apart(folder: Path, table: str, keys: bool = False) -> None:
    """Each party's process has opened its own table and file, and nothing of the others'."""
    for i, party in enumerate(COLUMNS):
        command = "predict" if table else "party"
        seen = set((folder / f"{party}.{command}.opened").read_text().splitlines())
        assert {f"{party}.toml", f"{party}{table}.csv"} <= seen
        inputs = {name for name in seen if not name.startswith(f"{party}{os.sep}")}
        own = {f"{party}.toml", f"{party}{table}.csv"}
        if keys:
            own |= {"keys/authority.crt", f"keys/agent-{i}.crt", f"keys/agent-{i}.key"}
        assert inputs <= own


MESSY = """
[model]
loss = "logistic"
regularization = 0.05
salt = "between us"
tol = 1e-8
join = "inner"
preprocess = "standard"
alignment = "private"
grid = [5.0, 0.05]
folds = 3
"""


def messy() -> pd.DataFrame:
    """Missing numbers, categories, missing ones, and one that only new rows have."""
    table = TABLE.assign(
        town=RNG.choice(["Ulm", "Bonn", "Kiel"], len(TABLE)), card=RNG.choice(["gold", "no"], 72)
    ).astype({"town": object, "card": object})
    for column in ("a", "d", "town", "card"):
        table.loc[RNG.choice(table.index, 7, replace=False), column] = None
    table.loc[KEYS[ROWS], "town"] = "Rom"
    return table


@pytest.mark.mpi
def test_three_processes_fit_the_pipeline_of_the_joined_table(
    tmp_path: Path, mpi_run: Callable[..., Any]
) -> None:
    """Shuffled rows, some missing, found by private set intersection; a penalty from a grid."""
    table = messy()
    y = pd.Series(np.where(SCORES > 0.5, "yes", "no"), index=KEYS)
    mine = {"clinic": ["a", "b", "town"], "lab": ["c"], "shop": ["d", "e", "f", "card"]}
    for k, (party, columns) in enumerate(mine.items()):
        rows = table[columns].assign(**({"y": y} if party == "lab" else {}))
        rows[k:ROWS].sample(frac=1.0, random_state=k).to_csv(tmp_path / f"{party}.csv")
        rows[ROWS:].sample(frac=1.0, random_state=k)[columns].to_csv(tmp_path / f"{party}-n.csv")
        (tmp_path / f"{party}.toml").write_text(
            f'party = "{party}"\nparties = {json.dumps(list(mine))}\ntable = "{party}.csv"\n'
            f'new = "{party}-n.csv"\nkey = "id"\nout = "{party}"\n'
            + ('label = "y"\n' if party == "lab" else "")
            + MESSY
        )
    mpi_run(3, "vfl_party.py", "party,predict", str(tmp_path), *mine, timeout=150)
    kept_apart(tmp_path, "")
    kept_apart(tmp_path, "-n")
    fitted, new = table[2:ROWS], table[ROWS:]  # the shop lacks two rows, the lab one
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    texts = make_pipeline(
        SimpleImputer(strategy="most_frequent", missing_values=None),
        OneHotEncoder(handle_unknown="ignore"),
    )
    columns = make_column_transformer((numbers, list("abcdef")), (texts, ["town", "card"]))
    penalty = 0.05 * len(fitted)
    joined = make_pipeline(columns, LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=1000))
    joined.fit(fitted, y[fitted.index])
    known = joined.predict_proba(new)[:, 1]
    for party in mine:
        found = pd.read_csv(tmp_path / party / "predictions.csv", index_col="key").loc[new.index]
        np.testing.assert_allclose(found["probability"], known, rtol=1e-6)
        assert ("class" in found) == (party == "lab")
        weights = pd.read_csv(tmp_path / party / "weights.csv", index_col="column")
        assert len(weights) == {"clinic": 6, "lab": 2, "shop": 6}[party]
        tried = pd.read_csv(tmp_path / party / "grid.csv", index_col="regularization")
        assert tried.loc[0.05, "log_loss"] < tried.loc[5.0, "log_loss"]
        assert {"auc", "accuracy", "calibration_error"} <= {*tried.columns}
    assert (found_classes(tmp_path, new.index) == joined.predict(new)).all()


def found_classes(folder: Path, keys: Any) -> Any:
    return pd.read_csv(folder / "lab" / "predictions.csv", index_col="key").loc[keys, "class"]


class Meeting:
    """Parties in threads: what each tells is heard by all."""

    def __init__(self, n: int) -> None:
        self.n, self.rows, self.barrier = n, [np.zeros(0)] * n, threading.Barrier(n, timeout=20)

    def runtime(self, i: int) -> Any:
        def gather(values: Any) -> Any:
            self.rows[i] = values[0]
            self.barrier.wait()
            heard = np.array(self.rows)
            self.barrier.wait()
            return heard

        return SimpleNamespace(n=self.n, owned=range(i, i + 1), gather=gather)


def joined(agreement: Agreement, *keys: list[Any]) -> list[Any]:
    """What every party finds, or why not."""
    meeting = Meeting(len(keys))

    def one(i: int) -> Any:
        try:
            return joined_rows(agreement, np.array(keys[i]), meeting.runtime(i)).tolist()
        except InputError as error:
            return str(error)

    with ThreadPoolExecutor(len(keys)) as pool:
        return list(pool.map(one, range(len(keys))))


@pytest.mark.parametrize("alignment", ["hashes", "private"])
def test_rows_are_joined_by_their_keys(alignment: str) -> None:
    left = ["x", "y", "z", "v"]
    right = ["z", "x", "w"]
    inner = Agreement(parties=("a", "b"), join="inner", salt="s", alignment=alignment)
    found = joined(inner, left, right)
    assert [left[j] for j in found[0]] == [right[j] for j in found[1]]
    assert {left[j] for j in found[0]} == {"x", "z"}
    three = joined(replace(inner, parties=("a", "b", "c")), left, right, ["q", "z", "y"])
    assert [left[found] for [found] in three[:1]] == ["z"]
    assert [len(found) for found in three] == [1, 1, 1]
    strict = joined(replace(inner, join="strict"), left, ["z", "x", "v"])
    assert strict == [strict[1]] * 2
    says = {
        "hashes": "'b' lacks 1 of the keys that",
        "private": "3 keys are at all parties, but 'a'",
    }
    assert says[alignment] in strict[0]
    assert "no key is at all parties" in joined(inner, ["x"], ["y"])[0]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ([None, "y"], "party 'a' has a missing key in row 0"),
        (["x", float("nan")], "party 'a' has a missing key in row 1"),
        (["x", ""], "party 'a' has a missing key in row 1"),
        ([1, "1"], "party 'a' has the key '1' twice (rows 0 and 1)"),
    ],
)
def test_every_row_has_a_key_of_its_own(keys: list[Any], said: str) -> None:
    alone = InProcess(ccmac.Network.complete(1))
    with pytest.raises(InputError) as caught:
        joined_rows(Agreement(parties=("a",)), np.array(keys, dtype=object), alone)
    assert said in str(caught.value)


def test_owners_on_links_fit_the_joined_table(tmp_path: Path) -> None:
    """Three processes that know their neighbors alone, over TLS on the loopback; masked sums."""
    pytest.importorskip("cryptography")
    written(tmp_path, "squared", SCORES, 'averaging = "masked"\nalignment = "private"\n')
    assert main(["keys", str(tmp_path / "keys"), "--agents", "3"]) == 0
    ports = dict(zip(COLUMNS, free_ports(3), strict=True))
    for i, party in enumerate(COLUMNS):
        others = "".join(f'{o} = "127.0.0.1:{p}"\n' for o, p in ports.items() if o != party)
        link = (
            f'[link]\ncertificate = "keys/agent-{i}.crt"\nkey = "keys/agent-{i}.key"\n'
            f'authority = "keys/authority.crt"\nlisten = "127.0.0.1:{ports[party]}"\n'
            f"[link.neighbors]\n{others}"
        )
        with (tmp_path / f"{party}.toml").open("a") as stream:
            stream.write(link)
    jobs = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), "party,predict", str(tmp_path), party],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for party in COLUMNS
    ]
    for job in jobs:
        output, errors = job.communicate(timeout=100)
        assert job.returncode == 0, f"{output}\n{errors}"
    for table in ("", "-n"):
        kept_apart(tmp_path, table, keys=True)
    joined = Ridge(0.05 * ROWS).fit(TABLE[:ROWS], SCORES[:ROWS])
    coef = [read_model(tmp_path / party / "model.json").coef[:, 0] for party in COLUMNS]
    np.testing.assert_allclose(np.concatenate(coef), joined.coef_, rtol=1e-5)
    known = pd.Series(joined.predict(TABLE[ROWS:]), index=KEYS[ROWS:])
    for party in COLUMNS:
        found = pd.read_csv(tmp_path / party / "predictions.csv", index_col="key").iloc[:, 0]
        np.testing.assert_allclose(found.loc[known.index], known, rtol=1e-5)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('table = "lab.csv"', 'table = "no.csv"', "not found; it is the table of party 'lab'"),
        ('loss = "squared"', 'loss = "sqared"', "loss 'sqared' is unknown; did you mean"),
        ('label = "y"', 'label = "z"', "has no column 'z'"),
        ("tol = 1e-8", "tol = -1.0", "tol"),
        ("tol = 1e-8", 'tol = 1e-8\nmethod = "cross-gc"', "cross-gc"),
        ("tol = 1e-8", 'tol = 1e-8\njoin = "outer"', "join = 'outer'"),
    ],
)
def test_what_is_wrong_here_is_found_before_anybody_is_called(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, says: str
) -> None:
    """No certificate, no neighbor: the run would end by them if it came so far."""
    link = '[link]\ncertificate = "no"\nkey = "no"\nauthority = "no"\nlisten = "no:1"\n'
    written(tmp_path, "squared", SCORES, link)
    file = tmp_path / "lab.toml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    assert main(["vfl", "party", str(file)]) == 2
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1


def test_a_party_is_an_agent() -> None:
    X = TABLE.to_numpy()[:ROWS]
    y = SCORES[:ROWS]
    agents = [
        ccmac.vfl.party(X[:, part], y, parties=2, regularization=0.05, intercept=True)
        for part in (slice(0, 3), slice(3, 6))
    ]
    result = ccmac.solve(ccmac.Problem(agents), tol=1e-8, progress=False)
    joined = Ridge(0.05 * ROWS).fit(X, y)
    np.testing.assert_allclose(np.concatenate(result.x), joined.coef_, rtol=1e-7)


def test_one_party_alone_is_scikit_learn() -> None:
    """The whole road without other processes; what it refuses, too."""
    table = _own("lab", TABLE[:ROWS])
    y = SCORES[:ROWS]
    agreement = Agreement(parties=("lab",), regularization=0.05, standardize=True)
    runtime = InProcess(ccmac.Network.complete(1))
    model, rows, result = train(agreement, table, y, runtime)
    assert result.status == "optimal"
    scaled = TABLE[:ROWS] / TABLE[:ROWS].std(ddof=0)
    joined = Ridge(0.05 * ROWS).fit(scaled, y)
    known = pd.Series(joined.predict(scaled), index=KEYS[:ROWS])
    np.testing.assert_allclose(model.scores(rows)[:, 0], known[rows.keys], rtol=1e-7)
    with pytest.raises(InputError, match="nobody named a label column"):
        train(agreement, table, None, runtime)
    with pytest.raises(InputError, match="process 0 is party 'shop' by the list of parties"):
        train(Agreement(parties=("shop",)), table, y, runtime)
    with pytest.raises(InputError, match="one party each"):
        train(Agreement(parties=("lab", "shop")), table, y, runtime)
    with pytest.raises(InputError, match="join = 'outer'; take 'strict' or 'inner'"):
        train(Agreement(parties=("lab",), join="outer"), table, y, runtime)


def _own(party: str, frame: pd.DataFrame) -> Any:
    from ccmac.vfl.tables import read_tables

    return read_tables({party: frame})[0]


def test_files_that_are_not_right_are_refused(tmp_path: Path) -> None:
    written(tmp_path, "squared", SCORES)
    with pytest.raises(InputError, match="has no column 'z', the labels of 'lab'"):
        read_table(tmp_path / "lab.csv", "lab", "id", label="z")
    with pytest.raises(InputError, match=r"no\.csv: not found; it is the table of party 'lab'"):
        read_table(tmp_path / "no.csv", "lab", "id")
    with pytest.raises(InputError, match="party 'lab', column 'q': is missing"):
        read_table(tmp_path / "lab.csv", "lab", "id", columns=["q"])
    (tmp_path / "twice.csv").write_text("id,a,a\nk1,1,2\n")
    with pytest.raises(InputError, match="column 'a' is named twice"):
        read_table(tmp_path / "twice.csv", "lab", "id")
    (tmp_path / "long.csv").write_text("id,a\nk1,1,2\n")
    with pytest.raises(InputError, match="more cells than there are names"):
        read_table(tmp_path / "long.csv", "lab", "id")
    with pytest.raises(InputError, match="run ccmac vfl party first"):
        read_model(tmp_path / "model.json")
    (tmp_path / "model.json").write_text('{"format": "other"}')
    with pytest.raises(InputError, match="is not a model of ccmac vfl party"):
        read_model(tmp_path / "model.json")
    (tmp_path / "lab.toml").write_text('party = "lab"\ncolour = 3\n')
    with pytest.raises(InputError, match=r"lab\.toml"):
        read_me(tmp_path / "lab.toml")
    with pytest.raises(InputError, match="not found"):
        read_me(tmp_path / "none.toml")


def test_a_table_may_be_parquet(tmp_path: Path) -> None:
    """Column by column what the CSV file holds; without pyarrow it is said what is missing."""
    written(tmp_path, "squared", SCORES)
    (tmp_path / "lab.parquet").write_bytes(b"PAR1")
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        with pytest.raises(InputError, match="reading Parquet needs pyarrow; pip install"):
            read_table(tmp_path / "lab.parquet", "lab", "id")
        pytest.skip("pyarrow is not installed; what is said then was checked")
    with pytest.raises(InputError, match=r"lab\.parquet: cannot be read"):
        read_table(tmp_path / "lab.parquet", "lab", "id")
    pd.read_csv(tmp_path / "lab.csv").to_parquet(tmp_path / "lab.parquet")
    (table, y), (known, labels) = (
        read_table(tmp_path / f"lab.{kind}", "lab", "id", label="y") for kind in ("parquet", "csv")
    )
    assert (table.party, table.columns) == (known.party, known.columns)
    np.testing.assert_array_equal(table.X, known.X)
    np.testing.assert_array_equal(table.keys, known.keys)
    np.testing.assert_array_equal(y, labels)


def test_models_add_up() -> None:
    one = PartyModel("a", ("x",), np.array([[2.0]]), np.array([1.0]))
    np.testing.assert_array_equal(
        one.scores(_own("a", pd.DataFrame({"x": [1.0, 3.0]}))), [[3], [7]]
    )
