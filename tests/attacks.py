"""Owners and a relay under attack, as processes on the loopback: what it does to honest ones.

    python tests/attacks.py [--only flood refusals ...]        or: make attacked

Three owners on a path. Strangers attack agent 0, or the relay, while all are honest: these must end
with the bits of one process. Or agent 2, with a good certificate, misbehaves: the others must end
with one line within patience + 10 s. Nobody may need more than 300 MB. The short form is in
tests/runtime/test_links.py.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT.parent / "src")]

import ccmac  # noqa: E402
from ccmac.errors import InputError  # noqa: E402
from ccmac.owners.session import Owner  # noqa: E402
from ccmac.paper.instances import random_quadratic  # noqa: E402
from ccmac.runtime import wire  # noqa: E402
from ccmac.runtime.links import PROTOCOL, VIOLATIONS  # noqa: E402
from ccmac.runtime.tls import Identity  # noqa: E402
from ccmac.runtime.wire import BYE, DATA, REFUSE  # noqa: E402
from ccmac.version import __version__  # noqa: E402
from owners import N, free_ports, trial  # noqa: E402

PATIENCE = 5.0
MEGABYTES = 300
LIVE = """import resource, sys
from ccmac.cli.main import main
code = main(sys.argv[1:])
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
sys.exit(code)
"""
SPOILT = """from ccmac.runtime.owners import Owners
exchange = Owners._exchange
def spoilt(self, sent, received):
    factor = float("nan") if self.rounds > 20 else 1.0
    exchange(self, [(peer, array * factor) for peer, array in sent], received)
Owners._exchange = spoilt
"""


class Trial:
    """Files of three owners; processes of the honest ones."""

    def __init__(self, folder: Path, *, relay: bool) -> None:
        self.problem = random_quadratic(9, n=N, q=300, m=200, kappa_f=300.0)
        self.folder = trial(folder, self.problem, PATIENCE, tol="1e-9")
        self.port = self._address()[1]
        self.met: float | None = None  # when the attack began
        if relay:
            [self.port] = free_ports(1)
            for i in range(N):
                file = folder / f"me-{i}.toml"
                head = file.read_text().partition("[neighbors]")[0]
                lines = [line for line in head.splitlines() if not line.startswith("listen")]
                place = f'{{dial = "relay", address = "127.0.0.1:{self.port}"}}'
                near = [f"{j} = {place}" for j in (i - 1, i + 1) if 0 <= j < N]
                file.write_text("\n".join([*lines, "[neighbors]", *near, ""]))
            text = f'listen = "127.0.0.1:{self.port}"\nauthority = "keys/authority.crt"\n'
            (folder / "relay.toml").write_text(text)

    def _address(self, i: int = 0) -> tuple[str, int]:
        """Where agent ``i`` listens."""
        listen = Owner.read(self.folder / f"me-{i}.toml").mine.listen
        host, _, port = str(listen).rpartition(":")
        return host, int(port)

    def start(self, *words: str, program: str = LIVE) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", program, *words]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=quiet, text=True)

    def agent(self, i: int) -> subprocess.Popen[str]:
        return self.start("agent", str(self.folder / f"me-{i}.toml"))

    def connected(self) -> ssl.SSLSocket:
        """Agent 2 at agent 1."""
        names = ("agent-2.crt", "agent-2.key", "authority.crt")
        files = [str(self.folder / "keys" / name) for name in names]
        context = Identity(*files).context(server=False)
        deadline = time.monotonic() + 30
        while True:
            try:
                plain = socket.create_connection(self._address(1), timeout=10)
                self.met = self.met or time.monotonic()
                return context.wrap_socket(plain, server_hostname="agent-1")
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def greeting(self, **more: Any) -> bytes:
        facts = Owner.read(self.folder / "me-2.toml").links().facts
        said = {"protocol": PROTOCOL, "agent": 2, "session": "s", "facts": facts, "arrived": 0}
        said |= {"version": __version__, **more}
        return wire.encode(wire.HELLO, 0, 0, wire.hello(**said))

    def right(self) -> bool:
        """All have the bits of one process."""
        alone = ccmac.InProcess(ccmac.Network.path(N), fused=False)
        whole = ccmac.solve(self.problem, method="cross-apapc", tol=1e-9, runtime=alone)
        for i in range(N):
            with np.load(self.folder / f"out-{i}" / f"solution-{i:04d}-{i:04d}.npz") as found:
                if found[f"x{i}"].tobytes() != whole.x[i].tobytes():
                    return False
        return True


# -- strangers -------------------------------------------------------------------------------------
def half_open(trial: Trial) -> None:
    """500 connections that never shake hands, and 100 that say something else."""
    where = ("127.0.0.1", trial.port)
    with contextlib.ExitStack() as stack:
        for k in range(600):
            with contextlib.suppress(OSError):
                one = stack.enter_context(socket.create_connection(where, timeout=5))
                if k % 6 == 0:
                    one.sendall(bytes(range(256)) * 400)
        time.sleep(2)


# -- agent 2 ---------------------------------------------------------------------------------------
def repeated(*frames: bytes) -> Callable[[Trial], None]:
    """Say this, be hung up on, and say it again, until nobody listens."""

    def attack(trial: Trial) -> None:
        for _ in range(VIOLATIONS + 5):
            with trial.connected() as connection, contextlib.suppress(OSError):
                connection.sendall(trial.greeting())
                for frame in frames:
                    connection.sendall(frame)
                while connection.recv(1 << 16):
                    pass

    return attack


def flood(size: int) -> Callable[[Trial], None]:
    """2 GB of messages."""

    def attack(trial: Trial) -> None:
        with trial.connected() as connection:
            connection.sendall(trial.greeting())
            for k in range((2 << 30) // size):
                connection.sendall(wire.encode(DATA, k, 0, bytes(size)))

    return attack


def not_a_number(trial: Trial) -> None:
    """Everything as it should be, but for the numbers."""
    job = trial.start("agent", str(trial.folder / "me-2.toml"), program=SPOILT + LIVE)
    while job.poll() is None and not (trial.folder / "state-2").exists():
        time.sleep(0.01)
    trial.met = time.monotonic()  # they are connected, and about to begin
    job.communicate()


STRANGERS = {"half-open and garbage": half_open, "the same at the relay": half_open}
NEIGHBOR: dict[str, Callable[[Trial], None]] = {
    "early BYE": repeated(wire.encode(BYE, 0, 0)),
    "garbage after the handshake": repeated(bytes(range(256)) * 4000),
    "frames of 2^31 bytes": repeated(struct.pack(">2sBIQQ", b"CM", DATA, 1 << 31, 0, 0), bytes(99)),
    "absurd sizes": repeated(struct.pack(">2sBIQQ", b"CM", DATA, 1 << 30, 0, 0), bytes(1 << 20)),
    "another agent's number": lambda trial: repeated(trial.greeting(agent=0))(trial),
    "2 GB in messages of 1 MB": flood(1 << 20),
    "2 GB in messages of 16 bytes": flood(16),
    "NaN": not_a_number,
    "a flood of refusals": repeated(
        *[wire.encode(REFUSE, 0, 0, b"\x1b[31m" + bytes([65 + k % 26]) * 2000) for k in range(500)]
    ),
}


def tried(name: str, folder: Path) -> bool:
    """One attack; a line about how it ended."""
    trial = Trial(folder, relay="relay" in name)
    attack = STRANGERS.get(name) or NEIGHBOR[name]
    relay = [trial.start("relay", str(trial.folder / "relay.toml"))] if "relay" in name else []
    jobs = [trial.agent(i) for i in range(N if name in STRANGERS else N - 1)]

    def attacking() -> None:
        with contextlib.suppress(OSError, InputError):  # the trial may be over
            attack(trial)

    time.sleep(1.0 if name in STRANGERS else 0.0)
    threading.Thread(target=attacking, daemon=True).start()
    begun = time.monotonic()
    ended = []
    for job in jobs:
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.wait(120)
        job.kill() if job.poll() is None else None
        ended.append(job.communicate()[1])
    seconds = time.monotonic() - (trial.met or begun)
    for job in relay:
        job.terminate()
        ended.append(job.communicate()[1])
    peak = max(int(words.rpartition("peak ")[2] or 9999) for words in ended)
    codes = [job.returncode for job in jobs]
    errors = [line for words in ended for line in words.splitlines() if line.startswith("error")]
    if name in STRANGERS:
        good = codes == [0] * N and trial.right()
    else:
        good = codes == [1] * (N - 1) and len(errors) == N - 1 and seconds < PATIENCE + 10
        good = good and all("agent" in line for line in errors)
    good = good and peak < MEGABYTES and "\x1b" not in "".join(ended)
    verdict = "held" if good else "NOT HELD"
    said = errors[0][:90] if errors else "the bits of one process"
    print(f"{name:30} {verdict:9} {seconds:5.1f} s {peak:4} MB  {codes}  {said}", flush=True)
    if not good:
        print("\n".join(words[-600:] for words in ended))
    return good


def main() -> None:
    """All of them, or some."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[])
    wanted = parser.parse_args().only
    names = [n for n in (*STRANGERS, *NEIGHBOR) if not wanted or any(w in n for w in wanted)]
    with tempfile.TemporaryDirectory() as folder:
        held = [tried(name, Path(folder) / str(k)) for k, name in enumerate(names)]
    print(f"{sum(held)} of {len(held)} held")
    sys.exit(not all(held))


if __name__ == "__main__":
    main()
