"""Units of the unknowns in which columns are alike: x_i = S_i x', z = S_z z', powers of two.

Interior points do not care for units, but where they start, the proximal terms of their systems and
what counts as flat do. With unit rows whose column j has length c_j,

    S_j = beta / c_j,     beta the mean (of logarithms) of bounds and right-hand sides then,

and unknowns in no row are measured by their bounds, else by |g_j| / H_jj. A row of C_i with one
entry is a bound: it tells no column's length, and its slack has the unit of that entry. Rows of
absolute values and hinges come in unit length too. Columns that are nearly alike stay as they are.
Cost: a few numbers that ride; where units change, the equations are gathered once more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.inputs import Array, is_sparse
from ccmac.linalg.blocks import dense, powers
from ccmac.objectives.polyhedral import Epigraph, Polyhedral
from ccmac.problem import Problem
from ccmac.workspace import Workspace
from ccmac.workspace.constraints import Constraints
from ccmac.workspace.local import LocalEquations, kernels_of

CANCELLED = 2.0**-30  # what is this small beside its terms, or beside other sizes, is rounding
FAR = 2.0**10  # times a bound: where another one tells nothing of the size of a solution
UNEVEN = 6.0  # logarithm (of two) of a unit from which on units change


@dataclass(frozen=True)
class Units:
    """S_i of the agents held here, S_z; ``rows`` are the lengths of their epigraphs' rows."""

    x: list[Array]
    z: Array
    rows: list[Array]

    @classmethod
    def of(cls, x: list[Array], z: Array, forms: list[Polyhedral]) -> Units:
        """For the agents' objectives ``forms``."""
        rows = [
            np.concatenate([np.zeros(0), *(_lengths(t, np.append(S, z)) for t in form.terms)])
            for S, form in zip(x, forms, strict=True)
        ]
        return cls(x, z, rows)

    def form(self, k: int, form: Polyhedral) -> Polyhedral:
        """An agent's objective in these units."""
        S = np.append(self.x[k], self.z)
        terms = tuple(_term(t, S) for t in form.terms)
        H = _scaled(_scaled(form.H, S).T, S)
        return Polyhedral(H, S * form.g, form.c, form.lower / S, form.upper / S, terms)

    def equations(self, work: Workspace) -> tuple[Problem, Constraints]:
        """(the problem in these units, objectives as they are; its equations): one gathering."""
        whole = work.problem
        agents = {}
        for S, (i, agent) in zip(self.x, whole.agents.items(), strict=True):
            units = {"A": S, "B": self.z, "C": S, "D": self.z}
            blocks = {name: getattr(agent, name) for name in units}
            changed = {k: _scaled(M, units[k]) for k, M in blocks.items() if M is not None}
            agents[i] = replace(agent, **changed)
        problem = whole.remade(agents)
        local = LocalEquations(problem, work.runtime, "factor")
        kernels = kernels_of(problem, local)
        return problem, Constraints(problem, work.runtime, work.curvature, kernels, work.supports)


def _scaled(M: Any, S: Array) -> Any:
    """M diag(S)."""
    return sp.csr_array(M @ sp.diags_array(S)) if is_sparse(M) else dense(M) * S


def _lengths(term: Epigraph, S: Array) -> Array:
    """Powers of two near the lengths of its rows; 1 where slacks are in more than one."""
    if term.free:
        return np.ones(len(term.h))
    R = _scaled(term.R, S)
    return 1.0 / powers(np.sqrt(np.asarray((R * R).sum(axis=1))))


def _term(term: Epigraph, S: Array) -> Epigraph:
    """In unit rows; slacks have the unit of their row."""
    length = _lengths(term, S)
    R = _scaled(_scaled(term.R, S).T, 1.0 / length).T
    if term.free:
        return replace(term, R=R)
    a = (abs(term.T).T @ length) * term.a
    low = length * term.low
    high = length * term.high
    return replace(term, R=R, h=term.h / length, a=a, low=low, high=high)


# -- which units ---------------------------------------------------------------------------------
class Sizes:
    """What agents tell of their columns and bounds; :meth:`units` once that has travelled."""

    def __init__(self, work: Workspace, reduced: Constraints, forms: list[Polyhedral]) -> None:
        self.work = work
        self.reduced = reduced
        self.forms = forms
        coupled_size = reduced.unit * reduced.size_b
        self.right = reduced.right[: len(coupled_size)]
        self.right[np.abs(self.right) <= CANCELLED * coupled_size] = 0.0
        coupled = reduced.unit[:, None] * reduced.Bbar.astype(np.float64)
        D = reduced.D
        terms = np.vstack([reduced.unit[:, None] * reduced.size_B, D])
        self.c_z = np.linalg.norm(np.vstack([coupled, D]), axis=0)
        self.c_z[self.c_z <= CANCELLED * np.linalg.norm(terms, axis=0)] = 0.0
        self.alone_z = np.flatnonzero(self.c_z == 0)
        self.own = [_Own.of(self, k, form) for k, form in enumerate(forms)]
        self._told = work.runtime.piggyback(np.array([own.told for own in self.own]), whole=True)

    def units(self, lower: Array, upper: Array) -> Units | None:
        """None where they may stay; ``lower`` and ``upper`` are everybody's bounds on z."""
        facts, on_z = np.split(self._told.value, [6], axis=1)
        curved, slope, squares = np.split(np.add.reduce(on_z), 3)
        c_z = self.c_z.copy()
        c_z[self.alone_z] = np.sqrt(squares)
        ends = _ends(lower, upper)
        rowed = c_z > 0
        alone = np.ones(len(c_z))
        least = np.abs(np.clip(0.0, lower, upper))
        at = self.alone_z
        alone[at] = _alone(ends[at], least[at], curved, slope)
        inner = np.where(rowed, c_z, 1.0)
        more = _told_apart([_logs((ends * inner)[rowed]), self._shared(inner)])
        total, count = _seen(facts[:, 4:], max(facts[:, 3].max(), more.max(initial=-np.inf)))
        beta = (total + float(more.sum())) / max(count + len(more), 1.0)
        z = np.where(rowed, beta - np.log2(inner), np.log2(alone))
        *shared, beta = np.round(self.work.runtime.common(np.append(z, beta)))
        far = [*shared, facts[:, 0].min() + beta, facts[:, 1].max() + beta]
        far += [facts[:, 2].min(), facts[:, 3].max()]
        if not max((abs(v) for v in far if np.isfinite(v)), default=0.0) >= UNEVEN:
            return None
        x = [own.units(beta) for own in self.own]
        return Units.of(x, np.exp2(np.array(shared)), self.forms)

    def _shared(self, c_z: Array) -> Array:
        """Logarithms of the right-hand sides of D, rows in unit length with the columns over c."""
        return _logs(self.reduced.e / _safe(np.linalg.norm(self.reduced.D / c_z, axis=1)))


@dataclass(frozen=True)
class _Own:
    """One agent: the lengths ``c`` of its columns, the sizes of those in no row (c = 0), what it
    tells the others. ``slacks`` are measured by the entries ``of``, times ``ratio``.
    """

    c: Array
    alone: Array
    slacks: tuple[NDArray[np.intp], NDArray[np.intp], Array]
    told: Array

    @classmethod
    def of(cls, sizes: Sizes, k: int, form: Polyhedral) -> _Own:
        """Of the agent numbered ``k`` here."""
        work = sizes.work
        reduced = sizes.reduced
        unit = sizes.reduced.unit
        i = list(work.problem.agents)[k]
        d = reduced.A[k].shape[1]
        space = reduced.kernels[k].space
        right = work.problem.agents[i].c
        A = unit[:, None] * reduced.A[k]
        C = space.inverse_lengths[:, None] * reduced.C[k]
        right = np.zeros(len(C)) if right is None else space.inverse_lengths * right
        shown = d if work.reduction is None else work.reduction.user.d[i]
        single = np.flatnonzero(np.count_nonzero(C[:, :shown], axis=1) == 1)
        several = np.setdiff1d(np.arange(len(C)), single)
        c = np.linalg.norm(np.vstack([A, C[several]]), axis=0)
        R = _relations(form)
        c = np.where(c > 0, c, np.linalg.norm(R[:, :d], axis=0))
        ends, (_, at) = _ends(form.lower[:d], form.upper[:d]), np.nonzero(C[single, :shown])
        entry = np.abs(C[single, at])
        np.maximum.at(ends, at, np.abs(right[single]) / entry)
        held = C[single, shown:] != 0
        row, column = np.nonzero(held)
        ratio = entry[row] / np.abs(C[single, shown:][held])
        slacks = shown + np.asarray(column, dtype=np.intp), at[row], ratio
        g = form.g
        H = form.H.diagonal()
        least = np.abs(np.clip(0.0, form.lower[:d], form.upper[:d]))
        alone = _alone(ends, least, H[:d], g[:d])
        inner = _safe(c)
        logs = [
            _logs((ends * inner)[c > 0]),
            _logs(right[several] / _safe(np.linalg.norm(C[several] / inner, axis=1))),
        ]
        length = np.linalg.norm(A / inner, axis=1)
        logs.append(_logs(sizes.right[length > 0] / length[length > 0]))
        own = max(float(np.linalg.norm(reduced.kernels[k].point)), float(ends.max(initial=0.0)))
        known = _told_apart(logs, own)
        lone = np.setdiff1d(np.flatnonzero(c == 0), slacks[0])
        far = [*_span(-np.log2(c[c > 0])), *_span(np.log2(alone[lone]))]
        z = d + sizes.alone_z
        told = [far, [known.sum(), len(known)], H[z], g[z], np.sum(R[:, z] ** 2, axis=0)]
        return cls(c, alone, slacks, np.concatenate(told))

    def units(self, beta: float) -> Array:
        """S_i; ``beta`` is the logarithm."""
        S = np.where(self.c > 0, np.exp2(beta) / _safe(self.c), self.alone)
        column, of, ratio = self.slacks
        S[column] = S[of] * ratio
        return 1.0 / powers(S)


def _relations(form: Polyhedral) -> Array:
    """The epigraphs' rows between several unknowns, in unit length."""
    R = np.vstack([np.zeros((0, len(form.g))), *(dense(t.R) for t in form.terms)])
    R = R[np.count_nonzero(R, axis=1) > 1]
    return np.asarray(R / np.linalg.norm(R, axis=1, keepdims=True))


def _ends(lower: Array, upper: Array) -> Array:
    """The larger of two bounds in size, but the smaller where that is far away; 0 without any."""
    sizes = [np.where(np.isfinite(v), np.abs(v), 0.0) for v in (lower, upper)]
    near = np.minimum(*sizes)
    far = np.maximum(*sizes)
    return np.asarray(np.where((near > 0) & (far > FAR * near), near, far))


def _alone(ends: Array, least: Array, curved: Array, slope: Array) -> Array:
    """The size of unknowns in no row: of the minimum where bounds let it be, else of these."""
    told = (curved > 0) & (slope != 0)
    most = np.where(ends > 0, ends, np.inf)
    minimum = np.clip(np.abs(slope) / _safe(curved), least, most)
    return np.where(told, minimum, np.where(ends > 0, ends, 1.0))


def _safe(v: Array) -> Array:
    return np.where(v > 0, v, 1.0)


def _logs(v: Array) -> Array:
    return np.asarray(np.log2(np.abs(v[v != 0])))


def _told_apart(logs: list[Array], beside: float = 0.0) -> Array:
    """All of them but those that are rounding beside the largest, or out of sight of most.

    The largest is ``beside`` at least.
    """
    found = np.concatenate(logs)
    largest = found.max(initial=np.log2(beside) if beside > 0 else -np.inf)
    found = found[found > largest + np.log2(CANCELLED)]
    return np.asarray(found[found <= np.median(found) + np.log2(FAR)] if len(found) else found)


def _seen(told: Array, largest: float) -> tuple[float, float]:
    """(sum, number) of the agents' logarithms, without agents that know of rounding alone.

    A right-hand side that vanishes is left with the rounding of some agent's x, which the others in
    that row cannot tell from a size.
    """
    sums, counts = told.T
    means = np.where(counts > 0, sums / np.maximum(counts, 1.0), -np.inf)
    there = means > max(float(means.max()), largest) + np.log2(CANCELLED)
    return float(sums[there].sum()), float(counts[there].sum())


def _span(v: Array) -> list[float]:
    return [float(v.min(initial=np.inf)), float(v.max(initial=-np.inf))]
