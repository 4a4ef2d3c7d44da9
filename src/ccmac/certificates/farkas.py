"""Farkas certificates: multipliers that prove that no point solves equations and bounds.

    K w = v,    low <= w <= high,    r = K'lambda

Every solution w has lambda'v = r'w. With ``held`` the entries of r that push towards a bound,

    value = lambda'v - sum_held max(r_j low_j, r_j high_j) <= ||r_free|| ||w||,

so that no solution is shorter than value / ||r_free||. Conic rows G x + H z + s = h join K with
multipliers -y, y in the dual cone: s'y >= 0 only helps. A problem is called infeasible where that
reaches R = REACH max(1, ||v||, largest bound), rows of unit length. Where the multipliers come from
does not matter: the misfit of an agent's own or of gathered equations, or the diverging multipliers
of interior points. They are judged in the agents' own blocks, in
extended precision; a constant times eps times sizes times magnitudes is added in
:meth:`Farkas.test`. Cost: an averaging of 3 m + 2 q + 11 floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ccmac.inputs import Array
from ccmac.linalg.blocks import has_entries, multiply
from ccmac.linalg.extended import EPS_LONG, Long, halves, norm, product, square, summed
from ccmac.linalg.ranks import row_lengths
from ccmac.linalg.tolerances import EPS, PROMISED, REACH
from ccmac.objectives.polyhedral import Polyhedral
from ccmac.problem import Problem
from ccmac.runtime.notes import gathered_rows
from ccmac.workspace import Workspace
from ccmac.workspace.equations import Constraints, SummedConstraints

BLOCKS = ("local equations C", "shared equations D", "bounds", "conic rows")
VISIBLE = 1e-3  # share of the largest part of a certificate below which a block is not named


@dataclass(frozen=True)
class Infeasibility:
    """The certificate: lambda by blocks, ``value`` and ``defect`` = ||r_free|| as above.

    ``bounds`` and ``z_bounds`` are the held parts of K'lambda on x_i and on z: a positive entry
    uses the upper, a negative one the lower bound. ``cones`` are -y of conic rows.
    """

    message: str
    coupled: Array
    local: dict[int, Array] = field(default_factory=dict)
    shared: dict[int, Array] = field(default_factory=dict)
    defect: float = 0.0
    value: float = 0.0
    bounds: dict[int, Array] = field(default_factory=dict)
    z_bounds: Array = field(default_factory=lambda: np.zeros(0))
    cones: dict[int, Array] = field(default_factory=dict)

    @property
    def radius(self) -> float:
        """No solution has a smaller norm."""
        return abs(self.value) / self.defect if self.defect > 0 else math.inf

    @property
    def excluded(self) -> str:
        """What the proof excludes, in words."""
        return shorter_than(self.radius)

    def as_dict(self) -> dict[str, Any]:
        """For the record."""
        by_agent = {
            name: {str(i): v.tolist() for i, v in getattr(self, name).items()}
            for name in ("local", "shared", "bounds", "cones")
        }
        return {
            "message": self.message,
            "coupled": self.coupled.tolist(),
            "defect": self.defect,
            "value": self.value,
            "radius": self.radius if math.isfinite(self.radius) else None,
            "z_bounds": self.z_bounds.tolist(),
            **by_agent,
        }


def shorter_than(radius: float) -> str:
    """'no solution shorter than R'; R is rounded down to two digits."""
    if math.isinf(radius):
        return "no solution, however long"
    digit = 10.0 ** (math.floor(math.log10(radius)) - 1)
    return f"no solution shorter than {math.floor(radius / digit) * digit:.2g}"


@dataclass(frozen=True)
class Lambda:
    """Multipliers of all rows: coupled ones, which all know, and those of the agents owned here.

    ``terms`` are those of the rows of polyhedral sets, in the order of an agent's epigraphs,
    ``cones`` those of conic rows: -y of any y, which is brought into the dual cone.
    """

    coupled: Array
    local: list[Array]
    shared: list[Array]
    terms: list[Array] = field(default_factory=list)
    cones: list[Array] = field(default_factory=list)


class _Rows(NamedTuple):
    """Rows [``on_x``, ``on_z``] u = ``right`` of one agent with their multipliers."""

    on_x: Any
    on_z: Any
    multiplier: Array
    right: Array


class _Part(NamedTuple):
    """One agent's ``row`` of a test, its part of K'lambda that bounds hold, and -y of its cones."""

    row: Array
    held: Array
    cones: Array


@dataclass
class Farkas:
    """The test of multipliers; ``forms`` and ``bounds`` of z where bounds and sets take part."""

    work: Workspace
    forms: list[Polyhedral] | None = None
    bounds: tuple[Array, Array] | None = None

    @property
    def problem(self) -> Problem:
        """With equations alone."""
        return self.work.problem

    def test(self, given: Lambda) -> Infeasibility | None:
        """The certificate with these multipliers, or None where they prove nothing."""
        m = self.problem.m
        q = self.problem.q
        self.work.ledger.charge(**{name: 1 for name in "ABCD" if name in self.problem.present})
        parts = [self._part(k, given) for k in range(len(self.problem.agents))]
        table = gathered_rows(self.work.runtime, np.stack([part.row for part in parts]))
        ends = np.cumsum([2 * q, 2, 3 * m, 5])
        sent_z, sent_value, sizes, numbers, weights = np.split(table, ends, axis=1)
        on_z = summed(sent_z)
        free = np.full(q, np.inf)
        z_ends = (-free, free) if self.bounds is None else self.bounds
        bound, held = pushed(on_z.astype(np.float64), *z_ends)
        gain = np.where(held, on_z * bound, 0.0)
        # The one term of rounding: of the agents' sums, then of those over agents and z (sums of
        # masked rows are doubles, known to the grain).
        slope_size, value_size = np.add.reduce(numbers[:, 1:3]) * EPS_LONG
        many = 8 * (self.problem.n + q + 2)
        hides = self.work.runtime.averaging.hides
        grain = 4 * (1 + math.sqrt(q)) * self.work.runtime.averaging.grain if hides else 0.0
        unit = EPS if hides else EPS_LONG
        slope_size += unit * norm(np.abs(sent_z).sum(axis=0))
        value_size += unit * float(np.abs(sent_value).sum() + np.abs(gain).sum())
        value = float(summed(sent_value)[0] - gain.sum()) * (1 - 4 * EPS)
        value -= many * float(value_size) + grain
        defect = math.hypot(norm(numbers[:, 0]), norm(on_z[~held])) * (1 + 4 * EPS)
        defect += many * float(slope_size) + grain
        reach = self._reach(sizes, numbers)
        if not value > 0 or value < reach * defect:
            return None
        on_bounds = np.where(held, on_z, 0.0).astype(np.float64)
        agents = list(self.problem.agents)
        bounded = self.forms is not None
        return Infeasibility(
            self._words(weights, norm(on_bounds), reach if defect else math.inf, given),
            given.coupled,
            {i: v for i, v in zip(agents, given.local, strict=True) if v.any()},
            {i: v for i, v in zip(agents, given.shared, strict=True) if v.any()},
            defect,
            value,
            {i: own.held for i, own in zip(agents, parts, strict=True)} if bounded else {},
            on_bounds if bounded else np.zeros(0),
            {i: own.cones for i, own in zip(agents, parts, strict=True) if own.cones.any()},
        )

    def _reach(self, sizes: Array, numbers: Array) -> float:
        """R; rows of operators are taken as they are."""
        b, squares_A, squares_B = np.split(np.add.reduce(sizes), 3)
        known = self.work.constraints
        squares_B = squares_B / self.problem.n
        if known is not None:
            squares_B = np.sum(known.Bbar.astype(np.float64) ** 2, axis=1)
        squares = squares_A + squares_B
        unit = np.where(squares > 0, np.sqrt(np.maximum(squares, 0.0)), 1.0)
        right = math.hypot(norm(b / unit), math.sqrt(max(float(numbers[:, 3].sum()), 0.0)))
        ends = np.abs(np.concatenate([*(self.bounds or ()), numbers[:, 4]]))
        return REACH * max(1.0, right, float(ends[np.isfinite(ends)].max(initial=0.0)))

    def _part(self, k: int, given: Lambda) -> _Part:
        """One agent's row, and what it alone knows of the certificate.

        K'lambda on z and the value in halves; b, squares of rows of A and B; ||r_free|| on x, what
        rounding of r and of the value is relative to, ||(c, e, h)||^2 of unit rows, the largest
        bound; how much its coupled rows, C, D, bounds and (where somebody has some) cones take
        part.
        """
        i, agent = list(self.problem.agents.items())[k]
        d = self.problem.d[i]
        q = self.problem.q
        m = self.problem.m
        b, c, e = (self.problem.sides(name)[k] for name in "bce")
        rows = [
            _Rows(agent.A, agent.B, given.coupled, b),
            _Rows(agent.C, None, given.local[k], c),
            _Rows(None, agent.D, given.shared[k], e),
        ]
        right = square(c / _lengths(agent.C, len(c))) + square(e / _lengths(agent.D, len(e)))
        minus_y = np.zeros(0)
        of_cones = 0.0
        own = agent.conic(d, q)
        if own is not None and given.cones:
            minus_y = -own.cone.inside_dual(-given.cones[k])
            rows.append(_Rows(own.G, own.H, minus_y, own.h))
            lengths = own.cone.sizes(np.hypot(row_lengths(own.G), row_lengths(own.H)))
            right += square(own.h / lengths)
            of_cones = norm(minus_y * lengths)
        lower = upper = np.zeros(0)
        ends = [np.zeros(0)]
        if self.forms is not None:
            form = self.forms[k]
            lower = form.lower[:d]
            upper = form.upper[:d]
            ends = [form.lower, form.upper, *(term.h for term in form.terms)]
            cuts = np.cumsum([len(term.h) for term in form.terms])[:-1]
            for term, mu in zip(form.terms, np.split(given.terms[k], cuts), strict=False):
                if not term.a.any():  # a set; what has a cost is finite everywhere
                    steady = -term.steady(-mu)
                    rows.append(_Rows(term.R[:, :d], term.R[:, d:], steady, term.h))
        on_x = [image(row.on_x, row.multiplier, d) for row in rows]
        on_z = [image(row.on_z, row.multiplier, q) for row in rows]
        r = sum((v for v, _ in on_x), np.zeros(d, dtype=np.longdouble))
        held = np.zeros(d, dtype=bool)
        gain = np.zeros(d)
        if self.forms is not None:
            bound, held = pushed(r.astype(np.float64), lower, upper)
            gain = np.where(held, r * bound, 0.0).astype(np.float64)
        on_bounds = np.where(held, r, 0.0).astype(np.float64)
        value = sum(np.sum(row.multiplier * row.right.astype(np.longdouble)) for row in rows)
        paid = [float(np.abs(row.multiplier) @ np.abs(row.right)) for row in rows]
        count = sum(len(row.right) for row in rows)
        limits = np.abs(np.concatenate(ends))
        takes_part = [
            norm(x) + norm(z) or share
            for (x, _), (z, _), share in zip(on_x[:3], on_z[:3], paid[:3], strict=True)
        ]
        sent: list[Any] = [
            halves(sum((v for v, _ in on_z), np.zeros(q, dtype=np.longdouble))),
            halves(np.array([value - gain.sum()], dtype=np.longdouble)),
            b,
            *(_lengths(block, m, zero=0.0) ** 2 for block in (agent.A, agent.B)),
            [norm(r[~held]), sum(size for _, size in on_x + on_z)],
            [count * (sum(paid) + float(np.abs(gain).sum())), right],
            [float(limits[np.isfinite(limits)].max(initial=0.0)), *takes_part, norm(on_bounds)],
            [of_cones] if self.work.curvature.conic else [],
        ]
        return _Part(np.concatenate(sent), on_bounds, minus_y)

    def _words(self, weights: Array, on_z: float, reach: float, given: Lambda) -> str:
        """The message: blocks and agents that carry the certificate, largest first."""
        least = VISIBLE * max(float(weights.max(initial=0.0)), on_z)
        named = len(weights) == self.problem.n  # of masked rows only the sum is known
        parts = [self._rows(given.coupled)] if (weights[:, 0] > least).any() else []
        for text, column in zip(BLOCKS, weights.T[1:], strict=False):
            order = [int(i) for i in np.argsort(-column, kind="stable") if column[i] > least]
            names = [self._name(i) for i in order[:6]] + ["..."] * (len(order) > 6)
            if order:
                who = "agents" if len(order) > 1 else "agent"
                parts.append(f"the {text}" + f" of {who} {', '.join(names)}" * named)
        if on_z > least:
            parts.append("the bounds on z")
        widen = "" if self.forms is None else ", widen the bounds"
        return (
            f"infeasible: {' and '.join(parts) or 'the equations'} cannot hold together "
            f"({shorter_than(reach)}); correct the right-hand sides{widen} or drop one of these "
            "blocks"
        )

    def _name(self, i: int) -> str:
        """Of an agent, as far as it is known here."""
        agent = self.work.whole.agents.get(i)
        return str(i) if agent is None or agent.name is None else agent.name

    def _rows(self, coupled: Array) -> str:
        """The coupled rows that carry the most, where rows have names or senses."""
        names = self.work.whole.row_names
        if self.work.coupling.empty:
            return "coupled equations without A and B, whose b_i do not add up to zero,"
        if names is None and self.work.reduction is None:
            return "the coupled equation sum(A x + B z - b) = 0"
        sizes = np.abs(coupled[: self.work.whole.m])
        largest = [int(k) for k in np.argsort(-sizes, kind="stable")]
        carry = [k for k in largest if sizes[k] > VISIBLE * sizes.max()]
        rows = [str(k) if names is None else names[k] for k in carry[:3]]
        return f"the coupled rows {', '.join(rows)}{', ...' if len(carry) > 3 else ''}"


def _lengths(block: Any, rows: int, zero: float = 1.0) -> Array:
    """Of the rows; ``zero`` for rows of zeros, 1 for those of an operator."""
    if block is None:
        return np.full(rows, zero)
    if not has_entries(block):
        return np.ones(rows)
    found = row_lengths(block)
    return np.where(found > 0, found, zero)


def pushed(r: Array, lower: Array, upper: Array) -> tuple[Array, NDArray[np.bool_]]:
    """(the bound with the largest r_j w_j, 0 where there is none; whether there is, or r = 0)."""
    bound = np.where(r > 0, upper, lower)
    held = np.isfinite(bound) | (r == 0)
    return np.where(np.isfinite(bound) & (r != 0), bound, 0.0), held


def image(block: Any, multiplier: Array, size: int) -> tuple[Long, float]:
    """(M'lambda; terms times magnitudes, that rounding in the long format is relative to).

    Operators are applied in doubles.
    """
    if block is None or not len(multiplier):
        return np.zeros(size, dtype=np.longdouble), 0.0
    if has_entries(block):
        magnitude = len(multiplier) * norm(abs(block).T @ np.abs(multiplier))
        return product(block.T, multiplier), magnitude
    found = multiply(block, multiplier, adjoint=True)
    return found.astype(np.longdouble), norm(found) * EPS / EPS_LONG


def on_kernels(work: Workspace, coupled: Array) -> list[Array]:
    """kappa_i that cancel A_i'lambda in the rows of the C_i, then what rounding left of it."""
    found = [np.zeros(k) for k in work.problem.p.values()]
    agents = list(work.problem.agents.items())
    for _ in range(2):
        left = [np.zeros(0)]
        for (i, agent), kappa in zip(agents, found, strict=True):
            d = work.problem.d[i]
            both = image(agent.A, coupled, d)[0] + image(agent.C, kappa, d)[0]
            left.append(both.astype(np.float64))
        more = work.local.multipliers(np.concatenate(left))
        found = [kappa + rest for kappa, rest in zip(found, more, strict=True)]
    return found


def candidate(left: Array, singular: Array, right: Array) -> Array | None:
    """Multipliers of unit rows ``left`` diag(``singular``) V' that may prove a contradiction.

    The misfit of ``right``, or the multipliers of the shortest solution where that is too long.
    """
    inside = left.T @ right
    gap = right - left @ inside
    size = max(1.0, norm(right))
    if norm(gap) > PROMISED * size / 10:
        gap = gap - left @ (left.T @ gap)  # orthogonal to its own digits
        return np.asarray(gap / norm(gap))
    along = left @ (inside / singular**2)
    return along / norm(along) if norm(inside / singular) > REACH * size / 10 else None


def own_contradiction(work: Workspace, farkas: Farkas) -> Infeasibility | None:
    """Of agents whose own C_i x = c_i or D_i z = e_i cannot hold; their flags travel along.

    Every agent says whether it has a candidate, whether it may have one with other right-hand
    sides, and the condition of its rows.
    """
    problem = work.problem
    if not {"C", "D"} & problem.present or work.agreed.get("independent"):
        return None
    rows = np.tile([0.0, 0.0, 1.0], (len(problem.agents), 1))
    local = [np.zeros(k) for k in problem.p.values()]
    shared = [np.zeros(k) for k in problem.r.values()]
    for name, spaces, own in (("c", work.local.spaces, local), ("e", work.shared.spaces, shared)):
        for k, (space, side) in enumerate(zip(spaces, problem.sides(name), strict=False)):
            rows[k, 2] = max(rows[k, 2], space.condition)
            if space.rank == len(side) and space.condition < REACH / 10:
                continue
            rows[k, 1] = 1.0
            unit = np.where(space.inverse_lengths > 0, space.inverse_lengths, 1.0)
            along = candidate(space.left, space.singular, unit * side)
            if along is not None:
                rows[k, 0] = 1.0
                own[k] = unit * along
    if work.runtime.averaging.hides:  # all learn yes or no, and the worst condition of all
        _, worst = work.runtime.extremes(rows[:, :0], rows[:, 2:])
        work.own_condition = float(worst[0])
        rows[:, 2] = 1.0
    received = work.runtime.piggyback(rows, whole=True)
    work.gather_constraints()  # where all may know the equations, they travel along
    some, dependent, condition = received.value.max(axis=0).tolist()
    work.own_condition = max(work.own_condition, condition)
    work.agreed["independent"] = not dependent  # whatever the right-hand sides
    return farkas.test(Lambda(np.zeros(problem.m), local, shared)) if some else None


# -- all equations, where they or their sums are known to all --------------------------------------
def gathered_contradiction(known: Constraints, farkas: Farkas) -> Infeasibility | None:
    """Along the misfit of the equations, or the multiplier of a solution longer than R.

    Nothing is sent where that is no candidate.
    """
    hidden = isinstance(known, SummedConstraints) and known.misfit > PROMISED
    near = 10 * known.rank / REACH  # singular values that a solution longer than R takes
    sound = known.rank == len(known.U) and known.sigma.min(initial=math.inf) > near
    rows = None if sound else candidate(known.U, known.sigma, known.right)
    if rows is None and not hidden:
        return None
    coupled, scaled = known.multipliers(np.zeros(len(known.right)) if rows is None else rows)
    shared = [known.own_shared(k, scaled)[0] for k in range(len(farkas.problem.agents))]
    if isinstance(known, SummedConstraints) and hidden:
        shared = [v + known.own_misfit(k) for k, v in enumerate(shared)]
    return farkas.test(Lambda(coupled, on_kernels(farkas.work, coupled), shared))


def crossing(bounds: Array, m: int) -> Infeasibility | None:
    """A contradiction between two agents' bounds on one entry of z; ``bounds`` a row per agent."""
    low, high = np.split(bounds, 2, axis=1)
    gaps = low.max(axis=0) - high.min(axis=0)
    if not (gaps > 0).any():
        return None
    j = int(np.argmax(gaps))
    above = int(np.argmax(low[:, j]))
    below = int(np.argmin(high[:, j]))
    return Infeasibility(
        f"infeasible: agent {above} wants entry {j} of z above {low[above, j]:.6g}, agent {below} "
        f"below {high[below, j]:.6g}; widen one of the bounds",
        np.zeros(m),
        value=float(gaps[j]),
        z_bounds=np.eye(len(gaps))[j],
    )


def early_contradiction(work: Workspace) -> Infeasibility | None:
    """What shows before the first step: in an agent's own rows, then in those known to all."""
    farkas = Farkas(work)
    found = own_contradiction(work, farkas)
    if found is not None:
        return found
    known = work.gather_constraints() or work.gather_sums(small=True)
    return None if known is None else gathered_contradiction(known, farkas)
