"""cross-continuation: smooth objectives without strong convexity.

Stages ended by a computable test; ``schedule="certified"`` runs the paper's instead
(:mod:`ccmac.paper.schedules.continuation`). Without equations accelerated gradients do.

A stage is a step of an inexact proximal point method: F + (nu/2) ||w - c||^2 is minimised by the
steps of Algorithm alg:cvx-stage (without its augmentation) until

    ||grad phi_nu(g) + p|| <= 0.8 nu ||g - c||   and   ||violation|| <= 0.8 (nu/L)^{1/2} ||g - c||;

then the point is repaired, the dual is corrected by affine calls, the gap is bounded, the centre
moves there, and nu shrinks by 4 when the bound did not halve. The norms travel in the messages of
the next step, so that a stage ends one step after its test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ccmac.certificates.gap import GapCertifier, GapJudge, Goal, PointGap, execution_radius
from ccmac.certificates.stopping import Stop
from ccmac.errors import MethodRefused
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.chebyshev import chebyshev_correction, correction_interval, outer_degree
from ccmac.methods.base import Prepared, Request, State, option, rows, vector
from ccmac.methods.paper import imported
from ccmac.methods.realized import ConvexMethod, ProvedIteration, doubt_slopes, found_in, proved
from ccmac.realizations.base import AffineSystem, ExecutionObjective
from ccmac.runtime.space import lengths
from ccmac.workspace import Workspace

TEST = 0.8


@dataclass(frozen=True)
class Correction:
    """w - RF(w) = P (w - w_ref) of one system; ``degree`` residuals."""

    system: AffineSystem
    degree: int

    @classmethod
    def of(cls, system: AffineSystem) -> Correction:
        """d_RF = ceil sqrt(lambda_hi / l)."""
        return cls(system, outer_degree(system.interval.low, system.interval.high))

    def __call__(self, w: Array) -> Array:
        """P (w - w_ref)."""
        interval = self.system.interval
        moved, _ = chebyshev_correction(
            self.system.residual, w, interval.low, interval.high, self.degree
        )
        return moved


@dataclass(frozen=True)
class StageSteps:
    """tau, eta, theta of one regularization nu; ``weight`` of the augmentation (L in the paper)."""

    nu: float
    tau: float
    eta: float
    theta: float
    weight: float = 0.0


@dataclass(frozen=True)
class Moved:
    """What one step computed: the new triple, and the values a stage's test needs."""

    x: Array
    f: Array
    p: Array
    g: Array
    slope: Array  # grad phi_nu(g)
    violation: Array  # P (g - w_ref) (of the half step where nothing is augmented)


def stage_step(
    objective: ExecutionObjective,
    correct: Correction,
    s: StageSteps,
    x: Array,
    f: Array,
    p: Array,
    centre: Array,
) -> Moved:
    """Algorithm alg:cvx-stage. Cost: 1 gradient, 2 d_RF residuals (d_RF without augmentation)."""
    g = s.tau * x + (1.0 - s.tau) * f
    slope = objective.gradient(g) + s.nu * (g - centre)
    violation = None
    if s.weight:
        violation = correct(g)
        slope = slope + s.weight * violation
    shrink = 1.0 / (1.0 + s.eta * s.nu)
    half = (x - s.eta * (slope - s.nu * g + p)) * shrink
    moved = correct(half)
    if violation is None:
        violation = moved
    change = s.theta * moved
    ahead = half - (s.eta * shrink) * change
    f = g + (2.0 * s.tau / (2.0 - s.tau)) * (ahead - x)
    return Moved(ahead, f, p + change, g, slope, violation)


@dataclass(frozen=True)
class PracticalState(State):
    """w, x, the dual p, the centre, and the last bound.

    ``outgoing`` are the agents' shares of what the test of a stage needs, for the next message;
    ``fresh`` says that the bound is of this iterate.
    """

    w: Array = vector()
    x: Array = vector()
    p: Array = vector()
    centre: Array = vector()
    outgoing: Array = rows()
    nu: float = 0.0
    inner: int = 0
    fresh: bool = False
    value: float = 0.0
    base: float = 0.0
    slope: float = 0.0
    distance: float = 0.0
    travelled: float = 0.0


class PracticalContinuation(ProvedIteration[PracticalState]):
    """The iteration of the module text: the bound of its gap steers the stages."""

    def __init__(self, certifier: GapCertifier, goal: Goal) -> None:
        super().__init__(certifier, goal)
        self.correct = Correction.of(self.system)

    def begin(self, w: Array, p: Array, multiplier: Array) -> PracticalState:
        """The gap at the start is bounded with the dual given."""
        outgoing = np.zeros((self.space.count, 3))
        state = PracticalState(w, w.copy(), p, w.copy(), outgoing, self.objective.L / 4.0)
        return self._noted(state, self.certifier.gap(w, self.objective.gradient(w), p))

    def step(self, state: PracticalState) -> PracticalState:
        """One step of a stage."""
        state = replace(state, fresh=False, inner=state.inner + 1)
        L = self.objective.L
        space = self.space
        nu = state.nu
        centre = state.centre
        correct = self.correct
        interval = self.system.interval
        low, high = correction_interval(interval.low, interval.high, correct.degree)
        smooth = L + nu
        tau = min(1.0, 0.5 * math.sqrt(high * nu / (low * smooth)))
        eta = 1.0 / (4.0 * tau * smooth)
        steps = StageSteps(nu, tau, eta, 1.0 / (eta * high))
        received = space.runtime.piggyback(state.outgoing)
        moved = stage_step(self.objective, correct, steps, state.x, state.w, state.p, centre)
        away, steep, off = lengths(received)  # of the step before
        asked = (moved.g - centre, moved.slope + moved.p, moved.violation)
        squares = np.hstack([space.partial_dots(v, v) for v in asked])
        state = replace(state, x=moved.x, w=moved.f, p=moved.p, outgoing=squares)
        over = steep <= TEST * nu * away and off <= TEST * math.sqrt(nu / L) * away
        return self._ended(state, moved.g) if over and state.inner >= 3 else state

    def _ended(self, state: PracticalState, g: Array) -> PracticalState:
        """The next stage, from the repaired g."""
        goal = self.goal
        certifier = self.certifier
        before = self._known(state)
        epsilon = goal.epsilon(before.value)
        target = max(epsilon, 0.05 * before.bound(before.required(goal)))
        way = certifier.way(g)
        [travelled] = self.space.norms(way)
        radius = max(before.required(goal), travelled)
        reach = execution_radius(self.realized, radius)
        near = 0.02 * target / max(self.objective.L * reach, before.steepness)
        point, distance = certifier.repaired(g, near)
        gradient = self.objective.gradient(point)
        more, _ = certifier.project(gradient + state.p, 0.02 * target / radius)
        p = state.p + more
        found = certifier.gap(point, gradient, p, distance=distance)
        required = found.required(goal)
        slow = found.bound(required) > 0.5 * before.bound(required)
        nu = state.nu / 4.0 if slow else state.nu
        state = replace(state, w=point, x=point, centre=point, p=p, nu=nu, inner=0)
        return self._noted(state, found)

    # -- the bound -------------------------------------------------------------------
    def _noted(self, state: PracticalState, found: PointGap) -> PracticalState:
        return replace(
            state,
            fresh=True,
            value=found.value,
            base=found.base,
            slope=found.slope,
            distance=found.distance,
            travelled=found.travelled,
        )

    def _known(self, state: PracticalState) -> PointGap:
        """The latest bound (its point is the iterate it was taken at)."""
        return PointGap(
            value=state.value,
            base=state.base,
            slope=state.slope,
            violation=state.distance,
            travelled=state.travelled,
            w=state.w,
            gradient=state.w,
            p=state.p,
            distance=state.distance,
            steepness=self.objective.L,
            smooth=True,
            scale=execution_radius(self.realized, 1.0),
        )

    def quick_gap(self, state: PracticalState) -> PointGap | None:
        """The bound of this very iterate, if the schedule took one."""
        return self._known(state) if state.fresh else None

    @property
    def cost(self) -> Cost:
        """1 gradient, the residuals of a correction that carries three scalars."""
        corrected = self.correct.degree * self.system.cost
        width = self.system.width + self.space.q
        return self.objective.cost + self.space.runtime.with_piggybacked(corrected, 3, width=width)


@dataclass(frozen=True)
class GradientState(State):
    """x, the point y ahead of it, and t."""

    w: Array = vector()
    ahead: Array = vector()
    t: float = 1.0
    count: int = 0


class AcceleratedGradient(ProvedIteration[GradientState]):
    """Accelerated gradients for a smooth convex F without equations (Algorithm alg:cvx-agd).

        x+ = y - grad F(y)/L,   t+ = (1 + sqrt(1 + 4 t^2))/2,   y = x+ + (t - 1)/t+ (x+ - x)

    F(x_k) - F* <= 2 L R^2 / (k + 1)^2, so ceil sqrt(2 L R^2 / eps) gradients suffice: ``steps``.
    Without a number of them the momentum is dropped when it points uphill: one reduction a step.
    """

    def __init__(self, certifier: GapCertifier, goal: Goal, steps: int | None = None) -> None:
        super().__init__(certifier, goal)
        self.steps = steps

    def begin(self, w: Array, p: Array, multiplier: Array) -> GradientState:
        """x = y, t = 1; without equations there is no dual."""
        return GradientState(w, w.copy())

    def step(self, state: GradientState) -> GradientState:
        """One iteration."""
        t = state.t
        ahead = state.ahead
        gradient = self.objective.gradient(ahead)
        new = ahead - gradient / self.objective.L
        if self.steps is None and self.space.dot(gradient, new - state.w) > 0:
            t = 1.0
        following = (1.0 + math.sqrt(1.0 + 4.0 * t * t)) / 2.0
        ahead = new + ((t - 1.0) / following) * (new - state.w)
        return GradientState(new, ahead, following, state.count + 1)

    def quick_gap(self, state: GradientState) -> PointGap | None:
        """At the iterate: 1 gradient, an averaging."""
        return self.certifier.gap(state.w, self.objective.gradient(state.w), self.space.zeros())

    def finished(self, state: GradientState) -> bool:
        """After ``steps`` gradients."""
        return self.steps is not None and state.count >= self.steps

    @property
    def cost(self) -> Cost:
        """1 gradient (and a reduction with restarts)."""
        reduction = self.space.runtime.total_cost() if self.steps is None else Cost()
        return self.objective.cost + reduction


@dataclass(frozen=True)
class CrossContinuation(ConvexMethod):
    """Accelerated primal-dual stages with shrinking regularization.

    Parameters
    ----------
    realization : {"averaged", "canonical", "certified", "stack"}
        How the constraints are executed (default averaged).
    certificates : Certificates, optional
        Spectral constants you vouch for; the rest is estimated.
    scale : float, optional
        S^2 of z = s z~ in units of the balanced scale (averaged only).
    inner : int, optional
        Size of the normalizer: vectors, or polynomial degree (averaged, canonical,
        certified only).
    outer : int, optional
        Degree of the Chebyshev correction over both channels (averaged only).
    rule : {"paper", "tight", "exact"}, optional
        Degree of the normalizers (canonical, stack only).
    delta : float, optional
        Accuracy 1 -+ delta of the normalizers (0.5) (canonical, certified, stack only).
    interval : str, optional
        One of "certificate", "certificate-delta", "certificate-spread", "tight", "minimal":
        where the spectrum of the stack is taken from (canonical, stack only).
    model : {"channel-2", "paper-6"}, optional
        Which calls are charged modelled rounds (canonical only).
    materialise : bool, optional
        Multiply small channels out, at an unchanged charge (canonical, certified only).
    spectra : list, optional
        Intervals (low, high) that hold spec^+(M_j M_j') (stack only).
    schedule : {"practical", "certified"}
        Stages ended by computable tests, or the paper's schedule for a radius (default
        practical).
    radius : float, optional
        R >= ||(x0, z0) - (x*, z*)||, for which the bound must hold (estimated).
    accuracy : float, optional
        Absolute accuracy eps (tol max(1, |F|)).
    multiplier_budget : float, optional
        Bound on sigma ||lambda*|| / (L R); by default from the gradient at the start.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, X[:, 0], 3)
    >>> ccmac.solve(problem, "ring", ccmac.methods.CrossContinuation()).status
    'optimal'
    """

    name = "cross-continuation"
    summary = (
        "accelerated primal-dual stages with shrinking regularization (smooth, not strongly convex)"
    )
    needs = frozenset({"smooth"})
    scheduled: ClassVar[dict[str, str]] = {"multiplier_budget": "certified"}

    multiplier_budget: float | None = option(
        None, float, "bound on sigma ||lambda*|| / (L R); by default from the gradient at the start"
    )

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """The realization asked for, then the schedule asked for."""
        doubt_slopes(work)
        realized = self.realize(work, request)
        goal = self.goal(request)
        if not realized.objective.L > 0:
            raise MethodRefused(
                f"{self.name} needs curvature: F is linear (L = 0); use cross-sliding"
            )
        w0 = realized.embed(request.x0, request.z0)
        certifier = GapCertifier(realized, w0)
        found = found_in(realized, L=realized.objective.L, schedule=self.schedule)
        if self.schedule == "certified":
            schedule = imported("schedules.continuation:certified")
            return schedule(self, certifier, goal, found)  # type: ignore[no-any-return]
        why = "smooth, not strongly convex"
        stopping = None
        if realized.system.empty:
            gradients = AcceleratedGradient(certifier, goal)
            if not request.reference:
                stopping = Stop(GapJudge(gradients, goal, found))
            return proved(gradients, stopping, why, found)
        stages = PracticalContinuation(certifier, goal)
        if not request.reference:
            stopping = Stop(GapJudge(stages, goal, found), every=True)
        return proved(stages, stopping, why, found)
