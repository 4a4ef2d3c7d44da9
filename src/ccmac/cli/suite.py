"""``ccmac suite``: run families of experiments and look at what came out."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ccmac.cli.options import AsJson, opt, print_json
from ccmac.cli.options import table as aligned
from ccmac.errors import InputError
from ccmac.paper.experiments import suite as suites
from ccmac.paper.experiments.execute import run_suite
from ccmac.paper.experiments.plugins import load_plugins
from ccmac.paper.experiments.records import read_record, read_records, read_suite, resume_command
from ccmac.paper.experiments.verify import findings

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="Families of runs in YAML. Start with: ccmac suite run smoke --out out/smoke",
)
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The --out of `ccmac suite run`.")]
Profile = Annotated[str | None, opt("practical (default) or paper (modelled rounds).", "--profile")]


@app.command("list")
def list_suites(as_json: AsJson = False) -> None:
    """Show the suites that come with the package. Example: ccmac suite list"""
    rows = []
    for name, path in suites.bundled().items():
        try:
            loaded = suites.load(name)
            rows.append({"name": name, "runs": len(loaded.runs), "title": loaded.title})
        except InputError as error:
            rows.append({"name": name, "runs": 0, "title": f"cannot be run here: {error}"})
        rows[-1]["path"] = str(path)
    if as_json:
        print_json(rows)
        return
    typer.echo(aligned("suite|>runs|what", [(r["name"], r["runs"], r["title"]) for r in rows]))


@app.command("run")
def run(
    name: Annotated[str, typer.Argument(metavar="NAME|FILE", help="A bundled suite or a file.")],
    out: Annotated[Path, opt("Directory of the records.")],
    *,
    jobs: Annotated[int, opt("Processes, one thread each.", "--jobs", "-j")] = 1,
    profile: Profile = None,
    resume: Annotated[bool, opt("Skip finished runs, redo broken ones.", "--resume")] = False,
    max_runs: Annotated[int, opt("Refuse a suite of more runs.")] = suites.MAX_RUNS,
    only: Annotated[str, opt("Only runs whose name contains this text.")] = "",
    plugin: Annotated[list[str] | None, opt("Python file of METHODS, DATASETS, PROBLEMS.")] = None,
) -> None:
    """Run a suite. Example: ccmac suite run comparison --out out/comparison --jobs 2"""
    plugins = [os.path.realpath(file) for file in plugin or ()]
    load_plugins(plugins)
    suite = suites.load(name, profile, max_runs)
    tally = run_suite(suite, out, jobs=jobs, resume=resume, only=only, plugins=plugins)
    typer.echo(
        f"{len(tally.statuses)} runs, {len(tally.missed)} missed the target, "
        f"{tally.skipped} were done before"
    )
    for name_ in tally.missed[:10]:
        record = read_record(out, next(r for r in suite.runs if r.id == name_))
        why = record.summary.get("message", "") if record else ""
        typer.echo(f"  {name_}: {tally.statuses[name_]}: {why}")
    typer.echo(f"next: ccmac suite verify {out}; ccmac report {out} -o report.html")
    if tally.missed:
        raise typer.Exit(1)


@app.command("status")
def status(folder: Folder, as_json: AsJson = False) -> None:
    """Say how far a suite is. Example: ccmac suite status out/comparison"""
    suite = read_suite(folder)
    records = read_records(folder, suite)
    counts = Counter(record.status for record in records)
    absent = len(suite.runs) - len(records)
    broken = [r for r in records if not r.finished]
    if as_json:
        facts = {"suite": suite.name, "profile": suite.profile, "runs": len(suite.runs)}
        ids = [r.run.id for r in broken]
        print_json({**facts, "statuses": dict(counts), "absent": absent, "broken": ids})
        return
    typer.echo(f"{suite.name} ({suite.profile}): {len(records)} of {len(suite.runs)} runs recorded")
    for state, count in sorted(counts.items()):
        typer.echo(f"  {state:<16}{count:>6}")
    if absent:
        typer.echo(f"  {'not recorded':<16}{absent:>6}")
    for record in broken[:20]:
        typer.echo(f"  {record.run.id}: {record.summary.get('message', '')}")
    if absent or broken:
        typer.echo(f"continue with: {resume_command(folder)}")


@app.command("verify")
def verify(folder: Folder, as_json: AsJson = False) -> None:
    """Check that records are complete and say what the suite expects; exit code 1 if not.

    Example: ccmac suite verify out/scaling
    """
    found = findings(folder)
    if as_json:
        print_json([asdict(finding) for finding in found])
    else:
        for finding in found:
            typer.echo(f"{'ok  ' if finding.holds else 'FAIL'} {finding.text}")
    if not all(finding.holds for finding in found):
        raise typer.Exit(1)


@app.command("figures")
def figures(
    folder: Folder,
    out: Annotated[Path | None, opt("Default: DIR/figures.")] = None,
    formats: Annotated[str, opt("For instance png,pdf.")] = "png,pdf",
) -> None:
    """Draw the suite's figures. Example: ccmac suite figures out/scaling --formats png"""
    from ccmac.paper.experiments.figures import draw

    for path in draw(folder, out or folder / "figures", formats.split(",")):
        typer.echo(str(path))


@app.command("table")
def table(
    folder: Folder,
    form: Annotated[str, opt("markdown, latex, csv or json.", "--format")] = "markdown",
) -> None:
    """Print the suite's table. Example: ccmac suite table out/robustness --format latex"""
    from ccmac.paper.experiments.tables import render

    typer.echo(render(read_records(folder), form))
