"""BLAS threads of a run: one where blocks are small, which several threads only slow down."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from threadpoolctl import ThreadpoolController

LARGE = 1_000  # rows and columns from which on several threads gain


def blas_threads(size: int, threads: int | None) -> AbstractContextManager[Any]:
    """At most ``threads`` while it is open; None: one for blocks of fewer than LARGE rows."""
    if threads is None and size >= LARGE:
        return nullcontext()
    found: AbstractContextManager[Any] = ThreadpoolController().limit(
        limits=threads or 1, user_api="blas"
    )
    return found
