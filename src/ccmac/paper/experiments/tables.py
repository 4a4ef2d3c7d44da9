"""Tables of a suite: Markdown, LaTeX, CSV or JSON, one row per set, size and method."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict

from ccmac.errors import InputError
from ccmac.paper.experiments.analysis import Quartiles, TableRow, rows
from ccmac.paper.experiments.records import Record
from ccmac.texts import dumps, plain, shown

FORMS = ("markdown", "latex", "csv", "json")
HEAD = (
    *("data", "N", "d", "agents", "method", "runs"),
    *("grad.", "norm. aff.", "raw aff.", "rounds", "setup rounds", "max err."),
)
TEXT_COLUMNS = ("data", "method")


def render(records: Sequence[Record], form: str = "markdown") -> str:
    """The table of the records in one of :data:`FORMS` (Table tab:full-data-h100).

    Counts are those of the solve phase, medians with [Q1, Q3] where these differ. ``raw aff.`` are
    block products with A_i (or B_i) that K_1 needed; modelled rounds are marked.
    """
    if form not in FORMS:
        raise InputError(f"table format {shown(form)} is unknown; take {', '.join(FORMS)}")
    found = rows(records)
    if form == "json":
        return dumps([asdict(row) for row in found], 1)
    return {"csv": _csv, "latex": _latex, "markdown": _markdown}[form](found)


def _cells(
    row: TableRow, text: Callable[[str], str], error: Callable[[float], str], mark: str
) -> list[str]:
    """One row; ``text`` escapes what users name, the rest is ours."""
    quartiles = _plain_quartiles
    work = row.gradients if row.gradients.high > 0 else row.argmins
    kind = "" if row.gradients.high > 0 or not row.argmins.high > 0 else " argmins"
    return [
        text(row.data),
        _number(row.samples or math.nan),
        _number(row.features or math.nan),
        str(row.agents),
        text(row.label),
        f"{row.reached}/{row.runs}",
        quartiles(work) + kind,
        quartiles(row.affine),
        quartiles(row.raw),
        quartiles(row.rounds) + (mark if row.modelled else ""),
        quartiles(row.setup_rounds),
        error(row.worst_error),
    ]


def _number(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def _plain_quartiles(q: Quartiles) -> str:
    middle = _number(q.median)
    spread = "" if q.low == q.high else f" [{_number(q.low)}, {_number(q.high)}]"
    return middle if math.isnan(q.median) else middle + spread


def _plain_error(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2e}"


def cells(records: Sequence[Record]) -> list[list[str]]:
    """The rows of the table as texts under :data:`HEAD`."""
    return [_cells(row, str, _plain_error, " mod.") for row in rows(records)]


def _markdown(found: Sequence[TableRow]) -> str:
    align = ["---" if name in TEXT_COLUMNS else "---:" for name in HEAD]
    lines = [f"| {' | '.join(HEAD)} |", f"|{'|'.join(align)}|"]
    for row in found:
        lines.append(f"| {' | '.join(_cells(row, _in_markdown, _plain_error, ' mod.'))} |")
    if any(row.modelled for row in found):
        lines += ["", "mod.: modelled rounds of the theorem's oracle, not executed."]
    return "\n".join(lines)


def _latex(found: Sequence[TableRow]) -> str:
    spec = "".join("l" if name in TEXT_COLUMNS else "r" for name in HEAD)
    lines = [
        rf"\begin{{tabular}}{{@{{}}{spec}@{{}}}}",
        r"\toprule",
        " & ".join(HEAD) + r"\\",
        r"\midrule",
    ]
    for row in found:
        data, *rest = _cells(row, _in_latex, _tex_error, "$^{m}$")
        shown = [rf"\texttt{{{data}}}", *(cell.replace("–", "--") for cell in rest)]
        lines.append(" & ".join(re.sub(r"(?<=\d),(?=\d)", r"\\,", c) for c in shown) + r"\\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _tex_error(value: float) -> str:
    if math.isnan(value):
        return "--"
    mantissa, power = f"{value:.2e}".split("e")
    return rf"${mantissa}\times10^{{{int(power)}}}$"


LATEX = {sign: "\\" + sign for sign in "_&%#${}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def _in_latex(text: str) -> str:
    return "".join(LATEX.get(sign, sign) for sign in " ".join(text.split()))


def _in_markdown(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|])", r"\\\1", " ".join(text.split()))


def _in_csv(text: str) -> str:
    """A text that a spreadsheet would take for a formula begins with an apostrophe."""
    return "'" + text if text.startswith(("=", "+", "-", "@", "\t")) else text


def _csv(found: Sequence[TableRow]) -> str:
    lines = []
    for row in found:
        line: dict[str, object] = {}
        for name, value in plain(asdict(row)).items():
            if isinstance(value, dict):
                line |= {f"{name}_{end}": count for end, count in value.items()}
            else:
                line[name] = _in_csv(value) if isinstance(value, str) else value
        lines.append(line)
    text = io.StringIO()
    writer = csv.DictWriter(text, lines[0] if lines else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue().rstrip("\n")
