"""A result and its proof on disk: ``proof.json`` and named arrays (docs/proof-format.md).

The head says what is claimed and of which problem; the arrays are the point, its multipliers and,
where there is no solution, the certificate. ``ccmac-check`` reads it without this package.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.problem import Problem
from ccmac.results import Names, Result, Solution
from ccmac.storage.agents import encode_agent
from ccmac.storage.files import atomic_directory
from ccmac.storage.npz import read_file, write_npz
from ccmac.storage.problems import FILE_NAME, manifest_text
from ccmac.texts import MEGABYTE, dumps, loads, read_text

HEAD = "proof.json"
ARRAYS = "solution.npz"
FORMAT = "ccmac-proof"
VERSION = 1
BYTES = 64 * MEGABYTE
FILES = r"proof\.json|solution\.npz"
NUMBERS = ("objective", "error_bound", "error_estimate", "relative_error", "iterations", "seconds")
ROWS = ("local", "shared", "lower", "upper", "cones")
FACTS = ("message", "ledger", "names")
KEPT = ("residuals", "certificates", "provenance", "warnings")


def save_result(result: Result, directory: Path, *, replace: bool = False) -> None:
    """Write the head and the arrays; the directory appears complete or not at all."""
    problem = result._problem
    digest = problem_digest(problem) if isinstance(problem, Problem) else None
    with atomic_directory(directory, replace=FILES if replace else None) as target:
        sha256 = write_npz(target / ARRAYS, arrays_of(result, result.agents))
        text = head_of(result, digest, {ARRAYS: sha256})
        (target / HEAD).write_text(text, encoding="utf-8")


def load_result(directory: Path) -> Result:
    """Read a folder of :func:`save_result`, or the ``--out`` of ``ccmac solve``."""
    from ccmac.certificates.farkas import Infeasibility
    from ccmac.certificates.multipliers import Multipliers

    path = directory / HEAD
    try:
        head = loads(read_text(path, str(path), BYTES))
        if head["format"] != FORMAT or head["version"] != VERSION:
            raise ValueError
        arrays: dict[str, Any] = {}
        for name, sha256 in head["files"].items():
            if Path(name).name != name:
                raise ValueError
            arrays |= read_file(str(directory / name), directory / name, sha256)
        agents = range(*head["agents"])
        facts = head["result"]
        known: dict[str, Any] = {name: facts[name] for name in (*NUMBERS, *KEPT)}
        known |= {name: math.nan for name in NUMBERS if facts[name] is None}
        if facts["names"] is not None:
            lists = facts["names"].items()
            known["names"] = Names(**{k: None if v is None else tuple(v) for k, v in lists})
        x = [arrays[f"x{i}"] for i in agents]
        found = Result(x, arrays["z"], status=head["status"], agents=agents, **known)
        found.ledger.restore(facts["ledger"])

        def rows(name: str) -> list[Any]:
            return [arrays[f"{name}{i}"] for i in agents if f"{name}{i}" in arrays]

        if "coupled" in arrays:
            own: dict[str, Any] = {k: rows(k) for k in ROWS}
            own |= {k: arrays[k] for k in ("z_lower", "z_upper") if k in arrays}
            consensus = np.array(rows("consensus"))
            found.multipliers = Multipliers(arrays["coupled"], consensus=consensus, **own)
        if "farkas.coupled" in arrays:
            proof: dict[str, Any] = {
                k: {i: arrays[f"farkas.{k}{i}"] for i in agents if f"farkas.{k}{i}" in arrays}
                for k in ("local", "shared", "cones")
            }
            [claim] = [c for c in head["claims"] if c["kind"] == "infeasible"]
            proof |= {k: claim[k] for k in ("defect", "value")}
            coupled = arrays["farkas.coupled"]
            found.infeasibility = Infeasibility(facts["message"], coupled, **proof)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path}: not found; give a directory written by Result.save") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: is damaged, or of another program; save it again") from None
    return found


def arrays_of(solution: Solution, agents: range) -> dict[str, Any]:
    """The named arrays of the agents in ``agents``."""
    found: dict[str, Any] = {"z": np.asarray(solution.z)}
    found |= {f"x{i}": np.asarray(x) for i, x in zip(agents, solution.x, strict=True)}

    def put(name: str, rows: Any) -> None:
        found.update({f"{name}{i}": np.asarray(v) for i, v in zip(agents, rows, strict=True)})

    dual = solution.multipliers
    if dual is not None:
        found["coupled"] = dual.coupled
        for name in ("local", "shared", "consensus"):
            put(name, getattr(dual, name))
        if dual.lower:
            found |= {"z_lower": dual.z_lower, "z_upper": dual.z_upper}
            put("lower", dual.lower)
            put("upper", dual.upper)
        if dual.cones:
            put("cones", dual.cones)
    if not isinstance(solution, Result):
        return found
    if solution.start is not None:
        found["start.z"] = solution.start.z
        put("start.x", solution.start.x)
    if solution.infeasibility is not None:
        farkas = solution.infeasibility
        found["farkas.coupled"] = farkas.coupled
        for name in ("local", "shared", *(["cones"] if farkas.cones else [])):
            own = getattr(farkas, name)
            put(f"farkas.{name}", [own.get(i, np.zeros(0)) for i in agents])
    if "direction" in solution.certificates:
        direction = solution.certificates["direction"]
        found["direction.z"] = np.asarray(direction["z"])
        put("direction.x", direction["x"])
    return found


def head_of(result: Result, digest: str | None, files: Mapping[str, str]) -> str:
    """``proof.json``: what is claimed, of which problem, in which files."""
    facts = result.as_dict()
    head = {
        "format": FORMAT,
        "version": VERSION,
        "problem": digest,
        "status": result.status,
        "claims": claims_of(result),
        "rests_on": result.certificates.get("rests_on"),
        "dropped": _dropped(result),
        "files": dict(files),
        "agents": [result.agents.start, result.agents.stop],
        "result": {name: facts.get(name) for name in (*NUMBERS, *KEPT, *FACTS)},
    }
    return dumps(head) + "\n"


def _dropped(result: Result) -> dict[str, Any]:
    """Rows left out by convention: coupled, and of C_i and D_i by agents."""
    rows = result.certificates.get("rows", {})
    dropped: dict[str, Any] = dict(rows.get("dropped", {}))
    return dropped | ({"summed": True} if dropped and "Gram" in rows["convention"] else {})


def claims_of(result: Result) -> list[dict[str, Any]]:
    """What ``ccmac-check`` can hold the result to: the first is what the status rests on."""
    known = result.certificates
    if result.status == "infeasible" and result.infeasibility is not None:
        proof = result.infeasibility
        radius = proof.radius if math.isfinite(proof.radius) else None
        claim = {"kind": "infeasible", "value": float(proof.value), "defect": float(proof.defect)}
        return [claim | {"radius": radius}]
    if result.status == "unbounded":
        return [{"kind": "unbounded", "fall": known["fall"], "defect": known["defect"]}]
    if known.get("rests_on") == "reference":
        return [{"kind": "reference", "relative_error": float(result.relative_error)}]
    tol = result.provenance.get("tol", math.nan)
    optimal = result.status == "optimal"
    by_gap = optimal and known.get("proved_by") in ("bound", "schedule")
    found: list[dict[str, Any]] = []
    if by_gap:
        gap = float(known["epsilon"])  # what the status says; the gap reached may be smaller
        found.append({"kind": "gap", "gap": gap, "radius": float(known["radius"]), "tol": tol})
    if math.isfinite(result.error_bound):
        met = optimal and not by_gap
        found.append({"kind": "error", "bound": result.error_bound, "tol": tol, "met": met})
    return found


def problem_digest(problem: Problem) -> str | None:
    """SHA-256 of the ``problem.yaml`` of ``Problem.save``; None where a part is code."""
    hashes = []
    try:
        for i, agent in problem.agents.items():
            stream = io.BytesIO()
            members: dict[str, Any] = dict(encode_agent(i, agent))
            np.savez(stream, **members)
            hashes.append(hashlib.sha256(stream.getvalue()).hexdigest())
    except InputError:
        return None
    return hashlib.sha256(manifest_text(problem, hashes).encode()).hexdigest()


def folder_digest(directory: Path) -> str:
    """The same of a folder that ``Problem.save`` wrote."""
    return hashlib.sha256((directory / FILE_NAME).read_bytes()).hexdigest()
