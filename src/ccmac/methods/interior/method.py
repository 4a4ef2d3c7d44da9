"""cross-ipm: convex programs of quadratics with bounds, kinks and cones, by interior points.

Needs objectives that are a convex quadratic plus bounds and piecewise linear terms. The common
system is dense, in (z, coupled rows). Cost: setup five averagings (units, sparsity, the start); a
step 3, see :mod:`.iteration`; a certificate one. A squared loss of many rows and few columns is
brought to the range of the columns first (:mod:`ccmac.workspace.compressed`): one averaging of a
block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ccmac.certificates.gap import Duality, Goal
from ccmac.errors import MethodRefused
from ccmac.linalg.tolerances import PROMISED
from ccmac.methods.base import Method, Prepared, Request, option
from ccmac.methods.interior.alone import Alone, AloneJudge
from ccmac.methods.interior.compressed import Lifted, LiftedStop, alone, compressed, compressible
from ccmac.methods.interior.equilibration import equilibrating, scaled
from ccmac.methods.interior.iteration import Interior
from ccmac.methods.interior.stopping import DualityStop
from ccmac.methods.interior.verdict import Verdicts
from ccmac.workspace import Workspace
from ccmac.workspace.conic import conic_forms, conic_models
from ccmac.workspace.dual import Explicit

COMMON = 4_500  # shared variables and coupled rows: one dense system for everybody


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
        "which rows and entries of z an agent touches; sums of A_i D_i A_i', two of which tell "
        "columns that are at most as many as rows; A_i A_i' where rows are long"
    )

    radius: float | None = option(
        None, float, "R >= ||(x0, z0) - (x*, z*)||, for which the bound must hold (estimated)"
    )
    accuracy: float | None = option(None, float, "absolute accuracy eps (tol max(1, |F|))")

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """Models, units, the sparsity of the sum; long rows are brought to their range first."""
        if compressible(work):
            explicit = alone(work)
            if explicit is not None:
                return self._alone(work, explicit, request)
            return self._lifted(work, request)
        if work.runtime.averaging.hides and work.curvature.conic:
            raise MethodRefused(
                "method cross-ipm sends matrices that masked averagings do not take, and no other "
                "method takes cones; use averaging='relay' or 'tree'"
            )
        if not solvable(work):
            raise MethodRefused(
                "method cross-ipm needs one dense system for all, of at most "
                f"{COMMON} unknowns (m = {work.problem.m}, q = {work.problem.q}); use cross-sliding"
            )
        return self._prepared(work, request)

    def _prepared(
        self,
        work: Workspace,
        request: Request,
        kind: type[Interior] = Interior,
        rule: type[DualityStop] = DualityStop,
    ) -> Prepared:
        forms = conic_forms(work)
        models = conic_models(work, forms)
        if "units" not in work.agreed:
            work.agreed["units"] = equilibrating(models, work.runtime)
        units = work.agreed["units"]
        inner = [scaled(p, own) for p, own in zip(models, units, strict=True)]
        iteration = kind(work, forms, inner, units)
        found: dict[str, Any] = {}
        stopping = None
        if not request.reference:
            tol = request.tol
            if "quadratic" in work.capabilities and "strongly convex" not in work.capabilities:
                tol = min(tol, PROMISED)  # a gentle fall without end must not pass for a gap
            goal = Goal(tol, self.accuracy, self.radius)
            duality = Duality(work, forms, models, (request.x0, request.z0))
            stopping = rule(duality, goal, found, Verdicts(work, forms, models))
        settings = {"common": iteration.system.size, "entries": iteration.system.entries}
        return Prepared(
            iteration,
            stopping,
            "summed",
            "few coupled rows and shared variables",
            settings,
            certificates=found,
            proves=True,
        )

    def _alone(self, work: Workspace, explicit: Explicit, request: Request) -> Prepared:
        """By everybody alone, from turned columns."""
        iteration = Alone(work, explicit)
        goal = Goal(request.tol, self.accuracy, self.radius)
        judge = AloneJudge(iteration, goal, (request.x0, request.z0))
        return replace(iteration.prepared(judge, request), certificates=judge.record)

    def _lifted(self, work: Workspace, request: Request) -> Prepared:
        """On the range of the coupled rows."""
        lift, inner = compressed(work)
        asked = replace(request, z0=lift.Q.T @ request.z0)
        prepared = self._prepared(inner, asked, Lifted, LiftedStop)
        assert isinstance(prepared.iteration, Lifted)
        prepared.iteration.lift = lift
        if isinstance(prepared.stopping, LiftedStop):
            prepared.stopping.whole = work.problem
        return replace(
            prepared,
            realization="compressed",
            why="long coupled rows, few columns",
            settings={"range": lift.rank, **prepared.settings},
        )


def solvable(work: Workspace) -> bool:
    """Whether the common system is small enough for everybody, and nobody hides its part."""
    small = work.problem.q + work.problem.m <= COMMON
    return small and work.stack is None and not work.runtime.averaging.hides
