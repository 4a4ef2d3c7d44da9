"""The bar that tells how a run goes."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ccmac.ledger import Ledger

Report = Callable[[int, float, float, Ledger], None]


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
