"""The conic prototype on third-party problems dealt to agents, beside Clarabel on the whole.

    python benchmarks/conic_judge.py FOLDER [--most 650] [--agents 3] [--names A B ...]

FOLDER holds .mat files with P, c, A, b, G, h_l, h_u, x_l, x_u (the form of PIQP's Maros-Meszaros
and NETLIB sets). Columns are dealt in contiguous runs by index, each connected part of P whole; the
rows of A and G are coupled, G's with a bounded slack. Prints steps, the relative difference of the
objectives, and how many differ by more than 1e-5; of infeasible problems tau over kappa.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import clarabel
import numpy as np
import scipy.io
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parent))

from conic.equilibration import equilibrating, scaled
from conic.iteration import Interior
from conic.model import Model, model

import ccmac
from ccmac.objectives.polyhedral import Polyhedral

TOL = 1e-8
STEPS = 100
FAR = 1e19  # a bound beyond is none


def read(path: Path) -> dict[str, Any]:
    """The parts of a problem, doubles; bounds that are far away are infinite."""
    found = scipy.io.loadmat(path)
    parts: dict[str, Any] = {k: sp.csr_array(found[k].astype(float)) for k in "PAG"}
    for name in ("c", "b", "h_l", "h_u", "x_l", "x_u"):
        v = np.asarray(found[name], dtype=float).ravel()
        parts[name] = np.where(np.abs(v) > FAR, np.copysign(np.inf, v), v)
    return parts


def dealt(parts: dict[str, Any], n: int) -> list[Model]:
    """One model an agent."""
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
    models = []
    for i in range(n):
        at = np.flatnonzero(owner == i)
        kept = np.flatnonzero(keeper == i)
        slack = (-np.ones(len(kept)), (A.shape[0] + kept, np.arange(len(kept))))
        own = sp.hstack([both[:, at], sp.csr_array(slack, shape=(rows, len(kept)))])
        none = sp.csr_array((len(kept), len(kept)))
        form = Polyhedral(
            sp.block_diag([P[at][:, at], none], format="csr"),
            -np.append(parts["c"][at], np.zeros(len(kept))),
            0.0,
            np.append(parts["x_l"][at], parts["h_l"][kept]),
            np.append(parts["x_u"][at], parts["h_u"][kept]),
        )
        side = np.append(parts["b"], np.zeros(G.shape[0])) if i == 0 else None
        models.append(model(form, len(form.g), {"A": own}, {"b": side}, rows))
    return models


def solved(models: list[Model]) -> tuple[float, int, float]:
    """(objective, steps, tau over kappa)."""
    runtime = ccmac.InProcess(ccmac.Network.ring(len(models)))
    units = equilibrating(models, runtime)
    inner = [scaled(p, own) for p, own in zip(models, units, strict=True)]
    run = Interior(runtime, inner, units, len(models[0].c_z), len(models[0].b))
    unit = units[0].far / units[0].cost
    state = run.start()
    while state.count < STEPS and not run.finished(state) and state.tau > 1e-13 * state.kappa:
        state = run.step(state)
        far = max(state.primal * units[0].far, state.dual)
        if max(unit * state.gap / max(1.0, abs(unit * state.value)), far) <= TOL:
            break
    return unit * run.step(state).value, state.count, state.tau / max(state.kappa, 1e-300)


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


def main() -> None:
    parser = argparse.ArgumentParser(description="The conic prototype beside Clarabel.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--most", type=int, default=650, help="columns and rows")
    parser.add_argument("--agents", type=int, default=3)
    parser.add_argument("--names", nargs="*", default=[])
    asked = parser.parse_args()
    far = 0
    count = 0
    for path in sorted(asked.folder.glob("*.mat")):
        sizes = {name: shape for name, shape, _ in scipy.io.whosmat(path)}
        if max(sizes["P"][0], sizes["A"][0] + sizes["G"][0]) > asked.most:
            continue
        if asked.names and path.stem not in asked.names:
            continue
        parts = read(path)
        value, steps, ratio = solved(dealt(parts, asked.agents))
        beside = reference(parts)
        gap = abs(value - beside.obj_val) / max(1.0, abs(beside.obj_val))
        count += 1
        far += not gap <= 1e-5
        print(
            f"{path.stem:10} {steps:4} steps {value: .9e}  difference {gap:.1e}  "
            f"tau/kappa {ratio:.1e}  Clarabel {beside.status} in {beside.iterations}",
            flush=True,
        )
    print(f"{far} of {count} differ by more than 1e-5")


if __name__ == "__main__":
    main()
