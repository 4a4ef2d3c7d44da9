"""cross-direct on many problems: ``python tests/adversarial/direct.py --count 500 --large 60``.

``--large`` random quadratics (n = 8, d_i = 60, q = 80, m = 60, with C and D, kappa_f 10 .. 1e6) at
tol 1e-6, against a dense null-space method refined in extended precision; ``--count`` consistent
adversarial problems with q + m + rows of D <= 50, against exact arithmetic. Prints the averagings
of all phases, the worst true errors and the ratios bound / error. Exit code 1 when a bound is below
an error, when a large problem is not certified in 4 averagings, or when a small one whose
equilibrated equations have a condition below 1e6 is not right to 1e-8.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ccmac
from adversarial import suite
from adversarial.exact import Exact, norm
from ccmac.paper.instances.random_quadratic import random_quadratic

PHASES = ("setup", "solve", "monitor")
KAPPAS = np.geomspace(10, 1e6, 6)
SHAPES = ({"p": 20, "r": 3}, {"p": 5, "r": 10}, {"p": 40, "r": 1}, {"p": 1, "r": 5})
AVERAGINGS = 4
SMALL = 50
CONDITION = 1e6
RIGHT = 1e-8
SLACK = 1e-12


def averagings(result: Any) -> int:
    """Of all phases."""
    return sum(result.ledger.of(phase)["averagings"] for phase in PHASES)


def reference(problem: ccmac.Problem) -> NDArray[np.longdouble]:
    """(x, z) on a dense null space of all rows, refined with residuals in extended precision."""
    d = list(problem.d.values())
    q = problem.q
    ends = np.concatenate([[0], np.cumsum(d)]).astype(int)
    size = int(ends[-1]) + q
    H = np.zeros((size, size))
    g = np.zeros(size)
    coupled = np.zeros((problem.m, size))
    sides = np.zeros(problem.m)
    K = []
    v = []
    for i, agent in problem.agents.items():
        at = np.r_[ends[i] : ends[i + 1], ends[-1] : size]
        own, slope, _ = agent.objective.quadratic(d[i], q)
        H[np.ix_(at, at)] += own
        g[at] += slope
        coupled[:, at] += np.hstack([agent.A, agent.B])
        sides += agent.b
        local = np.zeros((len(agent.C), size))
        local[:, ends[i] : ends[i + 1]] = agent.C
        shared = np.zeros((len(agent.D), size))
        shared[:, ends[-1] :] = agent.D
        K += [local, shared]
        v += [agent.c, agent.e]
    K = np.vstack([coupled, *K])
    v = np.concatenate([sides, *v])
    unit = 1 / np.linalg.norm(K, axis=1)
    K = unit[:, None] * K
    v = unit * v
    U, sigma, Vt = np.linalg.svd(K)
    rank = int(np.count_nonzero(sigma > 1e-12 * sigma[0]))  # shared rows may depend on others
    pinv = (Vt[:rank].T / sigma[:rank]) @ U[:, :rank].T
    Z = Vt[rank:].T
    inside = np.linalg.inv(Z.T @ H @ Z)
    long_K = K.astype(np.longdouble)
    long_H = H.astype(np.longdouble)
    u = np.zeros(size, np.longdouble)
    for _ in range(6):
        u = u + pinv @ (v - long_K @ u).astype(np.float64)
        u = u + Z @ (inside @ (Z.T @ (g - long_H @ u).astype(np.float64)))
    return u


def large(count: int, seed: int) -> list[str]:
    """Counts of the random quadratics; complaints."""
    complaints = []
    seen = []
    errors = []
    ratios = []
    for k in range(count):
        kappa = float(KAPPAS[k % len(KAPPAS)])
        shape = SHAPES[k % len(SHAPES)]
        problem = random_quadratic(seed + k, 8, d=60, q=80, m=60, kappa_f=kappa, **shape)
        result = ccmac.solve(problem, "ring", tol=1e-6, averaging="relay")
        exact = reference(problem)
        said = np.concatenate([*result.x, result.z])
        error = float(np.linalg.norm((said - exact).astype(np.float64)))
        seen.append(averagings(result))
        errors.append(error)
        ratios.append(result.error_bound / error)
        if result.status != "optimal" or seen[-1] > AVERAGINGS or not error <= result.error_bound:
            complaints.append(
                f"seed {seed + k} kappa {kappa:.0e}: {result.status}, {seen[-1]} averagings, bound "
                f"{result.error_bound:.3g}, error {error:.3g}"
            )
    if count:
        print(
            f"{count} of n = 8, d = 60, q = 80, m = 60: averagings at most {max(seen)}, worst "
            f"error {max(errors):.2g}, bound / error median {statistics.median(ratios):.3g}"
        )
    return complaints


def small(count: int, seed: int, averaging: str) -> list[str]:
    """Adversarial problems; complaints."""
    complaints = []
    seen = []
    ratios = []
    done = 0
    k = 0
    worst = 0.0
    hard = 0
    while done < count:
        family = suite.CONSISTENT[k % len(suite.CONSISTENT)]
        case = suite.make(family, seed + k // len(suite.CONSISTENT))
        k += 1
        draft = case.draft
        if draft.q + draft.m + sum(map(len, draft.D)) > SMALL:
            continue
        exact = Exact(draft)
        if exact.solution is None:
            continue
        try:
            result = ccmac.solve(
                draft.problem(), case.network, "cross-direct", case.tol, averaging=averaging
            )
        except ccmac.errors.MethodRefused as refusal:
            if "strongly convex" in str(refusal):
                continue
            raise
        done += 1
        u = exact.point(result.x, result.z)
        error = exact.error(u)
        size = max(1.0, norm(exact.solution))
        seen.append(averagings(result))
        if math.isfinite(result.error_bound) and error > 1e-13:
            ratios.append(result.error_bound / error)
        easy = exact.condition < CONDITION
        hard += not easy
        worst = max(worst, error / size) if easy else worst
        if result.error_bound < error * (1 - SLACK) or (easy and error > RIGHT * size):
            complaints.append(
                f"{family} {case.seed}: {result.status}, bound {result.error_bound:.3g}, error "
                f"{error:.3g}, size {size:.3g}, condition {exact.condition:.3g}"
            )
    if count:
        print(
            f"{count} adversarial ({hard} beyond condition 1e6), {averaging}: averagings at most "
            f"{max(seen)}, median {statistics.median(seen):g}; worst relative error below that "
            f"condition {worst:.2g}; bound / error median {statistics.median(ratios):.3g} over "
            f"{len(ratios)} with errors above 1e-13"
        )
    return complaints


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="adversarial problems")
    parser.add_argument("--large", type=int, default=60, help="random quadratics")
    parser.add_argument("--seed", type=int, default=9100)
    parser.add_argument("--averaging", default="relay", help="of the adversarial problems")
    options = parser.parse_args(arguments)
    complaints = large(options.large, options.seed)
    complaints += small(options.count, options.seed, options.averaging)
    print("\n".join(complaints) or "nothing to complain of")
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main())
