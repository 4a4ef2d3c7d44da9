"""Both channels of the dual on one scale.

    omega = [tr sum_i K_i T_i K_i' / m] / [mean_i tr (T_i)_zz / q],   K_i = [A_i B_i]

with T_i the local inverse Hessians, traces by random probes: the curvature of the dual in the
coupled prices over that in the consensus prices.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ccmac.inputs import Array
from ccmac.runtime.space import Space
from ccmac.workspace import Workspace

PROBES = 8
SWELLED = 1e8  # of the square that shall fall, over its least: rounding, or equations in conflict
SETTLED = 1e-30  # of the first one: nothing is left to reduce


def split_vector(space: Space, x: Array, z: Array) -> Array:
    """(x, z) as one vector of the space."""
    w = space.zeros()
    space.x(w)[...] = x
    space.z(w)[...] = z
    return w


def channel_curvatures(
    work: Workspace, energies: Callable[[Array], Array], seed: int
) -> tuple[float, float]:
    """Mean curvature of the dual in the coupled and in the consensus prices; (1, 1) without both.

    ``energies(h)`` is <h_i, T_i h_i>, one number an agent. Cost: PROBES + 1 of them, one reduction;
    nothing where an earlier solve has paid.
    """
    known = work.plans.get(("curvatures", seed))
    found: tuple[float, float] = known[0] if known else _probed(work, energies, seed)
    if work.recycles:
        work.plans["curvatures", seed] = found, frozenset()
    return found


def _probed(work: Workspace, energies: Callable[[Array], Array], seed: int) -> tuple[float, float]:
    space, coupling = work.space, work.coupling
    runtime, width = space.runtime, coupling.width
    if coupling.empty or not space.q:
        return 1.0, 1.0
    common = np.random.default_rng(seed)
    traces = np.zeros((space.count, 2))
    for _ in range(PROBES):
        price = common.choice([-1.0, 1.0], (1, width))
        traces[:, 0] += energies(split_vector(space, *coupling.adjoint(price)))
    copies = np.stack(
        [np.random.default_rng([seed, i]).choice([-1.0, 1.0], space.q) for i in runtime.owned]
    )
    traces[:, 1] = energies(split_vector(space, np.zeros(space.x_size), copies))
    coupled, shared = runtime.total(traces)
    if min(coupled, shared) <= 0:
        return 1.0, 1.0
    return float(coupled / (PROBES * width)), float(shared / (runtime.n * space.q))
