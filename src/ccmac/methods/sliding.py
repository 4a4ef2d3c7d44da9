"""cross-sliding: objectives with kinks or simple sets.

Proximal primal-dual steps on the normalized stack where every objective has a prox, or is the sum
of a smooth function and one with a prox (``schedule="certified"``: the paper's subgradients
instead, :mod:`ccmac.paper.schedules.sliding`):

    w = prox_{F/S}(x - q/S),     p = q + (S/lambda_+) (Q (2 w - x) - g),     q = K'y
    (x, q) <- j/(j+1) (2 (w, p) - (x, q)) + 1/(j+1) anchor,     Q = K'K, g = K'v

PDHG steps (with an exactly normalized stack: Douglas-Rachford), reflected and drawn to an anchor as
in Halpern's iteration; the anchor moves and S is renewed when the length of a step has fallen
enough since the last time. Kinks profit from that, several times over; a smooth F does better with
over-relaxed steps and no anchor, (x, q) <- (x, q) + 1.8 ((w, p) - (x, q)). S is learned from the
distances that the two sequences have travelled (see ``primal_dual``). Every step knows a
subgradient of F at its own point, S (x - w) - q, so that the gap is bounded without further oracle
calls.

Where only a part G of F = H + G has a prox, H is met by its gradient (Condat-Vu steps):

    w = prox_{G/(S+L)}(x - (q + grad H(x))/(S + L)),     L = diag(L_x, L_z) >= the Hessian of H;

the reflection 2 (w, p) - (x, q) shortens to (x, q) + 1.5 ((w, p) - (x, q)), and
(S + L) (x - w) - q is a subgradient of F at w up to <w - x, L (w - x)>.
Cost: 1 prox, 1 residual (and 1 gradient); scalars travel with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from ccmac.certificates.gap import GapCertifier, GapJudge, Goal, PointGap
from ccmac.certificates.stopping import Stop
from ccmac.errors import MethodRefused
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods.base import Prepared, Request, State, option, rows, vector
from ccmac.methods.paper import imported
from ccmac.methods.realized import (
    ConvexMethod,
    ProvedIteration,
    adapted_weight,
    doubt_slopes,
    found_in,
    proved,
)
from ccmac.problem import Problem
from ccmac.realizations.base import Realized
from ccmac.realizations.parts import Parts, first_weight, split_problem
from ccmac.workspace import Workspace


@dataclass(frozen=True)
class ProximalState(State):
    """(w, p), a subgradient of F at w up to ``slack``, (x, q), the start, the anchor.

    ``count`` steps are done, ``inner`` since the anchor moved; ``first`` and ``length`` are the
    lengths of the first and the last but one of these: the last is known with the next message,
    which carries the agents' parts ``outgoing`` of the dual's; ``energy`` is the rest of it.
    """

    w: Array = vector()
    p: Array = vector()
    slope: Array = vector()
    x: Array = vector()
    q: Array = vector()
    w_start: Array = vector()
    p_start: Array = vector()
    w_anchor: Array = vector()
    p_anchor: Array = vector()
    outgoing: Array = rows()
    weight: float = 1.0
    slack: float = 0.0
    count: int = 0
    inner: int = 0
    first: float = math.inf
    length: float = math.inf
    energy: float = 0.0


class ProximalPrimalDual(ProvedIteration[ProximalState]):
    """``weight`` is the first S; over-relaxed unless ``anchored``."""

    def __init__(
        self,
        certifier: GapCertifier,
        goal: Goal,
        parts: Parts,
        weight: float,
        *,
        anchored: bool = True,
    ) -> None:
        super().__init__(certifier, goal)
        self.parts = parts
        self.weight = weight
        self.anchored = anchored

    def begin(self, w: Array, p: Array, multiplier: Array) -> ProximalState:
        """The anchor is at the start."""
        x, w_start, w_anchor = (w.copy() for _ in range(3))
        q, p_start, p_anchor = (p.copy() for _ in range(3))
        return ProximalState(
            w,
            p,
            np.zeros_like(w),
            x,
            q,
            w_start,
            p_start,
            w_anchor,
            p_anchor,
            np.zeros((self.space.count, 1)),
            self.weight,
        )

    def step(self, state: ProximalState) -> ProximalState:
        """One iteration."""
        space = self.space
        system = self.system
        parts = self.parts
        weight = state.weight
        x = state.x
        q = state.q
        w = parts.backward(x, q + parts.slope(x), weight)
        step = x - w
        slope = weight * step - q
        bent = np.zeros_like(step) if parts.smooth is None else parts.bend(step)
        slope += bent
        rows = [space.partial_dots(v, step) for v in (step, bent)]
        received = space.runtime.piggyback(np.hstack([*rows, state.outgoing]))
        high = 1.0
        p = q
        if not system.empty:
            high = system.interval.high
            p = q + (weight / high) * system.residual(2.0 * w - x)[0]
        moved, slack, priced = (float(v) for v in received.value)
        # Of the step before: how far p moved is known with the next message.
        length = math.sqrt(state.energy + priced * high) if state.inner else math.inf
        before = state.length
        state = replace(
            state,
            w=w,
            p=p,
            slope=slope,
            slack=slack,
            length=length,
            first=length if state.inner == 1 else state.first,
            energy=weight * (weight * moved + slack),
            outgoing=space.partial_dots(p - q, p - q),
            count=state.count + 1,
            inner=state.inner + 1,
        )
        return self._anchored(state) if self._restarts(state, before) else self._ahead(state)

    def _ahead(self, state: ProximalState) -> ProximalState:
        """(x, q) reflected and drawn to the anchor, or over-relaxed."""
        w = state.w
        p = state.p
        x = state.x
        q = state.q
        ahead = 2.0 if self.parts.smooth is None else 1.5
        if not self.anchored:
            # of the longest step under which the iteration is still nonexpansive
            ahead *= 0.9
            return replace(state, x=x + ahead * (w - x), q=q + ahead * (p - q))
        share = state.inner / (state.inner + 1.0)
        return replace(
            state,
            x=share * (x + ahead * (w - x)) + (1.0 - share) * state.w_anchor,
            q=share * (q + ahead * (p - q)) + (1.0 - share) * state.p_anchor,
        )

    def _anchored(self, state: ProximalState) -> ProximalState:
        """Start anew from (w, p), with the weight that the distances travelled suggest."""
        w = state.w
        p = state.p
        weight = state.weight
        if not self.system.empty:
            moved = p - state.p_start, w - state.w_start
            weight = adapted_weight(self.space, weight, *moved)
        return replace(
            state,
            weight=weight,
            x=w,
            q=p,
            w_anchor=w,
            p_anchor=p,
            inner=0,
            first=math.inf,
            length=math.inf,
        )

    def _restarts(self, state: ProximalState, before: float) -> bool:
        """A step a fifth as long as the first, one that grows again, or a long time."""
        inner = state.inner
        first = state.first
        length = state.length
        if inner < 3:
            return False
        if not self.anchored:
            return inner >= state.count / 3.0
        if length <= 0.2 * first or (length <= 0.8 * first and length > before):
            return True
        return inner >= 0.4 * state.count and state.count > 20

    @property
    def cost(self) -> Cost:
        """1 prox, 1 residual that carries scalars; with H 1 gradient."""
        width = self.system.width + self.space.q
        plain = Cost(proxes=1) + self.space.runtime.with_piggybacked(
            self.residual_cost, 3, width=width
        )
        smooth = self.parts.smooth
        return plain if smooth is None else plain + smooth.cost

    def quick_gap(self, state: ProximalState) -> PointGap:
        """At the last iterate with the dual at hand: a residual, an averaging."""
        return self.certifier.gap(state.w, state.slope, state.p, slack=state.slack)

    def tight_gap(self, state: ProximalState) -> PointGap:
        """At the repaired iterate."""
        found = self.certifier.tight_subgradient(state.w, state.slope, self.goal, state.slack)
        return replace(found, source="last")


@dataclass(frozen=True)
class CrossSliding(ConvexMethod):
    """Proximal primal-dual steps, or the paper's sliding with subgradients.

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
    lipschitz : float, optional
        M >= ||F'|| within 3R of the solution; by default as declared.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, X[:, 0], 3, l1=0.1)
    >>> ccmac.solve(problem, "ring", ccmac.methods.CrossSliding()).status
    'optimal'
    """

    name = "cross-sliding"
    summary = (
        "proximal primal-dual steps, or primal-dual sliding with subgradients "
        "(nonsmooth, simple sets)"
    )
    scheduled: ClassVar[dict[str, str]] = {"lipschitz": "certified"}

    lipschitz: float | None = option(
        None, float, "M >= ||F'|| within 3R of the solution; by default as declared"
    )

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """Choose the mode by what the objectives offer."""
        doubt_slopes(work)
        if self.schedule == "certified":
            schedule = imported("schedules.sliding:certified")
            return schedule(self, work, request)  # type: ignore[no-any-return]
        if "prox" in work.capabilities:
            return self._proximal(work, request)
        parts = split_problem(work)
        if parts is None:
            raise MethodRefused(
                "cross-sliding: some objective has no prox, nor is it a sum of smooth terms and "
                'one that has; for subgradients alone give CrossSliding(schedule="certified", '
                "radius=R), R >= ||(x0, z0) - (x*, z*)||"
            )
        return self._proximal(work, request, parts)

    def realized(self, work: Workspace, request: Request) -> Realized:
        """Averaged: the scale from the geometry (curvature says nothing); else as it is."""
        chosen = work.stack is not None or self.realization != "averaged"
        chosen = chosen or self.scale is not None
        return self.realize(work, request, **({} if chosen else {"floor": 0.02}))

    def _proximal(
        self, work: Workspace, request: Request, split: tuple[Problem, Problem] | None = None
    ) -> Prepared:
        """``split``: the smooth and the simple part, where F itself has no prox."""
        realized = self.realized(work, request)
        goal = self.goal(request)
        w0 = realized.embed(request.x0, request.z0)
        certifier = GapCertifier(realized, w0)
        if split is None:
            why = "proximal steps, every objective has a prox"
            mode = "proximal"
            parts = Parts(None, realized.objective)
            weight = first_weight(realized.objective, w0)
        else:
            why = "proximal steps for the simple parts, gradients for the smooth ones"
            mode = "proximal gradient"
            parts = Parts.of(realized, split)
            slope = np.zeros_like(w0) + parts.slope(w0)
            weight = first_weight(realized.objective, w0, partial(parts.backward, w0, slope))
        anchored = not work.curvature.smooth
        iteration = ProximalPrimalDual(certifier, goal, parts, weight, anchored=anchored)
        found = found_in(realized, schedule="practical", mode=mode, first_weight=weight)
        stopping = None if request.reference else Stop(GapJudge(iteration, goal, found))
        return proved(iteration, stopping, why, found)
