"""Processes that round differently: all end with the same bits, and with bounds that hold.

    drifting.py mpi                          one rank's BLAS is told to be of another kind
    drifting.py KEYS AVERAGING WHEN CASES    four owners; LAPACK of agent 1 is off by an ulp, which
                                             is seen at the ``start``, or by digests, ``late``

Prints how many runs were led, and which did not end alike in all processes.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
from owners_bits import AGENTS, NETWORK, forked, told

import ccmac
from ccmac import objectives
from ccmac.paper.instances import random_quadratic, solve_kkt
from ccmac.runtime import leading
from ccmac.runtime.distributed import Distributed
from ccmac.runtime.owners import between_owners
from owners import Neighborhood

KERNELS = ("Haswell", "Nehalem")  # as processors of different kinds would choose
TOL = 1e-7
METHODS = ("cross-cg", "cross-apapc", "cross-lbfgs", "cross-direct", "cross-newton")


def kinked() -> ccmac.Problem:
    """Kinks and bounds: interior points."""
    rng = np.random.default_rng(4)
    agents = []
    for _ in range(AGENTS):
        x = objectives.L1(1.0, centre=rng.standard_normal(4))
        f = objectives.Separable(x=x, z=objectives.L1(0.5, centre=rng.standard_normal(3)))
        blocks = {"A": rng.standard_normal((2, 4)), "B": rng.standard_normal((2, 3))}
        agents.append(ccmac.Agent(f, b=0.1 * rng.standard_normal(2), **blocks))
    return ccmac.Problem(agents)


def cases(asked: Sequence[str] = ()) -> list[tuple[str, ccmac.Problem, Any]]:
    """(name, problem, method), those asked for or all: to the end."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 24))
    y = X @ rng.standard_normal(24)
    ridge = ccmac.vfl.problem(X, y, AGENTS, alpha=("cross_factor", 3))
    logistic = ccmac.vfl.problem(X, np.sign(y), AGENTS, loss="logistic", regularization=0.1)
    quadratic = random_quadratic(5, AGENTS, d=3, q=2, m=2, kappa_f=30.0)
    found = [
        ("sketched", ridge, ccmac.methods.CrossCg(sketch=8)),
        ("logistic", logistic, "auto"),
        ("interior", kinked(), "cross-ipm"),
        *((name, quadratic, name) for name in METHODS),
    ]
    return [case for case in found if not asked or case[0] in asked]


def mine(problem: ccmac.Problem, runtime: Distributed) -> ccmac.Problem:
    agents = {i: problem.agents[i] for i in runtime.owned}
    return ccmac.Problem(agents, n=problem.n, q=problem.q, m=problem.m)


def run(runtime: Distributed, asked: Sequence[str] = ()) -> list[str]:
    """Every case: its name, whether it was led, a digest of what processes must have alike."""
    lines = []
    for name, problem, method in cases(asked):
        before = runtime.transport.rounds - runtime.observed
        ledger = runtime.ledger
        result = ccmac.solve(mine(problem, runtime), method=method, tol=TOL, runtime=runtime)
        assert result.status == "optimal", (name, result.status)
        digest = hashlib.sha256(repr(told(result)).encode()).hexdigest()
        lines.append(f"{name} {runtime.notes.led} {digest}")
        assert runtime.transport.rounds - runtime.observed - before == rounds(ledger), name
        if runtime.notes.led:
            assert any("took agent 0's numbers" in line for line in result.warnings), name
        if name == "sketched":  # as the page on owners says, with the setup and the proof
            assert ledger.total("averagings") <= 4 * result.iterations + 6
        if name in METHODS:
            exact = solve_kkt(problem)
            off = [result.x[k] - exact.x[i] for k, i in enumerate(runtime.owned)]
            with ledger.observing():
                square = runtime.total(np.array([[float(v @ v)] for v in off]))[0]
            error = np.sqrt(square + np.sum((result.z - exact.z) ** 2))
            assert error <= result.error_bound, (name, error, result.error_bound)
    return lines


SEEN = {"rounds": 0}


def rounds(ledger: Any) -> int:
    """Charged since this was asked last."""
    before, SEEN["rounds"] = SEEN["rounds"], ledger.total("rounds")
    return int(SEEN["rounds"] - before)


# -- owners ----------------------------------------------------------------------------------------
def off_by_an_ulp(function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*arguments: Any, **options: Any) -> Any:
        found = function(*arguments, **options)
        if isinstance(found, tuple):
            return type(found)(*up(found)) if hasattr(found, "_fields") else tuple(up(found))
        return np.nextafter(found, np.inf)

    def up(found: tuple[Any, ...]) -> list[Any]:
        return [np.nextafter(v, np.inf) for v in found]

    return wrapped


def other_processor(*, seen: bool) -> None:
    """Small dense results and exp of this process end in other bits."""
    for name in ("qr", "svd", "eigh", "solve"):
        setattr(np.linalg, name, off_by_an_ulp(getattr(np.linalg, name)))
    for name in ("lu_solve", "cho_solve", "solve_triangular"):
        setattr(scipy.linalg, name, off_by_an_ulp(getattr(scipy.linalg, name)))
    if seen:
        leading.arithmetic = lambda: b"another processor"


def resumed(runtime: Distributed, folder: Path) -> bool:
    """A led run that is stopped and continued has the bits and the bill of one that is not."""
    _, problem, method = cases()[0]
    own = mine(problem, runtime)
    asked: dict[str, Any] = {"method": method, "tol": TOL, "runtime": runtime}
    saved = {"path": folder, "every": 3}
    ccmac.solve(own, max_iterations=7, checkpoint=saved, **asked)
    again = ccmac.solve(own, checkpoint=saved, **asked)
    whole = ccmac.solve(own, checkpoint={"path": folder / "whole", "every": 3}, **asked)
    return told(again) == told(whole) and again.x[0].tobytes() == whole.x[0].tobytes()


def main_owners(keys: Path, averaging: str, when: str, *asked: str) -> None:
    place = Neighborhood(keys, NETWORK)

    def owner(i: int) -> None:
        if i == 1:
            other_processor(seen=when == "start")
        with place.links(i) as links:
            links.start()
            runtime = between_owners(links, NETWORK, averaging)
            (keys / f"told-{i}").write_text("\n".join(run(runtime, asked)))
            if when == "start":
                assert resumed(runtime, keys / f"kept-{i}")

    failed = forked(owner, AGENTS)
    if not failed:
        report([(keys / f"told-{i}").read_text().split("\n") for i in range(AGENTS)])


def report(said: list[list[str]]) -> None:
    """Which runs were led, which were not alike."""
    led = sum(" True " in line for line in said[0])
    parted = [lines[0].split()[0] for lines in zip(*said, strict=True) if len({*lines}) > 1]
    print(f"led {led} of {len(said[0])}, different: {parted}")


def main_mpi() -> None:
    rank = os.environ.get("PMI_RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or "0"
    if "OPENBLAS_CORETYPE" not in os.environ:  # it is read when BLAS is loaded
        kind = {"OPENBLAS_CORETYPE": KERNELS[int(rank) % 2]}
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **kind})
    from ccmac.runtime.mpi import MPI, Mpi, guard

    with guard():
        runtime = Mpi(NETWORK)
        said = MPI.COMM_WORLD.allgather(run(runtime))
        if MPI.COMM_WORLD.rank == 0:
            report(said)


if __name__ == "__main__":
    if sys.argv[1] == "mpi":
        main_mpi()
    else:
        main_owners(Path(sys.argv[1]), *sys.argv[2:])
