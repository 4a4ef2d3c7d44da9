"""From a problem with inequalities and bounds to one with equations, and back.

    a'(x, z) <= b   ->  a'(x, z) + l s = b,  s >= 0       a'(x, z) >= b   ->  a'(x, z) - l s = b

l is a power of two, near the length of what the agent that keeps the slack has of the row: slacks
are of the size of x, whatever the units of a row. The slack s is one more entry of the x of an
agent that takes part in the row: of the agent itself for rows of C_i, of one that has entries in
the row for coupled rows. Rows D_i z <= e_i join the coupled rows, where x and z meet, with a slack
of agent i. Bounds and the signs of slacks go into the objective
(:class:`ccmac.objectives.Limited`). The solutions are the same, the user's multipliers are those
of the same rows, and a slack is never shown. Cost: one piggybacked reduction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.inputs import Array, is_sparse, rows_of, signs
from ccmac.linalg.blocks import has_entries, powers
from ccmac.objectives import Limited
from ccmac.problem import LIMITS, Agent, Problem
from ccmac.runtime.base import Runtime


# -- who keeps the slack of which row --------------------------------------------------------------
@dataclass(frozen=True)
class Layout:
    """Coupled inequality ``rows`` and the agent that has the slack of each; ``counts`` of D_i.

    The inequality rows of D_i become the coupled rows ``first[i]``, ..., ``first[i + 1] - 1``.
    """

    rows: NDArray[np.intp]
    keepers: NDArray[np.intp]
    first: NDArray[np.intp]

    @property
    def width(self) -> int:
        """All coupled rows of the reduced problem."""
        return int(self.first[-1])

    def kept(self, i: int) -> NDArray[np.intp]:
        """The coupled rows whose slack agent ``i`` has."""
        return np.asarray(self.rows[self.keepers == i], dtype=np.intp)

    def moved(self, i: int) -> NDArray[np.intp]:
        """The coupled rows that were D_i's."""
        return np.arange(self.first[i], self.first[i + 1])


def layout(problem: Problem, runtime: Runtime) -> Layout:
    """The slack of a row stays with the first agent whose x takes part in it, else whose z does.

    One averaging.
    """
    rows = rows_of(problem.sense, problem.m, equal=False)
    mine = [[float(_moved(a)), *_part(a, rows)] for a in problem.agents.values()]
    everybody = runtime.gather(np.array(mine))
    keepers = np.argmax(everybody[:, 1:], axis=0) if rows.size else np.zeros(0, dtype=np.intp)
    ends = problem.m + np.cumsum(everybody[:, 0]).astype(np.intp)
    return Layout(rows, keepers, np.concatenate([[problem.m], ends]).astype(np.intp))


def _moved(agent: Agent) -> int:
    return 0 if agent.D is None else len(rows_of(agent.D_sense, agent.D.shape[0], equal=False))


def _part(agent: Agent, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """2 where A_i has entries in a row, 1 where only B_i has, else 0."""
    found = np.zeros(len(rows))
    for block, weight in ((agent.B, 1.0), (agent.A, 2.0)):
        if block is None or not block.shape[1]:
            continue
        there: Any = np.ones(len(rows), dtype=bool)  # of an operator
        if is_sparse(block):
            there = (np.diff(block.indptr) > 0)[rows]
        elif isinstance(block, np.ndarray):
            there = block[rows].any(axis=1)
        found[there] = weight
    return found


@dataclass(frozen=True)
class Reduction:
    """``user`` is the problem as given, ``problem`` the one with equations (agents held here)."""

    user: Problem
    problem: Problem
    layout: Layout

    @classmethod
    def of(cls, user: Problem, runtime: Runtime) -> Reduction:
        """Of the agents owned here; every process must call it."""
        return cls._with(user, layout(user, runtime))

    def again(self, user: Problem) -> Reduction:
        """Of a problem with the same matrices and senses; no communication."""
        return self._with(user, self.layout)

    @classmethod
    def _with(cls, user: Problem, plan: Layout) -> Reduction:
        agents = {i: _reduced(user, i, plan) for i in user.agents}
        present = set(user.present) | ({"A"} if plan.rows.size else set())
        present |= {"A", "B"} if plan.width > user.m else set()
        problem = Problem(agents, n=user.n, q=user.q, m=plan.width, present=present)
        return cls(user, problem, plan)

    @property
    def slacks(self) -> int:
        """Slacks of the agents held here."""
        return sum(self.problem.d.values()) - sum(self.user.d.values())

    # -- points ------------------------------------------------------------------------------------
    def x(self, blocks: Sequence[Array]) -> list[Array]:
        """x_i without slacks."""
        sizes = self.user.d.values()
        return [np.array(v[:d]) for v, d in zip(blocks, sizes, strict=True)]

    def lifted(self, x: Sequence[Array], z: Array, runtime: Runtime) -> list[Array]:
        """x_i with the slacks that fit best; one averaging where coupled rows have slacks."""
        plan = self.layout
        user = self.user
        misfit = np.zeros(0)
        if plan.rows.size:
            sides = [
                coupled_misfit(agent, np.asarray(v), z, user.m)[plan.rows]
                for v, agent in zip(x, user.agents.values(), strict=True)
            ]
            misfit = user.n * runtime.average(np.stack(sides))[0]
        found = []
        for v, (i, agent) in zip(x, user.agents.items(), strict=True):
            room = [
                -_entries(user.sense, plan.kept(i)) * misfit[plan.keepers == i],
                _room(agent.C, agent.c, agent.C_sense, np.asarray(v)),
                _room(agent.D, agent.e, agent.D_sense, z),
            ]
            slack = np.concatenate(room) / np.abs(np.concatenate(_slack_entries(user, i, plan)))
            found.append(np.concatenate([v, np.maximum(slack, 0.0)]))
        return found

    # -- multipliers -------------------------------------------------------------------------------
    def shared(self, coupled: Array, shared: Sequence[Array]) -> list[Array]:
        """The multipliers of D_i's rows, from the coupled ones and those of its equations."""
        found = []
        for rows, (i, agent) in zip(shared, self.user.agents.items(), strict=True):
            whole = np.zeros(self.user.r[i])
            whole[rows_of(agent.D_sense, len(whole), equal=True)] = rows
            whole[rows_of(agent.D_sense, len(whole), equal=False)] = coupled[self.layout.moved(i)]
            found.append(whole)
        return found

    def lifted_multipliers(
        self, coupled: Array, shared: Sequence[Array], runtime: Runtime
    ) -> Array:
        """The multipliers of all coupled rows; one averaging where D had inequalities."""
        found = np.zeros(self.layout.width)
        found[: self.user.m] = coupled
        if self.layout.width == self.user.m:
            return found
        rows = np.zeros((len(self.user.agents), self.layout.width))
        for k, (i, agent) in enumerate(self.user.agents.items()):
            unequal = rows_of(agent.D_sense, self.user.r[i], equal=False)
            rows[k, self.layout.moved(i)] = shared[k][unequal]
        found[self.user.m :] = self.user.n * runtime.average(rows[:, self.user.m :])[0]
        return found

    def equations(self, shared: Sequence[Array]) -> list[Array]:
        """The multipliers of those rows of D_i that stayed."""
        agents = self.user.agents.values()
        return [
            v[rows_of(agent.D_sense, len(v), equal=True)]
            for v, agent in zip(shared, agents, strict=True)
        ]


def coupled_misfit(agent: Agent, x: Array, z: Array, m: int) -> Array:
    """A_i x + B_i z - b_i."""
    out = np.zeros(m) if agent.b is None else -agent.b
    for block, v in ((agent.A, x), (agent.B, z)):
        if block is not None:
            out = out + block @ v
    return out


def _room(block: Any, right: Any, sense: Any, v: Array) -> Array:
    """How far inequality rows are from being violated."""
    if block is None or sense is None:
        return np.zeros(0)
    rows = rows_of(sense, len(sense), equal=False)
    side = np.zeros(len(sense)) if right is None else right
    return np.asarray(signs(sense)[rows] * (side - block @ v)[rows])


# -- one agent's blocks ----------------------------------------------------------------------------
def _reduced(user: Problem, i: int, plan: Layout) -> Agent:
    agent = user.agents[i]
    d = user.d[i]
    kept = plan.kept(i)
    moved = plan.moved(i)
    C_rows = rows_of(agent.C_sense, user.p[i], equal=False)
    D_rows = rows_of(agent.D_sense, user.r[i], equal=False)
    wide = d + len(kept) + len(C_rows) + len(D_rows)
    changes: dict[str, Any] = dict.fromkeys(LIMITS)
    if wide > d or plan.width > user.m:
        _refuse_operators(user, i, wide - d, plan)
        on_kept, on_C, on_D = _slack_entries(user, i, plan)
        places = np.split(np.arange(d, wide), np.cumsum([len(kept), len(C_rows)]))
        rows = np.concatenate([kept, moved])
        at = np.concatenate([places[0], places[2]])
        slacks = _entered(rows, at, np.append(on_kept, on_D))
        changes["A"] = _placed((plan.width, wide), agent.A, slacks)
        if plan.width > user.m:
            lifted = None
            if len(D_rows):
                D = sp.coo_array(agent.D[D_rows])
                lifted = _entered(moved[D.row], D.col, D.data)
            changes["B"] = _placed((plan.width, user.q), agent.B, lifted, like=agent.D)
        side = np.zeros(plan.width)
        side[: user.m] = 0.0 if agent.b is None else agent.b
        side[moved] = 0.0 if agent.e is None else agent.e[D_rows]
        changes["b"] = side
        if wide > d and agent.C is not None:
            slacks = _entered(C_rows, places[1], on_C)
            changes["C"] = _placed((user.p[i], wide), agent.C, slacks)
        if wide > d and agent.G is not None:
            changes["G"] = _placed((agent.G.shape[0], wide), agent.G)
    if len(D_rows):
        stay = rows_of(agent.D_sense, user.r[i], equal=True)
        changes["D"] = agent.D[stay] if len(stay) else None
        changes["e"] = None if agent.e is None or not len(stay) else agent.e[stay]
    return replace(agent, objective=_limited(user, i, wide - d), **changes)


def _limited(user: Problem, i: int, slacks: int) -> Any:
    agent = user.agents[i]
    free = np.full(user.d[i], np.inf)
    z_free = np.full(user.q, np.inf)
    lower = [
        -free if agent.lower is None else agent.lower,
        np.zeros(slacks),
        -z_free if user.z_lower is None else user.z_lower,
    ]
    upper = [
        free if agent.upper is None else agent.upper,
        np.full(slacks, np.inf),
        z_free if user.z_upper is None else user.z_upper,
    ]
    limited = Limited(agent.objective, np.concatenate(lower), np.concatenate(upper), slacks, user.q)
    return agent.objective if limited.free and not slacks else limited


def _slack_entries(user: Problem, i: int, plan: Layout) -> list[Array]:
    """An agent's l with its sign: in the coupled rows whose slack it keeps, in C_i's, in D_i's."""
    agent = user.agents[i]
    C_rows = rows_of(agent.C_sense, user.p[i], equal=False)
    D_rows = rows_of(agent.D_sense, user.r[i], equal=False)
    return [
        _entries(user.sense, plan.kept(i), agent.A, agent.B),
        _entries(agent.C_sense, C_rows, agent.C),
        _entries(agent.D_sense, D_rows, agent.D),
    ]


def _entries(sense: Any, rows: Any, *blocks: Any) -> Array:
    """Signs of inequality rows, times a power of two near the length that the blocks have there."""
    if sense is None:
        return np.zeros(0)
    squares = np.zeros(len(rows))
    for block in blocks:
        if block is not None and has_entries(block):
            own = block[rows]
            squares += np.asarray((own.multiply(own) if is_sparse(own) else own * own).sum(axis=1))
    return np.asarray(signs(sense)[rows] / powers(np.sqrt(squares)))


def _entered(rows: Any, columns: Any, entries: Array) -> sp.coo_array | None:
    """A matrix with these entries; None without any."""
    return sp.coo_array((entries, (rows, columns))) if len(entries) else None


def _placed(shape: tuple[int, int], *blocks: Any, like: Any = None) -> Any:
    """The blocks in the corner of a larger one, which is dense where the first one is.

    Without a first one it is as ``like``, a sparse one where there is none of these either.
    """
    parts = [sp.coo_array(block) for block in blocks if block is not None]
    if not parts:
        return None
    whole = sp.csr_array(
        (
            np.concatenate([part.data for part in parts]),
            tuple(np.concatenate([part.coords[k] for part in parts]) for k in range(2)),
        ),
        shape=shape,
    )
    first = like if blocks[0] is None else blocks[0]
    return whole.toarray() if isinstance(first, np.ndarray) else whole


def _refuse_operators(user: Problem, i: int, slacks: int, plan: Layout) -> None:
    """Rows and columns are added to what has entries."""
    agent = user.agents[i]
    touched = {"A": True, "B": plan.width > user.m, "C": slacks > 0, "D": plan.width > user.m}
    for name, there in touched.items():
        block = getattr(agent, name)
        if there and block is not None and not (is_sparse(block) or isinstance(block, np.ndarray)):
            raise InputError(
                f"{user.who(i)}, block {name}: is an operator, and inequality rows need a slack "
                "next to its columns; give its matrix, dense or sparse"
            )
