"""LIBSVM binary sets by name, and generated look-alikes of them."""

from __future__ import annotations

from ccmac.lab.data.checks import Status, status, verify
from ccmac.lab.data.dataset import Dataset
from ccmac.lab.data.loading import load, locate
from ccmac.lab.data.lookalike import generate
from ccmac.lab.data.registry import RECORDS, Record, resolve
from ccmac.lab.data.svmlight import parse_svmlight, read_svmlight

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
