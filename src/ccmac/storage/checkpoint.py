"""Checkpoints: one file a process, with the state of its agents.

    DIR/state-000007-00000-00003.npz    save 7 of agents 0..3

A file takes its name when it is whole. The files of earlier saves go when every process has written
the new one, so that at any moment one save is complete. Files carry agent numbers: any number of
processes can continue what any other number wrote. Processes of different owners keep a folder
each; all others share one.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.runtime.base import Runtime
from ccmac.storage.files import atomic_path, locked
from ccmac.storage.npz import read_npz
from ccmac.texts import cut

LOCK = "checkpoint.lock"
# Also what a killed process leaves of a file that it was writing.
NAME = re.compile(r"\.?state-(\d{6,15})-(\d{5,9})-(\d{5,9})(\.\w+)?\.npz")
NAMED = 4  # complete saves that a process names to the others, the newest first
AnyArray = NDArray[Any]


@contextmanager
def together(runtime: Runtime, where: Path) -> Iterator[None]:
    """What the block writes is there in all processes; OSError in all where one could not write.

    Nobody's row arrives before its file is there: the gather is the barrier too.
    """
    failed = 0
    try:
        yield
    except OSError as error:
        failed = error.errno or errno.EIO
    failed = int(runtime._gather(np.full((len(runtime.owned), 1), float(failed))).max())
    if failed:
        raise OSError(failed, os.strerror(failed), str(where))


@contextmanager
def understood(folder: Path) -> Iterator[None]:
    """One line where a save is whole but says what no run has written."""
    try:
        yield
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"checkpoint {folder} is damaged ({type(error).__name__}); start afresh in another "
            "directory (nothing was changed)"
        ) from None


@dataclass(frozen=True)
class Saved:
    """One save: ``agents[name][k]`` is the array of the k-th agent asked for."""

    meta: dict[str, Any]
    agents: dict[str, list[AnyArray]]
    shared: dict[str, AnyArray]


class Store:
    """The folder of one run's checkpoints, locked until :meth:`close`.

    ``agents`` are those of this process, by the numbers in the names of files.
    """

    def __init__(self, folder: Path, runtime: Runtime, agents: range | None = None) -> None:
        self.folder = folder
        self.runtime = runtime
        self.agents = agents or runtime.owned
        self._held = ExitStack()
        self._next = 0

    def open(self) -> Saved | None:
        """The newest save that all processes have, None before the first; one gather.

        No gather of this class is on the ledger.
        """
        if self.runtime.is_root:
            self._hold()
        owned = self.agents
        found = self._saves()
        covered = [number for number, files in found.items() if set(owned) <= _agents(files)]
        newest = sorted(covered, reverse=True)[:NAMED]
        row = [max(found, default=-1), *newest, *[-1] * (NAMED - len(newest))]
        known = self.runtime._gather(np.array([row] * len(owned), dtype=float))
        self._next = int(known[:, 0].max()) + 1
        common = set.intersection(*({int(v) for v in row if v >= 0} for row in known[:, 1:]))
        if common:
            return self._read(found[max(common)])
        if self._next > 1:
            raise InputError(
                f"checkpoint {self.folder}: no save is there of all agents; restore the files, or "
                "choose another directory"
            )
        self._remove_before(self._next)  # the run was ended while it was first saved
        self._next = 0
        return None

    def close(self) -> None:
        """The folder is anybody's again."""
        self._held.close()

    def save(
        self,
        meta: Mapping[str, Any],
        agents: Mapping[str, Sequence[AnyArray]],
        shared: Mapping[str, AnyArray],
    ) -> None:
        """Write a save; collective. OSError in all processes where one could not write its part.

        ``agents`` has one array for every owned agent, ``shared`` what belongs to all.
        """
        owned = self.agents
        name = f"state-{self._next:06d}-{owned.start:05d}-{owned.stop - 1:05d}.npz"
        with together(self.runtime, self.folder), atomic_path(self.folder / name) as place:
            np.savez(place, **_packed(meta, agents, shared))
        self._remove_before(self._next)
        self._next += 1

    def _remove_before(self, number: int) -> None:
        """Earlier saves go, and what killed processes left of them."""
        for file in self.folder.iterdir() if self.runtime.is_root else ():
            match = NAME.fullmatch(file.name)
            if match and int(match[1]) < number:
                file.unlink(missing_ok=True)

    def _hold(self) -> None:
        where = f"checkpoint {self.folder}"
        busy = f"{where}: another run is writing there; wait for it, or choose another directory"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._held.enter_context(locked(self.folder / LOCK, busy))
        except OSError as error:
            reason = f"cannot be written ({error.strerror}); choose another directory"
            raise InputError(f"{where}: {reason}") from None

    def _saves(self) -> dict[int, list[tuple[range, Path]]]:
        """The files of every save, with their agents."""
        found: dict[int, list[tuple[range, Path]]] = {}
        for file in sorted(self.folder.iterdir()) if self.folder.is_dir() else ():
            match = NAME.fullmatch(file.name)
            if match and not file.name.startswith("."):
                agents = range(int(match[2]), int(match[3]) + 1)
                found.setdefault(int(match[1]), []).append((agents, file))
        return found

    def _read(self, files: list[tuple[range, Path]]) -> Saved:
        owned = self.agents
        meta: dict[str, Any] = {}
        shared: dict[str, AnyArray] = {}
        rows: dict[str, dict[int, AnyArray]] = {}
        for agents, file in files:
            if agents.stop <= owned.start or agents.start >= owned.stop:
                continue
            try:
                with file.open("rb") as stream:
                    arrays = read_npz(stream)
                meta = json.loads(arrays["meta"].tobytes())
                for name in (key[7:] for key in arrays if key.startswith("agents/")):
                    pieces = _split(arrays[f"agents/{name}"], arrays[f"shapes/{name}"])
                    rows.setdefault(name, {}).update(zip(agents, pieces, strict=True))
                shared = {key[7:]: arrays[key] for key in arrays if key.startswith("shared/")}
            except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
                raise InputError(
                    f"checkpoint {self.folder} is damaged: {file.name}: {cut(str(error))}; start "
                    "afresh in another directory (nothing was changed)"
                ) from None
        if not isinstance(meta, dict) or any(i not in row for row in rows.values() for i in owned):
            raise InputError(f"checkpoint {self.folder} is damaged: its agents are not alike")
        return Saved(meta, {k: [row[i] for i in owned] for k, row in rows.items()}, shared)


def _agents(files: list[tuple[range, Path]]) -> set[int]:
    return {i for agents, _ in files for i in agents}


def _packed(
    meta: Mapping[str, Any],
    agents: Mapping[str, Sequence[AnyArray]],
    shared: Mapping[str, AnyArray],
) -> dict[str, Any]:
    """Few arrays, however many agents there are: those of one name follow one another."""
    text = json.dumps(meta).encode()
    arrays: dict[str, Any] = {"meta": np.frombuffer(text, dtype=np.uint8)}
    for name, rows in agents.items():
        arrays[f"agents/{name}"] = np.concatenate([np.ravel(row) for row in rows])
        arrays[f"shapes/{name}"] = np.array([row.shape for row in rows], dtype=np.int64)
    return arrays | {f"shared/{name}": array for name, array in shared.items()}


def _split(flat: AnyArray, shapes: AnyArray) -> list[AnyArray]:
    ends = np.cumsum(shapes.prod(axis=1, dtype=np.int64))
    if len(flat) != ends[-1]:
        raise ValueError("arrays do not have the lengths that their shapes say")
    pieces = np.split(flat, ends[:-1])
    return [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]
