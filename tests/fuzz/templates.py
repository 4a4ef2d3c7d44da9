"""Sound files of every kind, made once per process; mutators work on copies."""

from __future__ import annotations

import contextlib
import io
import shutil
from pathlib import Path
from random import Random
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp

from ccmac import vfl
from ccmac.cli.main import main
from ccmac.paper.instances import dispatch
from ccmac.problem import Agent, Problem
from ccmac.storage import rows
from objectives.examples import EXAMPLES
from paper.experiments.toy import TEXT, fabricate

METHODS = ("auto", "cross-apapc", "cross-cg", "cross-direct", "cross-lbfgs", "joint-apapc", "papc")
NETWORKS = {
    "edges.txt": "# a ring\n" + "".join(f"{k} {(k + 1) % 6}\n" for k in range(6)),
    "weighted.txt": "".join(f"{k}, {(k + 1) % 6}, {1 + k / 4}\n" for k in range(6)),
    "edges.json": str([[k, (k + 1) % 6] for k in range(6)]),
    "named.json": '{"edges": ' + str([[k, (k + 1) % 6, 1.5] for k in range(6)]) + "}",
    "weights.json": '{"weights": ' + str((6 * np.eye(6) - 1).tolist()) + "}",
}
SVMLIGHT = "".join(
    f"{(-1) ** k} " + " ".join(f"{j}:{(k * j) % 7 / 3:g}" for j in range(1 + k % 2, 8, 2)) + "\n"
    for k in range(12)
)


class Templates:
    """Folders below ``root``: problems, outputs, checkpoints, records."""

    def __init__(self, root: Path) -> None:
        self.root = root
        dispatch(hours=2).problem.save(root / "dispatch")
        rng = np.random.default_rng(0)
        table = sp.csr_array(np.where(rng.random((12, 8)) < 0.6, 1.5, 0.0))
        y = rng.standard_normal(12)
        vfl.problem(table, y, 6).save(root / "vertical")
        with patch.object(rows, "CHUNK", 2):  # short runs have a file of the trace, too
            for method, every, last, more in (
                ("cross-apapc", 3, 8, ("--out", root / "cut")),
                ("cross-lbfgs", 2, 5, ()),
            ):
                place = root / ("checkpoint" if more else "checkpoint-lbfgs")
                words = ("--checkpoint", place, "--every", every, "--max-iterations", last, *more)
                self.solved("dispatch", method, *words)
        self.solved("dispatch", "auto", "--out", root / "out")
        fabricate(
            root / "records",
            lambda chi, kappa, data: (20 * chi, 40 * chi * kappa**0.5),
            chis=(1.5, 2.0),
            kappas={"a": 4.0, "b": 9.0},
        )
        (root / "suite.yaml").write_text(TEXT.replace("DATA", "mushrooms-like"))

    def solved(self, name: str, method: str, *more: object) -> None:
        """Run a solve without a word."""
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            words = ("solve", self.root / name, "--network", "ring", "--method", method, *more)
            main([str(word) for word in words])

    def copy(self, name: str, place: Path) -> Path:
        """A copy of a folder or file to change."""
        target = place / name
        source = self.root / name
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copyfile(source, target)
        return target

    def objectives(self, rng: Random, place: Path) -> Path:
        """A problem of three agents with objectives of all kinds."""
        kinds = [rng.choice(sorted(EXAMPLES)) for _ in range(3)]
        numbers = np.random.default_rng(rng.randrange(2**32))
        agents = []
        for kind in kinds:
            dense = numbers.standard_normal((2, 3))
            D = np.ones((1, 4)) if rng.random() < 0.3 else None
            block = sp.csr_array(dense) if rng.random() < 0.5 else dense
            f = rng.choice(EXAMPLES[kind])()
            e = None if D is None else [0.5]
            agents.append(
                Agent(f, A=block, B=numbers.standard_normal((2, 4)), b=[0.1, 0.2], D=D, e=e)
            )
        Problem(agents).save(place / "objectives")
        return place / "objectives"
