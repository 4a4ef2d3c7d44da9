"""One process of a vertical run: ``vfl_party.py COMMAND[,COMMAND] FOLDER PARTY...``.

With several parties it is one rank of an MPI job, rank i the i-th of them; with one it is that
party, which talks over links. Writes down which files of FOLDER the process opened, by whatever
call, in FOLDER/PARTY.COMMAND.opened.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

commands, folder, *parties = sys.argv[1:]
opened: set[str] = set()
WATCHED = os.path.realpath(folder) + os.sep


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str | bytes):
        path = os.path.realpath(os.fsdecode(arguments[0]))
        if path.startswith(WATCHED) and not os.path.isdir(path):
            opened.add(path.removeprefix(WATCHED))


sys.addaudithook(watch)

rank = 0
if len(parties) > 1:
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.Get_rank()

from ccmac.cli.main import main  # noqa: E402

party = parties[rank]
code = 0
for command in commands.split(","):
    opened.clear()
    code = code or main(["vfl", command, str(Path(folder) / f"{party}.toml")])
    seen = sorted(opened)
    Path(folder, f"{party}.{command}.opened").write_text("\n".join(seen), encoding="utf-8")
sys.exit(code)
