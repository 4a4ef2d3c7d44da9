"""cross-ipm on third-party problems dealt to agents, against Clarabel on the whole.

    python benchmarks/conic_judge.py [--write PAGE] [--most 650] [--agents 3] [--names A B ...]

Maros-Meszaros, NETLIB and infeasible problems of NETLIB as .mat files with P, c, A, b, G, h_l, h_u,
x_l, x_u, from the sources of PIQP, which pip downloads into the user's cache. Columns are dealt in
contiguous runs by index, each connected part of P whole; the rows of A and G are coupled, G's with
a bounded slack. Prints the status, steps, averagings of all phases, seconds, and the relative
difference of the objectives; ``--write`` puts the counts at the end of the page.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import clarabel
import numpy as np
import scipy.io
import scipy.sparse as sp

import ccmac
from ccmac.objectives import Quadratic

FAR = 1e19  # a bound beyond is none
PIQP = "piqp-0.6.4"
SETS = {
    "Maros-Meszaros": "maros_meszaros",
    "NETLIB": "netlib/data",
    "NETLIB, infeasible": "netlib/infeas",
}
MARK = "## Problems of others\n"
HEAD = """`benchmarks/conic_judge.py`: up to {most} rows and columns, columns dealt to {agents}
agents on a ring, `cross-ipm`, tol 1e-6, against Clarabel on the whole. VALUES of Maros-Meszaros is
not convex and is refused. Clarabel calls cplex2 solved, whose contradiction is below its tolerance,
and mondou2 unbounded, which has no feasible point either.
"""
AGREED = {"Solved": "optimal", "PrimalInfeasible": "infeasible", "DualInfeasible": "unbounded"}


def read(path: Path) -> dict[str, Any]:
    """The parts of a problem, doubles; bounds that are far away are infinite."""
    found = scipy.io.loadmat(path)
    parts: dict[str, Any] = {k: sp.csr_array(found[k].astype(float)) for k in "PAG"}
    for name in ("c", "b", "h_l", "h_u", "x_l", "x_u"):
        v = np.asarray(found[name], dtype=float).ravel()
        parts[name] = np.where(np.abs(v) > FAR, np.copysign(np.inf, v), v)
    return parts


def dealt(parts: dict[str, Any], n: int) -> ccmac.Problem:
    """Columns in contiguous runs, each connected part of P whole; a row of G where it begins."""
    P, A, G = parts["P"], parts["A"], parts["G"]
    size = len(parts["c"])
    count, label = sp.csgraph.connected_components(abs(P) + sp.eye_array(size), directed=False)
    owner = np.minimum(np.arange(size) * n // size, n - 1)
    first = np.full(count, size)
    np.minimum.at(first, label, np.arange(size))
    owner = owner[first[label]]
    starts = G.indptr[:-1]
    some = np.diff(G.indptr) > 0
    keeper = np.zeros(G.shape[0], dtype=int)
    keeper[some] = owner[G.indices[starts[some]]]
    rows = A.shape[0] + G.shape[0]
    both = sp.csc_array(sp.vstack([A, G]))
    agents = []
    for i in range(n):
        at = np.flatnonzero(owner == i)
        kept = np.flatnonzero(keeper == i)
        slack = (-np.ones(len(kept)), (A.shape[0] + kept, np.arange(len(kept))))
        own = sp.hstack([both[:, at], sp.csr_array(slack, shape=(rows, len(kept)))])
        none = sp.csr_array((len(kept), len(kept)))
        H = sp.block_diag([P[at][:, at], none], format="csr")
        g = -np.append(parts["c"][at], np.zeros(len(kept)))
        agents.append(
            ccmac.Agent(
                Quadratic(H, g),
                A=sp.csr_array(own),
                b=np.append(parts["b"], np.zeros(G.shape[0])) if i == 0 else None,
                lower=np.append(parts["x_l"][at], parts["h_l"][kept]),
                upper=np.append(parts["x_u"][at], parts["h_u"][kept]),
            )
        )
    return ccmac.Problem(agents, q=0)


def reference(parts: dict[str, Any]) -> Any:
    """Clarabel's solution of the joined problem."""
    rows = [parts["A"]]
    sides = [parts["b"]]
    cones = [clarabel.ZeroConeT(len(parts["b"]))]
    one = sp.eye_array(len(parts["c"]), format="csr")
    for M, low, high in ((parts["G"], "h_l", "h_u"), (one, "x_l", "x_u")):
        for sign, ends in ((1.0, parts[high]), (-1.0, parts[low])):
            there = np.isfinite(ends)
            rows.append(sign * sp.csr_array(M)[there])
            sides.append(sign * ends[there])
            cones.append(clarabel.NonnegativeConeT(int(there.sum())))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    P = sp.triu(sp.csc_array(parts["P"])).tocsc()
    A = sp.csc_matrix(sp.vstack(rows))
    return clarabel.DefaultSolver(P, parts["c"], A, np.concatenate(sides), cones, settings).solve()


def judged(path: Path, agents: int) -> tuple[int, bool, str]:
    """(averagings, whether Clarabel agrees, a line) of one problem."""
    parts = read(path)
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = ccmac.solve(dealt(parts, agents), "ring", "cross-ipm", tol=1e-6)
        except ccmac.errors.CcmacError as error:
            return 0, False, f"{path.stem:10} refused: {error}"
    seconds = time.process_time() - begun
    other = reference(parts)
    gap = abs(found.objective - other.obj_val) / max(1.0, abs(other.obj_val))
    right = AGREED.get(str(other.status)) == found.status
    right = right and (found.status != "optimal" or gap <= 1e-5)
    averagings = found.ledger.total("averagings")
    line = (
        f"{path.stem:10} {found.status:12} {found.iterations:4} steps {averagings:5} averagings "
        f"{seconds:7.2f} s  difference {gap:.1e}  Clarabel {other.status} in {other.iterations}"
    )
    return averagings, right, line


def sources() -> Path:
    """The folder of the problems, downloaded once."""
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ccmac" / PIQP
    if not home.exists():
        with tempfile.TemporaryDirectory() as folder:
            pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", "piqp"]
            name, _, version = PIQP.partition("-")
            subprocess.run([*pip, f"{name}=={version}", "--dest", folder], check=True)
            with tarfile.open(Path(folder) / f"{PIQP}.tar.gz") as archive:
                archive.extractall(folder, filter="data")
            home.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(Path(folder) / PIQP / "tests" / "data", home)
    return home


def set_of(folder: Path, asked: argparse.Namespace) -> tuple[int, int, int]:
    """(problems, as Clarabel, averagings) of one folder."""
    count = agreed = averagings = 0
    for path in sorted(folder.glob("*.mat")):
        sizes = {name: shape for name, shape, _ in scipy.io.whosmat(path)}
        if max(sizes["P"][0], sizes["A"][0] + sizes["G"][0]) > asked.most:
            continue
        if asked.names and path.stem not in asked.names:
            continue
        sent, right, line = judged(path, asked.agents)
        count += 1
        agreed += right
        averagings += sent
        print(line if right else f"{line}  DIFFERS", flush=True)
    return count, agreed, averagings


def main() -> None:
    parser = argparse.ArgumentParser(description="cross-ipm against Clarabel.")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--most", type=int, default=650, help="columns and rows")
    parser.add_argument("--agents", type=int, default=3)
    parser.add_argument("--names", nargs="*", default=[])
    asked = parser.parse_args()
    rows = ["| set | problems | as Clarabel | averagings, mean |", "|---|---:|---:|---:|"]
    for name, folder in SETS.items():
        count, agreed, averagings = set_of(sources() / folder, asked)
        rows.append(f"| {name} | {count} | {agreed} | {averagings / max(count, 1):.0f} |")
    table = "\n".join(rows)
    print(table)
    if asked.write is not None:
        before = asked.write.read_text(encoding="utf-8").partition(MARK)[0].rstrip()
        head = HEAD.format(most=asked.most, agents=asked.agents)
        asked.write.write_text(f"{before}\n\n{MARK}\n{head}\n{table}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
