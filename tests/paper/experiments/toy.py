"""A small data set as a plug-in, a suite on it, and fabricated records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ccmac.ledger import COLUMNS
from ccmac.paper.experiments import suite
from ccmac.paper.experiments.plugins import DATASETS
from ccmac.paper.experiments.records import Record, read_records, write_record, write_suite
from ccmac.paper.experiments.runs import SuiteRun
from ccmac.paper.experiments.suite import Suite

PLUGIN = '''\
"""Twenty rows, six features."""
import os
import signal
import numpy as np

def toy():
    rng = np.random.default_rng(3)
    return rng.standard_normal((20, 6)), np.sign(rng.standard_normal(20))

def broken():
    raise RuntimeError("the disk is on <fire> & smoking")

def killer():
    os.kill(os.getpid(), signal.SIGKILL)

DATASETS = {"toy": toy, "broken": broken, "killer": killer}
'''
TEXT = """\
suite: toy
data: DATA
agents: 4
partition_seeds: [0, 1, 2]
alpha: [uniform, {cross_factor: 2}]
networks: [ring, path]
methods:
  - name: cross-apapc
    paper: {realization: canonical, inner: 8, interval: tight}
    practical: {scale: 1.0, inner: 2, outer: 1}
expect: {reached: all}
"""


def write_plugin(folder: Path) -> str:
    """The plug-in as a file."""
    path = folder / "plugin.py"
    path.write_text(PLUGIN, encoding="utf-8")
    return str(path)


def toy_suite(profile: str = "practical", data: str = "toy") -> Suite:
    """Twelve runs; in the paper profile six solves."""
    for name in ("toy", "broken", "killer"):
        DATASETS.setdefault(name, lambda: (np.zeros((1, 1)), np.zeros(1)))
    return suite.read(TEXT.replace("DATA", data), "toy.yaml", profile)


def made_run(chi: float, seed: int, data: str) -> SuiteRun:
    """A run of cross-apapc on a random graph."""
    graph = {"family": "erdos_renyi", "p": 0.5, "seed": seed}
    method = "cross-apapc"
    return SuiteRun(
        "made", "practical", data, 8, 0, {"cross_factor": chi}, graph, method, method, 1e-6
    )


def fabricate(
    folder: Path, counts: Any, *, chis: tuple[float, ...], kappas: dict[str, float]
) -> list[Record]:
    """Write records; counts(chi, kappa_W, data) gives affine calls and rounds."""
    runs = []
    for data in ("first", "second"):
        for chi in chis:
            for seed, name in enumerate(kappas):
                runs.append(made_run(chi, seed, data))
                affine, rounds = counts(chi, kappas[name], data)
                summary = {
                    "status": "optimal",
                    "relative_error": 5e-7,
                    "seconds": 0.1,
                    "elapsed": 0.1,
                    "ledger": {
                        "solve": {
                            "gradients": 30,
                            "affine": affine,
                            "A": 60,
                            "B": 60,
                            "rounds": rounds,
                        }
                    },
                    "geometry": {"cross_factor": chi, "ranks": [3, 4]},
                    "provenance": {"kappa_W": kappas[name]},
                    "data": {"name": data, "rows": 100, "features": 7},
                }
                write_record(folder, runs[-1], summary, trace_text(affine, rounds))
    made = Suite("made", "Fabricated <records> & co", "practical", tuple(runs), {})
    write_suite(folder, made)

    return read_records(folder)


def trace_text(affine: float, rounds: float, rows: int = 30) -> str:
    """A straight line in the logarithm of the error."""
    lines = [",".join(COLUMNS)]
    for k in range(1, rows + 1):
        share = k / rows
        values = {
            "iteration": k,
            "seconds": 0.1 * share,
            "gradients": k,
            "affine": affine * share,
            "products": 120 * share,
            "rounds": rounds * share,
            "bytes": 1e5 * share,
            "relative_error": 10 ** (-6.5 * share),
        }
        lines.append(",".join(f"{values.get(name, float('nan')):.10g}" for name in COLUMNS))
    return "\n".join(lines) + "\n"
