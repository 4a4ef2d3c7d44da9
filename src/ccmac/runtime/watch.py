"""Names the rank that was killed: a killed process cannot speak, and launchers often misname it.

A watcher process of the root waits (it sleeps until the system wakes it) for the end of any rank of
its host and says whose it was. Started as a script, it imports nothing of the package. Needs pidfds
(Linux 5.3); elsewhere nothing is watched.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
from collections.abc import Sequence

ENTRY = re.compile(r"^(rank \d+): (.*), pid (\d+) on (.*)$")


def start(roster: Sequence[str], host: str) -> subprocess.Popen[bytes] | None:
    """Watch the ranks of ``roster`` (lines of Mpi.roster) that run on ``host``.

    Returns when the watcher is on its post: on a busy host it may take a while to start.
    """
    if not hasattr(os, "pidfd_open"):
        return None
    found = [match for match in map(ENTRY.match, roster) if match and match[4] == host]
    arguments = [f"{match[3]}={match[1]} ({match[2]})" for match in found]
    watcher = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert watcher.stdout is not None
    watcher.stdout.read(1)  # a watcher that fails closes it
    return watcher


def stop(watcher: subprocess.Popen[bytes]) -> None:
    """The job is over: nobody is missed any more."""
    watcher.kill()
    watcher.wait()
    for stream in (watcher.stdin, watcher.stdout):
        if stream is not None:
            stream.close()


def main(arguments: Sequence[str]) -> None:
    """Wait for the first rank to end, and name it.

    The launcher ends the others at once. When the watcher wakes late, several have ended; epoll
    tells of them in the order in which they did.
    """
    ended = select.epoll()
    names = {}
    for argument in arguments:
        pid, _, name = argument.partition("=")
        try:
            descriptor = os.pidfd_open(int(pid))
        except ProcessLookupError:
            names[-1] = name
            break
        names[descriptor] = name
        ended.register(descriptor, select.EPOLLIN)
    print(".", end="", flush=True)
    first = names[-1] if -1 in names else names[ended.poll()[0][0]]
    print(f"error: {first} was killed; the job ends, the last checkpoint stays", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
