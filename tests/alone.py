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
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description="Every test file by itself, shuffled.")
    parser.add_argument("files", nargs="*", help="default: all")
    parser.add_argument("--seed", type=int, default=0, help="of the order")
    asked = parser.parse_args()
    files = asked.files or sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("tests/**/test_*.py"))
    env = {**os.environ, "CCMAC_SHUFFLE": str(asked.seed)}
    failed = []
    for file in files:
        begun = time.perf_counter()
        ask = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file]
        done = subprocess.run(ask, check=False, cwd=ROOT, env=env, capture_output=True, text=True)
        last = (done.stdout.strip().splitlines() or ["no output"])[-1]
        print(f"{file}: {last} ({time.perf_counter() - begun:.0f} s)", flush=True)
        if done.returncode not in (0, 5):
            failed.append(file)
            print("\n".join(done.stdout.splitlines()[-30:]), flush=True)
    print(f"{len(files)} files, {len(failed)} failed: {' '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
