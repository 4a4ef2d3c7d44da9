"""What an owner sees of its run: lines, and a log of JSON lines."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ccmac.runtime.links import Links
from ccmac.texts import plain


class RunStatus:
    """Facts of a run, as they come; shown where somebody has asked for them."""

    def __init__(self, log: Path | None = None) -> None:
        self.facts: dict[str, Any] = {"phase": "waiting for neighbors", "iteration": 0}
        self._log = log
        self._begun = self._shown = self._logged = time.monotonic()

    @contextmanager
    def of(self, links: Links) -> Iterator[None]:
        """While these links are used."""
        self._said = links.say
        links.say = self._say
        self._write("begun")
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

    def _say(self, line: str) -> None:
        self._said(line)
        self._write("line", text=line)

    def _write(self, kind: str, **facts: Any) -> None:
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as stream:
                entry = {"time": time.time(), "event": kind, **plain(facts)}
                stream.write(json.dumps(entry) + "\n")
