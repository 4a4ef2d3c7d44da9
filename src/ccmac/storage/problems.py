"""Save a problem into a directory; load it, or only some of its agents, from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import is_sparse
from ccmac.problem import MATRICES, RIGHT_HAND_SIDES, Agent, Problem
from ccmac.storage.arrays import ArraySink, ArraySource
from ccmac.storage.files import atomic_directory
from ccmac.storage.manifest import (
    FORMAT,
    VERSION,
    AgentEntry,
    Manifest,
    read_manifest,
    write_manifest,
)
from ccmac.storage.objectives import decode_objective, encode_objective

OBJECTIVE = "objective"


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
    encoded = {i: _encode(i, agent) for i, agent in problem.agents.items()}
    with atomic_directory(directory, replace=replace) as target:
        entries = []
        for i, sink in encoded.items():
            name = f"agent-{i:04d}.npz"
            sha256 = sink.write(target / name)
            entries.append(AgentEntry(name, sha256, problem.d[i], problem.p[i], problem.r[i]))
        write_manifest(target, Manifest(FORMAT, VERSION, problem.n, problem.q, problem.m, entries))


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
    loaded = {i: _read_agent(directory, i, manifest.agents[i]) for i in wanted}
    problem = Problem(loaded, n=manifest.n, q=manifest.q, m=manifest.m)
    for i in wanted:
        entry = manifest.agents[i]
        found, told = (problem.d[i], problem.p[i], problem.r[i]), (entry.d, entry.p, entry.r)
        if found != told:
            raise InputError(
                f"agent {i}, file {entry.file}: has (d, p, r) = {found} but problem.yaml says "
                f"{told}; the two do not belong together"
            )
    return problem


def _encode(i: int, agent: Agent) -> ArraySink:
    sink = ArraySink()
    for name in (*MATRICES, *RIGHT_HAND_SIDES):
        block = getattr(agent, name)
        if block is None:
            continue
        if not (isinstance(block, np.ndarray) or is_sparse(block)):
            raise InputError(
                f"agent {i}, block {name}: is an operator ({type(block).__name__}) and cannot be "
                "saved; give its matrix, dense or sparse"
            )
        sink.put(name, block)
    text = encode_objective(f"agent {i}, objective", agent.objective, OBJECTIVE, sink)
    sink.put(OBJECTIVE, np.array(text))
    return sink


def _read_agent(directory: Path, i: int, entry: AgentEntry) -> Agent:
    where = f"agent {i}, file {entry.file}"
    source = ArraySource(where, directory / entry.file, entry.sha256)
    blocks: dict[str, Any] = {
        name: source.take(name) for name in (*MATRICES, *RIGHT_HAND_SIDES) if source.has(name)
    }
    text = source.take(OBJECTIVE, sparse=False)
    if text.dtype.kind != "U" or text.ndim:
        raise InputError(f"{where}, block objective: is not a text; save the problem again")
    return Agent(decode_objective(f"{where}, objective", str(text), source), **blocks)
