"""Warm starts: from a point with prices to the solution.

Slacks and prices of bounds obey s + u = sqrt(s^2 + u^2 + 2 mu), u = weight v, linearized
(:meth:`.sides.Exclusive.balanced`); with tau = 1 all other conditions are linear, so that a step of
length t leaves 1 - t of them and

    M(t) = (1 - t)^2 ||linear part||^2 + sum_j (s_j(t) + u_j(t) - sqrt(...))^2

is known from sums of one number a length. M falls along the step (De Luca, Facchinei and Kanzow,
1996; Kanzow, 1996). The full step is taken at once: its matrix and those of two shorter ones travel
with M at all lengths, and only where a still shorter one is needed is a matrix summed again.
``weight`` makes prices as large as slacks (the largest coupled price counts as 1). mu falls with M,
less after short steps; it keeps the equations regular where prices are not unique. A run that does
not get there starts inside.

Beside it goes a second point, whose steps guess which bounds are active
(:meth:`.sides.Exclusive.guessed`) and may lead anywhere: where few bounds change they end at the
solution first. Its matrix travels in the same messages; after a few steps it is put back to the
first point.

In a state on this way ``primal`` is the root of the linear part before the last step, ``gap`` that
of M with mu = 0 and ``mu`` the smoothing; ``mu_next`` is that of the step to come.
Cost: 1 averaging at the start; 4 local factorizations and 1 averaging a step, 2 where the last step
was far too long.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ccmac.inputs import Array
from ccmac.methods.interior.common import Common
from ccmac.methods.interior.elimination import Elimination, Lack
from ccmac.methods.interior.own import OwnPoint
from ccmac.methods.interior.settling import Lacking, Linearized
from ccmac.methods.interior.sides import Exclusive, unbalanced
from ccmac.methods.interior.state import Agents, InteriorState

TRIED = (0.5, 0.2)  # lengths whose matrices travel with that of the full step
RAISES = (3.0, 10.0)  # of mu there: a step that must be shortened was too bold
LENGTHS = np.array([1.0, *TRIED, 0.1, 0.05, 0.02, 0.01, 0.0])
GAIN = 1e-3  # share of the slope at 0 by which M must fall
SHARE = 0.1  # mu over the mean square that M has a side
SHORT = 0.1  # a step shorter than this was jammed between kinks: mu is raised to all of that
GUESSES = 5  # steps of the second point before it is put back
STEPS = 20  # after so many it is tried no longer
CLOSE = 1e-5  # root of M before a full step after which a proof is tried
SETTLED = 1e-9  # root of M at a solution: where bounds are degenerate a step may lead away again
BETTER = 0.1  # share of the first point's that the second's must have: guesses may go round


def begun(agents: Agents, x: Array, z: Array, dual: Array, price: Array) -> InteriorState:
    """The state at (x, z) with K'lambda in ``dual`` (user units) and the coupled ``price``."""
    equations, reduced, space = agents.equations, agents.reduced, agents.space
    points, unit = [], agents.unit
    for k, block in enumerate(agents.blocks):
        along = unit * space.x_of(space.x(dual), k)
        points.append(block.near(space.x_of(x, k), z, along))
    rows = np.zeros(len(reduced.U))
    m = len(reduced.unit)
    rows[:m] = unit * price[:m] / reduced.unit
    mu, sides = equations.mu_of(rows), equations.sides
    none, largest = np.zeros(sides.count), unit * float(np.abs(price[:m]).max(initial=0.0))
    common = Common(z, mu, np.zeros(len(equations.fixed)), sides.slack(z, 1.0), none, 1.0, 0.0)
    weight, lam = 1.0 / largest if largest > 0 else 1.0, equations.lam(mu)
    told = []
    for block, p in zip(agents.blocks, points, strict=True):
        lack = Lack.at(block, p, z, lam, 1.0)
        numbers = [lack.square, unbalanced(p.s, p.v, weight, 0.0), len(p.s)]
        told.append(np.append(lack.own, numbers))
    total = agents.runtime.average(np.stack(told))[0] * agents.problem.n
    lacking = Lacking(agents, total[:-3], float(total[-3]))
    # Nobody could know the prices of the bounds on z.
    common = replace(common, v=np.maximum(sides.sign * lacking.slope(common)[sides.at], 0.0))
    square = float(total[-2]) + unbalanced(common.s, common.v, weight, 0.0) + lacking.far(common)
    smooth = SHARE * square / max(float(total[-1]) + sides.count, 1.0)
    return agents.packed(
        points, common, guess=(points, common), warm=1, weight=weight,
        gap=float(np.sqrt(square)), mu_next=smooth,
    )  # fmt: skip


def guided(agents: Agents, state: InteriorState) -> InteriorState | None:
    """One step; None where this way leads nowhere."""
    if state.warm > STEPS:
        return None
    equations, weight, mu = agents.equations, state.weight, state.mu_next
    points, common = agents.points(state), agents.common(state)
    ways, way = agents.way(state)
    riding = [
        np.concatenate([*_merits(p, d, weight, state.mu), [len(p.s)]])
        for p, d in zip(points, ways, strict=True)
    ]
    guess = _Guess.of(agents, state)
    tried = [(points, common, mu)]
    for t, f in zip(TRIED, RAISES, strict=True) if state.warm > 1 else ():
        tried.append((_moved(points, ways, t - 1.0), common.moved(way, t - 1.0), f * mu))
    sets = [(_balanced(agents, *at, weight), [np.zeros(0)] * len(points)) for at in tried]
    sets[0] = sets[0][0], riding
    *found, guessed = Linearized.at(agents, *sets, guess.told)
    linear, far = found[0], guess.far(guessed)
    count = max(float(linear.told[-1]) + equations.sides.count, 1.0)
    if far <= min(CLOSE, BETTER * state.gap):
        return guess.taken(guessed, SHARE * far * far / count)
    square = state.gap**2
    if state.warm > 1:
        merits = linear.told[:-1].reshape(2, -1) + _merits(common, way, weight, state.mu)
        merits += ((1.0 - LENGTHS) * state.primal) ** 2
        if not np.isfinite(merits[:, -1]).all():
            return None
        chosen = _length(merits[0])
        square = float(merits[1, chosen])
        if chosen < len(found):
            linear, (points, common, mu) = found[chosen], tried[chosen]
        else:
            share = SHARE if LENGTHS[chosen] >= SHORT else 1.0
            back, mu = LENGTHS[chosen] - 1.0, share * square / count
            points, common = _moved(points, ways, back), common.moved(way, back)
            again = _balanced(agents, points, common, mu, weight), riding
            (linear,) = Linearized.at(agents, again)
    newton = Exclusive.balanced(equations.sides, common.s, common.v, weight, mu)
    steps, step = linear.step(common, newton)
    new = _moved(points, steps, 1.0), common.moved(step, 1.0)
    goes_on = state.warm % GUESSES and np.isfinite(far)
    return agents.packed(
        *new, (steps, step), guess.moved(guessed) if goes_on else new,
        primal=float(np.sqrt(linear.far(common))), gap=float(np.sqrt(square)),
        count=state.count + 1, warm=state.warm + 1, weight=weight, mu=mu,
        mu_next=SHARE * square / count,
    )  # fmt: skip


@dataclass(frozen=True)
class _Guess:
    """The point whose steps guess the active bounds, with its eliminations."""

    agents: Agents
    state: InteriorState
    points: list[OwnPoint]
    common: Common
    parts: list[Elimination]

    @classmethod
    def of(cls, agents: Agents, state: InteriorState) -> _Guess:
        """At the state's second point."""
        points, common = agents.guess(state)
        newtons = [
            Exclusive.guessed(block.sides, p.s, p.v, state.weight)
            for block, p in zip(agents.blocks, points, strict=True)
        ]
        return cls(agents, state, points, common, _parts(agents, points, common, newtons))

    @property
    def told(self) -> tuple[list[Elimination], list[Array]]:
        """What travels: eliminations, and the nonlinear part of M."""
        weight = self.state.weight
        return self.parts, [np.array([unbalanced(p.s, p.v, weight, 0.0)]) for p in self.points]

    def far(self, linear: Linearized) -> float:
        """The root of M."""
        common = self.common
        square = float(linear.told[0]) + unbalanced(common.s, common.v, self.state.weight, 0.0)
        return float(np.sqrt(square + linear.far(common)))

    def moved(self, linear: Linearized) -> tuple[list[OwnPoint], Common]:
        """One step on."""
        common, sides = self.common, self.agents.equations.sides
        newton = Exclusive.guessed(sides, common.s, common.v, self.state.weight)
        steps, step = linear.step(common, newton)
        return _moved(self.points, steps, 1.0), self.common.moved(step, 1.0)

    def taken(self, linear: Linearized, smooth: float) -> InteriorState:
        """The state there: what is proved next, and where both go on, the first with ``smooth``.

        One step on, unless rounding is all that a step could add.
        """
        points, common = self.points, self.common
        if self.far(linear) > SETTLED:
            points, common = self.moved(linear)
        way = [p.moved(q, -1.0) for p, q in zip(points, self.points, strict=True)]
        step = replace(common.moved(self.common, -1.0), tau=0.0, kappa=0.0)
        return self.agents.packed(
            points, common, (way, step), (points, common), count=self.state.count + 1,
            primal=float(np.sqrt(linear.far(self.common))), gap=self.far(linear),
            warm=self.state.warm + 1, weight=self.state.weight, mu_next=smooth,
        )  # fmt: skip


def _moved(points: list[OwnPoint], steps: list[OwnPoint], length: float) -> list[OwnPoint]:
    return [p.moved(d, length) for p, d in zip(points, steps, strict=True)]


def _balanced(
    agents: Agents, points: list[OwnPoint], common: Common, mu: float, weight: float
) -> list[Elimination]:
    newtons = [
        Exclusive.balanced(block.sides, p.s, p.v, weight, mu)
        for block, p in zip(agents.blocks, points, strict=True)
    ]
    return _parts(agents, points, common, newtons)


def _parts(
    agents: Agents, points: list[OwnPoint], common: Common, newtons: list[Exclusive]
) -> list[Elimination]:
    lam = agents.equations.lam(common.mu)
    return [
        Elimination(block, p, common.z, lam, 1.0, newton)
        for block, p, newton in zip(agents.blocks, points, newtons, strict=True)
    ]


def _merits(at: OwnPoint | Common, way: OwnPoint | Common, weight: float, mu: float) -> Array:
    """The nonlinear part of M at all lengths of the last step: with mu, and without."""
    pairs = [(at.s + back * way.s, at.v + back * way.v) for back in LENGTHS - 1.0]
    return np.array([[unbalanced(s, v, weight, m) for s, v in pairs] for m in (mu, 0.0)])


def _length(merit: Array) -> int:
    """The longest of the lengths with which M falls enough; the last, 0, where there is none."""
    enough = np.flatnonzero(merit <= (1.0 - 2.0 * GAIN * LENGTHS) * merit[-1])
    return int(enough[0])
