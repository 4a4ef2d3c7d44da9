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
from pathlib import Path

import numpy as np

from ccmac.errors import InputError
from ccmac.storage.files import atomic_write
from ccmac.storage.keys import make_keys, request
from ccmac.storage.owner import address
from ccmac.texts import dumps

HERE = ("127.0.0.1", "localhost")
ROWS = 60  # of the tables of the example
PUBLIC = """# What all owners have alike: each keeps a copy, and copies are compared.
agents = {count}               # how many owners
q = 0                    # entries of the shared variable z
m = 1                    # coupled rows: here, that all x_i add up to what all need together
network = "complete"     # who talks to whom: complete, ring, star, path, ...
method = "auto"          # or cross-cg, cross-direct, ...: see ccmac methods
tol = 1e-6               # certified error of the answer, relative to max(1, its norm)
averaging = "auto"       # "masked": nobody sees another's rows, only their sum
names = {names}  # the names in the owners' certificates, in the order of the agents
revoked = []             # fingerprints of certificates that count no more: ccmac keys show
"""
MINE = """# This owner's own settings; paths are relative to this file.
public = "public.toml"            # what all have alike
agent = {agent}                         # my number: the place of my name in the public file
python = "model.py"               # my own file: it defines my agent, and is executed
out = "result"                    # where my part of the answer goes
checkpoint = "state"              # to go on after a stop; delete it to begin anew
every = 50                        # iterations between two checkpoints
{link}"""
LINK = """certificate = "{name}.crt"{pad}# who I am; renew it in place, also during a run
key = "{name}.key"        {pad}# mine alone: nobody else may read it
authority = "authority.crt"       # signed everybody's certificate
{listen}patience = 60.0                   # seconds after which a silent owner ends the run
wait = 600.0                      # seconds to wait for the others at the start
"""
LISTEN = 'listen = "{}"{}# where neighbors with larger numbers dial me\n'
RELAY = """# A relay: owners meet here who take no connections. Start: ccmac relay relay.toml
listen = "{listen}"{pad}# where owners dial it
authority = "authority.crt"       # signed the owners' certificates
names = {names}  # who may use it
revoked = []                      # fingerprints of certificates that count no more
rate = 1e8                        # bytes per second, of each direction of a pair
connections = 200                 # at most
"""
PARTY = """# This party's own settings; paths are relative to this file.
party = "{name}"                # my name
parties = {names}    # all parties, the same order everywhere
table = "table.csv"             # my columns, a row for each key
key = "id"                      # the column of keys, by which rows are joined
new = "new.csv"                 # new rows for: ccmac vfl predict me.toml
out = "result"                  # where my weights and scores go
checkpoint = "state"            # to go on after a stop; delete it to begin anew
every = 50                      # iterations between two checkpoints
{label}
[model]                         # the same at all parties
loss = "squared"                # or logistic, huber, hinge, multinomial, ...
regularization = 0.01           # ridge penalty on the weights
standardize = true              # columns count in their standard deviations
join = "strict"                 # all have the same keys; "inner": those that all have
salt = "{salt}"  # keys travel as hashes with this salt: keep it among you
averaging = "auto"              # "masked": nobody sees another's part of the scores
tol = 1e-6                      # certified error, relative

[link]
names = {names}    # the names in the parties' certificates
{link}
[link.neighbors]                # {where}
"""
HEAD = '''"""This owner's part. `ccmac agent me.toml` runs this file."""

'''
DATA = """
cost = np.array([{cost}])    # f(x) = sum cost_j x_j^2 / 2 - gain_j x_j
gain = np.array([{gain}])
needs = {needs}                # this owner's share of what all must supply together
"""
BLOCKS = """import numpy as np

import ccmac
{data}f = ccmac.objectives.Quadratic(np.diag(cost), gain)
agent = ccmac.Agent(f, A=np.ones((1, 2)), b=[needs])
"""
CVXPY = """import cvxpy as cp
import numpy as np

import ccmac
{data}x = cp.Variable(2, name="x")
f = cp.sum(cp.multiply(cost, cp.square(x))) / 2 - gain @ x
agent = ccmac.cvx.Agent(cp.Minimize(f), coupled=[cp.sum(x) - needs])


def done(result):  # called when the run has ended
    print("x =", x.value)
"""
README = """# {name}

One owner's part of a run of ccmac between {count} owners: {names}.

1. Put your own data in place: {data}.
2. {keys}
3. Set the addresses in me.toml: yours under `listen`, the others' under `neighbors`.
4. Start, in any order with the others: `{command}`
5. Your part of the answer is in `result/`. What others learn is on the page "What others learn".

`{name}.key` stays here. Everybody has the same {same}.
"""
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
    public = PUBLIC.format(count=len(names), names=dumps(list(names), None))
    for i, (name, folder) in enumerate(folders.items()):
        link = _link(name, None if relay else port + i)
        link += f"\n[neighbors]                       # {MET if relay else WHERE}\n"
        link += _neighbors({f"{j}": port + j for j in range(len(names)) if j != i}, relay)
        atomic_write(folder / "public.toml", public)
        atomic_write(folder / "me.toml", MINE.format(agent=i, link=link))
        data = DATA.format(cost=f"{1.0 + i}, 2.0", gain=f"1.0, {0.5 * i}", needs=3.0 + i)
        atomic_write(folder / "model.py", HEAD + (CVXPY if cvxpy else BLOCKS).format(data=data))
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
        text = PARTY.format(
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


def _folders(
    place: Path, names: Sequence[str], port: int, requests: bool, relay: str | None
) -> dict[str, Path]:
    """{owner: its folder, with key and certificate, or a request for one}; the relay's too."""
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
        text = RELAY.format(listen=listen, names=dumps(list(names), None), pad=pad)
        atomic_write(place / "relay" / "relay.toml", text)
    if requests:
        for name, folder in folders.items():
            request(folder, name)
        return folders
    make_keys(place / "authority", names)
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
    return LINK.format(name=name, listen=listen, pad=" " * max(1, 14 - len(name)))


def _neighbors(ports: Mapping[str, int], relay: str | None) -> str:
    if relay is not None:
        place = f'{{dial = "relay", address = "{relay}"}}'
        return "".join(f"{name} = {place}\n" for name in ports)
    return "".join(f'{name} = "127.0.0.1:{port}"\n' for name, port in ports.items())


def _readme(
    folder: Path, names: Sequence[str], data: str, command: str, same: str, requests: bool
) -> None:
    name = folder.name
    text = README.format(
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
