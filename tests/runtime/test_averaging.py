"""Averaging along the edges: one sum in one order, whoever computes it."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmac import Costs
from ccmac.methods.base import Request
from ccmac.methods.registry import parse
from ccmac.methods.run import starting_point
from ccmac.network import Network
from ccmac.paper.instances import random_quadratic
from ccmac.runtime import InProcess
from ccmac.runtime.averaging import RELAYED, Relay, Tree, by_name, messages_sent
from ccmac.runtime.partition import bounds, owners
from ccmac.workspace import Workspace


@st.composite
def networks(draw: st.DrawFn, most: int = 14) -> Network:
    """A random tree with random chords, or everybody with everybody."""
    n = draw(st.integers(1, most))
    if draw(st.integers(0, 9)) == 0:
        return Network.complete(n)
    seed = draw(st.integers(0, 2**32 - 1))
    graph = nx.random_labeled_tree(n, seed=seed)
    if n > 2:
        graph.add_edges_from(nx.gnm_random_graph(n, draw(st.integers(0, n)), seed=seed).edges)
    return Network.from_graph(graph)


def rows(n: int, width: int, seed: int) -> np.ndarray:
    """Wide ranges of magnitude: any other order of summation shows in the bits."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, width)) * 10.0 ** rng.integers(-8, 8, (n, width))


@given(network=networks())
def test_every_row_reaches_everybody_along_the_edges(network: Network) -> None:
    relay = Relay(network)
    n = network.n
    assert relay.rounds == network.diameter
    sent = np.zeros(n, dtype=int)
    known = [{v} for v in range(n)]
    for k in range(1, relay.rounds + 1):
        before = [set(rows) for rows in known]
        for v in range(n):
            for o in np.flatnonzero(relay.paths.hops[v] == k):
                u = int(relay.paths.senders[v, o])
                assert u in network.neighbors(v)
                assert o in before[u]
                known[v].add(int(o))
                sent[u] += 1
    assert all(len(rows) == n for rows in known)
    assert relay.floats_sent == sent.max()
    assert relay.floats_total == sent.sum() == n * (n - 1)
    steps = [relay.steps(np.arange(n + 1), v) for v in range(n)]
    letters = [len(rows) for each in steps for out, _ in each for _, rows in out]
    assert (relay.messages, relay.longest) == (len(letters), max(letters, default=0))


@given(network=networks(), data=st.data())
def test_processes_get_every_row_once_from_one_that_has_it(
    network: Network, data: st.DataObject
) -> None:
    n = network.n
    ends = bounds(n, data.draw(st.integers(1, n)))
    owner = owners(np.arange(n), ends)
    ranks = len(ends) - 1
    relay = Relay(network)
    known = [set(np.flatnonzero(owner == r)) for r in range(ranks)]
    arrivals = [relay.arrivals(ends, r) for r in range(ranks)]
    joined = {(int(owner[i]), int(owner[j])) for i, j in network.graph.edges}
    for k in range(relay.rounds):
        before = [set(held) for held in known]
        for rank in range(ranks):
            for peer, origins in arrivals[rank][k].items():
                assert (peer, rank) in joined or (rank, peer) in joined
                assert set(origins) <= before[peer]
                assert not set(origins) & known[rank]
                known[rank] |= set(origins)
    assert all(len(held) == n for held in known)


@given(network=networks(), seed=st.integers(0, 2**32 - 1), width=st.integers(0, 4))
def test_the_tree_brings_its_sum_to_everybody(network: Network, seed: int, width: int) -> None:
    tree = Tree(network)
    block = rows(network.n, width, seed)
    total = tree.total(block)
    spread = block
    for matrix in tree.schedule:
        spread = matrix @ spread
    assert np.array_equal(spread, np.broadcast_to(total, block.shape))
    assert tree.rounds == len(tree.schedule) == 2 * network.centre[1]
    sent = sum((messages_sent(matrix) for matrix in tree.schedule), np.zeros(network.n, dtype=int))
    assert tree.floats_sent == sent.max()


@given(network=networks(), seed=st.integers(0, 2**32 - 1))
def test_sums_are_sums(network: Network, seed: int) -> None:
    block = rows(network.n, 3, seed)
    size = np.abs(block).sum(axis=0)
    for scheme in (Relay(network), Tree(network)):
        before = block.copy()
        assert np.all(np.abs(scheme.total(block)[0] - block.sum(axis=0)) <= 1e-14 * size)
        assert np.array_equal(block, before)


@given(network=networks(), seed=st.integers(0, 2**32 - 1))
def test_a_column_has_the_same_bits_in_any_company(network: Network, seed: int) -> None:
    block = rows(network.n, 5, seed)
    for scheme in (Relay(network), Tree(network)):
        alone = [scheme.total(block[:, k : k + 1]) for k in range(5)]
        assert np.array_equal(scheme.total(block), np.concatenate(alone, axis=1))
        assert np.array_equal(scheme.total(np.asfortranarray(block)), scheme.total(block))


@pytest.mark.parametrize(
    ("network", "name", "rounds"),
    [
        (Network.ring(8), "relay", 4),
        (Network.ring(16), "relay", 8),
        (Network.grid(4, 4), "relay", 6),
        (Network.complete(9), "relay", 1),
        (Network.star(8), "tree", 2),
        (Network.path(9), "tree", 8),
        (Network.path(1), "tree", 0),
        (Network.ring(300), "relay", 150),
        (Network.ring(RELAYED + 1), "tree", RELAYED),
    ],
    ids=lambda value: value.name if isinstance(value, Network) else str(value),
)
def test_fewest_rounds_are_taken(network: Network, name: str, rounds: int) -> None:
    found = by_name(network, "auto")
    assert (found.name, found.rounds) == (name, rounds)


def test_relaying_is_left_where_it_sends_too_much() -> None:
    network = Network.random_regular(96, 4, seed=0)
    assert Relay(network).rounds < Tree(network).rounds
    assert by_name(network, "auto").name == "tree"


def test_a_message_climbs_the_tree_where_its_bytes_cost_more_than_the_rounds() -> None:
    ring = Network.ring(8)
    assert (Relay(ring).floats_sent, Tree(ring).floats_sent) == (7, 2)
    # 4 + 0.056 width against 8 + 0.016 width; by default a thousandth of that
    dear = by_name(ring, "auto", Costs(byte=1e-3))
    assert [dear.taking(width).name for width in (99, 101)] == ["relay", "tree"]
    usual = by_name(ring, "auto")
    assert [usual.taking(width).name for width in (99_999, 100_001)] == ["relay", "tree"]
    assert by_name(ring, "auto", Costs(byte=0)).taking(10**9).name == "relay"
    assert by_name(ring, "relay").taking(10**9).name == "relay"
    assert dear.described != usual.described  # processes must choose alike


@pytest.mark.parametrize("method", ["cross-cg", "cross-apapc", "cross-sliding"])
def test_a_step_with_wide_messages_costs_what_it_declares(method: str) -> None:
    """From 125 floats on a message climbs the tree."""
    ring = Network.ring(8)
    problem = random_quadratic(0, n=8, q=80, m=70)
    priced = by_name(ring, "auto", Costs(byte=8e-4))
    work = Workspace(problem, InProcess(ring, averaging=priced))
    with work.ledger.phase("setup"):
        prepared = parse(method).prepare(work, Request(1e-6, *starting_point(work, None)))
    iteration = prepared.iteration
    state = iteration.step(iteration.start(*starting_point(work, None)))
    before = work.ledger.of("solve")
    iteration.step(state)
    found = work.ledger.of("solve") - before  # of the longest message the first step's is kept
    assert found["rounds"] >= 8
    assert {**found, "longest_message": 0} == {**iteration.cost, "longest_message": 0}


@pytest.mark.parametrize("name", ["auto", "tree", "masked"])
@pytest.mark.parametrize("sizes", [(3, 2, 3, 4), (9, 0, 1, 0)])
def test_vectors_of_any_lengths_reach_everybody_at_the_declared_cost(
    name: str, sizes: tuple[int, ...]
) -> None:
    vectors = [np.arange(size) + 1.0 for size in sizes]
    runtime = InProcess(Network.ring(4), averaging=name)
    found = runtime.gather_vectors(vectors, sizes)
    np.testing.assert_allclose(found, np.concatenate(vectors), atol=1e-12)
    if name != "masked":  # which agrees on scales first
        for unit, amount in runtime.vectors_cost(sizes).items():
            assert runtime.ledger.total(unit) == amount, unit
