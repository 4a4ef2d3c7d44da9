"""Connections between owners: dropped, refused, cut off. Everything on the loopback."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import ssl
import struct
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ccmac
from ccmac.errors import InputError, PeerLost
from ccmac.runtime import wire
from ccmac.runtime.links import Links
from ccmac.runtime.owners import between_owners
from ccmac.runtime.tls import Identity
from ccmac.runtime.wire import BYE, DATA, HELLO, REFUSE, Frame, Numbering, Violation
from ccmac.storage.keys import make_keys
from ccmac.version import __version__
from owners import Neighborhood, at_once

pytest.importorskip("cryptography")
ROUNDS = 60


@pytest.fixture
def ring(tmp_path: Path) -> Neighborhood:
    return Neighborhood(tmp_path / "keys", ccmac.Network.ring(4))


def talk(links: Links, rounds: int = ROUNDS) -> list[bytes]:
    """A message to every neighbor and one from each, round by round."""
    heard = []
    for k in range(rounds):
        links.post(
            {p: f"{links.me} to {p}, {k};".encode() * (1 + 997 * (k % 3)) for p in links.links}
        )
        heard += [links.receive(p) for p in links.links]
    return heard


def due(links: Links, rounds: int = ROUNDS) -> list[bytes]:
    """What :func:`talk` must hear."""
    return [
        f"{p} to {links.me}, {k};".encode() * (1 + 997 * (k % 3))
        for k in range(rounds)
        for p in links.links
    ]


def owner(ring: Neighborhood, **more: Any) -> Any:
    """One owner that starts late or early, talks, and has heard everything."""

    def run(i: int) -> bool:
        time.sleep((i * 7 % 4) * 0.05)
        with ring.links(i, **more) as links:
            links.start()
            return talk(links) == due(links)

    return run


def frames_of(data: bytes) -> list[Frame]:
    """All whole frames of a stream that ends."""

    async def at_once(length: int) -> None:
        """Whatever comes is read."""

    async def listed() -> list[Frame]:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        found = []
        while True:
            try:
                found.append(await wire.read(reader, room=at_once))
            except EOFError:
                return found

    return asyncio.run(listed())


# -- frames ----------------------------------------------------------------------------------------
@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=20), max_size=6), st.lists(st.floats(0, 1), max_size=4))
def test_whatever_is_dropped_everything_arrives_once_and_in_order(
    messages: list[bytes], cuts: list[float]
) -> None:
    """Connections break anywhere, also inside a frame; the rest is sent again."""
    sender = Numbering()
    receiver = Numbering()
    got = []
    stream = b"".join(sender.keep(DATA, message) for message in messages)
    for cut in (*cuts, 1.0):
        for frame in frames_of(stream[: int(cut * len(stream))]):
            receiver.accept(frame)
            got.append(frame.payload)
        stream = b"".join(sender.missing(receiver.arrived))
    assert got == messages
    sender.acknowledge(receiver.arrived)
    assert not sender.waiting


def test_frames_that_are_none_are_refused() -> None:
    with pytest.raises(Violation, match="no message"):
        frames_of(b"GET / HTTP/1.1\r\n" * 2)
    for kind in (HELLO, REFUSE, BYE, 77):  # longer than such a frame may be
        with pytest.raises(Violation, match="no message"):
            frames_of(struct.pack(">2sBIQQ", b"CM", kind, 1 << 20, 0, 0))
    numbering = Numbering()
    numbering.accept(Frame(DATA, 0, 0, b""))
    for number, what in ((0, "came again"), (2, "too early")):
        with pytest.raises(Violation, match=what):
            numbering.accept(Frame(DATA, number, 0, b""))
    with pytest.raises(Violation, match="never sent"):
        numbering.acknowledge(1)
    with pytest.raises(Violation, match="did not say"):
        wire.read_hello(b"[1]")


# -- connections -----------------------------------------------------------------------------------
def test_owners_start_in_any_order_and_hear_everything(ring: Neighborhood) -> None:
    assert at_once(owner(ring), range(4)) == dict.fromkeys(range(4), True)
    assert not any(ring.said.values())


def test_dropped_connections_lose_nothing(ring: Neighborhood) -> None:
    """Every connection is cut again and again while messages travel."""
    stop = threading.Event()
    dropped = []

    def run(i: int) -> bool:
        with ring.links(i) as links:
            links.start()
            random_ = random.Random(i)

            def saw() -> None:
                while True:  # at once: a fast machine has said everything in a moment
                    writer = random_.choice(list(links.links.values())).writer
                    if writer is not None:
                        dropped.append(i)
                        links.loop.call_soon_threadsafe(writer.transport.abort)
                    if stop.wait(0.02 + 0.05 * random_.random()):
                        return

            cutter = threading.Thread(target=saw, daemon=True)
            cutter.start()
            try:
                return talk(links) == due(links)
            finally:
                stop.set()
                cutter.join()

    assert at_once(run, range(4)) == dict.fromkeys(range(4), True)
    assert dropped


def test_an_owner_that_is_gone_ends_the_run_everywhere_by_name(ring: Neighborhood) -> None:
    """Agent 2 falls silent without a word; agent 0, which is no neighbor of it, learns it too."""

    over = threading.Event()

    def run(i: int) -> Any:
        with ring.links(i, patience=1.0) as links:
            links.start()
            talk(links, 3)
            if i == 2:
                links.loop.call_soon_threadsafe(over.wait)  # as if it were stopped
                over.wait()
            try:
                return talk(links)
            finally:
                ended.append(i)
                if len(ended) == 3:
                    over.set()

    ended: list[int] = []
    begun = time.monotonic()
    found = at_once(run, range(4))
    assert time.monotonic() - begun < 11.0  # patience + 10 s
    for i in (0, 1, 3):
        assert isinstance(found[i], PeerLost)
        assert str(found[i]).startswith("agent 2: has not been heard of")
        assert found[i].exit_code == 1


def test_an_error_of_one_owner_is_told_to_all(ring: Neighborhood) -> None:
    def run(i: int) -> Any:
        with ring.links(i) as links:
            links.start()
            if i == 1:
                raise InputError("agent 1, block A: is of no use")
            return talk(links)

    found = at_once(run, range(4))
    assert isinstance(found[1], InputError)
    assert {str(found[i]) for i in (0, 2, 3)} == {
        "agent 1: cannot go on with its input; see its own log"
    }


def test_an_owner_that_was_started_anew_ends_the_run(ring: Neighborhood) -> None:
    def run(i: int) -> Any:
        if i == 3:
            first = ring.links(3)
            first.start()
            talk(first, 2)
            first.stop()
        with ring.links(i, wait=5.0) as links:
            links.start()
            return talk(links)

    found = at_once(run, range(4))
    assert "agent 3: was started anew" in str(found[0]) + str(found[2])
    assert all(isinstance(error, PeerLost) for error in found.values())


def test_nothing_of_one_system_is_asked_for(
    ring: Neighborhood, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the loop of Windows does not have, and sockets there do not know."""

    def missing(*_: Any) -> None:
        raise NotImplementedError

    for name in ("add_reader", "add_writer", "remove_reader", "add_signal_handler"):
        monkeypatch.setattr(asyncio.SelectorEventLoop, name, missing)
    for name in ("TCP_CONGESTION", "SO_RCVLOWAT", "SO_REUSEPORT"):
        monkeypatch.delattr(socket, name)
    assert at_once(owner(ring), range(4)) == dict.fromkeys(range(4), True)


# -- who is not let in -----------------------------------------------------------------------------
def shake(ring: Neighborhood, identity: Identity, to: int) -> ssl.SSLSocket:
    """A plain TLS client."""
    context = identity.context(server=False)
    plain = socket.create_connection(("127.0.0.1", ring.ports[to]), timeout=10)
    return context.wrap_socket(plain, server_hostname=f"agent-{to}")


def until_closed(connection: ssl.SSLSocket) -> bytes:
    """All that the other side still says; an alert counts as the end."""
    heard = b""
    try:
        while piece := connection.recv(65536):
            heard += piece
    except (ssl.SSLError, ConnectionError):
        pass
    connection.close()
    return heard


def test_strangers_are_refused_by_name_and_disturb_nobody(
    ring: Neighborhood, tmp_path: Path
) -> None:
    """A certificate of another authority; an agent that is no neighbor; no TLS at all."""
    make_keys(tmp_path / "foreign", ["agent-1"])
    files = tmp_path / "foreign"
    foreign = Identity(
        str(files / "agent-1.crt"), str(files / "agent-1.key"), str(ring.folder / "authority.crt")
    )
    met = threading.Event()

    def run(i: int) -> Any:
        with ring.links(i) as links:
            links.start()
            if i == 0:
                until_closed(shake(ring, foreign, to=0))
                told = until_closed(shake(ring, ring.identity(2), to=0))
                refusal = frames_of(told)[0]
                assert refusal.kind == REFUSE
                assert refusal.payload == b"is no neighbor of this agent"
                with socket.create_connection(("127.0.0.1", ring.ports[0]), timeout=10) as plain:
                    plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
                    plain.recv(100)
                met.set()
            met.wait(20)
            return talk(links) == due(links)

    assert at_once(run, range(4)) == dict.fromkeys(range(4), True)
    lines = " | ".join(ring.said[0])
    assert "refused a connection from 127.0.0.1: its certificate is refused" in lines
    assert "refused agent-2 at 127.0.0.1: is no neighbor of this agent" in lines
    assert not any(ring.said[i] for i in (1, 2, 3))


def test_a_host_that_knocks_and_says_nothing_keeps_nobody_out(ring: Neighborhood) -> None:
    """Many connections without a handshake, and as many with a neighbor's name and no greeting."""
    met = threading.Event()

    def run(i: int) -> Any:
        with ring.links(i) as links:
            links.start()
            if i == 0:
                where = ("127.0.0.1", ring.ports[0])
                knocking = [socket.create_connection(where, timeout=10) for _ in range(30)]
                mute = [shake(ring, ring.identity(3), to=0) for _ in range(3)]
                for one in mute[:-1]:  # of each neighbor the newest counts
                    until_closed(one)
                mute[-1].close()
                met.set()
                for one in knocking:
                    one.close()
            met.wait(20)
            return talk(links) == due(links)

    assert at_once(run, range(4)) == dict.fromkeys(range(4), True)


def test_replayed_and_truncated_messages_are_refused_by_name_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    """Agent 1 repeats a message, cuts one short, sends bytes that are none; then goes on."""
    pair = Neighborhood(tmp_path / "keys", ccmac.Network.path(2))
    sent = [f"message {k}".encode() for k in range(4)]

    def hello(arrived: int) -> bytes:
        return greeting(arrived=arrived)

    def misbehave() -> None:
        first = wire.encode(DATA, 0, 0, sent[0])
        second = wire.encode(DATA, 1, 0, sent[1])
        for last in (first, b"nonsense that is no frame at all", second[:-3]):
            connection = shake(pair, pair.identity(1), to=0)
            connection.sendall(hello(0) + (first if last is first else b"") + last)
            if last in second:  # cut short, and gone
                connection.close()
            else:
                until_closed(connection)
        connection = shake(pair, pair.identity(1), to=0)
        rest = [wire.encode(DATA, k, 0, sent[k]) for k in range(1, 4)]
        connection.sendall(hello(0) + b"".join(rest) + wire.encode(BYE, 4, 0))
        until_closed(connection)

    def run(i: int) -> Any:
        if i == 1:
            time.sleep(0.2)
            misbehave()
            return None
        with pair.links(0) as links:
            links.start()
            return [links.receive(1) for _ in sent]

    found = at_once(run, range(2))
    assert found == {0: sent, 1: None}
    lines = " | ".join(pair.said[0])
    assert "refused agent 1: message 0 came again (message 1 is due)" in lines
    assert "refused agent 1: sent something that is no message of this program" in lines


# -- neighbors that misbehave ----------------------------------------------------------------------
def greeting(**more: Any) -> bytes:
    """What agent 1 says first."""
    facts = {"the public file": "1"}
    said = {"protocol": 1, "agent": 1, "session": "s", "facts": facts, "arrived": 0}
    return wire.encode(HELLO, 0, 0, wire.hello(**{**said, "version": __version__, **more}))


def against(
    folder: Path, misbehave: Any, due: int = 8, pause: float = 0.0, **more: Any
) -> tuple[Any, str, float]:
    """Agent 0 waits for two messages of ``due`` bytes; (what it finds, what it says, seconds)."""
    pair = Neighborhood(folder, ccmac.Network.path(2))

    def run(i: int) -> Any:
        if i == 1:
            try:
                connection = shake(pair, pair.identity(1), to=0)
            except OSError:
                return None
            with connection, contextlib.suppress(OSError):  # hung up on
                misbehave(connection)
                until_closed(connection)
            return None
        with pair.links(0, patience=3.0, wait=12.0, **more) as links:
            links.start()
            time.sleep(pause)
            return [links.receive(1, due) for _ in range(2)]

    listening = threading.Event()
    found: dict[int, Any] = {}

    def honest() -> None:
        listening.set()
        found.update(at_once(run, [0]))

    thread = threading.Thread(target=honest, daemon=True)
    begun = time.monotonic()
    thread.start()
    listening.wait(5)
    for _ in range(100):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", pair.ports[0]), timeout=1).close()
            break
        time.sleep(0.02)
    while thread.is_alive() and time.monotonic() - begun < 30:
        run(1)
        time.sleep(0.05)
    thread.join(20)
    return found[0], " | ".join(pair.said[0]), time.monotonic() - begun


def flood(connection: ssl.SSLSocket) -> None:
    """Messages of a plausible size without end."""
    connection.sendall(greeting())
    connection.settimeout(2.0)
    with contextlib.suppress(OSError):
        for k in range(1 << 9):
            connection.sendall(wire.encode(DATA, k, 0, bytes(1 << 20)))
            sent.append(1 << 20)


sent: list[int] = []


def refusals(connection: ssl.SSLSocket) -> None:
    connection.sendall(greeting())
    for k in range(200):
        text = f"\x1b[31m{k} " + "x" * 2000
        connection.sendall(wire.encode(REFUSE, 0, 0, text.encode()[:2000]))


@pytest.mark.parametrize(
    ("misbehave", "says"),
    [
        (lambda c: c.sendall(greeting() + wire.encode(BYE, 0, 0)), "agent 1: left before the end"),
        (lambda c: c.sendall(greeting(agent=3)), "agent 1: broke the rules 11 times"),
        (refusals, "agent 1: broke the rules 11 times"),
        (
            lambda c: c.sendall(struct.pack(">2sBIQQ", b"CM", DATA, 1 << 29, 0, 0)),
            "agent 1: broke the rules 11 times",
        ),
        (
            lambda c: c.sendall(greeting() + wire.encode(DATA, 0, 0, bytes(9))),
            "agent 1: sent 9 bytes where 8 were due",
        ),
        (
            lambda c: c.sendall(greeting() + struct.pack(">2sBIQQ", b"CM", DATA, 1 << 29, 0, 0)),
            "agent 1: sent 536870912 bytes where 8 were due",
        ),
        (
            lambda c: c.sendall(greeting() + struct.pack(">2sBIQQ", b"CM", DATA, 1 << 31, 0, 0)),
            "agent 1: broke the rules 11 times",
        ),
    ],
    ids=["early BYE", "another's number", "refusals", "no greeting", "size", "half a GiB", "2 GiB"],
)
def test_a_neighbor_that_misbehaves_is_named_in_one_line_and_in_time(
    tmp_path: Path, misbehave: Any, says: str
) -> None:
    found, said, seconds = against(tmp_path / "keys", misbehave)
    assert isinstance(found, PeerLost)
    assert says in str(found)
    assert seconds < 13.0  # patience + 10 s
    assert "\x1b" not in said
    assert len(said) < 4000


def test_a_flood_is_not_read(tmp_path: Path) -> None:
    """Half a GiB is offered; no more is read ahead than the limit and what buffers hold."""
    sent.clear()
    found, _, seconds = against(tmp_path / "keys", flood, due=1 << 20, pause=1.5)
    assert [len(message) for message in found] == [1 << 20] * 2
    assert sum(sent) < 100 << 20
    assert seconds < 13.0


@pytest.mark.parametrize(
    ("ours", "theirs", "well"),
    [
        ("1.4.2", "1.4.7", True),
        ("1.4.2", "1.5.0", False),
        ("1.4.0", "1.4.0rc1", False),
        ("1.4.2", "\x1b[31m" * 99, False),
    ],
)
def test_patch_releases_talk_to_each_other_and_others_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ours: str, theirs: str, well: bool
) -> None:
    monkeypatch.setattr("ccmac.runtime.links.__version__", ours)
    rows = [wire.encode(DATA, k, 0, bytes(8)) for k in range(2)]
    said = greeting(version=theirs) + b"".join(rows) + wire.encode(BYE, 2, 0)
    found, _, _ = against(tmp_path / "keys", lambda c: c.sendall(said))
    if well:
        assert found == [bytes(8)] * 2
    else:
        assert isinstance(found, InputError)
        assert f"have ccmac {ours} and " in str(found)
        assert theirs in str(found) or "\x1b" not in str(found)


@pytest.mark.parametrize("averaging", ["relay", "tree", "masked"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused_by_all(
    ring: Neighborhood, averaging: str, value: float
) -> None:
    def run(i: int) -> Any:
        with ring.links(i) as links:
            links.start()
            runtime = between_owners(links, ring.network, averaging)
            runtime.average(np.ones((1, 3)))
            return runtime.average(np.full((1, 3), value if i == 2 else 1.0))

    found = at_once(run, range(4))
    who = "an agent" if averaging == "masked" else "agent 2"
    for error in found.values():
        assert isinstance(error, PeerLost)
        assert str(error) == f"{who}: sent numbers that are not finite; the run ends"


SECRET = "P85020"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InputError(f"party 'lab', column '{SECRET}': has NaN"), "cannot go on with its input"),
        (FileNotFoundError(2, "no such file", f"/home/{SECRET}.csv"), "cannot read or write"),
        (KeyError(SECRET), "met an error"),
        (ValueError(f"could not convert {SECRET}"), "met an error"),
        (MemoryError(SECRET), "has no memory left"),
        (KeyboardInterrupt(SECRET), "was interrupted"),
    ],
    ids=lambda v: v if isinstance(v, str) else type(v).__name__,
)
def test_the_words_of_an_error_stay_where_it_happened(
    ring: Neighborhood, monkeypatch: pytest.MonkeyPatch, error: BaseException, kind: str
) -> None:
    """A secret in an error of agent 1 reaches nobody's wire, line or exception."""
    frames: list[Frame] = []
    read = wire.read

    async def recorded(*arguments: Any, **more: Any) -> Frame:
        frame = await read(*arguments, **more)
        frames.append(frame)
        return frame

    monkeypatch.setattr(wire, "read", recorded)

    def run(i: int) -> Any:
        with ring.links(i) as links:
            links.start()
            if i == 1:
                raise error
            return talk(links)

    found = at_once(run, range(4))
    assert found[1] is error
    told = [str(found[i]) for i in (0, 2, 3)]
    assert all(text.startswith(f"agent 1: {kind}") for text in told), told
    assert all(text.endswith("see its own log") for text in told)
    heard = b" ".join(frame.payload for frame in frames)
    assert kind.encode() in heard
    assert SECRET not in str([*told, *ring.said.values()])
    assert SECRET.encode() not in heard
