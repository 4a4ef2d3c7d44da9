"""Which ccmac this is: the installed version, and a digest of the source that runs."""

import hashlib
import re
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

try:
    __version__ = version("ccmac")
except PackageNotFoundError:
    __version__ = "0+unknown"


def series(version: str = __version__) -> str:
    """``1.4`` of ``1.4.2``: releases that differ in the last number talk to each other and read
    each other's checkpoints. What is no release keeps its whole name.
    """
    found = re.fullmatch(r"(\d+\.\d+)\.\d+", version)
    return found[1] if found else version


@cache
def source_digest() -> str:
    """Twelve hexadecimal digits over all modules: equal digests, equal code."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
