"""The downloader against a server on the loopback interface that misbehaves on request."""

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
    """What the server serves, how it fails, and what it was asked."""

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    cuts: list[int] = field(default_factory=list)
    asked: list[str | None] = field(default_factory=list)
    url: str = ""
    moved: str = ""


class Handler(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self) -> None:
        content = self.site.files.get(self.path.lstrip("/"))
        wanted = self.headers.get("Range")
        self.site.asked.append(wanted)
        if self.site.moved:
            self.send_response(302)
            self.send_header("Location", self.site.moved)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if content is None:
            self.send_error(404)
            return
        start = 0
        if wanted and self.site.ranges:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        body = content[start:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        cut = self.site.cuts.pop(0) if self.site.cuts else len(body)
        self.wfile.write(body[:cut])

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test output quiet."""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(loading, "_PAUSE", 0.0)
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
    assert not path.with_name(f"{record.remote}.part").exists()


def test_a_broken_transfer_is_continued_in_the_same_call(site: Site, tmp_path: Path) -> None:
    site.cuts = [100_000, 50_000]
    path = loading.fetch(PLAIN, tmp_path, base_url=site.url)
    assert path.read_bytes() == TEXT
    assert site.asked == [None, "bytes=100000-", "bytes=150000-"]


def test_a_broken_transfer_is_continued_in_the_next_call(site: Site, tmp_path: Path) -> None:
    site.cuts = [70_000, 0, 0, 0]
    with pytest.raises(InputError, match=r"broke off .*run again to continue"):
        loading.fetch(PLAIN, tmp_path, base_url=site.url)
    assert (tmp_path / "toy.part").stat().st_size == 70_000
    assert not (tmp_path / "toy").exists()
    loading.fetch(PLAIN, tmp_path, base_url=site.url)
    assert (tmp_path / "toy").read_bytes() == TEXT
    assert site.asked[-1] == "bytes=70000-"


def test_a_server_without_ranges_sends_all_again(site: Site, tmp_path: Path) -> None:
    site.ranges = False
    site.cuts = [1_000]
    path = loading.fetch(PLAIN, tmp_path, base_url=site.url)
    assert path.read_bytes() == TEXT
    assert site.asked == [None, "bytes=1000-"]


def test_a_complete_partial_file_is_taken_as_it_is(site: Site, tmp_path: Path) -> None:
    (tmp_path / "toy.part").write_bytes(TEXT)
    assert loading.fetch(PLAIN, tmp_path, base_url=site.url).read_bytes() == TEXT


def test_a_partial_file_longer_than_the_original_is_dropped(site: Site, tmp_path: Path) -> None:
    (tmp_path / "toy.part").write_bytes(TEXT + b"more")
    assert loading.fetch(PLAIN, tmp_path, base_url=site.url).read_bytes() == TEXT


def test_a_wrong_checksum_is_refused_and_nothing_stays(site: Site, tmp_path: Path) -> None:
    site.files["toy"] = TEXT.replace(b"9:1", b"9:2", 1)
    with pytest.raises(InputError, match=r"not the set on record \(sha256 .*deleted"):
        loading.fetch(PLAIN, tmp_path, base_url=site.url)
    assert not (tmp_path / "toy").exists()
    assert not (tmp_path / "toy.part").exists()


def test_a_stale_partial_file_is_noticed_by_the_checksum(site: Site, tmp_path: Path) -> None:
    (tmp_path / "toy.part").write_bytes(b"?" * 500)
    with pytest.raises(InputError, match="not the set on record"):
        loading.fetch(PLAIN, tmp_path, base_url=site.url)
    assert loading.fetch(PLAIN, tmp_path, base_url=site.url).read_bytes() == TEXT


def test_a_page_in_place_of_an_archive_is_refused(site: Site, tmp_path: Path) -> None:
    site.files["toy.bz2"] = b"<html>maintenance</html>"
    with pytest.raises(InputError, match="does not decompress"):
        loading.fetch(PACKED, tmp_path, base_url=site.url)
    assert not (tmp_path / "toy.bz2").exists()


def test_a_set_without_a_checksum_is_not_downloaded(site: Site, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no checksum is on record"):
        loading.fetch(replace(PACKED, sha256=None), tmp_path, base_url=site.url)
    assert not site.asked


@pytest.mark.parametrize("url", ["http://example.org/", "ftp://example.org/", "file:///etc/"])
def test_only_https_is_asked(tmp_path: Path, url: str) -> None:
    with pytest.raises(InputError, match="is not https"):
        loading.fetch(PLAIN, tmp_path, base_url=url)


@pytest.mark.parametrize(
    "url", ["http://example.org/toy", "ftp://example.org/toy", "file:///etc/x"]
)
def test_a_redirection_must_stay_secure(site: Site, tmp_path: Path, url: str) -> None:
    site.moved = url
    with pytest.raises(InputError, match=r"cannot download|is not https"):
        loading.fetch(PLAIN, tmp_path, base_url=site.url)
    assert len(site.asked) == 1
    assert not (tmp_path / "toy").exists()


def test_https_does_not_become_http() -> None:
    with pytest.raises(InputError, match="is not https"):
        loading._check_secure("https://example.org/toy", "http://127.0.0.1/toy")
    loading._check_secure("https://example.org/toy", "https://mirror.example.org/toy")


def test_a_download_without_end_is_stopped(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "LIMIT", 1000)
    with pytest.raises(InputError, match="goes on after 1,000 bytes"):
        loading.fetch(PLAIN, tmp_path, base_url=site.url)


def test_a_missing_file_says_what_to_do(site: Site, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"404 .*set CCMAC_DATA .*look-alike"):
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
    assert site.asked == [None]
