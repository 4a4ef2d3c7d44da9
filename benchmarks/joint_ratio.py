"""Normalized calls of joint and separate normalization on vertical federated ridge regression.

    python benchmarks/joint_ratio.py [a9a mushrooms ...]

RelErr(weights) <= 1e-6, lambda = 1e-2, a ring of 8, uniform alpha, blocks not rescaled. Both
methods are the same iteration with the paper's steps; they differ in the stack and its interval:

certificate   cross: [a/(3 chi^2), 2b]; joint: as in the next line; N = ceil sqrt
tight         the spectra of the stacks themselves; N = ceil sqrt
minimal       the same spectra, least N whose correction lies in [11/15, 19/15]
"""

from __future__ import annotations

import sys

import numpy as np

from ccmac import vfl
from ccmac.methods.apapc import Apapc
from ccmac.network import Network
from ccmac.paper import data
from ccmac.paper.realizations.canonical import canonical
from ccmac.paper.realizations.joint import joint
from ccmac.realizations.base import Realized
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace

AGENTS = 8
REGULARIZATION = 1e-2
TARGET = 1e-6
NORMALIZER_DEGREE = 24


def run(realized: Realized, target: np.ndarray) -> tuple[int, int]:
    """(gradients, normalized calls) until RelErr of the weights is at most the target."""
    iteration = Apapc(realized)
    state = iteration.begin(
        realized.space.zeros(), realized.space.zeros(), realized.system.zero_multiplier()
    )
    size = float(target @ target)
    while float(np.sum((realized.space.x(state.w) - target) ** 2)) > TARGET * size:
        state = iteration.step(state)
    ledger = realized.space.runtime.ledger
    return ledger["gradients"], ledger["affine"]


def main(names: list[str]) -> None:
    network = Network.ring(AGENTS)
    heads = f"{'cross: N grad calls':>22} {'joint: N grad calls':>22}"
    print(f"{'data':<10} {'interval':<12} {heads} ratio")
    for name in names:
        table = data.load(name)
        problem = vfl.problem(table.X, table.y, AGENTS, regularization=REGULARIZATION)
        rows, columns = table.X.shape
        gram = (table.X.T @ table.X).toarray() / rows + REGULARIZATION * np.eye(columns)
        weights = np.linalg.solve(gram, table.X.T @ table.y / rows)
        target = np.concatenate(problem.blocks_of(weights))
        for interval in ("certificate", "tight", "minimal"):
            cross = canonical(
                Workspace(problem, InProcess(network)), interval=interval, inner=NORMALIZER_DEGREE
            )
            other = joint(
                Workspace(problem, InProcess(network)),
                realization="canonical",
                interval="minimal" if interval == "minimal" else "tight",
            )
            mine = run(cross, target)
            theirs = run(other, target)
            left = f"{cross.degree} {mine[0]} {mine[1]}"
            right = f"{other.degree} {theirs[0]} {theirs[1]}"
            ratio = theirs[1] / mine[1]
            print(f"{name:<10} {interval:<12} {left:>22} {right:>22} {ratio:5.1f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["a9a", "mushrooms"])
