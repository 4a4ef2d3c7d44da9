"""Averaging along the edges: one sum in one order, whoever computes it."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ccmac
from ccmac import Costs
from ccmac.errors import InputError
from ccmac.network import Network
from ccmac.network import weights as routes
from ccmac.runtime import averaging
from ccmac.runtime.averaging import RELAYED, Relay, Tree, by_name, cheapest, messages_sent
from ccmac.runtime.partition import bounds, owners


@st.composite
def networks(draw: st.DrawFn, most: int = 14) -> Network:
    """A random tree with random chords."""
    n = draw(st.integers(1, most))
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
            for o in np.flatnonzero(relay.hops[v] == k):
                u = int(relay.senders[v, o])
                assert u in network.neighbors(v)
                assert o in before[u]
                known[v].add(int(o))
                sent[u] += 1
    assert all(len(rows) == n for rows in known)
    assert relay.floats_sent == sent.max()
    assert sent.sum() == n * (n - 1)


@given(network=networks(), chunk=st.integers(1, 30))
def test_many_agents_are_counted_a_few_at_a_time(network: Network, chunk: int) -> None:
    """Of any number of receivers at a time: the routes are shortest ones, all of them counted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(routes, "RELAYED", 0)
        patch.setattr(routes, "LOOKED_AT", chunk)
        found = routes.routes(network.weights)
        counted = routes.load(network.weights)
    assert np.array_equal(found.hops, network.hops())
    for v, o in np.argwhere(found.hops):
        u = found.senders[v, o]
        assert u in network.neighbors(int(v))
        assert found.hops[u, o] == found.hops[v, o] - 1
    known = routes.load(network.weights, found)
    assert np.array_equal(counted.sent, known.sent)
    assert (counted.messages, counted.longest) == (known.messages, known.longest)


@pytest.mark.parametrize("n", [2, 3, 8])
def test_in_a_complete_graph_everybody_sends_its_own_row(n: int) -> None:
    weights = Network.complete(n).weights
    for found, known in zip(routes.routes(weights), routes._balanced(weights), strict=True):
        assert np.array_equal(found, known)


def test_routes_of_many_are_not_looked_at_where_bytes_forbid_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(averaging, "RELAYED", 20)
    laid: list[int] = []
    monkeypatch.setattr(averaging, "load", lambda *known: laid.append(1) or routes.load(*known))
    for width, name in ((1, "relay"), (10_000, "tree")):
        assert cheapest(Network.ring(24), Costs(byte=1e-4), width).name == name
    assert len(laid) == 1


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
        (Network.ring(RELAYED + 1), "relay", RELAYED // 2),
    ],
    ids=lambda value: value.name if isinstance(value, Network) else str(value),
)
def test_fewest_rounds_are_taken(network: Network, name: str, rounds: int) -> None:
    found = cheapest(network)
    assert (found.name, found.rounds) == (name, rounds)


def test_relaying_is_left_where_it_sends_too_much() -> None:
    network = Network.random_regular(96, 4, seed=0)
    assert Relay(network).rounds < Tree(network).rounds
    assert cheapest(network).name == "tree"


def test_wide_rows_climb_the_tree_where_bytes_have_a_price() -> None:
    ring = Network.ring(8)
    costs = Costs(byte=1e-3)
    assert (Relay(ring).floats_sent, Tree(ring).floats_sent) == (7, 2)
    # 4 + 0.056 width against 8 + 0.016 width
    assert [cheapest(ring, costs, width).name for width in (99, 101)] == ["relay", "tree"]
    assert cheapest(ring, Costs(), 10**6).name == "relay"
    random = np.random.default_rng(0)
    X = random.standard_normal((400, 16))
    y = random.standard_normal(400)
    problem = ccmac.vfl.problem(X, y, 8)
    plain, priced = (ccmac.solve(problem, ring, "cross-cg", 1e-6, costs=c) for c in (None, costs))
    assert (plain.plan.averaging, priced.plan.averaging) == ("relay", "tree")
    sent = [r.ledger["bytes"] / r.ledger["averagings"] for r in (plain, priced)]
    assert sent[1] == pytest.approx(2 / 7 * sent[0])


def test_unknown_scheme() -> None:
    with pytest.raises(InputError, match="'gossip' is unknown; take one of auto, relay, tree"):
        by_name(Network.ring(3), "gossip")
    with pytest.raises(InputError, match="'scatter' is gone; take tree"):
        by_name(Network.ring(3), "scatter")
