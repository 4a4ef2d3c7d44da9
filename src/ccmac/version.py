"""Which ccmac this is: the installed version, and a digest of the source that runs."""

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

try:
    __version__ = version("ccmac")
except PackageNotFoundError:
    __version__ = "0+unknown"


@cache
def source_digest() -> str:
    """Twelve hexadecimal digits over all modules: equal digests, equal code."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
