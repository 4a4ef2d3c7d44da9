"""LIBSVM binary sets by name, and generated look-alikes of them."""

from __future__ import annotations

from ccmac.data.checks import Status, status, verify
from ccmac.data.dataset import Dataset
from ccmac.data.loading import load, locate
from ccmac.data.lookalike import generate
from ccmac.data.registry import RECORDS, Record, resolve
from ccmac.data.svmlight import parse_svmlight, read_svmlight

__all__ = [
    "RECORDS",
    "Dataset",
    "Record",
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
