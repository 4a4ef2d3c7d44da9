"""Connections over TLS 1.3, made with the certificates that the files hold at the time."""

from __future__ import annotations

import asyncio

from ccmac.runtime.credentials import Address, Credentials

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
BUFFER = 1 << 22  # bytes that are read ahead


async def plain(address: Address, seconds: float) -> Streams:
    """Connect, and say nothing yet."""
    async with asyncio.timeout(seconds):
        return await asyncio.open_connection(*address, limit=BUFFER, happy_eyeballs_delay=0.25)


async def secured(
    credentials: Credentials, seconds: float, outer: asyncio.StreamWriter, name: str | None = None
) -> Streams:
    """Shake hands with whoever has a certificate for ``name``; None: as the one who is called.

    ``outer`` must be kept as long as what is returned. Nothing may have been read from it that
    belongs to the handshake.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=BUFFER)
    protocol = asyncio.StreamReaderProtocol(reader)
    transport = await loop.start_tls(
        outer.transport,
        protocol,
        credentials.context(server=name is None),
        server_side=name is None,
        server_hostname=name,
        ssl_handshake_timeout=seconds,
        ssl_shutdown_timeout=1.0,
    )
    assert isinstance(transport, asyncio.Transport)
    protocol.connection_made(transport)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)
