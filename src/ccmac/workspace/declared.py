"""What all agents announce first: which blocks exist, their curvature, and the form of quadratics
without mixed terms whose z-block is a multiple of the identity.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.linalg.blocks import entries, has_entries, multiples_of
from ccmac.linalg.symmetric import DENSE_LIMIT
from ccmac.linalg.tolerances import EPS
from ccmac.objectives.base import Objective
from ccmac.objectives.quadratic import Quadratic
from ccmac.objectives.separable import Separable
from ccmac.problem import MATRICES, Problem
from ccmac.runtime.base import Runtime

DENSE = 3000  # unknowns of a Hessian that may be factorized
CONIC = 3.0
CONSTANTS = ("L_x", "mu_x", "L_z", "mu_z", "L", "mu")


@dataclass(frozen=True)
class ScaledCurvature:
    """mu and L of Phi under one scaling; ``augment`` is rho of the consensus augmentation."""

    mu: float
    L: float
    augment: float = 0.0

    @property
    def condition(self) -> float:
        """kappa_f of the execution objective (inf when mu = 0)."""
        return self.L / self.mu if self.mu > 0 else np.inf


class CurvatureTable:
    """What the agents declare of themselves, known to everybody after one reduction of scalars.

    Arrays with one entry per agent: the constants of f_i in x, in z and in both (``L_x``, ``mu_x``,
    ``L_z``, ``mu_z``, ``L``, ``mu``), whether f_i mixes x and z, its ``shape`` (2: quadratic, 1:
    with bounds or kinks as well, 0: neither; of an agent with cones CONIC less), whether it has a
    prox, a Hessian of (x, z), or a quadratic that is cheap to factorize (``factors``), the
    ``multiple`` beta_i where B_i = beta_i I (NaN elsewhere), the size ``d`` of x_i and the rows
    ``r`` of D_i; whether f_i has the ``form`` of :class:`OwnQuadratic`, its ``h``, and the
    ``noise`` that rounding leaves of A H^{-1} A'w at ||w|| = 1. Where rows are hidden stand-ins
    take the place of what nobody knows (:func:`_stand_ins`); :meth:`own` has the real numbers of
    the agents here.
    """

    L_x: Array
    mu_x: Array
    L_z: Array
    mu_z: Array
    L: Array
    mu: Array
    mixes: Array
    shape: Array
    has_prox: Array
    has_hessian: Array
    factors: Array
    multiple: Array
    d: Array
    r: Array
    form: Array
    h: Array
    noise: Array

    def __init__(self, problem: Problem, runtime: Runtime) -> None:
        self.problem = problem
        self.runtime = runtime
        multiples = multiples_of(problem.blocks("B"))
        rows = [_declared(problem, i, c) for i, c in zip(problem.agents, multiples, strict=True)]
        own = np.array(rows, dtype=np.float64)
        names = list(type(self).__annotations__)
        self._own = dict(zip(names, own.T, strict=True))
        if runtime.averaging.hides:
            vars(self).update(_stand_ins(self._own, runtime))
        else:
            vars(self).update(zip(names, runtime.gather(own).T, strict=True))
        if self.smooth and not (problem.q or self.d.any()):  # of nothing every constant holds
            self.L_x = self.mu_x = self.L_z = self.mu_z = self.L = self.mu = np.ones(len(self.d))
        self._scaled: dict[float, tuple[float, float]] = {}
        self.floor = 0.0

    def own(self, name: str) -> Array:
        """A column's entries of the agents here, which nobody else need know."""
        return np.asarray(self._own[name])

    @property
    def smooth(self) -> bool:
        """Every f_i has a Lipschitz gradient."""
        return bool(np.isfinite(self.L).all())

    @property
    def separable(self) -> bool:
        """Every f_i is g(x) + h(z)."""
        return not self.mixes.any()

    @property
    def own_L(self) -> Array:
        """Smoothness of every f_i in all its unknowns."""
        return np.maximum(self.L_x, self.L_z) if self.separable else self.L

    @property
    def size(self) -> int:
        """Execution variables of all agents: sum of d_i + q."""
        return int(self.d.sum()) + len(self.d) * self.problem.q

    @property
    def quadratic(self) -> bool:
        """Every objective gives its Hessian and linear term."""
        return bool((self.shape == 2).all())

    @property
    def conic(self) -> bool:
        """Some agent has cones."""
        return bool((self.shape < 0).any())

    @property
    def polyhedral(self) -> bool:
        """Every objective is a quadratic with bounds and piecewise linear terms, or without."""
        return bool((self.shape % CONIC >= 1).all())

    @property
    def prox(self) -> bool:
        """Every objective has a prox."""
        return bool(self.has_prox.all())

    @property
    def strongly_convex(self) -> bool:
        """The sum of the f_i is strongly convex on the consensus set (perhaps augmented).

        One reduction where f_i that mix x and z show it only in other units.
        """
        if not self.separable and self.mu.min() > 0:
            return True
        return self.at(self.balance()).mu > 0

    @property
    def factorable(self) -> bool:
        """Every agent's Hessian is cheap to factorize: small, or a multiple of I by blocks."""
        return bool(self.factors.all())

    @property
    def multiples(self) -> Array | None:
        """The beta_i when B_i = beta_i I for all agents (absent counts as 0), else None."""
        known = not np.isnan(self.multiple).any() and self.multiple.any()
        return self.multiple if known and self.problem.m == self.problem.q else None

    @property
    def eliminates_z(self) -> bool:
        """Whether all have the form of :mod:`ccmac.workspace.dual`, with h, beta not 0."""
        if self.multiples is None or not (self.separable and self.quadratic):
            return False
        if self.problem.present & {"C", "D"} or not self.form.all():
            return False
        return bool(self.h.any()) and math.fsum(self.multiple) != 0

    def balance(self) -> float:
        """s at which both blocks have the same geometric-mean curvature (t = 1)."""
        joint = 0.0 if self.separable else float(self.mu.min())
        L_x = float(self.L_x.max())
        L_z = float(self.L_z.max())
        x = L_x * min(max(float(self.mu_x.min()), joint), L_x)
        z = L_z * min(max(float(self.mu_z.mean()), joint), L_z)
        if not (0 < x < math.inf and 0 < z < math.inf):
            x = L_x**2
            z = L_z**2
        return float((x / z) ** 0.25) if x > 0 and z > 0 and np.isfinite(x / z) else 1.0

    def regularized(self, condition: float) -> CurvatureTable:
        """The table of a strongly convex stand-in, for planning where curvature is missing.

        Blocks without strong convexity get L/condition; kinks count as curvature 1 where no other
        agent's block has a finite one.
        """
        other = copy.copy(self)
        other._scaled = {}
        other.floor = 1.0 / condition
        for high, low in (("L_x", "mu_x"), ("L_z", "mu_z"), ("L", "mu")):
            L = getattr(self, high).copy()
            known = L[np.isfinite(L) & (L > 0)]
            L[~np.isfinite(L)] = float(known.max()) if known.size else 1.0
            L = L if L.max(initial=0.0) > 0 else np.ones_like(L)  # linear: any curvature will do
            least = float(L.max(initial=1.0)) / condition
            setattr(other, high, L)
            setattr(other, low, np.maximum(getattr(self, low), least))
        return other

    def at(self, s: float) -> ScaledCurvature:
        """mu, L (and augmentation) of sum_i f_i(x, s z)."""
        return self._separable_at(s) if self.separable else self._mixed_at(s)

    def known(self) -> ScaledCurvature:
        """The same at :meth:`balance`, or as declared where that would take a message."""
        s = self.balance()
        if self.separable or s in self._scaled:
            return self.at(s)
        return ScaledCurvature(float(self.mu.min()), float(self.L.max()))

    def _separable_at(self, s: float) -> ScaledCurvature:
        mu_x = float(self.mu_x.min())
        L_x = float(self.L_x.max())
        h = s * s * self.mu_z
        L_z = s * s * float(self.L_z.max())
        plain = ScaledCurvature(min(mu_x, float(h.min())), max(L_x, L_z))
        # The augmentation lifts mu to the mean of the h_i at most: nothing to lift, no gain.
        if self.runtime.n == 1 or not np.isfinite([*h, L_x, L_z]).all() or h.max() <= 0:
            return plain
        # It must improve the condition number four times, and leaves L as it is at the least.
        if 0 < min(mu_x, float(h.mean())) <= 4.0 * plain.mu:
            return plain
        better = best_augmentation(h, L_z, mu_x, L_x)
        gain = plain.mu <= 0 or plain.condition > 4.0 * better.condition
        return better if better.mu > 0 and gain else plain

    def _mixed_at(self, s: float) -> ScaledCurvature:
        if s not in self._scaled:
            pairs = []
            for i, agent in self.problem.agents.items():
                self.runtime.mind_the_time()
                sizes = self.problem.d[i], self.problem.q
                pairs.append(agent.objective.scaled_curvature(*sizes, 1.0, s))
            both = np.array(pairs, dtype=np.float64)
            low, high = self.runtime.extremes(both[:, :1], both[:, 1:])
            least = min(1.0, s) ** 2 * float(self.mu.min())
            self._scaled[s] = (max(float(low[0]), least), float(high[0]))
        mu, L = self._scaled[s]
        if self.floor:
            L = L if 0 < L < np.inf else max(1.0, s * s) * float(self.L.max())
            mu = max(mu, self.floor * L)
        return ScaledCurvature(mu, L)


def _declared(problem: Problem, i: int, multiple: float) -> list[float]:
    """One agent's row of the table; ``multiple`` c where B = c I, else NaN."""
    agent = problem.agents[i]
    f = agent.objective
    known = f.curvature(problem.d[i], problem.q)
    shape = 2.0 if "quadratic" in f.capabilities else float(f.is_polyhedral)
    able = ["prox" in f.capabilities, f.has_hessian]
    if agent.cones is not None:  # a function that is infinite outside of them
        shape -= CONIC
        able = [False, False]
        known = replace(known, L_x=math.inf, L_z=math.inf, L=math.inf)
    constants = [getattr(known, name) for name in CONSTANTS]
    sizes = [_factors(problem, i), multiple, problem.d[i], problem.r[i]]
    return [*constants, not known.separable, shape, *able, *sizes, *_form(problem, i)]


def _stand_ins(own: dict[str, Array], runtime: Runtime) -> dict[str, Array]:
    """Columns for all agents where rows are hidden: sizes and abilities are shown, of the constants
    the least, the largest and the sum become known.

    Of all vectors with these the constants' stand-ins are extreme: lambda_min of
    :func:`recovered_curvature`, which is concave and symmetric, is smallest there. The multiples
    beta_i get the same sum and sum of squares. Cost: two averagings and those of ``extremes``.
    """
    n = runtime.n
    shown = [name for name in own if name not in {*CONSTANTS, "multiple", "h", "noise"}]
    beta = own["multiple"]
    open_rows = np.column_stack([*(own[name] for name in shown), np.isnan(beta)])
    *columns, unlike = runtime.gather(open_rows).T
    constants = np.column_stack([own[name] for name in CONSTANTS])
    low, high = runtime.extremes(constants, constants)
    beta = np.nan_to_num(beta)
    finite = np.where(np.isfinite(constants), constants, 0.0)
    rows = np.column_stack([finite, beta, beta**2, own["h"], own["noise"]])
    *sums, beta, squares, h, noise = runtime.total(rows)
    found = dict(zip(shown, columns, strict=True))
    for name, least, most, total in zip(CONSTANTS, low, high, sums, strict=True):
        found[name] = _extreme(least, most, total, n)
    spread = math.sqrt(max(squares / n - (beta / n) ** 2, 0.0) / max(n - 1, 1))
    found["multiple"] = np.full(n, np.nan if unlike.any() else beta / n - spread)
    found["multiple"][0] += n * spread
    return found | {"h": np.full(n, h / n), "noise": np.full(n, noise / n)}


def _extreme(low: float, high: float, total: float, n: int) -> Array:
    """Entries of this sum, as many as possible at the ends."""
    found = np.full(n, low)
    if not low < high:
        return found
    if not math.isfinite(high):  # of L no bound; of mu there is none for blocks of size zero
        return np.full(n, low if low > 0 and total == 0 else high)
    rest = min(max(total - n * low, 0.0), n * (high - low))
    whole = min(int(rest / (high - low)), n - 1)
    found[:whole] = high
    found[whole] += rest - whole * (high - low)
    return found


def _factors(problem: Problem, i: int) -> bool:
    """Whether an agent's Hessian is cheap to factorize."""
    f = problem.agents[i].objective
    size = problem.d[i] + problem.q
    equations = problem.p[i] + problem.r[i]
    parts = (getattr(f, name, None) for name in ("x_part", "z_part"))
    plain = isinstance(f, Separable) and all(
        part is None or part.isotropic() is not None for part in parts
    )
    return (plain or size <= DENSE) and size * equations <= DENSE**2


def recovered_curvature(h: Array, augment: float) -> float:
    """lambda_min(diag(h) + augment (I - 11'/n)), from below: the root of its secular equation

        1 = (augment/n) sum_i 1/(h_i + augment - x),

    between min h and the mean of h; the right-hand side increases there.
    """
    low = float(h.min())
    high = min(float(h.mean()), low + augment)

    def secular(x: float) -> float:
        with np.errstate(divide="ignore"):
            return float(np.sum(augment / (h + augment - x)) / len(h) - 1.0)

    if len(h) == 1 or augment == 0 or secular(low) >= 0:  # of equal agents it is the end itself
        return low
    if secular(high) <= 0:
        return high
    return float(scipy.optimize.brentq(secular, low, high, xtol=1e-300, rtol=1e-15))


def best_augmentation(h: Array, L_z: float, mu_x: float, L_x: float) -> ScaledCurvature:
    """The augmentation that minimises the condition number of the objective."""
    best = ScaledCurvature(min(mu_x, float(h.min())), max(L_x, L_z))
    top = max(L_x, L_z)
    for rho in top * np.geomspace(1e-3, 1e2, 26):
        mu = min(mu_x, recovered_curvature(h, float(rho)))
        found = ScaledCurvature(mu, max(L_x, L_z + float(rho)), float(rho))
        if found.condition < best.condition:
            best = found
    return best


class OwnQuadratic(NamedTuple):
    """f = x'Hx/2 - g_x'x + (h/2) ||z||^2 - g_z'z + constant; H a vector where it is diagonal."""

    H: Any
    g_x: Array
    h: float
    g_z: Array


def parts_of(objective: Objective, d: int, q: int) -> OwnQuadratic | None:
    """The parts, where the objective is such and its constants are those of a decomposition."""
    if isinstance(objective, Quadratic):
        return _of_quadratic(objective, d)
    if not isinstance(objective, Separable):
        return None
    x = objective.x_part
    z = objective.z_part
    on_x = (0.0, None) if x is None else x.isotropic()
    on_z = (0.0, None) if z is None else z.isotropic()
    if on_z is None:
        return None
    g_z = _zeros(q) if on_z[1] is None else on_z[1]
    if on_x is not None:
        g_x = _zeros(d) if on_x[1] is None else on_x[1]
        return OwnQuadratic(np.full(d, on_x[0]), g_x, on_z[0], g_z)
    if not isinstance(x, Quadratic) or not (x.coordinatewise or d <= DENSE_LIMIT):
        return None
    return OwnQuadratic(x.H.diagonal() if x.coordinatewise else x.H, x.g, on_z[0], g_z)


@lru_cache(maxsize=4)
def _zeros(size: int) -> Array:
    """The same ones for many agents."""
    zeros = np.zeros(size)
    zeros.flags.writeable = False
    return zeros


def _of_quadratic(f: Quadratic, d: int) -> OwnQuadratic | None:
    """Of a quadratic on (x, z) without mixed terms whose z-block is a multiple of I."""
    on_z = f.H[d:, d:]
    h = float(on_z[0, 0]) if on_z.shape[0] else 0.0
    rest = on_z - h * sp.eye_array(on_z.shape[0], format="csr")
    mixed = f.H[:d, d:]
    small = f.coordinatewise or d <= DENSE_LIMIT
    if not small or np.any(entries(rest)) or np.any(entries(mixed)):
        return None
    H = f.H.diagonal()[:d] if f.coordinatewise else f.H[:d, :d]
    return OwnQuadratic(H, f.g[:d], h, f.g[d:])


def own_parts(problem: Problem) -> list[OwnQuadratic | None]:
    """:func:`parts_of` the agents here."""
    return [parts_of(a.objective, problem.d[i], problem.q) for i, a in problem.agents.items()]


def _form(problem: Problem, i: int) -> tuple[float, float, float]:
    """An agent's ``form``, ``h`` and ``noise``."""
    agent = problem.agents[i]
    d = problem.d[i]
    found = parts_of(agent.objective, d, problem.q)
    if found is None:
        return 0.0, 0.0, 0.0
    if agent.A is None:
        return 1.0, found.h, 0.0
    known = agent.objective.curvature(d, problem.q)
    if not has_entries(agent.A) or known.mu_x <= 0:
        return 0.0, 0.0, 0.0
    values = entries(agent.A)
    # What a Cholesky solve may be off by.
    local = 4.0 if found.H.ndim == 1 else 20 * d * known.L_x / known.mu_x
    noise = EPS * (problem.m + d + problem.n + local) * float(np.vdot(values, values)) / known.mu_x
    return 1.0, found.h, noise


def owned_part(problem: Problem, runtime: Runtime) -> tuple[Problem, bool, CurvatureTable]:
    """The agents of this process, whether any agent has limits, and what all declare.

    Which block families exist anywhere is agreed upon: a number for each is 1 where it is there,
    2 more from an agent with limits. One averaging.
    """
    owned = runtime.owned
    if not set(owned) <= set(problem.agents):
        raise InputError(
            f"problem: this process needs agents {owned.start}..{owned.stop - 1} but "
            f"holds {sorted(problem.agents)}"
        )
    base = 2.0 * problem.limited
    rows = np.array([[base + (k in problem.present) for k in MATRICES]] * len(owned))
    there = runtime.piggyback(rows, whole=True)
    part = problem.restricted(owned) if problem.complete and not runtime.alone else problem
    table = CurvatureTable(part, runtime)
    flags = there.value
    limited = bool((flags >= 2).any())
    seen = np.atleast_1d((flags % 2 > 0).any(axis=0))
    if not problem.complete:
        held = {i: problem.agents[i] for i in owned}
        present = [k for k, found in zip(MATRICES, seen, strict=True) if found]
        part = table.problem = problem.holding(held, present=present)
    return part, limited, table
