"""Every rank compares its rows with a simulation of all agents in one process, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ccmac.network import Network
from ccmac.runtime import InProcess, averaging, journey
from ccmac.runtime.few import Few
from ccmac.runtime.mpi import MPI, Mpi, guard

WIDTHS = (0, 1, 17, 1024)
UNTOLD = journey.UNTOLD = 1e6  # where nobody here wants a sum


def networks() -> Iterator[Network]:
    for n in (5, 8):
        yield Network.ring(n)
        yield Network.random_regular(n, 4, seed=1)
    yield Network.star(8)
    yield Network.grid(2, 4)
    yield Network.grid(1, 5)
    yield Network.path(4)


def schemes(network: Network) -> Iterator[averaging.Averaging]:
    for name in ("relay", "tree", "scatter"):
        yield averaging.by_name(network, name)


def patterned(here: Mpi, whole: InProcess, block: np.ndarray, own: np.ndarray) -> None:
    """Entries that nobody has do not travel, and nothing else changes."""
    block = np.where(own, block, 0.0)
    mine = block[here.owned.start : here.owned.stop]
    before = sent(here)
    mean = here.average(mine, own)
    if (
        here.averaging.spares and here.ranks == here.n and own.size
    ):  # what an agent sends is what a process sends
        assert (
            sent(here) - before
            == here.averaging.carried(own)[0][here.rank]
            + (here.averaging.carried(np.ones((here.n, 1), dtype=bool))[0][here.rank])
        )  # the note
    assert np.array_equal(mean, whole.average(block, own))
    with whole.ledger.observing():
        assert np.array_equal(mean, whole.average(block))


def among(here: Mpi, whole: InProcess, block: np.ndarray, supports: np.ndarray) -> None:
    """Sums that few get, alone and beside others: those who get them have the same bits."""
    few = Few(here.network, supports)
    n = here.n
    block, beside = np.where(supports, block, 0.0), block[:, :3]
    mine = slice(here.owned.start, here.owned.stop)
    held = supports[mine].any(axis=0)
    told = np.zeros((1, supports.shape[1])) + np.where(held, 0.0, UNTOLD)
    ways = [[block], [block, beside]]
    if not here.averaging.spares or few.rounds > here.averaging.rounds:
        ways.pop()
    for parts in ways:
        before = here.transport.rounds
        charged = here.ledger.of("solve")
        left = letters(here)
        found = here.combine([part[mine] for part in parts], few)
        known = whole.combine(parts, few)
        assert np.array_equal(found[0][:, held], known[0][:, held])
        assert np.array_equal(found[0][:, ~held], told[:, ~held] / n)
        assert len(parts) == 1 or np.array_equal(found[1], known[1])
        assert np.allclose(known[0][0], block.mean(axis=0), rtol=1e-9, atol=1e-6)
        charged = here.ledger.of("solve") - charged
        assert here.transport.rounds - before == charged["rounds"]
        if here.ranks == n:  # what agents send is what processes send
            all_left = MPI.COMM_WORLD.allgather(letters(here) - left)
            assert np.sum(all_left, axis=0).tolist() == [
                charged["network_bytes"],
                charged["messages"],
            ]
            assert np.max(all_left, axis=0)[0] == charged["bytes"]


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
        patterned(here, whole, block, rng.random((network.n, width)) < 0.3)
        if width == 17:
            among(here, whole, block, rng.random((network.n, width)) < rng.choice([0.1, 0.3]))
        assert np.array_equal(here.total(mine), whole.total(block))
        # The same scalars in column-major storage must sum in the same order.
        assert np.array_equal(here.total(np.asfortranarray(mine)), whole.total(block))
        assert np.array_equal(here.total(mine), whole.total(np.asfortranarray(block)))
        assert np.array_equal(here.gather(mine), whole.gather(block))
        # Riders have the bits of sums that travel alone, whatever carries them.
        riders = [
            (r.ride(b[:, :1]), r.ride(b[:, 1:], whole=True))
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
    for width in (3, 7):  # rows that a scatter need not fill up
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
