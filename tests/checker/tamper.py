"""Tampered proofs: ``python tests/checker/tamper.py 1000``; exit code 1 if a false one passes.

Each change makes the claim false, by what is known independently of the checker: the point is moved
further than the bound allows, or so that F or the violation is larger than claimed; the bound is
made smaller than the distance that the point was moved; the claim is made of another problem, or of
one that has a solution.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "checker"))

import ccmac_check

import ccmac
from ccmac.inputs import Array
from checker.cases import CASES, solved

POINTS = [name for name, (_, status) in CASES.items() if status == "optimal" and name != "dispatch"]
VOID = [name for name, (_, status) in CASES.items() if status != "optimal"]
KINDS = (
    *("digit", "bound", "multiplier", "problem", "no solution", "falls", "sign"),
    *("status", "radius"),
)


class Folder:
    """A saved problem and proof whose parts can be exchanged."""

    def __init__(self, place: Path, problem: ccmac.Problem, result: ccmac.Result) -> None:
        self.problem = place / "problem"
        self.result = place / "result"
        problem.save(self.problem)
        result.save(self.result)
        self.head: dict[str, Any] = json.loads((self.result / "proof.json").read_text())
        with np.load(self.result / "solution.npz") as arrays:
            self.arrays: dict[str, Array] = {name: arrays[name] for name in arrays.files}

    def judged(self) -> tuple[str, str]:
        """What the checker says of it as it is now."""
        path = self.result / "solution.npz"
        np.savez(path, **self.arrays)  # type: ignore[arg-type]
        self.head["files"] = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()}
        (self.result / "proof.json").write_text(json.dumps(self.head))
        return ccmac_check.check(self.problem, self.result)


def moved(random: np.random.Generator, folder: Folder, by: float) -> float:
    """One entry of the point by so much; how much it is in doubles."""
    names = [k for k in folder.arrays if (k[0] in "xz" and k[1:].isdigit()) or k == "z"]
    names = [k for k in names if folder.arrays[k].size]
    block = folder.arrays[names[int(random.integers(len(names)))]]
    j = int(random.integers(len(block)))
    before = float(block[j])
    block[j] += by * random.choice([-1.0, 1.0])
    return abs(float(block[j]) - before)


def point(folder: Folder, n: int) -> tuple[list[Array], Array]:
    return [folder.arrays[f"x{i}"] for i in range(n)], folder.arrays["z"]


def value(problem: ccmac.Problem, x: list[Array], z: Array) -> float:
    return sum(a.objective.value(x[i], z) for i, a in problem.agents.items())


def violation(problem: ccmac.Problem, x: list[Array], z: Array) -> float:
    """The largest, of coupled equations and of bounds, beside what they are measured by."""
    worst = 0.0
    if problem.m and problem.sense is None:
        rows = np.zeros(problem.m)
        squares = np.zeros(problem.m)
        right = np.zeros(problem.m)
        shared = np.zeros((problem.m, problem.q))
        for i, a in problem.agents.items():
            A = np.zeros((problem.m, len(x[i]))) if a.A is None else _dense(a.A)
            rows += A @ x[i]
            squares += np.sum(A**2, axis=1)
            shared += 0.0 if a.B is None else _dense(a.B)
            right += 0.0 if a.b is None else a.b
        lengths = np.sqrt(squares + np.sum(shared**2, axis=1))
        off = np.abs(rows + shared @ z - right) / np.maximum(lengths, np.abs(right))
        worst = float(off.max(initial=0.0))
    for i, a in problem.agents.items():
        for end, side in ((a.lower, 1.0), (a.upper, -1.0)):
            if end is not None:
                known = np.isfinite(end)
                out = side * (end - x[i])[known] / np.maximum(1.0, np.abs(end[known]))
                worst = max(worst, float(out.max(initial=0.0)))
    return worst


def _dense(block: Any) -> Array:
    return np.asarray(block.toarray() if hasattr(block, "toarray") else block)


def tampered(kind: str, seed: int, place: Path) -> tuple[str, str, bool]:
    """(case, what the checker says, whether the claim is false for sure)."""
    random = np.random.default_rng(seed)
    if kind in ("no solution", "falls"):
        name = POINTS[seed % len(POINTS)]
        problem, result = solved(name, seed)
        folder = Folder(place, problem, result)
        prefix = "farkas." if kind == "no solution" else "direction."
        for key in list(folder.arrays):
            folder.arrays[prefix + key] = random.standard_normal(folder.arrays[key].shape)
        claim = {"kind": "infeasible", "radius": None, "value": 1.0, "defect": 0.0}
        folder.head["claims"] = [claim if kind == "no solution" else {"kind": "unbounded"}]
        folder.head["status"] = folder.head["claims"][0]["kind"]
        return name, folder.judged()[0], True
    if kind == "status":
        name = list(CASES)[seed % len(CASES)]
        folder = Folder(place, *solved(name, seed))
        others = {"optimal", "infeasible", "unbounded"} - {folder.head["status"]}
        folder.head["status"] = str(random.choice(sorted(others)))
        return name, folder.judged()[0], True
    if kind == "sign":
        name = VOID[seed % len(VOID)]
        folder = Folder(place, *solved(name, seed))
        for key in list(folder.arrays):
            if key.startswith(("farkas", "direction")):
                folder.arrays[key] = -folder.arrays[key]
        return name, folder.judged()[0], True  # the other direction rises, -l proves nothing
    name = POINTS[seed % len(POINTS)]
    problem, result = solved(name, seed)
    folder = Folder(place, problem, result)
    claim = folder.head["claims"][0]
    size = 10.0 ** random.uniform(-9, 1)
    if claim["kind"] == "error":
        size = claim["bound"] * 10.0 ** random.uniform(0.1, 4)
    if kind == "digit":
        before = value(problem, *point(folder, problem.n))
        size = moved(random, folder, size)
        x, z = point(folder, problem.n)
        if claim["kind"] == "error":
            return name, folder.judged()[0], size > 2 * claim["bound"]
        rise = value(problem, x, z) - before
        wrong = violation(problem, x, z) > 1.01 * claim["tol"] or rise > 2.1 * claim["gap"]
        return name, folder.judged()[0], wrong
    if kind == "bound":
        if claim["kind"] == "error":
            least = moved(random, folder, size) - claim["bound"]  # what the error is by now
            claim["met"] = False
            folder.head["status"] = "converged"
            claim["bound"] = random.uniform(0.0, 0.99) * max(least, 0.0)
            return name, folder.judged()[0], least > 0
        before = value(problem, *point(folder, problem.n))
        claim["gap"] = -1e-3 * random.uniform() * max(1.0, abs(before))
        return name, folder.judged()[0], True  # a feasible point is not better than the best
    if kind == "radius":  # so small, or negative, that nothing would be claimed
        claim["radius"] = random.choice([-1.0, 0.0, 1e-9])
        claim["bound"] = -abs(claim.get("bound", 0.0))
        return name, folder.judged()[0], True
    if kind == "problem":
        other, best = solved(name, seed + 1)
        stranger = Folder(place / "other", other, best)
        if stranger.head["problem"] == folder.head["problem"]:
            return name, folder.judged()[0], False  # drawn twice
        if random.integers(2):  # with a forged digest
            folder.head["problem"] = stranger.head["problem"]
        folder.problem = stranger.problem
        return name, folder.judged()[0], True
    coupled = folder.arrays["coupled"]  # the claim is about the point: it stays true
    coupled[int(random.integers(len(coupled)))] *= -1.0 - size
    return name, folder.judged()[0], False


def run(count: int, first: int = 0) -> Counter[str]:
    """The count by kinds and verdicts; "wrong" where a false claim is confirmed."""
    seen = Counter[str]()
    for k in range(first, first + count):
        kind = KINDS[k % len(KINDS)]
        with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                name, status, false = tampered(kind, k // len(KINDS), Path(place))
            except AssertionError:  # no problem of the kind that was wanted
                continue
        seen[f"{kind}, {'false' if false else 'perhaps true'}: {status}"] += 1
        if false and status == "confirmed":
            seen["wrong"] += 1
            print(f"{kind} {k} {name}: a false claim is confirmed", flush=True)
    return seen


if __name__ == "__main__":
    found = run(int(sys.argv[1]))
    for line, number in sorted(found.items()):
        print(f"{number:5} {line}")
    sys.exit(int(found["wrong"] > 0))
