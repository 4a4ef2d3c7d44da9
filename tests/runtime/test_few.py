"""Sums among the few agents that a row concerns: along edges, in one order, nobody else touched."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmac import InProcess, Network
from ccmac.runtime import few as few_module
from ccmac.runtime.averaging import Relay, Tree
from ccmac.runtime.few import Few
from ccmac.runtime.notes import NOTE


@st.composite
def problems(draw: st.DrawFn) -> tuple[Network, np.ndarray, np.ndarray]:
    """A graph, who has entries in which row, and these entries, of many magnitudes."""
    n = draw(st.integers(2, 12))
    seed = draw(st.integers(0, 2**32 - 1))
    graph = nx.random_labeled_tree(n, seed=seed)
    graph.add_edges_from(nx.gnm_random_graph(n, draw(st.integers(0, n)), seed=seed).edges)
    rng = np.random.default_rng(seed)
    supports = rng.random((n, draw(st.integers(0, 9)))) < draw(st.sampled_from([0.15, 0.4]))
    block = rng.standard_normal(supports.shape) * 10.0 ** rng.integers(-8, 8, supports.shape)
    return Network.from_graph(graph), supports, np.where(supports, block, 0.0)


@given(problems())
def test_all_whom_a_row_concerns_get_its_sum_and_nobody_else_hears_of_it(
    drawn: tuple[Network, np.ndarray, np.ndarray],
) -> None:
    """Agent by agent: an agent sends what it has when the round begins, to neighbors."""
    network, supports, block = drawn
    few = Few(network, supports)
    values = block[few.agents, few.rows] + 0.0
    sent: Counter[tuple[int, int, int]] = Counter()
    for k in range(few.rounds):
        before = values.copy()
        now = few.at(k)
        for source, target, turn in zip(now.source, now.target, now.turns, strict=True):
            u = int(few.agents[source])
            v = int(few.agents[target])
            assert v in network.neighbors(u)
            assert few.rows[source] == few.rows[target]
            sent[k, u, v] += 1
            values[target] = before[source] if turn < 0 else values[target] + before[source]
    total = few.total(block)
    assert np.array_equal(values, total[0, few.rows])
    assert np.allclose(total[0], block.sum(axis=0), rtol=1e-9, atol=1e-6)
    for row in range(supports.shape[1]):
        members = np.flatnonzero(supports[:, row])
        reached = few.agents[few.rows == row]
        assert set(members) <= set(reached)
        if len(members) and nx.is_connected(network.graph.subgraph(members)):
            assert sorted(reached) == sorted(members)
            radius = nx.radius(network.graph.subgraph(members))
            assert few.rounds >= 2 * radius
        assert few.tellers[:, row].sum() == bool(len(members))
    by_agent = Counter[int]()
    for (_, u, _), floats in sent.items():
        by_agent[u] += floats
    assert few.load(None, 0) == (
        max(by_agent.values(), default=0),
        sum(sent.values()),
        max(sent.values(), default=0),
        len(sent),
    )


@pytest.mark.parametrize("scheme", ["relay", "tree"])
def test_beside_others_messages_are_shared(scheme: str) -> None:
    """Of rows for all and rows of few one message goes along an edge in a round: the first rounds
    of both; the note and what rides travel with those for all.
    """
    network = Network.ring(8)
    supports = np.zeros((8, 4), dtype=bool)
    for row in range(4):
        supports[[2 * row, 2 * row + 1], row] = True
    few = Few(network, supports)
    runtime = InProcess(network, averaging=scheme)
    assert few.rounds == 2
    averaging = runtime.averaging
    block = np.random.default_rng(0).standard_normal((8, 7))
    block[:, :4] *= supports
    rider = runtime.ride(np.ones((8, 2)))
    alone = runtime.average(block[:, :4], few)
    assert runtime.ledger.of("solve") == few.cost
    assert (few.cost["rounds"], few.cost["messages"], few.cost["network_bytes"]) == (2, 8, 64)
    assert rider.found is None  # it waits for a message that all get
    before = runtime.ledger.of("solve")
    beside, rest = runtime.combine([block[:, :4], block[:, 4:]], few)
    assert np.array_equal(rider.value, [8.0, 8.0])
    assert np.array_equal(alone, beside)
    assert np.array_equal(rest, averaging.total(block[:, 4:]) / 8)
    spent = runtime.ledger.of("solve") - before
    assert spent == {**runtime.average_cost(7, 2, own=few)}
    words = 3 + 2 + NOTE
    assert spent["rounds"] == averaging.rounds
    assert spent["network_bytes"] == 8 * (words * averaging.floats_total + 8)
    if isinstance(averaging, Relay):  # neighbors exchange rows in every round as it is
        assert spent["messages"] == averaging.messages
        assert spent["longest_message"] == words * averaging.longest + 1
    else:
        assert averaging.messages < spent["messages"] <= averaging.messages + 8


@pytest.mark.parametrize(
    ("row", "found"), [([0, 1], True), ([0, 2], True), ([0, 4], False), (range(5), False)]
)
def test_rows_of_many_or_of_far_agents_are_left_to_sums_of_all(row: list[int], found: bool) -> None:
    network = Network.ring(8)
    supports = np.zeros((8, 1), dtype=bool)
    supports[list(row), 0] = True
    few = Few.of(network, supports, Relay(network).rounds - 1)
    assert (few is not None) == found
    assert Few.of(network, np.zeros((8, 3), dtype=bool), 4) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_module, "PAIRS", 3)
        assert Few.of(network, supports, 8) is None
    assert found or Few.of(network, supports, Tree(network).rounds - 1) is not None or len(row) > 4
