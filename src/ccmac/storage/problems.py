"""Save a problem into a directory; load it, or only some of its agents, from there.

``problem.yaml`` holds the dimensions, and for each agent its file with a checksum.
"""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import yaml

from ccmac.errors import InputError
from ccmac.inputs import several, whole
from ccmac.problem import Problem
from ccmac.storage.agents import encode_agent, read_agent
from ccmac.storage.files import atomic_directory
from ccmac.storage.located import read_yaml
from ccmac.storage.npz import write_npz
from ccmac.texts import MEGABYTE, shown
from ccmac.vertical import Vertical, VflProblem

FILE_NAME = "problem.yaml"
FILES = r"problem\.yaml|agent-\d{4,}\.npz"
BYTES = 64 * MEGABYTE


Count = Annotated[int, msgspec.Meta(ge=0)]
# A plain name: a manifest cannot point outside its own directory.
FileName = Annotated[str, msgspec.Meta(pattern=r"^\w[\w.-]*\Z")]
Number = Annotated[float, msgspec.Meta(ge=-1e300, le=1e300)]  # finite
Label = str | int | float | bool


class AgentEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where an agent's data are, what they hash to, and the sizes of x_i, C_i x_i and D_i z."""

    file: FileName
    sha256: str
    d: Count
    p: Count
    r: Count


class VerticalEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Who has which columns, and how scores come from weights (see ``ccmac.vertical``)."""

    prediction_scale: Number
    alpha: list[Number]
    partition: list[list[int]]
    parties: list[str] = []
    columns: list[Label] = []
    mean: list[Number] | None = None
    scale: list[Number] | None = None
    target: Number | None = None
    outputs: int = 1
    classes: list[Label] = []
    column: int | None = None


class CommonEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What all know of rows and z: senses, bounds (null: none) and names."""

    sense: list[str] | None = None
    z_lower: list[Number | None] | None = None
    z_upper: list[Number | None] | None = None
    row_names: list[str] | None = None
    z_names: list[str] | None = None


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of ``problem.yaml``: version 2 has limits or names, 3 has cones."""

    format: Literal["ccmac-problem"]
    version: Literal[1, 2, 3]
    n: Count
    q: Count
    m: Count
    agents: list[AgentEntry]
    vertical: VerticalEntry | None = None
    common: CommonEntry | None = None


def save_problem(problem: Problem, directory: Path, *, replace: bool = False) -> None:
    """Write all agents; the directory appears complete or not at all.

    Blocks must be dense or sparse and objectives of the registry: operators and ``Custom`` are
    code, and are refused by name before anything is written.
    """
    if not problem.complete:
        raise InputError(
            f"problem: holds {len(problem.agents)} of {problem.n} agents; "
            "save it where all agents are present"
        )
    encoded = {i: encode_agent(i, agent) for i, agent in problem.agents.items()}
    with atomic_directory(directory, replace=FILES if replace else None) as target:
        hashes = [write_npz(target / _file(i), arrays) for i, arrays in encoded.items()]
        (target / FILE_NAME).write_text(manifest_text(problem, hashes), encoding="utf-8")


def manifest_text(problem: Problem, hashes: list[str]) -> str:
    """``problem.yaml``, from the SHA-256 of the agents' files."""
    entries = [
        AgentEntry(_file(i), sha256, problem.d[i], problem.p[i], problem.r[i])
        for i, sha256 in zip(problem.agents, hashes, strict=True)
    ]
    sizes = problem.n, problem.q, problem.m
    common = _common(problem)
    named = any(a.limited or a.name is not None for a in problem.agents.values())
    version: Literal[1, 2, 3] = 3 if problem.conic else 2 if common or named else 1
    manifest = Manifest("ccmac-problem", version, *sizes, entries, _vertical(problem), common)
    content = msgspec.to_builtins(manifest)
    content = {name: value for name, value in content.items() if value is not None}
    text: str = yaml.safe_dump(content, sort_keys=False)
    return text


def _file(i: int) -> str:
    return f"agent-{i:04d}.npz"


def load_problem(directory: Path, agents: range | None = None) -> Problem:
    """Read a saved problem; with ``agents`` only those agents' files are opened."""
    manifest = read_manifest(directory)
    wanted = (
        range(manifest.n) if agents is None else several("load, agents", agents, "their numbers")
    )
    for i in wanted:
        if not whole("load: an agent", i) < manifest.n:
            raise InputError(
                f"{directory}: agent {shown(i)} was asked for but the problem has agents "
                f"0..{manifest.n - 1}"
            )
    listed = {i: manifest.agents[i] for i in wanted}
    loaded = {i: read_agent(i, directory / e.file, e.sha256) for i, e in listed.items()}
    kind = Problem if manifest.vertical is None else VflProblem
    problem = kind(loaded, n=manifest.n, q=manifest.q, m=manifest.m, **_read_common(manifest))
    if manifest.vertical is not None and isinstance(problem, VflProblem):
        problem.with_vertical(_read_vertical(manifest.vertical))
    for i, entry in listed.items():
        found = (problem.d[i], problem.p[i], problem.r[i])
        listed_sizes = (entry.d, entry.p, entry.r)
        if found != listed_sizes:
            raise InputError(
                f"agent {i}, file {entry.file}: has (d, p, r) = {found} but problem.yaml says "
                f"{listed_sizes}; the two do not belong together"
            )
    return problem


def _common(problem: Problem) -> CommonEntry | None:
    sense = None if problem.sense is None else problem.sense.tolist()
    low, high = (
        None if v is None else [float(k) if math.isfinite(k) else None for k in v]
        for v in (problem.z_lower, problem.z_upper)
    )
    rows, z = (None if v is None else list(v) for v in (problem.row_names, problem.z_names))
    found = CommonEntry(sense, low, high, rows, z)
    return None if found == CommonEntry() else found


def _read_common(manifest: Manifest) -> dict[str, Any]:
    """What Problem takes; lengths and senses are checked there."""
    if manifest.common is None:
        return {}
    found: dict[str, Any] = msgspec.structs.asdict(manifest.common)
    for name, missing in (("z_lower", -math.inf), ("z_upper", math.inf)):
        if found[name] is not None:
            found[name] = [missing if v is None else v for v in found[name]]
    return found


def _vertical(problem: Problem) -> VerticalEntry | None:
    if not isinstance(problem, VflProblem):
        return None
    found = {f.name: _plain(getattr(problem.vertical, f.name)) for f in fields(Vertical)}
    return VerticalEntry(alpha=found.pop("shares"), **found)


def _plain(value: Any) -> Any:
    """Arrays and tuples as lists; names of columns and classes as YAML knows them."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, Label) else str(value)


def _read_vertical(entry: VerticalEntry) -> Vertical:
    found: dict[str, Any] = msgspec.structs.asdict(entry)
    found["partition"] = tuple(np.array(part, dtype=np.int64) for part in entry.partition)
    found["shares"] = np.array(found.pop("alpha"))
    for name in ("parties", "columns", "classes"):
        found[name] = tuple(found[name])
    for name in ("mean", "scale"):
        found[name] = None if found[name] is None else np.array(found[name])
    return Vertical(**found)


def read_manifest(directory: Path) -> Manifest:
    """Read and check ``problem.yaml``."""
    path = directory / FILE_NAME
    manifest = read_yaml(path, Manifest, "Problem.save", BYTES)
    if manifest.n != len(manifest.agents) or manifest.n < 1:
        listed = len(manifest.agents)
        raise InputError(f"{path}: says n = {manifest.n} but lists {listed} agents; save it again")
    if manifest.vertical is not None:
        vertical = manifest.vertical
        columns = sorted(column for part in vertical.partition for column in part)
        held = [
            len(part) * vertical.outputs + (i == vertical.column)
            for i, part in enumerate(vertical.partition)
        ]
        named = (vertical.columns, vertical.mean, vertical.scale)
        fits = (
            columns == list(range(len(columns)))
            and held == [entry.d for entry in manifest.agents]
            and len(vertical.alpha) == manifest.n
            and all(not part or len(part) == len(columns) for part in named)
        )
        if not fits:
            raise InputError(
                f"{path}: vertical: the partition does not deal every column to one agent; "
                "save the problem again"
            )
    return manifest
