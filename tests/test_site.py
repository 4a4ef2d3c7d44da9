"""The site in a browser: nothing overflows, all can be read, nothing is fetched."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
WIDTHS = (390, 1280)
LEAST_CONTRAST = 4.5
LOOK = (Path(__file__).parent / "look.html").read_text(encoding="utf-8")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
pytestmark = pytest.mark.browser


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a warning is an error."""
    if (
        importlib.util.find_spec("material") is None
        or importlib.util.find_spec("mkdocstrings") is None
    ):
        pytest.skip("needs the docs extra")
    target = tmp_path_factory.mktemp("site")
    build = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert build.returncode == 0, build.stderr
    return target


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The site on a port of this machine."""
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_every_page_fits_and_can_be_read(site: Path, address: str, tmp_path: Path) -> None:
    pages = sorted(str(path.relative_to(site)) for path in site.rglob("*.html"))
    pages = [name for name in pages if name != "404.html"]
    assert len(pages) > 50
    look = LOOK.replace("PAGES", json.dumps(pages)).replace("WIDTHS", json.dumps(WIDTHS))
    (site / "look.html").write_text(look.replace("LEAST", str(LEAST_CONTRAST)), encoding="utf-8")
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    options = ["headless", "no-sandbox", "disable-gpu", "dump-dom", f"user-data-dir={tmp_path}"]
    options += ["virtual-time-budget=900000", "window-size=1400,1000"]
    options += ["host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    command = [browser, *(f"--{option}" for option in options), f"{address}/look.html"]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=400, check=True).stdout
    out = re.search(r"<pre id=.out.>looked(.*?)</pre>", dom, re.DOTALL)
    assert out is not None, dom[:500]
    assert json.loads(out[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")) == []


def test_nothing_names_another_machine_to_fetch_from(site: Path) -> None:
    fetching = re.compile(
        r"(?:src|href)=.https?://[^ >]*\.(?:js|css|woff2?|png|svg)|url\(.?https?:"
    )
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        assert not fetching.findall(path.read_text(encoding="utf-8")), path.name
