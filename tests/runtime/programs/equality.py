"""Every rank compares its rows with a simulation of all agents in one process, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ccmac.ledger import Costs
from ccmac.network import Network
from ccmac.runtime import InProcess, averaging
from ccmac.runtime.mpi import MPI, Mpi, guard

WIDTHS = (0, 1, 17, 1024)


def networks() -> Iterator[Network]:
    yield Network.ring(5)
    yield Network.random_regular(8, 4, seed=1)
    yield Network.star(8)
    yield Network.grid(2, 4)
    yield Network.path(4)


def schemes(network: Network) -> Iterator[averaging.Averaging]:
    for name in ("relay", "tree", "auto"):  # of auto rows of 17 floats and more climb the tree
        yield averaging.by_name(network, name, Costs(byte=0.02))


def letters(here: Mpi) -> np.ndarray:
    """Bytes and messages that left this process."""
    return np.array([8 * sent(here), here.audit.as_rows()[:, 4].sum()])


def sent(here: Mpi) -> int:
    """Floats that left this process."""
    rows = here.audit.as_rows()
    return int(np.sum(rows[:, 2] * rows[:, 4]))


def compare(network: Network, scheme: averaging.Averaging, rng: np.random.Generator) -> int:
    here = Mpi(network, averaging=scheme, audit=True)
    whole = InProcess(network, averaging=scheme)
    rows = slice(here.owned.start, here.owned.stop)
    checks = 0
    for width in WIDTHS:
        # Wide ranges of magnitude: any other order of summation shows in the bits.
        block = rng.standard_normal((network.n, width)) * 10.0 ** rng.integers(-8, 8, width)
        mine = block[rows]
        for matrix in (None, *averaging.Tree(network).schedule):
            assert np.array_equal(here.mix(mine, matrix), whole.mix(block, matrix)[rows])
        mean = here.average(mine)
        assert np.array_equal(mean, whole.average(block))
        # Blocks that travel together have the bits of one block, in its order.
        parts = here.combine([mine[:, :1], mine[:, 1:]])
        assert np.array_equal(np.concatenate(parts, axis=1), mean)
        whole.combine([block[:, :1], block[:, 1:]])
        assert np.array_equal(here.total(mine), whole.total(block))
        # The same scalars in column-major storage must sum in the same order.
        assert np.array_equal(here.total(np.asfortranarray(mine)), whole.total(block))
        assert np.array_equal(here.total(mine), whole.total(np.asfortranarray(block)))
        assert np.array_equal(here.gather(mine), whole.gather(block))
        # Riders have the bits of sums that travel alone, whatever carries them.
        riders = [
            (r.piggyback(b[:, :1]), r.piggyback(b[:, 1:], whole=True))
            for r, b in ((here, mine), (whole, block))
        ]
        if width:
            assert np.array_equal(here.average(mine), whole.average(block))
        for a, b in zip(*riders, strict=True):
            assert np.array_equal(a.value, b.value)
        checks += 1
    vectors = [rng.standard_normal(k % 3) for k in range(network.n)]
    gathered = here.collect([vectors[i] for i in here.owned])
    assert (gathered is None) == (not here.is_root)
    if gathered is not None:
        assert all(np.array_equal(a, b) for a, b in zip(gathered, vectors, strict=True))
    assert here.ledger.as_dict() == whole.ledger.as_dict()
    assert here.transport.rounds == here.ledger.total("rounds") + here.observed
    if here.ranks == here.n:
        totals(here)
    here.close()
    return checks


def totals(here: Mpi) -> None:
    """Where every agent is a process: all bytes and messages that leave are in the ledger."""
    before = letters(here)
    charged = here.ledger.of("solve")
    for width in (3, 7):
        here.mix(np.ones((1, width)))
        here.average(np.ones((1, width)))
    charged = here.ledger.of("solve") - charged
    all_left = MPI.COMM_WORLD.allreduce(letters(here) - before)
    assert all_left.tolist() == [charged["network_bytes"], charged["messages"]]


def main() -> None:
    checks = 0
    rng = np.random.default_rng(7)
    for network in networks():
        for scheme in schemes(network):
            checks += compare(network, scheme, rng)
    single = Mpi(Network.ring(1)) if MPI.COMM_WORLD.Get_size() == 1 else None
    if single is not None:
        assert np.array_equal(single.average(np.ones((1, 2))), np.ones((1, 2)))
    if MPI.COMM_WORLD.Get_rank() == 0:
        print(f"checked {checks}")


with guard():
    main()
