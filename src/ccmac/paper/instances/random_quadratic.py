"""Random quadratic problems with every structural corner on a switch: feasible by construction, or
without a solution, one kind for each place where the contradiction can hide.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.objectives import Quadratic
from ccmac.paper.instances.reference import dense
from ccmac.problem import Agent, Problem
from ccmac.texts import nearest, shown

COUPLINGS = ("generic", "zero", "overlap")


def random_quadratic(
    seed: int,
    n: int = 4,
    *,
    d: int | tuple[int, int] = (3, 5),
    q: int = 4,
    m: int = 3,
    p: int = 1,
    r: int = 1,
    kappa_f: float = 10.0,
    rank_deficient: bool = False,
    absent: Collection[str] | float = (),
    B: str = "generic",
    sparse: bool = False,
) -> Problem:
    """f_i(u) = u'H_i u/2 - g_i'u with spectrum [1, kappa_f]; b, c, e are read off a random point.

    d               size of x_i, or the inclusive range it is drawn from
    p, r            rows of C_i and D_i; C_i has at most d_i - 1 rows, and all D_i share a row space
                    of dimension max(1, q // 2), so that the feasible set is more than one point
    rank_deficient  dependent rows inside the coupled equation, each C_i and each D_i
    absent          names out of "ABCD" dropped everywhere, or a probability of dropping each block
    B               how z enters the coupled equation: "generic", "zero" (chi = 1), or "overlap":
                    its last row lies in the row space of the D_i, K_1 and K_2 share a direction
    sparse          blocks as csr_array with about half of the entries
    """
    _check(n, q, m, kappa_f, B)
    random = np.random.default_rng(seed)
    low, high = (d, d) if isinstance(d, int) else d
    sizes = random.integers(low, high + 1, size=n)

    def drawn(rows: int, columns: int) -> Array:
        full = random.standard_normal((rows, columns)) / np.sqrt(max(columns, 1))
        kept = random.random(full.shape) < 0.5
        return np.where(kept, full, 0.0) if sparse else full

    coupled_mixing = _dependent(random, m) if rank_deficient else np.eye(m)
    shared_rows = drawn(max(1, q // 2), q)
    z = random.standard_normal(q)
    agents = []
    for i in range(n):
        d_i = int(sizes[i])
        x = random.standard_normal(d_i)
        rows = min(p, max(d_i - 1, 0))
        A = coupled_mixing @ drawn(m, d_i)
        B_i = coupled_mixing @ drawn(m, q) * (B != "zero")
        C = (_dependent(random, rows) if rank_deficient else np.eye(rows)) @ drawn(rows, d_i)
        D = random.standard_normal((r, len(shared_rows))) @ shared_rows
        if rank_deficient:
            D = _dependent(random, r) @ D
        if B == "overlap" and m and r:
            A[-1], B_i[-1] = 0.0, random.standard_normal(r) @ D
        blocks: dict[str, Any] = {"A": A, "B": B_i, "C": C, "D": D}
        for name in list(blocks):
            dropped = name in absent if isinstance(absent, Collection) else random.random() < absent
            if dropped:
                del blocks[name]
        sides: dict[str, Any] = dict(_sides(blocks, x, z, m))
        if sparse:
            blocks = {name: sp.csr_array(matrix) for name, matrix in blocks.items()}
        agents.append(Agent(_objective(random, d_i + q, kappa_f), **blocks, **sides))
    return Problem(_drifting(random, agents, m), n=n, q=q, m=m)


def _sides(blocks: dict[str, Any], x: Array, z: Array, m: int) -> dict[str, Array]:
    """b, c and e that (x, z) satisfies."""
    sides: dict[str, Array] = {"b": np.zeros(m)}
    for name, matrix in blocks.items():
        side = {"A": "b", "B": "b", "C": "c", "D": "e"}[name]
        sides[side] = sides.get(side, 0.0) + matrix @ (x if name in "AC" else z)
    return sides


def _drifting(random: np.random.Generator, agents: list[Agent], m: int) -> dict[int, Agent]:
    """Private b_i may be anything with the right sum; only the sum is known to be consistent."""
    drift = random.standard_normal((len(agents), m))
    drift -= drift.mean(axis=0)
    return {i: replace(agent, b=agent.b + drift[i]) for i, agent in enumerate(agents)}


def _objective(random: np.random.Generator, size: int, kappa_f: float) -> Quadratic:
    """Spectrum geometrically spaced in [1, kappa_f], random eigenvectors."""
    basis, _ = np.linalg.qr(random.standard_normal((size, size)))
    H = (basis * np.geomspace(1.0, kappa_f, size)) @ basis.T
    return Quadratic((H + H.T) / 2, random.standard_normal(size))


def _dependent(random: np.random.Generator, rows: int) -> Array:
    """A square matrix of rank rows - 1 (at least 1) and modest condition on its range."""
    if rows < 2:
        return np.eye(rows)
    basis, _ = np.linalg.qr(random.standard_normal((rows, rows)))
    values = np.ones(rows)
    values[-1] = 0.0
    return np.asarray((basis * values) @ basis.T)


def _check(n: int, q: int, m: int, kappa_f: float, B: str) -> None:
    if n < 1 or q < 1 or m < 0:
        raise InputError(
            f"random_quadratic: n = {n}, q = {q}, m = {m}; take n >= 1, q >= 1, m >= 0"
        )
    if not (np.isfinite(kappa_f) and kappa_f >= 1):
        raise InputError(f"random_quadratic: kappa_f = {kappa_f}; a condition number is >= 1")
    if B not in COUPLINGS:
        raise InputError(f"random_quadratic: B = {shown(B)} is unknown; {nearest(B, COUPLINGS)}")


Conflict = Literal["coupled", "local", "shared", "cross"]


def infeasible(seed: int, conflict: Conflict, n: int = 4, gap: float = 1.0) -> Problem:
    """A feasible random quadratic plus one equation that contradicts the others by ``gap``.

    coupled  a second coupled row with the left side of the first and another sum of b_i
    local    agent 0 repeats a row of C_0 with another value
    shared   the last agent repeats a row of D_0 with another value (with n = 1, agent 0 does)
    cross    a coupled row in z alone that contradicts D_0; each channel by itself is consistent
    """
    if conflict not in get_args(Conflict):
        known = ", ".join(get_args(Conflict))
        raise InputError(f"infeasible: unknown conflict {conflict!r}; take one of {known}")
    base = random_quadratic(seed, n)
    agents = dict(base.agents)
    first = agents[0]
    last = agents[n - 1]
    if conflict == "coupled":
        agents = {i: _repeat_coupled(a, gap if i == 0 else 0.0) for i, a in agents.items()}
    elif conflict == "local":
        agents[0] = replace(
            first, C=np.vstack([first.C, first.C[:1]]), c=np.append(first.c, first.c[0] + gap)
        )
    elif conflict == "shared":
        agents[n - 1] = replace(
            last, D=np.vstack([last.D, first.D[:1]]), e=np.append(last.e, first.e[0] + gap)
        )
    else:
        weights = 1.0 + np.arange(n)
        row = first.D[0]
        value = float(first.e[0])
        for i, agent in base.agents.items():
            A = np.vstack([dense(agent.A, (base.m, base.d[i])), np.zeros(base.d[i])])
            B = np.vstack([dense(agent.B, (base.m, base.q)), weights[i] * row])
            shift = weights[i] * value + (gap if i == 0 else 0.0)
            agents[i] = replace(agent, A=A, B=B, b=np.append(agent.b, shift))
    return Problem(agents, n=n)


def _repeat_coupled(agent: Agent, gap: float) -> Agent:
    return replace(
        agent,
        A=np.vstack([agent.A, agent.A[:1]]),
        B=np.vstack([agent.B, agent.B[:1]]),
        b=np.append(agent.b, agent.b[0] + gap),
    )
