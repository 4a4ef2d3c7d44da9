"""The canonical realization: the theorem's oracle, exact channels in one process.

    K^_j = p_j(Q_j) K_j,   spec^+(K^_j'K^_j) in [a, b],   N = ceil sqrt(lambda_+ / lambda_-)

with E_m and the consensus projector exact. The global sums and the consensus steps are an oracle:
what they would cost on the graph is *modelled* (unit ``modelled_rounds``), never added to executed
rounds. ``model="channel-2"`` charges ceil sqrt(kappa_W) for every normalized call of channel 2;
``model="paper-6"`` charges that much for every channel of the stack. The blocks are not rescaled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.ledger import Cost
from ccmac.operators.filters import minimal_degree, outer_degree
from ccmac.pipeline.canonical_channels import Consensus, CoupledLocal, SharedConsensus
from ccmac.pipeline.certificates import Certificates
from ccmac.pipeline.execution import ExecutionObjective
from ccmac.pipeline.geometry import geometry
from ccmac.pipeline.geometry_report import Geometry
from ccmac.pipeline.normalized import (
    RULES,
    Channel,
    NormalizedChannel,
    NormalizedStack,
    PolynomialChannel,
    WhitenedChannel,
    dense_matrix,
    inverse_root_polynomial,
    squared_singular_range,
)
from ccmac.pipeline.realized import Realized
from ccmac.pipeline.scaling import CurvatureTable
from ccmac.pipeline.structural import Structural
from ccmac.pipeline.system import Interval, weighted_extremes
from ccmac.problem import Problem
from ccmac.runtime.base import Runtime
from ccmac.spaces import Space

Array = NDArray[np.float64]
INTERVALS = ("certificate", "certificate-delta", "tight", "minimal")
MODELS = ("channel-2", "paper-6")
DENSE_ROWS = 1500
DENSE_ENTRIES = 4_000_000
ROUNDING = 1e-9


class OracleObjective(ExecutionObjective):
    """F with its consensus augmentation (if any) at modelled instead of executed rounds."""

    rounds: int = 0

    def gradient(self, w: Array, out: Array | None = None) -> Array:
        """grad Phi(w). Cost: 1 gradient, modelled rounds when augmented."""
        self.ledger.charge_cost(self.cost)
        with self.ledger.observing():
            return super().gradient(w, out)

    @property
    def cost(self) -> Cost:
        """Static cost of one gradient."""
        return Cost(gradients=1, modelled_rounds=self.rounds if self.augment else 0)


def canonical(
    problem: Problem,
    runtime: Runtime,
    *,
    certificates: Certificates | None = None,
    degree_1: int | None = None,
    accuracy: float = 0.5,
    rule: str = "paper",
    interval: str = "certificate",
    cross_factor: float | None = None,
    model: str = "channel-2",
) -> Realized:
    """Cross-APAPC's system as the theorem states it.

    ``rule``: degree of the normalizers from the paper's formula, the least degree computed to reach
    ``accuracy`` (``tight``), or exact whitening by a dense factorization (small problems);
    ``degree_1`` fixes channel 1's degree. ``interval``: ``certificate`` is [a/(3 chi^2), 2b] with
    the true spread [a, b] of the polynomials (``certificate-delta``: 1 -+ accuracy), ``tight`` the
    extremes of weighted projectors at the exact angle, ``minimal`` the same with the least safe
    outer degree. Cost of a residual: 2 affine calls, 2 (2N_j + 1) products of channel j's families,
    modelled rounds. Setup (right-hand sides) is charged to ``setup``.
    """
    _check(problem, runtime, rule, interval, model)
    given = certificates or Certificates()
    space = Space(runtime, list(problem.d.values()), problem.q)
    per_call = modelled_rounds(runtime)
    with runtime.ledger.observing():
        constants = CurvatureTable(problem, runtime).at(1.0)
    chi = cross_factor or given.cross_factor
    facts: Geometry | None = None
    if chi is None or not _small(problem, space):
        facts = geometry(problem, network=runtime.network)
    if chi is None:
        assert facts is not None
        chi = facts.cross_factor
    structural = None if facts is None else facts.structural
    with runtime.ledger.phase("setup"):
        first = _first(problem, space, given, structural, rule, degree_1, accuracy)
        second = _second(problem, space, given, structural, rule, accuracy)
    channels = [c for c in (first, second) if c is not None]
    common = facts is None or bool(facts.common_dimension) or facts.common_dimension is None
    bounds = joint_interval(interval, [c.spread for c in channels], chi, common, accuracy)
    calls = len(channels) if model == "paper-6" else int(second is not None)
    system = NormalizedStack(
        space, channels, bounds, width=problem.m if _couples(problem) else 0,
        charge=Cost(affine=2, modelled_rounds=2 * per_call * calls),
    )  # fmt: skip
    objective = OracleObjective(
        problem, space, augment=constants.augment, mu=constants.mu, L=constants.L
    )
    objective.rounds = per_call
    choose = minimal_degree if interval == "minimal" else outer_degree
    return Realized(
        "canonical", space, objective, system,
        degree=choose(bounds.low, bounds.high) if channels else 1, steps="paper",
        details={
            "cross_factor": chi, "interval": interval, "rule": rule, "model": model,
            "degree_1": _degree(first), "degree_2": _degree(second),
            "spread_1": None if first is None else first.spread,
            "spread_2": None if second is None else second.spread,
            "modelled_rounds_per_call": per_call * calls,
            "conflicts": vacuous_conflicts(problem, runtime),
        },
    )  # fmt: skip


def joint_interval(
    kind: str, spreads: Sequence[tuple[float, float]], chi: float, common: bool, accuracy: float
) -> Interval:
    """Positive spectrum of the normalized stack from its channels' spreads and the cross factor."""
    if not spreads:
        return Interval(1.0, 1.0)
    a, b = min(low for low, _ in spreads), max(high for _, high in spreads)
    if kind == "certificate-delta":
        a, b = 1.0 - accuracy, 1.0 + accuracy
    if kind.startswith("certificate"):
        return Interval(a / (3.0 * chi * chi), 2.0 * b, "supplied")
    if len(spreads) == 1:
        return Interval(a, b)
    cosine = (chi * chi - 1.0) / (chi * chi + 1.0)
    low, _ = weighted_extremes(spreads[0][0], spreads[1][0], cosine)
    _, high = weighted_extremes(spreads[0][1], spreads[1][1], 1.0 if common else cosine)
    return Interval(low * (1 - ROUNDING), high * (1 + ROUNDING))


def modelled_rounds(runtime: Runtime) -> int:
    """ceil sqrt(kappa_W): rounds of one consensus step in the theorem's ledger."""
    return 0 if runtime.n == 1 else math.ceil(math.sqrt(runtime.network.condition) - ROUNDING)


def vacuous_conflicts(problem: Problem, runtime: Runtime) -> list[tuple[str, float]]:
    """[("coupled", ||sum b||)] when A = B = 0 but the b_i do not cancel: no point is feasible."""
    if _couples(problem) or not problem.m:
        return []
    rows = [np.zeros(problem.m) if a.b is None else a.b for a in problem.agents.values()]
    with runtime.ledger.phase("setup"):
        gap = float(np.linalg.norm(runtime.total(np.stack(rows))))
    size = max((float(np.linalg.norm(row)) for row in rows), default=0.0)
    return [("coupled", gap)] if gap > 1e-9 * max(1.0, size) else []


def _couples(problem: Problem) -> bool:
    return problem.m > 0 and any(b is not None for k in "AB" for b in problem.blocks(k))


def _small(problem: Problem, space: Space) -> bool:
    """Whether both channels fit a dense factorization."""
    rows = max(
        problem.m + sum(problem.p.values()), sum(problem.r.values()) + problem.n * problem.q
    )
    return rows <= DENSE_ROWS and rows * space.size <= DENSE_ENTRIES


def _first(
    problem: Problem,
    space: Space,
    given: Certificates,
    structural: Structural | None,
    rule: str,
    degree: int | None,
    accuracy: float,
) -> NormalizedChannel | None:
    channel = CoupledLocal(problem, space, coupled=_couples(problem))
    if not len(channel.right) or not space.size:
        return None
    bounds = None
    if not channel.local:
        bounds = _known(given.mu_HC, given.h)
    if bounds is None and structural is not None and not _small(problem, space):
        bounds = _first_bounds(structural, channel)
    return _normalized(channel, space, bounds, rule, degree, accuracy, "K_1", "h and mu_HC")


def _first_bounds(s: Structural, channel: CoupledLocal) -> tuple[float, float] | None:
    """Spectrum of K_1 K_1' from S_HC: exact without C, an enclosure with it.

    With t = y_0 + g, y_0 in Range(C'), and any theta <= 1:
    ||K_1 t||^2 >= (l_C - theta lambda) ||y_0||^2 + theta (mu_HC/2) ||g||^2.
    """
    slack = 1e-6 if s.estimated else ROUNDING
    if not channel.local:
        return _known(s.mu_HC and s.mu_HC * (1 - slack), s.lambda_HC * (1 + slack))
    if not channel.m:
        return _known(s.l_C and s.l_C * (1 - slack), s.u_C * (1 + slack))
    if s.mu_HC is None or s.l_C is None:
        return None
    top = s.h * (1 + slack)
    if s.rank_HC == 0:
        return s.l_C * (1 - slack), top + s.u_C
    theta = min(1.0, s.l_C / (top + s.mu_HC / 2))
    return theta * s.mu_HC / 2 * (1 - slack), top + s.u_C * (1 + slack)


def _second(
    problem: Problem,
    space: Space,
    given: Certificates,
    structural: Structural | None,
    rule: str,
    accuracy: float,
) -> NormalizedChannel | None:
    blocks = [b for b in problem.blocks("D") if b is not None and 0 not in b.shape]
    if not problem.q or (not blocks and problem.n == 1):
        return None
    if not blocks:
        return Consensus(space)
    bounds = _known(given.mu_D, given.d_D)
    if bounds is None and structural is not None and not _small(problem, space):
        bounds = _known(structural.mu_D, structural.d_D)
    if bounds is not None:
        # 2 d_D on the consensus rows keeps both parts of the channel in [mu_D/2, 3 d_D].
        channel = SharedConsensus(problem, space, math.sqrt(2.0 * bounds[1]))
        bounds = (bounds[0] / 2, 3.0 * bounds[1])
    else:
        with space.runtime.ledger.observing():
            plain = SharedConsensus(problem, space, 0.0)
        _, top = squared_singular_range(dense_matrix(plain, space.runtime.ledger))
        if not top and problem.n > 1:
            return Consensus(space)
        channel = SharedConsensus(problem, space, math.sqrt(top))
    return _normalized(channel, space, bounds, rule, None, accuracy, "K_2", "d_D and mu_D")


def _normalized(
    channel: Channel,
    space: Space,
    bounds: tuple[float, float] | None,
    rule: str,
    degree: int | None,
    accuracy: float,
    name: str,
    missing: str,
) -> NormalizedChannel | None:
    size = len(channel.right) * space.size
    dense = len(channel.right) <= DENSE_ROWS and size <= DENSE_ENTRIES
    exact = rule == "exact" and degree is None
    if exact or bounds is None:
        if not dense:
            remedy = "take rule='paper'" if exact else f"supply Certificates with {missing}"
            raise InputError(f"canonical: {name} is too large for a dense factorization; {remedy}")
        matrix = dense_matrix(channel, space.runtime.ledger)
        low, high = squared_singular_range(matrix)
        if high == 0.0:
            return None
        if exact:
            return WhitenedChannel(channel, matrix, space.runtime.ledger)
        bounds = (low * (1 - ROUNDING), high * (1 + ROUNDING))
        if high <= low * (1 + ROUNDING):
            bounds = (low, low)
    polynomial = inverse_root_polynomial(*bounds, accuracy=accuracy, rule=rule, degree=degree)
    return PolynomialChannel(channel, polynomial)


def _known(low: float | None, high: float | None) -> tuple[float, float] | None:
    return (low, high) if low and high else None


def _degree(channel: NormalizedChannel | None) -> int | None:
    return channel.polynomial.degree if isinstance(channel, PolynomialChannel) else None


def _check(problem: Problem, runtime: Runtime, rule: str, interval: str, model: str) -> None:
    for name, value, known in (
        ("rule", rule, RULES), ("interval", interval, INTERVALS), ("model", model, MODELS),
    ):  # fmt: skip
        if value not in known:
            raise InputError(f"canonical: {name} {value!r} is unknown; take {', '.join(known)}")
    if len(runtime.owned) != runtime.n or not problem.complete:
        raise InputError(
            f"canonical: this process owns {len(runtime.owned)} of {runtime.n} agents; its exact "
            "sums need all in one process, take realization 'averaged' or 'certified'"
        )
    if runtime.n != problem.n:
        raise InputError(f"network: has {runtime.n} agents but the problem has {problem.n}")
