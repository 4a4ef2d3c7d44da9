"""One agent's share of what multipliers prove (:mod:`.duality`), without messages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.inputs import Array
from ccmac.linalg.extended import EPS_LONG, Long, norm, product, thinned
from ccmac.linalg.tolerances import EPS
from ccmac.objectives.polyhedral import Epigraph, Polyhedral
from ccmac.workspace import Workspace
from ccmac.workspace.constraints import Constraints


def pushed(r: Array, lower: Array, upper: Array) -> tuple[Array, NDArray[np.bool_]]:
    """(the bound that r pushes each entry to, 0 where none; whether it is held by one or r = 0)."""
    bound = np.where(r > 0, lower, upper)
    held = np.isfinite(bound) | (r == 0)
    return np.where(np.isfinite(bound) & (r != 0), bound, 0.0), held


@dataclass(frozen=True)
class Shares:
    """What is summed as a vector, and as numbers; a subgradient that counts the bounds on x."""

    vector: Array
    scalars: list[float]
    slope_x: Array
    slope_z: Array


class Bounded:
    """An agent's blocks and its objective as a quadratic with bounds and epigraphs.

    ``units`` of (x, z): a gap measures distances w over them and slopes times them.
    """

    def __init__(
        self,
        work: Workspace,
        reduced: Constraints,
        k: int,
        form: Polyhedral,
        units: Array | None = None,
    ) -> None:
        self.units = np.ones(len(form.g)) if units is None else units
        i = list(work.problem.agents)[k]
        agent = work.problem.agents[i]
        self.objective = agent.objective
        self.form = form
        self.d = work.problem.d[i]
        self.A, self.B, self.C = (thinned(M[k]) for M in (reduced.A, reduced.B, reduced.C))
        self.b = np.zeros(work.problem.m) if agent.b is None else agent.b
        self.c = np.zeros(self.C.shape[0]) if agent.c is None else agent.c
        self.H, self.R = thinned(form.H), [thinned(t.R) for t in form.terms]
        self.reduced = reduced
        self.space = reduced.kernels[k].space
        self.unit = self.space.inverse_lengths
        self.lower = form.lower[: self.d]
        self.upper = form.upper[: self.d]
        width = self.H.shape[0] + sum(self.A.shape) + self.C.shape[0]
        width += sum(R.shape[0] for R in self.R) + work.problem.n + 8
        # What rounding changes in sums of that many products: of doubles, and of what is long.
        self.room: float = width * EPS
        self.room_long: float = width * EPS_LONG

    def _back(self, coupled: Array, local: Array) -> tuple[Long, Array]:
        """(K'y on (x, z), sizes of its terms)."""
        out: Long = np.zeros(len(self.form.g), dtype=np.longdouble)
        sizes = np.zeros(len(out))
        d = self.d
        out[:d] = product(self.A.T, coupled) + product(self.C.T, local)
        out[d:] = product(self.B.T, coupled)
        sizes[:d] = abs(self.A).T @ np.abs(coupled) + abs(self.C).T @ np.abs(local)
        sizes[d:] = abs(self.B).T @ np.abs(coupled)
        return out, sizes

    def _noise(self, far: Array, sizes: Array) -> float:
        """How far r may be from what it stands for: summed in the long format, kept in doubles.

        The latter changes no sign: only what pushes where there is no bound, ``far``, counts.
        """
        return self.room_long * norm(sizes) + EPS * norm(far)

    def gap(
        self, x: Array, z: Array, begin: Array, coupled: Array, local: Array, terms: Array
    ) -> Shares:
        """Vector: coupled misfit, r on z. Numbers: base, value, r_f^2, rounding of r and of base,
        size of r on z, distance^2 from the start, ||C x - c||^2, distance^2 from C x = c, what
        its violation is weighted with, rounding of the coupled misfit and of the violation that
        tells, violation of C.
        """
        form = self.form
        d = self.d
        u = np.append(x, z)
        start = begin[: self.d]
        slope = product(self.H, u) - form.g
        back, sizes = self._back(coupled, local)
        sizes += abs(self.H) @ np.abs(u) + np.abs(form.g)
        below = size = leaning = 0.0
        for R, term, nu in self._epigraphs(terms):
            steady = term.steady(nu)
            slope += product(R.T, steady)
            sizes += abs(R).T @ np.abs(steady)
            below += float(steady @ (product(R, u) - term.h))
            size += float(np.abs(steady) @ (abs(R) @ np.abs(u) + np.abs(term.h)))
            lean = term.unsteady(steady)
            if lean:  # a free t is at most as far from zero as the largest |R w* - h|
                reach = abs(R) @ np.column_stack([np.abs(begin), self.units])
                below -= lean * float(np.max(reach[:, 0] + np.abs(term.h)))
                leaning += lean * float(np.max(reach[:, 1]))
        whole = slope + back
        r = whole[:d].astype(np.float64)
        bound, held = pushed(r, self.lower, self.upper)
        away = r * (x - np.where(held, bound, start))
        bend = float(u @ product(self.H, u)) / 2 - float(form.g @ u) + form.c
        value = self.objective.value(x, z)
        off = self._own_misfit(x)
        misfit = (product(self.A, x) + product(self.B, z) - self.b).astype(np.float64)
        paid = float(local @ off)
        own = np.asarray(abs(self.C) @ np.abs(x) + np.abs(self.c))
        spread = self._spread(x, z) + np.abs(self.b)
        near = self._near(off, own)
        blur = self._blur(spread, misfit)
        base = float(away.sum()) + (value - bend - below) - paid
        size += abs(value) + abs(bend) + float(np.abs(form.g) @ np.abs(u)) + abs(form.c)
        size += float(np.abs(u) @ (abs(self.H) @ np.abs(u)))
        size += float(np.abs(away).sum() + np.abs(local) @ np.abs(off))
        size += float(np.abs(coupled) @ (np.abs(misfit) + np.abs(self.b)))
        lost = self.room_long * float(np.abs(coupled) @ spread + np.abs(local) @ own)
        S, S_z = np.split(self.units, [d])
        far = (S * r)[~held]
        moved = (x - start) / S
        numbers = [
            base,
            value,
            float(far @ far),
            self._noise(far, self.units * sizes) + leaning,
            self.room * size + lost,
            norm(S_z * whole[d:]),
            float(moved @ moved),
            float(off @ off),
            near**2,
            paid,
            norm(blur),
            float((blur / self.reduced.scale).max(initial=0.0)),
            self._violation(off),
        ]
        on_x = slope[:d].astype(np.float64) - np.where(held, r, 0.0)
        on_z = whole[d:].astype(np.float64)
        return Shares(np.append(misfit, on_z), numbers, on_x, slope[d:].astype(np.float64))

    def _epigraphs(self, terms: Array) -> Iterator[tuple[Any, Epigraph, Array]]:
        """The epigraphs: their rows, what they are, their multipliers."""
        ends = np.cumsum([len(t.h) for t in self.form.terms])[:-1]
        return zip(self.R, self.form.terms, np.split(terms, ends), strict=False)

    def _blur(self, spread: Array, part: Array) -> Array:
        """What rounding may do to this agent's ``part`` of the coupled unit rows, a sum of terms
        of sizes ``spread``, and to its sum with others': parts may cancel that are many times as
        large as the row.
        """
        lost = self.room_long * spread + self.room * np.abs(part)
        return np.asarray(self.reduced.unit * lost, dtype=np.float64)

    def _own_misfit(self, x: Array) -> Array:
        return (product(self.C, x) - self.c).astype(np.float64)

    def _spread(self, x: Array, z: Array) -> Array:
        """Sizes of what A x + B z is a sum of."""
        return np.asarray(abs(self.A) @ np.abs(x) + abs(self.B) @ np.abs(z))

    def _near(self, off: Array, own: Array) -> float:
        """The distance from C x = c at most; ``own`` are the sizes of what C x - c is a sum of."""
        space = self.space
        if not space.rank:
            return 0.0
        top = float(space.singular[0])
        least = float(space.singular[-1])
        least -= 4 * EPS * sum(self.C.shape) * top
        if not least > 0:
            return math.inf
        rounded = norm(self.unit * (self.room_long * own + self.room * np.abs(off)))
        return float(norm(space.coordinates(off)) + rounded / least)

    def _violation(self, off: Array) -> float:
        """Of unit rows, the largest relative to max(1, right-hand side)."""
        scale = np.maximum(1.0, np.abs(self.unit * self.c))
        return float((np.abs(self.unit * off) / scale).max(initial=0.0))
