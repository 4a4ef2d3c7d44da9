"""``ccmac solve``: a solution with a guarantee and a bill, on one machine or on many."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from ccmac.api import solve
from ccmac.cli.kept import keep_here, keep_ranks, told_rescue, tried
from ccmac.cli.options import (
    Access,
    AsJson,
    AveragingName,
    MethodName,
    MethodOptions,
    NetworkSpec,
    Prices,
    ProblemDir,
    Realization,
    Tolerance,
    chosen,
    fitted,
    parse_costs,
    print_json,
)  # fmt: skip
from ccmac.cli.signals import TERMINATED, terminated
from ccmac.cli.solution import prepare, read_solution
from ccmac.errors import InputError
from ccmac.network import as_network
from ccmac.problem import Problem
from ccmac.results import Result
from ccmac.runtime import InProcess, Runtime
from ccmac.runtime.averaging import by_name
from ccmac.runtime.partition import processes_started
from ccmac.storage.problems import read_manifest
from ccmac.texts import dumps, shown

EXIT_CODES = {"optimal": 0, "converged": 0, "infeasible": 3, "unbounded": 3, "interrupted": 130}
RESCUE = Path("ccmac-interrupted")
EPILOG = (
    "Example: `ccmac solve my-problem --network ring --tol 1e-6 --out result`\n\n"
    "On four processes: `mpiexec -n 4 ccmac solve my-problem --network ring --runtime mpi "
    "--out result`\n\n"
    "Exit codes: 0 solved, 1 tolerance not reached, 2 bad input, 3 infeasible, 130 interrupted, "
    "143 terminated."
)

Out = Annotated[
    Path | None, typer.Option("--out", help="Write summary.json, trace.csv and solution.npz there.")
]
MaxIterations = Annotated[
    int | None, typer.Option("--max-iterations", help="Stop after so many iterations.")
]
MaxSeconds = Annotated[
    float | None, typer.Option("--max-seconds", help="Stop after so many seconds.")
]
WarmStart = Annotated[
    Path | None, typer.Option("--warm-start", help="Start from the --out of an earlier solve.")
]
Checkpoint = Annotated[
    Path | None,
    typer.Option("--checkpoint", help="Save the state there; continue from it if it exists."),
]
Every = Annotated[
    int | None, typer.Option("--every", help="Iterations between checkpoints (50).", min=1)
]
RuntimeName = Annotated[str, typer.Option("--runtime", help="inprocess, or mpi under mpiexec.")]
Audit = Annotated[
    bool, typer.Option("--audit", help="With mpi: list every kind of message that was sent.")
]
Gather = Annotated[bool, typer.Option("--gather", help="With mpi: bring all x_i to rank 0.")]
Fused = Annotated[
    bool, typer.Option("--fused/--no-fused", help="--no-fused: no polynomial is multiplied out.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of the setup's random starts.")]


@dataclass(frozen=True)
class Call:
    """The options of one call that do not change with the runtime."""

    directory: Path
    network: str
    out: Path | None
    warm_start: Path | None
    as_json: bool
    options: dict[str, Any] = field(default_factory=dict)

    def settings(self) -> dict[str, Any]:
        """What was asked for, for the record."""
        return {"network": self.network, **self.options, "method": repr(self.options["method"])}


def show(
    problem_dir: ProblemDir,
    *,
    network: NetworkSpec = "complete",
    method: MethodName = "auto",
    tol: Tolerance = 1e-6,
    out: Out = None,
    realization: Realization = None,
    access: Access = None,
    settings: MethodOptions = None,
    costs: Prices = None,
    max_iterations: MaxIterations = None,
    max_seconds: MaxSeconds = None,
    warm_start: WarmStart = None,
    checkpoint: Checkpoint = None,
    every: Every = None,
    runtime: RuntimeName = "inprocess",
    audit: Audit = False,
    gather: Gather = False,
    fused: Fused = True,
    averaging: AveragingName = "auto",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Solve a saved problem; print the solution's certified error and what it cost.

    Ctrl-C stops after the current iteration and keeps the iterate: continue with --checkpoint, or
    from --out with --warm-start.
    """
    if every is not None and checkpoint is None:
        raise InputError(
            "--every: counts iterations between checkpoints; give --checkpoint DIR too"
        )
    if max_seconds is not None and not max_seconds >= 0:
        raise InputError(f"--max-seconds {max_seconds}: give a number of seconds")
    stored = None if checkpoint is None else {"path": str(checkpoint), "every": every or 50}
    options = {
        "method": chosen(method, realization, access, settings), "tol": tol,
        "max_iterations": max_iterations, "max_seconds": max_seconds, "costs": costs,
        "checkpoint": stored, "seed": seed, "averaging": averaging,
    }  # fmt: skip
    request = Call(problem_dir, network, out, warm_start, as_json, options)
    if runtime == "mpi":
        code = _on_ranks(request, audit, gather)
    elif runtime == "inprocess":
        _refuse_copies(audit)
        code = _in_process(request, fused)
    else:
        raise InputError(f"--runtime {shown(runtime)}: is unknown; take inprocess or mpi")
    raise typer.Exit(code)


def _in_process(request: Call, fused: bool) -> int:
    problem = Problem.load(request.directory)
    with tried(request.out):
        result = _solve(request, problem, "inprocess", range(problem.n), fused)
    out = _place(request, result)
    if out is None:
        return _report(request, problem, result, None)
    place, error = keep_here(out, result, problem.n, _record(request, problem))
    code = _report(request, problem, result, place)
    return code if error is None else told_rescue(out, place, error)


def _place(request: Call, result: Result) -> Path | None:
    """Where the result goes; an interruption never loses the work."""
    lost = result.status == "interrupted" and not request.options["checkpoint"]
    return RESCUE if request.out is None and lost else request.out


def _on_ranks(request: Call, audit: bool, gather: bool) -> int:
    """The same under MPI: every rank opens its own agents' files; rank 0 prints."""
    from ccmac.runtime.audit import table  # (optional dependency)
    from ccmac.runtime.mpi import Mpi, guard

    with guard():
        manifest = read_manifest(request.directory)
        network = as_network(request.network, manifest.n)
        costs = parse_costs(request.options["costs"])
        scheme = by_name(network, request.options["averaging"], costs, manifest.m)
        runtime = Mpi(network, averaging=scheme, audit=audit)
        with runtime.guard(), runtime.watched():
            token = {"manifest": repr(manifest), **request.settings(), "gather": gather}
            runtime.check_consistent(dumps(token))
            problem = Problem.load(request.directory, agents=runtime.owned)
            if request.out is not None:
                prepare(request.out)
            result = _solve(request, problem, runtime, runtime.owned, False)
            out, lost = _place(request, result), None
            if out is not None:
                place, lost = keep_ranks(out, result, runtime, gather, _record(request, problem))
            sent = runtime.audit_report()
            code = exit_code(result) if lost is None else 1
            if runtime.is_root:
                code = _report(request, problem, result, None if out is None else place)
                if lost is not None and out is not None:
                    code = told_rescue(out, place, lost)
                if sent is not None:
                    typer.echo("\n" + table(sent), err=request.as_json)
    return code


def _solve(
    request: Call, problem: Problem, runtime: Runtime | str, owned: range, fused: bool
) -> Result:
    network = as_network(request.network, problem.n)
    warm = None if request.warm_start is None else read_solution(request.warm_start, owned, problem)
    options = request.options | {"costs": parse_costs(request.options["costs"])}
    if runtime == "inprocess":
        scheme = by_name(network, options["averaging"], options["costs"], problem.m)
        runtime = InProcess(network, fused=fused, averaging=scheme)
    return solve(problem, network, runtime=runtime, warm_start=warm, **options)


def _record(request: Call, problem: Problem) -> dict[str, Any]:
    return {
        "problem": str(request.directory),
        "size": {"n": problem.n, "q": problem.q, "m": problem.m},
        "asked": request.settings(),
    }


def _report(request: Call, problem: Problem, result: Result, out: Path | None) -> int:
    """Print the result; the exit code says how it ended."""
    if request.as_json:
        print_json({**_record(request, problem), **result.as_dict()})
    else:
        typer.echo(fitted(str(result)))
    if out is not None:
        typer.echo(f"\nwritten to {out}", err=request.as_json)
    if result.status == "interrupted":
        how = f"--warm-start {out}" if out is not None else "the same --checkpoint"
        typer.echo(f"interrupted; continue with {how}", err=True)
    return exit_code(result)


def exit_code(result: Result) -> int:
    """What the shell is told."""
    if result.status == "interrupted" and terminated():
        return TERMINATED
    return EXIT_CODES.get(result.status, 1)


def _refuse_copies(audit: bool) -> None:
    """Under mpiexec or srun without --runtime mpi every process would do the same work."""
    if audit:
        raise InputError("--audit: counts messages between processes; add --runtime mpi")
    count = processes_started()
    if count > 1:
        raise InputError(
            f"solve: was started as {count} processes, each of which would solve all of it; "
            "add --runtime mpi"
        )
