"""What an owner sees of its run: lines, a log of JSON lines, a page and metrics for Prometheus."""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ccmac.errors import InputError
from ccmac.page import document, wide
from ccmac.runtime.links import Links
from ccmac.show import table
from ccmac.texts import plain


class RunStatus:
    """Facts of a run, as they come; shown where somebody has asked for them."""

    def __init__(self, log: Path | None = None, address: tuple[str, int] | None = None) -> None:
        self.facts: dict[str, Any] = {"phase": "waiting for neighbors", "iteration": 0}
        self._log = log
        self._address = address
        self._begun = self._shown = self._logged = time.monotonic()

    @contextmanager
    def of(self, links: Links) -> Iterator[None]:
        """While these links are used."""
        self.links = links
        self._said = links.say
        links.say = self._say
        self._write("begun")
        with nullcontext() if self._address is None else _server(self, self._address):
            try:
                yield
            except BaseException as error:
                self._write("failed", text=str(error))
                raise

    def note(self, facts: Mapping[str, Any]) -> None:
        """Something is known of the run."""
        now = time.monotonic()
        self.facts |= {"seconds": now - self._begun, **facts}
        if "phase" in facts:
            self.facts["since"] = self.facts["seconds"]
        if resumed := facts.get("resumed"):
            self._say(f"continues after iteration {resumed}, from its checkpoint")
        step = "iteration" in facts
        if not step or now - self._logged > 1.0:  # seconds between two iterations in the log
            self._logged = now
            self._write("step" if step else "phase", **facts)
        if step and now - self._shown > 10.0 and not sys.stderr.isatty():
            self._shown = now
            self._said(self.line())

    def line(self) -> str:
        """Where the run is."""
        known = self.facts
        parts = [f"iteration {known['iteration']}", f"{known['rounds']:,} rounds"]
        if math.isfinite(known["bound"]):
            parts.append(f"bound {known['bound']:.1e}")
        parts.append(f"{known['bytes'] / 1e3:,.0f} kB sent by the busiest")
        if left := self.left:
            parts.append(f"about {left:.0f} s left by the plan")
        return ", ".join(parts)

    @property
    def left(self) -> float | None:
        """Seconds, where the plan says how many iterations there will be."""
        expected = self.facts.get("expected")
        done = self.facts["iteration"] - self.facts.get("resumed", 0)
        if not done > 0 or expected is None or not math.isfinite(expected):
            return None
        pace = (self.facts["seconds"] - self.facts["since"]) / done
        return float(max(expected - done, 0.0) * pace)

    def page(self) -> str:
        """For a browser: nothing but this text, which comes anew every two seconds."""
        known = {**self.facts, "left": self.left}
        facts = [(name, _readable(value)) for name, value in known.items() if value]
        peers = [(peer.number, peer.name, peer.state) for peer in self.links.links.values()]
        me = self.links.names[self.links.me]
        body = wide("Run", table(("", ""), facts))
        body += wide("Neighbors", table(("agent", "name", "state"), peers))
        return document(f"ccmac: {me}", f"{me}: {known['phase']}", body)

    def metrics(self) -> str:
        """In the text format of Prometheus."""
        lines = []
        for name, value in self.facts.items():
            if isinstance(value, int | float) and math.isfinite(value):
                lines += [f"# TYPE ccmac_{name} gauge", f"ccmac_{name} {float(value)!r}"]
        lines.append("# TYPE ccmac_connected gauge")
        for peer in self.links.links.values():
            there = int(peer.state == "connected")
            lines.append(f'ccmac_connected{{agent="{peer.number}",name="{peer.name}"}} {there}')
        return "\n".join(lines) + "\n"

    def _say(self, line: str) -> None:
        self._said(line)
        self._write("line", text=line)

    def _write(self, kind: str, **facts: Any) -> None:
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as stream:
                entry = {"time": time.time(), "event": kind, **plain(facts)}
                stream.write(json.dumps(entry) + "\n")


def _readable(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3g}" if math.isfinite(value) else "not known yet"


@contextmanager
def _server(status: RunStatus, address: tuple[str, int]) -> Iterator[None]:
    """``/`` is the page, ``/metrics`` are the numbers."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 5

        def do_GET(self) -> None:
            places = {"/": ("text/html", status.page), "/metrics": ("text/plain", status.metrics)}
            if self.path not in places:
                self.send_error(404)
                return
            kind, made = places[self.path]
            body = made().encode()
            self.send_response(200)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Refresh", "2")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    try:
        server = ThreadingHTTPServer(address, Handler)
    except OSError as error:
        where = f"{address[0]}:{address[1]}"
        raise InputError(f"--status {where}: cannot listen there ({error.strerror})") from None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
