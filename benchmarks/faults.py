"""What owners survive, on an emulated wide-area network: cut links, killed owners, strangers.

    python benchmarks/faults.py WAN [--parts apart healed cut killed strangers relay] [--kills 10]

WAN is the command of ``benchmarks/latency.py``, with ``WAN cut I J`` and ``WAN heal I J`` besides
(root only). Four owners on a ring, each in a host of its own, run ``ccmac agent``. Printed is, part
by part, how often what must hold did: the bits of one process at the end, also after a resumption;
everybody ended within patience + 10 s with an exit code that is not 0; strangers named, nobody
disturbed. Replayed and truncated messages are in tests/runtime/test_links.py.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

import ccmac
from ccmac.paper.instances import random_quadratic
from ccmac.runtime.tls import Identity
from ccmac.storage.keys import make_keys

N = 4
PORT = 7000
METHOD = "cross-apapc"
TOL = 1e-10
COMMAND = [sys.executable, "-c", "from ccmac.cli.main import run; run()", "agent"]
PATIENCE = 15.0  # seconds: longer than an owner on a busy machine may be kept from running
GRACE = 10.0  # seconds beyond the patience
LIMIT = 300.0  # seconds that no run needs
ME = """public = "public.toml"
agent = {i}
folder = "agent-{i}"
certificate = "keys/agent-{i}.crt"
key = "keys/agent-{i}.key"
authority = "keys/authority.crt"
listen = "10.78.0.{host}:{port}"
out = "out-{i}"
checkpoint = "state-{i}"
every = 5
patience = {patience}
[neighbors]
"""


class Trial:
    """Files and processes of four owners."""

    def __init__(self, wan: str, folder: Path, problem: ccmac.Problem, whole: ccmac.Result) -> None:
        self.wan = wan
        self.folder = folder
        self.problem = problem
        self.whole = whole
        self.jobs: list[subprocess.Popen[bytes]] = []
        self.patience = 0.0
        make_keys(folder / "keys", [f"agent-{i}" for i in range(N)])
        sizes = f"agents = {N}\nq = {problem.q}\nm = {problem.m}\nnetwork = 'ring'\n"
        (folder / "public.toml").write_text(f"{sizes}method = '{METHOD}'\ntol = {TOL}\n")
        for i, agent in problem.agents.items():
            agent.save(folder / f"agent-{i}")

    def begin(self, patience: float, relay: str = "") -> None:
        """Start all owners; what an earlier run left is gone. ``relay``: all dial this address."""
        for i in range(N):
            for name in (f"out-{i}", f"state-{i}"):
                shutil.rmtree(self.folder / name, ignore_errors=True)
            near = [f'{j} = "10.78.0.{j + 1}:{PORT}"' for j in ((i - 1) % N, (i + 1) % N)]
            text = ME.format(i=i, host=i + 1, port=PORT, patience=patience)
            if relay:
                text = re.sub("listen = .*\n", "", text)
                place = f'{{dial = "relay", address = "{relay}"}}'
                near = [f"{j} = {place}" for j in ((i - 1) % N, (i + 1) % N)]
            (self.folder / f"me-{i}.toml").write_text(text + "\n".join(near) + "\n")
        self.patience = patience
        self.again()

    def again(self) -> None:
        """Start all owners with what is on their disks."""
        self.jobs = []
        for i in range(N):
            with (self.folder / f"said-{i}").open("wb") as said:
                command = ["ip", "netns", "exec", f"wan{i}", *COMMAND]
                command.append(str(self.folder / f"me-{i}.toml"))
                self.jobs.append(subprocess.Popen(command, stdout=said, stderr=said))

    def said(self, i: int) -> str:
        """What an owner has printed."""
        return (self.folder / f"said-{i}").read_text(errors="replace")

    def running(self) -> bool:
        """Wait until every owner has saved once; False where the run ended before."""
        places = [self.folder / f"state-{i}" for i in range(N)]
        end = time.monotonic() + LIMIT
        while not all(list(place.glob("state-*.npz")) for place in places):
            if time.monotonic() > end or any(job.poll() is not None for job in self.jobs):
                return False
            time.sleep(0.02)
        return True

    def ended(self) -> tuple[float, list[int]]:
        """Seconds until everybody has ended, and the exit codes."""
        begun = time.monotonic()
        for job in self.jobs:
            with suppress(subprocess.TimeoutExpired):
                job.wait(max(0.0, LIMIT - (time.monotonic() - begun)))
            if job.poll() is None:
                job.kill()
        seconds = time.monotonic() - begun
        return seconds, [job.wait() for job in self.jobs]

    def right(self) -> bool:
        """Everybody ended well, with the bits of one process."""
        codes = self.ended()[1]
        same = [self._same(i) for i in range(N)] if codes == [0] * N else [False]
        if not all(same):
            print(f"    exit codes {codes}, last words {[self.said(i)[-200:] for i in range(N)]}")
        return all(same)

    def _same(self, i: int) -> bool:
        with np.load(self.folder / f"out-{i}" / f"solution-{i:04d}-{i:04d}.npz") as found:
            x = found[f"x{i}"]
            z = found["z"]
        return x.tobytes() == self.whole.x[i].tobytes() and z.tobytes() == self.whole.z.tobytes()

    def given_up(self, but: int | None = None) -> bool:
        """Everybody (``but`` one who was killed) ends in time, with a code that is not 0."""
        seconds, codes = self.ended()
        others = [code for i, code in enumerate(codes) if i != but]
        good = seconds <= self.patience + GRACE and all(code == 1 for code in others)
        print(f"    ended after {seconds:.1f} s (patience {self.patience:.0f} s), codes {codes}")
        return good

    def network(self, what: str, i: int, j: int) -> None:
        """Cut or heal a pair."""
        subprocess.run([self.wan, what, str(i), str(j)], check=True)


def apart(trial: Trial) -> bool:
    """Both pairs that are no neighbors cannot reach each other."""
    pairs = ((0, 2), (1, 3))
    for pair in pairs:
        trial.network("cut", *pair)
    trial.begin(60.0)
    good = trial.right()
    for pair in pairs:
        trial.network("heal", *pair)
    return good


def healed(trial: Trial) -> bool:
    """A pair of neighbors is cut for 20 s."""
    trial.begin(60.0)
    if not trial.running():
        return False
    trial.network("cut", 0, 1)
    time.sleep(20.0)
    alive = all(job.poll() is None for job in trial.jobs)  # nobody could go on, nobody gave up
    trial.network("heal", 0, 1)
    return trial.right() and alive


def cut(trial: Trial) -> bool:
    """A pair of neighbors is cut for good; everybody is started again after that."""
    trial.begin(PATIENCE)
    if not trial.running():
        return False
    trial.network("cut", 2, 3)
    good = trial.given_up()
    trial.network("heal", 2, 3)
    trial.again()
    return trial.right() and good


def killed(trial: Trial) -> bool:
    """kill -9 of an owner at a random moment; everybody is started again after that."""
    trial.begin(PATIENCE)
    if not trial.running():
        return False
    time.sleep(2.0 * random.random())
    victim = random.randrange(N)
    if trial.jobs[victim].poll() is not None:
        return trial.right()  # it was over
    os.kill(trial.jobs[victim].pid, signal.SIGKILL)
    good = trial.given_up(but=victim)
    trial.again()
    return trial.right() and good


def relay(trial: Trial) -> bool:
    """Nobody can be dialled but the relay, on a host of its own, which is killed and comes back."""
    host = f"wan{N}"
    where = f"10.78.0.{N + 1}:{PORT}"
    file = trial.folder / "relay.toml"
    names = [f"agent-{i}" for i in range(N)]
    file.write_text(f"listen = '{where}'\nauthority = 'keys/authority.crt'\nnames = {names}\n")
    for i in range(N):
        for j in range(i):
            trial.network("cut", i, j)

    def started() -> subprocess.Popen[bytes]:
        command = ["ip", "netns", "exec", host, *COMMAND[:-1], "relay", str(file)]
        return subprocess.Popen(command, stderr=subprocess.DEVNULL)

    job = started()
    trial.begin(60.0, where)
    good = trial.running()
    os.kill(job.pid, signal.SIGKILL)
    job.wait()
    time.sleep(2.0)
    under_way = all(job.poll() is None for job in trial.jobs)
    job = started()
    good = trial.right() and under_way and good
    job.kill()
    job.wait()
    for i in range(N):
        for j in range(i):
            trial.network("heal", i, j)
    return good


def strangers(trial: Trial) -> bool:
    """Another authority, an agent that is no neighbor, and no TLS at all come to agent 0."""
    foreign = trial.folder / "foreign"
    if not foreign.exists():
        make_keys(foreign, ["agent-1"])
    trial.begin(60.0)
    if not trial.running():
        return False
    keys = trial.folder / "keys"
    for files, name in ((foreign, "agent-1"), (keys, "agent-2"), (keys, "none")):
        program = [sys.executable, __file__, "--come", str(files / name), str(keys)]
        subprocess.run(["ip", "netns", "exec", "wan2", *program], check=True, timeout=LIMIT)
    lines = trial.said(0)
    named = [
        "refused a connection from 10.78.0.3: its certificate is refused" in lines,
        "refused agent-2 at 10.78.0.3: is no neighbor of this agent" in lines,
    ]
    print(f"    named: {named}")
    return trial.right() and all(named)


def come(who: str, keys: str) -> None:
    """A connection to agent 0, by somebody who should not."""
    import socket

    files = f"{who}.crt", f"{who}.key", f"{keys}/authority.crt"
    with suppress(OSError, ssl.SSLError):
        plain = socket.create_connection(("10.78.0.1", PORT), timeout=20)
        if who.endswith("none"):
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
            plain.recv(100)
        else:
            context = Identity(*files).context(server=False)
            connection = context.wrap_socket(plain, server_hostname="agent-0")
            while connection.recv(65536):
                pass


PARTS: dict[str, Callable[[Trial], bool]] = {
    "apart": apart,
    "healed": healed,
    "cut": cut,
    "killed": killed,
    "strangers": strangers,
    "relay": relay,
}


def main() -> None:
    """Run the parts, count."""
    if sys.argv[1:2] == ["--come"]:
        come(*sys.argv[2:4])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wan")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--delay", type=float, default=20.0, help="milliseconds one way")
    options = parser.parse_args()
    if os.geteuid() or not shutil.which(options.wan) or not shutil.which("ip"):
        print("skipped: needs root, ip, and a command that makes hosts with delays")
        return
    problem = random_quadratic(9, n=N, q=3, m=2, kappa_f=100.0)
    alone = ccmac.InProcess(ccmac.Network.ring(N), fused=False)
    whole = ccmac.solve(problem, method=METHOD, tol=TOL, runtime=alone)
    print(f"{whole.iterations} iterations, {whole.ledger.total('rounds')} rounds", flush=True)
    wrong = 0
    up = [options.wan, "up", str(round(1000 * options.delay)), "0", str(N + 1)]
    subprocess.run(up, check=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            trial = Trial(options.wan, Path(folder), problem, whole)
            for name in options.parts:
                count = options.kills if name == "killed" else 1
                held = sum(PARTS[name](trial) for _ in range(count))
                wrong += count - held
                print(f"{name}: {held} of {count}", flush=True)
    finally:
        subprocess.run([options.wan, "down"], check=True, stdout=subprocess.DEVNULL)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
