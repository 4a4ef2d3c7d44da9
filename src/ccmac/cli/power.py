"""``ccmac power``: a grid dispatched by its buses or areas, with tables and a picture."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ccmac.api import solve
from ccmac.cli.options import AsJson, opt, print_json, table
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
        str | None, opt("Agents are so many areas, or those of the column area or zone.")
    ] = None,
    hours: Annotated[int, opt("Horizon.", min=1)] = 1,
    reserve: Annotated[float, opt("Share of the demand kept as headroom.")] = 0.0,
    ramp: Annotated[
        float | None, opt("Share of its capacity a unit may change in an hour.")
    ] = None,
    tighten: Annotated[
        float | None, opt("Rate the quarter of the lines with the largest flows at this share.")
    ] = None,
    load: Annotated[float, opt("Factor of the demand.", min=0)] = 1.0,
    shed: Annotated[float | None, opt("Price per MWh of demand that is not served.")] = None,
    convention: Annotated[str, opt("matpower or powermodels.")] = "matpower",
    tol: Annotated[float, opt("Relative to the cost.")] = 1e-8,
    out: Annotated[Path | None, opt("Write the picture there (PNG).")] = None,
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
    grid = case.grid
    rounds = facts["rounds"]
    spent = ", ".join(f"{phase} {count}" for phase, count in rounds.items())
    typer.echo(
        f"{grid.name}: {grid.buses} buses, {len(grid.p_max)} units, {grid.lines} lines; "
        f"{case.problem.n} agents, {case.problem.m} coupled rows\n"
        f"{result.status} after {result.iterations} iterations and {sum(rounds.values())} rounds "
        f"({spent})"
    )
    if "cost" not in facts:
        typer.echo(case.explain(result) if result.status == "infeasible" else result.message)
        return
    typer.echo(
        f"cost {facts['cost']:,.2f}; balances met to {facts['imbalance']:.1e}, limits to "
        f"{facts['overload']:.1e} (per unit)\n"
    )
    t = int(np.argmax(case.model.demand.sum(axis=1)))
    p = case.generation(result)[t]
    price = case.prices(result)[t]
    top = grid.base * grid.p_max
    at = grid.unit_bus
    units = [
        (grid.bus[at[k]], f"{p[k]:.1f}", f"{top[k]:.1f}", f"{price[at[k]]:.3f}")
        for k in np.argsort(-p)[:SHOWN]
    ]
    typer.echo(table("unit at bus|>MW|>of|>price per MWh", units))
    typer.echo(f"prices from {price.min():.3f} to {price.max():.3f}\n")
    flow = case.flows(result)[t]
    rating = grid.base * grid.rating
    full = np.flatnonzero(np.abs(flow) >= 0.999 * rating)
    lines = [
        (grid.line_name(int(k)), f"{flow[k]:.1f}", f"{rating[k]:.1f}")
        for k in full[np.argsort(-rating[full])][:SHOWN]
    ]
    typer.echo(table("full line|>MW|>rating", lines) if lines else "no line is full")
    if full.size > SHOWN:
        typer.echo(f"and {full.size - SHOWN} more")
