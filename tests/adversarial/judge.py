"""Runs a solve and holds every word of its result against exact arithmetic and the conventions.

The conventions (docs/trust.md): rows of unit length are dependent below 1e-12 of the largest
singular value, and a bound about the problem as given or without such rows is right; ``infeasible``
is right where no solution is shorter than R = 1e6 max(1, ||v||), v the right-hand sides of unit
rows; ``unbounded`` where no minimiser with its multipliers is; a bound is false where the error
exceeds it by more than 1e-6 of itself and 1e-13 of the point (1e-12 times the condition of
the others where rows may be dropped, which turns their solution by as much).

False words (none may occur): FALSE BOUND, FALSE INFEASIBLE, FALSE UNBOUNDED, WRONG OPTIMAL,
FALSE OPTIMAL, CRASH, WRONG RESIDUAL, WRONG OBJECTIVE, WEAK PROOF, WRONG PROOF. Shortcomings that
are counted apart: MISSED, MISSED INFEASIBLE, VACUOUS BOUND, NO ANSWER.
"""

from __future__ import annotations

import math
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from flint import fmpq_mat

import ccmac
from adversarial.draft import Array, Case
from adversarial.exact import REACH, Exact, norm
from adversarial.proofs import overstated, proof_numbers
from ccmac.errors import InputError, MethodRefused

FALSE_WORDS = (
    "FALSE BOUND",
    "FALSE INFEASIBLE",
    "FALSE UNBOUNDED",
    "WRONG OPTIMAL",
    "FALSE OPTIMAL",
    "CRASH",
    "WRONG RESIDUAL",
    "WRONG OBJECTIVE",
    "WEAK PROOF",
    "WRONG PROOF",
)
SHORTCOMINGS = ("MISSED", "MISSED INFEASIBLE", "VACUOUS BOUND", "NO ANSWER")
SLACK = 1e-6  # of comparing a bound with an error, beside the bound
GRAIN = 1e-13  # the same, beside max(1, the size of the point): what rounding may do to any point
EASY = 1e4  # condition of the equations and kappa_f below which 1e-6 must be reached
PROMISED = 1e-8  # contradictions from this level on, beside the data, must be proved
EPS = float(np.finfo(float).eps)
PATIENCE = 60  # seconds after which a solve is given up


@dataclass
class Verdict:
    """What one solve said, and what is true."""

    family: str
    seed: int
    method: str
    tol: float
    status: str = ""
    faults: list[str] = field(default_factory=list)
    detail: str = ""
    bound: float = math.nan
    error: float = math.nan
    level: float = 0.0
    condition: float = math.nan
    kappa: float = math.nan
    iterations: int = 0
    seconds: float = 0.0

    @property
    def false(self) -> list[str]:
        """Faults that may never occur."""
        return [fault for fault in self.faults if fault in FALSE_WORDS]

    @property
    def easy(self) -> bool:
        """Feasible, and well within what 1e-6 must be reached for."""
        return (
            not self.level
            and self.condition < EASY
            and self.kappa < EASY
            and self.tol == 1e-6
            and self.method == "auto"
        )

    @property
    def ratio(self) -> float:
        """bound / error where both can be told from rounding."""
        known = math.isfinite(self.bound) and self.error > 1e-13
        return self.bound / self.error if known else math.nan

    def fault(self, kind: str, detail: str = "") -> None:
        """Note a fault."""
        self.faults.append(kind)
        self.detail += ("; " if self.detail and detail else "") + detail

    def line(self) -> str:
        """For a message."""
        return (
            f"{self.family} seed {self.seed} {self.method} tol {self.tol:g}: "
            f"{', '.join(self.faults)}; {self.status}, bound {self.bound:.3g}, error "
            f"{self.error:.3g}, level {self.level:.2g}, condition {self.condition:.2g}, kappa "
            f"{self.kappa:.2g}" + (f" ({self.detail})" if self.detail else "")
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def false_bound(bound: float, error: float, size: float, grain: float = GRAIN) -> bool:
    """Whether an error exceeds its bound by more than the rounding that every point has."""
    return error > bound * (1 + SLACK) + grain * max(1.0, size)


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Raise TimeoutError when the body takes longer (where the system has alarms)."""

    def ring(number: int, frame: object) -> None:
        raise TimeoutError

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def judge(case: Case, method: str = "auto", *, limit: float = PATIENCE, **options: Any) -> Verdict:
    """Solve a case and compare; ``limit`` in seconds, what else is given goes to ``solve``."""
    exact = Exact(case.draft)
    verdict = Verdict(
        case.family,
        case.seed,
        method,
        case.tol,
        level=exact.level,
        condition=exact.condition,
        kappa=exact.kappa,
    )
    begun = time.perf_counter()
    try:
        with warnings.catch_warnings(), patience(limit):
            warnings.simplefilter("ignore")
            problem = case.draft.problem()
            result = ccmac.solve(problem, case.network, method=method, tol=case.tol, **options)
    except TimeoutError:
        verdict.status = "no answer"
        verdict.fault("NO ANSWER")
        if verdict.easy:
            verdict.fault("MISSED")
        return verdict
    except (InputError, MethodRefused) as refusal:
        verdict.status = "refused"
        verdict.detail = str(refusal)
        if verdict.easy:
            verdict.fault("MISSED")
        return verdict
    except Exception as error:
        verdict.status = "crashed"
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = f"{place.tb_frame.f_code.co_qualname}:{place.tb_lineno}" if place else ""
        verdict.fault("CRASH", f"{type(error).__name__}: {error} in {where}")
        return verdict
    verdict.seconds = time.perf_counter() - begun
    verdict.status, verdict.bound = result.status, float(result.error_bound)
    verdict.iterations = result.iterations
    if result.status == "infeasible":
        _judge_proof(exact, result, verdict)
    elif exact.feasible:
        _judge_solution(exact, result, verdict)
    else:
        _judge_silence(exact, result, verdict)
    return verdict


def _judge_solution(exact: Exact, result: Any, verdict: Verdict) -> None:
    """A feasible problem, not called infeasible."""
    x = result.x
    z = result.z
    if verdict.status == "unbounded":
        if exact.shortest_pair <= REACH * exact.data_of_pair * (1 - SLACK):
            verdict.fault("FALSE UNBOUNDED")
        return
    finite = all(np.isfinite(v).all() for v in (*x, np.asarray(z)))
    if not finite:
        if verdict.status in ("optimal", "converged") or math.isfinite(verdict.bound):
            verdict.fault("WRONG OPTIMAL", "the point is not finite")
        return
    u = exact.point(x, z)
    size = norm(u)
    if exact.solution is None:
        if verdict.status == "optimal" or math.isfinite(verdict.bound):
            verdict.fault("WRONG OPTIMAL", "the problem is unbounded")
    else:
        verdict.error = exact.error(u)
        grain = max(GRAIN, exact.turned)
        if false_bound(verdict.bound, verdict.error, size, grain):
            verdict.fault("FALSE BOUND")
        goal = (verdict.tol * (1 + SLACK) + grain) * max(1.0, size)
        if verdict.status == "optimal" and verdict.error > goal:
            by_gap = math.isnan(verdict.bound) and _small_gap(exact, u, verdict.tol)
            if not by_gap:
                verdict.fault("WRONG OPTIMAL")
    if verdict.easy and verdict.status != "optimal":
        verdict.fault("MISSED")
    if verdict.status != "diverged":
        _judge_numbers(exact, result, u, verdict)


def _small_gap(exact: Exact, u: fmpq_mat, tol: float) -> bool:
    """What the tolerance means without strong convexity: F near F* and a violation."""
    value = exact.value(u)
    gap = float(value - exact.value(exact.solution))
    allowed = tol * max(1.0, abs(float(value))) * (1 + 1e-9)
    return abs(gap) <= allowed and exact.violation(u) <= tol * max(1.0, norm(exact.equilibrated[1]))


def _judge_numbers(exact: Exact, result: Any, u: fmpq_mat, verdict: Verdict) -> None:
    """Residuals and objective are those of the returned point, up to rounding."""
    residual = [float(v) for v in exact.residual(u).entries()]
    point = np.array([float(v) for v in u.entries()])
    right = np.array([abs(float(v)) for v in exact.h.entries()])
    sizes = abs(exact.rows) @ abs(point) + right + _own_sizes(exact, result.z)
    for kind in ("coupled", "local", "shared"):
        at = [k for k, name in enumerate(exact.kinds) if name == kind]
        true = float(np.linalg.norm([residual[k] for k in at]))
        said = result.residuals.get(kind)
        rounding = 8 * EPS * len(point) * float(np.linalg.norm(sizes[at]))
        if said is not None and abs(said - true) > 1e-3 * true + rounding:
            verdict.fault("WRONG RESIDUAL", f"{kind} {said:.3g}, truly {true:.3g}")
    value = exact.value(u)
    parts = 0.0
    for i in range(exact.draft.n):
        parts += exact.draft.size_of_value(i, np.concatenate([result.x[i], result.z]))
    said = float(result.objective)
    if math.isnan(said) and verdict.status == "max_iterations" and not verdict.iterations:
        return  # the time was over before anything was known
    if not abs(said - float(value)) <= 1e-9 * abs(float(value)) + 8 * EPS * len(point) * parts:
        verdict.fault("WRONG OBJECTIVE", f"{said:.6g}, truly {float(value):.6g}")


def _own_sizes(exact: Exact, z: Array) -> Array:
    """Rounding of the coupled rows is measured by the agents' own b_i and B_i z."""
    out = np.zeros(len(exact.kinds))
    for b, B in zip(exact.draft.b, exact.draft.B, strict=True):
        out[: len(b)] += abs(b) + abs(B) @ abs(np.asarray(z))
    return out


def _judge_silence(exact: Exact, result: Any, verdict: Verdict) -> None:
    """A contradictory problem that was not called infeasible."""
    if verdict.level <= PROMISED * exact.data:
        return  # right-hand sides that agree as far as anybody promises
    by_gap = math.isnan(verdict.bound) and verdict.level <= verdict.tol * exact.data
    if by_gap and verdict.status == "optimal":
        return  # without strong convexity the tolerance is one of violations
    if verdict.status == "optimal":
        verdict.fault("FALSE OPTIMAL")
    elif math.isfinite(verdict.bound):
        verdict.fault("VACUOUS BOUND", "finite, for a solution that does not exist")
    verdict.fault("MISSED INFEASIBLE")


def _judge_proof(exact: Exact, result: Any, verdict: Verdict) -> None:
    """Status infeasible: lambda'v and K'lambda of the certificate, exactly."""
    if not exact.contradictory:
        verdict.fault("FALSE INFEASIBLE")
    proof = result.infeasibility
    if proof is None:
        verdict.fault("WEAK PROOF", "no certificate")
        return
    value, defect, radius = proof_numbers(exact, proof)
    verdict.detail += f" value {value:.3g} defect {defect:.3g} R {radius:.3g}"
    if not radius >= REACH * exact.data * (1 - SLACK):
        verdict.fault("WEAK PROOF")
    if value and not math.isclose(float(proof.value), value, rel_tol=1e-6):
        verdict.fault("WRONG PROOF", f"value said {proof.value:.3g}")
    if overstated(exact, proof):
        verdict.fault("WRONG PROOF", f"radius said {proof.radius:.17g}, truly {radius:.17g}")
