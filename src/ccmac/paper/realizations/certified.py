"""The certified realization: the paper's balanced lift, every constant as it is proved.

Proposition prop:decentralized-bridge with the constants below.

    alpha^2 = 12 h,  beta^2 = 6 h,  gamma^2 = 8 d_D,  r = mu_f / (2 h)
    L^_j = p_j(L_j L_j') L_j,  p_1 on [mu_HC/4, 37 h],  p_2 on [mu_D/2, 19 d_D]
    spec^+(L^'L^) in [(1 - delta)/(3 Xi^2), 2 (1 + delta)]

(Lemma lem:structured-normalization, Equation eq:normalized-joint-certificate). It runs along the
edges alone and trusts supplied certificates. The two channels send their own messages; with nu =
deg P_W,

    rounds per iteration = nu 2N [(2 N_1 + 1) + (2 N_2 + 1)] + 2 nu.
"""

from __future__ import annotations

import math

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.tolerances import EPS
from ccmac.paper.realizations.channels import (
    CoupledLocal,
    FilteredGraph,
    LocalizedCoupling,
    NormalizedLocal,
    SharedConsensus,
)
from ccmac.paper.realizations.inverse_root import inverse_root_polynomial
from ccmac.paper.realizations.lift_constants import LiftConstants, lift_constants
from ccmac.paper.realizations.normalized import (
    Channel,
    NormalizedStack,
    PolynomialChannel,
    certified_interval,
    materialised,
    spread_over,
)
from ccmac.problem import Problem
from ccmac.realizations.base import Certificates, ExecutionObjective, Realized
from ccmac.runtime.space import Space
from ccmac.workspace import Workspace
from ccmac.workspace.declared import ScaledCurvature
from ccmac.workspace.equations import block_families, right_hand_sides


class PenaltyObjective(ExecutionObjective):
    """Phi_loc = F + (r/2) ||A x + B z + alpha W~ y - b||^2 (Equation eq:bridge-penalty).

    The penalty is zero on the feasible set; mu = mu_f/2 where the y_i sum to zero, L = L_f + 14
    mu_f.
    """

    def __init__(
        self,
        problem: Problem,
        space: Space,
        constants: ScaledCurvature,
        weight: float,
        coupling: LocalizedCoupling,
    ) -> None:
        super().__init__(
            problem,
            space,
            augment=constants.augment,
            mu=constants.mu / 2,
            L=constants.L + 14 * constants.mu,
        )
        self.weight = weight
        self.coupling = coupling

    def _add(self, w: Array, out: Array) -> None:
        """Cost: 2 A, 2 B, 2 nu rounds."""
        super()._add(w, out)
        self.space.y(out)[...] = 0.0
        rows = self.coupling.forward(w)
        rows -= self.coupling.right
        rows *= self.weight
        self.coupling.add_adjoint(rows, out)

    def _rounding_added(self, w: Array) -> Array:
        """r ||A, B, alpha W~||^2 <= L - L_f, and two products that long."""
        own = np.sqrt(self.space.per_agent(w * w))
        right = self.weight * np.sqrt(np.sum(self.coupling.right**2))
        count = 2 * self.problem.m + self.space.q + max(self.space.d, default=0) + 8
        lost = super()._rounding_added(w) + count * EPS * (2 * self.L * own + right)
        return np.asarray(lost)

    @property
    def cost(self) -> Cost:
        return super().cost + 2 * self.coupling.cost


def certified(
    work: Workspace,
    *,
    certificates: Certificates | None = None,
    delta: float = 0.5,
    inner: int | None = None,
    materialise: bool | None = None,
) -> Realized:
    """Build the lift; certificates that are not supplied are computed (charged to ``setup``).

    Absent blocks drop out: H = 0 leaves no coupled row, no y and Phi = F; S_HC = 0 lifts the lower
    end of channel 1 to h; C = 0 drops its rows; D = 0 leaves W~ with gamma = 1 on [1/4, 9/4]; one
    agent has no graph rows. ``inner`` fixes the degree of both normalizers; their true spread then
    takes the place of 1 -+ ``delta``. ``materialise`` replaces the channels by dense matrices
    (default: up to 600 execution variables in a fused simulation) at an unchanged charge.
    """
    given = certificates or Certificates()
    runtime = work.runtime
    problem = work.problem
    if not 0 < delta < 1:
        raise InputError(f"certified: delta = {delta} must lie between 0 and 1")
    with runtime.ledger.phase("setup"):
        constants = work.curvature.at(1.0)
        bounds = lift_constants(problem, runtime, given)
        lifted = bounds.h > 0 and runtime.n > 1
        space = Space(runtime, list(problem.d.values()), problem.q, lift=problem.m if lifted else 0)
        graph = None if runtime.n == 1 else FilteredGraph(runtime, bounds.l_W, bounds.u_W)
        coupling = None
        if bounds.h > 0:
            coupling = LocalizedCoupling(problem, space, graph, math.sqrt(12 * bounds.h))
        ends_1, ends_2 = channel_intervals(bounds)
        first = _normalized(_first(problem, space, coupling, bounds), ends_1, delta, inner)
        second = _normalized(_second(problem, space, graph, bounds), ends_2, delta, inner)
        channels = [c for c in (first, second) if c is not None]
        fixed = inner is not None and channels
        spread = spread_over(channels) if fixed else (1 - delta, 1 + delta)
        system = NormalizedStack(
            space,
            materialised(channels, space, materialise),
            certified_interval(spread, bounds.cross_factor, bounds.source),
            width=0 if coupling is None else problem.m,
            common=False,
        )
    objective: ExecutionObjective
    if lifted and coupling is not None:
        weight = constants.mu / (2 * bounds.h)
        objective = PenaltyObjective(problem, space, constants, weight, coupling)
    else:
        weight = 0.0
        objective = ExecutionObjective(problem, space, **vars(constants))
    return Realized(
        "certified",
        space,
        objective,
        system,
        degree=system.interval.degree() if channels else 1,
        steps="paper",
        details={
            "cross_factor": bounds.cross_factor,
            "delta": delta,
            "nu": 0 if graph is None else graph.degree,
            "inner": None if first is None else first.degree,
            "degree_2": None if second is None else second.degree,
            "certificates": {k: v for k, v in vars(bounds).items() if k != "source"},
            "source": bounds.source,
            "penalty": weight,
        },
    )


def channel_intervals(bounds: LiftConstants) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where the positive spectra of L_1 L_1' and L_2 L_2' are proved to lie, all branches."""
    if bounds.h == 0:
        first = (0.5, 1.5)
    elif bounds.mu_HC == 0:
        first = (bounds.h, 37 * bounds.h)
    else:
        first = (bounds.mu_HC / 4, 37 * bounds.h)
    second = (0.25, 2.25) if bounds.d_D == 0 else (bounds.mu_D / 2, 19 * bounds.d_D)
    return first, second


def _normalized(
    channel: Channel | None, ends: tuple[float, float], delta: float, degree: int | None
) -> PolynomialChannel | None:
    if channel is None:
        return None
    polynomial = inverse_root_polynomial(*ends, accuracy=delta, degree=degree)
    return PolynomialChannel(channel, polynomial)


def _first(
    problem: Problem, space: Space, coupling: LocalizedCoupling | None, bounds: LiftConstants
) -> Channel | None:
    """L_1; None when neither H nor C is there."""
    local = None
    if bounds.u_C > 0:
        p = inverse_root_polynomial(bounds.l_C, bounds.u_C, accuracy=0.5)
        local = NormalizedLocal(block_families(problem, space.runtime.ledger)["C"], p)
    if coupling is None and local is None:
        return None
    beta = 1.0 if coupling is None else math.sqrt(6 * bounds.h)
    return CoupledLocal(space, coupling, local, beta, right_hand_sides(problem).c)


def _second(
    problem: Problem, space: Space, graph: FilteredGraph | None, bounds: LiftConstants
) -> Channel | None:
    """L_2; None for one agent without D, or when there is no shared variable."""
    shared = bounds.d_D > 0
    if not problem.q or (graph is None and not shared):
        return None
    family = block_families(problem, space.runtime.ledger)["D"] if shared else None
    gamma = math.sqrt(8 * bounds.d_D) if shared else 1.0
    return SharedConsensus(space, family, right_hand_sides(problem).e, graph, gamma)
