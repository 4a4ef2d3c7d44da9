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

from ccmac.angles.measure import geometry
from ccmac.angles.principal import friedrichs_cosine, weighted_extremes
from ccmac.angles.report import Geometry
from ccmac.errors import InputError
from ccmac.ledger import Cost
from ccmac.linalg.filters import minimal_degree, outer_degree
from ccmac.linalg.tolerances import DENSE_MARGIN
from ccmac.realizations.base import Realized
from ccmac.realizations.canonical.normalizers import (
    Rule,
    couples,
    first_channel,
    fits_dense,
    second_channel,
)
from ccmac.realizations.materialised import materialised
from ccmac.realizations.normalized import (
    RULES,
    NormalizedChannel,
    NormalizedStack,
    PolynomialChannel,
)
from ccmac.realizations.objective import ExecutionObjective
from ccmac.realizations.supplied import Certificates
from ccmac.realizations.system import Interval
from ccmac.runtime.base import Runtime
from ccmac.workspace import Workspace
from ccmac.workspace.blocks import even_rows

Array = NDArray[np.float64]
INTERVALS = ("certificate", "certificate-delta", "certificate-spread", "tight", "minimal")
MODELS = ("channel-2", "paper-6")


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
    what is promised of the polynomials, 1 -+ delta (eq. normalized-joint-certificate), or with
    their true spread when ``inner`` or exact whitening fixes them (``certificate-delta``: the
    former always, ``certificate-spread``: the latter); ``tight`` the extremes of weighted
    projectors at the exact angle, ``minimal`` the same with the least safe outer degree. Cost of
    a residual: 2 affine calls, 2 (2N_j + 1) products of channel j's families, modelled rounds.
    Setup (right-hand sides) is charged to ``setup``. ``materialise`` turns small channels into
    matrices (default: up to 600 variables, fused) at an unchanged charge.
    """
    given, runtime, space = certificates or Certificates(), work.runtime, work.space
    problem = work.problem if given.of_own_rows else even_rows(work.problem)
    _check(work, rule, interval, model)
    per_call = modelled_rounds(runtime)
    with runtime.ledger.observing():
        constants = work.curvature.at(1.0)
    chi = given.cross_factor
    facts: Geometry | None = None
    if chi is None or not fits_dense(problem, space):
        facts = geometry(problem, network=runtime.network)
    if chi is None:
        assert facts is not None
        chi = facts.cross_factor
    structural = None if facts is None else facts.structural
    with runtime.ledger.phase("setup"):
        choice = Rule(rule, delta, inner)
        first = first_channel(problem, space, given, structural, choice)
        second = second_channel(problem, space, given, structural, choice)
    channels = [c for c in (first, second) if c is not None]
    common = facts is None or bool(facts.common_dimension) or facts.common_dimension is None
    executed = materialised(channels, space, materialise)
    promised = interval == "certificate" and inner is None and rule != "exact"
    kind = "certificate-delta" if promised else interval
    bounds = joint_interval(kind, [c.spread for c in channels], chi, common, delta)
    calls = len(channels) if model == "paper-6" else int(second is not None)
    system = NormalizedStack(
        space, executed, bounds, width=problem.m if couples(problem) else 0,
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
            "inner": _degree(first), "degree_2": _degree(second),
            "spread_1": None if first is None else first.spread,
            "spread_2": None if second is None else second.spread,
            "modelled_rounds_per_call": per_call * calls,
        },
    )  # fmt: skip


def joint_interval(
    kind: str, spreads: Sequence[tuple[float, float]], chi: float, common: bool, delta: float
) -> Interval:
    """Positive spectrum of the normalized stack from its channels' spreads and the cross factor."""
    if not spreads:
        return Interval(1.0, 1.0)
    a, b = min(low for low, _ in spreads), max(high for _, high in spreads)
    if kind == "certificate-delta":
        a, b = 1.0 - delta, 1.0 + delta
    if kind.startswith("certificate"):
        return Interval(a / (3.0 * chi * chi), 2.0 * b, "supplied")
    if len(spreads) == 1:
        return Interval(a, b)
    cosine = friedrichs_cosine(chi)
    low, _ = weighted_extremes(spreads[0][0], spreads[1][0], cosine)
    _, high = weighted_extremes(spreads[0][1], spreads[1][1], 1.0 if common else cosine)
    return Interval(low * (1 - DENSE_MARGIN), high * (1 + DENSE_MARGIN))


def modelled_rounds(runtime: Runtime) -> int:
    """ceil sqrt(kappa_W): rounds of one consensus step in the theorem's ledger."""
    return 0 if runtime.n == 1 else math.ceil(math.sqrt(runtime.network.condition) - DENSE_MARGIN)


def _degree(channel: NormalizedChannel | None) -> int | None:
    return channel.polynomial.degree if isinstance(channel, PolynomialChannel) else None


def _check(work: Workspace, rule: str, interval: str, model: str) -> None:
    runtime = work.runtime
    for name, value, known in (
        ("rule", rule, RULES), ("interval", interval, INTERVALS), ("model", model, MODELS),
    ):  # fmt: skip
        if value not in known:
            raise InputError(f"canonical: {name} {value!r} is unknown; take {', '.join(known)}")
    if len(runtime.owned) != runtime.n:
        raise InputError(
            f"canonical: this process owns {len(runtime.owned)} of {runtime.n} agents; its exact "
            "sums need all in one process, take realization 'averaged' or 'certified'"
        )
