"""The output directory of a solve: ``summary.json``, ``trace.csv`` and the solution.

The solution is one ``solution.npz``, or under MPI without gathering one file
``solution-FIRST-LAST.npz`` for each range of agents. Arrays are named by what they are: ``z``,
``x3`` and, where the method knows prices, ``coupled``, ``local3``, ``shared3``, ``consensus3``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ccmac.certificates.prices import Multipliers
from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.problem import Problem
from ccmac.results import Result, Solution
from ccmac.storage.files import atomic_path, atomic_write
from ccmac.storage.npz import read_npz
from ccmac.texts import dumps

WHOLE = "solution.npz"


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
    return found


def part_name(agents: range, n: int) -> str:
    """File name for a range of agents."""
    if len(agents) == n:
        return WHOLE
    return f"solution-{agents.start:04d}-{agents.stop - 1:04d}.npz"


def write_solution(out: Path, name: str, arrays: Mapping[str, Array]) -> None:
    """One archive, complete or absent; nothing in it is pickled."""
    with atomic_path(out / name) as temporary:
        np.savez(temporary, allow_pickle=False, **arrays)


def write_summary(out: Path, result: Result, more: Mapping[str, Any]) -> None:
    """``summary.json`` and ``trace.csv``."""
    atomic_write(out / "trace.csv", result.trace.to_csv())
    atomic_write(out / "summary.json", dumps({**more, **result.as_dict()}) + "\n")


def prepare(out: Path) -> None:
    """Make the directory, or say why it cannot be one; parts of an older solution are removed."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        raise InputError(
            f"--out {out}: cannot be a directory ({type(error).__name__}); choose another place"
        ) from None


def remove_old(out: Path, keep: set[str]) -> None:
    """Delete solution files of an earlier run with another split of the agents."""
    for path in out.glob("solution*.npz"):
        if path.name not in keep:
            path.unlink()


def read_solution(out: Path, agents: range, sizes: Problem | None = None) -> Solution:
    """What an earlier solve wrote for ``agents``, to start from; ``sizes`` are compared."""
    paths = sorted(out.glob("solution*.npz"))
    if not paths:
        raise InputError(f"--warm-start {out}: holds no solution.npz; give the --out of a solve")
    found: dict[str, Array] = {}
    for path in paths:
        found = _read(path) | found  # z and prices that all agents know: those of the first
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


def _read(path: Path) -> dict[str, Array]:
    try:
        with path.open("rb") as stream:
            arrays = read_npz(stream)
        if any(array.dtype.kind not in "iuf" for array in arrays.values()):
            raise ValueError("not real numbers")
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
