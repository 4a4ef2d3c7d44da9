"""Joint-APAPC: the iteration of cross-apapc on the joint stack, normalized by one number alone.

    K = [K_1; eta* K_2],   eta*^2 = sqrt(mu_1 L_1 / (mu_2 L_2))

The comparator of the paper's experiments: what the balance eta* buys without normalizing each
channel. Cost: 1 gradient, 2N affine calls, N = ceil sqrt(lambda_+ / lambda_-) of the joint stack.
"""

from __future__ import annotations

from dataclasses import dataclass

from ccmac.methods.apapc import prepared
from ccmac.methods.base import Method, Prepared, Request, option
from ccmac.methods.realized import CERTIFICATES
from ccmac.paper.realizations.joint import INTERVALS, joint
from ccmac.realizations.base import Certificates
from ccmac.workspace import Workspace


@dataclass(frozen=True)
class JointApapc(Method):
    """The same iteration on the unnormalized joint stack with the scalar balance eta*.

    Parameters
    ----------
    realization : {"averaged", "canonical"}
        How the constraints are executed (default averaged).
    certificates : Certificates, optional
        Spectral constants you vouch for; the rest is estimated.
    interval : {"certificate", "tight", "minimal"}
        Where the spectrum of the stack is taken from (default tight).
    eta : float, optional
        Weight of channel 2 (the balance eta* by default).

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, X[:, 0], 3)
    >>> ccmac.solve(problem, "ring", ccmac.methods.JointApapc()).status
    'optimal'
    """

    name = "joint-apapc"
    summary = "the same iteration on the unnormalized joint stack"
    needs = frozenset({"smooth", "strongly convex"})

    realization: str = option(
        "averaged", str, "how the constraints are executed", choices=("averaged", "canonical")
    )
    certificates: Certificates | None = option(None, Certificates, CERTIFICATES)
    interval: str = option(
        "tight", str, "where the spectrum of the stack is taken from", choices=INTERVALS
    )
    eta: float | None = option(None, float, "weight of channel 2 (the balance eta* by default)")

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """Joint normalization: the unnormalized stack with its exact interval and eta* balance."""
        given = self.certificates or Certificates()
        realized = joint(work, realization=self.realization, interval=self.interval, eta=self.eta)
        return prepared(
            realized, request, "joint normalization, for comparison", given.energy_radius
        )
