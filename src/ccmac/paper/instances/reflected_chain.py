"""Reflected-chain families: hard for rounds or calls with a radius that does not grow with t.

All members but :func:`matching_path` take L = 1, mu = 1/kappa, kappa >= 100 and the chain of
N_c = 2 ceil(10/alpha) places. Smooth convex reading: with accuracy eps_cvx = mu R^2 / 24,
T_cvx = sqrt(24 kappa), a point accurate in objective and feasibility lies within R/2 of the
solution (Equation eq:cvxlf-nesting), so ``lower_bound(resource, 0.5)`` bounds the smooth-convex
cost too.

Bounds, derived before any run. Seed e_1 in the first group only; P_1 acts there, P_2 in the last
group, and each extends the support by at most one place, in turn. So place j needs
Delta (j - 1) rounds when the groups are Delta edges apart; for one agent with virtual blocks,
2 Delta (j - 1) affine calls, since K carries a block to its edges and K' an edge to its blocks.
At s = floor(1/(2 alpha)) the tail still holds a fraction 0.998/e of ||u*||^2 (Equation
eq:cvxlf-tail); the bounds below use the exact tail.
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.network import Network
from ccmac.objectives import Objective, Quadratic, Separable, SquaredDistance
from ccmac.paper.instances import chain as chains
from ccmac.paper.instances.base import Exposure, HardInstance, gradient_scale
from ccmac.paper.instances.chain import Chain, ReflectedChain
from ccmac.problem import Agent, Problem


def communication_path(M: int, t: float, kappa: float, *, eps: float = 1.0) -> HardInstance:
    """3M agents on a path, x_i = t R_1 u or t R_2 u in the outer groups.

    Equation eq:cvxlf-hardobj.

    c = L t^2, delta = 3/(kappa t^2), Delta = M + 1: T_j = (M+1)(j-1) rounds. chi = h + t with
    h = sqrt(1+t^2), R^2 = M (3 + t^2 E_c) <= M (3 + 4/kappa). Order M t sqrt(kappa) rounds at
    distance R/2. For M = 1, c_F is smaller by the factor
    (1 - (1 - cos(pi/N_c))/3)^{1/2}: one agent per group cannot cancel within its group.

    A smaller ``eps`` lengthens the chain, so that its tail bounds the rounds for a distance
    eps ||w*||, too (:func:`uniform_rounds`); the radius stays.
    """
    _check(M, t, kappa)
    network = Network.path(3 * M)
    return _linked(f"communication_path({M}, t={t:g})", M, t, kappa, network, M + 1, eps)


def uniform_rounds(M: int, t: float, kappa: float, eps: float) -> tuple[int, float]:
    """(rounds for ||w - w*|| <= eps ||w*||, R^2 / (3M)) of the lengthened communication_path.

    From the closed form of the chain; nothing of its length but u* is built. That the rounds are of
    order chi sqrt(kappa_W) sqrt(kappa) log(1/eps) while the radius is that of t = 1 is seen on a
    grid of parameters (docs/hard-families.md): evidence, not a proof.
    """
    _check(M, t, kappa)
    chain = _chain(3.0 / (kappa * t * t), eps)
    squared = M * (3.0 + t * t * chain.energy)
    least = eps * eps * squared / (3 * M)
    place = bisect_left(range(chain.length), True, key=lambda s: chain.tail(s) <= least)
    return Exposure(M + 1).needed(place), squared / (3 * M)


def complete_six(t: float, kappa: float) -> HardInstance:
    """:func:`communication_path` with M = 2 on the complete graph: kappa_W = 1, Delta = 1."""
    _check(2, t, kappa)
    return _linked(f"complete_six(t={t:g})", 2, t, kappa, Network.complete(6), 1)


def bounded_angle(M: int, kappa: float, *, complete: bool = False) -> HardInstance:
    """Consensus only, chi = 1: f_i carries ((L-mu)/2) <u, P_g u> in the outer groups.

    c = L - mu, delta = 3/(kappa - 1), R^2 = 3M. Path of 3M agents (Delta = M + 1) or, with
    ``complete`` and M = 2, the complete graph (Delta = 1). One gradient adds one place: T_j = j.
    """
    _check(M, 1.0, kappa)
    if complete and M != 2:
        raise InputError(f"bounded_angle: M = {M} on the complete graph; the family has M = 2")
    mu = 1.0 / kappa
    n = 3 * M
    chain = _chain(3.0 / (kappa - 1.0))
    beta = (1.0 - mu) * chain.seed
    parts = chains.consensus_objectives(chains.group_of(n, M), chain, mu)
    network = Network.complete(6) if complete else Network.path(n)
    facts = chains.chain_facts(chain, kappa, network.condition, math.sqrt(n), 0.0) | {"beta": beta}
    bound = 2 * math.sqrt(6 / (kappa - 1)) + math.sqrt(3) / kappa
    facts["multiplier_bound"] = bound / math.sqrt(3)
    return HardInstance(
        f"bounded_angle({M}{', complete' if complete else ''})",
        Problem([Agent(part) for part in parts], q=chain.length),
        network,
        [np.zeros(0)] * n,
        chain.solution,
        facts,
        np.arange(1, chain.length + 1),
        {"rounds": Exposure(1 if complete else M + 1), "gradients": Exposure(1, first=1)},
    )


def virtual_path(M: int, kappa: float) -> HardInstance:
    """One agent, 3M virtual blocks, matchings as channels (Equation eq:cvxlf-affinehard).

    chi = cot(pi/(6M)), Delta = M + 1: T_j = 2 (M+1)(j-1) affine calls, T_j = j gradients.
    """
    if M < 2:
        raise InputError(f"virtual_path: M = {M}; take M >= 2, or six_block for chi = 1")
    _check(M, 1.0, kappa)
    chain = _chain(3.0 / (kappa - 1.0))
    return block_path_instance(f"virtual_path({M})", 3 * M, M, kappa, chain, M + 1)


def six_block(kappa: float) -> HardInstance:
    """One agent, six blocks, one channel K_1 = (I - J) x I: chi = 1 and still T_j = 2(j-1) calls.

    I - J, the projector on disagreement, is the normalized form of every consensus channel on six
    blocks; it joins all blocks at once, so K and K' once each lead from any block to any other.
    """
    _check(2, 1.0, kappa)
    consensus = sp.csr_array(np.eye(6) - 1.0 / 6.0)
    chain = _chain(3.0 / (kappa - 1.0))
    return block_path_instance("six_block", 6, 2, kappa, chain, 1, channel=consensus)


def _linked(
    name: str, M: int, t: float, kappa: float, network: Network, distance: int, eps: float = 1.0
) -> HardInstance:
    L = 1.0
    mu = 1.0 / kappa
    n = 3 * M
    chain = _chain(3.0 / (kappa * t * t), eps)
    R1, R2 = chains.matchings(chain.length, grounded=False)
    R = {1: R1, 3: R2}
    groups = chains.group_of(n, M)
    beta = L * t * t * chain.seed
    # (mu/2)||u||^2 - beta u_1 is a squared distance to (beta/mu) e_1 up to a constant.
    centre = chains.unit(chain.length, beta / mu)
    objectives: list[Objective] = [
        Separable(
            x=None if g == 2 else SquaredDistance(L),
            z=SquaredDistance(mu, centre if g == 1 else None),
        )
        for g in groups
    ]
    u = chain.solution
    cosine = t / math.sqrt(1.0 + t * t)
    if M == 1:
        cosine *= math.sqrt(1.0 - (1.0 - math.cos(math.pi / chain.length)) / 3.0)
    radius = math.sqrt(M * (3.0 + t * t * chain.energy))
    facts = chains.chain_facts(chain, kappa, network.condition, radius, cosine)
    facts |= {"beta": beta, "sigma": math.sqrt(1.0 - cosine)}
    facts["multiplier_bound"] = (7.0 / math.sqrt(kappa) + 2.0 / kappa) / math.sqrt(3.0)
    return HardInstance(
        name,
        chains.linked_problem(groups, R, t, objectives, chain.length),
        network,
        [t * (R[g] @ u) if g in R else np.zeros(0) for g in groups],
        u,
        facts,
        np.arange(1, chain.length + 1),
        {"rounds": Exposure(distance)},
    )


def _chain(delta: float, eps: float = 1.0) -> ReflectedChain:
    """N_c = 2 ceil(10/alpha): 20 <= alpha N_c < 20.5 for alpha <= 1/4. Longer for small eps."""
    if not 0 < eps <= 1:
        raise InputError(f"reflected chain: eps = {eps}; a relative distance lies between 0 and 1")
    half = max(10.0, math.log(1.0 / eps))
    return ReflectedChain(delta, 2 * math.ceil(half / Chain(delta, 2).alpha))


def _check(M: int, t: float, kappa: float) -> None:
    if M < 1 or not t >= 1 or not kappa >= 100:
        raise InputError(
            f"reflected chain: M = {M}, t = {t}, kappa = {kappa}; "
            "take M >= 1, t >= 1, kappa >= 100 (alpha must stay below 1/4)"
        )


def matching_path(
    N: int, kappa_f: float, *, eps: float = 1e-6, length: int | None = None
) -> HardInstance:
    """One agent, z = N blocks, B_1 = M_odd x I and D_1 = M_even x I (Theorem thm:affine-lower).

    Edges of one parity share no vertex, so each channel has orthonormal rows; their union is half
    the path Laplacian: c_F = cos(pi/N), chi = cot(pi/2N). The first g = max(1, N // 3) blocks carry
    P_1 and the seed, the last g carry P_2, all carry (mu/2)||u||^2; on the feasible set this is a
    reflected chain with delta = N mu / (g (L - mu)), L = 1, mu = 1/kappa_f.

    Bound on calls, derived before any run. Only P_1 blocks extend an even support and only P_2
    blocks an odd one. The nearest such blocks are Delta = N - 2g + 1 edges apart. K carries a block
    to its edges and K' an edge to its two blocks, so an edge costs one K and one K': chain place j
    needs T_j = 2 Delta (j - 1) affine calls, gradients being free. Affine calls free, one gradient
    adds one place, the first included: T_j = j gradients. With the tail of the chain this gives
    the least number of calls for a distance eps (see ``ccmac.paper.instances.base``). Since
    alpha <= sqrt(2 delta), the bound on calls is of order sqrt(kappa_f) chi log(1/eps).

    ``length`` is the size of a block; by default the least for which cutting the infinite chain
    changes the solution by eps/1000.
    """
    if N < 4 or kappa_f < 4:
        raise InputError(f"matching_path: N = {N}, kappa_f = {kappa_f}; take N >= 4, kappa_f >= 4")
    size = max(1, N // 3)
    delta = N / (size * (kappa_f - 1.0))
    length = chains.sufficient_length(delta, eps) if length is None else length
    chain = ReflectedChain(delta, length)
    return block_path_instance(f"matching_path({N})", N, size, kappa_f, chain, N - 2 * size + 1)


def block_path_instance(
    name: str,
    blocks: int,
    size: int,
    kappa: float,
    chain: ReflectedChain,
    distance: int,
    *,
    channel: sp.csr_array | None = None,
) -> HardInstance:
    """A reflected chain spread over ``blocks`` copies in the z of a single agent.

    B_1 and D_1 are (matrix x I) of the matchings of the path of blocks, or of ``channel`` alone,
    with chi = 1; one idle local scalar costs mu x^2 / 2, so that x is not empty. ``distance`` is
    the number of K'K products that lead from a seed block to a P_2 block.
    """
    L = 1.0
    mu = 1.0 / kappa
    length = chain.length
    beta = (L - mu) * chain.seed
    parts = chains.consensus_objectives(chains.group_of(blocks, size), chain, mu)
    H = sp.csr_array(sp.block_diag([part.H for part in parts]))
    on_z = Quadratic(H, np.concatenate([part.g for part in parts]))
    channels = alternating_incidence(blocks) if channel is None else (channel, None)
    B, D = (None if K is None else sp.csr_array(sp.kron(K, sp.eye_array(length))) for K in channels)
    objective = Separable(x=SquaredDistance(mu, np.zeros(1)), z=on_z)
    problem = Problem([Agent(objective, B=B, D=D)])
    x = [np.zeros(1)]
    z = np.tile(chain.solution, blocks)
    radius = math.sqrt(blocks)
    cosine = math.cos(math.pi / blocks) if channel is None else 0.0
    facts = chains.chain_facts(chain, kappa, 1.0, radius, cosine) | {"beta": beta}
    facts["multiplier_bound"] = gradient_scale(problem, x, z, L, radius)
    return HardInstance(
        name,
        problem,
        Network.path(1),
        x,
        z,
        facts,
        np.tile(np.arange(1, chain.length + 1), blocks),
        {"affine": Exposure(2 * distance), "gradients": Exposure(1, first=1)},
    )


def alternating_incidence(blocks: int) -> tuple[sp.csr_array, sp.csr_array]:
    """(M_odd, M_even): rows (e_i - e_{i+1})/sqrt 2 of a path on ``blocks`` vertices, by parity.

    Lemma lem:path-matching.
    """
    step = sp.eye_array(blocks - 1, blocks) - sp.eye_array(blocks - 1, blocks, k=1)
    rows = sp.csr_array(np.sqrt(0.5) * step)
    return sp.csr_array(rows[0::2]), sp.csr_array(rows[1::2])
