"""LIBSVM binary sets by name, and generated look-alikes of them."""

from __future__ import annotations

from ccmac.paper.data.files import Status, status, verify
from ccmac.paper.data.loading import load, locate, read_svmlight
from ccmac.paper.data.lookalike import generate
from ccmac.paper.data.registry import RECORDS, Dataset, KnownSet, resolve
from ccmac.paper.data.svmlight import parse_svmlight

__all__ = [
    "RECORDS",
    "Dataset",
    "KnownSet",
    "Status",
    "generate",
    "load",
    "locate",
    "parse_svmlight",
    "read_svmlight",
    "resolve",
    "status",
    "verify",
]
