"""Where the files of a set are looked for: ``$CCMAC_DATA``, then the user's cache."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from ccmac.errors import InputError
from ccmac.lab.data.registry import Record
from ccmac.lab.data.text import SUFFIXES

__all__ = ["VARIABLE", "cache_directory", "data_directory", "find"]

VARIABLE = "CCMAC_DATA"


def data_directory() -> Path | None:
    """Return the directory that ``$CCMAC_DATA`` names, or ``None`` when it is not set."""
    value = os.environ.get(VARIABLE, "")
    if not value:
        return None
    directory = Path(value).expanduser().absolute()
    if not directory.is_dir():
        raise InputError(f"{VARIABLE}={value} is not a directory: create it or unset the variable")
    return directory


def cache_directory() -> Path:
    """Return the directory that downloads go to; it need not exist yet."""
    return platformdirs.user_cache_path("ccmac")


def find(record: Record) -> Path | None:
    """Return the file of a set that is on this machine, or ``None``; never uses the network."""
    for directory in (data_directory(), cache_directory()):
        if directory is None:
            continue
        for name in (record.name, *record.aliases):
            for suffix in SUFFIXES:
                path = directory / f"{name}{suffix}"
                if path.is_file():
                    return path
    return None
