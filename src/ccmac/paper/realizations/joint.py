"""Joint normalization, the comparator of Cross-APAPC: one polynomial on the unnormalized stack.

    K_eta = [K_1; eta K_2],  K_2 = [D; I - Pi],   G = H'Pi H + C'C + eta^2 (I - Pi + D'D)

with its spectrum known exactly and the scalar balance eta*^2 = sqrt(mu_1 L_1 / (mu_2 L_2)) (eq.
optimal-scalar-balance). The channels' own condition numbers stay in sqrt(kappa(K_eta)); separate
normalization removes them. ``averaged`` executes Pi along the edges, one averaging of m + q
floats a residual; ``canonical`` models its rounds as the theorem's oracle does.
"""

from __future__ import annotations

import copy
import math
from contextlib import nullcontext

import numpy as np

from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.paper.realizations.joint_spectrum import joint_spectrum
from ccmac.realizations.base import (
    AffineSystem,
    ExecutionObjective,
    Interval,
    OracleObjective,
    Realized,
    modelled_rounds,
    refuse_part,
    refuse_unknown,
    resolved,
)
from ccmac.workspace import Workspace
from ccmac.workspace.equations import block_families, right_hand_sides

INTERVALS = ("tight", "minimal")


class JointSystem(AffineSystem):
    """Normal residual of [K_1; eta K_2]; ``weights`` = (1, eta^2) multiply the two channels."""

    def __init__(self, work: Workspace, *, modelled: int | None = None) -> None:
        problem = work.problem
        self.space = work.space
        self.runtime = work.runtime
        self.modelled = modelled
        self.coupling = work.coupling
        leaf = block_families(problem, self.runtime.ledger)
        self.C = leaf["C"]
        self.D = leaf["D"]
        sides = right_hand_sides(problem)
        self.c = sides.c
        self.e = sides.e
        self.consensus = self.runtime.n > 1 and problem.q > 0
        self.first = not (self.coupling.empty and self.C.empty)
        self.second = self.consensus or not self.D.empty
        self.empty = not (self.first or self.second)
        self.weights = (1.0, 1.0)
        self.interval = Interval(1.0, 1.0)
        self.width = self.coupling.width
        self.target = self.zero_multiplier()
        if not self.coupling.empty:
            [self.target] = self._means([sides.b])

    def _means(self, parts: list[Array]) -> list[Array]:
        if self.modelled is None:
            return self.runtime.combine(parts)
        with self.runtime.ledger.observing():
            return self.runtime.combine(parts)

    def weighted(self, first: float, second: float) -> JointSystem:
        """The same channels with other weights."""
        other = copy.copy(self)
        other.weights = (first, second)
        return other

    @property
    def gain(self) -> float:
        """weight sqrt(S), and weight S is a part of G."""
        return math.sqrt(self.weights[0] * self.interval.high)

    def homogeneous(self) -> JointSystem:
        other = copy.copy(self)
        other.target = np.zeros_like(self.target)
        other.c, other.e = np.zeros_like(self.c), np.zeros_like(self.e)
        return other

    def residual(self, w: Array) -> tuple[Array, Array]:
        self.runtime.ledger.charge_cost(self._charge)
        space = self.space
        x = space.x(w)
        z = space.z(w)
        parts = list(self.coupling.contributions(x, z, with_z=True))
        coupled, mean = self._means(parts)
        first = space.zeros()
        second = space.zeros()
        multiplier = self.weights[0] * (coupled - self.target)
        if not self.coupling.empty:
            space.x(first)[...], space.z(first)[...] = self.coupling.adjoint(multiplier)
        if not self.C.empty:
            misfit = self.weights[0] * (self.C.forward(x) - self.c)
            space.x(first)[...] += self.C.adjoint(misfit)
        out = space.z(second)
        if self.consensus:
            np.subtract(z, mean, out=out)
        if not self.D.empty:
            out += self.D.adjoint(self.D.forward(z) - self.e).reshape(z.shape)
        out *= self.weights[1]
        first += second
        return first, multiplier

    @property
    def _charge(self) -> Cost:
        return Cost(affine=2, modelled_rounds=2 * (self.modelled or 0))

    @property
    def cost(self) -> Cost:
        """2 affine calls, 2 products with each family, one averaging (or modelled rounds)."""
        products = self.coupling.product_cost() + self.C.cost + self.D.cost
        cost = self._charge + 2 * products
        if self.modelled is not None:
            return cost
        return cost + self.runtime.average_cost(self.coupling.width + self.space.q)


def joint(
    work: Workspace,
    *,
    realization: str = "averaged",
    interval: str = "tight",
    eta: float | None = None,
    seed: int = 0,
) -> Realized:
    """joint-apapc's system; ``eta`` defaults to the balance eta*.

    ``interval``: ``tight`` is the spectrum of the stack itself, ``minimal`` the same with the least
    safe degree. Degree N = ceil sqrt(ratio). The canonical flavour knows its spectra exactly
    (dense, or in closed form when B_i = beta_i I and C, D are absent; Lanczos with margins on large
    problems). ``averaged`` learns them along the edges, charged to ``setup``, as any split over
    processes can: in closed form from the largest eigenvalue of S, or by Lanczos (1e-6 wider if it
    exhausts its space, else with margins).
    """
    problem = work.problem
    runtime = work.runtime
    space = work.space
    refuse_unknown(
        "joint",
        ("realization", realization, ("averaged", "canonical")),
        ("interval", interval, INTERVALS),
    )
    oracle = realization == "canonical"
    if oracle:
        refuse_part("joint", runtime, "'averaged'")
    with runtime.ledger.phase("setup"):
        system = JointSystem(work, modelled=modelled_rounds(runtime) if oracle else None)
        with runtime.ledger.observing() if oracle else nullcontext():
            constants = work.curvature.at(1.0)
        rng = np.random.default_rng(seed)
        spectrum = joint_spectrum(problem, system, rng, work.curvature)
    balance = spectrum.balance() if eta is None else eta * eta
    system = system.weighted(1.0, balance)
    if not system.empty:
        with runtime.ledger.phase("setup"):
            system.interval = spectrum.exact(balance)
        system.interval = resolved(work, system.interval)
    kind = OracleObjective if oracle else ExecutionObjective
    return Realized(
        realization,
        space,
        kind(problem, space, **vars(constants)),
        system,
        degree=system.interval.degree(minimal=interval == "minimal"),
        steps="paper",
        details={
            "normalization": "joint",
            "eta": math.sqrt(balance),
            "interval": interval,
            "channel_1": spectrum.first,
            "channel_2": spectrum.second,
            "condition": system.interval.ratio,
        },
    )
