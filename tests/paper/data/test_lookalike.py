"""Look-alikes: size, sparsity, determinism, and the spectrum beside the real one."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ccmac.paper import data
from ccmac.paper.data import RECORDS, Dataset
from ccmac.paper.data.lookalike import one_hot, table

# Nonzeros of the set whose exact number is not on record: 74 a row.
RCV1_NNZ = 74 * 20_242


def fingerprint(made: Dataset) -> str:
    h = hashlib.sha256()
    for part, kind in (
        (made.X.indptr, "<i8"),
        (made.X.indices, "<i8"),
        (made.X.data, "<f8"),
        (made.y, "<f8"),
    ):
        h.update(np.asarray(part).astype(kind).tobytes())
    return h.hexdigest()[:16]


def gram_spectrum(X: csr_array[np.float64]) -> NDArray[np.float64]:
    gram = (X.T @ X).toarray() / X.shape[0]
    return np.linalg.eigvalsh(gram)[::-1].astype(np.float64)


@pytest.mark.parametrize("name", list(RECORDS))
def test_size_and_sparsity(name: str) -> None:
    record = RECORDS[name]
    made = data.generate(name, 0)
    assert made.name == f"{name}-like"
    assert made.source == "generated"
    assert made.X.shape == (record.rows, record.features)
    assert made.X.nnz == pytest.approx(record.nnz or RCV1_NNZ, rel=0.05)
    assert made.X.has_canonical_format
    assert made.X.indices.dtype == made.X.indptr.dtype == np.int32
    assert set(np.unique(made.y)) == {-1.0, 1.0}
    if record.counts:
        assert np.sum(made.y == 1) == record.counts[1]


@pytest.mark.parametrize("name", ["census", "mushrooms"])
def test_one_category_for_each_attribute(name: str) -> None:
    found = table(name)
    X = one_hot(found, 3_000, np.random.default_rng(5)).toarray()
    first = 0
    for attribute in found.attributes:
        block = X[:, first : first + attribute.size]
        assert block.sum(axis=1).max() == 1
        shares = np.diff(attribute.cumulative(), prepend=0.0)
        # Five standard errors of a share estimated from 3,000 rows.
        np.testing.assert_allclose(block.mean(axis=0), shares, atol=5 * 0.5 / np.sqrt(3_000))
        first += attribute.size
    assert first == X.shape[1]


GOLDEN = {
    "a1a-like": "1b3d72942a879b2e",
    "mushrooms-like": "3547228be090901d",
    "w8a-like": "3dc2cedb1ca5b65c",
    "rcv1_train.binary-like": "6b509c398379aea8",
}


@pytest.mark.parametrize("name", list(GOLDEN))
def test_a_seed_gives_the_same_bytes_everywhere(name: str) -> None:
    assert fingerprint(data.generate(name, 0)) == GOLDEN[name]
    assert fingerprint(data.generate(name, 1)) != GOLDEN[name]


@pytest.mark.parametrize(
    ("name", "leading", "typical", "worst"),
    # Typical (mean) and worst factor between eigenvalues of equal rank, over the leading ones.
    [("a1a", 60, 1.25, 1.6), ("mushrooms", 60, 1.35, 3), ("w8a", 200, 1.4, 4)],
)
def test_the_gram_spectrum_decays_alike(
    name: str, leading: int, typical: float, worst: float
) -> None:
    if data.status(RECORDS[name]).path is None:
        pytest.skip(f"{name} is not on this machine: set CCMAC_DATA to compare with the real file")
    real = gram_spectrum(data.load(name).X)[:leading]
    made = gram_spectrum(data.generate(name).X)[:leading]
    factors = np.abs(np.log(made / real))
    assert factors.mean() < np.log(typical)
    assert factors.max() < np.log(worst)
