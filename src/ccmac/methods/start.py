"""What a caller brings to a run: limits, a start, a reference, constants to be tried, a bar."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ccmac.certificates.farkas import Infeasibility
from ccmac.certificates.multipliers import Recovery
from ccmac.errors import InputError, OutOfTime
from ccmac.inputs import Array, as_array, real_vector
from ccmac.ledger import Ledger
from ccmac.methods.base import Iteration, Method, Request, State
from ccmac.methods.driver import Observer, Report
from ccmac.objectives.checks import check_problem
from ccmac.objectives.custom import Custom
from ccmac.results import Names, Solution
from ccmac.runtime.base import Piggyback
from ccmac.workspace import Workspace

DRIVEN = 0.9  # share of a time limit that the iteration has, where contradictions are asked for


@dataclass(frozen=True)
class Limits:
    """How long a run may last, where its state is kept, and who looks on."""

    max_iterations: int | None = None
    max_seconds: float | None = None
    checkpoint: str | Path | Mapping[str, Any] | None = None
    callback: Callable[[int, State], object] | None = None
    progress: bool | None = None
    begun: float = field(default_factory=time.perf_counter)  # of the call


def first_state(
    work: Workspace, iteration: Iteration[Any], request: Request, warm: Solution | None
) -> State:
    """The request's point, with the multipliers of a warm start."""
    copies = np.broadcast_to(request.z0, (len(work.problem.agents), work.problem.q))
    multipliers = None if warm is None else warm.multipliers
    known = multipliers and (Recovery(work).dual_vector(multipliers), multipliers.coupled)
    return iteration.start(request.x0, copies, *(known or ()))  # type: ignore[no-any-return]


def starting_point(work: Workspace, warm: Solution | None) -> tuple[Array, Array]:
    """(flat x, z) of a warm start, or zeros."""
    d = list(work.problem.d.values())
    q = work.problem.q
    if warm is None:
        return np.zeros(sum(d)), np.zeros(q)
    places = zip(positions(work, warm), work.problem.d, strict=True)
    x = [real_vector(f"warm_start, x of agent {i}", warm.x[k]) for k, i in places]
    z = real_vector("warm_start, z", warm.z)
    if [len(v) for v in x] != d or len(z) != q:
        raise InputError("warm_start: its x or z has other sizes than the problem")
    return np.concatenate(x) if x else np.zeros(0), z


def names_of(work: Workspace) -> Names | None:
    """Names of the owned agents (else their nodes in the network), rows and entries of z."""
    whole = work.whole
    nodes = work.runtime.network.nodes
    given = [whole.agents[i].name for i in work.runtime.owned]
    agents = None
    if any(name is not None for name in given):
        agents = tuple(name or str(i) for i, name in zip(work.runtime.owned, given, strict=True))
    elif tuple(nodes) != tuple(range(len(nodes))):
        agents = tuple(str(nodes[i]) for i in work.runtime.owned)
    if agents is None and whole.row_names is None and whole.z_names is None:
        return None
    return Names(agents, whole.row_names, whole.z_names)


def positions(work: Workspace, solution: Solution) -> list[int]:
    """Where the owned agents sit in a solution that may hold all or just these."""
    owned = work.runtime.owned
    if not isinstance(solution.x, Sized):
        raise InputError("solution: x is no list; give the local variables, one per agent")
    if len(solution.x) == work.problem.n:
        return list(owned)
    if len(solution.x) == len(owned):
        return list(range(len(owned)))
    raise InputError(
        f"solution: has {len(solution.x)} local variables; give {work.problem.n}, one per agent"
    )


def observer_of(
    work: Workspace, iteration: Iteration[Any], reference: Any, tol: float
) -> Observer | None:
    """Compares with the reference, whatever form it was given in."""
    if reference is None:
        return None
    d = sum(work.problem.d.values())
    q = work.problem.q
    if hasattr(reference, "x"):
        blocks = [real_vector("reference, x", reference.x[k]) for k in positions(work, reference)]
        z = real_vector("reference, z", reference.z)
        return Observer(iteration, np.concatenate(blocks), z, tol)
    mine = work.whole.reference_blocks(reference)
    if mine is not None:
        owned = [mine[i] for i in work.runtime.owned]
        return Observer(iteration, np.concatenate(owned), None, tol)
    array = real_vector("reference", np.ravel(as_array("reference", reference)))
    if len(array) == d and work.problem.complete:
        return Observer(iteration, array, None, tol)
    if len(array) == d + q and work.problem.complete:
        return Observer(iteration, array[:d], array[d:], tol)
    raise InputError(
        f"reference: has {len(array)} entries; give the {d} local variables, those and z "
        f"({d + q}), or a Solution"
    )


def probed(work: Workspace, seed: int) -> Piggyback:
    """Try the declared constants of users' own objectives; warns where they do not hold.

    All agents hear of it with the next message: (gradients spent, whether in doubt), a row each.
    """
    spent = 0
    if any(isinstance(agent.objective, Custom) for agent in work.problem.agents.values()):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            spent = check_problem(work.problem, seed)
        for warning in seen:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
            work.doubts.append(str(warning.message))
    rows = np.tile([float(spent), float(bool(work.doubts))], (len(work.problem.agents), 1))
    return work.runtime.piggyback(rows, whole=True)


@contextmanager
def reporter(
    wanted: bool | None, root: bool, name: str, predicted: float | None
) -> Iterator[Report | None]:
    """Yield a report function (None when silent). ``wanted`` None: only in a terminal."""
    show = sys.stderr.isatty() if wanted is None else wanted
    if not (show and root):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.completed:.0f} it  {task.fields[error]}  {task.fields[rounds]} rounds"),
        TimeElapsedColumn(),
    )
    total = predicted if predicted is not None and math.isfinite(predicted) else None
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=total, error="", rounds=0)

        def report(count: int, bound: float, relative: float, ledger: Ledger) -> None:
            fields: dict[str, object] = {"rounds": f"{ledger['rounds']:,}"}
            if math.isfinite(bound):
                fields["error"] = f"bound {bound:.1e}"
            elif math.isfinite(relative):
                fields["error"] = f"error {relative:.1e}"
            bar.update(task, completed=count, **fields)  # type: ignore[arg-type]

        yield report


def driven(work: Workspace, method: Method, limits: Limits) -> float | None:
    """Seconds that the iteration has: one process keeps a tenth for :func:`excluded`.

    Several, whose clocks differ, would have to agree on it first.
    """
    seconds = limits.max_seconds
    if seconds is None or not work.runtime.alone or not method.excludes(work):
        return seconds
    return DRIVEN * seconds


def excluded(
    work: Workspace, method: Method, request: Request, limits: Limits
) -> Infeasibility | None:
    """What the method finds in the time that is kept; given up as a step is that takes longer."""
    seconds = driven(work, method, limits)
    runtime = work.runtime
    if seconds is not None and seconds == limits.max_seconds:
        return None
    try:
        runtime.stepping = seconds is not None
        return method.excluded(work, request)
    except OutOfTime:
        return None
    finally:
        runtime.stepping = False
