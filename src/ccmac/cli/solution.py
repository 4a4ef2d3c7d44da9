"""The output directory of a solve: ``summary.json``, ``trace.csv`` and the solution.

The solution is one ``solution.npz``, or under MPI without gathering one file
``solution-FIRST-LAST.npz`` for each range of agents. Arrays are named by what they are: ``z``,
``x3`` and, where the method knows multipliers, ``coupled``, ``local3``, ``shared3``,
``consensus3``, with bounds ``lower3``, ``upper3``, ``z_lower``, ``z_upper``, with cones ``cones3``.
``proof.json`` says what is claimed (:mod:`ccmac.storage.proofs`).
``summary.json`` is written last and names the files of its run with their checksums.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ccmac.certificates.multipliers import Multipliers
from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.problem import Problem
from ccmac.results import Result, Solution
from ccmac.storage.checkpoint import together
from ccmac.storage.files import atomic_path, atomic_write, try_file
from ccmac.storage.npz import write_npz
from ccmac.storage.proofs import HEAD, arrays_of, head_of, load_result
from ccmac.texts import dumps

WHOLE = "solution.npz"
TRACE = "trace.csv"
SUMMARY = "summary.json"
PART = re.compile(r"solution(-\d{4,}-\d{4,})?\.npz")
# Of every agent one: x3, local3, ...; the other arrays are the same for all.
AGENTWISE = (
    *("x", "local", "shared", "consensus", "lower", "upper", "cones"),
    *("start.x", "farkas.local", "farkas.shared", "farkas.cones", "direction.x"),
)


def part_name(agents: range, n: int) -> str:
    """File name for a range of agents."""
    if len(agents) == n:
        return WHOLE
    return f"solution-{agents.start:04d}-{agents.stop - 1:04d}.npz"


def try_out(out: Path | None) -> None:
    """See before the work whether ``out`` can be written."""
    try:
        if out is not None:
            try_file(out / SUMMARY)
    except OSError as error:
        raise InputError(
            f"--out {out}: cannot be written ({error.strerror}); choose another place"
        ) from None


def write(out: Path, result: Result, n: int, record: Mapping[str, Any]) -> None:
    """The result of an owner, who keeps a folder for its own."""
    name = part_name(result.agents, n)
    parts = {name: _write_part(out / name, arrays_of(result, result.agents))}
    _finish(out, result, record, parts)


def write_ranks(
    out: Path,
    result: Result,
    runtime: Any,
    gather: bool,
    record: Mapping[str, Any],
    digest: str | None = None,
) -> None:
    """Every rank writes its x_i, or rank 0 all of them; rank 0 writes the record.

    OSError in all ranks where one could not write.
    """
    agents = range(runtime.n) if gather else result.agents
    arrays = _collected(runtime, result) if gather else arrays_of(result, agents)
    sha256 = 64 * "0"
    with together(runtime, out):
        if runtime.is_root or not gather:
            sha256 = _write_part(out / part_name(agents, runtime.n), arrays)
    row = [agents.start, agents.stop, *bytes.fromhex(sha256)]
    known = runtime._gather(np.tile(np.array(row, dtype=float), (len(result.agents), 1)))
    with together(runtime, out):
        if runtime.is_root:
            parts = {
                part_name(range(int(first), int(stop)), runtime.n): bytes(map(int, sha)).hex()
                for first, stop, *sha in (known[:1] if gather else known)
            }
            _finish(out, replace(result, agents=range(runtime.n)), record, parts, digest)


def _collected(runtime: Any, result: Result) -> dict[str, Array]:
    """The arrays of all agents on rank 0; of no use elsewhere."""
    mine = arrays_of(result, result.agents)
    found = dict(mine)
    for kind in AGENTWISE:
        if f"{kind}{result.agents[0]}" in mine:
            rows = runtime.collect([mine[f"{kind}{i}"] for i in result.agents])
            found |= {} if rows is None else {f"{kind}{i}": row for i, row in enumerate(rows)}
    return found


def _write_part(path: Path, arrays: Mapping[str, Array]) -> str:
    with atomic_path(path) as place:
        return write_npz(place, arrays)


def _finish(
    out: Path,
    result: Result,
    record: Mapping[str, Any],
    parts: dict[str, str],
    digest: str | None = None,
) -> None:
    """The history and the proof, of a problem with this ``digest``; last the summary, which makes
    ``parts`` the solution; others go.
    """
    atomic_write(out / TRACE, result.trace.to_csv())
    atomic_write(out / HEAD, head_of(result, digest, parts))
    atomic_write(out / SUMMARY, dumps({**record, **result.as_dict(), "parts": parts}) + "\n")
    for file in out.iterdir():
        if PART.fullmatch(file.name) and file.name not in parts:
            file.unlink()


def read_start(out: Path, agents: range, problem: Problem) -> Solution:
    """What an earlier solve wrote, for ``agents``, to start from; sizes are the problem's."""
    found = load_result(out)
    dual = found.multipliers
    sizes = {"z": (len(found.z), problem.q), "agents": (len(found.x), problem.n)}
    blocks: list[tuple[str, Any, Any]] = [("x", found.x, problem.d)]
    if dual is not None:
        sizes["coupled"] = (len(dual.coupled), problem.m)
        blocks += [("local", dual.local, problem.p), ("shared", dual.shared, problem.r)]
    for name, rows, expected in blocks:
        pairs = zip(agents, rows[agents.start : agents.stop], strict=False)
        sizes |= {f"{name} of agent {i}": (len(row), expected[i]) for i, row in pairs}
    for name, (has, wanted) in sizes.items():
        if has != wanted:
            raise InputError(
                f"--warm-start {out}: {name}: {has} instead of {wanted}; give the --out of a solve "
                "of the same problem"
            )
    own = slice(agents.start, agents.stop)
    if dual is not None:
        mine = (dual.local[own], dual.shared[own], dual.consensus[own])
        dual = Multipliers(dual.coupled, *mine, cones=dual.cones[own])
    return Solution(found.x[own], found.z, dual)
