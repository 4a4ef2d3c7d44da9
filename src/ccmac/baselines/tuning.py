"""A bounded tuner: short trials of every setting of a grid, the best certified error wins.

The trials start where the solve starts, are executed like a solve (every product and round), and
are charged to ``setup``, as the tuner runs while a method is prepared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from ccmac.errors import InputError
from ccmac.pipeline.certify import Certifier
from ccmac.solvers.base import Iteration
from ccmac.solvers.cross_apapc import averaged_realization
from ccmac.solvers.driver import Settings, drive
from ccmac.solvers.method import Context
from ccmac.solvers.stopping import CertifiedStop

TRIAL = 40
T = TypeVar("T")


def tuned(ctx: Context, grid: Sequence[T], build: Callable[[T], Iteration]) -> T:
    """The setting whose iteration has the least error bound after :data:`TRIAL` steps.

    Needs smooth strongly convex objectives (for the bound). Cost, in setup: ``TRIAL`` iterations
    and one tight bound for each setting, one averaged realization for all of them.
    """
    if ctx.tune != "grid":
        raise InputError(f"tune = {ctx.tune!r} is unknown; take 'grid' or leave it out")
    judge = CertifiedStop(Certifier(averaged_realization(ctx)), ctx.tol)
    best, least = grid[0], math.inf
    copies = np.tile(ctx.z0, (len(ctx.problem.agents), 1))
    for setting in grid:
        iteration = build(setting)
        outcome = drive(iteration, iteration.start(ctx.x0, copies), Settings(TRIAL))
        if outcome.status == "diverged":
            continue
        bound = judge.final(iteration, outcome.state).bound
        if bound < least:
            best, least = setting, bound
    return best
