"""The output directory of a solve: ``summary.json``, ``trace.csv`` and the solution.

The solution is one ``solution.npz``, or under MPI without gathering one file
``solution-FIRST-LAST.npz`` for each range of agents. Arrays are named by what they are: ``z``,
``x3`` and, where the method knows prices, ``coupled``, ``local3``, ``shared3``, ``consensus3``,
and with bounds ``lower3``, ``upper3``, ``z_lower``, ``z_upper``.
``summary.json`` names the files of its run with their checksums: readers take these and no others.
All of them replace an earlier run's at one moment (:mod:`ccmac.storage.generations`).
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ccmac.certificates.prices import Multipliers
from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.problem import Problem
from ccmac.results import Result, Solution
from ccmac.storage.generations import BYTES, PART, attempt, checksum, current, parts_of
from ccmac.storage.npz import read_npz, refuse_endless
from ccmac.texts import dumps, loads, open_file, read_text

WHOLE = "solution.npz"
TRACE = "trace.csv"
SUMMARY = "summary.json"
# Of every agent one: x3, local3, ...; the other arrays are the same for all.
AGENTWISE = ("x", "local", "shared", "consensus", "lower", "upper")


def arrays_of(solution: Solution, agents: range) -> dict[str, Array]:
    """The named arrays of the agents in ``agents``."""
    found: dict[str, Array] = {"z": np.asarray(solution.z)}
    found |= {f"x{i}": np.asarray(x) for i, x in zip(agents, solution.x, strict=True)}
    prices = solution.multipliers
    if isinstance(prices, Multipliers):
        found["coupled"] = prices.coupled
        for name in ("local", "shared", "consensus"):
            rows = getattr(prices, name)
            found |= {f"{name}{i}": np.asarray(v) for i, v in zip(agents, rows, strict=True)}
        if prices.lower:
            found |= {"z_lower": prices.z_lower, "z_upper": prices.z_upper}
            for name in ("lower", "upper"):
                pairs = zip(agents, getattr(prices, name), strict=True)
                found |= {f"{name}{i}": np.asarray(v) for i, v in pairs}
    return found


def part_name(agents: range, n: int) -> str:
    """File name for a range of agents."""
    if len(agents) == n:
        return WHOLE
    return f"solution-{agents.start:04d}-{agents.stop - 1:04d}.npz"


def packed(arrays: Mapping[str, Array]) -> bytes:
    """One archive; nothing in it is pickled."""
    stream = io.BytesIO()
    members = dict[str, Any](arrays)
    np.savez(stream, **members)  # plain numbers: nothing that would need pickle
    return stream.getvalue()


def told(result: Result, more: Mapping[str, Any], parts: Mapping[str, int]) -> dict[str, str]:
    """``trace.csv``, and ``summary.json``, which makes ``parts`` the solution."""
    record = {**more, **result.as_dict(), "parts": dict(parts)}
    return {TRACE: result.trace.to_csv(), SUMMARY: dumps(record) + "\n"}


def prepare(out: Path, names: tuple[str, ...] = (SUMMARY, TRACE, WHOLE)) -> None:
    """Make the directory and try to write ``names`` there, the index first; InputError if not."""
    try:
        attempt(out, *names)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(
            f"--out {out}: cannot be written ({reason}); choose another place"
        ) from None


def rescued(number: int, error: Exception) -> Path:
    """A folder of its own that can be written instead; ``error`` is raised where there is none."""
    for base in (Path.cwd(), Path(tempfile.gettempdir())):
        place = base / f"ccmac-rescue-{number}"
        try:
            prepare(place)
        except InputError:
            continue
        return place
    raise error


def listed(out: Path) -> dict[str, int | None]:
    """The files of the solution in ``out`` with their checksums, as its summary names them.

    Without a summary, or with one that names none: whatever has the name of a part.
    """
    summary = current(out, SUMMARY)
    try:
        record = loads(read_text(summary, str(summary), BYTES))
    except FileNotFoundError:
        if current(out, SUMMARY) != summary:  # it has just taken its name
            return listed(out)
        record = {}
    except (OSError, ValueError):
        raise InputError(f"{summary}: is damaged; solve again") from None
    if isinstance(record, dict) and "parts" not in record:
        names = sorted(path.name for path in out.glob("solution*.npz"))
        return {name: None for name in names if PART.fullmatch(name)}
    parts = parts_of(record)
    if parts is None:
        raise InputError(f"{summary}: names no parts of a solution; solve again")
    return dict(parts)


def read_solution(out: Path, agents: range, sizes: Problem | None = None) -> Solution:
    """What an earlier solve wrote for ``agents``, to start from; ``sizes`` are compared."""
    parts = listed(out)
    if not parts:
        raise InputError(f"--warm-start {out}: holds no solution.npz; give the --out of a solve")
    found: dict[str, Array] = {}
    try:
        for name in sorted(parts):
            # z and prices that all agents know: those of the first
            found = _part(out, name, parts[name]) | found
    except InputError:
        if listed(out) == parts:
            raise
        return read_solution(out, agents, sizes)  # another run has just replaced it
    missing = [i for i in agents if f"x{i}" not in found]
    if missing or "z" not in found:
        raise InputError(
            f"--warm-start {out}: lacks x of agent {missing[0] if missing else 0}; give the --out "
            "of a solve of the same problem"
        )
    if sizes is not None:
        _check_sizes(out, found, agents, sizes)
    return Solution([found[f"x{i}"] for i in agents], found["z"], _prices(found, agents))


def _check_sizes(out: Path, found: Mapping[str, Array], agents: range, problem: Problem) -> None:
    expected = {"z": problem.q, "coupled": problem.m}
    for i in agents:
        expected |= {f"x{i}": problem.d[i], f"local{i}": problem.p[i]}
        expected |= {f"shared{i}": problem.r[i], f"consensus{i}": problem.q}
    for name, size in expected.items():
        if name in found and found[name].shape != (size,):
            raise InputError(
                f"--warm-start {out}: {name} has other sizes than the problem, "
                f"{found[name].shape} instead of {(size,)}"
            )


def _part(out: Path, name: str, crc: int | None) -> dict[str, Array]:
    """One part of the generation that counts; it may be taking its name just now."""
    place = current(out, name)
    try:
        return _read(place, crc)
    except InputError:
        if place.exists():
            raise
        return _read(current(out, name), crc)


def _read(path: Path, crc: int | None) -> dict[str, Array]:
    try:
        with open_file(path) as stream:
            refuse_endless(stream)
            if crc is not None and checksum(stream) != crc:
                raise InputError(f"{path}: is not the file its summary names; solve again")
            stream.seek(0)
            arrays = read_npz(stream)
        if any(array.dtype.kind not in "iuf" for array in arrays.values()):
            raise ValueError("not real numbers")
    except InputError:
        raise
    except (OSError, ValueError):
        raise InputError(f"{path}: is damaged or not a solution; solve again") from None
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise InputError(f"{path}: holds NaN or infinite entries; start without it")
    return {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}


def _prices(found: Mapping[str, Array], agents: range) -> Multipliers | None:
    names = ["coupled", *(f"{k}{i}" for k in ("local", "shared", "consensus") for i in agents)]
    if any(name not in found for name in names):
        return None
    return Multipliers(
        found["coupled"],
        [found[f"local{i}"] for i in agents],
        [found[f"shared{i}"] for i in agents],
        np.stack([found[f"consensus{i}"] for i in agents]),
    )
