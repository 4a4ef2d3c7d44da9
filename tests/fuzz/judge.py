"""Run one input as the shell would, in this process, and judge how it ended.

Right: accepted (exit code 0, 1 or 3), or refused with exit code 2, one short line on standard
error, nothing on standard output and nothing left of an output. Wrong: any exception that escapes,
more than the time allowed, anything else.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ccmac.cli import vfl
from ccmac.cli.main import main
from ccmac.errors import CcmacError
from ccmac.methods.registry import parse
from ccmac.owners.session import Owner
from ccmac.paper.data.loading import read_svmlight
from ccmac.storage.owner import neighbors_of
from ccmac.vfl.files import read_model, read_table
from fuzz.inputs import TARGETS, Templates

SECONDS = 60
LINE = 900


class TooLong(BaseException):
    """The time of one input is over."""


def read_owner(path: Path) -> None:
    """Who I am and what all know, and what follows from them."""
    asked = Owner.read(path)
    neighbors_of(path, asked.mine, asked.public, asked.network)
    parse(asked.public.method, dict(asked.public.options))


def read_party(path: Path) -> None:
    """What a party reads before it talks to anybody."""
    me = vfl.read_me(path)
    place = path.parent / me.table
    read_table(place, me.party, me.key, label=me.label, columns=me.columns)
    model = read_model(path.parent / vfl.MODEL)
    columns = list(model.columns)
    read_table(path.parent / (me.new or me.table), me.party, me.key, columns=columns)


READERS: dict[str, Callable[[Path], object]] = {
    "read-svmlight": read_svmlight,
    "read-owner": read_owner,
    "read-party": read_party,
}


def ended(words: list[str]) -> tuple[int, str, str]:
    """Exit code (-1: an exception escaped, -2: too long), standard output and error."""

    def late(number: int, frame: Any) -> None:
        raise TooLong

    out = io.StringIO()
    err = io.StringIO()
    shown = warnings.showwarning
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    code = -1
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            with warnings.catch_warnings():
                if words[0] in READERS:
                    READERS[words[0]](Path(words[1]))
                    code = 0
                else:
                    code = main(words)
        except CcmacError as error:  # of a reader
            print(f"error: {error}", file=sys.stderr)
            code = error.exit_code
        except TooLong:
            code = -2
            traceback.print_exc(limit=-14)
        except BaseException:
            traceback.print_exc()
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
            warnings.showwarning = shown
    return code, out.getvalue(), err.getvalue()


def fault(code: int, out: str, err: str, place: Path) -> str:
    """What is wrong with this end, in a few lines; empty if nothing is."""
    tail = "\n".join(err.strip().splitlines()[-40:])[-3000:]
    if code not in (0, 1, 2, 3):
        return f"exit code {code}: {tail}"
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    others = [line for line in err.splitlines() if not line.startswith(("warning: ", "error: "))]
    if "Traceback" in err or len(errors) > 1 or any(len(line) > LINE for line in err.splitlines()):
        return f"not one short line: {tail}"
    if code == 2 and "Usage: " not in out:
        if len(errors) != 1 or others or out:
            return f"exit code 2 with {len(errors)} lines of error; {tail}; {out[:200]}"
        if (place / "result").exists():
            return "left an output behind"
    if code in (0, 3) and errors:
        return f"exit code {code} with an error: {tail}"
    return ""


@contextlib.contextmanager
def workshop() -> Iterator[Callable[[str, int], tuple[list[str], int, str]]]:
    """Templates in a temporary folder, and a way to try inputs: (command, exit code, fault)."""
    kept = {name: os.environ.get(name) for name in ("CCMAC_DATA", "XDG_CACHE_HOME")}
    home = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="ccmac-fuzz-") as name:
        os.environ |= dict.fromkeys(kept, name)
        (Path(name) / "made").mkdir()
        made = Templates(Path(name) / "made")

        def attempt(target: str, number: int) -> tuple[list[str], int, str]:
            place = Path(name) / "case"
            place.mkdir()
            try:
                words = TARGETS[target](random.Random(f"{target}:{number}"), place, made)
                os.chdir(place)
                code, out, err = ended(words)
                return words, code, fault(code, out, err, place)
            finally:
                os.chdir(home)
                shutil.rmtree(place)

        try:
            yield attempt
        finally:
            for variable, value in kept.items():
                os.environ.pop(variable) if value is None else os.environ.update({variable: value})
