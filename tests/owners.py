"""Owners in threads of one process, or in processes, over TLS on the loopback."""

from __future__ import annotations

import datetime
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ccmac
from ccmac.cli.main import main
from ccmac.runtime.links import Links
from ccmac.runtime.tls import Identity
from ccmac.storage.keys import make_keys

N = 3  # owners of a trial
COMMAND = [sys.executable, "-c", "from ccmac.cli.main import run; run()"]
SECONDS = 60.0  # no test waits longer


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Neighborhood:
    """Certificates and addresses of the agents of a network."""

    def __init__(self, folder: Path, network: ccmac.Network) -> None:
        self.folder = folder
        self.network = network
        make_keys(folder, [f"agent-{i}" for i in range(network.n)])
        self.ports = free_ports(network.n)
        self.said: dict[int, list[str]] = {i: [] for i in range(network.n)}

    def identity(self, i: int, folder: Path | None = None, revoked: Sequence[str] = ()) -> Identity:
        """The files of one agent."""
        keys = folder or self.folder
        files = keys / f"agent-{i}.crt", keys / f"agent-{i}.key", keys / "authority.crt"
        return Identity(*map(str, files), revoked)

    def links(self, i: int, **more: Any) -> Links:
        """The connections of one agent, not yet made."""
        neighbors = {
            int(j): (f"agent-{j}", ("127.0.0.1", self.ports[j]) if j < i else None)
            for j in self.network.neighbors(i)
        }
        options = {"patience": 20.0, "wait": 20.0, "say": self.said[i].append, **more}
        facts = options.pop("facts", {"the public file": "1"})
        options["names"] = [f"agent-{j}" for j in range(self.network.n)]
        identity = options.pop("identity", None) or self.identity(i)
        return Links(i, neighbors, ("127.0.0.1", self.ports[i]), identity, facts, **options)


def at_once(work: Callable[[int], Any], agents: Sequence[int]) -> dict[int, Any]:
    """``work(i)`` of every agent in a thread of its own: what it returns, or its error."""
    found: dict[int, Any] = {}

    def run(i: int) -> None:
        try:
            found[i] = work(i)
        except BaseException as error:
            found[i] = error

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert len(found) == len(agents), f"agents {sorted({*agents} - {*found})} hang"
    return found


# -- certificates that others refuse ---------------------------------------------------------------
def replaced(folder: Path, name: str, change: Callable[[Any], Any], file: str) -> None:
    """``file``.crt anew, with the authority's signature, for ``name``, changed."""
    from ccmac.storage import keys

    issuer, signer, _ = keys._authority(folder)
    own = keys._load_key(folder / f"{file}.key")
    built = change(keys._certificate(name, own.public_key(), issuer, 30))
    (folder / f"{file}.crt").unlink()
    keys._write(folder / f"{file}.crt", keys._signed(built, signer))


def expired(built: Any) -> Any:
    now = datetime.datetime.now(datetime.UTC)
    built._not_valid_before = (now - datetime.timedelta(days=3)).replace(tzinfo=None)
    built._not_valid_after = (now - datetime.timedelta(days=1)).replace(tzinfo=None)
    return built


def later(built: Any) -> Any:
    built._not_valid_before += datetime.timedelta(days=2)
    return built


def for_servers(built: Any) -> Any:
    from cryptography import x509

    usages = x509.oid.ExtendedKeyUsageOID
    built._extensions = [e for e in built._extensions if e.oid != x509.ExtendedKeyUsage.oid]
    return built.add_extension(x509.ExtendedKeyUsage([usages.SERVER_AUTH]), False)


def by_mail(built: Any) -> Any:
    """The right name, but not as the name of a host."""
    from cryptography import x509

    built._extensions = [e for e in built._extensions if e.oid != x509.SubjectAlternativeName.oid]
    names = [x509.RFC822Name("agent-1"), x509.UniformResourceIdentifier("agent-1")]
    return built.add_extension(x509.SubjectAlternativeName(names), False)


# -- processes ------------------------------------------------------------------------------------
def trial(folder: Path, problem: ccmac.Problem, patience: float = 2.0, **more: Any) -> Path:
    """Everything that the owners need, in one folder."""
    folder.mkdir()
    assert main(["keys", str(folder / "keys"), "--agents", str(N)]) == 0
    settings = {"method": '"cross-apapc"', "tol": "1e-10", "network": '"path"', **more}
    lines = [f"{name} = {value}" for name, value in settings.items()]
    sizes = [f"agents = {N}", f"q = {problem.q}", f"m = {problem.m}"]
    (folder / "public.toml").write_text("\n".join([*sizes, *lines]) + "\n")
    ports = free_ports(N)
    for i, agent in problem.agents.items():
        agent.save(folder / f"agent-{i}")
        near = "\n".join(f'{j} = "127.0.0.1:{ports[j]}"' for j in (i - 1, i + 1) if 0 <= j < N)
        (folder / f"me-{i}.toml").write_text(
            f"""public = "public.toml"
agent = {i}
folder = "agent-{i}"
certificate = "keys/agent-{i}.crt"
key = "keys/agent-{i}.key"
authority = "keys/authority.crt"
listen = "127.0.0.1:{ports[i]}"
out = "out-{i}"
checkpoint = "state-{i}"
every = 5
patience = {patience}
[neighbors]
{near}
"""
        )
    return folder


def start(
    folder: Path, i: int, arguments: Sequence[str] = (), **more: str
) -> subprocess.Popen[str]:
    return command("agent", str(folder / f"me-{i}.toml"), "--json", *arguments, **more)


def command(*words: str, **more: str) -> subprocess.Popen[str]:
    """``ccmac`` with these words, in a process of its own."""
    return subprocess.Popen(
        [*COMMAND, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **more},
    )


def finish(jobs: list[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    ended = []
    for job in jobs:
        try:
            out, errors = job.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            job.kill()
            out, errors = job.communicate()
        ended.append((job.returncode, out, errors))
    return ended
