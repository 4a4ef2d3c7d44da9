"""Whether there is any feasible point: a free fall means nothing where there is none.

Interior points on the same rows and bounds without the linear cost: what is left of the objective
is bounded below, so that tau > 0 shows a feasible point and kappa > 0 a contradiction.
Cost: 3 averagings a step, and one more for a contradiction; for problems that fall without end.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from ccmac.certificates.duality import Duality
from ccmac.certificates.infeasibility import Infeasibility
from ccmac.methods.interior.block import Block
from ccmac.methods.interior.iteration import Interior

MET = 1e-8  # residual of the equations over tau with which a point counts as feasible
RAY = 1e3  # kappa over tau beyond which there may be none
AGAIN = 10.0  # how much it must grow before that is looked at again


def contradiction(iteration: Interior, duality: Duality) -> Infeasibility | None:
    """Proof that rows and bounds exclude each other; None where a point is found, or neither."""
    blocks = [_without_slope(block) for block in iteration.blocks]
    flats = [(rows, 0.0 * slopes) for rows, slopes in iteration.setup.flats]
    setup = replace(iteration.setup, flats=flats)
    run = Interior(iteration.work, iteration.reduced, blocks, setup)
    state, due = run.inside(), RAY
    while not run.finished(state):
        state = run.step(state)
        ratio = state.kappa / max(state.tau, 1e-300)
        if ratio <= 1.0 and state.primal <= MET * state.tau:
            return None
        if ratio >= due:
            due = AGAIN * ratio
            found = duality.contradiction(run.prices(state, state.kappa), run.reach)
            if found is not None:
                return found
    return None


def _without_slope(block: Block) -> Block:
    other = copy(block)
    other.g_y, other.g_z = 0.0 * block.g_y, 0.0 * block.g_z
    return other
