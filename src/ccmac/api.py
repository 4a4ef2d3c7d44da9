"""``solve`` and ``plan``: state the problem once, get a solution with a guarantee and a bill."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import NoneType
from typing import Any

from ccmac.certificates.users_rows import lifted
from ccmac.errors import InputError
from ccmac.inputs import of_kind, positive, whole
from ccmac.ledger import Costs
from ccmac.methods.base import Method, Request, State
from ccmac.methods.registry import parse
from ccmac.methods.run import Limits, Run, starting_point
from ccmac.network import Network, as_network
from ccmac.plans import Plan
from ccmac.problem import Problem
from ccmac.results import Result, Solution
from ccmac.runtime import InProcess, Runtime
from ccmac.runtime.averaging import by_name
from ccmac.stack import Stack
from ccmac.texts import shown
from ccmac.workspace import Workspace
from ccmac.workspace.scales import refuse_extreme

MOST_THREADS = 10_000  # far beyond any machine


def solve(
    problem: Problem | Stack,
    network: Network | str | Any | None = None,
    method: str | Method = "auto",
    tol: float = 1e-6,
    *,
    reference: Any = None,
    max_iterations: int | None = None,
    max_seconds: float | None = None,
    warm_start: Solution | None = None,
    runtime: Runtime | str | None = None,
    averaging: str = "auto",
    costs: Costs | None = None,
    checkpoint: str | Path | Mapping[str, Any] | None = None,
    callback: Callable[[int, State], object] | None = None,
    progress: bool | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Result:
    """Solve a CC-MAC problem (or a J-channel Stack) over a network.

    The result carries the point, its multipliers, a proved bound on its error, and the bill.

    Parameters
    ----------
    problem : Problem or Stack
        What to solve.
    network : Network, str, networkx.Graph or matrix, optional
        Who talks to whom: also a name ("ring", "grid:3x4"); None is the complete graph.
    method : str or Method
        A name, or an object that owns its options (:mod:`ccmac.methods`).
    tol : float
        The certified Euclidean error of (x, z) is at most tol max(1, ||(x, z)||); without strong
        convexity F - F* <= tol max(1, |F|).
    reference : array_like or Solution, optional
        A known solution (the weights of a vertical problem). The run stops when
        ||w - w*||^2 / ||w0 - w*||^2 <= tol, and nothing has to be proved.
    max_iterations : int, optional
        Limit of steps.
    max_seconds : float, optional
        Limit of time in seconds.
    warm_start : Solution, optional
        An earlier result to start from, multipliers included.
    runtime : Runtime or {"inprocess", "mpi"}, optional
        Where agents live, such as ``InProcess(network, fused=False)``.
    averaging : {"auto", "relay", "tree", "masked"}
        "relay" has fewest rounds, "tree" few bytes; with "masked" nobody sees a single row.
    costs : Costs, optional
        Unit costs that plans and an "auto" averaging are chosen by.
    checkpoint : path or mapping, optional
        A directory, or {"path", "every", "seconds"}; continued if it exists.
    callback : callable, optional
        ``callback(iteration, state)`` after every step; returning True stops the run. The state is
        a copy that may be kept.
    progress : bool, optional
        A bar on standard error; None: in a terminal only.
    seed : int
        Of the setup's random starts.
    threads : int, optional
        BLAS threads of this process; None: one where blocks have fewer than 1,000 rows.

    Returns
    -------
    Result

    Examples
    --------
    >>> import ccmac, numpy as np
    >>> f = ccmac.objectives.Quadratic(np.eye(2), [1.0, 2.0])
    >>> agents = [ccmac.Agent(f, A=[[1.0]], B=[[1.0]], b=[1.0]) for _ in range(3)]
    >>> result = ccmac.solve(ccmac.Problem(agents), "ring", "cross-apapc", tol=1e-8, max_seconds=60)
    >>> result.status, bool(result.error_bound < 1e-7)
    ('optimal', True)
    """
    limits = checked_limits(max_iterations, max_seconds, checkpoint, callback, progress, threads)
    tol = positive("tol", tol)
    with _explained(problem):
        work, asked = placed(problem, network, method, runtime, averaging, costs, seed)
        return run_on(work, asked, tol, reference, warm_start, costs, seed).solve(limits)


def plan(
    problem: Problem | Stack,
    network: Network | str | Any | None = None,
    method: str | Method = "auto",
    tol: float = 1e-6,
    costs: Costs | None = None,
    *,
    runtime: Runtime | str | None = None,
    averaging: str = "auto",
    warm_start: Solution | None = None,
    reference: Any = None,
    seed: int = 0,
) -> Plan:
    """What :func:`solve` would do and its predicted ledger; executes the setup only.

    Parameters
    ----------
    problem, network, method, tol : as in :func:`ccmac.solve`
        What would be solved, where, how and how exactly.
    costs : Costs, optional
        Unit costs of gradients, products, rounds and bytes.
    runtime, averaging, warm_start, reference, seed : as in :func:`ccmac.solve`
        The conditions.

    Returns
    -------
    Plan

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Quadratic(np.eye(2), [1.0, 2.0])
    >>> problem = ccmac.Problem([ccmac.Agent(f, A=[[1]], B=[[1]], b=[1]) for _ in range(3)])
    >>> plan = ccmac.plan(problem, "ring")
    >>> plan.method, plan.averaging_rounds
    ('cross-direct', 1)
    """
    tol = positive("tol", tol)
    with _explained(problem):
        work, asked = placed(problem, network, method, runtime, averaging, costs, seed)
        run = run_on(work, asked, tol, reference, warm_start, costs, seed)
        return run.plan(run.prepare())


@contextmanager
def _explained(problem: Problem | Stack) -> Iterator[None]:
    """Arithmetic that breaks down on extreme entries is said in one line."""
    try:
        yield
    except (ArithmeticError, ValueError) as error:  # LinAlgError is a ValueError
        refuse_extreme(problem, error)
        raise


def checked_limits(
    max_iterations: int | None,
    max_seconds: float | None,
    checkpoint: str | Path | Mapping[str, Any] | None,
    callback: Callable[[int, State], object] | None,
    progress: bool | None,
    threads: int | None = None,
) -> Limits:
    """The limits of a run, if they are such."""
    if threads is not None and whole("threads", threads, 1) > MOST_THREADS:
        raise InputError(f"threads = {shown(threads)} are more than {MOST_THREADS:,}")
    if max_iterations is not None:
        max_iterations = whole("max_iterations", max_iterations, 1)
    if max_seconds is not None:
        max_seconds = positive("max_seconds", max_seconds)
    if callback is not None and not callable(callback):
        raise InputError(f"callback: {shown(callback)} cannot be called; give a function")
    of_kind("progress", progress, (bool, NoneType), "True, False or None")
    return Limits(max_iterations, max_seconds, checkpoint, callback, progress, threads)


def placed(
    problem: Problem | Stack,
    network: Any,
    method: str | Method,
    runtime: Runtime | str | None,
    averaging: str,
    costs: Costs | None,
    seed: int,
) -> tuple[Workspace, Method]:
    """The problem on a runtime, and the method, both checked."""
    asked = parse(method)
    whole("seed", seed)
    of_kind("problem", problem, (Problem, Stack), "a ccmac.Problem or Stack")
    of_kind("averaging", averaging, str, "the name of a scheme, such as 'auto'")
    of_kind("costs", costs, (Costs, NoneType), "ccmac.Costs(...)")
    asked.refuse_shape(isinstance(problem, Stack))
    if network is None and isinstance(runtime, Runtime):
        network = runtime.network
    n = 1
    names = []
    if isinstance(problem, Problem):
        n = problem.n
        names = [a.name for a in problem.agents.values() if problem.complete]
    found = make_runtime(as_network(network, n, names), runtime, averaging, costs)
    return Workspace(problem, found), asked


def run_on(
    work: Workspace,
    asked: Method,
    tol: float,
    reference: Any,
    warm_start: Solution | None,
    costs: Costs | None,
    seed: int,
    known: Solution | None = None,
) -> Run:
    """One run on a workspace; ``known`` is the warm start as an earlier run on it found it."""
    tol = positive("tol", tol)
    if warm_start is not None and not (hasattr(warm_start, "x") and hasattr(warm_start, "z")):
        raise InputError(
            f"warm_start: expected a Solution or an earlier Result, got {type(warm_start).__name__}"
        )
    if work.reduction is not None:
        warm_start = lifted(work, warm_start) if known is None else known
        reference = lifted(work, reference)
    x0, z0 = starting_point(work, warm_start)
    observed = reference is not None
    weights_only = observed and not hasattr(reference, "x")
    request = Request(
        tol,
        x0,
        z0,
        observed,
        tol if observed else tol * tol,
        (1.0, 0.0) if weights_only else (1.0, 1.0),
        costs or Costs(),
        seed,
    )
    return Run(work, asked, request, reference, warm_start)


def make_runtime(
    network: Network, runtime: Runtime | str | None, averaging: str, costs: Costs | None = None
) -> Runtime:
    """An in-process runtime, an MPI runtime by name, or the one given.

    An "auto" averaging chooses the scheme of each message by the unit costs.
    """
    if isinstance(runtime, Runtime):
        if runtime.network.n != network.n:
            raise InputError("runtime: was built for another network")
        if averaging not in ("auto", runtime.averaging.name):
            raise InputError(
                f"averaging = {shown(averaging)}: the runtime given has {runtime.averaging.name}"
            )
        return runtime
    if not (runtime is None or (isinstance(runtime, str) and runtime in ("inprocess", "mpi"))):
        raise InputError(f"runtime {shown(runtime)} is unknown; take 'inprocess' or 'mpi'")
    scheme = by_name(network, averaging, costs)
    if runtime == "mpi":
        from ccmac.runtime.mpi import Mpi

        return Mpi(network, averaging=scheme)
    return InProcess(network, averaging=scheme)
