"""A relay's file of settings."""

from __future__ import annotations

import math
import socket
from pathlib import Path

import msgspec

from ccmac.errors import InputError
from ccmac.runtime.credentials import Credentials, listening
from ccmac.runtime.identity import Identity, certificates
from ccmac.runtime.relay import Relay
from ccmac.storage.owner import address, read_toml


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``relay.toml``: paths are relative to the file."""

    listen: str
    authority: str
    names: list[str] = []
    revoked: list[str] = []
    rate: float = 1e8
    connections: int = 200


def read_relay(file: Path) -> tuple[Relay, socket.socket]:
    """The relay and where it listens, both checked."""
    said = read_toml(file, Settings)
    if not (0 < said.rate < math.inf and said.connections > 1):
        raise InputError(f"{file}: rate and connections must be positive numbers")
    authority = str(file.parent / said.authority)
    certificates(authority)
    relay = Relay(
        Identity(Credentials("", "", authority), said.revoked),
        names=said.names,
        rate=said.rate,
        connections=said.connections,
    )
    return relay, listening(address(file, said.listen))
