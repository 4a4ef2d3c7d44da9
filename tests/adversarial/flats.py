"""Interior points on flat quadratics: ``python tests/adversarial/flats.py --count 200``.

Small problems whose Hessians leave directions of ker C_i and of z without curvature, unevenly
scaled, with nearly flat directions and nearly dependent rows among them; some have one solution,
some many, some none because F falls without bound. All is judged against exact arithmetic: a bound
below the error, a gap below the true one, or a false "unbounded" ends with exit code 1.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ccmac
from adversarial.direct import averagings
from adversarial.draft import Draft
from adversarial.exact import Exact, norm
from adversarial.families import base, integers, network

KINDS = ("turned", "intercepts", "linear", "nearly flat", "nearly dependent", "falling")
SLACK = 1e-12
RIGHT = 1e-8  # relative error that well-conditioned problems must reach


def make(seed: int) -> tuple[str, Draft]:
    """The problem ``seed``, with its kind."""
    random = np.random.default_rng([77, seed])
    kind = KINDS[seed % len(KINDS)]
    draft = base(random, int(random.integers(1, 5)), p=int(random.integers(0, 2)), d_top=5)
    q = draft.q
    price = integers(random, draft.m)
    if kind == "nearly dependent" and draft.m > 1:
        for A, B in zip(draft.A, draft.B, strict=True):
            A[-1], B[-1] = A[0], B[0]
        draft.A[0][-1, 0] += 2.0 ** -int(random.integers(4, 20))
    for i, d in enumerate(draft.d):
        F = integers(random, int(random.integers(0, d + q)), d + q, top=2)
        if kind == "intercepts":
            F = F[:, :-1][:, np.r_[:d, d : d + q - 1]]
            F = np.hstack([np.zeros((len(F), 1)), F[:, 1:], np.zeros((len(F), 1))])
        if kind == "linear":
            F = F[:0]
        if kind == "nearly flat" and len(F):
            F[-1] *= 2.0 ** -int(random.integers(5, 22))
        F = F * 2.0 ** random.integers(-3, 4, size=(1, d + q))
        draft.H[i] = F.T @ F
        if kind != "falling":  # bounded: the slope is balanced by prices and curvature
            own = integers(random, len(draft.C[i])) @ draft.C[i]
            shared = integers(random, len(draft.D[i])) @ draft.D[i]
            draft.g[i] = np.concatenate([price @ draft.A[i] + own, price @ draft.B[i] + shared])
            draft.g[i] += F.T @ integers(random, len(F))
    return kind, draft.plant()


def judged(seed: int, method: str, counts: Counter[str]) -> str | None:
    """A complaint about the problem ``seed``, or None."""
    kind, draft = make(seed)
    exact = Exact(draft)
    graph = network(np.random.default_rng(seed), draft.n)
    result = ccmac.solve(draft.problem(), graph, method, 1e-6)
    complaint = None
    u = exact.point(result.x, result.z)
    many = exact.solution is not None and not exact.unique
    what = "falls" if exact.solution is None else "many" if many else "one"
    counts[f"{what}: {result.status}"] += 1
    counts["averagings"] = max(counts["averagings"], averagings(result))
    if (result.status == "unbounded") != (exact.solution is None):
        counts[f"{what} taken for something else"] += 1
        if result.status in ("unbounded", "optimal", "infeasible"):
            complaint = "wrong verdict"
    elif exact.solution is not None:
        error = exact.error(u)
        size = max(1.0, norm(exact.solution))
        if result.error_bound < error * (1 - SLACK) or (many and np.isfinite(result.error_bound)):
            complaint = f"bound {result.error_bound:.3g}, error {error:.3g}"
        gap = float(exact.value(u) - exact.value(exact.solution))
        radius = result.certificates.get("radius", 0.0)
        near = exact.error(0 * u) <= radius  # a gap is claimed for solutions within the radius
        if near and result.certificates.get("gap", np.inf) < gap * (1 - SLACK):
            complaint = f"gap {result.certificates['gap']:.3g}, true {gap:.3g}"
        usual = kind not in ("nearly flat", "nearly dependent")
        if usual and (result.status != "optimal" or error > RIGHT * size):
            complaint = complaint or f"{result.status}, error {error:.3g}"
    return complaint and f"{kind} {seed}: {complaint} ({result.status})"


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--method", default="cross-ipm")
    options = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    seeds = range(options.seed, options.seed + options.count)
    found = [judged(seed, options.method, counts) for seed in seeds]
    print("\n".join(f"{name}: {count}" for name, count in sorted(counts.items())))
    complaints = [text for text in found if text]
    print("\n".join(complaints) or "nothing to complain of")
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main())
