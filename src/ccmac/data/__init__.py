"""LIBSVM binary sets by name, and generated look-alikes of them."""

from __future__ import annotations

from ccmac.data.dataset import Dataset
from ccmac.data.load import load, locate
from ccmac.data.lookalike import generate
from ccmac.data.registry import RECORDS, Record, resolve
from ccmac.data.svmlight import parse_svmlight, read_svmlight
from ccmac.data.verify import Status, status, verify

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
