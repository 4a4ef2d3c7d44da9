"""Milliseconds of one exchange between owners: a message to and from both neighbors of a ring.

    python benchmarks/links.py [--processes 8] [--rounds 200]

Compares the TLS links of ccmac with gRPC's bidirectional streams (``pip install grpcio``), each
with mutual TLS and a process for every agent on this machine.
"""

from __future__ import annotations

import argparse
import multiprocessing
import queue
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ccmac.runtime.links import Links
from ccmac.runtime.tls import Identity
from ccmac.storage.keys import make_keys

SIZES = (1_000, 16_000, 256_000)
Exchange = Callable[[bytes], None]


def measured(exchange: Exchange, rounds: int) -> list[float]:
    """Milliseconds of an exchange for each size."""
    found = []
    for size in SIZES:
        message = bytes(size)
        for _ in range(10):
            exchange(message)
        begun = time.perf_counter()
        for _ in range(rounds):
            exchange(message)
        found.append(1e3 * (time.perf_counter() - begun) / rounds)
    return found


def over_links(i: int, n: int, ports: list[int], keys: Path, rounds: int) -> list[float]:
    """The links of ccmac."""
    near = sorted({(i - 1) % n, (i + 1) % n} - {i})
    where = {p: (f"agent-{p}", ("127.0.0.1", ports[p]) if p < i else None) for p in near}
    files = [str(keys / f"agent-{i}.{end}") for end in ("crt", "key")]
    credentials = Identity(*files, str(keys / "authority.crt"))
    with Links(i, where, ("127.0.0.1", ports[i]), credentials, {}) as links:
        links.start()

        def exchange(message: bytes) -> None:
            links.post(dict.fromkeys(near, message))
            for p in near:
                links.receive(p)

        return measured(exchange, rounds)


def over_grpc(i: int, n: int, ports: list[int], keys: Path, rounds: int) -> list[float]:
    """Bidirectional streams of gRPC: every agent serves, and dials both neighbors."""
    import grpc

    def read(name: str) -> bytes:
        return (keys / name).read_bytes()

    near = sorted({(i - 1) % n, (i + 1) % n} - {i})
    inbox: dict[int, queue.SimpleQueue[bytes]] = {p: queue.SimpleQueue() for p in near}
    outbox: dict[int, queue.SimpleQueue[bytes | None]] = {p: queue.SimpleQueue() for p in near}

    def serve(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        peer = int(next(requests))
        for message in requests:
            inbox[peer].put(message)
        yield from ()

    handler = grpc.stream_stream_rpc_method_handler(serve)
    pair = [(read(f"agent-{i}.key"), read(f"agent-{i}.crt"))]
    server = grpc.server(ThreadPoolExecutor(8), options=[("grpc.max_receive_message_length", -1)])
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("ccmac", {"Talk": handler})]
    )
    authority = read("authority.crt")
    secrets = grpc.ssl_server_credentials(pair, authority, require_client_auth=True)
    server.add_secure_port(f"127.0.0.1:{ports[i]}", secrets)
    server.start()
    mine = grpc.ssl_channel_credentials(authority, *pair[0])

    def sending(p: int) -> Iterator[bytes]:
        yield str(i).encode()
        while (message := outbox[p].get()) is not None:
            yield message

    calls = []
    for p in near:
        options = [("grpc.ssl_target_name_override", f"agent-{p}")]
        channel = grpc.secure_channel(f"127.0.0.1:{ports[p]}", mine, options)
        call = channel.stream_stream("/ccmac/Talk")
        calls.append(call(sending(p), wait_for_ready=True))

    def exchange(message: bytes) -> None:
        for p in near:
            outbox[p].put(message)
        for p in near:
            inbox[p].get()

    found = measured(exchange, rounds)
    time.sleep(1.0)
    for p in near:
        outbox[p].put(None)
    server.stop(1.0).wait()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=200)
    asked = parser.parse_args()
    engines: list[Any] = [over_links]
    try:
        import grpc  # noqa: F401

        engines.append(over_grpc)
    except ImportError:
        print("gRPC is not installed")
    n = asked.processes
    print(f"{'ms an exchange':>16} " + " ".join(f"{size:>9,} B" for size in SIZES))
    for engine in engines:
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
        ports = [s.getsockname()[1] for s in sockets]
        for s in sockets:
            s.close()
        with tempfile.TemporaryDirectory() as folder:
            make_keys(Path(folder), [f"agent-{i}" for i in range(n)])
            work = [(i, n, ports, Path(folder), asked.rounds) for i in range(n)]
            with multiprocessing.get_context("spawn").Pool(n) as pool:
                times = pool.starmap(engine, work, chunksize=1)
        worst = [max(column) for column in zip(*times, strict=True)]
        print(f"{engine.__name__:>16} " + " ".join(f"{ms:>11.2f}" for ms in worst), flush=True)


if __name__ == "__main__":
    main()
