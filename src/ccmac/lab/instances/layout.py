"""Builders shared by the hard families: linked groups on a graph, blocks on a virtual path."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from ccmac.angles.principal import cross_factor
from ccmac.inputs import Array
from ccmac.lab.instances.chain import GroundedChain, ReflectedChain, matchings
from ccmac.objectives import Objective, Quadratic, Separable, SquaredDistance
from ccmac.problem import Agent, Problem


def group_of(n: int, size: int) -> list[int]:
    """1 for the first ``size`` agents, 3 for the last ``size``, 2 between them."""
    return [1 if i < size else 3 if i >= n - size else 2 for i in range(n)]


def unit(length: int, value: float = 1.0) -> Array:
    """value * e_1."""
    e = np.zeros(length)
    e[0] = value
    return e


def projectors(length: int) -> dict[int, sp.csr_array]:
    """P_1 = R_1'R_1 for group 1 and P_2 = R_2'R_2 for group 3, of the chain without ground."""
    R1, R2 = matchings(length, grounded=False)
    return {1: sp.csr_array(R1.T @ R1), 3: sp.csr_array(R2.T @ R2)}


def chain_facts(
    chain: ReflectedChain | GroundedChain, kappa_f: float, kappa_W: float, radius: float
) -> dict[str, float]:
    """What all families say of their chain."""
    return {
        "kappa_f": kappa_f, "kappa_W": kappa_W, "radius": radius, "alpha": chain.alpha,
        "rate": chain.r, "energy": chain.energy,
    }  # fmt: skip


def angle_facts(cosine: float) -> dict[str, float]:
    """The Friedrichs cosine and the cross factor that follows from it."""
    factor = cross_factor(cosine)
    return {"friedrichs_cosine": cosine, "cross_factor": factor}


def linked_problem(
    groups: Sequence[int],
    R: dict[int, sp.csr_array],
    t: float,
    objectives: Sequence[Objective],
    q: int,
) -> Problem:
    """x_i = t R_g(i) u for the outer groups, as one coupled equation with A_i = J_i (eq. hard-A-B).

    J_i puts agent i's rows into their own slot of R^m, so the sum over agents is a list of local
    links. u is the leading part of z; agents of group 2 own no x.
    """
    rows = [R[g].shape[0] if g in R else 0 for g in groups]
    starts = np.concatenate([[0], np.cumsum(rows)])
    m = int(starts[-1])
    agents = []
    for i, g in enumerate(groups):
        if g not in R:
            agents.append(Agent(objectives[i]))
            continue
        at = np.arange(rows[i])
        J = sp.csr_array((np.ones(rows[i]), (starts[i] + at, at)), shape=(m, rows[i]))
        link = sp.hstack([R[g], sp.csr_array((rows[i], q - R[g].shape[1]))])
        agents.append(Agent(objectives[i], A=J, B=sp.csr_array(-t * (J @ link)), b=np.zeros(m)))
    return Problem(agents, q=q, m=m)


def consensus_objectives(
    groups: Sequence[int], P: dict[int, sp.csr_array], L: float, mu: float, beta: float
) -> list[Quadratic]:
    """(mu/2)||u||^2 + ((L - mu)/2) <u, P_g u>, minus beta u_1 in group 1; no P in group 2."""
    length = P[1].shape[0]
    flat = sp.csr_array(sp.diags_array(np.full(length, mu)))
    curved = {g: sp.csr_array(flat + (L - mu) * P[g]) for g in P}
    return [Quadratic(curved.get(g, flat), unit(length, beta if g == 1 else 0.0)) for g in groups]


def block_path_problem(
    groups: Sequence[int],
    P: dict[int, sp.csr_array],
    *,
    L: float,
    mu: float,
    beta: float,
    channels: tuple[sp.csr_array, sp.csr_array | None],
) -> Problem:
    """One agent whose z stacks a copy of u per block; the channels act as (matrix x I) on it.

    B_1 = channels[0] x I, D_1 = channels[1] x I, zero right-hand sides, and one idle local scalar
    with cost mu x^2 / 2 so that x is not empty.
    """
    length = P[1].shape[0]
    blocks = len(groups)
    H = sp.kron(sp.eye_array(blocks), mu * sp.eye_array(length))
    for g, P_g in P.items():
        chosen = sp.diags_array(np.array([float(h == g) for h in groups]))
        H = H + (L - mu) * sp.kron(chosen, P_g)
    linear = np.concatenate([unit(length, beta if g == 1 else 0.0) for g in groups])
    objective = Separable(x=SquaredDistance(mu, np.zeros(1)), z=Quadratic(sp.csr_array(H), linear))
    B, D = (None if K is None else sp.csr_array(sp.kron(K, sp.eye_array(length))) for K in channels)
    return Problem([Agent(objective, B=B, D=D)])


def alternating_incidence(blocks: int) -> tuple[sp.csr_array, sp.csr_array]:
    """(M_odd, M_even): rows (e_i - e_{i+1})/sqrt 2 of a path on ``blocks`` vertices, by parity."""
    step = sp.eye_array(blocks - 1, blocks) - sp.eye_array(blocks - 1, blocks, k=1)
    rows = sp.csr_array(np.sqrt(0.5) * step)
    return sp.csr_array(rows[0::2]), sp.csr_array(rows[1::2])
