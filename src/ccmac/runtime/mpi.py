"""Messages between MPI processes: the only module that imports mpi4py. Only NumPy buffers travel.

Waiting looks at the clock and lets signals in: a job whose link is cut ends after its time limit,
and Ctrl-C is noticed while a message is on its way. MPI's own waiting calls do neither, and they
poll without a pause; here pauses grow with the wait (docs/decisions.md has the CPU times of both).
"""

from __future__ import annotations

import atexit
import os
import time
import weakref
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager

import numpy as np

from ccmac.errors import CcmacError, InputError
from ccmac.ledger import Ledger
from ccmac.network import Network
from ccmac.runtime.audit import Audit
from ccmac.runtime.averaging import Averaging
from ccmac.runtime.distributed import Distributed
from ccmac.runtime.failure import aborting
from ccmac.runtime.partition import processes_started
from ccmac.runtime.transport import Message, Transport

try:
    from mpi4py import MPI
except (ImportError, RuntimeError) as error:
    raise InputError(
        f"runtime mpi cannot start ({error}); install it with: pip install 'ccmac[mpi]'"
    ) from error

__all__ = ["MPI", "Mpi", "MpiTransport", "guard"]

BUSY_SECONDS = 5e-4  # where each rank has a core: a message within a machine is there by then
NAP_SHARE = 1 / 64  # of the time waited so far: no message is found later than that
NAP_SECONDS = (5e-5, 5e-3)  # at least, at most
YIELD = getattr(os, "sched_yield", lambda: time.sleep(0))  # not on Windows


def guard(agents: range | None = None) -> AbstractContextManager[None]:
    """End the whole job with one line naming rank and agents if the block raises here."""
    world = MPI.COMM_WORLD
    return aborting(_abort, world.Get_rank(), agents, alone=world.Get_size() == 1)


class MpiTransport(Transport):
    """Rounds by nonblocking sends and receives; a duplicate of ``comm`` is the transport's own."""

    def __init__(self, comm: MPI.Intracomm | None = None) -> None:
        _refuse_strangers(MPI.COMM_WORLD.Get_size())
        self._comm = (comm or MPI.COMM_WORLD).Dup()
        self.rank = self._comm.Get_rank()
        self.ranks = self._comm.Get_size()
        here = self._comm.Split_type(MPI.COMM_TYPE_SHARED)
        crowded = here.Get_size() > (os.cpu_count() or 1)
        self._busy = 0.0 if crowded else BUSY_SECONDS  # who waits takes the core of who computes
        here.Free()

    def _exchange(self, sent: Sequence[Message], received: Sequence[Message]) -> None:
        arriving = [self._comm.Irecv(array, peer) for peer, array in received]
        leaving = [self._comm.Isend(array, peer) for peer, array in sent]
        requests = [*arriving, *leaving]
        begun = time.monotonic()
        while not MPI.Request.Testall(requests):
            now = time.monotonic()
            if now > self.given_up:
                late = [p for (p, _), r in zip(received, arriving, strict=True) if not r.Test()]
                names = ", ".join(f"rank {peer}" for peer in late) or "a peer"
                raise CcmacError(
                    f"no message from {names} beyond the time limit: a cut link or a lost process; "
                    "the last checkpoint stays"
                )
            waited = now - begun
            if waited > self._busy:
                time.sleep(min(max(NAP_SHARE * waited, NAP_SECONDS[0]), NAP_SECONDS[1]))
            else:
                YIELD()

    def strangers(self, digest: bytes) -> list[int]:
        """All ranks are asked."""
        digests = np.empty((self.ranks, len(digest)), dtype=np.uint8)
        self._comm.Allgather(np.frombuffer(digest, dtype=np.uint8).copy(), digests)
        present = [row.tobytes() for row in digests]
        common = Counter(present).most_common(1)[0][0]
        return [rank for rank, row in enumerate(present) if row != common]

    def abort(self, code: int) -> None:
        """The launcher ends all ranks."""
        _abort(code)

    def close(self) -> None:
        """Give the communicator back."""
        if self._comm != MPI.COMM_NULL:
            self._comm.Free()


class Mpi(Distributed):
    """Owns a contiguous range of agents, one range per rank."""

    def __init__(
        self,
        network: Network,
        *,
        ledger: Ledger | None = None,
        averaging: Averaging | str = "auto",
        comm: MPI.Intracomm | None = None,
        audit: bool | Audit = False,
    ) -> None:
        transport = MpiTransport(comm)
        super().__init__(network, transport, ledger=ledger, averaging=averaging, audit=audit)
        # Communicators must be given back before MPI ends.
        atexit.register(_close, weakref.ref(self))


def _refuse_strangers(size: int) -> None:
    """A launcher of another kind starts processes that do not know of each other."""
    started = processes_started()
    if size == 1 and started > 1:
        raise InputError(
            f"runtime mpi: {started} processes were started, but each sees itself alone; use the "
            f"launcher of the MPI that mpi4py is built with ({MPI.get_vendor()[0]}): its own "
            "mpiexec, or srun --mpi=pmi2 for MPICH, --mpi=pmix for Open MPI"
        )


def _abort(code: int) -> None:
    MPI.COMM_WORLD.Abort(code)
    # Some launchers let the call return before they end the job.
    os._exit(code)


def _close(runtime: weakref.ref[Mpi]) -> None:
    living = runtime()
    if living is not None and not MPI.Is_finalized():
        living.close()
