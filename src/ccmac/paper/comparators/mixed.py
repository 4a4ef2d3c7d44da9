"""The accelerated method for mixed constraints without coupling through z (Yarmoshik et al. 2026).

For B = 0 the equations on (x, y) and on z have orthogonal row spaces,

    L1 = [A, a W~; b P_C, 0],   L2 = [D; g W~],   a^2 = 12 h, b^2 = 6 h, g^2 = 8 d_D,

W~ a graph filter with spectrum in [1/2, 3/2] and h = max ||A_i||^2, d_D = max ||D_i||^2, so that
one APAPC iteration corrects both by Chebyshev polynomials of their own degrees N_j =
ceil((b_j/a_j)^{1/2}) on [mu_HC/4, 37 h] and [mu_D/2, 19 d_D], adding the displacements. Objective
F + (r/2) ||A x + a W~ y - b||^2, r = mu_f/(2h), with L = L_f + 14 mu_f, mu = mu_f/2.
With B != 0 only a reduction that does without copies of z (R2, R3) helps; then L2 is absent.
Cost: 1 gradient, 2 N_1 + 2 products with A, 2 N_2 with D, 2 nu (N_1 + N_2 + 1) rounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ccmac.errors import MethodRefused
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.chebyshev import chebyshev_correction, outer_degree
from ccmac.methods.base import Prepared, Request, option
from ccmac.methods.realized import JudgedMethod
from ccmac.paper.comparators.accelerated import HIGH, AcceleratedIteration, GraphRows, Penalized
from ccmac.paper.comparators.reductions import CoupledForm
from ccmac.paper.comparators.spectra import largest_norm, least_eigenvalue
from ccmac.paper.realizations.certified import channel_intervals
from ccmac.paper.realizations.lift_constants import LiftConstants, nonzero
from ccmac.workspace import Workspace


class MixedIteration(AcceleratedIteration):
    """The corrections towards L1 and, where z is copied, towards L2, added."""

    def __init__(self, form: CoupledForm, c: LiftConstants, mu_f: float, L_f: float) -> None:
        objective = Penalized(mu_f / (2 * c.h), mu_f / 2, L_f + 14 * mu_f, HIGH)
        super().__init__(GraphRows(form, math.sqrt(12 * c.h)), objective)
        self.local = form.work.local
        self.shared = form.work.shared
        self.beta = math.sqrt(6 * c.h)
        self.copied = form.name == "none"
        # Intervals of L1'L1 and L2'L2 (without D that of W~^2), and the weight of W~ in L2.
        self.first, self.second = channel_intervals(c)
        self.g = math.sqrt(8 * c.d_D) if c.d_D else 1.0
        self.degrees = outer_degree(*self.first), outer_degree(*self.second)

    def correction(self, v: Array) -> Array:
        """Both displacements."""
        N_1, N_2 = self.degrees
        moved = chebyshev_correction(self._first, v, *self.first, N_1)[0]
        if self.copied:
            moved += chebyshev_correction(self._second, v, *self.second, N_2)[0]
        return moved

    def _first(self, v: Array) -> tuple[Array, Array]:
        """L1'(L1 v - right)."""
        image, none = self.coupled.residual(v)
        if not self.local.empty:
            x = self.space.x(v)
            self.space.x(image)[...] += self.beta**2 * (self.local.project(x) - self.local.point)
        return image, none

    def _second(self, v: Array) -> tuple[Array, Array]:
        """L2'(L2 v - right) on z; zero elsewhere."""
        image = np.zeros_like(v)
        z = self.space.z(v)
        out = self.space.z(image)
        family = self.shared.family
        out[...] = self.g**2 * self.coupled.filter(self.coupled.filter(z))
        if not self.shared.empty:
            out += family.adjoint(family.forward(z) - self.shared.right).reshape(z.shape)
        return image, v[:0]

    @property
    def correction_cost(self) -> Cost:
        """N_1 residuals of L1, N_2 of L2."""
        N_1, N_2 = self.degrees
        total = N_1 * (2 * self.coupled.cost + self.local.cost)
        if self.copied:
            on_z = 2 * self.coupled.filter.cost(self.space.q)
            total = total + N_2 * (on_z + 2 * self.shared.family.cost)
        return total


def constants_of(form: CoupledForm, seed: int) -> LiftConstants:
    """Those of the channels, by local work, a reduction and at most two Lanczos runs."""
    work = form.work
    space = form.space
    local = form.work.local
    shared = form.work.shared

    def gram(v: Array) -> Array:
        u = form.adjoint(np.broadcast_to(v, form.right.shape))
        space.x(u)[...] -= local.project(space.x(u))
        return form.forward(u)

    h = largest_norm(form) or 1.0
    mu_HC = min(least_eigenvalue(work, gram, form.width, seed), h) if form.width else h
    if shared.empty or form.name != "none":
        return LiftConstants(h, mu_HC)
    mu_D = least_eigenvalue(work, shared.gram_contribution, space.q, seed)
    return LiftConstants(h, mu_HC, 1.0, mu_D)  # d_D = 1: orthonormal rows


def coupled_through_z(work: Workspace) -> bool:
    """Whether some B_i has an entry that is not zero (an operator counts as one); one reduction."""
    rows = [[float(nonzero(block))] for block in work.problem.blocks("B")]
    return bool(work.runtime.gather(np.array(rows)).any())


@dataclass(frozen=True)
class MixedYarmoshik(JudgedMethod):
    """The accelerated method for mixed constraints: directly when B = 0, else on R2 or R3.

    Parameters
    ----------
    certificates : Certificates, optional
        Spectral constants you vouch for; the rest is estimated.
    reduction : {"R2", "R3"}, optional
        Where z goes if B is not zero.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, X[:, 0], 3)
    >>> ccmac.solve(problem, "ring", ccmac.methods.MixedYarmoshik(reduction="R2")).status
    'optimal'
    """

    name = "mixed-yarmoshik"
    summary = "accelerated method for mixed constraints with B = 0 (or reduction R2, R3)"
    needs = frozenset({"smooth", "strongly convex"})

    reduction: str | None = option(None, str, "where z goes if B is not zero", choices=("R2", "R3"))

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """Four reductions and at most two Lanczos runs for the constants."""
        if coupled_through_z(work) and self.reduction is None:
            raise MethodRefused(
                f"method {self.name} needs B = 0: its channels must not meet in z; use "
                "cross-apapc, or reduction='R2' or 'R3' if z may be pooled"
            )
        form = CoupledForm(work, self.reduction or "none")
        mu_f, L_f = form.curvature()
        if mu_f <= 0:
            raise MethodRefused(
                f"method {self.name} needs every f_i strongly convex; use cross-apapc, which "
                "recovers the curvature of the sum"
            )
        constants = constants_of(form, request.seed)
        iteration = MixedIteration(form, constants, mu_f, L_f)
        settings = {
            "reduction": form.name,
            "h": constants.h,
            "mu_HC": constants.mu_HC,
            "mu_D": constants.mu_D,
            "degrees": iteration.degrees,
            "graph degree": iteration.coupled.filter.degree,
        }
        return Prepared(
            iteration,
            None,
            f"coupled {form.name}",
            "mixed constraints without coupling through z",
            settings,
        )
