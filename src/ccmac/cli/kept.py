"""The result of a solve, kept: written where it was asked for, or in a rescue folder.

Under MPI every rank writes its own agents, and all ranks learn when one of them could not.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ccmac.cli.solution import (
    arrays_of,
    part_name,
    prepare,
    rescued,
    write_solution,
    write_summary,
)  # fmt: skip
from ccmac.errors import CcmacError, InputError
from ccmac.results import Result

Record = Mapping[str, Any]


@contextmanager
def tried(out: Path | None) -> Iterator[None]:
    """Try ``out`` before the work; a new folder goes again where there is no result."""
    new = out is not None and prepare(out)
    try:
        yield
    except BaseException:
        if new and out is not None:
            with suppress(OSError):
                out.rmdir()
        raise


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
    name, arrays = part_name(result.agents, n), arrays_of(result, result.agents)

    def write(place: Path) -> None:
        prepare(place)
        write_summary(place, result, record, {name: write_solution(place, name, arrays)})

    try:
        write(out)
    except (OSError, InputError) as error:
        try:
            place = rescued(time.time_ns() // 10**6, error)
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
    now = np.full((len(runtime.owned), 1), float(time.time_ns() // 10**6))
    place = rescued(int(runtime._gather(now)[0, 0]), error)
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
    mine, n = arrays_of(result, result.agents), runtime.n
    name: str | None = part_name(result.agents, n)
    if gather:
        kinds = [
            k for k in ("x", "local", "shared", "consensus") if f"{k}{result.agents[0]}" in mine
        ]
        whole = {k: v for k, v in mine.items() if k in ("z", "coupled")}
        for kind in kinds:
            rows = runtime.collect([mine[f"{kind}{i}"] for i in result.agents])
            whole |= {} if rows is None else {f"{kind}{i}": row for i, row in enumerate(rows)}
        mine, name = whole, part_name(range(n), n) if runtime.is_root else None
    ends, crc, error = (0, n) if gather else (result.agents.start, result.agents.stop), 0, None
    try:
        out.mkdir(parents=True, exist_ok=True)
        crc = 0 if name is None else write_solution(out, name, mine)
    except OSError as met:
        error = met
    row = [float(name is not None), *map(float, ends), float(crc), float(error is not None)]
    # Nobody's row arrives before its file is on disk: the gather is the barrier too.
    known = runtime._gather(np.tile(np.array(row), (len(result.agents), 1)))
    if error is None and not known[:, 4].any() and runtime.is_root:
        told = sorted({tuple(int(v) for v in r[1:4]) for r in known if r[0]})
        parts = {part_name(range(start, stop), n): crc for start, stop, crc in told}
        try:
            write_summary(out, result, record, parts)
        except OSError as met:
            error = met
    failed = np.full((len(result.agents), 1), float(error is not None))
    if runtime._gather(failed).any() and error is None:
        return OSError(errno.EIO, "another rank could not write its part")
    return error
