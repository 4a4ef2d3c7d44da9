"""cross-ipm: quadratics with bounds and kinks, with or without curvature.

Needs objectives that are a convex quadratic plus bounds and piecewise linear terms, and equations
that all may know. Cost: setup 2 gatherings beside that of the equations (bounds on z, supports;
flat directions, where there are any); a step 3 averagings, see :mod:`.iteration`; a proof one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ccmac.certificates.duality import Duality, crossing
from ccmac.certificates.gap import Goal
from ccmac.errors import MethodRefused
from ccmac.inputs import Array
from ccmac.methods.base import Method, Prepared, Request
from ccmac.methods.interior.block import Block
from ccmac.methods.interior.iteration import Interior, Setup
from ccmac.methods.interior.stopping import DualityStop
from ccmac.methods.options import option
from ccmac.workspace import Workspace
from ccmac.workspace.reduced import Reduced

COMMON = 1_200  # shared variables and coupled and shared rows: one dense system for everybody
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


def interior(work: Workspace, reduced: Reduced) -> tuple[Interior, Array]:
    """(the iteration, everybody's bounds on z as rows of lower and upper ends)."""
    problem, runtime, q, m = work.problem, work.runtime, work.problem.q, work.problem.m
    blocks = []
    for k, (i, agent) in enumerate(problem.agents.items()):
        kernel, form = reduced.kernels[k], agent.objective.polyhedral(problem.d[i], q)
        N = kernel.basis
        unit_rows = (reduced.unit[:, None] * (reduced.A[k] @ N)) @ N.T
        blocks.append(Block(form, problem.d[i], kernel, unit_rows))
    told = np.zeros((len(blocks), 3 + q + m + 2 * q))
    for row, block in zip(told, blocks, strict=True):
        row[:3] = block.steepness, block.width, block.flat.shape[1]
        row[3 + block.support] = 1.0
        row[3 + q + m :] = np.append(block.form.lower[block.d :], block.form.upper[block.d :])
    facts, supports, bounds = np.split(runtime.gather(told), [3, 3 + q + m], axis=1)
    steepest = float(facts[:, 0].max())
    for block in blocks:
        block.scale(float(np.exp2(-np.round(np.log2(steepest)))) if steepest > 0 else 1.0)
    lower, upper = bounds[:, :q].max(axis=0), bounds[:, q:].min(axis=0)
    crossed = lower > upper
    inside = 0.5 * (lower[crossed] + upper[crossed])
    lower[crossed] = upper[crossed] = inside  # refuted before the first proof
    flats = _flats(work, blocks, facts[:, 2].astype(int))
    setup = Setup(lower, upper, supports, flats, int(facts[:, 1].max()))
    return Interior(work, reduced, blocks, setup), bounds


def _flats(work: Workspace, blocks: list[Block], counts: Array) -> list[tuple[Array, Array]]:
    """By agents: the unit rows along their flat directions and the slopes there."""
    m, most = work.problem.m, int(counts.max())
    if not most:
        return [(np.zeros((m, 0)), np.zeros(0))] * len(counts)
    rows = np.zeros((len(blocks), m + 1, most))
    for row, block in zip(rows, blocks, strict=True):
        p = block.flat.shape[1]
        row[:m, :p], row[m, :p] = block.A @ block.flat[: block.d], block.flat.T @ block.g_y
    found = work.runtime.gather(rows.reshape(len(blocks), -1)).reshape(len(counts), m + 1, most)
    return [(f[:m, :p], f[m, :p]) for f, p in zip(found, counts, strict=True)]


@dataclass(frozen=True)
class CrossIpm(Method):
    """Predictor and corrector steps, one sum of a matrix each."""

    name = "cross-ipm"
    summary = "quadratics with bounds or kinks, curved or flat: interior points, one sum a step"
    needs = frozenset({"polyhedral"})
    reveals = "the equations, bounds on z, and eliminated Hessians at every step"

    radius: float | None = option(
        None, float, "R >= ||(x0, z0) - (x*, z*)||, for which the bound must hold (estimated)"
    )
    accuracy: float | None = option(None, float, "absolute accuracy eps (tol max(1, |F|))")

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """Gather bounds and supports."""
        reduced = work.reduced
        if reduced is None:
            raise MethodRefused(
                "method cross-ipm needs equations small enough to be known to all "
                f"(m = {work.problem.m}, q = {work.problem.q}); use cross-sliding"
            )
        iteration, bounds = interior(work, reduced)
        found: dict[str, Any] = {}
        stopping = None
        if not request.reference:
            goal = Goal(request.tol, self.accuracy, self.radius)
            forms = [block.form for block in iteration.blocks]
            duality = Duality(work, reduced, forms, bounds, (request.x0, request.z0))
            stopping = DualityStop(duality, goal, found, crossing(bounds, work.problem.m))
        settings = {
            "rows": reduced.rank, "flat": len(iteration.equations.gamma),
            "entries": len(iteration.entries[0]),
        }  # fmt: skip
        return Prepared(
            iteration, stopping, "summed", "few coupled rows and shared variables", settings,
            certificates=found, first_check=1,
        )  # fmt: skip
