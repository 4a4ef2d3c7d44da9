"""A convex quadratic plus a polyhedral function: bounds, absolute values, hinges, maxima.

    f(v) = v'Hv/2 - g'v + c + sum_j min { a_j't : R_j v + T_j t = h_j,  t >= 0 or free },

low <= v <= high, and smooth functions of some entries of v with Hessians of their own. Each term is
the epigraph of a piecewise linear function, with slacks: what an interior-point method can take. It
is also max { nu'(R v - h) } over the multipliers under which the minimum over t is finite: each of
them, as made by ``steady``, gives a lower bound without t.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.inputs import Array, is_sparse

if TYPE_CHECKING:
    from ccmac.objectives.base import Function


@dataclass(frozen=True)
class Epigraph:
    """min { a't : R v + T t = h }, t >= 0 but for the last ``free`` entries.

    Multipliers nu of the rows with a + T'nu >= 0 (0 where t is free) are those between ``low`` and
    ``high`` and, where ``simplex`` is set, that add up to one; with ``signs``, the column of T of a
    free t, those with signs'nu = 0.
    """

    R: Any
    T: sp.csr_array
    h: Array
    a: Array
    low: float | Array
    high: float | Array
    free: int = 0
    simplex: bool = False
    signs: Array | None = None

    def steady(self, nu: Array) -> Array:
        """A multiplier near ``nu`` with a + T'nu >= 0, up to rounding of the sum."""
        inside = np.clip(nu, self.low, self.high)
        if self.signs is not None:  # the heavier side gives way
            up = self.signs * inside > 0
            one = abs(float(inside @ np.where(up, self.signs, 0.0)))
            other = abs(float(inside @ np.where(up, 0.0, self.signs)))
            lighter = min(one, other) / max(one, other, 1e-300)
            return inside * np.where(up == (one > other), lighter, 1.0)
        if not self.simplex:
            return np.asarray(inside)
        total = float(inside.sum())
        return inside / total if total > 0 else np.full(len(nu), 1.0 / len(nu))

    def _free(self, image: Array) -> float:
        """The best free t, where there are ``signs``: a root of a sum of jumps."""
        assert self.signs is not None
        kinks = -self.signs * image
        high, low = (np.broadcast_to(end, image.shape) for end in (self.high, self.low))
        start = np.where(self.signs > 0, low, -high).sum()
        return crossing(kinks, kinks, np.abs(high - low), float(start))

    def slack(self, image: Array) -> Array:
        """t with the least a't where R v - h = ``image``."""
        if self.simplex:
            top = float(np.max(image))
            return np.append(top - image, top)
        t = np.zeros(len(self.a))
        T = self.T
        if self.signs is not None:
            t[-1] = self._free(image)
            image = image + self.signs * t[-1]
            T = T[:, :-1]
        moves = sp.coo_array(T)
        t[moves.col] = np.maximum(-moves.data * image[moves.row], 0.0)
        return t

    def multiplier(self, image: Array) -> Array:
        """A slope of the term where R v - h = ``image``; the middle one at a kink."""
        if self.simplex:
            return np.asarray(np.eye(len(image))[int(np.argmax(image))])
        if self.signs is not None:
            image = image + self.signs * self._free(image)
        middle = np.broadcast_to(0.5 * (np.asarray(self.low) + self.high), image.shape)
        # near a kink, relative to its place, the slope is taken from the middle
        at_kink = np.abs(image) <= 1e-9 * (1.0 + np.abs(self.h))
        return np.where(at_kink, middle, np.where(image > 0, self.high, self.low))

    @property
    def steepness(self) -> float:
        """The largest entry of a multiplier."""
        ends = np.append(np.abs(self.low), np.abs(self.high))
        return 1.0 if self.simplex else float(ends.max())

    def value(self, image: Array) -> float:
        """The term where R v - h = ``image``; with R d its slope far out along d."""
        if self.simplex:
            return float(np.max(image))
        if self.signs is not None:
            image = image + self.signs * self._free(image)
        high = np.where(image > 0, self.high, self.low)
        return float(np.sum(image * high))

    @property
    def lower(self) -> Array:
        """Lower bounds of the slacks t."""
        bound = np.zeros(len(self.a))
        bound[len(bound) - self.free :] = -np.inf
        return bound


@dataclass(frozen=True)
class Polyhedral:
    """The form of the module text; H is dense or sparse, ``smooth`` (function, entries) pairs."""

    H: Any
    g: Array
    c: float
    lower: Array
    upper: Array
    terms: tuple[Epigraph, ...] = ()
    smooth: tuple[tuple[Function, NDArray[Any]], ...] = ()

    @classmethod
    def quadratic(cls, H: Any, g: Array, c: float) -> Polyhedral:
        """u'Hu/2 - g'u + c alone, without a polyhedral part."""
        return cls(H, g, c, np.full(len(g), -np.inf), np.full(len(g), np.inf))

    @classmethod
    def zero(cls, size: int) -> Polyhedral:
        """The zero function."""
        return cls.quadratic(sp.csr_array((size, size)), np.zeros(size), 0.0)

    def with_terms(self, *terms: Epigraph) -> Polyhedral:
        """The same with more terms."""
        return replace(self, terms=(*self.terms, *terms))

    def within(self, low: Array, high: Array) -> Polyhedral:
        """The same with narrower bounds."""
        lower = np.maximum(self.lower, low)
        upper = np.minimum(self.upper, high)
        return replace(self, lower=lower, upper=upper)

    def __add__(self, other: Polyhedral) -> Polyhedral:
        """The sum of two functions of the same vector."""
        both = is_sparse(self.H) and is_sparse(other.H)
        H = sp.csr_array(self.H + other.H) if both else np.asarray(self.H + other.H)
        total = Polyhedral(
            H,
            self.g + other.g,
            self.c + other.c,
            self.lower,
            self.upper,
            self.terms + other.terms,
            self.smooth + other.smooth,
        )
        return total.within(other.lower, other.upper)

    @property
    def bent(self) -> Any:
        """H, and ones where smooth functions may bend: what a direction must not touch."""
        size = len(self.g)
        touched = np.zeros(size)
        for _, at in self.smooth:
            touched[at] = 1.0
        return self.H + sp.diags_array(touched) if self.smooth else self.H

    def spread(self, at: NDArray[Any], size: int) -> Polyhedral:
        """As a function of a longer vector, whose entries ``at`` are v."""
        pick = sp.csr_array((np.ones(len(at)), (np.arange(len(at)), at)), shape=(len(at), size))

        def wide(v: Array, fill: float) -> Array:
            out = np.full(size, fill)
            out[at] = v
            return out

        H: Any = pick.T @ sp.csr_array(self.H) @ pick
        terms = [replace(term, R=sp.csr_array(sp.csr_array(term.R) @ pick)) for term in self.terms]
        return Polyhedral(
            sp.csr_array(H),
            wide(self.g, 0.0),
            self.c,
            wide(self.lower, -np.inf),
            wide(self.upper, np.inf),
            tuple(terms),
            tuple((function, at[own]) for function, own in self.smooth),
        )


def absolute(weight: float, centre: Array) -> Epigraph:
    """weight ||v - centre||_1 = min weight (p + m), v - p + m = centre."""
    one = sp.eye_array(len(centre), format="csr")
    T = sp.csr_array(sp.hstack([-one, one]))
    return Epigraph(one, T, centre, np.full(2 * len(centre), weight), -weight, weight)


def ramps(
    R: Any, h: Array, low: float | Array, high: float | Array, signs: Array | None = None
) -> Epigraph:
    """sum_j max(low_j r_j, high_j r_j) of r = R v - h, as min -low'p + high'm, r + p - m = 0.

    With ``signs``: of r + signs b, minimised over b, which joins the slacks as a free one.
    """
    one = sp.eye_array(len(h), format="csr")
    T = sp.csr_array(sp.hstack([one, -one]))
    a = np.append(-np.broadcast_to(low, len(h)), np.broadcast_to(high, len(h)))
    if signs is None:
        return Epigraph(R, T, h, a, low, high)
    T = sp.csr_array(sp.hstack([T, sp.csr_array(signs[:, None])]))
    return Epigraph(R, T, h, np.append(a, 0.0), low, high, free=1, signs=signs)


def maximum(M: Any, c: Array) -> Epigraph:
    """max_j (Mv + c)_j = min t, M v + s - t = -c."""
    rows = len(c)
    T = sp.csr_array(sp.hstack([sp.eye_array(rows), sp.csr_array(-np.ones((rows, 1)))]))
    a = np.append(np.zeros(rows), 1.0)
    return Epigraph(M, T, -c, a, 0.0, np.inf, free=1, simplex=True)


def crossing(start: Array, end: Array, height: Array, level: float) -> float:
    """Where a sum of ramps, from ``level`` upwards, is zero; a ramp may be a jump."""
    places = np.concatenate([start, end])
    order = np.argsort(places, kind="stable")
    sloped = end > start
    steep = np.where(sloped, height / np.where(sloped, end - start, 1.0), 0.0)
    slopes = np.cumsum(np.concatenate([steep, -steep])[order])
    jumps = np.concatenate([np.where(sloped, 0.0, height), np.zeros_like(height)])[order]
    places = places[order]
    rises = np.concatenate([[0.0], slopes[:-1] * np.diff(places)])
    after = level + np.cumsum(rises + jumps)
    k = int(np.argmax(after >= 0)) if (after >= 0).any() else len(after) - 1
    before = after[k] - jumps[k]
    if before <= 0 or k == 0 or slopes[k - 1] <= 0:
        return float(places[k])
    return float(places[k] - before / slopes[k - 1])
