"""The statuses and costs of random conic problems, against their construction and Clarabel.

make cones FIRST=0 LAST=500
"""

from __future__ import annotations

import sys
import time

import ccmac
from cones.families import drawn
from cones.joined import joined


def judged(seed: int) -> str:
    """'' where status and cost are right; else what is wrong."""
    status, problem = drawn(seed)
    result = ccmac.solve(problem, "complete")
    if result.status != status:
        return f"{result.status} instead of {status}"
    if status != "optimal":
        return ""
    cost = joined(problem).cost
    off = abs(result.objective - cost) / max(1.0, abs(cost))
    return "" if off <= 1e-6 else f"cost {result.objective:.9g}, by Clarabel {cost:.9g}"


def main(first: int, last: int) -> int:
    """Every problem; 1 where something is wrong."""
    wrong = 0
    begun = time.perf_counter()
    for seed in range(first, last):
        found = judged(seed)
        wrong += bool(found)
        if found:
            print(f"{seed}: {found}; Clarabel says {joined(drawn(seed)[1]).status}", flush=True)
    seconds = time.perf_counter() - begun
    print(f"{last - first - wrong} of {last - first} right, {seconds:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    ends = [int(word) for word in sys.argv[1:]]
    sys.exit(main(ends[0] if ends else 0, ends[1] if len(ends) > 1 else 500))
