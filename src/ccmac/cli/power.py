"""``ccmac power``: a grid dispatched by its buses or areas, with tables and a picture."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from ccmac.api import solve
from ccmac.cli.options import AsJson, print_json, wide_console
from ccmac.cli.solve import EXIT_CODES
from ccmac.errors import InputError
from ccmac.ledger import PHASES
from ccmac.power import CASES, Dispatch, dc_opf
from ccmac.storage.files import atomic_write, try_file

SHOWN = 8
EPILOG = "Example: `ccmac power case118 --areas 10 --tighten 0.9 --out grid.png`"


def show(
    case: Annotated[
        str, typer.Argument(help=f"A MATPOWER file (.m), or one of {', '.join(CASES)}.")
    ] = "case118",
    areas: Annotated[
        str | None,
        typer.Option(help="Agents are so many areas, or those of the column area or zone."),
    ] = None,
    hours: Annotated[int, typer.Option(help="Horizon.", min=1)] = 1,
    reserve: Annotated[float, typer.Option(help="Share of the demand kept as headroom.")] = 0.0,
    ramp: Annotated[
        float | None, typer.Option(help="Share of its capacity a unit may change in an hour.")
    ] = None,
    tighten: Annotated[
        float | None,
        typer.Option(help="Rate the quarter of the lines with the largest flows at this share."),
    ] = None,
    load: Annotated[float, typer.Option(help="Factor of the demand.", min=0)] = 1.0,
    shed: Annotated[
        float | None, typer.Option(help="Price per MWh of demand that is not served.")
    ] = None,
    convention: Annotated[str, typer.Option(help="matpower or powermodels.")] = "matpower",
    tol: Annotated[float, typer.Option(help="Relative to the cost.")] = 1e-8,
    out: Annotated[Path | None, typer.Option(help="Write the picture there (PNG).")] = None,
    as_json: AsJson = False,
) -> None:
    """Dispatch a grid at least cost; print prices, full lines and what the run took."""
    if tighten is not None and not 0 < tighten <= 1:
        raise InputError(f"--tighten {tighten}: give a share of the flow, such as 0.9")
    if out is not None:
        try_file(out)
    asked: dict[str, Any] = {
        "areas": int(areas) if areas is not None and areas.isdecimal() else areas,
        "hours": hours,
        "reserve": reserve,
        "ramp": ramp,
        "load": load,
        "shed": shed,
        "convention": convention,
    }
    grid = dc_opf(case, **asked)
    result = solve(grid.problem, grid.network, tol=tol)
    if tighten is not None and result.status == "optimal":
        grid = dc_opf(case, ratings=grid.tightened(result, tighten), **asked)
        result = solve(grid.problem, grid.network, tol=tol)
    facts = summary(grid, result)
    if as_json:
        print_json(facts)
    else:
        _print(grid, result, facts)
    if out is not None and result.multipliers is not None:
        stream = io.BytesIO()
        np.ravel(grid.plot(result))[0].figure.savefig(stream, format="png", dpi=110)
        atomic_write(out, stream.getvalue())
    raise typer.Exit(EXIT_CODES.get(result.status, 1))


def summary(case: Dispatch, result: Any) -> dict[str, Any]:
    """Numbers of a run, ready for JSON."""
    rounds = {phase: result.ledger.of(phase)["rounds"] for phase in PHASES}
    facts: dict[str, Any] = {
        "case": case.grid.name,
        "agents": case.problem.n,
        "status": result.status,
        "message": result.message,
        "iterations": result.iterations,
        "rounds": rounds,
        "coupled_rows": case.problem.m,
    }
    if result.multipliers is not None and result.status not in ("infeasible", "unbounded"):
        price = case.prices(result)
        facts |= {
            "cost": case.cost(result),
            "imbalance": case.imbalance(result),
            "overload": case.overload(result),
            "prices": price.tolist(),
            "generation": case.generation(result).tolist(),
            "flows": case.flows(result).tolist(),
        }
    return facts


def _print(case: Dispatch, result: Any, facts: dict[str, Any]) -> None:
    console = wide_console()
    grid = case.grid
    rounds = facts["rounds"]
    spent = ", ".join(f"{phase} {count}" for phase, count in rounds.items())
    lines = [
        f"{grid.name}: {grid.buses} buses, {len(grid.p_max)} units, {grid.lines} lines; "
        f"{case.problem.n} agents, {case.problem.m} coupled rows",
        f"{result.status} after {result.iterations} iterations and {sum(rounds.values())} rounds "
        f"({spent})",
    ]
    if "cost" not in facts:
        why = case.explain(result) if result.status == "infeasible" else result.message
        console.print("\n".join([*lines, why]), highlight=False)
        return
    lines.append(
        f"cost {facts['cost']:,.2f}; balances met to {facts['imbalance']:.1e}, limits to "
        f"{facts['overload']:.1e} (per unit)\n"
    )
    console.print("\n".join(lines), highlight=False)
    t = int(np.argmax(case.model.demand.sum(axis=1)))
    _units(console, case, result, t)
    _lines(console, case, result, t)


def _units(console: Any, case: Dispatch, result: Any, t: int) -> None:
    grid = case.grid
    p = case.generation(result)[t]
    price = case.prices(result)[t]
    table = Table("unit at bus", "MW", "of", "price per MWh", box=None, pad_edge=False)
    for k in np.argsort(-p)[:SHOWN]:
        bus = int(grid.unit_bus[k])
        top = grid.base * grid.p_max[k]
        table.add_row(str(grid.bus[bus]), f"{p[k]:.1f}", f"{top:.1f}", f"{price[bus]:.3f}")
    console.print(table)
    console.print(f"prices from {price.min():.3f} to {price.max():.3f}", highlight=False)


def _lines(console: Any, case: Dispatch, result: Any, t: int) -> None:
    flow = case.flows(result)[t]
    rating = case.grid.base * case.grid.rating
    full = np.flatnonzero(np.abs(flow) >= 0.999 * rating)
    table = Table("full line", "MW", "rating", box=None, pad_edge=False)
    for k in full[np.argsort(-rating[full])][:SHOWN]:
        table.add_row(case.grid.line_name(int(k)), f"{flow[k]:.1f}", f"{rating[k]:.1f}")
    console.print()
    console.print(table if full.size else "no line is full", highlight=False)
    if full.size > SHOWN:
        console.print(f"and {full.size - SHOWN} more", highlight=False)
