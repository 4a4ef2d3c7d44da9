"""The result of a solve, kept: written where it was asked for, or in a rescue folder.

Under MPI every rank writes its own agents, and all ranks learn when one of them could not.
"""

from __future__ import annotations

import errno
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ccmac.cli.solution import (
    AGENTWISE,
    SUMMARY,
    TRACE,
    WHOLE,
    arrays_of,
    packed,
    part_name,
    prepare,
    rescued,
    told,
)
from ccmac.errors import CcmacError, InputError
from ccmac.results import Result
from ccmac.storage import generations
from ccmac.storage.files import atomic_write, fresh

Record = Mapping[str, Any]


@contextmanager
def tried(out: Path | None, names: tuple[str, ...] = (SUMMARY, TRACE, WHOLE)) -> Iterator[None]:
    """Try ``out`` before the work; new folders go again where there is no result."""
    if out is None:
        yield
        return
    with fresh(out):
        prepare(out, names)
        yield


def told_rescue(out: Path, place: Path | None, error: Exception) -> int:
    """One line, and the exit code that goes with it."""
    reason = getattr(error, "strerror", None) or " ".join(str(error).split())
    where = "nor could a rescue folder" if place is None else f"the result is in {place}"
    typer.echo(f"error: --out {out}: could not be written ({reason}); {where}", err=True)
    return 1


def keep_here(
    out: Path, result: Result, n: int, record: Record
) -> tuple[Path | None, Exception | None]:
    """Where this process, which has all agents, wrote the result, and what kept it from ``out``."""
    name = part_name(result.agents, n)
    content = packed(arrays_of(result, result.agents))

    def write(place: Path) -> None:
        prepare(place)
        files = told(result, record, {name: zlib.crc32(content)})
        generations.write(place, {name: content, **files}, SUMMARY)

    try:
        write(out)
    except (OSError, InputError) as error:
        try:
            place = rescued(generations.number(), error)
            write(place)
        except (OSError, InputError):
            return None, error
        return place, error
    return out, None


def keep_ranks(
    out: Path, result: Result, runtime: Any, gather: bool, record: Record
) -> tuple[Path, Exception | None]:
    """Where the ranks wrote the result, and what kept them from writing it where it belongs."""
    error = _write_ranks(out, result, runtime, gather, record)
    if error is None:
        return out, None
    place = rescued(_common_number(runtime), error)
    runtime._gather(np.zeros((len(runtime.owned), 1)))  # all have tried it before anybody has it
    again = _write_ranks(place, result, runtime, gather, record)
    if again is not None:
        raise CcmacError(f"--out {out}: could not be written ({error}), nor could {place}")
    return place, error


def _write_ranks(
    out: Path, result: Result, runtime: Any, gather: bool, record: Record
) -> OSError | None:
    """Rank 0 writes the record; the x_i are written by their owners, or by rank 0 if gathered.

    All ranks return an error when one of them has met one.
    """
    mine = arrays_of(result, result.agents)
    n = runtime.n
    name: str | None = part_name(result.agents, n)
    if gather:
        kinds = [kind for kind in AGENTWISE if f"{kind}{result.agents[0]}" in mine]
        own = {f"{kind}{i}" for kind in kinds for i in result.agents}
        whole = {name: array for name, array in mine.items() if name not in own}
        for kind in kinds:
            rows = runtime.collect([mine[f"{kind}{i}"] for i in result.agents])
            whole |= {} if rows is None else {f"{kind}{i}": row for i, row in enumerate(rows)}
        mine = whole
        name = part_name(range(n), n) if runtime.is_root else None
    with ExitStack() as held:
        return _publish_ranks(out, result, runtime, record, (name, mine), held)


def _publish_ranks(
    out: Path,
    result: Result,
    runtime: Any,
    record: Record,
    part: tuple[str | None, Mapping[str, Any]],
    held: ExitStack,
) -> OSError | None:
    """Every rank writes its part; the root, which has the folder meanwhile, makes them count."""
    (name, mine), n, crc, error = part, runtime.n, 0, None
    agents = range(n) if name == WHOLE else result.agents
    if runtime.is_root:  # before the others learn the number, and so before they write
        try:
            held.enter_context(generations.alone(out))
        except (OSError, InputError) as met:
            error = met if isinstance(met, OSError) else OSError(errno.EBUSY, str(met))
    number = _common_number(runtime)
    place = generations.staged(out, number)
    try:
        if name is not None:
            content = packed(mine)
            crc = zlib.crc32(content)
            atomic_write(place / name, content)
    except OSError as met:
        error = met
    row = [float(name is not None), float(agents.start), float(agents.stop), float(crc)]
    row.append(float(error is not None))
    # Nobody's row arrives before its file is on disk: the gather is the barrier too.
    known = runtime._gather(np.tile(np.array(row), (len(result.agents), 1)))
    if error is None and not known[:, 4].any() and runtime.is_root:
        ranges = sorted({tuple(int(v) for v in r[1:4]) for r in known if r[0]})
        parts = {part_name(range(start, stop), n): crc for start, stop, crc in ranges}
        try:
            for file, text in told(result, record, parts).items():
                atomic_write(place / file, text)
            generations.publish(out, number, SUMMARY)
        except OSError as met:
            error = met
    failed = np.full((len(result.agents), 1), float(error is not None))
    if runtime._gather(failed).any():
        generations.discard(place)
        return error or OSError(errno.EIO, "another rank could not write its part")
    return None


def _common_number(runtime: Any) -> int:
    """The root's, for a folder that all ranks write into."""
    now = np.full((len(runtime.owned), 1), float(generations.number()))
    return int(runtime._gather(now)[0, 0])
