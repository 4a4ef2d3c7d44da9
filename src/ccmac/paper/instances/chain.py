"""The two one-dimensional chains behind the hard families, and how problems are laid out on them.

With edge matchings R_1, R_2 (orthonormal rows) and P_j = R_j'R_j, P_1 + P_2 is tridiagonal: P_1
alone or P_2 alone extends a support {1..s} by one coordinate at most, and never twice in a row.
Groups of agents on a graph, or blocks on a virtual path, hold the two parts apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from ccmac.angles.principal import cross_factor
from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.objectives import Objective, Quadratic
from ccmac.problem import Agent, Problem


def matchings(length: int, grounded: bool) -> tuple[sp.csr_array, sp.csr_array]:
    """(R_1, R_2): R_2 pairs (1,2), (3,4), ...; R_1 pairs (2,3), (4,5), ...

    ``grounded`` puts the row u_1 on top of R_1 (eqs R1-def, R2-def); without it P_1 + P_2 is half
    the path Laplacian (Equation eq:cvxlf-matchings).
    """
    even = _pairs(range(1, length - 1, 2), length)
    if grounded:
        seed = sp.csr_array(([1.0], ([0], [0])), shape=(1, length))
        even = sp.csr_array(sp.vstack([seed, even]))
    return even, _pairs(range(0, length - 1, 2), length)


def _pairs(starts: range, length: int) -> sp.csr_array:
    k = len(starts)
    rows = np.repeat(np.arange(k), 2)
    columns = np.array([[j, j + 1] for j in starts], dtype=np.int64).ravel()
    values = np.tile([math.sqrt(0.5), -math.sqrt(0.5)], k)
    return sp.csr_array((values, (rows, columns)), shape=(k, length))


@dataclass(frozen=True)
class Chain:
    """delta > 0 and a length; alpha = arcosh(1 + delta), r = exp(-alpha)."""

    delta: float
    length: int

    def __post_init__(self) -> None:
        if not (math.isfinite(self.delta) and self.delta > 0 and self.length >= 2):
            raise InputError(
                f"chain: delta = {self.delta}, length = {self.length}; "
                "take delta > 0 and at least two coordinates"
            )

    @property
    def alpha(self) -> float:
        """arcosh(1 + delta) without cancellation for small delta."""
        return math.log1p(self.delta + math.sqrt(self.delta * (2.0 + self.delta)))

    @property
    def r(self) -> float:
        """Decay from one coordinate to the next."""
        return math.exp(-self.alpha)

    @property
    def a(self) -> float:
        """1 - r."""
        return -math.expm1(-self.alpha)

    @cached_property
    def profile(self) -> Array:
        """v_j = r^{j-1} + r^{2 length - j}; the mirror image makes the last equation exact."""
        j = np.arange(1, self.length + 1)
        mirrored = np.exp(-self.alpha * (2 * self.length - j))
        return np.asarray(np.exp(-self.alpha * (j - 1)) + mirrored)


class ReflectedChain(Chain):
    """u* minimises (delta/2)||u||^2 + <u, P_path u>/2 - seed u_1 with P_path = L_path / 2.

    u* = Z v with ||u*|| = 1 and seed = Z a (1 - rho)/(2 r), rho = r^{2 length} (eqs
    cvxlf-reflected, cvxlf-chain, divided by c). Exact at every length >= 2.
    """

    @property
    def normalization(self) -> float:
        """Z = (sum_j v_j^2)^{-1/2}, from the geometric sums."""
        N = self.length
        alpha = self.alpha
        sums = -math.expm1(-4 * N * alpha) / -math.expm1(-2 * alpha)
        return 1.0 / math.sqrt(sums + 2 * N * math.exp(-(2 * N - 1) * alpha))

    @property
    def solution(self) -> Array:
        """u*."""
        return self.normalization * self.profile

    @property
    def seed(self) -> float:
        """beta / c."""
        rho_gap = -math.expm1(-2 * self.length * self.alpha)
        return self.normalization * self.a * rho_gap / (2 * self.r)

    @property
    def energy(self) -> float:
        """E_c = <u*, P_path u*> <= a^2 / (2 (1 - rho))."""
        return 0.5 * float(np.sum(np.diff(self.solution) ** 2))

    def tail(self, s: int) -> float:
        """sum_{j > s} (u*_j)^2 in closed form (Equation eq:cvxlf-tail has its asymptotic value)."""
        N = self.length
        alpha = self.alpha
        sums = math.exp(-2 * s * alpha) - math.exp(-(4 * N - 2 * s) * alpha)
        cross = 2 * (N - s) * math.exp(-(2 * N - 1) * alpha)
        return self.normalization**2 * (sums / -math.expm1(-2 * alpha) + cross)


class GroundedChain(Chain):
    """u* minimises (delta/2)||u||^2 + <u, (P_1 + P_2) u>/2 - seed u_1 with u_1 a row of R_1.

    On l_2 the solution is c_r (1, r, r^2, ...), c_r^2 = 1 - r^2, of norm one (Equation
    eq:hard-minimizer). Cut at ``length`` it is exactly c_r v_j / (1 + r^{2 length}), and the cut
    costs at most sqrt(2) r^length: the mirror image and the tail weigh r^{2 length} each, squared.
    """

    @property
    def amplitude(self) -> float:
        """c_r."""
        return math.sqrt(-math.expm1(-2 * self.alpha))

    @property
    def solution(self) -> Array:
        """The minimiser of the cut chain."""
        return self.amplitude * self.profile / (1.0 + math.exp(-2 * self.length * self.alpha))

    @property
    def seed(self) -> float:
        """xi / t (Equation eq:hard-xi)."""
        return self.amplitude * (self.delta + (3.0 - self.r) / 2.0)

    @property
    def energy(self) -> float:
        """<u*, (P_1 + P_2) u*>; (1 - r)(3 + r)/2 without the cut."""
        u = self.solution
        return float(u[0] ** 2 + 0.5 * np.sum(np.diff(u) ** 2))

    @property
    def truncation_error(self) -> float:
        """Bound on the distance between the cut and the uncut minimiser."""
        return math.sqrt(2.0) * math.exp(-self.length * self.alpha)


def sufficient_length(delta: float, eps: float, margin: float = 1e3, limit: int = 20_000) -> int:
    """Least length whose cut, sqrt(2) r^length, stays ``margin`` times below eps."""
    if not 0 < eps < 1:
        raise InputError(f"chain: eps = {eps}; a relative distance lies between 0 and 1")
    alpha = Chain(delta, 2).alpha
    length = max(2, math.ceil(math.log(math.sqrt(2.0) * margin / eps) / alpha))
    if length > limit:
        raise InputError(
            f"chain: {length} coordinates are needed (limit {limit}); "
            "ask for a larger eps, a smaller kappa_f or a smaller t, or give the length"
        )
    return length


def group_of(n: int, size: int) -> list[int]:
    """1 for the first ``size`` agents, 3 for the last ``size``, 2 between them."""
    return [1 if i < size else 3 if i >= n - size else 2 for i in range(n)]


def unit(length: int, value: float = 1.0) -> Array:
    """value * e_1."""
    e = np.zeros(length)
    e[0] = value
    return e


def chain_facts(
    chain: ReflectedChain | GroundedChain,
    kappa_f: float,
    kappa_W: float,
    radius: float,
    cosine: float,
) -> dict[str, float]:
    """What all families say of their chain, and the cross factor that follows from the angle."""
    return {
        "kappa_f": kappa_f,
        "kappa_W": kappa_W,
        "radius": radius,
        "alpha": chain.alpha,
        "rate": chain.r,
        "energy": chain.energy,
        "friedrichs_cosine": cosine,
        "cross_factor": cross_factor(cosine),
    }


def linked_problem(
    groups: Sequence[int],
    R: dict[int, sp.csr_array],
    t: float,
    objectives: Sequence[Objective],
    q: int,
) -> Problem:
    """x_i = t R_g(i) u for the outer groups, as one coupled equation with A_i = J_i.

    Equation eq:hard-A-B.

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
    groups: Sequence[int], chain: ReflectedChain, mu: float
) -> list[Quadratic]:
    """(mu/2)||u||^2 + ((1 - mu)/2) <u, P_g u>, minus (1 - mu) seed u_1 in group 1.

    P_g is P_1 = R_1'R_1 in group 1, P_2 = R_2'R_2 in group 3, and 0 in group 2.
    """
    R1, R2 = matchings(chain.length, grounded=False)
    flat = sp.csr_array(sp.diags_array(np.full(chain.length, mu)))
    curved = {g: sp.csr_array(flat + (1.0 - mu) * (R.T @ R)) for g, R in ((1, R1), (3, R2))}
    beta = {1: (1.0 - mu) * chain.seed}
    return [Quadratic(curved.get(g, flat), unit(chain.length, beta.get(g, 0.0))) for g in groups]
