"""What a suite leaves on disk, and how it is read back.

    DIR/suite.json                 name, profile, the runs that belong to it, expectations
    DIR/runs/<id>/summary.json     spec, provenance, ledger, plan, geometry, status
    DIR/runs/<id>/trace.csv        cumulative costs and errors, one row per iteration (thinned)

A run directory appears complete or not at all: it is written next to its place and renamed.
"""

from __future__ import annotations

import csv
import io
import math
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.paper.experiments.runs import SuiteRun
from ccmac.paper.experiments.suite import Suite
from ccmac.storage.files import atomic_directory, atomic_write
from ccmac.texts import MEGABYTE, dumps, loads, plain, read_text

FINISHED = (
    *("optimal", "converged", "stalled", "max_iterations"),
    *("infeasible", "unbounded", "diverged"),
)
PRODUCTS = "ABCD"
COUNTS = ("gradients", "argmins", "products", "rounds", "modelled_rounds", "bytes", "seconds")
ERRORS = ("relative_error", "error_bound")
BYTES = 64 * MEGABYTE  # of a suite of 100,000 runs


class SuiteFile(msgspec.Struct):
    """What ``suite.json`` says."""

    suite: str
    title: str
    profile: str
    expect: dict[str, Any]
    runs: dict[str, dict[str, Any]]
    file: str = ""
    plugins: list[str] = []


class Summary(msgspec.Struct):
    """What every ``summary.json`` has; it holds more."""

    id: str
    spec: dict[str, Any]
    status: str
    relative_error: float | None = None
    ledger: dict[str, dict[str, int]] = {}
    geometry: dict[str, Any] | None = None
    provenance: dict[str, Any] | None = None


@dataclass(frozen=True)
class Record:
    """One run as recorded."""

    run: SuiteRun
    summary: dict[str, Any]
    folder: Path

    @property
    def status(self) -> str:
        """The solver's status, or ``failed``."""
        return str(self.summary["status"])

    @property
    def finished(self) -> bool:
        """Whether the run came to an end of its own (a resumed suite leaves it alone)."""
        return self.status in FINISHED

    @property
    def reached(self) -> bool:
        """Whether the target was met: RelErr <= tol, or what the certificate proves.

        Equation eq:main-exp-stop.
        """
        if self.run.stop != "reference":
            return self.status == "optimal"
        error = self.summary.get("relative_error")
        return self.finished and error is not None and float(error) <= self.run.tol

    def count(self, unit: str, phase: str = "solve") -> int:
        """Ledger count; ``products`` adds up the block products, ``raw`` counts those of K_1."""
        units = self.summary.get("ledger", {}).get(phase, {})
        if unit == "products":
            return sum(int(units.get(u, 0)) for u in PRODUCTS)
        if unit == "raw":
            return max(int(units.get("A", 0)), int(units.get("B", 0)))
        return int(units.get(unit, 0))

    @property
    def modelled(self) -> bool:
        """Whether rounds are modelled (canonical realization) instead of executed."""
        return self.count("modelled_rounds") > 0

    @property
    def rounds(self) -> int:
        """Modelled rounds of an oracle run, else executed rounds; never their sum."""
        return self.count("modelled_rounds") if self.modelled else self.count("rounds")

    @property
    def cross_factor(self) -> float:
        """Realized chi of the user's channels."""
        value = (self.summary.get("geometry") or {}).get("cross_factor")
        return math.nan if value is None else float(value)

    @property
    def kappa_W(self) -> float:
        """Condition number of the gossip matrix."""
        return float((self.summary.get("provenance") or {}).get("kappa_W", math.nan))

    @cached_property
    def trace(self) -> dict[str, Array]:
        """Columns of the trace; empty if there is none, ValueError if it is damaged."""
        try:
            text = read_text(self.folder / "trace.csv", "trace", BYTES)
        except FileNotFoundError:
            return {}
        head, *rows = list(csv.reader(io.StringIO(text))) or [[]]
        if not rows:
            return {}
        table = np.array(rows, dtype=np.float64)
        columns = {name: table[:, k] for k, name in enumerate(head)}
        if not columns.keys() >= {*COUNTS, *ERRORS} or any(
            np.isinf(columns[name]).any() for name in COUNTS
        ):
            raise ValueError("a column is missing or infinite")
        if self.modelled:
            columns["rounds"] = columns["modelled_rounds"]
        return columns


# -- writing ---------------------------------------------------------------------------------------
def write_suite(folder: Path, suite: Suite, plugins: Sequence[str] = ()) -> None:
    """State what belongs to the directory."""
    content = {
        "suite": suite.name,
        "title": suite.title,
        "profile": suite.profile,
        "expect": suite.expect,
        "file": suite.file,
        "plugins": list(plugins),
        "runs": {run.id: run.as_dict() for run in suite.runs},
    }
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(folder / "suite.json", dumps(content, 1) + "\n")


def write_record(folder: Path, run: SuiteRun, summary: dict[str, Any], trace: str) -> None:
    """Put one run directory in place, complete."""
    runs = folder / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    with atomic_directory(runs / run.id, replace="(?s).*") as place:
        if (runs / run.id).is_dir():  # what somebody else put there stays
            mine = shutil.ignore_patterns("trace.csv", "summary.json")
            shutil.copytree(runs / run.id, place, True, mine, dirs_exist_ok=True)
        (place / "trace.csv").write_text(trace, encoding="utf-8")
        content = {"id": run.id, "spec": run.as_dict(), **summary}
        (place / "summary.json").write_text(dumps(content, 1) + "\n", encoding="utf-8")


def thinned(text: str, rows: int = 1500) -> str:
    """A trace of at most ``rows`` rows: evenly spaced, first and last kept."""
    lines = text.splitlines()
    body = lines[1:]
    if len(body) <= rows:
        return text
    keep = np.unique(np.linspace(0, len(body) - 1, rows).round().astype(int))
    return "\n".join([lines[0], *(body[k] for k in keep)]) + "\n"


# -- reading ---------------------------------------------------------------------------------------
def read_suite(folder: Path) -> Suite:
    """The suite a directory belongs to."""
    content = _suite_file(folder)
    try:
        runs = tuple(SuiteRun.from_dict(spec) for spec in content.runs.values())
    except (ValueError, KeyError):
        raise _damaged(folder) from None
    return Suite(content.suite, content.title, content.profile, runs, content.expect, content.file)


def resume_command(folder: Path) -> str:
    """What continues the suite of a directory: its file, profile and plug-ins."""
    content = _suite_file(folder)
    words = ["ccmac", "suite", "run", content.file or content.suite, "--profile", content.profile]
    words += [word for file in content.plugins for word in ("--plugin", file)]
    return shlex.join([*words, "--out", str(folder), "--resume"])


def _suite_file(folder: Path) -> SuiteFile:
    path = folder / "suite.json"
    try:
        return msgspec.convert(loads(read_text(path, str(path), BYTES)), SuiteFile)
    except FileNotFoundError:
        raise InputError(
            f"{folder} holds no suite.json; give the --out of ccmac suite run"
        ) from None
    except (ValueError, KeyError):
        raise _damaged(folder) from None


def _damaged(folder: Path) -> InputError:
    return InputError(f"{folder / 'suite.json'} is damaged; run the suite again with --resume")


def read_record(folder: Path, run: SuiteRun) -> Record | None:
    """The record of a run; None when it is absent or damaged."""
    place = folder / "runs" / run.id
    try:
        summary = loads(read_text(place / "summary.json", "summary", BYTES))
        known = msgspec.convert(summary, Summary)
        if known.id != run.id or known.spec != plain(run.as_dict()):
            return None
        record = Record(run, summary, place)
        return None if record.finished and not record.trace else record
    except (OSError, ValueError, IndexError, csv.Error):
        return None


def read_records(folder: Path, suite: Suite | None = None) -> list[Record]:
    """All readable records of the suite in its own order."""
    suite = suite or read_suite(folder)
    found = (read_record(folder, run) for run in suite.runs)
    return [record for record in found if record is not None]


def pending(folder: Path, suite: Suite) -> list[SuiteRun]:
    """Runs without a finished record: never started, failed, interrupted or damaged."""
    done = {r.run.id for r in read_records(folder, suite) if r.finished}
    return [run for run in suite.runs if run.id not in done]


def clean(folder: Path) -> None:
    """Remove what a killed runner left half-written."""
    for place in (folder / "runs").glob(".*-" + 12 * "?" + "." + 8 * "?"):
        shutil.rmtree(place, ignore_errors=True)
