"""Keys, requests for certificates, and a small authority that signs them.

For a trial one person may make everything. Otherwise every owner keeps a key of its own
(:func:`request`) and has its certificate signed by an authority that all owners trust
(:func:`sign`); its name (subjectAltName) is what the neighbors expect, ``agent-3`` by default.
Whoever has the authority's key can admit anybody.
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ccmac.errors import InputError
from ccmac.runtime.tls import both_usages, certificates, fingerprint, names_of, read
from ccmac.storage.files import atomic_write
from ccmac.storage.owner import DAYS
from ccmac.texts import shown

try:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        load_pem_private_key,
    )
except ImportError as error:
    hint = "install it with: pip install 'ccmac[owners]'"
    raise InputError(f"certificates cannot be made ({error}); {hint}") from None

AUTHORITY = "authority"
AUTHORITY_DAYS = 3650  # and no certificate outlives it
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def make_keys(directory: Path, names: Sequence[str], days: int = DAYS) -> list[Path]:
    """``authority.crt``, ``authority.key`` and NAME.crt, NAME.key for every name.

    An authority that is there already is used again, no file is ever replaced.
    """
    _check_names(names)
    for file in (directory / f"{name}{ending}" for name in names for ending in (".crt", ".key")):
        if os.path.lexists(file):
            raise InputError(f"{file}: is there already; choose another directory")
    issuer, signer, written = _authority(directory)
    for name in names:
        own = _new_key()
        signed = _signed(_certificate(name, own.public_key(), issuer, days), signer)
        written += _write(directory / f"{name}.key", own)
        written += _write(directory / f"{name}.crt", signed)
    return written


def request(directory: Path, name: str) -> list[Path]:
    """NAME.key, which stays with its owner, and NAME.csr, which the authority signs.

    A key that is there already is used again: a certificate is renewed by the same request.
    """
    _check_names([name])
    place = directory / f"{name}.key"
    written = []
    if os.path.lexists(place):
        own = _load_key(place)
    else:
        own = _new_key()
        written = _write(place, own)
    asked = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(_subject(name))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), False)
    )
    return written + _write(directory / f"{name}.csr", _signed(asked, own))


def sign(authority: Path, file: Path, days: int = DAYS) -> list[Path]:
    """NAME.crt next to NAME.csr, signed by the authority in that folder, which is made if need be.

    The certificate replaces an earlier one of the same name.
    """
    try:
        asked = x509.load_pem_x509_csr(read(file))
        [name] = names_of(asked)
        genuine = asked.is_signature_valid
    except (OSError, ValueError):
        genuine = False
        name = ""
    if not genuine:
        raise InputError(f"{file}: is no request for one name; make one with: ccmac keys request")
    _check_names([name])
    issuer, signer, written = _authority(authority)
    signed = _signed(_certificate(name, asked.public_key(), issuer, days), signer)
    return written + _write(file.with_suffix(".crt"), signed)


def described(file: Path) -> str:
    """What a certificate or a request says, in a few lines."""
    now = datetime.datetime.now(datetime.UTC)
    lines = []
    for one in certificates(str(file)):
        left = (one.not_valid_after_utc - now).days
        usable = "clients and servers" if both_usages(one) else "not both clients and servers"
        lines += [
            f"names        {', '.join(names_of(one)) or 'none'}",
            f"signed by    {one.issuer.rfc4514_string()}",
            f"valid        {one.not_valid_before_utc:%Y-%m-%d %H:%M} to "
            f"{one.not_valid_after_utc:%Y-%m-%d %H:%M} UTC, {left} days left",
            f"usage        {usable}",
            f"fingerprint  {fingerprint(one)}",
        ]
    return "\n".join(lines)


def _check_names(names: Sequence[str]) -> None:
    """Plain names, for files as for certificates."""
    for name in names:
        if not NAME.fullmatch(name) or name == AUTHORITY or names.count(name) > 1:
            raise InputError(
                f"keys: the name {shown(name)} cannot be used; give different ones of at most 64 "
                "letters, digits, dots and dashes"
            )


def _authority(directory: Path) -> tuple[Any, Any, list[Path]]:
    """(certificate, key, files written) of the authority in a folder; it is made once."""
    certificate = directory / f"{AUTHORITY}.crt"
    key = directory / f"{AUTHORITY}.key"
    if not (os.path.lexists(certificate) or os.path.lexists(key)):
        signer = _new_key()
        issuer = _signed(_certificate("", signer.public_key(), None, AUTHORITY_DAYS), signer)
        return issuer, signer, [*_write(key, signer), *_write(certificate, issuer)]
    try:
        signer = _load_key(key)
        issuer = x509.load_pem_x509_certificate(read(certificate))
        if issuer.public_key() != signer.public_key():
            raise ValueError
        _signed(_certificate("trial", signer.public_key(), issuer, 1), signer)
    except (OSError, ValueError, TypeError, InputError):
        raise InputError(
            f"{certificate}: it or its key {key} is missing, damaged or of another kind than "
            "ccmac keys makes; choose another directory"
        ) from None
    return issuer, signer, []


def _load_key(path: Path) -> Any:
    try:
        return load_pem_private_key(read(path), None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm):
        raise InputError(f"{path}: is no private key without a password") from None


def _new_key() -> Any:
    return ec.generate_private_key(ec.SECP256R1())


def _subject(name: str) -> Any:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _signed(builder: Any, key: Any) -> Any:
    return builder.sign(key, hashes.SHA256())


def _certificate(name: str, key: Any, issuer: Any, days: int) -> Any:
    """A certificate of an authority (``issuer`` None) or of an agent, not yet signed."""
    root = issuer is None
    subject = _subject("ccmac trial authority" if root else name)
    now = datetime.datetime.now(datetime.UTC)
    end = now + datetime.timedelta(days=days)
    unused = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    usage = dict.fromkeys([*unused, "encipher_only", "decipher_only"], False)
    usage |= {"digital_signature": not root, "key_cert_sign": root, "crl_sign": root}
    above = key if root else issuer.public_key()
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if root else issuer.subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(end if root else min(end, issuer.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=root, path_length=0 if root else None), True)
        .add_extension(x509.KeyUsage(**usage), True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(above), False)
    )
    if root:
        return built
    usages = x509.oid.ExtendedKeyUsageOID
    both = x509.ExtendedKeyUsage([usages.CLIENT_AUTH, usages.SERVER_AUTH])
    named = built.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), False)
    return named.add_extension(both, False)


def _write(path: Path, made: Any) -> list[Path]:
    """A certificate or a request; a key, for its owner's eyes only from its first byte on."""
    private = hasattr(made, "private_bytes")
    if private:
        text = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    else:
        text = made.public_bytes(Encoding.PEM)
    atomic_write(path, text, private=private)
    return [path]
