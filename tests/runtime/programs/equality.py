"""Every rank compares its rows with a simulation of all agents in one process, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ccmac.network import Network
from ccmac.runtime import InProcess, averaging, halo
from ccmac.runtime.mpi import LARGE, MPI, Mpi, guard

WIDTHS = (0, 1, 17, LARGE // 8)
OVERLAP_WORK = halo.OVERLAP_WORK


def networks() -> Iterator[Network]:
    for n in (5, 8):
        yield Network.ring(n)
        yield Network.random_regular(n, 4, seed=1)
    yield Network.star(8)
    yield Network.grid(2, 4)
    yield Network.grid(1, 5)


def schemes(network: Network) -> Iterator[averaging.Averaging]:
    for name in ("minimal-polynomial", "spanning-tree", "chebyshev-5"):
        yield averaging.by_name(network, name)


def compare(network: Network, scheme: averaging.Averaging, rng: np.random.Generator) -> int:
    here = Mpi(network, averaging=scheme)
    whole = InProcess(network, fused=False, averaging=scheme)
    rows = slice(here.owned.start, here.owned.stop)
    checks = 0
    for width in WIDTHS:
        # Wide ranges of magnitude: any other order of summation shows in the bits.
        block = rng.standard_normal((network.n, width)) * 10.0 ** rng.integers(-8, 8, width)
        mine = block[rows]
        for matrix in (None, *scheme.schedule):
            assert np.array_equal(here.mix(mine, matrix), whole.mix(block, matrix)[rows])
        assert np.array_equal(here.average(mine), whole.average(block)[rows])
        assert np.array_equal(here.total(mine), whole.total(block))
        # The same scalars in column-major storage must sum in the same order.
        assert np.array_equal(here.total(np.asfortranarray(mine)), whole.total(block))
        assert np.array_equal(here.total(mine), whole.total(np.asfortranarray(block)))
        assert np.array_equal(here.agree(mine), whole.agree(block))
        checks += 1
    vectors = [rng.standard_normal(k % 3) for k in range(network.n)]
    gathered = here.collect([vectors[i] for i in here.owned])
    assert (gathered is None) == (not here.is_root)
    if gathered is not None:
        assert all(np.array_equal(a, b) for a, b in zip(gathered, vectors, strict=True))
    assert here.ledger.as_dict() == whole.ledger.as_dict()
    here.close()
    return checks


def main() -> None:
    checks = 0
    rng = np.random.default_rng(7)
    for network in networks():
        for scheme in schemes(network):
            checks += compare(network, scheme, rng)
        # Every product that can overlap does.
        halo.OVERLAP_WORK = 0
        checks += compare(network, averaging.by_name(network, "auto"), rng)
        halo.OVERLAP_WORK = OVERLAP_WORK
    single = Mpi(Network.ring(1)) if MPI.COMM_WORLD.Get_size() == 1 else None
    if single is not None:
        assert np.array_equal(single.average(np.ones((1, 2))), np.ones((1, 2)))
    if MPI.COMM_WORLD.Get_rank() == 0:
        print(f"checked {checks}")


with guard():
    main()
