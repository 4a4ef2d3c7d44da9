"""One rank of a vertical run: ``vfl_party.py COMMAND FOLDER PARTY...``; rank i is the i-th party.

Writes down which tables the process opened, in FOLDER/PARTY.opened.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

opened: set[str] = set()


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and str(arguments[0]).endswith(".csv") and arguments[1] in ("r", "rb", None):
        opened.add(Path(str(arguments[0])).name)


sys.addaudithook(watch)

from mpi4py import MPI  # noqa: E402

from ccmac.cli.main import main  # noqa: E402

command, folder, *parties = sys.argv[1:]
party = parties[MPI.COMM_WORLD.Get_rank()]
code = main(["vfl", command, str(Path(folder) / f"{party}.toml")])
tables = sorted(name for name in opened if not name.startswith(("scores", "predictions", ".")))
Path(folder, f"{party}.opened").write_text(" ".join(tables), encoding="utf-8")
sys.exit(code)
