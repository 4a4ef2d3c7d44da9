"""The averaged realization of a problem: one rule for scale, normalizer and degree.

Scale: z = s z~ at which both blocks of the objective have the same mean curvature; s^2 is doubled
where the multiplier alone proves the tolerance and the coupled rows stay badly conditioned.
Normalizer: the inverse of a sketch of S, or deflation of two thirds of the Ritz vectors of a
Lanczos run; of few rows S is summed and inverted. Degree: 1,
unless the interval that is left is so wide that a polynomial pays. Options of the method take
precedence. Everything is executed and charged to ``setup``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ccmac.angles.principal import friedrichs_cosine
from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.ledger import Costs
from ccmac.linalg.blocks import frobenius, has_entries, multiply
from ccmac.linalg.chebyshev import correction_interval
from ccmac.linalg.lanczos import Krylov, eigenpairs, lanczos
from ccmac.linalg.nystrom import Nystrom, random_signs
from ccmac.linalg.symmetric import gram_extremes
from ccmac.linalg.tolerances import KERNEL
from ccmac.realizations.averaged.system import AveragedSystem, Deflation, Sketched
from ccmac.realizations.base import (
    Certificates,
    ExecutionObjective,
    Images,
    Interval,
    Realized,
    resolved,
)
from ccmac.workspace import Workspace
from ccmac.workspace.declared import CurvatureTable, ScaledCurvature
from ccmac.workspace.dual import block_mean, planned_size
from ccmac.workspace.equations import SharedEquations, right_hand_sides

TESTS = 8  # vectors that show what a sketch leaves
TESTED_MARGIN = 1.25  # on the largest eigenvalue left, as they show it
FLOATS = 2**25  # of a sketch
LANCZOS_STEPS = 18
SMALL = 40  # rows whose S is summed as it is
TOP_MARGIN = 1.1  # on the largest eigenvalue left, as Ritz values show it


@dataclass(frozen=True)
class Wanted:
    """How the averaged realization is to be built; what is None is left to the rule.

    ``inner`` 0 deflates nothing. ``floor`` takes the scale at which B's part of S has that share of
    A's, for objectives whose curvature says nothing. ``stand_in`` balances with a strongly convex
    problem of that condition number in place of one that is not (its constants stay true).
    ``target`` is the squared relative
    error that the prediction is made for; ``by_multiplier``: the multiplier alone proves the
    tolerance.
    """

    scale: float | None = None
    inner: int | None = None
    outer: int | None = None
    floor: float | None = None
    certificates: Certificates = field(default_factory=Certificates)
    stand_in: float | None = None
    target: float = 1e-6
    by_multiplier: bool = False
    costs: Costs = field(default_factory=Costs)
    seed: int = 0


class Normalized(NamedTuple):
    """The coupled rows with their normalizer, on what its interval rests, and a known block."""

    system: AveragedSystem
    normalizer: Deflation | Sketched | None
    source: str
    block: Images | None = None


def averaged(work: Workspace, wanted: Wanted) -> Realized:
    """Execute the setup of the averaged realization (charged to the current phase).

    Where solves come again it is done once: then only new right-hand sides are sent, with the
    first message of the solve.
    """
    known = work.plans.get(wanted)
    found = _executed(work, wanted) if known is None else _again(work, *known)
    if work.recycles:
        work.plans[wanted] = found, frozenset()
    return found


def _again(work: Workspace, known: Realized, moved: frozenset[str]) -> Realized:
    """A realization with other right-hand sides or linear terms; an interval widened stays so."""
    f = known.objective
    system = known.system
    assert isinstance(system, AveragedSystem)
    objective = ExecutionObjective(
        work.problem, work.space, s=f.s, augment=f.augment, mu=f.mu, L=f.L
    )
    return replace(known, objective=objective, system=system.again(work, moved), notes=())


def _executed(work: Workspace, wanted: Wanted) -> Realized:
    """The setup itself."""
    given = wanted.certificates
    table = work.curvature
    if wanted.stand_in is not None:
        table = table.regularized(wanted.stand_in)
    rng = np.random.default_rng(wanted.seed)
    local = work.local
    shared = work.shared.copied()
    if not shared.empty:
        shared.prepare_target()
        _explore_shared(shared, rng)
    system = AveragedSystem(work.space, work.coupling, local, shared)
    found = _normalized(work, system, table, wanted, rng)
    notes: list[str] = []
    final = found.system
    _fix_interval(final, found, table, given, rng, notes)
    final.interval = resolved(work, final.interval)
    if given.cross_factor is not None and final.interval.source == "proved":
        final.interval = replace(final.interval, source="supplied")
    s = final.coupling.s
    constants = _checked(table.at(s), final.interval)
    if wanted.stand_in is not None:
        constants = work.curvature.at(s)
    interval = final.interval
    outer = wanted.outer or _degree(interval, constants)
    return Realized(
        "averaged",
        work.space,
        ExecutionObjective(work.problem, work.space, s=s, **vars(constants)),
        final,
        s,
        outer,
        "interval",
        {
            "scale": s,
            "normalizer": "none" if found.normalizer is None else str(found.normalizer),
            "outer degree": outer,
            "kappa_f": constants.condition,
            "interval": (interval.low, interval.high),
            "interval source": interval.source,
            "augmentation": constants.augment,
        },
        None if wanted.stand_in else _predicted(interval, outer, constants, wanted.target),
        tuple(notes),
        found.block,
    )


def _checked(constants: ScaledCurvature, interval: Interval) -> ScaledCurvature:
    """The constants, if double precision can work with them."""
    if not (math.isfinite(constants.condition) and interval.low > 0):
        raise InputError(
            "constraints: their scales, or those of the objectives, differ by more than double "
            "precision can tell; rescale them"
        )
    return constants


def _degree(interval: Interval, constants: ScaledCurvature) -> int:
    """1, unless the interval is very wide relative to the objective's condition.

    One residual an iteration took the fewest rounds on most problems tried, although iterations
    grow with the interval's ratio; the ends of a spectrum say little of what lies between.
    """
    excess = interval.ratio / constants.condition
    return math.ceil(excess**0.25) if excess > 1000 else 1


def _predicted(interval: Interval, outer: int, constants: ScaledCurvature, target: float) -> float:
    """Iterations, 1.5 sqrt(kappa chi) ln(1/eps): within a factor of 2.5 on real data."""
    low, high = correction_interval(interval.low, interval.high, outer)
    accuracy = max(-0.5 * math.log(max(target, 1e-24)), 1.0)
    return math.ceil(1.5 * math.sqrt(constants.condition * high / low) * accuracy)


# -- scale and normalizer --------------------------------------------------------------------------
def _normalized(
    work: Workspace,
    system: AveragedSystem,
    table: CurvatureTable,
    wanted: Wanted,
    rng: np.random.Generator,
) -> Normalized:
    """The rule of the module text, from a sketch where that pays, else by Lanczos."""
    given = wanted.certificates
    coupling = system.coupling
    s = table.balance()
    right = right_hand_sides(coupling.problem).b
    supplied = given.mu_HC is not None and given.h is not None
    if coupling.empty:
        return Normalized(system.at_scale(s * math.sqrt(wanted.scale or 1.0)), None, "proved")
    if supplied:
        s = 1.0
    elif wanted.scale is not None:
        s *= math.sqrt(wanted.scale)
    elif wanted.floor is not None:
        s = _floor_scale(work, wanted.floor) or s
    small = coupling.m <= SMALL
    multiples = None if supplied else table.multiples
    size = 0
    if multiples is not None and not small:
        size = _sketch_size(system, wanted.costs)
    if multiples is not None and size:
        size = size if wanted.inner is None else min(wanted.inner, size)
        return _by_sketch(system, s, multiples, size, right, wanted)
    system = system.at_scale(s)
    system.prepare_target(right)
    if small:
        m = coupling.width
        pairs = eigenpairs(work.runtime, system.gram_contribution, m, m, rng)
        source = "exhausted" if multiples is None else "proved"
        return Normalized(system, _exact(*pairs, wanted.inner), "supplied" if supplied else source)
    noise = rng.standard_normal(coupling.width)[None]
    krylov = lanczos(work.runtime, system.gram_contribution, noise, LANCZOS_STEPS)
    spectrum = _spectrum(krylov, multiples, s)
    if supplied:
        spectrum = Interval(float(given.mu_HC or 0.0), float(given.h or 0.0), "supplied")
    return Normalized(system, _deflation(krylov, spectrum, wanted.inner), spectrum.source)


def _floor_scale(work: Workspace, floor: float) -> float | None:
    """s at which the B_i have ``floor`` times the size of the A_i; None without both."""
    blocks = zip(work.problem.blocks("A"), work.problem.blocks("B"), strict=True)
    rows = np.array([[_square_norm(A), _square_norm(B)] for A, B in blocks])
    on_x, on_z = work.runtime.total(rows)
    return math.sqrt(floor * on_x / on_z) if min(on_x, on_z) > 0 else None


def _square_norm(block: Any) -> float:
    """Largest squared singular value; of operators the squared Frobenius norm."""
    if block is None:
        return 0.0
    if has_entries(block):
        return gram_extremes(block, both=False).high
    return frobenius(block) ** 2


def _exact(values: Array, vectors: Array, wanted: int | None) -> Deflation:
    """From all eigenpairs of S."""
    if wanted == 0 or not len(values):
        ends = (float(values[0]), float(values[-1])) if len(values) else (1.0, 1.0)
        return _plain(vectors.shape[1], ends[0] * (1 - 1e-9), ends[1] * (1 + 1e-9))
    images = values[:, None] * vectors
    return Deflation(vectors, images, np.diag(1.0 / values), 1.0, 1.0)


def _plain(m: int, low: float, high: float) -> Deflation:
    """Nothing deflated: a multiple of the identity for a spectrum in [low, high]."""
    none = np.zeros((0, m))
    return Deflation(none, none, np.zeros((0, 0)), low, high)


# -- from a sketch, where B_i = beta_i I -----------------------------------------------------------
# S(s) = S_A + s^2 f I with S_A = (1/n) sum A_i A_i' and f = (1/n) sum beta_i^2: one sketch of S_A
# serves every scale, and s^2 f is a proved lower end. The top of what it leaves is estimated
# from two products with TESTS vectors.
def _sketch_size(system: AveragedSystem, costs: Costs) -> int:
    """Vectors of the sketch, by the costs of rounds and bytes; 0 where Lanczos steps pay."""
    m = system.coupling.m
    if system.coupling.A.empty or not system.local.empty:
        return 0
    half = planned_size(system.runtime, m, costs) // 2
    return min(3 * half, FLOATS // m) if half >= 8 else 0


def _by_sketch(
    system: AveragedSystem, s: float, multiples: Array, size: int, right: Array, wanted: Wanted
) -> Normalized:
    """Also fixes the target of the system. Cost: two averagings, 2 A a vector."""
    coupling = system.coupling
    runtime = system.runtime

    def images(W: Array, more: Array | None = None) -> tuple[Array, Array]:
        runtime.ledger.charge_cost(2 * W.shape[1] * coupling.A.cost)
        return block_mean(runtime, _gram(coupling.A.blocks, coupling.m), W, more)

    W = random_signs(coupling.m, size + TESTS, wanted.seed)
    Y, system.target = images(W, right)
    tests = W[:, size:], Y[:, size:]
    W = W[:, :size]
    Y = Y[:, :size]
    B = Nystrom.of(W, Y, 0.0)
    V, _ = np.linalg.qr(B.left(*tests))
    margin = TESTED_MARGIN if size else TOP_MARGIN
    top = margin * float(np.linalg.norm(B.left(V, images(V)[0]), 2))
    shift = s * s * float(np.mean(multiples**2))
    fixed = wanted.scale is not None or wanted.floor is not None
    if wanted.by_multiplier and not fixed and top > shift:
        s *= math.sqrt(2.0)
        shift *= 2.0
    normalizer = Sketched(B.plus(shift), top + shift)
    return Normalized(system.at_scale(s), normalizer, "proved", Images(W, Y))


def _gram(blocks: list[Any], m: int) -> Callable[[Array], Array]:
    """W -> A_i A_i'W, agent by agent."""

    def own(W: Array) -> Array:
        rows = np.zeros((len(blocks), m, W.shape[1]))
        for k, block in enumerate(blocks):
            if block is not None and has_entries(block):
                rows[k] = block @ (block.T @ W)
            elif block is not None:
                images = [multiply(block, multiply(block, w, adjoint=True)) for w in W.T]
                rows[k] = np.stack(images, axis=1)
        return rows

    return own


# -- from Lanczos vectors --------------------------------------------------------------------------
def _spectrum(krylov: Krylov, multiples: Array | None, s: float) -> Interval:
    """Interval of S: exact where the Krylov space is exhausted, else with margins."""
    values = np.linalg.eigvalsh(krylov.tridiagonal()) if krylov.steps else np.zeros(1)
    positive = values[values > KERNEL * values.max(initial=0.0)]
    if not positive.size:
        return Interval(1.0, 1.0)
    exhausted = krylov.exhausted
    high = float(positive.max()) * (1 + 1e-9 if exhausted else TOP_MARGIN)
    if multiples is not None:
        low = s * s * float(np.mean(multiples**2))
        return Interval(low, max(high, low))
    low = float(positive.min()) * (1 - 1e-9 if exhausted else 0.5)
    return Interval(low, high, "exhausted" if exhausted else "estimated")


def _deflation(krylov: Krylov, spectrum: Interval, wanted: int | None) -> Deflation:
    """All of an exhausted Krylov space, else the first two thirds of its vectors; no messages.

    The steps beyond the deflated vectors show what is left of the top. Where the space is exhausted
    repeated eigenvalues may be left, within the spectrum.
    """
    k = krylov.steps
    if k == 0 or wanted == 0:
        return _plain(krylov.vectors.shape[1], spectrum.low, spectrum.high)
    T = krylov.tridiagonal()
    if krylov.exhausted:
        values, vectors = np.linalg.eigh(T)
        keep = values > KERNEL * values[-1]
        rotate = np.ascontiguousarray(vectors[:, keep].T)
        inverse = np.diag(1.0 / values[keep])
        images = rotate @ krylov.images(k)
        return Deflation(rotate @ krylov.basis, images, inverse, spectrum.low, spectrum.high)
    r = min(wanted or max(2 * k // 3, 1), k)
    rest = T - T[:, :r] @ np.linalg.solve(T[:r, :r], T[:r])
    top = TOP_MARGIN * float(np.linalg.eigvalsh((rest + rest.T) / 2)[-1])
    inverse = np.asarray(np.linalg.inv(T[:r, :r]))
    basis = krylov.basis[:r].copy()  # lets the other vectors go
    return Deflation(basis, krylov.images(r), inverse, spectrum.low, max(top, spectrum.low))


# -- intervals -------------------------------------------------------------------------------------


def _explore_shared(shared: SharedEquations, rng: np.random.Generator) -> None:
    """The whole range of S_D."""
    ranks = shared.runtime.total(np.array([[float(space.rank)] for space in shared.spaces]))
    rank = min(shared.q, int(ranks[0]))
    shared.fix_span(*eigenpairs(shared.runtime, shared.gram_contribution, shared.q, rank, rng))


def _fix_interval(
    system: AveragedSystem,
    found: Normalized,
    table: CurvatureTable,
    given: Certificates,
    rng: np.random.Generator,
    notes: list[str],
) -> None:
    """The interval of the normal operator: by the cosine of its channels, else by Lanczos."""
    source = found.source
    if source == "proved" and not system.shared.empty:
        source = "exhausted"  # as that of D was
    cosine = structural_cosine(system, table.multiples)
    if given.cross_factor is not None:
        system.finish(found.normalizer, friedrichs_cosine(given.cross_factor), source, True)
        return
    system.finish(found.normalizer, cosine or 0.0, source, cosine is None)
    if cosine is None and not system.empty:
        system.interval = _joint_interval(system, rng, notes, small=table.size <= 4000)


def structural_cosine(system: AveragedSystem, multiples: Array | None) -> float | None:
    """A bound on c_F that needs no spectrum; None where there is none.

    0 when B or the consensus is absent; sqrt(sum (beta_i - mean)^2 / sum beta_i^2) where
    B_i = beta_i I and D = 0 (A A' only helps).
    """
    if system.coupling.B.empty or system.coupling.empty:
        return 0.0
    if not system.shared.empty:
        return None
    if system.runtime.n == 1:
        return 0.0
    if multiples is None:
        return None
    spread = np.sum((multiples - multiples.mean()) ** 2)
    return float(np.sqrt(spread / np.sum(multiples**2)))


def _joint_interval(
    system: AveragedSystem, rng: np.random.Generator, notes: list[str], *, small: bool
) -> Interval:
    """Positive spectrum of G by Lanczos on execution vectors, started in its range.

    A normalizer built on a wrong interval shows here (G beyond its ceiling, or not positive): it is
    widened until it does not.
    """
    seed = int(rng.integers(2**31))
    steps, keep = (3 * SMALL, 10**6) if small else (LANCZOS_STEPS, 2)
    for _ in range(12):
        low, high, exhausted = system.extremes(seed, steps, keep)
        ceiling = system.interval.high
        if low > 0 and high <= 1.01 * ceiling:
            if exhausted:
                return Interval(low * (1 - 1e-6), max(high * (1 + 1e-6), low), "exhausted")
            return Interval(0.5 * low, ceiling, "estimated")
        notes.append(
            f"the certified interval of S was too narrow (normal operator in [{low:.3g}, "
            f"{high:.3g}] instead of below {ceiling:.3g}); widened"
        )
        system.widen()
    return system.interval
