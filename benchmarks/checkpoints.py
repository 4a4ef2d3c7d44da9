"""What checkpoints cost: CPU of a run that saves every 50 iterations over one that does not.

    python benchmarks/checkpoints.py --iterations 2000 50000
    python benchmarks/checkpoints.py --iterations 2000 --tiny

Two measures: the CPU of runs in pairs, in turn with and without first, the least of those with over
the least of those without, which needs several where others use the machine; and within one run all
CPU over what was not spent on saving. ``--tiny`` takes four agents with
five variables and a method whose step is a third of a millisecond, the least that a step takes.
Also the growth of memory in the second half of the run, which counts where the trace has reached
its bound (20,000 rows) and is thinned. Compare on one machine only; CPU seconds, not the clock.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import ccmac
from ccmac.methods.checkpoints import Checkpoints
from ccmac.paper.instances import calibration

WORSE = 1.15
KILOBYTES = 10.0


def asked(tiny: bool) -> tuple[ccmac.Problem, Any]:
    """A problem and a method that needs no plan."""
    if not tiny:
        return calibration().problem, ccmac.methods.CrossApapc(scale=1.0, inner=2, outer=1)
    rng = np.random.default_rng(0)
    agents = [
        ccmac.Agent(
            ccmac.objectives.Quadratic(np.diag(np.geomspace(1, 300, 5)), rng.standard_normal(5)),
            A=rng.standard_normal((2, 3)),
            B=rng.standard_normal((2, 2)),
            b=rng.standard_normal(2),
        )
        for _ in range(4)
    ]
    return ccmac.Problem(agents), "papc"


class Watched:
    """CPU seconds of the saves of a run, and its resident memory at each of them."""

    def __init__(self) -> None:
        self.seconds, self.seen = 0.0, list[tuple[int, float]]()
        plain = Checkpoints.save
        page = resource.getpagesize() / 1024

        def save(saver: Checkpoints, count: int, state: Any) -> None:
            begun = time.process_time()
            plain(saver, count, state)
            self.seconds += time.process_time() - begun
            text = Path("/proc/self/statm").read_text(encoding="ascii")
            self.seen.append((count, page * int(text.split()[1])))

        Checkpoints.save = save  # type: ignore[method-assign]

    def begin(self) -> None:
        """Another run."""
        self.seconds = 0.0
        self.seen = []

    def slope(self) -> float:
        """Kilobytes per thousand iterations, fitted over the second half of the run."""
        late = np.array(self.seen[len(self.seen) // 2 :])
        return float(np.polyfit(late[:, 0] / 1000, late[:, 1], 1)[0])


def spent(iterations: int, folder: Path | None, tiny: bool = False) -> float:
    """CPU seconds of one run, setup included."""
    stored = None if folder is None else {"path": folder, "every": 50}
    problem, method = asked(tiny)
    begun = time.process_time()
    result = ccmac.solve(
        problem,
        "ring",
        method,
        1e-300,
        max_iterations=iterations,
        checkpoint=stored,
        progress=False,
    )
    if result.iterations < iterations:
        print(f"  ended after {result.iterations} iterations ({result.status})")
    return time.process_time() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description="The cost of checkpoints, and memory over time.")
    parser.add_argument("--iterations", type=int, nargs="+", default=[2000, 50_000])
    parser.add_argument("--repeat", type=int, default=7, help="pairs; of long runs a third")
    parser.add_argument("--tiny", action="store_true", help="the shortest steps")
    parser.add_argument("--within", action="store_true", help="no run without checkpoints")
    chosen = parser.parse_args()
    held = True
    watched = Watched()
    spent(100, None, chosen.tiny)  # modules are loaded
    for iterations in chosen.iterations:
        plain = []
        whole = []
        shares = []
        for k in range(chosen.repeat if iterations <= 5000 else -(-chosen.repeat // 3)):
            with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
                for saving in (k % 2 == 0, k % 2 == 1):
                    if saving:
                        watched.begin()
                        whole.append(spent(iterations, Path(name), chosen.tiny))
                        shares.append(whole[-1] / (whole[-1] - watched.seconds))
                    elif not chosen.within:
                        plain.append(spent(iterations, None, chosen.tiny))
        share = float(np.median(shares))
        ratio = min(whole) / min(plain, default=np.nan)
        held &= share <= WORSE and not ratio > WORSE
        save = 1e3 * watched.seconds / len(watched.seen)
        each = 1e3 * (whole[-1] - watched.seconds) / iterations
        print(
            f"{iterations} iterations of {each:.2f} ms: CPU with / without checkpoints "
            f"{ratio:.3f}; all / all but saving {share:.3f}, {save:.2f} ms "
            f"a save; memory {watched.slope():+.1f} kB per thousand iterations",
            flush=True,
        )
        if iterations > 20_000:  # before, the trace has not reached its bound
            held &= watched.slope() <= KILOBYTES
    return int(not held)


if __name__ == "__main__":
    raise SystemExit(main())
