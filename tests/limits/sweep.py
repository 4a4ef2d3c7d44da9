"""Many random problems with every mix of senses and bounds, against Clarabel.

    python tests/limits/sweep.py [per kind]

Strongly convex ones are right when the point is within 1e-6 of Clarabel's (relative to its size),
the others when cost and feasibility are within 1e-7; prices must have their signs, and verdicts
(infeasible, unbounded) must be Clarabel's.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import ccmac
from limits.cases import KINDS, kkt, random_limited, reference

CURVED = ("separable", "quadratic")


def wrong(problem: ccmac.Problem, kind: str) -> str | None:
    """What is not right about the answer, or None."""
    right = reference(problem)
    result = ccmac.solve(problem, "complete", tol=1e-9)
    if "inaccurate" in right.status:
        return None if result.status in right.status else f"{result.status}, not {right.status}"
    if right.status != result.status:
        return f"{result.status}, not {right.status}: {result.message}"
    if right.status != "optimal":
        return None if proved(problem, result) else "the certificate does not hold"
    size = 1.0 + float(np.linalg.norm(np.concatenate([*right.x, right.z])))
    apart = max(
        float(np.abs(a - b).max(initial=0.0)) for a, b in zip(result.x, right.x, strict=True)
    )
    found = kkt(problem, result)
    violated = max(result.residuals[name] for name in ("coupled", "local", "shared", "limits"))
    checks = {
        "cost": abs(result.objective - right.value) / max(1.0, abs(right.value)) - 1e-7,
        "feasibility": violated - 1e-7,
        "point": apart / size - 1e-6 if kind in CURVED else -1.0,
        "signs": found["signs"],
        "slackness": found["slackness"] - 1e-5,
        "stationarity": found["stationarity"] - 1e-5,
    }
    bad = {name: f"{value:.1e}" for name, value in checks.items() if value > 0}
    return str(bad) if bad else None


def proved(problem: ccmac.Problem, result: Any) -> bool:
    """The certificate, checked in the user's rows."""
    if result.status == "unbounded":
        along = result.certificates["direction"]
        return bool(result.certificates["fall"] > 0) and len(along["x"]) == problem.n
    return result.infeasibility is not None and farkas(problem, result.infeasibility) > 0


def farkas(problem: ccmac.Problem, found: Any) -> float:
    """Least value of lambda'(rows - right-hand sides) within the bounds: > 0 proves contradiction.

    Wrong signs count as -inf; entries without a bound may tilt by rounding only.
    """
    from ccmac.problem.reading import signs

    y = found.coupled
    size = max(float(np.abs(y).max(initial=0.0)), 1e-300)
    total = 0.0
    tilt_z = np.zeros(problem.q)
    parts = [(y, problem.sense)]

    def least(tilt: Any, lower: Any, upper: Any) -> float:
        low = np.full(len(tilt), -np.inf) if lower is None else lower
        high = np.full(len(tilt), np.inf) if upper is None else upper
        tilt = np.where(np.abs(tilt) <= 1e-9 * size, 0.0, tilt)
        at = np.where(tilt > 0, low, np.where(tilt < 0, high, 0.0))
        return float(np.where(tilt == 0, 0.0, tilt * at).sum())

    for i, agent in problem.agents.items():
        kappa = found.local.get(i, np.zeros(problem.p[i]))
        delta = found.shared.get(i, np.zeros(problem.r[i]))
        tilt = agent.A.T @ y
        tilt_z = tilt_z + agent.B.T @ y
        total -= float(agent.b @ y)
        if agent.C is not None:
            tilt = tilt + agent.C.T @ kappa
            tilt_z = tilt_z + agent.D.T @ delta
            total -= float(agent.c @ kappa + agent.e @ delta)
            parts += [(kappa, agent.C_sense), (delta, agent.D_sense)]
        total += least(tilt, agent.lower, agent.upper)
    total += least(tilt_z, problem.z_lower, problem.z_upper)
    for price, sense in parts:
        if sense is not None and (signs(sense) * price < -1e-9 * size).any():
            return -np.inf
    return total


def main(each: int) -> int:
    warnings.simplefilter("ignore")
    bad = 0
    for kind in KINDS:
        for seed in range(each):
            said = wrong(random_limited(seed, kind), kind)
            if said is not None:
                bad += 1
                print(f"{kind} {seed}: {said}", flush=True)
        print(f"{kind}: {each} problems", flush=True)
    print(f"{bad} of {each * len(KINDS)} wrong")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
