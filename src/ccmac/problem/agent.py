"""One agent's private data, cleaned and checked with errors that name the agent and the block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ccmac.cones import Cone
from ccmac.cones.product import ProductCone
from ccmac.errors import InputError
from ccmac.inputs import (
    Array,
    bound,
    folder,
    matrix_or_operator,
    not_crossed,
    one_name,
    real_matrix,
    real_vector,
    senses,
    several,
)
from ccmac.objectives.base import Objective
from ccmac.texts import shown

MATRICES = ("A", "B", "C", "D")
RIGHT_HAND_SIDES = {"b": ("A", "B"), "c": ("C",), "e": ("D",)}
LIMITS = ("lower", "upper", "C_sense", "D_sense")
CONIC = ("G", "H", "h")  # own rows G x + H z + s = h, s in the cones


@dataclass(frozen=True, eq=False, repr=False)
class Agent:
    """One agent's private data; every block may be absent, dense, sparse or an operator.

    ``lower <= x <= upper`` (numbers or vectors, infinite where there is no bound). ``C_sense`` and
    ``D_sense`` say what C x and c, D z and e are to each other: "==" (default), "<=" or ">=", one
    for all rows or one for each. ``name`` stands for the number in reports and errors.

    Own rows G x + H z + s = h have their slack s in a product of ``cones``, taken in order: an
    inequality is a row of :class:`ccmac.cones.Nonnegative`, a norm one of
    :class:`ccmac.cones.SecondOrder`. Their multipliers are ``result.multipliers.cones``.

    Parameters
    ----------
    objective : Objective
        f_i(x_i, z), from :mod:`ccmac.objectives` or a :class:`~ccmac.objectives.Custom`.
    A, B : matrix or operator, optional
        The agent's part of the coupled rows, of shapes (m, d_i) and (m, q).
    b : array_like, optional
        Its part of their right-hand side, of length m.
    C, c : matrix or operator and array_like, optional
        Rows of its own variable, C x = c.
    D, e : matrix or operator and array_like, optional
        Its demands on the shared variable, D z = e.
    name : str, optional
        Stands for the agent's number in reports and errors.
    lower, upper : float or array_like, optional
        Bounds of x; infinite entries where there is none.
    C_sense, D_sense : {"==", "<=", ">="} or sequence of them, optional
        The sense of the rows of C and D, one for all or one for each.
    G, H, h : matrix and array_like, optional
        Own rows G x + H z + s = h; what is absent is zero.
    cones : sequence of Cone, optional
        Where s lies, from :mod:`ccmac.cones`; their sizes add up to the number of rows.
    model : object, optional
        What the agent was made of. After a solve ``model.receive(result, k)`` is called, k being
        the agent's place in ``result.x``; ``prepared.update()`` asks ``model.sides()``.

    Examples
    --------
    >>> import ccmac
    >>> f = ccmac.objectives.SquaredDistance()
    >>> ccmac.Agent(f, A=[[1.0]], b=[3.0], lower=0, upper=6, name="north")
    Agent('north', SquaredDistance, blocks: A, b)

    The length of x at most 1:

    >>> G = [[0.0, 0.0], [-1.0, 0.0], [0.0, -1.0]]
    >>> ccmac.Agent(f, G=G, h=[1.0, 0.0, 0.0], cones=[ccmac.cones.SecondOrder(3)])
    Agent(SquaredDistance, blocks: G, h)
    """

    objective: Objective
    A: Any = None
    B: Any = None
    b: Any = None
    C: Any = None
    c: Any = None
    D: Any = None
    e: Any = None
    name: str | None = None
    lower: Any = None
    upper: Any = None
    C_sense: Any = None
    D_sense: Any = None
    G: Any = None
    H: Any = None
    h: Any = None
    cones: Any = None
    model: Any = None

    @property
    def limited(self) -> bool:
        """Whether something is bounded or an inequality (of a cleaned agent)."""
        return any(getattr(self, name) is not None for name in LIMITS)

    def conic(self, d: int, q: int) -> ConicRows | None:
        """Its conic rows on x in R^d and z in R^q, if it has cones (of a cleaned agent)."""
        if self.cones is None:
            return None
        cone = ProductCone(self.cones)
        G = sp.csr_array((cone.size, d)) if self.G is None else self.G
        H = sp.csr_array((cone.size, q)) if self.H is None else self.H
        return ConicRows(G, H, np.zeros(cone.size) if self.h is None else self.h, cone)

    def __repr__(self) -> str:
        blocks = ", ".join(k for k in (*MATRICES, *"bce", *CONIC) if getattr(self, k) is not None)
        name = "" if self.name is None else f"{self.name!r}, "
        return f"Agent({name}{type(self.objective).__name__}, blocks: {blocks or 'none'})"

    def save(self, directory: str | Path, *, replace: bool = False) -> None:
        """Write this agent alone into a directory of its own; no pickle."""
        from ccmac.storage.owner import save_agent

        save_agent(self, folder("save", directory), replace=replace)

    @classmethod
    def load(cls, directory: str | Path) -> Agent:
        """Read a directory written by :meth:`save`."""
        from ccmac.storage.owner import load_agent

        return load_agent(folder("load", directory))


class ConicRows(NamedTuple):
    """An agent's own rows G x + H z + s = h, s in the cone; what is absent is zero."""

    G: Any
    H: Any
    h: Array
    cone: ProductCone


def has(block: Any) -> bool:
    """Whether a block is there and not empty."""
    return block is not None and 0 not in block.shape


def who(i: int, name: Any) -> str:
    """What an agent is called in messages: its number, and its name if it has one."""
    return f"agent {i}" if name is None else f"agent {i} ({name})"


def clean_agent(i: int, agent: Agent) -> Agent:
    """Blocks as float64 matrices and vectors; limits are read when the sizes are known."""
    name = None if agent.name is None else one_name(f"agent {i}, name", agent.name)
    agent = replace(agent, name=name)
    me = who(i, name)
    if not isinstance(agent.objective, Objective):
        raise InputError(
            f"{me}, objective: {type(agent.objective).__name__} is not a ccmac objective; "
            "use ccmac.objectives.* or ccmac.objectives.Custom(value, gradient, ...)"
        )
    fields = {k: _block(me, k, getattr(agent, k)) for k in (*MATRICES, *RIGHT_HAND_SIDES)}
    for right, owners in RIGHT_HAND_SIDES.items():
        if right != "b" and fields[right] is not None and fields[owners[0]] is None:
            if fields[right].size and np.any(fields[right]):
                raise InputError(
                    f"{me}, block {right}: given without {owners[0]}; "
                    f"add {owners[0]} or drop {right}"
                )
            fields[right] = None
    return replace(agent, **fields, **_conic(me, agent))


def _conic(me: str, agent: Agent) -> dict[str, Any]:
    """Clean G, H, h and cones; nothing where there are none."""
    blocks = {k: getattr(agent, k) for k in CONIC}
    if agent.cones is None:
        for name, block in blocks.items():
            if block is not None:
                raise InputError(f"{me}, block {name}: given without cones; add cones=[...]")
        return {}
    cones = tuple(several(f"{me}, cones", agent.cones, "a list of ccmac.cones"))
    for cone in cones:
        if not isinstance(cone, Cone):
            raise InputError(
                f"{me}, cones: {shown(cone)} is no cone; use ccmac.cones.Nonnegative(k), "
                "SecondOrder(k) or Zero(k)"
            )
    rows = sum(cone.size for cone in cones)
    if not rows:
        return dict.fromkeys((*CONIC, "cones"))
    found: dict[str, Any] = {"cones": cones}
    for name, block in blocks.items():
        where = f"{me}, block {name}"
        clean = real_vector if name == "h" else real_matrix
        value: Array | None = None if block is None else clean(where, block).copy()
        if value is not None and value.shape[0] != rows:
            raise InputError(
                f"{where}: has {value.shape[0]} rows but the cones have {rows} in all; "
                "they must be equal"
            )
        found[name] = value
    return found


def _block(me: str, name: str, block: Any) -> Any:
    """Clean: a matrix (ndarray, csr_array, operator) or a float64 copy of a vector; or None."""
    where = f"{me}, block {name}"
    if block is None:
        return None
    return (
        matrix_or_operator(where, block) if name in MATRICES else real_vector(where, block).copy()
    )


def checked_agent(i: int, agent: Agent, d: int, q: int) -> Agent:
    """The agent with its limits read; its right-hand sides and objective must fit."""
    me = who(i, agent.name)
    for name, owner in (("c", "C"), ("e", "D")):
        vector = getattr(agent, name)
        matrix = getattr(agent, owner)
        if matrix is not None and vector is not None and len(vector) != matrix.shape[0]:
            raise InputError(
                f"{me}, block {name}: has {len(vector)} entries but {owner} has "
                f"{matrix.shape[0]} rows; they must be equal"
            )
    try:
        agent.objective.check(d, q)
    except InputError as error:
        raise InputError(f"{me}, objective: {error}") from None
    if not agent.limited:
        return agent
    rows = {k: 0 if getattr(agent, k) is None else getattr(agent, k).shape[0] for k in "CD"}
    limits: dict[str, Any] = {
        "lower": bound(f"{me}, lower", agent.lower, d, -np.inf),
        "upper": bound(f"{me}, upper", agent.upper, d, np.inf),
        "C_sense": senses(f"{me}, C_sense", agent.C_sense, rows["C"]),
        "D_sense": senses(f"{me}, D_sense", agent.D_sense, rows["D"]),
    }
    not_crossed(f"{me}, x", limits["lower"], limits["upper"])
    return replace(agent, **limits)
