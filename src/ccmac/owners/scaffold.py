"""A folder for each owner of a run to begin with: it runs as it is, every value has a comment."""

from __future__ import annotations

import csv
import io
import secrets
import subprocess
import sys
import threading
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.storage.files import atomic_write
from ccmac.storage.owner import address
from ccmac.texts import dumps

HERE = ("127.0.0.1", "localhost")
ROWS = 60  # of the tables of the example
LISTEN = 'listen = "{}"{}# where neighbors with larger numbers dial me\n'
SIGNED = "{name}.crt is signed for a trial: in earnest make your own with `ccmac keys request`."

ASKED = (
    "Send {name}.csr to whoever signs for all (`ccmac keys sign`); put the {name}.crt and "
    "authority.crt that you get here."
)


WHERE = "where they listen; the larger number dials"
MET = "at the relay: nobody takes connections"


def new_owners(
    place: Path,
    names: Sequence[str],
    port: int,
    *,
    requests: bool = False,
    relay: str | None = None,
    cvxpy: bool = False,
) -> list[Path]:
    """Owners of agents whose example is a supply that all share."""
    folders = _folders(place, names, port, requests, relay)
    public = _filled("public.toml", count=len(names), names=dumps(list(names), None))
    for i, (name, folder) in enumerate(folders.items()):
        link = _link(name, None if relay else port + i)
        link += f"\n[neighbors]                       # {MET if relay else WHERE}\n"
        link += _neighbors({f"{j}": port + j for j in range(len(names)) if j != i}, relay)
        atomic_write(folder / "public.toml", public)
        atomic_write(folder / "me.toml", _filled("me.toml", agent=i, link=link))
        form = "cvxpy.txt" if cvxpy else "blocks.txt"
        text = _filled(form, cost=f"{1.0 + i}, 2.0", gain=f"1.0, {0.5 * i}", needs=3.0 + i)
        atomic_write(folder / "model.py", text)
        _readme(folder, names, "model.py", "ccmac agent me.toml", "public.toml", requests)
    return list(folders.values())


def new_parties(
    place: Path,
    names: Sequence[str],
    port: int,
    *,
    requests: bool = False,
    relay: str | None = None,
) -> list[Path]:
    """Parties of a table that is split by columns; the first has the labels."""
    folders = _folders(place, names, port, requests, relay)
    salt = secrets.token_hex(8)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, 2 * len(names)))
    y = X @ rng.standard_normal(X.shape[1]) + 0.1 * rng.standard_normal(ROWS)
    for i, (name, folder) in enumerate(folders.items()):
        near = _neighbors({other: port + j for j, other in enumerate(names) if j != i}, relay)
        label = 'label = "y"                     # the column of labels, at one party\n'
        text = _filled(
            "party.toml",
            name=name,
            names=dumps(list(names), None),
            label="" if i else label,
            salt=salt,
            link=_link(name, None if relay else port + i),
            where=MET if relay else WHERE,
        )
        atomic_write(folder / "me.toml", text + near)
        columns = {f"{name}_{j}": X[:, 2 * i + j] for j in range(2)}
        both = columns if i else {**columns, "y": y}
        old, new = slice(0, ROWS - 10), slice(ROWS - 10, ROWS)
        atomic_write(folder / "table.csv", _table(both, old))
        atomic_write(folder / "new.csv", _table(columns, new))
        same = "[model], parties and names"
        _readme(folder, names, "table.csv", "ccmac vfl party me.toml", same, requests)
    return list(folders.values())


def run_all(place: Path) -> int:
    """Every owner in a process of its own, on this machine; the largest exit code."""
    files = sorted(place.glob("*/me.toml"))
    if not files:
        raise InputError(f"{place}: holds no folder with me.toml; make some with: ccmac owners new")
    relays = [*place.glob("*/relay.toml")]
    jobs = [_started(_command(file), file) for file in [*relays, *files]]
    readers = [
        threading.Thread(target=_copied, args=(file.parent.name, job))
        for file, job in zip([*relays, *files], jobs, strict=True)
    ]
    for reader in readers:
        reader.start()
    owners = jobs[len(relays) :]
    try:
        return max(job.wait() for job in owners)
    finally:
        for job in jobs:
            if job.poll() is None:
                job.terminate()
        for job, reader in zip(jobs, readers, strict=True):
            reader.join()
            job.wait()


def _command(file: Path) -> str:
    if file.name == "relay.toml":
        return "relay"
    return "vfl party" if "party" in tomllib.loads(file.read_text(encoding="utf-8")) else "agent"


def _started(command: str, file: Path) -> subprocess.Popen[str]:
    words = [*command.split(), str(file)]
    run = [sys.executable, "-c", "from ccmac.cli.main import run; run()", *words]
    return subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _copied(name: str, job: subprocess.Popen[str]) -> None:
    """The lines of one owner, with its name."""
    assert job.stdout is not None
    with job.stdout as lines:
        for line in lines:
            print(f"{name:>10} | {line}", end="", flush=True)


def _filled(template: str, **values: Any) -> str:
    """A file of the folder ``templates``."""
    place = resources.files("ccmac.owners").joinpath("templates", template)
    return place.read_text(encoding="utf-8").format(**values)


def _folders(
    place: Path, names: Sequence[str], port: int, requests: bool, relay: str | None
) -> dict[str, Path]:
    """{owner: its folder, with key and certificate, or a request for one}; the relay's too."""
    from ccmac.storage import keys

    if len(names) < 2:
        raise InputError("owners: give at least two names, as in north,south,west")
    if not 0 < port <= 65536 - len(names):
        raise InputError(f"owners: port {port} leaves no room for {len(names)} owners")
    if place.exists():
        raise InputError(f"{place}: is there already; choose another name")
    if relay and "relay" in names:
        raise InputError("owners: the relay's folder is called relay; choose another name")
    folders = {name: place / name for name in names}
    if relay:
        host, relay_port = address(Path("--relay"), relay)
        listen = f"{host if host in HERE else '0.0.0.0'}:{relay_port}"
        pad = " " * (23 - len(listen))
        text = _filled("relay.toml", listen=listen, names=dumps(list(names), None), pad=pad)
        atomic_write(place / "relay" / "relay.toml", text)
    if requests:
        for name, folder in folders.items():
            keys.request(folder, name)
        return folders
    keys.make_keys(place / "authority", names)
    for name, folder in folders.items():
        folder.mkdir(parents=True)
        for file in (f"{name}.key", f"{name}.crt"):
            (place / "authority" / file).rename(folder / file)
    certificate = (place / "authority" / "authority.crt").read_bytes()
    for folder in [*folders.values(), *([place / "relay"] if relay else [])]:
        atomic_write(folder / "authority.crt", certificate)
    return folders


def _link(name: str, port: int | None) -> str:
    where = f"127.0.0.1:{port}"
    listen = "" if port is None else LISTEN.format(where, " " * (23 - len(where)))
    return _filled("link.toml", name=name, listen=listen, pad=" " * max(1, 14 - len(name)))


def _neighbors(ports: Mapping[str, int], relay: str | None) -> str:
    if relay is not None:
        place = f'{{dial = "relay", address = "{relay}"}}'
        return "".join(f"{name} = {place}\n" for name in ports)
    return "".join(f'{name} = "127.0.0.1:{port}"\n' for name, port in ports.items())


def _readme(
    folder: Path, names: Sequence[str], data: str, command: str, same: str, requests: bool
) -> None:
    name = folder.name
    text = _filled(
        "README.md",
        name=name,
        count=len(names),
        names=", ".join(names),
        data=data,
        keys=(ASKED if requests else SIGNED).format(name=name),
        command=command,
        same=same,
    )
    atomic_write(folder / "README.md", text)


def _table(columns: Mapping[str, np.ndarray], rows: slice) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", *columns])
    for j in range(ROWS)[rows]:
        writer.writerow([f"p{j:03d}", *(repr(float(v[j])) for v in columns.values())])
    return text.getvalue()
