"""Build the averaged realization of a problem: setup, certificates, plan, system."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.angles.principal import friedrichs_cosine
from ccmac.costs import Costs
from ccmac.linalg.families import dense
from ccmac.linalg.lanczos import extreme_ritz, lanczos
from ccmac.linalg.ranks import squared_range
from ccmac.linalg.tolerances import KERNEL
from ccmac.problem import Problem
from ccmac.realizations.averaged.normalizers import Spectrum
from ccmac.realizations.averaged.planner import Candidate, Choice, Planner
from ccmac.realizations.averaged.profile import Structure, build_profile
from ccmac.realizations.averaged.system import AveragedSystem
from ccmac.realizations.objective import ExecutionObjective
from ccmac.realizations.supplied import Certificates
from ccmac.realizations.system import Interval
from ccmac.runtime.base import Runtime
from ccmac.runtime.space import Space
from ccmac.workspace.blocks import right_hand_sides
from ccmac.workspace.coupling import Coupling
from ccmac.workspace.curvature import Constants, CurvatureTable
from ccmac.workspace.local import LocalEquations
from ccmac.workspace.shared import SharedEquations

Array = NDArray[np.float64]
LANCZOS_STEPS = 18
SMALL = 40
SMALL_STATE = 4000
SHARED_ERROR = 0.2
WIDEN_LIMIT = 12


@dataclass(frozen=True)
class Averaged:
    """Everything the averaged realization of one problem consists of."""

    space: Space
    objective: ExecutionObjective
    system: AveragedSystem
    table: CurvatureTable
    choice: Choice
    s: float
    notes: tuple[str, ...] = ()


def assemble(
    problem: Problem,
    runtime: Runtime,
    *,
    start: tuple[Array, Array] | None = None,
    access: str = "factor",
    certificates: Certificates | None = None,
    costs: Costs | None = None,
    target: float = 1e-6,
    measure: tuple[float, float] = (1.0, 1.0),
    pinned: dict[str, Any] | None = None,
    seed: int = 0,
    curvature: Constants | None = None,
    stand_in: float | None = None,
    table: CurvatureTable | None = None,
    coupling: Coupling | None = None,
) -> Averaged:
    """Execute the setup of the averaged realization (charged to the current phase).

    ``start`` is (x flat, z rows) in the user's variables. ``pinned`` fixes any of scale, inner,
    outer, normalizer; ``floor`` takes the scale at which B's part of S has that share of A's (for
    objectives whose curvature says nothing). ``curvature`` overrides (mu, L). ``stand_in`` plans
    with a strongly convex problem of that condition number in place of one that is not (its
    constants stay true). ``table`` and ``coupling`` reuse what
    was gathered and stacked before.
    """
    given = certificates or Certificates()
    true_table = table or CurvatureTable(problem, runtime)
    table = true_table if stand_in is None else true_table.regularized(stand_in)
    space = Space(runtime, list(problem.d.values()), problem.q)
    interval_C = (given.l_C, given.u_C) if given.l_C and given.u_C else None
    if access == "matvec" and interval_C is None:
        interval_C = local_interval(problem, runtime)
    local = LocalEquations(problem, runtime, access, interval_C)
    shared = SharedEquations(problem, runtime, access)
    s0 = table.balance() * math.sqrt(2.0)
    blocks = coupling or Coupling(problem, runtime)
    system = AveragedSystem(space, blocks.rescaled(1.0, s0), local, shared)
    system.prepare_target(right_hand_sides(problem).b)
    rng = np.random.default_rng(seed)
    if not shared.empty:
        shared.prepare_target()
        if access == "matvec" and given.mu_D is not None and given.d_D is not None:
            shared.fix((given.mu_D, given.d_D), SHARED_ERROR)
        else:
            _explore_shared(shared, rng)
    system = system.at_scale(s0)
    choice = _plan(
        problem, system, table, start, given, costs or Costs(), target, measure, pinned or {}, rng
    )
    notes: list[str] = []
    small = true_table.size <= SMALL_STATE
    final = _fixed(system, choice, given, rng, notes, small=small)
    better = choice.planner.knowing(final.interval.low, choice) if choice.planner else None
    if better is not None and choice.cosine is None and given.cross_factor is None:
        choice = better.choose()
        final = _fixed(system, choice, given, rng, notes, small=small)
    constants = curvature or choice.constants
    if stand_in is not None and curvature is None:
        constants = true_table.at(choice.candidate.s)
    objective = ExecutionObjective(
        problem, space, s=choice.candidate.s,
        augment=constants.augment, mu=constants.mu, L=constants.L,
    )  # fmt: skip
    return Averaged(space, objective, final, table, choice, choice.candidate.s, tuple(notes))


def _fixed(
    system: AveragedSystem, choice: Choice, given: Certificates, rng: np.random.Generator,
    notes: list[str], *, small: bool,
) -> AveragedSystem:  # fmt: skip
    """The system as planned, with the interval of its normal operator."""
    final = system.at_scale(choice.candidate.s)
    common = choice.cosine is None
    cosine = choice.cosine if choice.cosine is not None else 0.0
    if given.cross_factor is not None:
        cosine, common = friedrichs_cosine(given.cross_factor), True
    final.finish(choice.normalizer, cosine, choice.spectrum.source, common)
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
    problem: Problem,
    system: AveragedSystem,
    table: CurvatureTable,
    start: tuple[Array, Array] | None,
    given: Certificates,
    costs: Costs,
    target: float,
    measure: tuple[float, float],
    pinned: dict[str, Any],
    rng: np.random.Generator,
) -> Choice:
    space = system.space
    w0 = space.zeros()
    if start is not None:
        space.x(w0)[...], space.z(w0)[...] = start[0], start[1]
    if system.coupling.empty:
        s = table.balance() * math.sqrt(float(pinned.get("scale", 1.0)))
        constants = table.at(s)
        candidate = Candidate(
            1.0, s, "none", 0, int(pinned.get("outer", 1)), constants.condition, 1.0
        )
        return Choice(candidate, constants, None, Spectrum(1.0, 1.0, "exact"), 0.0)
    plain = ExecutionObjective(problem, space)
    gradient = plain.gradient(w0) if table.smooth else np.zeros_like(w0)
    blocks = None
    if table.smooth and not table.quadratic:
        blocks = probed_curvature(plain, w0, gradient)
    space.z(w0)[...] /= system.coupling.s
    small = problem.m <= SMALL
    steps = int(pinned.get("lanczos", problem.m + 1 if small else LANCZOS_STEPS))
    structure = Structure(table.multiples)
    profile = build_profile(system, w0, gradient, steps, structure, rng, exhaust=small)
    del w0, gradient  # execution vectors: planning needs only their projections
    supplied = None
    if given.mu_HC is not None and given.h is not None:
        supplied = Spectrum(given.mu_HC, given.h, "supplied")
        pinned = {**pinned, "scale": 1.0 / table.balance() ** 2}
    if "floor" in pinned and "scale" not in pinned:
        tops = [
            float(np.linalg.eigvalsh(M)[-1]) if len(M) else 0.0 for M in (profile.M_A, profile.M_B)
        ]
        if min(tops) > 0:
            square = float(pinned["floor"]) * tops[0] / tops[1]
            pinned = {**pinned, "scale": square / table.balance() ** 2}
    cosine = structural_cosine(system, profile.structure.cosine_bound())
    planner = Planner(
        system, profile, table, costs, target=target, measure=measure,
        pinned=pinned, supplied=supplied, cosine=cosine, probed=blocks,
    )  # fmt: skip
    return planner.choose()


def probed_curvature(plain: ExecutionObjective, w0: Array, gradient: Array) -> tuple[float, float]:
    """Curvature of F at w0 along its own gradient, per block: one gradient, one reduction.

    Objectives that are not quadratic seldom live at their worst constants; the twin plans with
    what it sees. (The steps of the method keep the declared constants.)
    """
    space = plain.space
    step = (
        1e-4 * (1.0 + space.norm(w0, riding=True)) / max(space.norm(gradient, riding=True), 1e-300)
    )
    change = plain.gradient(w0 - step * gradient) - gradient
    squares = []
    for u, v in ((gradient, gradient), (change, gradient)):
        only_x, only_z = u.copy(), u.copy()
        space.z(only_x)[...] = 0.0
        space.x(only_z)[...] = 0.0
        squares += [space.partial_dots(only_x, v), space.partial_dots(only_z, v)]
    xx, zz, hx, hz = space.runtime.total(np.concatenate(squares, axis=1), riding=True)
    return (
        float(-hx / (step * xx)) if xx > 0 else 0.0,
        float(-hz / (step * zz)) if zz > 0 else 0.0,
    )


def local_interval(problem: Problem, runtime: Runtime) -> tuple[float, float]:
    """[l_C, u_C] from each agent's own singular values (one reduction of two scalars)."""
    rows = []
    for block in problem.blocks("C"):
        rank, low, high = (0, 0.0, 0.0) if block is None else squared_range(dense(block))
        rows.append([low if rank else np.inf, high])
    values = runtime.gather(np.array(rows, dtype=np.float64))
    if not np.isfinite(values[:, 0]).any():
        return 1.0, 1.0
    return float(values[:, 0].min()) * (1 - 1e-12), float(values[:, 1].max()) * (1 + 1e-12)


def _explore_shared(shared: SharedEquations, rng: np.random.Generator) -> None:
    """Lanczos on S_D: its whole range when q is small, else its interval with margins."""
    runtime, q = shared.runtime, shared.q

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


def _normal(linear: AveragedSystem, w: Array) -> Array:
    """G w."""
    return linear.residual(w)[0]


def _joint_interval(
    system: AveragedSystem, rng: np.random.Generator, notes: list[str], *, small: bool
) -> Interval:
    """Positive spectrum of G by Lanczos on execution vectors, started in its range.

    A normalizer built on a wrong interval shows here (G beyond its ceiling, or not positive): it is
    widened until it does not.
    """
    space = system.space
    seed = int(rng.integers(2**31))
    for _ in range(WIDEN_LIMIT):
        linear = system.homogeneous()
        # Every agent draws its own stream, so that all splits of the agents agree.
        start = space.zeros()
        for k, agent in enumerate(space.runtime.owned):
            stream = np.random.default_rng([seed, agent])
            space.x_of(start, k)[...] = stream.standard_normal(space.d[k])
            space.z(start)[k] = stream.standard_normal(space.q)
        start, _ = linear.residual(start)
        low, high, exhausted = extreme_ritz(
            space, partial(_normal, linear), start,
            3 * SMALL if small else LANCZOS_STEPS, 10**6 if small else 2,
        )  # fmt: skip
        ceiling = system.interval.high
        if low > 0 and high <= 1.01 * ceiling:
            if exhausted:
                return Interval(low * (1 - 1e-6), max(high * (1 + 1e-6), low), "exact")
            return Interval(0.5 * low, ceiling, "estimated")
        notes.append(
            f"the certified interval of S was too narrow (normal operator in [{low:.3g}, "
            f"{high:.3g}] instead of below {ceiling:.3g}); widened"
        )
        system.widen()
    return system.interval
