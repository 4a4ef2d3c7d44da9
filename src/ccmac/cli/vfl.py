"""``ccmac vfl party`` and ``ccmac vfl predict``: vertical learning between owners.

Every process reads its own me.toml and its own table, and writes its own folder.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import typer

from ccmac.api import make_runtime
from ccmac.cli.options import AsJson, fitted, print_json
from ccmac.cli.solve import exit_code
from ccmac.errors import InputError
from ccmac.network import as_network
from ccmac.runtime import Runtime
from ccmac.runtime.averaging import by_name
from ccmac.storage.files import atomic_write, try_file
from ccmac.storage.owner import Mine, Public, checked_mine, checked_public, read_toml
from ccmac.texts import MEGABYTE, cut, dumps, loads, nearest, open_file, read_text, shown
from ccmac.vfl.between import Agreement, PartyModel, Terms, predict, train
from ccmac.vfl.tables import PartyTable, read_tables

BYTES = 16 * MEGABYTE
MODEL = "model.json"
SCORES = "scores.csv"
PREDICTIONS = "predictions.csv"
EPILOG = (
    "Example: `mpiexec -n 1 ccmac vfl party bank.toml : -n 1 ccmac vfl party shop.toml`\n\n"
    "Exit codes: 0 solved, 1 tolerance not reached, 2 bad input."
)
app = typer.Typer(no_args_is_help=True, help="Vertical learning between owners.")


class LinkTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[link]``: how this party reaches its neighbors; paths are relative to the file."""

    certificate: str
    key: str
    authority: str
    listen: str | None = None
    neighbors: dict[str, str] = {}
    names: list[str] = []
    patience: float = 60.0
    wait: float = 600.0


class Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``model.json``: a row of ``coef`` for each column, an entry of it for each score."""

    format: Literal["ccmac-vfl-party"]
    version: Literal[1]
    party: str
    columns: list[str]
    coef: list[list[float]]
    offset: list[float]
    classes: list[str | int | float | bool]


class Me(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``me.toml``; paths are relative to it."""

    party: str
    parties: list[str]
    table: str
    key: str
    out: str
    label: str | None = None
    columns: list[str] | None = None
    new: str | None = None
    link: LinkTable | None = None
    model: Terms = Terms()

    @property
    def agreement(self) -> Agreement:
        """What all have alike."""
        return Agreement(parties=tuple(self.parties), **msgspec.structs.asdict(self.model))


File = Annotated[Path, typer.Argument(metavar="ME.TOML", help="Who I am; see the page vertical.")]


@app.command("party", epilog=EPILOG)
def take_part(file: File, *, as_json: AsJson = False) -> None:
    """Fit a model with the other parties; write this party's weights and scores."""
    me = read_me(file)
    out = file.parent / me.out
    try_file(out / MODEL)
    with connected(file, me) as runtime:
        table, y = read_own(file, me, me.table, labels=me.label)
        model, rows, result = train(me.agreement, table, y, runtime)
        scores = _table(["key"], rows.keys, model.scores(rows))
        atomic_write(out / SCORES, scores)
        atomic_write(out / MODEL, dumps(_content(model)))
    if as_json:
        print_json({"party": me.party, **result.as_dict()})
    else:
        typer.echo(fitted(f"party {me.party}: {len(model.columns)} weights in {out}\n{result}"))
    raise typer.Exit(exit_code(result))


@app.command("predict")
def sum_scores(file: File) -> None:
    """Add up the parties' scores for new rows; everybody learns the sums."""
    me = read_me(file)
    if me.new is None:
        raise InputError(f'{file}: names no table of new rows; add new = "FILE"')
    try_file(file.parent / me.out / PREDICTIONS)
    with connected(file, me) as runtime:
        model = read_model(file.parent / me.out / MODEL)
        if model.party != me.party:
            raise InputError(f"{file}: {MODEL} is the model of another party, {shown(model.party)}")
        table, _ = read_own(file, me, me.new, columns=list(model.columns))
        rows, scores = predict(me.agreement, model, table, runtime)
        place = file.parent / me.out / PREDICTIONS
        atomic_write(place, _table(["key"], rows.keys, scores, _classes(model, scores)))
    typer.echo(f"party {me.party}: {len(scores)} predictions in {place}")


@contextmanager
def connected(file: Path, me: Me) -> Iterator[Runtime]:
    """One party, one process: MPI, or links between owners. An error here ends the run of all."""
    if me.party not in me.parties:
        raise InputError(f"{file}: party {shown(me.party)} is not in its own list of parties")
    if len({*me.parties}) < len(me.parties):
        raise InputError(f"{file}: parties: a name is there twice; give each its own")
    names = [] if me.link is None else me.link.names
    public = checked_public(file, Public(len(me.parties), 0, 0, me.model.network, names=names))
    network = as_network(me.model.network, len(me.parties))
    averaging = by_name(network, me.model.averaging)
    if me.link is None:
        from ccmac.runtime.mpi import guard

        with guard():
            yield make_runtime(network, "mpi", me.model.averaging)
        return
    from ccmac.cli.agent import Owner
    from ccmac.runtime.owners import between_owners

    link = me.link
    number = {name: str(i) for i, name in enumerate(me.parties)}
    near = {number.get(name, name): place for name, place in link.neighbors.items()}
    mine = Mine(
        "",
        me.parties.index(me.party),
        "",
        link.certificate,
        link.key,
        link.authority,
        me.out,
        link.listen,
        near,
        patience=link.patience,
        wait=link.wait,
    )
    asked = Owner(file, checked_mine(file, mine), public, network, averaging)
    with asked.links(None) as links:
        links.start()
        yield between_owners(links, network, asked.averaging)


# -- files -----------------------------------------------------------------------------------------
def read_me(path: Path) -> Me:
    """``me.toml``, checked."""
    return read_toml(path, Me, "; see the page on vertical learning")


def read_own(
    file: Path, me: Me, name: str, *, labels: str | None = None, columns: list[str] | None = None
) -> tuple[PartyTable, Any]:
    """This party's table (CSV or Parquet) and its labels, if it has them."""
    try:
        import pandas as pd
    except ImportError:
        raise InputError("vfl: reading tables needs pandas; pip install 'ccmac[vfl]'") from None
    path = file.parent / name
    try:
        with open_file(path) as stream:  # an ordinary file, and nothing that pandas would fetch
            if path.suffix == ".parquet":
                frame = pd.read_parquet(stream)
            else:
                frame = _read_csv(stream, me.key)
    except FileNotFoundError:
        raise InputError(
            f"{cut(str(path), 160)}: not found; it is the table of party {shown(me.party)}"
        ) from None
    except ImportError:
        raise InputError(
            f"{path}: reading Parquet needs pyarrow; pip install 'ccmac[parquet]'"
        ) from None
    except (ValueError, OSError, LookupError, TypeError, NotImplementedError) as error:
        raise InputError(f"{cut(str(path), 160)}: cannot be read ({cut(str(error))})") from None
    y = None
    if labels is not None:
        if labels not in frame.columns:
            hint = nearest(labels, map(str, frame.columns))
            raise InputError(
                f"{path}: has no column {shown(labels)}, the labels of {shown(me.party)}; {hint}"
            )
        y = frame.pop(labels).to_numpy()
    elif me.label is not None and me.label in frame.columns:
        frame = frame.drop(columns=me.label)
    wanted = columns or me.columns
    if wanted is not None:
        if me.key in wanted:
            raise InputError(f"{file}: the key {shown(me.key)} is among columns; take it out")
        for column in wanted:
            if column not in frame.columns:
                raise InputError(
                    f"{path}: party {shown(me.party)}, column {shown(column)}: is missing"
                )
        frame = frame[[me.key, *wanted] if me.key in frame.columns else wanted]
    [table] = read_tables({me.party: frame}, key=me.key)
    return table, y


def _read_csv(stream: Any, key: str) -> Any:
    """A CSV whose header names each column once; pandas would rename or shift the others."""
    import pandas as pd

    named = pd.read_csv(stream, header=None, nrows=1, dtype=str).iloc[0].dropna()
    if named.duplicated().any():
        twice = named[named.duplicated()].iloc[0]
        raise ValueError(f"column {shown(twice)} is named twice; give each its own name")
    stream.seek(0)
    frame = pd.read_csv(stream, dtype={key: str})
    if not isinstance(frame.index, pd.RangeIndex):
        raise ValueError("rows have more cells than there are names of columns")
    return frame


def _content(model: PartyModel) -> dict[str, Any]:
    return {
        "format": "ccmac-vfl-party",
        "version": 1,
        "party": model.party,
        "columns": [str(c) for c in model.columns],
        "coef": model.coef,
        "offset": model.offset,
        "classes": list(model.classes),
    }


def read_model(path: Path) -> PartyModel:
    """A file that ``ccmac vfl party`` wrote."""
    try:
        found = msgspec.convert(loads(read_text(path, str(path), BYTES)), Stored)
        scores = len(found.offset)
        names = len(found.classes)
        shape = len(found.columns), scores
        coef = np.array(found.coef, dtype=np.float64).reshape(shape)
        if scores == 0 or names not in (0, max(scores, 2)) or len(found.coef) != shape[0]:
            raise ValueError
    except FileNotFoundError:
        raise InputError(f"{path}: not found; run ccmac vfl party first") from None
    except InputError:
        raise
    except ValueError:
        raise InputError(f"{path}: is not a model of ccmac vfl party") from None
    offset = np.array(found.offset)
    classes = tuple(found.classes)
    return PartyModel(found.party, tuple(found.columns), coef, offset, classes)


def _classes(model: PartyModel, scores: np.ndarray[Any, Any]) -> Any:
    """The classes that the scores say, where their names are known."""
    if not model.classes:
        return None
    single = scores.shape[1] == 1
    best = (scores[:, 0] > 0).astype(int) if single else scores.argmax(axis=1)
    return [model.classes[k] for k in best]


def _table(names: list[str], keys: Any, scores: Any, classes: Any = None) -> str:
    """Keys, scores and classes as CSV."""
    k = scores.shape[1]
    names = names + (["score"] if k == 1 else [f"score_{j}" for j in range(k)])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names + (["class"] if classes is not None else []))
    for row, (key, values) in enumerate(zip(keys.tolist(), scores.tolist(), strict=True)):
        writer.writerow([key, *map(repr, values), *([classes[row]] if classes is not None else [])])
    return text.getvalue()
