"""Certificates for methods that have no normalized realization of their own."""

from __future__ import annotations

from ccmac.certificates.error_bound import Certifier
from ccmac.certificates.stopping import CertifiedStop
from ccmac.methods.base import Iteration
from ccmac.methods.cross_apapc import averaged_realization
from ccmac.methods.method import Context
from ccmac.realizations.base import Realized


class BorrowingIteration(Iteration):
    """An iteration whose points are judged (and repaired) on a borrowed realization."""

    realized: Realized | None = None


def certified_stop(ctx: Context, iteration: BorrowingIteration) -> CertifiedStop | None:
    """The tolerance proved on the averaged realization; None when a reference ends the run.

    Cost, in setup: that of the realization (one Lanczos run). The Result reports the repaired point
    for which the bound holds.
    """
    if ctx.reference:
        return None
    iteration.realized = averaged_realization(ctx)
    return CertifiedStop(Certifier(iteration.realized), ctx.tol)
