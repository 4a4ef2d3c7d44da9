"""The exact solution of a quadratic problem, in rational arithmetic.

On u = (x_1, ..., x_n, z):  min u'Hu/2 - g'u  subject to  G u = h. Feasibility, ranks and the
solution are decided over the rationals; only norms are rounded, at 300 bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import flint
import numpy as np
from flint import acb_mat, arb, fmpq, fmpq_mat
from numpy.typing import NDArray

from adversarial.draft import Draft

Array = NDArray[np.float64]
BITS = 300
SURE = 1e-9  # singular values above this share of the largest are taken from double precision
RANK = 1e-12  # the convention: rows of unit length below this share of the largest are dependent
NEAR_CUT = 1e-11  # what lies below this share may be dropped, as no two ways to cut are the same
REACH = 1e6  # the convention: infeasible where no solution is shorter than this beside the data


def rational(value: float | Fraction) -> fmpq:
    """A double-precision number as it is."""
    top, bottom = value.as_integer_ratio()
    return fmpq(top, bottom)


def matrix(rows: Sequence[Sequence[float | Fraction]] | Array, columns: int) -> fmpq_mat:
    """A rational matrix."""
    values = [rational(v) for row in rows for v in (row.tolist() if _is_array(row) else row)]
    return fmpq_mat(len(rows), columns, values)


def column(values: Sequence[float | Fraction] | Array) -> fmpq_mat:
    """A rational column."""
    listed = values.tolist() if _is_array(values) else values
    return fmpq_mat(len(listed), 1, [rational(v) for v in listed])


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray)


def norm(values: fmpq_mat) -> float:
    """Euclidean norm of all entries, rounded once."""
    total = sum((v * v for v in values.entries()), fmpq(0))
    return root(total)


def root(square: fmpq) -> float:
    """Square root of a rational number, rounded once (zero stays zero)."""
    before = flint.ctx.prec
    flint.ctx.prec = BITS
    try:
        return float(arb(square).sqrt().mid())
    finally:
        flint.ctx.prec = before


def pivots(rows: fmpq_mat) -> list[int]:
    """Columns of the leading entries of the row echelon form."""
    if not rows.nrows() or not rows.ncols():
        return []
    reduced, rank = rows.rref()
    found = []
    start = 0
    for i in range(rank):
        while not reduced[i, start]:
            start += 1
        found.append(start)
    return found


def chosen(rows: fmpq_mat, indices: Sequence[int]) -> fmpq_mat:
    """Some rows of a matrix."""
    width = rows.ncols()
    return fmpq_mat(len(indices), width, [rows[i, j] for i in indices for j in range(width)])


def stacked(blocks: Sequence[Sequence[fmpq_mat]]) -> fmpq_mat:
    """A block matrix."""
    values = []
    width = sum(b.ncols() for b in blocks[0])
    for line in blocks:
        for i in range(line[0].nrows()):
            values += [b[i, j] for b in line for j in range(b.ncols())]
    return fmpq_mat(sum(line[0].nrows() for line in blocks), width, values)


def solve_any(system: fmpq_mat, right: fmpq_mat) -> fmpq_mat | None:
    """A solution of a rational system of any rank, or None."""
    count = system.nrows()
    width = system.ncols()
    if not width:
        return fmpq_mat(0, 1) if not any(right.entries()) else None
    if not count:
        return fmpq_mat(width, 1)
    both = stacked([[system, right]])
    found = pivots(both)
    if found and found[-1] == width:
        return None
    reduced = both.rref()[0]
    out = fmpq_mat(width, 1)
    for i, j in enumerate(found):
        out[j, 0] = reduced[i, width]
    return out


def least(system: fmpq_mat, right: fmpq_mat) -> fmpq_mat:
    """The shortest solution of a system of independent rows."""
    return system.transpose() * (system * system.transpose()).solve(right)


def _column(vectors: flint.acb_mat, k: int) -> list[arb]:
    """An eigenvector of length one, as midpoints at BITS."""
    before = flint.ctx.prec
    flint.ctx.prec = BITS
    try:
        column = [vectors[i, k].real.mid() for i in range(vectors.nrows())]
        size = sum((v * v for v in column), arb(0)).sqrt()
        return [(v / size).mid() for v in column]
    finally:
        flint.ctx.prec = before


def _as_rational(value: arb) -> fmpq:
    """A number of 300 bits as it is."""
    mantissa, exponent = value.man_exp()
    power = fmpq(2) ** abs(int(exponent))
    return fmpq(mantissa) * power if exponent >= 0 else fmpq(mantissa) / power


class Exact:
    """The problem of a draft in rational arithmetic; everything is computed when first asked."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.turned = 0.0  # share by which rows that may be dropped turn the solution of others
        rows, right, self.kinds = draft.rows()
        self.rows = rows
        self.size = rows.shape[1]
        self.G, self.h = matrix(rows, self.size), column(right)
        H, g = draft.objective()
        self.H, self.g = matrix(H, self.size), column(g)

    # -- equations --------------------------------------------------------------------------------
    @cached_property
    def independent(self) -> list[int]:
        """Rows of G that span its row space."""
        return pivots(self.G.transpose())

    @property
    def rank(self) -> int:
        """Rank of G."""
        return len(self.independent)

    @cached_property
    def feasible(self) -> bool:
        """Whether G u = h has a solution."""
        return self.size not in pivots(stacked([[self.G, self.h]]))

    @cached_property
    def row_norms(self) -> Array:
        """Norms of the rows of G, 1 for rows that are zero; rounded, then taken as they are."""
        norms = np.linalg.norm(self.rows, axis=1)
        return np.where(norms > 0, norms, 1.0)

    @cached_property
    def equilibrated(self) -> tuple[fmpq_mat, fmpq_mat]:
        """(G, h) with every row divided by its norm."""
        scales = [1 / rational(float(v)) for v in self.row_norms]
        values = [
            s * self.G[i, j] if self.G[i, j] else fmpq(0)
            for i, s in enumerate(scales)
            for j in range(self.size)
        ]
        right = [s * self.h[i, 0] for i, s in enumerate(scales)]
        count = len(scales)
        return fmpq_mat(count, self.size, values), fmpq_mat(count, 1, right)

    @cached_property
    def level(self) -> float:
        """Distance of the equilibrated right-hand side from the range; 0 iff feasible."""
        if self.feasible:
            return 0.0
        G, h = self.equilibrated
        if not self.rank:
            return norm(h)
        keep = chosen(G.transpose(), pivots(G))
        fit = (keep * keep.transpose()).solve(keep * h)
        return norm(h - keep.transpose() * fit)

    @cached_property
    def condition(self) -> float:
        """Largest over least positive singular value of the equilibrated G."""
        if not self.rank:
            return 1.0
        values = np.linalg.svd(self.rows / self.row_norms[:, None], compute_uv=False)
        if values[self.rank - 1] > SURE * values[0]:
            return float(values[0] / values[self.rank - 1])
        G = chosen(self.equilibrated[0], range(len(self.row_norms)))
        gram = G * G.transpose() if G.nrows() <= G.ncols() else G.transpose() * G
        before = flint.ctx.prec
        flint.ctx.prec = BITS
        try:
            found = acb_mat(flint.arb_mat(gram)).eig(algorithm="approx", tol=arb(2) ** (-BITS + 20))
            ordered = sorted((v.real.mid() for v in found), key=float, reverse=True)
            return float((ordered[0] / ordered[self.rank - 1]).sqrt())
        finally:
            flint.ctx.prec = before

    # -- the conventions --------------------------------------------------------------------------
    @cached_property
    def data(self) -> float:
        """max(1, the norm of the right-hand sides of rows of unit length)."""
        return max(1.0, norm(self.equilibrated[1]))

    @cached_property
    def shortest(self) -> float:
        """Norm of the shortest point that meets the equations; infinite where there is none."""
        if not self.feasible:
            return math.inf
        if not self.rank:
            return 0.0
        return norm(least(chosen(self.G, self.independent), chosen(self.h, self.independent)))

    @property
    def contradictory(self) -> bool:
        """By convention: no point shorter than R = 1e6 data meets the equations."""
        return self.shortest > REACH * self.data

    @property
    def data_of_pair(self) -> float:
        """The same with the slope at zero."""
        return max(self.data, norm(self.g))

    @cached_property
    def shortest_pair(self) -> float:
        """Norm of the shortest minimiser with its multipliers, rows of unit length."""
        if self.solution is None:
            return math.inf
        G, h = (chosen(part, self.independent) for part in self.equilibrated)
        system, right = self.H, self.g
        if self.rank:
            zero = fmpq_mat(self.rank, self.rank)
            system = stacked([[self.H, G.transpose()], [G, zero]])
            right = stacked([[self.g], [h]])
        keep = pivots(system.transpose())
        return norm(least(chosen(system, keep), chosen(right, keep))) if keep else 0.0

    @cached_property
    def cut_solutions(self) -> list[fmpq_mat]:
        """Minimisers without the directions of the least singular values that lie near RANK.

        One for each number of them that may be dropped: different ways to bring rows to unit length
        cut at different places. At 300 bits, rounded to rationals.
        """
        if not self.feasible or self.condition * NEAR_CUT < 1:
            return []
        G, h = (chosen(part, range(len(self.row_norms))) for part in self.equilibrated)
        before = flint.ctx.prec
        flint.ctx.prec = BITS
        try:
            gram = flint.acb_mat(flint.arb_mat(G * G.transpose()))
            close = arb(2) ** (-BITS + 20)
            values, vectors = gram.eig(right=True, algorithm="approx", tol=close)
        finally:
            flint.ctx.prec = before
        squares = [max(float(v.real.mid()), 0.0) for v in values]
        order = sorted(range(len(squares)), key=lambda k: -squares[k])[: self.rank]
        top = squares[order[0]]
        sure = sum(squares[k] > NEAR_CUT**2 * top for k in order)
        self.turned = RANK * math.sqrt(top / squares[order[sure - 1]]) if sure else RANK
        rows = []
        sides = []
        found = []
        for k in order:
            if sure <= len(rows):
                found.append(self._with_rows(rows, sides))
            u = fmpq_mat(1, G.nrows(), [_as_rational(v) for v in _column(vectors, k)])
            rows.append(u * G)
            sides.append(u * h)
        return [v for v in found if v is not None]

    def _with_rows(self, rows: list[fmpq_mat], sides: list[fmpq_mat]) -> fmpq_mat | None:
        """The minimiser under these independent equations."""
        count = len(rows)
        if not count:
            return solve_any(self.H, self.g)
        cut = stacked([[row] for row in rows])
        system = stacked([[self.H, cut.transpose()], [cut, fmpq_mat(count, count)]])
        try:
            found = system.solve(stacked([[self.g], *[[side] for side in sides]]))
        except ZeroDivisionError:
            return None
        return chosen(found, range(self.size))

    # -- the solution -----------------------------------------------------------------------------
    @cached_property
    def solution(self) -> fmpq_mat | None:
        """A minimiser (the only one if ``unique``); None when infeasible or unbounded."""
        if not self.feasible:
            return None
        G = chosen(self.G, self.independent)
        h = chosen(self.h, self.independent)
        if not self.size:
            return fmpq_mat(0, 1)
        zero = fmpq_mat(self.rank, self.rank)
        system = self.H
        right = self.g
        if self.rank:
            system = stacked([[self.H, G.transpose()], [G, zero]])
            right = stacked([[self.g], [h]])
        try:
            u = system.solve(right)
        except ZeroDivisionError:
            u = solve_any(system, right)
        return None if u is None else chosen(u, range(self.size))

    @cached_property
    def free(self) -> fmpq_mat:
        """Rows that span the directions along which minimisers move."""
        both = stacked([[self.H], [self.G]]) if self.G.nrows() else self.H
        found = pivots(both)
        loose = [j for j in range(self.size) if j not in found]
        reduced = both.rref()[0] if loose and found else both
        out = fmpq_mat(len(loose), self.size)
        for k, j in enumerate(loose):
            out[k, j] = fmpq(1)
            for i, lead in enumerate(found):
                out[k, lead] = -reduced[i, j]
        return out

    @property
    def unique(self) -> bool:
        """Whether there is one minimiser."""
        return self.free.nrows() == 0

    def point(self, x: Sequence[Array], z: Array) -> fmpq_mat:
        """A floating-point point as it is."""
        return column(np.concatenate([*x, np.asarray(z)]).astype(np.float64))

    def error(self, u: fmpq_mat) -> float:
        """Distance of u from the (nearest) minimiser, as given or with rows dropped."""
        return min([self.error_as_given(u), *(norm(u - cut) for cut in self.cut_solutions)])

    def error_as_given(self, u: fmpq_mat) -> float:
        """Distance of u from the (nearest) minimiser, whatever the convention drops."""
        if self.solution is None:
            raise ValueError("the problem has no solution")
        gap = u - self.solution
        if not self.unique:
            free = self.free
            part = (free * free.transpose()).solve(free * gap)
            gap = gap - free.transpose() * part
        return norm(gap)

    def value(self, u: fmpq_mat) -> fmpq:
        """u'Hu/2 - g'u and the constant."""
        return _dot(u, self.H * u) / 2 - _dot(u, self.g) + rational(self.draft.constant)

    def residual(self, u: fmpq_mat) -> fmpq_mat:
        """G u - h."""
        return self.G * u - self.h

    def violation(self, u: fmpq_mat) -> float:
        """Norm of the equilibrated G u - h."""
        G, h = self.equilibrated
        return norm(G * u - h)

    @cached_property
    def kappa(self) -> float:
        """Condition of the Hessians: the worse of the agents' together (if positive) and the sum.

        Double precision: it only sorts problems into classes.
        """
        values = [np.linalg.eigvalsh(H) for H in self.draft.H if len(H)]
        worst = 1.0
        least = min((float(v[0]) for v in values), default=1.0)
        if least > 0:
            worst = max((float(v[-1]) for v in values), default=1.0) / least
        if not self.size:
            return worst
        total = np.linalg.eigvalsh(np.array(self.H.tolist(), dtype=float))
        if total[0] <= 0:
            return float("inf")
        return max(worst, float(total[-1] / total[0]))


def _dot(a: fmpq_mat, b: fmpq_mat) -> fmpq:
    return sum((x * y for x, y in zip(a.entries(), b.entries(), strict=True)), fmpq(0))
