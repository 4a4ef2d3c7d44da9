"""Runs for the soak (tests/soak.py): a problem, what must be the same, and changes to refuse."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import ccmac

METHODS = ("cross-apapc", "cross-cg", "cross-lbfgs", "dpmm")
# Settings that need no plan, which would take longer than the run.
PLAIN = {"scale": 1.0, "normalizer": "semi-iteration", "inner": 2, "outer": 1}
EVERY = 3
Found = dict[str, Any]


def problem(seed: int = 0, **changed: Any) -> ccmac.Problem:
    """Eight agents with sparse and dense blocks; hard enough for a few hundred steps."""
    rng = np.random.default_rng(seed)
    agents = []
    for i in range(8):
        H = np.diag(np.geomspace(1.0, 300.0, 30)[rng.permutation(30)])
        A = sp.random_array((10, 18), density=0.4, rng=rng, format="csr") + 0.0
        parts = {
            "f": (H, rng.standard_normal(30)),
            "A": A,
            "B": rng.standard_normal((10, 12)),
            "b": rng.standard_normal(10),
        }
        if i == 3:
            parts |= {name: change(parts[name]) for name, change in changed.items()}
        f = ccmac.objectives.Quadratic(*parts.pop("f"))
        agents.append(ccmac.Agent(f, **parts))
    return ccmac.Problem(agents)


def solved(
    method: Any, place: Path | None, given: ccmac.Problem | None = None, **more: Any
) -> Found:
    """What must be the same: the bits of the solution, the ledger, the trace without its clock."""
    stored = None if place is None else {"path": place, "every": EVERY}
    network = more.pop("network", "ring")
    asked = ccmac.methods.CrossApapc(**PLAIN) if method == "cross-apapc" else method
    limits = {"max_iterations": 90, "progress": False, "checkpoint": stored}
    result = ccmac.solve(given or problem(), network, asked, 1e-9, **limits, **more)
    lines = [line.split(",") for line in result.trace.to_csv().splitlines()]
    clock = lines[0].index("seconds")
    trace = [[v for k, v in enumerate(line) if k != clock] for line in lines]
    bits = [np.asarray(v).tobytes() for v in (*result.x, result.z)]
    ledger = result.ledger.as_dict()
    return {
        "bits": bits,
        "ledger": ledger,
        "trace": trace,
        "status": result.status,
        "iterations": result.iterations,
    }


def same(a: Found, b: Found) -> bool:
    return all(a[key] == b[key] for key in ("bits", "ledger", "trace", "status", "iterations"))


def bumped(rng: random.Random) -> Callable[[Any], Any]:
    """One entry, changed in its last bit or by a lot."""

    def change(block: Any) -> Any:
        new = block.copy()
        flat = new.data if sp.issparse(new) else new.reshape(-1)
        k = rng.randrange(flat.size)
        flat[k] = rng.choice((np.nextafter(flat[k], np.inf), flat[k] + 1.0, -flat[k]))
        return new

    return change


def moved(rng: random.Random) -> Callable[[Any], Any]:
    """The same entries at another index."""

    def change(block: Any) -> Any:
        dense = block.toarray()
        row = rng.randrange(len(dense))
        dense[row] = np.roll(dense[row], 1)
        return sp.csr_array(dense)

    return change


def another(rng: random.Random, method: str) -> Any:
    """Another method, or the same one with an option changed."""
    if method != "cross-apapc":
        return "joint-apapc"
    return ccmac.methods.CrossApapc(**PLAIN | {"inner": rng.randrange(3, 7)})


def versioned(rng: random.Random, method: str, place: Path) -> None:
    ccmac.methods.identity.__version__ = f"0.{rng.randrange(2, 9)}.{rng.randrange(9)}"
    solved(method, place)


CHANGES: dict[str, tuple[tuple[str, ...], Callable[[random.Random, str, Path], Any]]] = {
    "objective": (
        ("objective",),
        lambda r, m, p: solved(m, p, problem(f=lambda f: (f[0], bumped(r)(f[1])))),
    ),
    "curvature": (
        ("objective",),
        lambda r, m, p: solved(
            m, p, problem(f=lambda f: (bumped(random.Random(1))(np.diag(f[0])), f[1]))
        ),
    ),
    "block": (("B_i", "block B", "B "), lambda r, m, p: solved(m, p, problem(B=bumped(r)))),
    "entries": (("A_i", "block A", "A "), lambda r, m, p: solved(m, p, problem(A=bumped(r)))),
    "indices": (("A_i", "block A", "A "), lambda r, m, p: solved(m, p, problem(A=moved(r)))),
    "right-hand side": (("b_i", "b "), lambda r, m, p: solved(m, p, problem(b=bumped(r)))),
    "network": (
        ("network",),
        lambda r, m, p: solved(
            m, p, network=r.choice(("path", "star", "complete", "grid:2x4", "erdos_renyi:0.6:3"))
        ),
    ),
    "option": (("option", "method"), lambda r, m, p: solved(another(r, m), p)),
    "seed": (("seed",), lambda r, m, p: solved(m, p, seed=r.randrange(1, 99))),
    "version": (("version",), versioned),
}
