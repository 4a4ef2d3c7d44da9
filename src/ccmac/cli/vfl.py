"""``ccmac vfl party`` and ``ccmac vfl predict``: vertical learning between owners.

Every process reads its own me.toml and its own table, and writes its own folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ccmac.api import make_runtime
from ccmac.cli.options import AsJson, Log, Page, checkpoint, fitted, opt, print_json, watching
from ccmac.cli.owners import ByRelay, Place, Port, Requests, list_made
from ccmac.cli.solve import exit_code
from ccmac.errors import InputError
from ccmac.network import as_network
from ccmac.runtime import Runtime
from ccmac.storage.files import atomic_write, try_file
from ccmac.storage.owner import Link, Mine, Public, checked_public, read_toml
from ccmac.texts import shown
from ccmac.vfl.between import Agreement, Terms, check_keys, check_own, predict, train
from ccmac.vfl.files import (
    read_model,
    read_table,
    write_model,
    write_scores,
    write_tried,
    write_weights,
)

MODEL = "model.json"
SCORES = "scores.csv"
WEIGHTS = "weights.csv"
TRIED = "grid.csv"
PREDICTIONS = "predictions.csv"
EPILOG = (
    "Example: `mpiexec -n 1 ccmac vfl party bank.toml : -n 1 ccmac vfl party shop.toml`\n\n"
    "Exit codes: 0 solved, 1 tolerance not reached, 2 bad input."
)
app = typer.Typer(no_args_is_help=True, help="Vertical learning between owners.")


class PartyLink(Link, frozen=True, kw_only=True):
    """``[link]``: how this party reaches its neighbors."""

    names: tuple[str, ...] = ()
    revoked: tuple[str, ...] = ()


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
    checkpoint: str | None = None
    every: int = 50
    link: PartyLink | None = None
    model: Terms = Terms()

    @property
    def agreement(self) -> Agreement:
        """What all have alike."""
        return Agreement(parties=tuple(self.parties), **msgspec.structs.asdict(self.model))


File = Annotated[Path, typer.Argument(metavar="ME.TOML", help="Who I am; see the page vertical.")]


@app.command("new", epilog="Example: `ccmac vfl new credit --parties bank,shop,clinic`")
def new(
    place: Place,
    *,
    parties: Annotated[str, opt("Their names: bank,shop,clinic.")],
    port: Port = 7000,
    requests: Requests = False,
    relay: ByRelay = None,
) -> None:
    """Make a folder for each party: settings, keys, an example, and a README. It runs as it is."""
    from ccmac.owners.scaffold import Scaffold

    made = Scaffold(place, parties.split(","), port, requests, relay).parties()
    list_made(place, made, runs=not (requests or relay))


@app.command("party", epilog=EPILOG)
def take_part(file: File, *, log: Log = None, status: Page = None, as_json: AsJson = False) -> None:
    """Fit a model with the other parties; write this party's weights and scores."""
    me = read_me(file)
    out = file.parent / me.out
    try_file(out / MODEL)
    place = file.parent / me.table
    raw = bool(me.model.preprocess)
    table, y = read_table(place, me.party, me.key, label=me.label, columns=me.columns, raw=raw)
    check_own(me.agreement, table, y)
    kept = checkpoint(file, me.checkpoint, me.every)
    with connected(file, me, watching(log, status)) as runtime:
        model, rows, result = train(me.agreement, table, y, runtime, kept)
        atomic_write(out / SCORES, write_scores(rows.keys, model.scores(rows)))
        atomic_write(out / WEIGHTS, write_weights(model))
        if model.tried:
            atomic_write(out / TRIED, write_tried(model))
        atomic_write(out / MODEL, write_model(model))
    if as_json:
        print_json({"party": me.party, "rows": rows.rows, **result.as_dict()})
    else:
        joined = f"{rows.rows} of {table.rows} rows joined"
        first = f"party {me.party}: {joined}, {len(model.columns)} weights in {out}"
        typer.echo(fitted(f"{first}\n{who_knows(me)}\n{result}"))
    raise typer.Exit(exit_code(result))


@app.command("predict")
def sum_scores(file: File) -> None:
    """Add up the parties' scores for new rows; everybody learns the sums."""
    me = read_me(file)
    if me.new is None:
        raise InputError(f'{file}: names no table of new rows; add new = "FILE"')
    try_file(file.parent / me.out / PREDICTIONS)
    model = read_model(file.parent / me.out / MODEL)
    if model.party != me.party:
        raise InputError(f"{file}: {MODEL} is the model of another party, {shown(model.party)}")
    new = file.parent / me.new
    table, _ = read_table(new, me.party, me.key, columns=model.taken, raw=bool(model.learned))
    check_keys(me.agreement, table)
    place = file.parent / me.out / PREDICTIONS
    with connected(file, me, watching(None, None)) as runtime:
        rows, scores = predict(me.agreement, model, table, runtime)
        atomic_write(place, write_scores(rows.keys, scores, model, me.model.loss))
    typer.echo(f"party {me.party}: {len(scores)} of {table.rows} rows joined, predicted in {place}")


def who_knows(me: Me) -> str:
    """Who can compute the labels."""
    if me.model.share_labels:
        return "labels: all parties have them (share_labels = false keeps them at their owner)"
    if me.model.loss == "squared":
        return (
            "labels: their owner keeps the loss, but all parties can compute them (docs/privacy.md)"
        )
    return "labels: their owner keeps the loss; slopes of it tell others of them (docs/privacy.md)"


@contextmanager
def connected(file: Path, me: Me, status: Any) -> Iterator[Runtime]:
    """One party, one process: MPI, or links between owners. An error here ends the run of all."""
    if me.party not in me.parties:
        raise InputError(f"{file}: party {shown(me.party)} is not in its own list of parties")
    if len({*me.parties}) < len(me.parties):
        raise InputError(f"{file}: parties: a name is there twice; give each its own")
    terms = me.model
    link = me.link
    if link is None:
        from ccmac.runtime.mpi import guard

        with guard():
            network = as_network(terms.network, len(me.parties))
            yield make_runtime(network, "mpi", terms.averaging)
        return
    from ccmac.owners.session import Owner

    lists: Any = {"names": [*link.names], "revoked": [*link.revoked]}
    public = Public(len(me.parties), 0, 0, terms.network, averaging=terms.averaging, **lists)
    public = checked_public(file, public)
    number = {name: str(i) for i, name in enumerate(me.parties)}
    near = {number.get(name, name): place for name, place in link.neighbors.items()}
    known = {name: getattr(link, name) for name in Link.__struct_fields__}
    known |= {"agent": me.parties.index(me.party), "neighbors": near}
    mine = Mine(public="", out=me.out, **known)
    with Owner.of(file, mine, public).runtime(status) as runtime:
        yield runtime


def read_me(path: Path) -> Me:
    """``me.toml``, checked."""
    return read_toml(path, Me, "; see the page on vertical learning")
