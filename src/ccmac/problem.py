"""Agents and the problem they share.

    min sum_i f_i(x_i, z)   s.t.   sum_i (A_i x_i + B_i z - b_i) = 0,  C_i x_i = c_i,  D_i z = e_i

Shapes and finiteness are checked here, once, with errors that name the agent and the block. A
process may hold only some of the agents (``Problem({3: agent}, n=8)``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array, matrix_or_operator, real_vector
from ccmac.objectives.base import Objective

MATRICES = ("A", "B", "C", "D")
RIGHT_HAND_SIDES = {"b": ("A", "B"), "c": ("C",), "e": ("D",)}


@dataclass(frozen=True, eq=False)
class Agent:
    """One agent's private data; every block may be absent, dense, sparse or an operator."""

    objective: Objective
    A: Any = None
    B: Any = None
    b: Any = None
    C: Any = None
    c: Any = None
    D: Any = None
    e: Any = None

    def save(self, directory: str | Path, *, replace: bool = False) -> None:
        """Write this agent alone into a directory of its own; no pickle."""
        from ccmac.storage.owner import save_agent

        save_agent(self, Path(directory), replace=replace)

    @classmethod
    def load(cls, directory: str | Path) -> Agent:
        """Read a directory written by :meth:`save`."""
        from ccmac.storage.owner import load_agent

        return load_agent(Path(directory))


@dataclass(frozen=True, eq=False)
class Problem:
    """n agents with one shared variable z in R^q and m coupled equations.

    ``d``, ``p``, ``r`` are per-agent dimensions of x_i, C_i and D_i (of the agents held here);
    ``present`` names the families A, B, C, D that some agent, here or elsewhere, has.
    """

    agents: Mapping[int, Agent]
    n: int
    q: int = field(init=False)
    m: int = field(init=False)
    d: Mapping[int, int] = field(init=False)
    p: Mapping[int, int] = field(init=False)
    r: Mapping[int, int] = field(init=False)
    present: frozenset[str] = field(init=False)

    def __init__(
        self,
        agents: Sequence[Agent] | Mapping[int, Agent],
        n: int | None = None,
        *,
        q: int | None = None,
        m: int | None = None,
        present: Collection[str] = (),
    ) -> None:
        listed = dict(agents) if isinstance(agents, Mapping) else dict(enumerate(agents))
        if not listed:
            raise InputError("problem: there are no agents; give at least one ccmac.Agent")
        for i in listed:
            if not isinstance(i, int | np.integer):
                raise InputError(f"agent {i!r}: agents are numbered 0, 1, ...; use such keys")
        total = max(listed) + 1 if n is None else n
        for i, agent in listed.items():
            if not isinstance(agent, Agent):
                raise InputError(
                    f"agent {i}: expected a ccmac.Agent, got {type(agent).__name__}; "
                    "wrap the objective and its blocks in ccmac.Agent(...)"
                )
            if not 0 <= i < total:
                raise InputError(f"agent {i}: index outside 0..{total - 1}; check n")
        if not isinstance(agents, Mapping) and n is not None and n != len(listed):
            raise InputError(f"problem: n = {n} but {len(listed)} agents were given")
        clean = {i: clean_agent(i, agent) for i, agent in sorted(listed.items())}
        shared = _shared_dimension(clean, q)
        coupled = _coupled_dimension(clean, m)
        here = {k for k in MATRICES if any(has(getattr(a, k)) for a in clean.values())}
        fields = {
            "agents": clean, "n": total, "q": shared, "m": coupled,
            "d": {i: _local_dimension(i, a, shared) for i, a in clean.items()},
            "p": {i: 0 if a.C is None else a.C.shape[0] for i, a in clean.items()},
            "r": {i: 0 if a.D is None else a.D.shape[0] for i, a in clean.items()},
            "present": frozenset(here | set(present)),
        }  # fmt: skip
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        for i, agent in clean.items():
            _check_agent(i, agent, self.d[i], shared)

    # -- looking at it ----------------------------------------------------------------------
    @property
    def complete(self) -> bool:
        """Whether all agents are here."""
        return len(self.agents) == self.n

    def blocks(self, name: str) -> list[Any]:
        """The blocks ``name`` of the agents held here, in agent order (None where absent)."""
        return [getattr(agent, name) for agent in self.agents.values()]

    def restricted(self, agents: range) -> Problem:
        """The same problem holding only ``agents``."""
        held = {i: self.agents[i] for i in agents}
        return Problem(held, n=self.n, q=self.q, m=self.m, present=self.present)

    def reference_blocks(self, reference: Array) -> list[Array] | None:
        """x_i of a reference given in an order that only the problem knows; None if it is not."""
        return None

    def rebalanced(self, weights: Any = None) -> Problem:
        """The B_i redistributed with their sum fixed: B_i -> w_i * sum_j B_j (default w = 1/n).

        A change of representation: the solutions are the same, but agents must be allowed to
        learn the sum of the B_j. Uniform weights give the least chi of all redistributions, and
        chi = 1 when there is no D. Operator blocks are refused.
        """
        from ccmac.angles.rebalance import rebalanced

        return rebalanced(self, weights)

    def save(self, directory: str | Path, *, replace: bool = False) -> None:
        """Write ``problem.yaml`` and one file per agent; no pickle.

        A directory that holds anything is refused unless ``replace`` is true.
        """
        from ccmac.storage import save_problem

        save_problem(self, Path(directory), replace=replace)

    @classmethod
    def load(cls, directory: str | Path, agents: range | None = None) -> Problem:
        """Read a directory written by :meth:`save`; only ``agents`` if given."""
        from ccmac.storage import load_problem

        return load_problem(Path(directory), agents)

    def __repr__(self) -> str:
        held = "" if self.complete else f", holding {len(self.agents)}"
        present = "".join(k for k in MATRICES if any(b is not None for b in self.blocks(k)))
        return (
            f"Problem(n={self.n}{held}, q={self.q}, m={self.m}, "
            f"d={sum(self.d.values())}, blocks={present or 'none'})"
        )


def has(block: Any) -> bool:
    """Whether a block is there and not empty."""
    return block is not None and 0 not in block.shape


# -- cleaning and checking ------------------------------------------------------------------
def clean_agent(i: int, agent: Agent) -> Agent:
    """Blocks as float64 matrices and vectors."""
    if not isinstance(agent.objective, Objective):
        raise InputError(
            f"agent {i}, objective: {type(agent.objective).__name__} is not a ccmac objective; "
            "use ccmac.objectives.* or ccmac.objectives.Custom(value, gradient, ...)"
        )
    fields = {k: _block(i, k, getattr(agent, k)) for k in (*MATRICES, *RIGHT_HAND_SIDES)}
    for name, owners in RIGHT_HAND_SIDES.items():
        if name != "b" and fields[name] is not None and fields[owners[0]] is None:
            if fields[name].size and np.any(fields[name]):
                raise InputError(
                    f"agent {i}, block {name}: given without {owners[0]}; "
                    f"add {owners[0]} or drop {name}"
                )
            fields[name] = None
    return replace(agent, **fields)


def _block(i: int, name: str, block: Any) -> Any:
    """Clean: a matrix (ndarray, csr_array, operator) or a float64 copy of a vector; or None."""
    where = f"agent {i}, block {name}"
    if block is None:
        return None
    return (
        matrix_or_operator(where, block) if name in MATRICES else real_vector(where, block).copy()
    )


def _shared_dimension(agents: Mapping[int, Agent], given: int | None) -> int:
    """q, from any B_i or D_i, else from an objective (its z-part, or its size less that of x)."""
    found, source = given, "the problem's q"
    if given is not None and given < 0:
        raise InputError(f"problem: q = {given} is negative; give the number of shared entries")
    for i, agent in agents.items():
        for name in ("B", "D"):
            block = getattr(agent, name)
            if block is None:
                continue
            if found is not None and block.shape[1] != found:
                raise InputError(
                    f"agent {i}, block {name}: has {block.shape[1]} columns but z has {found} "
                    f"entries by {source}; every agent shares one z"
                )
            found, source = block.shape[1], f"agent {i}, block {name}"
    for i, agent in agents.items():
        implied = _implied_by_objective(i, agent)
        if implied is None:
            continue
        if found is not None and implied != found:
            raise InputError(
                f"agent {i}, objective: fits z with {implied} entries but z has {found} "
                f"by {source}; every agent shares one z"
            )
        found, source = implied, f"agent {i}, objective"
    if found is None:
        raise InputError(
            "problem: the size of z cannot be told from B, D or the objectives; "
            "give a B_i (zero if need be) or pass q="
        )
    return found


def _implied_by_objective(i: int, agent: Agent) -> int | None:
    """The q that an agent's objective asks for, if it does."""
    objective = agent.objective
    x_block = agent.A if agent.A is not None else agent.C
    if objective.z_size is not None:
        return objective.z_size
    if objective.dim is None or x_block is None:
        return None
    implied = objective.dim - int(x_block.shape[1])
    if implied < 0:
        raise InputError(
            f"agent {i}, objective: acts on {objective.dim} entries but x alone has "
            f"{x_block.shape[1]}; it must cover x and z"
        )
    return implied


def _coupled_dimension(agents: Mapping[int, Agent], given: int | None) -> int:
    found, source = given, "the problem's m"
    for i, agent in agents.items():
        for name in ("A", "B", "b"):
            block = getattr(agent, name)
            if block is None:
                continue
            if found is not None and block.shape[0] != found:
                raise InputError(
                    f"agent {i}, block {name}: has {block.shape[0]} rows but the coupled equation "
                    f"has {found} by {source}; A_i, B_i and b_i have one common row count"
                )
            found, source = block.shape[0], f"agent {i}, block {name}"
    return found or 0


def _local_dimension(i: int, agent: Agent, q: int) -> int:
    sizes = {k: getattr(agent, k).shape[1] for k in ("A", "C") if getattr(agent, k) is not None}
    if len(set(sizes.values())) > 1:
        raise InputError(
            f"agent {i}, block C: has {sizes['C']} columns but A has {sizes['A']}; "
            "both act on the same x"
        )
    if sizes:
        return int(next(iter(sizes.values())))
    if agent.objective.x_size is not None:
        return agent.objective.x_size
    dim = agent.objective.dim
    if dim is None:
        return 0
    if dim < q:
        raise InputError(
            f"agent {i}, objective: acts on {dim} entries but z alone has {q}; "
            "it must cover x and z"
        )
    return dim - q


def _check_agent(i: int, agent: Agent, d: int, q: int) -> None:
    for name, owner in (("c", "C"), ("e", "D")):
        vector, matrix = getattr(agent, name), getattr(agent, owner)
        if matrix is not None and vector is not None and len(vector) != matrix.shape[0]:
            raise InputError(
                f"agent {i}, block {name}: has {len(vector)} entries but {owner} has "
                f"{matrix.shape[0]} rows; they must be equal"
            )
    try:
        agent.objective.check(d, q)
    except InputError as error:
        raise InputError(f"agent {i}, objective: {error}") from None
