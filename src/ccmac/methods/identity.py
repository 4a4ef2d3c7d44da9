"""What a stored run depends on, in digests: whoever continues it must bring the same.

There is one digest for each thing that all processes know, and one for each agent's own data, so
that any split of the agents over processes finds the same. Code cannot be read: of operators and
users' own objectives the answers at fixed points are taken, rounded to nine digits.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.inputs import Array, is_sparse
from ccmac.methods.base import Method, Request
from ccmac.objectives import Limited, Objective, Separable, Sum
from ccmac.problem import MATRICES, RIGHT_HAND_SIDES
from ccmac.results import Solution
from ccmac.storage.agents import encode_objective
from ccmac.version import __version__
from ccmac.workspace import Workspace


@dataclass(frozen=True)
class Asked:
    """Everything a run is asked, as :class:`ccmac.methods.run.Run` knows it before any work."""

    work: Workspace
    method: Method
    request: Request
    reference: Any
    warm: Solution | None
    places: tuple[list[int] | None, list[int] | None]  # of owned agents in reference and warm


def of_all(asked: Asked) -> dict[str, str]:
    """{what it is, in words: digest} of everything that is the same in all processes."""
    work = asked.work
    request = asked.request
    runtime = work.runtime
    method = asked.method
    multipliers = getattr(asked.warm, "multipliers", None)
    of_agents = hasattr(asked.reference, "x")
    certified = getattr(method, "schedule", None) == "certified"
    found = {
        "the version of ccmac": __version__,
        "the sizes of the problem": [work.problem.n, work.problem.q, work.problem.m],
        "the channels of the stack": [] if work.stack is None else list(work.stack.channels),
        "the network": runtime.network.weights,
        "the averaging scheme": runtime.averaging.described,
        "the method": method.name,
        "an option of the method": repr(method),
        "the seed": request.seed,
        "the costs": repr(request.costs),
        "the starting point": [request.z0, getattr(multipliers, "coupled", None)],
        "the reference": [request.reference, asked.reference.z if of_agents else asked.reference],
        "the tolerance of a certified schedule": request.tol if certified else None,
    }
    return {words: _digest(value).hex() for words, value in found.items()}


def of_agents(asked: Asked) -> list[NDArray[np.uint8]]:
    """A digest of everything that belongs to an agent, for each that is here."""
    request = asked.request
    problem = asked.work.problem
    at_reference, at_warm = asked.places
    multipliers = getattr(asked.warm, "multipliers", None)
    found = []
    start = 0
    for k, (i, agent) in enumerate(problem.agents.items()):
        d = problem.d[i]
        known = [getattr(agent, name) for name in (*MATRICES, *RIGHT_HAND_SIDES)]
        known += [_Objective(agent.objective, d, problem.q), request.x0[start : start + d]]
        if at_reference is not None:
            known.append(asked.reference.x[at_reference[k]])
        if at_warm is not None:
            rows = [getattr(multipliers, name, ()) for name in ("local", "shared", "consensus")]
            known += [row[at_warm[k]] if at_warm[k] < len(row) else None for row in rows]
        found.append(np.frombuffer(_digest(known), dtype=np.uint8))
        start += d
    return found


@dataclass(frozen=True)
class _Objective:
    objective: Objective
    d: int
    q: int


def _digest(value: Any) -> bytes:
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.digest()[:12]


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
        _feed(digest, [*csr.shape, csr.data, csr.indices.astype(np.int64), csr.indptr.tolist()])
    elif isinstance(value, _Objective):
        _feed_objective(digest, value)
    elif hasattr(value, "matvec"):
        _feed(digest, _rounded(value.matvec(_probe(value.shape[1]))))
        _feed(digest, _rounded(value.rmatvec(_probe(value.shape[0]))))
    else:
        array = np.ascontiguousarray(value)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())


def _feed_objective(digest: Any, value: _Objective) -> None:
    """The state that would be saved, or of code its constants and what it answers."""
    objective = value.objective
    d = value.d
    q = value.q
    try:
        tree, arrays = encode_objective(objective)
        digest.update(json.dumps(tree, sort_keys=True).encode())
        _feed(digest, [part for name in sorted(arrays) for part in (name, arrays[name])])
        return
    except InputError:
        digest.update(type(objective).__qualname__.encode())
    if isinstance(objective, Limited):  # with bounds nearly all values are infinite
        inner = _Objective(objective.objective, objective.d, objective.q)
        _feed(digest, [objective.lower, objective.upper, objective.slacks, inner])
    elif isinstance(objective, Separable):
        for part, sizes in ((objective.x_part, (d, 0)), (objective.z_part, (0, q))):
            _feed(digest, None if part is None else _Objective(part, *sizes))
    elif isinstance(objective, Sum):
        _feed(digest, [_Objective(part, d, q) for part in objective.parts])
    else:
        _feed(digest, [repr(objective.curvature(d, q)), *_answers(objective, _probe(d), _probe(q))])


def _answers(objective: Objective, x: Array, z: Array) -> list[Any]:
    with np.errstate(all="ignore"):
        found: list[Any] = [objective.value(x, z), objective.value(100 * x, 100 * z)]
        if {"gradient", "subgradient"} & objective.capabilities:
            found += [*objective.gradient(x, z), *objective.gradient(100 * x, 100 * z)]
        if "prox" in objective.capabilities:
            found += objective.prox(x, z, 0.7, 0.7)
    return [_rounded(answer) for answer in found]


def _probe(size: int) -> Array:
    return np.random.default_rng([14, size]).standard_normal(size)


def _rounded(vector: Any) -> str:
    """Length, norm and one component of a vector, to nine digits."""
    v = np.atleast_1d(np.asarray(vector, dtype=np.float64)).ravel()
    return f"{v.size},{float(np.linalg.norm(v)):.8e},{float(_probe(v.size) @ v):.6e}"
