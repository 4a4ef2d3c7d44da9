"""Farkas certificates: multipliers that prove that no point solves equations and bounds.

    K w = v,    low <= w <= high,    r = K'lambda

Every solution w has lambda'v = r'w. With ``held`` the entries of r that push towards a bound,

    value = lambda'v - sum_held max(r_j low_j, r_j high_j) <= ||r_free|| ||w||,

so that no solution is shorter than value / ||r_free||. A problem is called infeasible where that
reaches R = REACH max(1, ||v||, largest bound), rows of unit length. Where the multipliers come from
does not matter: the misfit of gathered equations, of the closest point of a run, or the diverging
multipliers of interior points. They are judged in the agents' own blocks, in extended precision.
Cost: an averaging of 2 q + 6 floats; the first also one of 2 m + 2, a claim another one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, Context
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.certificates.multipliers import Recovery
from ccmac.certificates.realized import Certifier
from ccmac.inputs import Array
from ccmac.linalg.blocks import dense, has_entries, multiply, powers
from ccmac.linalg.extended import (
    EPS_LONG,
    Long,
    dot,
    halves,
    norm,
    product,
    rounded_sum,
    square,
    summed,
)
from ccmac.linalg.ranks import RowSpace, row_lengths
from ccmac.linalg.tolerances import EPS, PROMISED, REACH
from ccmac.objectives.polyhedral import Polyhedral
from ccmac.realizations.base import Realized
from ccmac.runtime.notes import gathered_rows
from ccmac.runtime.space import lengths, row_dots
from ccmac.workspace import Workspace
from ccmac.workspace.constraints import Constraints, SummedConstraints

VISIBLE = 1e-6  # share of the largest part of K'lambda above which a block is named
NAMED = 6  # agents named in a message
UNMET = (
    "the equations stay violated by {:.2g} at the closest point that was found: they may "
    "contradict each other, which is not proved; what is said of the error is an estimate, for the "
    "nearest right-hand sides that agree"
)


@dataclass(frozen=True)
class Infeasibility:
    """The certificate: lambda by blocks, ``value`` and ``defect`` = ||r_free|| as above.

    ``bounds`` and ``z_bounds`` are the held parts of K'lambda on x_i and on z: a positive entry
    uses the upper, a negative one the lower bound.
    """

    message: str
    coupled: Array
    local: dict[int, Array] = field(default_factory=dict)
    shared: dict[int, Array] = field(default_factory=dict)
    defect: float = 0.0
    value: float = 0.0
    bounds: dict[int, Array] = field(default_factory=dict)
    z_bounds: Array = field(default_factory=lambda: np.zeros(0))

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
        return {
            "message": self.message,
            "coupled": self.coupled.tolist(),
            "local": {str(i): v.tolist() for i, v in self.local.items()},
            "shared": {str(i): v.tolist() for i, v in self.shared.items()},
            "defect": self.defect,
            "value": self.value,
            "radius": self.radius if math.isfinite(self.radius) else None,
            "bounds": {str(i): v.tolist() for i, v in self.bounds.items()},
            "z_bounds": self.z_bounds.tolist(),
        }


def shorter_than(radius: float) -> str:
    """'no solution shorter than R'; R is rounded down."""
    if math.isinf(radius):
        return "no solution, however long"
    shown = Context(prec=2, rounding=ROUND_DOWN).create_decimal_from_float(radius)
    return f"no solution shorter than {float(shown):.2g}"


@dataclass(frozen=True)
class Lambda:
    """Multipliers of all rows: coupled ones, which all know, and those of the agents owned here.

    ``terms`` are those of the rows of polyhedral sets, in the order of an agent's epigraphs.
    """

    coupled: Array
    local: list[Array]
    shared: list[Array]
    terms: list[Array] = field(default_factory=list)


class Farkas:
    """The test of multipliers; ``forms`` and ``bounds`` of z where bounds and sets take part."""

    def __init__(
        self,
        work: Workspace,
        forms: list[Polyhedral] | None = None,
        bounds: tuple[Array, Array] | None = None,
    ) -> None:
        self.work = work
        self.problem = work.problem
        self.runtime = work.runtime
        self.agents = list(work.problem.agents.values())
        self.forms = forms
        free = np.full(work.problem.q, np.inf)
        ends: tuple[Array, Array] = (-free, free) if bounds is None else bounds
        self.lower, self.upper = ends

    # -- what R is measured by -----------------------------------------------------------------
    @cached_property
    def reach(self) -> float:
        """R = REACH max(1, ||v||, largest bound), rows of unit length; one averaging.

        Rows of operators are taken as they are.
        """
        m = self.problem.m
        rows = [self._sizes(k) for k in range(len(self.agents))]
        table = gathered_rows(self.runtime, np.stack(rows))
        total = np.add.reduce(table)
        known = self.work.constraints
        squares = total[:m]
        if known is not None:
            squares = squares + np.sum(known.Bbar.astype(np.float64) ** 2, axis=1)
        else:
            squares = squares + total[2 * m : 3 * m] / self.problem.n
        lengths = np.where(squares > 0, np.sqrt(np.maximum(squares, 0.0)), 1.0)
        right = math.hypot(norm(total[m : 2 * m] / lengths), math.sqrt(max(total[-2], 0.0)))
        ends = np.abs(np.concatenate([self.lower, self.upper]))
        largest = max(float(table[:, -1].max()), float(ends[np.isfinite(ends)].max(initial=0.0)))
        return REACH * max(1.0, right, largest)

    def _sizes(self, k: int) -> Array:
        """Of one agent: squares of its rows of A, b, squares of those of B, ||(c, e)||^2 of unit
        rows, its largest bound.
        """
        agent = self.agents[k]
        m = self.problem.m
        own = 0.0
        for block, side in ((agent.C, agent.c), (agent.D, agent.e)):
            if block is not None and side is not None:
                own += square(side / _lengths(block, len(side)))
        largest = 0.0
        if self.forms is not None:
            form = self.forms[k]
            ends = np.abs(np.concatenate([form.lower, form.upper, *(t.h for t in form.terms)]))
            largest = float(ends[np.isfinite(ends)].max(initial=0.0))
        b = np.zeros(m) if agent.b is None else agent.b
        squares = [_lengths(M, m, zero=0.0) ** 2 for M in (agent.A, agent.B)]
        return np.concatenate([squares[0], b, squares[1], [own, largest]])

    # -- the test ------------------------------------------------------------------------------
    def test(self, given: Lambda) -> Infeasibility | None:
        """The certificate with these multipliers, or None where they prove nothing."""
        q = self.problem.q
        self.work.ledger.charge(**{name: 1 for name in "ABCD" if name in self.problem.present})
        parts = [self._part(k, given) for k in range(len(self.agents))]
        table = gathered_rows(self.runtime, np.stack([row for row, _ in parts]))
        on_z = summed(table[:, : 2 * q])
        bound, held = pushed(on_z.astype(np.float64), self.lower, self.upper)
        gain = np.where(held, on_z * bound, 0.0)
        on_x = norm(table[:, 2 * q + 2])  # of masked rows the sum of all lengths
        noise, room, whole = (float(v) for v in np.add.reduce(table[:, 2 * q + 3 :]))
        sizes = np.abs(table[:, : 2 * q + 2])
        rounding = EPS_LONG
        if len(table) == 1 and self.problem.n > 1:  # sums of masked rows are doubles
            grain = self.runtime.averaging.grain
            rounding = EPS
            noise += 2 * (2 + math.sqrt(q)) * grain
            room += 2 * grain
        many = 4 * (self.problem.n + q + 2)
        noise += many * rounding * norm(sizes[:, : 2 * q].sum(axis=0))
        room += many * rounding * float(sizes[:, 2 * q :].sum() + np.abs(gain).sum())
        value = rounded_sum([*table[:, 2 * q : 2 * q + 2].flat, -float(gain.sum())])
        value = (value - room) * (1 - 4 * EPS)
        defect = math.hypot(on_x, norm(on_z[~held])) * (1 + 4 * EPS) + noise
        if not value > 0 or value < self.reach * defect:
            return None
        rest = np.where(held, on_z, 0.0).astype(np.float64)
        return self._certificate(given, [own for _, own in parts], rest, (value, defect, whole))

    def _part(self, k: int, given: Lambda) -> tuple[Array, Array]:
        """One agent's row: K'lambda on z and the value in halves, ||r_free|| on x, rounding of r
        and of the value, how much it takes part; and the held part of r on x.
        """
        i = list(self.problem.agents)[k]
        agent = self.agents[k]
        kappa = given.local[k]
        delta = given.shared[k]
        d = self.problem.d[i]
        r, off_x = image([(agent.A, given.coupled), (agent.C, kappa)], d)
        on_z, off_z = image([(agent.B, given.coupled), (agent.D, delta)], self.problem.q)
        sides = [(agent.b, given.coupled), (agent.c, kappa), (agent.e, delta)]
        held = np.zeros(d, dtype=bool)
        gain = np.zeros(d)
        if self.forms is not None:
            form = self.forms[k]
            ends = np.cumsum([len(t.h) for t in form.terms])[:-1]
            for term, mu in zip(form.terms, np.split(given.terms[k], ends), strict=False):
                if not term.a.any():  # a set; what has a cost is finite everywhere
                    steady = -term.steady(-mu)
                    both, off = image([(term.R, steady)], d + self.problem.q)
                    r = r + both[:d]
                    on_z = on_z + both[d:]
                    off_x += off
                    off_z += off
                    sides.append((term.h, steady))
            bound, held = pushed(r.astype(np.float64), form.lower[:d], form.upper[:d])
            gain = np.where(held, r * bound, 0.0).astype(np.float64)
        right = np.concatenate([np.zeros(len(v)) if s is None else s for s, v in sides])
        multipliers = np.concatenate([v for _, v in sides])
        value = dot(np.append(right, gain), np.append(multipliers, -np.ones(d)))
        room = (len(right) + d) * EPS_LONG * float(np.abs(gain).sum())
        rest = np.where(held, r, 0.0).astype(np.float64)
        whole = float(self._weights(k, given, rest).sum())
        numbers = [norm(r[~held]) + off_x, off_z, room, whole]
        return np.concatenate([halves(on_z), value, numbers]), rest

    def _weights(self, k: int, given: Lambda, rest: Array) -> Array:
        """How much an agent's coupled rows, C, D and bounds take part."""
        agent = self.agents[k]
        coupled = [(agent.A, len(rest)), (agent.B, self.problem.q)]
        push = float(sum(norm(image([(M, given.coupled)], size)[0]) for M, size in coupled))
        if agent.b is not None:
            push += float(np.abs(given.coupled) @ np.abs(agent.b))
        own = _weight(agent.C, agent.c, given.local[k])
        common = _weight(agent.D, agent.e, given.shared[k])
        return np.array([push, own, common, norm(rest)])

    def _certificate(
        self, given: Lambda, rests: list[Array], on_z: Array, numbers: tuple[float, float, float]
    ) -> Infeasibility:
        """With words that name the agents, which tell yes or no: one averaging."""
        value, defect, whole = numbers
        rows = [self._weights(k, given, rest) for k, rest in enumerate(rests)]
        least = VISIBLE * max(whole, norm(on_z))
        part = self.runtime.gather((np.stack(rows) > least).astype(np.float64))
        parts = []
        if part[:, 0].any():
            parts.append("the coupled equation sum(A x + B z - b) = 0")
        names = ("local equations C", "shared equations D", "bounds")
        for column, text in enumerate(names, 1):
            seen = [str(i) for i in np.flatnonzero(part[:, column])]
            if seen:
                more = ", ..." if len(seen) > NAMED else ""
                parts.append(f"the {text} of agents {', '.join(seen[:NAMED])}{more}")
        if norm(on_z) > least:
            parts.append("the bounds on z")
        agents = list(self.problem.agents)
        widen = "" if self.forms is None else "widen the bounds "
        message = (
            f"infeasible: {' and '.join(parts) or 'the equations'} cannot hold together "
            f"({shorter_than(self.reach if defect else math.inf)}); correct the right-hand "
            f"sides{',' if widen else ''} {widen}or drop one of these blocks"
        )
        if self.work.coupling.empty and given.coupled.any():
            message = (
                "infeasible: no agent has A or B, but the b_i do not add up to zero; correct the "
                "b_i or give the coupled equation its A and B"
            )
        bounded = self.forms is not None
        return Infeasibility(
            message,
            given.coupled,
            {i: v for i, v in zip(agents, given.local, strict=True) if v.size},
            {i: v for i, v in zip(agents, given.shared, strict=True) if v.size},
            defect,
            value,
            dict(zip(agents, rests, strict=True)) if bounded else {},
            on_z if bounded else np.zeros(0),
        )


def _weight(block: Any, side: Array | None, multiplier: Array) -> float:
    """How much an agent's own rows take part: their share of K'lambda, or of lambda'v if more."""
    if block is None or not multiplier.any():
        return 0.0
    paid = 0.0 if side is None else float(np.abs(side) @ np.abs(multiplier))
    return max(norm(image([(block, multiplier)], block.shape[1])[0]), paid)


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


def image(pairs: list[tuple[Any, Array]], size: int) -> tuple[Long, float]:
    """(sum of M'lambda, at most what rounding did to its norm); of operators in doubles."""
    total = np.zeros(size, dtype=np.longdouble)
    spread = np.zeros(size)
    off = 0.0
    count = 4
    for block, multiplier in pairs:
        if block is None or not len(multiplier):
            continue
        count += len(multiplier)
        if has_entries(block):
            total += product(block.T, multiplier)
            spread += np.asarray(abs(block).T @ np.abs(multiplier))
        else:
            part = multiply(block, multiplier, adjoint=True)
            total += part
            off += 4 * EPS * norm(part)
    return total, count * EPS_LONG * norm(spread) + off


def on_kernels(work: Workspace, coupled: Array) -> list[Array]:
    """kappa_i that cancel A_i'lambda in the rows of the C_i, then what rounding left of it."""
    found = [np.zeros(k) for k in work.problem.p.values()]
    agents = list(work.problem.agents.items())
    for _ in range(2):
        left = [
            image([(agent.A, coupled), (agent.C, kappa)], work.problem.d[i])[0].astype(np.float64)
            for (i, agent), kappa in zip(agents, found, strict=True)
        ]
        more = work.local.multipliers(np.concatenate([np.zeros(0), *left]))
        found = [kappa + rest for kappa, rest in zip(found, more, strict=True)]
    return found


# -- one agent's own rows --------------------------------------------------------------------------
def own_misfit(block: Array, right: Array, space: RowSpace) -> tuple[float, float, Array]:
    """(value, defect, lambda) along what of ``right`` lies outside the range of unit rows.

    Along the multiplier of the shortest solution, where that is longer than R.
    """
    unit = space.inverse_lengths * right
    zero = (space.inverse_lengths == 0) & (right != 0)
    if zero.any():  # 0 = something
        multiplier = np.where(zero, np.sign(right), 0.0) / math.sqrt(np.count_nonzero(zero))
        return float(multiplier @ right), 0.0, multiplier
    inside = space.left.T @ unit
    gap = unit - space.left @ inside
    far = norm(inside / space.singular) > REACH * max(1.0, norm(unit))
    along = space.left @ (inside / space.singular**2) if far else gap
    length = norm(along)
    if not length > 0:
        return 0.0, 0.0, np.zeros(len(right))
    multiplier = space.inverse_lengths * (along / length)
    for _ in range(0 if far else 2):  # what rounding left of M'lambda
        left = product(block.T, multiplier).astype(np.float64)
        multiplier = multiplier - space.multipliers(space.basis.T @ left)
    r, off = image([(block, multiplier)], block.shape[1])
    return float(dot(right, multiplier)[0]) * (1 - 4 * EPS), norm(r) + off, multiplier


def own_contradiction(work: Workspace, farkas: Farkas) -> Infeasibility | None:
    """An agent whose own C_i x = c_i or D_i z = e_i cannot hold; a message that travels along.

    Every agent says value and defect, or 0 and the condition of its rows.
    """
    problem = work.problem
    if not {"C", "D"} & problem.present or work.agreed.get("independent"):
        return None
    rows = np.zeros((len(problem.agents), 5))
    multipliers: dict[tuple[int, int], Array] = {}
    families = work.local.spaces, work.shared.spaces
    for k, (i, agent) in enumerate(problem.agents.items()):
        for column, (block, side) in enumerate(((agent.C, agent.c), (agent.D, agent.e))):
            if block is None or not families[column]:
                continue
            space = families[column][k]
            rows[k, 2 * column + 1] = space.condition
            if space.rank == block.shape[0] and space.condition < REACH:
                continue
            rows[k, 4] = 1.0
            right = np.zeros(block.shape[0]) if side is None else side
            value, defect, multiplier = own_misfit(dense(block), right, space)
            least = PROMISED * max(1.0, norm(space.inverse_lengths * right))
            if value >= REACH * defect and value >= least / 10:
                rows[k, 2 * column : 2 * column + 2] = value, defect
                multipliers[i, column] = multiplier
    hidden = work.runtime.averaging.hides
    if hidden:  # yes or no, and the worst condition of all
        _, worst = work.runtime.extremes(rows[:, :0], rows[:, 1:4:2])
        work.own_condition = max(1.0, float(worst.max()))
        proofs = rows.copy()
        rows[:, :4:2] = rows[:, :4:2] > 0
        rows[:, 1:4:2] = 0.0
    received = work.runtime.piggyback(rows, whole=True)
    work.gather_constraints()  # where all may know the equations, they travel along
    table = received.value
    work.agreed["independent"] = not table[:, 4].any()  # whatever the right-hand sides
    conditions = np.where(table[:, :4:2] == 0, table[:, 1:4:2], 1.0)
    work.own_condition = max(work.own_condition, float(conditions.max()))
    for column, (name, side_name) in enumerate((("C", "c"), ("D", "e"))):
        values = table[:, 2 * column]
        agent_index = int(np.argmax(values))
        value, defect = (float(v) for v in table[agent_index, 2 * column : 2 * column + 2])
        if hidden and value > 0:  # of one agent alone, which all learn
            there = [i == agent_index for i in problem.agents]
            alone = np.where(np.array(there)[:, None], proofs[:, 2 * column : 2 * column + 2], 0.0)
            value, defect = (float(v) for v in work.runtime.total(alone))
        if value <= 0 or value < farkas.reach * defect:
            continue
        mine = multipliers.get((agent_index, column))
        own = {} if mine is None else {agent_index: mine}
        return Infeasibility(
            f"infeasible: agent {agent_index}'s own equations {name} contradict each other "
            f"({shorter_than(farkas.reach if defect else math.inf)}); correct {name} or "
            f"{side_name} of agent {agent_index}",
            np.zeros(problem.m),
            own if name == "C" else {},
            own if name == "D" else {},
            defect,
            value,
        )
    return None


# -- all equations, where they or their sums are known to all --------------------------------------
def gathered_contradiction(
    known: Constraints | SummedConstraints, farkas: Farkas
) -> Infeasibility | None:
    """Along the misfit of the equations, or the multiplier of a solution longer than R.

    With S T = U diag(sigma) V' the shortest solution has the multiplier U diag(1/sigma^2) U'v.
    Nothing is sent where that is no candidate.
    """
    count = known.problem.m + int(farkas.work.curvature.r.sum())
    near = 10 * known.rank / REACH  # singular values that a solution longer than R takes
    if count == known.rank and known.sigma.min(initial=math.inf) > near:
        return None
    right = known.right
    inside = known.U.T @ right
    outside = known.U_null @ (known.U_null.T @ right)
    least = PROMISED * max(1.0, norm(right)) / 10
    length = norm(inside / known.sigma)
    if norm(outside) > least or (isinstance(known, SummedConstraints) and count > known.rank):
        rows = outside  # of summed rows every agent knows the misfit of its own D alone
    elif length > REACH * max(1.0, norm(right)) / 10:
        rows = known.U @ (inside / known.sigma**2)
    else:
        return None
    given = _from_rows(known, rows, farkas, least if norm(outside) <= least else 0.0)
    if given is None:
        return None
    found = farkas.test(given)
    return found or farkas.test(_refined(known, given, farkas))


def _from_rows(
    known: Constraints | SummedConstraints, rows: Array, farkas: Farkas, least: float
) -> Lambda | None:
    """Multipliers of all rows from those of the scaled coupled and shared ones, of length one.

    None where the misfit of summed rows is ``least`` or less.
    """
    agents = range(len(farkas.agents))
    m = len(known.unit)
    coupled = known.unit * rows[:m]
    if isinstance(known, SummedConstraints):  # the misfit of an agent's own D at the closest point
        multiplier, more = known.multipliers(known.inverse_gram(known.right))
        z = known.Bbar.astype(np.float64).T @ multiplier + known.D.T @ more
        misfits = [_own_misfit_at(known, k, z) for k in agents]
        shared = [unit**2 * v for unit, v in misfits]
        received = farkas.runtime.total(np.array([[square(unit * v)] for unit, v in misfits]))
        length = math.hypot(norm(rows[:m]), math.sqrt(max(float(received[0]), 0.0)))
        if length <= least:
            return None
    else:
        _, scaled = known.multipliers(rows)
        shared = [known.own_shared(k, scaled)[0] for k in agents]
        length = norm(rows)
    coupled = coupled / length
    shared = [v / length for v in shared]
    return Lambda(coupled, on_kernels(farkas.work, coupled), shared)


def _own_misfit_at(known: SummedConstraints, k: int, z: Array) -> tuple[Array, Array]:
    """(unit lengths of an agent's rows of D, e_i - D_i z)."""
    for D, e in known.hidden(k):
        return powers(np.linalg.norm(D, axis=1)), np.asarray(e - D @ z)
    return np.zeros(0), np.zeros(0)


def _refined(known: Constraints | SummedConstraints, given: Lambda, farkas: Farkas) -> Lambda:
    """Less what K' does not cancel of them, in extended precision: one averaging."""
    m = farkas.problem.m
    rows = []
    for k, agent in enumerate(farkas.agents):
        own = [(agent.A, given.coupled), (agent.C, given.local[k])]
        left = image(own, known.A[k].shape[1])[0].astype(np.float64)
        N = known.kernels[k].basis
        on_z = image([(agent.B, given.coupled), (agent.D, given.shared[k])], farkas.problem.q)[0]
        rows.append(np.concatenate([known.A[k] @ (N @ (N.T @ left)), halves(on_z)]))
    table = gathered_rows(farkas.runtime, np.stack(rows))
    on_z = summed(table[:, m:]).astype(np.float64)
    coupled = np.add.reduce(table[:, :m]) + known.Bbar.astype(np.float64) @ on_z
    scaled = known.inverse_gram(np.concatenate([known.unit * coupled, known.D @ on_z]))
    multiplier, more = known.multipliers(scaled)
    shared = [v - known.own_shared(k, more)[0] for k, v in enumerate(given.shared)]
    coupled = given.coupled - multiplier
    return Lambda(coupled, on_kernels(farkas.work, coupled), shared)


# -- the closest point of a run --------------------------------------------------------------------
def closest_point_contradiction(
    work: Workspace, recovery: Recovery, realized: Realized, w: Array, norms: dict[str, float]
) -> Infeasibility | None:
    """At a point w with these violations, repaired as far as it goes: K w - v is the multiplier.

    Where it stays violated without a proof, that is added to the doubts of ``work``.
    """
    allowed = PROMISED * max(1.0, recovery.scale())
    if max(norms["coupled"], norms["shared"]) <= allowed:
        return None
    multiplier = np.zeros((1, recovery.coupling.width))
    if not realized.system.empty:
        w = Certifier(realized).repair(w)
        norms, _, _ = recovery.violations(realized.space.x(w), realized.copies(w))
        multiplier = realized.system.common_multiplier(realized.system.residual(w)[1])
    violation = max(norms["coupled"], norms["shared"])
    if violation <= allowed:
        return None
    coupled = np.zeros(work.problem.m)
    coupled[: multiplier.shape[1]] = -multiplier[0]
    shared = [np.zeros(k) for k in work.problem.r.values()]
    if not recovery.shared.empty:
        gz = np.zeros((len(realized.copies(w)), work.problem.q))
        if not recovery.coupling.empty:
            gz = recovery.coupling.adjoint(multiplier)[1]
        mean = work.runtime.average(realized.copies(w))
        shared = [-v for v in _shared_misfit(recovery, mean, gz)]
    found = Farkas(work).test(Lambda(coupled, on_kernels(work, coupled), shared))
    if found is None:
        work.doubts.append(UNMET.format(violation))
    return found


def _shared_misfit(recovery: Recovery, mean: Array, gz: Array) -> list[Array]:
    """delta with mean(D'delta) = -mean(B'y): the misfit of D and what balances the coupled part."""
    runtime = recovery.runtime
    family = recovery.shared.family
    count = len(recovery.problem.agents)
    rows = np.ascontiguousarray(np.broadcast_to(mean, (count, recovery.problem.q)))
    misfit = family.forward(rows) - recovery.shared.right
    back = family.adjoint(misfit).reshape(count, recovery.problem.q)
    sizes = runtime.piggyback(np.stack([row_dots(gz, gz), row_dots(back, back)], axis=1))
    target = runtime.average(gz + back)
    direction = recovery.solve_shared(-target, sum(lengths(sizes)))
    wide = np.ascontiguousarray(np.broadcast_to(direction, rows.shape))
    return recovery.shared.in_user_rows(misfit + family.forward(wide))


# -- bounds of several agents on z -----------------------------------------------------------------
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
