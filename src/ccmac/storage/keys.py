"""A small authority and certificates for a trial: whoever has the authority's key can admit agents.

For a trial one person may make them all. Otherwise every owner keeps a key of its own, and has its
certificate signed by an authority that all owners trust; its name (subjectAltName) is what the
neighbors expect, ``agent-3`` by default.
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ccmac.errors import InputError
from ccmac.storage.files import atomic_write
from ccmac.texts import MEGABYTE, open_file, shown

AUTHORITY = "authority"
DAYS = 90
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
HINT = "install it with: pip install 'ccmac[owners]'"


def make_keys(directory: Path, names: Sequence[str], days: int = DAYS) -> list[Path]:
    """``authority.crt``, ``authority.key`` and NAME.crt, NAME.key for every name.

    An authority that is there already is used again, no file is ever replaced.
    """
    try:
        from cryptography import x509
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError as error:
        raise InputError(f"certificates cannot be made ({error}); {HINT}") from None

    for name in names:  # a plain name, for files as for certificates
        if not NAME.fullmatch(name) or name == AUTHORITY or names.count(name) > 1:
            raise InputError(
                f"keys: the name {shown(name)} cannot be used; give different ones of at most 64 "
                "letters, digits, dots and dashes"
            )
    for file in (directory / f"{name}{ending}" for name in names for ending in (".crt", ".key")):
        if os.path.lexists(file):
            raise InputError(f"{file}: is there already; choose another directory")
    certificate = directory / f"{AUTHORITY}.crt"
    key = directory / f"{AUTHORITY}.key"
    written = []
    if os.path.lexists(certificate) or os.path.lexists(key):
        try:
            signer: Any = load_pem_private_key(_read(key), None)
            issuer = x509.load_pem_x509_certificate(_read(certificate))
            if issuer.public_key() != signer.public_key():
                raise ValueError
            _builder(AUTHORITY, issuer, signer, days).sign(signer, hashes.SHA256())
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm):
            raise InputError(
                f"{certificate}: it or its key {key} is missing, damaged or of another kind than "
                "ccmac keys makes; choose another directory"
            ) from None
    else:
        signer = _new_key()
        issuer = _builder("ccmac trial authority", None, signer, days).sign(signer, hashes.SHA256())
        written += _write(directory, AUTHORITY, issuer, signer)
    for name in names:
        own = _new_key()
        signed = _builder(name, issuer, own, days).sign(signer, hashes.SHA256())
        written += _write(directory, name, signed, own)
    return written


def _read(path: Path) -> bytes:
    """A certificate or a key, which is short."""
    with open_file(path) as stream:
        return stream.read(MEGABYTE + 1)


def _new_key() -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _builder(name: str, issuer: Any, key: Any, days: int) -> Any:
    """A certificate of an authority (``issuer`` None) or of an agent, not yet signed."""
    from cryptography import x509

    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    root = issuer is None
    unused = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    usage = dict.fromkeys([*unused, "encipher_only", "decipher_only"], False)
    usage |= {"digital_signature": not root, "key_cert_sign": root, "crl_sign": root}
    above = key.public_key() if root else issuer.public_key()
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if root else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=root, path_length=0 if root else None), True)
        .add_extension(x509.KeyUsage(**usage), True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(above), False)
    )
    if root:
        return built
    return built.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), False)


def _write(directory: Path, name: str, certificate: Any, key: Any) -> list[Path]:
    """Both files; the key for the owner's eyes only, from its first byte on."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    public = directory / f"{name}.crt"
    private = directory / f"{name}.key"
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    atomic_write(private, secret, private=True)
    atomic_write(public, certificate.public_bytes(Encoding.PEM))
    return [public, private]
