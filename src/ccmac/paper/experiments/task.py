"""Executing runs: build the problem, solve it, write the records.

Runs with equal ``solve_key`` have the same iterates, so a task solves once and charges each graph.

The reference of RelErr is fitted in one place to high accuracy. Squared loss: the normal equations,
by a d x d Cholesky factorization or, for many features, by conjugate gradients to relative residual
1e-13. Logistic loss: Newton's method on the primal.
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
import scipy.linalg as sla
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from scipy.special import expit

from ccmac import vfl
from ccmac.angles.measure import geometry
from ccmac.api import solve
from ccmac.errors import CcmacError, InputError, OutOfTime
from ccmac.inputs import Array
from ccmac.linalg.blocks import dense
from ccmac.methods.registry import parse
from ccmac.network import Network, build_family
from ccmac.paper.data import load, read_svmlight
from ccmac.paper.experiments.plugins import DATASETS, HARD, PROBLEMS
from ccmac.paper.experiments.records import thinned, write_record
from ccmac.paper.experiments.runs import SuiteRun
from ccmac.problem import Problem
from ccmac.realizations.base import modelled_rounds
from ccmac.results import Result, Solution
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
            "status": "failed",
            "message": reason.splitlines()[0] if reason else "failed",
            "traceback": traceback.format_exc(),
            "provenance": machine(),
        }
        summaries = [(failure, "")] * len(runs)
    share = (time.perf_counter() - begun) / len(runs)
    out = []
    for run, (summary, trace) in zip(runs, summaries, strict=True):
        write_record(folder, run, {**summary, "elapsed": share}, trace)
        out.append((run.id, str(summary["status"]), share))
    return out


def _solve(runs: Sequence[SuiteRun]) -> list[tuple[dict[str, Any], str]]:
    run = runs[0]
    begun = time.monotonic()
    built = problem_of(run)
    network = build_family(run.network, run.agents)
    target: Any = None
    if run.data in PROBLEMS:
        facts = {"name": run.data, "rows": 0, "features": sum(built.d.values()) + built.q}
        if run.data in HARD:
            hard = HARD[run.data](run.agents)
            target = Solution(hard.x, hard.z)
        elif run.stop == "reference":
            target = solution(built, network, run.max_seconds)
    else:
        *_, facts = dataset(run.data)
        if run.stop == "reference":
            target = reference_weights(run.data, tuple(sorted(run.problem.items())))
    left = run.max_seconds
    if left is not None:
        left -= time.monotonic() - begun
        if left <= 0:
            raise OutOfTime("max_seconds were over before the first step; raise them")
    result = solve(
        built,
        network,
        parse(run.method, run.options),
        run.tol,
        reference=target,
        max_iterations=run.max_iterations,
        max_seconds=left,
        progress=False,
    )
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
    provenance = {**summary["provenance"], "network": network.name, "kappa_W": network.condition}
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
        X = found.X
        y = found.y
        source = found.source
    rows, columns = X.shape
    return (
        X,
        np.asarray(y, dtype=np.float64),
        {"name": name, "rows": int(rows), "features": int(columns), "source": source},
    )


def problem_of(run: SuiteRun) -> Problem:
    """The problem of a run: one of a plug-in, or the vertical federated one of a data set."""
    return _problem(run.data, run.agents, run.partition_seed, *_frozen(run))


def _frozen(run: SuiteRun) -> tuple[Any, tuple[tuple[str, Any], ...]]:
    alpha: Any = run.alpha
    if isinstance(alpha, dict):
        alpha = ("cross_factor", float(alpha["cross_factor"]))
    return alpha, tuple(sorted(run.problem.items()))


@lru_cache(maxsize=2)
def _problem(
    name: str, agents: int, seed: int, alpha: Any, options: tuple[tuple[str, Any], ...]
) -> Problem:
    if name in PROBLEMS:
        return _checked(name, PROBLEMS[name](agents, seed), agents)
    X, y, _ = dataset(name)
    return vfl.problem(X, y, agents, partition_seed=seed, shares=alpha, **dict(options))


def _checked(name: str, found: object, agents: int) -> Problem:
    if not isinstance(found, Problem) or found.n != agents:
        raise InputError(f"plugin: {name} gave no ccmac.Problem of {agents} agents")
    return found


@lru_cache(maxsize=32)
def _geometry(
    name: str, agents: int, seed: int, alpha: Any, options: tuple[tuple[str, Any], ...]
) -> dict[str, Any]:
    """Geometry of the problem; the same on every graph (Proposition prop:lift-invariance)."""
    return geometry(_problem(name, agents, seed, alpha, options)).as_dict()


def machine() -> dict[str, Any]:
    """Where and with what a run was made."""
    return {
        "ccmac": __version__,
        "source": source_digest(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
    }


# -- references ------------------------------------------------------------------------------------
DENSE = 3000


@lru_cache(maxsize=8)
def reference_weights(name: str, problem: tuple[tuple[str, Any], ...]) -> Array:
    """w* of  min (1/N) sum loss(Xw, y) + (rho/2N)||Xw||^2 + (lambda/2)||w||^2."""
    options = dict(problem)
    lam = float(options.get("regularization", 1e-2))
    rho = float(options.get("shared_regularization", 0.0))
    loss = options.get("loss", "squared")
    if options.get("l1") or loss not in ("squared", "logistic") or lam <= 0:
        raise InputError(
            f"suite: no reference for loss {loss} with regularization {lam} and "
            f"l1 {options.get('l1', 0)}; use stop: certificate"
        )
    X, y, _ = dataset(name)
    return (ridge if loss == "squared" else logistic)(X, y, lam, rho)


def solution(problem: Problem, network: Network, seconds: float | None = None) -> Result:
    """A reference for a problem of a plug-in: the default method's, proved to 1e-8."""
    found = solve(problem, network, tol=1e-8, max_seconds=seconds, progress=False)
    if found.status != "optimal":
        raise InputError(
            f"suite: no reference ({found.status}: {found.message}); use stop: certificate"
        )
    return found


def ridge(X: Any, y: Array, lam: float, rho: float = 0.0) -> Array:
    """((1 + rho) X'X/N + lam I)^-1 X'y/N."""
    rows, columns = X.shape
    right = np.asarray(X.T @ y) / rows
    if columns <= DENSE:
        gram = (1.0 + rho) * dense(X.T @ X) / rows + lam * np.eye(columns)
        return np.asarray(sla.solve(gram, right, assume_a="pos"), dtype=np.float64)
    transposed = X.T.tocsr()

    def apply(w: Array) -> Array:
        return np.asarray((1.0 + rho) * (transposed @ (X @ w)) / rows + lam * w)

    operator = spla.LinearOperator((columns, columns), matvec=apply, dtype=np.float64)
    weights, info = spla.cg(operator, right, rtol=1e-13, maxiter=20_000)
    if info != 0:
        raise InputError("reference: conjugate gradients did not reach 1e-13; raise lambda")
    return np.asarray(weights, dtype=np.float64)


def logistic(X: Any, y: Array, lam: float, rho: float = 0.0) -> Array:
    """Newton's method for (1/N) sum log(1 + exp(-y Xw)) + (rho/2N)||Xw||^2 + (lam/2)||w||^2."""
    rows, columns = X.shape
    if columns > DENSE:
        raise InputError(f"reference: logistic with {columns} features; use at most {DENSE}")

    def value(w: Array) -> float:
        p = X @ w
        loss = np.logaddexp(0.0, -y * p).sum() + 0.5 * rho * (p @ p)
        return float(loss / rows + 0.5 * lam * (w @ w))

    w = np.zeros(columns)
    for _ in range(100):
        s = expit(-y * (X @ w))
        slope = X.T @ (rho * (X @ w) - y * s) / rows + lam * w
        bend = dense(X.T @ (sp.diags_array(s * (1.0 - s) + rho) @ X)) / rows
        step = np.asarray(sla.solve(bend + lam * np.eye(columns), slope, assume_a="pos"))
        while value(w - step) > value(w) + 1e-15:
            step /= 2
        w -= step
        if np.linalg.norm(step) <= 1e-14 * np.linalg.norm(w):
            break
    return w
