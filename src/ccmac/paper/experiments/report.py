"""A suite as one self-contained page: works offline, asks nothing of any server.

Everything that comes from records is escaped; a content policy in the page forbids requests.
"""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from ccmac.paper.experiments.analysis import affine_fit, communication_fit, two_factor_fit
from ccmac.paper.experiments.records import Record, read_records, read_suite
from ccmac.paper.experiments.runs import alpha_name, network_name
from ccmac.paper.experiments.suite import Suite
from ccmac.paper.experiments.tables import HEAD, TEXT_COLUMNS, cells
from ccmac.paper.experiments.verify import findings
from ccmac.storage.files import atomic_write
from ccmac.texts import dumps
from ccmac.version import __version__

AXES = ("gradients", "products", "rounds", "bytes", "seconds")


def write_report(folder: Path, out: Path) -> None:
    """Write the page of the suite in ``folder``; links to records are relative to ``out``."""
    atomic_write(out, page(folder, Path(os.path.realpath(out)).parent))


def page(folder: Path, base: Path) -> str:
    """The text of the page."""
    suite = read_suite(folder)
    records = read_records(folder, suite)
    content = {
        "records": _relative(folder / "runs", base),
        "runs": [_run(record, name) for record, name in zip(records, series(records), strict=True)],
    }
    title = html.escape(f"{suite.title}")
    return Template(_part("report.html")).substitute(
        title=title,
        css=_part("report.css"),
        script=_part("report.js"),
        data=_embedded(content),
        subtitle=html.escape(f"suite {suite.name}, profile {suite.profile}"),
        cards=_cards(suite, records),
        findings=_findings(folder) + _misses(records),
        summary=_table(HEAD, cells(records), TEXT_COLUMNS),
        footer=f"ccmac {html.escape(__version__)} · {_machine(records)}",
    )


def _part(name: str) -> str:
    file = resources.files("ccmac.paper.experiments") / "template" / name
    return file.read_text(encoding="utf-8")


def _embedded(content: Any) -> str:
    """JSON that cannot end its script element."""
    text = dumps(content, None)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _relative(path: Path, base: Path) -> str:
    return "/".join(os.path.relpath(os.path.realpath(path), base).split(os.sep))


# -- data for the script ---------------------------------------------------------------------------
def _run(record: Record, name: str) -> dict[str, Any]:
    run = record.run
    gradients = record.count("gradients")
    failed = record.status == "failed"
    return {
        "id": run.id,
        "data": Path(run.data).name,
        "agents": run.agents,
        "seed": run.partition_seed,
        "network": network_name(run.network),
        "alpha": alpha_name(run.alpha),
        "label": run.label,
        "status": record.status,
        "message": record.summary.get("message", ""),
        "tol": run.tol,
        "chi": record.cross_factor,
        "modelled": record.modelled,
        "argmins": gradients == 0 and record.count("argmins") > 0,
        "work": None if failed else gradients or record.count("argmins"),
        "affine": None if failed else record.count("affine"),
        "products": None if failed else record.count("products"),
        "rounds": None if failed else record.rounds,
        "error": record.summary.get("relative_error"),
        "seconds": record.summary.get("seconds"),
        "certified": run.stop == "certificate",
        "group": _group(record),
        "series": name,
        "trace": _trace(record),
    }


def series(records: Sequence[Record]) -> list[str]:
    """What distinguishes curves: the method, else alpha, else the graph."""
    for read in (
        lambda r: r.run.label,
        lambda r: alpha_name(r.run.alpha),
        lambda r: network_name(r.run.network),
    ):
        names = [str(read(r)) for r in records]
        if len(set(names)) > 1:
            return names
    return [r.run.label for r in records]


def _group(record: Record) -> str:
    return f"{Path(record.run.data).name}, {record.run.agents} agents"


def _trace(record: Record) -> dict[str, list[float]] | None:
    trace = record.trace
    if not trace:
        return None
    column = "error_bound" if record.run.stop == "certificate" else "relative_error"
    known = np.flatnonzero(np.isfinite(trace[column]))
    if known.size == 0:
        return None
    keep = known[np.unique(np.linspace(0, known.size - 1, 120).round().astype(int))]
    work = "gradients" if trace["gradients"][-1] > 0 else "argmins"
    out = {a: trace[work if a == "gradients" else a][keep] for a in AXES}
    out["error"] = trace[column][keep]
    return {name: [float(f"{v:.4g}") for v in values] for name, values in out.items()}


# -- parts of the page -----------------------------------------------------------------------------
def _cards(suite: Suite, records: Sequence[Record]) -> str:
    reached = sum(r.reached for r in records)
    seconds = sum(float(r.summary.get("elapsed") or 0.0) for r in records)
    cards = [
        (f"{reached} / {len(suite.runs)}", "runs reached the target"),
        (f"{seconds / 60:.1f} min" if seconds >= 100 else f"{seconds:.0f} s", "processor time"),
    ]
    affine = affine_fit(records)
    comm = communication_fit(records)
    both = two_factor_fit(records)
    if affine is not None and len({r.run.label for r in records}) == 1:
        cards.append((affine.text(), "exponent of affine calls in χ"))
        if comm is not None:
            cards.append((comm.text(), "exponent of rounds in χ√κ_W"))
        if both is not None:
            cards.append((both.text(1), "exponent of rounds in √κ_W, two factors"))
    page = ""
    for value, what in cards:
        number, _, interval = map(html.escape, value.partition(" ["))
        small = f"<small> [{interval}</small>" if interval else ""
        words = f"<span>{html.escape(what)}</span>"
        page += f'<div class="card"><b>{number}{small}</b>{words}</div>'
    return page


def _findings(folder: Path) -> str:
    items = "".join(
        f'<li class="{"" if f.holds else "bad"}">{html.escape(f.text)}</li>'
        for f in findings(folder)
    )
    return f'<ul class="findings">{items}</ul>'


def _misses(records: Sequence[Record]) -> str:
    missed = [r for r in records if not r.reached]
    if not missed:
        return ""
    lines = (f"{r.run.id}: {r.status}: {r.summary.get('message', '')}" for r in missed)
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    head = f"<summary>{len(missed)} runs missed the target</summary>"
    return f"<details>{head}<ul>{items}</ul></details>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], texts: Sequence[str]) -> str:
    classes = [' class="t"' if name in texts else "" for name in head]

    def line(tag: str, values: Sequence[str]) -> str:
        inner = "".join(
            f"<{tag}{c}>{html.escape(v)}</{tag}>" for c, v in zip(classes, values, strict=True)
        )
        return f"<tr>{inner}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', head)}</thead><tbody>{body}</tbody></table>"


def _machine(records: Sequence[Record]) -> str:
    if not records:
        return "no records"
    facts = records[0].summary.get("provenance") or {}
    names = ("ccmac", "python", "numpy", "scipy", "system", "machine", "cores")
    return html.escape(", ".join(f"{n} {facts[n]}" for n in names if n in facts))
