"""The downloader against a server on the loopback interface."""

from __future__ import annotations

import bz2
import hashlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ccmac.errors import InputError
from ccmac.paper.data import loading
from ccmac.paper.data.registry import KnownSet

TEXT = b"".join(b"%d %d:1 %d:1\n" % (1 - 2 * (i % 2), 1 + i % 7, 9 + i % 5) for i in range(20_000))
PLAIN = KnownSet(
    "toy", 20_000, 20, remote="toy", title="toy", sha256=hashlib.sha256(TEXT).hexdigest()
)
PACKED = replace(PLAIN, remote="toy.bz2")


@dataclass
class Site:
    """What the server serves, where it cuts, and how often it was asked."""

    files: dict[str, bytes] = field(default_factory=dict)
    cut: int | None = None
    asked: int = 0
    url: str = ""


class Handler(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self) -> None:
        content = self.site.files.get(self.path.lstrip("/"))
        self.site.asked += 1
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: self.site.cut])

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test output quiet."""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    # A proxy of the environment would not reach this machine's loopback interface.
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    served = Site(files={"toy": TEXT, "toy.bz2": bz2.compress(TEXT)})
    handler = type("BoundHandler", (Handler,), {"site": served})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        served.url = f"http://127.0.0.1:{server.server_address[1]}/"
        yield served
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("record", [PLAIN, PACKED])
def test_a_file_arrives_whole(site: Site, tmp_path: Path, record: KnownSet) -> None:
    path = loading.fetch(record, tmp_path / "new" / "cache", base_url=site.url)
    assert path.read_bytes() == site.files[record.remote]


def test_a_broken_transfer_leaves_nothing(site: Site, tmp_path: Path) -> None:
    site.cut = 100_000
    with pytest.raises(InputError, match=r"cannot download .*try again"):
        loading.fetch(PLAIN, tmp_path, base_url=site.url)
    assert not (tmp_path / "toy").exists()


@pytest.mark.parametrize("record", [PLAIN, PACKED])
def test_what_is_not_the_set_is_refused_and_nothing_stays(
    site: Site, tmp_path: Path, record: KnownSet
) -> None:
    site.files = {"toy": TEXT.replace(b"9:1", b"9:2", 1), "toy.bz2": b"<html>maintenance</html>"}
    with pytest.raises(InputError, match="is not the set on record"):
        loading.fetch(record, tmp_path, base_url=site.url)
    assert [place.name for place in tmp_path.iterdir()] == [f"{record.remote}.lock"]


def test_a_set_without_a_checksum_is_not_downloaded(site: Site, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no checksum is on record"):
        loading.fetch(replace(PACKED, sha256=None), tmp_path, base_url=site.url)
    assert not site.asked


def test_a_missing_file_says_what_to_do(site: Site, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"404.*set CCMAC_DATA .*look-alike"):
        loading.fetch(replace(PLAIN, remote="gone"), tmp_path, base_url=site.url)


def test_an_unreachable_server_says_what_to_do(site: Site, tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as idle:
        port = idle.server_address[1]
    with pytest.raises(InputError, match=r"cannot download .*set CCMAC_DATA"):
        loading.fetch(PLAIN, tmp_path, base_url=f"http://127.0.0.1:{port}/")


def test_a_directory_that_cannot_be_made_is_named(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot store toy in"):
        loading.fetch(PLAIN, tmp_path / "file" / "cache", base_url=site.url)


def test_processes_that_ask_together_download_once(site: Site, tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(loading.fetch, PLAIN, tmp_path, base_url=site.url) for _ in range(3)]
        assert {job.result().read_bytes() for job in jobs} == {TEXT}
    assert site.asked == 1
