"""``solve`` and ``plan``: state the problem once, get a solution with a guarantee and a bill."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ccmac.costs import Costs
from ccmac.errors import InputError
from ccmac.methods.base import State
from ccmac.methods.run import Options, Run
from ccmac.network import Network
from ccmac.plans import Plan
from ccmac.problem import Problem
from ccmac.realizations.supplied import Certificates
from ccmac.results import Result, Solution
from ccmac.runtime import Runtime
from ccmac.stack import Stack


def solve(
    problem: Problem | Stack,
    network: Network | None = None,
    method: str = "auto",
    tol: float = 1e-6,
    reference: Any = None,
    max_iterations: int | None = None,
    max_seconds: float | None = None,
    realization: str | None = None,
    costs: Costs | None = None,
    certificates: Certificates | None = None,
    access: str = "factor",
    schedule: str | None = None,
    tune: str | None = None,
    reduction: str | None = None,
    warm_start: Solution | None = None,
    fused: bool = True,
    runtime: Runtime | str | None = None,
    checkpoint: str | Path | Mapping[str, Any] | None = None,
    callback: Callable[[int, State], object] | None = None,
    progress: bool | None = None,
    seed: int = 0,
    pinned: dict[str, Any] | None = None,
    averaging: str = "auto",
) -> Result:
    """Solve a CC-MAC problem (or a J-channel Stack) over a network.

    ``tol``: the certified Euclidean error of (x, z) is at most tol max(1, ||(x, z)||). With
    ``reference`` (an array or a Solution; the weights for vertical federated problems) the run
    stops instead when RelErr = ||w - w*||^2 / ||w0 - w*||^2 <= tol. ``pinned`` fixes planner
    settings (scale, normalizer, inner, outer) or passes options to a realization. ``averaging``:
    ``relay`` (fewest rounds), ``tree`` (fewest bytes; rows are seen by a parent only) or ``auto``.
    See ``ccmac.available_methods()``.
    """
    if max_iterations is not None and max_iterations < 1:
        raise InputError(f"max_iterations = {max_iterations} must be at least 1")
    options = Options(
        method, tol, reference, realization, costs or Costs(), certificates, access, schedule,
        tune, reduction, warm_start, fused, runtime, seed, pinned or {}, averaging,
    )  # fmt: skip
    run = Run(problem, network, options)
    return run.solve(max_iterations, max_seconds, checkpoint, callback, progress)


def plan(
    problem: Problem | Stack,
    network: Network | None = None,
    method: str = "auto",
    tol: float = 1e-6,
    costs: Costs | None = None,
    **options: Any,
) -> Plan:
    """What :func:`solve` would do and its predicted ledger; executes the setup only."""
    unknown = set(options) - {f.name for f in fields(Options)}
    if unknown:
        raise InputError(f"plan: unknown option {sorted(unknown)[0]!r}")
    run = Run(problem, network, Options(method, tol, costs=costs or Costs(), **options))
    return run.plan(run.prepare())
