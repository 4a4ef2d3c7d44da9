"""``ccmac agent``: one owner's part of a run.

Nobody needs the whole problem, and nobody talks to others than its neighbors.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ccmac.api import solve
from ccmac.cli.options import AsJson, Log, Page, checkpoint, opt, watching
from ccmac.cli.solution import try_out, write
from ccmac.cli.solve import exit_code, report
from ccmac.methods.registry import parse
from ccmac.owners.own_file import own_errors, run_own
from ccmac.problem import Agent

EPILOG = (
    "Example: `ccmac agent me.toml`, at every owner, in any order\n\n"
    "Exit codes: 0 solved, 1 tolerance not reached or an owner gone, 2 bad input, 3 infeasible, "
    "130 interrupted, 143 terminated."
)


def show(
    file: Annotated[Path, typer.Argument(metavar="ME.TOML", help="Who I am; see the page owners.")],
    *,
    patience: Annotated[
        float | None, opt("Seconds after which a silent owner ends the run.", min=1)
    ] = None,
    log: Log = None,
    status: Page = None,
    as_json: AsJson = False,
) -> None:
    """Take part in a run with one agent; start it at every owner, in any order.

    A connection that drops is made again and nothing is lost. An owner that stays away ends the run
    everywhere; started again, the owners continue from the newest checkpoint that all have.
    """
    from ccmac.owners.session import Owner, stopped_by

    asked = Owner.read(file)
    mine = asked.mine
    public = asked.public
    method = parse(public.method, dict(public.options))
    own: Mapping[str, Any] = {}
    if mine.python is not None:
        own = run_own(asked.path(mine.python))
    agent = own.get("agent") or Agent.load(asked.path(str(mine.folder)))
    problem = public.problem(mine.agent, agent)
    out = asked.path(mine.out)
    try_out(out)
    kept = checkpoint(file, asked.kept, mine.every)
    record = {
        "agent": asked.number,
        "size": {"n": public.agents, "q": public.q, "m": public.m},
        "public": public.digest(),
    }
    with asked.runtime(watching(log, status), patience) as runtime:
        result = solve(
            problem,
            asked.network,
            method,
            public.tol,
            runtime=runtime,
            seed=public.seed,
            max_iterations=public.max_iterations,
            max_seconds=mine.max_seconds,
            checkpoint=kept,
            warm_start=asked.start(runtime),
        )
        write(out, result, public.agents, record)
        who = stopped_by(runtime, result)
    if callable(done := own.get("done")):
        with own_errors(asked.path(str(mine.python))):
            done(result)
    if public.absent:
        record["absent"] = public.absent
        gone = ", ".join(public.absent)
        typer.echo(f"without {gone}: the answer is that of the others' problem alone", err=True)
    report(result, record, out, as_json, f"{who}start all owners again to continue")
    raise typer.Exit(exit_code(result))
