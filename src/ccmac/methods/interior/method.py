"""cross-ipm: quadratics with bounds and kinks, with or without curvature.

Needs objectives that are a convex quadratic plus bounds and piecewise linear terms, and equations
that all may know. Cost: setup 2 gatherings beside that of the equations (bounds on z, supports;
flat directions, where there are any); a step 3 averagings, see :mod:`.iteration`; a proof one.
A squared loss of many rows and few columns is brought to the range of the columns first
(:mod:`ccmac.methods.interior.compressed`): one averaging of a block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ccmac.certificates.duality import Duality
from ccmac.certificates.farkas import Farkas, crossing
from ccmac.certificates.gap import Goal
from ccmac.certificates.recession import Recessions
from ccmac.errors import MethodRefused
from ccmac.methods.base import Method, Prepared, Request
from ccmac.methods.interior.compressed import compressed, compressible
from ccmac.methods.interior.feasible import ends_of
from ccmac.methods.interior.iteration import Interior
from ccmac.methods.interior.lifted import Lifted, LiftedStop
from ccmac.methods.interior.made import forms_of, interior
from ccmac.methods.interior.stopping import DualityStop
from ccmac.methods.options import option
from ccmac.workspace import Workspace
from ccmac.workspace.constraints import Constraints


@dataclass(frozen=True)
class CrossIpm(Method):
    """Predictor and corrector steps, one sum of a matrix each.

    Parameters
    ----------
    radius : float, optional
        R >= ||(x0, z0) - (x*, z*)||, for which the bound must hold (estimated).
    accuracy : float, optional
        Absolute accuracy eps (tol max(1, |F|)).

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, np.sign(X[:, 0]), 3, loss="hinge")
    >>> ccmac.solve(problem, "ring", ccmac.methods.CrossIpm()).status
    'optimal'
    """

    name = "cross-ipm"
    summary = "quadratics with bounds or kinks, curved or flat: interior points, one sum a step"
    needs = frozenset({"polyhedral"})
    reveals = (
        "the equations (of long rows their range), eliminated Hessians at every step, and from a "
        "warm start entries whose bounds may become active"
    )

    radius: float | None = option(
        None, float, "R >= ||(x0, z0) - (x*, z*)||, for which the bound must hold (estimated)"
    )
    accuracy: float | None = option(None, float, "absolute accuracy eps (tol max(1, |F|))")

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """Gather bounds and supports; long rows are brought to their range first."""
        if compressible(work):
            return self._lifted(work, request)
        if (reduced := work.gather_constraints()) is not None:
            return self._prepared(work, reduced, request)
        raise MethodRefused(
            "method cross-ipm needs equations small enough to be known to all "
            f"(m = {work.problem.m}, q = {work.problem.q}), or a squared loss of few columns; use "
            "cross-sliding"
        )

    def _prepared(
        self,
        work: Workspace,
        reduced: Constraints,
        request: Request,
        kind: type[Interior] = Interior,
        rule: type[DualityStop] = DualityStop,
    ) -> Prepared:
        iteration, bounds = interior(work, reduced, kind)
        found: dict[str, Any] = {}
        stopping = None
        if not request.reference:
            goal = Goal(request.tol, self.accuracy, self.radius)
            forms = forms_of(work)
            units = iteration.setup.units
            plain = kind is Interior and not work.curvature.quadratic
            if not plain or self.radius is not None:
                units = None  # R is a distance of the user's
            measure = None if units is None else (units.x, units.z)
            start = request.x0, request.z0
            duality = Duality(work, reduced, forms, bounds, start, measure)
            ends = ends_of(bounds)
            tests = Farkas(work, forms, ends), Recessions(work, reduced, forms, ends)
            stopping = rule(duality, goal, found, tests, crossing(bounds, work.problem.m))
        settings = {
            "rows": reduced.rank,
            "flat": len(iteration.equations.gamma),
            "entries": len(iteration.entries[0]),
        }
        return Prepared(
            iteration,
            stopping,
            "summed",
            "few coupled rows and shared variables",
            settings,
            certificates=found,
            first_check=1,
        )

    def _lifted(self, work: Workspace, request: Request) -> Prepared:
        """On the range of the coupled rows."""
        lift, inner = compressed(work)
        reduced = inner.gather_constraints()
        assert reduced is not None  # COLUMNS is small
        asked = replace(request, z0=lift.Q.T @ request.z0)
        prepared = self._prepared(inner, reduced, asked, Lifted, LiftedStop)
        assert isinstance(prepared.iteration, Lifted)
        prepared.iteration.lift = lift
        if isinstance(prepared.stopping, LiftedStop):
            prepared.stopping.whole = work.problem
        return replace(
            prepared,
            realization="compressed",
            why="long coupled rows, few columns",
            settings={"range": lift.rank, **prepared.settings},
            proves=True,
        )
