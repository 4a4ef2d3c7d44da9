"""Refinements of cross-direct, and minima over spans: where one call leads from any point."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.methods import CrossDirect
from ccmac.methods.base import Request
from ccmac.methods.direct import STEPS, Direct
from ccmac.methods.run import starting_point
from ccmac.objectives import Quadratic
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from pins.problems import posed


def _flat() -> tuple[Any, Any, Any]:
    """Two agents with a direction each that only the coupled rows see; the KKT point by algebra."""
    random = np.random.default_rng(8)
    d = 3
    q = 2
    m = 4
    agents = []
    H = []
    g = []
    for i in range(2):
        root = random.standard_normal((3, d + q))
        H.append(root.T @ root)
        g.append(random.standard_normal(d + q))
        rows = {"D": random.standard_normal((1, q)), "e": np.ones(1)} if i else {}
        A = random.standard_normal((m, d))
        B = random.standard_normal((m, q))
        agents.append(
            ccmac.Agent(Quadratic(H[i], g[i]), A=A, B=B, b=random.standard_normal(m), **rows)
        )
    size = 2 * d + q
    whole = np.zeros((size, size))
    slope = np.zeros(size)
    for i in range(2):
        at = [*range(d * i, d * i + d), *range(2 * d, size)]
        whole[np.ix_(at, at)] += H[i]
        slope[at] += g[i]
    K = np.zeros((m + 1, size))
    K[:m] = np.hstack([agents[0].A, agents[1].A, agents[0].B + agents[1].B])
    K[m, 2 * d :] = agents[1].D[0]
    right = np.append(agents[0].b + agents[1].b, 1.0)
    kkt = np.block([[whole, K.T], [K, np.zeros((m + 1, m + 1))]])
    found = np.linalg.solve(kkt, np.concatenate([slope, right]))
    return ccmac.Problem(agents), ccmac.Network.path(2), found[:size]


def case(name: str) -> tuple[Direct, Any, np.ndarray]:
    """(iteration, its state at the end, the solution (x, z))."""
    if name == "flat":
        problem, network, exact = _flat()
    else:
        made = posed(name)
        problem = made.problem
        network = made.network
        reference = made.reference
        exact = np.concatenate([*reference.x, reference.z])
    work = Workspace(problem, InProcess(network))
    with work.ledger.phase("setup"):
        x, z = starting_point(work, None)
        iteration = CrossDirect().prepare(work, Request(1e-9, x, z)).iteration
    assert isinstance(iteration, Direct)
    copies = np.broadcast_to(z, (work.space.count, len(z)))
    return iteration, iteration.step(iteration.start(x, copies)), exact


@pytest.mark.parametrize("name", ["quadratic", "B-zero", "no-B", "no-coupling", "grid", "flat"])
def test_one_refinement_is_enough(name: str) -> None:
    iteration, end, exact = case(name)
    random = np.random.default_rng(1)
    x, z = iteration.point(end)
    assert np.concatenate([x, z[0]]) == pytest.approx(exact, abs=1e-9)
    assert (end.count, iteration.finished(end)) == (1, False)
    half = end.multipliers.shape[1] // 2
    noise = np.concatenate([random.standard_normal(half), np.zeros(half)])
    far = replace(
        end, u=end.u + random.standard_normal(end.u.shape), multipliers=end.multipliers + noise
    )
    iteration.space.z(far.u)[...] = iteration.space.z(far.u)[0]  # copies agree
    for k, share in enumerate(iteration.proof.agents):  # on the agents' own equations
        mine = iteration.space.x_of(far.u, k)
        mine[...] = share.onto_local(mine.astype(np.longdouble))
    x, z = iteration.point(far)
    off = np.linalg.norm(np.concatenate([x, z[0]]) - exact)
    again = iteration.step(far)
    x, z = iteration.point(again)
    assert np.concatenate([x, z[0]]) == pytest.approx(exact, abs=1e-9)
    assert again.multipliers.sum() == pytest.approx(end.multipliers.sum(), abs=1e-7)
    # What was proved is of the point before, put on the agents' own equations.
    assert iteration.found is not None
    assert iteration.found.error > 1e-3
    before = np.concatenate([iteration.found.x, np.ravel(iteration.found.z)])
    assert np.linalg.norm(before - exact) <= iteration.found.error
    assert off > 0.1
    assert iteration.finished(replace(end, count=STEPS))
    assert STEPS == 5
    stored = iteration._read(again)
    assert [v.astype(float) for v in stored.x] == [
        pytest.approx(iteration.space.x_of(x, k)) for k in range(iteration.space.count)
    ]
