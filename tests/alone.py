"""Every test file by itself, in a random order of its tests: python tests/alone.py [FILE ...]

Files that pass only after another one, or in one order, are found this way. ``CCMAC_SHUFFLE=SEED``
shuffles the tests of any pytest run (tests/conftest.py).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def alone(file: str, seed: int) -> tuple[str, bool, str]:
    """(file, whether its tests passed, what to print)."""
    begun = time.perf_counter()
    ask = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file]
    env = {**os.environ, "CCMAC_SHUFFLE": str(seed)}
    done = subprocess.run(ask, check=False, cwd=ROOT, env=env, capture_output=True, text=True)
    lines = done.stdout.strip().splitlines() or ["no output"]
    passed = done.returncode in (0, 5)
    shown = [f"{file}: {lines[-1]} ({time.perf_counter() - begun:.0f} s)"]
    return file, passed, "\n".join(shown if passed else shown + lines[-30:])


def main() -> int:
    parser = argparse.ArgumentParser(description="Every test file by itself, shuffled.")
    parser.add_argument("files", nargs="*", help="default: all")
    parser.add_argument("--seed", type=int, default=0, help="of the order")
    parser.add_argument("--jobs", type=int, default=1, help="files at a time")
    asked = parser.parse_args()
    files = asked.files or sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("tests/**/test_*.py"))
    failed = []
    with ThreadPoolExecutor(asked.jobs) as pool:
        for file, passed, told in pool.map(lambda file: alone(file, asked.seed), files):
            print(told, flush=True)
            failed += [] if passed else [file]
    print(f"{len(files)} files, {len(failed)} failed: {' '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
