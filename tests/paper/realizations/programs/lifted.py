"""Every rank applies the certified and the joint system; one process finds the same."""

from __future__ import annotations

import numpy as np

from ccmac.network import Network
from ccmac.paper.instances.random_quadratic import random_quadratic
from ccmac.paper.realizations.certified import certified
from ccmac.paper.realizations.joint import joint
from ccmac.realizations.base import Certificates, Realized
from ccmac.runtime import InProcess
from ccmac.runtime.mpi import MPI, Mpi, guard
from ccmac.workspace import Workspace


def images(realized: Realized) -> tuple[np.ndarray, np.ndarray]:
    """One residual and one gradient, at a point that every split draws alike."""
    space = realized.space
    w = space.zeros()
    for k, agent in enumerate(space.runtime.owned):
        stream = np.random.default_rng(agent)
        space.x_of(w, k)[...] = stream.standard_normal(space.d[k])
        space.z(w)[k] = stream.standard_normal(space.q)
    return realized.system.residual(w)[0], realized.objective.gradient(w)


def main() -> None:
    problem = random_quadratic(4, n=5, d=3, q=2, m=2, rank_deficient=True)
    network = Network.ring(5)
    here = Mpi(network)
    whole = InProcess(network, fused=False)
    mine = problem.restricted(here.owned)

    # Supplied numbers make both sides the same computation: bit for bit.
    bounds = certified(Workspace(problem, InProcess(network))).details["certificates"]
    given = Certificates(**bounds)
    one = certified(Workspace(mine, here), certificates=given, materialise=False)
    all_ = certified(Workspace(problem, whole), certificates=given, materialise=False)
    for w, v in zip(images(one), images(all_), strict=True):
        for k, agent in enumerate(here.owned):
            assert np.array_equal(one.space.x_of(w, k), all_.space.x_of(v, agent))
            assert np.array_equal(one.space.z(w)[k], all_.space.z(v)[agent])
            assert np.array_equal(one.space.y(w)[k], all_.space.y(v)[agent])
    assert here.ledger.of("solve") == whole.ledger.of("solve")

    # Without them, ranks that hold a part of the problem find the same constants.
    found = certified(Workspace(mine, here)).details["certificates"]
    for name, value in bounds.items():
        assert np.isclose(found[name], value, rtol=1e-5), (name, found[name], value)

    split = joint(Workspace(mine, here))
    together = joint(Workspace(problem, whole))
    assert np.isclose(split.system.interval.ratio, together.system.interval.ratio, rtol=1e-4)
    assert here.is_root == (MPI.COMM_WORLD.Get_rank() == 0)
    here.close()
    if here.is_root:
        print("same")


with guard():
    main()
