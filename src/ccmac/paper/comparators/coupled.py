"""The accelerated method for coupled constraints of Yarmoshik et al. (2025).

Every agent keeps its share of sum_i (A'_i u_i - b'_i) = 0 with a vector y_i that the graph cancels:
B(u, y) = A'u + gamma W'y = b', W' a Chebyshev filter of W of degree n_W = ceil(kappa_W^{1/2}) with
spectrum in [11/15, 19/15]. With L_A = max ||A'_i||^2, mu_A = lambda_min^+(mean A'_i A'_i'),

    gamma^2 = (mu_A + L_A)/(11/15)^2,  mu_B = mu_A/2,  L_B = L_A + (L_A + mu_A)(19/11)^2,
    G = F + (r/2) ||B(u, y) - b'||^2,  r = mu_f/(2 L_A),  n_B = ceil((L_B/mu_B)^{1/2}),

the iteration is that of APAPC on G with the Chebyshev correction of degree n_B towards
B(u, y) = b'. Local equations become rows of A'. Needs smooth strongly convex f'.
Cost: 1 gradient, 2 n_B + 2 products with A', 2 n_W (n_B + 1) rounds of m' floats.
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
from ccmac.paper.comparators.accelerated import (
    HIGH,
    LOW,
    AcceleratedIteration,
    GraphRows,
    Penalized,
)
from ccmac.paper.comparators.reductions import REDUCTIONS, CoupledForm
from ccmac.paper.comparators.spectra import largest_norm, least_eigenvalue
from ccmac.workspace import Workspace


class CoupledIteration(AcceleratedIteration):
    """The correction towards B(u, y) = b', whose interval is [mu_B, L_B]; ``degree`` is n_B."""

    def __init__(self, form: CoupledForm, mu_A: float, L_A: float, mu_f: float, L_f: float) -> None:
        ratio = (mu_A + L_A) / L_A
        spread = (HIGH / LOW) ** 2
        mu = mu_f * min(0.5, ratio / 4)
        L = max(L_f + mu_f, mu_f * spread * ratio)
        gamma = math.sqrt((mu_A + L_A) / LOW**2)
        super().__init__(GraphRows(form, gamma), Penalized(mu_f / (2 * L_A), mu, L, HIGH / LOW))
        self.interval = mu_A / 2, L_A + (L_A + mu_A) * spread
        self.degree = outer_degree(*self.interval)

    def correction(self, v: Array) -> Array:
        """n_B misfits and adjoints of B."""
        return chebyshev_correction(self.coupled.residual, v, *self.interval, self.degree)[0]

    @property
    def correction_cost(self) -> Cost:
        """2 n_B products with A', 2 n_W n_B rounds."""
        return 2 * self.degree * self.coupled.cost


@dataclass(frozen=True)
class CoupledYarmoshik(JudgedMethod):
    """The accelerated method for coupled constraints, on a reduction.

    Parameters
    ----------
    certificates : Certificates, optional
        Spectral constants you vouch for; the rest is estimated.
    reduction : {"R1", "R2", "R3"}
        How z and consensus are coupled (default R1).

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, X[:, 0], 3)
    >>> ccmac.solve(problem, "ring", ccmac.methods.CoupledYarmoshik()).status
    'optimal'
    """

    name = "coupled-yarmoshik"
    summary = "accelerated method for coupled constraints, on a reduction R1, R2 or R3"
    needs = frozenset({"smooth", "strongly convex"})

    reduction: str = option("R1", str, "how z and consensus are coupled", choices=REDUCTIONS)

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """Three reductions and one Lanczos run for the constants."""
        form = CoupledForm(work, self.reduction, rows=True)
        mu_f, L_f = form.curvature()
        if mu_f <= 0:
            raise MethodRefused(
                f"method {self.name} needs every f_i strongly convex under reduction {form.name};"
                " use reduction='R2' (pools the losses of z) or cross-apapc"
            )

        def gram(v: Array) -> Array:
            return form.forward(form.adjoint(np.broadcast_to(v, form.right.shape)))

        mu_A = least_eigenvalue(work, gram, form.width, request.seed)
        L_A = max(largest_norm(form), mu_A)
        iteration = CoupledIteration(form, mu_A, L_A, mu_f, L_f)
        settings = {
            "reduction": form.name,
            "message floats": form.width,
            "mu_A": mu_A,
            "L_A": L_A,
            "gamma": iteration.coupled.weight,
            "degree": iteration.degree,
            "graph degree": iteration.coupled.filter.degree,
        }
        return Prepared(
            iteration,
            None,
            f"coupled {form.name}",
            "accelerated method for coupled constraints",
            settings,
        )
