"""Build the averaged realization of a problem: setup, certificates, plan, system."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ccmac.angles.principal import friedrichs_cosine
from ccmac.inputs import Array
from ccmac.linalg.blocks import dense
from ccmac.linalg.lanczos import lanczos
from ccmac.linalg.ranks import squared_range
from ccmac.linalg.tolerances import KERNEL
from ccmac.realizations.averaged.blocks import block_size, build_block_profile
from ccmac.realizations.averaged.choices import Candidate, Choice, Normalizer, Wanted
from ccmac.realizations.averaged.planner import Planner
from ccmac.realizations.averaged.profile import Profile, Structure, build_profile
from ccmac.realizations.averaged.system import AveragedSystem
from ccmac.realizations.base import Certificates, Interval, Realized, resolved
from ccmac.realizations.objective import ExecutionObjective
from ccmac.runtime.base import Rider
from ccmac.workspace import Workspace
from ccmac.workspace.coupling import right_hand_sides
from ccmac.workspace.curvature import CurvatureTable
from ccmac.workspace.local import LocalEquations
from ccmac.workspace.shared import SharedEquations

LANCZOS_STEPS = 18
SMALL = 40
SMALL_STATE = 4000
SHARED_ERROR = 0.2
WIDEN_LIMIT = 12


def averaged(work: Workspace, wanted: Wanted) -> Realized:
    """Execute the setup of the averaged realization (charged to the current phase).

    Where solves come again it is done once: then only new right-hand sides are told, with the
    first message of the solve.
    """
    known = work.plans.get(wanted.key)
    found = _executed(work, wanted) if known is None else _again(work, *known)
    if work.recycles and (wanted.access == "factor" or not {"C", "D"} & work.problem.present):
        work.plans[wanted.key] = found, frozenset()
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
    problem = work.problem
    given = wanted.certificates
    table = work.curvature
    if wanted.stand_in is not None:
        table = table.regularized(wanted.stand_in)
    s0 = table.balance() * math.sqrt(2.0)
    local, shared = _equations(work, wanted)
    system = AveragedSystem(work.space, work.coupling.rescaled(1.0, s0), local, shared)
    rng = np.random.default_rng(wanted.seed)
    if not shared.empty:
        shared.prepare_target()
        if wanted.access == "matvec" and given.mu_D is not None and given.d_D is not None:
            shared.fix((given.mu_D, given.d_D), SHARED_ERROR)
        else:
            _explore_shared(shared, rng)
    system = system.at_scale(s0)
    choice, normalizer = _plan(work, system, table, wanted, rng)
    notes: list[str] = []
    small = table.size <= SMALL_STATE
    final = _fixed(system, choice, normalizer, given, rng, notes, small=small)
    final.interval = resolved(work, final.interval)
    if given.cross_factor is not None and final.interval.source == "proved":
        final.interval = replace(final.interval, source="supplied")
    s = choice.candidate.s
    constants = choice.constants if wanted.stand_in is None else work.curvature.at(s)
    objective = ExecutionObjective(problem, work.space, s=s, **vars(constants))
    c = choice.candidate
    interval = final.interval
    details = {
        "scale": s,
        "normalizer": f"{c.normalizer} {c.inner}" if c.normalizer != "none" else "none",
        "outer degree": c.outer,
        "kappa_f": constants.condition,
        "interval": (interval.low, interval.high),
        "interval source": interval.source,
        "augmentation": objective.augment,
    }
    return Realized(
        "averaged",
        work.space,
        objective,
        final,
        s,
        c.outer,
        "interval",
        details,
        choice.table,
        None if wanted.stand_in else c.iterations,
        tuple(notes),
        choice.block,
    )


def _equations(work: Workspace, wanted: Wanted) -> tuple[LocalEquations, SharedEquations]:
    """C and D as the access allows; what is fixed of the shared ones later stays here."""
    if wanted.access == "factor":
        return work.local, work.shared.copied()
    given = wanted.certificates
    problem = work.problem
    runtime = work.runtime
    interval = (given.l_C, given.u_C) if given.l_C and given.u_C else None
    return (
        LocalEquations(problem, runtime, "matvec", interval or local_interval(work)),
        SharedEquations(problem, runtime, "matvec"),
    )


def _fixed(
    system: AveragedSystem,
    choice: Choice,
    normalizer: Normalizer | None,
    given: Certificates,
    rng: np.random.Generator,
    notes: list[str],
    *,
    small: bool,
) -> AveragedSystem:
    """The system as planned, with the interval of its normal operator."""
    final = system.at_scale(choice.candidate.s)
    common = choice.cosine is None
    cosine = choice.cosine if choice.cosine is not None else 0.0
    if given.cross_factor is not None:
        cosine = friedrichs_cosine(given.cross_factor)
        common = True
    source = choice.spectrum.source
    if source == "proved" and not system.shared.empty:
        source = "exhausted"  # as that of D was
    final.finish(normalizer, cosine, source, common)
    if choice.cosine is None and given.cross_factor is None and not final.empty:
        final.interval = _joint_interval(final, rng, notes, small=small)
    return final


def structural_cosine(system: AveragedSystem, multiples_bound: float | None) -> float | None:
    """A bound on c_F that needs no spectrum: 0 when B or V is absent, else from B_i = beta_i I."""
    if system.coupling.B.empty or system.coupling.empty:
        return 0.0
    if not system.shared.empty:
        return None
    return 0.0 if system.runtime.n == 1 else multiples_bound


def _plan(
    work: Workspace,
    system: AveragedSystem,
    table: CurvatureTable,
    wanted: Wanted,
    rng: np.random.Generator,
) -> tuple[Choice, Normalizer | None]:
    problem = work.problem
    space = work.space
    fixed = wanted.fixed
    given = wanted.certificates
    if system.coupling.empty:
        system.prepare_target(right_hand_sides(problem).b)
        s = table.balance() * math.sqrt(fixed.scale or 1.0)
        constants = table.at(s)
        candidate = Candidate(1.0, s, "none", 0, fixed.outer or 1, constants.condition, 1.0)
        return Choice(candidate, constants, Interval(1.0, 1.0), 0.0), None
    w0 = space.zeros()
    space.x(w0)[...], space.z(w0)[...] = wanted.start
    plain = ExecutionObjective(problem, space)
    # A stand-in is smooth; what is asked of the objectives is what they offer.
    smooth = work.curvature.smooth
    gradient = plain.gradient(w0) if smooth else np.zeros_like(w0)
    probed = None
    if smooth and not table.quadratic:
        probed = probed_curvature(plain, w0, gradient)
    space.z(w0)[...] /= system.coupling.s
    structure = Structure(table.multiples)
    profile = _profile(system, w0, gradient, structure, wanted, rng)
    del w0, gradient  # execution vectors: planning needs only their projections
    supplied = None
    if given.mu_HC is not None and given.h is not None:
        supplied = Interval(given.mu_HC, given.h, "supplied")
        fixed = replace(fixed, scale=1.0 / table.balance() ** 2)
    if fixed.floor is not None and fixed.scale is None:
        fixed = replace(fixed, scale=_scale_of(fixed.floor, profile, table))
    cosine = structural_cosine(system, structure.cosine_bound())
    goal = replace(wanted.goal, by_price=wanted.goal.by_price and profile.block is not None)
    planner = Planner(
        system,
        profile,
        table,
        goal,
        fixed,
        supplied=supplied,
        cosine=cosine,
        probed=None if probed is None else _quotients(probed),
    )
    choice = planner.choose()
    return choice, planner.normalizer(choice)


def _profile(
    system: AveragedSystem,
    w0: Array,
    gradient: Array,
    structure: Structure,
    wanted: Wanted,
    rng: np.random.Generator,
) -> Profile:
    """From blocks where their lower end is known by structure, else from Lanczos steps."""
    m = system.coupling.m
    fixed = wanted.fixed
    small = m <= SMALL
    if not small and fixed.lanczos is None and wanted.certificates.mu_HC is None:
        size = block_size(system, structure, wanted.goal.costs)
        if size:
            return build_block_profile(system, w0, gradient, size, structure, wanted.seed)
    system.prepare_target(right_hand_sides(system.coupling.problem).b)
    steps = fixed.lanczos or (m + 1 if small else LANCZOS_STEPS)
    return build_profile(system, w0, gradient, steps, structure, rng, exhaust=small)


def _scale_of(floor: float, profile: Profile, table: CurvatureTable) -> float | None:
    """The scale at which B's part of S has ``floor`` times the top of A's; None without both."""
    tops = [float(np.linalg.eigvalsh(M)[-1]) if len(M) else 0.0 for M in (profile.M_A, profile.M_B)]
    if min(tops) <= 0:
        return None
    return floor * tops[0] / tops[1] / table.balance() ** 2


def probed_curvature(plain: ExecutionObjective, w0: Array, gradient: Array) -> Rider:
    """Squares of the gradient at w0 and curvature of F along it, per block: one gradient.

    Objectives that are not quadratic seldom live at their worst constants; the twin plans with
    what it sees. (The steps of the method keep the declared constants.) Each agent looks as far
    ahead as suits its own part, and the sums travel with the next message.
    """
    space = plain.space
    sizes = [np.sqrt(space.partial_dots(v, v))[:, 0] for v in (w0, gradient)]
    steps = 1e-4 * (1.0 + sizes[0]) / np.maximum(sizes[1], 1e-300)
    ahead = w0.copy()
    for k, step in enumerate(steps):
        space.x_of(ahead, k)[...] -= step * space.x_of(gradient, k)
    space.z(ahead)[...] -= steps[:, None] * space.z(gradient)
    change = gradient - plain.gradient(ahead)
    columns = []
    for u, scale in ((gradient, np.ones_like(steps)), (change, 1.0 / steps)):
        only_x = u.copy()
        only_z = u.copy()
        space.z(only_x)[...] = 0.0
        space.x(only_z)[...] = 0.0
        columns += [scale * space.partial_dots(v, gradient)[:, 0] for v in (only_x, only_z)]
    return space.runtime.ride(np.stack(columns, axis=1))


def _quotients(squares: Rider) -> tuple[float, float]:
    """Curvatures of the two blocks."""
    xx, zz, hx, hz = (float(v) for v in squares.value)
    return hx / xx if xx > 0 else 0.0, hz / zz if zz > 0 else 0.0


def local_interval(work: Workspace) -> tuple[float, float]:
    """[l_C, u_C] from each agent's own singular values (one reduction of two scalars)."""
    rows = []
    for block in work.problem.blocks("C"):
        rank, low, high = (0, 0.0, 0.0) if block is None else squared_range(dense(block))
        rows.append([low if rank else np.inf, high])
    values = work.runtime.gather(np.array(rows, dtype=np.float64))
    if not np.isfinite(values[:, 0]).any():
        return 1.0, 1.0
    return float(values[:, 0].min()) * (1 - 1e-12), float(values[:, 1].max()) * (1 + 1e-12)


def _explore_shared(shared: SharedEquations, rng: np.random.Generator) -> None:
    """Lanczos on S_D: its whole range when q is small, else its interval with margins."""
    runtime = shared.runtime
    q = shared.q
    small = q <= SMALL
    seed = rng.standard_normal((1, q))
    steps = q + 1 if small else LANCZOS_STEPS
    start = runtime.average(shared.gram_contribution(seed))
    krylov = lanczos(runtime, shared.gram_contribution, start, steps, rng=rng if small else None)
    if krylov.complete and krylov.steps:
        shared.fix_span(krylov)
        return
    values = np.linalg.eigvalsh(krylov.tridiagonal()) if krylov.steps else np.ones(1)
    positive = values[values > KERNEL * values[-1]]
    margins = (1 - 1e-9, 1 + 1e-9) if krylov.exhausted else (0.5, 1.1)
    shared.fix((float(positive[0]) * margins[0], float(positive[-1]) * margins[1]), SHARED_ERROR)


def _joint_interval(
    system: AveragedSystem, rng: np.random.Generator, notes: list[str], *, small: bool
) -> Interval:
    """Positive spectrum of G by Lanczos on execution vectors, started in its range.

    A normalizer built on a wrong interval shows here (G beyond its ceiling, or not positive): it is
    widened until it does not.
    """
    seed = int(rng.integers(2**31))
    steps, keep = (3 * SMALL, 10**6) if small else (LANCZOS_STEPS, 2)
    for _ in range(WIDEN_LIMIT):
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
