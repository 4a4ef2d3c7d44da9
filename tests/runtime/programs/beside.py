"""Solves on all ranks beside solves in one process; each of the latter is done by one rank only."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ccmac
from ccmac.results import Solution
from ccmac.runtime.mpi import MPI


@dataclass(frozen=True)
class Case:
    """A problem with the options of ``solve``; ``fused`` is that of the one process.

    With ``warm`` the problem is solved again, from half way to zero.
    """

    name: str
    problem: ccmac.Problem
    network: ccmac.Network
    options: dict[str, Any] = field(default_factory=dict)
    fused: bool = True
    warm: bool = False

    def on_ranks(self) -> list[dict[str, Any]]:
        return self._solved(lambda: "mpi")

    def alone(self) -> list[dict[str, Any]]:
        scheme = self.options.get("averaging", "auto")
        return self._solved(
            lambda: ccmac.InProcess(self.network, fused=self.fused, averaging=scheme)
        )

    def _solved(self, runtime: Callable[[], Any]) -> list[dict[str, Any]]:
        first = ccmac.solve(self.problem, self.network, runtime=runtime(), **self.options)
        if not self.warm:
            return [told(first)]
        start = Solution([0.5 * x for x in first.x], 0.5 * first.z, first.multipliers)
        again = ccmac.solve(
            self.problem, self.network, "cross-ipm", warm_start=start, runtime=runtime()
        )
        return [told(first), told(again)]


def told(result: ccmac.Result) -> dict[str, Any]:
    """Everything that must be equal; what is an agent's by agents."""
    own = {i: [x.tobytes()] for i, x in zip(result.agents, result.x, strict=True)}
    common = [result.z.tobytes()]
    duals = result.multipliers
    if duals is not None:
        common += [duals.coupled.tobytes(), duals.z_lower.tobytes()]
        for name in ("local", "shared", "lower", "upper", "cones"):
            for i, values in zip(result.agents, getattr(duals, name), strict=False):
                own[i].append(values.tobytes())
    if result.infeasibility is not None:
        common.append(result.infeasibility.coupled.tobytes())
    return {
        "agents": own,
        "common": common,
        "ledger": result.ledger.as_dict(),
        "status": result.status,
        "iterations": result.iterations,
        "objective": repr(result.objective),
        "residuals": repr(result.residuals),
    }


def wait_for_all() -> None:
    """A barrier at which nobody keeps a processor busy."""
    arrived = MPI.COMM_WORLD.Ibarrier()
    while not arrived.Test():
        time.sleep(0.005)


def differences(cases: Sequence[Case]) -> list[str]:
    """What differs from one process, at the root; nothing elsewhere. Collective."""
    comm = MPI.COMM_WORLD
    found_here = [case.on_ranks() for case in cases]
    wait_for_all()
    everywhere = comm.allgather(found_here)
    found = []
    for k in range(comm.rank, len(cases), comm.size):
        for j, whole in enumerate(cases[k].alone()):
            parts = [told[k][j] for told in everywhere]
            joined = {i: own for part in parts for i, own in part["agents"].items()}
            for part in parts:
                part["agents"] = joined
                found += [f"{cases[k].name}: {what}" for what in whole if part[what] != whole[what]]
    wait_for_all()
    return [line for lines in comm.gather(found) or [] for line in lines]
