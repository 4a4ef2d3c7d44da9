"""The problem that agents share (Equation eq:ccmac).

    min sum_i f_i(x_i, z)   s.t.   sum_i (A_i x_i + B_i z - b_i) = 0,  C_i x_i = c_i,  D_i z = e_i

Each row may be <= or >= instead, and x_i and z may have bounds (:mod:`ccmac.limits` reduces both).
An agent may have conic rows of its own, G_i x_i + H_i z + s_i = h_i with s_i in a cone.
Multipliers have the signs of the Lagrangian f + lambda'(A x - b): lambda >= 0 for <=, <= 0 for >=.
Shapes and finiteness are checked here, once, with errors that name the agent and the block. A
process may hold only some of the agents (``Problem({3: agent}, n=8)``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ccmac import show
from ccmac.cones import Cone
from ccmac.cones.product import ProductCone
from ccmac.errors import InputError
from ccmac.inputs import (
    Array,
    as_array,
    bound,
    distinct,
    folder,
    is_sparse,
    is_whole,
    matrix_or_operator,
    names,
    not_crossed,
    one_name,
    real_matrix,
    real_vector,
    senses,
    several,
    whole,
)
from ccmac.linalg.blocks import dense
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


class Problem:
    """n agents with one shared variable z in R^q and m coupled rows.

    ``sense`` says what the coupled rows are ("==", "<=", ">=", one for all or one for each),
    ``z_lower <= z <= z_upper`` bound z; ``row_names`` and ``z_names`` name the coupled rows and the
    entries of z in results. ``d``, ``p``, ``r`` are per-agent dimensions of x_i, C_i and D_i (of
    the agents held here); ``present`` names the families A, B, C, D that some agent, here or
    elsewhere, has; ``limited`` says whether something known here is bounded or an inequality.

    Parameters
    ----------
    agents : sequence of Agent, or mapping from numbers to Agent
        All agents, or those that this process holds.
    n : int, optional
        The number of agents everywhere, where a mapping does not say it.
    q, m : int, optional
        The length of z and the number of coupled rows, where no block tells them.
    present : collection of {"A", "B", "C", "D"}, optional
        Families of blocks that agents elsewhere have.
    sense : {"==", "<=", ">="} or sequence of them, optional
        The sense of the coupled rows, one for all or one for each.
    z_lower, z_upper : float or array_like, optional
        Bounds of the shared variable.
    row_names, z_names : sequence of str, optional
        Names of the coupled rows and of the entries of z, used in results.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Quadratic(np.eye(2), [1.0, 2.0])
    >>> problem = ccmac.Problem([ccmac.Agent(f, A=[[1]], B=[[1]], b=[1]) for _ in range(3)])
    >>> problem
    Problem(n=3, q=1, m=1, d=3, blocks=AB)
    """

    def __init__(
        self,
        agents: Sequence[Agent] | Mapping[int, Agent],
        n: int | None = None,
        *,
        q: int | None = None,
        m: int | None = None,
        present: Collection[str] = (),
        sense: Any = None,
        z_lower: Any = None,
        z_upper: Any = None,
        row_names: Sequence[str] | None = None,
        z_names: Sequence[str] | None = None,
    ) -> None:
        listed, self.n = _listed(agents, n)
        clean = {i: clean_agent(i, agent) for i, agent in sorted(listed.items())}
        distinct("agents", [a.name for a in clean.values() if a.name is not None])
        self.q = shared_dimension(clean, q, length_of(z_lower, z_upper, z_names))
        self.m = coupled_dimension(clean, m, length_of(sense, row_names))
        here = {k for k in MATRICES if any(has(getattr(a, k)) for a in clean.values())}
        for k in several("problem, present", present, f"some of {', '.join(MATRICES)}"):
            if not isinstance(k, str) or k not in MATRICES:
                raise InputError(f"problem, present: {shown(k)} is no block; take A, B, C, D")
            here.add(k)
        self.present = frozenset(here)
        self.d: Mapping[int, int] = {i: local_dimension(i, a, self.q) for i, a in clean.items()}
        self.agents: Mapping[int, Agent] = {
            i: checked_agent(i, a, self.d[i], self.q) for i, a in clean.items()
        }
        self.p = {i: 0 if a.C is None else a.C.shape[0] for i, a in clean.items()}
        self.r = {i: 0 if a.D is None else a.D.shape[0] for i, a in clean.items()}
        self.sense = senses("problem, sense", sense, self.m)
        self.z_lower = bound("problem, z_lower", z_lower, self.q, -np.inf)
        self.z_upper = bound("problem, z_upper", z_upper, self.q, np.inf)
        self.row_names = names("problem, row_names", row_names, self.m)
        self.z_names = names("problem, z_names", z_names, self.q)
        not_crossed("problem, z", self.z_lower, self.z_upper, self.z_names)
        common = any(given is not None for given in (self.sense, self.z_lower, self.z_upper))
        self.limited = common or any(agent.limited for agent in self.agents.values())

    @property
    def conic(self) -> bool:
        """Whether an agent held here has cones."""
        return any(agent.cones is not None for agent in self.agents.values())

    # -- looking at it ----------------------------------------------------------------------
    @property
    def complete(self) -> bool:
        """Whether all agents are here."""
        return len(self.agents) == self.n

    def blocks(self, name: str) -> list[Any]:
        """The blocks ``name`` of the agents held here, in agent order (None where absent)."""
        return [getattr(agent, name) for agent in self.agents.values()]

    def sides(self, name: str) -> list[Array]:
        """The right-hand sides b, c or e of the agents held here, zeros where absent."""
        sizes = {"b": dict.fromkeys(self.agents, self.m), "c": self.p, "e": self.r}[name]
        known = zip(self.blocks(name), (sizes[i] for i in self.agents), strict=True)
        return [np.zeros(size) if side is None else side for side, size in known]

    def who(self, i: int) -> str:
        """What agent ``i`` is called in messages."""
        return who(i, self.agents[i].name if i in self.agents else None)

    def holding(self, agents: Mapping[int, Agent], **changes: Any) -> Problem:
        """The same sizes, senses, names, bounds and families, unless changed, with other agents."""
        kept = ("n", "q", "m", "present", "sense", "z_lower", "z_upper", "row_names", "z_names")
        return Problem(agents, **{name: getattr(self, name) for name in kept} | changes)

    def restricted(self, agents: range) -> Problem:
        """The same problem holding only ``agents``."""
        return self.holding({i: self.agents[i] for i in agents})

    def reference_blocks(self, reference: Any) -> list[Array] | None:
        """x_i of a reference given in an order that only the problem knows; None if it is not."""
        return None

    def rebalanced(self) -> Problem:
        """The same problem where every agent has the mean of the B_i.

        A change of representation: at consensus only sum_i B_i acts, so the solutions are the same,
        but agents must be allowed to learn the sum. Of all redistributions this one has the least
        chi: with B_i = Bm + E_i, sum_i E_i = 0, the part of
        g(h) = (P_{Ker C_i} A_i' h, B_i' h)_i inside Range(K_2') has squared length

            sum_i ||E_i' h||^2 + n ||P_R Bm' h||^2,        R = Range(S_D),

        and the part outside does not contain the E_i. Without D it gives chi = 1.
        """
        if not self.complete:
            raise InputError(
                f"rebalancing: this process holds {len(self.agents)} of {self.n} agents; "
                "rebalance the whole problem, then restrict it"
            )
        total = block_sum(self.blocks("B"))
        if total is None:
            return self
        return self.holding({i: replace(a, B=total / self.n) for i, a in self.agents.items()})

    def save(self, directory: str | Path, *, replace: bool = False) -> None:
        """Write ``problem.yaml`` and one file per agent; no pickle.

        A directory that holds anything is refused unless ``replace`` is true.
        """
        from ccmac.storage import save_problem

        save_problem(self, folder("save", directory), replace=replace)

    @classmethod
    def load(cls, directory: str | Path, agents: range | None = None) -> Problem:
        """Read a directory written by :meth:`save`; only ``agents`` if given."""
        from ccmac.storage import load_problem

        return load_problem(folder("load", directory), agents)

    def plot(self, ax: Any = None) -> Any:
        """Draw who has which block; returns the axes."""
        return show.draw_problem(self, ax)

    def _repr_html_(self) -> str:
        return show.problem_html(self)

    def __repr__(self) -> str:
        held = "" if self.complete else f", holding {len(self.agents)}"
        present = "".join(k for k in MATRICES if any(b is not None for b in self.blocks(k)))
        return (
            f"Problem(n={self.n}{held}, q={self.q}, m={self.m}, "
            f"d={sum(self.d.values())}, blocks={present or 'none'}"
            f"{', limits' if self.limited else ''}{', cones' if self.conic else ''})"
        )


def _listed(
    agents: Sequence[Agent] | Mapping[int, Agent], n: int | None
) -> tuple[dict[int, Agent], int]:
    """The agents by number, and how many there are everywhere."""
    given = (
        agents
        if isinstance(agents, Mapping)
        else enumerate(several("problem, agents", agents, "a list of ccmac.Agent"))
    )
    listed = dict(given)
    if not listed:
        raise InputError("problem: there are no agents; give at least one ccmac.Agent")
    for i in listed:
        if not is_whole(i):
            raise InputError(f"agent {shown(i)}: agents are numbered 0, 1, ...; use such keys")
    total = max(listed) + 1 if n is None else whole("problem: n", n, 1)
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
    return listed, total


def block_sum(blocks: Iterable[Any]) -> Any:
    """The sum of the blocks that are not None, sparse when all are; None without any."""
    present = [b for b in blocks if b is not None]
    if not all(is_sparse(b) for b in present):
        present = [dense(b) for b in present]
    return sum(present[1:], present[0]) if present else None


# -- sizes of x_i, z and the coupled rows, from whatever says them ---------------------------------
def _agreed(claims: Iterable[tuple[str, int]], clash: str) -> int | None:
    """The size that all (who, size) say; ``clash`` is what a message says of two that differ."""
    found = None
    source = ""
    for where, size in claims:
        if found is not None and size != found:
            raise InputError(f"{where}: {clash.format(size, found, source)}")
        found = size
        source = where
    return found


def _claims(
    agents: Mapping[int, Agent], names: str, axis: int, size: str, given: int | None
) -> Iterator[tuple[str, int]]:
    """What was given, then the blocks ``names`` along ``axis``."""
    if given is not None:
        yield f"the problem's {size}", whole(f"problem: {size}", given)
    for i, agent in agents.items():
        for name in names:
            if (block := getattr(agent, name)) is not None:
                yield f"{who(i, agent.name)}, block {name}", block.shape[axis]


def shared_dimension(agents: Mapping[int, Agent], given: int | None, limits: int | None) -> int:
    """q, from any B_i or D_i, else from an objective (its z-part, or its size less that of x).

    ``limits`` is the number of bounds or names of z, if these say it.
    """
    implied = (
        (f"{who(i, agent.name)}, objective", size)
        for i, agent in agents.items()
        if (size := _implied_by_objective(i, agent)) is not None
    )
    clash = "fits z with {} entries but z has {} by {}; every agent shares one z"
    found = _agreed(chain(_claims(agents, "BDH", 1, "q", given), implied), clash)
    found = limits if found is None else found
    if found is None:
        raise InputError(
            "problem: the size of z is not known from B, D, H or the objectives; "
            "give a B_i (zero if need be) or pass q="
        )
    return found


def _implied_by_objective(i: int, agent: Agent) -> int | None:
    """The q that an agent's objective asks for, if it does."""
    objective = agent.objective
    x_block = next((b for b in (agent.A, agent.C, agent.G) if b is not None), None)
    if objective.z_size is not None:
        return objective.z_size
    if objective.dim is None or x_block is None:
        return None
    return _rest(i, agent, int(x_block.shape[1]), "x")


def _rest(i: int, agent: Agent, size: int, name: str) -> int:
    """What an objective's size leaves next to x or z."""
    rest = (agent.objective.dim or 0) - size
    if rest < 0:
        raise InputError(
            f"{who(i, agent.name)}, objective: acts on {agent.objective.dim} entries but {name} "
            f"alone has {size}; it must cover x and z"
        )
    return rest


def coupled_dimension(agents: Mapping[int, Agent], given: int | None, limits: int | None) -> int:
    """m, from any A_i, B_i or b_i, else from the number of senses or names."""
    clash = (
        "has {} rows but the coupled equation has {} by {}; "
        "A_i, B_i and b_i have one common row count"
    )
    found = _agreed(_claims(agents, "ABb", 0, "m", given), clash)
    return limits or 0 if found is None else found


def local_dimension(i: int, agent: Agent, q: int) -> int:
    """The length of x_i, from its blocks, its objective or its bounds."""
    clash = "has {} columns but x has {} entries by {}; all of them act on the same x"
    found = _agreed(_claims({i: agent}, "ACG", 1, "d", None), clash)
    if found is None:
        found = agent.objective.x_size
    if found is None and agent.objective.dim is None:
        return length_of(agent.lower, agent.upper) or 0
    return _rest(i, agent, q, "z") if found is None else found


def length_of(*vectors: Any) -> int | None:
    """The length of the first that is a vector or a list."""
    given = (as_array("problem", v) for v in vectors if v is not None)
    return next((len(v) for v in given if v.ndim == 1), None)
