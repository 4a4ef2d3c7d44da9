"""What a realization hands to a method: execution space, objective, normalized constraints.

Methods use the stack K^ = [S_1 K_1; S_2 K_2] only through G = K^'K^ and g = K^'v^. A realization is
therefore a residual map w -> G w - g, the interval that holds the positive spectrum of G, and the
static cost of one residual (one forward and one adjoint call of the stack).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import LARGEST, Array
from ccmac.ledger import Cost
from ccmac.linalg.chebyshev import minimal_degree, outer_degree
from ccmac.linalg.lanczos import extreme_ritz
from ccmac.realizations.objective import ExecutionObjective
from ccmac.runtime.base import Runtime
from ccmac.runtime.space import Space
from ccmac.texts import shown
from ccmac.workspace import Workspace


@dataclass(frozen=True)
class Interval:
    """0 < low <= spec^+ <= high; ``source`` says on what ``low`` rests.

    ``proved`` (structure, a factorization), ``supplied`` or ``estimated``; ``exhausted``, from
    squares, until :func:`resolved` decides.
    """

    low: float
    high: float
    source: str = "proved"

    @property
    def ratio(self) -> float:
        return self.high / self.low

    def widened(self, low: float = 1.0, high: float = 1.0) -> Interval:
        """Endpoints multiplied by ``low`` (<= 1) and ``high`` (>= 1)."""
        return Interval(self.low * low, self.high * high, self.source)

    def degree(self, *, minimal: bool = False) -> int:
        """Outer degree of the paper, or the least that is safe."""
        return (minimal_degree if minimal else outer_degree)(self.low, self.high)


def resolved(work: Workspace, found: Interval) -> Interval:
    """The interval with ``exhausted`` decided, and what rests on an agent's own rows looked at.

    A Lanczos run that exhausts its space, or a decomposition of G = K'K, knows eigenvalues to about
    1e-10 of the largest, singular values of the rows to 1e-5: it cannot tell nearly dependent rows
    from dependent ones, whose eigenvalue is zero and does not count. It proves a lower end where
    gathered equations show that there are no such rows.
    """
    if found.source == "exhausted":
        return replace(found, source="proved" if work.well_conditioned else "estimated")
    if found.source == "proved" and not work.own_well_conditioned:
        return replace(found, source="estimated")
    return found


class AffineSystem(ABC):
    """Normal residual of a normalized stack, with its certified interval.

    ``width`` counts the coupled multipliers.
    """

    space: Space
    interval: Interval
    empty: bool
    width: int = 0

    @property
    def gain(self) -> float:
        """Change of G w - g, at most, per change of sqrt(sum_i ||A_i x_i + B_i z - b_i||^2)."""
        return 1.0

    @property
    def turn(self) -> float:
        """How many eps of ||w|| rounding may leave in G w - g relative to that of the coupled rows
        and the C_i: the norm of the other channels, or their condition where they are normalized.
        """
        return self.interval.high

    @abstractmethod
    def residual(self, w: Array) -> tuple[Array, Array]:
        """(G w - g, the coupled multiplier). Charges 2 affine calls and their products."""

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """Static cost of one residual."""

    @abstractmethod
    def homogeneous(self) -> AffineSystem:
        """The same operator with zero right-hand sides: its residual is G w."""

    def widen(self) -> None:
        """After a blow-up: trust both ends of the interval less."""
        self.interval = Interval(0.25 * self.interval.low, 2.0 * self.interval.high, "estimated")

    def zero_multiplier(self) -> Array:
        """The origin of the coupled multiplier."""
        return np.zeros((1, self.width))

    def common_multiplier(self, multiplier: Array) -> Array:
        """The coupled multiplier as one row that all agents know."""
        return multiplier

    def extremes(self, seed: int, steps: int, keep: int) -> tuple[float, float, bool]:
        """(least, largest) Ritz value of G from a start in its range, and whether that was all.

        Every agent draws its own stream, so that all splits of the agents agree. Orthogonalizes
        against the last ``keep`` vectors.
        """
        linear = self.homogeneous()
        space = self.space
        start = space.zeros()
        for k, agent in enumerate(space.runtime.owned):
            stream = np.random.default_rng([seed, agent])
            space.x_of(start, k)[...] = stream.standard_normal(space.d[k])
            space.z(start)[k] = stream.standard_normal(space.q)
        start = linear.residual(start)[0]
        return extreme_ritz(space, lambda w: linear.residual(w)[0], start, steps, keep)


class Images(NamedTuple):
    """Orthonormal vectors (m x b) and their images under S_A = (1/n) sum A_i A_i'."""

    vectors: Array
    images: Array


@dataclass(frozen=True)
class Realized:
    """What every realization hands to a method.

    ``s`` is the scale of the shared block (z = s z~); ``degree`` and ``steps`` are the outer degree
    and the step rule a method should use; ``details`` goes into the plan and the record,
    ``predicted`` is the expected number of iterations, ``notes`` say what was found and mended,
    ``block`` is what the setup knows of the coupled rows where it looked at a block of vectors.
    """

    realization: str
    space: Space
    objective: ExecutionObjective
    system: AffineSystem
    s: float = 1.0
    degree: int = 1
    steps: str = "interval"
    details: dict[str, Any] = field(default_factory=dict)
    predicted: float | None = None
    notes: tuple[str, ...] = ()
    block: Images | None = None

    def embed(self, x: Array, z: Array) -> Array:
        """Execution vector of user variables: flat x and one common z (or rows of copies)."""
        w = self.space.zeros()
        self.space.x(w)[...] = x
        self.space.z(w)[...] = z / self.s
        return w

    def copies(self, w: Array) -> Array:
        """The agents' copies of z in the user's units, one row per agent."""
        return self.s * self.space.z(w)

    @property
    def error_scale(self) -> float:
        """||(x, z) - (x*, z*)|| <= error_scale ||w - w*|| with z the mean of the copies."""
        return max(1.0, self.s / float(np.sqrt(self.space.runtime.n)))


@dataclass(frozen=True)
class Certificates:
    """Bounds on the structural parameters of the normalization appendix; any subset.

    spec(S_HC) in {0} u [mu_HC, h], ||H||^2 <= h;  spec(S_D) in {0} u [mu_D, d_D];
    spec(CC') in {0} u [l_C, u_C];  spec(W) in {0} u [l_W, u_W];  cross_factor >= chi;
    energy_radius R_E bounds the initial APAPC energy and gives the a-priori horizon
    (Assumption ass:spectral-certificates). What is missing is computed or estimated with a margin
    and charged to ``setup``.

    Parameters
    ----------
    h, mu_HC : float, optional
        Largest and least positive eigenvalue of S_HC.
    d_D, mu_D : float, optional
        Largest and least positive eigenvalue of S_D.
    l_C, u_C : float, optional
        Ends of the positive spectrum of all C_i C_i'.
    l_W, u_W : float, optional
        Ends of the positive spectrum of W.
    cross_factor : float, optional
        An upper bound on chi.
    energy_radius : float, optional
        R_E, a bound on the initial energy.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Quadratic(np.eye(2), [1.0, 2.0])
    >>> problem = ccmac.Problem([ccmac.Agent(f, A=[[1]], B=[[1]], b=[1]) for _ in range(3)])
    >>> known = ccmac.Certificates(cross_factor=1.0)
    >>> method = ccmac.methods.CrossApapc(realization="certified", certificates=known)
    >>> ccmac.solve(problem, "ring", method).status
    'optimal'
    """

    h: float | None = None
    mu_HC: float | None = None
    d_D: float | None = None
    mu_D: float | None = None
    l_C: float | None = None
    u_C: float | None = None
    l_W: float | None = None
    u_W: float | None = None
    cross_factor: float | None = None
    energy_radius: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if value is not None and not (number and 0 < value <= LARGEST):
                raise InputError(f"certificates: {name} = {shown(value)} must be a positive number")
        for low, high in (("mu_HC", "h"), ("mu_D", "d_D"), ("l_C", "u_C"), ("l_W", "u_W")):
            a = getattr(self, low)
            b = getattr(self, high)
            if a is not None and b is not None and a > b:
                raise InputError(f"certificates: {low} = {a} is larger than {high} = {b}")
        if self.cross_factor is not None and self.cross_factor < 1:
            raise InputError(f"certificates: cross_factor = {self.cross_factor} is below 1")

    @property
    def of_own_rows(self) -> bool:
        """Whether something is said of the C_i or D_i: their rows then stay as they are."""
        return any(v is not None for v in (self.l_C, self.u_C, self.d_D, self.mu_D))


def apapc_steps(mu: float, L: float, low: float, high: float) -> tuple[float, float, float]:
    """(tau, eta, theta) of APAPC for a correction with spectrum in [low, high] (Salim et al. 2022).

    Shared by the method and by the twin that plans it.
    """
    tau = min(1.0, 0.5 * math.sqrt(high / low * mu / L))
    eta = 1.0 / (4.0 * tau * L)
    return tau, eta, 1.0 / (eta * high)


def refuse_unknown(who: str, *options: tuple[str, str, Sequence[str]]) -> None:
    """Refuse the first of (name, value, known values) whose value is not known."""
    for name, value, known in options:
        if value not in known:
            listed = f"{', '.join(known[:-1])} or {known[-1]}"
            raise InputError(f"{who}: {name} {value!r} is unknown; take {listed}")


def refuse_part(who: str, runtime: Runtime, remedy: str) -> None:
    """Refuse a process that does not own all agents."""
    if len(runtime.owned) != runtime.n:
        raise InputError(
            f"{who}: this process owns {len(runtime.owned)} of {runtime.n} agents; its exact sums "
            f"need all in one process, take realization {remedy}"
        )
