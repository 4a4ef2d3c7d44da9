"""The theory's orders evaluated for one problem.

Table tab:closest-comparison, Appendix app:resources.

With L_eps = log(1/eps), T_sc = sqrt(kappa_f) L_eps and T_cvx = sqrt(L_f R^2 / eps), a row of the
comparison gives gradients, affine work and neighbor rounds; the primitive ledger gives products by
block with T = sqrt(kappa_f) chi log_+(R_E/eps),

    N_A, N_B = T sqrt(k_1),   N_C = T sqrt(k_1 kappa_C),   N_D = T sqrt(k_2),
    Lambda_in = sqrt(k_1)(1 + sqrt(kappa_C)) + sqrt(k_2),   Gamma_in = sqrt(k_1) + sqrt(k_2),
    products = T Lambda_in,   rounds = T Gamma_in sqrt(kappa_W),

absent families counting zero. Orders leave constants out: they compare, they do not predict.
Nothing here communicates; all agents must be in one process.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ccmac.angles.measure import geometry
from ccmac.angles.structural import Structural
from ccmac.errors import InputError
from ccmac.inputs import of_kind, positive
from ccmac.network import as_network
from ccmac.paper.complexity_spectra import coupled_condition, stack_condition
from ccmac.paper.polynomials import paper_degree
from ccmac.paper.realizations.certified import channel_intervals
from ccmac.paper.realizations.lift_constants import LiftConstants, nonzero
from ccmac.problem import Problem
from ccmac.runtime import InProcess
from ccmac.workspace.declared import CurvatureTable

OWN = "CC-MAC"
STRONG = "strong"
CONVEX = "general"


@dataclass(frozen=True)
class ComparedWork:
    """One line of the comparison; NaN where the work gives no bound or a number is missing."""

    work: str
    model: str
    convexity: str
    gradients: float
    affine: float
    rounds: float
    remark: str = ""


@dataclass(frozen=True)
class Lift:
    """The paper's certified construction: degrees and rounds of one iteration (exact, not orders).

    rounds = nu 2N [(2 N_1 + 1) + (2 N_2 + 1)] + 2 nu.
    """

    graph_degree: int
    normalizers: tuple[int, int]
    outer_degree: int
    rounds_per_iteration: int


@dataclass(frozen=True)
class Complexity:
    """Constants of the problem and the orders that follow from them."""

    tol: float
    numbers: Mapping[str, float]
    comparison: tuple[ComparedWork, ...]
    primitive: Mapping[str, float]
    lift: Lift | None
    estimated: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and strings."""
        found = asdict(self)
        return {("certified_lift" if key == "lift" else key): v for key, v in found.items()}


def complexity(
    problem: Problem,
    network: Any = None,
    *,
    tol: float = 1e-6,
    radius: float | None = None,
    energy_radius: float = 1.0,
) -> Complexity:
    """Evaluate the orders at eps = ``tol``; ``radius`` (R) adds the smooth convex rows."""
    of_kind("problem", problem, Problem, "a ccmac.Problem")
    tol = positive("tol", tol)
    energy_radius = positive("energy_radius", energy_radius)
    if not tol < 1:
        raise InputError(f"tol = {tol!r}: give a number between 0 and 1, such as 1e-6")
    radius = None if radius is None else positive("radius", radius)
    network = as_network(network, problem.n)
    found = geometry(problem, network=network)
    s = found.structural
    assert s is not None  # a Problem always has structural parameters
    curvature = CurvatureTable(problem, InProcess(network)).at(1.0)
    kappa_f = curvature.condition if math.isfinite(curvature.L) else math.inf
    kappa_K, K_estimated = stack_condition(problem, network)
    kappa_A, A_estimated = coupled_condition(problem, network)
    numbers = {
        "kappa_f": kappa_f,
        "L_f": curvature.L,
        "mu_f": curvature.mu,
        "cross_factor": found.cross_factor,
        **{k: getattr(s, k) for k in ("k_1", "k_2", "kappa_C")},
        "kappa_W": network.condition,
        "kappa_K": kappa_K,
        "kappa_A": kappa_A,
        "T_sc": math.sqrt(kappa_f) * math.log(1 / tol),
        "T_cvx": math.nan if radius is None else math.sqrt(curvature.L / tol) * radius,
    }
    numbers = {name: math.nan if v is None else v for name, v in numbers.items()}
    names = [("kappa_K", K_estimated), ("kappa_A", A_estimated)]
    estimated = [*s.estimated, *(name for name, flag in names if flag)]
    return Complexity(
        tol,
        numbers,
        tuple(_comparison(problem, numbers, tol)),
        _primitive(problem, numbers, math.log(max(math.e, energy_radius / tol))),
        certified_lift(problem, s, found.cross_factor),
        tuple(estimated),
    )


def _comparison(problem: Problem, numbers: Mapping[str, float], tol: float) -> list[ComparedWork]:
    chi = numbers["cross_factor"]
    T = numbers["T_sc"]
    wide = numbers["T_cvx"]
    graph = math.sqrt(numbers["kappa_W"]) if problem.n > 1 else 0.0
    joint, coupled, first, second, local = (
        math.sqrt(numbers[k]) for k in ("kappa_K", "kappa_A", "k_1", "k_2", "kappa_C")
    )
    # Lambda_mix and Gamma_mix without the graph factor; k_1, k_2 are their conditions at B = 0.
    free = not _present(problem, "B")
    mixed = first * (1.0 + local) + second if free else math.nan
    both = (first + second) * graph
    steps = T if free else math.nan
    copies = "z as rows" if problem.q else ""
    remark = "" if free else "needs B = 0"
    rows = [
        ComparedWork("Salim 2022", "K w = v", STRONG, T, joint * T, math.nan, "centralized"),
        ComparedWork(
            "Yarmoshik 2025", "coupled", STRONG, T, coupled * T, coupled * graph * T, copies
        ),
        ComparedWork("Yarmoshik 2026", "mixed", STRONG, steps, mixed * T, both * steps, remark),
        ComparedWork("cross-apapc", OWN, STRONG, T, chi * T, chi * graph * T),
    ]
    if math.isnan(wide):
        return rows
    if free:
        log = wide * math.log(1 / tol)
        rows.append(ComparedWork("Yarmoshik 2026", "mixed", CONVEX, log, mixed * wide, both * wide))
    own = ComparedWork("cross-continuation", OWN, CONVEX, wide, chi * wide, chi * graph * wide)
    return [*rows, own]


def _primitive(problem: Problem, numbers: Mapping[str, float], log: float) -> dict[str, float]:
    """Orders of the primitive ledger (Equation eq:explicit-primitive-complexity)."""
    steps = math.sqrt(numbers["kappa_f"]) * log
    T = steps * numbers["cross_factor"]
    A, B, C, D = (_present(problem, name) for name in "ABCD")
    coupled = A or B
    first = math.sqrt(numbers["k_1"]) if coupled or C else 0.0
    local = math.sqrt(numbers["kappa_C"]) if C else 0.0
    second = math.sqrt(numbers["k_2"]) if problem.q else 0.0
    graph = math.sqrt(numbers["kappa_W"]) if problem.n > 1 else 0.0
    Lambda = first * (coupled + local) + (second if D else 0.0)
    Gamma = (first if coupled else 0.0) + second
    return {
        "T": T,
        "Lambda_in": Lambda,
        "Gamma_in": Gamma,
        "gradients": steps,
        "A": first * T if A else 0.0,
        "B": first * T if B else 0.0,
        "C": first * local * T if C else 0.0,
        "D": second * T if D else 0.0,
        "affine": T,
        "products": Lambda * T,
        "rounds": Gamma * graph * T,
    }


def certified_lift(problem: Problem, s: Structural, chi: float) -> Lift | None:
    """Degrees of the paper's lift with exact certificates, delta = 1/2.

    None where a constant is unknown or a condition infinite (beyond 1e30). Joint interval
    [(1 - delta)/(3 chi^2), 2 (1 + delta)]; those of the channels are the realization's own.
    """
    if s.k_1 is None or s.k_2 is None or s.kappa_W is None:
        return None
    if not all(v <= 1e30 for v in (s.k_1, s.k_2, s.kappa_W, chi * chi)):
        return None
    coupled = _present(problem, "A") or _present(problem, "B")
    if problem.n == 1:
        graph = 0
    elif s.kappa_W <= 1 + 1e-9:
        graph = 1
    else:
        graph = math.ceil(math.sqrt(s.kappa_W) / 2 * math.log(4))
    bounds = LiftConstants(
        h=s.h if coupled else 0.0,
        mu_HC=(s.mu_HC or 0.0) if s.rank_HC else 0.0,
        d_D=s.d_D if _present(problem, "D") else 0.0,
        mu_D=s.mu_D or 0.0,
        cross_factor=chi,
    )
    ends = channel_intervals(bounds)
    whitening = 0.5  # delta of the certified construction
    first, second = (paper_degree(high / low, whitening) for low, high in ends)
    ratio = 2 * (1 + whitening) * 3 * chi * chi / (1 - whitening)
    outer = math.ceil(math.sqrt(ratio) - 1e-9)
    actions = (2 * first + 1 if coupled else 0) + (2 * second + 1 if problem.q else 0)
    penalty = 2 * graph if coupled else 0
    return Lift(graph, (first, second), outer, graph * 2 * outer * actions + penalty)


def _present(problem: Problem, name: str) -> bool:
    return any(map(nonzero, problem.blocks(name)))
