"""What a stored run depends on, in digests: whoever resumes it must bring the same.

Data that belong to agents are hashed agent by agent, so that any split of the agents over processes
finds the same digests. Two tables are kept: one digest for every part (``A``, ``objective``, ...)
over all agents, one for every agent over all parts; where they differ names what changed.
Callables cannot be read: of operators and users' own objectives products and values at fixed
points are compared, rounded so that another order of summation does not matter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array, is_sparse
from ccmac.methods.base import Method, Request
from ccmac.objectives import Limited, Objective, Separable, Sum
from ccmac.problem import MATRICES, RIGHT_HAND_SIDES
from ccmac.results import Solution
from ccmac.storage.agents import encode_objective
from ccmac.texts import cut
from ccmac.version import __version__
from ccmac.workspace import Workspace

BYTES = 6  # of a digest: what a float64, which is what agents exchange, holds exactly
SCALES = (1.0, 1.0, 100.0)  # of the points at which code is asked
LONG = 200
SHOWN_AGENTS = 3
PARTS = {
    "sizes": "the sizes",
    **{name: f"block {name}" for name in MATRICES},
    **{name: f"the right-hand side {name}" for name in RIGHT_HAND_SIDES},
    "objective": "the objective",
    "start": "the starting point",
    "prices": "the starting prices",
    "reference": "the reference",
}
COMMON = {
    "version": "the version of ccmac",
    "problem_sizes": "the number of agents or shared sizes",
    "network": "the network",
    "averaging": "the averaging scheme",
    "method": "the method",
    "seed": "the seed",
    "costs": "the costs",
    "start_z": "the starting point z",
    "start_y": "the coupled starting price",
    "ends": "whether a reference ends the run",
    "reference_z": "the reference",
    "channels": "the channels of the stack",
    "schedule": "the tolerance, which a certified schedule is made for",
}


@dataclass(frozen=True)
class Asked:
    """Everything a run is asked, as :class:`ccmac.methods.run.Run` knows it before any work."""

    work: Workspace
    method: Method
    request: Request
    reference: Any
    warm: Solution | None
    places: tuple[list[int] | None, list[int] | None]  # of owned agents in reference and warm


def identity(asked: Asked) -> dict[str, Any]:
    """The same on every process; one gather of digests, which the ledger does not count.

    Where processes keep their own files, of the agents here alone: no digest leaves its owner.
    """
    work = asked.work
    request = asked.request
    method = asked.method
    runtime = work.runtime
    rows = [_agent(asked, k, i) for k, i in enumerate(work.problem.agents)]
    numbers = [[int.from_bytes(d, "big") for d in row] for row in rows]
    everybody = np.array(numbers, dtype=np.float64).reshape(-1, len(PARTS))
    if not runtime.apart:
        everybody = runtime._gather(everybody)
    parts = {name: _hex(everybody[:, k]) for k, name in enumerate(PARTS)}
    prices = None if asked.warm is None else getattr(asked.warm, "multipliers", None)
    common = {
        "version": __version__,
        "problem_sizes": [work.problem.n, work.problem.q, work.problem.m],
        "network": _hex(runtime.network.weights),
        "averaging": f"{runtime.averaging.name}, {runtime.averaging.rounds} rounds",
        "method": method.name,
        "seed": request.seed,
        "costs": repr(request.costs),
        "start_z": _hex(request.z0),
        "start_y": _hex(getattr(prices, "coupled", None)),
        "ends": request.reference,
        "reference_z": _hex(_common_reference(asked.reference)),
        "channels": [] if work.stack is None else [_hex(p) for p in work.stack.channels],
        "schedule": request.tol if getattr(method, "schedule", None) == "certified" else None,
    }
    agents = "".join(_hex(row) for row in everybody)
    first = runtime.owned.start if runtime.apart else 0
    told = {"common": common, "options": options_told(method), "parts": parts, "agents": agents}
    return {**told, "first": first}


def options_told(method: Method) -> dict[str, str]:
    """Every option as text; a long text ends in a digest of it."""
    told = {f.name: repr(getattr(method, f.name)) for f in fields(method)}
    return {k: t if len(t) <= LONG else f"{t[:LONG]}... {_hex(t)}" for k, t in told.items()}


def differences(stored: Any, mine: Mapping[str, Any]) -> list[str]:
    """What differs, in words; empty where the two are the same."""
    tables = ("common", "options", "parts")
    if not isinstance(stored, Mapping) or not all(isinstance(stored.get(t), dict) for t in tables):
        return ["what the stored run belongs to cannot be told; it"]
    found = [
        f"{words} ({cut(str(before), 40)}, here {cut(str(now), 40)})"
        if name in ("version", "method", "seed", "averaging")
        else words
        for name, words in COMMON.items()
        if (before := stored["common"].get(name)) != (now := mine["common"][name])
    ]
    if stored["common"].get("method") == mine["common"]["method"]:
        found += [
            f"option {name} ({cut(str(stored['options'].get(name)), 40)}, here {cut(now, 40)})"
            for name, now in mine["options"].items()
            if stored["options"].get(name) != now
        ]
    where = _agents(stored.get("agents"), mine["agents"], mine["first"])
    found += [
        f"{words}{where}"
        for name, words in PARTS.items()
        if stored["parts"].get(name) != mine["parts"][name]
    ]
    return found


def _agents(stored: Any, mine: str, first: int) -> str:
    width = 2 * BYTES
    if not isinstance(stored, str) or len(stored) != len(mine):
        return ""
    which = [
        first + k // width
        for k in range(0, len(mine), width)
        if stored[k : k + width] != mine[k : k + width]
    ]
    if not which:
        return ""
    more = ", ..." if len(which) > SHOWN_AGENTS else ""
    plural = "s" if len(which) > 1 else ""
    return f" of agent{plural} {', '.join(map(str, which[:SHOWN_AGENTS]))}{more}"


def _agent(asked: Asked, k: int, i: int) -> list[bytes]:
    """Digests of everything that belongs to agent ``i``, the k-th here, in the order of PARTS."""
    problem = asked.work.problem
    request = asked.request
    agent = problem.agents[i]
    d = problem.d[i]
    start = sum(list(problem.d.values())[:k])
    at_reference, at_warm = asked.places
    found = {
        "sizes": (d, problem.p[i], problem.r[i]),
        **{name: getattr(agent, name) for name in (*MATRICES, *RIGHT_HAND_SIDES)},
        "objective": _Objective(agent.objective, d, problem.q),
        "start": request.x0[start : start + d],
        "prices": None if at_warm is None else _prices(asked.warm, at_warm[k]),
        "reference": None if at_reference is None else asked.reference.x[at_reference[k]],
    }
    return [_digest(found[name]) for name in PARTS]


def _prices(warm: Solution | None, position: int) -> Any:
    prices = None if warm is None else warm.multipliers
    rows = [getattr(prices, name, None) for name in ("local", "shared", "consensus")]
    return [row[position] if row is not None and position < len(row) else None for row in rows]


def _common_reference(reference: Any) -> Any:
    return reference.z if hasattr(reference, "x") else reference


# -- digests ---------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Objective:
    objective: Objective
    d: int
    q: int


def _hex(value: Any) -> str:
    return _digest(value).hex()


def _digest(value: Any) -> bytes:
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.digest()[:BYTES]


def _feed(digest: Any, value: Any) -> None:
    """Type and shape go in with the numbers, so that nothing runs into its neighbor."""
    if value is None or isinstance(value, bool | int | float | str):
        digest.update(f"{value!r};".encode())
    elif isinstance(value, list | tuple):
        digest.update(f"{len(value)}[".encode())
        for item in value:
            _feed(digest, item)
    elif is_sparse(value):
        csr = value.tocsr()
        digest.update(f"sparse{csr.shape}".encode())
        for part in (csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64)):
            _feed(digest, part)
    elif isinstance(value, _Objective):
        _feed_objective(digest, value)
    elif not hasattr(value, "matvec"):
        array = np.ascontiguousarray(value)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    else:
        digest.update(f"operator{value.shape}".encode())
        _feed(digest, _rounded(value.matvec(_probe(value.shape[1], 0))))
        _feed(digest, _rounded(value.rmatvec(_probe(value.shape[0], 1))))


def _feed_objective(digest: Any, value: _Objective) -> None:
    """The state that would be saved, or of code its constants and what it answers."""
    objective = value.objective
    d = value.d
    q = value.q
    try:
        tree, arrays = encode_objective(objective)
    except InputError:
        _feed(digest, [type(objective).__qualname__, *sorted(objective.capabilities)])
        if parts := _parts(value):
            _feed(digest, parts)
            return
        curvature = objective.curvature(d, q)
        _feed(digest, [repr(curvature), float(objective.lipschitz(d, q))])
        for k, scale in enumerate(SCALES):
            x = scale * _probe(d, 2 * k)
            z = scale * _probe(q, 2 * k + 1)
            _feed(digest, _answers(objective, x, z))
        return
    digest.update(json.dumps(tree, sort_keys=True).encode())
    for name in sorted(arrays):
        _feed(digest, [name, arrays[name]])


def _parts(value: _Objective) -> list[Any]:
    """What an objective is made of, each by itself: beside bounds, which answer infinity nearly
    everywhere, a change of the others would not be seen.
    """
    objective = value.objective
    d = value.d
    q = value.q
    if isinstance(objective, Limited):
        inner = _Objective(objective.objective, objective.d, objective.q)
        return [objective.lower, objective.upper, objective.slacks, inner]
    if isinstance(objective, Separable):
        pairs = ((objective.x_part, d, 0), (objective.z_part, 0, q))
        return [None if part is None else _Objective(part, *sizes) for part, *sizes in pairs]
    parts = objective.parts if isinstance(objective, Sum) else ()
    return [_Objective(part, d, q) for part in parts]


def _answers(objective: Objective, x: Array, z: Array) -> list[Any]:
    found: list[Any] = []
    asked: list[Any] = [lambda: [np.atleast_1d(objective.value(x, z))]]
    if {"gradient", "subgradient"} & objective.capabilities:
        asked.append(lambda: list(objective.gradient(x, z)))
    if "prox" in objective.capabilities:
        asked.append(lambda: list(objective.prox(x, z, 0.7, 0.7)))
    for question in asked:
        try:
            with np.errstate(all="ignore"):
                found += [_rounded(answer) for answer in question()]
        except Exception as error:
            found.append(type(error).__name__)
    return found


def _probe(size: int, seed: int) -> Array:
    return np.random.default_rng([14, seed]).standard_normal(size)


def _rounded(vector: Any) -> str:
    """Length, norm and one component of a vector, to nine digits."""
    v = np.asarray(vector, dtype=np.float64).ravel()
    return f"{v.size},{float(np.linalg.norm(v)):.8e},{float(_probe(v.size, 99) @ v):.6e}"
