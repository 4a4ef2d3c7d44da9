"""Mutation testing, sampled and bounded: one thing is changed, the tests that get there are run.

    python tests/mutants.py --modules certificates linalg --count 60 --seed 3

A mutant is one change of one of the kinds in ``changes.py``: an operator replaced, a term or a
statement left out, arguments exchanged and many more. The tests are
collected once; each mutant is a forked process in which one function has changed code: nothing is
written. The tests that enter the changed block run, quick ones first, until one fails or
``--budget`` is spent. Which tests enter which block, and their time, is kept in ``--map``: the
first run makes it, later ones add new tests and files that were changed. A mutant that nobody
notices is printed with its line, unless ``mutants-equivalent.txt`` lists it with the reason why it
changes nothing. Exit status 1 when fewer than ``--wanted`` of the others are killed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import hypothesis
import pytest

from mutation import HITS, KEYS, PACKAGE, ROOT, Loader, Mutant, change, living, mutants

DEFAULT = ("certificates", "linalg", "workspace/reduced.py", "methods")
AREAS = (
    "certificates", "linalg", "workspace", "limits", "methods", "realizations",
    "angles", "adversarial", "pins", "vfl", "objectives", "power", "storage", "test_prepared.py",
    "test_docs.py",
)  # fmt: skip
LIMIT = 20.0  # CPU seconds beside three times what the tests need: longer counts as noticed
FAILS = 1e9  # seconds of a test that fails without any change: it is never run
WAITING = 1800.0  # seconds by the clock, on a machine that does other things as well
EQUIVALENT = ROOT / "tests" / "mutants-equivalent.txt"
QUIET = ("-q", "-s", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")


Reached = tuple[str, float, dict[str, frozenset[str]]]  # digest, seconds, blocks by modules


class Session:
    """A plugin of pytest: in the place of its loop over tests, one over mutants."""

    def __init__(self, asked: argparse.Namespace, every: list[Mutant]) -> None:
        self.asked, self.every = asked, every
        self.found: dict[str, Reached] = {}
        self.failed, self.status = False, 2

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            pytest.exit("some tests cannot be collected", 2)
        self.items = {item.nodeid: item for item in session.items}
        self.digests = {
            path: hashlib.sha256(path.read_bytes()).hexdigest()[:12]
            for path in {item.path for item in session.items}
        }
        self._read()
        known = {name for name, (digest, *_) in self.found.items() if self._digest(name) == digest}
        if missing := [name for name in self.items if name not in known]:
            print(f"{len(missing)} tests are run to see where they go", flush=True)
            self.forked(lambda: self._record(missing), 3600.0)
            self._read()
        self.status = self._try_all()
        return True

    def _digest(self, name: str) -> str:
        return self.digests[self.items[name].path] if name in self.items else ""

    def _read(self) -> None:
        """The map: lines that number a block, and lines of tests."""
        if not self.asked.map.exists():
            return
        names: list[str] = []
        for entry in map(json.loads, self.asked.map.read_text().splitlines()):
            if isinstance(entry, str):
                names.append(entry)
            else:
                name, digest, seconds, hits = entry
                blocks = dict[str, set[str]]()
                for key in (names[k] for k in hits):
                    blocks.setdefault(key.split(":")[0], set()).add(key)
                kinds = {module: frozenset(keys) for module, keys in blocks.items()}
                self.found[name] = (digest, seconds, kinds)

    def _record(self, missing: list[str]) -> int:
        """Run tests and add them to the map."""
        with self.asked.map.open("a") as out:
            lines = self.asked.map.read_text().splitlines()
            keys = (json.loads(line) for line in lines if line.startswith('"'))
            numbers = {key: k for k, key in enumerate(keys)}
            ours = [m for name, m in sys.modules.items() if name.startswith("ccmac.")]
            kept = [f for m in ours for f in vars(m).values() if hasattr(f, "cache_clear")]
            for name in missing:
                for function in kept:  # what one test has computed, the next enters again
                    function.cache_clear()
                HITS[:] = bytes(len(HITS))
                self.failed, begun = False, time.process_time()
                self._run(name, None)
                hit = [KEYS[k] for k, entered in enumerate(HITS[: len(KEYS)]) if entered]
                for key in (key for key in hit if key not in numbers):
                    numbers[key] = len(numbers)
                    out.write(json.dumps(key) + "\n")
                spent = FAILS if self.failed else round(time.process_time() - begun, 3)
                row = [name, self._digest(name), spent, [numbers[key] for key in hit]]
                out.write(json.dumps(row) + "\n")
                out.flush()
        return 0

    def _run(self, name: str, following: str | None) -> None:
        item, after = self.items[name], self.items[following] if following else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)

    def tests_of(self, mutant: Mutant) -> tuple[list[str], float]:
        """(the tests that enter the block, or the module, within the budget; their CPU seconds).

        The quickest for a quarter of it, then one of each kind, by the module's blocks they enter.
        """
        rows, kinds = [], {}
        # Constants alone leave no block to enter; pages hold the texts of options.
        own = f"test_{Path(mutant.module).stem}.py", "test_docs.py"
        for name, (digest, seconds, blocks) in self.found.items():
            kind = blocks.get(mutant.module, frozenset())
            there = (
                mutant.block in kind if mutant.block else bool(kind) or any(o in name for o in own)
            )
            if there and seconds < FAILS and self._digest(name) == digest:
                rows.append((seconds, name))
                kinds[name] = kind
        rows.sort()
        firsts = {kinds[name]: (seconds, name) for seconds, name in reversed(rows)}
        spent = accumulate(seconds for seconds, _ in rows)
        quick = [row for row, at in zip(rows, spent, strict=True) if at <= self.asked.budget / 4]
        chosen, total = [], 0.0
        for seconds, name in dict.fromkeys([*quick, *sorted(firsts.values()), *rows]):
            if chosen and total + seconds > self.asked.budget:
                continue
            total += seconds
            chosen.append(name)
        return chosen, total

    def forked(self, work: Callable[[], int], limit: float) -> int:
        """The exit status of ``work`` in a process of its own."""
        child = os.fork()
        if not child:
            code = 1
            try:
                silent = os.open(os.devnull, os.O_WRONLY)
                os.dup2(silent, 1)
                os.dup2(silent, 2)
                most = int(limit) + 1
                resource.setrlimit(resource.RLIMIT_CPU, (most, most))
                code = work()
            finally:
                os._exit(code)
        begun = time.monotonic()
        while True:
            ended, status, _ = os.wait4(child, os.WNOHANG)
            if ended:
                return status
            if time.monotonic() - begun > max(WAITING, 3 * limit):
                os.kill(child, signal.SIGKILL)
            time.sleep(0.02)

    def _trial(self, mutant: Mutant, tests: list[str]) -> int:
        """1 when a test fails."""
        if change(mutant):
            for name, following in zip(tests, [*tests[1:], None], strict=True):
                self._run(name, following)
                if self.failed:
                    return 1
            return 0
        for name in [n for n in sys.modules if n.split(".")[0] == "ccmac"]:
            del sys.modules[name]
        beside = str(ROOT / "tests")
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", "")).startswith(beside):
                del sys.modules[name]
        sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, Loader)]
        sys.meta_path.insert(0, Loader(mutant))
        return int(pytest.main([*QUIET, "-x", *tests])) % 5  # 5: there are no tests

    def _try_all(self) -> int:
        asked, listed = self.asked, equivalent()
        living()
        killed = survivors = equal = 0
        begun = time.monotonic()
        for mutant in self.every[asked.first :]:
            if time.monotonic() - begun > asked.seconds:
                break
            tests, spent = self.tests_of(mutant)
            if tests and self.forked(lambda: self._trial(mutant, tests), LIMIT + 3 * spent):  # noqa: B023
                killed += 1
            elif mutant.words in listed:
                equal += 1
            else:
                survivors += 1
                after = f"{killed + survivors + equal}: survived"
                what = f"{len(tests)} tests, line {mutant.line}: {mutant.words}"
                print(f"{after} {what}", flush=True)
        tried = killed + survivors
        share = killed / tried if tried else 1.0
        print(
            f"{tried + equal} mutants tried: {killed} killed, {survivors} survived, "
            f"{equal} change nothing ({share:.1%} of the others)"
        )
        return int(share < asked.wanted)


def chosen_modules(asked: list[str]) -> list[str]:
    """Files below the package, of files and folders asked for."""
    found = []
    for name in asked:
        path = PACKAGE / name
        files = [path] if path.is_file() else sorted(path.rglob("*.py"))
        found += [str(f.relative_to(PACKAGE)) for f in files if f.name != "__init__.py"]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Sampled mutation testing.")
    parser.add_argument("--modules", nargs="+", default=list(DEFAULT), help="below src/ccmac")
    parser.add_argument("--tests", nargs="+", default=list(AREAS), help="below tests")
    parser.add_argument("--kinds", choices=("all", "plain", "others"), default="all")
    parser.add_argument("--count", type=int, default=60, help="mutants drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=7200.0, help="no new mutant after that")
    parser.add_argument("--first", type=int, default=0, help="mutants of the draw to leave out")
    parser.add_argument("--budget", type=float, default=60.0, help="CPU seconds of tests a mutant")
    parser.add_argument("--map", type=Path, default=Path(tempfile.gettempdir()) / "ccmac-reached")
    parser.add_argument("--wanted", type=float, default=0.0, help="share that must be killed")
    asked = parser.parse_args()
    every = [m for module in chosen_modules(asked.modules) for m in mutants(module, asked.kinds)]
    drawn = random.Random(asked.seed).sample(every, min(asked.count, len(every)))
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    sys.meta_path.insert(0, Loader())
    generate = [hypothesis.Phase.explicit, hypothesis.Phase.generate]  # no time for shrinking
    hypothesis.settings.register_profile(
        "mutants", derandomize=True, deadline=None, database=None, phases=generate,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )  # fmt: skip
    os.environ["HYPOTHESIS_PROFILE"] = "mutants"
    trial = Session(asked, drawn)
    pytest.main([*QUIET, *(str(ROOT / "tests" / name) for name in asked.tests)], plugins=[trial])
    return trial.status


def equivalent() -> set[str]:
    """The mutants that are known to change nothing: lines without their reasons."""
    lines = EQUIVALENT.read_text().splitlines()
    return {line for line in lines if line and not line.startswith(("#", "    "))}


if __name__ == "__main__":
    sys.exit(main())
