"""``ccmac solve``: a solution with a guarantee and a bill, on one machine or on many."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ccmac.api import solve
from ccmac.cli.options import (
    AsJson,
    Chosen,
    Conditions,
    ProblemDir,
    fitted,
    grouped,
    parse_costs,
    print_json,
)
from ccmac.cli.signals import TERMINATED, terminated
from ccmac.cli.solution import read_start, try_out, write, write_ranks
from ccmac.errors import InputError
from ccmac.methods.base import Method
from ccmac.network import as_network
from ccmac.problem import Problem
from ccmac.results import Result
from ccmac.runtime import InProcess, Runtime
from ccmac.runtime.averaging import by_name
from ccmac.runtime.partition import processes_started
from ccmac.storage.problems import read_manifest
from ccmac.storage.proofs import folder_digest
from ccmac.texts import dumps, shown

EXIT_CODES = {"optimal": 0, "infeasible": 3, "unbounded": 3, "interrupted": 130}
INTERRUPTED = Path("ccmac-interrupted")
EPILOG = (
    "Example: `ccmac solve my-problem --network ring --tol 1e-6 --out result`\n\n"
    "On four processes: `mpiexec -n 4 ccmac solve my-problem --network ring --runtime mpi "
    "--out result`\n\n"
    "Exit codes: 0 solved, 1 tolerance not reached, 2 bad input, 3 infeasible, 130 interrupted, "
    "143 terminated."
)


@dataclass(frozen=True)
class Running:
    """The options that say how a solve is run and what is kept of it."""

    out: Annotated[
        Path | None, typer.Option("--out", help="Write solution, summary, trace and proof there.")
    ] = None
    max_iterations: Annotated[
        int | None, typer.Option("--max-iterations", help="Stop after so many iterations.")
    ] = None
    max_seconds: Annotated[
        float | None, typer.Option("--max-seconds", help="Stop after so many seconds.")
    ] = None
    warm_start: Annotated[
        Path | None, typer.Option("--warm-start", help="Start from the --out of an earlier solve.")
    ] = None
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", help="Save the state there; continue from it if it exists."),
    ] = None
    every: Annotated[
        int | None, typer.Option("--every", help="Iterations between checkpoints (50).", min=1)
    ] = None
    runtime: Annotated[str, typer.Option("--runtime", help="inprocess, or mpi under mpiexec.")] = (
        "inprocess"
    )
    audit: Annotated[
        bool, typer.Option("--audit", help="With mpi: list every kind of message that was sent.")
    ] = False
    gather: Annotated[bool, typer.Option("--gather", help="With mpi: bring all x_i to rank 0.")] = (
        False
    )
    fused: Annotated[
        bool,
        typer.Option("--fused/--no-fused", help="--no-fused: no polynomial is multiplied out."),
    ] = True
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the setup's random starts.")] = 0

    def __post_init__(self) -> None:
        if self.every is not None and self.checkpoint is None:
            raise InputError(
                "--every: counts iterations between checkpoints; give --checkpoint DIR too"
            )
        if self.max_seconds is not None and not self.max_seconds >= 0:
            raise InputError(f"--max-seconds {self.max_seconds}: give a number of seconds")


@dataclass(frozen=True)
class Call:
    """What was asked of one solve."""

    directory: Path
    terms: Conditions
    running: Running
    method: Method

    def options(self) -> dict[str, Any]:
        """What ``solve`` is given on any runtime, costs still as text."""
        running = self.running
        stored = None
        if running.checkpoint is not None:
            stored = {"path": str(running.checkpoint), "every": running.every or 50}
        return {
            "method": self.method,
            "tol": self.terms.tol,
            "max_iterations": running.max_iterations,
            "max_seconds": running.max_seconds,
            "costs": self.terms.costs,
            "checkpoint": stored,
            "seed": running.seed,
            "averaging": self.terms.averaging,
        }

    def record(self, problem: Problem) -> dict[str, Any]:
        """What was asked for, for the summary."""
        asked = {"network": self.terms.network, **self.options(), "method": repr(self.method)}
        size = {"n": problem.n, "q": problem.q, "m": problem.m}
        return {"problem": str(self.directory), "size": size, "asked": asked}

    def place(self, result: Result) -> Path | None:
        """Where the result goes; an interruption never loses the work."""
        out = self.running.out
        lost = result.status == "interrupted" and self.running.checkpoint is None
        return INTERRUPTED if out is None and lost else out


@grouped
def show(
    problem_dir: ProblemDir,
    *,
    terms: Conditions,
    chosen: Chosen,
    running: Running,
    as_json: AsJson = False,
) -> None:
    """Solve a saved problem; print the solution's certified error and what it cost.

    Ctrl-C stops after the current iteration and keeps the iterate: continue with --checkpoint, or
    from --out with --warm-start.
    """
    call = Call(problem_dir, terms, running, chosen.method())
    if running.runtime == "mpi":
        raise typer.Exit(_on_ranks(call, as_json))
    if running.runtime != "inprocess":
        raise InputError(f"--runtime {shown(running.runtime)}: is unknown; take inprocess or mpi")
    if running.audit:
        raise InputError("--audit: counts messages between processes; add --runtime mpi")
    if (count := processes_started()) > 1:
        raise InputError(
            f"solve: was started as {count} processes, each of which would solve all of it; "
            "add --runtime mpi"
        )
    problem = Problem.load(problem_dir)
    try_out(running.out)
    result = _solve(call, problem, None, range(problem.n))
    out = call.place(result)
    if out is not None:
        digest = folder_digest(problem_dir)
        write(out, result, problem.n, call.record(problem), digest)
    report(result, call.record(problem), out, as_json)
    raise typer.Exit(exit_code(result))


def _on_ranks(call: Call, as_json: bool) -> int:
    """The same under MPI: every rank opens its own agents' files; rank 0 prints."""
    from ccmac.runtime.audit import table  # (optional dependency)
    from ccmac.runtime.mpi import Mpi, guard

    running = call.running
    terms = call.terms
    with guard():
        manifest = read_manifest(call.directory)
        network = as_network(terms.network, manifest.n)
        scheme = by_name(network, terms.averaging, parse_costs(terms.costs))
        runtime = Mpi(
            network, averaging=scheme, audit=running.audit, max_seconds=running.max_seconds
        )
        with runtime.guard():
            problem = Problem.load(call.directory, agents=runtime.owned)
            record = call.record(problem)
            # All have loaded before anybody writes.
            runtime.check_consistent(dumps([repr(manifest), record, running.gather]))
            if runtime.is_root:
                try_out(running.out)
            result = _solve(call, problem, runtime, runtime.owned)
            out = call.place(result)
            if out is not None:
                digest = folder_digest(call.directory)
                write_ranks(out, result, runtime, running.gather, record, digest)
            sent = runtime.audit_report()
            if runtime.is_root:
                report(result, record, out, as_json)
                if sent is not None:
                    typer.echo("\n" + table(sent), err=as_json)
    return exit_code(result)


def _solve(call: Call, problem: Problem, runtime: Runtime | None, owned: range) -> Result:
    network = as_network(call.terms.network, problem.n)
    start = call.running.warm_start
    warm = None if start is None else read_start(start, owned, problem)
    options = call.options() | {"costs": parse_costs(call.terms.costs)}
    if runtime is None:
        scheme = by_name(network, options["averaging"], options["costs"])
        runtime = InProcess(network, fused=call.running.fused, averaging=scheme)
    return solve(problem, network, runtime=runtime, warm_start=warm, **options)


def report(
    result: Result, record: dict[str, Any], out: Path | None, as_json: bool, again: str = ""
) -> None:
    """Print the result, where it is and, where it was interrupted, how to go on (``again``)."""
    if as_json:
        print_json({**record, **result.as_dict(solution=True)})
    else:
        typer.echo(fitted(str(result)))
    if out is not None:
        typer.echo(f"\nwritten to {out}", err=as_json)
    if result.status == "interrupted":
        how = f"continue with --warm-start {out}" if out else "continue with the same --checkpoint"
        typer.echo(f"interrupted; {again or how}", err=True)


def exit_code(result: Result) -> int:
    """The exit code that says how the run ended."""
    if result.status == "interrupted" and terminated():
        return TERMINATED
    return EXIT_CODES.get(result.status, 1)
