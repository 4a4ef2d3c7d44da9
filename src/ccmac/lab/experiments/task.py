"""Executing runs: build the problem, solve it, write the records.

Runs with equal ``solve_key`` have the same iterates, so a task solves once and charges each graph.
"""

from __future__ import annotations

import os
import platform
import time
import traceback
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ccmac import vfl
from ccmac.angles.measure import geometry
from ccmac.api import solve
from ccmac.errors import CcmacError
from ccmac.inputs import Array
from ccmac.lab.data import load, read_svmlight
from ccmac.lab.experiments.plugins import DATASETS
from ccmac.lab.experiments.records import thinned, write_record
from ccmac.lab.experiments.reference import reference_weights
from ccmac.lab.experiments.runs import SuiteRun
from ccmac.methods.registry import parse
from ccmac.network import Network
from ccmac.network.spec import build_family
from ccmac.realizations.objective import modelled_rounds
from ccmac.results import Result
from ccmac.runtime import InProcess
from ccmac.version import __version__, source_digest


def execute(runs: Sequence[SuiteRun], folder: Path) -> list[tuple[str, str, float]]:
    """Solve runs that share their iterates and record each; (id, status, seconds) of all.

    Whatever goes wrong is recorded as status ``failed`` with the reason: it never escapes.
    """
    begun = time.perf_counter()
    try:
        summaries = _solve(runs)
    except Exception as error:
        reason = str(error) if isinstance(error, CcmacError) else repr(error)
        failure = {
            "status": "failed", "message": reason.splitlines()[0] if reason else "failed",
            "traceback": traceback.format_exc(), "provenance": machine(),
        }  # fmt: skip
        summaries = [(failure, "")] * len(runs)
    share = (time.perf_counter() - begun) / len(runs)
    out = []
    for run, (summary, trace) in zip(runs, summaries, strict=True):
        write_record(folder, run, {**summary, "elapsed": share}, trace)
        out.append((run.id, str(summary["status"]), share))
    return out


def _solve(runs: Sequence[SuiteRun]) -> list[tuple[dict[str, Any], str]]:
    run = runs[0]
    X, y, facts = dataset(run.data)
    built = problem_of(run)
    network = build_family(run.network, run.agents)
    target = None
    if run.stop == "reference":
        target = reference_weights(run.data, X, y, run.problem)
    result = solve(
        built, network, parse(run.method, run.options), run.tol, reference=target,
        max_iterations=run.max_iterations, max_seconds=run.max_seconds, progress=False,
    )  # fmt: skip
    summary = result.as_dict()
    summary["provenance"] = {**result.provenance, **machine()}
    summary["data"] = facts
    summary["geometry"] = _geometry(run.data, run.agents, run.partition_seed, *_frozen(run))
    trace = thinned(result.trace.to_csv())
    out = [(summary, trace)]
    for other in runs[1:]:
        graph = build_family(other.network, other.agents)
        out.append(_charged(summary, result, network, graph))
        out[-1][0]["solved_with"] = run.id
    return out


def _charged(
    summary: dict[str, Any], result: Result, solved: Network, network: Network
) -> tuple[dict[str, Any], str]:
    """The same iterates on another graph: every modelled round is a multiple of ceil sqrt(kappa_W).

    Setup and monitoring of an oracle run talk over the executing graph; they are left out.
    """
    old = modelled_rounds(InProcess(solved))
    new = modelled_rounds(InProcess(network))

    def converted(count: float) -> int:
        calls, rest = divmod(int(count), old)
        assert rest == 0, "modelled rounds are whole calls"
        return calls * new

    solve_units = dict(summary["ledger"]["solve"])
    solve_units["modelled_rounds"] = converted(solve_units["modelled_rounds"])
    lines = result.trace.to_csv().splitlines()
    column = lines[0].split(",").index("modelled_rounds")
    rows = [lines[0]]
    for line in lines[1:]:
        cells = line.split(",")
        cells[column] = str(converted(float(cells[column])))
        rows.append(",".join(cells))
    provenance = {
        **summary["provenance"], "network": network.name, "kappa_W": network.condition,
    }  # fmt: skip
    changed = {**summary, "ledger": {"solve": solve_units}, "provenance": provenance}
    return changed, thinned("\n".join(rows) + "\n")


# -- what runs are made of -------------------------------------------------------------------------
@lru_cache(maxsize=4)
def dataset(name: str) -> tuple[Any, Array, dict[str, Any]]:
    """(X, y, facts for the record) of a named set, a file or a plug-in."""
    if name in DATASETS:
        X, y = DATASETS[name]()
        source = "plugin"
    elif os.sep in name:
        X, y = read_svmlight(Path(name))
        source = "file"
    else:
        found = load(name)
        X, y, source = found.X, found.y, found.source
    rows, columns = X.shape
    return X, np.asarray(y, dtype=np.float64), {
        "name": name, "rows": int(rows), "features": int(columns), "source": source,
    }  # fmt: skip


def problem_of(run: SuiteRun) -> vfl.VflProblem:
    """The vertical federated problem of a run."""
    return _problem(run.data, run.agents, run.partition_seed, *_frozen(run))


def _frozen(run: SuiteRun) -> tuple[Any, tuple[tuple[str, Any], ...]]:
    alpha: Any = run.alpha
    if isinstance(alpha, dict):
        alpha = ("cross_factor", float(alpha["cross_factor"]))
    return alpha, tuple(sorted(run.problem.items()))


@lru_cache(maxsize=2)
def _problem(
    name: str, agents: int, seed: int, alpha: Any, options: tuple[tuple[str, Any], ...]
) -> vfl.VflProblem:
    X, y, _ = dataset(name)
    return vfl.problem(X, y, agents, partition_seed=seed, shares=alpha, **dict(options))


@lru_cache(maxsize=32)
def _geometry(
    name: str, agents: int, seed: int, alpha: Any, options: tuple[tuple[str, Any], ...]
) -> dict[str, Any]:
    """Geometry of the problem; the same on every graph (Proposition lift-invariance)."""
    return geometry(_problem(name, agents, seed, alpha, options)).as_dict()


def machine() -> dict[str, Any]:
    """Where and with what a run was made."""
    return {
        "ccmac": __version__, "source": source_digest(), "python": platform.python_version(),
        "numpy": np.__version__, "system": platform.system(), "machine": platform.machine(),
        "cores": os.cpu_count(),
    }  # fmt: skip
