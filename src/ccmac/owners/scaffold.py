"""A folder for each owner of a run to begin with: it runs as it is, every value has a comment."""

from __future__ import annotations

import re
import secrets
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.storage.files import atomic_write
from ccmac.storage.owner import address
from ccmac.texts import dumps

ROWS = 60  # of the tables of the example
SIGNED = "{name}.crt is signed for a trial: in earnest make your own with `ccmac keys request`."
ASKED = (
    "Send {name}.csr to whoever signs for all (`ccmac keys sign`); put the {name}.crt and "
    "authority.crt that you get here."
)


@dataclass(frozen=True)
class Scaffold:
    """Owners with these names, who listen at ``port`` and after it, or meet at a ``relay``; with
    certificates for a trial, or requests for them.
    """

    place: Path
    names: Sequence[str]
    port: int
    requests: bool = False
    relay: str | None = None

    def owners(self, *, cvxpy: bool = False) -> list[Path]:
        """Owners of agents whose example is a supply that all share."""
        folders = self._folders()
        public = _filled("public.toml", count=len(self.names), names=self._listed)
        numbers = [str(i) for i in range(len(self.names))]
        form = "cvxpy.txt" if cvxpy else "blocks.txt"
        for i, folder in enumerate(folders):
            example = {"cost": f"{1.0 + i}, 2.0", "gain": f"1.0, {0.5 * i}", "needs": 3.0 + i}
            files = {
                "public.toml": public,
                "me.toml": _filled("me.toml", agent=i, **self._link(i, numbers)),
                "model.py": _filled(form, **example),
            }
            self._write(folder, files, "model.py", "agent", "public.toml")
        return folders

    def parties(self) -> list[Path]:
        """Parties of a table that is split by columns; the first has the labels."""
        folders = self._folders()
        salt = secrets.token_hex(8)
        rng = np.random.default_rng(0)
        X = rng.standard_normal((ROWS, 2 * len(self.names)))
        y = X @ rng.standard_normal(X.shape[1]) + 0.1 * rng.standard_normal(ROWS)
        for i, (name, folder) in enumerate(zip(self.names, folders, strict=True)):
            more = self._link(i, self.names)
            label = "" if i else 'label = "y" # the column of labels, at one party\n'
            text = _filled(
                "party.toml", name=name, names=self._listed, label=label, salt=salt, **more
            )
            columns = {f"{name}_{j}": X[:, 2 * i + j] for j in range(2)}
            known = columns if i else {**columns, "y": y}
            files = {
                "me.toml": text,
                "table.csv": _table(known, range(ROWS - 10)),
                "new.csv": _table(columns, range(ROWS - 10, ROWS)),
            }
            same = "[model], parties and names"
            self._write(folder, files, "table.csv", "vfl party", same)
        return folders

    @property
    def _listed(self) -> str:
        return dumps(list(self.names), None)

    def _folders(self) -> list[Path]:
        """One for each owner, with key and certificate, or a request for one; the relay's too."""
        from ccmac.storage import keys

        names = self.names
        if len(names) < 2:
            raise InputError("owners: give at least two names, as in north,south,west")
        if not 0 < self.port <= 65536 - len(names):
            raise InputError(f"owners: port {self.port} leaves no room for {len(names)} owners")
        if self.place.exists():
            raise InputError(f"{self.place}: is there already; choose another name")
        if self.relay and "relay" in names:
            raise InputError("owners: the relay's folder is called relay; choose another name")
        folders = [self.place / name for name in names]
        homes = list(folders)  # of the authority's certificate
        if self.relay:
            host, port = address(Path("--relay"), self.relay)
            listen = f"{host if host in ('127.0.0.1', 'localhost') else '0.0.0.0'}:{port}"
            homes.append(self.place / "relay")
            text = _filled("relay.toml", listen=listen, names=self._listed)
            atomic_write(homes[-1] / "relay.toml", text)
        if self.requests:
            for name, folder in zip(names, folders, strict=True):
                keys.request(folder, name)
            return folders
        authority = self.place / "authority"
        keys.make_keys(authority, names)
        for home in homes:
            atomic_write(home / "authority.crt", (authority / "authority.crt").read_bytes())
        for name, folder in zip(names, folders, strict=True):
            for file in (f"{name}.key", f"{name}.crt"):
                (authority / file).rename(folder / file)
        return folders

    def _link(self, i: int, called: Sequence[str]) -> dict[str, str]:
        """Certificate and addresses of owner ``i``; its file calls the owners so."""
        where = [f'"127.0.0.1:{self.port + j}"' for j in range(len(self.names))]
        listen = f"listen = {where[i]} # where neighbors with larger numbers dial me\n"
        met = "where they listen; the larger number dials"
        if self.relay:
            listen = ""
            met = "at the relay: nobody takes connections"
            where = [f'{{dial = "relay", address = "{self.relay}"}}'] * len(where)
        rows = zip(called, where, self.names, strict=True)
        lines = [
            f"{key} = {place}{'' if key == name else f' # {name}'}\n" for key, place, name in rows
        ]
        link = _filled("link.toml", name=self.names[i], listen=listen)
        return {"link": link, "where": met, "near": "".join([*lines[:i], *lines[i + 1 :]])}

    def _write(
        self, folder: Path, files: Mapping[str, str], data: str, command: str, same: str
    ) -> None:
        """The files of an owner, and what to do with them."""
        more = {"name": folder.name, "count": len(self.names), "names": ", ".join(self.names)}
        more |= {"data": data, "command": f"ccmac {command} me.toml", "same": same}
        keys = (ASKED if self.requests else SIGNED).format(name=folder.name)
        for name, text in files.items():
            atomic_write(folder / name, text)
        atomic_write(folder / "README.md", _filled("README.md", keys=keys, **more))


def _filled(template: str, **values: Any) -> str:
    """A file of the folder ``templates``; comments of settings stand one below the other."""
    place = resources.files("ccmac.owners").joinpath("templates", template)
    text = place.read_text(encoding="utf-8").format(**values)
    if not template.endswith(".toml"):
        return text
    return re.sub(r"^(\S[^#\n]*?) *# ", lambda m: f"{m[1]:<33} # ", text, flags=re.MULTILINE)


def _table(columns: Mapping[str, np.ndarray], rows: Iterable[int]) -> str:
    lines = [",".join(["id", *columns])]
    for j in rows:
        lines.append(",".join([f"p{j:03d}", *(repr(float(v[j])) for v in columns.values())]))
    return "\n".join(lines) + "\n"


def run_all(place: Path) -> int:
    """Every owner in a process of its own, on this machine; the largest exit code."""
    files = sorted(place.glob("*/me.toml"))
    if not files:
        raise InputError(f"{place}: holds no folder with me.toml; make some with: ccmac owners new")
    relays = [_started("relay", file) for file in place.glob("*/relay.toml")]
    owners = []
    for file in files:
        party = "party" in tomllib.loads(file.read_text(encoding="utf-8"))
        owners.append(_started("vfl party" if party else "agent", file))
    try:
        return max(job.wait() for job, _ in owners)
    finally:
        for job, copied in [*owners, *relays]:
            job.terminate()
            copied.join()
            job.wait()


def _started(command: str, file: Path) -> tuple[subprocess.Popen[str], threading.Thread]:
    """A process, and a thread that prints its lines with the owner's name."""
    words = [*command.split(), str(file)]
    run = [sys.executable, "-c", "from ccmac.cli.main import run; run()", *words]
    job = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def copied() -> None:
        with job.stdout as lines:  # type: ignore[union-attr]
            for line in lines:
                print(f"{file.parent.name:>10} | {line}", end="", flush=True)

    thread = threading.Thread(target=copied)
    thread.start()
    return job, thread
