"""Text from outside and text for the outside: bounded reading, strict JSON, short messages.

What comes from a file or a command line may be anything: it is read up to a limit, and a message
never repeats more of it than :data:`SHOWN` characters. JSON is strict both ways: NaN and infinity,
which it does not know, are written as null and refused when read.
"""

from __future__ import annotations

import difflib
import errno
import json
import math
import os
import reprlib
import stat
import unicodedata
from collections.abc import Iterable, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ccmac import errors
from ccmac.errors import InputError

SHOWN = errors.SHOWN
cut = errors.cut
DIGITS = 40
"""Most digits of a whole number: far beyond any count or seed, far below what is slow to read."""
MEGABYTE = 1 << 20
STEERING = frozenset(("Cc", "Cs", "Zl", "Zp"))

_repr = reprlib.Repr()
_repr.maxlevel = 3
_repr.maxlist = _repr.maxtuple = _repr.maxdict = _repr.maxset = 6
_repr.maxstring = _repr.maxother = SHOWN - 2


def shown(value: Any) -> str:
    """The value for a message: its ``repr``, cut to :data:`SHOWN` characters."""
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a whole number of about {round(value.bit_length() * math.log10(2))} digits"
    return cut(_repr.repr(value))


def nearest(name: Any, known: Iterable[str]) -> str:
    """``did you mean 'ring'?`` for a misspelled name, else the known ones."""
    names = list(known)
    given = name if isinstance(name, str) else shown(name)
    lower = {name.lower(): name for name in reversed(names)}
    close = difflib.get_close_matches(given[:SHOWN].lower(), lower, n=1, cutoff=0.6)
    if close:
        return f"did you mean {shown(lower[close[0]])}?"
    return f"take one of {cut(', '.join(names), 5 * SHOWN)}"


def unfit(error: Exception) -> str:
    """What a decoder of msgspec complains of, the place first: ``q: Expected `int` ...``."""
    said, _, place = str(error).partition(" - at `$.")
    return cut(f"{place.rstrip('`')}: {said}" if place else said, SHOWN + 30)


def misnamed(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """What a module raises where it has no such name."""
    return AttributeError(f"module {module!r} has no {name!r}; {nearest(name, known)}")


def steers(text: str) -> bool:
    """Whether a text holds control characters, line ends or halves of characters: no name does."""
    return not text.isprintable() and any(unicodedata.category(c) in STEERING for c in text)


def is_file(path: str | Path) -> bool:
    """Whether there is a file of that name; False for what no file system takes as a name."""
    return os.path.isfile(path)


# -- reading ---------------------------------------------------------------------------------------
def open_file(path: str | Path) -> BufferedReader:
    """An ordinary file, to read its bytes; OSError for a pipe or a device, which may not end."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise OSError(errno.EINVAL, "not an ordinary file")
        return open(path, "rb")
    except ValueError:  # a zero byte, half a character
        raise OSError(errno.EINVAL, "no file has such a name") from None


def read_text(path: Path, what: str, limit: int) -> str:
    """The UTF-8 text of a file of at most ``limit`` bytes; ``what`` opens every complaint.

    A missing file raises FileNotFoundError, for the caller knows what should have made it.
    """
    try:
        with open_file(path) as stream:
            content = stream.read(limit + 1)
        if len(content) > limit:
            raise InputError(f"{what}: holds more than {limit:,} bytes; is it the right file?")
        return content.decode("utf-8")
    except FileNotFoundError:
        raise
    except UnicodeDecodeError:
        raise InputError(f"{what}: is not a UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"{cut(what, 160)}: cannot be read ({reason})") from None


def loads(text: str) -> Any:
    """Strict JSON; ValueError for anything else, numbers that are not finite included."""
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        raise ValueError("is nested too deeply") from None


# -- writing ---------------------------------------------------------------------------------------
def plain(value: Any) -> Any:
    """Python values that JSON knows: arrays become lists, what is not finite becomes null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def dumps(value: Any, indent: int | None = 2) -> str:
    """Strict JSON of :func:`plain` values; ``indent`` None writes one short line."""
    separators = (",", ":") if indent is None else None
    return json.dumps(plain(value), indent=indent, separators=separators, allow_nan=False)
