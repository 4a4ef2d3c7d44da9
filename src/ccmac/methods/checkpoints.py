"""Save and resume the state of a run; any number of processes can continue it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ccmac.certificates.stopping import Stopping
from ccmac.errors import InputError
from ccmac.methods.base import Iteration, State
from ccmac.problem import MATRICES, RIGHT_HAND_SIDES, Problem
from ccmac.results import Trace
from ccmac.runtime.base import Runtime
from ccmac.storage import checkpoint as store
from ccmac.version import __version__


def fingerprint(problem: Problem, runtime: Runtime) -> str:
    """A digest of shapes and data of all agents, the same on every process."""
    rows = []
    for i, agent in problem.agents.items():
        digest = hashlib.sha256(f"{problem.n},{problem.q},{problem.m},{i}".encode())
        for name in (*MATRICES, *RIGHT_HAND_SIDES):
            block = getattr(agent, name)
            if block is None:
                continue
            data = block if isinstance(block, np.ndarray) else getattr(block, "data", None)
            digest.update(f"{name}{getattr(block, 'shape', '')}".encode())
            if isinstance(data, np.ndarray):
                digest.update(np.ascontiguousarray(data).tobytes())
        value = int.from_bytes(digest.digest()[:6], "big")
        rows.append([float(value)])
    with runtime.ledger.observing():
        values = runtime.gather(np.array(rows, dtype=np.float64))
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:16]


class Checkpoints:
    """Every ``every`` iterations or ``seconds`` seconds, into one directory."""

    def __init__(
        self, directory: Path, every: int | None, seconds: float | None,
        method: str, problem: Problem, runtime: Runtime, iteration: Iteration[Any],
        stopping: Stopping | None, trace: Trace,
    ) -> None:  # fmt: skip
        self.directory, self.every, self.seconds = directory, every, seconds
        self.runtime, self.iteration, self.trace = runtime, iteration, trace
        self.stopping = stopping
        self.identity = {
            "problem": fingerprint(problem, runtime),
            "version": __version__,
            "method": method,
        }
        self._last = time.monotonic()

    @classmethod
    def of(
        cls, wanted: str | Path | Mapping[str, Any] | None,
        method: str, problem: Problem, runtime: Runtime, iteration: Iteration[Any],
        stopping: Stopping | None, trace: Trace,
    ) -> Checkpoints | None:  # fmt: skip
        """From solve's ``checkpoint=``: a directory, or {"path", "every", "seconds"}."""
        if wanted is None:
            return None
        options: dict[str, Any] = dict(wanted) if isinstance(wanted, Mapping) else {"path": wanted}
        unknown = set(options) - {"path", "every", "seconds"}
        if unknown or "path" not in options:
            raise InputError("checkpoint: give a directory, or a mapping with path, every, seconds")
        every, seconds = options.get("every"), options.get("seconds")
        if every is None and seconds is None:
            every = 50
        return cls(
            Path(options["path"]), every, seconds, method, problem, runtime, iteration,
            stopping, trace,
        )  # fmt: skip

    def due(self, count: int) -> bool:
        """By count, or by the root's clock."""
        if self.every is not None:
            return count % self.every == 0
        late = time.monotonic() - self._last >= float(self.seconds or 0)
        if len(self.runtime.owned) < self.runtime.n:
            with self.runtime.ledger.observing():
                rows = np.full((len(self.runtime.owned), 1), float(late and self.runtime.is_root))
                late = bool(self.runtime.total(rows)[0] > 0)
        return late

    def save(self, count: int, state: State) -> None:
        """Write vectors and rows agent by agent, scalars and history for everybody."""
        space, agents = self.iteration.space, {}
        for name, vector in state.of_kind("vector").items():
            agents[f"vector:{name}"] = [
                np.concatenate([space.x_of(vector, k), space.z(vector)[k], space.y(vector)[k]])
                for k in range(space.count)
            ]
        for name, rows in state.of_kind("rows").items():
            wide = np.broadcast_to(rows, (space.count, *rows.shape[1:]))
            agents[f"rows:{name}"] = [np.array(wide[k]) for k in range(space.count)]
        manifest = {
            **self.identity,
            "scalars": state.numbers(),
            "stopping": self.stopping.memory() if self.stopping is not None else {},
            "ledger": self.runtime.ledger.as_dict(),
            "fused": self.runtime.fused,
            "network": self.runtime.network.name,
        }
        history = np.frombuffer(json.dumps(self.trace.as_dict()).encode(), dtype=np.uint8)
        store.save(
            self.runtime, self.directory, count, manifest, agents=agents,
            replicated={"trace": history} if self.runtime.is_root else {},
        )  # fmt: skip
        self._last = time.monotonic()

    def resume(self, state: State) -> tuple[int, State]:
        """(iterations done, state) of the stored run, or (0, state) when there is none."""
        if not store.exists(self.directory):
            return 0, state
        found = store.load(self.directory, self.runtime.owned, self.identity)
        space = self.iteration.space
        fields: dict[str, Any] = {}
        for name, vector in state.of_kind("vector").items():
            fields[name] = vector
            for k, piece in enumerate(found.agents[f"vector:{name}"]):
                d, q = space.d[k], space.q
                space.x_of(vector, k)[...] = piece[:d]
                space.z(vector)[k] = piece[d : d + q]
                space.y(vector)[k] = piece[d + q :]
        for name, rows in state.of_kind("rows").items():
            fields[name] = np.stack(found.agents[f"rows:{name}"])[: rows.shape[0]].copy()
        for name, before in state.numbers().items():
            fields[name] = type(before)(found.manifest["scalars"][name])
        if self.stopping is not None and found.manifest["stopping"]:
            self.stopping.recall(found.manifest["stopping"])
        self.runtime.ledger.restore(found.manifest["ledger"])
        if "trace" in found.replicated:
            self.trace.restore(json.loads(found.replicated["trace"].tobytes().decode()))
        return found.iteration, replace(state, **fields)
