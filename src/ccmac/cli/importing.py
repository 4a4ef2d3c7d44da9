"""``ccmac import``: a model from a file, its columns dealt to owners, as a problem on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ccmac.cli.options import opt
from ccmac.cvx.files import Table
from ccmac.errors import InputError
from ccmac.texts import shown

EPILOG = (
    "Example: `ccmac import plan.mps --owners 3 --out plan`, then `ccmac solve plan`\n\n"
    'Owners by name, in a file: `north = ["x_*", "stock"]`, one line for each owner.'
)
SUFFIXES = (".mps", ".qps", ".lp", ".m")


def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="MPS, QPS, LP or MATPOWER (.m).")],
    *,
    owners: Annotated[str, opt("How many, or a TOML file: owner = [columns].")],
    out: Annotated[Path, opt("The folder to write.")],
) -> None:
    """Turn an existing model into a problem whose columns different owners have.

    Rows with columns of one owner stay with it; all others are coupled.
    """
    if file.suffix not in SUFFIXES:
        raise InputError(f"{file}: is of no kind that is read; give one of {', '.join(SUFFIXES)}")
    count = int(owners) if owners.isdecimal() else None
    if file.suffix == ".m":
        from ccmac.power import dc_opf

        if count is None:
            raise InputError(f"--owners {shown(owners)}: of a grid give the number of areas")
        problem = dc_opf(str(file), areas=count).problem
    else:
        table = Table.read(file)
        problem = table.problem(table.dealt(count) if count is not None else table.named(owners))
        if table.note:
            typer.echo(table.note)
    problem.save(out)
    columns = sum(problem.d.values())
    typer.echo(f"{out}: {problem.n} owners, {columns} columns, {problem.m} coupled rows")
