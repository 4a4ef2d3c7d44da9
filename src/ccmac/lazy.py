"""Packages whose names are those of their stub; each is imported when it is first used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lazy_loader


def attached(
    package: str, file: str, needs: str = "", remedy: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package with its stub next to ``file``.

    Without the library that it ``needs`` there is one line with the ``remedy``.
    """
    found, listed, names = lazy_loader.attach_stub(package, file)

    def get(name: str) -> Any:
        if name not in names and not name.startswith("_"):
            from ccmac.texts import misnamed

            raise misnamed(package, name, names)
        try:
            return found(name)
        except ImportError as error:
            if not needs or (error.name or "").partition(".")[0] != needs:
                raise
            from ccmac.errors import InputError

            raise InputError(f"{package} needs {remedy}") from None

    return get, listed, names
