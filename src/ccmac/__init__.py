"""Decentralized convex optimization with cross-coupled mixed affine constraints.

The names are those of ``__init__.pyi``; each is imported when it is first used.
"""

from typing import Any

import lazy_loader

_attached, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name not in __all__ and not name.startswith("_"):
        from ccmac.texts import misnamed

        raise misnamed(__name__, name, __all__)
    return _attached(name)
