"""The tests on the lowest versions that pyproject.toml declares.

    python tests/floor.py            everything                         or: make test-floor
    python tests/floor.py --short    the package alone and a few files, in less than a minute

Makes a virtual environment ``.floor`` with uv (``--resolution lowest-direct``; what the direct
dependencies need themselves is taken as new as it comes). Where uv or the old versions cannot be
had, ``--short`` says so and is content.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".floor"
EXTRAS = "test,mpi,owners,report,power,cvxpy,files,vfl"
SHORT = ("tests/test_problem.py", "tests/test_texts.py", "tests/cli/test_commands.py")


def needed(names: tuple[str, ...]) -> list[str]:
    """Lowest versions of some packages of the test extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = project["optional-dependencies"]["test"]
    return [entry for entry in listed if entry.split(">=")[0] in names]


def installed(short: bool) -> str:
    """Install into ``.floor``; returns what went wrong."""
    if importlib.util.find_spec("uv") is None:
        ask = [sys.executable, "-m", "pip", "install", "--quiet", "uv"]
        if subprocess.run(ask, check=False, capture_output=True).returncode:
            return "uv cannot be installed here"
    uv = [sys.executable, "-m", "uv"]
    what = ["--editable", "." if short else f".[{EXTRAS}]"]
    what += needed(("pytest", "hypothesis")) if short else []
    lowest = ["--resolution", "lowest-direct", "--only-binary", ":all:"]
    steps = [
        [*uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(PLACE)],
        [*uv, "pip", "install", "--quiet", "--python", str(PLACE), *lowest, *what],
    ]
    for step in steps:
        try:
            done = subprocess.run(
                step, check=False, cwd=ROOT, capture_output=True, text=True, timeout=900
            )
        except subprocess.TimeoutExpired:
            return "the installation took more than 15 minutes"
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["no message"])[-1]
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description="Tests on the lowest declared versions.")
    parser.add_argument("--short", action="store_true", help="a few files, the package alone")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("tests", nargs="*", help="tests instead of all")
    asked = parser.parse_args()
    wrong = installed(asked.short)
    if wrong:
        print(f"lowest versions: not tested ({wrong})", flush=True)
        return 0 if asked.short else 1
    python = str(PLACE / "bin" / "python")
    env = {
        **os.environ,
        "PYTHONPATH": "",
        "PATH": f"{PLACE / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }
    tests = asked.tests or (list(SHORT) if asked.short else [])
    jobs = [] if asked.short else ["-n", str(asked.jobs)]
    ask = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *jobs, *tests]
    return subprocess.run(ask, check=False, cwd=ROOT, env=env).returncode


if __name__ == "__main__":
    sys.exit(main())
