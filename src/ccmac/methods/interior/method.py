"""cross-ipm: quadratics with bounds and kinks, with or without curvature.

Needs objectives that are a convex quadratic plus bounds and piecewise linear terms, and equations
that all may know. Cost: setup 2 gatherings beside that of the equations (bounds on z, supports;
flat directions, where there are any); a step 3 averagings, see :mod:`.iteration`; a proof one.
A squared loss of many rows and few columns is brought to the range of the columns first
(:mod:`ccmac.workspace.compressed`): one averaging of a block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.certificates.duality import Duality, crossing
from ccmac.certificates.gap import Goal
from ccmac.errors import MethodRefused
from ccmac.inputs import Array
from ccmac.methods.base import Method, Prepared, Request
from ccmac.methods.interior.block import Block
from ccmac.methods.interior.iteration import Interior
from ccmac.methods.interior.lifted import Lifted, LiftedStop
from ccmac.methods.interior.state import Setup
from ccmac.methods.interior.stopping import DualityStop
from ccmac.methods.interior.units import Sizes
from ccmac.methods.options import option
from ccmac.objectives import Limited
from ccmac.objectives.polyhedral import Polyhedral
from ccmac.problem import Problem
from ccmac.workspace import Workspace
from ccmac.workspace.coupling import Packing, bits, words
from ccmac.workspace.reduced import Reduced

COMMON = 4_500  # shared variables and coupled and shared rows: one dense system for everybody
OWN = 3_000  # an agent's unknowns, epigraphs included


def solvable(work: Workspace) -> bool:
    """Whether the agents' blocks and the common system are small; one averaging."""
    problem, q = work.problem, work.problem.q
    if work.reduced is None or q + problem.m + len(work.reduced.e) > COMMON:
        return False
    sizes = []
    for i, agent in problem.agents.items():
        terms = agent.objective.polyhedral(problem.d[i], q).terms
        sizes.append([float(problem.d[i] + sum(len(t.a) + len(t.h) for t in terms))])
    return float(work.runtime.gather(np.array(sizes)).max()) <= OWN


def interior(
    work: Workspace, reduced: Reduced, kind: type[Interior] = Interior
) -> tuple[Interior, Array]:
    """(the iteration, everybody's bounds on z as rows of lower and upper ends)."""
    problem, q = work.problem, work.problem.q
    forms = [a.objective.polyhedral(problem.d[i], q) for i, a in problem.agents.items()]
    bounds, units, inner = np.zeros((0, 2 * q)), work.agreed.get("units"), reduced
    if units is None:
        asked = kind is Interior and "units" not in work.agreed  # lifted rows are orthonormal
        sizes = Sizes(work, reduced, forms) if asked else None
        blocks = _blocks(problem, reduced, forms)
        facts, bounds, supports = _told(work, blocks, "interior")
        if sizes is not None:
            units = sizes.units(bounds[:, :q].max(axis=0), bounds[:, q:].min(axis=0))
            work.agreed["units"] = units
    if units is not None:
        problem, inner = units.equations(work)
        blocks = _blocks(problem, inner, [units.form(k, f) for k, f in enumerate(forms)])
        facts, bounds, supports = _told(work, blocks, "interior in units")
    steepest = float(facts[:, 0].max())
    for block in blocks:
        block.scale(float(np.exp2(-np.round(np.log2(steepest)))) if steepest > 0 else 1.0)
    lower, upper = bounds[:, :q].max(axis=0), bounds[:, q:].min(axis=0)
    crossed = lower > upper
    inside = 0.5 * (lower[crossed] + upper[crossed])
    lower[crossed] = upper[crossed] = inside  # refuted before the first proof
    if units is not None:
        lower, upper = lower / units.z, upper / units.z
    packing = Packing(supports[:, q:], problem.n, problem.m)
    flats = _flats(work, blocks, facts[:, 2].astype(int), packing)
    there = supports.astype(np.float64)
    setup = Setup(lower, upper, there, flats, facts[:, 1], reduced, units)
    return kind(work, inner, blocks, setup), bounds


def _blocks(problem: Problem, reduced: Reduced, forms: list[Polyhedral]) -> list[Block]:
    """The agents' parts, coupled rows in unit length on ker C_i."""
    blocks = []
    for k, (i, agent) in enumerate(problem.agents.items()):
        A, basis = reduced.unit[:, None] * reduced.A[k], reduced.kernels[k].space.basis
        at = np.flatnonzero(np.any(A != 0, axis=1))
        A[at] -= (A[at] @ basis) @ basis.T
        blocks.append(Block(forms[k], problem.d[i], reduced.kernels[k], A, agent.C))
    return blocks


def _told(
    work: Workspace, blocks: list[Block], name: str
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """All agents' steepness, width and flat directions; ends of z; supports: one gathering."""
    q, m = work.problem.q, work.problem.m
    if name not in work.agreed:
        facts, touched = np.zeros((len(blocks), 3)), np.zeros((len(blocks), q + m), dtype=bool)
        for k, block in enumerate(blocks):
            facts[k] = block.steepness, block.width, block.flat.shape[1]
            touched[k, block.support] = True
        ends = np.array([_own_ends(work, i) for i in work.problem.agents])
        work.agreed[name] = work.runtime.gather(np.hstack([facts, ends, words(touched)]))
    facts, ends, support_words = np.split(work.agreed[name], [3, 3 + 2 * q], axis=1)
    return facts, _with_everybodys(work, ends), bits(support_words, q + m)


def _own_ends(work: Workspace, i: int) -> Array:
    """Lower and upper ends of z that agent i's own objective sets."""
    objective, q = work.problem.agents[i].objective, work.problem.q
    if isinstance(objective, Limited):
        objective = objective.objective
    form = objective.polyhedral(work.whole.d[i], q)
    return np.append(form.lower[-q:] if q else [], form.upper[-q:] if q else [])


def _with_everybodys(work: Workspace, ends: Array) -> Array:
    """The agents' ends of z within those that the problem sets for all."""
    whole, (low, high) = work.whole, np.split(ends, 2, axis=1)
    if whole.z_lower is not None:
        low = np.maximum(low, whole.z_lower)
    if whole.z_upper is not None:
        high = np.minimum(high, whole.z_upper)
    return np.hstack([low, high])


def _flats(
    work: Workspace, blocks: list[Block], counts: Array, packing: Packing
) -> list[tuple[Array, Array]]:
    """By agents: the unit rows along their flat directions and the slopes there."""
    m, most = work.problem.m, int(counts.max())
    if not most:
        return [(np.zeros((m, 0)), np.zeros(0))] * len(counts)
    told = []
    for i, block in zip(work.problem.agents, blocks, strict=True):
        rows, slopes, p = np.zeros((m, most)), np.zeros(most), block.flat.shape[1]
        rows[:, :p], slopes[:p] = block.A @ block.flat[: block.d], block.flat.T @ block.g_y
        told.append(np.append(packing.packed(rows, i), slopes))
    if "flats" not in work.agreed:
        work.agreed["flats"] = work.runtime.gather(np.stack(told))
    found = work.agreed["flats"]
    everybody = packing.unpacked(found[:, :-most], most)
    return [
        (rows[:, :p], slopes[:p])
        for rows, slopes, p in zip(everybody, found[:, -most:], counts, strict=True)
    ]


@dataclass(frozen=True)
class CrossIpm(Method):
    """Predictor and corrector steps, one sum of a matrix each."""

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
        if work.compressible:
            return self._lifted(work, request)
        if work.reduced is not None:
            return self._prepared(work, work.reduced, request)
        raise MethodRefused(
            "method cross-ipm needs equations small enough to be known to all "
            f"(m = {work.problem.m}, q = {work.problem.q}), or a squared loss of few columns; use "
            "cross-sliding"
        )

    def _prepared(
        self, work: Workspace, reduced: Reduced, request: Request, kind: type[Interior] = Interior,
        rule: type[DualityStop] = DualityStop,
    ) -> Prepared:  # fmt: skip
        iteration, bounds = interior(work, reduced, kind)
        found: dict[str, Any] = {}
        stopping = None
        if not request.reference:
            goal = Goal(request.tol, self.accuracy, self.radius)
            forms = [
                a.objective.polyhedral(work.problem.d[i], work.problem.q)
                for i, a in work.problem.agents.items()
            ]
            units, plain = iteration.setup.units, kind is Interior and not work.curvature.quadratic
            if not plain or self.radius is not None:
                units = None  # R is a distance of the user's
            measure = None if units is None else (units.x, units.z)
            start = request.x0, request.z0
            duality = Duality(work, reduced, forms, bounds, start, measure)
            stopping = rule(duality, goal, found, crossing(bounds, work.problem.m))
        settings = {
            "rows": reduced.rank, "flat": len(iteration.equations.gamma),
            "entries": len(iteration.entries[0]),
        }  # fmt: skip
        return Prepared(
            iteration, stopping, "summed", "few coupled rows and shared variables", settings,
            certificates=found, first_check=1,
        )  # fmt: skip

    def _lifted(self, work: Workspace, request: Request) -> Prepared:
        """On the range of the coupled rows."""
        lift, inner = work.compressed
        reduced = inner.reduced
        assert reduced is not None  # COLUMNS is small
        asked = replace(request, z0=lift.Q.T @ request.z0)
        prepared = self._prepared(inner, reduced, asked, Lifted, LiftedStop)
        assert isinstance(prepared.iteration, Lifted)
        prepared.iteration.lift = lift
        if isinstance(prepared.stopping, LiftedStop):
            prepared.stopping.whole = work.problem
        return replace(
            prepared, realization="compressed", why="long coupled rows, few columns",
            settings={"range": lift.rank, **prepared.settings}, proves=True,
        )  # fmt: skip
