"""Solves on all ranks beside solves in one process; each of the latter is done by one rank only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ccmac
from ccmac.runtime.mpi import MPI


@dataclass(frozen=True)
class Case:
    """A problem with the options of ``solve``; ``fused`` is that of the one process."""

    name: str
    problem: ccmac.Problem
    network: ccmac.Network
    options: dict[str, Any] = field(default_factory=dict)
    fused: bool = True

    def on_ranks(self) -> dict[str, Any]:
        return told(ccmac.solve(self.problem, self.network, runtime="mpi", **self.options))

    def alone(self) -> dict[str, Any]:
        scheme = self.options.get("averaging", "auto")
        runtime = ccmac.InProcess(self.network, fused=self.fused, averaging=scheme)
        return told(ccmac.solve(self.problem, runtime=runtime, **self.options))


def told(result: ccmac.Result) -> dict[str, Any]:
    """Everything that must be equal, x by agents."""
    prices = result.multipliers
    return {
        "x": {i: x.tobytes() for i, x in zip(result.agents, result.x, strict=True)},
        "z": result.z.tobytes(),
        "coupled price": None if prices is None else prices.coupled.tobytes(),
        "ledger": result.ledger.as_dict(),
        "status": result.status,
        "iterations": result.iterations,
        "objective": result.objective,
        "residuals": result.residuals,
    }


def differences(cases: Sequence[Case]) -> list[str]:
    """What differs from one process, at the root; nothing elsewhere. Collective."""
    comm = MPI.COMM_WORLD
    everywhere = comm.allgather([case.on_ranks() for case in cases])
    found = []
    for k in range(comm.rank, len(cases), comm.size):
        whole = cases[k].alone()
        parts = [told[k] for told in everywhere]
        joined = {i: x for part in parts for i, x in part["x"].items()}
        for part in parts:
            part["x"] = joined
            found += [f"{cases[k].name}: {what}" for what in whole if part[what] != whole[what]]
    return [line for lines in comm.gather(found) or [] for line in lines]
