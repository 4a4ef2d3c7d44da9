"""Agents spread over MPI processes.

A round is a message between any two ranks that hold neighboring agents, set up once and started
again; a scalar sum is one Allgatherv followed by the same sum in agent order everywhere. Results
are bit-identical to those of one process on any number of ranks. Only NumPy buffers travel.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import signal
import weakref
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.ledger import Ledger
from ccmac.network import Network
from ccmac.runtime import halo, watch
from ccmac.runtime.audit import EVERYONE, Audit, Entry, entries
from ccmac.runtime.averaging import Averaging, Relay, Tree
from ccmac.runtime.base import Runtime
from ccmac.runtime.failure import aborting
from ccmac.runtime.messages import LARGE, MPI, Relaying, Round
from ccmac.runtime.partition import bounds, describe, processes_started
from ccmac.version import __version__

__all__ = ["LARGE", "MPI", "Mpi", "Relaying", "guard"]

ROSTER_BYTES = 160
WIDTHS = 4  # of rows, for which relays are kept ready: setup has more, an iteration one or two


def guard(agents: range | None = None) -> AbstractContextManager[None]:
    """End the whole job with one line naming rank and agents if the block raises here."""
    return aborting(_abort, MPI.COMM_WORLD.Get_rank(), agents)


class Mpi(Runtime):
    """Owns a contiguous range of agents, one range per rank; nothing is fused.

    Construction is collective and refuses ranks that hold different networks or versions.
    """

    def __init__(
        self,
        network: Network,
        *,
        ledger: Ledger | None = None,
        averaging: Averaging | str = "auto",
        comm: MPI.Intracomm | None = None,
        audit: bool | Audit = False,
    ) -> None:
        super().__init__(network, ledger=ledger, averaging=averaging)
        _refuse_strangers(MPI.COMM_WORLD.Get_size())
        self._comm = (comm or MPI.COMM_WORLD).Dup()
        self.rank, self.ranks = self._comm.Get_rank(), self._comm.Get_size()
        self._ends = bounds(network.n, self.ranks)
        self._sizes = np.diff(self._ends)
        self.audit = (Audit() if audit else None) if isinstance(audit, bool) else audit
        self.check_consistent(fingerprint(network, self.averaging))
        self._check_arithmetic()
        self._peers = halo.rank_neighbors(network, self._ends, self.rank)
        self._rounds: dict[tuple[int, int], Round] = {}
        self._relays: dict[int, Relaying] = {}
        # Persistent requests must be given back before MPI ends.
        atexit.register(_close, weakref.ref(self))

    @property
    def owned(self) -> range:
        """The agents of this rank."""
        return range(int(self._ends[self.rank]), int(self._ends[self.rank + 1]))

    def guard(self) -> AbstractContextManager[None]:
        """End the whole job with one line naming this rank and its agents if the block raises."""
        return guard(self.owned)

    # -- talking --------------------------------------------------------------------------
    def _mix(self, block: Array, matrix: sp.csr_array) -> Array:
        return self.round(matrix, block.shape[1]).mix(block)

    def round(self, matrix: sp.csr_array, width: int) -> Round:
        """The prepared round of ``matrix`` for rows of ``width`` floats."""
        key = id(matrix), width
        found = self._rounds.get(key)
        if found is None:
            halo.check_support(self.network, matrix)
            plan = halo.plan(matrix, self._peers, self._ends, self.rank, width)
            found = self._rounds[key] = Round(self._comm, plan, width, self.audit)
            # An id may be used again once its matrix is gone.
            weakref.finalize(matrix, _forget, weakref.ref(self), key)
        return found

    def _totals(self, parts: Sequence[Array]) -> list[Array]:
        block = np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]
        widths = np.cumsum([part.shape[1] for part in parts])[:-1]
        return np.split(self._total(block), widths, axis=1)

    def _total(self, block: Array) -> Array:
        width, scheme = block.shape[1], self.averaging
        if width == 0:
            return np.zeros((1, 0))
        if isinstance(scheme, Relay):
            return scheme.total(self._relaying(scheme, width).gather(block))
        assert isinstance(scheme, Tree)
        for matrix in scheme.schedule:
            block = self._mix(block, matrix)
        return block[:1].copy()

    def _relaying(self, scheme: Relay, width: int) -> Relaying:
        """The prepared rounds for a width; the tables of the last few widths are kept."""
        found = self._relays.pop(width, None)
        if found is None:
            found = Relaying(self._comm, scheme, self._ends, width, self.audit)
        self._relays[width] = found
        if len(self._relays) > WIDTHS:
            self._relays.pop(next(iter(self._relays))).close()
        return found

    def _spread(self, values: Array) -> Array:
        values = np.array(values)
        if self.audit and self.is_root:
            self.audit.record("spread", EVERYONE, values, 0)
        self._comm.Bcast(values, root=0)
        return values

    def _gather(self, values: Array) -> Array:
        values = np.ascontiguousarray(values, dtype=np.float64)
        width = int(np.prod(values.shape[1:]))
        if self.audit:
            self.audit.record("gather", EVERYONE, values, len(values))
        everything = np.empty((self.n, *values.shape[1:]))
        self._comm.Allgatherv(values, [everything, self._sizes * width])
        return everything

    def collect(self, rows: list[Array]) -> list[Array] | None:
        """All agents' vectors at the root, None elsewhere. Leaves the owners: ask for it."""
        mine = np.concatenate([np.zeros(0), *(np.ravel(row) for row in rows)])
        lengths = self._gather(np.array([[float(np.size(row))] for row in rows]))
        lengths = lengths[:, 0].astype(np.int64)
        if self.audit and not self.is_root:
            self.audit.record("collect", 0, mine, len(rows))
        per_rank = np.add.reduceat(lengths, self._ends[:-1])
        everything = np.empty(int(lengths.sum())) if self.is_root else None
        self._comm.Gatherv(mine, None if everything is None else [everything, per_rank], root=0)
        return None if everything is None else np.split(everything, np.cumsum(lengths)[:-1])

    # -- trust ----------------------------------------------------------------------------
    def check_consistent(self, token: str) -> None:
        """Refuse ranks that started from something else: all must present the same token."""
        strays = self._strays(token.encode())
        if strays:
            raise InputError(
                f"rank {strays}: problem files, network, settings or version of ccmac differ from "
                f"those of the other ranks; give all {self.ranks} ranks the same"
            )

    def _strays(self, token: bytes) -> str:
        """The ranks whose token differs from the most common one."""
        digest = np.frombuffer(hashlib.sha256(token).digest(), dtype=np.int64)
        if self.audit:
            self.audit.record("token", EVERYONE, digest, 0)
        digests = np.empty((self.ranks, digest.size), dtype=np.int64)
        self._comm.Allgather(digest.copy(), digests)
        present = [row.tobytes() for row in digests]
        common = Counter(present).most_common(1)[0][0]
        return ", ".join(str(r) for r, row in enumerate(present) if row != common)

    def _check_arithmetic(self) -> None:
        """Refuse ranks that round differently: they could part ways where a decision is close."""
        strays = self._strays(arithmetic())
        if strays:
            raise InputError(
                f"rank {strays}: rounds differently from the other ranks (another processor or "
                "BLAS); take hosts of one kind, or let all ranks compute alike, with OpenBLAS by "
                "OPENBLAS_CORETYPE=Haswell and NPY_DISABLE_CPU_FEATURES='AVX512F AVX512_SKX'"
            )

    def roster(self) -> list[str] | None:
        """Who runs where, at the root; None elsewhere.

        A process that is killed cannot speak. The launcher then names a rank or a pid, and the
        roster whose it was; MPICH's may name one that it ended itself while cleaning up.
        """
        here = f"{describe(self.owned)}, pid {os.getpid()} on {MPI.Get_processor_name()}"
        line = np.frombuffer(here.encode()[:ROSTER_BYTES].ljust(ROSTER_BYTES), dtype=np.uint8)
        lines = np.empty((self.ranks, ROSTER_BYTES), dtype=np.uint8) if self.is_root else None
        self._comm.Gather(line.copy(), lines, root=0)
        if lines is None:
            return None
        return [f"rank {r}: {row.tobytes().decode().rstrip()}" for r, row in enumerate(lines)]

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Name a rank of the root's host that is killed inside the block. Collective."""
        roster, host = self.roster(), MPI.Get_processor_name()
        watcher = None if roster is None else watch.start(roster, host)
        where = np.array([0 if watcher is None else watcher.pid, zlib.crc32(host.encode())])
        mine = int(where[1])
        self._comm.Bcast(where, root=0)
        try:
            yield
        except BaseException:
            # This rank speaks for itself; a watcher on its host keeps silent.
            if where[0] and where[1] == mine:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(int(where[0]), signal.SIGKILL)
            raise
        self._comm.Barrier()
        if watcher is not None:
            watch.stop(watcher)
        self._comm.Barrier()

    def audit_report(self) -> list[Entry] | None:
        """Everything that every rank sent, at the root; None elsewhere (and without an audit)."""
        if self.audit is None:
            return None
        rows = self.audit.as_rows()
        counts = np.empty(self.ranks, dtype=np.int64)
        self._comm.Allgather(np.array([rows.size]), counts)
        everything = np.empty((int(counts.sum()) // 5, 5), dtype=np.int64)
        self._comm.Gatherv(rows, [everything, counts] if self.is_root else None, root=0)
        if not self.is_root:
            return None
        parts = np.split(everything, np.cumsum(counts // 5)[:-1])
        return [e for rank, part in enumerate(parts) for e in entries(rank, part.tolist())]

    def close(self) -> None:
        """Give requests and communicator back; the runtime is of no use afterwards."""
        for prepared in (*self._rounds.values(), *self._relays.values()):
            prepared.close()
        self._rounds.clear()
        self._relays.clear()
        if self._comm != MPI.COMM_NULL:
            self._comm.Free()


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


def _forget(runtime: weakref.ref[Mpi], key: tuple[int, int]) -> None:
    living = runtime()
    prepared = living._rounds.pop(key, None) if living is not None else None
    if prepared is not None and not MPI.Is_finalized():
        prepared.close()


def _close(runtime: weakref.ref[Mpi]) -> None:
    living = runtime()
    if living is not None and not MPI.Is_finalized():
        living.close()


def fingerprint(network: Network, averaging: Averaging) -> str:
    """Version, network and routes: where these differ, the rounds would not match."""
    digest = hashlib.sha256()
    weights = network.weights
    for part in (weights.indptr, weights.indices, weights.data, averaging.routes):
        digest.update(np.ascontiguousarray(part).tobytes())
    return f"{__version__} {network.n} {averaging.name} {digest.hexdigest()}"


def arithmetic() -> bytes:
    """The bits of a few results whose order of summation the library or processor chooses."""
    matrix = np.sin(np.arange(1.0, 6001.0)).reshape(120, 50)
    image = matrix @ np.cos(np.arange(50.0))
    spectrum = np.linalg.eigvalsh(matrix[:50] + matrix[:50].T)
    results = matrix, image, image @ matrix, image @ image, np.sum(matrix), np.exp(image), spectrum
    return b"".join(np.asarray(result).tobytes() for result in results)
