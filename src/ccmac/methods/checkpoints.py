"""Save and continue a run; any number of processes can continue it.

Whoever continues a run must bring what it depends on: there is a digest of each thing that all
processes know, and one of each agent's own data, so that any split of the agents over processes
finds the same. Code cannot be read: operators and users' own objectives are known by their kind,
shape and constants.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ccmac.certificates.stopping import Stopping
from ccmac.errors import InputError
from ccmac.inputs import positive, whole
from ccmac.ledger import Trace
from ccmac.methods.base import Iteration, Method, Request, State
from ccmac.objectives import Objective
from ccmac.problem import CONIC, MATRICES, RIGHT_HAND_SIDES
from ccmac.runtime.masked import Masked
from ccmac.storage.agents import encode_objective
from ccmac.storage.checkpoint import Saved, Store, understood
from ccmac.texts import shown
from ccmac.version import __version__, series
from ccmac.workspace import Workspace
from ccmac.workspace.dual import add_to_digest

VERSION = "the version of ccmac"


# -- what a run depends on -------------------------------------------------------------------------
@dataclass(frozen=True)
class Asked:
    """Everything a run is asked, before any work."""

    work: Workspace
    method: Method
    request: Request

    def by_all(self) -> dict[str, str]:
        """{what it is, in words: digest} of everything that is the same in all processes."""
        work = self.work
        request = self.request
        certified = getattr(self.method, "schedule", None) == "certified"
        found = {
            VERSION: series(__version__),
            "the sizes of the problem": [work.problem.n, work.problem.q, work.problem.m],
            "the channels of the stack": [] if work.stack is None else list(work.stack.channels),
            "the network": work.runtime.network.weights,
            "the averaging scheme": work.runtime.averaging.described,
            "the method": self.method.name,
            "an option of the method": repr(self.method),
            "the seed": request.seed,
            "the costs": repr(request.costs),
            "the starting point": request.z0,
            "whether there is a reference": request.reference,
            "the tolerance of a certified schedule": request.tol if certified else None,
        }
        return {words: _digest(value).hex() for words, value in found.items()}

    def by_agents(self) -> list[NDArray[np.uint8]]:
        """A digest of everything that belongs to an agent, for each that is here."""
        work = self.work
        problem = work.problem
        found = []
        starts = np.split(self.request.x0, np.cumsum(list(problem.d.values()))[:-1])
        for (i, agent), start in zip(problem.agents.items(), starts, strict=True):
            blocks = (*MATRICES, *RIGHT_HAND_SIDES, *CONIC)
            known = [_entries(getattr(agent, name)) for name in blocks]
            known += [repr(agent.cones), _data(agent.objective, problem.d[i], problem.q), start]
            found.append(np.frombuffer(_digest(known), dtype=np.uint8))
        return found


def _digest(value: Any) -> bytes:
    digest = hashlib.sha256()
    add_to_digest(digest, value)
    return digest.digest()[:12]


def _entries(block: Any) -> Any:
    """A block; of an operator its kind and shape."""
    return [type(block).__qualname__, *block.shape] if hasattr(block, "rmatvec") else block


def _data(objective: Objective, d: int, q: int) -> list[Any]:
    """What would be saved of an objective; of code its kind and constants."""
    try:
        return list(encode_objective(objective))
    except InputError:
        return [type(objective).__qualname__, repr(objective.curvature(d, q))]


# -- saving and continuing -------------------------------------------------------------------------


class Checkpoints:
    """Every ``every`` iterations or ``seconds`` seconds, into one directory.

    ``planned`` and ``target`` are the tolerances that the stored run's plan was made for, ``steps``
    how it came to the method it was saved in: "next" and "wider", in order.
    """

    def __init__(
        self, directory: Path, every: int | None, seconds: float | None, asked: Asked
    ) -> None:
        self.directory = directory
        self.every = every
        self.seconds = seconds
        self.runtime = asked.work.runtime
        self.planned = asked.request.plan_tol
        self.target = asked.request.target
        self.steps: list[str] = []
        self.notes: list[str] = []
        self._missed = 0
        self._last = time.monotonic()
        self._of_all = asked.by_all()
        self._of_agents = asked.by_agents()
        self._store = Store(directory, self.runtime)
        self.close = self._store.close
        self.runtime.notes.due = self._late
        try:
            self._saved = self._store.open()
            if self._saved is not None:
                with understood(directory):
                    self._recognise(self._saved)
        except BaseException:
            self.close()
            raise

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
            every = 50
        return cls(Path(options["path"]), every, seconds, asked)

    def _recognise(self, saved: Saved) -> None:
        """Refuse the run of something else, in all processes; one gather."""
        known = saved.meta.get("depends on", {})
        other = [words for words, now in self._of_all.items() if known.get(words) != now]
        mine = self._of_agents
        rows = saved.agents.get("depends on", [np.zeros(0)] * len(mine))
        differ = [not np.array_equal(row, own) for row, own in zip(rows, mine, strict=True)]
        flags = self.runtime._gather(np.array(differ, dtype=float)[:, None])
        agents = np.flatnonzero(flags[:, 0]).tolist()
        if agents:
            more = ", ..." if len(agents) > 3 else ""
            other.append(f"the data of agent {', '.join(map(str, agents[:3]))}{more}")
        if VERSION in other:
            other[other.index(VERSION)] += f" ({__version__} after {saved.meta.get('version')})"
        if other:
            verb = "differs" if len(other) == 1 else "differ"
            self.refuse(f"{', '.join(other)} {verb} from the stored run's")
        self.planned, self.target = map(float, saved.meta["planned"])
        self.steps = saved.meta["steps"]

    def refuse(self, why: str) -> NoReturn:
        """One line; nothing is changed."""
        raise InputError(
            f"checkpoint {self.directory}: {why}; choose another directory, or continue what was "
            "saved (nothing was changed)"
        )

    def bind(
        self, method: Method, iteration: Iteration[Any], stopping: Stopping | None, trace: Trace
    ) -> None:
        """What is saved from here on."""
        self.iteration = iteration
        self.stopping = stopping
        self.trace = trace
        self.method = method.name

    def begin_again(self, step: str) -> None:
        """Another method or interval starts from the beginning; nothing stored is continued."""
        self.steps = [*self.steps, step]
        self._saved = None

    def due(self, count: int) -> bool:
        """By count, or by the root's clock."""
        if self.every is not None:
            return count % self.every == 0
        if self.runtime.alone:
            return self._late()
        notes = self.runtime.notes
        asked = notes.save
        notes.save = False
        return asked

    def _late(self) -> bool:
        """Whether it is time to save, by this process's clock; the root's counts for all."""
        late = self.seconds is not None and time.monotonic() - self._last >= self.seconds
        return self.runtime.is_root and late

    def save(self, count: int, state: State) -> None:
        """Write vectors and rows agent by agent, numbers and history for everybody."""
        space = self.iteration.space
        averaging = self.runtime.averaging
        agents: dict[str, list[Any]] = {"depends on": list(self._of_agents)}
        for name, vector in state.of_kind("vector").items():
            agents[f"vector:{name}"] = [
                np.concatenate([space.x_of(vector, k), space.z(vector)[k], space.y(vector)[k]])
                for k in range(space.count)
            ]
        for name, rows in state.of_kind("rows").items():
            agents[f"rows:{name}"] = list(np.broadcast_to(rows, (space.count, *rows.shape[1:])))
        if self.runtime.apart:  # for those who go on without somebody
            with self.runtime.ledger.observing():
                x, z = self.iteration.point(state)
            agents["point"] = [np.concatenate([x, np.reshape(z, -1)])]
        meta = {
            "iteration": count,
            "depends on": self._of_all,
            "planned": [self.planned, self.target],
            "steps": self.steps,
            "method": self.method,
            "version": __version__,
            "numbers": state.numbers(),
            "stopping": self.stopping.memory() if self.stopping is not None else {},
            "ledger": self.runtime.ledger.as_dict(),
            "waiting": [r.phase for r in self.runtime._waiting if not r.paid].count("setup"),
            "history": self.trace.memory(),
            "scales": averaging.memory() if isinstance(averaging, Masked) else [],
        }
        try:
            self._store.save(meta, agents, {"trace": self.trace.rows})
        except OSError as error:
            self._missed += 1
            self.notes = [
                f"checkpoint {self.directory}: {self._missed} could not be written, the last at "
                f"iteration {count} ({error.strerror}); the run went on"
            ]
        self._last = time.monotonic()

    # -- continuing --------------------------------------------------------------------------------
    def resume(self, state: State) -> tuple[int, State]:
        """(iterations done, state) of the stored run, or (0, state) when there is none."""
        saved = self._saved
        if saved is None:
            return 0, state
        with understood(self.directory):
            return self._continued(state, saved, saved.meta)

    def _continued(self, state: State, saved: Saved, meta: Mapping[str, Any]) -> tuple[int, State]:
        if meta.get("method") != self.method:
            self.refuse(f"the method chosen ({self.method}) differs from the stored run's")
        if self.stopping is not None and meta["stopping"]:
            self.stopping.recall(meta["stopping"])
        self.runtime.ledger.restore(meta["ledger"])
        for sum_ in () if meta["waiting"] else self.runtime._waiting:
            sum_.paid = sum_.phase == "setup"  # it has travelled before, and is charged
        if isinstance(masked := self.runtime.averaging, Masked):
            masked.recall(meta["scales"])
        self.trace.recall(meta["history"], saved.shared["trace"])
        return int(meta["iteration"]), replace(state, **self._fields(state, saved))

    def _fields(self, state: State, saved: Saved) -> dict[str, Any]:
        """The fields of the state, by their kinds."""
        space = self.iteration.space
        fields: dict[str, Any] = {}
        for name, vector in state.of_kind("vector").items():
            fields[name] = vector
            for k, piece in enumerate(saved.agents[f"vector:{name}"]):
                x, z, y = np.split(piece, [space.d[k], space.d[k] + space.q])
                space.x_of(vector, k)[...] = x
                space.z(vector)[k] = z
                space.y(vector)[k] = y
        for name, rows in state.of_kind("rows").items():
            pieces = np.stack(saved.agents[f"rows:{name}"])
            fields[name] = pieces[: rows.shape[0]].reshape(rows.shape)
        stored = saved.meta["numbers"]
        return fields | {name: type(now)(stored[name]) for name, now in state.numbers().items()}
