"""``ccmac solve``: a solution with a guarantee and a bill, on one machine or on many."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
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
    opt,
    parse_costs,
    print_json,
)
from ccmac.cli.signals import TERMINATED, terminated
from ccmac.cli.solution import read_start, try_out, write_ranks
from ccmac.errors import InputError
from ccmac.network import as_network
from ccmac.problem import Problem
from ccmac.results import Result
from ccmac.runtime import InProcess
from ccmac.runtime.audit import table
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

    out: Annotated[Path | None, opt("Write solution, summary, trace and proof there.")] = None
    max_iterations: Annotated[int | None, opt("Stop after so many iterations.")] = None
    max_seconds: Annotated[float | None, opt("Stop after so many seconds.")] = None
    warm_start: Annotated[Path | None, opt("Start from the --out of an earlier solve.")] = None
    checkpoint: Annotated[
        Path | None, opt("Save the state there; continue from it if it exists.")
    ] = None
    every: Annotated[int | None, opt("Iterations between checkpoints (50).", min=1)] = None
    runtime: Annotated[str, opt("inprocess, or mpi under mpiexec.")] = "inprocess"
    audit: Annotated[
        bool, opt("With mpi: list every kind of message that was sent.", "--audit")
    ] = False
    gather: Annotated[bool, opt("With mpi: bring all x_i to rank 0.", "--gather")] = False
    fused: Annotated[
        bool, opt("--no-fused: no polynomial is multiplied out.", "--fused/--no-fused")
    ] = True
    seed: Annotated[int, opt("Of the setup's random starts.", min=0)] = 0

    def __post_init__(self) -> None:
        if self.every is not None and self.checkpoint is None:
            raise InputError(
                "--every: counts iterations between checkpoints; give --checkpoint DIR too"
            )
        if self.runtime not in ("inprocess", "mpi"):
            raise InputError(f"--runtime {shown(self.runtime)}: is unknown; take inprocess or mpi")
        if self.audit and self.runtime != "mpi":
            raise InputError("--audit: counts messages between processes; add --runtime mpi")
        count = processes_started()
        if count > 1 and self.runtime != "mpi":
            raise InputError(
                f"solve: was started as {count} processes, each of which would solve all of it; "
                "add --runtime mpi"
            )
        if self.max_seconds is not None and not self.max_seconds >= 0:
            raise InputError(f"--max-seconds {self.max_seconds}: give a number of seconds")


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
    options: dict[str, Any] = {
        "method": chosen.method(),
        "tol": terms.tol,
        "max_iterations": running.max_iterations,
        "max_seconds": running.max_seconds,
        "costs": parse_costs(terms.costs),
        "seed": running.seed,
        "averaging": terms.averaging,
    }
    if running.checkpoint is not None:
        options["checkpoint"] = {"path": str(running.checkpoint), "every": running.every or 50}
    out = running.out
    with ExitStack() as guards:
        mpi = running.runtime == "mpi"
        if mpi:
            guards.enter_context(import_module("ccmac.runtime.mpi").guard())
        manifest = read_manifest(problem_dir)
        network = as_network(terms.network, manifest.n)
        scheme = by_name(network, terms.averaging, options["costs"])
        runtime: Any = InProcess(network, fused=running.fused, averaging=scheme)
        if mpi:
            kind = import_module("ccmac.runtime.mpi").Mpi
            runtime = kind(network, averaging=scheme, audit=running.audit)
            guards.enter_context(runtime.guard())
        problem = Problem.load(problem_dir, agents=runtime.owned)
        asked = options | {"method": repr(options["method"]), "costs": terms.costs}
        size = {"n": problem.n, "q": problem.q, "m": problem.m}
        record = {"problem": str(problem_dir), "size": size}
        record |= {"asked": {"network": terms.network, **asked}}
        if mpi:  # all have loaded before anybody writes
            runtime.check_consistent(dumps([repr(manifest), record, running.gather]))
        if runtime.is_root:
            try_out(out)
        start = running.warm_start
        warm = None if start is None else read_start(start, runtime.owned, problem)
        result = solve(problem, network, runtime=runtime, warm_start=warm, **options)
        if out is None and result.status == "interrupted" and running.checkpoint is None:
            out = INTERRUPTED  # an interruption never loses the work
        if out is not None:
            write_ranks(out, result, runtime, running.gather, record, folder_digest(problem_dir))
        sent = runtime.audit_report() if running.audit else None
        if runtime.is_root:
            report(result, record, out, as_json)
            if sent is not None:
                typer.echo("\n" + table(sent), err=as_json)
    raise typer.Exit(exit_code(result))


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
