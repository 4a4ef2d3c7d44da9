"""Save and resume the state of a run; any number of processes can continue it."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import numpy as np

from ccmac.certificates.stopping import Stopping
from ccmac.errors import InputError
from ccmac.inputs import LARGEST, Array, positive, whole
from ccmac.methods.base import Iteration, Method, State
from ccmac.methods.identity import Asked, differences, identity, options_told
from ccmac.runtime.masked import Masked
from ccmac.storage import apart
from ccmac.storage import checkpoint as store
from ccmac.storage.holding import tidy
from ccmac.storage.index import Index, exists, read_index
from ccmac.storage.rows import Growing
from ccmac.storage.states import counts, number, told
from ccmac.texts import cut, shown
from ccmac.trace import WIDTH, Trace
from ccmac.version import __version__

EVERY = 50
TRACE = "trace"
BAD = (KeyError, TypeError, ValueError, OverflowError, AttributeError, IndexError)


class Checkpoints:
    """Every ``every`` iterations or ``seconds`` seconds, into one directory.

    ``planned`` and ``target`` are the tolerances that the stored run's plan was made for, ``path``
    how it came to the method it was saved in: "next" and "wider", in order.
    """

    def __init__(
        self, directory: Path, every: int | None, seconds: float | None, asked: Asked
    ) -> None:
        self.directory = directory
        self.every = every
        self.seconds = seconds
        self.runtime = asked.work.runtime
        request = asked.request
        self.identity = identity(asked)
        whole = json.dumps(self.identity, sort_keys=True).encode()
        self._problem = hashlib.sha256(whole).hexdigest()[:16]
        fixed = {"problem": self._problem, "version": __version__, "identity": self.identity}
        self._store = store.Store(directory, self.runtime.n, fixed)
        self.close = self._store.release
        self.planned = request.plan_tol
        self.target = request.target
        self.path: list[str] = []
        self._stored: dict[str, Any] | None = None
        self._last = time.monotonic()
        self.runtime.notes.due = self._late
        self.notes: list[str] = []
        self._missed = 0
        self._rows = Growing(directory)
        self._kept = not self.runtime.apart
        if self.runtime.is_root or self.runtime.apart:
            self._store.hold()
        try:
            self._index = self._found()
            if self._index is not None:
                self._recognise(self._index.manifest)
        except BaseException:
            self.close()
            raise
        self._generation = -1 if self._index is None else self._index.generation

    def _found(self) -> Index | None:
        """The generation to continue from."""
        if self.runtime.apart:
            return self._common_generation()
        return read_index(self.directory) if exists(self.directory) else None

    def _common_generation(self) -> Index | None:
        """The newest generation that all owners have; one gather that the ledger does not count.

        None where nobody has more than the first and somebody has none: the run was ended while
        it was first saved.
        """
        mine = apart.generations(self.directory)
        row = sorted(mine)[-2:]
        rows = np.array([[*row, *[-1] * (2 - len(row))]] * len(self.runtime.owned), dtype=float)
        known = [{int(v) for v in row if v >= 0} for row in self.runtime._gather(rows)]
        common = set.intersection(*known)
        if common:
            return mine[max(common)]
        if any(len(have) > 1 for have in known):
            lacking = min(range(len(known)), key=lambda i: max(known[i], default=-1))
            have = ", ".join(map(str, sorted(known[lacking]))) or "none"
            most = ", ".join(map(str, sorted(set.union(*known))))
            self.refuse(
                f"agent {lacking} has generation {have}, others {most}: no generation that all have"
            )
        return None

    @classmethod
    def of(cls, wanted: str | Path | Mapping[str, Any], asked: Asked) -> Checkpoints:
        """From solve's ``checkpoint=``: a directory, or {"path", "every", "seconds"}."""
        options: dict[str, Any] = dict(wanted) if isinstance(wanted, Mapping) else {"path": wanted}
        unknown = set(options) - {"path", "every", "seconds"}
        if unknown or "path" not in options:
            raise InputError("checkpoint: give a directory, or a mapping with path, every, seconds")
        if not isinstance(options["path"], str | os.PathLike):
            raise InputError(
                f"checkpoint: {shown(options['path'])} is no directory; give its path, or None"
            )
        every = options.get("every")
        seconds = options.get("seconds")
        if every is not None:
            every = whole("checkpoint: every", every, 1)
        if seconds is not None:
            seconds = positive("checkpoint: seconds", seconds)
        if every is None and seconds is None:
            every = EVERY
        return cls(Path(options["path"]), every, seconds, asked)

    def _recognise(self, manifest: dict[str, Any]) -> None:
        """Refuse the stored run of something else; remember what this one was planned for."""
        found = differences(manifest.get("identity"), self.identity)
        if found:
            more = f" and {len(found) - 4} more" if len(found) > 4 else ""
            verb = "differs" if len(found) == 1 else "differ"
            self.refuse(f"{', '.join(found[:4])}{more} {verb} from the stored run's")
        if (manifest.get("problem"), manifest.get("version")) != (self._problem, __version__):
            self.refuse("is damaged: its problem and version are not those it was saved with")
        try:
            self.planned, self.target = (float(v) for v in manifest["planned"])
            self.path = [str(step) for step in manifest["path"]]
        except BAD:
            self.refuse("is damaged: it does not say what it was planned for")
        if not all(0 < v < math.inf for v in (self.planned, self.target)):
            self.refuse("is damaged: it was planned for no positive tolerance")
        self._stored = manifest

    def refuse(self, why: str) -> NoReturn:
        """One line; nothing is changed."""
        raise InputError(
            f"checkpoint {self.directory}: {why}; choose another directory, or resume what was "
            "saved (nothing was changed)"
        )

    def bind(
        self, method: Method, iteration: Iteration[Any], stopping: Stopping | None, trace: Trace
    ) -> None:
        """What is saved from here on."""
        self.iteration = iteration
        self.stopping = stopping
        self.trace = trace
        self.chosen = {"name": method.name, **options_told(method)}

    def begin_again(self, step: str) -> None:
        """Another method or interval starts from the beginning; nothing is resumed any more."""
        self.path = [*self.path, step]
        self._stored = None

    def due(self, count: int) -> bool:
        """By count, or by the root's clock."""
        if self.every is not None:
            return count % self.every == 0
        if self.runtime.alone:
            return self._late()
        heard = self.runtime.notes.save
        self.runtime.notes.save = False
        return heard

    def _late(self) -> bool:
        """Whether it is time to save, by this process's clock; the root's is told to all."""
        seconds = self.seconds
        late = time.monotonic() - self._last
        return self.runtime.is_root and seconds is not None and late >= float(seconds)

    def save(self, count: int, state: State) -> None:
        """Write vectors and rows agent by agent, scalars and history for everybody."""
        space = self.iteration.space
        agents = {}
        masked = self.runtime.averaging
        for name, vector in state.of_kind("vector").items():
            agents[f"vector:{name}"] = [
                np.concatenate([space.x_of(vector, k), space.z(vector)[k], space.y(vector)[k]])
                for k in range(space.count)
            ]
        for name, rows in state.of_kind("rows").items():
            wide = np.broadcast_to(rows, (space.count, *rows.shape[1:]))
            agents[f"rows:{name}"] = [np.array(wide[k]) for k in range(space.count)]
        manifest = {
            "planned": [self.planned, self.target],
            "path": self.path,
            "chosen": self.chosen,
            "scalars": {name: told(value) for name, value in state.numbers().items()},
            "stopping": self.stopping.memory() if self.stopping is not None else {},
            "ledger": self.runtime.ledger.as_dict(),
            "waiting": [r.phase for r in self.runtime._waiting if not r.paid].count("setup"),
            "history": self.trace.memory(),
            "agreed": masked.memory() if isinstance(masked, Masked) else [],
        }
        broken = None
        shared = {}
        self._generation += 1
        try:
            if self.runtime.is_root:
                trace = self.trace
                grown, rest = self._rows.append(trace.settled, trace.since, trace.epoch)
                manifest["trace"], shared[TRACE] = msgspec.to_builtins(grown), rest
        except OSError as error:
            broken = error
        try:
            self._write(count, manifest, agents, shared, broken)
        except OSError as error:
            self._missed += 1
            self.notes = [
                f"checkpoint {self.directory}: {self._missed} could not be written, the last at "
                f"iteration {count} ({error.strerror}); the run went on"
            ]
        self._last = time.monotonic()

    def _write(
        self,
        count: int,
        manifest: dict[str, Any],
        agents: dict[str, Any],
        shared: dict[str, Array],
        broken: OSError | None,
    ) -> None:
        if not self.runtime.apart:
            store.save(
                self.runtime,
                self._store,
                count,
                manifest,
                agents=agents,
                replicated=shared,
                broken=broken,
            )
        elif broken is not None:
            raise broken
        else:
            if not self._kept:  # not before: the run may still find its generation damaged
                apart.keep_only(self.directory, self._index)
                self._kept = True
            apart.save_apart(
                self.runtime.owned, self._store, self._generation, count, manifest, agents, shared
            )

    # -- resuming ----------------------------------------------------------------------------------
    def resume(self, state: State) -> tuple[int, State]:
        """(iterations done, state) of the stored run, or (0, state) when there is none."""
        if self._stored is None:
            return 0, state
        found = store.load(self.directory, self.runtime.owned, index=self._index)
        if found.manifest.get("chosen") != self.chosen:
            self.refuse(f"the method chosen ({self.chosen['name']}) differs from the stored run's")
        try:
            fields = self._fields(state, found)
            if self.stopping is not None and found.manifest["stopping"]:
                self.stopping.recall(found.manifest["stopping"])
            self.runtime.ledger.restore(counts(found.manifest["ledger"]))
            for rider in () if found.manifest["waiting"] else self.runtime._waiting:
                rider.paid = rider.phase == "setup"  # they have travelled before, and are charged
            if isinstance(masked := self.runtime.averaging, Masked):
                masked.recall(found.manifest["agreed"])
            rows = self._rows.read(found.manifest["trace"], found.replicated[TRACE], WIDTH)
            self.trace.restore(rows, found.manifest["history"])
        except BAD as error:
            if isinstance(error, InputError):
                raise
            self.refuse(f"is damaged: {cut(str(error))}")
        if self._kept and self.runtime.is_root and self._index is not None:
            tidy(self.directory, self._index)  # not before it is known to be sound
        return found.iteration, replace(state, **fields)

    def _fields(self, state: State, found: store.Checkpoint) -> dict[str, Any]:
        """The fields of the state, each of the shape, kind and range it has at the start."""
        space = self.iteration.space
        fields: dict[str, Any] = {}
        for name, vector in state.of_kind("vector").items():
            fields[name] = vector
            for k, piece in enumerate(self._pieces(found, f"vector:{name}", vector)):
                d = space.d[k]
                q = space.q
                if piece.shape != (d + q + space.y(vector)[k].size,):
                    raise ValueError(f"{name} has the shape {piece.shape}")
                space.x_of(vector, k)[...] = piece[:d]
                space.z(vector)[k] = piece[d : d + q]
                space.y(vector)[k] = piece[d + q :]
        for name, rows in state.of_kind("rows").items():
            pieces = self._pieces(found, f"rows:{name}", rows)
            if any(piece.shape != rows.shape[1:] for piece in pieces):
                raise ValueError(f"{name} has another shape than the method's")
            fields[name] = np.stack(pieces)[: rows.shape[0]].astype(rows.dtype)
        scalars = found.manifest["scalars"]
        if set(scalars) != set(state.numbers()):
            raise ValueError("its numbers are not the method's")
        return fields | {k: number(k, v, scalars[k]) for k, v in state.numbers().items()}

    def _pieces(self, found: store.Checkpoint, name: str, like: Array) -> list[Array]:
        if len(pieces := found.agents[name]) != self.iteration.space.count:
            raise ValueError(f"{name} is there for {len(pieces)} agents")
        for piece in pieces:
            if piece.dtype.kind != like.dtype.kind:
                raise ValueError(f"{name} is of kind {piece.dtype}")
            if np.isfinite(like).all() and not (np.abs(piece) <= LARGEST).all():
                raise ValueError(f"{name} holds NaN or entries beyond {LARGEST:g}")
        return pieces
