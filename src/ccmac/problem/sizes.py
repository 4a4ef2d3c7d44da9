"""The sizes of x_i, z and the coupled rows, from whatever says them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ccmac.errors import InputError
from ccmac.inputs import as_array, whole
from ccmac.problem.agent import Agent, who


def shared_dimension(agents: Mapping[int, Agent], given: int | None, limits: int | None) -> int:
    """q, from any B_i or D_i, else from an objective (its z-part, or its size less that of x).

    ``limits`` is the number of bounds or names of z, if these say it.
    """
    clash = "columns but z has {} entries by {}; every agent shares one z"
    found, source = _of_blocks(agents, "BD", 1, "q", given, clash)
    for i, agent in agents.items():
        implied = _implied_by_objective(i, agent)
        if implied is None:
            continue
        if found is not None and implied != found:
            raise InputError(
                f"{who(i, agent.name)}, objective: fits z with {implied} entries but z has {found} "
                f"by {source}; every agent shares one z"
            )
        found = implied
        source = f"{who(i, agent.name)}, objective"
    found = limits if found is None else found
    if found is None:
        raise InputError(
            "problem: the size of z is not known from B, D or the objectives; "
            "give a B_i (zero if need be) or pass q="
        )
    return found


def _of_blocks(
    agents: Mapping[int, Agent], names: str, axis: int, size: str, given: int | None, clash: str
) -> tuple[int | None, str]:
    """The size that the blocks ``names`` have along ``axis``, and which of them said it last."""
    found = given
    source = f"the problem's {size}"
    if given is not None:
        whole(f"problem: {size}", given)
    for i, agent in agents.items():
        for name in names:
            block = getattr(agent, name)
            if block is None:
                continue
            here = f"{who(i, agent.name)}, block {name}"
            count = block.shape[axis]
            if found is not None and count != found:
                raise InputError(f"{here}: has {count} {clash.format(found, source)}")
            found = count
            source = here
    return found, source


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
            f"{who(i, agent.name)}, objective: acts on {objective.dim} entries but x alone has "
            f"{x_block.shape[1]}; it must cover x and z"
        )
    return implied


def coupled_dimension(agents: Mapping[int, Agent], given: int | None, limits: int | None) -> int:
    """m, from any A_i, B_i or b_i, else from the number of senses or names."""
    clash = "rows but the coupled equation has {} by {}; A_i, B_i and b_i have one common row count"
    found, _ = _of_blocks(agents, "ABb", 0, "m", given, clash)
    return limits or 0 if found is None else found


def local_dimension(i: int, agent: Agent, q: int) -> int:
    sizes = {k: getattr(agent, k).shape[1] for k in ("A", "C") if getattr(agent, k) is not None}
    if len(set(sizes.values())) > 1:
        raise InputError(
            f"{who(i, agent.name)}, block C: has {sizes['C']} columns but A has {sizes['A']}; "
            "both act on the same x"
        )
    if sizes:
        return int(next(iter(sizes.values())))
    if agent.objective.x_size is not None:
        return agent.objective.x_size
    dim = agent.objective.dim
    if dim is None:
        return length_of(agent.lower, agent.upper) or 0
    if dim < q:
        raise InputError(
            f"{who(i, agent.name)}, objective: acts on {dim} entries but z alone has {q}; "
            "it must cover x and z"
        )
    return dim - q


def length_of(*vectors: Any) -> int | None:
    """The length of the first that is a vector or a list."""
    given = (as_array("problem", v) for v in vectors if v is not None)
    return next((len(v) for v in given if v.ndim == 1), None)
