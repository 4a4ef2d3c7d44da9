"""LIBSVM binary sets by name, and generated look-alikes of them."""

from __future__ import annotations

from ccmac.lab.data.files import Status, status, verify
from ccmac.lab.data.loading import load, locate, read_svmlight
from ccmac.lab.data.lookalike import generate
from ccmac.lab.data.registry import RECORDS, Dataset, KnownSet, resolve
from ccmac.lab.data.svmlight import parse_svmlight

__all__ = [
    "RECORDS", "Dataset", "KnownSet", "Status", "generate", "load", "locate", "parse_svmlight",
    "read_svmlight", "resolve", "status", "verify",
]  # fmt: skip
