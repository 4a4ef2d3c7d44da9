"""Owners who take no connections meet at a relay, which sees ciphertext and sizes alone."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import ccmac
from ccmac.owners import relay as module
from ccmac.owners.relay import Relay, Settings
from ccmac.paper.instances import random_quadratic
from ccmac.runtime.links import Links
from ccmac.runtime.owners import between_owners
from ccmac.runtime.tls import Identity, listening
from ccmac.runtime.wire import Relayed
from owners import Neighborhood, at_once, free_ports

pytest.importorskip("cryptography")
N = 3


class Place(Neighborhood):
    """Owners who dial a relay and do not listen."""

    def __init__(self, folder: Path, network: ccmac.Network) -> None:
        super().__init__(folder, network)
        [port] = free_ports(1)
        self.address = ("127.0.0.1", port)
        self.lines: list[str] = []

    def links(self, i: int, **more: Any) -> Links:
        near = {int(j): (f"agent-{j}", Relayed(*self.address)) for j in self.network.neighbors(i)}
        options = {"patience": 20.0, "wait": 20.0, "say": self.said[i].append, **more}
        options["names"] = [f"agent-{j}" for j in range(self.network.n)]
        return Links(i, near, None, self.identity(i), {"the public file": "1"}, **options)

    @contextmanager
    def relay(self, **more: Any) -> Iterator[Relay]:
        identity = Identity("", "", str(self.folder / "authority.crt"))
        relay = Relay(identity, Settings("", "", **more), say=self.lines.append)
        begun: list[Any] = []

        async def serve() -> None:
            begun[:] = asyncio.get_running_loop(), asyncio.current_task()
            await relay.serve(listening(self.address))

        def run() -> None:
            with suppress(asyncio.CancelledError):
                asyncio.run(serve())

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield relay
        finally:
            loop, task = begun
            loop.call_soon_threadsafe(task.cancel)
            thread.join(10)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "keys", ccmac.Network.complete(N))


def test_a_solve_through_a_relay_has_the_bits_of_one_process_and_the_relay_reads_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = random_quadratic(9, n=N, q=3, m=2, kappa_f=30.0)
    alone = ccmac.InProcess(place.network, fused=False)
    whole = ccmac.solve(problem, method="cross-apapc", tol=1e-8, runtime=alone)
    heard = bytearray()
    sent: list[bytes] = []
    passed = module.Relay._passed

    async def recorded(self: Relay, source: Any, target: Any) -> None:
        write = target.writer.write

        def writing(data: bytes) -> None:
            heard.extend(data)
            write(data)

        target.writer.write = writing
        await passed(self, source, target)

    monkeypatch.setattr(module.Relay, "_passed", recorded)
    post = Links.post

    def posted(self: Links, messages: Any) -> None:
        sent.extend(messages.values())
        post(self, messages)

    monkeypatch.setattr(Links, "post", posted)

    def one(i: int) -> Any:
        with place.links(i) as links:
            links.start()
            part = ccmac.Problem({i: problem.agents[i]}, n=N, q=problem.q, m=problem.m)
            runtime = between_owners(links, place.network)
            return ccmac.solve(part, method="cross-apapc", tol=1e-8, runtime=runtime)

    with place.relay():
        found = at_once(one, range(N))
    for i in range(N):
        assert found[i].x[0].tobytes() == whole.x[i].tobytes()
        assert found[i].z.tobytes() == whole.z.tobytes()
        assert found[i].ledger.as_dict() == whole.ledger.as_dict()
    told = {message[k : k + 8] for message in sent for k in range(0, len(message), 8)}
    told = {word for word in told if len({*word}) > 4}  # numbers, not zeros
    assert len(told) > 100
    assert len(heard) > sum(map(len, sent))
    assert not any(word in heard for word in told)
    assert sum("have met" in line for line in place.lines) == N
    assert not any(place.said.values())


def test_a_relay_that_is_started_again_loses_nothing(place: Place) -> None:
    half = threading.Barrier(N + 1)
    gone = threading.Event()

    def one(i: int) -> bool:
        with place.links(i) as links:
            links.start()
            for k in range(60):
                if k == 30:
                    half.wait(20)
                    gone.wait(20)
                links.post({p: f"{i} to {p}, {k};".encode() * 500 for p in links.links})
                for p in links.links:
                    assert links.receive(p) == f"{p} to {i}, {k};".encode() * 500
        return True

    found: dict[int, Any] = {}
    owners = threading.Thread(target=lambda: found.update(at_once(one, range(N))))
    with place.relay():
        owners.start()
        half.wait(20)
    gone.set()
    with place.relay():
        owners.join(40)
    assert found == dict.fromkeys(range(N), True)
    assert sum("have met" in line for line in place.lines) > N


def test_who_may_use_a_relay(place: Place, tmp_path: Path) -> None:
    """A name that it does not know, another's name, no greeting at all: one line on both sides."""
    pair = Place(tmp_path / "pair", ccmac.Network.path(2))

    def one(i: int) -> Any:
        with pair.links(i, wait=1.5, patience=2.0) as links:
            links.start()

    with pair.relay(names=["agent-0"]):
        found = at_once(one, range(2))
    assert all("did not come" in str(error) for error in found.values())
    assert "refused 127.0.0.1: is not for agent-1" in pair.lines
    assert "the relay is not for agent-1" in " | ".join(pair.said[1])


def test_a_relay_passes_on_no_faster_than_it_may(tmp_path: Path) -> None:
    pair = Place(tmp_path / "pair", ccmac.Network.path(2))

    def one(i: int) -> float:
        with pair.links(i) as links:
            links.start()
            if i == 0:
                links.post({1: bytes(1 << 20)})
                return 0.0
            begun = time.monotonic()
            assert len(links.receive(0)) == 1 << 20
            return time.monotonic() - begun

    with pair.relay(rate=1 << 20):
        found = at_once(one, range(2))
    assert 0.7 < found[1] < 5
