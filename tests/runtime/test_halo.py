"""Plans of a round, checked without MPI: the ranks are played one after the other."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from ccmac.errors import InputError
from ccmac.network import Network
from ccmac.runtime import halo
from ccmac.runtime.averaging import Tree
from ccmac.runtime.partition import bounds, describe, owners


def play(network: Network, matrix: sp.csr_array, block: np.ndarray, ranks: int) -> np.ndarray:
    """One round of ``matrix`` on ``ranks`` ranks, with messages carried by hand."""
    ends = bounds(network.n, ranks)
    plans = []
    mail = {}
    for rank in range(ranks):
        peers = halo.rank_neighbors(network, ends, rank)
        p = halo.plan(matrix, peers, ends, rank)
        plans.append(p)
        rows = block[ends[rank] : ends[rank + 1]][p.send_rows]
        cuts = np.cumsum(p.send_counts)[:-1]
        for peer, message in zip(peers, np.split(rows, cuts), strict=False):
            mail[rank, peer] = message
    out = np.full_like(block, np.nan)
    for rank, p in enumerate(plans):
        mine = block[ends[rank] : ends[rank + 1]]
        for peer, count in zip(p.peers, p.receive_counts, strict=True):
            assert len(mail[peer, rank]) == count
        work = np.concatenate([mine[p.own], *(mail[peer, rank] for peer in p.peers)])
        out[ends[rank] : ends[rank + 1]] = p.matrix @ work
    return out


@st.composite
def rounds(draw: st.DrawFn) -> tuple[Network, sp.csr_array, np.ndarray, int]:
    n = draw(st.integers(2, 12))
    network = draw(
        st.sampled_from([Network.ring(n), Network.path(n), Network.star(n), Network.complete(n)])
    )
    matrix = draw(st.sampled_from([network.weights, *Tree(network).schedule]))
    width = draw(st.integers(0, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return network, matrix, rng.standard_normal((n, width)), draw(st.integers(1, n))


@given(case=rounds())
def test_any_split_gives_the_bits_of_one_process(case):  # type: ignore[no-untyped-def]
    network, matrix, block, ranks = case
    assert np.array_equal(play(network, matrix, block, ranks), matrix @ block)


def test_stored_order_of_unsorted_entries_is_kept() -> None:
    network = Network.complete(4)
    indices = np.array([3, 0, 2, 1] * 4)
    values = np.array([1e16, 1.0, -1e16, 1.0] * 4)  # the order of summation shows
    matrix = sp.csr_array((values, indices, np.arange(0, 17, 4)), shape=(4, 4))
    block = np.ones((4, 2))
    expected = matrix @ block
    assert not np.array_equal(expected, values[[1, 3, 2, 0]].sum() * np.ones((4, 2)))
    for ranks in (1, 2, 3, 4):
        assert np.array_equal(play(network, matrix, block, ranks), expected)


def test_only_rows_read_elsewhere_travel() -> None:
    network = Network.ring(8)
    p = halo.plan(network.weights, (1, 3), bounds(8, 4), 0)
    assert p.peers == halo.rank_neighbors(network, bounds(8, 4), 0)
    assert list(p.send_rows) == [1, 0]  # agent 1 borders rank 1, agent 0 borders rank 3
    assert p.receive_counts == (1, 1)


def test_a_rank_outside_the_active_tree_level_is_silent() -> None:
    network = Network.path(9)
    first = Tree(network).schedule[0]  # only the two ends climb
    ends = bounds(9, 3)
    middle = halo.plan(first, halo.rank_neighbors(network, ends, 1), ends, 1)
    assert sum(middle.send_counts) + sum(middle.receive_counts) == 0


def test_matrix_off_the_edges_is_refused() -> None:
    network = Network.ring(5)
    square = sp.csr_array(network.weights @ network.weights)
    with pytest.raises(InputError, match=r"entry \(0, [23]\) .* not neighbors in ring\(5\)"):
        halo.check_support(network, square)
    with pytest.raises(InputError, match="5 agents need"):
        halo.check_support(network, sp.csr_array((4, 4)))


@given(n=st.integers(1, 200), ranks=st.integers(1, 200))
def test_split_is_balanced_and_complete(n: int, ranks: int) -> None:
    if ranks > n:
        with pytest.raises(InputError, match=f"start at most {n}"):
            bounds(n, ranks)
        return
    ends = bounds(n, ranks)
    sizes = np.diff(ends)
    assert ends[0] == 0
    assert ends[-1] == n
    assert sizes.max() - sizes.min() <= 1
    assert np.array_equal(owners(np.arange(n), ends), np.repeat(np.arange(ranks), sizes))


def test_agents_are_named() -> None:
    assert describe(range(3, 4)) == "agent 3"
    assert describe(range(3, 6)) == "agents 3-5"
