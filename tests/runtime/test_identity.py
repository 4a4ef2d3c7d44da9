"""Certificates refused, renewed and revoked; keys of masked sums that somebody replaces."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.cli.main import main
from ccmac.errors import PeerLost
from ccmac.runtime.distributed import Distributed
from ccmac.runtime.links import Links
from ccmac.runtime.masked import as_floats, as_key
from ccmac.runtime.owners import Owners, between_owners
from ccmac.runtime.tls import Identity, certificates, fingerprint
from ccmac.storage import keys as made
from owners import Neighborhood, at_once, by_mail, expired, for_servers, replaced

pytest.importorskip("cryptography")
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

RUNS = int(os.environ.get("CCMAC_OWNER_RUNS", "1"))


def averages(links: Links, network: ccmac.Network, rounds: int = 3) -> list[float]:
    runtime = between_owners(links, network, "masked")
    return [float(runtime.average(np.full((1, 2), links.me + k))[0, 0]) for k in range(rounds)]


# -- keys of masked sums ---------------------------------------------------------------------------
class Cheat(Owners):
    """A neighbor that passes a masking key of its own on in place of agent 0's.

    ``proof``: with its own certificate's signature in place of agent 0's.
    """

    proof = False
    replaced = 0

    def _exchange(self, sent: Any, received: Any) -> None:
        sent = [(peer, self._changed(array)) for peer, array in sent]
        super()._exchange(sent, received)

    def _changed(self, array: Any) -> Any:
        mine = X25519PrivateKey.generate().public_key().public_bytes_raw()
        changed = array.copy()
        for row in changed.reshape(-1, array.shape[-1]) if array.ndim == 2 else []:
            if len(row) > 1000 and row[0]:  # a key and its proof
                row[:8] = as_floats(mine)
                self.replaced += 1
                if self.proof:
                    signed = self.links.identity.sign(b"ccmac: agent 0 masks with " + mine)
                    told = len(signed).to_bytes(4, "little") + signed
                    row[8:-1] = as_floats(told.ljust(4 * (len(row) - 9)))
        return changed


@pytest.mark.parametrize("proof", [False, True], ids=["another key", "and another signature"])
@pytest.mark.parametrize("run", range(RUNS))
def test_a_neighbor_that_replaces_masking_keys_is_found(
    tmp_path: Path, run: int, proof: bool
) -> None:
    """On a path of four, agent 1 stands between agent 0 and the others."""
    path = Neighborhood(tmp_path / "keys", ccmac.Network.path(4))

    def one(i: int) -> Any:
        with path.links(i) as links:
            links.start()
            transport = (Cheat if i == 1 else Owners)(links, 4)
            if isinstance(transport, Cheat):
                transport.proof = proof
                cheats.append(transport)
            runtime = Distributed(path.network, transport, averaging="masked")
            return runtime.average(np.ones((1, 2)))

    cheats: list[Cheat] = []
    found = at_once(one, range(4))
    assert cheats[0].replaced
    for i in (2, 3):
        assert isinstance(found[i], PeerLost)
        assert "the key of its masks is not signed by its certificate" in str(found[i])
    assert isinstance(found[0], PeerLost)  # it is not masked for them


def test_keys_travel_as_numbers_without_loss() -> None:
    key = bytes(range(32))
    assert as_key(np.array(as_floats(key))) == key


# -- certificates that are refused -----------------------------------------------------------------
@pytest.mark.parametrize("run", range(RUNS))
@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("another authority", "its certificate is refused"),
        ("expired", "its certificate is refused (certificate has expired)"),
        ("wrong name", "refused agent-7 at 127.0.0.1: is no neighbor of this agent"),
        ("mail", "refused a certificate without a name at 127.0.0.1"),
        ("no client", "its certificate is refused (unsuitable certificate purpose)"),
        ("revoked", "refused agent 1: shows a certificate that is revoked"),
    ],
)
def test_certificates_that_are_refused_on_both_sides(
    tmp_path: Path, kind: str, says: str, run: int
) -> None:
    folder = tmp_path / "keys"
    pair = Neighborhood(folder, ccmac.Network.path(2))
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    revoked = []
    if kind == "another authority":
        made.make_keys(tmp_path / "foreign", ["agent-1"])
        for ending in ("crt", "key"):
            shutil.copy(tmp_path / "foreign" / f"agent-1.{ending}", other / f"agent-1.{ending}")
    elif kind == "revoked":
        revoked = [fingerprint(certificates(str(other / "agent-1.crt"))[0]).upper()]
    else:
        change = {"expired": expired, "no client": for_servers, "mail": by_mail}.get(kind)
        name = "agent-7" if kind == "wrong name" else "agent-1"
        replaced(other, name, change or (lambda built: built), "agent-1")

    def one(i: int) -> Any:
        identity = pair.identity(i, *([other, ()] if i else [folder, revoked]))
        with pair.links(i, wait=1.0, patience=1.0, identity=identity) as links:
            links.start()

    found = at_once(one, range(2))
    assert all("did not come" in str(error) for error in found.values()), found
    assert says in " | ".join(pair.said[0])
    assert "refused us" in " | ".join(pair.said[1])


def test_the_end_of_a_certificate_is_seen_a_month_ahead(tmp_path: Path) -> None:
    made.make_keys(tmp_path, ["agent-1"], 20)
    made.make_keys(tmp_path, ["agent-2"], 40)
    for name, says in (("agent-1", "expires in 19 days"), ("agent-2", None)):
        files = [str(tmp_path / f) for f in (f"{name}.crt", f"{name}.key", "authority.crt")]
        line = Identity(*files).check_own(name)
        assert line is None if says is None else says in str(line)


def test_a_renewed_certificate_counts_from_the_next_connection(tmp_path: Path) -> None:
    """Certificates and keys of both sides are replaced during the run; nothing is lost."""
    pair = Neighborhood(tmp_path / "keys", ccmac.Network.path(2))
    made.make_keys(tmp_path / "new", ["other"])
    for ending in ("crt", "key"):
        shutil.copy(pair.folder / f"authority.{ending}", tmp_path / "new" / f"authority.{ending}")
    made.make_keys(tmp_path / "new", ["agent-0", "agent-1"])
    seen = threading.Barrier(2, timeout=20)

    def one(i: int) -> Any:
        with pair.links(i) as links:
            links.start()
            before = averages(links, pair.network)
            for ending in ("key", "crt"):  # for a moment they do not fit
                place = pair.folder / f"agent-{i}.{ending}"
                place.write_bytes((tmp_path / "new" / f"agent-{i}.{ending}").read_bytes())
            peer = links.links[1 - i]
            if i == 1 and peer.writer is not None:
                links.loop.call_soon_threadsafe(peer.writer.transport.abort)
            after = averages(links, pair.network)
            assert links._until(lambda: peer.connections > 1 and peer.writer is not None, 20.0)
            shown = peer.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            seen.wait()
            return before == after, fingerprint(x509.load_der_x509_certificate(shown))

    found = at_once(one, range(2))
    for i in range(2):
        [new] = certificates(str(tmp_path / "new" / f"agent-{1 - i}.crt"))
        assert found[i] == (True, fingerprint(new))


# -- the commands ----------------------------------------------------------------------------------
def test_a_request_is_signed_shown_and_renewed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine"
    authority = str(tmp_path / "authority")
    assert main(["keys", "request", str(mine), "--name", "north.example"]) == 0
    key = (mine / "north.example.key").read_bytes()
    request = str(mine / "north.example.csr")
    assert main(["keys", "sign", authority, request, "--days", "99999"]) == 2  # no such number
    for _ in range(2):
        assert main(["keys", "sign", authority, request, "--days", "36500"]) == 0
    assert main(["keys", "request", str(mine), "--name", "north.example"]) == 0
    assert (mine / "north.example.key").read_bytes() == key
    capsys.readouterr()
    assert main(["keys", "show", str(mine / "north.example.crt")]) == 0
    said = capsys.readouterr().out
    assert "north.example" in said
    assert "clients and servers" in said
    [leaf] = certificates(str(mine / "north.example.crt"))
    [root] = certificates(f"{authority}/authority.crt")
    assert leaf.not_valid_after_utc <= root.not_valid_after_utc
    (mine / "bad.csr").write_bytes((mine / "north.example.csr").read_bytes()[:-60])
    assert main(["keys", "sign", authority, str(mine / "bad.csr")]) == 2
    assert "is no request" in capsys.readouterr().err
