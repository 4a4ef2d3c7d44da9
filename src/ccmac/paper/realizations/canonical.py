"""The canonical realization: the theorem's oracle, exact channels in one process.

    K^_j = p_j(Q_j) K_j,   spec^+(K^_j'K^_j) in [a, b],   N = ceil sqrt(lambda_+ / lambda_-)

with E_m and the consensus projector exact. The global sums and the consensus steps are an oracle:
what they would cost on the graph is *modelled* (unit ``modelled_rounds``), never added to executed
rounds. ``model="channel-2"`` charges ceil sqrt(kappa_W) for every normalized call of channel 2;
``model="paper-6"`` charges that much for every channel of the stack. The blocks are not rescaled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ccmac.angles.measure import geometry
from ccmac.angles.principal import friedrichs_cosine, weighted_extremes
from ccmac.angles.report import Geometry
from ccmac.angles.structural import Structural
from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.tolerances import DENSE_MARGIN
from ccmac.paper.realizations.channels import (
    CoupledLocal,
    Disagreement,
    NormalizedLocal,
    SharedConsensus,
    SummedCoupling,
)
from ccmac.paper.realizations.inverse_root import inverse_root_polynomial
from ccmac.paper.realizations.normalized import (
    RULES,
    Channel,
    NormalizedChannel,
    NormalizedStack,
    PolynomialChannel,
    WhitenedChannel,
    certified_interval,
    dense_matrix,
    materialised,
    spread_over,
    squared_singular_range,
)
from ccmac.problem import Problem
from ccmac.realizations.base import (
    Certificates,
    Interval,
    OracleObjective,
    Realized,
    modelled_rounds,
    refuse_part,
    refuse_unknown,
)
from ccmac.runtime.space import Space
from ccmac.workspace import Workspace
from ccmac.workspace.equations import block_families, right_hand_sides

INTERVALS = ("certificate", "certificate-delta", "certificate-spread", "tight", "minimal")
MODELS = ("channel-2", "paper-6")
DENSE_ROWS = 1500
WELL = 1e4  # a cross factor beyond may be that of dependent rows, but for rounding


def canonical(
    work: Workspace,
    *,
    certificates: Certificates | None = None,
    inner: int | None = None,
    delta: float = 0.5,
    rule: str = "paper",
    interval: str = "certificate",
    model: str = "channel-2",
    materialise: bool | None = None,
) -> Realized:
    """Cross-APAPC's system as the theorem states it.

    ``rule``: degree of the normalizers from the paper's formula, the least degree computed to
    reach ``delta`` (``tight``), or exact whitening by a dense factorization (small problems);
    ``inner`` fixes channel 1's degree. ``interval``: ``certificate`` is [a/(3 chi^2), 2b] with
    what is promised of the polynomials, 1 -+ delta (Equation eq:normalized-joint-certificate), or
    with their true spread when ``inner`` or exact whitening fixes them (``certificate-delta``: the
    former always, ``certificate-spread``: the latter); ``tight`` the extremes of weighted
    projectors at the exact angle, ``minimal`` the same with the least safe outer degree. Cost of
    a residual: 2 affine calls, 2 (2N_j + 1) products of channel j's families, modelled rounds.
    Setup (right-hand sides) is charged to ``setup``. ``materialise`` turns small channels into
    matrices (default: up to 600 variables, fused) at an unchanged charge.
    """
    problem = work.problem
    runtime = work.runtime
    space = work.space
    refuse_unknown(
        "canonical",
        ("rule", rule, RULES),
        ("interval", interval, INTERVALS),
        ("model", model, MODELS),
    )
    refuse_part("canonical", runtime, "'averaged' or 'certified'")
    with runtime.ledger.observing():
        constants = work.curvature.at(1.0)
    chosen = _Normalizers(work, certificates or Certificates(), _Rule(rule, delta, inner))
    with runtime.ledger.phase("setup"):
        first = chosen.first()
        second = chosen.second()
    channels = [c for c in (first, second) if c is not None]
    promised = interval == "certificate" and inner is None and rule != "exact"
    kind = "certificate-delta" if promised else interval
    bounds = _joint_interval(kind, channels, chosen, delta)
    calls = len(channels) if model == "paper-6" else int(second is not None)
    per_call = modelled_rounds(runtime)
    system = NormalizedStack(
        space,
        materialised(channels, space, materialise),
        bounds,
        width=problem.m if _couples(problem) else 0,
        charge=Cost(affine=2, modelled_rounds=2 * per_call * calls),
    )
    return Realized(
        "canonical",
        space,
        OracleObjective(problem, space, **vars(constants)),
        system,
        degree=bounds.degree(minimal=interval == "minimal"),
        steps="paper",
        details={
            "cross_factor": chosen.chi,
            "interval": interval,
            "rule": rule,
            "model": model,
            "inner": None if first is None else first.degree,
            "degree_2": None if second is None else second.degree,
            "spread_1": None if first is None else first.spread,
            "spread_2": None if second is None else second.spread,
            "modelled_rounds_per_call": per_call * calls,
        },
    )


def _joint_interval(
    kind: str, channels: list[NormalizedChannel], chosen: _Normalizers, delta: float
) -> Interval:
    """Positive spectrum of the normalized stack from its channels' spreads and the cross factor."""
    if not channels:
        return Interval(1.0, 1.0)
    source = chosen.source
    spread = (1.0 - delta, 1.0 + delta) if kind == "certificate-delta" else spread_over(channels)
    if kind.startswith("certificate"):
        return certified_interval(spread, chosen.chi, source)
    if len(channels) == 1:
        return Interval(*spread, source)
    (low_1, high_1), (low_2, high_2) = (c.spread for c in channels)
    cosine = friedrichs_cosine(chosen.chi)
    low, _ = weighted_extremes(low_1, low_2, cosine)
    _, high = weighted_extremes(high_1, high_2, 1.0 if chosen.common else cosine)
    return Interval(low * (1 - DENSE_MARGIN), high * (1 + DENSE_MARGIN), source)


class Consensus(NormalizedChannel):
    """K_2 without D: already a projector, I - Pi on the copies; no products."""

    spread = (1.0, 1.0)
    cost = Cost()
    right = np.zeros(0)

    def __init__(self, space: Space) -> None:
        self.space = space
        self.mean = np.full(space.count, 1.0 / space.count)

    def residual(self, w: Array) -> tuple[Array, Array | None]:
        """(0, z - mean z)."""
        out = np.empty_like(w)
        z = self.space.z(w)
        self.space.x(out)[...] = 0.0
        np.subtract(z, self.mean @ z, out=self.space.z(out))
        return out, None


@dataclass(frozen=True)
class _Rule:
    """How a normalizer is chosen: ``paper``, ``tight`` or ``exact``; its accuracy or degree."""

    name: str
    accuracy: float
    degree: int | None = None


class _Normalizers:
    """Spectra of K_1 K_1' and K_2 K_2' (given, dense, or from the geometry), then p_j or whitening.

    ``chi`` is the cross factor, ``common`` whether the row spaces may have common directions.
    """

    def __init__(self, work: Workspace, given: Certificates, rule: _Rule) -> None:
        self.work = work
        self.space = work.space
        self.given = given
        self.rule = rule
        self.problem = work.problem
        p = sum(self.problem.p.values())
        r = sum(self.problem.r.values())
        self.dense = self._fits(max(self.problem.m + p, r + self.problem.n * self.problem.q))
        facts: Geometry | None = None
        if given.cross_factor is None or not self.dense:
            facts = geometry(self.problem, network=work.runtime.network)
        self.facts = facts
        self.chi = given.cross_factor or (facts.cross_factor if facts is not None else 1.0)
        self.common = facts is None or facts.common_dimension != 0
        # Where both channels fit a dense factorization, their own spectra are better.
        self.structural = None if facts is None or self.dense else facts.structural

    @property
    def source(self) -> str:
        """On what spectra and cross factor rest: ``supplied`` by whoever vouches for constants;
        ``proved`` by a decomposition, unless an iteration found them or rows are nearly dependent.
        """
        if replace(self.given, energy_radius=None) != Certificates():
            return "supplied"
        facts = self.facts
        iterated = facts is not None and (facts.residual > 0 or facts.rests_on != "computed")
        iterated |= self.structural is not None and bool(self.structural.estimated)
        return "estimated" if iterated or self.chi > WELL else "proved"

    def _fits(self, rows: int) -> bool:
        """Whether so many rows fit a dense factorization."""
        return rows <= DENSE_ROWS and rows * self.space.size <= 4_000_000

    def first(self) -> NormalizedChannel | None:
        """K^_1; None when it has no rows or only zeros."""
        coupled = SummedCoupling(self.work) if _couples(self.problem) else None
        C = block_families(self.problem, self.work.ledger)["C"]
        local = None if C.empty else NormalizedLocal(C)
        channel = CoupledLocal(self.space, coupled, local, 1.0, right_hand_sides(self.problem).c)
        if not len(channel.right) or not self.space.size:
            return None
        bounds = _known(self.given.mu_HC, self.given.h) if local is None else None
        if bounds is None and self.structural is not None:
            bounds = _first_bounds(self.structural, channel)
        return self._normalized(channel, bounds, self.rule, ("K_1", "h and mu_HC"))

    def second(self) -> NormalizedChannel | None:
        """K^_2; the consensus projector itself when there is no D, None for one agent without D."""
        problem = self.problem
        space = self.space
        several = self.problem.n > 1
        D = block_families(problem, self.work.ledger)["D"]
        e = right_hand_sides(problem).e
        bare = D.empty or not len(e)  # rows that were inequalities have become coupled ones
        if not problem.q or (bare and not several):
            return None
        if bare:
            return Consensus(space)
        bounds = _known(self.given.mu_D, self.given.d_D)
        if bounds is None and self.structural is not None:
            bounds = _known(self.structural.mu_D, self.structural.d_D)
        if bounds is not None:
            # 2 d_D on the consensus rows keeps both parts of the channel in [mu_D/2, 3 d_D].
            weight = math.sqrt(2.0 * bounds[1])
            bounds = (bounds[0] / 2, 3.0 * bounds[1])
        else:
            plain = SharedConsensus(space, D, e, None, 0.0)
            _, top = squared_singular_range(dense_matrix(plain, self.work.ledger))
            if not top and several:
                return Consensus(space)
            weight = math.sqrt(top)
        channel = SharedConsensus(space, D, e, Disagreement() if several else None, weight)
        rule = replace(self.rule, degree=None)
        return self._normalized(channel, bounds, rule, ("K_2", "d_D and mu_D"))

    def _normalized(
        self,
        channel: Channel,
        bounds: tuple[float, float] | None,
        rule: _Rule,
        names: tuple[str, str],
    ) -> NormalizedChannel | None:
        exact = rule.name == "exact" and rule.degree is None
        if exact or bounds is None:
            if not self._fits(len(channel.right)):
                remedy = "take rule='paper'" if exact else f"supply Certificates with {names[1]}"
                raise InputError(
                    f"canonical: {names[0]} is too large for a dense factorization; {remedy}"
                )
            matrix = dense_matrix(channel, self.work.ledger)
            low, high = squared_singular_range(matrix)
            if high == 0.0:
                return None
            if exact:
                return WhitenedChannel(channel, matrix, self.work.ledger)
            bounds = (low * (1 - DENSE_MARGIN), high * (1 + DENSE_MARGIN))
            if high <= low * (1 + DENSE_MARGIN):
                bounds = (low, low)
        polynomial = inverse_root_polynomial(
            *bounds, accuracy=rule.accuracy, rule=rule.name, degree=rule.degree
        )
        return PolynomialChannel(channel, polynomial)


def _first_bounds(s: Structural, channel: CoupledLocal) -> tuple[float, float] | None:
    """Spectrum of K_1 K_1' from S_HC: exact without C, an enclosure with it.

    With t = y_0 + g, y_0 in Range(C'), and any theta <= 1:
    ||K_1 t||^2 >= (l_C - theta lambda) ||y_0||^2 + theta (mu_HC/2) ||g||^2.
    """
    slack = 1e-6 if s.estimated else DENSE_MARGIN
    if channel.local is None:
        return _known(s.mu_HC and s.mu_HC * (1 - slack), s.lambda_HC * (1 + slack))
    if channel.coupling is None:
        return _known(s.l_C and s.l_C * (1 - slack), s.u_C * (1 + slack))
    if s.mu_HC is None or s.l_C is None:
        return None
    top = s.h * (1 + slack)
    if s.rank_HC == 0:
        return s.l_C * (1 - slack), top + s.u_C
    theta = min(1.0, s.l_C / (top + s.mu_HC / 2))
    return theta * s.mu_HC / 2 * (1 - slack), top + s.u_C * (1 + slack)


def _couples(problem: Problem) -> bool:
    """Whether some A_i or B_i is given."""
    return problem.m > 0 and any(b is not None for k in "AB" for b in problem.blocks(k))


def _known(low: float | None, high: float | None) -> tuple[float, float] | None:
    return (low, high) if low and high else None
