"""Errors that a user can act on: what was wrong, where, what to do, in one short line."""

from __future__ import annotations

from importlib import import_module
from typing import Any

SHOWN = 80
"""Most characters of a value that a message repeats."""


def cut(text: str, limit: int = SHOWN) -> str:
    """One line of at most ``limit`` characters; the middle of a longer text is left out."""
    half = limit // 2
    line = text if len(text) <= limit else f"{text[:half]}...{text[3 - half :]}"
    return " ".join(line.split())


def visible(text: str) -> str:
    """Blanks as they are; what a terminal would obey or hide is written out, as in ``\\x1b``."""
    if text.isprintable():
        return text
    shown = (c if c.isprintable() or c.isspace() else ascii(c)[1:-1] for c in text)
    return "".join(shown)


def short(message: str) -> str:
    """One line in which nothing long is repeated and every character can be seen."""
    words = visible(" ".join(message.split())).split(" ")
    return cut(" ".join(cut(word, 2 * SHOWN) for word in words), 500)


class CcmacError(Exception):
    """Base of every error raised on purpose; ``exit_code`` is what the command line returns.

    Whatever the message repeats, as text it is :func:`short`.
    """

    exit_code = 1

    def __str__(self) -> str:
        return short(super().__str__())


class InputError(CcmacError, ValueError):
    """Bad input, in one line: what is wrong, where (agent, block, shape), what to do."""

    exit_code = 2


class AgreedError(InputError):
    """What all owners find alike, from what all know: these words may travel to the others."""


class MethodRefused(InputError):
    """A method lacks something it needs; the message names a method that would work."""


class UnknownName(InputError, KeyError):
    """A name that is not there, of a unit, a phase or a column."""


class GradientError(CcmacError, FloatingPointError):
    """An objective returned a value that is not finite; names the agent and the iteration."""


class OutOfTime(CcmacError):
    """The time limit passed before the first step."""


class PeerLost(CcmacError):
    """Another owner ended the run, or is gone: names it. Checkpoints stay."""


class AssumptionWarning(UserWarning):
    """A declared constant or certificate does not agree with what was seen."""


def needed(module: str, otherwise: str) -> Any:
    """A module of a library that may not be there: ``otherwise`` says what helps."""
    try:
        return import_module(module)
    except ImportError:
        raise InputError(otherwise) from None
