"""Which process holds which agents: contiguous ranges, as equal as whole numbers allow."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from ccmac.errors import InputError

Index = NDArray[np.int64]
LAUNCHERS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")


def processes_started() -> int:
    """How many processes a launcher (mpiexec, srun) has started, by its own word; 1 without one."""
    said = (os.environ.get(name, "") for name in LAUNCHERS)
    return next((int(value) for value in said if value.isdecimal()), 1)


def bounds(n: int, ranks: int) -> Index:
    """Ends of the ranges: rank r holds agents ``bounds[r] .. bounds[r + 1] - 1``.

    The first ``n mod ranks`` ranks hold one agent more than the others.
    """
    if ranks > n:
        raise InputError(
            f"runtime: {ranks} processes for {n} agents leave some without an agent; "
            f"start at most {n} (mpiexec -n {n})"
        )
    sizes = [len(part) for part in np.array_split(np.arange(n), ranks)]
    return np.cumsum([0, *sizes], dtype=np.int64)


def owners(agents: NDArray[np.integer], ends: Index) -> Index:
    """Rank that holds each of ``agents``."""
    return np.asarray(np.searchsorted(ends, agents, side="right") - 1, dtype=np.int64)


def describe(agents: range) -> str:
    """``agent 3`` or ``agents 4-7``."""
    if len(agents) == 1:
        return f"agent {agents.start}"
    return f"agents {agents.start}-{agents.stop - 1}"
