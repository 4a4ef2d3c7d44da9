"""Three groups on a physical path: the radius-explicit hard family for neighbor rounds."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from ccmac.angles.principal import cross_factor
from ccmac.errors import InputError
from ccmac.lab.instances.base import Exposure, HardInstance, gradient_scale
from ccmac.lab.instances.chain import GroundedChain, ReflectedChain, matchings, sufficient_length
from ccmac.lab.instances.layout import consensus_objectives, group_of, linked_problem, unit
from ccmac.network import Network
from ccmac.objectives import Objective, Quadratic, Separable, SquaredDistance


def physical_path(
    m_grp: int,
    t: float,
    kappa_f: float,
    dimension: int | None = None,
    *,
    eps: float = 1e-6,
    consensus_block: bool | None = None,
) -> HardInstance:
    """3 m_grp agents on a path, x_i = t R_1 u (first group) or t R_2 u (last) (thm:comm-lower).

    Objectives: (L/2)||x_i - xi e_1||^2 in the first group, (L/2)||x_i||^2 in the last, and
    (mu/2)||u||^2 everywhere; L = 1, mu = 1/kappa_f. On the feasible set this is m_grp L t^2 times a
    grounded chain with delta = 3/(kappa_f t^2).

    Bound on rounds, derived before any run. The seed lives in the first group; P_1 (there) extends
    an even support by one, P_2 (last group) an odd one; everything local is free. The groups are
    m_grp + 1 edges apart and a round crosses one edge, so place j needs T_j = (m_grp + 1)(j - 1)
    rounds. The tail of the chain turns this into a bound for a relative distance eps
    (``lower_bound``); with the uncut chain it is eq. target-comm-lb (``radius_explicit_rounds``).

    ``dimension``: coordinates kept of the infinite chain, by default the least for which the cut
    moves the solution by eps/1000. ``consensus_block`` (by default for t < 1) appends to z an
    independent reflected chain with delta = 3/(kappa_f - 1) that only consensus connects: same
    angle, same frontier, and rounds of order m_grp sqrt(kappa_f) however small t is.

    c_F = t/sqrt(1+t^2) needs two agents in an outer group with opposite coefficients. For m_grp = 1
    the best that two groups can do is to cancel across R_1 and R_2, so
    c_F^2 = t^2/(1+t^2) (1 - (1 - cos(pi/(2 dimension)))/3), which is slightly smaller.
    """
    _check(m_grp, t, kappa_f)
    L, mu, n = 1.0, 1.0 / kappa_f, 3 * m_grp
    delta = 3.0 / (kappa_f * t * t)
    chain = GroundedChain(delta, sufficient_length(delta, eps) if dimension is None else dimension)
    R1, R2 = matchings(chain.length, grounded=True)
    groups = group_of(n, m_grp)
    xi = t * chain.seed
    blocks = [chain.solution]
    z_parts: list[Quadratic] | list[SquaredDistance] = [SquaredDistance(mu)] * n
    if consensus_block if consensus_block is not None else t < 1:
        flat_delta = 3.0 / (kappa_f - 1.0)
        second = ReflectedChain(flat_delta, sufficient_length(flat_delta, eps))
        z_parts = _with_block(groups, chain.length, second, L, mu)
        blocks.append(second.solution)
    objectives: list[Objective] = [
        Separable(
            x=None if g == 2 else SquaredDistance(L, unit(R1.shape[0], xi) if g == 1 else None),
            z=z_parts[i],
        )
        for i, g in enumerate(groups)
    ]
    R = {1: R1, 3: R2}
    z = np.concatenate(blocks)
    problem = linked_problem(groups, R, t, objectives, len(z))
    x = [t * (R[g] @ chain.solution) if g in R else np.zeros(0) for g in groups]
    radius_squared = m_grp * (3.0 * float(z @ z) + t * t * chain.energy)
    cosine = t / math.sqrt(1.0 + t * t)
    if m_grp == 1:
        cosine *= math.sqrt(1.0 - (1.0 - math.cos(math.pi / (2 * chain.length))) / 3.0)
    facts = {
        "friedrichs_cosine": cosine,
        "cross_factor": cross_factor(cosine),
        "kappa_f": kappa_f,
        "kappa_W": 1.0 / math.tan(math.pi / (2 * n)) ** 2,
        "radius": math.sqrt(radius_squared),
        "alpha": chain.alpha,
        "rate": chain.r,
        "energy": chain.energy,
        "xi": xi,
        "truncation_error": chain.truncation_error,
        "multiplier_bound": gradient_scale(problem, x, z, L, math.sqrt(radius_squared)),
    }
    return HardInstance(
        f"physical_path({m_grp}, t={t:g})",
        problem,
        Network.path(n),
        x,
        z,
        facts,
        np.concatenate([np.arange(1, len(part) + 1) for part in blocks]),
        {"rounds": Exposure(m_grp + 1)},
    )


def radius_explicit_rounds(m_grp: int, t: float, kappa_f: float, eps: float) -> float:
    """(m_grp+1) [ log( sqrt(3/(3 + t^2 E_I)) / eps ) / (-log r) - 1 ]_+  (eq. target-comm-lb).

    For the uncut chain without the appended block; eps is relative to the full radius, and
    E_I = (1 - r)(3 + r)/2.
    """
    _check(m_grp, t, kappa_f)
    chain = GroundedChain(3.0 / (kappa_f * t * t), 2)
    energy = chain.a * (3.0 + chain.r) / 2.0
    places = math.log(math.sqrt(3.0 / (3.0 + t * t * energy)) / eps) / chain.alpha
    return (m_grp + 1) * max(0.0, places - 1.0)


def _with_block(
    groups: list[int], length: int, chain: ReflectedChain, L: float, mu: float
) -> list[Quadratic]:
    """(mu/2)||u||^2 on the first chain plus the consensus chain's objective on the second."""
    R1, R2 = matchings(chain.length, grounded=False)
    P = {1: sp.csr_array(R1.T @ R1), 3: sp.csr_array(R2.T @ R2)}
    head = mu * sp.eye_array(length)
    return [
        Quadratic(
            sp.csr_array(sp.block_diag([head, part.H])), np.concatenate([np.zeros(length), part.g])
        )
        for part in consensus_objectives(groups, P, L, mu, (L - mu) * chain.seed)
    ]


def _check(m_grp: int, t: float, kappa_f: float) -> None:
    if m_grp < 1 or not t > 0 or not kappa_f > 1:
        raise InputError(
            f"physical_path: m_grp = {m_grp}, t = {t}, kappa_f = {kappa_f}; "
            "take m_grp >= 1, t > 0, kappa_f > 1"
        )
