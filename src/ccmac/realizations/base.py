"""What a realization hands to a method: execution space, objective, normalized constraints.

Methods use the stack K^ = [S_1 K_1; S_2 K_2] only through G = K^'K^ and g = K^'v^. A realization is
therefore a residual map w -> G w - g, the interval that holds the positive spectrum of G, and the
static cost of one residual (one forward and one adjoint call of the stack).

:class:`ExecutionObjective` is F(x, s z~), plus an augmentation where z needs it.
When only the sum of the f_i is strongly convex in z (one agent owns the labels, say), adding
(rho/2) ||(I - Pi) z~||^2, which vanishes on the feasible set, recovers it: with per-agent bounds
h_i the z block of the Hessian is at least diag(h_i) + rho (I - 11'/n), whose smallest eigenvalue
tends to the mean of the h_i. The extra gradient term costs one averaging of q floats.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ccmac.errors import GradientError, InputError
from ccmac.inputs import LARGEST, Array
from ccmac.ledger import Cost
from ccmac.linalg.chebyshev import minimal_degree, outer_degree
from ccmac.linalg.extended import gradient_rounding, norm
from ccmac.linalg.lanczos import extreme_ritz
from ccmac.linalg.tolerances import DENSE_MARGIN, EPS
from ccmac.problem import Problem
from ccmac.runtime.base import Runtime
from ccmac.runtime.space import Space, row_dots
from ccmac.texts import shown
from ccmac.workspace import Workspace


class ExecutionObjective:
    """Phi(w) = sum_i f_i(x_i, s z~_i) + (rho/2) ||(I - Pi) z~||^2 with its constants."""

    def __init__(
        self,
        problem: Problem,
        space: Space,
        *,
        s: float = 1.0,
        augment: float = 0.0,
        mu: float = 0.0,
        L: float = np.inf,
    ) -> None:
        self.problem = problem
        self.space = space
        self.s = s
        self.augment = augment
        self.mu = mu
        self.L = L
        self.ledger = space.runtime.ledger
        self._members = [agent.objective for agent in problem.agents.values()]

    def gradient(self, w: Array, out: Array | None = None) -> Array:
        """grad Phi(w). Cost: 1 gradient (and one averaging of q floats when augmented)."""
        self.ledger.charge(gradients=1)
        out = np.empty_like(w) if out is None else out
        space = self.space
        s = self.s
        x = space.x(w)
        z = space.z(w)
        if s != 1.0:
            z = s * z
        out_x = space.x(out)
        out_z = space.z(out)
        for k, member in enumerate(self._members):
            piece = slice(space.offsets[k], space.offsets[k + 1])
            out_x[piece], out_z[k] = member.gradient(x[piece], z[k])
        if not np.isfinite(np.add.reduce(out[: space.z_end])):
            self._report(x, z, out_x, out_z)
        if s != 1.0:
            out_z *= s
        self._add(w, out)
        return out

    def _add(self, w: Array, out: Array) -> None:
        """The gradient of what Phi has in addition to F, added to ``out``."""
        if self.augment:
            z = self.space.z(w)
            self.space.z(out)[...] += self.augment * (z - self.space.runtime.average(z))

    def precise_gradient(self, w: Array) -> tuple[Array, Array]:
        """(grad Phi(w) as doubles hold it, (agents, 1) numbers the root of whose squares' sum is
        at least its distance from grad Phi(w)). Cost: as that of :meth:`gradient`.

        From the agents' own :meth:`Objective.precise_gradient` at (x, s z~) in the long format.
        """
        self.ledger.charge(gradients=1)
        space = self.space
        out = np.zeros_like(w)
        off = np.zeros(self.space.count)
        out_x = space.x(out)
        out_z = space.z(out)
        L = self.L if math.isfinite(self.L) else 0.0
        for k, (member, (x, z)) in enumerate(zip(self._members, space.split(w), strict=True)):
            unit = np.repeat(np.array([1.0, self.s], dtype=np.longdouble), [len(x), len(z)])
            own = np.concatenate([x, z])
            point = unit * own
            slope = member.precise_gradient(point[: len(x)], point[len(x) :])
            slope *= unit.astype(slope.dtype)
            double = slope.astype(np.float64)
            out_x[space.offsets[k] : space.offsets[k + 1]], out_z[k] = np.split(double, [len(x)])
            off[k] = gradient_rounding(slope, own, L) + norm(slope - double)
        if not np.isfinite(np.add.reduce(out[: space.z_end])):
            self._report(space.x(w), self.s * space.z(w), out_x, out_z)
        self._add(w, out)
        return out, (off + self._rounding_added(w))[:, None]

    def _rounding_added(self, w: Array) -> Array:
        """The same numbers for what :meth:`_add` adds.

        The mean of n rows is wrong by n eps times the root mean square of their entries.
        """
        if not self.augment:
            return np.zeros(self.space.count)
        runtime = self.space.runtime
        z = self.space.z(w)
        sizes = np.sqrt(row_dots(z, z))
        grain = math.sqrt(runtime.unseen(self.space.q))
        return np.asarray(self.augment * ((runtime.n + 6) * EPS * sizes + grain))

    def _report(self, x: Array, z: Array, out_x: Array, out_z: Array) -> None:
        """Iterates that blew up are the driver's to notice; of others the objective is to blame."""
        for k, agent in enumerate(self.problem.agents):
            piece = slice(self.space.offsets[k], self.space.offsets[k + 1])
            size = max(np.abs(x[piece]).max(initial=0.0), np.abs(z[k]).max(initial=0.0))
            bad = not (np.isfinite(out_x[piece]).all() and np.isfinite(out_z[k]).all())
            # entries beyond this: the iterates blew up
            if bad and size < 1e100:
                raise GradientError(
                    f"agent {agent}, objective: the gradient is not finite (NaN or inf); "
                    "check the objective's data and domain"
                )

    @property
    def cost(self) -> Cost:
        """Static cost of one gradient."""
        extra = self.space.runtime.average_cost(self.space.q) if self.augment else Cost()
        return Cost(gradients=1) + extra

    def values(self, w: Array) -> Array:
        """f_i at each agent's own (x_i, z_i), shape (agents, 1)."""
        pairs = self.space.split(w)
        rows = [[f.value(x, self.s * z)] for f, (x, z) in zip(self._members, pairs, strict=True)]
        return np.array(rows, dtype=np.float64).reshape(len(rows), 1)


class OracleObjective(ExecutionObjective):
    """F with its consensus augmentation (if any) at modelled instead of executed rounds."""

    def gradient(self, w: Array, out: Array | None = None) -> Array:
        """grad Phi(w). Cost: 1 gradient, modelled rounds when augmented."""
        self.ledger.charge_cost(self.cost)
        with self.ledger.observing():
            return super().gradient(w, out)

    def precise_gradient(self, w: Array) -> tuple[Array, Array]:
        """As charged by :meth:`gradient`."""
        self.ledger.charge_cost(self.cost)
        with self.ledger.observing():
            return super().precise_gradient(w)

    @property
    def cost(self) -> Cost:
        rounds = modelled_rounds(self.space.runtime) if self.augment else 0
        return Cost(gradients=1, modelled_rounds=rounds)


def modelled_rounds(runtime: Runtime) -> int:
    """ceil sqrt(kappa_W): rounds of one consensus step in the theorem's ledger."""
    return 0 if runtime.n == 1 else math.ceil(math.sqrt(runtime.network.condition) - DENSE_MARGIN)


def proximal(
    objective: ExecutionObjective, w: Array, weight: float, weight_z: float | None = None
) -> Array:
    """argmin_u F(u) + (weight/2) ||u - w||^2, agent by agent. Cost: 1 prox, no communication.

    With z = s z~ the steps are 1/weight and s^2/weight (``weight_z`` where it differs from that of
    x). A lift's y is free of F.
    """
    objective.ledger.charge(proxes=1)
    space = objective.space
    s = objective.s
    out = w.copy()
    step_x = 1.0 / weight
    step_z = s * s / (weight_z or weight)
    for k, agent in enumerate(objective.problem.agents.values()):
        x, z = agent.objective.prox(space.x_of(w, k), s * space.z(w)[k], step_x, step_z)
        space.x_of(out, k)[...] = x
        space.z(out)[k] = z / s
    return out


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
    """Vectors (m x b) and their images under S_A = (1/n) sum A_i A_i'."""

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
