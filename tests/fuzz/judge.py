"""Run one input as the shell would, in this process, and judge how it ended.

Right: accepted (exit code 0, 1 or 3), or refused with exit code 2, one short line on standard
error, nothing on standard output and nothing left of an output. Wrong: any exception that escapes,
more than the time or memory allowed, anything else.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import shutil
import signal
import stat
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ccmac.cli import vfl
from ccmac.cli.agent import Owner
from ccmac.cli.main import main
from ccmac.errors import CcmacError
from ccmac.methods.registry import parse
from ccmac.paper.data.loading import read_svmlight
from ccmac.problem import Agent
from ccmac.runtime.credentials import listening
from ccmac.storage.owner import address, neighbors_of
from fuzz.others import OTHERS
from fuzz.targets import TARGETS as FIRST
from fuzz.templates import Templates
from fuzz.thirds import THIRDS

TARGETS = FIRST | OTHERS | THIRDS
SECONDS = 60
LINE = 700


class TooLong(BaseException):
    """The time of one input is over."""


@dataclass(frozen=True)
class Verdict:
    """``code`` of the command; ``fault`` is empty where it ended as it should."""

    code: int
    fault: str
    words: list[str]


def case(target: str, number: int, made: Templates, place: Path) -> Verdict:
    """Input ``number`` of a target, made in the empty folder ``place``."""
    words = TARGETS[target](random.Random(f"{target}:{number}"), place, made)
    before = os.getcwd()
    foreign = place / "used" / "mine.txt"
    kept = foreign.read_bytes() if stat.S_ISREG(_mode(foreign)) else None
    os.chdir(place)
    try:
        code, out, err = ended(words)
    finally:
        os.chdir(before)
    found = fault(code, out, err, words)
    if kept is not None and not (foreign.is_file() and foreign.read_bytes() == kept):
        found += "a file of somebody else is gone or changed"
    return Verdict(code, found, words)


def _mode(path: Path) -> int:
    return path.lstat().st_mode if os.path.lexists(path) else 0


def ended(words: list[str]) -> tuple[int, str, str]:
    """Exit code (-1: an exception escaped, -2: too long), standard output and error."""
    out = io.StringIO()
    err = io.StringIO()
    shown = warnings.showwarning
    code = -1
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")
        try:
            with limited(SECONDS):
                code = READERS[words[0]](words[1]) if words[0] in READERS else main(words)
        except TooLong:
            code = -2
            traceback.print_exc(limit=-14)
        except BaseException:
            traceback.print_exc()
        finally:
            warnings.showwarning = shown
    return code, out.getvalue(), err.getvalue()


def read_owner(path: Path) -> None:
    """Who I am and what all know, and what follows from them."""
    asked = Owner.read(path)
    neighbors_of(path, asked.mine, asked.public, asked.network)
    parse(asked.public.method, dict(asked.public.options))


def read_owned(path: Path) -> None:
    """Everything that an owner does before it dials."""
    asked = Owner.read(path)
    parse(asked.public.method, dict(asked.public.options))
    asked.public.problem(asked.mine.agent, Agent.load(asked.path(asked.mine.folder)))
    if asked.mine.listen is not None:
        listening(address(path, asked.mine.listen)).close()
    with asked.links(None) as links:
        links.start()


def read_party(path: Path) -> None:
    """What a party reads before it talks to anybody."""
    me = vfl.read_me(path)
    vfl.read_own(path, me, me.table, labels=me.label)
    model = vfl.read_model(path.parent / vfl.MODEL)
    vfl.read_own(path, me, me.new or me.table, columns=list(model.columns))


def read(path: str, loader: Callable[[Path], object]) -> int:
    """A file by one of the loaders, as a command would."""
    try:
        loader(Path(path))
    except CcmacError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)  # as the program says it
        return error.exit_code
    return 0


READERS: dict[str, Callable[[str], int]] = {
    "read-svmlight": lambda path: read(path, read_svmlight),
    "read-owner": lambda path: read(path, read_owner),
    "read-owned": lambda path: read(path, read_owned),
    "read-party": lambda path: read(path, read_party),
}


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise :class:`TooLong` after that time."""

    def late(number: int, frame: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fault(code: int, out: str, err: str, words: list[str]) -> str:
    """What is wrong with this end, in a few lines; empty if nothing is."""
    tail = "\n".join(err.strip().splitlines()[-40:])[-3000:]
    if code == -2:
        return f"took more than {SECONDS} s: {tail}"
    if code not in (0, 1, 2, 3):
        return f"exit code {code}: {tail}"
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    others = [line for line in err.splitlines() if not line.startswith(("warning: ", "error: "))]
    if "Traceback" in err or len(errors) > 1 or any(len(line) > LINE for line in err.splitlines()):
        return f"not one short line: {tail}"
    if code == 2:
        helped = re.search(r"Usage: ", out)
        if not helped and (len(errors) != 1 or others or out):
            return f"exit code 2 with {len(errors)} lines of error; {tail}; {out[:200]}"
        return "" if helped else partial(words)
    if code in (0, 3) and errors:
        return f"exit code {code} with an error: {tail}"
    return ""


def partial(words: list[str]) -> str:
    """An output of a refused command."""
    left = [
        p for option in ("--out", "-o") if option in words and (p := words[words.index(option) + 1])
    ]
    for place in map(Path, left):
        with contextlib.suppress(OSError, ValueError):
            if place.name == "result" and place.exists():
                return f"left {place.name} behind"
    return ""


@contextlib.contextmanager
def workshop() -> Iterator[Callable[[str, int], Verdict]]:
    """Templates in a temporary folder, and a way to try inputs on them."""
    kept = {name: os.environ.get(name) for name in ("CCMAC_DATA", "XDG_CACHE_HOME")}
    with tempfile.TemporaryDirectory(prefix="ccmac-fuzz-") as name:
        root = Path(name)
        os.environ |= dict.fromkeys(kept, name)
        (root / "made").mkdir()
        made = Templates(root / "made")

        def attempt(target: str, number: int) -> Verdict:
            place = root / "case"
            place.mkdir()
            try:
                return case(target, number, made, place)
            finally:
                shutil.rmtree(place)

        try:
            yield attempt
        finally:
            for variable, value in kept.items():
                os.environ.pop(variable) if value is None else os.environ.update({variable: value})
