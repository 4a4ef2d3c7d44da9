"""What checkpoints cost: CPU of a run that saves every 50 iterations over one that does not.

    python benchmarks/checkpoints.py --iterations 2000 50000

Also the growth of memory in a long run, in kilobytes per thousand iterations, after its trace has
reached its bound and is thinned. Compare on one machine only; CPU seconds, not the clock.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

import ccmac
from ccmac.lab.instances import calibration

WORSE = 1.15
KILOBYTES = 10.0


def spent(iterations: int, folder: Path | None) -> float:
    """CPU seconds of one run, setup included."""
    stored = None if folder is None else {"path": folder, "every": 50}
    method = ccmac.methods.CrossApapc(scale=1.0, normalizer="semi-iteration", inner=2, outer=1)
    begun = time.process_time()
    result = ccmac.solve(
        calibration().problem, "ring", method, 1e-300, max_iterations=iterations,
        checkpoint=stored, progress=False,
    )  # fmt: skip
    if result.iterations < iterations:
        print(f"  ended after {result.iterations} iterations ({result.status})")
    return time.process_time() - begun


def slope(iterations: int) -> float:
    """Kilobytes of resident memory per thousand iterations, fitted over the second half."""
    seen: list[tuple[int, float]] = []
    page = resource.getpagesize() / 1024

    def look(count: int, state: object) -> None:
        if count % 500 == 0:
            text = Path("/proc/self/statm").read_text(encoding="ascii")
            seen.append((count, page * int(text.split()[1])))

    method = ccmac.methods.CrossApapc(scale=1.0, normalizer="semi-iteration", inner=2, outer=1)
    ccmac.solve(
        calibration().problem, "ring", method, 1e-300, max_iterations=iterations, callback=look,
        progress=False,
    )  # fmt: skip
    late = np.array([row for row in seen if row[0] > iterations / 2])
    return float(np.polyfit(late[:, 0] / 1000, late[:, 1], 1)[0])


def main() -> int:
    parser = argparse.ArgumentParser(description="The cost of checkpoints, and memory over time.")
    parser.add_argument("--iterations", type=int, nargs="+", default=[2000, 50_000])
    parser.add_argument("--repeat", type=int, default=3)
    asked = parser.parse_args()
    held = True
    for iterations in asked.iterations:
        ratios = []
        for _ in range(asked.repeat if iterations <= 5000 else 1):
            with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
                without = spent(iterations, None)
                ratios.append(spent(iterations, Path(name)) / without)
        held &= min(ratios) <= WORSE
        print(f"{iterations} iterations: CPU with / without checkpoints {min(ratios):.3f}")
    grown = slope(max(asked.iterations))
    held &= grown <= KILOBYTES
    print(f"memory: {grown:.1f} kB per thousand iterations")
    return int(not held)


if __name__ == "__main__":
    raise SystemExit(main())
