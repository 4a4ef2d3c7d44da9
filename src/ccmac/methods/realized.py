"""Methods and iterations that run on a realization of the constraints, and the options they share.

One dispatch over the realizations (:meth:`RealizedMethod.realize`), and one way for methods
without a normalized realization of their own to have their points judged (:class:`JudgedMethod`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
import scipy.linalg

from ccmac.certificates.gap import GapCertifier, Goal, PointGap
from ccmac.certificates.stopping import Stopping
from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.blocks import dense
from ccmac.linalg.tolerances import PROMISED, RANK
from ccmac.methods.base import Iteration, Method, Prepared, Request, S, option
from ccmac.methods.paper import REALIZATIONS as REALIZATIONS_OF_PAPER
from ccmac.methods.paper import imported
from ccmac.realizations.averaged.rule import Wanted, averaged
from ccmac.realizations.base import Certificates, Realized, resolved
from ccmac.runtime.space import Space
from ccmac.workspace import Workspace

REALIZATIONS = ("averaged", *REALIZATIONS_OF_PAPER)
SCHEDULE = "stages ended by computable tests, or the paper's schedule for a radius"
SPREAD = 10.0
SLOPES = (
    "the objective slopes along directions without curvature of its own: whether it falls without "
    "end is not known; add curvature, or use cross-ipm"
)
CERTIFICATES = "spectral constants you vouch for; the rest is estimated"


class RealizedIteration(Iteration[S]):
    """An iteration on the execution vectors of a realization; its state has ``w``.

    Parameters
    ----------
    realized : Realized
        The execution vectors and their operators.

    Examples
    --------
    >>> from ccmac.methods import Iteration, RealizedIteration
    >>> issubclass(RealizedIteration, Iteration)
    True
    """

    def __init__(self, realized: Realized) -> None:
        self.realized = realized
        self.space = realized.space
        self.objective = realized.objective
        self.system = realized.system

    @abstractmethod
    def begin(self, w: Array, p: Array, multiplier: Array) -> S:
        """State at the execution vector w with the dual p in Range K' and its coupled multiplier.

        All three are new arrays that the state may keep.
        """

    def start(
        self, x: Array, z: Array, dual: Array | None = None, multiplier: Array | None = None
    ) -> S:
        """Embed the user's variables; the dual scales like a gradient."""
        w = self.realized.embed(x, z)
        p = self.space.zeros()
        if dual is not None:
            p[: self.space.z_end] = dual[: self.space.z_end]
            self.space.z(p)[...] *= self.realized.s
        known = self.system.zero_multiplier()
        if multiplier is not None:
            known[...] = multiplier[: known.shape[1]]
        return self.begin(w, p, known)

    def output(self, state: S) -> Array:
        """The execution vector to report."""
        return state.w  # type: ignore[attr-defined,no-any-return]

    def point(self, state: S) -> tuple[Array, Array]:
        """Local variables and copies."""
        w = self.output(state)
        return self.space.x(w), self.realized.copies(w)

    def embedded(self, state: S, realized: Realized) -> Array:
        """The iteration's own vector where the realization is its own."""
        own = realized is self.realized
        return self.output(state) if own else super().embedded(state, realized)

    @property
    def residual_cost(self) -> Cost:
        """One residual, if there are equations."""
        return Cost() if self.system.empty else self.system.cost


@dataclass(frozen=True)
class RealizedMethod(Method):
    """The options of a realization; each is refused where the realization has no use for it."""

    realization: str = option(
        "averaged", str, "how the constraints are executed", choices=REALIZATIONS
    )
    certificates: Certificates | None = option(None, Certificates, CERTIFICATES)
    scale: float | None = option(
        None, float, "s^2 of z = s z~ in units of the balanced scale", only=["averaged"]
    )
    inner: int | None = option(
        None,
        int,
        "size of the normalizer: vectors, or polynomial degree",
        only=["averaged", "canonical", "certified"],
    )
    outer: int | None = option(
        None, int, "degree of the Chebyshev correction over both channels", only=["averaged"]
    )
    rule: str | None = option(
        None,
        str,
        "degree of the normalizers",
        choices=("paper", "tight", "exact"),
        only=["canonical", "stack"],
    )
    delta: float | None = option(
        None,
        float,
        "accuracy 1 -+ delta of the normalizers (0.5)",
        only=["canonical", "certified", "stack"],
        below=1.0,
    )
    interval: str | None = option(
        None,
        str,
        "where the spectrum of the stack is taken from",
        choices=("certificate", "certificate-delta", "certificate-spread", "tight", "minimal"),
        only=["canonical", "stack"],
    )
    model: str | None = option(
        None,
        str,
        "which calls are charged modelled rounds",
        choices=("channel-2", "paper-6"),
        only=["canonical"],
    )
    materialise: bool | None = option(
        None,
        bool,
        "multiply small channels out, at an unchanged charge",
        only=["canonical", "certified"],
    )
    spectra: list[Any] | None = option(
        None, list, "intervals (low, high) that hold spec^+(M_j M_j')", only=["stack"]
    )

    stand_in: ClassVar[float | None] = None  # condition to plan with where mu = 0

    def refuse_shape(self, stack: bool) -> None:
        """A Stack has its own realization, which is also what averaged means there."""
        if stack and self.realization == "averaged":
            replace(self, realization="stack")
        elif stack != (self.realization == "stack"):
            raise InputError(
                f"{self.name}: realization {self.realization!r} does not fit; a Stack is "
                "normalized channel by channel (realization 'stack'), a Problem is not"
            )

    def realize(
        self, work: Workspace, request: Request, by_multiplier: bool = False, /, **fixed: Any
    ) -> Realized:
        """The realization asked for, charged to setup; ``fixed`` adds to what is decided.

        ``by_multiplier``: the multiplier alone is going to prove the tolerance.
        """
        given = self.certificates or Certificates()
        if work.stack is not None and self.realization == "averaged":
            return replace(self, realization="stack").realize(work, request)
        if self.realization == "averaged":
            own = self._set("scale", "inner", "outer")
            wanted = Wanted(
                **own,
                certificates=given,
                stand_in=self.stand_in,
                target=request.target,
                by_multiplier=by_multiplier,
                costs=request.costs,
                seed=request.seed,
            )
            return averaged(work, replace(wanted, **fixed))
        realize = imported(REALIZATIONS_OF_PAPER[self.realization])
        if self.realization == "stack":
            own = self._set("rule", "delta", "spectra")
            minimal = self.interval == "minimal"
            stacked: Realized = realize(work, factor=given.cross_factor, minimal=minimal, **own)
            return stacked
        if self.realization == "canonical":
            own = self._set("inner", "rule", "delta", "interval", "model", "materialise")
        else:
            own = self._set("inner", "delta", "materialise")
        found: Realized = realize(work, certificates=given, **own)
        interval = found.system.interval
        if interval.source == "proved":  # from squares
            interval = replace(interval, source="exhausted")
        found.system.interval = resolved(work, interval)
        return found

    def _set(self, *names: str) -> dict[str, Any]:
        """Those of the options that were given."""
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


@dataclass(frozen=True)
class JudgedMethod(Method):
    """A method whose points are judged, and repaired, on the averaged realization."""

    certificates: Certificates | None = option(None, Certificates, CERTIFICATES)

    def judge(self, work: Workspace, request: Request) -> Realized:
        """The averaged realization, at the cost of one Lanczos run in setup.

        The Result reports the repaired point for which the bound holds.
        """
        given = self.certificates or Certificates()
        wanted = Wanted(
            certificates=given, target=request.target, costs=request.costs, seed=request.seed
        )
        return averaged(work, wanted)


# -- without strong convexity: a goal, proofs of it, the balance of steps --------------------------
class ProvedIteration(RealizedIteration[S]):
    """An iteration that can bound its own gap."""

    def __init__(self, certifier: GapCertifier, goal: Goal) -> None:
        super().__init__(certifier.realized)
        self.certifier = certifier
        self.goal = goal

    def quick_gap(self, state: S) -> PointGap | None:
        """A cheap bound; none by default."""
        return None

    def tight_gap(self, state: S) -> PointGap:
        """At the repaired iterate, for a smooth F."""
        return self.certifier.tight_smooth(self.output(state), self.goal)


@dataclass(frozen=True)
class ConvexMethod(RealizedMethod):
    """A method that proves F - F* <= eps and scaled feasibility <= eps for a radius."""

    schedule: str = option("practical", str, SCHEDULE, choices=("practical", "certified"))
    radius: float | None = option(
        None, float, "R >= ||(x0, z0) - (x*, z*)||, for which the bound must hold (estimated)"
    )
    accuracy: float | None = option(None, float, "absolute accuracy eps (tol max(1, |F|))")

    stand_in: ClassVar[float | None] = 100.0
    scheduled: ClassVar[dict[str, str]] = {}  # options that belong to one schedule

    def __post_init__(self) -> None:
        super().__post_init__()
        for f in fields(self):
            owner = self.scheduled.get(f.name, self.schedule)
            if owner != self.schedule and getattr(self, f.name) != f.default:
                raise InputError(
                    f"{self.name}: {f.name} belongs to schedule {owner!r}; "
                    f"leave it out with schedule {self.schedule!r}"
                )
        if self.schedule == "certified" and self.radius is None:
            raise InputError(
                f"{self.name}: schedule 'certified' needs R >= ||(x0, z0) - (x*, z*)||; give "
                f'{type(self).__name__}(schedule="certified", radius=R)'
            )

    def goal(self, request: Request) -> Goal:
        """What is to be proved."""
        return Goal(request.tol, self.accuracy, self.radius)


def doubt_slopes(work: Workspace) -> None:
    """A doubt where a quadratic F may fall without end: some g_i has a part along which H_i and C_i
    vanish.

    Interior points prove whether it does; a gap within a radius says nothing of it. Cost: a
    reduction, where all may know the equations.
    """
    weak = "quadratic" in work.capabilities and "strongly convex" not in work.capabilities
    if not weak or work.gather_constraints() is None:
        return
    rows = []
    for kernel, (i, agent) in zip(work.kernels, work.problem.agents.items(), strict=True):
        work.runtime.mind_the_time()
        d = work.problem.d[i]
        H, g, _ = agent.objective.quadratic(d, work.problem.q)
        N = scipy.linalg.block_diag(kernel.basis, np.eye(work.problem.q))
        own = N.T @ dense(H) @ N
        left = N.T @ g - own @ np.linalg.lstsq(own, N.T @ g, rcond=RANK)[0]
        rows.append([float(np.linalg.norm(left) > PROMISED * np.linalg.norm(g))])
    if work.runtime.total(np.array(rows))[0]:
        work.doubts.append(SLOPES)


def found_in(realized: Realized, **more: Any) -> dict[str, Any]:
    """The start of Result.certificates."""
    interval = realized.system.interval
    return {"interval": [interval.low, interval.high], "source": interval.source, **more}


def proved(
    iteration: ProvedIteration[Any],
    stopping: Stopping | None,
    why: str,
    found: dict[str, Any],
    horizon: int | None = None,
) -> Prepared:
    """The iteration ready to run, judged on its own realization."""
    realized = iteration.realized
    settings = {k: v for k, v in realized.details.items() if k != "kappa_f"}
    return Prepared(
        iteration,
        stopping,
        realized.realization,
        why,
        settings,
        None,
        found,
        realized,
        horizon=horizon,
        notes=realized.notes,
    )


# -- balance of primal and dual steps --------------------------------------------------------------
# With w+ = prox or gradient step of length 1/S and p+ = p + (S/lambda_+) (...), the best S is the
# ratio ||p* - p0|| / ||w* - w0|| up to a constant: in normalized channels p and the multiplier have
# nearly the same norm. To look at the ratio is one averaging.
def adapted_weight(space: Space, weight: float, moved_p: Array, moved_w: Array) -> float:
    """Geometric mean of the weight and 3 ||moved_p|| / ||moved_w||, within ten times the weight."""
    dual, primal = space.norms(moved_p, moved_w)
    if not (0 < dual < math.inf and 0 < primal < math.inf):
        return weight
    wanted = math.sqrt(weight * 3.0 * dual / primal)
    return min(max(wanted, weight / SPREAD), weight * SPREAD)
