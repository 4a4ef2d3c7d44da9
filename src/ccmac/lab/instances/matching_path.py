"""Alternating matchings on a virtual path: the hard family for affine calls and gradients."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.lab.instances.base import Exposure, HardInstance, gradient_scale
from ccmac.lab.instances.chain import ReflectedChain, sufficient_length
from ccmac.lab.instances.layout import (
    alternating_incidence,
    block_path_problem,
    chain_facts,
    group_of,
    projectors,
)  # fmt: skip
from ccmac.network import Network


def matching_path(
    N: int, kappa_f: float, *, eps: float = 1e-6, length: int | None = None
) -> HardInstance:
    """One agent, z = N blocks, B_1 = M_odd x I and D_1 = M_even x I (thm:affine-lower).

    Edges of one parity share no vertex, so each channel has orthonormal rows; their union is half
    the path Laplacian: c_F = cos(pi/N), chi = cot(pi/2N). The first g = max(1, N // 3) blocks carry
    P_1 and the seed, the last g carry P_2, all carry (mu/2)||u||^2; on the feasible set this is a
    reflected chain with delta = N mu / (g (L - mu)), L = 1, mu = 1/kappa_f.

    Bound on calls, derived before any run. Only P_1 blocks extend an even support and only P_2
    blocks an odd one. The nearest such blocks are Delta = N - 2g + 1 edges apart. K carries a block
    to its edges and K' an edge to its two blocks, so an edge costs one K and one K': chain place j
    needs T_j = 2 Delta (j - 1) affine calls, gradients being free. Affine calls free, one gradient
    adds one place, the first included: T_j = j gradients. With the tail of the chain this gives
    the least number of calls for a distance eps (see ``ccmac.lab.instances.base``). Since
    alpha <= sqrt(2 delta), the bound on calls is of order sqrt(kappa_f) chi log(1/eps).

    ``length`` is the size of a block; by default the least for which cutting the infinite chain
    changes the solution by eps/1000.
    """
    if N < 4 or kappa_f < 4:
        raise InputError(f"matching_path: N = {N}, kappa_f = {kappa_f}; take N >= 4, kappa_f >= 4")
    size = max(1, N // 3)
    delta = N / (size * (kappa_f - 1.0))
    chain = ReflectedChain(delta, sufficient_length(delta, eps) if length is None else length)
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

    The channels are the matchings of the path of blocks, or ``channel`` alone, with chi = 1.
    ``distance`` is the number of K'K products that lead from a seed block to a P_2 block.
    """
    L, mu = 1.0, 1.0 / kappa
    beta = (L - mu) * chain.seed
    channels = alternating_incidence(blocks) if channel is None else (channel, None)
    problem = block_path_problem(
        group_of(blocks, size), projectors(chain.length), L=L, mu=mu, beta=beta, channels=channels
    )
    x, z = [np.zeros(1)], np.tile(chain.solution, blocks)
    radius = math.sqrt(blocks)
    cosine, factor = math.cos(math.pi / blocks), 1.0 / math.tan(math.pi / (2 * blocks))
    if channel is not None:
        cosine, factor = 0.0, 1.0
    facts = chain_facts(chain, kappa, 1.0, radius) | {
        "friedrichs_cosine": cosine, "cross_factor": factor, "beta": beta,
        "multiplier_bound": gradient_scale(problem, x, z, L, radius),
    }  # fmt: skip
    return HardInstance(
        name, problem, Network.path(1), x, z, facts,
        np.tile(np.arange(1, chain.length + 1), blocks),
        {"affine": Exposure(2 * distance), "gradients": Exposure(1, first=1)},
    )  # fmt: skip
