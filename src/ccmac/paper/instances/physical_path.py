"""Three groups on a physical path: the radius-explicit hard family for neighbor rounds."""

from __future__ import annotations

import math

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.network import Network
from ccmac.objectives import Objective, Separable, SquaredDistance
from ccmac.paper.instances import chain as chains
from ccmac.paper.instances.base import Exposure, HardInstance, gradient_scale
from ccmac.paper.instances.chain import GroundedChain


def physical_path(
    m_grp: int, t: float, kappa_f: float, dimension: int | None = None, *, eps: float = 1e-6
) -> HardInstance:
    """3 m_grp agents on a path, x_i = t R_1 u (first group) or t R_2 u (last).

    Theorem thm:comm-lower.

    Objectives: (L/2)||x_i - xi e_1||^2 in the first group, (L/2)||x_i||^2 in the last, and
    (mu/2)||u||^2 everywhere; L = 1, mu = 1/kappa_f. On the feasible set this is m_grp L t^2 times a
    grounded chain with delta = 3/(kappa_f t^2).

    Bound on rounds, derived before any run. The seed lives in the first group; P_1 (there) extends
    an even support by one, P_2 (last group) an odd one; everything local is free. The groups are
    m_grp + 1 edges apart and a round crosses one edge, so place j needs T_j = (m_grp + 1)(j - 1)
    rounds. The tail of the chain turns this into a bound for a relative distance eps
    (``lower_bound``); with the uncut chain it is Equation eq:target-comm-lb
    (``radius_explicit_rounds``).

    ``dimension``: coordinates kept of the infinite chain, by default the least for which the cut
    moves the solution by eps/1000.

    c_F = t/sqrt(1+t^2) needs two agents in an outer group with opposite coefficients. For m_grp = 1
    the best that two groups can do is to cancel across R_1 and R_2, so
    c_F^2 = t^2/(1+t^2) (1 - (1 - cos(pi/(2 dimension)))/3), which is slightly smaller.
    """
    _check(m_grp, t, kappa_f)
    L = 1.0
    mu = 1.0 / kappa_f
    n = 3 * m_grp
    delta = 3.0 / (kappa_f * t * t)
    chain = GroundedChain(
        delta, chains.sufficient_length(delta, eps) if dimension is None else dimension
    )
    R1, R2 = chains.matchings(chain.length, grounded=True)
    groups = chains.group_of(n, m_grp)
    xi = t * chain.seed
    centre = chains.unit(R1.shape[0], xi)
    x_parts = {1: SquaredDistance(L, centre), 2: None, 3: SquaredDistance(L)}
    objectives: list[Objective] = [Separable(x=x_parts[g], z=SquaredDistance(mu)) for g in groups]
    R = {1: R1, 3: R2}
    z = chain.solution
    problem = chains.linked_problem(groups, R, t, objectives, len(z))
    x = [t * (R[g] @ chain.solution) if g in R else np.zeros(0) for g in groups]
    facts = _facts(chain, m_grp, t, kappa_f, z) | {"xi": xi}
    facts["multiplier_bound"] = gradient_scale(problem, x, z, L, facts["radius"])
    return HardInstance(
        f"physical_path({m_grp}, t={t:g})",
        problem,
        Network.path(n),
        x,
        z,
        facts,
        np.arange(1, chain.length + 1),
        {"rounds": Exposure(m_grp + 1)},
    )


def _facts(
    chain: GroundedChain, m_grp: int, t: float, kappa_f: float, z: Array
) -> dict[str, float]:
    radius = math.sqrt(m_grp * (3.0 * float(z @ z) + t * t * chain.energy))
    cosine = t / math.sqrt(1.0 + t * t)
    if m_grp == 1:
        cosine *= math.sqrt(1.0 - (1.0 - math.cos(math.pi / (2 * chain.length))) / 3.0)
    kappa_W = 1.0 / math.tan(math.pi / (6 * m_grp)) ** 2
    facts = chains.chain_facts(chain, kappa_f, kappa_W, radius, cosine)
    return facts | {"truncation_error": chain.truncation_error}


def radius_explicit_rounds(m_grp: int, t: float, kappa_f: float, eps: float) -> float:
    """(m_grp+1) [ log( sqrt(3/(3 + t^2 E_I)) / eps ) / (-log r) - 1 ]_+.

    Equation eq:target-comm-lb.

    For the uncut chain without the appended block; eps is relative to the full radius, and
    E_I = (1 - r)(3 + r)/2.
    """
    _check(m_grp, t, kappa_f)
    chain = GroundedChain(3.0 / (kappa_f * t * t), 2)
    energy = chain.a * (3.0 + chain.r) / 2.0
    places = math.log(math.sqrt(3.0 / (3.0 + t * t * energy)) / eps) / chain.alpha
    return (m_grp + 1) * max(0.0, places - 1.0)


def _check(m_grp: int, t: float, kappa_f: float) -> None:
    if m_grp < 1 or not t > 0 or not kappa_f > 1:
        raise InputError(
            f"physical_path: m_grp = {m_grp}, t = {t}, kappa_f = {kappa_f}; "
            "take m_grp >= 1, t > 0, kappa_f > 1"
        )
