"""Save a problem into a directory; load it, or only some of its agents, from there.

``problem.yaml`` holds the dimensions, and for each agent its file with a checksum.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import yaml

from ccmac.errors import InputError
from ccmac.problem import Problem
from ccmac.storage.agents import encode_agent, read_agent, write_arrays
from ccmac.storage.files import atomic_directory
from ccmac.storage.located import parse
from ccmac.texts import MEGABYTE, cut, read_text, shown

FILE_NAME = "problem.yaml"
FORMAT = "ccmac-problem"
VERSION = 1
BYTES = 256 * MEGABYTE
ENTRIES = 20_000_000  # the bytes are the limit: a problem of a million agents can be read


class AgentEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where an agent's data are, what they hash to, and the sizes of x_i, C_i x_i and D_i z."""

    file: str
    sha256: str
    d: int
    p: int
    r: int


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of ``problem.yaml``."""

    format: str
    version: int
    n: int
    q: int
    m: int
    agents: list[AgentEntry]


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
    with atomic_directory(directory, replace=replace) as target:
        entries = []
        for i, arrays in encoded.items():
            name = f"agent-{i:04d}.npz"
            sha256 = write_arrays(target / name, arrays)
            entries.append(AgentEntry(name, sha256, problem.d[i], problem.p[i], problem.r[i]))
        manifest = Manifest(FORMAT, VERSION, problem.n, problem.q, problem.m, entries)
        text = yaml.safe_dump(msgspec.to_builtins(manifest), sort_keys=False)
        (target / FILE_NAME).write_text(text, encoding="utf-8")


def load_problem(directory: Path, agents: range | None = None) -> Problem:
    """Read a saved problem; with ``agents`` only those agents' files are opened."""
    manifest = read_manifest(directory)
    wanted = range(manifest.n) if agents is None else agents
    for i in wanted:
        if not 0 <= i < manifest.n:
            raise InputError(
                f"{directory}: agent {i} was asked for but the problem has agents "
                f"0..{manifest.n - 1}"
            )
    listed = {i: manifest.agents[i] for i in wanted}
    loaded = {i: read_agent(i, directory / e.file, e.sha256) for i, e in listed.items()}
    problem = Problem(loaded, n=manifest.n, q=manifest.q, m=manifest.m)
    for i, entry in listed.items():
        found, told = (problem.d[i], problem.p[i], problem.r[i]), (entry.d, entry.p, entry.r)
        if found != told:
            raise InputError(
                f"agent {i}, file {entry.file}: has (d, p, r) = {found} but problem.yaml says "
                f"{told}; the two do not belong together"
            )
    return problem


def read_manifest(directory: Path) -> Manifest:
    """Read and check ``problem.yaml``."""
    path = directory / FILE_NAME
    try:
        text = read_text(path, str(path), BYTES)
    except FileNotFoundError:
        raise InputError(f"{path}: not found; give a directory written by Problem.save") from None
    content = parse(text, str(path), entries=ENTRIES).plain()
    _check_header(path, content)
    try:
        manifest = msgspec.convert(content, Manifest)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: {cut(str(error), 160)}; save the problem again") from None
    _check_content(path, manifest)
    return manifest


def _check_header(path: Path, content: object) -> None:
    """Format and version first: another version may differ in everything else."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path}: does not describe a problem (format: {FORMAT} is missing)")
    if content.get("version") != VERSION:
        raise InputError(
            f"{path}: has format version {shown(content.get('version'))} but this program reads "
            f"{VERSION}; save the problem again or update ccmac"
        )


def _check_content(path: Path, manifest: Manifest) -> None:
    if manifest.n != len(manifest.agents) or manifest.n < 1:
        raise InputError(
            f"{path}: says n = {manifest.n} but lists {len(manifest.agents)} agents; "
            "save the problem again"
        )
    if manifest.q < 0 or manifest.m < 0:
        raise InputError(f"{path}: q and m must not be negative; save the problem again")
    for i, entry in enumerate(manifest.agents):
        # A plain name: a manifest cannot point outside its own directory.
        if not re.fullmatch(r"\w[\w.-]*", entry.file):
            told = shown(entry.file)
            raise InputError(f"{path}: agent {i}: file {told} must be a plain file name")
