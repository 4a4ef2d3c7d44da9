"""Certificates and sockets: TLS 1.3 in which both sides prove who they are."""

from __future__ import annotations

import errno
import hashlib
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ccmac.errors import InputError

if TYPE_CHECKING:
    import asyncio

Address = tuple[str, int]
CONGESTION = (b"cubic", b"reno")  # the first that the system allows
WINDOW = 1 << 22  # bytes that a neighbor may send before we have read any


class Relayed(NamedTuple):
    """The relay that two neighbors dial who take no connections."""

    host: str
    port: int


@dataclass(frozen=True)
class Credentials:
    """Files: my certificate and its key, and the authority that signed everybody's."""

    certificate: str
    key: str
    authority: str

    def context(self, *, server: bool) -> ssl.SSLContext:
        """TLS 1.3 in which both sides show a certificate of the authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.check_hostname = not server
        if server:
            context.num_tickets = 0  # a connection is never taken up again by a ticket
        try:
            context.load_cert_chain(self.certificate, self.key, password=_no_password)
            context.load_verify_locations(self.authority)
        except (OSError, ValueError) as error:  # ValueError: of a name that no file has
            files = ", ".join((self.certificate, self.key, self.authority))
            raise InputError(
                f"certificates: {files}: cannot be used ({reason(error)}); "
                "make some for a trial with: ccmac keys DIR"
            ) from None
        return context


def _no_password() -> str:
    """Nobody is asked for one: a key that needs it is refused."""
    raise OSError(errno.EACCES, "the key is encrypted; give one without a password")


def listening(address: Address) -> socket.socket:
    """A socket that waits for connections; InputError where that cannot be."""
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    try:
        sock = socket.create_server(address, family=family, backlog=64)
    except (OSError, ValueError) as error:  # ValueError: of a name that no host has
        where = "{}:{}".format(*address)
        raise InputError(f"listen {where}: cannot listen there ({reason(error)})") from None
    sock.setblocking(False)
    return sock


def hasten(sock: socket.socket) -> None:
    """A row leaves at once and whole: nothing of it waits for an acknowledgement, nor is it paced.

    asyncio turns Nagle's algorithm off for sockets that dial, not for those it accepts. BBR, which
    some systems prefer, stretches a row over half a latency; no administrator is needed for reno.
    Linux opens the window of a receiver by what it reads in a round trip, and for rows that come
    in bursts may leave it at 80 kB for many rounds: a row of 512 kB then takes twelve latencies.
    To ask for a low-water mark opens it at once; SO_RCVBUF would be cut and end its growth.
    """
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not hasattr(socket, "TCP_CONGESTION"):  # Linux only
        return
    for mark in (WINDOW, 1):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, mark)
    for name in CONGESTION:
        with suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)
            return


def shown_names(writer: asyncio.StreamWriter) -> list[str]:
    """In the certificate of the other side."""
    certificate = writer.get_extra_info("peercert") or {}
    return [str(name) for kind, name in certificate.get("subjectAltName", ()) if kind == "DNS"]


def print_of(writer: asyncio.StreamWriter) -> str:
    """The fingerprint of the other side's certificate."""
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    return hashlib.sha256(shown or b"").hexdigest()


def reason(error: BaseException) -> str:
    """Why TLS failed, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        why = (error.reason or type(error).__name__).lower().replace("_", " ")
        return f"its certificate is refused ({why})" if "certificate" in why else f"TLS: {why}"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
