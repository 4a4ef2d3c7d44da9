"""cross-ipm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ccmac.certificates.duality import Duality
from ccmac.certificates.gap import Goal
from ccmac.errors import MethodRefused
from ccmac.inputs import Array
from ccmac.methods.base import Method, Prepared, Request
from ccmac.methods.interior.block import Block
from ccmac.methods.interior.iteration import Interior
from ccmac.methods.interior.stopping import DualityStop
from ccmac.methods.options import option
from ccmac.workspace import Workspace
from ccmac.workspace.reduced import Reduced


def interior(work: Workspace, reduced: Reduced) -> Interior:
    problem, q = work.problem, work.problem.q
    forms = [a.objective.polyhedral(problem.d[i], q) for i, a in problem.agents.items()]
    combine = reduced.U / reduced.sigma
    top = combine[: problem.m].T * reduced.unit
    rows = []
    widths = []
    for form, kernel, (i, d) in zip(forms, reduced.kernels, problem.d.items(), strict=True):
        aux = sum(len(t.a) for t in form.terms)
        nrows = kernel.space.rank + sum(len(t.h) for t in form.terms)
        widths.append(3 * (d + aux) * 2 + nrows + d)
        steep = max([float(np.max(np.abs(form.g), initial=0.0)), float(abs(form.H).max()) if form.H.shape[0] else 0.0,
                     *(float(np.max(np.abs(t.a), initial=0.0)) for t in form.terms)])
        rows.append([steep, widths[-1], *form.lower[d:], *form.upper[d:]])
    everybody = work.runtime.gather(np.array(rows, dtype=np.float64).reshape(len(forms), 2 + 2 * q))
    steep, width = float(everybody[:, 0].max()), int(everybody[:, 1].max())
    unit = float(np.exp2(-np.round(np.log2(steep)))) if steep > 0 else 1.0
    lower = everybody[:, 2 : 2 + q].max(axis=0)
    upper = everybody[:, 2 + q :].min(axis=0)
    blocks = []
    for k, (form, kernel) in enumerate(zip(forms, reduced.kernels, strict=True)):
        N = kernel.basis
        A_hat = top @ (reduced.A[k] @ N) @ N.T
        blocks.append(Block(form, list(problem.d.values())[k], kernel, A_hat, unit))
    counts = work.runtime.gather(np.array([[float(b.flat.shape[1])] for b in blocks]))[:, 0].astype(int)
    most, rank = int(counts.max()), reduced.rank
    flats = [(np.zeros((rank, 0)), np.zeros(0))] * len(counts)
    if most:
        rows = np.zeros((len(blocks), (rank + 1) * most))
        for row, b in zip(rows, blocks, strict=True):
            wide = np.zeros((rank + 1, most))
            p = b.flat.shape[1]
            wide[:rank, :p], wide[rank, :p] = b.A @ b.flat[: b.d], b.flat.T @ b.g_y
            row[:] = wide.ravel()
        found = work.runtime.gather(rows).reshape(len(counts), rank + 1, most)
        flats = [(f[:rank, :c], f[rank, :c]) for f, c in zip(found, counts, strict=True)]
    return Interior(work, reduced, lower, upper, blocks, width, flats)


@dataclass(frozen=True)
class CrossIpm(Method):
    """Predictor and corrector steps, one sum of a matrix each."""

    name = "cross-ipm"
    summary = "quadratics with bounds, kinks or no curvature: interior points, one sum of a matrix a step"
    needs = frozenset({"polyhedral"})

    radius: float | None = option(
        None, float, "R >= ||(x0, z0) - (x*, z*)||, for which the bound must hold (estimated)"
    )
    accuracy: float | None = option(None, float, "absolute accuracy eps (tol max(1, |F|))")

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        reduced = work.reduced
        if reduced is None:
            raise MethodRefused(
                "method cross-ipm needs equations small enough to be known to all "
                f"(m = {work.problem.m}, q = {work.problem.q}); use cross-sliding"
            )
        iteration = interior(work, reduced)
        goal = Goal(request.tol, self.accuracy, self.radius)
        forms = [b.form for b in iteration.blocks]
        duality = Duality(work, reduced, forms, iteration.lower, iteration.upper, (request.x0, request.z0))
        found = {}
        stopping = None if request.reference else DualityStop(duality, goal, found)
        settings = {"rows": reduced.rank, "flat": len(iteration.gamma)}
        return Prepared(iteration, stopping, "summed", "quadratic with bounds", settings, certificates=found)
