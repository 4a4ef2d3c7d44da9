"""Who sees what of an averaging, by what arrives; what a listener sees (docs/privacy.md)."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.inputs import Array
from ccmac.runtime.averaging import Tree
from ccmac.runtime.distributed import Distributed
from ccmac.runtime.masked import Masked, Masks
from ccmac.runtime.transport import Message, Transport
from owners import Neighborhood, at_once

NETWORKS = [ccmac.Network.path(5), ccmac.Network.ring(5), ccmac.Network.grid(2, 3)]
WIDTH = 12


class Together(Transport):
    """Processes that are threads; ``seen`` is all that has arrived."""

    host = "here"

    def __init__(self, rank: int, ranks: int, boxes: dict[Any, queue.SimpleQueue[Any]]) -> None:
        self.rank = rank
        self.ranks = ranks
        self.boxes = boxes
        self.seen: list[Array] = []

    def _exchange(self, sent: Sequence[Message], received: Sequence[Message]) -> None:
        for peer, array in sent:
            self.boxes[self.rank, peer].put(array.copy())
        for peer, array in received:
            array[...] = self.boxes[peer, self.rank].get(timeout=20)
            self.seen.append(array.ravel().copy())

    def strangers(self, digest: bytes) -> list[int]:
        return []

    def abort(self, code: int) -> None: ...

    def close(self) -> None: ...


def seen_of(
    network: ccmac.Network, averaging: str, rows: Array, *, mixed: bool = False
) -> tuple[list[Any], Any]:
    """All numbers that arrived at every agent while ``rows`` were averaged, and the scheme."""
    boxes = {(i, j): queue.SimpleQueue[Any]() for i in range(network.n) for j in range(network.n)}
    schemes: dict[int, Any] = {}

    def one(i: int) -> Array:
        transport = Together(i, network.n, boxes)
        runtime = Distributed(network, transport, averaging=averaging)
        mean = (runtime.mix if mixed else runtime.average)(rows[i : i + 1].copy())
        assert mixed or np.allclose(mean[0], rows.mean(axis=0))
        schemes[i] = runtime.averaging
        return np.concatenate(transport.seen)

    found = at_once(one, range(network.n))
    return [found[i] for i in range(network.n)], schemes[0]


@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: n.name)
@pytest.mark.parametrize("averaging", ["relay", "tree", "masked"])
def test_who_sees_an_agents_row(network: ccmac.Network, averaging: str) -> None:
    rows = np.random.default_rng(1).standard_normal((network.n, WIDTH))
    seen, scheme = seen_of(network, averaging, rows)
    sees = np.array([[np.isin(row, one).sum() for one in seen] for row in rows])
    np.fill_diagonal(sees, 0)
    if averaging == "relay":
        assert (sees + WIDTH * np.eye(network.n) == WIDTH).all()  # everybody
    elif averaging == "tree":
        assert isinstance(scheme, Tree)
        root = [i for i, p in enumerate(scheme.parent) if p in (i, -1)]
        for i, parent in enumerate(scheme.parent):
            leaf = i not in root and i not in scheme.parent
            assert sees[i].sum() == (WIDTH if leaf else 0)  # of others the sum of their branch
            assert not leaf or sees[i, parent] == WIDTH
    else:
        assert not sees.any()  # nor the words that the rows become
        assert isinstance(scheme, Masked)
        words = scheme.words([rows], np.zeros(1, dtype=bool))
        words = words[words > network.n]  # but for zeros: many numbers need no low digit
        assert words.size >= rows.size
        assert not any(np.isin(words, one.view(np.uint64)).any() for one in seen)


@pytest.mark.parametrize("averaging", ["relay", "tree", "masked"])
def test_all_that_arrives_is_in_the_ledger(averaging: str) -> None:
    network = ccmac.Network.ring(4)
    boxes = {(i, j): queue.SimpleQueue[Any]() for i in range(4) for j in range(4)}

    def one(i: int) -> tuple[int, int]:
        transport = Together(i, 4, boxes)
        runtime = Distributed(network, transport, averaging=averaging)
        row = np.full((1, 7), i + 0.1)
        runtime.average(row)  # masked: keys and scales
        transport.seen.clear()
        before = runtime.ledger.total("network_bytes")
        runtime.average(row)
        runtime.gather(row[:, :3])
        charged = runtime.ledger.total("network_bytes") - before
        return charged, sum(array.nbytes for array in transport.seen)

    found = at_once(one, range(4))
    charged = {told for told, _ in found.values()}
    assert charged == {sum(arrived for _, arrived in found.values())}


@pytest.mark.parametrize("averaging", ["relay", "masked"])
def test_neighbors_see_a_row_that_is_mixed_as_it_is(averaging: str) -> None:
    network = ccmac.Network.path(4)
    rows = np.random.default_rng(2).standard_normal((4, WIDTH))
    seen, _ = seen_of(network, averaging, rows, mixed=True)
    for i, row in enumerate(rows):
        who = [j for j, one in enumerate(seen) if np.isin(row, one).all()]
        assert who == sorted(network.neighbors(i))


def test_all_but_two_who_join_their_knowledge_learn_the_sum_of_these_two_and_not_more() -> None:
    n = 5
    words = np.arange(5 * 40, dtype=np.uint64).reshape(5, 40)
    everybody = [Masks(range(i, i + 1), n) for i in range(n)]
    keys = {i: one.public()[i] for i, one in enumerate(everybody)}
    for one in everybody:
        one.meet(keys)
    hidden = np.array([one.hide(words[i : i + 1])[0] for i, one in enumerate(everybody)])
    for one in everybody[2:]:  # they know their streams: take them off the rows of 0 and 1
        one.count = 0
        i = one.owned.start
        streams = one._streams
        for other in (0, 1):
            one._streams = {(i, other): streams[i, other]}
            one.count = 0
            hidden[other] += one.hide(np.zeros((1, 40), dtype=np.uint64))[0]
    assert np.array_equal(hidden[0] + hidden[1], words[0] + words[1])
    left = hidden[:2] - words[:2]
    assert not (left == 0).any()
    assert np.array_equal(left[0], -left[1])  # the stream of the pair
    assert abs(np.unpackbits(left[0].view(np.uint8)).mean() - 0.5) < 4 / (2 * np.sqrt(40 * 64))


def test_a_listener_sees_how_much_is_said_and_not_what(tmp_path: Path) -> None:
    """Everything between two owners passes somebody who writes it down."""
    pair = Neighborhood(tmp_path / "keys", ccmac.Network.path(2))
    message = np.random.default_rng(0).bytes(4000)
    heard = bytearray()

    def pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(65536):
                heard.extend(piece)
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)

    def listen() -> None:
        far = None
        while far is None:  # owner 1 may knock before owner 0 listens, and then knocks again
            near, _ = door.accept()
            with near, suppress(ConnectionRefusedError):
                far = socket.create_connection(("127.0.0.1", pair.ports[0]))
                with far:
                    back = threading.Thread(target=pump, args=(far, near))
                    back.start()
                    pump(near, far)
                    back.join(20)

    def owner(i: int) -> bool:
        with links[i]:
            links[i].start()
            for _ in range(5):
                links[i].post({1 - i: message})
                assert links[i].receive(1 - i) == message
        return True

    with socket.create_server(("127.0.0.1", 0)) as door:
        links = {0: pair.links(0)}
        real, pair.ports[0] = pair.ports[0], door.getsockname()[1]
        links[1] = pair.links(1)
        pair.ports[0] = real
        listener = threading.Thread(target=listen)
        listener.start()
        assert at_once(owner, range(2)) == {0: True, 1: True}
        listener.join(20)
    assert 10 * 4000 < len(heard) < 10 * 4000 + 20_000
    assert not any(message[k : k + 8] in heard for k in range(0, 3992, 8))
