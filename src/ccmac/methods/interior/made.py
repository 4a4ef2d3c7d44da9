"""From a problem to an iteration of interior points: forms, blocks, what agents tell each other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ccmac.inputs import Array
from ccmac.methods.interior.block import Block
from ccmac.methods.interior.iteration import Interior
from ccmac.methods.interior.state import Setup
from ccmac.methods.interior.units import Sizes
from ccmac.objectives import Limited, Objective
from ccmac.objectives.polyhedral import Polyhedral
from ccmac.problem import Problem
from ccmac.workspace import Workspace
from ccmac.workspace.constraints import Constraints
from ccmac.workspace.coupling import Packing, bits, words

Shape = Callable[[Objective, int, int], Polyhedral]
COMMON = 4_500  # shared variables and coupled and shared rows: one dense system for everybody
OWN = 3_000  # an agent's unknowns, epigraphs included


def whole(objective: Objective, d: int, q: int) -> Polyhedral:
    """The objective as a quadratic with bounds and epigraphs."""
    return objective.polyhedral(d, q)


def forms_of(work: Workspace, shape: Shape = whole) -> list[Polyhedral]:
    """Of the agents held here."""
    problem = work.problem
    return [shape(a.objective, problem.d[i], problem.q) for i, a in problem.agents.items()]


def solvable(work: Workspace, shape: Shape = whole) -> bool:
    """Whether the agents' blocks and the common system are small; one averaging."""
    problem = work.problem
    q = work.problem.q
    reduced = work.gather_constraints()
    if reduced is None or q + problem.m + len(reduced.e) > COMMON:
        return False
    sizes = []
    for d, form in zip(problem.d.values(), forms_of(work, shape), strict=True):
        sizes.append([float(d + sum(len(t.a) + len(t.h) for t in form.terms))])
    return float(work.runtime.gather(np.array(sizes)).max()) <= OWN


def interior(
    work: Workspace, reduced: Constraints, kind: type[Interior] = Interior, shape: Shape = whole
) -> tuple[Interior, Array]:
    """(the iteration, everybody's bounds on z as rows of lower and upper ends).

    ``shape`` says what is taken of the objectives; what the agents tell each other of that is kept
    under its name.
    """
    problem = work.problem
    q = work.problem.q
    agreed = work.agreed
    forms = forms_of(work, shape)
    name = "" if shape is whole else f"{shape.__name__} "
    bounds = np.zeros((0, 2 * q))
    units = agreed.get(f"{name}units")
    inner = reduced
    if units is None:
        asked = kind is Interior and f"{name}units" not in agreed  # lifted rows are orthonormal
        sizes = Sizes(work, reduced, forms) if asked else None
        blocks = _blocks(problem, reduced, forms)
        facts, bounds, supports = _told(work, blocks, shape, f"{name}interior")
        if sizes is not None:
            units = sizes.units(bounds[:, :q].max(axis=0), bounds[:, q:].min(axis=0))
            agreed[f"{name}units"] = units
    if units is not None:
        problem, inner = units.equations(work)
        blocks = _blocks(problem, inner, [units.form(k, f) for k, f in enumerate(forms)])
        facts, bounds, supports = _told(work, blocks, shape, f"{name}interior in units")
    steepest = float(facts[:, 0].max())
    for block in blocks:
        block.scale(float(np.exp2(-np.round(np.log2(steepest)))) if steepest > 0 else 1.0)
    lower = bounds[:, :q].max(axis=0)
    upper = bounds[:, q:].min(axis=0)
    crossed = lower > upper
    inside = 0.5 * (lower[crossed] + upper[crossed])
    lower[crossed] = upper[crossed] = inside  # refuted before the first proof
    if units is not None:
        lower = lower / units.z
        upper = upper / units.z
    packing = Packing(supports[:, q:], problem.n, problem.m)
    flats = _flats(work, blocks, facts[:, 2].astype(int), packing, f"{name}flats")
    there = supports.astype(np.float64)
    setup = Setup(lower, upper, there, flats, facts[:, 1], reduced, units)
    return kind(work, inner, blocks, setup), bounds


def _blocks(problem: Problem, reduced: Constraints, forms: list[Polyhedral]) -> list[Block]:
    """The agents' parts, coupled rows in unit length on ker C_i."""
    blocks = []
    for k, (i, agent) in enumerate(problem.agents.items()):
        A = reduced.unit[:, None] * reduced.A[k]
        basis = reduced.kernels[k].space.basis
        at = np.flatnonzero(np.any(A != 0, axis=1))
        A[at] -= (A[at] @ basis) @ basis.T
        blocks.append(Block(forms[k], problem.d[i], reduced.kernels[k], A, agent.C))
    return blocks


def _told(
    work: Workspace, blocks: list[Block], shape: Shape, name: str
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """All agents' steepness, width and flat directions; ends of z; supports: one gathering."""
    q = work.problem.q
    m = work.problem.m
    if name not in work.agreed:
        facts = np.zeros((len(blocks), 3))
        touched = np.zeros((len(blocks), q + m), dtype=bool)
        for k, block in enumerate(blocks):
            facts[k] = block.steepness, block.width, block.flat.shape[1]
            touched[k, block.support] = True
        ends = np.array([_own_ends(work, i, shape) for i in work.problem.agents])
        work.agreed[name] = work.runtime.gather(np.hstack([facts, ends, words(touched)]))
    facts, ends, support_words = np.split(work.agreed[name], [3, 3 + 2 * q], axis=1)
    return facts, _with_everybodys(work, ends), bits(support_words, q + m)


def _own_ends(work: Workspace, i: int, shape: Shape) -> Array:
    """Lower and upper ends of z that agent i's own objective sets."""
    objective = work.problem.agents[i].objective
    q = work.problem.q
    if isinstance(objective, Limited):
        objective = objective.objective
    form = shape(objective, work.whole.d[i], q)
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
    work: Workspace, blocks: list[Block], counts: Array, packing: Packing, name: str
) -> list[tuple[Array, Array]]:
    """By agents: the unit rows along their flat directions and the slopes there."""
    m = work.problem.m
    most = int(counts.max())
    if not most:
        return [(np.zeros((m, 0)), np.zeros(0))] * len(counts)
    told = []
    for i, block in zip(work.problem.agents, blocks, strict=True):
        rows = np.zeros((m, most))
        slopes = np.zeros(most)
        p = block.flat.shape[1]
        rows[:, :p], slopes[:p] = block.A @ block.flat[: block.d], block.flat.T @ block.g_y
        told.append(np.append(packing.packed(rows, i), slopes))
    if name not in work.agreed:
        work.agreed[name] = work.runtime.gather(np.stack(told))
    found = work.agreed[name]
    everybody = packing.unpacked(found[:, :-most], most)
    return [
        (rows[:, :p], slopes[:p])
        for rows, slopes, p in zip(everybody, found[:, -most:], counts, strict=True)
    ]
