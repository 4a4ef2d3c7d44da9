"""On what a lower end that came from squares rests: a proof, or an estimate.

A Lanczos run that exhausts its space, or a decomposition of G = K'K, knows eigenvalues to about
1e-10 of the largest, singular values of the rows to 1e-5: it cannot tell nearly dependent rows from
dependent ones, whose eigenvalue is zero and does not count. It proves a lower end where gathered
equations show that there are no such rows.
"""

from __future__ import annotations

from dataclasses import replace

from ccmac.realizations.base import Interval
from ccmac.workspace import Workspace


def resolved(work: Workspace, found: Interval) -> Interval:
    """The interval with ``exhausted`` decided, and what rests on an agent's own rows looked at."""
    if found.source == "exhausted":
        return replace(found, source="proved" if work.well_told else "estimated")
    if found.source == "proved" and not work.own_well_told:
        return replace(found, source="estimated")
    return found
