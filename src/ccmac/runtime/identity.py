"""Who somebody is, by certificates: one's own at the start, others' end to end.

TLS proves who a neighbor is. What reaches an agent through other hands, such as the keys of masked
sums, carries a signature with the certificate of the owner whose it is (:meth:`Identity.sign`); the
receiver holds it against the authority and the agent's name (:meth:`Identity.check`).
"""

from __future__ import annotations

import datetime
import os
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ccmac.errors import InputError, PeerLost
from ccmac.runtime.credentials import Credentials
from ccmac.texts import MEGABYTE, open_file

SOON = 30  # days before its end at which a certificate is mentioned
STEPS = 4  # certificates between an owner's and the authority's, at most


class Identity:
    """The owner's own certificate, and the authority's judgement of others."""

    def __init__(self, credentials: Credentials, revoked: Collection[str] = ()) -> None:
        self.credentials = credentials
        self.revoked = frozenset(print_.replace(":", "").lower() for print_ in revoked)

    def check_own(self, name: str) -> str | None:
        """Refuse one's own certificate or key where others would; a line where it ends soon."""
        place = self.credentials.certificate
        key = self.credentials.key
        chain = certificates(place)
        if why := self.refusal(name, chain):
            raise InputError(f"{place}: {why}")
        if os.name == "posix" and os.stat(key).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise InputError(f"{key}: others may read it; do: chmod 600 {key}")
        days = (chain[0].not_valid_after_utc - datetime.datetime.now(datetime.UTC)).days
        return f"the certificate {place} expires in {days} days" if days < SOON else None

    def refusal(self, name: str, chain: list[Any]) -> str | None:
        """Why a certificate, with those that vouch for it, is not good for ``name`` now."""
        leaf = chain[0]
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
        if not _issued(chain, certificates(self.credentials.authority)):
            return f"is not signed by {self.credentials.authority}"
        if fingerprint(leaf) in self.revoked:
            return "is revoked by the public file; take a new certificate"
        if not both_usages(leaf):
            return "is not for clients and servers; ask for both usages"
        return None

    def sign(self, statement: bytes) -> bytes:
        """A signature of the owner's key, and the certificates by which it is checked."""
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key: Any = load_pem_private_key(read(self.credentials.key), None)
        signature: bytes = key.sign(statement, *_scheme(key))
        return len(signature).to_bytes(2, "big") + signature + read(self.credentials.certificate)

    def check(self, name: str, statement: bytes, proof: bytes) -> None:
        """ValueError where the proof is not the signature of the owner with this name."""
        from cryptography import x509
        from cryptography.exceptions import InvalidSignature

        end = 2 + int.from_bytes(proof[:2], "big")
        chain = x509.load_pem_x509_certificates(proof[end:])
        if why := self.refusal(name, chain):
            raise ValueError(why)
        key: Any = chain[0].public_key()
        try:
            key.verify(proof[2:end], statement, *_scheme(key))
        except InvalidSignature:
            raise ValueError("of another text") from None

    def vouch(self, agent: int, name: str, statement: bytes, proof: bytes) -> None:
        """The same as a line that names the agent."""
        try:
            self.check(name, statement, proof)
        except (ValueError, TypeError, AttributeError) as error:
            raise PeerLost(
                f"agent {agent}: the key of its masks is not signed by its certificate ({error}); "
                "somebody on the way may have put another in its place"
            ) from None


def read(path: str) -> bytes:
    """A certificate or key, which is short."""
    with open_file(Path(path)) as stream:
        return stream.read(MEGABYTE + 1)


def certificates(path: str) -> list[Any]:
    """All in a file; InputError where there is none."""
    try:
        from cryptography import x509

        return x509.load_pem_x509_certificates(read(path))
    except ImportError as error:
        raise InputError(f"needs cryptography ({error}); pip install 'ccmac[owners]'") from None
    except (OSError, ValueError):
        raise InputError(f"{path}: is no certificate (PEM); make some with: ccmac keys") from None


def names_of(certificate: Any) -> list[str]:
    """The host names that it is for; addresses of other kinds do not count."""
    from cryptography import x509

    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return list(found.value.get_values_for_type(x509.DNSName))


def fingerprint(certificate: Any) -> str:
    """SHA-256 of the certificate, as a list of revoked ones has it."""
    from cryptography.hazmat.primitives import hashes

    return bytes(certificate.fingerprint(hashes.SHA256())).hex()


def both_usages(certificate: Any) -> bool:
    """Whether it may be shown by clients and by servers: it says so, or says nothing."""
    from cryptography import x509

    try:
        found = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    usages = x509.oid.ExtendedKeyUsageOID
    return usages.CLIENT_AUTH in found and usages.SERVER_AUTH in found


def _issued(chain: list[Any], roots: list[Any]) -> bool:
    """Whether an authority's signature stands at the end of the chain."""
    for below, above in zip(chain[:STEPS], [*chain[1:STEPS], None], strict=True):
        if any(_signed_by(below, root) for root in roots):
            return True
        if above is None or not _signed_by(below, above):
            return False
    return False


def _signed_by(certificate: Any, issuer: Any) -> bool:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    try:
        certificate.verify_directly_issued_by(issuer)
        basic = issuer.extensions.get_extension_for_class(x509.BasicConstraints)
    except (InvalidSignature, ValueError, TypeError, x509.ExtensionNotFound):
        return False
    return bool(basic.value.ca)


def _scheme(key: Any) -> tuple[Any, ...]:
    """How a key of this kind signs, private or public."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

    if isinstance(key, ec.EllipticCurvePrivateKey | ec.EllipticCurvePublicKey):
        return (ec.ECDSA(hashes.SHA256()),)
    if isinstance(key, rsa.RSAPrivateKey | rsa.RSAPublicKey):
        return padding.PKCS1v15(), hashes.SHA256()
    return ()
