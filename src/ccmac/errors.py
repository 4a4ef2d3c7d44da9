"""Errors that a user can act on: what was wrong, where, what to do."""

from __future__ import annotations


class CcmacError(Exception):
    """Base of every error raised on purpose; ``exit_code`` is what the command line returns."""

    exit_code = 1


class InputError(CcmacError, ValueError):
    """Bad input, in one line: what is wrong, where (agent, block, shape), what to do."""

    exit_code = 2


class MethodRefused(InputError):
    """A method lacks something it needs; the message names a method that would work."""


class GradientError(CcmacError, FloatingPointError):
    """An objective returned a value that is not finite; names the agent and the iteration."""


class OutOfTime(CcmacError):
    """The time limit passed before the first step."""


class PeerLost(CcmacError):
    """Another owner ended the run, or is gone: names it. Checkpoints stay."""


class AssumptionWarning(UserWarning):
    """A declared constant or certificate does not agree with what was seen."""
