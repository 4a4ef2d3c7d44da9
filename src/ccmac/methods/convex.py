"""What the methods without strong convexity share: a goal, proofs of it, the balance of steps."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from ccmac.certificates.gap import GapCertifier, Goal, PointGap
from ccmac.certificates.stopping import Stopping
from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.methods.base import Prepared, Request, S, option
from ccmac.methods.realized import RealizedIteration, RealizedMethod
from ccmac.realizations.base import Realized
from ccmac.runtime.space import Space

SPREAD = 30.0
SCHEDULE = "stages ended by computable tests, or the paper's schedule for a radius"


class ProvedIteration(RealizedIteration[S]):
    """An iteration that can bound its own gap; ``found`` is what it adds to the record."""

    def __init__(self, certifier: GapCertifier, goal: Goal) -> None:
        super().__init__(certifier.realized)
        self.certifier = certifier
        self.goal = goal
        self.found: dict[str, float] = {}

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
# nearly the same norm. The ratio is looked at after 4, 6, 9, ... steps: one averaging each.
def next_adaptation(count: int) -> int:
    """When to look again."""
    # times the steps done
    return math.ceil(1.5 * count)


def adapted_weight(
    space: Space, weight: float, first: float, moved_p: Array, moved_w: Array
) -> float:
    """Geometric mean of the weight and 3 ||moved_p|| / ||moved_w||, within 30 times the first.

    The bounds matter where the multiplier vanishes: the ratio would send the weight to zero.
    """
    dual, primal = space.norms(moved_p, moved_w)
    if not (0 < dual < math.inf and 0 < primal < math.inf):
        return weight
    wanted = math.sqrt(weight * 3.0 * dual / primal)
    return min(max(wanted, first / SPREAD), first * SPREAD)
