"""Who somebody is: certificates, TLS 1.3 in which both sides show theirs, and signatures.

TLS proves who a neighbor is. What reaches an agent through other hands, such as the keys of masked
sums, carries a signature with the certificate of the owner whose it is (:meth:`Identity.sign`); the
receiver holds it against the authority and the agent's name (:meth:`Identity.check`).
"""

from __future__ import annotations

import asyncio
import datetime
import errno
import hashlib
import os
import socket
import ssl
import stat
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ccmac.errors import InputError
from ccmac.runtime.wire import Address
from ccmac.texts import MEGABYTE, open_file

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
except ImportError as error:
    raise InputError(
        f"certificates need cryptography ({error}); pip install 'ccmac[owners]'"
    ) from None

SOON = 30  # days before its end at which a certificate is mentioned
CONGESTION = (b"cubic", b"reno")  # the first that the system allows
WINDOW = 1 << 22  # bytes that a neighbor may send before we have read any, and that are read ahead
ADDRESS_SECONDS = 0.25  # until the next address of a name is tried next to one that keeps silent


@dataclass(frozen=True)
class Identity:
    """Files: my certificate and its key, and the authority that signed everybody's; fingerprints of
    certificates that count no more.
    """

    certificate: str
    key: str
    authority: str
    revoked: Collection[str] = ()

    def context(self, *, server: bool) -> ssl.SSLContext:
        """TLS 1.3 in which both sides show a certificate of the authority, by today's files."""
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

    def check_own(self, name: str) -> str | None:
        """Refuse one's own certificate or key where others would; a line where it ends soon."""
        leaf = certificates(self.certificate)[0]
        if why := self.refusal(name, leaf):
            raise InputError(f"{self.certificate}: {why}")
        if os.name == "posix" and os.stat(self.key).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise InputError(f"{self.key}: others may read it; do: chmod 600 {self.key}")
        days = (leaf.not_valid_after_utc - datetime.datetime.now(datetime.UTC)).days
        return f"the certificate {self.certificate} expires in {days} days" if days < SOON else None

    def refusal(self, name: str, leaf: Any) -> str | None:
        """Why a certificate is not good for ``name`` now."""
        now = datetime.datetime.now(datetime.UTC)
        begins = leaf.not_valid_before_utc
        ends = leaf.not_valid_after_utc
        if name not in names_of(leaf):
            return (
                f"is for {', '.join(names_of(leaf)) or 'nobody'}, but the public file calls this "
                f"agent {name}; take another certificate, or say so under names"
            )
        if now < begins:
            return (
                f"is not valid before {begins:%Y-%m-%d %H:%M} UTC; is the clock right, which says "
                f"{now:%Y-%m-%d %H:%M}?"
            )
        if now > ends:
            return f"expired on {ends:%Y-%m-%d %H:%M} UTC; renew it with: ccmac keys request"
        if not any(_signed_by(leaf, root) for root in certificates(self.authority)):
            return f"is not signed by {self.authority}"
        if self.revokes(fingerprint(leaf)):
            return "is revoked by the public file; take a new certificate"
        if not both_usages(leaf):
            return "is not for clients and servers; ask for both usages"
        return None

    def revokes(self, print_: str) -> bool:
        """Whether the certificate with this fingerprint counts no more."""
        return print_ in {known.replace(":", "").lower() for known in self.revoked}

    def sign(self, statement: bytes) -> bytes:
        """A signature of the owner's key, and the certificate by which it is checked."""
        key: Any = load_pem_private_key(read(self.key), None)
        signature: bytes = key.sign(statement, *_scheme(key))
        return len(signature).to_bytes(2, "big") + signature + read(self.certificate)

    def check(self, name: str, statement: bytes, proof: bytes) -> None:
        """ValueError where the proof is not the signature of the owner with this name."""
        end = 2 + int.from_bytes(proof[:2], "big")
        leaf = x509.load_pem_x509_certificate(proof[end:])
        if why := self.refusal(name, leaf):
            raise ValueError(why)
        key: Any = leaf.public_key()
        try:
            key.verify(proof[2:end], statement, *_scheme(key))
        except (InvalidSignature, TypeError, AttributeError):
            raise ValueError("of another text") from None


# -- certificates ----------------------------------------------------------------------------------
def read(path: str | Path) -> bytes:
    """A certificate or key, which is short."""
    with open_file(Path(path)) as stream:
        return stream.read(MEGABYTE + 1)


def certificates(path: str | Path) -> list[Any]:
    """All in a file; InputError where there is none."""
    try:
        return x509.load_pem_x509_certificates(read(path))
    except (OSError, ValueError):
        raise InputError(f"{path}: is no certificate (PEM); make some with: ccmac keys") from None


def names_of(certificate: Any) -> list[str]:
    """The host names that it is for; addresses of other kinds do not count."""
    found = _extension(certificate, x509.SubjectAlternativeName)
    return [] if found is None else list(found.get_values_for_type(x509.DNSName))


def both_usages(certificate: Any) -> bool:
    """Whether it may be shown by clients and by servers: it says so, or says nothing."""
    found = _extension(certificate, x509.ExtendedKeyUsage)
    usages = x509.oid.ExtendedKeyUsageOID
    return found is None or {usages.CLIENT_AUTH, usages.SERVER_AUTH} <= {*found}


def fingerprint(certificate: Any) -> str:
    """SHA-256 of the certificate, as a list of revoked ones has it."""
    return bytes(certificate.fingerprint(hashes.SHA256())).hex()


def _extension(certificate: Any, kind: Any) -> Any:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _signed_by(certificate: Any, issuer: Any) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, ValueError, TypeError):
        return False
    basic = _extension(issuer, x509.BasicConstraints)
    return basic is not None and bool(basic.ca)


def _scheme(key: Any) -> tuple[Any, ...]:
    """How a key of this kind signs, private or public."""
    if isinstance(key, ec.EllipticCurvePrivateKey | ec.EllipticCurvePublicKey):
        return (ec.ECDSA(hashes.SHA256()),)
    if isinstance(key, rsa.RSAPrivateKey | rsa.RSAPublicKey):
        return padding.PKCS1v15(), hashes.SHA256()
    return ()


def _no_password() -> str:
    """Nobody is asked for one: a key that needs it is refused."""
    raise OSError(errno.EACCES, "the key is encrypted; give one without a password")


# -- connections -----------------------------------------------------------------------------------
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


async def secured(
    identity: Identity, seconds: float, outer: asyncio.StreamWriter, name: str | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Shake hands with whoever has a certificate for ``name``; None: as the one who is called.

    ``outer`` must be kept as long as what is returned. Nothing may have been read from it that
    belongs to the handshake.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=WINDOW)
    protocol = asyncio.StreamReaderProtocol(reader)
    transport = await loop.start_tls(
        outer.transport,
        protocol,
        identity.context(server=name is None),
        server_side=name is None,
        server_hostname=name,
        ssl_handshake_timeout=seconds,
        ssl_shutdown_timeout=1.0,
    )
    if not isinstance(transport, asyncio.Transport):  # None: closed without a word
        raise ConnectionResetError
    protocol.connection_made(transport)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


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


def who(writer: asyncio.StreamWriter) -> tuple[list[str], str]:
    """Host names and fingerprint of the other side's certificate."""
    shown = writer.get_extra_info("ssl_object")
    names = (shown.getpeercert() or {}).get("subjectAltName", ())
    print_ = hashlib.sha256(shown.getpeercert(binary_form=True) or b"").hexdigest()
    return [str(name) for kind, name in names if kind == "DNS"], print_


def host(writer: asyncio.StreamWriter) -> str:
    """Where the other side is."""
    return str((writer.get_extra_info("peername") or ["?"])[0])


def reason(error: BaseException) -> str:
    """Why TLS failed, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        why = (error.reason or type(error).__name__).lower().replace("_", " ")
        return f"its certificate is refused ({why})" if "certificate" in why else f"TLS: {why}"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
